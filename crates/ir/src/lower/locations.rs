//! Converts source locations to those of the bytecode.

use crate::code::{Location, LocationId};
use crate::debug::{FileId, SourceFile, SubprogramId};
use crate::module::Module;

/// The converted locations.
pub(super) struct Locations {
    /// All locations; those of instructions first, with the same indices as in the module.
    pub locations: Vec<Location>,
    /// Names of files and functions.
    pub strings: Vec<String>,
    /// The location of the definition of each function of the module.
    pub functions: Vec<Option<LocationId>>,
}

/// Converts the debug information of a module.
pub(super) fn convert(module: &Module) -> Locations {
    let debug = &module.debug;
    // The order is: the empty string, files, functions.
    let mut strings = vec![String::new()];
    strings.extend(debug.files.iter().map(join));
    strings.extend(
        debug
            .subprograms
            .iter()
            .map(|subprogram| subprogram.name.to_string()),
    );
    let file = |id: Option<FileId>| match id {
        Some(id) if id.index() < debug.files.len() => id.index() as u32 + 1,
        _ => 0,
    };
    let function = |id: Option<SubprogramId>| match id {
        Some(id) if id.index() < debug.subprograms.len() => {
            (1 + debug.files.len() + id.index()) as u32
        }
        _ => 0,
    };
    let mut locations: Vec<Location> = debug
        .locations
        .iter()
        .map(|location| Location {
            file: file(location.file),
            line: location.line,
            column: location.column,
            function: function(location.subprogram),
            inlined_at: location.inlined_at.map(|at| LocationId(at.index() as u32)),
        })
        .collect();
    let functions = module
        .functions
        .iter()
        .map(|defined| {
            let id = defined.subprogram?;
            let subprogram = debug.subprograms.get(id.index())?;
            locations.push(Location {
                file: file(subprogram.file),
                line: subprogram.line,
                column: 0,
                function: function(Some(id)),
                inlined_at: None,
            });
            Some(LocationId(locations.len() as u32 - 1))
        })
        .collect();
    Locations {
        locations,
        strings,
        functions,
    }
}

/// Returns the path of a file.
fn join(file: &SourceFile) -> String {
    if file.name.starts_with('/') || file.directory.is_empty() {
        file.name.to_string()
    } else {
        format!("{}/{}", file.directory.trim_end_matches('/'), file.name)
    }
}
