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
use crate::checkpoint::{Checkpoint, Checkpoints, SPILL_FILE};
use crate::difference;
use crate::error::{Context, Error, Result, bail};
use crate::events::{Event, Observer};
use crate::input::host_config;
use crate::record::Recorder;
use crate::session::Session;
use crate::spec::{ResumeSpec, RunSpec};
use crate::summary::{ClusterFigures, SUMMARY, Summary};

/// The result of a search.
#[derive(Debug)]
pub struct RunResult {
    /// The folder of the run.
    pub folder: PathBuf,
    /// Findings, counters and coverage of the run.
    pub summary: Summary,
}

/// Explores a program or a scenario. Findings and tests are written to the folder of the run.
pub fn explore(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    // Errors of the program or the scenario are reported before the folder is created.
    let prepared = prepare(spec, session)?;
    crate::load::mention_optimised(&prepared.1, &session.notices);
    let folder = spec.folder()?;
    spec.write(&folder)?;
    crate::peers::record(&prepared.0, folder.path())?;
    search(spec, session, observer, prepared, &folder, None)
}

/// Explores a scenario and writes to an existing folder.
pub(crate) fn explore_into(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    folder: &Folder,
) -> Result<RunResult> {
    let prepared = prepare(spec, session)?;
    spec.write(folder)?;
    crate::peers::record(&prepared.0, folder.path())?;
    search(spec, session, observer, prepared, folder, None)
}

/// Resumes a run that was stopped or killed, from its last checkpoint. One that was killed before its first checkpoint
/// starts again.
pub fn resume(
    resume: &ResumeSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let mut spec = RunSpec::of(&resume.dir)?;
    // Locked before anything in it is changed.
    let folder = Folder::open(&resume.dir)?;
    let checkpoint = Checkpoint::read(&resume.dir)?;
    if checkpoint.is_none() && resume.dir.join(SUMMARY).exists() && !lacks_states(&resume.dir) {
        return Err(Error::NothingToResume {
            path: resume.dir.clone(),
        });
    }
    spec.max_time = resume.max_time;
    spec.max_paths = resume.max_paths;
    spec.max_forks = resume.max_forks;
    spec.allow_live = resume.allow_live;
    if !spec.allow_live {
        // A search asks peers what no recording has, so a recording is no permission.
        spec.recorded_in = None;
    }
    let prepared = prepare(&spec, session)?;
    crate::peers::record(&prepared.0, &resume.dir)?;
    let segments = everett_vm::Coverage::of(&prepared.1).segments.len();
    match &checkpoint {
        Some(checkpoint) if checkpoint.segments() != segments => return Err(Error::ProgramChanged),
        Some(checkpoint) => checkpoint.remove_later_results(&resume.dir)?,
        None => Checkpoint::remove_all_results(&resume.dir)?,
    }
    search(
        &spec,
        session,
        observer,
        prepared,
        &folder,
        checkpoint.as_ref(),
    )
}

/// A run has ended without a checkpoint although it had states left, for which there was no time: it starts again.
fn lacks_states(dir: &Path) -> bool {
    let text = everett_report::read_file(&dir.join(SUMMARY)).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    summary["states_unsaved"].as_u64() > Some(0)
}

/// What is to be explored, and the programs: for analyses that drive an explorer of their own.
pub fn prepare(spec: &RunSpec, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
    spec.expect_command()?;
    if spec.is_scenario() {
        return crate::world::prepare(spec, session);
    }
    let mut images = spec.load()?;
    if spec.dtest && !boots(&images) {
        bail!(
            Usage,
            "--dtest is for scenarios; the tests of one program are .ktest"
        );
    }
    let of_worlds = [
        (spec.max_events.is_some(), "max-events"),
        (spec.max_virtual_time.is_some(), "max-virtual-time"),
        (spec.check_deadlocks, "check-deadlocks"),
    ];
    for (_, name) in of_worlds.iter().filter(|(is_set, _)| *is_set) {
        if !boots(&images) {
            bail!(
                Usage,
                "--{name} is for scenarios; a program has no such limit"
            );
        }
    }
    if spec.world.is_some() && !boots(&images) {
        bail!(
            Usage,
            "--world is for programs that boot worlds; this one never calls klee_net_host_setup"
        );
    }
    let mut config = explorer_config(spec, session, None)?;
    if let Some(other) = &spec.against {
        if boots(&images) {
            bail!(
                Usage,
                "--against is for single programs; this one boots a world"
            );
        }
        config.against = Some(difference::add_build(spec, other, &config, &mut images)?);
    }
    Ok((config, images))
}

