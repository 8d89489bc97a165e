//! Lowers modules to the bytecode that the vm executes.
//!
//! Every value is flattened into 64-bit registers; vectors are scalarised, phis become moves,
//! address arithmetic becomes base plus scaled index, and constants are folded with the final
//! addresses. Anything that cannot be lowered becomes an instruction that reports this when it is
//! executed.

mod analysis;
mod arithmetic;
mod body;
mod call;
mod control;
mod fold;
mod globals;
mod intrinsic;
mod locations;
mod memory;
mod moves;
mod optimised;
mod print;
mod shape;
#[cfg(test)]
mod tests;
mod vector;
mod verify;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

pub use print::print;
pub use verify::verify;

use crate::address;
use crate::code::{
    self, Assembly, Body, Code, ExternalId, FunctionId, GlobalId, Program, SegmentId,
};
use crate::library::LibraryFolders;
use crate::module::{Alias, Function, Instruction, InstructionKind, Linkage, Module, Value};
use fold::{Addresses, Folder};
use globals::Layout;
use intrinsic::Intrinsic;
use optimised::Optimised;
use shape::{Part, PartKind, Shape};

/// Options for lowering.
#[derive(Copy, Clone)]
pub struct LowerOptions<'a> {
    /// Returns whether the vm replaces a function even if the program defines it.
    pub is_vm_operation: &'a dyn Fn(&str) -> bool,
    /// Returns whether calls of a function go to the vm, which may call the program's own definition.
    pub is_intercepted: &'a dyn Fn(&str) -> bool,
    /// Whether scalar stack slots whose address is not taken are kept in registers (mem2reg).
    pub promote: bool,
    /// Whether indices are checked against the bounds of the arrays that they index, which may be
    /// parts of larger objects.
    pub check_subobjects: bool,
}

/// Why a module cannot be lowered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerError {
    /// A global does not fit in the address space.
    #[error("global `{name}` is too large")]
    GlobalTooLarge {
        /// Name of the global.
        name: String,
    },
    /// The initial content of a global cannot be computed.
    #[error("initial contents of `{name}` cannot be computed: {what}")]
    Initializer {
        /// Name of the global.
        name: String,
        /// The reason.
        what: &'static str,
    },
}

/// The implementation of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FunctionRole {
    /// The function is defined in the module.
    Defined,
    /// The function is a built-in operation of the vm.
    External(ExternalId),
    /// The definition of an intercepted function of the module, by its index there.
    Intercepted(u32),
    /// There is none: the function is an undefined weak symbol.
    Missing,
}

/// The shared context for lowering functions.
pub(crate) struct Context<'a> {
    module: &'a Module,
    folder: Folder<'a>,
    promote: bool,
    check_subobjects: bool,
    externals: Vec<String>,
    external_ids: HashMap<String, ExternalId>,
    /// How each external is lowered, if it is an intrinsic.
    intrinsics: Vec<Intrinsic>,
    assembly: Vec<Assembly>,
    assembly_ids: BTreeMap<Assembly, u32>,
    segments: Vec<(FunctionId, code::Pc)>,
    /// The role of each function of the program.
    roles: Vec<FunctionRole>,
    /// The program's global of each global of the module.
    global_ids: Vec<Option<GlobalId>>,
    pointer_shape: Rc<Shape>,
    /// The functions that the compiler optimised.
    optimised: Optimised,
}

impl Context<'_> {
    fn external(&mut self, name: &str) -> ExternalId {
        if let Some(known) = self.external_ids.get(name) {
            return *known;
        }
        let id = ExternalId(self.externals.len() as u32);
        self.externals.push(name.to_owned());
        self.intrinsics.push(Intrinsic::of(name));
        self.external_ids.insert(name.to_owned(), id);
        id
    }

    fn assembly(&mut self, assembly: Assembly) -> u32 {
        if let Some(known) = self.assembly_ids.get(&assembly) {
            return *known;
        }
        let index = self.assembly.len() as u32;
        self.assembly.push(assembly.clone());
        self.assembly_ids.insert(assembly, index);
        index
    }

    /// Returns whether a callee is an intrinsic that only annotates the program.
    fn is_marker(&self, callee: Value) -> bool {
        let Value::Function(id) = callee else {
            return false;
        };
        match self.roles[id.index()] {
            FunctionRole::External(external) => {
                let is_intrinsic = self.externals[external.0 as usize].starts_with("llvm.");
                let intrinsic = self.intrinsics[external.0 as usize];
                is_intrinsic && matches!(intrinsic, Intrinsic::Marker | Intrinsic::Scope { .. })
            }
            _ => false,
        }
    }

    /// Returns whether an instruction counts as executed.
    fn is_counted(&self, function: &Function, instruction: &Instruction) -> bool {
        match instruction.kind {
            InstructionKind::Call { call } => !self.is_marker(function.calls[call.index()].callee),
            _ => true,
        }
    }
}

