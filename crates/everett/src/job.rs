//! Jobs: parts of the search of a program that are explored elsewhere. Owns what a worker on another machine needs (a
//! [`Parcel`]), how it explores some states ([`Prepared::explore`]), and how jobs become the results of a run
//! ([`conclude`]). Must not know how jobs travel.

use everett_engine::{
    Explorer, ExplorerConfig, Finding, Listener, Part, PathEnd, PathEnding, Pending, SourceFrame,
    Start, Stopped, Trace, Weight, WeightSum, WorldFinding,
};
use everett_linux::{Contents, FileSpec};
use everett_report::Folder;
use everett_vm::{BugKind, Image};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bootstrap::boots;
use crate::checkpoint::{Checkpoint, Checkpoints, SPILL_FILE};
use crate::conclusion::is_tool_limit;
use crate::error::{Context, Error, Result, bail};
use crate::events::{Event, Observer};
use crate::explore::{RunResult, SearchEnd, close, explorer_config, prepare};
use crate::finding::FindingEntry;
use crate::follow::Model;
use crate::load::{bitcode_of, load_bytes};
use crate::record::Recorder;
use crate::session::Session;
use crate::spec::{RunSpec, VERSION};
use crate::summary::ClusterFigures;
use crate::trace::{HOST, WorldTrace};

/// Work that a fork counts as, in instructions: the queries before it take as long.
const FORK_WORK: u64 = 1000;

/// Everything that exploring a program takes, without paths of any disk.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// What is explored, and how.
    pub spec: RunSpec,
    /// Bitcode of the program and of those that it can execute.
    pub programs: Vec<Vec<u8>>,
    /// Files that the guest sees.
    pub files: Vec<ParcelFile<Vec<u8>>>,
}

/// A file that the guest sees; `B` stands for its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParcelFile<B> {
    /// Its path in the guest.
    pub path: Vec<u8>,
    /// What it holds.
    pub contents: ParcelContents<B>,
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Modification time, in nanoseconds since 1970.
    pub modified_ns: Option<u64>,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParcelContents<B> {
    /// Bytes.
    Bytes(B),
    /// It is a directory.
    Directory,
    /// It is a symbolic link to this path.
    Link(Vec<u8>),
}

impl<B> ParcelFile<B> {
    /// The same file, with its bytes as something else.
    pub fn try_map<C, E>(self, map: impl FnOnce(B) -> Result<C, E>) -> Result<ParcelFile<C>, E> {
        Ok(ParcelFile {
            path: self.path,
            contents: match self.contents {
                ParcelContents::Bytes(bytes) => ParcelContents::Bytes(map(bytes)?),
                ParcelContents::Directory => ParcelContents::Directory,
                ParcelContents::Link(target) => ParcelContents::Link(target),
            },
            mode: self.mode,
            owner: self.owner,
            modified_ns: self.modified_ns,
        })
    }
}

impl Parcel {
    /// Reads from the disk what a run needs.
    pub fn of(spec: &RunSpec, session: &Session) -> Result<Parcel> {
        spec.expect_command()?;
        expect_divisible(spec)?;
        let files = spec.host.mounted(session)?.into_iter().map(|file| {
            let contents = match &file.contents {
                Contents::Shared(source) => ParcelContents::Bytes(source.bytes().to_vec()),
                Contents::Concrete(bytes) => ParcelContents::Bytes(bytes.to_vec()),
                Contents::Link(target) => ParcelContents::Link(target.clone()),
                _ => ParcelContents::Directory,
            };
            ParcelFile {
                path: file.path,
                contents,
                mode: file.mode,
                owner: file.owner,
                modified_ns: file.modified_ns,
            }
        });
        let programs = spec.native_programs().into_iter().map(|program| {
            let path = bitcode_of(&program)?;
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        });
        let parcel = Parcel {
            programs: programs.collect::<Result<_>>()?,
            files: files.collect(),
            spec: without_paths(spec),
        };
        expect_alone(&spec.load()?)?;
        Ok(parcel)
    }
}

