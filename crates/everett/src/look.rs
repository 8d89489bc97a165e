//! Repeated native replay of one trace with watchers. Debuggers and the step-by-step view of a replay build on it.

use everett_engine::Trace;
use everett_native::{NativeConfig, NativeHost, NativeRun, Source, Watcher, run_watched};
use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::follow::{read_trace, traces_of};
use crate::record::HOST;
use crate::replay::{BuildSpec, expect_one, native_config, with_points};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world::look::{Replayed, watched};
use crate::world::replay::NativeWorld;
use crate::world::trace::{WorldTrace, read_world};

/// A trace of a program or a world that can be replayed natively any number of times.
pub struct NativeReplay {
    kind: Kind,
}

enum Kind {
    Program {
        config: Box<NativeConfig>,
        trace: Trace,
    },
    World {
        world: Box<NativeWorld>,
        hosts: Vec<NativeHost>,
        trace: WorldTrace,
    },
}

impl NativeReplay {
    /// Opens the only trace that `path` denotes.
    pub fn open(path: &Path, build: &BuildSpec, session: &Session) -> Result<NativeReplay> {
        let (folder, traces) = traces_of(path)?;
        let mut run = RunSpec::of(&folder)?;
        if run.is_scenario() {
            let mut world = NativeWorld::of(&run, build, session)?;
            let trace = read_world(expect_one(path, &traces)?)?;
            for host in &mut world.hosts {
                host.config.host.options.logs_calls = true;
            }
            let kind = Kind::World {
                hosts: world.prepared(&trace)?,
                world: Box::new(world),
                trace,
            };
            return Ok(NativeReplay { kind });
        }
        run.host.logs_calls = true;
        let config = native_config(&run, build, session)?;
        let trace = read_trace(expect_one(path, &traces)?)?;
        let config = Box::new(with_points(&config, &trace, &session.notices)?);
        let kind = Kind::Program { config, trace };
        Ok(NativeReplay { kind })
    }

    /// Whether it is a world of several hosts.
    pub fn is_world(&self) -> bool {
        matches!(self.kind, Kind::World { .. })
    }

    /// The names of the hosts; a single program has one host, [`HOST`].
    pub fn hosts(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Program { .. } => vec![HOST],
            Kind::World { hosts, .. } => hosts.iter().map(|host| host.name.as_str()).collect(),
        }
    }

    /// The host of a world on which the finding occurred.
    pub fn wrong_host(&self) -> Option<&str> {
        match &self.kind {
            Kind::Program { .. } => None,
            Kind::World { trace, .. } => Some(trace.finding.as_ref()?.host.as_str()),
        }
    }

    /// Replays the trace with one watcher per host, in the order of [`NativeReplay::hosts`]. Returns the run of each
    /// host, by name.
    pub fn run(&self, watchers: Vec<Box<dyn Watcher + '_>>) -> Result<BTreeMap<String, NativeRun>> {
        match &self.kind {
            Kind::Program { config, trace } => {
                let source = Source::Trace(Box::new(trace.clone()));
                let mut watchers = watchers.into_iter();
                let mut watcher = watchers
                    .next()
                    .unwrap_or_else(|| Box::new(everett_native::NoWatcher));
                let seen = run_watched(config, source, &mut *watcher)?;
                Ok(BTreeMap::from([(HOST.to_owned(), seen)]))
            }
            Kind::World {
                world,
                hosts,
                trace,
            } => {
                let replayed = Replayed {
                    world,
                    trace,
                    hosts: hosts.clone(),
                };
                Ok(watched(&replayed, watchers)?.hosts)
            }
        }
    }
}
