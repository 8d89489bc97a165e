//! The system under test: runs scenarios, and the same tests without faults.

use everett::{Session, Summary};
use everett_report::Folder;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::injector::{self, Injection, InjectorRow, Means, WorldFault};
use crate::manager::{Job, Seen, WorldRun};
use crate::nodes::{Nodes, run_on};
use crate::settings::{Command, Explore, SearchConfig};
use crate::space::{Fault, Point, Scenario, Space, Value};
use crate::worlds::Worlds;

/// Maximum number of values of an axis that are checked before a search; errors are in single
/// values.
pub(crate) const MOST_VALUES: u64 = 1000;

/// The time that a manager may take beyond the time limits of its commands.
const GRACE: Duration = Duration::from_secs(60);

/// A test without faults: run once, by the first job that needs it.
type Without = Arc<OnceLock<std::result::Result<Arc<Seen>, String>>>;

/// The system under test: commands, or a world.
pub(crate) struct System {
    config: SearchConfig,
    row: &'static InjectorRow,
    means: Means,
    /// The names of all axes of the space, each with the index of its fault.
    names: Vec<(usize, String)>,
    /// The command that starts a manager.
    manager: Vec<OsString>,
    /// The parent of the scratch folders of tests.
    scratch: PathBuf,
    number: AtomicU64,
    without: Mutex<BTreeMap<String, Without>>,
    /// The world, if the system is one.
    worlds: Option<Worlds>,
    /// Other machines that run the tests, instead of managers on this one.
    nodes: Option<Arc<dyn Nodes>>,
    /// The end of the search, if it has a time.
    until: OnceLock<Instant>,
    /// The number of runs so far.
    pub runs: AtomicU64,
}

impl System {
    /// Creates the system that a file describes. Its library is built in `folder`, which also
    /// contains the scratch folders of tests.
    pub(crate) fn new(
        config: &SearchConfig,
        manager: &[OsString],
        folder: &std::path::Path,
    ) -> Result<System> {
        let row = injector::named(&config.injector)
            .ok_or_else(|| Error::Usage(format!("there is no injector {}", config.injector)))?;
        let folder = folder.canonicalize().map_err(Error::reading(folder))?;
        let mut means = Means {
            proxy: config.proxy.clone(),
            ..Means::default()
        };
        if row.name == "preload" {
            means.library = injector::preload::build(&folder)?;
        }
        // A profile has no space.
        let space = Space::parse(&config.space).ok();
        let names = space
            .as_ref()
            .map_or(Vec::new(), |space| space.names().to_vec());
        let worlds = match (row.name, &space) {
            ("model", Some(space)) => Some(Worlds::new(config, calls_of(row, space))?),
            _ => None,
        };
        let scratch = folder.join("scratch");
        std::fs::create_dir_all(&scratch).map_err(Error::writing(&scratch))?;
        Ok(System {
            config: config.clone(),
            row,
            means,
            names,
            manager: manager.to_vec(),
            scratch,
            number: AtomicU64::new(0),
            without: Mutex::default(),
            worlds,
            nodes: None,
            until: OnceLock::new(),
            runs: AtomicU64::new(0),
        })
    }

    /// Lets other machines run the tests.
    pub(crate) fn on(mut self, nodes: Option<Arc<dyn Nodes>>) -> System {
        self.nodes = nodes;
        self
    }

    /// Lets no test wait for another machine beyond the end of the search.
    pub(crate) fn end_at(&self, end: Instant) {
        let _ = self.until.set(end);
    }

    /// Returns the injection of a scenario; an error if the injector does not understand it.
    pub(crate) fn plan(&self, scenario: &Scenario) -> Result<Injection> {
        let planned = self.row.injector.plan(scenario, &self.means);
        let wrong = |why: String| {
            let name = self.row.name;
            Error::Usage(format!("injector {name}: {why} (scenario: {scenario})"))
        };
        let planned = planned.map_err(wrong)?;
        if let (Injection::World(faults), Some(worlds)) = (&planned, &self.worlds) {
            let checked = worlds.check(faults);
            checked.map_err(|error| wrong(error.to_string()))?;
        }
        Ok(planned)
    }

