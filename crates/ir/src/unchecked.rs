//! Finds calls of library functions, such as those of libc, whose results the calling program never
//! checks: no path from the result leads to a comparison, a switch or a return. The
//! analysis follows results through casts, arithmetic, variables and fields of one function, and
//! into functions of the program. It is a heuristic: a check by other code goes unseen.

use std::collections::{HashMap, HashSet};

use crate::library::LibraryFolders;
use crate::module::{
    Alias, Function, FunctionId, InstId, Instruction, InstructionKind, Module, Span, Type, Value,
};

/// A call whose result is not checked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UncheckedCall {
    /// The called function.
    pub callee: String,
    /// The source file and the line of the call in the source, if debug information names them.
    pub site: Option<(String, u32)>,
}

/// Maximum number of calls of the program through which a result is followed.
const MOST_CALLS: u32 = 4;
/// Maximum number of steps from a variable to a field whose accesses are compared.
const MOST_STEPS: u32 = 8;

/// Returns the unchecked calls of a module in the order of their names and sites, each once.
pub fn unchecked_calls(module: &Module) -> Vec<UncheckedCall> {
    let folders = LibraryFolders::of(module);
    let functions = module.functions.iter();
    let is_library = |function: &Function| {
        let file = || module.path_of(function);
        !function.is_definition() || file().is_some_and(|file| folders.contains(&file))
    };
    let mut checks = Checks {
        module,
        is_library: functions.map(is_library).collect(),
        uses: HashMap::new(),
        parameters: HashMap::new(),
    };
    let mut found = Vec::new();
    for (index, function) in module.functions.iter().enumerate() {
        if checks.is_library[index] {
            continue;
        }
        let id = FunctionId::new(index);
        for (at, instruction) in function.instructions.iter().enumerate() {
            let Some(callee) = checks.library_callee(function, instruction) else {
                continue;
            };
            if !checks.is_checked(id, Value::Instruction(InstId::new(at)), MOST_CALLS) {
                found.push(UncheckedCall {
                    callee: callee.to_owned(),
                    site: site(module, instruction),
                });
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the file and the line of an instruction. Of inlined code, that is where it was written.
fn site(module: &Module, instruction: &Instruction) -> Option<(String, u32)> {
    let location = module.debug.chain(instruction.loc?).next()?;
    let file = module.debug.files.get(location.file?.index())?;
    Some((file.path(), location.line))
}

/// The instructions that use each value of a function, and its loads.
struct Uses {
    users: HashMap<Value, Vec<InstId>>,
    loads: Vec<InstId>,
}

impl Uses {
    fn of(function: &Function) -> Uses {
        let mut uses = Uses {
            users: HashMap::new(),
            loads: Vec::new(),
        };
        for (at, instruction) in function.instructions.iter().enumerate() {
            let id = InstId::new(at);
            if matches!(instruction.kind, InstructionKind::Load { .. }) {
                uses.loads.push(id);
            }
            for_each_operand(function, instruction, |value| {
                if matches!(value, Value::Instruction(_) | Value::Argument(_)) {
                    uses.users.entry(value).or_default().push(id);
                }
            });
        }
        uses
    }
}

/// Calls `visit` with the operands of an instruction, those of its lists too.
fn for_each_operand(function: &Function, instruction: &Instruction, mut visit: impl FnMut(Value)) {
    let mut kind = instruction.kind;
    kind.for_each_operand_mut(&mut |value| visit(*value));
    match kind {
        InstructionKind::Phi { edges } => {
            let edges = &function.phi_edges[edges.range()];
            edges.iter().for_each(|edge| visit(edge.value));
        }
        InstructionKind::Call { call } | InstructionKind::Invoke { call, .. } => {
            let args = function.calls[call.index()].args;
            function.operands[args.range()]
                .iter()
                .copied()
                .for_each(visit);
        }
        _ => {}
    }
}

struct Checks<'m> {
    module: &'m Module,
    /// Whether each function is one of a library, and not one of the program.
    is_library: Vec<bool>,
    uses: HashMap<FunctionId, Uses>,
    /// Whether functions check a parameter, as far as known.
    parameters: HashMap<(FunctionId, u32), bool>,
}

impl<'m> Checks<'m> {
    /// Returns the name of the function that an instruction calls, if it is one of a library and has
    /// a result.
    fn library_callee(&self, function: &Function, instruction: &Instruction) -> Option<&'m str> {
        let (InstructionKind::Call { call } | InstructionKind::Invoke { call, .. }) =
            instruction.kind
        else {
            return None;
        };
        let (name, callee) = match function.calls[call.index()].callee {
            Value::Function(callee) => (&self.module.functions[callee.index()].name, callee),
            Value::Alias(alias) => match self.module.aliases[alias.index()] {
                Alias {
                    ref name,
                    target: Value::Function(callee),
                    ..
                } => (name, callee),
                _ => return None,
            },
            _ => return None,
        };
        let has_result = self.module.types[instruction.ty] != Type::Void;
        let is_library = self.is_library[callee.index()] && !name.starts_with("llvm.");
        (has_result && is_library).then_some(name)
    }

    /// Returns whether some code checks a value of a function, or returns it to a caller that may.
    fn is_checked(&mut self, id: FunctionId, value: Value, calls: u32) -> bool {
        let function = &self.module.functions[id.index()];
        let mut seen = HashSet::new();
        let mut pending = vec![value];
        let mut arguments = Vec::new();
        let uses = self.uses.entry(id).or_insert_with(|| Uses::of(function));
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            for user in uses.users.get(&value).into_iter().flatten() {
                let instruction = &function.instructions[user.index()];
                match use_of(function, instruction, value) {
                    Use::Check => return true,
                    Use::Result => pending.push(Value::Instruction(*user)),
                    Use::Stored(place) => {
                        let loads = uses.loads.iter().copied();
                        let of_place = loads.filter(|load| {
                            let InstructionKind::Load { pointer, .. } =
                                function.instructions[load.index()].kind
                            else {
                                return false;
                            };
                            is_same_place(function, pointer, place, MOST_STEPS)
                        });
                        pending.extend(of_place.map(Value::Instruction));
                    }
                    Use::Argument(callee, args) => {
                        let args = function.operands[args.range()].iter().zip(0..);
                        let positions = args.filter(|(arg, _)| **arg == value);
                        arguments.extend(positions.map(|(_, position)| (callee, position)));
                    }
                    Use::Other => {}
                }
            }
        }
        arguments.into_iter().any(|(callee, position)| {
            calls > 0 && self.is_parameter_checked(callee, position, calls - 1)
        })
    }

    /// Returns whether a function checks a parameter.
    fn is_parameter_checked(&mut self, id: FunctionId, position: u32, calls: u32) -> bool {
        let function = &self.module.functions[id.index()];
        if self.is_library[id.index()] || position as usize >= function.params.len() {
            return false;
        }
        if let Some(known) = self.parameters.get(&(id, position)) {
            return *known;
        }
        // A recursive call checks nothing that the first one does not.
        self.parameters.insert((id, position), false);
        let is_checked = self.is_checked(id, Value::Argument(position), calls);
        self.parameters.insert((id, position), is_checked);
        is_checked
    }
}

/// What an instruction does with a value.
enum Use {
    /// A decision depends on it.
    Check,
    /// Its result is derived from it.
    Result,
    /// It is stored here.
    Stored(Value),
    /// A function gets it.
    Argument(FunctionId, Span),
    Other,
}

fn use_of(function: &Function, instruction: &Instruction, value: Value) -> Use {
    use InstructionKind::*;
    match instruction.kind {
        ICmp { .. } | FCmp { .. } | CondBranch { .. } | Switch { .. } | Return { .. } => Use::Check,
        Select { condition, .. } if condition == value => Use::Check,
        Select { .. }
        | FNeg { .. }
        | Binary { .. }
        | Cast { .. }
        | Phi { .. }
        | Freeze { .. }
        | ExtractValue { .. }
        | InsertValue { .. } => Use::Result,
        Store {
            pointer,
            value: stored,
            ..
        } if stored == value => Use::Stored(pointer),
        Call { call } | Invoke { call, .. } => {
            let call = &function.calls[call.index()];
            match call.callee {
                Value::Function(callee) => Use::Argument(callee, call.args),
                _ => Use::Other,
            }
        }
        _ => Use::Other,
    }
}

/// Returns whether two addresses are computed in the same way: of the same variable, or of the same
/// field through the same variables.
fn is_same_place(function: &Function, one: Value, other: Value, steps: u32) -> bool {
    use InstructionKind::*;
    if one == other {
        return true;
    }
    let (Value::Instruction(first), Value::Instruction(second), true) = (one, other, steps > 0)
    else {
        return false;
    };
    let kinds = [first, second].map(|id| function.instructions[id.index()].kind);
    match kinds {
        [Load { pointer: one, .. }, Load { pointer: other, .. }] => {
            is_same_place(function, one, other, steps - 1)
        }
        [
            Gep {
                source: from,
                base: one,
                indices: left,
                ..
            },
            Gep {
                source: to,
                base: other,
                indices: right,
                ..
            },
        ] => {
            from == to
                && function.operands[left.range()] == function.operands[right.range()]
                && is_same_place(function, one, other, steps - 1)
        }
        _ => false,
    }
}
