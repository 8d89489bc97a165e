//! `explore` and `resume`: explore the paths of a program or the worlds of a scenario. Owns a search from its spec to
//! its summary; must not know how results are displayed.

use everett_engine::{Explorer, ExplorerConfig, Limits, Start, Stopped, WorldHost};
use everett_linux::{Boot, HostConfig};
use everett_report::Folder;
use everett_solver::{SmtConfig, SolverConfig};
use everett_vm::{Image, VmOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bootstrap::{self, Booted, boots};
use crate::checkpoint::{Checkpoint, SPILL_FILE};
use crate::error::{Context, Error, Result, bail};
use crate::events::{Event, Observer};
use crate::input::host_config;
use crate::record::{AfterRun, Recorder};
use crate::session::{Notices, Session};
use crate::spec::{ResumeSpec, RunSpec};
use crate::summary::{RunSummary, Summary};

/// Time budget for shrinking findings and confirming them natively.
const AFTER_TIME: Duration = Duration::from_secs(20);

/// The result of a search.
#[derive(Debug)]
pub struct RunResult {
    /// The folder of the run.
    pub folder: PathBuf,
    /// Findings, counters and coverage of the run.
    pub summary: RunSummary,
}

/// Explores a program or a scenario. Findings and tests are written to the folder of the run.
pub fn explore(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    spec.expect_command()?;
    if spec.is_scenario() {
        return crate::world::run(spec, session, observer);
    }
    let images = spec.load()?;
    if spec.dtest && !boots(&images) {
        bail!(
            Usage,
            "--dtest is for scenarios; the tests of one program are .ktest"
        );
    }
    if spec.world.is_some() && !boots(&images) {
        bail!(
            Usage,
            "--world is for programs that boot worlds; this one never calls klee_net_host_setup"
        );
    }
    let folder = spec.folder()?;
    spec.write(&folder)?;
    search(spec, session, observer, &images, &folder, None)
}

/// Resumes a stopped run from its checkpoint.
pub fn resume(
    resume: &ResumeSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let mut spec = RunSpec::of_program(&resume.dir)?;
    let checkpoint = Checkpoint::read(&resume.dir)?;
    spec.max_time = resume.max_time;
    spec.max_paths = resume.max_paths;
    spec.max_forks = resume.max_forks;
    let images = spec.load()?;
    if checkpoint.segments() != everett_vm::Coverage::of(&images).segments.len() {
        return Err(Error::ProgramChanged);
    }
    let folder = Folder::open(&resume.dir)?;
    search(&spec, session, observer, &images, &folder, Some(checkpoint))
}

fn search(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    images: &[Image],
    folder: &Folder,
    checkpoint: Option<Checkpoint>,
) -> Result<RunResult> {
    let mut config = explorer_config(spec, session, Some(folder.path().join(SPILL_FILE)))?;
    for host in &mut config.hosts {
        host.config.boot = Boot::StopAtSetup;
    }
    let start = checkpoint
        .as_ref()
        .map_or(Start::Beginning, Checkpoint::start);
    let mut explorer = Explorer::new(images, config, start)?;
    observer.event(&Event::Started {
        folder: folder.path(),
    });
    let outcome = search_with(
        spec,
        session,
        observer,
        &mut explorer,
        folder,
        checkpoint.as_ref(),
    );
    if session.ends_process {
        std::mem::forget(explorer);
    }
    outcome
}

fn search_with(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    explorer: &mut Explorer<'_>,
    folder: &Folder,
    checkpoint: Option<&Checkpoint>,
) -> Result<RunResult> {
    let images = explorer.images();
    let mut recorder = Recorder::new(folder.clone(), spec, session, observer);
    if let Some(limit) = spec.max_time.filter(|_| !spec.no_confirm) {
        recorder.kept_time = (limit / 10).min(AFTER_TIME);
    }
    let mut earlier = Duration::ZERO;
    if let Some(checkpoint) = checkpoint {
        checkpoint.restore(explorer);
        recorder.continue_from(checkpoint);
        earlier = Duration::from_secs_f64(checkpoint.wall_seconds);
    }
    let stopped = explorer.run(&session.stop, &mut recorder);
    let hosts = std::mem::take(&mut recorder.hosts);
    let booted = Booted {
        others: explorer.statistics().paths_completed - hosts.len() as u64,
        hosts,
        stopped,
    };
    let boots_world = !booted.hosts.is_empty();
    if boots_world && recorder.findings.is_empty() {
        // The bootstrap search cannot be resumed: a checkpoint does not hold the hosts that were set up.
        Checkpoint::remove(folder.path())?;
        return bootstrap::explore(spec, session, recorder.into_observer(), folder, &booted);
    }
    if stopped == Stopped::Finished {
        Checkpoint::remove(folder.path())?;
    } else {
        let left = explorer
            .leave()
            .context("cannot write down what is left to explore")?;
        let wall = session.now() + earlier;
        Checkpoint::of(explorer, left, &recorder, wall).write(folder)?;
    }
    recorder.confirm(images, after_run(spec, session));
    let wall = session.now() + earlier;
    let summary = Summary::new(explorer, &recorder, stopped, wall);
    folder.write("coverage.lcov", summary.line_coverage.to_lcov().as_bytes())?;
    folder.write("summary.json", &summary.to_json()?)?;
    if boots_world {
        recorder.warn(&booted.after_findings());
    }
    let summary = RunSummary::Program(Box::new(summary));
    recorder.finish(&summary)?;
    Ok(RunResult {
        folder: folder.path().to_owned(),
        summary,
    })
}

/// The deadlines for shrinking and confirming findings after the search.
fn after_run(spec: &RunSpec, session: &Session) -> AfterRun {
    let now = session.now();
    let longest = now + AFTER_TIME;
    let until = spec.max_time.map_or(longest, |limit| limit.min(longest));
    AfterRun {
        // The other half of the time is for confirming findings natively.
        shrink: (!spec.no_shrink).then(|| now + until.saturating_sub(now) / 2),
        confirm: (!spec.no_confirm).then_some(until),
    }
}

/// The deadline for shrinking findings of worlds; `None` if shrinking is disabled.
pub(crate) fn shrinks_until(spec: &RunSpec, session: &Session) -> Option<Duration> {
    let until = spec.max_time.unwrap_or(Duration::MAX);
    let until = until.min(session.now() + AFTER_TIME);
    (!spec.no_shrink).then_some(until)
}

/// The configuration of the engine for a run.
pub(crate) fn explorer_config(
    spec: &RunSpec,
    session: &Session,
    spill: Option<PathBuf>,
) -> Result<ExplorerConfig> {
    spec.expect_command()?;
    let notices = session.notices.clone();
    let smt = match &spec.smt_solver {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) if !is_program(path) => bail!(Usage, "there is no solver {}", path.display()),
        Some(path) => Some(SmtConfig::for_program(path.clone(), spec.solver_time)),
        None => Some(SmtConfig::z3_found_by(
            move || find_z3(&notices),
            spec.solver_time,
        )),
    };
    let mut host = host_config(spec.program(), spec.arguments(), &spec.env)?;
    spec.host.apply(&mut host, session)?;
    Ok(ExplorerConfig {
        hosts: vec![WorldHost::alone(host)],
        world: None,
        vm: VmOptions {
            max_symbolic_size: spec.max_symbolic_size,
            check_overflow: spec.check_overflow,
            check_uninitialised: spec.check_uninitialised,
            check_races: spec.check_races,
            report_uncaught: true,
            ..VmOptions::default()
        },
        solver: SolverConfig {
            clock: session.clock,
            smt,
            conflict_budget: spec.solver_conflicts,
            solver_log: spec.solver_log.clone(),
            ..SolverConfig::default()
        },
        search: match spec.search.as_slice() {
            [] => ["random-path", "coverage"].map(str::to_owned).to_vec(),
            named => named.to_vec(),
        },
        batch_instructions: spec.batch,
        seed: spec.seed,
        limits: Limits {
            max_time: spec.max_time,
            max_memory: Some(spec.max_memory),
            max_paths: spec.max_paths,
            max_forks: spec.max_forks,
            max_depth: spec.max_depth,
            max_instructions: spec.max_instructions,
            max_virtual_ns: None,
        },
        all_tests: spec.all_tests,
        no_tests: spec.no_tests,
        all_findings: spec.all_findings,
        check_leaks: spec.check_leaks,
        keep_output: false,
        keep_files: spec.save_fs,
        clock: session.clock,
        memory: session.memory.clone(),
        spill,
    })
}

/// The host of a single program.
pub(crate) fn program_host(config: ExplorerConfig) -> HostConfig {
    let mut hosts = config.hosts.into_iter();
    hosts.next().map(|host| host.config).unwrap_or_default()
}

/// Whether a program exists, by its path or by its name in `PATH`.
fn is_program(path: &Path) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&folders);
    path.is_file()
        || (path.components().count() == 1 && folders.any(|dir| dir.join(path).is_file()))
}

/// The path of z3: the one in `PATH` unless `EVERETT_Z3` is set, otherwise the pinned version, which is installed on
/// demand.
fn find_z3(notices: &Notices) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path)
        .map(|dir| dir.join("z3"))
        .find(|candidate| candidate.is_file());
    match installed {
        Some(path) if std::env::var_os("EVERETT_Z3").is_none() => Ok(path),
        _ => everett_toolchain::ensure_z3(&|text| notices.tell(text))
            .map_err(|error| error.to_string()),
    }
}
