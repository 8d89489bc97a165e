//! The library in one process: findings, events and files, also of several concurrent runs.
//!
//! The test harness is our own, because the build tools call this program as their linker.

#[path = "../../examples/explore.rs"]
#[allow(dead_code, reason = "its main is for the command line")]
mod example;
mod names;
mod native;
mod values;

use everett::{Event, ReplaySpec, ResumeSpec, RunResult, RunSpec, Session, Silent, Verdict};
use everett_engine::{Explorer, Keep, Listener, Start, StateView, Stopped, WorldFinding};
use everett_linux::{Ending, Packet};
use everett_net::HostIndex;
use everett_solver::Verdict as Answer;
use everett_toolchain::Tool;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Test = fn() -> Result<(), Failed>;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let tool = words
        .first()
        .and_then(|word| Tool::from_name(word.to_str()?));
    if let Some(tool) = tool {
        let code = everett_toolchain::run(tool, &words[1..], &|_| {});
        return code.map_or(ExitCode::from(2), |code| ExitCode::from(code as u8));
    }
    let tests: [(&str, Test); 19] = [
        ("runs_at_once_are_runs_one_after_the_other", at_once),
        ("the_example_runs", example_runs),
        ("events_tell_what_the_result_says", events),
        ("a_run_that_is_stopped_goes_on", stopped),
        ("an_analysis_sees_and_prunes_states", analysis),
        ("worlds_can_be_sent_away", sent_away),
        ("saving_stops_at_a_consistent_point", saving),
        ("worlds_are_saved_whole_or_not_at_all", saving_worlds),
        ("spilling_ends_when_the_run_does", spilling),
        (
            "queries_of_worlds_that_are_interrupted_stay_open",
            interrupted,
        ),
        ("errors_can_be_told_apart", errors),
        ("payloads_can_be_named", names::payloads),
        ("impossible_values_are_refused", values::refused),
        (
            "fields_that_do_not_apply_are_refused",
            values::not_applicable,
        ),
        ("messages_name_fields_and_no_flags", values::no_flags),
        ("values_are_checked_as_text_is", values::as_text),
        ("the_options_are_documented", documented),
        ("native_runs_look_at_processes_seldom", native::few_looks),
        (
            "kinds_of_findings_and_schedulers_are_documented",
            rows_documented,
        ),
    ];
    let trials = tests.map(|(name, test)| Trial::test(name, test));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// Returns an empty folder of this name for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Builds a C program.
fn build(source: &Path, program: &Path) {
    let own = std::env::current_exe().expect("this program");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut command = Command::new(own);
    command.args(["cc", "-g", "-O0", "-w", "-I"]).arg(include);
    let output = command.arg("-o").arg(program).arg(source).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
}

/// A program with many paths and two findings.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char text[6] = {0};
  if (read(0, text, 5) != 5) return 1;
  int sum = 0;
  for (int at = 0; at < 5; at++) {
    if (text[at] == 'x') sum += 1;
    else if (text[at] > 'x') sum += 2;
  }
  if (sum == 10) abort();
  char *block = malloc(4);
  block[text[0] == 'x' && sum == 1 ? 4 : 0] = 1;
  return sum;
}
"#;

fn program(folder: &Path) -> RunSpec {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, PROGRAM).expect("the source can be written");
    build(&source, &program);
    RunSpec::new([program.into_os_string(), "--sym-stdin".into(), "5".into()])
}

/// Returns a client and a server that a message can crash.
fn scenario(folder: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fragile-parser");
    for name in ["client", "server"] {
        build(&sources.join(name).with_extension("c"), &folder.join(name));
    }
    let scenario = folder.join("scenario.toml");
    fs::copy(sources.join("scenario.toml"), &scenario).expect("a scenario");
    scenario
}

fn into(spec: &RunSpec, out: PathBuf) -> RunSpec {
    RunSpec {
        out: Some(out),
        ..spec.clone()
    }
}

