//! Builds the linked module after symbol resolution.

use std::collections::{HashMap, HashSet};

use super::remap::{Remap, merge_types};
use super::resolve::{Origin, Resolution, name_of, symbols};
use super::{LinkError, module_name};
use crate::debug::CompileUnit;
use crate::module::*;

/// Symbols of the linked module by their origin.
type SymbolMap = HashMap<Origin, Value>;

pub(super) fn merge(modules: Vec<Module>, resolution: &Resolution) -> Result<Module, LinkError> {
    let appended = appended_names(&modules, resolution);
    let places = assign_symbols(&modules, resolution);
    let mut linked = Module::default();
    let mut named_types = HashMap::new();
    let mut remaps = Vec::new();
    if let Some(first) = modules.first() {
        linked.types.data_layout = first.types.data_layout;
    }
    let mut strings = Strings::default();
    let mut described = HashSet::new();
    for (index, module) in modules.iter().enumerate() {
        let types = merge_types(&mut linked.types, &module.types, &mut named_types);
        let remap = remap_of(&mut linked, &mut strings, module, types);
        remaps.push(Remap {
            ..remap.with_symbols(index, module, resolution, &places)
        });
        let last = &remaps[index];
        // The tables grow in step with the offsets recorded above.
        for constant in &module.constants {
            let kind = last.constant_kind(constant.kind.clone());
            linked.constants.push(Constant {
                ty: last.ty(constant.ty),
                kind,
            });
        }
        for asm in &module.inline_asms {
            let signature = last.ty(asm.signature);
            linked.inline_asms.push(InlineAsm {
                signature,
                ..asm.clone()
            });
        }
        for list in &module.attributes {
            let mut list = list.clone();
            last.attribute_list(&mut list);
            linked.attributes.push(list);
        }
        merge_debug_info(&mut linked, module, last, &mut described);
    }
    let mut modules = modules;
    for (index, module) in modules.iter_mut().enumerate() {
        take_symbols(&mut linked, module, index, &remaps[index], resolution);
    }
    join_arrays(&mut linked, &modules, &remaps, resolution, &appended)?;
    name_symbols(&mut linked);
    take_heads(&mut linked, &modules);
    linked
        .types
        .compute_layouts()
        .map_err(|_| LinkError::Types)?;
    Ok(linked)
}

/// Returns the names of the arrays to concatenate, in a fixed order.
fn appended_names(modules: &[Module], resolution: &Resolution) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        for (id, global) in module.globals() {
            let origin = Origin {
                module: index,
                symbol: Symbol::Global(id),
            };
            let first = resolution.winners.get(&global.name) == Some(&origin);
            if first && resolution.appending.contains_key(&global.name) {
                names.push(global.name.clone());
            }
        }
    }
    names
}

/// Assigns each selected symbol its id in the linked module.
fn assign_symbols(modules: &[Module], resolution: &Resolution) -> SymbolMap {
    let mut places = SymbolMap::new();
    let (mut globals, mut functions, mut aliases) = (0, 0, 0);
    let next = |counter: &mut usize| {
        *counter += 1;
        *counter - 1
    };
    for (module_index, module) in modules.iter().enumerate() {
        for symbol in symbols(module) {
            let origin = Origin {
                module: module_index,
                symbol,
            };
            let (name, linkage) = name_of(module, symbol);
            if !resolution.keeps(origin, name, linkage) {
                continue;
            }
            let value = match symbol {
                Symbol::Global(_) => Value::Global(GlobalId::new(next(&mut globals))),
                Symbol::Function(_) => Value::Function(FunctionId::new(next(&mut functions))),
                Symbol::Alias(_) => Value::Alias(AliasId::new(next(&mut aliases))),
                // Ifuncs were rejected before.
                Symbol::Ifunc(_) => continue,
            };
            places.insert(origin, value);
        }
    }
    places
}

/// Strings of the linked module and their indices; never iterated.
#[derive(Default)]
struct Strings {
    tags: HashMap<Box<str>, u32>,
    metadata: HashMap<Box<str>, u32>,
    comdats: HashMap<Box<str>, ComdatId>,
}

fn index_in(table: &mut Vec<Box<str>>, known: &mut HashMap<Box<str>, u32>, text: &str) -> u32 {
    *known.entry(text.into()).or_insert_with(|| {
        table.push(text.into());
        table.len() as u32 - 1
    })
}

