//! Prints modules as `llvm-dis` does, as far as the test compares them: no attributes except types
//! of parameters, no metadata, no names of local values.

use everett_ir::module::*;
use std::fmt::Write;

pub struct Printer<'a> {
    pub module: &'a Module,
    /// Numbers of unnamed globals.
    unnamed: std::collections::HashMap<Value, usize>,
}

/// A function with numbered values.
pub struct Numbered<'a> {
    pub function: &'a Function,
    blocks: Vec<usize>,
    instructions: Vec<usize>,
}

impl<'a> Printer<'a> {
    pub fn new(module: &'a Module) -> Self {
        let mut unnamed = std::collections::HashMap::new();
        let mut add = |value: Value, name: &str| {
            if name.is_empty() {
                let number = unnamed.len();
                unnamed.insert(value, number);
            }
        };
        module
            .globals()
            .for_each(|(id, global)| add(Value::Global(id), &global.name));
        for (index, alias) in module.aliases.iter().enumerate() {
            add(Value::Alias(AliasId::new(index)), &alias.name);
        }
        for (index, ifunc) in module.ifuncs.iter().enumerate() {
            add(Value::Ifunc(IfuncId::new(index)), &ifunc.name);
        }
        module
            .functions()
            .for_each(|(id, function)| add(Value::Function(id), &function.name));
        Self { module, unnamed }
    }

