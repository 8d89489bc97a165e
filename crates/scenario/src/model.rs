//! The content of a scenario, with all defaults filled in: plain data.

use std::net::SocketAddr;
use std::path::PathBuf;

use everett_net::{Faults, HostIndex, StartTime, Topology};
use serde::{Deserialize, Serialize};

use crate::options::OptionSetting;
use crate::source::ScenarioLocation;

/// A scenario: a world to explore.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of the scenario file, without the extension.
    pub name: String,
    /// The base of relative paths, except those of `begin`.
    pub folder: PathBuf,
    /// The hosts, in the order of [`Topology::hosts`].
    pub hosts: Vec<HostSetup>,
    /// The network.
    pub topology: Topology,
    /// Network and host faults.
    pub faults: Faults,
    /// The invariants.
    pub checks: Vec<Check>,
    /// The options of the run: `[limits]` and `[search]`.
    pub options: Vec<OptionSetting>,
    /// Which messages are compared with the messages of clients: `[trojans]`.
    pub trojans: Option<Trojans>,
}

/// The messages to a server that are compared with the messages of its clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trojans {
    /// The server.
    pub server: HostIndex,
    /// The clients.
    pub clients: Vec<HostIndex>,
    /// Whether messages are parts of a TCP stream, not datagrams.
    pub is_stream: bool,
    /// The port of the server.
    pub port: u16,
    /// The number of the message of a client that counts, from 1; `None` if all count.
    pub number: Option<u32>,
    /// Minimum length of a message in bytes.
    pub least_length: u32,
    /// Maximum length of a message in bytes.
    pub most_length: u32,
    /// The fields of a message.
    pub fields: Vec<MessageField>,
    /// The C struct whose members are the fields, if the scenario names one. The fields are then
    /// unknown until [`Trojans::set_members`].
    pub fields_of: Option<StructFields>,
    /// The condition under which the server accepts a message.
    pub accept: Accept,
    /// Whether all messages of clients count, not only those that they send before the server
    /// answers.
    pub ever: bool,
    /// Virtual time at which the message is sent; `None` for the start of the first client.
    pub state_ns: Option<u64>,
    /// The event at which the message is sent, instead of a time.
    pub state_event: Option<(StateEvent, ScenarioLocation)>,
    /// Functions that are replaced in all programs.
    pub replace: Vec<ReplacedFunction>,
}

impl Trojans {
    /// Returns whether the message is sent later than the first message of clients.
    pub fn has_state(&self) -> bool {
        self.state_ns.is_some() || self.state_event.is_some()
    }
}

/// The event at which the message is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateEvent {
    /// The server has received this many messages.
    Message(u32),
    /// A host has made a mark of this name.
    Mark(String),
}

/// A replaced function: the vm does not execute it, and a call returns any number of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacedFunction {
    /// The name of the function.
    pub name: String,
    /// The least number.
    pub low: i64,
    /// The greatest number.
    pub high: i64,
    /// The place in the scenario.
    pub place: ScenarioLocation,
}

impl ReplacedFunction {
    /// Describes the result for people.
    pub fn returns(&self) -> String {
        match self.low == self.high {
            true => self.low.to_string(),
            false => format!("any of {} to {}", self.low, self.high),
        }
    }
}

/// Fields that are the members of a C struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructFields {
    /// The struct: `struct NAME`, or the name of a typedef.
    pub name: String,
    /// Fields that are masked.
    pub mask: Vec<String>,
    /// The place in the scenario that names the struct.
    pub place: ScenarioLocation,
    /// The place in the scenario that names the masked fields.
    pub mask_place: ScenarioLocation,
}

/// The start of a message field. In a group, offsets count from the beginning of the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldStart {
    /// After the previous field, or at the beginning.
    Next,
    /// At this offset.
    At(u32),
    /// This many bytes before the end of the message.
    BeforeEnd(u32),
    /// After this field.
    After(String),
    /// At the offset that this field contains.
    Said(String),
}

/// The number of bytes of a field, or the number of its repetitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldCount {
    /// A fixed number.
    Fixed(u32),
    /// All up to the end of the message.
    Rest,
    /// The number that this field contains.
    Said(String),
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageField {
    /// The name.
    pub name: String,
    /// The start.
    pub start: FieldStart,
    /// The size in bytes; that of a group is the total of its fields.
    pub size: FieldCount,
    /// The number of consecutive repetitions; `None` for a field that occurs once.
    pub repeat: Option<FieldCount>,
    /// The fields of a group.
    pub fields: Vec<MessageField>,
    /// Whether the field is a little-endian number.
    pub little_endian: bool,
    /// The field whose length this field contains.
    pub length_of: Option<String>,
    /// Whether the field is a string that ends at its first NUL.
    pub is_string: bool,
    /// Whether the field is masked: clients and server may differ in it.
    pub masked: bool,
}

