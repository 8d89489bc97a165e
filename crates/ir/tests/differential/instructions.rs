//! Prints instructions as `llvm-dis` does, on one line each.

use super::printer::{Numbered, Printer, binary_name, cast_name, gep_flag_text};
use everett_ir::module::*;
use std::fmt::Write;

/// Returns the lines of a function, each with the location of its instruction.
pub fn function_lines(printer: &Printer, function: &Function) -> Vec<(String, Option<LocId>)> {
    let scope = printer.number(function);
    function
        .instructions
        .iter()
        .enumerate()
        .map(|(index, instruction)| {
            let text = line(printer, &scope, instruction);
            let text = if matches!(printer.module.types[instruction.ty], Type::Void) {
                text
            } else {
                let result = printer.value(Some(&scope), Value::Instruction(InstId::new(index)));
                format!("{result} = {text}")
            };
            (text, instruction.loc)
        })
        .collect()
}

fn fast_math(bits: u8) -> String {
    if bits & 0xFE == 0xFE {
        return " fast".into();
    }
    let names = [
        (7, " reassoc"),
        (1, " nnan"),
        (2, " ninf"),
        (3, " nsz"),
        (4, " arcp"),
        (5, " contract"),
        (6, " afn"),
    ];
    names
        .iter()
        .filter(|(bit, _)| bits >> bit & 1 != 0)
        .map(|(_, name)| *name)
        .collect()
}

fn arithmetic_flags(flags: ArithmeticFlags) -> String {
    let mut text = String::new();
    for (flag, name) in [
        (flags.nuw, " nuw"),
        (flags.nsw, " nsw"),
        (flags.exact, " exact"),
        (flags.disjoint, " disjoint"),
        (flags.nneg, " nneg"),
    ] {
        text.push_str(if flag { name } else { "" });
    }
    text + &fast_math(flags.fast_math)
}

fn ordering(ordering: Ordering) -> &'static str {
    match ordering {
        Ordering::NotAtomic => "",
        Ordering::Unordered => " unordered",
        Ordering::Monotonic => " monotonic",
        Ordering::Acquire => " acquire",
        Ordering::Release => " release",
        Ordering::AcquireRelease => " acq_rel",
        Ordering::SequentiallyConsistent => " seq_cst",
    }
}

fn sync(access: &Access) -> String {
    let scope = match (access.ordering, access.scope) {
        (Ordering::NotAtomic, _) | (_, SyncScope::System) => "",
        (_, SyncScope::SingleThread) => " syncscope(\"singlethread\")",
        (_, SyncScope::Other) => " syncscope(?)",
    };
    format!("{scope}{}", ordering(access.ordering))
}

fn kind_of_access(access: &Access) -> String {
    let atomic = if access.ordering == Ordering::NotAtomic {
        ""
    } else {
        " atomic"
    };
    format!("{atomic}{}", if access.volatile { " volatile" } else { "" })
}

fn align(align: u64) -> String {
    if align == 0 {
        String::new()
    } else {
        format!(", align {align}")
    }
}