fn search(
    spec: &RunSpec,
    session: &Session,
    observer: &mut dyn Observer,
    (config, images): (ExplorerConfig, Vec<Image>),
    folder: &Folder,
    checkpoint: Option<&Checkpoint>,
) -> Result<RunResult> {
    let mut searched = ExplorerConfig {
        spill: Some(folder.path().join(SPILL_FILE)),
        ..config.clone()
    };
    if config.world.is_none() {
        for host in &mut searched.hosts {
            host.config.boot = Boot::StopAtSetup;
        }
    }
    let start = checkpoint.map_or(Start::Beginning, Checkpoint::start);
    let mut explorer = Explorer::new(&images, searched, start)?;
    observer.event(&Event::Started {
        folder: folder.path(),
    });
    let mut recorder = Recorder::new(folder.clone(), spec, session, observer, &config);
    let interval = spec.with_defaults()?.checkpoint.unwrap_or_default();
    recorder.checkpoints = Some(Checkpoints::new(folder.clone(), interval, checkpoint));
    if let Some(checkpoint) = checkpoint {
        recorder.continue_from(checkpoint, (&config, &images));
    }
    let outcome = search_with(
        spec,
        session,
        recorder,
        (&config, &mut explorer, &images),
        folder,
    );
    if session.ends_process {
        std::mem::forget(explorer);
    }
    outcome
}

/// More threads than any machine has processors.
const MOST_WORKERS: usize = 1024;

/// The warning of a run whose results are incomplete.
const NOT_WRITTEN: &str = "not all results could be written, because the disk is full or fails: tests are missing, and \
                           the run may not be resumable";

