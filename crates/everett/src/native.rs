//! `native`: runs native programs under the kernel model without a trace, once or many times. The
//! seed determines the run. Must not know the engine's search.

use everett_engine::{Trace, TraceEnd, digest};
use everett_native::{
    Deadline, Guide, NativeConfig, NativeEnd, NativeHost, NativeRun, Order, RandomSchedule, Source,
    Survey, Watcher, WorldRun,
};
use everett_report::Folder;
use everett_report::counted;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::compare::{NOT_ENDED, describe};
use crate::conclusion::{Conclusion, has_failed, is_given_up, is_tool_limit};
use crate::config::{expect_native, native_config};
use crate::error::{Context, Error, Result};
use crate::finding::others;
use crate::host::HostSpec;
use crate::native_world::{CheckedInvariants, NativeWorld, nobody, tell_revealing};
use crate::points::are_possible;
use crate::scenario::load_scenario;
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec, results_folder};
use crate::tally::{NativeUnsupported, Tally};
use crate::text::never_fired_text;
use crate::trace::{HOST, WorldTrace, Wrong};
use crate::world::chart::messages_files;

/// Default time limit of concrete runs.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(3600);

/// Default depth of random schedules: many races need two preemptions, hardly any needs more.
const DEPTH: u32 = 3;
/// The seed of the run that searches for shared accesses. It does not depend on the seeds of the
/// other runs, so that each of them alone gives the same result.
const SURVEY_SEED: u64 = 0;

/// Maximum memory of earlier runs that is kept; beyond it, memory is returned to the machine.
const MUCH_KEPT: u64 = 4 << 20;

/// Maximum number of runs that search for shared accesses with threads in one order.
const MAX_SURVEYS: u32 = 4;

/// Native programs to run under the kernel model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeSpec {
    /// The seed of all choices, such as schedules and faults.
    pub seed: u64,
    /// Number of runs to make and summarise, with consecutive seeds; by default a
    /// single run whose output is shown.
    pub runs: Option<NonZeroU32>,
    /// Depth of random schedules of many runs; by default 3.
    pub depth: Option<NonZeroU32>,
    /// Folder for the findings of many runs; by default the next number below everett-out/.
    pub out: Option<PathBuf>,
    /// Whether the system calls of a single run are logged.
    pub logs_calls: bool,
    /// The time limit of all runs; by default an hour.
    pub max_time: Option<Duration>,
    /// Maximum memory of a run; by default 4 GiB.
    pub max_memory: Option<u64>,
    /// Keys of the scenario to override, with their values.
    pub settings: Vec<(String, String)>,
    /// The host of a single program.
    #[serde(flatten)]
    pub host: HostSpec,
    /// The program and its arguments, or a scenario.
    pub command: Vec<OsString>,
}

impl NativeSpec {
    /// Creates the spec of one run of a program with its arguments, or of a scenario.
    pub fn new<W: Into<OsString>>(command: impl IntoIterator<Item = W>) -> NativeSpec {
        NativeSpec {
            command: command.into_iter().map(Into::into).collect(),
            ..NativeSpec::default()
        }
    }

    /// Returns the maximum memory of a run.
    pub(crate) fn max_memory(&self) -> u64 {
        self.max_memory.unwrap_or(everett_native::MAX_MEMORY)
    }

    /// Returns the deadline of all runs.
    pub(crate) fn deadline(&self, session: &Session) -> Deadline {
        let (clock, most) = (session.clock, self.max_time.unwrap_or(MAX_TIME));
        let stop = session.stop.clone();
        Arc::new(move || clock.now() >= most || stop.load(Ordering::Relaxed))
    }

    /// Returns the equivalent spec for other operations.
    pub(crate) fn run(&self) -> RunSpec {
        RunSpec {
            host: self.host.clone(),
            ..RunSpec::new(self.command.clone())
        }
    }
}

