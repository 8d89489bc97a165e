//! Functions and allocators of native programs, read from their files. A file is read once for all
//! runs of a configuration, because reading takes longer than many runs do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use addr2line::Loader;
use everett_ir::library::LibraryFolders;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::allocations::Allocator;
use crate::call_stack::{self, NativeFrame};
use crate::line_coverage::CoverableLines;
use crate::points::library_folders;
use crate::unwind::UnwindTables;

/// Facts about a program from its file.
#[derive(Default, Debug)]
pub(crate) struct KnownProgram {
    /// The program's allocator; without functions if the program does not contain one.
    pub(crate) allocator: Allocator,
    /// Addresses of the program's functions in the file, by name.
    functions: BTreeMap<String, Vec<u64>>,
    /// How to unwind its stacks.
    pub(crate) tables: UnwindTables,
    file: PathBuf,
    /// The folders of the libraries that it was linked with.
    libraries: OnceLock<LibraryFolders>,
    /// The source locations of addresses that were looked up.
    frames: Mutex<BTreeMap<u64, Vec<NativeFrame>>>,
}

impl KnownProgram {
    fn of(program: &Path) -> std::io::Result<KnownProgram> {
        let bytes = std::fs::read(program)?;
        let mut known = KnownProgram {
            allocator: Allocator::of(&bytes),
            file: program.to_owned(),
            ..KnownProgram::default()
        };
        // A file that is no ELF program, such as a script, has no functions.
        let Ok(file) = object::File::parse(&*bytes) else {
            return Ok(known);
        };
        known.tables = UnwindTables::of(&file);
        let functions = file.symbols();
        let functions =
            functions.filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined());
        for symbol in functions {
            let Ok(name) = symbol.name() else { continue };
            let known = known.functions.entry(name.to_owned()).or_default();
            if !known.contains(&symbol.address()) {
                known.push(symbol.address());
            }
        }
        Ok(known)
    }

    /// Returns the lookup of source locations by addresses in the file. The debug information is
    /// read when an address is new.
    pub(crate) fn frames(&self) -> impl FnMut(u64) -> Vec<NativeFrame> {
        let mut loader = None;
        move |address| {
            let mut known = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(frames) = known.get(&address) {
                return frames.clone();
            }
            let loader = loader.get_or_insert_with(|| Loader::new(&self.file).ok());
            let frames = loader
                .as_ref()
                .map_or_else(Vec::new, |loader| call_stack::frames_at(loader, address));
            // Garbage on stacks may be any number.
            if !frames.is_empty() {
                known.insert(address, frames.clone());
            }
            frames
        }
    }

    /// Returns whether an address in the file is in the C library. Code without debug information is:
    /// only assembly has none.
    pub(crate) fn is_in_library(&self, address: u64) -> bool {
        let folders = self.libraries.get_or_init(|| {
            let read = || {
                let bytes = std::fs::read(&self.file).ok()?;
                let file = object::File::parse(&*bytes).ok()?;
                Some(library_folders(&file, &Loader::new(&self.file).ok()?))
            };
            read().unwrap_or_default()
        });
        let frames = self.frames()(address);
        let file = frames.last().map_or("", |frame| frame.file.as_str());
        folders.is_runtime(file)
    }

    /// Returns the addresses of the functions with this name, in the file.
    pub(crate) fn functions(&self, name: &str) -> &[u64] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Facts about the programs of a host. Clones share them.
#[derive(Clone, Default, Debug)]
pub struct KnownPrograms {
    programs: Shared<KnownProgram>,
    lines: Shared<CoverableLines>,
}

/// What is known of some kind, by program.
type Shared<T> = Arc<Mutex<BTreeMap<PathBuf, Arc<T>>>>;

impl KnownPrograms {
    /// Returns the facts about a program. Its file must not change during the lifetime of this
    /// cache.
    pub(crate) fn get(&self, program: &Path) -> std::io::Result<Arc<KnownProgram>> {
        let mut all = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(program) {
            return Ok(known.clone());
        }
        let known = Arc::new(KnownProgram::of(program)?);
        all.insert(program.to_owned(), known.clone());
        Ok(known)
    }

    /// The lines of a program that can be covered.
    pub(crate) fn lines(&self, program: &Path) -> Arc<CoverableLines> {
        let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = all.entry(program.to_owned());
        lines
            .or_insert_with(|| Arc::new(CoverableLines::of(program)))
            .clone()
    }
}