    /// For a world: writes what a replay of its traces needs.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        self.worlds
            .as_ref()
            .map_or(Ok(()), |worlds| worlds.write(folder))
    }

    /// For a world: writes the trace of a failure.
    pub(crate) fn write_trace(
        &self,
        (scenario, known): (&Scenario, &WorldRun),
        folder: &Folder,
        place: &str,
    ) -> Result<()> {
        match (&self.worlds, self.plan(scenario)?) {
            (Some(worlds), Injection::World(faults)) => {
                worlds.write_trace((&faults, known), folder, place)
            }
            _ => Ok(()),
        }
    }

    /// For a world: explores it with the faults of a scenario and symbolic inputs.
    pub(crate) fn explore(
        &self,
        scenario: &Scenario,
        out: &Path,
        settings: &Explore,
        session: &Session,
    ) -> Result<Option<Summary>> {
        match (&self.worlds, self.plan(scenario)?) {
            (Some(worlds), Injection::World(faults)) => {
                worlds.explore(&faults, out, settings, session).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// For a world: checks that it can be explored.
    pub(crate) fn check_explorable(&self, session: &Session) -> Result<()> {
        match &self.worlds {
            Some(worlds) => worlds.check_explorable(&self.config.explore, session),
            None => Ok(()),
        }
    }

    /// Runs a scenario.
    pub(crate) fn run(&self, scenario: &Scenario) -> Result<Seen> {
        if let Some(nodes) = &self.nodes {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let until = self.until.get().copied();
            return run_on(&**nodes, &self.config, scenario, true, until);
        }
        let injection = self.plan(scenario)?;
        self.execute(&self.job(scenario, injection))
    }

    /// Returns whether the commands get the scenario in their arguments.
    pub(crate) fn passes_scenario(&self) -> bool {
        self.row.injector.passes_scenario()
    }

    /// Returns the run of the scenario's test without faults.
    pub(crate) fn without_faults(&self, scenario: &Scenario) -> Result<Arc<Seen>> {
        let test = self.without(scenario);
        let lock = {
            let mut all = self.without.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(test.to_string()).or_default().clone()
        };
        let made = lock.get_or_init(|| {
            let seen = self.run_without(scenario);
            seen.map(Arc::new).map_err(|error| match error {
                Error::Manager(why) => why,
                error => error.to_string(),
            })
        });
        let seen = made.clone().map_err(Error::Manager)?;
        match &seen.start_failure {
            Some(why) => Err(Error::Setup(format!(
                "`start` fails without any fault: {why}"
            ))),
            None => Ok(seen),
        }
    }

    /// Runs the scenario's test without faults.
    pub(crate) fn run_without(&self, scenario: &Scenario) -> Result<Seen> {
        if let Some(nodes) = &self.nodes {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let until = self.until.get().copied();
            return run_on(&**nodes, &self.config, scenario, false, until);
        }
        let injection = self.plan(scenario)?.without_faults();
        self.execute(&self.job_without(&self.without(scenario), injection))
    }

    /// Returns a scenario without the attributes of its faults: the test alone. The meaning of
    /// attributes is unknown for scripts; only `test` certainly describes the test.
    pub(crate) fn without(&self, scenario: &Scenario) -> Scenario {
        let names = self.row.injector.attributes();
        let is_kept = |name: &str| match self.passes_scenario() {
            true => name == "test",
            false => !names.iter().any(|own| own.eq_ignore_ascii_case(name)),
        };
        let mut test = scenario.clone();
        if self.passes_scenario() {
            test.subtypes.clear();
            test.faults.truncate(1);
        }
        for fault in &mut test.faults {
            fault.0.retain(|(name, _)| is_kept(name));
        }
        test
    }

    /// Creates a job without faults. Attributes that the test alone does not have are present but
    /// empty, so that commands can distinguish this run.
    fn job_without(&self, test: &Scenario, injection: Injection) -> Job {
        let mut filled = test.clone();
        for (fault, name) in &self.names {
            let missing = (fault + 1).saturating_sub(filled.faults.len());
            filled.faults.extend((0..missing).map(|_| Fault::default()));
            if filled.faults[*fault].get(name).is_none() {
                let empty = Value::Word(String::new());
                filled.faults[*fault].0.push((name.clone(), empty));
            }
        }
        let mut job = self.job_of(&filled, test, injection);
        job.env
            .push(("EVERETT_FAULT_FREE".to_owned(), "1".to_owned()));
        job
    }

    /// Creates a job for a manager.
    pub(crate) fn job(&self, scenario: &Scenario, injection: Injection) -> Job {
        self.job_of(scenario, scenario, injection)
    }

    /// Creates a job whose commands have the attributes of `scenario`, and the text of `told`.
    fn job_of(&self, scenario: &Scenario, told: &Scenario, injection: Injection) -> Job {
        let config = &self.config;
        let words = |command: &Command| command_words(command, scenario, None);
        let arguments = self.passes_scenario().then_some(told);
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        Job {
            folder: config.folder.clone(),
            scratch: self.scratch.join(number.to_string()),
            start: config.start.as_ref().map(words),
            test: self::words(config, scenario, arguments),
            measure: config.impact.script.as_ref().map(words),
            cleanup: config.cleanup.as_ref().map(words),
            env: variables(config, scenario, told),
            injection,
            programs: config.programs.clone(),
            writable: config.writable.clone(),
            shares_network: config.shares_network,
            limits: config.limits.clone(),
            sees_coverage: config.impact.coverage > 0.0,
            sees_files: config.impact.files > 0.0,
        }
    }

    /// Runs a job in a manager. If the manager dies, another one tries once more.
    pub(crate) fn execute(&self, job: &Job) -> Result<Seen> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if let (Injection::World(faults), Some(worlds)) = (&job.injection, &self.worlds) {
            return worlds.run(faults);
        }
        let mut outcome = self.managed(job);
        if outcome.is_err() {
            outcome = self.managed(job);
        }
        outcome.map_err(Error::Manager)
    }

    fn managed(&self, job: &Job) -> std::result::Result<Seen, String> {
        std::fs::create_dir_all(&job.scratch)
            .map_err(|error| format!("no scratch folder: {error}"))?;
        let answered = self.answer(job);
        // What is left is below an unmounted file system, or was written by a test without
        // namespaces.
        let _ = std::fs::remove_dir_all(&job.scratch);
        answered
    }

    fn answer(&self, job: &Job) -> std::result::Result<Seen, String> {
        let (program, args) = self
            .manager
            .split_first()
            .ok_or("no command for managers")?;
        // An interrupt from the terminal is for the search, which stops when its tests have ended.
        let child = Process::new(program)
            .args(args)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("cannot start it: {error}"))?;
        let id = child.id();
        let text = json!(job).to_string();
        if let Some(mut stdin) = child.stdin.take() {
            // A manager that died does not read; its answer reports that.
            let _ = stdin.write_all(text.as_bytes());
        }
        let (send, receive) = channel();
        let waiting = std::thread::spawn(move || send.send(child.wait_with_output()));
        let limits = &job.limits;
        let output = receive.recv_timeout(limits.timeout + 3 * limits.setup_timeout + GRACE);
        if output.is_err() {
            // All processes of the test die with the manager.
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(id as i32),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
        let _ = waiting.join();
        let output = output.map_err(|_| "it did not answer in time".to_owned())?;
        let output = output.map_err(|error| format!("it cannot be heard: {error}"))?;
        match serde_json::from_slice::<std::result::Result<Seen, String>>(&output.stdout) {
            Ok(seen) => seen,
            Err(_) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("it died ({}) {}", output.status, said.trim()))
            }
        }
    }
}