/// Returns all files of a run except those about time, memory and its path.
fn written(run: &RunResult) -> BTreeMap<PathBuf, Vec<u8>> {
    let measured = ["args.json", "summary.json", "mapping.csv", "mapping.svg"];
    let mut files = BTreeMap::new();
    let mut folders = vec![run.folder.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !measured.iter().any(|name| entry.file_name() == *name) {
                let name = path.strip_prefix(&run.folder).expect("it lies below");
                files.insert(name.to_owned(), fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

/// Returns the findings and counters of a run, without measurements.
fn counted(run: &RunResult) -> serde_json::Value {
    let mut summary = serde_json::to_value(&run.summary).expect("JSON");
    let fields = summary.as_object_mut().expect("an object");
    fields.remove("solver_lines"); // Ordered by time.
    fields.retain(|name, _| !name.ends_with("_seconds") && !name.starts_with("memory"));
    summary
}

fn at_once() -> Result<(), Failed> {
    let folder = folder("at-once");
    let program = RunSpec {
        all_tests: true,
        ..program(&folder)
    };
    let world = RunSpec::new([scenario(&folder)]);
    let explore = |spec: &RunSpec, name: &str| {
        let spec = into(spec, folder.join(name));
        everett::explore(&spec, &Session::new(), &mut Silent)
    };
    let alone = [explore(&program, "alone")?, explore(&world, "alone-world")?];
    let together = std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| explore(&program, "together")),
            scope.spawn(|| explore(&world, "together-world")),
            scope.spawn(|| explore(&program, "again")),
        ];
        threads.map(|thread| thread.join().expect("it does not panic"))
    });
    let [first, second, third] = together;
    let (first, second, third) = (first?, second?, third?);
    for (alone, together) in [
        (&alone[0], &first),
        (&alone[1], &second),
        (&alone[0], &third),
    ] {
        assert_eq!(counted(alone), counted(together));
        let (one, other) = (written(alone), written(together));
        assert!(
            one.keys().eq(other.keys()),
            "{:?} {:?}",
            one.keys(),
            other.keys()
        );
        assert!(
            one == other,
            "{} has other files",
            together.folder.display()
        );
    }
    assert!(alone[0].summary.complete && alone[0].summary.findings.len() == 2);
    assert!(!alone[1].summary.findings.is_empty());
    Ok(())
}

fn example_runs() -> Result<(), Failed> {
    let folder = folder("example");
    let confirmed = example::explore_and_replay(&scenario(&folder), &folder.join("out"))?;
    assert_eq!(confirmed, 1);
    let lines = include_str!("../../examples/explore.rs").lines().count();
    assert!(lines < 40, "the example has {lines} lines");
    Ok(())
}

fn events() -> Result<(), Failed> {
    let folder = folder("events");
    let spec = into(&program(&folder), folder.join("out"));
    let (mut findings, mut tests, mut paths, mut confirmed) = (0, 0, 0, 0);
    let mut finished = false;
    let mut listen = |event: &Event<'_>| match event {
        Event::Finding { .. } => findings += 1,
        Event::Test { .. } => tests += 1,
        Event::PathDone(_) => paths += 1,
        Event::FindingReplayed { verdict, .. } => {
            confirmed += u32::from(**verdict == Verdict::Confirmed);
        }
        Event::Finished { .. } => finished = true,
        _ => {}
    };
    let run = everett::explore(&spec, &Session::new(), &mut listen)?;
    let all = &run.summary.paths;
    assert_eq!(findings, run.summary.findings.len());
    assert_eq!(tests, run.summary.tests);
    assert_eq!(paths, all.completed + all.partial);
    assert!(finished);
    assert_eq!(confirmed, 2);
    // Written traces can be followed, and shrunk again.
    let followed = everett::follow(&run.folder, &Session::new(), &mut Silent)?;
    assert_eq!((followed.different, followed.traces > 0), (0, true));
    let spec = everett::ShrinkSpec::new(run.folder.join(&run.summary.findings[0].dir));
    assert!(everett::shrink(&spec, &Session::new())?.shrunk.is_none());
    Ok(())
}

/// Counts events. With `prunes`, it prunes the server when the symbolic packet arrives.
#[derive(Default)]
struct Analysis {
    forks: u32,
    sent: u32,
    delivered: u32,
    ended: u32,
    findings: u32,
    prunes: bool,
}

