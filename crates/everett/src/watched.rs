//! Resolves the variables that a scenario watches (paths of variable and
//! field names) to data of a program.

use everett_engine::WorldHost;
use everett_ir::Module;
use everett_ir::debug::find_path;
use everett_linux::Watch;
use everett_scenario::HostSetup;
use everett_vm::{Image, ImageId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::{Context, Error, Result, bail};
use crate::load::module_of;

/// Modules of programs whose variable names have been read.
#[derive(Default)]
pub(crate) struct Modules {
    read: BTreeMap<PathBuf, Module>,
}

impl Modules {
    /// The watches of a scenario on a host that starts with a program.
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
        for watch in &mut host.config.watches {
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