fn search_with(
    spec: &RunSpec,
    session: &Session,
    mut recorder: Recorder<'_>,
    (config, explorer, images): (&ExplorerConfig, &mut Explorer<'_>, &[Image]),
    folder: &Folder,
) -> Result<RunResult> {
    let workers = match boots(images) {
        // Hosts are set up in the order of their paths.
        true => 1,
        false if spec.deterministic => 1,
        // Workers do not share states of worlds, so there are several only where somebody asks for them.
        false if config.world.is_some() => spec.workers.unwrap_or(1),
        false => spec.workers.unwrap_or(session.workers),
    };
    let workers = usize::try_from(workers)
        .unwrap_or(usize::MAX)
        .min(MOST_WORKERS);
    let stopped = explorer.run_team(workers, &session.stop, &mut recorder);
    let written = recorder.write_samples(explorer);
    let hosts = std::mem::take(&mut recorder.hosts);
    let booted = Booted {
        others: explorer.statistics().paths_completed - hosts.len() as u64,
        hosts,
        stopped,
        cuts: {
            // Spilling cuts nothing.
            let limits = explorer.limits_hit().iter().copied();
            limits.filter(|limit| *limit != "max-memory").collect()
        },
    };
    let boots_world = !booted.hosts.is_empty();
    if boots_world && recorder.findings.is_empty() {
        // The bootstrap search cannot be resumed: a checkpoint does not hold the hosts that were set up.
        written?;
        Checkpoint::remove(folder.path())?;
        return bootstrap::explore(spec, session, recorder.into_observer(), folder, &booted);
    }
    let end = SearchEnd {
        stopped,
        written,
        last_words: boots_world.then(|| booted.after_findings()),
        cluster: None,
    };
    close(recorder, (config, explorer, images), folder, end)
}

/// How a search ended.
pub(crate) struct SearchEnd {
    /// Why.
    pub(crate) stopped: Stopped,
    /// Whether all results could be written so far.
    pub(crate) written: Result<()>,
    /// A warning that comes last.
    pub(crate) last_words: Option<String>,
    /// The figures of a search on several machines.
    pub(crate) cluster: Option<ClusterFigures>,
}

/// After a search: writes what is left of it and its results, and works on its findings.
pub(crate) fn close(
    mut recorder: Recorder<'_>,
    (config, explorer, images): (&ExplorerConfig, &mut Explorer<'_>, &[Image]),
    folder: &Folder,
    end: SearchEnd,
) -> Result<RunResult> {
    let (stopped, mut written) = (end.stopped, end.written);
    if stopped == Stopped::Finished || explorer.states() == 0 {
        // Without a checkpoint, what a killed run has not written is lost.
        recorder.flush();
        Checkpoint::remove(folder.path())?;
    } else {
        written = written.and(recorder.write_last_checkpoint(explorer));
    }
    // From here on there is the reserve of the folder, for the most important results.
    recorder.failed |= written.is_err();
    let is_full = !recorder.flush();
    folder.free_reserve();
    recorder.work_on_findings(config, images)?;
    recorder.work_on_differences();
    crate::peers::stop(config);
    let mut summary = Summary::new(explorer, &recorder, stopped, recorder.wall());
    summary.cluster = end.cluster;
    if is_full {
        summary.warnings.push(NOT_WRITTEN.to_owned());
    }
    written = written.and(summary.write(folder));
    if let Some(words) = end.last_words {
        recorder.warn(&words);
    }
    written = written.and(recorder.finish(&summary));
    written.context("not all results could be written; the summary lists what was found")?;
    Ok(RunResult {
        folder: folder.path().to_owned(),
        summary,
    })
}

/// Memory that every process may have, however little the search may use.
const LEAST_HEAP: u64 = 256 << 20;

/// The configuration of the engine for a run.
pub(crate) fn explorer_config(
    spec: &RunSpec,
    session: &Session,
    spill: Option<PathBuf>,
) -> Result<ExplorerConfig> {
    spec.expect_command()?;
    let spec = &spec.with_defaults()?;
    let (session_of_z3, max_time) = (session.clone(), spec.max_time);
    let solver_work = spec.solver_work.unwrap_or_default();
    let smt = match &spec.smt_solver {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) if !is_program(path) => bail!(Usage, "there is no solver {}", path.display()),
        Some(path) => Some(SmtConfig::for_program(
            path.clone(),
            solver_work,
            spec.solver_time,
        )),
        None => Some(SmtConfig::z3_found_by(
            move || find_z3(&session_of_z3, max_time),
            solver_work,
            spec.solver_time,
        )),
    };
    let mut host = host_config(spec.program(), spec.arguments(), &spec.host.env)?;
    spec.host.apply(&mut host, session)?;
    Ok(ExplorerConfig {
        hosts: vec![WorldHost::alone(host)],
        against: None,
        world: None,
        vm: VmOptions {
            max_symbolic_size: spec.max_symbolic_size.unwrap_or_default(),
            check_overflow: spec.check_overflow,
            check_uninitialised: spec.check_uninitialised,
            check_races: spec.check_races,
            report_uncaught: true,
            report_caught_panics: spec.panics != "main",
            // What one process alone needs cannot be spilled.
            max_heap: spec
                .max_memory
                .unwrap_or(u64::MAX)
                .clamp(LEAST_HEAP, VmOptions::default().max_heap),
            ..VmOptions::default()
        },
        solver: SolverConfig {
            clock: session.clock,
            stop: Some(session.stop.clone()),
            smt,
            conflict_budget: spec.solver_conflicts.unwrap_or_default(),
            solver_log: spec.solver_log.clone(),
            log_queries: spec.log_queries.clone(),
            ..SolverConfig::default()
        },
        search: match spec.search.as_slice() {
            [] => ["random-path", "coverage"].map(str::to_owned).to_vec(),
            named => named.to_vec(),
        },
        batch_instructions: spec.batch.unwrap_or_default(),
        seed: spec.seed.unwrap_or_default(),
        limits: Limits {
            max_time: spec.max_time,
            max_memory: spec.max_memory,
            max_paths: spec.max_paths,
            max_forks: spec.max_forks,
            max_depth: spec.max_depth,
            max_instructions: spec.max_instructions,
            max_virtual_ns: spec.max_virtual_ns(),
        },
        all_tests: spec.all_tests || spec.klee_messages,
        no_tests: spec.no_tests,
        all_findings: spec.all_findings,
        check_leaks: spec.check_leaks,
        keep_output: false,
        keep_files: spec.save_fs,
        clock: session.clock,
        memory: session.memory.clone(),
        spill,
        outside: None,
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
/// demand, within the time limit.
fn find_z3(session: &Session, max_time: Option<Duration>) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path)
        .map(|dir| dir.join("z3"))
        .find(|candidate| candidate.is_file());
    match installed {
        Some(path) if std::env::var_os("EVERETT_Z3").is_none() => Ok(path),
        _ => {
            let left = max_time.map(|most| most.saturating_sub(session.now()));
            everett_toolchain::ensure_z3(left, &|text| session.notices.tell(text))
                .map_err(|error| error.to_string())
        }
    }
}