impl Listener for Analysis {
    fn finding(&mut self, _finding: &WorldFinding) {
        self.findings += 1;
    }

    fn tick(&mut self, _explorer: &Explorer<'_>) {}

    fn forked(&mut self, child: &mut StateView<'_, '_>) -> Keep {
        self.forks += 1;
        assert!(child.trace().pending.is_some());
        Keep::Yes
    }

    fn sent(&mut self, _: &mut StateView<'_, '_>, packet: &Packet, to: &[HostIndex]) -> Keep {
        self.sent += 1;
        assert!(packet.payload().is_some() && to.len() == 1);
        Keep::Yes
    }

    fn delivered(&mut self, receiver: &mut StateView<'_, '_>, packet: &Packet) -> Keep {
        self.delivered += 1;
        let is_server = receiver.host() == HostIndex(0);
        let symbolic = packet.payload().filter(|bytes| !bytes.is_concrete());
        let Some(payload) = symbolic.filter(|_| is_server) else {
            return Keep::Yes;
        };
        let byte = payload.byte_term(receiver.arena(), 0);
        let wanted = receiver.arena().constant(8, u64::from(b'S'));
        let is_set = receiver.arena().eq(byte, wanted);
        let is_other = receiver.arena().not(is_set);
        // The packet is not constrained yet.
        for condition in [is_set, is_other] {
            assert!(matches!(receiver.check(condition), Answer::Sat(_)));
        }
        assert!(receiver.path_condition().is_empty());
        if self.prunes { Keep::Prune } else { Keep::Yes }
    }

    fn ended(&mut self, state: &mut StateView<'_, '_>, _ending: &Ending) {
        self.ended += 1;
        assert!(state.clock_ns() > 0);
    }
}

fn analysis() -> Result<(), Failed> {
    let folder = folder("analysis");
    let spec = RunSpec::new([scenario(&folder)]);
    let (config, images) = everett::prepare(&spec, &Session::new())?;
    let explore = |prunes: bool| {
        let mut analysis = Analysis {
            prunes,
            ..Analysis::default()
        };
        let mut explorer = Explorer::new(&images, config.clone(), Start::Beginning)?;
        let stopped = explorer.run(&AtomicBool::new(false), &mut analysis);
        assert_eq!(stopped, Stopped::Finished);
        Ok::<_, Failed>((analysis, explorer.statistics().clone()))
    };
    let (all, counted) = explore(false)?;
    assert!(all.forks as u64 == counted.forks && all.forks > 5);
    let seen = (all.sent, all.delivered, all.ended, all.findings);
    let least = [(seen.0, 3), (seen.1, 2), (seen.2, 1), (seen.3, 1)];
    assert!(least.iter().all(|(seen, least)| seen >= least), "{seen:?}");
    assert!(counted.pruned.to_f64() == 0.0 && counted.finished.is_one());
    let (pruned, counted) = explore(true)?;
    assert_eq!((pruned.forks, pruned.findings, pruned.delivered), (0, 0, 1));
    assert!(counted.pruned.is_one(), "{}", counted.pruned.to_f64());
    Ok(())
}

/// Stops a search after some forks.
struct Stopping {
    forks: u32,
    stop: AtomicBool,
}

impl Listener for &Stopping {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, explorer: &Explorer<'_>) {
        let forks = explorer.statistics().forks as u32;
        self.stop.store(forks >= self.forks, Ordering::Relaxed);
    }
}

