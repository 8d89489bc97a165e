//! The native programs of a run, and the replay of traces on them: a program is a world of one host
//! without a network. Owns the ways in which a replay is tried before it counts as not reproduced.

use everett_engine::WorldHost;
use everett_invariant::Invariants;
use everett_native::{
    Checks as Times, Guide, KnownPrograms, NativeEnd, NativeError, NativeHost, NativeNetwork,
    NativeRun, NoWatcher, Source, Watcher, WorldRun, is_checked_build, run_watched, run_world,
};
use everett_net::HostIndex;
use everett_scenario::Scenario;
use everett_sim::Network;
use everett_toolchain::{BuildLimits, Checks, ToolchainError, checked_build, keeps_errors};
use everett_vm::Outside;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::acceptance::Acceptance;
use crate::compare::{checks_for, diverged};
use crate::config::{add_libraries, expect_native, native_config, program_config, program_host};
use crate::disk::RealDisk;
use crate::error::{Context, Error, Result, bail};
use crate::load::OtherBuild;
use crate::points::{PointFinder, attempts, scripted};
use crate::replaced::ReplacedFunctions;
use crate::scenario::load_scenario;
use crate::session::{Notices, Session};
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::{INVARIANT, WorldTrace};
use crate::verdict::{Build, Verdict};
use crate::world::checks::{Confirming, invariants};
use crate::world::hosts::{draw_by, expect_ends, native_hosts};
use crate::world::network;

/// Maximum number of native runs for a finding with preemptions between system calls.
const MAX_ATTEMPTS: usize = 50;
/// Maximum number of native runs for a path without a finding but with such preemptions.
const MAX_ATTEMPTS_OF_TESTS: usize = 9;
/// Maximum number of native runs for a data race. Each run holds a thread before a different
/// access.
const MAX_SPARED: u32 = 20;
/// The invariants that a native run evaluates.
#[derive(Copy, Clone, Debug)]
pub(crate) enum CheckedInvariants<'m> {
    /// None: the world continues whatever its hosts expose.
    Nothing,
    /// The invariant with this message when it is violated.
    Invariant(&'m str),
    /// All invariants.
    AnyInvariant,
}

impl CheckedInvariants<'_> {
    /// Returns the invariants that the replay of a trace evaluates. A world continues after a
    /// violated invariant unless that is the finding to confirm.
    fn of(trace: &WorldTrace) -> CheckedInvariants<'_> {
        match &trace.finding {
            Some(wrong) if wrong.kind == INVARIANT => CheckedInvariants::Invariant(&wrong.message),
            _ => CheckedInvariants::Nothing,
        }
    }
}

/// The context of the hosts of a scenario: network, invariants, live peers.
pub(crate) struct WorldContext {
    /// The scenario.
    pub scenario: Scenario,
    network: Network,
    /// The virtual time at which a run is cut off, in nanoseconds.
    pub max_virtual_ns: Option<u64>,
    invariants: Vec<Arc<Invariants>>,
    /// Answers for live peers; without it, their answers are those of traces.
    outside: Option<Arc<dyn Outside>>,
}

impl WorldContext {
    /// Returns the names of the faults of the network and its hosts.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &str> {
        let faults = self.network.faults.list().iter();
        faults.map(|fault| fault.name.as_str())
    }
}

/// The native programs of a run.
pub(crate) struct NativeWorld {
    /// The hosts of the run.
    pub hosts: Vec<NativeHost>,
    /// The context of the hosts; `None` for a program.
    pub context: Option<WorldContext>,
    /// The limits of checked builds.
    pub builds: BuildLimits,
    /// When the server has accepted the message of a sender, if there is one.
    pub acceptance: Option<Acceptance>,
    points: PointFinder,
    notices: Notices,
}

/// A replay: its verdict and what decided it.
pub(crate) struct Replayed {
    /// The verdict.
    pub verdict: Verdict,
    /// The run that decided the verdict.
    pub seen: Option<WorldRun>,
    /// The checks of the build that ran; `None` for the plain build.
    pub checks: Option<Checks>,
}

impl Replayed {
    fn plain((verdict, seen): (Verdict, Option<WorldRun>)) -> Replayed {
        Replayed {
            verdict,
            seen,
            checks: None,
        }
    }

    /// Returns the checks of the build that confirms the trace; `None` if the plain build does, or
    /// none.
    pub(crate) fn confirming_checks(&self) -> Option<Checks> {
        self.checks.filter(|_| self.verdict == Verdict::Confirmed)
    }