/// Creates the mapping of everything in `module` except its symbols.
fn remap_of(
    linked: &mut Module,
    strings: &mut Strings,
    module: &Module,
    types: Vec<TypeId>,
) -> Remap {
    let bundle_tags = module
        .bundle_tags
        .iter()
        .map(|tag| index_in(&mut linked.bundle_tags, &mut strings.tags, tag))
        .collect();
    let metadata_strings = module
        .metadata_strings
        .iter()
        .map(|text| index_in(&mut linked.metadata_strings, &mut strings.metadata, text))
        .collect();
    let comdats = module
        .comdats
        .iter()
        .map(|comdat| {
            let table = &mut linked.comdats;
            *strings
                .comdats
                .entry(comdat.name.clone())
                .or_insert_with(|| {
                    table.push(comdat.clone());
                    ComdatId::new(table.len() - 1)
                })
        })
        .collect();
    Remap {
        types,
        constants: linked.constants.len(),
        inline_asms: linked.inline_asms.len(),
        attributes: linked.attributes.len(),
        locations: linked.debug.locations.len(),
        subprograms: linked.debug.subprograms.len() as u32,
        files: linked.debug.files.len() as u32,
        debug_types: linked.debug.types.len() as u32,
        bundle_tags,
        metadata_strings,
        comdats,
        globals: Vec::new(),
        functions: Vec::new(),
        aliases: Vec::new(),
    }
}

impl Remap {
    /// Adds the mapping of the module's symbols: to their own id, or to the winner's.
    fn with_symbols(
        mut self,
        index: usize,
        module: &Module,
        resolution: &Resolution,
        places: &SymbolMap,
    ) -> Self {
        for symbol in symbols(module) {
            let own = Origin {
                module: index,
                symbol,
            };
            let (name, _) = name_of(module, symbol);
            let place = places
                .get(&own)
                .or_else(|| places.get(resolution.winners.get(name)?));
            // Each symbol is selected or has a winner.
            let value = place.copied().unwrap_or(symbol.value());
            match symbol {
                Symbol::Global(_) => self.globals.push(value),
                Symbol::Function(_) => self.functions.push(value),
                Symbol::Alias(_) => self.aliases.push(value),
                Symbol::Ifunc(_) => {}
            }
        }
        self
    }
}

/// Moves the selected symbols of `module`, in the order of their ids.
fn take_symbols(
    linked: &mut Module,
    module: &mut Module,
    index: usize,
    remap: &Remap,
    resolution: &Resolution,
) {
    let keeps = |symbol: Symbol, name: &str, linkage: Linkage| {
        resolution.keeps(
            Origin {
                module: index,
                symbol,
            },
            name,
            linkage,
        )
    };
    for (position, global) in module.globals.iter().enumerate() {
        if keeps(
            Symbol::Global(GlobalId::new(position)),
            &global.name,
            global.linkage,
        ) {
            let mut global = global.clone();
            global.ty = remap.ty(global.ty);
            global.initializer = global.initializer.map(|value| remap.value(value));
            global.comdat = global.comdat.map(|id| remap.comdats[id.index()]);
            if let Some(&align) = resolution.common_align.get(&global.name)
                && !global.linkage.is_local()
            {
                global.align = global.align.max(align);
            }
            linked.globals.push(global);
        }
    }
    for (position, mut function) in std::mem::take(&mut module.functions)
        .into_iter()
        .enumerate()
    {
        let symbol = Symbol::Function(FunctionId::new(position));
        if keeps(symbol, &function.name, function.linkage) {
            remap.function(&mut function);
            linked.functions.push(function);
        }
    }
    for (position, alias) in module.aliases.iter().enumerate() {
        if keeps(
            Symbol::Alias(AliasId::new(position)),
            &alias.name,
            alias.linkage,
        ) {
            let (ty, target) = (remap.ty(alias.ty), remap.value(alias.target));
            linked.aliases.push(Alias {
                ty,
                target,
                ..alias.clone()
            });
        }
    }
}

