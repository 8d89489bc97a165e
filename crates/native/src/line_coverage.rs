//! Line coverage of native programs: a breakpoint at the first instruction of each piece of a line,
//! which is removed when a thread reaches it. So a line costs one stop, however often it executes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use everett_vm::ImageId;
use object::Object;

use crate::points::library_folders;
use crate::tracee::{Registers, Tracee};

const BREAKPOINT: u8 = 0xcc;
const PAGE: u64 = 4096;

/// A source line: its file and its number.
pub type SourceLine = (Arc<str>, u32);

/// The user's code of a program that can be covered: addresses in the file, and the lines there.
#[derive(Default, Debug)]
pub(crate) struct CoverableLines {
    lines: BTreeMap<u64, SourceLine>,
    /// The entry point in the file.
    entry: u64,
}

impl CoverableLines {
    /// Reads the line table of a program. Without debug information there are no lines.
    pub(crate) fn of(program: &Path) -> CoverableLines {
        CoverableLines::read(program).unwrap_or_default()
    }

    fn read(program: &Path) -> Option<CoverableLines> {
        let bytes = std::fs::read(program).ok()?;
        let parsed = object::File::parse(&*bytes).ok()?;
        let loader = addr2line::Loader::new(program).ok()?;
        let libraries = library_folders(&parsed, &loader);
        let mut lines = BTreeMap::new();
        let mut files: BTreeMap<&str, Option<Arc<str>>> = BTreeMap::new();
        for (start, _, location) in loader.find_location_range(0, u64::MAX).ok()? {
            let (Some(file), Some(line)) = (location.file, location.line) else {
                continue;
            };
            let counted = || (!libraries.contains(file)).then(|| Arc::from(file));
            let file = files.entry(file).or_insert_with(counted);
            // Line 0 is code that belongs to no line.
            if let (Some(file), 1..) = (file, line) {
                lines.insert(start, (file.clone(), line));
            }
        }
        Some(CoverableLines {
            lines,
            entry: parsed.entry(),
        })
    }
}

/// The breakpoints of a run, and the lines that were covered.
#[derive(Clone, Default, Debug)]
pub(crate) struct LineCoverage {
    /// The line at each address, and the byte that the breakpoint there replaces.
    points: BTreeMap<(ImageId, u64), (SourceLine, u8)>,
    /// The lines that were covered.
    pub(crate) covered: BTreeSet<SourceLine>,
}

impl LineCoverage {
    /// Sets breakpoints in a program that has not executed anything yet. Breakpoints that are
    /// already there stay those of others.
    pub(crate) fn watch(
        &mut self,
        image: ImageId,
        coverable: &CoverableLines,
        tracee: &mut Tracee,
    ) -> std::io::Result<()> {
        let bias = tracee.start_address()?.wrapping_sub(coverable.entry);
        let lines = coverable.lines.iter();
        let mut lines = lines
            .map(|(at, line)| (at.wrapping_add(bias), line))
            .peekable();
        while let Some(page) = lines.peek().map(|(at, _)| at / PAGE * PAGE) {
            let mut code = [0; PAGE as usize];
            let is_there = tracee.peek(page, &mut code);
            while let Some((at, line)) = lines.next_if(|(at, _)| at / PAGE * PAGE == page) {
                let byte = &mut code[(at - page) as usize];
                if is_there && *byte != BREAKPOINT {
                    self.points.insert((image, at), (line.clone(), *byte));
                    *byte = BREAKPOINT;
                }
            }
            if is_there {
                tracee.poke(page, &code);
            }
        }
        Ok(())
    }

    /// If a thread has stopped at a breakpoint of a line: counts the line, and lets the thread
    /// execute what is there. Returns whether it has.
    pub(crate) fn reached(&mut self, image: ImageId, tracee: &mut Tracee) -> std::io::Result<bool> {
        if self.points.is_empty() {
            return Ok(false);
        }
        let registers = tracee.registers()?;
        let rip = registers.rip.wrapping_sub(1);
        let Some((line, byte)) = self.points.get(&(image, rip)) else {
            return Ok(false);
        };
        // Other processes with the same program still have theirs, so the point stays known.
        tracee.poke(rip, &[*byte]);
        self.covered.insert(line.clone());
        tracee.set_registers(Registers { rip, ..registers })?;
        Ok(true)
    }
}
