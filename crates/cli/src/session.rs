//! What the process provides for the library's operations: memory statistics and interrupts.

use anyhow::{Result, bail};
use everett::{Event, MemoryAccount, Notices, ProcessMemory, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::flags::with_flags;
use crate::{EXIT_FINDINGS, EXIT_INTERRUPTED};

/// The memory of the process and its allocator.
#[derive(Debug)]
struct AllocatedMemory;

impl MemoryAccount for AllocatedMemory {
    fn used(&self) -> u64 {
        ProcessMemory.used()
    }

    fn peak(&self) -> u64 {
        ProcessMemory.peak()
    }

    fn release(&self) {
        // SAFETY: `mi_collect` may be called at any time, from any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

/// Creates the session for an operation that has nothing to write on an interrupt: the process
/// exits.
pub fn session() -> Result<Session> {
    handle_interrupts(interrupt)?;
    new_session()
}

/// Creates the session for an operation that stops on an interrupt and still writes its results. A
/// second interrupt ends the process at once.
pub fn stoppable_session() -> Result<Session> {
    let session = new_session()?;
    let stop = session.stop.clone();
    handle_interrupts(move || {
        INTERRUPTED.store(true, Ordering::SeqCst);
        if stop.swap(true, Ordering::SeqCst) {
            interrupt();
        }
    })?;
    Ok(session)
}

fn new_session() -> Result<Session> {
    let mut session = Session::new();
    session.memory = Arc::new(AllocatedMemory);
    session.ends_process = true;
    session.workers = workers()?;
    session.notices = Notices::new(notice);
    Ok(session)
}

/// Returns the number of workers: that of processors, unless EVERETT_WORKERS sets it.
fn workers() -> Result<u64> {
    let Some(text) = std::env::var_os("EVERETT_WORKERS") else {
        return Ok(std::thread::available_parallelism().map_or(1, |count| count.get() as u64));
    };
    match text.to_str().map(str::parse::<u64>) {
        Some(Ok(count)) if count > 0 => Ok(count),
        _ => bail!(
            "EVERETT_WORKERS must be a positive number, not `{}`",
            text.display()
        ),
    }
}

/// Prints a message of the library.
pub fn notice(text: &str) {
    eprintln!("everett: {}", with_flags(text));
}

/// Prints a message about a file, whose keys are not fields of specs.
pub fn quote(text: &str) {
    eprintln!("everett: {text}");
}

/// Whether the program has a finding: then an interrupt exits with the code of findings.
static FOUND: AtomicBool = AtomicBool::new(false);
/// Whether a debugger gets the keyboard interrupts.
static IGNORES: AtomicBool = AtomicBool::new(false);
/// Whether the operation was interrupted. Its stop flag does not tell: an operation of several
/// threads stops the others if one fails.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Records whether an event is a finding about the program.
pub fn note_event(event: &Event<'_>) {
    let is_found = match event {
        Event::Finding { finding, .. } => !finding.kind.is_tool_limit(),
        Event::Difference { .. } => true,
        _ => false,
    };
    if is_found {
        FOUND.store(true, Ordering::SeqCst);
    }
}

/// Leaves interrupts to a child from now on.
pub fn ignore_interrupts() {
    IGNORES.store(true, Ordering::SeqCst);
}

/// Returns whether the operation was interrupted.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

fn handle_interrupts(handler: impl Fn() + Send + 'static) -> Result<()> {
    Ok(ctrlc::set_handler(move || {
        if !IGNORES.load(Ordering::SeqCst) {
            handler();
        }
    })?)
}

fn interrupt() {
    let code = match FOUND.load(Ordering::SeqCst) {
        true => EXIT_FINDINGS,
        false => EXIT_INTERRUPTED,
    };
    std::process::exit(i32::from(code));
}
