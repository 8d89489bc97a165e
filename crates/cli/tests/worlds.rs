//! Explores every scenario under `examples/` and `tests/worlds/` with every state mapping; each
//! scenario is a test.
//!
//! A scenario declares its expectations in comments at its head:
//!
//! ```text
//! # finds: KIND KIND …      kinds of its findings; without this line, none are expected
//! # worlds: 6               worlds that reach their end, under any state mapping
//! # least worlds: 50        minimum, if the number depends on the version of a server
//! # messages: none          findings come before anything is sent
//! # needs: memcached        a target of `tests/targets/`, whose programs are put into the folder
//! # mappings: sds           only these state mappings: others would take too long
//! # most states: sds 68, cow 99    maximum numbers of states of these mappings
//! # warns: TEXT             a warning of the summary begins with this
//! # tests: none             there are too many worlds to write a test for each
//! # complete: no            a limit cuts worlds off
//! ```
//!
//! Unless declared otherwise, the exploration must be complete. Every mapping must reach the same
//! worlds. Every world and every finding is followed in a world of its own and must end as recorded
//! (with all mappings if there are few worlds, otherwise with the first); with one of the mappings,
//! also on the native programs.

mod common;

#[path = "common/threads.rs"]
mod threads;

use common::{check_weights, count, everett, expect, folder, mappings, summary};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// If this variable is set (`./test fast`), one in so many scenarios is tested.
const FAST: &str = "EVERETT_TEST_FAST";
const FAST_PART: usize = 10;
/// Maximum number of worlds that are followed with mappings other than the first, which reach the
/// same ones.
const MOST_FOLLOWED: u64 = 50;

/// Maximum number of worlds that are replayed natively.
const MOST_REPLAYED: u64 = 400;

fn main() {
    let arguments = threads::arguments();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut trials = Vec::new();
    for place in ["examples", "tests/worlds"] {
        for example in listed(&root.join(place)) {
            let built: Arc<OnceLock<PathBuf>> = Arc::default();
            for scenario in listed(&example) {
                if scenario
                    .extension()
                    .is_none_or(|extension| extension != "toml")
                {
                    continue;
                }
                // Trojan messages, fault searches and live peers have their own tests.
                let is_other = |text: &String| {
                    let keys = ["\n[trojans]", "\ninjector = ", "\n[peer."];
                    keys.iter().any(|key| text.contains(key))
                };
                if fs::read_to_string(&scenario).is_ok_and(|text| is_other(&text)) {
                    continue;
                }
                let name = scenario.strip_prefix(&root).unwrap_or(&scenario).display();
                let (name, example, built) = (name.to_string(), example.clone(), built.clone());
                trials.push(Trial::test(name, move || {
                    let folder = built.get_or_init(|| build(&example));
                    explore(folder, &scenario)
                }));
            }
        }
    }
    if std::env::var_os(FAST).is_some() {
        trials = trials.into_iter().step_by(FAST_PART).collect();
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns what a scenario says in its header.
fn said(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines();
    lines.find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
}

/// Puts the programs of a target into a folder; those of another build have its level after their
/// names.
fn put_target(name: &str, folder: &Path, level: Option<&str>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut make = Command::new(root.join("tests/targets/make"));
    make.args(level)
        .arg(name)
        .env("EVERETT", env!("CARGO_BIN_EXE_everett"));
    let output = expect(&mut make, 0);
    let built = String::from_utf8(output.stdout).expect("a path");
    for path in listed(Path::new(built.trim())) {
        if path.extension().is_some_and(|extension| extension == "bc") {
            let program = path.with_extension("");
            let name = program.file_name().expect("a name").to_string_lossy();
            let name = format!("{name}{}", level.unwrap_or_default());
            fs::copy(&program, folder.join(&name)).expect("it can be copied");
            fs::copy(&path, folder.join(format!("{name}.bc"))).expect("it can be copied");
        }
    }
}

/// Copies an example with its programs.
fn build(example: &Path) -> PathBuf {
    let name = example.file_name().expect("a name").to_string_lossy();
    let folder = folder(&format!("worlds_{name}"));
    for path in listed(example) {
        let name = path.file_name().expect("a name");
        fs::copy(&path, folder.join(name)).expect("it can be copied");
    }
    let scenarios = listed(example).into_iter();
    let needs: BTreeSet<String> = scenarios
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter_map(|path| said(&fs::read_to_string(path).ok()?, "# needs:"))
        .collect();
    for target in &needs {
        put_target(target, &folder, None);
    }
    for path in listed(&folder) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("c" | "rs")) {
            let program = path.with_extension("");
            compile(&folder, &program, &program, "-O1");
        }
    }
    folder
}

