//! `exec`: runs a program concretely on the kernel model, as if it were started natively. It explores nothing and
//! writes no results.

use everett_engine::SourceFrame;
use everett_expr::Arena;
use everett_linux::{Argument, Ending, Host, HostConfig, HostExit, HostOptions, Stdin, Stream};
use everett_vm::{
    BugKind, ConcreteOracle, Coverage, ExecContext, Image, Interrupt, StackTable, VmOptions,
};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Result, bail};
use crate::host::HostSpec;
use crate::session::Session;

/// A program to run concretely.
#[derive(Clone, Debug, Default)]
pub struct ExecSpec {
    /// Report system calls as they happen.
    pub logs_calls: bool,
    /// The host that it runs on.
    pub host: HostSpec,
    /// The environment of the program.
    pub env: Vec<(OsString, OsString)>,
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
    /// How it ended.
    pub ending: ExecEnding,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// How a program ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExecEnding {
    /// It exited with this status.
    Exit(u64),
    /// This signal killed it.
    Signal(i32),
    /// It ended its path itself, without a status.
    Ended,
    /// All threads wait for events that cannot occur.
    Idle,
    /// It has a bug.
    Bug {
        /// The kind.
        kind: BugKind,
        /// A one-line description.
        message: String,
        /// The stack at the time of the bug.
        stack: Vec<SourceFrame>,
    },
    /// It could not be started.
    NotStarted {
        /// The kind.
        kind: BugKind,
        /// A one-line description.
        message: String,
    },
}

/// Instructions between checks for new output.
const SLICE: u64 = 1_000_000;

/// Runs a program concretely.
pub fn exec(spec: &ExecSpec, session: &Session, console: &mut dyn Console) -> Result<ExecResult> {
    let Some(program) = spec.command.first() else {
        bail!(Usage, "there is no program to run");
    };
    let images = spec.host.load(Path::new(program), true)?;
    let mut config = HostConfig {
        args: spec
            .command
            .iter()
            .map(|arg| Argument::Concrete(arg.as_bytes().to_vec()))
            .collect(),
        env: spec.env.iter().map(variable).collect(),
        stdin: Stdin::Live,
        options: HostOptions {
            crashes_end_all: false,
            logs_calls: spec.logs_calls,
            faults_to_handlers: true,
            ..HostOptions::default()
        },
        ..HostConfig::default()
    };
    spec.host.apply(&mut config, session)?;
    let mut machine = Machine {
        arena: Arena::new(),
        oracle: ConcreteOracle::default(),
        stacks: StackTable::default(),
        coverage: Coverage::of(&images),
        options: VmOptions::default(),
        shown: [0, 0],
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
    let warnings = host.warnings().iter().map(ToString::to_string).collect();
    Ok(ExecResult { ending, warnings })
}

fn variable((name, value): &(OsString, OsString)) -> Argument {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    Argument::Concrete(bytes)
}

/// The execution context of a concrete host.
struct Machine {
    arena: Arena,
    oracle: ConcreteOracle,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    /// Bytes of stdout and stderr that were passed to the console.
    shown: [u64; 2],
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
            let exit = host.run(self.around(images), SLICE);
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

    fn show_output(&mut self, host: &Host, console: &mut dyn Console) -> Result<()> {
        let streams = [
            (Stream::Stdout, OutputStream::Stdout),
            (Stream::Stderr, OutputStream::Stderr),
        ];
        for (at, (stream, shown)) in streams.into_iter().enumerate() {
            let output = host.output(stream);
            if output.len() == self.shown[at] {
                continue;
            }
            let zeros = |_: everett_expr::ArrayId, _: u32| 0u8;
            let fresh = &output.evaluate_from(self.shown[at], &mut self.arena, &zeros);
            console.write(shown, fresh)?;
            self.shown[at] = output.len();
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
            },
        }
    }
}
