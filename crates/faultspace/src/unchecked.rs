//! What a program does not check: calls whose results no decision depends on, according to its
//! bitcode. Searches try to fail these first.

use everett_ir::unchecked::unchecked_calls;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

use crate::space::{Axis, Space};

/// Functions that fail if memory is short, because they allocate.
const ALLOCATING: &[&str] = &[
    "asprintf",
    "calloc",
    "fdopen",
    "fopen",
    "getdelim",
    "getline",
    "malloc",
    "opendir",
    "realloc",
    "reallocarray",
    "scandir",
    "setlocale",
    "strdup",
    "strndup",
    "vasprintf",
    "wcsdup",
];

/// The unchecked calls of programs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Unchecked {
    /// The called functions.
    pub functions: BTreeSet<String>,
    /// The source lines of the calls, `FILE:LINE`.
    pub sites: BTreeSet<String>,
}

impl Unchecked {
    /// Adds the unchecked calls of the bitcode in a file.
    pub fn read(&mut self, file: &Path) -> Result<(), everett_ir::FileError> {
        for call in unchecked_calls(&everett_ir::read_file(file)?) {
            if ALLOCATING.contains(&&*call.callee) {
                self.functions.insert("malloc".to_owned());
            }
            self.functions.insert(call.callee);
            self.sites
                .extend(call.site.map(|(file, line)| format!("{file}:{line}")));
        }
        Ok(())
    }

    /// Returns whether a value of an axis `callsite` is the line of such a call.
    fn has_site(&self, text: &str) -> bool {
        let is_at = |site: &String| {
            site.strip_suffix(text)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        text.contains(':') && self.sites.iter().any(is_at)
    }

    /// Returns for each axis of a subspace the indices of the values that stand for such calls:
    /// lines, or functions where the subspace has no lines.
    fn of_axes(&self, axes: &[Axis]) -> Vec<(usize, Vec<u64>)> {
        let named = |name: &str| {
            let is_it = move |(_, axis): &(usize, &Axis)| axis.name == name;
            axes.iter().enumerate().filter(is_it).collect::<Vec<_>>()
        };
        let (sites, functions) = (named("callsite"), named("function"));
        let has_sites = !sites.is_empty();
        let chosen = if has_sites { sites } else { functions };
        let indices = |axis: &Axis| {
            let is_it = |index: &u64| {
                let text = axis.values.get(*index).to_string();
                match has_sites {
                    true => self.has_site(&text),
                    false => self.functions.contains(&text),
                }
            };
            (0..axis.values.len().min(MOST_VALUES))
                .filter(is_it)
                .collect::<Vec<u64>>()
        };
        let all = chosen.into_iter().map(|(at, axis)| (at, indices(axis)));
        all.filter(|(_, indices)| !indices.is_empty()).collect()
    }

    /// Returns the values of a space that stand for such calls: the subspace, the axis, and the
    /// indices of its values.
    pub(crate) fn places(&self, space: &Space) -> Vec<Place> {
        let mut places = Vec::new();
        for (subspace, part) in space.subspaces().iter().enumerate() {
            let axes = self.of_axes(&part.axes).into_iter();
            places.extend(axes.map(|(axis, indices)| Place {
                subspace,
                axis,
                indices,
            }));
        }
        places
    }
}

/// Values of an axis that stand for unchecked calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) subspace: usize,
    pub(crate) axis: usize,
    pub(crate) indices: Vec<u64>,
}

/// Maximum number of values of an axis that are looked at: names are listed one by one.
const MOST_VALUES: u64 = 1 << 16;
