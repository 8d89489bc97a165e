//! Programs from packages of the Python index, installed once, with pinned version and hash.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Notify;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::process::{self, BuildTime};

/// A pinned package and the program in it.
struct Wheel {
    package: &'static str,
    version: &'static str,
    sha256: &'static str,
    /// The program, relative to the folder that the package is installed into.
    program: &'static str,
    /// The environment variable with a program to use instead.
    variable: &'static str,
}

const ZIG: Wheel = Wheel {
    package: "ziglang",
    version: "0.17.0",
    sha256: "97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b",
    program: "ziglang/zig",
    variable: "EVERETT_ZIG",
};

const Z3: Wheel = Wheel {
    package: "z3-solver",
    version: "5.4.0.0",
    sha256: "0549ffad554178a59480ba41b5279cfbb27053ed5a2da269ae1a48214d5db34b",
    program: "bin/z3",
    variable: "EVERETT_Z3",
};

/// Returns the path of the compiler package's program: `$EVERETT_ZIG`, or the pinned one, installed
/// on first use.
pub fn ensure_zig(notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    ensure(&ZIG, &BuildTime::from_now(None), notify)
}

/// Returns the path of the compiler package's program, if it is installed.
pub fn installed_zig() -> Option<PathBuf> {
    let own = env::var_os(ZIG.variable).filter(|value| !value.is_empty());
    let program = match own {
        Some(path) => PathBuf::from(path).canonicalize().ok()?,
        None => folder_of(&ZIG).ok()?.join(ZIG.program),
    };
    program.is_file().then_some(program)
}

/// Returns the folder of a package, installed or not.
fn folder_of(wheel: &Wheel) -> Result<PathBuf, ToolchainError> {
    Ok(cache::folder()?.join(format!("{}-{}", wheel.package, wheel.version)))
}

/// Returns the path of the z3 program: `$EVERETT_Z3`, or the pinned one, installed on first use if
/// that takes no longer than `time`.
pub fn ensure_z3(time: Option<Duration>, notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    ensure(&Z3, &BuildTime::from_now(time), notify)
}

fn ensure(wheel: &Wheel, time: &BuildTime, notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    if let Some(path) = env::var_os(wheel.variable).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(path);
        return match path.canonicalize() {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(ToolchainError::NoSuchOverride {
                variable: wheel.variable,
                path,
            }),
        };
    }
    let folder = folder_of(wheel)?;
    cache::make_once(&folder, time, |temporary| {
        notify(&format!(
            "installing {} {} (first use only)",
            wheel.package, wheel.version
        ));
        install(wheel, (temporary, &folder), time)
    })?;
    Ok(folder.join(wheel.program))
}

fn install(
    wheel: &Wheel,
    (temporary, folder): (&Path, &Path),
    time: &BuildTime,
) -> Result<(), ToolchainError> {
    let failed = |reason: String| ToolchainError::Install {
        package: wheel.package,
        version: wheel.version,
        folder: folder.to_path_buf(),
        reason,
        variable: wheel.variable,
        binary: wheel.program.rsplit('/').next().unwrap_or(wheel.program),
    };
    let requirements = temporary.join("requirements.txt");
    fs::write(&requirements, requirement_line(wheel)).context("write", &requirements)?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
    ])
    .args([
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-compile",
    ])
    .args([
        "--progress-bar",
        "on",
        "--root-user-action",
        "ignore",
        "--target",
    ])
    .arg(temporary)
    .arg("--requirement")
    .arg(&requirements)
    .stdin(Stdio::null())
    // pip prints its progress on standard output, which belongs to the caller of the compiler.
    .stdout(std::io::stderr());
    let started = pip.spawn();
    let mut child =
        started.map_err(|error| failed(format!("python3 cannot be started: {error}")))?;
    let status = process::status_within(&pip, &mut child, time)?;
    if !status.success() {
        return Err(failed(format!(
            "`python3 -m pip install` failed ({status}), see above"
        )));
    }
    if !temporary.join(wheel.program).is_file() {
        return Err(failed(format!("the package has no file {}", wheel.program)));
    }
    Ok(())
}

fn requirement_line(wheel: &Wheel) -> String {
    format!(
        "{}=={} --hash=sha256:{}\n",
        wheel.package, wheel.version, wheel.sha256
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_pin_version_and_hash() {
        for wheel in [ZIG, Z3] {
            let line = requirement_line(&wheel);
            assert!(line.contains(&format!("=={} ", wheel.version)), "{line}");
            let hash = line.trim_end().rsplit(':').next().unwrap();
            assert_eq!(hash.len(), 64);
            assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
