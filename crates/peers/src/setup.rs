//! The configuration of a live peer.

use regex::bytes::Regex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Whether live peers may be contacted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Live peers may be started and contacted.
    Live,
    /// Only recordings answer.
    Offline,
}

/// The address of a live peer, or the address to which it connects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// An internet address; port 0 selects a free one.
    Internet(SocketAddr),
    /// A Unix socket; a relative path is relative to its folder.
    Unix(PathBuf),
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Where::Internet(address) => address.fmt(f),
            Where::Unix(path) => path.display().fmt(f),
        }
    }
}

/// The condition under which a live peer is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadyWhen {
    /// Its port is open.
    Port,
    /// It has printed a line that contains this text.
    Line(String),
    /// This time has passed.
    After(Duration),
}

/// What a fresh instance of a peer is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fresh {
    /// Another connection to the same process.
    Connection,
    /// Another process.
    Process,
    /// A copy of a process that was stopped when it was ready.
    Snapshot,
}

/// The configuration of a live peer.
#[derive(Clone, Debug)]
pub struct LiveSetup {
    /// The name of the peer.
    pub name: String,
    /// The command that starts the peer; empty if it runs already.
    pub command: Vec<String>,
    /// The folder to which paths in the command are relative.
    pub folder: PathBuf,
    /// Environment variables of the peer.
    pub env: Vec<(String, String)>,
    /// Files and folders that are copied into the peer's folder.
    pub files: Vec<PathBuf>,
    /// The condition under which the peer is ready.
    pub ready: ReadyWhen,
    /// The address of the peer, or the address to which it connects.
    pub listen: Where,
    /// Whether the peer uses UDP, or sends datagrams over a Unix socket.
    pub is_datagram: bool,
    /// Whether the peer connects to us.
    pub is_client: bool,
    /// What a fresh instance is.
    pub fresh: Fresh,
    /// Maximum number of instances.
    pub instances: usize,
    /// Whether the order in which hosts send does not matter.
    pub any_order: bool,
    /// Parts of the peer's answers that may differ.
    pub varies: Vec<Regex>,
    /// Real time after which the peer counts as silent.
    pub patience: Duration,
    /// Maximum size of the recording in bytes.
    pub max_bytes: u64,
}

impl LiveSetup {
    /// Returns the real time within which a recorded answer must arrive again.
    pub(crate) fn long_patience(&self) -> Duration {
        const LEAST: Duration = Duration::from_secs(10);
        self.patience.saturating_mul(20).max(LEAST)
    }
}

/// Compiles the regular expression for parts that may differ.
pub fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}
