//! Functions that `[trojans]` of a scenario replaces: finds them in programs, and reports why one
//! cannot be replaced.

use everett_ir::Module;
use everett_ir::module::{Function, Type};
use everett_report::counted;
use everett_scenario::{ReplacedFunction, Scenario, nearest};
use everett_vm::Replaced;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::load::module_of;
use crate::spec::RunSpec;

/// The functions that a run replaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplacedFunctions {
    functions: Vec<ReplacedFunction>,
    /// The program that replaces a client: functions in it are not replaced.
    except: Option<PathBuf>,
}

impl ReplacedFunctions {
    /// Returns the replaced functions of a run.
    pub(crate) fn of_run(run: &RunSpec, scenario: &Scenario) -> ReplacedFunctions {
        let trojans = scenario.trojans.as_ref().filter(|_| run.replaces);
        ReplacedFunctions {
            functions: trojans.map_or_else(Vec::new, |trojans| trojans.replace.clone()),
            except: run.sender.as_ref().map(|sender| sender.program.clone()),
        }
    }

    /// Returns the replaced functions of a program.
    pub(crate) fn of(&self, program: &Path, module: &Module) -> Vec<Replaced> {
        if self.except.as_deref() == Some(program) {
            return Vec::new();
        }
        let mut all = Vec::new();
        for function in &self.functions {
            let found = definitions(module, &function.name);
            all.extend(found.filter_map(|found| {
                Some(Replaced {
                    symbol: found.name.to_string(),
                    name: function.name.clone(),
                    low: function.low,
                    high: function.high,
                    bytes: width_returned(module, found)?.div_ceil(8),
                })
            }));
        }
        all
    }

    /// Like [`ReplacedFunctions::of`], for a program that is not read yet.
    pub(crate) fn in_program(&self, disk: &dyn Disk, program: &Path) -> Result<Vec<Replaced>> {
        if self.functions.is_empty() || self.except.as_deref() == Some(program) {
            return Ok(Vec::new());
        }
        let (_, module) = module_of(disk, program)?;
        Ok(self.of(program, &module))
    }
}

/// Returns the definitions of a function, by its name in the source or by its symbol.
fn definitions<'m>(module: &'m Module, name: &'m str) -> impl Iterator<Item = &'m Function> {
    let functions = module.functions.iter();
    functions.filter(move |function| {
        let subprogram = function.subprogram;
        let source = subprogram.and_then(|id| module.debug.subprograms.get(id.index()));
        let is_named = &*function.name == name || source.is_some_and(|of| &*of.name == name);
        is_named && !function.is_declaration()
    })
}

/// Returns the names of all functions that a program defines, in the source and as symbols.
fn names(module: &Module) -> impl Iterator<Item = &str> {
    let functions = module.functions.iter();
    let functions = functions.filter(|function| !function.is_declaration());
    functions.flat_map(|function| {
        let subprogram = function.subprogram;
        let source = subprogram.and_then(|id| module.debug.subprograms.get(id.index()));
        let source = source.map(|of| &*of.name);
        std::iter::once(&*function.name).chain(source)
    })
}

/// Returns the width of the number that a function returns; `None` if it returns something else.
fn width_returned(module: &Module, function: &Function) -> Option<u32> {
    let Type::Function { result, .. } = &module.types[function.ty] else {
        return None;
    };
    match &module.types[*result] {
        Type::Integer(width) => Some(*width).filter(|width| *width <= u64::BITS),
        Type::Pointer { .. } => Some(u64::BITS),
        _ => None,
    }
}

/// Returns where a function was inlined: file and line of the call.
fn inlined_at(module: &Module, name: &str) -> Option<(String, u32)> {
    let debug = &module.debug;
    let mut calls = debug.locations.iter().filter_map(|location| {
        let of = debug.subprograms.get(location.subprogram?.index())?;
        let is_meant = &*of.name == name || &*of.linkage_name == name;
        let call = debug.locations.get(location.inlined_at?.index())?;
        let file = debug.files.get(call.file?.index())?;
        is_meant.then(|| (file.path(), call.line))
    });
    calls.next()
}

/// Returns whether numbers of this width can have all values from `low` to `high`.
pub(crate) fn fits(width: u32, low: i64, high: i64) -> bool {
    let (low, high) = (i128::from(low), i128::from(high));
    let half = 1i128 << (width - 1);
    (-half <= low && high < half) || (0 <= low && high < 2 * half)
}

/// Checks that all functions that a scenario replaces exist and can be replaced.
pub(crate) fn check(scenario: &Scenario) -> Result<()> {
    let functions = scenario.trojans.iter().flat_map(|trojans| &trojans.replace);
    let functions: Vec<&ReplacedFunction> = functions.collect();
    if functions.is_empty() {
        return Ok(());
    }
    let processes = scenario.hosts.iter().flat_map(|host| &host.processes);
    let mut programs: Vec<&PathBuf> = processes.map(|process| &process.program).collect();
    programs.sort();
    programs.dedup();
    let mut modules = Vec::new();
    for program in programs {
        modules.push((program.as_path(), module_of(&RealDisk, program)?.1));
    }
    for function in functions {
        check_one(function, &modules)?;
    }
    Ok(())
}

fn check_one(function: &ReplacedFunction, modules: &[(&Path, Module)]) -> Result<()> {
    const BUILD: &str = "build it with -fno-inline, or mark the function __attribute__((noinline))";
    let name = function.name.as_str();
    let wrong = |message: String, help: String| {
        let problems = function.place.wrong(message, help);
        Err(Error::Scenario { problems })
    };
    let mut is_defined = false;
    for (program, module) in modules {
        let program = program.display();
        if let Some((file, line)) = inlined_at(module, name) {
            let message = format!("{name:?} is inlined in {program}, at {file}:{line}");
            return wrong(message, BUILD.to_owned());
        }
        for found in definitions(module, name) {
            is_defined = true;
            let Some(width) = width_returned(module, found) else {
                let message = format!("{name:?} of {program} returns no number");
                let help = "functions that return a whole number or a pointer can be replaced";
                return wrong(message, help.to_owned());
            };
            if !fits(width, function.low, function.high) {
                let message = format!(
                    "{name:?} of {program} returns a number of {}",
                    counted(width, "bit")
                );
                return wrong(message, format!("it cannot return {}", function.returns()));
            }
        }
    }
    if is_defined {
        return Ok(());
    }
    let known = modules.iter().flat_map(|(_, module)| names(module));
    let help = match nearest(name, known) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("if the compiler has inlined all of its calls: {BUILD}"),
    };
    wrong(format!("no program has a function {name:?}"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_signed_or_unsigned() {
        for (width, low, high, expected) in [
            (8, 0, 255, true),
            (8, -128, 127, true),
            (8, -1, 255, false),
            (8, 0, 256, false),
            (1, 0, 1, true),
            (1, 0, 2, false),
            (64, i64::MIN, i64::MAX, true),
        ] {
            assert_eq!(fits(width, low, high), expected, "{width} {low} {high}");
        }
    }
}