fn line(printer: &Printer, scope: &Numbered, instruction: &Instruction) -> String {
    use InstructionKind::*;
    let function = scope.function;
    let typed = |value: Value| printer.typed(Some(scope), value);
    let bare = |value: Value| printer.value(Some(scope), value);
    let label = |block: BlockId| printer.typed(Some(scope), Value::Block(block));
    let ty = printer.ty(instruction.ty);
    match instruction.kind {
        FNeg {
            value,
            fast_math: bits,
        } => format!("fneg{} {}", fast_math(bits), typed(value)),
        Binary {
            op,
            lhs,
            rhs,
            flags,
        } => {
            let name = binary_name(op);
            format!(
                "{name}{} {}, {}",
                arithmetic_flags(flags),
                typed(lhs),
                bare(rhs)
            )
        }
        Cast { op, value, flags } => {
            format!(
                "{}{} {} to {ty}",
                cast_name(op),
                arithmetic_flags(flags),
                typed(value)
            )
        }
        ICmp {
            predicate,
            lhs,
            rhs,
            same_sign,
        } => {
            let name = format!("{predicate:?}").to_lowercase();
            let sign = if same_sign { " samesign" } else { "" };
            format!("icmp{sign} {name} {}, {}", typed(lhs), bare(rhs))
        }
        FCmp {
            predicate,
            lhs,
            rhs,
            fast_math: bits,
        } => {
            let name = format!("{predicate:?}").to_lowercase();
            format!(
                "fcmp{} {name} {}, {}",
                fast_math(bits),
                typed(lhs),
                bare(rhs)
            )
        }
        Select {
            condition,
            then,
            otherwise,
        } => {
            format!(
                "select {}, {}, {}",
                typed(condition),
                typed(then),
                typed(otherwise)
            )
        }
        Phi { edges } => {
            let edges: Vec<_> = function.phi_edges[edges.range()]
                .iter()
                .map(|edge| {
                    format!(
                        "[ {}, {} ]",
                        bare(edge.value),
                        bare(Value::Block(edge.block))
                    )
                })
                .collect();
            format!("phi {ty} {}", edges.join(", "))
        }
        Alloca {
            allocated,
            count,
            align: alignment,
            inalloca,
        } => {
            let mut text = "alloca ".to_owned();
            text.push_str(if inalloca { "inalloca " } else { "" });
            text.push_str(&printer.ty(allocated));
            if typed(count) != "i32 1" {
                write!(text, ", {}", typed(count)).unwrap();
            }
            text + &align(alignment)
        }
        Load { pointer, access } => {
            let (kind, sync) = (kind_of_access(&access), sync(&access));
            format!(
                "load{kind} {ty}, {}{sync}{}",
                typed(pointer),
                align(access.align)
            )
        }
        Store {
            pointer,
            value,
            access,
        } => {
            let (kind, sync) = (kind_of_access(&access), sync(&access));
            let (value, pointer) = (typed(value), typed(pointer));
            format!(
                "store{kind} {value}, {pointer}{sync}{}",
                align(access.align)
            )
        }
        Gep {
            source,
            base,
            indices,
            flags,
        } => {
            let mut text = format!("getelementptr {}", gep_flag_text(flags));
            write!(text, "{}, {}", printer.ty(source), typed(base)).unwrap();
            for &index in function.operand_list(indices) {
                write!(text, ", {}", typed(index)).unwrap();
            }
            text
        }
        Call { call } => {
            let tail = match function.calls[call.index()].tail {
                TailKind::None => "",
                TailKind::Tail => "tail ",
                TailKind::MustTail => "musttail ",
                TailKind::NoTail => "notail ",
            };
            format!("{tail}call{}", call_text(printer, scope, call))
        }
        Invoke {
            call,
            normal,
            unwind,
        } => {
            let call = call_text(printer, scope, call);
            format!("invoke{call} to {} unwind {}", label(normal), label(unwind))
        }
        CallBr {
            call,
            fallthrough,
            indirect,
        } => {
            let call = call_text(printer, scope, call);
            let targets: Vec<_> = function.targets[indirect.range()]
                .iter()
                .map(|&b| label(b))
                .collect();
            format!(
                "callbr{call} to {} [{}]",
                label(fallthrough),
                targets.join(", ")
            )
        }
        Return { value: Some(value) } => format!("ret {}", typed(value)),
        Return { value: None } => "ret void".into(),
        Branch { target } => format!("br {}", label(target)),
        CondBranch {
            condition,
            then,
            otherwise,
        } => {
            format!(
                "br {}, {}, {}",
                typed(condition),
                label(then),
                label(otherwise)
            )
        }
        Switch {
            value,
            default,
            cases,
        } => {
            let mut text = format!("switch {}, {} [", typed(value), label(default));
            for case in &function.switch_cases[cases.range()] {
                let value = typed(Value::Constant(case.value));
                write!(text, " {value}, {}", label(case.target)).unwrap();
            }
            text + " ]"
        }
        IndirectBranch { address, targets } => {
            let targets: Vec<_> = function.targets[targets.range()]
                .iter()
                .map(|&b| label(b))
                .collect();
            format!("indirectbr {}, [{}]", typed(address), targets.join(", "))
        }
        Unreachable => "unreachable".into(),
        Resume { value } => format!("resume {}", typed(value)),
        LandingPad { cleanup, clauses } => {
            let mut text = format!("landingpad {ty}");
            text.push_str(if cleanup { " cleanup" } else { "" });
            for clause in &function.clauses[clauses.range()] {
                let kind = if clause.filter { "filter" } else { "catch" };
                write!(text, " {kind} {}", typed(clause.value)).unwrap();
            }
            text
        }
        ExtractElement { vector, index } => {
            format!("extractelement {}, {}", typed(vector), typed(index))
        }
        InsertElement {
            vector,
            element,
            index,
        } => {
            format!(
                "insertelement {}, {}, {}",
                typed(vector),
                typed(element),
                typed(index)
            )
        }
        ShuffleVector { lhs, rhs, mask } => {
            let mask = mask_text(&function.masks[mask.range()]);
            format!("shufflevector {}, {}, {mask}", typed(lhs), typed(rhs))
        }
        ExtractValue { aggregate, path } => {
            format!(
                "extractvalue {}{}",
                typed(aggregate),
                path_text(&function.paths[path.range()])
            )
        }
        InsertValue {
            aggregate,
            element,
            path,
        } => {
            let path = path_text(&function.paths[path.range()]);
            format!("insertvalue {}, {}{path}", typed(aggregate), typed(element))
        }
        Freeze { value } => format!("freeze {}", typed(value)),
        Fence {
            ordering: order,
            scope,
        } => {
            let access = Access {
                align: 0,
                volatile: false,
                ordering: order,
                scope,
            };
            format!("fence{}", sync(&access))
        }
        CmpXchg {
            pointer,
            expected,
            new,
            access,
            failure,
            weak,
        } => {
            let weak = if weak { " weak" } else { "" };
            let volatile = if access.volatile { " volatile" } else { "" };
            let operands = format!("{}, {}, {}", typed(pointer), typed(expected), typed(new));
            let orders = format!("{}{}", sync(&access), ordering(failure));
            format!(
                "cmpxchg{weak}{volatile} {operands}{orders}{}",
                align(access.align)
            )
        }
        AtomicRmw {
            op,
            pointer,
            value,
            access,
        } => {
            let volatile = if access.volatile { " volatile" } else { "" };
            let name = match op {
                AtomicOp::UIncWrap => "uinc_wrap".into(),
                AtomicOp::UDecWrap => "udec_wrap".into(),
                AtomicOp::USubCond => "usub_cond".into(),
                AtomicOp::USubSat => "usub_sat".into(),
                op => format!("{op:?}").to_lowercase(),
            };
            let operands = format!("{}, {}", typed(pointer), typed(value));
            format!(
                "atomicrmw{volatile} {name} {operands}{}{}",
                sync(&access),
                align(access.align)
            )
        }
        VaArg { list } => format!("va_arg {}, {ty}", typed(list)),
        Unsupported { name } => name.into(),
    }
}