/// Lowers a whole program.
pub fn lower(module: &Module, options: &LowerOptions) -> Result<Program, LowerError> {
    let mut layout = Layout::new(module)?;
    let mut cx = Context {
        module,
        folder: Folder::new(
            module,
            Addresses {
                globals: layout.addresses.clone(),
                functions: Vec::new(),
                aliases: vec![None; module.aliases.len()],
                ifuncs: Vec::new(),
            },
        ),
        promote: options.promote,
        check_subobjects: options.check_subobjects,
        externals: Vec::new(),
        external_ids: HashMap::new(),
        intrinsics: Vec::new(),
        assembly: Vec::new(),
        assembly_ids: BTreeMap::new(),
        segments: Vec::new(),
        roles: Vec::new(),
        global_ids: layout.ids.clone(),
        pointer_shape: Rc::new(pointer_shape()),
        optimised: Optimised::of(module),
    };
    let names = assign_functions(&mut cx, options);
    layout.fill(&mut cx.folder)?;
    let locations = locations::convert(module);
    let mut program = Program {
        name: module.name.clone(),
        slots_used: layout.slots_used,
        symbols: layout.symbols,
        globals: layout.globals,
        strings: locations.strings,
        locations: locations.locations,
        library: LibraryFolders::of(module),
        ..Program::default()
    };
    program.optimised_file = cx.optimised.file(module, &program.library);
    program.functions = lower_functions(&mut cx, names, &locations.functions);
    program.signatures = signatures(module);
    number_branches(&mut program);
    add_symbols(&mut cx, &mut program);
    program.externals = cx.externals;
    program.assembly = cx.assembly;
    program.segments = cx.segments;
    Ok(program)
}

/// Numbers the sides of conditional branches and switches of all functions.
fn number_branches(program: &mut Program) {
    for function in &mut program.functions {
        if let code::Body::Code(code) = &mut function.body {
            code.first_branch = program.branches;
            program.branches += code.branches.len() as u32;
            for table in &mut code.switches {
                let targets = table.cases.iter().map(|case| case.1);
                table.sides = targets.chain([table.default]).collect();
                table.sides.sort_unstable();
                table.sides.dedup();
                table.first_side = 2 * (program.branches - code.first_branch);
                program.branches += (table.sides.len() as u32).div_ceil(2);
            }
        }
    }
}

/// Assigns every function its role and address; returns all names, those of the module first.
fn assign_functions(cx: &mut Context, options: &LowerOptions) -> Vec<String> {
    let module = cx.module;
    let mut names = Vec::with_capacity(module.functions.len());
    for (index, function) in module.functions.iter().enumerate() {
        let taken_over = (options.is_vm_operation)(&function.name);
        let missing = function.is_declaration() && function.linkage == Linkage::ExternalWeak;
        let role = if taken_over || (function.is_declaration() && !missing) {
            FunctionRole::External(cx.external(&function.name))
        } else if missing {
            FunctionRole::Missing
        } else {
            FunctionRole::Defined
        };
        cx.roles.push(role);
        cx.folder.addresses.functions.push(match role {
            FunctionRole::Missing => 0,
            _ => address::function_address(index as u32),
        });
        names.push(function.name.to_string());
    }
    // Aliases whose name the vm replaces, and ifuncs, become functions of their own.
    for (index, alias) in module.aliases.iter().enumerate() {
        if (options.is_vm_operation)(&alias.name) {
            let address = add_function(cx, &mut names, &alias.name);
            cx.folder.addresses.aliases[index] = Some(address);
            take_over_target(cx, alias);
        }
    }
    for ifunc in &module.ifuncs {
        let address = add_function(cx, &mut names, &ifunc.name);
        cx.folder.addresses.ifuncs.push(address);
    }
    intercept(cx, &mut names, options);
    names
}

