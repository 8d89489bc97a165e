//! `exec`: runs a program concretely on the kernel model, as if it were started natively. It
//! explores nothing and writes no results.

use everett_engine::SourceFrame;
use everett_expr::Arena;
use everett_linux::{Ending, Host, HostExit, Stream};
use everett_vm::{
    BugKind, ConcreteOracle, Coverage, ExecContext, Image, Interrupt, StackTable, VmOptions,
    made_bytes,
};
use std::ffi::OsString;
use std::time::Duration;

use crate::conclusion::{Conclusion, Guest};
use crate::error::{Result, bail};
use crate::host::HostSpec;
use crate::native::MAX_TIME;
use crate::session::Session;
use crate::spec::RunSpec;

/// A program to run concretely.
#[derive(Clone, Debug, Default)]
pub struct ExecSpec {
    /// Whether system calls are reported as they happen.
    pub logs_calls: bool,
    /// The host on which the program runs.
    pub host: HostSpec,
    /// The time limit; by default an hour.
    pub max_time: Option<Duration>,
    /// Maximum memory that Everett may use; by default 4 GiB.
    pub max_memory: Option<u64>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// The terminal of a program that runs concretely.
pub trait Console {
    /// Reads bytes of standard input; 0 means end of file.
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize>;

    /// Handles output of the program.
    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> std::io::Result<()>;

    /// Handles a system call of the program, in the format of strace.
    fn call(&mut self, _line: &str) {}
}

/// An output stream of a program.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The result of a concrete run.
#[derive(Clone, Debug)]
pub struct ExecResult {
    /// How the program ended.
    pub ending: ExecEnding,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// How a program ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExecEnding {
    /// The program exited with this status.
    Exit(u64),
    /// This signal killed the program.
    Signal(i32),
    /// The program ended its path itself, without a status.
    Ended,
    /// All threads wait for events that cannot occur.
    Idle,
    /// A limit of time or memory was reached; describes it.
    Limit(String),
    /// The program has a bug.
    Bug {
        /// The kind.
        kind: BugKind,
        /// A one-line description.
        message: String,
        /// The stack at the time of the bug.
        stack: Vec<SourceFrame>,
        /// The signal that ends native code, where the kind does not tell it.
        signal: Option<i32>,
    },
    /// The program could not be started.
    NotStarted {
        /// The kind.
        kind: BugKind,
        /// A one-line description.
        message: String,
    },
}

impl ExecEnding {
    /// Returns what the user should know about the end, unless the program ended by itself; for a
    /// bug, the stack follows, a line for each frame.
    pub fn notice(&self) -> Option<String> {
        match self {
            ExecEnding::Signal(signal) => Some(format!("the program is ended by signal {signal}")),
            ExecEnding::Idle => Some("the program is blocked forever".to_owned()),
            ExecEnding::Limit(which) => Some(which.clone()),
            ExecEnding::NotStarted { kind, message } => Some(format!("{}: {message}", kind.name())),
            ExecEnding::Bug {
                kind,
                message,
                stack,
                ..
            } => {
                let frames = stack.iter().map(|frame| {
                    let (function, file, line) = (&frame.function, &frame.file, frame.line);
                    format!("\n    in {function} at {file}:{line}")
                });
                let frames: String = frames.collect();
                Some(format!("{}: {message}{frames}", kind.name()))
            }
            ExecEnding::Exit(_) | ExecEnding::Ended => None,
        }
    }

    /// Returns the end of the program for its caller.
    pub fn guest(&self) -> Guest {
        match self {
            ExecEnding::Exit(status) => Guest::Exit(*status as u8),
            ExecEnding::Signal(signal) => Guest::Signal(*signal),
            ExecEnding::Bug { kind, signal, .. } => {
                signal.map_or_else(|| Guest::of_kind(*kind), Guest::Signal)
            }
            ExecEnding::Limit(_) | ExecEnding::NotStarted { .. } => Guest::Ours(Conclusion::Failed),
            ExecEnding::Idle | ExecEnding::Ended => Guest::Ours(Conclusion::Clean),
        }
    }
}

/// Maximum number of instructions between checks for new output and of the limits.
const SLICE: u64 = 1_000_000;
/// Minimum number of instructions between these checks.
const SHORT_SLICE: u64 = 2_000;
/// Maximum memory that an instruction takes: two pages and the data about them. Instructions that
/// copy whole blocks take more, but no more than the total size of a process's blocks.
const MEMORY_OF_INSTRUCTION: u64 = 3 * 4096;
/// Default memory limit.
const MAX_MEMORY: u64 = 4 << 30;
/// Number of bytes of output that are evaluated and written at once.
const SHOWN_AT_ONCE: usize = 1 << 20;

/// Runs a program concretely.
pub fn exec(spec: &ExecSpec, session: &Session, console: &mut dyn Console) -> Result<ExecResult> {
    let checked = RunSpec {
        host: spec.host.clone(),
        max_time: spec.max_time,
        max_memory: spec.max_memory,
        ..RunSpec::new(spec.command.clone())
    };
    checked.check()?;
    let program = checked.program();
    let lowering = crate::load::Lowering {
        promote: true,
        check_subobjects: false,
        intercepts: checked.host.fails_functions(),
    };
    let images = spec.host.load(program, lowering)?;
    let config = spec.host.live(&spec.command, spec.logs_calls, session)?;
    let max_memory = spec.max_memory.unwrap_or(MAX_MEMORY);
    let mut machine = Machine {
        arena: Arena::new(),
        oracle: ConcreteOracle::default(),
        stacks: StackTable::default(),
        coverage: Coverage::of(&images),
        options: VmOptions {
            max_heap: VmOptions::default().max_heap.min(max_memory),
            ..VmOptions::default()
        },
        limits: ExecLimits {
            memory: max_memory,
            time: spec.max_time.unwrap_or(MAX_TIME),
            session: session.clone(),
        },
    };
    let mut host = match Host::boot(&config, None, &mut machine.around(&images)) {
        Ok(host) => host,
        Err(Interrupt::Bug(bug)) => {
            let ending = ExecEnding::NotStarted {
                kind: bug.kind,
                message: bug.message,
            };
            return Ok(ExecResult {
                ending,
                warnings: Vec::new(),
            });
        }
        Err(other) => bail!(Program, "the program cannot be started: {other:?}"),
    };
    let ending = machine.run(&images, &mut host, console)?;
    let mut warnings = host.warnings().to_vec();
    for refusal in host.refusals() {
        let frames = everett_engine::describe(&images, &refusal.sites);
        let place = everett_engine::principal(&frames);
        let place = place.map(|at| format!(", in {} at {}:{}", at.function, at.file, at.line));
        let place = place.unwrap_or_default();
        warnings.push(format!("{} is not modelled{place}", refusal.what));
    }
    Ok(ExecResult { ending, warnings })
}

/// The execution context of a concrete host.
struct Machine {
    arena: Arena,
    oracle: ConcreteOracle,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    limits: ExecLimits,
}

/// The limits of a run.
struct ExecLimits {
    memory: u64,
    time: Duration,
    session: Session,
}

impl ExecLimits {
    /// Returns the memory that may be allocated before the limits are checked again. The error
    /// describes the limit that is reached.
    fn left(&self) -> Result<u64, String> {
        if self.session.now() >= self.time {
            return Err("the program takes longer than it may; see `max_time`".to_owned());
        }
        let used = self.session.memory.used();
        self.memory.checked_sub(used).ok_or_else(|| self.full())
    }

