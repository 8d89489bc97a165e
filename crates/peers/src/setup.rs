//! The configuration of a live peer.

use regex::bytes::Regex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Whether live peers may be asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They may be started and contacted.
    Live,
    /// Only recordings answer.
    Offline,
}

/// Where a live peer is reached, or reaches us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// At an address; port 0 for a free one.
    Internet(SocketAddr),
    /// At a Unix socket; a relative path starts at its folder.
    Unix(PathBuf),
}

/// When a live peer is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadyWhen {
    /// When its port is open.
    Port,
    /// When it has printed a line that contains this.
    Line(String),
    /// After this time.
    After(Duration),
}

/// A live peer.
#[derive(Clone, Debug)]
pub struct LiveSetup {
    /// Its name.
    pub name: String,
    /// The command that starts it; empty if it runs already.
    pub command: Vec<String>,
    /// The folder that relative paths in the command start at.
    pub folder: PathBuf,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Files and folders that are copied into its folder.
    pub files: Vec<PathBuf>,
    /// When it is ready.
    pub ready: ReadyWhen,
    /// Where it is reached, or reaches us.
    pub listen: Where,
    /// It speaks UDP, or sends datagrams over a Unix socket.
    pub is_datagram: bool,
    /// It connects to us.
    pub is_client: bool,
    /// Another connection makes it as new; otherwise it takes another process.
    pub is_fresh_by_connection: bool,
    /// How many instances there are at most.
    pub instances: usize,
    /// What hosts send counts as the same in any order.
    pub any_order: bool,
    /// Parts of what it says that may differ.
    pub varies: Vec<Regex>,
    /// Real time after which it counts as silent.
    pub patience: Duration,
    /// Bytes of its recording at most.
    pub max_bytes: u64,
}

impl LiveSetup {
    /// Real time within which something must come that has come before.
    pub(crate) fn long_patience(&self) -> Duration {
        const LEAST: Duration = Duration::from_secs(10);
        self.patience.saturating_mul(20).max(LEAST)
    }

    /// Bytes with all parts that may differ left out.
    pub(crate) fn invariable(&self, bytes: &[u8]) -> Vec<u8> {
        let mut text = bytes.to_vec();
        for pattern in &self.varies {
            text = pattern.replace_all(&text, &b"\x00*\x00"[..]).into_owned();
        }
        text
    }
}

/// A regular expression for what may differ; the error says why it is none.
pub fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}
