//! `everett exec`.

use anyhow::Result;
use everett::{Console, ExecSpec, OutputStream};
use std::ffi::OsString;
use std::io::{Read, Write};

use crate::args::HostArgs;
use crate::commands::{Subcommand, code_of_guest};
use crate::session::{notice, session};

/// Arguments of `everett exec`.
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

/// Connects the program to the standard streams of this process.
struct OurConsole;

impl Console for OurConsole {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::io::stdin().read(buffer)
    }

    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> std::io::Result<()> {
        match stream {
            OutputStream::Stdout => {
                std::io::stdout().write_all(bytes)?;
                std::io::stdout().flush()
            }
            OutputStream::Stderr => std::io::stderr().write_all(bytes),
        }
    }

    fn call(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

/// If the program ends by itself, the exit code is the program's.
impl Subcommand for ExecArgs {
    fn run(&self) -> Result<u8> {
        let spec = ExecSpec {
            logs_calls: self.strace,
            host: self.host.spec.clone(),
            max_time: self.host.max_time,
            max_memory: self.host.max_memory,
            command: self.command.clone(),
        };
        let result = everett::exec(&spec, &session()?, &mut OurConsole)?;
        let end = result.ending.notice();
        result
            .warnings
            .iter()
            .chain(&end)
            .for_each(|text| notice(text));
        Ok(code_of_guest(result.ending.guest()))
    }
}