    /// Returns the build on which the trace was confirmed.
    pub(crate) fn confirmed_on(&self) -> Option<Build> {
        (self.verdict == Verdict::Confirmed).then_some(Build(self.checks))
    }
}

/// A watcher for each host.
pub(crate) type Watchers<'w> = Vec<Box<dyn Watcher + 'w>>;

/// Creates watchers that ignore all events.
pub(crate) fn nobody<'w>(hosts: &[NativeHost]) -> Watchers<'w> {
    let hosts = hosts.iter();
    hosts
        .map(|_| Box::new(NoWatcher) as Box<dyn Watcher>)
        .collect()
}

impl NativeWorld {
    /// Returns the native programs of a run, with other builds of them if requested.
    pub(crate) fn of(spec: &RunSpec, build: &BuildSpec, session: &Session) -> Result<NativeWorld> {
        let (mut hosts, context) = match spec.is_scenario() {
            true => of_scenario(spec, build, session)?,
            false => (vec![of_program(spec, build, session)?], None),
        };
        let builds = BuildLimits::NONE;
        for host in hosts.iter_mut().filter(|_| build.checked) {
            let programs = &host.config.programs;
            let checked = checked_builds(programs, Checks::Memory, builds, &session.notices)?;
            host.config.programs = checked;
        }
        let mut world = NativeWorld {
            builds,
            hosts,
            context,
            acceptance: None,
            points: PointFinder::of(spec, session),
            notices: session.notices.clone(),
        };
        let acceptance = Acceptance::of(spec);
        if let Some(acceptance) = &acceptance {
            acceptance.watch(&mut world.hosts);
        }
        world.acceptance = acceptance;
        Ok(world)
    }

    /// Makes live peers answer instead of the recording.
    pub(crate) fn ask_live_peers(&mut self) -> Result<()> {
        let Some(around) = &mut self.context else {
            return Err(Error::not_applicable(
                "live",
                "is for scenarios with live peers",
            ));
        };
        around.outside = Some(crate::peers::live(&around.scenario)?);
        Ok(())
    }

    /// Returns whether the world is a single program.
    pub(crate) fn is_program(&self) -> bool {
        self.context.is_none()
    }

