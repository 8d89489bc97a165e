//! Resolves the variables that a scenario watches (paths of variable and field names) to data of a
//! program.

use everett_engine::WorldHost;
use everett_ir::Module;
use everett_ir::debug::find_path;
use everett_linux::{SymbolicVariable, Watch};
use everett_scenario::HostSetup;
use everett_vm::{Image, ImageId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::{Context, Error, Result, bail};
use crate::load::module_of;
use crate::replaced::fits;

/// Modules of programs whose variable names have been read.
#[derive(Default)]
pub(crate) struct Modules {
    read: BTreeMap<PathBuf, Module>,
}

impl Modules {
    /// Returns the watches of a scenario on a host that starts with a program.
    pub(crate) fn watches(
        &mut self,
        setup: &HostSetup,
        (disk, program): (&dyn Disk, &Path),
        image: ImageId,
    ) -> Result<Vec<Watch>> {
        let mut watches = Vec::new();
        for watch in &setup.watches {
            let found = self.find((disk, program), image, &watch.path);
            let mut found = found.with_context(|| {
                let (key, program) = (&watch.key, program.display());
                format!("`{key}` watches `{}` of {program}", watch.path)
            })?;
            found.name = (watch.state.clone(), watch.key.clone());
            watches.push(found);
        }
        Ok(watches)
    }

    /// Returns the variables of a host's first program that are symbolic when it starts.
    pub(crate) fn variables(
        &mut self,
        setup: &HostSetup,
        (disk, program): (&dyn Disk, &Path),
        image: ImageId,
    ) -> Result<Vec<SymbolicVariable>> {
        let mut variables = Vec::new();
        for variable in &setup.variables {
            let wrong = |message: String, help: &str| {
                let problems = variable.place.wrong(message, help.to_owned());
                Error::Scenario { problems }
            };
            let found = self.find((disk, program), image, &variable.path);
            let mut data = found.map_err(|error| {
                let help = "a variable, or a field of one, that debug information (-g) names and no compiler removed";
                wrong(format!("{}: {error}", program.display()), help)
            })?;
            if !data.through.is_empty() {
                let help = "a pointer points nowhere before the program runs";
                return Err(wrong(
                    format!("{} lies behind a pointer", variable.path),
                    help,
                ));
            }
            if let Some((low, high)) = variable.range {
                let width = u32::try_from(data.len.saturating_mul(8)).unwrap_or(u32::MAX);
                if width > u64::BITS || !fits(width, low, high) {
                    let message = format!("{} has {} bytes", variable.path, data.len);
                    let help = format!("it cannot be a number from {low} to {high}");
                    return Err(wrong(message, &help));
                }
            }
            data.name = (String::new(), variable.path.clone());
            let range = variable.range;
            variables.push(SymbolicVariable { data, range });
        }
        Ok(variables)
    }

    fn module(&mut self, disk: &dyn Disk, program: &Path) -> Result<&Module> {
        if !self.read.contains_key(program) {
            let (_, module) = module_of(disk, program)?;
            self.read.insert(program.to_owned(), module);
        }
        Ok(&self.read[program])
    }

    fn find(
        &mut self,
        (disk, program): (&dyn Disk, &Path),
        image: ImageId,
        path: &str,
    ) -> Result<Watch> {
        // The canonical form has no blanks.
        let path = everett_invariant::FieldPath::parse(path)
            .map_err(|error| Error::Watch(error.to_string()))?
            .to_string();
        let module = self.module(disk, program)?;
        let place = find_path(module, &path)?;
        let global = &module.globals[place.global.index()];
        if global.thread_local {
            bail!(Watch, "every thread has a variable of its own of this name");
        }
        let all = place
            .through
            .iter()
            .chain([&place.offset_bits, &place.size_bits]);
        if all.clone().any(|bits| bits % 8 != 0) {
            bail!(
                Watch,
                "it does not begin or end at a byte; watch what it is a part of"
            );
        }
        if place.size_bits == 0 {
            bail!(Watch, "it has no bytes, or its size is not known");
        }
        Ok(Watch {
            name: Default::default(),
            image,
            symbol: global.name.to_string(),
            address: 0,
            through: place.through.iter().map(|bits| bits / 8).collect(),
            offset: place.offset_bits / 8,
            len: place.size_bits / 8,
        })
    }
}

/// Sets the addresses of watched data in the programs.
pub(crate) fn place(hosts: &mut [WorldHost], images: &[Image]) -> Result<()> {
    for host in hosts {
        let variables = host.config.variables.iter_mut();
        let variables = variables.map(|variable| &mut variable.data);
        for watch in host.config.watches.iter_mut().chain(variables) {
            let program = images[usize::from(watch.image.0)].program();
            let address = program.symbols.get(&watch.symbol).copied();
            watch.address = address.ok_or_else(|| {
                let (name, symbol) = (&host.name, &watch.symbol);
                Error::Watch(format!(
                    "host {name}: {} has no variable {symbol}",
                    program.name
                ))
            })?;
        }
    }
    Ok(())
}