/// Makes calls of intercepted functions operations of the vm. Their definitions become functions of
/// their own, behind all others. A function is known by its name or by that of an alias.
fn intercept(cx: &mut Context, names: &mut Vec<String>, options: &LowerOptions) {
    let module = cx.module;
    let own = module.functions.iter().enumerate();
    let own = own.map(|(index, function)| (index, &*function.name));
    let aliases = module
        .aliases
        .iter()
        .filter_map(|alias| match alias.target {
            Value::Function(target) => Some((target.index(), &*alias.name)),
            _ => None,
        });
    for (index, name) in own.chain(aliases) {
        if cx.roles[index] != FunctionRole::Defined || !(options.is_intercepted)(name) {
            continue;
        }
        cx.roles[index] = FunctionRole::External(cx.external(name));
        cx.roles.push(FunctionRole::Intercepted(index as u32));
        names.push(module.functions[index].name.to_string());
    }
}

/// If the vm replaces an alias such as `memcpy` of `compiler_rt.memcpy`, replaces calls by the
/// latter name, too. Functions with other names may have several unrelated aliases and are not
/// replaced.
fn take_over_target(cx: &mut Context, alias: &Alias) {
    let Value::Function(target) = alias.target else {
        return;
    };
    let name = &cx.module.functions[target.index()].name;
    if cx.roles[target.index()] == FunctionRole::Defined && name.contains(&*alias.name) {
        cx.roles[target.index()] = FunctionRole::External(cx.external(&alias.name));
    }
}

fn add_function(cx: &mut Context, names: &mut Vec<String>, name: &str) -> u64 {
    let external = cx.external(name);
    cx.roles.push(FunctionRole::External(external));
    names.push(name.to_owned());
    address::function_address(names.len() as u32 - 1)
}

fn lower_functions(
    cx: &mut Context,
    names: Vec<String>,
    locations: &[Option<code::LocationId>],
) -> Vec<code::Function> {
    let mut scratch = body::Scratch::default();
    let mut functions = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        let id = FunctionId(index as u32);
        let index = match cx.roles[index] {
            FunctionRole::Intercepted(defined) => defined as usize,
            _ => index,
        };
        let function = cx.module.functions.get(index);
        let body = match (cx.roles[id.0 as usize], function) {
            (FunctionRole::Defined | FunctionRole::Intercepted(_), Some(function)) => Body::Code(
                Box::new(body::lower_function(cx, &mut scratch, function, id)),
            ),
            (FunctionRole::External(external), _) => Body::External(external),
            _ => Body::Code(Box::new(missing_body(cx, id))),
        };
        let location = locations.get(index).copied().flatten();
        functions.push(code::Function {
            name,
            parameters: function.map_or_else(Box::default, |it| it.param_names.clone()),
            body,
            location,
        });
    }
    functions
}

/// Returns the words before the code of functions that have some.
fn signatures(module: &Module) -> BTreeMap<FunctionId, [u32; 2]> {
    let functions = module.functions.iter().zip(0..);
    functions
        .filter_map(|(function, id)| Some((FunctionId(id), function.signature?)))
        .collect()
}

/// Creates the body of an undefined weak function; it is never called, because its address is zero.
fn missing_body(cx: &mut Context, id: FunctionId) -> Code {
    let segment = SegmentId(cx.segments.len() as u32);
    cx.segments.push((id, 0));
    Code {
        instructions: vec![
            code::Inst::Segment {
                count: 0,
                id: segment,
            },
            code::Inst::Unsupported { what: 0 },
        ],
        locations: vec![None; 2],
        unsupported: vec!["undefined weak function".to_owned()],
        ..Code::default()
    }
}

fn add_symbols(cx: &mut Context, program: &mut Program) {
    for (index, function) in program.functions.iter().enumerate() {
        let address = match cx.roles[index] {
            FunctionRole::Missing => 0,
            // Its name means the intercepted function.
            FunctionRole::Intercepted(_) => continue,
            _ => address::function_address(index as u32),
        };
        if !function.name.is_empty() {
            program.symbols.insert(function.name.clone(), address);
        }
    }
    for (index, alias) in cx.module.aliases.iter().enumerate() {
        let id = crate::module::AliasId::new(index);
        if let Ok(address) = cx.folder.word(Value::Alias(id)) {
            program.symbols.insert(alias.name.to_string(), address);
        }
    }
}

fn pointer_shape() -> Shape {
    let lane = code::Lane::Pointer;
    Shape {
        parts: vec![Part {
            offset: 0,
            register: 0,
            kind: PartKind::Scalar(lane),
        }],
        registers: 1,
        value: code::ValueType::Pointer,
        lane: Some(lane),
        lanes: 1,
    }
}
