//! Symbol resolution: decides which module's definition of each symbol is used.

use std::collections::HashMap;

use super::{LinkError, module_name};
use crate::module::*;

/// A symbol of one of the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub module: usize,
    pub symbol: Symbol,
}

/// The strength of a definition; the strongest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    WeakDeclaration,
    Declaration,
    AvailableExternally,
    Weak,
    Common,
    Strong,
}

/// The result of symbol resolution.
#[derive(Default)]
pub(super) struct Resolution {
    /// The definition that each name refers to; never iterated.
    pub winners: HashMap<Box<str>, Origin>,
    /// Arrays to concatenate, in module order.
    pub appending: HashMap<Box<str>, Vec<Origin>>,
    /// Alignment of a merged common symbol.
    pub common_align: HashMap<Box<str>, u64>,
    /// The module whose members of a comdat group are used.
    comdats: HashMap<Box<str>, usize>,
}

impl Resolution {
    /// Returns whether the symbol's own module provides its definition.
    pub fn keeps(&self, origin: Origin, name: &str, linkage: Linkage) -> bool {
        name.is_empty() || linkage.is_local() || self.winners.get(name) == Some(&origin)
    }
}

/// Returns the name and linkage of a symbol.
pub(super) fn name_of(module: &Module, symbol: Symbol) -> (&str, Linkage) {
    match symbol {
        Symbol::Global(id) => {
            let global = &module.globals[id.index()];
            (&global.name, global.linkage)
        }
        Symbol::Function(id) => {
            let function = &module.functions[id.index()];
            (&function.name, function.linkage)
        }
        Symbol::Alias(id) => {
            let alias = &module.aliases[id.index()];
            (&alias.name, alias.linkage)
        }
        Symbol::Ifunc(id) => {
            let ifunc = &module.ifuncs[id.index()];
            (&ifunc.name, ifunc.linkage)
        }
    }
}

/// Returns all symbols of a module, in order.
pub(super) fn symbols(module: &Module) -> impl Iterator<Item = Symbol> + use<> {
    let globals = (0..module.globals.len()).map(|index| Symbol::Global(GlobalId::new(index)));
    let functions = (0..module.functions.len()).map(|id| Symbol::Function(FunctionId::new(id)));
    let aliases = (0..module.aliases.len()).map(|index| Symbol::Alias(AliasId::new(index)));
    globals.chain(functions).chain(aliases)
}

pub(super) fn resolve(modules: &[Module]) -> Result<Resolution, LinkError> {
    let mut resolution = Resolution::default();
    resolve_comdats(modules, &mut resolution)?;
    for (index, module) in modules.iter().enumerate() {
        for symbol in symbols(module) {
            let (name, linkage) = name_of(module, symbol);
            if !name.is_empty() && !linkage.is_local() {
                resolve_symbol(
                    modules,
                    &mut resolution,
                    Origin {
                        module: index,
                        symbol,
                    },
                )?;
            }
        }
    }
    Ok(resolution)
}

fn resolve_symbol(
    modules: &[Module],
    resolution: &mut Resolution,
    origin: Origin,
) -> Result<(), LinkError> {
    let (name, linkage) = name_of(&modules[origin.module], origin.symbol);
    if linkage == Linkage::Appending {
        resolution.winners.entry(name.into()).or_insert(origin);
        resolution
            .appending
            .entry(name.into())
            .or_default()
            .push(origin);
        return Ok(());
    }
    let Some(&known) = resolution.winners.get(name) else {
        resolution.winners.insert(name.into(), origin);
        return Ok(());
    };
    let old = claim(modules, resolution, known);
    let new = claim(modules, resolution, origin);
    if old == Claim::Strong && new == Claim::Strong {
        return Err(LinkError::Duplicate {
            name: name.into(),
            first: module_name(&modules[known.module]),
            second: module_name(&modules[origin.module]),
        });
    }
    let takes = if old == Claim::Common && new == Claim::Common {
        let align = align_of(modules, known).max(align_of(modules, origin));
        resolution.common_align.insert(name.into(), align);
        size_of(modules, origin) > size_of(modules, known)
    } else {
        new > old
    };
    if takes {
        resolution.winners.insert(name.into(), origin);
    }
    Ok(())
}

