//! Maps instructions to source locations, for stacks and reports.

use everett_ir::code::{FunctionId, LocationId, Program};
use everett_sim::PlannedSite;
use everett_solver::SolverStatistics;
use everett_vm::{BugKind, CallSite, Image, ImageId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A frame of a stack as people read it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SourceFrame {
    /// The name of the function.
    pub function: String,
    /// The file; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The column; 0 if unknown.
    pub column: u32,
    /// Whether the file belongs to a library of the toolchain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
}

/// A call of an explored program, and with what it is made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Called {
    /// The call stack, innermost first.
    pub stack: Vec<SourceFrame>,
    /// The arguments, without addresses.
    pub arguments: Vec<String>,
}

/// A function that returns whether a call comes from the call site of a planned fault.
pub type IsCallAt = Arc<dyn Fn(&PlannedSite, &Called) -> bool + Send + Sync>;

impl SourceFrame {
    /// Returns whether the frame is in a library of the toolchain, not in the user's code.
    pub fn is_library(&self) -> bool {
        self.library || self.file.is_empty()
    }
}

/// The cost of the queries of one source line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SolverLine {
    /// The name of the function.
    pub function: String,
    /// The file; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The number of queries that no cheap layer answered.
    pub queries: u64,
    /// The time of these queries in seconds.
    pub seconds: f64,
}

/// Returns the lines whose queries took longest, at most `most`, longest first.
pub fn solver_lines(
    images: &[Image],
    statistics: &SolverStatistics,
    most: usize,
) -> Vec<SolverLine> {
    let mut lines: BTreeMap<(String, u32), SolverLine> = BTreeMap::new();
    for ([image, function, pc], cost) in &statistics.askers {
        let site = CallSite {
            image: ImageId(*image as u16),
            function: FunctionId(*function),
            pc: *pc,
        };
        let frame = describe(images, &[site]).into_iter().next();
        let frame = frame.unwrap_or_default();
        let key = (frame.file.clone(), frame.line);
        let line = lines.entry(key).or_insert_with(|| SolverLine {
            function: frame.function,
            file: frame.file,
            line: frame.line,
            queries: 0,
            seconds: 0.0,
        });
        line.queries += cost.queries;
        line.seconds += cost.time.as_secs_f64();
    }
    let mut lines: Vec<SolverLine> = lines.into_values().collect();
    lines.sort_by(|one, other| {
        let seconds = other.seconds.total_cmp(&one.seconds);
        seconds.then(other.queries.cmp(&one.queries))
    });
    lines.truncate(most);
    lines
}

/// Returns the frames of a stack, innermost first; inlined functions have frames of their own.
pub fn describe(images: &[Image], sites: &[CallSite]) -> Vec<SourceFrame> {
    sites
        .iter()
        .flat_map(|site| frames_of(images[usize::from(site.image.0)].program(), *site))
        .collect()
}

/// Returns the frames of an instruction: its function, and the functions it is inlined into.
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
        let file = program.string(place.file);
        frames.push(SourceFrame {
            function: if name.is_empty() {
                function.name.clone()
            } else {
                name.to_owned()
            },
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            library: program.library.contains(file),
        });
        location = place.inlined_at;
    }
    if frames.is_empty() {
        let function = function.name.clone();
        frames.push(SourceFrame {
            function,
            ..SourceFrame::default()
        });
    }
    frames
}

/// Returns the location of an instruction, or of the nearest one before it that has a location.
/// Instructions before all locations allocate stack slots, and get the first location.
fn location_near(locations: &[Option<LocationId>], pc: u32) -> Option<LocationId> {
    let upto = (pc as usize + 1).min(locations.len());
    let (before, after) = locations.split_at(upto);
    let mut nearest = before.iter().rev().chain(after);
    nearest.find_map(|location| *location)
}

/// Maximum number of frames that are described; the middle of longer stacks is left out.
const MOST_FRAMES: usize = 200;

/// Returns the frames of a stack like [`describe`], without the middle of a very deep stack.
pub fn describe_ends(images: &[Image], sites: &[CallSite]) -> Vec<SourceFrame> {
    if sites.len() <= MOST_FRAMES {
        return describe(images, sites);
    }
    let half = MOST_FRAMES / 2;
    let mut frames = describe(images, &sites[..half]);
    frames.push(SourceFrame {
        function: format!("(calls left out: {})", sites.len() - 2 * half),
        ..SourceFrame::default()
    });
    frames.extend(describe(images, &sites[sites.len() - half..]));
    frames
}

/// Removes the frame in which clang encodes why a sanitizer trapped, and returns the reason.
pub fn take_trap_reason(frames: &mut Vec<SourceFrame>) -> Option<String> {
    let first = frames.first()?;
    let reason = first.function.strip_prefix("__clang_trap_msg$")?;
    let reason = reason.replacen('$', ": ", 1);
    frames.remove(0);
    Some(reason)
}

/// Returns the linkage names of the functions of a stack, innermost first.
fn names<'i>(images: &'i [Image], sites: &'i [CallSite]) -> impl Iterator<Item = &'i str> {
    sites.iter().map(|site| {
        let program = images[usize::from(site.image.0)].program();
        program.functions[site.function.0 as usize].name.as_str()
    })
}

/// Returns whether Rust's runtime aborts because an allocation has failed. A program cannot handle
/// that, wherever it allocates.
pub fn is_out_of_memory(images: &[Image], sites: &[CallSite]) -> bool {
    // Parts of names that both mangling schemes contain.
    const HANDLERS: &[&str] = &["18handle_alloc_error", "8rust_oom"];
    names(images, sites).any(|name| HANDLERS.iter().any(|part| name.contains(part)))
}

/// Returns the end of a program's `main`, for findings that are detected after it has returned.
pub fn end_of_main(program: &Program) -> Option<SourceFrame> {
    let mut end: Option<SourceFrame> = None;
    for function in &program.functions {
        let everett_ir::code::Body::Code(code) = &function.body else {
            continue;
        };
        for id in code.locations.iter().flatten() {
            let place = program.location(*id);
            let (name, file) = (program.string(place.function), program.string(place.file));
            if name != "main" || program.library.contains(file) || file.is_empty() {
                continue;
            }
            if end.as_ref().is_none_or(|end| end.line < place.line) {
                end = Some(SourceFrame {
                    function: name.to_owned(),
                    file: file.to_owned(),
                    line: place.line,
                    column: place.column,
                    library: false,
                });
            }
        }
    }
    end
}

/// Returns the kind of finding for an abort: the runtimes of C++ and Rust abort on uncaught
/// exceptions and panics.
pub fn kind_of_abort(images: &[Image], sites: &[CallSite]) -> BugKind {
    let names = || names(images, sites);
    // `core::panicking` and `std::panicking` in both mangling schemes.
    const PANIC: &[&str] = &["4core9panicking", "3std9panicking", "rust_panic"];
    const TERMINATE: &[&str] = &[
        "_ZSt9terminatev",
        "_ZSt11__terminate",
        "__clang_call_terminate",
    ];
    if names().any(|name| PANIC.iter().any(|part| name.contains(part))) {
        BugKind::Panic
    } else if names().any(|name| TERMINATE.iter().any(|start| name.starts_with(start))) {
        BugKind::UncaughtException
    } else {
        BugKind::Abort
    }
}

/// Returns the frame to name first: the innermost one in the user's code, otherwise the innermost.
pub fn principal(frames: &[SourceFrame]) -> Option<&SourceFrame> {
    frames
        .iter()
        .find(|frame| !frame.is_library() && frame.line != 0)
        .or(frames.first())
}