/// The spec without paths of this machine: the parcel has what lies there.
fn without_paths(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    // The file of a run says it, too.
    spec.version = Some(VERSION);
    (spec.out, spec.started_in) = (None, None);
    (spec.host.ro, spec.host.files, spec.host.file) = (Vec::new(), Vec::new(), Vec::new());
    for program in &mut spec.host.program {
        program.file = PathBuf::new();
    }
    spec
}

/// Refuses what a search on several machines does not do.
fn expect_divisible(spec: &RunSpec) -> Result<()> {
    if spec.is_scenario() {
        bail!(
            Usage,
            "a cluster explores programs; worlds of several hosts are explored by `everett run`"
        );
    }
    let is_none = |path: &PathBuf| path.as_os_str() == "none";
    let refused = [
        (spec.against.is_some(), "against"),
        (spec.world.is_some(), "world"),
        (spec.klee_messages, "klee-messages"),
        (spec.dtest, "dtest"),
        (spec.max_time.is_some(), "max-time"),
        (spec.max_paths.is_some(), "max-paths"),
        (spec.max_forks.is_some(), "max-forks"),
        (spec.solver_log.is_some(), "solver-log"),
        (
            !spec.smt_solver.as_ref().is_none_or(is_none),
            "smt-solver with a program",
        ),
    ];
    match refused.iter().find(|(is_said, _)| *is_said) {
        Some((_, name)) => bail!(Usage, "--{name} is not possible on a cluster"),
        None => Ok(()),
    }
}

fn expect_alone(images: &[Image]) -> Result<()> {
    if boots(images) {
        bail!(
            Usage,
            "a cluster explores single programs; this one boots a world: explore it with `everett run`"
        );
    }
    Ok(())
}

/// A program that is ready to be explored.
pub struct Prepared {
    config: ExplorerConfig,
    images: Vec<Image>,
    writes_tests: bool,
}

/// Some states of a program that are to be explored.
pub struct Job<'j> {
    /// The states, as pending traces.
    pub states: Vec<Trace>,
    /// How much is done before `go_on` is asked, in instructions.
    pub work: u64,
    /// Asked whenever so much was done; `false` leaves the rest to others.
    pub go_on: &'j mut dyn FnMut() -> bool,
    /// File that states are spilled to at the memory limit.
    pub spill: Option<PathBuf>,
}

/// What a job came to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JobResult {
    /// What was counted, found and covered.
    pub part: Part,
    /// Digests of the answers of the paths that ended, with how often their weights were halved.
    pub paths: Vec<(u64, u32)>,
    /// Tests, of paths that executed something for the first time in the job, or of all where they are wanted.
    pub tests: Vec<JobTest>,
    /// Findings, the first at each place in the job.
    pub findings: Vec<JobFinding>,
    /// States that are left, as pending traces.
    #[serde(skip)]
    pub left: Vec<Trace>,
}

/// A path that ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobTest {
    /// The digest of its answers.
    pub digest: u64,
    /// Inputs, choices and end.
    pub trace: Trace,
    /// It left files behind that belong to the test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_files: bool,
}

/// A path that ended in something wrong.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobFinding {
    /// What and where.
    pub entry: FindingEntry,
    /// Inputs and choices that lead there.
    pub trace: Trace,
}

/// The state that a search begins with.
pub fn root_state() -> Trace {
    Trace {
        pending: Some(Pending::default()),
        ..Trace::default()
    }
}

/// The weight of states together; `None` if they weigh more than everything, or one of them is at its end.
pub fn weight_of<'t>(states: impl IntoIterator<Item = &'t Trace>) -> Option<WeightSum> {
    let mut sum = WeightSum::default();
    for state in states {
        let halvings = state.pending.as_ref()?.halvings;
        if !sum.add_checked(Weight { halvings }) {
            return None;
        }
    }
    Some(sum)
}

