//! Addresses of variables in a native program.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::tracee::Tracee;

/// Variables of a process, by symbol.
#[derive(Debug, Default)]
pub struct Variables {
    /// Addresses by symbol; `None` if a symbol is ambiguous.
    addresses: BTreeMap<String, Option<u64>>,
}

impl Variables {
    /// Returns the variables of a process's program.
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

    /// Returns the address of a variable, if its symbol exists and is unique.
    pub fn address(&self, symbol: &str) -> Option<u64> {
        self.addresses.get(symbol).copied().flatten()
    }
}