impl MessageField {
    /// Creates a field that starts after the previous one.
    pub fn new(name: &str, size: FieldCount) -> MessageField {
        MessageField {
            name: name.to_owned(),
            start: FieldStart::Next,
            size,
            repeat: None,
            fields: Vec::new(),
            little_endian: false,
            length_of: None,
            is_string: false,
            masked: false,
        }
    }
}

/// The condition under which a server accepts a message. A path that ends in a finding always
/// accepts it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Accept {
    /// The server answers.
    #[serde(alias = "Answer")]
    Reply,
    /// The server answers with a reply that matches this pattern.
    #[serde(alias = "Matching")]
    ReplyMatches(String),
    /// The server answers with a reply that does not match this pattern.
    #[serde(alias = "Other")]
    ReplyOther(String),
    /// The server makes one of these system calls.
    Calls(Vec<String>),
    /// The server marks acceptance in its code.
    #[serde(alias = "Mark")]
    Marks,
}

/// Interval between the starts of hosts without a start time.
const BETWEEN_STARTS_NS: u64 = 10_000_000;

impl Scenario {
    /// Returns the start time of each host.
    pub fn start_times(&self) -> Vec<StartTime> {
        let mut next_ns = 0;
        let mut last = StartTime::At(0);
        let start = |(before, setup): (usize, &HostSetup)| {
            last = match setup.start {
                Start::At(time) => StartTime::At(time),
                Start::Blocked => StartTime::Blocked(before),
                Start::Together => last,
                Start::InTurn => {
                    next_ns += BETWEEN_STARTS_NS;
                    StartTime::At(next_ns - BETWEEN_STARTS_NS)
                }
            };
            last
        };
        self.hosts.iter().enumerate().map(start).collect()
    }
}

/// The setup of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSetup {
    /// Index of the host.
    pub index: HostIndex,
    /// The name.
    pub name: String,
    /// The key in the scenario, the same for all hosts of one `count`.
    pub group: String,
    /// The number among the hosts of that `count`.
    pub number: u32,
    /// The processes, in start order.
    pub processes: Vec<Process>,
    /// Further programs that `execve` can start.
    pub programs: Vec<OtherProgram>,
    /// The content of the disk.
    pub files: Vec<FileSource>,
    /// The start.
    pub start: Start,
    /// The trace that leads the program to the start of the host, if the program itself sets up the
    /// host.
    pub begin: Option<PathBuf>,
    /// Virtual time at which the host is switched off.
    pub stop_ns: Option<u64>,
    /// The offset of the host's clock from the world's clock.
    pub clock_skew_ns: i64,
    /// Whether the host's clock is undetermined, except that it is monotonic.
    pub symbolic_clock: bool,
    /// The options of the host.
    pub options: Vec<OptionSetting>,
    /// Program data that invariants observe.
    pub watches: Vec<Watch>,
    /// Variables of the first program that are symbolic when it starts.
    pub variables: Vec<SymbolicVariable>,
    /// The live peer that this host is, if any; it then has no programs.
    pub peer: Option<PeerSetup>,
}

/// A variable that is symbolic when its program starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicVariable {
    /// The variable, or a part of it: `count`, `state.ballot`.
    pub path: String,
    /// The least and greatest values of a number; `None` for any bytes.
    pub range: Option<(i64, i64)>,
    /// The place in the scenario.
    pub place: ScenarioLocation,
}

/// A live peer: a real program outside of the model, which is not explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerSetup {
    /// The command that starts the peer; empty if it already runs.
    pub command: Vec<String>,
    /// Environment variables in addition to the few that every peer has.
    pub env: Vec<(String, String)>,
    /// Files and folders that are copied into the peer's folder.
    pub files: Vec<PathBuf>,
    /// The condition under which the peer is ready.
    pub ready: Ready,
    /// The real address at which the peer is reached, or at which it reaches Everett.
    pub listen: PeerListen,
    /// The port of the peer as hosts see it; for a client, the port of the host that it connects
    /// to.
    pub port: u16,
    /// The path of a Unix socket at which hosts also reach the peer.
    pub path: Option<String>,
    /// Whether the peer uses UDP.
    pub is_udp: bool,
    /// The host that the peer connects to, if it is a client.
    pub connects: Option<HostIndex>,
    /// The way to reset the peer to a fresh state.
    pub fresh: Fresh,
    /// Maximum number of instances that run at the same time.
    pub instances: u32,
    /// Whether each connection has its own recording.
    pub is_independent: bool,
    /// Whether messages of hosts in a different order count as the same.
    pub any_order: bool,
    /// Regular expressions for the parts of the peer's messages that may vary.
    pub varies: Vec<String>,
    /// Real time after which the peer counts as silent.
    pub patience_ns: u64,
    /// Virtual time after which the peer is asked for its next action.
    pub think_ns: Option<u64>,
    /// Number of consecutive silences after which the peer is not asked again until a host does
    /// something.
    pub silences: u32,
    /// The treatment of symbolic bytes that are sent to the peer.
    pub symbolic: PeerSymbolic,
    /// Maximum size of the peer's recording in bytes.
    pub max_bytes: u64,
}

