//! Worlds whose threads took turns between system calls: where they did is found out by following the world in the vm,
//! and tried natively until a run ends the same.

use everett_engine::ExplorerConfig;
use everett_native::{NativeHost, Script};
use everett_vm::Image;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::points;
use crate::session::Session;
use crate::spec::RunSpec;
use crate::world::follow::on_the_way;
use crate::world::prepare;
use crate::world::trace::WorldTrace;

/// Where threads of hosts take turns, by the names of the hosts.
pub(crate) type Scripts = BTreeMap<String, Script>;

/// Finds the points of worlds of a run.
pub(crate) struct WorldPoints {
    run: RunSpec,
    session: Session,
    /// What is followed, once somebody asks; nothing, where there is no bitcode.
    loaded: OnceLock<Option<(ExplorerConfig, Vec<Image>)>>,
}

impl WorldPoints {
    /// Those of a run.
    pub(crate) fn of(run: &RunSpec, session: &Session) -> WorldPoints {
        WorldPoints {
            run: run.clone(),
            session: session.clone(),
            loaded: OnceLock::new(),
        }
    }

    /// The points of a world, of the hosts that have some. What cannot be followed has none.
    pub(crate) fn scripts(&self, hosts: &[NativeHost], trace: &WorldTrace) -> Result<Scripts> {
        let possible = hosts.iter().filter(|host| {
            let config = &host.config;
            config.script.is_none() && points::are_possible(config)
        });
        let possible: Vec<&str> = possible.map(|host| host.name.as_str()).collect();
        if possible.is_empty() {
            return Ok(Scripts::new());
        }
        let loaded = self
            .loaded
            .get_or_init(|| prepare(&self.run, &self.session).ok());
        let Some((config, images)) = loaded else {
            return Ok(Scripts::new());
        };
        let mut config = config.clone();
        for host in &mut config.hosts {
            host.config.options.logs_points = possible.contains(&host.name.as_str());
        }
        let (_, standing) = on_the_way(&config, images, trace)?;
        let scripts = standing.into_iter().filter_map(|host| {
            let script = points::script(&host.points, host.restarts)?;
            Some((host.name, script))
        });
        Ok(scripts.collect())
    }
}

/// Scripts to try, the likeliest first: at most one host differs from what the vm did.
pub(crate) fn attempts(scripts: &Scripts, most: usize) -> Vec<Scripts> {
    let mut all = vec![scripts.clone()];
    for (name, script) in scripts {
        for other in points::attempts(script, most).skip(1) {
            let mut attempt = scripts.clone();
            attempt.insert(name.clone(), other);
            all.push(attempt);
        }
    }
    all.truncate(most);
    all
}

/// Hosts whose threads take turns there. Where lines lie in their programs is found out anew.
pub(crate) fn scripted(hosts: &[NativeHost], scripts: &Scripts) -> Vec<NativeHost> {
    let mut hosts = hosts.to_vec();
    for host in &mut hosts {
        host.config.script = scripts.get(&host.name).map(|script| Script {
            lines: Arc::default(),
            ..script.clone()
        });
    }
    hosts
}
