//! Parcels: everything that another machine needs to explore a program or a scenario, without paths
//! of any disk. Owns which runs cannot be explored on several machines, and the checks of a parcel
//! from an untrusted source. Must not know how parcels are transported.

use everett_engine::ExplorerConfig;
use everett_linux::Contents;
use everett_scenario::Scenario;
use everett_vm::Image;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bootstrap::boots;
use crate::budget::Budget;
use crate::config::explorer_config;
use crate::disk::{Disk, DiskEntry, Packed, RealDisk, Recording};
use crate::error::{Context, Error, Result, bail};
use crate::load::{bitcode_of, load_bytes};
use crate::options::Scope;
use crate::parcel_file::{ParcelFile, file_spec, parcel_file};
use crate::scenario::scenario_from;
use crate::session::Session;
use crate::spec::{RunSpec, VERSION};
use crate::world;

/// A time limit that no process reaches.
pub(crate) const NEVER: Duration = Duration::from_secs(1 << 30);

/// Everything that is needed to explore a program or a scenario, without paths of any disk.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The spec of the run.
    pub spec: RunSpec,
    /// Bitcode of the program and of the programs that it can execute.
    pub programs: Vec<Vec<u8>>,
    /// The native programs, where they exist: the guest can read them.
    pub natives: Vec<Option<Vec<u8>>>,
    /// Files that the guest sees, for a program.
    pub files: Vec<ParcelFile<Vec<u8>>>,
    /// The scenario and its files.
    pub disk: Vec<DiskEntry<Vec<u8>>>,
    /// The limits of the run as a whole.
    pub limits: Budget,
    /// The time limit of the run as a whole. Jobs have a deadline of their own ([`crate::Job`]).
    pub max_time: Option<Duration>,
}

impl Parcel {
    /// Reads everything that a run needs from the disk.
    pub fn of(spec: &RunSpec, session: &Session) -> Result<Parcel> {
        spec.check()?;
        match spec.is_scenario() {
            true => Parcel::of_scenario(spec, session),
            false => Parcel::of_program(spec, session),
        }
    }

