//! Counters of the workers of a process, served to Prometheus over HTTP.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use everett::Work;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::error::{Error, Result};
use crate::worker::WorkerStep;

/// The time for which the server waits for a request before it checks whether to end.
const WAIT: Duration = Duration::from_millis(200);
/// The content type of Prometheus' exposition format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counters of the workers of a process.
#[derive(Debug, Default)]
pub struct Metrics {
    workers: AtomicU64,
    sums: Mutex<Sums>,
}

#[derive(Copy, Clone, Debug, Default)]
struct Sums {
    explored: u64,
    dropped: u64,
    failed: u64,
    /// Number of times that a worker asked for a job and there was none.
    idle: u64,
    left: u64,
    /// Number of rounds of the balancer, and of transfers that it decided on.
    rounds: u64,
    transfers: u64,
    work: Work,
    replayed: u64,
    findings: u64,
    bytes: u64,
}

impl Metrics {
    /// Counts a worker that has joined.
    pub(crate) fn count_worker(&self) {
        self.workers.fetch_add(1, Relaxed);
    }

    /// Removes a worker that has left from the count.
    pub(crate) fn discount_worker(&self) {
        self.workers.fetch_sub(1, Relaxed);
    }

    /// Counts the step of a worker.
    pub(crate) fn count(&self, did: &WorkerStep) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        match did {
            WorkerStep::Nothing => sums.idle += 1,
            WorkerStep::Dropped | WorkerStep::NoMemory(_) | WorkerStep::Paused(_) => {
                sums.dropped += 1
            }
            WorkerStep::SetAside(..) | WorkerStep::Refused(..) => {}
            WorkerStep::Balanced(round) => {
                sums.rounds += 1;
                sums.transfers += round.transfers.len() as u64;
            }
            WorkerStep::Explored(outcome) => {
                sums.explored += 1;
                sums.failed += u64::from(outcome.failure.is_some());
                sums.left += outcome.given().len() as u64;
                sums.work.add(&outcome.work);
                sums.replayed = sums.replayed.saturating_add(outcome.replayed);
                sums.findings = sums.findings.saturating_add(outcome.findings);
                sums.bytes = sums.bytes.saturating_add(outcome.bytes);
            }
        }
    }

    /// Returns the counters in Prometheus' exposition format.
    pub fn to_text(&self) -> String {
        let sums = *self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = [
            ("jobs_explored", "Jobs that were explored", sums.explored),
            (
                "jobs_dropped",
                "Jobs that had their outcome already, whose run was cancelled, or for which there was no memory",
                sums.dropped,
            ),
            (
                "jobs_failed",
                "Jobs that could not be explored",
                sums.failed,
            ),
            (
                "jobs_left",
                "Jobs that explored ones left for others",
                sums.left,
            ),
            ("idle", "Times that there was no job to take", sums.idle),
            (
                "balance_rounds",
                "Rounds in which a worker of this process was the balancer",
                sums.rounds,
            ),
            (
                "balance_transfers",
                "Transfers of states on which it decided",
                sums.transfers,
            ),
            ("paths", "Paths or worlds that ended", sums.work.paths),
            ("forks", "Forks", sums.work.forks),
            (
                "instructions",
                "Instructions, without those that rematerialised states",
                sums.work.instructions,
            ),
            (
                "replayed_instructions",
                "Instructions that rematerialised states",
                sums.replayed,
            ),
            (
                "findings",
                "Findings, with those that several jobs met counted by each",
                sums.findings,
            ),
            (
                "bytes_sent",
                "Bytes of jobs and results that were sent",
                sums.bytes,
            ),
        ];
        let workers = self.workers.load(Relaxed);
        let mut text = String::from("# HELP everett_workers Workers of this process.\n");
        let _ = writeln!(
            text,
            "# TYPE everett_workers gauge\neverett_workers {workers}"
        );
        for (name, help, value) in counters {
            let name = format!("everett_{name}_total");
            let _ = writeln!(
                text,
                "# HELP {name} {help}.\n# TYPE {name} counter\n{name} {value}"
            );
        }
        text
    }
}

/// A server of the counters at `http://ADDRESS/metrics`. It ends when it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts to serve at an address; port 0 selects a free one.
    pub fn start(address: SocketAddr, metrics: Arc<Metrics>) -> Result<MetricsServer> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::Usage(format!("metrics cannot be served at {address}: {error}"))
        };
        let server = Server::http(address).map_err(|error| failed(&error))?;
        let address = server.server_addr().to_ip();
        let address = address.ok_or_else(|| failed(&"it has no address"))?;
        let ends = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let ends = ends.clone();
            move || {
                while !ends.load(Relaxed) {
                    match server.recv_timeout(WAIT) {
                        Ok(Some(request)) => answer(request, &metrics),
                        Ok(None) => {}
                        // A failure of the metrics must not end a worker.
                        Err(_) => return,
                    }
                }
            }
        });
        Ok(MetricsServer {
            address,
            ends,
            thread: Some(thread),
        })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers a request. Errors are ignored: a client that has gone does not concern the workers.
fn answer(request: Request, metrics: &Metrics) {
    let path = request.url().split('?').next().unwrap_or_default();
    let _ = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => {
            let response = Response::from_string(metrics.to_text());
            match Header::from_bytes("Content-Type", TYPE) {
                Ok(header) => request.respond(response.with_header(header)),
                Err(()) => request.respond(response),
            }
        }
        (Method::Get | Method::Head, _) => {
            let response = Response::from_string("there is /metrics\n");
            request.respond(response.with_status_code(404))
        }
        _ => request.respond(Response::empty(405)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Outcome;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn counters_are_served() {
        let metrics = Arc::new(Metrics::default());
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = MetricsServer::start(local, metrics.clone()).unwrap();
        metrics.count_worker();
        let outcome = Outcome {
            findings: 2,
            ..Outcome::default()
        };
        metrics.count(&WorkerStep::Explored(Box::new(outcome)));
        metrics.count(&WorkerStep::Nothing);
        let text = get(server.address(), "/metrics");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.contains(TYPE), "{text}");
        for line in [
            "everett_workers 1",
            "everett_findings_total 2",
            "everett_jobs_explored_total 1",
            "everett_idle_total 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(get(server.address(), "/").starts_with("HTTP/1.1 404"));
        // The port is taken.
        assert!(MetricsServer::start(server.address(), metrics).is_err());
    }
}