    pub fn number(&self, function: &'a Function) -> Numbered<'a> {
        let mut next = function.params.len();
        let mut blocks = Vec::new();
        let mut instructions = vec![0; function.instructions.len()];
        for block in function.block_ids() {
            blocks.push(next);
            next += 1;
            for (id, instruction) in function.block(block) {
                if !matches!(self.module.types[instruction.ty], Type::Void) {
                    instructions[id.index()] = next;
                    next += 1;
                }
            }
        }
        Numbered {
            function,
            blocks,
            instructions,
        }
    }

    pub fn ty(&self, id: TypeId) -> String {
        match &self.module.types[id] {
            Type::Void => "void".into(),
            Type::Integer(width) => format!("i{width}"),
            Type::Half => "half".into(),
            Type::BFloat => "bfloat".into(),
            Type::Float => "float".into(),
            Type::Double => "double".into(),
            Type::X86Fp80 => "x86_fp80".into(),
            Type::Fp128 => "fp128".into(),
            Type::PpcFp128 => "ppc_fp128".into(),
            Type::Pointer { address_space: 0 } => "ptr".into(),
            Type::Pointer { address_space } => format!("ptr addrspace({address_space})"),
            Type::Label => "label".into(),
            Type::Metadata => "metadata".into(),
            Type::Token => "token".into(),
            Type::Array { element, count } => format!("[{count} x {}]", self.ty(*element)),
            Type::Vector {
                element,
                count,
                scalable,
            } => {
                let scale = if *scalable { "vscale x " } else { "" };
                format!("<{scale}{count} x {}>", self.ty(*element))
            }
            Type::Struct(StructType {
                name: Some(name), ..
            }) => format!("%{}", quoted(name)),
            Type::Struct(body) => {
                let fields: Vec<_> = body.fields.iter().map(|&field| self.ty(field)).collect();
                let inner = match fields.len() {
                    0 => "{}".to_owned(),
                    _ => format!("{{ {} }}", fields.join(", ")),
                };
                if body.packed {
                    format!("<{inner}>")
                } else {
                    inner
                }
            }
            Type::Function {
                result,
                params,
                varargs,
            } => {
                let mut parts: Vec<_> = params.iter().map(|&param| self.ty(param)).collect();
                if *varargs {
                    parts.push("...".into());
                }
                format!("{} ({})", self.ty(*result), parts.join(", "))
            }
            Type::Other(name) => name.to_string(),
        }
    }

    /// Returns a value without its type.
    pub fn value(&self, scope: Option<&Numbered>, value: Value) -> String {
        let symbol = |name: &str| match self.unnamed.get(&value) {
            Some(number) => format!("@{number}"),
            None => format!("@{}", quoted(name)),
        };
        match value {
            Value::Instruction(id) => {
                format!(
                    "%{}",
                    scope.map_or(0, |scope| scope.instructions[id.index()])
                )
            }
            Value::Argument(index) => format!("%{index}"),
            Value::Block(id) => format!("%{}", scope.map_or(0, |scope| scope.blocks[id.index()])),
            Value::Constant(id) => self.constant(id),
            Value::Global(id) => symbol(&self.module.globals[id.index()].name),
            Value::Function(id) => symbol(&self.module.functions[id.index()].name),
            Value::Alias(id) => symbol(&self.module.aliases[id.index()].name),
            Value::Ifunc(id) => symbol(&self.module.ifuncs[id.index()].name),
            Value::Metadata(_) => String::new(),
            Value::InlineAsm(id) => {
                let asm = &self.module.inline_asms[id.index()];
                let mut text = "asm ".to_owned();
                for (flag, name) in [
                    (asm.side_effects, "sideeffect "),
                    (asm.align_stack, "alignstack "),
                    (asm.intel_dialect, "inteldialect "),
                    (asm.can_throw, "unwind "),
                ] {
                    text.push_str(if flag { name } else { "" });
                }
                let (code, constraints) = (escaped(&asm.text), escaped(&asm.constraints));
                write!(text, "\"{code}\", \"{constraints}\"").unwrap();
                text
            }
        }
    }

    /// Returns a value with its type in front.
    pub fn typed(&self, scope: Option<&Numbered>, value: Value) -> String {
        let ty = match (value, scope) {
            (Value::Block(_), _) => "label".into(),
            (Value::Metadata(_), _) => return "metadata".into(),
            (_, Some(scope)) => self.ty(self
                .module
                .value_type(scope.function, value)
                .expect("typed value")),
            (_, None) => self.ty(self.module.constant_type(value).expect("typed constant")),
        };
        format!("{ty} {}", self.value(scope, value))
    }

    fn list(&self, values: &[Value]) -> String {
        let items: Vec<_> = values
            .iter()
            .map(|&value| self.typed(None, value))
            .collect();
        items.join(", ")
    }

    fn is_zero(&self, value: Value) -> bool {
        let Value::Constant(id) = value else {
            return false;
        };
        matches!(
            self.module.constant(id).kind,
            ConstantKind::Null | ConstantKind::Integer(0)
        )
    }

    pub fn constant(&self, id: ConstId) -> String {
        let constant = self.module.constant(id);
        let types = &self.module.types;
        match &constant.kind {
            ConstantKind::Null => match &types[constant.ty] {
                Type::Integer(1) => "false".into(),
                Type::Integer(_) => "0".into(),
                Type::Pointer { .. } => "null".into(),
                Type::Token => "none".into(),
                _ if types.is_float(constant.ty) => float_text(types, constant.ty, [0, 0]),
                _ => "zeroinitializer".into(),
            },
            ConstantKind::Undef => "undef".into(),
            ConstantKind::Poison => "poison".into(),
            ConstantKind::Integer(value) => integer_text(&types[constant.ty], *value),
            ConstantKind::WideInteger(words) => {
                let Type::Integer(width) = types[constant.ty] else {
                    panic!("not an integer")
                };
                wide_integer_text(width, words)
            }
            ConstantKind::Float(bits) => float_text(types, constant.ty, [*bits, 0]),
            ConstantKind::WideFloat(words) => float_text(types, constant.ty, *words),
            ConstantKind::Aggregate(members) => self.aggregate(constant.ty, members),
            ConstantKind::Data(bytes) => self.data(constant.ty, bytes),
            ConstantKind::Cast { op, value } => {
                let (from, to) = (self.typed(None, *value), self.ty(constant.ty));
                format!("{} ({from} to {to})", cast_name(*op))
            }
            ConstantKind::Gep {
                source,
                base,
                indices,
                flags,
            } => {
                // LLVM folds address arithmetic with zero offset.
                if indices.iter().all(|&index| self.is_zero(index)) {
                    return self.value(None, *base);
                }
                let mut text = format!("getelementptr {}(", gep_flag_text(*flags));
                write!(text, "{}, {}", self.ty(*source), self.typed(None, *base)).unwrap();
                for &index in indices {
                    write!(text, ", {}", self.typed(None, index)).unwrap();
                }
                text + ")"
            }
            ConstantKind::Binary { op, lhs, rhs } => {
                format!(
                    "{} ({}, {})",
                    binary_name(*op),
                    self.typed(None, *lhs),
                    self.typed(None, *rhs)
                )
            }
            ConstantKind::BlockAddress { function, block } => {
                let name = self.value(None, Value::Function(*function));
                let scope = self.number(&self.module.functions[function.index()]);
                format!(
                    "blockaddress({name}, {})",
                    self.value(Some(&scope), Value::Block(*block))
                )
            }
            other => format!("{other:?}"),
        }
    }

    fn aggregate(&self, ty: TypeId, members: &[Value]) -> String {
        match &self.module.types[ty] {
            Type::Vector { .. } => {
                let items: Vec<_> = members
                    .iter()
                    .map(|&value| self.typed(None, value))
                    .collect();
                vector_text(&items)
            }
            Type::Array { .. } => format!("[{}]", self.list(members)),
            Type::Struct(body) => {
                let inner = match members {
                    [] => "{}".to_owned(),
                    _ => format!("{{ {} }}", self.list(members)),
                };
                if body.packed {
                    format!("<{inner}>")
                } else {
                    inner
                }
            }
            other => format!("{other:?}"),
        }
    }

    fn data(&self, ty: TypeId, bytes: &[u8]) -> String {
        let types = &self.module.types;
        let element = types.element(ty, 0).expect("element");
        let array = matches!(types[ty], Type::Array { .. });
        if array && types[element] == Type::Integer(8) {
            return format!("c\"{}\"", escaped_bytes(bytes));
        }
        let size = types.store_size(element) as usize;
        let name = self.ty(element);
        let items: Vec<_> = bytes
            .chunks_exact(size)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..size].copy_from_slice(chunk);
                let word = u64::from_le_bytes(word);
                let text = if types.is_float(element) {
                    float_text(types, element, [word, 0])
                } else {
                    integer_text(&types[element], word)
                };
                format!("{name} {text}")
            })
            .collect();
        if array {
            format!("[{}]", items.join(", "))
        } else {
            vector_text(&items)
        }
    }
}

