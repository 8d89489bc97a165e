//! Preemption points between system calls, and their locations in native code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use everett_ir::library::LibraryFolders;
use everett_linux::TaskName;
use object::{Object, ObjectSymbol, SymbolKind};

/// A preemption point of a trace, as the vm passed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptPoint {
    /// The thread that ran.
    pub task: TaskName,
    /// Number of system calls that the thread had made before.
    pub calls: u64,
    /// Whether another thread ran from here on.
    pub switches: bool,
    /// File and line of the access that the thread was about to make.
    pub place: (String, u32),
    /// Number of points on the same line that the thread had passed since its last system call or
    /// switch.
    pub ordinal: u32,
}

/// All preemption points of a trace, in order, and data to find them in native code.
#[derive(Clone, Default)]
pub struct Script {
    /// The points.
    pub points: Vec<ScriptPoint>,
    /// Corrections of points by a number of accesses: native code may have other accesses than the
    /// vm.
    pub shifts: BTreeMap<usize, i32>,
    /// The number of restarts of the host when the points were passed.
    pub restarts: u32,
    /// Line tables of the programs, computed on first use.
    pub lines: Arc<OnceLock<Vec<Lines>>>,
}

/// Addresses of a line, as pairs of start and end.
pub type Ranges = Vec<(u64, u64)>;

/// Line table of a native program.
#[derive(Default)]
pub struct Lines {
    /// Addresses by file name, without directory, and line.
    ranges: BTreeMap<(String, u32), Ranges>,
    /// Addresses of functions of a checked build that check an access before it is made.
    checks: BTreeSet<u64>,
    /// Entry point in the file.
    entry: u64,
}

/// Prefixes of the names of functions that check accesses.
const CHECKS: [&str; 2] = ["__asan_load", "__asan_store"];

/// Returns the folders of the libraries that a native program was linked with.
pub(crate) fn library_folders(
    program: &object::File<'_>,
    loader: &addr2line::Loader,
) -> LibraryFolders {
    let functions = program
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text);
    LibraryFolders::by_functions(functions.filter_map(|symbol| {
        let address = symbol.address();
        let file = move || {
            let location = loader.find_location(address).ok()??;
            location.file.map(str::to_owned)
        };
        Some((symbol.name().ok()?, file))
    }))
}

/// Returns the last part of a path.
fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

impl Lines {
    /// Returns the line table of a program; empty if it has no debug information.
    pub fn of(program: &Path) -> Lines {
        Lines::read(program).unwrap_or_default()
    }

    fn read(program: &Path) -> Option<Lines> {
        let bytes = std::fs::read(program).ok()?;
        let parsed = object::File::parse(&*bytes).ok()?;
        let is_check = |name: &str| CHECKS.iter().any(|begin| name.starts_with(begin));
        let symbols = parsed.symbols();
        let checks = symbols.filter(|symbol| symbol.name().is_ok_and(is_check));
        let checks = checks.map(|symbol| symbol.address()).collect();
        let loader = addr2line::Loader::new(program).ok()?;
        let mut ranges: BTreeMap<(String, u32), Ranges> = BTreeMap::new();
        for (start, len, location) in loader.find_location_range(0, u64::MAX).ok()? {
            let (Some(file), Some(line)) = (location.file, location.line) else {
                continue;
            };
            let place = (name_of(file).to_owned(), line);
            ranges
                .entry(place)
                .or_default()
                .push((start, start.checked_add(len)?));
        }
        Some(Lines {
            ranges,
            checks,
            entry: parsed.entry(),
        })
    }

    /// Returns whether a function in a process whose program starts at `start` checks accesses.
    pub fn is_check(&self, function: u64, start: u64) -> bool {
        let bias = start.wrapping_sub(self.entry);
        self.checks.contains(&function.wrapping_sub(bias))
    }

    /// Returns the addresses of a line in a process whose program starts at `start`.
    pub fn find(&self, place: &(String, u32), start: u64) -> Ranges {
        let bias = start.wrapping_sub(self.entry);
        let known = self.ranges.get(&(name_of(&place.0).to_owned(), place.1));
        let moved = |(from, to): &(u64, u64)| (from.wrapping_add(bias), to.wrapping_add(bias));
        known.into_iter().flatten().map(moved).collect()
    }
}
