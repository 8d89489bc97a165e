//! Fault searches on several machines: the way to the nodes over a broker, and `everett faults
//! node`.

use anyhow::{Context, Result};
use everett::parse_time;
use everett_cluster::{
    Answered, Purpose, Secrets, Served, Submission, TaskClient, TaskSpec, broker_url, connect_for,
    serve_tasks, worker_name,
};
use everett_faultspace::{Node, NodeSpec, Nodes};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::EXIT_CLEAN;
use crate::commands::cluster::parse_lease;
use crate::session::{notice, stoppable_session};

/// The nodes of a search, over a broker.
pub struct BrokerNodes {
    url: String,
    client: TaskClient,
}

impl fmt::Debug for BrokerNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerNodes({})", self.url)
    }
}

impl BrokerNodes {
    /// Connects to a broker.
    pub fn connect(
        url: &str,
        credentials: Option<&PathBuf>,
        stop: Arc<AtomicBool>,
    ) -> Result<BrokerNodes> {
        let url = broker_url(Some(url))?;
        let secrets = Secrets::from_environment(credentials.map(PathBuf::as_path))?;
        let broker = connect_for(Purpose::Tests, &url, &secrets, None)?;
        let client = TaskClient::new(broker, &Submission::fresh_nonce(), stop);
        Ok(BrokerNodes { url, client })
    }
}

impl Drop for BrokerNodes {
    fn drop(&mut self) {
        // What stays at a broker that cannot be reached, nodes drop when they get it.
        let _ = self.client.end();
    }
}

impl Nodes for BrokerNodes {
    fn run(&self, task: &[u8], until: Option<Instant>) -> Result<Vec<u8>, String> {
        match self.client.run(task, until) {
            Ok(Answered::Bytes(answer)) => Ok(answer),
            Ok(Answered::Failed(why)) => Err(why),
            Ok(Answered::Stopped) => Err("the search has ended".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.client.nodes()
    }
}

/// Arguments of `everett faults node`.
#[derive(clap::Args)]
pub struct NodeArgs {
    /// The file that describes the search. Its space, injector, impact and limits must be those of
    /// the search; its commands and folder are this machine's own.
    #[arg(value_name = "SEARCH.toml")]
    file: PathBuf,
    /// The address of the broker; default: EVERETT_BROKER.
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// The file with the credentials of a user of NATS; default: EVERETT_BROKER_CREDS.
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// Name of the node in the results; default: host name and process id.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Tests at a time; default: one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Let other nodes run a test when its node has sent no heartbeat for this time.
    #[arg(long, value_name = "TIME", value_parser = parse_lease, default_value = "30s")]
    lease: Duration,
    /// Exit after waiting this long for a test; default: never.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle: Option<Duration>,
}

/// A folder for a node, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let name = format!("everett-node-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a node until it is interrupted.
pub fn run_node(args: &NodeArgs, manager: Vec<OsString>) -> Result<u8> {
    let session = stoppable_session()?;
    let url = broker_url(args.broker.as_deref())?;
    let secrets = Secrets::from_environment(args.nats_creds.as_deref())?;
    let scratch = Scratch::new()?;
    let node = Node::new(&NodeSpec {
        file: args.file.clone(),
        scratch: scratch.0.clone(),
        manager,
    })?;
    let broker = connect_for(Purpose::Tests, &url, &secrets, Some(args.lease))?;
    let spec = TaskSpec {
        name: args.name.clone().unwrap_or_else(worker_name),
        slots: match args.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        },
        idle: args.idle,
    };
    notice(&format!("node {}: waits for tests at {url}", spec.name));
    let tests = Cell::new(0u64);
    let (is_refused, is_lost) = (Cell::new(false), Cell::new(false));
    let tell = |did: &Served| match did {
        Served::Done => {
            tests.set(tests.get() + 1);
            is_lost.set(false);
        }
        Served::Refused if !is_refused.replace(true) => notice(
            "a test belongs to another search (space, injector, impact, limits, or version of Everett) and is left to \
             other nodes",
        ),
        Served::Lost(why) if !is_lost.replace(true) => {
            notice(&format!("no way to the broker, trying again: {why}"));
        }
        Served::Refused | Served::Lost(_) => {}
    };
    let answer = |task: &[u8]| node.answer(task);
    serve_tasks(broker, &spec, &session.stop, &answer, &tell)?;
    notice(&format!("node {}: ran {} tests", spec.name, tests.get()));
    Ok(EXIT_CLEAN)
}
