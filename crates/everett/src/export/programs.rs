//! Programs that a host can execute, and further processes that it starts with, in a script.

use everett_linux::{HostConfig, ProcessConfig};
use everett_toolchain::Checks;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{ProcessStart, add_word, below_start, word, write_contents};
use crate::error::{Result, bail};

/// Returns the build of a program with these checks, if there is one, as an absolute path.
pub(super) fn build_with(program: &Path, checks: Option<Checks>) -> Result<PathBuf> {
    let checked = checks.map(|checks| everett_toolchain::checked_path(program, checks));
    let build = checked.filter(|checked| checked.exists());
    Ok(std::path::absolute(build.as_deref().unwrap_or(program))?)
}

/// Writes the commands that copy the programs that `execve` can start to where the host finds them:
/// below its start directory. `natives` has the native programs by image.
pub(super) fn place(
    host: &HostConfig,
    natives: &[PathBuf],
    checks: Option<Checks>,
    text: &mut String,
) -> Result<()> {
    for program in &host.programs {
        let shown = String::from_utf8_lossy(&program.path).into_owned();
        let Some(native) = natives.get(usize::from(program.image.0)) else {
            bail!(NotExportable, "the run has no native program {shown}");
        };
        let file = build_with(native, checks)?;
        let Some(path) = below_start(&program.path, &host.cwd) else {
            let place = Path::new(std::ffi::OsStr::from_bytes(&program.path));
            let is_same = |place: PathBuf, file: PathBuf| place == file;
            let found = place.canonicalize().ok().zip(file.canonicalize().ok());
            if found.is_some_and(|(place, file)| is_same(place, file)) {
                let _ = writeln!(text, "# The program {shown} is where the run found it.");
                continue;
            }
            bail!(
                NotExportable,
                "it executes {shown}, a place that a script should not write to"
            );
        };
        let path = word(&path);
        let _ = writeln!(
            text,
            "mkdir -p -- \"$(dirname -- {path})\" && cp -- {} {path} || exit 2",
            word(file.as_os_str().as_bytes())
        );
    }
    Ok(())
}

/// Writes the commands that set the positional parameters to a further process of a host, in its
/// working directory; its input is in `stdin`.
pub(super) fn further_process(
    (host, other): (&HostConfig, &ProcessConfig),
    program: &Path,
    start: &ProcessStart,
    (cwd, stdin): (&str, &str),
    text: &mut String,
) -> Result<()> {
    let folder = match other.cwd == host.cwd {
        true => Some(Vec::new()),
        false => below_start(&other.cwd, &host.cwd),
    };
    let Some(folder) = folder else {
        let shown = String::from_utf8_lossy(&other.cwd).into_owned();
        bail!(
            NotExportable,
            "a process starts in {shown}, a place that a script should not write to"
        );
    };
    let folder = word(&folder);
    let _ = writeln!(
        text,
        "cd \"{cwd}\" && mkdir -p -- ./{folder} && cd ./{folder} || exit 2"
    );
    write_contents(text, &start.stdin, &format!("\"{stdin}\""));
    text.push_str("set -- env -i\n");
    for variable in &start.env {
        add_word(text, variable);
    }
    let program = word(program.as_os_str().as_bytes());
    let _ = writeln!(text, "set -- \"$@\" {program}");
    for arg in start.args.iter().skip(1) {
        add_word(text, arg);
    }
    Ok(())
}