impl Prepared {
    /// Prepares what came from elsewhere. It may be damaged or hostile: whatever names a path of this machine is
    /// refused.
    pub fn of(parcel: &Parcel, session: &Session) -> Result<Prepared> {
        let spec = &parcel.spec;
        spec.expect_command()?;
        expect_divisible(spec)?;
        let host = &spec.host;
        let has_mounts = !host.ro.is_empty() || !host.files.is_empty() || !host.file.is_empty();
        let has_files = host
            .program
            .iter()
            .any(|program| !program.file.as_os_str().is_empty());
        if has_mounts || has_files || spec.out.is_some() || spec.started_in.is_some() {
            bail!(Invalid, "the job names paths of this machine");
        }
        if parcel.programs.len() != 1 + host.program.len() {
            bail!(Invalid, "the job has not the programs that it names");
        }
        let names = host.program.iter().map(|program| Path::new(&program.path));
        let names = std::iter::once(spec.program()).chain(names);
        let images = names.zip(&parcel.programs);
        let images = images.map(|(name, bytes)| load_bytes(name, bytes, spec.lowering()));
        let mut images = images.collect::<Result<Vec<Image>>>()?;
        Image::number_all(&mut images);
        expect_alone(&images)?;
        let mut config = explorer_config(spec, session, None)?;
        let files = parcel.files.iter().map(|file| FileSpec {
            owner: file.owner,
            modified_ns: file.modified_ns,
            ..FileSpec::new(
                file.path.clone(),
                match &file.contents {
                    ParcelContents::Bytes(bytes) => Contents::Concrete(bytes.as_slice().into()),
                    ParcelContents::Directory => Contents::Directory,
                    ParcelContents::Link(target) => Contents::Link(target.clone()),
                },
                file.mode,
            )
        });
        config.hosts[0].config.files.splice(0..0, files);
        Ok(Prepared {
            config,
            images,
            writes_tests: !spec.no_tests,
        })
    }

    /// Segments of the programs.
    pub fn segments(&self) -> usize {
        everett_vm::Coverage::of(&self.images).segments.len()
    }

    /// Explores states until nothing is left of them or it is told to leave the rest to others. States are
    /// rematerialised without queries, when it is their turn.
    pub fn explore(&self, job: Job<'_>, session: &Session) -> Result<JobResult> {
        let config = ExplorerConfig {
            spill: job.spill,
            ..self.config.clone()
        };
        let mut explorer = Explorer::new(&self.images, config, Start::States(job.states))?;
        let stop = AtomicBool::new(false);
        let mut listener = Working {
            result: JobResult::default(),
            writes_tests: self.writes_tests,
            until: job.work,
            work: job.work.max(1),
            go_on: job.go_on,
            session,
            stop: &stop,
        };
        explorer.run(&stop, &mut listener);
        let mut result = listener.result;
        result.left = explorer.take_states();
        result.part = explorer.part();
        Ok(result)
    }
}

/// The listener of a job.
struct Working<'j> {
    result: JobResult,
    writes_tests: bool,
    until: u64,
    work: u64,
    go_on: &'j mut dyn FnMut() -> bool,
    session: &'j Session,
    stop: &'j AtomicBool,
}

impl Listener for Working<'_> {
    fn path(&mut self, end: &PathEnd) {
        self.result.paths.push((end.digest, end.weight.halvings));
        if let Some(trace) = end.trace.as_ref().filter(|_| self.writes_tests) {
            self.result.tests.push(JobTest {
                digest: end.digest,
                trace: trace.clone(),
                has_files: !end.files.is_empty(),
            });
        }
    }

    fn finding(&mut self, found: &WorldFinding) {
        self.result.findings.push(JobFinding {
            entry: FindingEntry::of(found, String::new()),
            trace: found.finding.trace.clone(),
        });
    }

    fn tick(&mut self, explorer: &Explorer<'_>) {
        let statistics = explorer.statistics();
        // What rematerialises states is no work done: a job always gets further.
        let done = statistics.instructions + FORK_WORK * statistics.forks;
        let is_asked = self.session.stop.load(Ordering::Relaxed);
        if is_asked || (done >= self.until && !(self.go_on)()) {
            self.stop.store(true, Ordering::Relaxed);
        } else if done >= self.until {
            self.until = done.saturating_add(self.work);
        }
    }
}