/// Returns the calls that the scenarios of a space fail.
fn calls_of(row: &InjectorRow, space: &Space) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    let mut plan = |subspace, indices: &[u64]| {
        let indices = indices.to_vec();
        let scenario = space.scenario(&Point { subspace, indices });
        if let Ok(Injection::World(faults)) = row.injector.plan(&scenario, &Means::default()) {
            calls.extend(faults.iter().filter_map(WorldFault::failing));
        }
    };
    for (subspace, own) in space.subspaces().iter().enumerate() {
        let lengths: Vec<u64> = own.axes.iter().map(|axis| axis.values.len()).collect();
        for (axis, length) in lengths.iter().enumerate() {
            for index in 0..(*length).min(MOST_VALUES) {
                let mut indices = vec![0; lengths.len()];
                indices[axis] = index;
                plan(subspace, &indices);
            }
        }
        // Which failure of a function is meant depends on several axes.
        let told = |name: &str| FAILURES.iter().any(|told| told.eq_ignore_ascii_case(name));
        let told = own.axes.iter().map(|axis| told(&axis.name));
        let lengths = lengths.into_iter().zip(told);
        let lengths: Vec<u64> = lengths
            .map(|(length, told)| if told { length } else { 1 })
            .collect();
        let mut indices = vec![0; lengths.len()];
        for _ in 0..MOST_FAILURES {
            plan(subspace, &indices);
            if !step(&mut indices, &lengths) {
                break;
            }
        }
    }
    calls
}

