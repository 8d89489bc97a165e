//! `everett cluster` and `everett worker`: the broker and the workers of a search on several machines.

use anyhow::{Context, Result, bail};
use everett::parse_time;
use everett_cluster::{
    Build, Did, Hash, LocalServer, Metrics, MetricsServer, PoolSpec, Secrets, ServerSpec,
    run_workers,
};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;
use crate::session::{notice, stoppable_session};

/// The address of the broker, where no option says it.
const BROKER: &str = "EVERETT_BROKER";
/// Its token, or the file that holds it.
const TOKEN: &str = "EVERETT_BROKER_TOKEN";
const TOKEN_FILE: &str = "EVERETT_BROKER_TOKEN_FILE";
/// The files with the credentials of a user of NATS, and with the seed of an NKey.
const CREDENTIALS: &str = "EVERETT_BROKER_CREDS";
const NKEY_FILE: &str = "EVERETT_BROKER_NKEY_FILE";
/// Certificates of authorities.
const AUTHORITIES: &str = "EVERETT_BROKER_CA";

/// The text of a file with a secret.
fn secret_in(path: OsString) -> Result<String> {
    let text = std::fs::read_to_string(&path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

/// What the environment says about the broker's secrets, and the file with credentials that an option names.
pub fn secrets(credentials: Option<&Path>) -> Result<Secrets> {
    let token = match std::env::var_os(TOKEN_FILE) {
        Some(path) => Some(secret_in(path)?),
        None => std::env::var(TOKEN).ok(),
    };
    let credentials = credentials.map(|path| path.as_os_str().to_owned());
    let credentials = credentials.or_else(|| std::env::var_os(CREDENTIALS));
    Ok(Secrets {
        token,
        credentials: credentials.map(secret_in).transpose()?,
        nkey: std::env::var_os(NKEY_FILE).map(secret_in).transpose()?,
        authorities: std::env::var_os(AUTHORITIES).map(PathBuf::from),
    })
}

/// The address of the broker: that of an option, or that of the environment.
pub fn broker_url(option: Option<&str>) -> Result<String> {
    let Some(url) = option else {
        return std::env::var(BROKER)
            .with_context(|| format!("no broker: give its address, or set {BROKER}"));
    };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let is_nats = !url.starts_with("postgres");
    if user.is_some_and(|user| user.contains(':') || is_nats) {
        bail!(
            "others can read command lines: put the token or password into {TOKEN} or a file, {TOKEN_FILE}"
        );
    }
    Ok(url.to_owned())
}

/// This build, by its version and its bytes.
pub fn build() -> Result<Build> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let bytes = std::fs::read(&program);
    let bytes = bytes.with_context(|| format!("cannot read {}", program.display()))?;
    Ok(Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: Hash::of(&bytes).to_string()[..16].to_owned(),
    })
}

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
}

#[derive(clap::Args)]
struct UpArgs {
    /// Folder for what the server stores.
    #[arg(long, value_name = "DIR", default_value = "everett-cluster")]
    dir: PathBuf,
    /// The port, on 127.0.0.1; default: any free one.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

impl Subcommand for ClusterArgs {
    fn run(&self) -> Result<u8> {
        let ClusterCommand::Up(args) = &self.command;
        let session = stoppable_session()?;
        let mut server = LocalServer::start(&ServerSpec {
            dir: args.dir.clone(),
            port: args.port,
            token: secrets(None)?.token,
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
                    args.dir.display()
                );
            }
            sleep(Duration::from_millis(100));
        }
        Ok(EXIT_CLEAN)
    }
}

/// Arguments of `everett worker`.
#[derive(clap::Args)]
pub struct WorkerArgs {
    /// The address of the broker: nats://HOST:PORT, tls://HOST:PORT or postgres://USER@HOST/DATABASE; default:
    /// EVERETT_BROKER.
    #[arg(long, value_name = "URL")]
    join: Option<String>,
    /// The file with the credentials of a user of NATS; default: EVERETT_BROKER_CREDS.
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// Name of the worker in the status of runs; default: host name and process id.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Number of workers; default: one per processor.
    #[arg(long, value_name = "N")]
    workers: Option<u64>,
    /// Spill states when the process needs more memory than this, e.g. 4G; default: the limit of the run.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    max_memory: Option<u64>,
    /// Hand out a job again when its worker has sent no heartbeat for this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    lease: Duration,
    /// Exit after waiting this long for a job; default: never.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle: Option<Duration>,
    /// Serve counters for Prometheus at http://ADDR:PORT/metrics; port 0 selects a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Print nothing but errors.
    #[arg(long, short)]
    quiet: bool,
}

/// Parses a size as `everett run` does.
fn parse_memory(text: &str) -> Result<u64, String> {
    let option = everett::option("max-memory").ok_or("there is no such limit")?;
    let mut spec = everett::RunSpec::default();
    (option.set)(&mut spec, text.as_ref())?;
    spec.max_memory
        .ok_or_else(|| "this is not a limit".to_owned())
}

impl Subcommand for WorkerArgs {
    fn run(&self) -> Result<u8> {
        let session = stoppable_session()?;
        let spec = PoolSpec {
            url: broker_url(self.join.as_deref())?,
            secrets: secrets(self.nats_creds.as_deref())?,
            build: build()?,
            name: self.name.clone().unwrap_or_else(machine_name),
            count: self.workers.unwrap_or(session.workers).max(1),
            max_memory: self.max_memory,
            lease: self.lease,
            idle: self.idle,
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
    fn tell(&self, name: &str, did: Option<&Did>) {
        match did {
            None if !self.quiet => notice(&format!("worker {name} waits for jobs")),
            Some(Did::Explored(outcome)) => match &outcome.failure {
                Some(failure) => notice(&format!(
                    "worker {name}: a job could not be explored: {failure}"
                )),
                None if !self.quiet => {
                    let (paths, left) = (outcome.work.paths, outcome.children.len());
                    notice(&format!(
                        "worker {name}: {paths} paths ended, {left} jobs left"
                    ));
                }
                None => {}
            },
            _ => {}
        }
    }
}

fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() {
        "worker"
    } else {
        name.trim()
    };
    format!("{name}-{}", std::process::id())
}
