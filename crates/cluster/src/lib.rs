//! One search on several machines. A job is a set of pending traces of a program, or of dstates of
//! a scenario (sets of states of its hosts that form worlds). Workers take jobs from a broker,
//! explore each for a while, and return the outcome and the remaining states, as further jobs.
//!
//! The tree of outcomes is authoritative: each job has at most one outcome, the first that was
//! recorded, and the outcome names the jobs that it left. The queue only hands jobs out. So a job
//! may be handed out twice, a worker may die at any time, and a message may be late or duplicated:
//! nothing is lost and nothing counts twice ([`status`] checks this by weights).
//!
//! Architecture invariant: brokers are behind [`Broker`]; nothing else knows one. Data from a
//! broker is not trusted: bytes are checked against their hashes, and jobs name no paths of a
//! worker. The crate prints nothing.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod balance;
mod broker;
mod connect;
mod environment;
mod error;
mod figures;
mod grant;
mod handover;
mod hash;
mod link;
mod mark;
mod memory;
mod metrics;
mod nats;
mod outcome;
mod pause;
mod pool;
mod postgres;
mod refusal;
mod removal;
mod reseed;
mod results;
mod roles;
mod run;
mod server;
mod sharing;
mod sign;
mod states;
mod station;
mod status;
mod tasks;
mod tls;
mod tree;
mod worker;

pub use balance::{DELTA, Pair, pairs, spread};
pub use broker::{Broker, Child, Explored, JobId, Key, Kind, Lease, Outcome, RunId, Ticket};
pub use connect::{Purpose, Secrets, check_lease, connect, connect_for};
pub use environment::{broker_url, worker_name};
pub use error::{Error, Result};
pub use grant::grant;
pub use hash::Hash;
pub use memory::{MemoryBroker, SharedMemory};
pub use metrics::{Metrics, MetricsServer};
pub use nats::NatsBroker;
pub use outcome::{Weigh, hand_out, outcome_of, outcome_of_split, settle_again};
pub use pause::{pause, unpause};
pub use pool::{PoolSpec, WorkerObserver, run_workers};
pub use postgres::PostgresBroker;
pub use refusal::Refusal;
pub use removal::{Removed, remove};
pub use reseed::reseed;
pub use results::{FILE, Submitted, paths, results, run_named};
pub use roles::{Role, roles_of};
pub use run::{Build, Manifest, PROTOCOL, Submission, WORK, cancel, submit};
pub use server::{LocalServer, ServerSpec};
pub use sharing::{CheckCounter, work_of_checks};
pub use sign::{SigningKey, Submitters};
pub use states::{pack_states, unpack_states};
pub use station::{Balancing, Round, Station, Transfer, WorkerStatus, share_coverage};
pub use status::{Status, WorkerFigures, status};
pub use tasks::{Answered, Served, TaskClient, TaskSpec, serve_tasks};
pub use tree::{pack, unpack};
pub use worker::{Taken, TakenJob, Worker, WorkerSpec, WorkerStep};
