//! Builds hosts that can be started from a scenario: programs, files, addresses.

use everett_engine::{Trace, WorldHost};
use everett_ir::Module;
use everett_linux::{
    Argument, Boot, Contents, FileSpec, HostConfig, HostStart, ProcessConfig, ProgramSpec,
    RouteSpec, Stdin,
};
use everett_native::NativeHost;
use everett_net::{HostIndex, Prefix, StartTime, Topology};
use everett_scenario::{Expectation, FileSource, HostSetup, Process, Scenario};
use everett_sim::{Expected, Expects};
use everett_vm::{Image, ImageId};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::native_config;
use crate::disk::{Disk, RealDisk};
use crate::error::{Context, Error, Result, bail};
use crate::host::HostSpec;
use crate::input::expect_feasible;
use crate::layers::Mount;
use crate::load::{Lowering, load_from, program_contents};
use crate::peers::{peer_config, peer_paths};
use crate::replaced::ReplacedFunctions;
use crate::session::Session;
use crate::watched::Modules;

/// The programs of a scenario, without duplicates.
pub(crate) struct Programs<'d> {
    /// The disk with the programs and all other files of the scenario.
    disk: &'d dyn Disk,
    paths: Vec<PathBuf>,
    /// Names of the programs' variables, read on demand.
    modules: Modules,
}