/// The result of native runs.
pub enum NativeResult {
    /// One run of a program.
    Program(Box<NativeRun>),
    /// One run of a world.
    World {
        /// The run.
        run: Box<WorldRun>,
        /// The finding, if there is one.
        wrong: Option<Wrong>,
        /// The reason why a run without a finding says little, if there is one.
        warning: Option<String>,
        /// Faults that did not happen in the run.
        faults_never_fired: Vec<String>,
    },
    /// Many runs.
    Many {
        /// The folder of the results.
        folder: PathBuf,
        /// How the runs ended.
        summary: NativeSummary,
        /// Number of distinct ends that are findings about the program.
        findings: u32,
        /// Whether they are runs of a world.
        is_world: bool,
    },
}

impl NativeResult {
    /// Returns what the user should know besides logs, output and totals: warnings of the kernel
    /// model, findings, and why the runs say little.
    pub fn notices(&self) -> Vec<String> {
        match self {
            NativeResult::Program(run) => {
                let end = !matches!(run.end, NativeEnd::Exit(_));
                let end = end.then(|| format!("the program {}", describe(run)));
                model_notices(run).chain(end).collect()
            }
            NativeResult::World {
                run,
                wrong,
                warning,
                faults_never_fired,
            } => {
                let mut notices = world_notices(run, wrong.as_ref());
                notices.extend(warning.clone());
                notices.extend(never_fired_text(faults_never_fired));
                notices
            }
            NativeResult::Many { summary, .. } => {
                let unsupported = summary.unsupported.iter().map(|one| {
                    let host = one.host.as_ref().map(|host| format!("host {host}: "));
                    format!("{}{} is not modelled", host.unwrap_or_default(), one.what)
                });
                summary
                    .warnings
                    .iter()
                    .cloned()
                    .chain(unsupported)
                    .collect()
            }
        }
    }
}

/// Returns the warnings of a host's kernel model.
fn model_notices(run: &NativeRun) -> impl Iterator<Item = String> + '_ {
    let refusals = run.refusals.iter();
    let refused = refusals.map(|one| format!("{} is not modelled", one.what));
    run.warnings.iter().cloned().chain(refused)
}

fn world_notices(run: &WorldRun, wrong: Option<&Wrong>) -> Vec<String> {
    let mut notices = Vec::new();
    for (name, run) in &run.hosts {
        notices.extend(model_notices(run).map(|note| format!("host {name}: {note}")));
    }
    notices.extend(wrong.map(|it| format!("host {}: {}: {}", it.host, it.kind, it.message)));
    for (name, run) in &run.hosts {
        if let NativeEnd::Limit(_) | NativeEnd::Diverged(_) = run.end {
            notices.push(format!("host {name} {}", describe(run)));
        }
    }
    let unevaluated = run.unevaluated.iter();
    notices.extend(unevaluated.map(|why| format!("an invariant could not be evaluated: {why}")));
    if run.is_cut {
        notices.push("the world is cut off at its limit of virtual time".to_owned());
    }
    notices
}

/// Runs native programs under the kernel model. A single program reads its
/// standard input from the watcher.
pub fn native(
    spec: &NativeSpec,
    session: &Session,
    watcher: &mut dyn Watcher,
) -> Result<NativeResult> {
    let mut run = spec.run();
    let with_limits = |run: &RunSpec| RunSpec {
        max_time: spec.max_time,
        max_memory: spec.max_memory,
        ..run.clone()
    };
    with_limits(&run).check()?;
    let mut spec = spec.clone();
    if run.is_scenario() {
        run.settings.extend_from_slice(&spec.settings);
        run.refuse_what_scenarios_say()?;
        let scenario = load_scenario(&run.scenario())?;
        let resolved = with_limits(&run).with_scenario(&scenario)?;
        (spec.max_time, spec.max_memory) = (resolved.max_time, resolved.max_memory);
    } else if !spec.settings.is_empty() {
        return Err(Error::not_applicable("settings", "is for scenarios"));
    }
    if let Some(program) = run.native_programs().first().filter(|_| !run.is_scenario()) {
        expect_native(program)?;
    }
    match spec.runs {
        Some(runs) => many(&spec, session, run, runs.get()),
        None if run.is_scenario() => one_world(&spec, session, &run),
        None => one(&spec, session, &run, watcher),
    }
}

