//! The settings of a search: plain data with defaults. Must not know how settings are read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::unchecked::Unchecked;

/// A command of the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Command {
    /// A text for the shell.
    Shell(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

/// Weights of the observations that make up the impact, and how to observe them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Impact {
    /// The test ends with another exit code than without faults.
    pub exit: f64,
    /// A signal ends a process.
    pub signal: f64,
    /// The test does not end.
    pub hang: f64,
    /// Each line that no earlier run has covered.
    pub coverage: f64,
    /// The standard output differs from the run without faults.
    pub output: f64,
    /// Files differ from the run without faults.
    pub files: f64,
    /// The relative increase of a latency that the test prints, or decrease of a throughput: 1 for
    /// a factor of two.
    pub latency: f64,
    /// The output matches `log_pattern`.
    pub log: f64,
    /// An invariant or expectation of a world does not hold.
    #[serde(default)]
    pub invariant: f64,
    /// The impact from which a run counts as a failure, however it ends.
    pub failure: Option<f64>,
    /// The pattern for lines of standard output and error output.
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
    /// After this number of scenarios.
    pub runs: Option<u64>,
    /// After this number of failures.
    pub failures: Option<u64>,
    /// After this number of crashes.
    pub crashes: Option<u64>,
    /// After this number of hangs.
    #[serde(default)]
    pub hangs: Option<u64>,
    /// After this number of clusters of failures.
    pub clusters: Option<u64>,
    /// After a failure of this impact.
    pub impact: Option<f64>,
    /// After this time.
    pub time: Option<Duration>,
}

/// Settings of the guided searches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Guided {
    /// The number of random scenarios at the beginning.
    pub initial: u64,
    /// Maximum length of the queue of tests that have offspring.
    pub queue: usize,
    /// The number of last mutations of an axis that determine its sensitivity.
    pub history: usize,
    /// The minimum share of mutations of an axis; 0 is Algorithm 1 as printed.
    pub least_share: f64,
    /// The standard deviation of mutations, as a share of the number of values.
    pub sigma: f64,
    /// The factor by which a test's fitness shrinks with each result.
    pub ageing: f64,
    /// Tests whose fitness has fallen to this share retire.
    pub retire: f64,
    /// Whether a stack similar to an earlier one lowers the fitness.
    pub feedback: bool,
    /// Stacks whose edit distance is at most this share of their length belong to one cluster.
    pub cluster: f64,
    /// Calls that the adaptive search fails first.
    #[serde(default)]
    pub unchecked: Unchecked,
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
            unchecked: Unchecked::default(),
        }
    }
}

/// The limits of a run of the system under test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The time limit of the test.
    pub timeout: Duration,
    /// The time limit of each other command.
    pub setup_timeout: Duration,
    /// The number of bytes of output that are kept, for each stream.
    pub output: u64,
    /// Maximum number of bytes in files.
    pub disk: u64,
    /// Maximum number of simultaneous processes and threads.
    pub processes: u64,
    /// Maximum number of bytes of memory of all processes together.
    #[serde(default = "default_memory")]
    pub memory: u64,
    /// Number of bytes of core files of the search beyond which only the first crash of each cluster
    /// has one.
    #[serde(default = "default_cores")]
    pub cores: u64,
}

fn default_memory() -> u64 {
    2 << 30
}

fn default_cores() -> u64 {
    1 << 30
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
            cores: default_cores(),
        }
    }
}

/// The symbolic exploration of the worst scenarios, after the search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Explore {
    /// The number of scenarios to explore.
    pub scenarios: usize,
    /// Maximum number of ended paths of each exploration.
    pub paths: u64,
    /// Maximum number of forks of each exploration.
    pub forks: u64,
    /// Maximum number of instructions of each path.
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
    /// The address to which the client connects.
    pub listen: SocketAddr,
    /// The address of the server.
    pub to: SocketAddr,
    /// Whether it forwards datagrams instead of streams.
    pub is_udp: bool,
}

/// All settings of a search.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SearchConfig {
    /// The description of the space.
    pub space: String,
    /// The file with the description; empty if it is in the search file.
    pub space_file: String,
    /// The name of the injector.
    pub injector: String,
    /// The scenario of a world, for injector `model`.
    #[serde(default)]
    pub scenario: PathBuf,
    /// The proxy of injector `corrupt`.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// Whether tests use the machine's network instead of a separate one.
    #[serde(default)]
    pub shares_network: bool,
    /// The programs to inject into; all except shells if empty.
    pub programs: Vec<String>,
    /// The command before each test.
    pub start: Option<Command>,
    /// The test command.
    pub test: Option<Command>,
    /// The command after each test.
    pub cleanup: Option<Command>,
    /// Additional environment variables of the commands.
    pub env: Vec<(String, String)>,
    /// The folder of the search file.
    pub folder: PathBuf,
    /// Folders in which writes of the commands persist.
    pub writable: Vec<PathBuf>,
    /// The name of the search algorithm.
    pub search: String,
    /// The seed.
    pub seed: u64,
    /// The number of scenarios in flight, whatever the number of jobs.
    pub window: usize,
    /// How often failures are run in total, to measure their precision.
    pub repetitions: u32,
    /// The weights of the impact.
    pub impact: Impact,
    /// When it stops.
    pub stop: Stop,
    /// The settings of guided searches.
    pub guided: Guided,
    /// Limits of a run.
    pub limits: Limits,
    /// The exploration after the search.
    #[serde(default)]
    pub explore: Explore,
    /// The probabilities of faults: `NAME VALUE` of an attribute, and its probability.
    pub relevance: BTreeMap<String, f64>,
}
