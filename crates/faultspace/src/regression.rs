//! The folder of a scenario: its text, the output of its commands, and a script that reproduces a
//! failure.

use everett_report::Folder;
use std::fmt::Write;

use crate::error::Result;
use crate::impact::one_line;
use crate::injector::{self, Injection, Means, preload};
use crate::manager::{Ended, Seen};
use crate::results::{Outcome, ScenarioResult};
use crate::settings::{Command, SearchConfig};
use crate::space::Scenario;
use crate::system::quoted;

/// Writes the folder of a scenario.
pub(crate) fn write(
    folder: &Folder,
    config: &SearchConfig,
    scenario: &Scenario,
    result: &ScenarioResult,
    seen: Option<&Seen>,
) -> Result<()> {
    let place = format!("scenarios/{}", result.name);
    folder.write(
        &format!("{place}/scenario.txt"),
        format!("{scenario}\n").as_bytes(),
    )?;
    write_result(folder, result)?;
    if let Some(seen) = seen {
        for (name, output) in ["stdout.txt", "stderr.txt"].iter().zip(&seen.output) {
            folder.write(&format!("{place}/{name}"), output.text.as_bytes())?;
        }
        if result.outcome.is_failure() {
            let name = format!("{place}/replay.sh");
            folder.write(
                &name,
                script(folder, config, scenario, result, seen).as_bytes(),
            )?;
            make_executable(&folder.path().join(name));
        }
    }
    Ok(())
}

/// The core files of a search.
pub(crate) struct Cores {
    most: u64,
    /// The number of bytes of all files.
    bytes: u64,
    /// The number of crashes whose file was not written.
    omitted: u64,
}

impl Cores {
    /// Returns the core files that a folder has, which may have this many bytes.
    pub(crate) fn of(folder: &Folder, most: u64) -> Cores {
        let scenarios = std::fs::read_dir(folder.path().join("scenarios"));
        let lengths = scenarios.into_iter().flatten().flatten().map(|scenario| {
            let core = std::fs::metadata(scenario.path().join("core"));
            core.map_or(0, |core| core.len())
        });
        Cores {
            most,
            bytes: lengths.sum(),
            omitted: 0,
        }
    }

    /// Writes the core file of a crash, unless it exceeds the limit. The first of a cluster is
    /// always written.
    pub(crate) fn write(
        &mut self,
        folder: &Folder,
        result: &ScenarioResult,
        packed: &str,
        is_first: bool,
    ) -> Result<()> {
        let Some(core) = crate::manager::core::unpack(packed) else {
            return Ok(());
        };
        let bytes = self.bytes.saturating_add(core.len() as u64);
        if bytes > self.most && !is_first {
            self.omitted += 1;
            return Ok(());
        }
        self.bytes = bytes;
        folder.write(&format!("scenarios/{}/core", result.name), &core)?;
        Ok(())
    }

    /// Returns a warning if files were not written.
    pub(crate) fn warning(&self) -> Option<String> {
        (self.omitted > 0).then(|| {
            let omitted = everett_report::counted(self.omitted, "crash");
            format!("no core file of {omitted} was written: `cores` in [limits] is reached")
        })
    }
}

/// Writes the result of a scenario.
pub(crate) fn write_result(folder: &Folder, result: &ScenarioResult) -> Result<()> {
    let json = serde_json::to_vec_pretty(result).unwrap_or_default();
    folder.write(&format!("scenarios/{}/result.json", result.name), &json)?;
    Ok(())
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    // If this fails, `sh` can still run the script.
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755));
}