fn sent_away() -> Result<(), Failed> {
    let folder = folder("sent-away");
    let spec = RunSpec::new([scenario(&folder)]);
    let (config, images) = everett::prepare(&spec, &Session::new())?;
    let explore = |start: Start, forks: u32| {
        let stopping = Stopping {
            forks,
            stop: AtomicBool::new(false),
        };
        let mut explorer = Explorer::new(&images, config.clone(), start)?;
        let stopped = explorer.run(&stopping.stop, &mut &stopping);
        Ok::<_, Failed>((explorer, stopped))
    };
    let (whole, _) = explore(Start::Beginning, u32::MAX)?;
    let whole = whole.statistics().clone();
    for steps in [0, 1, 3, 9] {
        let (mut explorer, stopped) = explore(Start::Beginning, steps)?;
        assert_eq!(stopped, Stopped::Asked);
        let mut finished = explorer.statistics().finished.clone();
        let mut ended = explorer.statistics().paths_completed;
        for world in explorer.pending_worlds_up_to(usize::MAX) {
            // As on another machine: only its text is available.
            let text = serde_json::to_string(&world)?;
            let world = serde_json::from_str(&text)?;
            let (part, stopped) = explore(Start::Pending(vec![world]), u32::MAX)?;
            assert_eq!(stopped, Stopped::Finished);
            finished.add_sum(&part.statistics().finished);
            ended += part.statistics().paths_completed;
        }
        assert!(finished.is_one(), "{steps}: {}", finished.to_f64());
        assert_eq!(ended, whole.paths_completed, "{steps}");
    }
    Ok(())
}

fn stopped() -> Result<(), Failed> {
    let folder = folder("stopped");
    let spec = into(&program(&folder), folder.join("out"));
    let session = Session::new();
    let stop = session.stop.clone();
    let mut paths = 0;
    let mut listen = |event: &Event<'_>| {
        if let Event::PathDone(_) = event {
            paths += 1;
            stop.store(paths >= 3, Ordering::SeqCst);
        }
    };
    let run = everett::explore(&spec, &session, &mut listen)?;
    assert!(!run.summary.complete);
    let resume = ResumeSpec::new(run.folder);
    let run = everett::resume(&resume, &Session::new(), &mut Silent)?;
    assert!(run.summary.complete);
    assert_eq!(run.summary.findings.len(), 2);
    Ok(())
}

/// A program with 1024 paths.
const WIDE: &str = r#"
#include <unistd.h>
int main(void) {
  char text[10];
  int sum = 0;
  read(0, text, 10);
  for (int at = 0; at < 10; at++)
    if (text[at] == 'x') sum += at;
  return sum;
}
"#;

/// Stops a search when it has this many states.
struct Until(usize, AtomicBool);

impl Listener for &Until {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, explorer: &Explorer<'_>) {
        self.1.store(explorer.states() >= self.0, Ordering::Relaxed);
    }
}

fn saving() -> Result<(), Failed> {
    let folder = folder("saving");
    let (source, program) = (folder.join("wide.c"), folder.join("wide"));
    fs::write(&source, WIDE)?;
    build(&source, &program);
    let mut spec = RunSpec::new([program.into_os_string(), "--sym-stdin".into(), "10".into()]);
    spec.search = vec!["bfs".to_owned()];
    spec.batch = Some(1);
    let (mut config, images) = everett::prepare(&spec, &Session::new())?;
    config.spill = Some(folder.join("spill"));
    let until = Until(600, AtomicBool::new(false));
    let mut explorer = Explorer::new(&images, config.clone(), Start::Beginning)?;
    assert_eq!(explorer.run(&until.1, &mut &until), Stopped::Asked);
    let states = explorer.states();
    // A checkpoint that is interrupted while the search continues is not written.
    let path = folder.join("checkpoint-1.states");
    assert!(explorer.save(&path, false, &|| false)?.is_none());
    assert!(explorer.save(&path, false, &|| true)?.is_some());
    assert_eq!((explorer.unsaved(), explorer.states()), (0, states));
    // The last checkpoint saves what it can, and reports what it cannot.
    let saved = explorer.save_last(&path, &|| false)?;
    let saved = saved.ok_or("a part is saved")?;
    let lost = explorer.unsaved();
    assert!(lost > 0 && explorer.states() + lost as usize == states);
    let mut all = explorer.statistics().finished.clone();
    all.add_sum(&explorer.statistics().unknown);
    all.add_sum(&explorer.pending_weight());
    assert!(all.is_one(), "{}", all.to_f64());
    drop(explorer);
    let mut resumed = Explorer::new(&images, config, Start::Saved(Box::new(saved)))?;
    assert_eq!(resumed.states() + lost as usize, states);
    let never = Until(usize::MAX, AtomicBool::new(false));
    assert_eq!(resumed.run(&never.1, &mut &never), Stopped::Finished);
    assert_eq!(resumed.limits_hit(), ["lost-state"]);
    assert!(!resumed.statistics().is_all_explored());
    let mut all = resumed.statistics().finished.clone();
    all.add_sum(&resumed.statistics().unknown);
    assert!(all.is_one(), "{}", all.to_f64());
    Ok(())
}