/// What the jobs of a run came to.
pub struct Gathered {
    /// The jobs that were explored.
    pub jobs: Vec<JobResult>,
    /// States that are left, as pending traces.
    pub left: Vec<Trace>,
    /// The weight of all that was given up, also of jobs that could not be explored.
    pub unknown: WeightSum,
    /// Why jobs could not be explored.
    pub failures: Vec<String>,
    /// Its figures.
    pub figures: ClusterFigures,
}

/// The folder of a run that is explored elsewhere, with its spec.
pub fn new_folder(spec: &RunSpec) -> Result<PathBuf> {
    let folder = spec.folder()?;
    spec.write(&folder)?;
    Ok(folder.path().to_owned())
}

/// Writes what jobs came to as the results of a run, into its folder. Tests and findings are in the order of their
/// contents, not in that of the jobs. Findings are followed again, shrunk and confirmed natively here. A run that is
/// not at its end has a checkpoint: `resume` goes on with it.
pub fn conclude(
    dir: &Path,
    gathered: Gathered,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let spec = &RunSpec::of(dir)?;
    let (config, images) = prepare(spec, session)?;
    let folder = Folder::open(dir)?;
    Checkpoint::remove(dir)?;
    Checkpoint::remove_all_results(dir)?;
    let searched = ExplorerConfig {
        spill: Some(dir.join(SPILL_FILE)),
        ..config.clone()
    };
    let stopped = match gathered.left.is_empty() {
        true => Stopped::Finished,
        false => Stopped::Asked,
    };
    let start = Start::States(gathered.left);
    let mut explorer = Explorer::new(&images, searched, start)?;
    for job in &gathered.jobs {
        let added = explorer.add_part(&job.part);
        added.map_err(|_| Error::ProgramChanged)?;
    }
    explorer.statistics_mut().unknown = gathered.unknown;
    for failure in &gathered.failures {
        note(
            &mut explorer,
            "lost-state",
            format!("a job could not be explored: {failure}"),
        )?;
    }
    observer.event(&Event::Started { folder: dir });
    let mut recorder = Recorder::new(folder.clone(), spec, session, observer, &config);
    let interval = spec.with_defaults()?.checkpoint.unwrap_or_default();
    recorder.checkpoints = Some(Checkpoints::new(folder.clone(), interval, None));
    let model = Model::new(config.clone(), &images);
    record_tests(&mut recorder, &model, spec, &gathered.jobs)?;
    if !record_findings(&mut recorder, &model, spec, &gathered.jobs)? {
        let warning = "a finding of a worker could not be followed here; it is left out";
        note(&mut explorer, "diverged", warning.to_owned())?;
    }
    let end = SearchEnd {
        stopped,
        written: Ok(()),
        last_words: None,
        cluster: Some(gathered.figures),
    };
    close(recorder, (&config, &mut explorer, &images), &folder, end)
}

/// Notes that results are missing, and why.
fn note(explorer: &mut Explorer<'_>, limit: &str, warning: String) -> Result<()> {
    let added = explorer.add_part(&Part {
        covered: "0".repeat(explorer.coverage().segments.len()),
        limits: vec![limit.to_owned()],
        warnings: vec![warning],
        ..Part::default()
    });
    added.map_err(|_| Error::ProgramChanged)
}