/// Returns the script of a failure, which replays it in isolation. With `--plain`, the script does
/// not need Everett, if a shell can inject the fault and see the failure.
fn script(
    folder: &Folder,
    config: &SearchConfig,
    scenario: &Scenario,
    result: &ScenarioResult,
    seen: &Seen,
) -> String {
    let why = one_line(&result.why.join(", "));
    let shown = one_line(&scenario.to_string());
    let mut text = format!(
        "#!/bin/sh\n# Makes a failure happen again: {shown}\n# {}: {why}\n\
         # Exit code 0: it happened again. 1: it did not. 2: it could not be tried.\n\
         here=$(cd \"$(dirname \"$0\")\" && pwd)\n\
         if [ \"$1\" != --plain ]; then\n\
         \x20 everett=${{EVERETT:-everett}}\n\
         \x20 command -v \"$everett\" >/dev/null && exec \"$everett\" faults replay \"$here\"\n\
         \x20 echo \"$everett is not there: set EVERETT to its path, or see --plain in docs/faults.md\" >&2\n\
         \x20 exit 2\nfi\n",
        result.outcome
    );
    let is_seen = match result.outcome {
        Outcome::Failed | Outcome::Hung => true,
        // The shell sees only how the test itself ended.
        Outcome::Crashed => matches!(seen.test, Ended::Signal(_)),
        _ => false,
    };
    // Only a tracer knows from where a function is called.
    let sites = ["callsite", "stack", "arguments"].into_iter();
    let has_site = sites.filter_map(|name| scenario.get(name)).next();
    let can_inject = match config.injector.as_str() {
        "preload" => has_site.is_none(),
        injector => injector == "script",
    };
    let is_shell = matches!(config.test, Some(Command::Shell(_))) && config.start.is_none();
    let _ = match is_seen && can_inject && is_shell {
        true => write_plain(&mut text, folder, config, scenario, seen),
        false => writeln!(
            text,
            "echo \"this failure needs Everett to be injected or to be seen: there is no --plain\" >&2\nexit 2"
        ),
    };
    text
}

/// Writes a script that needs a shell, and a C compiler for `preload`.
fn write_plain(
    text: &mut String,
    folder: &Folder,
    config: &SearchConfig,
    scenario: &Scenario,
    seen: &Seen,
) -> std::fmt::Result {
    let Some(row) = injector::named(&config.injector) else {
        return Ok(());
    };
    let from = quoted(&config.folder.display().to_string());
    let own = folder.path().canonicalize().unwrap_or_default();
    let skipped = own
        .strip_prefix(&config.folder)
        .ok()
        .and_then(|below| below.components().next());
    let skipped = skipped
        .map(|one| one.as_os_str().to_string_lossy().into_owned())
        .unwrap_or_default();
    writeln!(
        text,
        "echo \"warning: no isolation: the test runs in a copy of its folder, but can change all else\" >&2\n\
         work=$(mktemp -d) || exit 2\ntrap 'rm -rf \"$work\"' EXIT"
    )?;
    writeln!(
        text,
        "for file in {from}/* {from}/.[!.]*; do\n\
         \x20 [ ! -e \"$file\" ] || [ -e \"$file/journal.jsonl\" ] || [ \"${{file##*/}}\" = {} ] || cp -a \"$file\" \"$work\" || exit 2\ndone",
        quoted(if skipped.is_empty() {
            "everett-out"
        } else {
            &skipped
        })
    )?;
    writeln!(text, "cd \"$work\" || exit 2")?;
    let arguments = row.injector.passes_scenario().then_some(scenario);
    let system = crate::system::words(config, scenario, arguments);
    let mut env = crate::system::variables(config, scenario, scenario);
    env.retain(|(name, _)| name != "EVERETT_FOLDER");
    writeln!(text, "export EVERETT_FOLDER=\"$work\"")?;
    let means = Means {
        library: "preload.so".into(),
        proxy: config.proxy.clone(),
    };
    let mut preloaded = String::new();
    if let Ok(injection @ Injection::Preload { .. }) = row.injector.plan(scenario, &means) {
        let compiler = preload::COMPILER.join(" ");
        writeln!(
            text,
            "library=$work/.preload.so\ncp \"$here/../../preload.so\" \"$library\" 2>/dev/null ||\n\
             \x20 {compiler} \"$library\" \"$here/../../preload.c\" || exit 2"
        )?;
        env.extend(preload::variables(&injection, &config.programs));
        preloaded = "LD_PRELOAD=\"$work/.preload.so\" ".to_owned();
    }
    for (name, value) in env {
        writeln!(text, "export {name}={}", quoted(&value))?;
    }
    let words: Vec<String> = system.iter().map(|word| quoted(word)).collect();
    let seconds = config.limits.timeout.as_secs_f64();
    writeln!(
        text,
        "timeout -s KILL {seconds} env {preloaded}{} </dev/null\ncode=$?",
        words.join(" ")
    )?;
    if let Some(Command::Shell(cleanup)) = &config.cleanup {
        writeln!(text, "( {cleanup}\n) >/dev/null 2>&1 </dev/null")?;
    }
    let expected = match &seen.test {
        Ended::Exit(code) => *code,
        Ended::Signal(signal) => 128 + signal,
        _ => 128 + 9,
    };
    writeln!(
        text,
        "echo \"exit code $code; before: {expected}\" >&2\n[ \"$code\" = {expected} ]"
    )
}