fn saving_worlds() -> Result<(), Failed> {
    let folder = folder("saving-worlds");
    let spec = RunSpec::new([scenario(&folder)]);
    let (mut config, images) = everett::prepare(&spec, &Session::new())?;
    config.spill = Some(folder.join("spill"));
    let stopping = Stopping {
        forks: 3,
        stop: AtomicBool::new(false),
    };
    let mut explorer = Explorer::new(&images, config, Start::Beginning)?;
    assert_eq!(explorer.run(&stopping.stop, &mut &stopping), Stopped::Asked);
    let path = folder.join("checkpoint-1.states");
    assert!(explorer.save_last(&path, &|| false)?.is_none());
    assert_eq!(explorer.unsaved(), explorer.states() as u64);
    let mut all = explorer.statistics().finished.clone();
    all.add_sum(&explorer.pending_weight());
    assert!(all.is_one(), "{}", all.to_f64());
    // A run without any time saves nothing and reports that; it can be started again.
    let mut spec = into(&spec, folder.join("out"));
    spec.max_time = Some(std::time::Duration::ZERO);
    let run = everett::explore(&spec, &Session::new(), &mut Silent)?;
    let summary = &run.summary;
    assert!(!summary.complete && summary.states_unsaved == 2);
    let said = |text: &String| text.contains("2 states could not be saved");
    assert!(summary.warnings.iter().any(said), "{:?}", summary.warnings);
    let resume = ResumeSpec::new(run.folder);
    let run = everett::resume(&resume, &Session::new(), &mut Silent)?;
    assert!(run.summary.complete && run.summary.states_unsaved == 0);
    Ok(())
}

/// A run that exceeds its memory, and that is stopped when it checks.
#[derive(Debug)]
struct Full(Arc<AtomicBool>);

impl everett_engine::MemoryAccount for Full {
    fn used(&self) -> u64 {
        self.0.store(true, Ordering::Relaxed);
        2 << 30
    }
}

fn spilling() -> Result<(), Failed> {
    let folder = folder("spilling");
    let world = RunSpec::new([scenario(&folder)]);
    for stops in [false, true] {
        let session = Session::new();
        let (mut config, images) = everett::prepare(&world, &session)?;
        config.spill = Some(folder.join("spill"));
        config.limits.max_memory = Some(1 << 30);
        let asked = if stops {
            session.stop.clone()
        } else {
            Arc::default()
        };
        config.memory = Arc::new(Full(asked));
        let mut explorer = Explorer::new(&images, config, Start::Beginning)?;
        let mut rounds = Rounds {
            left: 100,
            stop: Arc::default(),
        };
        let stopped = explorer.run(&session.stop, &mut rounds);
        // Spilling may take long, and the remaining time is for the last checkpoint.
        let (is_asked, spilled) = (stopped == Stopped::Asked, explorer.statistics().spilled);
        assert_eq!(
            (is_asked, spilled == 0),
            (stops, stops),
            "{stopped:?}, {spilled} spilled"
        );
    }
    Ok(())
}

/// Stops a search after some rounds.
struct Rounds {
    left: u32,
    stop: Arc<AtomicBool>,
}

impl Listener for Rounds {
    fn finding(&mut self, _finding: &WorldFinding) {}

    fn tick(&mut self, _explorer: &Explorer<'_>) {
        self.left = self.left.saturating_sub(1);
        self.stop.store(self.left == 0, Ordering::Relaxed);
    }
}

