//! `explore` and `resume`: explore the paths of a program or the worlds of a scenario. Owns a
//! search from its spec to its summary; must not know how results are displayed.

use everett_engine::{Explorer, ExplorerConfig, MAPPINGS, Start, Stopped};
use everett_linux::Boot;
use everett_report::Folder;
use everett_report::counted;
use everett_vm::Image;
use std::path::{Path, PathBuf};

use crate::bootstrap::{Booted, boots, write_world};
use crate::checkpoint::{Checkpoint, Checkpoints, SPILL_FILE};
use crate::config::program_config;
use crate::difference;
use crate::error::{Context, Error, Result};
use crate::events::{Event, Observer};
use crate::record::Recorder;
use crate::session::Session;
use crate::spec::{ResumeSpec, RunSpec};
use crate::summary::{ClusterFigures, ResumeFrom, SUMMARY, Summary};

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
fn explore_into(
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

/// Resumes a run that was stopped or killed, from its last checkpoint. A run that was killed before
/// its first checkpoint starts again.
pub fn resume(
    resume: &ResumeSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let mut spec = RunSpec::resumed(resume)?;
    // The folder is locked before anything in it is changed.
    let folder = Folder::open(&resume.dir)?;
    let checkpoint = Checkpoint::read(&resume.dir)?;
    let instead = checkpoint.as_ref().and_then(|read| read.read_instead);
    if let Some(instead) = instead {
        let notices = &session.notices;
        notices.tell(&format!(
            "checkpoint.json is damaged; the run goes on from {instead}"
        ));
    }
    if checkpoint.is_none() && resume.dir.join(SUMMARY).exists() && !lacks_states(&resume.dir) {
        return Err(Error::NothingToResume {
            path: resume.dir.clone(),
        });
    }
    if !spec.allow_live {
        // A search asks peers questions that no recording answers, so a recording is no permission.
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

/// Returns whether a run has ended without a checkpoint although it had states left, because there
/// was no time to save them. Such a run starts again.
fn lacks_states(dir: &Path) -> bool {
    let text = everett_report::read_file(&dir.join(SUMMARY)).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    summary["states_unsaved"].as_u64() > Some(0)
}

/// Returns the configuration of the search and the programs, for analyses
/// that drive an explorer themselves.
pub fn prepare(spec: &RunSpec, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
    spec.check()?;
    if spec.is_scenario() {
        return crate::world::prepare(spec, session);
    }
    let mut images = spec.load()?;
    spec.refuse_what_programs_lack(boots(&images))?;
    if spec.world.is_some() && !boots(&images) {
        let message = "is for programs that boot worlds; this one never calls klee_net_host_setup";
        return Err(Error::not_applicable("world", message));
    }
    let mut config = program_config(spec, session)?;
    if let Some(other) = &spec.against {
        if !spec.seeds.is_empty() {
            let message = "cannot be combined with a comparison of two builds";
            return Err(Error::not_applicable("seeds", message));
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

/// Maximum number of workers: more threads than any machine has processors.
const MOST_WORKERS: usize = 1024;

/// The warning of a run whose results are incomplete.
const NOT_WRITTEN: &str =
    "not all results could be written, because the disk is full or fails: tests are missing";

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
        // Workers share no states of worlds, so they repeat work where worlds of one worker would
        // share states.
        false if shares_states(config) => spec.workers.unwrap_or(1),
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
            // Spilling does not truncate the search.
            let limits = explorer.limits_hit().iter().copied();
            limits.filter(|limit| *limit != "max-memory").collect()
        },
    };
    let boots_world = !booted.hosts.is_empty();
    if boots_world && recorder.findings.is_empty() {
        // The bootstrap search cannot be resumed: a checkpoint does not contain the hosts that were
        // set up.
        written?;
        Checkpoint::remove(folder.path())?;
        let world = write_world(spec, folder, &booted)?;
        return explore_into(&world, session, recorder.into_observer(), folder)
            .with_context(|| format!("the world that {} boots", spec.program().display()));
    }
    let end = SearchEnd {
        stopped,
        written,
        last_words: boots_world.then(|| booted.after_findings()),
        cluster: None,
    };
    close(recorder, (config, explorer, images), folder, end)
}

/// Returns whether worlds share states. Under some mappings, each world has its own.
fn shares_states(config: &ExplorerConfig) -> bool {
    config.world.as_ref().is_some_and(|world| {
        let mut rows = MAPPINGS.iter();
        !rows.any(|row| row.name == world.mapping && row.separates_worlds)
    })
}

/// How a search ended.
pub(crate) struct SearchEnd {
    /// Why the search stopped.
    pub(crate) stopped: Stopped,
    /// Whether all results so far could be written.
    pub(crate) written: Result<()>,
    /// A warning that is reported last.
    pub(crate) last_words: Option<String>,
    /// The figures of a search on several machines.
    pub(crate) cluster: Option<ClusterFigures>,
}

/// Finishes a search: writes its remaining states and its results, and works on its findings.
pub(crate) fn close(
    mut recorder: Recorder<'_>,
    (config, explorer, images): (&ExplorerConfig, &mut Explorer<'_>, &[Image]),
    folder: &Folder,
    end: SearchEnd,
) -> Result<RunResult> {
    let (stopped, mut written) = (end.stopped, end.written);
    let is_over = stopped == Stopped::Finished || explorer.states() == 0;
    let mut resume_from = None;
    if !is_over {
        recorder.write_pending_tests(explorer);
        let saved = recorder.write_last_checkpoint(explorer);
        let is_saved = matches!(saved, Ok(true));
        if !is_saved {
            explorer.note_unwritten_checkpoint();
        }
        resume_from = Some(ResumeFrom::of(is_saved, Checkpoint::is_in(folder.path())));
        written = written.and(saved.map(|_| ()));
    }
    // From here on, the reserve of the folder is available, for the most important results.
    recorder.failed |= written.is_err();
    let is_full = !recorder.flush();
    if is_full && is_over {
        // The results need the disk space more.
        Checkpoint::remove(folder.path())?;
    }
    folder.free_reserve();
    let missing = recorder.write_again();
    recorder.work_on_findings(config, images)?;
    recorder.work_on_differences();
    crate::peers::stop(config);
    let mut summary = Summary::new(explorer, &recorder, stopped, recorder.wall());
    summary.cluster = end.cluster;
    if summary.cluster.is_some() {
        summary.team = None;
    }
    if let Some(from) = resume_from {
        summary.resume_from = Some(from);
        summary.warnings.extend(from.warning(explorer.unsaved()));
    }
    if is_full {
        summary.warnings.push(format!(
            "{NOT_WRITTEN} (missing: at least {})",
            counted(missing, "file")
        ));
    }
    written = written.and(match recorder.spec.deterministic {
        true => summary.without_measurements().write(folder),
        false => summary.write(folder),
    });
    if is_over && written.is_ok() {
        // The checkpoint is removed last: a run that is killed while it works on its findings
        // resumes from it.
        written = Checkpoint::remove(folder.path());
    }
    if let Some(words) = end.last_words {
        recorder.warn(&words);
    }
    recorder.finish(&summary, written)?;
    Ok(RunResult {
        folder: folder.path().to_owned(),
        summary,
    })
}
