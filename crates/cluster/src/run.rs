//! Submits runs to a broker, and loads them in workers: the manifest and the files of a run.

use everett::{Budget, DiskEntry, Parcel, ParcelFile, RunSpec, Session, States, WeightSum};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::broker::{Broker, Key, Kind, Objects, RunId, Ticket, fetch};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::sign::SigningKey;
use crate::states::pack_states;

/// The version of jobs, outcomes and results.
pub const PROTOCOL: u32 = 4;

/// Default work of a job between two checks for idle workers, in instructions.
pub const WORK: u64 = 20_000_000;

/// A build of Everett. All workers of a run must be the same build: a path that is explored
/// differently than by the worker that left it would be lost or counted twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Build {
    /// The version of the package.
    pub version: String,
    /// A digest of the program.
    pub digest: String,
}

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "everett {} ({})", self.version, self.digest)
    }
}

/// The description of a run. Its files are objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The [`PROTOCOL`] of the build that submitted the run.
    pub protocol: u32,
    /// The build that submitted the run.
    pub build: Build,
    /// The run, without paths of the submitter's disk.
    pub spec: RunSpec,
    /// Bitcode of the programs.
    pub programs: Vec<Hash>,
    /// Hashes of the native programs, where they exist.
    pub natives: Vec<Option<Hash>>,
    /// Files that the guest sees, for a program.
    pub files: Vec<ParcelFile<Hash>>,
    /// The scenario and its files.
    pub disk: Vec<DiskEntry<Hash>>,
    /// The properties of the run that its status depends on.
    #[serde(flatten)]
    pub kind: RunKind,
    /// Work of a job between two checks for idle workers, in instructions.
    pub work: u64,
}

/// The properties of a run that its status depends on.
#[derive(Copy, Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunKind {
    /// Whether worlds are explored, not a program.
    pub is_world: bool,
    /// The limits of the run as a whole.
    pub limits: Budget,
    /// The time limit of the run as a whole, from when the first worker begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Duration>,
}

/// The fields of a manifest that have the same meaning in all protocols.
#[derive(Deserialize)]
struct Head {
    protocol: u32,
    build: Build,
}

impl Head {
    fn read(bytes: &[u8]) -> Result<Head> {
        serde_json::from_slice(bytes).map_err(Error::damaged)
    }

    fn refused(&self, ours: impl std::fmt::Display) -> Error {
        Error::OtherBuild {
            theirs: format!("{}, protocol {}", self.build, self.protocol),
            ours: format!("{ours}, protocol {PROTOCOL}"),
        }
    }
}

impl Manifest {
    /// Reads a manifest from untrusted bytes. Fails for another build or protocol.
    pub(crate) fn read(bytes: &[u8], build: &Build) -> Result<Manifest> {
        let head = Head::read(bytes)?;
        if head.protocol != PROTOCOL || head.build != *build {
            return Err(head.refused(build));
        }
        serde_json::from_slice(bytes).map_err(Error::damaged)
    }

    /// Fetches the files of the run.
    pub(crate) fn parcel(self, broker: &mut dyn Broker) -> Result<Parcel> {
        let programs = self.programs.iter();
        let programs = programs.map(|hash| fetch(broker, *hash));
        let programs = programs.collect::<Result<_>>()?;
        let natives = self.natives.iter();
        let natives = natives.map(|hash| hash.map(|hash| fetch(broker, hash)).transpose());
        let natives = natives.collect::<Result<_>>()?;
        let files = self.files.into_iter();
        let files = files.map(|file| file.try_map(|hash| fetch(broker, hash)));
        let files = files.collect::<Result<_>>()?;
        let disk = self.disk.into_iter();
        let disk = disk.map(|entry| entry.try_map(|hash| fetch(broker, hash)));
        Ok(Parcel {
            programs,
            natives,
            files,
            disk: disk.collect::<Result<_>>()?,
            spec: self.spec,
            limits: self.kind.limits,
            max_time: self.kind.max_time,
        })
    }
}

/// A run to submit.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The run.
    pub spec: RunSpec,
    /// This build.
    pub build: Build,
    /// Work of a job between two checks for idle workers, in instructions.
    pub work: Option<u64>,
    /// Maximum number of instructions of the run.
    pub max_work: Option<u64>,
    /// Makes the name of the run unique: a run that is submitted twice is explored twice.
    pub nonce: Vec<u8>,
    /// The key that signs the run, for workers that accept only signed ones.
    pub key: Option<SigningKey>,
}

/// Refuses options that only apply to a search on one machine. A run that was begun there may have
/// them: they do not matter to workers.
pub(crate) fn expect_no_local_options(spec: &RunSpec) -> Result<()> {
    let refused = match (spec.workers, spec.checkpoint) {
        (Some(_), _) => Some((
            "workers",
            "cannot be chosen by who submits a run: as many workers explore it as join the broker (`everett worker`, which \
             has its own number of them)",
        )),
        (_, Some(_)) => Some((
            "checkpoint",
            "has no meaning on a cluster: the broker keeps what is explored",
        )),
        (None, None) => None,
    };
    let Some((field, message)) = refused else {
        return Ok(());
    };
    let message = message.to_owned();
    Err(everett::Error::NotApplicable { field, message }.into())
}