/// Runs a program once as it would run on Linux: faults go to signal handlers, and the crash of a
/// child does not end its parent.
fn one(
    spec: &NativeSpec,
    session: &Session,
    run: &RunSpec,
    watcher: &mut dyn Watcher,
) -> Result<NativeResult> {
    let host = spec.host.live(&spec.command, spec.logs_calls, session)?;
    let programs = run.native_programs();
    for program in programs.iter().filter(|program| program.exists()) {
        expect_native(program)?;
    }
    tell_revealing(&programs, session);
    let config = until_it_ends(native_config(host, programs, session)?, spec, session);
    let seen = everett_native::run_watched(&config, Source::Random(spec.seed), watcher)
        .context("the native program could not be run")?;
    Ok(NativeResult::Program(Box::new(seen)))
}

/// Returns the configuration of a program that a user watches. It has no limits of computation and
/// of calls, because it may well end; the deadline ends it otherwise.
fn until_it_ends(config: NativeConfig, spec: &NativeSpec, session: &Session) -> NativeConfig {
    NativeConfig {
        max_memory: spec.max_memory(),
        counts_own_memory: true,
        deadline: Some(spec.deadline(session)),
        max_long_computations: u32::MAX,
        max_calls: spec.host.max_calls.unwrap_or(u64::MAX),
        ..config
    }
}

/// Runs a world once.
fn one_world(spec: &NativeSpec, session: &Session, run: &RunSpec) -> Result<NativeResult> {
    let mut world = limited(spec, session, run)?;
    for host in &mut world.hosts {
        host.config.host.options.logs_calls = spec.logs_calls;
    }
    let run = run_once(&world, spec.seed)?;
    let mut tally = Tally::default();
    tally.add(&run, false);
    Ok(NativeResult::World {
        wrong: world.wrong_with(&run),
        warning: tally.world_warning(&world),
        faults_never_fired: tally.never_fired(&world),
        run: Box::new(run),
    })
}

/// A group of runs that ended the same.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// A description of the end.
    pub end: String,
    /// Number of runs.
    pub runs: u32,
    /// The first seed with this end.
    pub seed: u64,
    /// The folder of the first trace, if the end is a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// The contents of `summary.json` for many runs.
#[derive(Clone, Debug, Serialize)]
pub struct NativeSummary {
    /// Number of runs.
    pub runs: u32,
    /// The first seed.
    pub seed: u64,
    /// Total number of system calls.
    pub calls: u64,
    /// Number of runs that Everett ended: at a limit, or at something that it does not support.
    pub failed: u32,
    /// Whether there are fewer runs than requested, because the operation was interrupted.
    pub is_interrupted: bool,
    /// How the runs ended.
    pub ends: Vec<Ended>,
    /// Limits that some runs reached, by the names of their options. The program continued
    /// differently than on a real machine, or was ended.
    pub limits_hit: BTreeSet<&'static str>,
    /// Warnings of the kernel model, and reasons why runs without findings say little.
    pub warnings: BTreeSet<String>,
    /// Faults of the scenario and failures of calls that did not happen in any run.
    pub faults_never_fired: Vec<String>,
    /// Operations that the kernel model refused or ignored although Linux would do them.
    pub unsupported: Vec<NativeUnsupported>,
    /// Wall-clock time of all runs.
    pub wall_seconds: f64,
}

