//! Runs a search: proposes scenarios, runs them in parallel jobs, learns their results in the order
//! of issue, and writes the folder of results.

use everett::Session;
use everett_report::{Folder, Series};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::{Stacks, own_frames};
use crate::config::SearchFile;
use crate::error::{Error, Result};
use crate::explore::{doubts, explore};
use crate::impact::{Measured, measure, relevance};
use crate::journal::{Head, Journal, JournalEntry};
use crate::leftovers::{refuse_foreign, remove_unused};
use crate::manager::{Seen, digest};
use crate::nodes::Nodes;
use crate::numbers::Numbers;
use crate::regression::{self, Cores};
use crate::results::{Curves, FaultSummary, Isolation, Outcome, ScenarioResult};
use crate::search::{self, Search};
use crate::settings::SearchConfig;
use crate::space::{Point, Scenario, Space};
use crate::system::{MOST_VALUES, System};
use crate::warnings::{misspelt, never_injected, unstable};

/// A search to run.
#[derive(Clone, Debug, Default)]
pub struct RunSpec {
    /// The file that describes it.
    pub file: PathBuf,
    /// The folder of results; by default the next number below everett-out/. If it has results of
    /// the same search, that search continues.
    pub out: Option<PathBuf>,
    /// Maximum number of scenarios; by default as in the file, or all.
    pub runs: Option<u64>,
    /// The seed; by default as in the file, or 0.
    pub seed: Option<u64>,
    /// The search algorithm; by default as in the file, or guided.
    pub search: Option<String>,
    /// The number of parallel tests; 0 for one per processor.
    pub jobs: usize,
    /// The number of scenarios to explore with symbolic inputs; by default as in the file, or none.
    pub explore: Option<usize>,
    /// The command that starts a manager ([`crate::manager::manage`]).
    pub manager: Vec<OsString>,
    /// Other machines that run the tests; by default, managers on this one do.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// The session. Its stop flag stops the search, which still writes its results.
    pub session: Session,
}

/// The progress of a search.
#[derive(Clone, Debug)]
pub struct Progress<'p> {
    /// The number of scenarios that were run.
    pub run: u64,
    /// The maximum number of scenarios that can be run.
    pub most: u64,
    /// The number of failures so far.
    pub failures: u64,
    /// The result that was learned last.
    pub last: &'p ScenarioResult,
}

/// The result of a search.
pub struct RunResult {
    /// The folder of results.
    pub folder: PathBuf,
    /// The summary.
    pub summary: FaultSummary,
}