/// Builds a program from the source next to it.
fn compile(folder: &Path, source: &Path, program: &Path, level: &str) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut command = everett(folder);
    let source = match source.with_extension("c") {
        c if c.exists() => {
            let flags = ["cc", "-g", level, "-Wall", "-I"];
            command.args(flags).arg(&include);
            c
        }
        _ => {
            let level = format!("opt-level={}", &level[2..]);
            command.args(["rustc", "--edition", "2024", "-g", "-C", &level]);
            source.with_extension("rs")
        }
    };
    expect(command.arg("-o").arg(program).arg(source), 0);
}

fn explore(folder: &Path, scenario: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(scenario)?;
    let said = |key: &str| said(&text, key);
    let finds = said("# finds:").unwrap_or_default();
    let finds: BTreeSet<&str> = finds.split_whitespace().collect();
    let file = scenario.file_name().expect("a name").to_string_lossy();
    let mut reached: BTreeMap<&str, (u64, BTreeSet<String>)> = BTreeMap::new();
    let wanted = said("# mappings:").unwrap_or_else(|| mappings().collect::<Vec<_>>().join(" "));
    let default = mappings().next().expect("a mapping");
    let tells = said("# tests:").is_none();
    for mapping in mappings() {
        if !wanted.split_whitespace().any(|name| name == mapping) {
            continue;
        }
        let out = folder.join(format!("out-{file}-{mapping}"));
        let mut run = everett(folder);
        run.args(["run", "--max-time", "1000s", "--mapping", mapping]);
        run.arg("--out").arg(&out);
        run.arg(if tells { "--all-tests" } else { "--no-tests" });
        expect(run.arg(&*file), i32::from(!finds.is_empty()));
        let summary = summary(&out);
        if summary["complete"] != said("# complete:").is_none() {
            return Err(format!("{mapping}: not all was explored: {summary:#}").into());
        }
        check_summary((mapping, &summary), (&text, &finds), &out)?;
        let worlds = count(&summary, "/worlds");
        let tests = listed(&out.join("tests"));
        let told: Result<BTreeSet<String>, Failed> =
            tests.iter().map(|path| what_happens(path)).collect();
        reached.insert(mapping, (worlds, told?));
        if worlds <= MOST_FOLLOWED || mapping == default {
            expect(everett(folder).arg("follow").arg(&out), 0);
        }
        let place = scenario.ancestors().nth(2).and_then(Path::file_name);
        let is_example = place.is_some_and(|place| place == "examples");
        if !finds.is_empty() && is_example && mapping == default {
            replay_on_other_builds(folder, &text, &out);
        }
        if tells && worlds <= MOST_REPLAYED && mapping == default {
            expect(everett(folder).arg("replay").arg(&out), 0);
        }
    }
    let first = &reached[default];
    for (mapping, others) in &reached {
        if others.0 != first.0 {
            let (own, other) = (first.0, others.0);
            return Err(format!("{default} reaches {own} worlds, {mapping} {other}").into());
        }
        if let Some(world) = first.1.symmetric_difference(&others.1).next() {
            return Err(format!("only one of {default} and {mapping} reaches {world}").into());
        }
    }
    Ok(())
}