impl NativeSummary {
    /// Describes how many runs ended in which way, for people; `who` names the subject. `say` is
    /// applied to texts of the library: findings can quote the program, which must not be changed.
    pub fn text(
        &self,
        folder: &Path,
        findings: u32,
        who: &str,
        say: impl Fn(&str) -> String,
    ) -> String {
        let mut lines = Vec::new();
        lines.push(format!(
            "{}, {}, {}, {:.2} s, {:.0} runs/s, {:.0} system calls/s",
            counted(self.runs, "run"),
            counted(self.ends.len(), "distinct end"),
            counted(findings, "finding"),
            self.wall_seconds,
            f64::from(self.runs) / self.wall_seconds,
            self.calls as f64 / self.wall_seconds,
        ));
        for ended in &self.ends {
            let (end, place) = match &ended.finding {
                Some(place) => (
                    ended.end.clone(),
                    format!(": {}", folder.join(place).display()),
                ),
                None => (say(&ended.end), String::new()),
            };
            lines.push(format!(
                "{:>8} {who}{end} (first with seed {}){place}",
                ended.runs, ended.seed
            ));
        }
        if !self.limits_hit.is_empty() {
            let limits: Vec<&str> = self.limits_hit.iter().copied().collect();
            lines.push(format!("limits reached: {}", limits.join(", ")));
        }
        lines.extend(never_fired_text(&self.faults_never_fired));
        lines.join("\n")
    }
}

/// Schedules threads at random unless the spec or the scenario names a scheduler.
fn schedule_at_random(run: &mut RunSpec) -> Result<()> {
    if !run.is_scenario() {
        run.host.schedule_at_random();
        return Ok(());
    }
    for host in load_scenario(&run.scenario())?.hosts {
        let host = HostSpec::of_scenario(&host.options)?;
        if host.scheduler.is_some() || host.preempt.is_some() {
            return Ok(());
        }
    }
    let mut host = HostSpec::default();
    host.schedule_at_random();
    let settings = [("scheduler", host.scheduler), ("preempt", host.preempt)];
    for (key, value) in settings {
        let value = value.unwrap_or_default();
        run.settings.push((format!("defaults.{key}"), value));
    }
    Ok(())
}

/// Runs a world once with random choices.
fn run_once(world: &NativeWorld, seed: u64) -> Result<WorldRun> {
    let hosts = match world.is_program() {
        true => world.hosts.clone(),
        false => world.seeded(seed),
    };
    run_begun(world, &hosts, seed, &BTreeMap::new())
}

