//! The tools as separate programs, for builds that take names of programs and not subcommands.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Tool;
use crate::driver;
use crate::error::{IoContext, ToolchainError};

/// The prefix of the names of the links.
const PREFIX: &str = "everett-";

/// The tools that builds call by name.
const LINKED: [Tool; 4] = [Tool::Cc, Tool::Cxx, Tool::Ar, Tool::Ranlib];

/// The toolchain file for CMake, beside the links.
const CMAKE_FILE: &str = "everett.cmake";
const CMAKE: &str = include_str!("../runtime/everett.cmake");

/// The name of the link that takes KLEE's command line.
const KLEE: &str = "klee";

/// Fills a folder with `everett-cc`, `everett-c++`, `everett-ar`, `everett-ranlib` and
/// `everett-klee`, which are links to the running executable, and with a toolchain file for CMake.
/// Returns the created files.
pub fn install_tools(folder: &Path) -> Result<Vec<PathBuf>, ToolchainError> {
    let executable = driver::executable()?;
    fs::create_dir_all(folder).context("create", folder)?;
    let mut made = Vec::new();
    for name in LINKED.iter().map(|tool| tool.name()).chain([KLEE]) {
        let link = folder.join(format!("{PREFIX}{name}"));
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).context("remove", &link)?;
        }
        symlink(&executable, &link).context("create", &link)?;
        made.push(link);
    }
    let file = folder.join(CMAKE_FILE);
    fs::write(&file, CMAKE).context("write", &file)?;
    made.push(file);
    Ok(made)
}

/// Returns whether a program stands for KLEE by its name: `klee` or `everett-klee`.
pub fn is_klee(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.strip_prefix(PREFIX).unwrap_or(name) == KLEE)
}

impl Tool {
    /// Returns the tool for the path of a program such as `everett-cc`.
    pub fn from_program(program: &Path) -> Option<Tool> {
        let name = program.file_name()?.to_str()?.strip_prefix(PREFIX)?;
        Tool::from_name(name).filter(|tool| LINKED.contains(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_stand_for_tools_by_their_names() {
        let tool = |path: &str| Tool::from_program(Path::new(path));
        assert_eq!(tool("everett-cc"), Some(Tool::Cc));
        assert_eq!(tool("/usr/local/bin/everett-c++"), Some(Tool::Cxx));
        assert_eq!(tool("./everett-ranlib"), Some(Tool::Ranlib));
        for other in ["everett", "cc", "everett-ld", "everett-cc/everett", ""] {
            assert_eq!(tool(other), None, "{other}");
        }
    }

    #[test]
    fn installing_again_replaces_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bin");
        for _ in 0..2 {
            let made = install_tools(&target).unwrap();
            assert_eq!(made.len(), LINKED.len() + 2);
            assert!(made.iter().all(|path| path.is_file()), "{made:?}");
        }
    }
}