    /// Runs hosts of this world. A violation of a wanted invariant ends the run.
    pub(crate) fn run<'c>(
        &self,
        hosts: &'c [NativeHost],
        guides: Vec<Guide<'c>>,
        looked_for: CheckedInvariants<'_>,
    ) -> Result<WorldRun, NativeError> {
        let Some(around) = &self.context else {
            return run_alone(hosts, guides);
        };
        let mut confirming = match looked_for {
            CheckedInvariants::Nothing => None,
            CheckedInvariants::Invariant(message) => {
                Some(Confirming::new(&around.invariants, Some(message)))
            }
            CheckedInvariants::AnyInvariant => Some(Confirming::new(&around.invariants, None)),
        };
        let files = around.invariants.iter();
        let times = Times {
            times: files.flat_map(|file| file.times()).collect(),
            check: &mut |trigger, shown| confirming.as_mut()?.check_running(trigger, shown),
        };
        let network = NativeNetwork {
            network: &around.network,
            max_virtual_ns: around.max_virtual_ns,
            outside: around.outside.clone(),
        };
        let mut seen = run_world(hosts, &network, guides, times)?;
        let meets_limit = |run: &NativeRun| matches!(run.end, NativeEnd::Limit(_));
        let is_cut = seen.is_cut || seen.hosts.values().any(meets_limit);
        if let Some(confirming) = &mut confirming
            && seen.broken.is_none()
            && !is_cut
        {
            seen.broken = confirming.check_end(&seen.histories);
        }
        if let Some(confirming) = confirming {
            seen.unevaluated = confirming.failures;
        }
        Ok(seen)
    }

    /// Runs hosts as a trace prescribes.
    fn follow(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
        watchers: &mut Watchers<'_>,
    ) -> Result<WorldRun, NativeError> {
        let guides = hosts.iter().zip(watchers.iter_mut());
        let guides = guides.map(|(host, watcher)| Guide {
            source: Source::Trace(Box::new(trace.host(&host.name))),
            watcher: &mut **watcher,
        });
        self.run(hosts, guides.collect(), CheckedInvariants::of(trace))
    }

    /// Runs hosts as a trace prescribes, with a watcher on each.
    pub(crate) fn watch(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
        mut watchers: Watchers<'_>,
    ) -> Result<WorldRun> {
        let seen = self.follow(hosts, trace, &mut watchers);
        seen.with_context(|| self.not_run())
    }

    fn not_run(&self) -> String {
        let what = if self.is_program() {
            "program"
        } else {
            "programs"
        };
        format!("the native {what} could not be run")
    }

    /// Confirms a trace natively. Errors become the verdict `NotReplayable`.
    pub(crate) fn confirm(&self, trace: &WorldTrace) -> (Verdict, Option<Build>) {
        if !trace.has_end() {
            let why = "the trace does not say how it ends";
            return (Verdict::NotReplayable(why.to_owned()), None);
        }
        match self.replay(trace) {
            Ok(replayed) => {
                let build = replayed.confirmed_on();
                (replayed.verdict, build)
            }
            Err(error) => (Verdict::NotReplayable(error.chain()), None),
        }
    }

    /// Replays a trace and judges it.
    pub(crate) fn replay(&self, trace: &WorldTrace) -> Result<Replayed> {
        Ok(self.replay_with_points(trace)?.0)
    }

    /// Returns the hosts, with random bytes from this seed.
    pub(crate) fn seeded(&self, seed: u64) -> Vec<NativeHost> {
        let mut hosts = self.hosts.clone();
        for (host, at) in hosts.iter_mut().zip(0..) {
            draw_by(seed, HostIndex(at), &mut host.config.host);
        }
        hosts
    }

    /// Returns the hosts of a trace, with the random bytes of the trace.
    fn hosts_of(&self, trace: &WorldTrace) -> Vec<NativeHost> {
        match trace.random_seed {
            Some(seed) => self.seeded(seed),
            None => self.hosts.clone(),
        }
    }

    /// Returns the hosts of a trace, prepared for watchers: their threads switch between system
    /// calls as in the run that ends as the trace does, or as in the likeliest run if none does.
    pub(crate) fn prepared(&self, trace: &WorldTrace) -> Result<Vec<NativeHost>> {
        let hosts = self.hosts_of(trace);
        let scripts = self.points.scripts(&hosts, trace);
        if scripts.is_empty() || !trace.has_end() {
            return Ok(scripted(&hosts, &scripts));
        }
        Ok(self.replay_with_points(trace)?.1)
    }

    /// Replays a trace. Preemptions between system calls are known only by source line, so this
    /// tries several locations; only a run with the same end counts. Also returns the hosts of that
    /// run, or of the likeliest one.
    fn replay_with_points(&self, trace: &WorldTrace) -> Result<(Replayed, Vec<NativeHost>)> {
        let hosts = self.hosts_of(trace);
        let scripts = self.points.scripts(&hosts, trace);
        if scripts.is_empty() {
            let replayed = self.replay_on(&hosts, trace, &mut nobody(&hosts))?;
            return Ok((replayed, hosts));
        }
        let most = match trace.kind() {
            Some(_) => MAX_ATTEMPTS,
            None => MAX_ATTEMPTS_OF_TESTS,
        };
        let attempts = attempts(&scripts, most);
        let (mut last, tried) = (None, attempts.len());
        for attempt in attempts {
            let hosts = scripted(&hosts, &attempt);
            let replayed = self.replay_on(&hosts, trace, &mut nobody(&hosts))?;
            if !matches!(replayed.verdict, Verdict::NotReproduced(_)) {
                return Ok((replayed, hosts));
            }
            last = replayed.seen;
        }
        let verdict = Verdict::NotReplayable(format!(
            "threads were preempted between system calls, and none of {tried} native runs with nearby places ended \
             the same"
        ));
        let replayed = Replayed::plain((verdict, last));
        Ok((replayed, scripted(&hosts, &scripts)))
    }

    /// Replays a trace on hosts. If the end differs, replays on checked builds if the finding
    /// allows it, since native code survives many memory errors.
    pub(crate) fn replay_on(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
        watchers: &mut Watchers<'_>,
    ) -> Result<Replayed> {
        let (mut plain, mut seen) = self.try_on(hosts, trace, watchers)?;
        if trace.kind() == Some("data-race") {
            for race_skips in 1..MAX_SPARED {
                if plain == Verdict::Confirmed {
                    break;
                }
                let mut hosts = hosts.to_vec();
                for host in &mut hosts {
                    host.config.race_skips = race_skips;
                }
                (plain, seen) = self.try_on(&hosts, trace, watchers)?;
            }
        }
        let Some(why) = plain.reason() else {
            return Ok(Replayed::plain((plain, seen)));
        };
        let mut builds = trace.end().map_or_else(Vec::new, checks_for);
        let mut programs = hosts.iter().flat_map(|host| &host.config.programs);
        if trace.kind().is_some() && programs.any(|program| keeps_errors(program)) {
            builds.push(Checks::Nothing);
        }
        if builds.is_empty() {
            return Ok(Replayed::plain((plain, seen)));
        }
        let mut why = why.to_owned();
        let (mut checked, mut checks) = ((plain.clone(), None), None);
        for build in builds {
            checked = self.replay_checked(hosts, trace, why, build)?;
            checks = Some(build);
            match &checked.0 {
                Verdict::NotReproduced(other) => why = other.clone(),
                _ => break,
            }
        }
        // A run that diverges means that the program differs, unless a checked build shows that a
        // memory error is the cause.
        if seen.as_ref().is_some_and(|seen| diverged(seen).is_some())
            && checked.0 != Verdict::Confirmed
        {
            return Ok(Replayed::plain((plain, seen)));
        }
        Ok(Replayed {
            verdict: checked.0,
            seen: checked.1.or(seen),
            checks,
        })
    }

    /// Replays with checked builds on the host of the finding. `why` says how the end of the plain
    /// builds differs.
    fn replay_checked(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
        why: String,
        checks: Checks,
    ) -> Result<(Verdict, Option<WorldRun>)> {
        let mut hosts = hosts.to_vec();
        let mut is_other = false;
        let is_its = |host: &&mut NativeHost| match &trace.finding {
            Some(wrong) => wrong.host == host.name,
            None => true,
        };
        for host in hosts.iter_mut().filter(is_its) {
            let config = &mut host.config;
            match checked_builds(&config.programs, checks, self.builds, &self.notices) {
                Ok(programs) => {
                    is_other |= programs != config.programs;
                    config.programs = programs;
                }
                Err(error) => {
                    let error = no_checked_build(&error);
                    let why = format!("{why}; it has no {checks}: {error}");
                    return Ok((Verdict::NotReproduced(why), None));
                }
            }
            // The known facts about the programs belong to the plain builds.
            config.known = KnownPrograms::default();
            if let Some(script) = &mut config.script {
                script.lines = Arc::default();
            }
        }
        if !is_other {
            return Ok((Verdict::NotReproduced(why), None));
        }
        let (verdict, seen) = self.try_on(&hosts, trace, &mut nobody(&hosts))?;
        Ok(match verdict {
            Verdict::NotReproduced(other) => {
                let why = format!("{why}; in its {checks}, {other}");
                (Verdict::NotReproduced(why), seen)
            }
            verdict => (verdict, seen),
        })
    }

    fn try_on(
        &self,
        hosts: &[NativeHost],
        trace: &WorldTrace,
        watchers: &mut Watchers<'_>,
    ) -> Result<(Verdict, Option<WorldRun>)> {
        match self.follow(hosts, trace, watchers) {
            Ok(seen) => Ok((self.judge(trace, &seen), Some(seen))),
            Err(NativeError::NotReplayable(why)) => Ok((Verdict::NotReplayable(why), None)),
            Err(error) => Err(error).with_context(|| self.not_run()),
        }
    }
}