fn path_text(path: &[u32]) -> String {
    path.iter().map(|index| format!(", {index}")).collect()
}

fn mask_text(mask: &[i32]) -> String {
    let ty = format!("<{} x i32>", mask.len());
    if mask.iter().all(|&lane| lane == 0) {
        return format!("{ty} zeroinitializer");
    }
    if mask.iter().all(|&lane| lane < 0) {
        return format!("{ty} poison");
    }
    let lanes: Vec<_> = mask
        .iter()
        .map(|&lane| {
            if lane < 0 {
                "i32 poison".into()
            } else {
                format!("i32 {lane}")
            }
        })
        .collect();
    format!("{ty} <{}>", lanes.join(", "))
}

/// From the fast-math flags to the operand bundles.
fn call_text(printer: &Printer, scope: &Numbered, id: CallId) -> String {
    let function = scope.function;
    let call = &function.calls[id.index()];
    let module = printer.module;
    let mut text = fast_math(call.fast_math);
    match call.calling_convention {
        0 => {}
        8 => text.push_str(" fastcc"),
        9 => text.push_str(" coldcc"),
        14 => text.push_str(" preserve_mostcc"),
        number => write!(text, " cc{number}").unwrap(),
    }
    let Type::Function {
        result, varargs, ..
    } = &module.types[call.signature]
    else {
        panic!("a call without a function type");
    };
    let ty = if *varargs { call.signature } else { *result };
    let callee = printer.value(Some(scope), call.callee);
    let attributes = module.attributes(call.attributes);
    let args: Vec<_> = function
        .call_args(id)
        .iter()
        .enumerate()
        .map(|(index, &arg)| {
            let mut typed = printer.typed(Some(scope), arg);
            let params = attributes.map_or(&[][..], |list| &list.params);
            for (name, ty) in params.get(index).map_or(vec![], type_attributes) {
                let value = printer.value(Some(scope), arg);
                let before = typed.len() - value.len();
                typed.insert_str(before, &format!("{name}({}) ", printer.ty(ty)));
            }
            typed
        })
        .collect();
    write!(text, " {} {callee}({})", printer.ty(ty), args.join(", ")).unwrap();
    if !call.bundles.is_empty() {
        let bundles: Vec<_> = function.bundles[call.bundles.range()]
            .iter()
            .map(|bundle| {
                let operands: Vec<_> = function
                    .operand_list(bundle.operands)
                    .iter()
                    .map(|&value| printer.typed(Some(scope), value))
                    .collect();
                format!(
                    "\"{}\"({})",
                    module.bundle_tags[bundle.tag as usize],
                    operands.join(", ")
                )
            })
            .collect();
        write!(text, " [ {} ]", bundles.join(", ")).unwrap();
    }
    text
}

pub fn type_attributes(param: &ParamAttributes) -> Vec<(&'static str, TypeId)> {
    [
        ("byval", param.byval),
        ("sret", param.sret),
        ("elementtype", param.elementtype),
        ("byref", param.byref),
        ("inalloca", param.inalloca),
    ]
    .into_iter()
    .filter_map(|(name, ty)| Some((name, ty?)))
    .collect()
}
