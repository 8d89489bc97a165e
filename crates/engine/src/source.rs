//! From instructions to places in the source.

use everett_ir::code::{LocationId, Program};
use everett_vm::CallSite;
use serde::{Deserialize, Serialize};

/// A frame of a stack as people read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourceFrame {
    /// Name of the function.
    pub function: String,
    /// File, empty if unknown.
    pub file: String,
    /// Line, 0 if unknown.
    pub line: u32,
    /// Column, 0 if unknown.
    pub column: u32,
}

impl SourceFrame {
    /// It lies in a library that came with the toolchain, not in what the user wrote.
    pub fn is_library(&self) -> bool {
        const PARTS: &[&str] = &[
            "/everett/runtime/",
            "/libc/musl/",
            "/lib/c/",
            "/lib/std/",
            "/libcxx/",
            "/libcxxabi/",
            "/libunwind/",
            "/compiler_rt/",
            "/library/std/",
            "/library/core/",
            "/library/alloc/",
            "/rustc/",
        ];
        self.file.is_empty() || PARTS.iter().any(|part| self.file.contains(part))
    }
}

/// The frames of a stack, innermost first; functions that were inlined have frames of their own.
pub fn describe(program: &Program, sites: &[CallSite]) -> Vec<SourceFrame> {
    sites
        .iter()
        .flat_map(|site| frames_of(program, *site))
        .collect()
}

fn frames_of(program: &Program, site: CallSite) -> Vec<SourceFrame> {
    let function = &program.functions[site.function.0 as usize];
    let everett_ir::code::Body::Code(code) = &function.body else {
        return Vec::new();
    };
    let mut location = location_near(&code.locations, site.pc);
    let mut frames = Vec::new();
    while let Some(id) = location {
        let place = program.location(id);
        let name = program.string(place.function);
        frames.push(SourceFrame {
            function: if name.is_empty() {
                function.name.clone()
            } else {
                name.to_owned()
            },
            file: program.string(place.file).to_owned(),
            line: place.line,
            column: place.column,
        });
        location = place.inlined_at;
    }
    if frames.is_empty() {
        let function = function.name.clone();
        frames.push(SourceFrame {
            function,
            file: String::new(),
            line: 0,
            column: 0,
        });
    }
    frames
}

/// The location of an instruction, or of the nearest one before it that has one.
fn location_near(locations: &[Option<LocationId>], pc: u32) -> Option<LocationId> {
    let upto = (pc as usize + 1).min(locations.len());
    locations[..upto]
        .iter()
        .rev()
        .find_map(|location| *location)
}

/// The frame to name first: the innermost one in what the user wrote, else the innermost.
pub fn principal(frames: &[SourceFrame]) -> Option<&SourceFrame> {
    frames
        .iter()
        .find(|frame| !frame.is_library())
        .or(frames.first())
}
