//! The command line of the explored program: its concrete and symbolic parts.

use everett_linux::{Argument, Contents, FaultFilter, FaultOptions, FileSpec, HostConfig, Stdin};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result, bail};

/// The names of symbolic files: A, B, C, …, as in KLEE.
const FILE_NAMES: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Maximum size of one symbolic input in bytes. A path holds data about each byte, so far less is
/// of use.
const MAX_SYMBOLIC: u32 = 1 << 26;

/// Refuses symbolic inputs that are too large for any search.
pub(crate) fn expect_feasible(config: &HostConfig) -> Result<()> {
    let args = config.args.iter().chain(&config.env);
    let args = args.map(|argument| match argument {
        Argument::Concrete(_) => 0,
        Argument::Symbolic { max_len } | Argument::Prefixed { max_len, .. } => *max_len,
        Argument::SymbolicMany { max, max_len, .. } => max.saturating_mul(*max_len),
    });
    let files = config.files.iter().map(|file| match file.contents {
        Contents::Symbolic { size } | Contents::SymbolicBetween { most: size, .. } => size,
        _ => 0,
    });
    let stdin = match config.stdin {
        Stdin::Symbolic { size } => size,
        _ => 0,
    };
    let largest = args.chain(files).chain([stdin]).max().unwrap_or(0);
    if largest > MAX_SYMBOLIC {
        bail!(
            Usage,
            "a symbolic input of {largest} bytes is too large; at most {MAX_SYMBOLIC} bytes can be symbolic"
        );
    }
    Ok(())
}

/// Refuses more symbolic arguments than KLEE has names for.
pub(crate) fn expect_few_arguments(config: &HostConfig) -> Result<()> {
    const MOST: u64 = 100;
    let count = config.args.iter().map(|argument| match argument {
        Argument::Concrete(_) => 0,
        Argument::Symbolic { .. } | Argument::Prefixed { .. } => 1,
        Argument::SymbolicMany { max, .. } => u64::from(*max),
    });
    if count.sum::<u64>() > MOST {
        bail!(Usage, "No more than {MOST} symbolic arguments allowed.");
    }
    Ok(())
}

/// Builds the configuration of the host from the words after the program. Words that begin with
/// `--sym-` declare symbolic input in KLEE's syntax, others of its runtime failures of calls; all
/// others are concrete arguments.
pub(crate) fn host_config(
    program: &Path,
    words: &[OsString],
    env: &[String],
) -> Result<HostConfig> {
    let mut config = HostConfig {
        args: vec![Argument::Concrete(program.as_os_str().as_bytes().to_vec())],
        env: env
            .iter()
            .map(|variable| Argument::Concrete(variable.clone().into_bytes()))
            .collect(),
        ..HostConfig::default()
    };
    let mut words = Words::of(words);
    while let Some(word) = words.next_option() {
        match word
            .to_str()
            .map(|word| word.replacen("--", "-", 1))
            .as_deref()
        {
            Some("-sym-arg") => {
                let max_len = words.number("a length")?;
                config.args.push(Argument::Symbolic { max_len });
            }
            Some("-sym-args") => config.args.push(symbolic_arguments(&mut words)?),
            Some("-sym-stdin") => {
                let size = words.number("a size")?;
                config.stdin = Stdin::Symbolic { size };
            }
            Some("-sym-files") => add_symbolic_files(&mut words, &mut config)?,
            Some("-sym-file") => {
                let (name, size) = words.name_and_size()?;
                let contents = symbolic_contents(&size.to_string_lossy())?;
                let name = name.as_bytes();
                config.files.push(FileSpec::new(name, contents, 0o644));
            }
            Some("-sym-env") => config.env.push(symbolic_variable(&mut words)?),
            Some("-max-fail") => {
                let most = words.number("a number of failures")?;
                config.options.faults = klee_failures(most);
            }
            Some("-fd-fail") => config.options.faults = klee_failures(1),
            // Output is seen, and writes past the end of a file are executed, without being asked for.
            Some("-sym-stdout") => config.options.symbolic_stdout = true,
            Some("-save-all-writes") => {}
            _ => config
                .args
                .push(Argument::Concrete(word.as_bytes().to_vec())),
        }
    }
    expect_feasible(&config)?;
    Ok(config)
}

/// The words after a program: options, and the arguments of each.
struct Words<'w> {
    left: std::slice::Iter<'w, OsString>,
    /// The option whose arguments are read.
    option: &'w OsStr,
}