/// Records the tests of all jobs. Unless all paths are wanted, only those that execute something that no test before
/// them does: a job does not know what others have executed.
fn record_tests(
    recorder: &mut Recorder<'_>,
    model: &Model<'_>,
    spec: &RunSpec,
    jobs: &[JobResult],
) -> Result<()> {
    let tests = jobs.iter().flat_map(|job| &job.tests);
    let tests: BTreeMap<u64, &JobTest> = tests.map(|test| (test.digest, test)).collect();
    let (mut covered, mut seen) = (Vec::new(), BTreeSet::new());
    for test in tests.values() {
        let trace = &test.trace;
        if spec.all_tests && !test.has_files {
            recorder.path(&ended_by(test));
            continue;
        }
        let Some(mut end) = model.follow_covering(trace, &mut covered)? else {
            continue;
        };
        let is_finding = trace.end.as_ref().is_some_and(|end| {
            let found = end.finding.is_some() || end.signal.is_some();
            let place = (end.finding.clone(), end.signal, end.stack.first().cloned());
            found && seen.insert(format!("{place:?}"))
        });
        if spec.all_tests || end.covered_new || is_finding {
            end.trace = Some(trace.clone());
            recorder.path(&end);
        }
    }
    Ok(())
}

/// The end of a path that is not followed again.
fn ended_by(test: &JobTest) -> PathEnd {
    let end = test.trace.end.as_ref();
    let exit = end.and_then(|end| end.exit);
    PathEnd {
        ending: exit.map_or(PathEnding::Idle, PathEnding::Exit),
        trace: Some(test.trace.clone()),
        covered_new: false,
        digest: test.digest,
        weight: Weight::default(),
        depth: 0,
        instructions: 0,
        calls: Vec::new(),
        points: Vec::new(),
        output: [Vec::new(), Vec::new()],
        files: Vec::new(),
    }
}

/// Records the findings of all jobs, one at each place unless all are wanted. Returns `false` if one of them is none
/// here.
fn record_findings(
    recorder: &mut Recorder<'_>,
    model: &Model<'_>,
    spec: &RunSpec,
    jobs: &[JobResult],
) -> Result<bool> {
    let mut places: BTreeMap<_, &JobFinding> = BTreeMap::new();
    for found in jobs.iter().flat_map(|job| &job.findings) {
        let entry = &found.entry;
        let place = (&entry.kind, &entry.file, entry.line, &entry.function);
        let text = serde_json::to_string(&found.trace)?;
        // Of several at a place, the first by its contents: workers come in any order.
        let known = places.range((place, String::new())..).next();
        let known = known.filter(|((at, _), _)| *at == place && !spec.all_findings);
        match known.map(|((_, known), _)| known.clone()) {
            Some(known) if known <= text => continue,
            Some(known) => places.remove(&(place, known)),
            None => None,
        };
        places.insert((place, text), found);
    }
    let mut all_followed = true;
    for found in places.into_values() {
        let trace = WorldTrace::of_program(found.trace.clone());
        let seen = model.follow(&trace)?;
        match seen.finding_of_kind(&found.entry.kind) {
            Some(found) => recorder.finding(found),
            None if is_tool_limit(&found.entry.kind) => recorder.finding(&as_told(found)),
            None => all_followed = false,
        }
    }
    Ok(all_followed)
}

/// A finding about Everett itself, which following its trace need not meet again.
fn as_told(found: &JobFinding) -> WorldFinding {
    let entry = &found.entry;
    let finding = Finding {
        kind: BugKind::from_name(&entry.kind).unwrap_or(BugKind::Unsupported),
        message: entry.message.clone(),
        stack: vec![SourceFrame {
            file: entry.file.clone(),
            line: entry.line,
            function: entry.function.clone(),
            ..SourceFrame::default()
        }],
        threads: Vec::new(),
        allocated: Vec::new(),
        freed: Vec::new(),
        failures: Vec::new(),
        values: Vec::new(),
        trace: found.trace.clone(),
        clock_ns: 0,
        instructions: 0,
        output: [Vec::new(), Vec::new()],
        files: Vec::new(),
    };
    WorldFinding::alone(finding, HOST)
}