    fn full(&self) -> String {
        let most = self.memory >> 20;
        format!("the program uses more memory than {most} MiB; see `max_memory`")
    }
}

impl Machine {
    fn around<'s>(&'s mut self, images: &'s [Image]) -> ExecContext<'s> {
        ExecContext {
            images,
            arena: &mut self.arena,
            oracle: &mut self.oracle,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        }
    }

    /// Runs a host to its end.
    fn run(
        &mut self,
        images: &[Image],
        host: &mut Host,
        console: &mut dyn Console,
    ) -> Result<ExecEnding> {
        loop {
            let left = match self.limits.left() {
                Ok(left) => left,
                Err(which) => return Ok(ExecEnding::Limit(which)),
            };
            let slice = (left / MEMORY_OF_INSTRUCTION).clamp(SHORT_SLICE, SLICE);
            let made = made_bytes();
            self.options.most_made = made.saturating_add(left);
            let before = host.instructions();
            let exit = host.run(self.around(images), slice);
            if matches!(exit, HostExit::Suspended) && host.instructions() == before {
                // A single call or instruction needs more than is left.
                return Ok(ExecEnding::Limit(self.limits.full()));
            }
            self.show_output(host, console)?;
            for line in host.take_log() {
                console.call(&line.to_string());
            }
            match exit {
                HostExit::Budget
                | HostExit::Suspended
                | HostExit::Sent
                | HostExit::Horizon
                | HostExit::Exposed
                | HostExit::Waits(_) => {}
                HostExit::NeedsInput => {
                    let mut bytes = [0; 65536];
                    let count = console.read(&mut bytes)?;
                    host.supply_input(&bytes[..count]);
                }
                HostExit::AtCall(_) => {
                    host.take_call();
                }
                HostExit::Ended(ending) => return Ok(self.ending(images, host, ending)),
            }
        }
    }

    fn show_output(&mut self, host: &mut Host, console: &mut dyn Console) -> Result<()> {
        let streams = [
            (Stream::Stdout, OutputStream::Stdout),
            (Stream::Stderr, OutputStream::Stderr),
        ];
        for (stream, shown) in streams {
            if host.output(stream).is_empty() {
                continue;
            }
            let zeros = |_: everett_expr::ArrayId, _: u32| 0u8;
            let fresh = host.take_output(stream);
            for start in (0..fresh.len()).step_by(SHOWN_AT_ONCE) {
                let part = start..start + SHOWN_AT_ONCE as u64;
                let part = fresh.evaluate_range(part, &mut self.arena, &zeros);
                console.write(shown, &part)?;
            }
        }
        Ok(())
    }

    fn ending(&mut self, images: &[Image], host: &Host, ending: Ending) -> ExecEnding {
        match ending {
            Ending::Exit(status) => {
                let zeros = |_: everett_expr::ArrayId, _: u32| 0u8;
                let mut scratch = everett_expr::EvalScratch::new();
                ExecEnding::Exit(match status.term {
                    None => status.bits,
                    Some(term) => self.arena.eval(term, &zeros, &mut scratch),
                })
            }
            Ending::Signal(signal) => ExecEnding::Signal(signal),
            Ending::EndPath | Ending::SetUp => ExecEnding::Ended,
            Ending::Idle => ExecEnding::Idle,
            Ending::Bug(bug) => ExecEnding::Bug {
                kind: bug.kind,
                message: bug.message,
                stack: everett_engine::describe(images, &host.stack()),
                signal: bug.signal,
            },
        }
    }
}