fn interrupted() -> Result<(), Failed> {
    let folder = folder("interrupted");
    let spec = RunSpec::new([scenario(&folder)]);
    let (mut config, images) = everett::prepare(&spec, &Session::new())?;
    config.spill = Some(folder.join("spill"));
    let whole = {
        let mut explorer = Explorer::new(&images, config.clone(), Start::Beginning)?;
        let stop = Arc::default();
        explorer.run(
            &AtomicBool::new(false),
            &mut Rounds {
                left: u32::MAX,
                stop,
            },
        );
        explorer.statistics().paths_completed
    };
    // As if the deadline passed at the first query: the solver answers none.
    let solver = Arc::new(AtomicBool::new(true));
    config.solver.stop = Some(solver.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let mut explorer = Explorer::new(&images, config.clone(), Start::Beginning)?;
    let mut rounds = Rounds {
        left: 200,
        stop: stop.clone(),
    };
    assert_eq!(explorer.run(&stop, &mut rounds), Stopped::Asked);
    let counted = explorer.statistics();
    assert!(counted.unknown.is_zero() && !counted.is_all_explored());
    assert_eq!(explorer.limits_hit(), [""; 0]);
    let mut all = counted.finished.clone();
    all.add_sum(&explorer.pending_weight());
    assert!(all.is_one(), "{}", all.to_f64());
    // The run continues, also from a checkpoint, where the queries are asked again.
    let path = folder.join("checkpoint-1.states");
    let saved = explorer
        .save(&path, false, &|| true)?
        .ok_or("it is saved")?;
    solver.store(false, Ordering::Relaxed);
    let mut later = Rounds {
        left: u32::MAX,
        stop: Arc::default(),
    };
    assert_eq!(
        explorer.run(&later.stop.clone(), &mut later),
        Stopped::Finished
    );
    let mut resumed = Explorer::new(&images, config, Start::Saved(Box::new(saved)))?;
    assert_eq!(
        resumed.run(&later.stop.clone(), &mut later),
        Stopped::Finished
    );
    for explorer in [&explorer, &resumed] {
        assert!(explorer.statistics().finished.is_one());
        assert_eq!(explorer.statistics().paths_completed, whole);
    }
    Ok(())
}

fn errors() -> Result<(), Failed> {
    let folder = folder("errors");
    let missing = RunSpec::new([folder.join("nothing")]);
    let error = everett::explore(&missing, &Session::new(), &mut Silent);
    assert!(matches!(error, Err(everett::Error::Program(_))));
    let nothing = ReplaySpec::new(folder.clone());
    let error = everett::replay(&nothing, &Session::new(), &mut Silent);
    assert!(matches!(error, Err(everett::Error::NotARun { .. })));
    let scenario = folder.join("wrong.toml");
    fs::write(&scenario, "[host.a]\n")?;
    let error = everett::explore(&RunSpec::new([scenario]), &Session::new(), &mut Silent);
    let Err(error) = error else {
        return Err("it is not in order".into());
    };
    assert!(matches!(error.root(), everett::Error::Scenario { .. }));
    Ok(())
}

/// `EVERETT_WRITE_DOCS=1 cargo test -p everett --test library` writes the file again.
fn rows_documented() -> Result<(), Failed> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let kinds = fs::read_to_string(docs.join("findings.md"))?;
    for kind in everett::BugKind::ALL {
        let name = format!("`{}`", kind.name());
        let mut rows = kinds.lines().filter(|line| line.starts_with('|'));
        assert!(rows.any(|row| row.contains(&name)), "{name}");
    }
    let hosts = fs::read_to_string(docs.join("hosts.md"))?;
    for policy in everett_linux::SCHEDULERS {
        let row = format!("| `{}`", policy.usage());
        assert!(hosts.lines().any(|line| line.starts_with(&row)), "{row}");
    }
    Ok(())
}

fn documented() -> Result<(), Failed> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let head = "# Options of runs\n\n\
        The options of `everett run`, and in brackets the scenario keys with the same meaning.\n\n";
    let text = head.to_owned() + &everett::options_list();
    if std::env::var_os("EVERETT_WRITE_DOCS").is_some() {
        fs::write(&file, &text)?;
    }
    let written = fs::read_to_string(&file)?;
    assert!(
        written == text,
        "docs/options.md is not what the options say"
    );
    Ok(())
}