/// Runs the only host of a program.
fn run_alone(hosts: &[NativeHost], guides: Vec<Guide<'_>>) -> Result<WorldRun, NativeError> {
    let mut all = BTreeMap::new();
    for (host, guide) in hosts.iter().zip(guides) {
        let seen = run_watched(&host.config, guide.source, guide.watcher)?;
        all.insert(host.name.clone(), seen);
    }
    Ok(WorldRun {
        hosts: all,
        is_over: true,
        ..WorldRun::default()
    })
}

/// Minimum memory of native hosts, whatever the limit of their run: a common part, and a part for
/// each.
const LEAST_MEMORY: (u64, u64) = (64 << 20, 64 << 20);

/// Limits the memory of native hosts that replay a run to that of the run, or to the minimum.
fn limit_memory<'h>(
    spec: &RunSpec,
    hosts: impl ExactSizeIterator<Item = &'h mut everett_native::NativeConfig>,
) {
    let (together, each) = LEAST_MEMORY;
    let least = together + each * hosts.len() as u64;
    let most = spec.max_memory.unwrap_or(u64::MAX).max(least);
    for config in hosts {
        config.max_memory = config.max_memory.min(most);
    }
}

/// Returns the host of a program.
fn of_program(spec: &RunSpec, build: &BuildSpec, session: &Session) -> Result<NativeHost> {
    let explored = program_config(spec, session)?;
    let programs = spec.on(&build.on)?.native_programs();
    for program in &programs {
        expect_native(program)?;
    }
    let alone = WorldHost::alone(program_host(explored));
    let mut config = native_config(alone.config, programs, session)?;
    limit_memory(spec, std::iter::once(&mut config));
    Ok(NativeHost {
        name: alone.name,
        config,
        start: alone.start,
        expects: alone.expects,
        begin: alone.begin,
        peer: None,
        logs_waits: false,
    })
}