fn claim(modules: &[Module], resolution: &Resolution, origin: Origin) -> Claim {
    let module = &modules[origin.module];
    let (_, linkage) = name_of(module, origin.symbol);
    if let Some(comdat) = comdat_of(module, origin.symbol) {
        let group = &module.comdats[comdat.index()].name;
        if resolution
            .comdats
            .get(group)
            .is_some_and(|&taken| taken != origin.module)
        {
            return Claim::Declaration;
        }
    }
    let declared = match origin.symbol {
        Symbol::Global(id) => module.globals[id.index()].initializer.is_none(),
        Symbol::Function(id) => module.functions[id.index()].is_declaration(),
        Symbol::Alias(_) | Symbol::Ifunc(_) => false,
    };
    match linkage {
        Linkage::ExternalWeak => Claim::WeakDeclaration,
        _ if declared => Claim::Declaration,
        Linkage::AvailableExternally => Claim::AvailableExternally,
        Linkage::Common => Claim::Common,
        linkage if linkage.is_weak_definition() => Claim::Weak,
        _ => Claim::Strong,
    }
}

/// Returns the comdat group of a symbol; for an alias, that of its target.
fn comdat_of(module: &Module, symbol: Symbol) -> Option<ComdatId> {
    match symbol {
        Symbol::Global(id) => module.globals[id.index()].comdat,
        Symbol::Function(id) => module.functions[id.index()].comdat,
        Symbol::Ifunc(_) => None,
        Symbol::Alias(id) => match base(module, module.aliases[id.index()].target)? {
            Value::Global(id) => module.globals[id.index()].comdat,
            Value::Function(id) => module.functions[id.index()].comdat,
            _ => None,
        },
    }
}

/// Returns the symbol that an address is computed from. The reader rejects cycles of aliases.
fn base(module: &Module, mut value: Value) -> Option<Value> {
    loop {
        value = match value {
            Value::Global(_) | Value::Function(_) => return Some(value),
            Value::Alias(id) => module.aliases[id.index()].target,
            Value::Constant(id) => match &module.constant(id).kind {
                ConstantKind::Cast { value, .. } => *value,
                ConstantKind::Gep { base, .. } => *base,
                _ => return None,
            },
            _ => return None,
        };
    }
}

fn align_of(modules: &[Module], origin: Origin) -> u64 {
    match origin.symbol {
        Symbol::Global(id) => modules[origin.module].globals[id.index()].align,
        _ => 0,
    }
}

fn size_of(modules: &[Module], origin: Origin) -> u64 {
    match origin.symbol {
        Symbol::Global(id) => {
            let module = &modules[origin.module];
            module.types.size_of(module.globals[id.index()].ty)
        }
        _ => 0,
    }
}

/// Selects a module for each comdat group.
fn resolve_comdats(modules: &[Module], resolution: &mut Resolution) -> Result<(), LinkError> {
    for (index, module) in modules.iter().enumerate() {
        for comdat in &module.comdats {
            let Some(&taken) = resolution.comdats.get(&comdat.name) else {
                resolution.comdats.insert(comdat.name.clone(), index);
                continue;
            };
            let size = |module: usize| match modules[module].symbols.get(&comdat.name) {
                Some(&symbol) => size_of(modules, Origin { module, symbol }),
                None => 0,
            };
            let (old, new) = (size(taken), size(index));
            let good = match comdat.selection {
                ComdatSelection::Any => true,
                ComdatSelection::Largest => {
                    if new > old {
                        resolution.comdats.insert(comdat.name.clone(), index);
                    }
                    true
                }
                ComdatSelection::SameSize => old == new,
                ComdatSelection::ExactMatch => {
                    old == new && same_contents(&modules[taken], module, &comdat.name)
                }
                ComdatSelection::NoDeduplicate => false,
            };
            if !good {
                return Err(LinkError::Comdat {
                    name: comdat.name.to_string(),
                    first: module_name(&modules[taken]),
                    second: module_name(module),
                });
            }
        }
    }
    Ok(())
}

/// Returns whether two modules initialise a variable with the same bytes, as far as they are plain
/// data.
fn same_contents(first: &Module, second: &Module, name: &str) -> bool {
    let contents = |module: &Module| {
        let global = &module.globals[module.global_named(name)?.index()];
        match global.initializer? {
            Value::Constant(id) => Some(module.constant(id).kind.clone()),
            _ => None,
        }
    };
    match (contents(first), contents(second)) {
        (Some(ConstantKind::Aggregate(a)), Some(ConstantKind::Aggregate(b))) => a.len() == b.len(),
        (a, b) => a == b,
    }
}
