//! `everett cluster` and `everett worker`: the broker and the workers
//! of a search on several machines.

use anyhow::{Result, bail};
use clap::builder::NonEmptyStringValueParser;
use everett::counted;
use everett::{parse_memory, parse_time};
use everett_cluster::{
    Build, LocalServer, Metrics, MetricsServer, PoolSpec, Secrets, ServerSpec, SigningKey,
    Submitters, WorkerStep, broker_url, check_lease, run_workers, worker_name,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;
use crate::session::{notice, stoppable_session};

/// Arguments of `everett cluster`.
#[derive(clap::Args)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(clap::Subcommand)]
enum ClusterCommand {
    /// Starts a NATS server for local use, prints its address, and ends it when interrupted.
    Up(UpArgs),
    /// Prints the public key of a key for signing runs, which workers know it by (--accept).
    Key(KeyArgs),
}

#[derive(clap::Args)]
struct KeyArgs {
    /// The file with the key, for EVERETT_SIGNING_KEY_FILE; created with a new key if there is none.
    file: PathBuf,
}

#[derive(clap::Args)]
struct UpArgs {
    /// Folder for what the server stores.
    #[arg(long, value_name = "DIR", default_value = "everett-cluster")]
    dir: PathBuf,
    /// The port, on 127.0.0.1; default: any free one.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Let only users connect that have one of the keys in DIR/keys, which are created: work, submit,
    /// watch. Each has the rights of its role.
    #[arg(long)]
    roles: bool,
}

impl Subcommand for ClusterArgs {
    fn run(&self) -> Result<u8> {
        match &self.command {
            ClusterCommand::Up(args) => args.run(),
            ClusterCommand::Key(args) => {
                print(&SigningKey::read_or_create(&args.file)?.public());
                Ok(EXIT_CLEAN)
            }
        }
    }
}

impl UpArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let mut server = LocalServer::start(&ServerSpec {
            dir: self.dir.clone(),
            port: self.port,
            token: Secrets::from_environment(None)?.token,
            has_roles: self.roles,
        })?;
        print(server.url());
        if !server.syncs_always() {
            notice(
                "note: this nats-server is older than 2.10: what it stores survives its end, but perhaps not a loss of \
                 power",
            );
        }
        while !session.stop.load(Ordering::SeqCst) {
            if !server.is_running()? {
                bail!(
                    "nats-server has ended; its log is in {}",
                    self.dir.display()
                );
            }
            sleep(Duration::from_millis(100));
        }
        Ok(EXIT_CLEAN)
    }
}

/// Parses the duration of leases.
pub fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = parse_time(text)?;
    check_lease(lease).map_err(|error| error.to_string())?;
    Ok(lease)
}

/// Arguments of `everett worker`.
#[derive(clap::Args)]
pub struct WorkerArgs {
    /// The address of the broker: nats://HOST:PORT, tls://HOST:PORT or
    /// postgres://USER@HOST/DATABASE; default: EVERETT_BROKER.
    #[arg(long, value_name = "URL")]
    join: Option<String>,
    /// The file with the credentials of a user of NATS; default: EVERETT_BROKER_CREDS.
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// Name of the worker in the status of runs; default: host name and process id.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// Number of workers; default: one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    workers: Option<u64>,
    /// Spill states when the process needs more memory than this, e.g.
    /// 4G; default: the limit of the run.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    max_memory: Option<u64>,
    /// Hand out a job again when its worker has sent no heartbeat for this time.
    #[arg(long, value_name = "TIME", value_parser = parse_lease, default_value = "30s")]
    lease: Duration,
    /// Exit after waiting this long for a job; default: never.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle: Option<Duration>,
    /// Accept only runs that are signed by one of the public keys in this file, one a line; default:
    /// EVERETT_ACCEPT_FILE, or accept all runs.
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,
    /// Serve counters for Prometheus at http://ADDR:PORT/metrics; port 0 selects a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Print nothing but errors.
    #[arg(long, short)]
    quiet: bool,
}

impl Subcommand for WorkerArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let spec = PoolSpec {
            url: broker_url(self.join.as_deref())?,
            secrets: Secrets::from_environment(self.nats_creds.as_deref())?,
            build: Build::of_this_program(env!("CARGO_PKG_VERSION"))?,
            name: self.name.clone().unwrap_or_else(worker_name),
            count: self.workers.unwrap_or(session.workers).max(1),
            max_memory: self.max_memory,
            lease: self.lease,
            idle: self.idle,
            accept: Submitters::from_environment(self.accept.as_deref())?,
        };
        let metrics = Arc::new(Metrics::default());
        let start = |at| MetricsServer::start(at, metrics.clone());
        let server = self.metrics.map(start).transpose()?;
        if let Some(server) = &server {
            notice(&format!("metrics: http://{}/metrics", server.address()));
        }
        run_workers(&spec, &session, &metrics, &|name, did| self.tell(name, did))?;
        Ok(EXIT_CLEAN)
    }
}

impl WorkerArgs {
    fn tell(&self, name: &str, did: Option<&WorkerStep>) {
        match did {
            None if !self.quiet => notice(&format!("worker {name} waits for jobs")),
            Some(WorkerStep::Explored(outcome)) => match &outcome.failure {
                Some(failure) => notice(&format!(
                    "worker {name}: a job could not be explored: {failure}"
                )),
                None if !self.quiet => {
                    let (paths, left) = (outcome.work.paths, outcome.given().len());
                    notice(&format!(
                        "worker {name}: {} ended, {} left{}",
                        counted(paths, "path"),
                        counted(left, "job"),
                        if outcome.kept { ", goes on" } else { "" }
                    ));
                }
                None => {}
            },
            Some(WorkerStep::Balanced(round)) if !self.quiet => {
                for transfer in &round.transfers {
                    let states = counted(transfer.states, "state");
                    let (from, to) = (&transfer.from, &transfer.to);
                    notice(&format!(
                        "worker {name}: asks {from} for {states} for {to} (mean {:.1}, deviation {:.1})",
                        round.mean, round.deviation
                    ));
                }
            }
            Some(WorkerStep::NoMemory(run)) => notice(&format!(
                "worker {name}: too little memory for a job of run {run} (see --max-memory): it is left to other workers"
            )),
            Some(WorkerStep::Paused(run)) => notice(&format!(
                "worker {name}: run {run} is paused: no worker has enough memory for a job of it (see --max-memory)"
            )),
            Some(WorkerStep::SetAside(run, why)) => notice(&format!(
                "worker {name}: the records of run {run} cannot be read, so it goes on with others: {why}"
            )),
            Some(WorkerStep::Refused(run, why)) => {
                notice(&format!("worker {name}: does not accept run {run}: {why}"));
            }
            _ => {}
        }
    }
}
