//! The toolchain as a separate program: `everett-cc cc -o prog prog.c`.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use std::ffi::OsString;
use std::process::ExitCode;

use everett_toolchain::{Tool, run};

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let tool = args
        .first()
        .and_then(|name| name.to_str())
        .and_then(Tool::from_name);
    let Some(tool) = tool else {
        eprintln!(
            "usage: everett-cc {{{}}} ARGUMENTS...",
            Tool::NAMES.join("|")
        );
        return ExitCode::from(2);
    };
    args.remove(0);
    match run(tool, &args, &|text| eprintln!("everett: {text}")) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("everett {}: error: {error}", tool.name());
            ExitCode::from(2)
        }
    }
}
