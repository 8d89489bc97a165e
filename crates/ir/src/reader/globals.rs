//! Module-level records: global variables, functions, aliases, ifuncs and comdats.

use super::Reader;
use crate::bitstream::ReadError;
use crate::module::*;

/// Value numbers in records that precede the constants they refer to.
#[derive(Default)]
pub(super) struct LateReferences {
    initializers: Vec<(GlobalId, u64)>,
    personalities: Vec<(FunctionId, u64)>,
    aliases: Vec<(AliasId, u64)>,
    resolvers: Vec<(IfuncId, u64)>,
}

/// Address spaces are 24 bits wide.
const MAX_ADDRESS_SPACE: u64 = 1 << 24;

impl Reader<'_> {
    /// Adds a value and its type; its number is its position.
    pub(super) fn push_value(&mut self, value: Value, ty: TypeId) {
        self.values.push(value);
        self.value_types.push(ty);
    }

    /// Removes the name at the start of the record; the other operands move to the front.
    fn take_name(&mut self) -> Result<Box<str>, ReadError> {
        let (offset, size) = (self.op(0)?, self.op(1)?);
        let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let bytes = range
            .and_then(|(offset, size)| self.strtab.get(offset..offset.checked_add(size)?))
            .ok_or_else(|| self.bits.error("a name is outside of the string table"))?;
        // Names may overlap in the table, so few bytes could make many long ones.
        self.charge(bytes.len())?;
        self.bits.ops.drain(..2);
        // A leading \1 keeps LLVM from mangling the name; ELF does not mangle.
        let bytes = bytes.strip_prefix(b"\x01").unwrap_or(bytes);
        Ok(String::from_utf8_lossy(bytes).into())
    }

    /// Records the symbol of a name. Two symbols can have the same name if only one of them has the
    /// prefix against mangling; the defined one counts then, else the first.
    fn define_symbol(&mut self, name: &str, symbol: Symbol, defined: bool) {
        if name.is_empty() {
            return;
        }
        let known_is_defined = match self.module.symbols.get(name) {
            None => false,
            Some(Symbol::Global(id)) => self.late.initializers.iter().any(|(known, _)| known == id),
            Some(Symbol::Function(id)) => self.bodies.contains(id),
            Some(Symbol::Alias(_) | Symbol::Ifunc(_)) => true,
        };
        if !self.module.symbols.contains_key(name) || (defined && !known_is_defined) {
            self.module.symbols.insert(name.into(), symbol);
        }
    }

    fn address(&mut self, address_space: u64) -> Result<(u32, TypeId), ReadError> {
        if address_space > MAX_ADDRESS_SPACE {
            return Err(self.bits.error("address space too large"));
        }
        let address_space = address_space as u32;
        Ok((
            address_space,
            self.module.types.intern(Type::Pointer { address_space }),
        ))
    }

    /// Decodes an alignment stored as its logarithm plus one.
    pub(super) fn align(&self, encoded: u64) -> Result<u64, ReadError> {
        match encoded {
            0 => Ok(0),
            1..=33 => Ok(1 << (encoded - 1)),
            _ => Err(self
                .bits
                .error(format!("alignment 2^{} is too large", encoded - 1))),
        }
    }

    fn name_in(&self, names: &[Box<str>], number: u64) -> Result<Option<Box<str>>, ReadError> {
        match usize::try_from(number) {
            Ok(0) => Ok(None),
            Ok(number) if number <= names.len() => Ok(Some(names[number - 1].clone())),
            _ => Err(self
                .bits
                .error(format!("section or collector {number} does not exist"))),
        }
    }

    fn section(&mut self, number: u64) -> Result<Option<Box<str>>, ReadError> {
        let name = self.name_in(&self.sections, number)?;
        self.charge(name.as_ref().map_or(0, |name| name.len()))?;
        Ok(name)
    }

    fn comdat_at(&self, number: u64) -> Result<Option<ComdatId>, ReadError> {
        match usize::try_from(number) {
            Ok(0) => Ok(None),
            Ok(number) if number <= self.module.comdats.len() => {
                Ok(Some(ComdatId::new(number - 1)))
            }
            _ => Err(self.bits.error(format!("comdat {number} does not exist"))),
        }
    }

    /// Reads `[name, selection]`.
    pub(super) fn read_comdat(&mut self) -> Result<(), ReadError> {
        let name = self.take_name()?;
        let selection = match self.op(0)? {
            2 => ComdatSelection::ExactMatch,
            3 => ComdatSelection::Largest,
            4 => ComdatSelection::NoDeduplicate,
            5 => ComdatSelection::SameSize,
            _ => ComdatSelection::Any,
        };
        self.module.comdats.push(Comdat { name, selection });
        Ok(())
    }

    /// Reads `[name, type, isconst | explicit << 1 | addrspace << 2, initid, linkage, alignment,
    /// section, visibility, threadlocal, unnamed_addr, externally_initialized, dllstorage,
    /// comdat]`.
    pub(super) fn read_global(&mut self) -> Result<(), ReadError> {
        let name = self.take_name()?;
        let flags = self.op(1)?;
        // Without the explicit flag the record names the type of the address.
        let (ty, space) = if flags & 2 != 0 {
            (self.type_at(self.op(0)?)?, flags >> 2)
        } else {
            (self.pointee_or_self(self.op(0)?)?, 0)
        };
        let (address_space, address) = self.address(space)?;
        let id = GlobalId::new(self.module.globals.len());
        let initializer = self.op(2)?;
        if initializer != 0 {
            self.late.initializers.push((id, initializer - 1));
        }
        let global = Global {
            ty,
            initializer: None,
            constant: flags & 1 != 0,
            thread_local: self.op_or_zero(7) != 0,
            linkage: linkage(self.op(3)?),
            visibility: visibility(self.op_or_zero(6)),
            align: self.align(self.op(4)?)?,
            section: self.section(self.op(5)?)?,
            comdat: self.comdat_at(self.op_or_zero(11))?,
            address_space,
            unnamed_addr: self.op_or_zero(8) != 0,
            externally_initialized: self.op_or_zero(9) != 0,
            name: name.clone(),
        };
        self.define_symbol(&name, Symbol::Global(id), initializer != 0);
        self.module.globals.push(global);
        self.push_value(Value::Global(id), address);
        Ok(())
    }

    /// Reads `[name, type, callingconv, isproto, linkage, paramattr, alignment, section,
    /// visibility, gc, unnamed_addr, prologue, dllstorage, comdat, prefix, personality, dso_local,
    /// addrspace]`.
    pub(super) fn read_function(&mut self) -> Result<(), ReadError> {
        let name = self.take_name()?;
        let ty = self.pointee_or_self(self.op(0)?)?;
        let Type::Function { params, .. } = &self.module.types[ty] else {
            return Err(self
                .bits
                .error("a function whose type is not a function type"));
        };
        let params = params.clone();
        self.charge(params.len())?;
        let (address_space, address) = self.address(self.op_or_zero(16))?;
        let id = FunctionId::new(self.module.functions.len());
        let personality = self.op_or_zero(14);
        if personality != 0 {
            self.late.personalities.push((id, personality - 1));
        }
        let defined = self.op(2)? == 0;
        if defined {
            self.bodies.push_back(id);
        }
        let function = Function {
            ty,
            params,
            linkage: linkage(self.op(3)?),
            visibility: visibility(self.op(7)?),
            calling_convention: self.op(1)? as u32,
            attributes: self.attributes_at(self.op(4)?)?,
            align: self.align(self.op(5)?)?,
            section: self.section(self.op(6)?)?,
            comdat: self.comdat_at(self.op_or_zero(12))?,
            gc: self.name_in(&self.gc_names, self.op_or_zero(8))?,
            unnamed_addr: self.op_or_zero(9) != 0,
            address_space,
            ..Function::declaration(name.clone(), ty)
        };
        self.debug_intrinsics.push(name.starts_with("llvm.dbg."));
        self.define_symbol(&name, Symbol::Function(id), defined);
        self.module.functions.push(function);
        self.push_value(Value::Function(id), address);
        Ok(())
    }

    /// Reads `[name, type, addrspace, aliasee, linkage, visibility, dllstorage, threadlocal]`.
    pub(super) fn read_alias(&mut self) -> Result<(), ReadError> {
        let name = self.take_name()?;
        let ty = self.type_at(self.op(0)?)?;
        let (address_space, address) = self.address(self.op(1)?)?;
        let id = AliasId::new(self.module.aliases.len());
        self.late.aliases.push((id, self.op(2)?));
        let alias = Alias {
            ty,
            // Replaced when all constants are known.
            target: Value::Alias(id),
            linkage: linkage(self.op(3)?),
            visibility: visibility(self.op_or_zero(4)),
            thread_local: self.op_or_zero(6) != 0,
            address_space,
            name: name.clone(),
        };
        self.define_symbol(&name, Symbol::Alias(id), true);
        self.module.aliases.push(alias);
        self.push_value(Value::Alias(id), address);
        Ok(())
    }

    /// Reads `[name, type, addrspace, resolver, linkage, visibility]`.
    pub(super) fn read_ifunc(&mut self) -> Result<(), ReadError> {
        let name = self.take_name()?;
        let ty = self.type_at(self.op(0)?)?;
        let (address_space, address) = self.address(self.op(1)?)?;
        let id = IfuncId::new(self.module.ifuncs.len());
        self.late.resolvers.push((id, self.op(2)?));
        let ifunc = Ifunc {
            ty,
            // Replaced when all constants are known.
            resolver: Value::Ifunc(id),
            linkage: linkage(self.op(3)?),
            visibility: visibility(self.op_or_zero(4)),
            address_space,
            name: name.clone(),
        };
        self.define_symbol(&name, Symbol::Ifunc(id), true);
        self.module.ifuncs.push(ifunc);
        self.push_value(Value::Ifunc(id), address);
        Ok(())
    }

    /// Sets the values that were not known when the records were read.
    pub(super) fn finish_globals(&mut self) -> Result<(), ReadError> {
        let late = std::mem::take(&mut self.late);
        for (id, number) in late.initializers {
            let (value, ty) = self.module_value(number)?;
            let expected = self.module.globals[id.index()].ty;
            if ty != expected {
                let name = &self.module.globals[id.index()].name;
                let message = format!("the initializer of {name} has another type");
                return Err(self.bits.error(message));
            }
            self.module.globals[id.index()].initializer = Some(value);
        }
        for (id, number) in late.personalities {
            self.module.functions[id.index()].personality = Some(self.module_value(number)?.0);
        }
        for (id, number) in late.aliases {
            self.module.aliases[id.index()].target = self.module_value(number)?.0;
        }
        for (id, number) in late.resolvers {
            self.module.ifuncs[id.index()].resolver = self.module_value(number)?.0;
        }
        self.check_aliases()
    }

    fn module_value(&self, number: u64) -> Result<(Value, TypeId), ReadError> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        match (self.values.get(index), self.value_types.get(index)) {
            (Some(&value), Some(&ty)) if !matches!(value, Value::InlineAsm(_)) => Ok((value, ty)),
            _ => Err(self.bits.error(format!("value {number} does not exist"))),
        }
    }

    /// Rejects cycles of aliases, so that resolving them terminates.
    fn check_aliases(&self) -> Result<(), ReadError> {
        for start in 0..self.module.aliases.len() {
            let mut steps = 0;
            let mut pending = vec![self.module.aliases[start].target];
            while let Some(value) = pending.pop() {
                steps += 1;
                if steps > 10_000 || pending.len() > 10_000 {
                    let name = &self.module.aliases[start].name;
                    return Err(self.bits.error(format!("alias {name} stands for itself")));
                }
                match value {
                    Value::Alias(id) => pending.push(self.module.aliases[id.index()].target),
                    Value::Constant(id) => {
                        let constant = self.module.constant(id);
                        constant
                            .kind
                            .for_each_operand(|operand| pending.push(operand));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn linkage(code: u64) -> Linkage {
    match code {
        1 | 16 => Linkage::WeakAny,
        2 => Linkage::Appending,
        3 => Linkage::Internal,
        4 | 18 => Linkage::LinkOnceAny,
        7 => Linkage::ExternalWeak,
        8 => Linkage::Common,
        9 | 13 | 14 => Linkage::Private,
        10 | 17 => Linkage::WeakOdr,
        11 | 19 => Linkage::LinkOnceOdr,
        12 => Linkage::AvailableExternally,
        _ => Linkage::External,
    }
}

fn visibility(code: u64) -> Visibility {
    match code {
        1 => Visibility::Hidden,
        2 => Visibility::Protected,
        _ => Visibility::Default,
    }
}
