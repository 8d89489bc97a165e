//! `preload`: fails libc functions of dynamically linked programs, with a library that is built for
//! the run and preloaded into their processes. Each process counts its own calls.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    CALL_ATTRIBUTES, CallFault, Injection, Injector, Means, Site, errno, errno_number, function,
    numbers, retval,
};
use crate::error::{Error, Result};
use crate::manager::{Injected, Seen};
use crate::space::{Fault, Scenario};
use everett_linux::functions::{FUNCTIONS, named};

/// The injector.
pub(super) struct Preload;

impl Injector for Preload {
    fn plan(&self, scenario: &Scenario, means: &Means) -> Result<Injection, String> {
        let faults = scenario.faults.iter().map(call_fault);
        Ok(Injection::Preload {
            library: means.library.clone(),
            faults: faults.collect::<Result<_, _>>()?,
            counts: false,
            by_site: false,
        })
    }

    fn attributes(&self) -> &'static [&'static str] {
        CALL_ATTRIBUTES
    }
}

fn call_fault(fault: &Fault) -> Result<CallFault, String> {
    let name = function(fault)?;
    let Some(function) = named(&name) else {
        return Err(format!(
            "{name} is not a libc function that can be failed; injector ptrace has system calls"
        ));
    };
    let (first, last) = numbers(fault)?;
    let usual = function.errnos.first().and_then(|name| errno_number(name));
    Ok(CallFault {
        function: function.name.to_owned(),
        call: None,
        first,
        last,
        errno: errno(fault)?.or(usual).unwrap_or(0),
        retval: match (retval(fault)?, errno(fault)?) {
            (Some(retval), _) => retval,
            (None, Some(errno)) if function.returns_error() => errno.into(),
            (None, _) => function.retval,
        },
        site: Site::of(fault),
    })
}

/// Returns the source of the library.
pub fn source() -> String {
    let template = include_str!("preload.c");
    let mut functions = String::new();
    let mut symbols = String::new();
    let mut wrappers = String::new();
    let mut count = 0;
    for (number, function) in FUNCTIONS.iter().enumerate() {
        let _ = write!(
            functions,
            "{{\"{}\", {}, 0}},",
            function.name,
            u8::from(function.is_done)
        );
        for name in std::iter::once(&function.name).chain(function.aliases) {
            let stream = stream_argument(function.name, name);
            let _ = write!(symbols, "{{\"{name}\", {number}, {stream}, 0}},");
            let _ = writeln!(wrappers, "WRAP({name}, {count})");
            count += 1;
        }
    }
    format!("#define FUNCTIONS {functions}\n#define SYMBOLS {symbols}\n{template}\n{wrappers}")
}

/// Returns which argument of a function is the stream whose error indicator a failure sets, or -1.
fn stream_argument(function: &str, symbol: &str) -> i32 {
    let argument = match function {
        "fflush" => 0,
        "fputs" => 1,
        "fgets" | "getline" => 2,
        "fread" | "fwrite" | "getdelim" => 3,
        _ => return -1,
    };
    // Checked functions also have the size of the buffer.
    argument + i32::from(symbol.ends_with("_chk"))
}

/// The number by which the library asks the tracer about call sites. Linux has no such call.
pub(crate) const ASK_TRACER: u32 = 1022;

/// The command that compiles the library; the output and the source follow.
pub const COMPILER: &[&str] = &["cc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", "-o"];

/// Builds the library in a folder, unless it exists.
pub fn build(folder: &Path) -> Result<PathBuf> {
    let (source_file, library) = (folder.join("preload.c"), folder.join("preload.so"));
    let source = source();
    if library.exists() && std::fs::read_to_string(&source_file).is_ok_and(|known| known == source)
    {
        return Ok(library);
    }
    std::fs::write(&source_file, source).map_err(Error::writing(&source_file))?;
    let made = Command::new(COMPILER[0])
        .args(&COMPILER[1..])
        .arg(&library)
        .arg(&source_file)
        .output();
    match made {
        Ok(made) if made.status.success() => Ok(library),
        Ok(made) => {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            Err(Error::Setup(format!(
                "the library of injector preload cannot be built:\n{said}"
            )))
        }
        Err(error) => Err(Error::Setup(format!(
            "injector preload needs a C compiler, and `cc` cannot be run: {error}"
        ))),
    }
}

/// Returns the environment variables that configure the library.
pub fn variables(injection: &Injection, programs: &[String]) -> Vec<(String, String)> {
    let Injection::Preload { faults, .. } = injection else {
        return Vec::new();
    };
    let text = |fault: &CallFault| {
        let CallFault {
            function,
            first,
            last,
            retval,
            errno,
            site,
            ..
        } = fault;
        // The arguments of each call differ, so the library asks each time.
        let asks = site.as_ref().map_or(0, |site| match site.arguments {
            Some(_) => 2,
            None => 1,
        });
        format!("{function}:{first}:{last}:{retval}:{errno}:{asks}")
    };
    let happening = faults.iter().filter(|fault| fault.first > 0);
    let faults: Vec<String> = happening.map(text).collect();
    vec![
        ("EVERETT_PRELOAD_FAULTS".to_owned(), faults.join(";")),
        ("EVERETT_PRELOAD_PROGRAMS".to_owned(), programs.join(",")),
        ("EVERETT_PRELOAD_SHELLS".to_owned(), super::SHELLS.join(",")),
    ]
}

/// Parses the log of the library.
pub(crate) fn read_log(text: &str, seen: &mut Seen) {
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        if let ["I", program, function, number, stack] = words[..] {
            seen.injected.push(Injected {
                program: program.to_owned(),
                function: function.to_owned(),
                number: number.parse().unwrap_or(0),
                arguments: String::new(),
                stack: stack
                    .split('|')
                    .filter(|frame| !frame.is_empty())
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
}

/// Parses the counts of a process: its program, and how often it called each function.
pub(crate) fn read_counts(bytes: &[u8]) -> Option<(String, Vec<(&'static str, u64)>)> {
    let (name, counts) = bytes.split_at_checked(64)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(64);
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    let counts = counts
        .chunks_exact(8)
        .zip(FUNCTIONS)
        .map(|(bytes, function)| {
            let count = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            (function.name, count)
        });
    Some((name, counts.filter(|(_, count)| *count > 0).collect()))
}