/// Checks the summary of an exploration under a mapping: findings, warnings and numbers are what the
/// scenario says.
fn check_summary(
    (mapping, summary): (&str, &Value),
    (scenario, finds): (&str, &BTreeSet<&str>),
    out: &Path,
) -> Result<(), Failed> {
    let said = |key: &str| said(scenario, key);
    check_weights(summary);
    let found = summary["findings"].as_array().expect("findings");
    if let Some(other) = found.iter().find(|one| one["confirmed"] != "confirmed") {
        return Err(format!("{mapping}: a finding is not confirmed natively: {other:#}").into());
    }
    let found: BTreeSet<&str> = found
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    if found != *finds {
        return Err(format!("{mapping}: findings {found:?}, expected {finds:?}").into());
    }
    for number in 1..=summary["findings"].as_array().map_or(0, Vec::len) {
        let file = out.join(format!("findings/{number:04}/messages.txt"));
        if fs::read_to_string(&file)?.is_empty() && said("# messages:").is_none() {
            return Err(format!("{mapping}: nothing was sent before finding {number}").into());
        }
    }
    if let Some(expected) = said("# warns:") {
        let warnings = summary["warnings"].as_array().expect("warnings");
        let mut texts = warnings.iter().filter_map(|warning| warning.as_str());
        if !texts.any(|text| text.starts_with(&expected)) {
            return Err(format!("{mapping}: nothing warns of {expected}: {warnings:?}").into());
        }
    }
    let worlds = count(summary, "/worlds");
    if let Some(expected) = said("# worlds:")
        && expected != worlds.to_string()
    {
        return Err(format!("{mapping}: {worlds} worlds, expected {expected}").into());
    }
    let most = said("# most states:").unwrap_or_default();
    let of_mapping = most
        .split(',')
        .find_map(|one| one.trim().strip_prefix(mapping));
    if let Some(most) = of_mapping
        && let states = count(summary, "/states_total")
        && states > most.trim().parse()?
    {
        return Err(format!("{mapping}: {states} states, at most {most} expected").into());
    }
    if let Some(least) = said("# least worlds:")
        && worlds < least.parse()?
    {
        return Err(format!("{mapping}: {worlds} worlds, at least {least} expected").into());
    }
    Ok(())
}

/// Checks that findings of examples also happen on other builds of the programs.
fn replay_on_other_builds(folder: &Path, scenario: &str, out: &Path) {
    /// Scenarios of an example share its programs.
    static BUILDS: Mutex<()> = Mutex::new(());
    let _alone = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let findings = out.join("findings");
    expect(
        everett(folder)
            .arg("replay")
            .arg("--checked")
            .arg(&findings),
        0,
    );
    for level in ["-O0", "-O3"] {
        let mut replay = everett(folder);
        replay.arg("replay");
        for (host, program) in programs(scenario) {
            let build = format!("{program}{level}");
            match said(scenario, "# needs:") {
                _ if folder.join(&build).exists() => {}
                Some(target) if !has_source(&folder.join(&program)) => {
                    put_target(&target, folder, Some(level));
                }
                _ => compile(folder, &folder.join(&program), &folder.join(&build), level),
            }
            replay.arg("--on").arg(format!("{host}=./{build}"));
        }
        expect(replay.arg(&findings), 0);
    }
}

fn has_source(program: &Path) -> bool {
    ["c", "rs"]
        .iter()
        .any(|extension| program.with_extension(extension).exists())
}

/// Returns the hosts of a scenario, or groups of them, and their programs.
fn programs(scenario: &str) -> Vec<(String, String)> {
    let mut programs = Vec::new();
    let mut host = None;
    for line in scenario.lines() {
        if line.starts_with('[') {
            let name = line.strip_prefix("[host.");
            host = name.map(|name| name.trim_matches(['"', ']']).to_owned());
        }
        let program = line.strip_prefix("program = \"./");
        if let (Some(host), Some(program)) = (&host, program) {
            programs.push((host.clone(), program.trim_end_matches('"').to_owned()));
        }
    }
    programs
}

/// Returns the choices in a world and how its hosts end. The inputs are left out, because any
/// possible input may be in a test.
fn what_happens(world: &Path) -> Result<String, Failed> {
    let world: serde_json::Value = serde_json::from_slice(&fs::read(world)?)?;
    let mut told = String::new();
    for (name, trace) in world["hosts"].as_object().expect("hosts") {
        told.push_str(&format!("{name}: {} {}\n", trace["choices"], trace["end"]));
    }
    Ok(told)
}