/// The real address of a live peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerListen {
    /// An Internet address; port 0 for a free port.
    Internet(SocketAddr),
    /// A Unix socket, relative to the peer's folder.
    Unix(String),
}

/// The condition under which a live peer is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ready {
    /// Its port is open.
    Port,
    /// It has printed a line that contains this text.
    Line(String),
    /// This time has passed.
    After(u64),
}

/// The way to reset a live peer to a fresh state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fresh {
    /// A new connection to the same process.
    Connection,
    /// A new process.
    Process,
    /// A copy of a process that was stopped when it was ready.
    Snapshot,
}

/// The treatment of symbolic bytes that are sent to a live peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PeerSymbolic {
    /// The bytes are concretised to one value.
    #[default]
    One,
    /// The bytes are concretised to all values, one path each.
    All,
    /// The path ends.
    Refuse,
}

/// A process.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// The name.
    pub name: String,
    /// The program file, as built.
    pub program: PathBuf,
    /// The arguments, without `argv[0]`.
    pub args: Vec<Argument>,
    /// The whole environment.
    pub env: Vec<(String, EnvValue)>,
    /// The standard input.
    pub stdin: Stdin,
    /// The working directory.
    pub cwd: Option<String>,
    /// The required end of the process.
    pub expect: Option<Expectation>,
}

/// A program that `execve` can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherProgram {
    /// The path on the real disk.
    pub program: PathBuf,
    /// The path in the guest, if different.
    pub guest_path: Option<String>,
}

/// One or several command line arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A fixed text.
    Text(String),
    /// A symbolic argument.
    Symbolic {
        /// Maximum length in bytes.
        length: u32,
    },
    /// Several symbolic arguments.
    SymbolicMany {
        /// Minimum number of arguments.
        least: u32,
        /// Maximum number of arguments.
        most: u32,
        /// Maximum length of each argument in bytes.
        length: u32,
    },
}

/// The value of an environment variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnvValue {
    /// A fixed text.
    Text(String),
    /// A symbolic value.
    Symbolic {
        /// Maximum length in bytes.
        length: u32,
    },
}

/// The content of standard input.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Stdin {
    /// Empty.
    #[default]
    Empty,
    /// A fixed text.
    Text(String),
    /// The content of this file.
    File(PathBuf),
    /// Symbolic bytes.
    Symbolic {
        /// Number of bytes.
        size: u32,
    },
}

/// A source of files on the disk of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileSource {
    /// The content of this folder, in the working directory of the program (`--files`).
    Folder(PathBuf),
    /// A read-only file or folder of the real disk (`--ro`).
    Mount {
        /// The path on the real disk.
        from: PathBuf,
        /// The path in the guest.
        to: String,
    },
    /// A file of the real disk (`--file`).
    File {
        /// The path in the guest.
        to: String,
        /// The path on the real disk.
        from: PathBuf,
    },
    /// A file with this text.
    Text {
        /// The path in the guest.
        to: String,
        /// The content.
        text: String,
    },
    /// A file of symbolic bytes (`--sym-file`).
    Symbolic {
        /// The path in the guest.
        to: String,
        /// Minimum size in bytes.
        least: u32,
        /// Maximum size in bytes.
        most: u32,
    },
}

/// The start time of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Shortly after the previous host without a start time.
    #[default]
    InTurn,
    /// When all previous hosts are blocked or have ended.
    Blocked,
    /// When the previous host starts.
    Together,
    /// At this virtual time.
    At(u64),
}

/// The required end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// The process exits, with this code or any.
    Exit(Option<u8>),
    /// A signal kills the process, this one or any.
    Signal(Option<u8>),
    /// The process is still running when the world ends.
    Running,
}

/// Program data that invariants observe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The name in invariants.
    pub key: String,
    /// The name of the state that contains it in invariants.
    pub state: String,
    /// A global variable or a part of one, such as `server.table.count`.
    pub path: String,
}

/// An invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The name.
    pub name: String,
    /// The file that contains it; `None` if the text is in the scenario.
    pub file: Option<PathBuf>,
    /// The text, if it is in the scenario.
    pub text: Option<String>,
    /// Line of the scenario at which the text begins, for error messages.
    pub line: u32,
    /// The times at which the invariant is checked.
    pub when: Vec<CheckTime>,
}

/// The time at which an invariant is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckTime {
    /// When the data that it observes changes.
    Change,
    /// At the end of a world.
    End,
    /// At the end of a world: the invariant must have held at some time before.
    Eventually,
    /// At this virtual time.
    At(u64),
}