impl<'d> Programs<'d> {
    /// Creates an empty list of programs on this disk.
    pub(crate) fn on(disk: &'d dyn Disk) -> Programs<'d> {
        Programs {
            disk,
            paths: Vec::new(),
            modules: Modules::default(),
        }
    }

    fn number(&mut self, path: &Path) -> Result<ImageId> {
        let at = self.paths.iter().position(|known| known == path);
        let at = at.unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        let number = u16::try_from(at)
            .map_err(|_| Error::Invalid("there are too many programs".to_owned()))?;
        Ok(ImageId(number))
    }

    /// Returns what hosts read in the files of the programs.
    fn contents(&self, session: &Session) -> Result<Vec<Option<Contents>>> {
        program_contents(self.disk, &self.paths, &session.notices)
    }

    /// Loads all programs, without the functions that are replaced.
    pub(crate) fn load(
        &self,
        lowering: Lowering,
        replaced: &ReplacedFunctions,
    ) -> Result<Vec<Image>> {
        let paths = self.paths.iter();
        let images = paths.map(|path| {
            let replaced = |module: &Module| replaced.of(path, module);
            load_from(self.disk, path, lowering, replaced)
        });
        let mut images = images.collect::<Result<Vec<Image>>>()?;
        Image::number_all(&mut images);
        Ok(images)
    }
}

/// Returns all hosts of a scenario, with random bytes from a seed.
pub(crate) fn hosts(
    (scenario, seed): (&Scenario, u64),
    programs: &mut Programs<'_>,
    session: &Session,
) -> Result<Vec<WorldHost>> {
    let starts = scenario.start_times();
    let setups = scenario.hosts.iter().zip(starts);
    let hosts =
        setups.map(|(setup, start)| host((scenario, seed), setup, start, programs, session));
    let mut hosts = hosts.collect::<Result<Vec<WorldHost>>>()?;
    let contents = programs.contents(session)?;
    for host in &mut hosts {
        host.config.program_contents.clone_from(&contents);
    }
    Ok(hosts)
}

/// Returns all hosts of a scenario with native programs; image numbers count within a host.
pub(crate) fn native_hosts(
    (scenario, seed): (&Scenario, u64),
    replaced: &ReplacedFunctions,
    session: &Session,
) -> Result<Vec<NativeHost>> {
    let starts = scenario.start_times();
    let mut all = Vec::new();
    let mut modules = Modules::default();
    for (setup, start) in scenario.hosts.iter().zip(starts) {
        let mut programs = Programs {
            modules,
            ..Programs::on(&RealDisk)
        };
        let mut host = host((scenario, seed), setup, start, &mut programs, session)?;
        host.config.program_contents = programs.contents(session)?;
        for program in &programs.paths {
            if !program.exists() {
                bail!(Program, "there is no native program {}", program.display());
            }
        }
        let paths = programs.paths.iter();
        let functions = paths.map(|program| replaced.in_program(programs.disk, program));
        let functions = functions.collect::<Result<Vec<_>>>()?;
        let mut config = native_config(host.config, programs.paths, session)?;
        config.replaced = functions;
        all.push(NativeHost {
            name: host.name,
            config,
            start: host.start,
            expects: host.expects,
            begin: host.begin,
            peer: host.peer,
            logs_waits: false,
        });
        modules = programs.modules;
    }
    Ok(all)
}

/// Returns the seed of a host's random bytes; it differs between hosts.
fn random_seed(seed: u64, host: HostIndex) -> u64 {
    seed ^ u64::from(host.0) << 32
}

/// Seeds the random bytes of a host.
pub(crate) fn draw_by(seed: u64, host: HostIndex, config: &mut HostConfig) {
    let seed = random_seed(seed, host);
    match &mut config.boot {
        Boot::Start(begin) => begin.random = seed,
        _ => config.random_seed = seed,
    }
}

/// Returns how the processes of a host must end, if the scenario expects something of them.
fn expected(setup: &HostSetup) -> Vec<Expected> {
    let number = |number: Option<u8>| number.map(i32::from);
    let expected = |(at, process): (usize, &Process)| {
        let ends = match process.expect? {
            Expectation::Exit(code) => Expects::Exit(number(code)),
            Expectation::Signal(signal) => Expects::Signal(number(signal)),
            Expectation::Running => Expects::Running,
        };
        Some(Expected {
            number: at,
            process: process.name.clone(),
            ends,
        })
    };
    let processes = setup.processes.iter().enumerate();
    processes.filter_map(expected).collect()
}

/// Requires that hosts without expectations end: waiting forever is a finding
/// (`--check-deadlocks`).
pub(crate) fn expect_ends(scenario: &mut Scenario) {
    let hosts = scenario.hosts.iter_mut();
    let silent = hosts.filter(|host| {
        host.processes
            .iter()
            .all(|process| process.expect.is_none())
    });
    for process in silent.filter_map(|host| host.processes.first_mut()) {
        process.expect = Some(Expectation::Exit(None));
    }
}

/// Returns the processes of a host: the first one and the others.
fn processes(setup: &HostSetup) -> Result<(&Process, &[Process])> {
    let Some(processes) = setup.processes.split_first() else {
        bail!(Usage, "host {} has no program", setup.name);
    };
    Ok(processes)
}

fn host(
    (scenario, seed): (&Scenario, u64),
    setup: &HostSetup,
    start: StartTime,
    programs: &mut Programs<'_>,
    session: &Session,
) -> Result<WorldHost> {
    if let Some(peer) = &setup.peer {
        return Ok(WorldHost {
            name: setup.name.clone(),
            start,
            peer: Some(peer_config(scenario, setup, peer)),
            ..WorldHost::alone(HostConfig::default())
        });
    }
    let named = || format!("host {}", setup.name);
    let mut config = config((scenario, seed), setup, programs, session).with_context(named)?;
    let mut start = start;
    let begin = match &setup.begin {
        Some(path) => {
            // The host runs alone from time zero to the point where it waits for its start. If it
            // waits for other hosts to block, it begins there.
            let at_ns = match &mut start {
                StartTime::At(at_ns) => std::mem::take(at_ns),
                StartTime::Blocked(_) => 0,
            };
            config.boot = Boot::Start(HostStart {
                name: setup.name.clone(),
                at_ns,
                random: std::mem::take(&mut config.random_seed),
            });
            Some(Arc::new(begin_of(programs.disk, path).with_context(named)?))
        }
        None => None,
    };
    Ok(WorldHost {
        name: setup.name.clone(),
        config,
        start,
        expects: expected(setup),
        begin,
        peer: None,
    })
}

fn config(
    (scenario, seed): (&Scenario, u64),
    setup: &HostSetup,
    programs: &mut Programs<'_>,
    session: &Session,
) -> Result<HostConfig> {
    let (process, others) = processes(setup)?;
    let topology = &scenario.topology;
    let (image, disk) = (programs.number(&process.program)?, programs.disk);
    let modules = &mut programs.modules;
    let mut config = HostConfig {
        image,
        watches: modules.watches(setup, (disk, &process.program), image)?,
        variables: modules.variables(setup, (disk, &process.program), image)?,
        args: arguments(scenario, process),
        env: environment(process),
        stdin: stdin(disk, process)?,
        addresses: topology.addresses(setup.index).collect(),
        routes: routes(topology, setup.index),
        random_seed: random_seed(seed, setup.index),
        ..HostConfig::default()
    };
    config.start_time_ns = config
        .start_time_ns
        .saturating_add_signed(setup.clock_skew_ns);
    if let Some(cwd) = &process.cwd {
        config.cwd = cwd.clone().into_bytes();
    }
    for other in others {
        config.others.push(ProcessConfig {
            image: programs.number(&other.program)?,
            args: arguments(scenario, other),
            env: environment(other),
            stdin: stdin(disk, other)?,
            cwd: other.cwd.clone().unwrap_or_else(|| "/".to_owned()).into(),
        });
    }
    for other in &setup.programs {
        let path = match &other.guest_path {
            Some(path) => path.clone().into_bytes(),
            None => name_in(scenario, &other.program),
        };
        let image = programs.number(&other.program)?;
        config.programs.push(ProgramSpec { path, image });
    }
    config.files = files(disk, setup, session)?;
    let names = topology.hosts_file().into_bytes();
    config
        .files
        .insert(0, FileSpec::concrete("/etc/hosts", names));
    let options = &mut config.options;
    options.stops_at_calls = scenario.faults.has_call_faults(setup.index);
    options.peer_paths = Arc::new(peer_paths(scenario));
    HostSpec::of_scenario(&setup.options)?.apply_options(options)?;
    // A host is a machine: a daemon goes on after the process that started it has exited.
    let mut given = setup.options.iter().filter(|given| given.value.is_some());
    let is_given = given.any(|given| given.key.name == "wait_all");
    options.waits_for_all |= !is_given || !others.is_empty();
    expect_feasible(&config)?;
    Ok(config)
}

/// Returns a program's name as in the scenario. The arguments of programs must not depend on where
/// the scenario is and from where it is run: a run is resumed and replayed from any folder.
fn name_in(scenario: &Scenario, program: &Path) -> Vec<u8> {
    let path = program.as_os_str().as_bytes();
    let folder = scenario.folder.as_os_str().as_bytes();
    let below = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    let name = below.and_then(|below| below.strip_prefix(b"/"));
    name.unwrap_or(path).to_vec()
}

fn arguments(scenario: &Scenario, process: &Process) -> Vec<Argument> {
    use everett_scenario::Argument as Said;
    let name = name_in(scenario, &process.program);
    let others = process.args.iter().map(|argument| match argument {
        Said::Text(text) => Argument::Concrete(text.clone().into_bytes()),
        Said::Symbolic { length } => Argument::Symbolic { max_len: *length },
        Said::SymbolicMany {
            least,
            most,
            length,
        } => Argument::SymbolicMany {
            min: *least,
            max: *most,
            max_len: *length,
        },
    });
    std::iter::once(Argument::Concrete(name))
        .chain(others)
        .collect()
}

/// Reads the trace to the point at which a host begins.
fn begin_of(disk: &dyn Disk, path: &Path) -> Result<Trace> {
    let text = disk.read(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not a trace", path.display()))
}

fn environment(process: &Process) -> Vec<Argument> {
    use everett_scenario::EnvValue as Said;
    let variable = |(name, value): &(String, Said)| match value {
        Said::Text(text) => Argument::Concrete(format!("{name}={text}").into_bytes()),
        Said::Symbolic { length } => Argument::Prefixed {
            prefix: format!("{name}=").into_bytes(),
            name: format!("env-{name}"),
            max_len: *length,
        },
    };
    process.env.iter().map(variable).collect()
}

fn stdin(disk: &dyn Disk, process: &Process) -> Result<Stdin> {
    use everett_scenario::Stdin as Said;
    Ok(match &process.stdin {
        Said::Empty => Stdin::Empty,
        Said::Text(text) => Stdin::Concrete(text.as_bytes().into()),
        Said::File(path) => {
            let bytes = disk.read(path);
            let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
            Stdin::Concrete(bytes.into())
        }
        Said::Symbolic { size } => Stdin::Symbolic { size: *size },
    })
}

fn files(disk: &dyn Disk, setup: &HostSetup, session: &Session) -> Result<Vec<FileSpec>> {
    let mounted = |mount: &Mount| disk.mounted(mount, &session.notices);
    let mut all = Vec::new();
    for source in &setup.files {
        match source {
            FileSource::Folder(from) => {
                all.extend(mounted(&Mount::new(from, Path::new("")))?);
            }
            FileSource::Mount { from, to } | FileSource::File { to, from } => {
                all.extend(mounted(&Mount::new(from, Path::new(to)))?);
            }
            FileSource::Text { to, text } => {
                all.push(FileSpec::concrete(to.clone(), text.as_bytes()));
            }
            FileSource::Symbolic { to, least, most } => {
                let contents = if least == most {
                    Contents::Symbolic { size: *most }
                } else {
                    Contents::SymbolicBetween {
                        least: *least,
                        most: *most,
                    }
                };
                all.push(FileSpec::new(to.clone(), contents, 0o644));
            }
        }
    }
    Ok(all)
}

/// Returns the addresses that a host can reach: its own networks, the targets of its routes, and
/// broadcast.
fn routes(topology: &Topology, host: HostIndex) -> Vec<RouteSpec> {
    let here = topology.host(host);
    let mut routes = Vec::new();
    let mut add = |to: Prefix, source: IpAddr, gateway: Option<IpAddr>| {
        routes.push(RouteSpec {
            network: to.address(),
            prefix_len: to.length(),
            source,
            gateway,
        });
    };
    for interface in &here.interfaces {
        for address in &interface.addresses {
            add(address.subnet(), address.address(), None);
        }
    }
    for route in &here.routes {
        if let Some(source) = topology.source_for(host, route.via) {
            add(route.to, source, Some(route.via));
        }
    }
    for many in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 0)] {
        let bits = if many.is_broadcast() { 32 } else { 4 };
        let source = here
            .interfaces
            .iter()
            .flat_map(|interface| &interface.addresses)
            .find(|address| address.address().is_ipv4());
        if let (Some(source), Some(to)) = (source, Prefix::new(many.into(), bits)) {
            add(to, source.address(), None);
        }
    }
    routes
}
