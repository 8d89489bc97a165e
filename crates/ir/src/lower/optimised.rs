//! Which functions the compiler optimised. Checks that the optimiser would make meaningless apply
//! only to the others.

use std::collections::BTreeSet;

use crate::debug::FileId;
use crate::library::LibraryFolders;
use crate::module::{Function, Module};

/// Functions that the compiler makes itself and never marks as not optimised, by the beginnings of
/// their names: initialisers and destructors of globals and of thread-local variables.
const MADE: &[&str] = &[
    "__cxx_global_var_init",
    "__cxx_global_array_dtor",
    "_GLOBAL__sub_I_",
    "_GLOBAL__I_",
    "_GLOBAL__D_",
    "__tls_init",
    "_ZTW",
    "_ZTH",
];

/// The optimised functions of a module.
pub(super) struct Optimised {
    /// Files in which the user's functions are marked as not optimised, all of them.
    plain_files: BTreeSet<FileId>,
}

impl Optimised {
    /// Looks at all functions of a module.
    pub(super) fn of(module: &Module) -> Optimised {
        let (mut plain, mut optimised) = (BTreeSet::new(), BTreeSet::new());
        let defined = module.functions.iter();
        for function in defined.filter(|function| !function.is_declaration()) {
            let Some(file) = module.file_of(function) else {
                continue;
            };
            match is_marked(module, function) {
                true => drop(plain.insert(file)),
                false if !is_never_marked(module, function) => drop(optimised.insert(file)),
                false => {}
            }
        }
        Optimised {
            plain_files: plain.difference(&optimised).copied().collect(),
        }
    }

    /// Returns whether the compiler optimised a function.
    pub(super) fn contains(&self, module: &Module, function: &Function) -> bool {
        let is_plain = |file: FileId| self.plain_files.contains(&file);
        !is_marked(module, function) && !module.file_of(function).is_some_and(is_plain)
    }

    /// Returns a file of the user that the compiler optimised. Rust says so for what it compiles at
    /// once; C says it of all that is linked as bitcode, but then marks the functions that are not
    /// optimised.
    pub(super) fn file(&self, module: &Module, library: &LibraryFolders) -> Option<String> {
        let units = module.debug.units.iter().filter(|unit| unit.optimised);
        let units: Vec<String> = units
            .filter_map(|unit| module.debug.path(unit.file?))
            .collect();
        let functions = module.functions.iter();
        let functions = functions
            .filter(|function| !function.is_declaration() && self.contains(module, function));
        let files = functions.filter_map(|function| module.path_of(function));
        // The name of a unit of Rust is its file with a number behind it.
        let is_optimised = |file: &String| units.iter().any(|unit| unit.starts_with(file.as_str()));
        files
            .filter(|file| !library.contains(file))
            .find(is_optimised)
    }
}

/// Returns whether the compiler has marked a function as not optimised.
fn is_marked(module: &Module, function: &Function) -> bool {
    let attributes = module.attributes(function.attributes);
    attributes.is_some_and(|list| list.function.optnone)
}

/// Returns whether the compiler would not mark a function, even if it optimises nothing.
fn is_never_marked(module: &Module, function: &Function) -> bool {
    let attributes = module.attributes(function.attributes);
    let is_small = attributes.is_some_and(|list| list.function.minsize);
    is_small || MADE.iter().any(|begin| function.name.starts_with(begin))
}