/// Runs hosts of a world with random choices. They may start with traces.
pub(crate) fn run_begun(
    world: &NativeWorld,
    hosts: &[NativeHost],
    seed: u64,
    begun: &BTreeMap<String, Trace>,
) -> Result<WorldRun> {
    let mut watchers = nobody(hosts);
    let guided = (1u64..).zip(hosts).zip(&mut watchers);
    let guides = guided.map(|((number, host), watcher)| {
        // Each host draws from an independent random source.
        let seed = match world.is_program() {
            true => seed,
            false => seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        let begun = begun.get(&host.name).cloned();
        let begun = begun.or_else(|| Some(Trace::clone(host.begin.as_ref()?)));
        let source = match begun {
            Some(begin) => Source::Begun(Box::new(begin), seed),
            None => Source::Random(seed),
        };
        Guide {
            source,
            watcher: &mut **watcher,
        }
    });
    let seen = world.run(hosts, guides.collect(), CheckedInvariants::AnyInvariant);
    seen.with_context(|| format!("seed {seed}"))
}

/// Returns the world of a run, within the limits of the spec.
fn limited(spec: &NativeSpec, session: &Session, run: &RunSpec) -> Result<NativeWorld> {
    let mut world = NativeWorld::of(run, &BuildSpec::default(), session)?;
    for host in &mut world.hosts {
        host.config.max_memory = spec.max_memory();
        host.config.counts_own_memory = true;
        host.config.deadline = Some(spec.deadline(session));
    }
    let programs = world.hosts.iter().flat_map(|host| &host.config.programs);
    tell_revealing(programs, session);
    Ok(world)
}

/// Searches for accesses that can race while threads run in an order.
fn survey_in_order(world: &mut NativeWorld, order: Order) -> Result<()> {
    for host in &mut world.hosts {
        if let Some(random) = &mut host.config.random_schedule {
            (random.surveys, random.survey) = (Some(order), Arc::default());
        }
    }
    // A survey that stopped at many private accesses did not get far; the next one, without them,
    // does.
    for _ in 0..MAX_SURVEYS {
        let mut is_cut = false;
        let mut seen = run_once(world, SURVEY_SEED)?;
        for host in &mut world.hosts {
            let run = seen.hosts.get_mut(&host.name);
            let survey = run.and_then(|run| run.survey.take());
            if let (Some(random), Some(survey)) = (&mut host.config.random_schedule, survey) {
                is_cut |= survey.is_cut;
                Arc::make_mut(&mut random.survey).add(survey);
            }
        }
        if !is_cut {
            break;
        }
    }
    Ok(())
}

/// Prepares random schedules for hosts whose threads are preempted between system calls: surveys
/// find the accesses that can race first.
fn survey(world: &mut NativeWorld, spec: &NativeSpec, session: &Session) -> Result<()> {
    let mut is_any = false;
    for host in &mut world.hosts {
        if are_possible(&host.config) {
            is_any = true;
            host.config.random_schedule = Some(RandomSchedule {
                depth: spec.depth.map_or(DEPTH, NonZeroU32::get),
                ..RandomSchedule::default()
            });
        }
    }
    if !is_any {
        return Ok(());
    }
    survey_in_order(world, Order::OldestFirst)?;
    // A thread that ends before another one starts shares nothing with it; the other order may show
    // that.
    let hosts = world.hosts.iter();
    let oldest_first: Vec<_> = hosts
        .map(|host| host.config.random_schedule.clone())
        .collect();
    survey_in_order(world, Order::NewestFirst)?;
    for (host, other) in world.hosts.iter_mut().zip(oldest_first) {
        if let (Some(random), Some(other)) = (&mut host.config.random_schedule, other) {
            let survey = Survey::clone(&random.survey).merge(Survey::clone(&other.survey));
            (random.surveys, random.survey) = (None, Arc::new(survey));
            if !random.survey.has_accesses {
                let name = host.config.programs[0].display();
                session.notices.tell(&format!(
                    "{name} has no debug information (-g): threads are preempted at system calls only"
                ));
            }
        }
    }
    Ok(())
}

fn many(spec: &NativeSpec, session: &Session, mut run: RunSpec, runs: u32) -> Result<NativeResult> {
    schedule_at_random(&mut run)?;
    let mut world = limited(spec, session, &run)?;
    for host in &mut world.hosts {
        host.config.finds_panics = true;
    }
    survey(&mut world, spec, session)?;
    let folder = results_folder(spec.out.as_deref())?;
    run.write(&folder)?;
    let (started, used) = (session.now(), session.memory.used());
    let mut ends: BTreeMap<String, Ended> = BTreeMap::new();
    let mut tally = Tally::default();
    let is_stopped = || session.stop.load(Ordering::Relaxed);
    let (mut made, mut failed) = (0, 0);
    let (mut findings, mut places) = (0, 0);
    for number in 0..runs {
        let seed = spec.seed.wrapping_add(u64::from(number));
        // Memory that the allocator has kept from earlier runs would count for this one.
        if session.memory.used() > used + MUCH_KEPT {
            session.memory.release();
        }
        let seen = run_once(&world, seed)?;
        if is_stopped() {
            break;
        }
        made += 1;
        failed += u32::from(has_failed(&seen));
        tally.add(&seen, world.is_program());
        let wrong = world.wrong_with(&seen);
        let end = match seen.hosts.get(HOST).filter(|_| world.is_program()) {
            Some(run) => describe(run),
            None => end_of_world(&seen, wrong.as_ref()),
        };
        if let Some(known) = ends.get_mut(&end) {
            known.runs += 1;
            continue;
        }
        let finding = match wrong {
            Some(wrong) => {
                findings += u32::from(!is_tool_limit(&wrong.kind));
                places += 1;
                let place = format!("findings/{places:04}");
                write_finding(&folder, &place, &world, (seed, &seen), wrong)?;
                Some(place)
            }
            None => None,
        };
        let ended = Ended {
            end: end.clone(),
            runs: 1,
            seed,
            finding,
        };
        ends.insert(end, ended);
    }
    let summary = NativeSummary {
        runs: made,
        seed: spec.seed,
        calls: tally.calls,
        failed,
        is_interrupted: is_stopped(),
        ends: ends.into_values().collect(),
        warnings: tally.warnings(&world),
        faults_never_fired: tally.never_fired(&world),
        limits_hit: tally.limits_hit,
        unsupported: tally.unsupported.into_iter().collect(),
        wall_seconds: (session.now() - started).as_secs_f64(),
    };
    folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    Ok(NativeResult::Many {
        folder: folder.path().to_owned(),
        summary,
        findings,
        is_world: !world.is_program(),
    })
}

/// Returns the end of a run in the form that traces record; `None` if it has no such end, for
/// instance because it diverged.
fn end_of(seen: &NativeRun) -> Option<TraceEnd> {
    let output = [0, 1].map(|at| digest(&seen.output[at]));
    let end = TraceEnd {
        output,
        ..TraceEnd::default()
    };
    Some(match &seen.end {
        NativeEnd::Exit(status) => TraceEnd {
            exit: Some(*status),
            ..end
        },
        NativeEnd::Signal { signal, .. } => TraceEnd {
            signal: Some(*signal),
            ..end
        },
        NativeEnd::Finding { kind, .. } => TraceEnd {
            finding: Some(kind.clone()),
            ..end
        },
        NativeEnd::Hang => TraceEnd {
            finding: Some("hang".to_owned()),
            ..end
        },
        NativeEnd::Idle => TraceEnd { idle: true, ..end },
        NativeEnd::Diverged(_) | NativeEnd::Stopped | NativeEnd::Off | NativeEnd::Limit(_) => {
            return None;
        }
    })
}

/// Returns a description of how a world ended.
fn end_of_world(seen: &WorldRun, wrong: Option<&Wrong>) -> String {
    if let Some(wrong) = wrong {
        return format!("host {}: {}: {}", wrong.host, wrong.kind, wrong.message);
    }
    let hosts = seen.hosts.iter();
    let mut ends: Vec<String> = hosts
        .map(|(name, run)| match run.end {
            NativeEnd::Idle if !seen.is_over => format!("{name} {NOT_ENDED}"),
            _ => format!("{name} {}", describe(run)),
        })
        .collect();
    if seen.is_cut {
        ends.push("cut off at the limit of virtual time".to_owned());
    }
    let unevaluated = seen.unevaluated.iter();
    ends.extend(unevaluated.map(|why| format!("an invariant could not be evaluated: {why}")));
    ends.join(", ")
}

/// Returns the end of the host of the finding.
fn end_of_host(run: &NativeRun, wrong: &Wrong) -> TraceEnd {
    let own = end_of(run).filter(|end| end.finding.is_some() || end.signal.is_some());
    own.unwrap_or_else(|| TraceEnd {
        finding: Some(wrong.kind.clone()),
        output: [0, 1].map(|at| digest(&run.output[at])),
        ..TraceEnd::default()
    })
}

/// Writes the trace of a finding; for a world also a text and its messages.
pub(crate) fn write_finding(
    folder: &Folder,
    place: &str,
    world: &NativeWorld,
    (seed, seen): (u64, &WorldRun),
    wrong: Wrong,
) -> Result<()> {
    let mut hosts: BTreeMap<String, Trace> = BTreeMap::new();
    for (name, run) in &seen.hosts {
        let mut trace = run.trace.clone();
        if *name == wrong.host {
            trace.end = Some(end_of_host(run, &wrong));
        }
        hosts.insert(name.clone(), trace);
    }
    let mut trace = WorldTrace::of_hosts(hosts);
    trace.is_program = world.is_program();
    if let Some(around) = &world.context {
        let text = describe_finding(seen, &wrong, &trace);
        folder.write(&format!("{place}/finding.txt"), text.as_bytes())?;
        for (name, bytes) in messages_files(&around.scenario.topology, &seen.messages) {
            folder.write(&format!("{place}/{name}"), &bytes)?;
        }
        trace.finding = Some(wrong);
        trace.random_seed = Some(seed);
    }
    let name = trace.file(&format!("{place}/finding"));
    Ok(folder.write(&name, &trace.to_json())?)
}

/// Writes the trace of a world without a finding.
pub(crate) fn write_test(
    folder: &Folder,
    place: &str,
    (seed, seen): (u64, &WorldRun),
) -> Result<()> {
    let hosts = seen.hosts.iter().map(|(name, run)| {
        let trace = Trace {
            end: end_of(run),
            ..run.trace.clone()
        };
        (name.clone(), trace)
    });
    let mut trace = WorldTrace::of_hosts(hosts.collect());
    trace.random_seed = Some(seed);
    let name = trace.file(&format!("{place}/test"));
    Ok(folder.write(&name, &trace.to_json())?)
}

/// Describes the finding of a world.
fn describe_finding(seen: &WorldRun, wrong: &Wrong, trace: &WorldTrace) -> String {
    let mut text = format!(
        "{}: {}\non host {}\n",
        wrong.kind, wrong.message, wrong.host
    );
    text.push_str(&others(&trace.hosts, ""));
    for (name, run) in &seen.hosts {
        let time = run.clock_ns as f64 / 1e9;
        // The run of a world stops at its finding.
        let end = match run.end {
            NativeEnd::Idle if !seen.is_over => NOT_ENDED.to_owned(),
            _ => describe(run),
        };
        text.push_str(&format!("\nhost {name} at {time:.6} s: {end}\n"));
        for (what, bytes) in ["stdout", "stderr"].iter().zip(&run.output) {
            if !bytes.is_empty() {
                text.push_str(&format!("{what}:\n{}\n", String::from_utf8_lossy(bytes)));
            }
        }
    }
    text
}

impl NativeResult {
    /// Returns the conclusion of the runs. For the end of a single program, see [`crate::Guest`].
    pub fn conclusion(&self) -> Conclusion {
        match self {
            NativeResult::Program(run) => Conclusion::new(false, is_given_up(&run.end), false),
            NativeResult::World { run, wrong, .. } => {
                let is_found = |kind: &str| !is_tool_limit(kind);
                let has_findings = wrong.as_ref().is_some_and(|wrong| is_found(&wrong.kind));
                Conclusion::new(has_findings, has_failed(run), false)
            }
            NativeResult::Many {
                summary, findings, ..
            } => Conclusion::new(*findings > 0, summary.failed > 0, summary.is_interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_linux::HostConfig;

    #[test]
    fn a_single_run_has_no_limit_on_calls_unless_one_is_given() {
        let session = Session::new();
        let max_calls = |given| {
            let mut spec = NativeSpec::default();
            spec.host.max_calls = given;
            let config = native_config(HostConfig::default(), Vec::new(), &session).unwrap();
            assert!(config.max_calls < u64::MAX);
            until_it_ends(config, &spec, &session).max_calls
        };
        assert_eq!(max_calls(None), u64::MAX);
        assert_eq!(max_calls(Some(7)), 7);
    }
}