/// Concatenates appending arrays: the first variable gets the members of all.
fn join_arrays(
    linked: &mut Module,
    modules: &[Module],
    remaps: &[Remap],
    resolution: &Resolution,
    names: &[Box<str>],
) -> Result<(), LinkError> {
    for name in names {
        let mut members = Vec::new();
        let mut element = None;
        let mut place = None;
        for origin in resolution
            .appending
            .get(name)
            .map_or(&[][..], |origins| origins)
        {
            let (module, remap) = (&modules[origin.module], &remaps[origin.module]);
            let bad = || LinkError::Appending {
                name: name.to_string(),
                module: module_name(module),
            };
            let Symbol::Global(id) = origin.symbol else {
                return Err(bad());
            };
            let global = &module.globals[id.index()];
            let Type::Array {
                element: own,
                count,
            } = module.types[global.ty]
            else {
                return Err(bad());
            };
            let own = remap.ty(own);
            if *element.get_or_insert(own) != own {
                return Err(bad());
            }
            place = place.or(match remap.globals[id.index()] {
                Value::Global(id) => Some(id),
                _ => None,
            });
            match global.initializer {
                None => {}
                Some(Value::Constant(id)) => match &module.constant(id).kind {
                    ConstantKind::Aggregate(own) => {
                        members.extend(own.iter().map(|&member| remap.value(member)));
                    }
                    ConstantKind::Null if count == 0 => {}
                    _ => return Err(bad()),
                },
                Some(_) => return Err(bad()),
            }
        }
        let (Some(element), Some(place)) = (element, place) else {
            continue;
        };
        let ty = linked.types.intern(Type::Array {
            element,
            count: members.len() as u64,
        });
        linked.constants.push(Constant {
            ty,
            kind: ConstantKind::Aggregate(members.into()),
        });
        let initializer = Value::Constant(ConstId::new(linked.constants.len() - 1));
        let global = &mut linked.globals[place.index()];
        global.ty = ty;
        global.initializer = Some(initializer);
    }
    Ok(())
}

/// Fills the symbol table. Global symbols keep their names; local ones get a numeric suffix if
/// theirs is taken.
fn name_symbols(linked: &mut Module) {
    let mut names = std::mem::take(&mut linked.symbols);
    let all: Vec<Symbol> = symbols(linked).collect();
    let is_local = |linked: &Module, symbol: Symbol| name_of(linked, symbol).1.is_local();
    for &symbol in &all {
        let (name, _) = name_of(linked, symbol);
        if !name.is_empty() && !is_local(linked, symbol) {
            names.insert(name.into(), symbol);
        }
    }
    let mut next: HashMap<Box<str>, u32> = HashMap::new();
    for &symbol in &all {
        let (name, _) = name_of(linked, symbol);
        if name.is_empty() || !is_local(linked, symbol) {
            continue;
        }
        let base: Box<str> = name.into();
        let mut name = base.clone();
        while names.contains_key(&name) {
            let number = next.entry(base.clone()).or_insert(0);
            *number += 1;
            name = format!("{base}.{number}").into();
        }
        names.insert(name.clone(), symbol);
        match symbol {
            Symbol::Global(id) => linked.globals[id.index()].name = name,
            Symbol::Function(id) => linked.functions[id.index()].name = name,
            Symbol::Alias(id) => linked.aliases[id.index()].name = name,
            Symbol::Ifunc(_) => {}
        }
    }
    linked.symbols = names;
}

fn merge_debug_info(
    linked: &mut Module,
    module: &Module,
    remap: &Remap,
    described: &mut HashSet<(GlobalId, Box<str>)>,
) {
    let debug = &mut linked.debug;
    debug.files.extend(module.debug.files.iter().cloned());
    for unit in &module.debug.units {
        let file = unit.file.map(|file| remap.file(file));
        debug.units.push(CompileUnit { file, ..*unit });
    }
    for subprogram in &module.debug.subprograms {
        let mut subprogram = subprogram.clone();
        subprogram.file = subprogram.file.map(|file| remap.file(file));
        debug.subprograms.push(subprogram);
    }
    for location in &module.debug.locations {
        let mut location = *location;
        location.file = location.file.map(|file| remap.file(file));
        location.subprogram = location.subprogram.map(|id| remap.subprogram(id));
        location.inlined_at = location.inlined_at.map(|id| remap.location(id));
        debug.locations.push(location);
    }
    for ty in &module.debug.types {
        let mut ty = ty.clone();
        ty.kind = remap.debug_type_kind(ty.kind);
        debug.types.push(ty);
    }
    for variable in &module.debug.variables {
        // If another module's definition was selected, its debug information applies.
        let Value::Global(global) = remap.globals[variable.global.index()] else {
            continue;
        };
        if !described.insert((global, variable.name.clone())) {
            continue;
        }
        let mut variable = variable.clone();
        variable.global = global;
        variable.file = variable.file.map(|file| remap.file(file));
        variable.ty = variable.ty.map(|ty| remap.debug_type(ty));
        debug.variables.push(variable);
    }
}

fn take_heads(linked: &mut Module, modules: &[Module]) {
    if let Some(first) = modules.first() {
        linked.name = first.name.clone();
        linked.producer = first.producer.clone();
        linked.target_triple = first.target_triple.clone();
        linked.data_layout = first.data_layout.clone();
    }
    for module in modules
        .iter()
        .filter(|module| !module.module_asm.is_empty())
    {
        linked.module_asm.push_str(&module.module_asm);
        linked.module_asm.push('\n');
    }
}