/// Runs a search and writes its results.
pub fn run(spec: &RunSpec, progress: &mut dyn FnMut(&Progress<'_>)) -> Result<RunResult> {
    let (config, space) = configured(spec)?;
    let folder = match &spec.out {
        Some(path) => {
            refuse_foreign(path)?;
            Folder::open(path)?
        }
        None => Folder::next(Path::new("everett-out"), Series::RUNS)?,
    };
    let system = System::new(&config, &spec.manager, folder.path())?.on(spec.nodes.clone());
    match check(&system, &space) {
        // The search writes what there is, and says that it was interrupted.
        Err(Error::Manager(_)) if spec.session.stop.load(Ordering::Relaxed) => {}
        checked => checked?,
    }
    if config.explore.scenarios > 0 {
        system.check_explorable(&spec.session)?;
    }
    // This comes first, so that the folder of another search stays untouched.
    let journal = Journal::open(folder.path(), &head(&config))?;
    folder.write(
        "search.json",
        &serde_json::to_vec_pretty(&config).unwrap_or_default(),
    )?;
    system.write(&folder)?;
    let jobs = match spec.jobs {
        // Nodes have all that is in flight; how much they run at a time is theirs to say.
        _ if spec.nodes.is_some() => config.window,
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let mut explorer = Explorer::new(&config, &space, &folder, &spec.session.stop, journal);
    let (begun, processor) = (Instant::now(), processor_seconds());
    explorer.search(&system, jobs, progress)?;
    explorer.repeat(&system, jobs)?;
    let mut summary = explorer.summary(&system);
    explorer.write_results()?;
    let what = (summary.results.as_slice(), &config.explore);
    summary.explored = explore(&system, &space, &folder, what, &spec.session)?;
    summary.is_interrupted |= spec.session.stop.load(Ordering::Relaxed);
    if !summary.is_interrupted {
        summary
            .warnings
            .extend(doubts(&summary.explored, &config.explore));
    }
    summary.jobs = jobs;
    summary.nodes = spec
        .nodes
        .as_ref()
        .map_or(BTreeMap::new(), |nodes| nodes.counts());
    summary.other_runs = system
        .runs
        .load(Ordering::Relaxed)
        .saturating_sub(explorer.run_now);
    summary.wall_seconds = begun.elapsed().as_secs_f64();
    summary.processor_seconds = processor_seconds() - processor;
    summary.test_seconds = explorer.curves.seconds.iter().sum();
    let curves = explorer.curves;
    crate::map::write(&folder, &config, &space, &summary, &curves)?;
    folder.write(
        "summary.json",
        &serde_json::to_vec_pretty(&summary).unwrap_or_default(),
    )?;
    remove_unused(&folder);
    Ok(RunResult {
        folder: folder.path().to_owned(),
        summary,
    })
}

/// Returns the configuration of a search, with what the spec overrides, and its fault space.
fn configured(spec: &RunSpec) -> Result<(SearchConfig, Space)> {
    let SearchFile { mut config, space } = SearchFile::read(&spec.file)?;
    config.seed = spec.seed.unwrap_or(config.seed);
    if let Some(name) = &spec.search {
        config.search = name.clone();
    }
    if search::named(&config.search).is_none() {
        let names: Vec<&str> = search::SEARCHES.iter().map(|row| row.name).collect();
        let names = names.join(", ");
        return Err(Error::Usage(format!(
            "there is no search {:?}; there are: {names}",
            config.search
        )));
    }
    config.stop.runs = spec.runs.or(config.stop.runs);
    config.explore.scenarios = spec.explore.unwrap_or(config.explore.scenarios);
    if config.explore.scenarios > 0 && config.injector != "model" {
        return Err(Error::Usage(format!(
            "only worlds can be explored: injector model, not {}",
            config.injector
        )));
    }
    Ok((config, space))
}

/// Returns the processor time of this process and of all tests that ended.
fn processor_seconds() -> f64 {
    let spent = |who| {
        let usage = getrusage(who).ok();
        usage.map_or(0.0, |usage| {
            let time = usage.user_time() + usage.system_time();
            time.num_microseconds() as f64 / 1e6
        })
    };
    spent(UsageWho::RUSAGE_SELF) + spent(UsageWho::RUSAGE_CHILDREN)
}

/// Checks each value of each axis, and that the test succeeds without faults, before any scenario
/// runs.
fn check(system: &System, space: &Space) -> Result<()> {
    for (subspace, own) in space.subspaces().iter().enumerate() {
        for axis in 0..own.axes.len() {
            // Errors are in single values, so it suffices to check each value once.
            for index in 0..own.axes[axis].values.len().min(MOST_VALUES) {
                let mut indices = vec![0; own.axes.len()];
                indices[axis] = index;
                let point = Point { subspace, indices };
                system.plan(&space.scenario(&point))?;
            }
        }
    }
    let first = space.scenario(&space.point(0));
    let without = system.without_faults(&first)?;
    if !without.test.is_success() && system.without(&first).to_string().is_empty() {
        let said = without.output[1].text.trim();
        let hint = match system.passes_scenario() {
            true => {
                "\n(with injector script, this run has no arguments, EVERETT_FAULT_FREE=1, and empty attributes)"
            }
            false => "",
        };
        return Err(Error::Setup(format!(
            "the test fails without any fault: {} {said}{hint}",
            without.test
        )));
    }
    Ok(())
}

/// Returns what determines the course of a search, besides its results.
fn head(config: &SearchConfig) -> Head {
    let mut same = config.clone();
    // These settings may change when a search continues.
    same.stop = Default::default();
    same.repetitions = 0;
    same.explore = Default::default();
    same.limits.cores = 0;
    Head {
        search: config.search.clone(),
        seed: config.seed,
        digest: digest(&serde_json::to_vec(&same).unwrap_or_default()),
    }
}

/// The state of a search.
struct Explorer<'s> {
    config: &'s SearchConfig,
    space: &'s Space,
    folder: &'s Folder,
    stop: &'s AtomicBool,
    journal: Journal,
    search: Box<dyn Search>,
    stacks: Stacks,
    cores: Cores,
    covered: BTreeSet<String>,
    covered_without: u64,
    results: Vec<ScenarioResult>,
    /// For each result, the number of its stack, and its impact without new lines.
    numbers: Vec<(usize, f64)>,
    failures: u64,
    crashes: u64,
    hangs: u64,
    failing_without: BTreeSet<String>,
    cleanup_failures: u64,
    isolation: Isolation,
    is_interrupted: bool,
    /// The number of scenarios run by this process, not taken from the journal.
    run_now: u64,
    curves: Curves,
}

/// A question to a job: the number of a scenario, and the scenario. The answer is what was observed
/// with and without its faults.
type Question = (u64, Scenario);
type Observed = Result<(Seen, Arc<Seen>)>;
type Answer = (u64, Observed);

fn ask(system: &System, scenario: &Scenario) -> Observed {
    let without = system.without_faults(scenario)?;
    Ok((system.run(scenario)?, without))
}

/// The loop of a job: answers questions until there are no more.
fn work(system: &System, questions: &Mutex<Receiver<Question>>, answers: &Sender<Answer>) {
    loop {
        let question = questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok((number, scenario)) = question else {
            return;
        };
        if answers.send((number, ask(system, &scenario))).is_err() {
            return;
        }
    }
}

impl<'s> Explorer<'s> {
    fn new(
        config: &'s SearchConfig,
        space: &'s Space,
        folder: &'s Folder,
        stop: &'s AtomicBool,
        journal: Journal,
    ) -> Explorer<'s> {
        let row = search::named(&config.search).unwrap_or(&search::SEARCHES[0]);
        Explorer {
            search: (row.new)(space, &config.guided, Numbers::new(config.seed)),
            config,
            space,
            folder,
            stop,
            journal,
            stacks: Stacks::default(),
            cores: Cores::of(folder, config.limits.cores),
            covered: BTreeSet::new(),
            covered_without: 0,
            results: Vec::new(),
            numbers: Vec::new(),
            failures: 0,
            crashes: 0,
            hangs: 0,
            failing_without: BTreeSet::new(),
            cleanup_failures: 0,
            isolation: Isolation::default(),
            is_interrupted: false,
            run_now: 0,
            curves: Curves::default(),
        }
    }

    /// Searches until all scenarios are run or a stop condition holds. A fixed window of scenarios
    /// is in flight, and results are learned in the order of issue. So the course does not depend
    /// on the number of jobs.
    fn search(
        &mut self,
        system: &System,
        jobs: usize,
        progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<()> {
        let begun = Instant::now();
        if let Some(most) = self.config.stop.time {
            system.end_at(begun + most);
        }
        let known = self.journal.known.len() as u64;
        // Results of the journal are never dropped.
        let most = self.config.stop.runs.unwrap_or(u64::MAX).max(known);
        let most = most.min(self.space.size());
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let asked = Mutex::new(asked);
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let (answer, asked) = (answer.clone(), &asked);
                scope.spawn(move || work(system, asked, &answer));
            }
            drop(answer);
            let mut flight: BTreeMap<u64, Point> = BTreeMap::new();
            let mut early: BTreeMap<u64, Observed> = BTreeMap::new();
            let (mut issued, mut learned) = (0, 0);
            let outcome = loop {
                while issued < most && issued - learned < self.config.window as u64 {
                    let Some(point) = self.search.next(self.space) else {
                        break;
                    };
                    if issued >= known {
                        let _ = questions.send((issued, self.space.scenario(&point)));
                    }
                    flight.insert(issued, point);
                    issued += 1;
                }
                let Some(point) = flight.remove(&learned) else {
                    break Ok(());
                };
                let learnt = match self.journal.known.get(learned as usize) {
                    Some(entry) => self.again(entry.clone(), &point),
                    None => {
                        let seen = self.answer(learned, &answers, &mut early);
                        if self.is_stopped(begun) {
                            break Ok(());
                        }
                        self.fresh(system, &point, seen)
                    }
                };
                if let Err(error) = learnt {
                    break Err(error);
                }
                learned += 1;
                if let Some(last) = self.results.last() {
                    progress(&Progress {
                        run: learned,
                        most,
                        failures: self.failures,
                        last,
                    });
                }
                if learned >= known && (self.has_reached_target() || self.is_stopped(begun)) {
                    break Ok(());
                }
            };
            // Waiting jobs end. The results of scenarios in flight are awaited and discarded.
            drop(questions);
            if let Ok(asked) = asked.lock() {
                while asked.try_recv().is_ok() {}
            }
            outcome
        })
    }

    /// Waits for the answer with a number.
    fn answer(
        &mut self,
        number: u64,
        answers: &Receiver<Answer>,
        early: &mut BTreeMap<u64, Observed>,
    ) -> Observed {
        loop {
            if let Some(seen) = early.remove(&number) {
                return seen;
            }
            match answers.recv() {
                Ok((other, seen)) => drop(early.insert(other, seen)),
                Err(_) => return Err(Error::Manager("all jobs have ended".to_owned())),
            }
        }
    }

    fn is_stopped(&mut self, begun: Instant) -> bool {
        let is_late = |most: Duration| begun.elapsed() >= most;
        if self.stop.load(Ordering::Relaxed) {
            self.is_interrupted = true;
        }
        self.is_interrupted || self.config.stop.time.is_some_and(is_late)
    }

    /// Returns whether a target of the search is reached.
    fn has_reached_target(&self) -> bool {
        let stop = &self.config.stop;
        let is_reached =
            |target: Option<u64>, count: u64| target.is_some_and(|target| count >= target);
        let clusters = || self.clusters().len() as u64;
        is_reached(stop.failures, self.failures)
            || is_reached(stop.crashes, self.crashes)
            || is_reached(stop.hangs, self.hangs)
            || stop
                .impact
                .is_some_and(|most| self.results.last().is_some_and(|last| last.impact >= most))
            || stop.clusters.is_some_and(|most| clusters() >= most)
    }

    /// Learns a result from the journal.
    fn again(&mut self, entry: JournalEntry, point: &Point) -> Result<()> {
        if entry.position != self.space.position(point) {
            return Err(Error::Usage(format!(
                "{} does not belong to this search; choose another `out`",
                self.folder.path().display()
            )));
        }
        self.learn(entry, point);
        Ok(())
    }

    /// Learns a new result.
    fn fresh(&mut self, system: &System, point: &Point, seen: Observed) -> Result<()> {
        self.run_now += 1;
        let scenario = self.space.scenario(point);
        let position = self.space.position(point);
        let entry = match &seen {
            Ok((seen, without)) => {
                let before = self.covered.len();
                self.covered.extend(without.coverage.iter().cloned());
                self.covered_without += (self.covered.len() - before) as u64;
                self.entry(position, &scenario, seen, without)
            }
            // A manager that dies costs only its test; all other errors end the search.
            Err(Error::Manager(why)) => JournalEntry {
                position,
                outcome: Outcome::Error,
                why: vec![why.clone()],
                ..JournalEntry::default()
            },
            Err(_) => return seen.map(drop),
        };
        self.journal.add(&entry)?;
        self.learn(entry, point);
        let result = self.results.last().cloned().unwrap_or_default();
        let seen = seen.ok().map(|(seen, _)| seen);
        regression::write(self.folder, self.config, &scenario, &result, seen.as_ref())?;
        let core = seen.as_ref().and_then(|seen| seen.core.as_deref());
        if let Some(core) = core {
            let is_first = self.is_first_of_its_cluster();
            self.cores.write(self.folder, &result, core, is_first)?;
        }
        if result.outcome.is_failure() {
            let place = format!("scenarios/{}", result.name);
            let known = seen.map(|seen| seen.world).unwrap_or_default();
            system.write_trace((&scenario, &known), self.folder, &place)?;
        }
        Ok(())
    }

    /// Returns the result of a run.
    fn entry(
        &self,
        position: u64,
        scenario: &Scenario,
        seen: &Seen,
        without: &Seen,
    ) -> JournalEntry {
        let mut measured = measure(&self.config.impact, seen, Some(without), &self.covered);
        let failing = Some(without).filter(|without| !without.test.is_success());
        if let Some(failing) = failing {
            measured = Measured {
                outcome: Outcome::Error,
                why: vec![format!(
                    "the test fails without any fault: {}",
                    failing.test
                )],
                ..Measured::default()
            };
        }
        let can_tell = self.config.injector != "script";
        // If the injection has no stack, the stack of the crash distinguishes failures.
        let is_telling =
            |one: &&crate::manager::Injected| !one.stack.is_empty() || seen.crashes.is_empty();
        let stack = seen.injected.first().filter(is_telling).map(|one| {
            // The failing function itself is the innermost frame.
            let frames = one.stack.iter().cloned();
            std::iter::once(one.function.clone())
                .chain(frames)
                .collect()
        });
        let crash = seen.crashes.first().map(|crash| crash.stack.clone());
        let (stack, crash) = match stack {
            Some(stack) => (stack, crash.unwrap_or_default()),
            None => (crash.unwrap_or_default(), Vec::new()),
        };
        JournalEntry {
            position,
            outcome: measured.outcome,
            repeatable: measured.repeatable,
            impact: measured.impact,
            why: measured.why,
            new_lines: measured.new_lines,
            injected: can_tell.then_some(!seen.injected.is_empty()),
            stack,
            arguments: (seen.injected.first()).map_or(String::new(), |one| one.arguments.clone()),
            crash,
            fails_without: failing.map(|_| {
                scenario
                    .get("test")
                    .map_or(String::new(), ToString::to_string)
            }),
            cleanup_failed: seen.cleanup_failure.is_some(),
            isolation: seen.isolation,
            seconds: seen.seconds,
        }
    }

    /// Learns a result: assigns its cluster, and gives its fitness to the search.
    fn learn(&mut self, entry: JournalEntry, point: &Point) {
        let scenario = self.space.scenario(point);
        let relevance = relevance(&self.config.relevance, &scenario);
        let settings = &self.config.guided;
        let has_stack = !entry.stack.is_empty();
        let key = match has_stack || !entry.outcome.is_failure() {
            true => [own_frames(&entry.stack), own_frames(&entry.crash)].concat(),
            // Without a stack, outcome and contributions to the impact distinguish failures.
            false => vec![entry.outcome.to_string(), entry.why.join(", ")],
        };
        let (number, similarity) = self.stacks.add(&key, settings.cluster);
        let novelty = match settings.feedback && has_stack {
            true => 1.0 - similarity,
            false => 1.0,
        };
        let fitness = entry.impact * relevance * novelty;
        self.search.learn(self.space, point, fitness);
        self.covered.extend(entry.new_lines);
        self.failures += u64::from(entry.outcome.is_failure());
        self.crashes += u64::from(entry.outcome == Outcome::Crashed);
        self.hangs += u64::from(entry.outcome == Outcome::Hung);
        self.cleanup_failures += u64::from(entry.cleanup_failed);
        self.failing_without.extend(entry.fails_without);
        self.isolation = entry.isolation;
        self.numbers.push((number, entry.repeatable));
        self.curves.failures.push(self.failures as f64);
        self.curves.impact.push(entry.impact);
        self.curves.seconds.push(entry.seconds);
        self.curves.sensitivity.push(self.search.sensitivity());
        self.results.push(ScenarioResult {
            name: format!("{:06}", self.results.len() + 1),
            scenario: scenario.to_string(),
            position: entry.position,
            outcome: entry.outcome,
            impact: entry.impact,
            fitness,
            precision: None,
            repeats: "not repeated".to_owned(),
            relevance,
            cluster: None,
            is_representative: false,
            injected: entry.injected,
            why: entry.why,
            stack: entry.stack,
            arguments: entry.arguments,
        });
    }

    /// Returns the clusters of failures: the results of each, by first stack and outcome.
    fn clusters(&self) -> BTreeMap<(usize, Outcome), Vec<usize>> {
        let mut clusters: BTreeMap<(usize, Outcome), Vec<usize>> = BTreeMap::new();
        for (at, (result, (number, _))) in self.results.iter().zip(&self.numbers).enumerate() {
            if result.outcome.is_failure() {
                clusters
                    .entry((self.stacks.root(*number), result.outcome))
                    .or_default()
                    .push(at);
            }
        }
        clusters
    }

    /// Returns whether no failure before the last result is like it.
    fn is_first_of_its_cluster(&self) -> bool {
        let last = self.results.len().saturating_sub(1);
        let mut clusters = self.clusters().into_values();
        clusters.any(|cluster| cluster == [last])
    }

    /// Repeats failures, to measure their precision.
    fn repeat(&mut self, system: &System, jobs: usize) -> Result<()> {
        let times = self.config.repetitions.saturating_sub(1);
        let is_failure = |at: &usize| self.results[*at].outcome.is_failure();
        let failures: Vec<usize> = (0..self.results.len()).filter(is_failure).collect();
        if times == 0 || failures.is_empty() || self.is_interrupted {
            return Ok(());
        }
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let asked = Mutex::new(asked);
        for at in &failures {
            let point = self.space.point(self.results[*at].position);
            for _ in 0..times {
                let _ = questions.send((*at as u64, self.space.scenario(&point)));
            }
        }
        drop(questions);
        let mut impacts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let outcome = std::thread::scope(|scope| {
            for _ in 0..jobs {
                let (answer, asked) = (answer.clone(), &asked);
                scope.spawn(move || work(system, asked, &answer));
            }
            drop(answer);
            for (at, seen) in answers {
                if self.stop.load(Ordering::Relaxed) {
                    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                    while asked.try_recv().is_ok() {}
                    return Ok(());
                }
                match seen {
                    Ok((seen, without)) => {
                        let none = BTreeSet::new();
                        let measured = measure(&self.config.impact, &seen, Some(&without), &none);
                        impacts
                            .entry(at as usize)
                            .or_default()
                            .push(measured.repeatable);
                    }
                    Err(Error::Manager(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        outcome?;
        for (at, mut again) in impacts {
            if again.len() < times as usize {
                continue;
            }
            again.push(self.numbers[at].1);
            let mean = again.iter().sum::<f64>() / again.len() as f64;
            let variance =
                again.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / again.len() as f64;
            let result = &mut self.results[at];
            result.precision = (variance > 0.0).then(|| 1.0 / variance);
            result.repeats = match variance > 0.0 {
                true => "varies".to_owned(),
                false => "always the same".to_owned(),
            };
        }
        Ok(())
    }

    /// Writes what is known about failures only at the end: their cluster, and how they repeat.
    fn write_results(&self) -> Result<()> {
        for result in self.results.iter().filter(|one| one.outcome.is_failure()) {
            regression::write_result(self.folder, result)?;
        }
        Ok(())
    }

    /// Returns the number of scenarios whose faults happened; `None` if that is not known, or if no
    /// scenario had a fault to inject.
    fn injected(&self, system: &System) -> Option<u64> {
        let is_due = |result: &&ScenarioResult| {
            let scenario = self.space.scenario(&self.space.point(result.position));
            let planned = system.plan(&scenario);
            result.injected.is_some() && planned.is_ok_and(|planned| planned.has_faults())
        };
        let mut due = self.results.iter().filter(is_due).peekable();
        due.peek()?;
        Some(due.filter(|result| result.injected == Some(true)).count() as u64)
    }

    /// Returns the summary of the search.
    fn summary(&mut self, system: &System) -> FaultSummary {
        let clusters = self.clusters();
        for (number, members) in (1..).zip(clusters.values()) {
            // The worst result represents its cluster; the first one of equally bad results.
            let worst = members.iter().copied().reduce(|one, two| {
                if self.results[two].impact > self.results[one].impact {
                    two
                } else {
                    one
                }
            });
            for at in members {
                self.results[*at].cluster = Some(number);
                self.results[*at].is_representative = Some(*at) == worst;
            }
        }
        let mut results = self.results.clone();
        results.sort_by(|one, two| {
            two.impact
                .total_cmp(&one.impact)
                .then_with(|| one.name.cmp(&two.name))
        });
        let names = self.space.names().iter().map(|(fault, name)| match fault {
            0 => name.clone(),
            fault => format!("{name}{}", fault + 1),
        });
        let errors = self
            .results
            .iter()
            .filter(|result| result.outcome == Outcome::Error);
        let covered = self.covered.len() as u64;
        let scenarios_injected = self.injected(system);
        let never = (scenarios_injected == Some(0)).then(|| never_injected(self.config));
        let never = never.into_iter().chain(unstable(&self.results));
        let never = never.chain(misspelt(self.config, self.space));
        let never = never.chain(self.cores.warning());
        FaultSummary {
            scenarios_injected,
            warnings: never.collect(),
            scenarios_total: self.space.size(),
            scenarios_run: self.results.len() as u64,
            failures: self.failures,
            crashes: self.crashes,
            hangs: self.hangs,
            errors: errors.count() as u64,
            clusters: clusters.len() as u64,
            search: self.config.search.clone(),
            seed: self.config.seed,
            injector: self.config.injector.clone(),
            isolation: self.isolation,
            is_complete: self.results.len() as u64 == self.space.size(),
            is_interrupted: self.is_interrupted,
            failing_without_faults: self.failing_without.iter().cloned().collect(),
            cleanup_failures: self.cleanup_failures,
            lines_covered: (self.config.impact.coverage > 0.0)
                .then_some([self.covered_without, covered]),
            sensitivity: names.zip(self.search.sensitivity()).collect(),
            results,
            ..FaultSummary::default()
        }
    }
}
