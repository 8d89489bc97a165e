//! `everett exec`: runs a program concretely on the model, as if it were started natively.

use anyhow::Result;
use everett_expr::Arena;
use everett_linux::{Argument, Ending, Host, HostConfig, HostExit, HostOptions, Stdin, Stream};
use everett_vm::{ConcreteOracle, Coverage, ExecContext, Interrupt, StackTable, VmOptions};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::EXIT_ERROR;
use crate::host_args::HostArgs;

/// What `everett exec` is told.
#[derive(clap::Args)]
pub struct ExecArgs {
    /// Print system calls to stderr, as strace does: virtual time, thread, call, result.
    #[arg(long)]
    strace: bool,
    #[command(flatten)]
    host: HostArgs,
    /// The program that `everett cc` made, or its bitcode, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Instructions between looks at the outputs.
const SLICE: u64 = 1_000_000;

/// Runs the program; its exit code is ours.
pub fn exec(args: &ExecArgs) -> Result<u8> {
    let program = PathBuf::from(&args.command[0]);
    let images = args.host.load(&program, true)?;
    let mut config = HostConfig {
        args: args
            .command
            .iter()
            .map(|arg| Argument::Concrete(arg.as_bytes().to_vec()))
            .collect(),
        env: std::env::vars_os().map(variable).collect(),
        stdin: Stdin::Live,
        options: HostOptions {
            crashes_end_all: false,
            logs_calls: args.strace,
            faults_to_handlers: true,
            ..HostOptions::default()
        },
        ..HostConfig::default()
    };
    args.host.apply(&mut config)?;
    let mut session = Session {
        arena: Arena::new(),
        oracle: ConcreteOracle::default(),
        stacks: StackTable::default(),
        coverage: Coverage::of(&images),
        options: VmOptions::default(),
        shown: [0, 0],
    };
    let mut host = match Host::boot(&config, None, &mut session.around(&images)) {
        Ok(host) => host,
        Err(Interrupt::Bug(bug)) => {
            eprintln!("everett: {}: {}", bug.kind.name(), bug.message);
            return Ok(EXIT_ERROR);
        }
        Err(other) => anyhow::bail!("the program cannot be started: {other:?}"),
    };
    loop {
        let exit = host.run(session.around(&images), SLICE);
        session.show_output(&host)?;
        for line in host.take_log() {
            eprintln!("{line}");
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
                let count = std::io::stdin().read(&mut bytes)?;
                host.supply_input(&bytes[..count]);
            }
            HostExit::AtCall(_) => {
                host.take_call();
            }
            HostExit::Ended(ending) => return Ok(session.finish(&images, &host, ending)),
        }
    }
}

fn variable((name, value): (OsString, OsString)) -> Argument {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    Argument::Concrete(bytes)
}

struct Session {
    arena: Arena,
    oracle: ConcreteOracle,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
    /// Bytes of stdout and stderr that were passed on.
    shown: [u64; 2],
}

impl Session {
    fn around<'s>(&'s mut self, images: &'s [everett_vm::Image]) -> ExecContext<'s> {
        ExecContext {
            images,
            arena: &mut self.arena,
            oracle: &mut self.oracle,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        }
    }

    fn show_output(&mut self, host: &Host) -> Result<()> {
        for (at, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let output = host.output(stream);
            if output.len() == self.shown[at] {
                continue;
            }
            let zeros = |_: everett_expr::ArrayId, _: u32| 0u8;
            let fresh = &output.evaluate_from(self.shown[at], &mut self.arena, &zeros);
            if stream == Stream::Stdout {
                std::io::stdout().write_all(fresh)?;
                std::io::stdout().flush()?;
            } else {
                std::io::stderr().write_all(fresh)?;
            }
            self.shown[at] = output.len();
        }
        Ok(())
    }

    fn finish(&mut self, images: &[everett_vm::Image], host: &Host, ending: Ending) -> u8 {
        for warning in host.warnings() {
            eprintln!("everett: {warning}");
        }
        match ending {
            Ending::Exit(status) => {
                let zeros = |_: everett_expr::ArrayId, _: u32| 0u8;
                let mut scratch = everett_expr::EvalScratch::new();
                let status = match status.term {
                    None => status.bits,
                    Some(term) => self.arena.eval(term, &zeros, &mut scratch),
                };
                status as u8
            }
            // As shells report them.
            Ending::Signal(signal) => 128 + signal as u8,
            Ending::EndPath | Ending::SetUp => 0,
            Ending::Idle => {
                eprintln!("everett: all threads wait for what nobody will send");
                0
            }
            Ending::Bug(bug) => {
                eprintln!("everett: {}: {}", bug.kind.name(), bug.message);
                for frame in everett_engine::describe(images, &host.stack()) {
                    eprintln!("    in {} at {}:{}", frame.function, frame.file, frame.line);
                }
                match bug.kind {
                    everett_vm::BugKind::Abort | everett_vm::BugKind::Assertion => 134,
                    kind if kind.is_tool_limit() => EXIT_ERROR,
                    _ => 139,
                }
            }
        }
    }
}
