//! Connects to the broker that a URL names.

use std::path::PathBuf;
use std::time::Duration;

use crate::broker::Broker;
use crate::error::{Error, Result};
use crate::nats::NatsBroker;
use crate::postgres::PostgresBroker;

/// Secrets that a broker requires. They come from files or the environment, never from a command
/// line, which others can read.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The token of NATS, or the password of PostgreSQL.
    pub token: Option<String>,
    /// The credentials of a NATS user: the contents of the file that `nsc` writes.
    pub credentials: Option<String>,
    /// The seed of a user's NKey for NATS.
    pub nkey: Option<String>,
    /// The file with certificates of authorities that may have signed the broker's certificate.
    pub authorities: Option<PathBuf>,
}

/// The default duration of leases.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// What the jobs of a broker are for. Jobs of different purposes never meet, although one server has
/// all of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Explorations of programs and scenarios.
    Explorations,
    /// Tests of fault searches ([`crate::TaskClient`]).
    Tests,
}

/// The shortest lease: a worker sends three heartbeats in this time, each over a network.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// Refuses leases that are too short: every job would be handed out again at once.
pub fn check_lease(lease: Duration) -> Result<()> {
    match lease < SHORTEST_LEASE {
        true => Err(Error::Usage("a lease lasts at least 1s".to_owned())),
        false => Ok(()),
    }
}

/// Connects to the broker at an address: `nats://HOST:PORT`, `tls://HOST:PORT` or
/// `postgres://USER@HOST/DATABASE`. Sets the time that leases of all workers of the broker last
/// without a heartbeat; `None` is for clients that take no jobs.
pub fn connect(url: &str, secrets: &Secrets, lease: Option<Duration>) -> Result<Box<dyn Broker>> {
    connect_for(Purpose::Explorations, url, secrets, lease)
}

/// Connects to the broker at an address, for a purpose.
pub fn connect_for(
    purpose: Purpose,
    url: &str,
    secrets: &Secrets,
    lease: Option<Duration>,
) -> Result<Box<dyn Broker>> {
    lease.map_or(Ok(()), check_lease)?;
    match url.split_once("://") {
        Some(("nats" | "tls", _)) => {
            Ok(Box::new(NatsBroker::connect(url, secrets, lease, purpose)?))
        }
        Some(("postgres" | "postgresql", _)) => Ok(Box::new(PostgresBroker::connect(
            url, secrets, lease, purpose,
        )?)),
        _ => Err(Error::Usage(format!(
            "{url:?} is not the address of a broker: nats://HOST:PORT, tls://HOST:PORT or postgres://USER@HOST/DATABASE"
        ))),
    }
}
