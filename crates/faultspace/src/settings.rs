//! The settings of a search: plain data with defaults. Must not know how they are read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A command of the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Command {
    /// A text for the shell.
    Shell(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

/// Weights of what a run can show, and how to see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Impact {
    /// The test ends with an exit code other than without faults.
    pub exit: f64,
    /// A process is ended by a signal.
    pub signal: f64,
    /// The test does not end.
    pub hang: f64,
    /// Each line that no run before has covered.
    pub coverage: f64,
    /// The standard output differs from that without faults.
    pub output: f64,
    /// Files differ from those without faults.
    pub files: f64,
    /// By how much a latency that the test prints is higher, and a
    /// throughput lower: 1 for twice as much.
    pub latency: f64,
    /// The output matches `log_pattern`.
    pub log: f64,
    /// In a world, an invariant or an expectation does not hold.
    #[serde(default)]
    pub invariant: f64,
    /// Runs of this impact count as failures, however they end.
    pub failure: Option<f64>,
    /// A pattern for lines of output and error output.
    pub log_pattern: Option<String>,
    /// A command that prints the impact, instead of the weighted sum.
    pub script: Option<Command>,
    /// Files that do not count: names with `*`.
    pub ignore: Vec<String>,
}

impl Default for Impact {
    fn default() -> Impact {
        Impact {
            exit: 5.0,
            signal: 20.0,
            hang: 10.0,
            coverage: 0.0,
            output: 0.0,
            files: 0.0,
            latency: 0.0,
            log: 0.0,
            invariant: 20.0,
            failure: None,
            log_pattern: None,
            script: None,
            ignore: Vec::new(),
        }
    }
}

/// When the search stops.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stop {
    /// After so many scenarios.
    pub runs: Option<u64>,
    /// After so many failures.
    pub failures: Option<u64>,
    /// After so many crashes.
    pub crashes: Option<u64>,
    /// After so many hangs.
    #[serde(default)]
    pub hangs: Option<u64>,
    /// After so many clusters of failures.
    pub clusters: Option<u64>,
    /// After a failure of this impact.
    pub impact: Option<f64>,
    /// After this time.
    pub time: Option<Duration>,
}

/// Settings of the guided searches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Guided {
    /// Random scenarios at the begin.
    pub initial: u64,
    /// The most tests in the queue of those that have offspring.
    pub queue: usize,
    /// So many mutations of an axis make its sensitivity.
    pub history: usize,
    /// The least share of mutations that an axis has; 0 is Algorithm 1 as printed.
    pub least_share: f64,
    /// The deviation of mutations, as a share of the number of values.
    pub sigma: f64,
    /// By this a test's fitness is multiplied with each result.
    pub ageing: f64,
    /// Tests whose fitness has fallen to this share retire.
    pub retire: f64,
    /// Fitness is less where the stack at the injection point resembles an earlier one.
    pub feedback: bool,
    /// Stacks whose edit distance is at most this share of their length are in one cluster.
    pub cluster: f64,
}

impl Default for Guided {
    fn default() -> Guided {
        Guided {
            initial: 25,
            queue: 50,
            history: 20,
            least_share: 0.05,
            sigma: 0.2,
            ageing: 0.98,
            retire: 0.1,
            feedback: true,
            cluster: 0.2,
        }
    }
}

/// What a run of the system under test may take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Time of the test.
    pub timeout: Duration,
    /// Time of each of the other commands.
    pub setup_timeout: Duration,
    /// Bytes of output that are kept, of each stream.
    pub output: u64,
    /// Bytes of files.
    pub disk: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Bytes of memory of all processes together.
    #[serde(default = "default_memory")]
    pub memory: u64,
}

fn default_memory() -> u64 {
    2 << 30
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            timeout: Duration::from_secs(10),
            setup_timeout: Duration::from_secs(30),
            output: 1 << 20,
            disk: 256 << 20,
            processes: 512,
            memory: default_memory(),
        }
    }
}

/// Exploration of the worst scenarios with symbolic inputs, after the search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Explore {
    /// How many scenarios are explored.
    pub scenarios: usize,
    /// Ended paths of each exploration.
    pub paths: u64,
    /// Forks of each exploration.
    pub forks: u64,
    /// Instructions of each path.
    pub instructions: u64,
}

impl Default for Explore {
    fn default() -> Explore {
        Explore {
            scenarios: 0,
            paths: 1000,
            forks: 10_000,
            instructions: 50_000_000,
        }
    }
}

/// A proxy between a client and a server, for injector `corrupt`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proxy {
    /// Where the client finds it.
    pub listen: SocketAddr,
    /// Where the server is.
    pub to: SocketAddr,
    /// Datagrams instead of a stream.
    pub is_udp: bool,
}

/// What is searched, and how.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SearchConfig {
    /// The description of the space.
    pub space: String,
    /// The file that it is in; empty if it is in the file of the search.
    pub space_file: String,
    /// The name of the injector.
    pub injector: String,
    /// The scenario of a world, for injector `model`.
    #[serde(default)]
    pub scenario: PathBuf,
    /// The proxy of injector `corrupt`.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// Whether tests use the network of the machine instead of one of their own.
    #[serde(default)]
    pub shares_network: bool,
    /// Only processes that execute these programs are hit; all but shells if empty.
    pub programs: Vec<String>,
    /// Before each test.
    pub start: Option<Command>,
    /// The test.
    pub test: Option<Command>,
    /// After each test.
    pub cleanup: Option<Command>,
    /// Further environment of the commands.
    pub env: Vec<(String, String)>,
    /// The folder of the file.
    pub folder: PathBuf,
    /// Folders that the commands may write to for good.
    pub writable: Vec<PathBuf>,
    /// The name of the search.
    pub search: String,
    /// The seed.
    pub seed: u64,
    /// Scenarios in flight at a time, whatever the number of jobs.
    pub window: usize,
    /// How often failures are run in all, for their precision.
    pub repetitions: u32,
    /// Weights of what is measured.
    pub impact: Impact,
    /// When it stops.
    pub stop: Stop,
    /// Settings of guided searches.
    pub guided: Guided,
    /// Limits of a run.
    pub limits: Limits,
    /// What is explored afterwards.
    #[serde(default)]
    pub explore: Explore,
    /// How likely faults are: `NAME VALUE` of an attribute, and its probability.
    pub relevance: BTreeMap<String, f64>,
}
