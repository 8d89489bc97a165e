//! Preemption points of worlds whose threads switched between system calls. Replaying the world in the vm locates the
//! points; native runs then try them until one ends the same.

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

/// The preemption scripts of hosts, by host name.
pub(crate) type Scripts = BTreeMap<String, Script>;

/// Finds the preemption points of a run's worlds.
pub(crate) struct WorldPoints {
    run: RunSpec,
    session: Session,
    /// What the vm replays, loaded on demand; `None` if there is no bitcode.
    loaded: OnceLock<Option<(ExplorerConfig, Vec<Image>)>>,
}

impl WorldPoints {
    /// A finder for the worlds of a run.
    pub(crate) fn of(run: &RunSpec, session: &Session) -> WorldPoints {
        WorldPoints {
            run: run.clone(),
            session: session.clone(),
            loaded: OnceLock::new(),
        }
    }

    /// The preemption scripts of a world's hosts; hosts without points have none, nor do worlds that the vm cannot
    /// replay.
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

/// Scripts to try, the likeliest first. At most one host deviates from the vm's schedule.
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

/// The hosts with these preemption scripts. Source lines are located again in their programs.
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