    fn of_program(spec: &RunSpec, session: &Session) -> Result<Parcel> {
        expect_divisible(spec)?;
        let files = spec.host.mounted(session)?;
        let programs = spec.native_programs().into_iter().map(|program| {
            let path = bitcode_of(&RealDisk, &program)?;
            everett_report::read_file(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        });
        let natives = spec.native_programs().into_iter();
        let natives = natives.map(|program| match program.is_file() {
            true => everett_report::read_file(&program).map(Some),
            false => Ok(None),
        });
        let parcel = Parcel {
            natives: natives.collect::<std::io::Result<_>>()?,
            programs: programs.collect::<Result<_>>()?,
            files: files.iter().map(parcel_file).collect(),
            disk: Vec::new(),
            limits: limits_of(spec),
            max_time: spec.max_time,
            spec: without_paths(spec),
        };
        expect_alone(&spec.load()?)?;
        Ok(parcel)
    }

    fn of_scenario(spec: &RunSpec, session: &Session) -> Result<Parcel> {
        let file = spec.scenario().file;
        let disk = Recording::below(file.parent().unwrap_or(Path::new("")));
        let whole = expect_divisible_world(&disk, spec)?;
        // Everything that is accessed here is part of the parcel.
        world::prepare_from(&disk, spec, session)?;
        let mut spec = without_paths(spec);
        let name = file.file_name().unwrap_or_default();
        spec.command = vec![name.to_owned()];
        Ok(Parcel {
            limits: limits_of(&whole),
            max_time: whole.max_time,
            programs: Vec::new(),
            natives: Vec::new(),
            files: Vec::new(),
            disk: disk.into_entries(),
            spec,
        })
    }

    /// Creates the configuration and the programs. The parcel may be damaged or hostile: everything
    /// that names a path of this machine is refused.
    pub(crate) fn prepare(&self, session: &Session) -> Result<(ExplorerConfig, Vec<Image>)> {
        self.spec.check()?;
        // The limit of the whole run is not one of this process. It is not left out, since that of
        // the scenario would count then.
        let spec = &RunSpec {
            max_time: Some(NEVER),
            ..self.spec.clone()
        };
        let host = &spec.host;
        let has_mounts = !host.ro.is_empty() || !host.files.is_empty() || !host.file.is_empty();
        let has_files = host
            .program
            .iter()
            .any(|program| !program.file.as_os_str().is_empty());
        if has_mounts || has_files || spec.out.is_some() || spec.started_in.is_some() {
            bail!(Invalid, "the job names paths of this machine");
        }
        let (mut config, images) = match spec.is_scenario() {
            true => {
                let disk = Packed::of(&self.disk)?;
                expect_divisible_world(&disk, spec)?;
                world::prepare_from(&disk, spec, session)
            }
            false => self.prepare_program(spec, session),
        }?;
        config.limits.max_time = None;
        Ok((config, images))
    }

    fn prepare_program(
        &self,
        spec: &RunSpec,
        session: &Session,
    ) -> Result<(ExplorerConfig, Vec<Image>)> {
        expect_divisible(spec)?;
        if self.programs.len() != 1 + spec.host.program.len() {
            bail!(Invalid, "the job lacks programs that it names");
        }
        let names = spec.host.program.iter();
        let names = names.map(|program| Path::new(&program.path));
        let names = std::iter::once(spec.program()).chain(names);
        let images = names.zip(&self.programs);
        let images = images.map(|(name, bytes)| load_bytes(name, bytes, spec.lowering()));
        let mut images = images.collect::<Result<Vec<Image>>>()?;
        Image::number_all(&mut images);
        expect_alone(&images)?;
        let mut config = explorer_config(spec, session)?;
        let files = self.files.iter().map(file_spec);
        let host = &mut config.hosts[0].config;
        host.files.splice(0..0, files);
        let natives = self.natives.iter().map(|native| {
            let bytes = native.clone()?;
            Some(Contents::Concrete(bytes.into()))
        });
        host.program_contents = natives.collect();
        Ok((config, images))
    }
}

/// Returns the spec without paths of this machine: the parcel contains their files.
fn without_paths(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    // The file of a run contains the version, too.
    spec.version = Some(VERSION);
    (spec.out, spec.started_in) = (None, None);
    (spec.host.ro, spec.host.files, spec.host.file) = (Vec::new(), Vec::new(), Vec::new());
    for program in &mut spec.host.program {
        program.file = PathBuf::new();
    }
    spec
}

/// Returns the limits of the whole run.
fn limits_of(spec: &RunSpec) -> Budget {
    Budget {
        paths: spec.max_paths,
        forks: spec.max_forks,
        instructions: None,
    }
}

/// Why an option is refused that a search on several machines does not support.
const NOT_DIVISIBLE: &str = "is not possible on a cluster";

/// Refuses options that a search on several machines does not support.
fn expect_divisible(spec: &RunSpec) -> Result<()> {
    let is_none = |path: &PathBuf| path.as_os_str() == "none";
    let refused = [
        (spec.klee_messages, "klee_messages"),
        (spec.deterministic, "deterministic"),
        (spec.solver_log.is_some(), "solver_log"),
        (spec.log_queries.is_some(), "log_queries"),
        (spec.allow_live, "allow_live"),
        (spec.offline.is_some(), "offline"),
        (!spec.smt_solver.as_ref().is_none_or(is_none), "smt_solver"),
        (
            spec.max_total_instructions.is_some(),
            "max_total_instructions",
        ),
    ];
    if let Some((_, field)) = refused.into_iter().find(|(is_said, _)| *is_said) {
        let message = match field {
            "smt_solver" => "with a program is not possible on a cluster",
            "max_total_instructions" => "is not possible on a cluster; use --max-work",
            _ => NOT_DIVISIBLE,
        };
        return Err(Error::not_applicable(field, message));
    }
    spec.expect_no(|scope| match scope {
        Scope::Program | Scope::Booting => Some(NOT_DIVISIBLE),
        _ if spec.is_scenario() => None,
        _ => scope.refusal_by_programs(false),
    })
}

/// Like [`expect_divisible`], for a scenario, which sets some options itself. Returns the run with
/// these options.
fn expect_divisible_world(disk: &dyn Disk, spec: &RunSpec) -> Result<RunSpec> {
    expect_divisible(spec)?;
    let scenario = scenario_from(disk, &spec.scenario())?;
    expect_no_peers(&scenario)?;
    let whole = spec.with_scenario(&scenario)?;
    expect_divisible(&whole)?;
    Ok(whole)
}

fn expect_no_peers(scenario: &Scenario) -> Result<()> {
    let peers = scenario.hosts.iter().filter(|host| host.peer.is_some());
    let names: Vec<&str> = peers.map(|host| host.name.as_str()).collect();
    if !names.is_empty() {
        bail!(
            Usage,
            "the scenario has live peers ({}), which run on one machine: explore it there",
            names.join(", ")
        );
    }
    Ok(())
}

fn expect_alone(images: &[Image]) -> Result<()> {
    if boots(images) {
        bail!(
            Usage,
            "a cluster explores programs and scenarios; this program boots a world by itself: explore it on one machine"
        );
    }
    Ok(())
}