/// Returns the hosts of a scenario and their context.
fn of_scenario(
    spec: &RunSpec,
    build: &BuildSpec,
    session: &Session,
) -> Result<(Vec<NativeHost>, Option<WorldContext>)> {
    let mut scenario = load_scenario(&spec.scenario())?;
    let run = spec.with_scenario(&scenario)?.with_defaults()?;
    if run.check_deadlocks {
        expect_ends(&mut scenario);
    }
    let seed = run.seed.unwrap_or_default();
    let replaced = ReplacedFunctions::of_run(&run, &scenario);
    let mut hosts = native_hosts((&scenario, seed), &replaced, session)?;
    limit_memory(&run, hosts.iter_mut().map(|host| &mut host.config));
    for other in &build.on {
        expect_native(&other.file)?;
        let replaced = replace(&scenario, &mut hosts, (other, &replaced), session)?;
        if let (0, Some(name)) = (replaced, &other.path) {
            let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
            bail!(
                Usage,
                "there is no host {name}; there are: {}",
                names.join(", ")
            );
        }
    }
    let context = WorldContext {
        network: network(&scenario, &run),
        max_virtual_ns: run.max_virtual_ns(),
        invariants: invariants(&RealDisk, &scenario)?,
        outside: None,
        scenario,
    };
    Ok((hosts, Some(context)))
}

/// Replaces the program of a host, of a group of hosts, or of all hosts by another build. Returns
/// the number of replaced programs.
fn replace(
    scenario: &Scenario,
    hosts: &mut [NativeHost],
    (other, replaced_functions): (&OtherBuild, &ReplacedFunctions),
    session: &Session,
) -> Result<usize> {
    let mut replaced = 0;
    for (setup, host) in scenario.hosts.iter().zip(hosts) {
        let names = [&setup.name, &setup.group];
        if other
            .path
            .as_ref()
            .is_some_and(|name| !names.contains(&name))
        {
            continue;
        }
        replaced += 1;
        if let Some(program) = host.config.programs.first_mut() {
            program.clone_from(&other.file);
        }
        // A native build without bitcode is assumed to have the same functions.
        let functions = replaced_functions.in_program(&RealDisk, &other.file);
        if let (Some(known), Ok(functions)) = (host.config.replaced.first_mut(), functions) {
            *known = functions;
        }
        let programs = std::slice::from_ref(&other.file);
        add_libraries(&mut host.config.host, programs, session)?;
    }
    Ok(replaced)
}

/// Returns why a program has no checked build, in one line.
fn no_checked_build(error: &ToolchainError) -> String {
    let error = error.to_string();
    match error.lines().find(|line| line.contains("undefined symbol")) {
        // Checked builds are made from bitcode, which does not contain machine code.
        Some(line) => format!(
            "parts of the program are assembly or machine code ({})",
            line.trim()
        ),
        None => error.lines().next().unwrap_or_default().to_owned(),
    }
}

/// Returns the builds of programs that perform certain checks.
fn checked_builds(
    programs: &[PathBuf],
    checks: Checks,
    limits: BuildLimits,
    notices: &Notices,
) -> Result<Vec<PathBuf>, ToolchainError> {
    let notify = |text: &str| notices.tell(text);
    let checked = |program: &Path| checked_build(program, checks, limits, &notify);
    let build = |program: &PathBuf| match (is_checked_build(program), checks) {
        (false, _) => checked(program),
        (true, Checks::Memory) => Ok(program.clone()),
        // Builds with other checks are beside the plain program, too.
        (true, _) => checked(&program.with_extension("")),
    };
    programs.iter().map(build).collect()
}

/// Reports which programs contain instructions whose results are those of the real machine.
pub(crate) fn tell_revealing<'p>(
    programs: impl IntoIterator<Item = &'p PathBuf>,
    session: &Session,
) {
    let programs: BTreeSet<&PathBuf> = programs.into_iter().collect();
    for program in programs {
        let names = everett_native::revealing_instructions(program);
        if !names.is_empty() {
            session.notices.tell(&format!(
                "{} contains {}, which this processor cannot trap: what they return is not the model's",
                program.display(),
                names.join(", ")
            ));
        }
    }
}
