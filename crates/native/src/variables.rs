//! Where the variables of a native program lie.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::tracee::Tracee;

/// Variables of a process, by symbol.
#[derive(Debug, Default)]
pub struct Variables {
    /// `None` where several have one name.
    addresses: BTreeMap<String, Option<u64>>,
}

impl Variables {
    /// Those of the program that a process executes.
    pub fn of(program: &Path, tracee: &Tracee) -> std::io::Result<Variables> {
        let bytes = std::fs::read(program)?;
        let mut variables = Variables::default();
        let Ok(file) = object::File::parse(&*bytes) else {
            return Ok(variables);
        };
        let bias = tracee.start_address()?.wrapping_sub(file.entry());
        for symbol in file.symbols() {
            if symbol.kind() != SymbolKind::Data || symbol.is_undefined() {
                continue;
            }
            let address = symbol.address().wrapping_add(bias);
            if let Ok(name) = symbol.name() {
                let known = variables.addresses.entry(name.to_owned());
                known
                    .and_modify(|known| *known = known.filter(|known| *known == address))
                    .or_insert(Some(address));
            }
        }
        Ok(variables)
    }

    /// The address of a variable, if there is one of this name.
    pub fn address(&self, symbol: &str) -> Option<u64> {
        self.addresses.get(symbol).copied().flatten()
    }
}