impl<'w> Words<'w> {
    fn of(words: &'w [OsString]) -> Words<'w> {
        Words {
            left: words.iter(),
            option: OsStr::new(""),
        }
    }

    fn next_option(&mut self) -> Option<&'w OsStr> {
        self.option = self.left.next()?;
        Some(self.option)
    }

    /// Returns the next word, which is a number; `what` says of what.
    fn number(&mut self, what: &str) -> Result<u32> {
        let option = self.option.display();
        let Some(value) = self.left.next() else {
            bail!(Usage, "{option} needs {what}");
        };
        let text = value.to_string_lossy();
        let number = text.parse::<u32>();
        number
            .map_err(|error| Error::Usage(format!("{option} needs {what}, not {text:?}: {error}")))
    }

    fn name_and_size(&mut self) -> Result<(&'w OsStr, &'w OsStr)> {
        match (self.left.next(), self.left.next()) {
            (Some(name), Some(size)) => Ok((name.as_os_str(), size.as_os_str())),
            _ => bail!(Usage, "{} needs a name and a size", self.option.display()),
        }
    }
}

/// `--sym-args MIN MAX N`
fn symbolic_arguments(words: &mut Words<'_>) -> Result<Argument> {
    let min = words.number("a least number")?;
    let max = words.number("a greatest number")?;
    if min > max {
        bail!(Usage, "Invalid range to --sym-args: {min} is above {max}");
    }
    if max == 0 {
        bail!(Usage, "Invalid range to --sym-args: no arguments at all");
    }
    let max_len = words.number("a length")?;
    Ok(Argument::SymbolicMany { min, max, max_len })
}

/// `--sym-files COUNT N`
fn add_symbolic_files(words: &mut Words<'_>, config: &mut HostConfig) -> Result<()> {
    let count = words.number("a number of files")?;
    let size = words.number("a size")?;
    let most = FILE_NAMES.len();
    if count as usize > most {
        bail!(Usage, "--sym-files {count}: at most {most} files");
    }
    check_symbolic_files(count, size, config)?;
    for name in &FILE_NAMES[..count as usize] {
        config.files.push(FileSpec::symbolic(vec![*name], size));
    }
    config.stdin = Stdin::Symbolic { size };
    Ok(())
}

/// `--sym-env NAME N`
fn symbolic_variable(words: &mut Words<'_>) -> Result<Argument> {
    let (name, size) = words.name_and_size()?;
    let max_len = size
        .to_string_lossy()
        .parse()
        .map_err(|error| Error::Usage(format!("--sym-env NAME SIZE: {error}")))?;
    Ok(Argument::Prefixed {
        prefix: [name.as_bytes(), b"="].concat(),
        name: format!("env-{}", name.to_string_lossy()),
        max_len,
    })
}

/// Refuses what KLEE refuses, with its texts.
fn check_symbolic_files(count: u32, size: u32, config: &HostConfig) -> Result<()> {
    if config.files.iter().any(|file| file.path == FILE_NAMES[..1]) {
        bail!(Usage, "Multiple --sym-files are not allowed");
    }
    if count == 0 {
        bail!(
            Usage,
            "The first argument to --sym-files (number of files) cannot be 0"
        );
    }
    if size == 0 {
        bail!(
            Usage,
            "The second argument to --sym-files (file size) cannot be 0"
        );
    }
    Ok(())
}

/// The calls that fail with KLEE's `--max-fail`, as far as Linux lets them fail. The C library
/// reads and writes files with the vectored ones, too.
const KLEE_FAILURES: [&str; 9] = [
    "read:EIO",
    "readv:EIO",
    "write:EIO",
    "writev:EIO",
    "close:EIO",
    "ftruncate:EIO",
    "chmod",
    "fchmodat",
    "fchmod",
];

fn klee_failures(most: u32) -> FaultOptions {
    FaultOptions {
        most,
        only: KLEE_FAILURES
            .iter()
            .copied()
            .map(FaultFilter::parse)
            .collect(),
        ..FaultOptions::default()
    }
}

/// Parses `SIZE`, or `MIN-MAX` if the size is symbolic, too.
fn symbolic_contents(text: &str) -> Result<Contents> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|error| Error::Usage(format!("--sym-file NAME SIZE, not {text:?}: {error}")))
    };
    match text.split_once('-') {
        None => Ok(Contents::Symbolic {
            size: number(text)?,
        }),
        Some((least, most)) => {
            let (least, most) = (number(least)?, number(most)?);
            if least > most {
                bail!(
                    Usage,
                    "--sym-file: the least size {least} is above the greatest {most}"
                );
            }
            Ok(Contents::SymbolicBetween { least, most })
        }
    }
}