/// Creates the manifest of a run, and its objects.
pub(crate) fn describe(submission: &Submission, session: &Session) -> Result<(Vec<u8>, Objects)> {
    let parcel = Parcel::of(&submission.spec, session)?;
    let mut objects = Vec::new();
    let mut store = |bytes: Vec<u8>| {
        let hash = Hash::of(&bytes);
        objects.push((hash, bytes));
        hash
    };
    let programs = parcel.programs.into_iter().map(&mut store).collect();
    let natives = parcel.natives.into_iter();
    let natives = natives.map(|native| native.map(&mut store)).collect();
    let files = parcel.files.into_iter();
    let files = files.map(|file| file.try_map(|bytes| Ok::<_, Error>(store(bytes))));
    let files = files.collect::<Result<_>>()?;
    let disk = parcel.disk.into_iter();
    let disk = disk.map(|entry| entry.try_map(|bytes| Ok::<_, Error>(store(bytes))));
    let manifest = Manifest {
        protocol: PROTOCOL,
        build: submission.build.clone(),
        programs,
        natives,
        files,
        disk: disk.collect::<Result<_>>()?,
        kind: RunKind {
            is_world: parcel.spec.is_scenario(),
            limits: Budget {
                instructions: submission.max_work,
                ..parcel.limits
            },
            max_time: parcel.max_time,
        },
        spec: parcel.spec,
        work: submission.work.unwrap_or(WORK),
    };
    let manifest = serde_json::to_vec(&manifest).map_err(everett::Error::from)?;
    Ok((manifest, objects))
}

/// Returns the first job of a run, and its states.
pub(crate) fn first_job(run: &RunId, kind: &RunKind) -> Result<(Ticket, Vec<u8>)> {
    let states = pack_states(&States::beginning(kind.is_world))?;
    let ticket = Ticket {
        budget: kind.limits,
        ..Ticket::new(run, run.as_str(), Hash::of(&states), WeightSum::one())
    };
    Ok((ticket, states))
}

/// Returns the properties of a run that its status depends on.
pub(crate) fn kind_of(broker: &mut dyn Broker, run: &RunId) -> Result<RunKind> {
    let manifest = broker.look_up(&Key::of_run(Kind::Run, run))?;
    let manifest = manifest.ok_or_else(|| Error::NoRun(run.to_string()))?;
    // The records of a run of another protocol have another meaning, too.
    let head = Head::read(&manifest)?;
    if head.protocol != PROTOCOL {
        return Err(head.refused("a build of everett"));
    }
    serde_json::from_slice(&manifest).map_err(Error::damaged)
}

/// Submits a run. Waiting workers start at once. Returns the name of the run and the hash of its
/// manifest.
pub fn submit(
    broker: &mut dyn Broker,
    submission: &Submission,
    session: &Session,
) -> Result<(RunId, Hash)> {
    expect_no_local_options(&submission.spec)?;
    let (manifest, objects) = describe(submission, session)?;
    let run = RunId::of(&manifest, &submission.nonce);
    send(broker, &run, (&manifest, submission.key.as_ref()), objects)?;
    Ok((run, Hash::of(&manifest)))
}

/// Stores a run with its objects, and its first job.
pub(crate) fn send(
    broker: &mut dyn Broker,
    run: &RunId,
    (manifest, key): (&[u8], Option<&SigningKey>),
    mut objects: Objects,
) -> Result<()> {
    let kind = serde_json::from_slice(manifest).map_err(Error::damaged)?;
    let (ticket, states) = first_job(run, &kind)?;
    objects.push((ticket.states, states));
    for (hash, bytes) in &objects {
        broker.put(*hash, bytes)?;
    }
    record_run(broker, run, (manifest, key))?;
    restore(broker, &objects)?;
    if ticket.budget.spent().is_none() {
        broker.publish(&ticket)?;
    }
    Ok(())
}

/// Records a run, so that everybody knows of it, and its signature before.
pub(crate) fn record_run(
    broker: &mut dyn Broker,
    run: &RunId,
    (manifest, key): (&[u8], Option<&SigningKey>),
) -> Result<()> {
    key.map_or(Ok(()), |key| key.sign(broker, run, manifest))?;
    broker.record(&Key::of_run(Kind::Run, run), manifest)?;
    Ok(())
}

/// Stores objects of a run again that the removal of another run has taken away before this run was
/// known.
pub(crate) fn restore(broker: &mut dyn Broker, objects: &Objects) -> Result<()> {
    for (hash, bytes) in objects {
        if broker.get(*hash)?.is_none() {
            broker.put(*hash, bytes)?;
        }
    }
    Ok(())
}

/// Cancels a run: workers drop its jobs. Results so far are kept.
pub fn cancel(broker: &mut dyn Broker, run: &RunId) -> Result<()> {
    let key = Key::of_run(Kind::Run, run);
    if broker.look_up(&key)?.is_none() {
        return Err(Error::NoRun(run.to_string()));
    }
    broker.record(&Key::of_run(Kind::Cancelled, run), b"{}")?;
    Ok(())
}
