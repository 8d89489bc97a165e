//! One build for many Rust programs: each program is a module of one crate, and the name by which
//! it is started selects the `main` that runs. Building std with every program would take most of
//! the time of the tests.

use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The files of a build.
const SUFFIXES: [&str; 3] = ["", ".bc", ".asan"];

type Build = Arc<OnceLock<Result<(), String>>>;

/// Programs that share their builds, one build for each list of flags.
pub struct Bundle {
    folder: PathBuf,
    sources: Vec<PathBuf>,
    builds: Mutex<BTreeMap<Vec<String>, Build>>,
}

impl Bundle {
    /// Creates a bundle; builds happen on demand.
    pub fn new(folder: PathBuf, sources: Vec<PathBuf>) -> Bundle {
        let builds = Mutex::default();
        Bundle {
            folder,
            sources,
            builds,
        }
    }

    /// Puts a build with these flags at `program`, whose name up to a `-` is that of the source.
    pub fn link(&self, flags: &[String], program: &Path) -> Result<(), Failed> {
        let build = {
            let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
            builds.entry(flags.to_vec()).or_default().clone()
        };
        let name: String = flags.concat();
        let built = self.folder.join(format!("programs{name}"));
        build
            .get_or_init(|| self.build(flags, &built))
            .as_ref()
            .map_err(Failed::from)?;
        for suffix in SUFFIXES {
            fs::hard_link(with_suffix(&built, suffix), with_suffix(program, suffix))?;
        }
        Ok(())
    }

    fn build(&self, flags: &[String], output: &Path) -> Result<(), String> {
        let source = output.with_extension("rs");
        fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        fs::write(&source, self.text()).map_err(|error| error.to_string())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_everett"));
        command
            .args([
                "rustc",
                "--edition",
                "2024",
                "--crate-name",
                "programs",
                "-Awarnings",
            ])
            .args(flags);
        // All of them also share the checked build.
        command.env("EVERETT_ASAN", "1");
        let done = command.arg("-o").arg(output).arg(&source).output();
        let done = done.map_err(|error| error.to_string())?;
        if done.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut arms = String::new();
        for path in &self.sources {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let _ = writeln!(text, "#[path = {path:?}] mod {name};");
            let _ = writeln!(arms, "        {name:?} => run({name}::main),");
        }
        text + &format!(
            "fn run<T: std::process::Termination>(main: fn() -> T) -> std::process::ExitCode {{\n    \
                 // Inlined together, programs would lose lines where they have code in common.\n    \
                 std::hint::black_box(main)().report()\n}}\n\
             fn main() -> std::process::ExitCode {{\n    \
                 let path = std::env::args_os().next().unwrap_or_default();\n    \
                 let name = std::path::Path::new(&path).file_name().and_then(|name| name.to_str());\n    \
                 match name.and_then(|name| name.split('-').next()).unwrap_or_default() {{\n{arms}        \
                 other => panic!(\"no program {{other}}\"),\n    }}\n}}\n"
        )
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    name.into()
}