fn vector_text(items: &[String]) -> String {
    let equal = items.windows(2).all(|pair| pair[0] == pair[1]);
    // Undefined lanes are never written as a splat.
    let plain = items[0].ends_with("poison") || items[0].ends_with("undef");
    if equal && !plain && items.len() > 1 && !items[0].contains('(') && !items[0].contains('@') {
        return format!("splat ({})", items[0]);
    }
    format!("<{}>", items.join(", "))
}

pub fn gep_flag_text(flags: GepFlags) -> String {
    let mut text = String::new();
    if flags.inbounds {
        text.push_str("inbounds ");
    } else if flags.nusw {
        text.push_str("nusw ");
    }
    if flags.nuw {
        text.push_str("nuw ");
    }
    text
}

fn integer_text(ty: &Type, value: u64) -> String {
    match *ty {
        Type::Integer(1) => if value == 1 { "true" } else { "false" }.into(),
        Type::Integer(width @ 1..=64) => {
            let shift = 64 - width;
            ((value << shift) as i64 >> shift).to_string()
        }
        _ => value.to_string(),
    }
}

/// Returns the signed decimal of an integer of any width.
fn wide_integer_text(width: u32, words: &[u64]) -> String {
    let top = (width - 1) % 64;
    let mut words = words.to_vec();
    let last = words.len() - 1;
    let negative = words[last] >> top & 1 == 1;
    if negative {
        let mut carry = true;
        for word in &mut words {
            let (sum, over) = (!*word).overflowing_add(u64::from(carry));
            *word = sum;
            carry = over;
        }
        words[last] &= u64::MAX >> (63 - top);
    }
    let mut digits = Vec::new();
    while words.iter().any(|&word| word != 0) {
        let mut rest = 0u128;
        for word in words.iter_mut().rev() {
            let value = rest << 64 | u128::from(*word);
            *word = (value / 10) as u64;
            rest = value % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    if negative {
        digits.push(b'-');
    }
    digits.reverse();
    String::from_utf8(digits).expect("digits")
}

fn float_text(types: &TypeTable, ty: TypeId, words: [u64; 2]) -> String {
    let double = match types[ty] {
        Type::Float => f64::from(f32::from_bits(words[0] as u32)),
        Type::Double => f64::from_bits(words[0]),
        Type::Half => return format!("0xH{:04X}", words[0]),
        Type::BFloat => return format!("0xR{:04X}", words[0]),
        Type::X86Fp80 => return format!("0xK{:04X}{:016X}", words[1], words[0]),
        _ => return format!("0xL{:016X}{:016X}", words[0], words[1]),
    };
    // A signalling NaN stays signalling when it is widened, because its bits are moved.
    let bits = match types[ty] {
        Type::Float if double.is_nan() => {
            let bits = words[0];
            (bits >> 31 & 1) << 63 | 0x7FF << 52 | (bits & 0x7F_FFFF) << 29
        }
        _ => double.to_bits(),
    };
    format!("0x{bits:X}")
}

fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let starts_plain = name
        .chars()
        .next()
        .is_some_and(|c| plain(c) && !c.is_ascii_digit());
    if starts_plain && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("\"{}\"", escaped(name))
}

fn escaped(text: &str) -> String {
    escaped_bytes(text.as_bytes())
}

fn escaped_bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'"' => text.push_str("\\22"),
            0x20..0x7F => text.push(byte as char),
            _ => write!(text, "\\{byte:02X}").unwrap(),
        }
    }
    text
}

pub fn cast_name(op: CastOp) -> String {
    format!("{op:?}").to_lowercase()
}

pub fn binary_name(op: BinaryOp) -> String {
    format!("{op:?}").to_lowercase()
}