/// Maximum number of failures of calls that a subspace can name.
const MOST_FAILURES: usize = 1 << 16;

/// Attributes that say which failure of which call is meant.
const FAILURES: &[&str] = &["function", "call", "syscall", "errno", "failure", "retval"];

/// Goes on to the next combination of indices. Returns `false` behind the last one.
fn step(indices: &mut [u64], lengths: &[u64]) -> bool {
    for (index, length) in indices.iter_mut().zip(lengths) {
        *index += 1;
        if *index < *length {
            return true;
        }
        *index = 0;
    }
    false
}

/// Returns the words of the test command for a scenario, with another scenario as arguments.
pub(crate) fn words(
    config: &SearchConfig,
    scenario: &Scenario,
    arguments: Option<&Scenario>,
) -> Vec<String> {
    let none = Command::Words(vec!["true".to_owned()]);
    command_words(config.test.as_ref().unwrap_or(&none), scenario, arguments)
}

/// Returns the environment of the commands for a scenario, in addition to Everett's.
pub(crate) fn variables(
    config: &SearchConfig,
    scenario: &Scenario,
    told: &Scenario,
) -> Vec<(String, String)> {
    let mut env = scenario.variables();
    env.push(("EVERETT_SCENARIO".to_owned(), told.to_string()));
    env.push(("EVERETT_SCENARIO_JSON".to_owned(), told.json().to_string()));
    env.push((
        "EVERETT_FOLDER".to_owned(),
        config.folder.display().to_string(),
    ));
    if let Some(test) = scenario.get("test") {
        env.push(("EVERETT_TEST".to_owned(), test.to_string()));
    }
    env.extend(config.env.iter().cloned());
    env
}

/// Returns the words of a command for a scenario. `{NAME}` is replaced by an attribute's value.
fn command_words(
    command: &Command,
    scenario: &Scenario,
    arguments: Option<&Scenario>,
) -> Vec<String> {
    let more = arguments.map_or(Vec::new(), Scenario::words);
    match command {
        Command::Words(words) => {
            let words = words
                .iter()
                .map(|word| filled(word, scenario, |value| value));
            words.chain(more).collect()
        }
        Command::Shell(text) => {
            let mut text = filled(text, scenario, |value| quoted(&value));
            let uses_arguments = ["$@", "$*", "$1"].iter().any(|one| text.contains(one));
            if arguments.is_some() && !uses_arguments {
                text.push_str(" \"$@\"");
            }
            let words = ["sh", "-c", &text, "sh"].map(str::to_owned);
            words.into_iter().chain(more).collect()
        }
    }
}

/// Replaces `{NAME}` by the value of an attribute, but not `${NAME}`.
fn filled(text: &str, scenario: &Scenario, form: impl Fn(String) -> String) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        filled.push_str(before);
        let end = after.find('}');
        let value = end.and_then(|end| scenario.get(&after[1..end]));
        match (value, end) {
            (Some(value), Some(end)) if !before.ends_with('$') => {
                filled.push_str(&form(value.to_string()));
                rest = &after[end + 1..];
            }
            _ => {
                filled.push('{');
                rest = &after[1..];
            }
        }
    }
    filled + rest
}

/// Quotes a word for the shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:=,@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_fill_commands() {
        let scenario = Scenario::parse("test \"a b\" n 3").unwrap();
        let shell = |text: &str| filled(text, &scenario, |value| quoted(&value));
        assert_eq!(shell("run {test} {n}"), "run 'a b' 3");
        assert_eq!(
            shell("awk '{print}' ${test} {x"),
            "awk '{print}' ${test} {x"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
