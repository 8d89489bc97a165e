//! The content of a scenario, with all defaults filled in: plain data.

use std::net::SocketAddr;
use std::path::PathBuf;

use everett_net::{Faults, HostIndex, StartTime, Topology};

use crate::options::OptionSetting;
use crate::source::Place;

/// A scenario: a world to explore.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of its file, without the extension.
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
    /// Which messages are compared with what clients send: `[trojans]`.
    pub trojans: Option<Trojans>,
}

/// Which messages to a server are compared with what its clients send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trojans {
    /// The server.
    pub server: HostIndex,
    /// Its clients.
    pub clients: Vec<HostIndex>,
    /// Messages are parts of a TCP stream, not datagrams.
    pub is_stream: bool,
    /// The port of the server.
    pub port: u16,
    /// Which message of a client counts, from 1; all without it.
    pub number: Option<u32>,
    /// The shortest message, in bytes.
    pub least_length: u32,
    /// The longest one.
    pub most_length: u32,
    /// The fields of a message.
    pub fields: Vec<MessageField>,
    /// The C struct that the fields are members of, where the scenario names one: they are not
    /// known before [`Trojans::set_members`].
    pub fields_of: Option<StructFields>,
    /// When the server accepts a message.
    pub accept: Accept,
    /// What clients send at any time counts, not only what they send before the server answers.
    pub ever: bool,
    /// When the message is sent; without it, when the first client starts.
    pub state_ns: Option<u64>,
    /// The message is sent when this happens, instead.
    pub state_event: Option<(StateEvent, Place)>,
    /// Functions that are not executed, in all programs.
    pub replace: Vec<ReplacedFunction>,
}

/// What has happened when the message is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateEvent {
    /// The server has received so many messages.
    Message(u32),
    /// A host has made a mark of this name.
    Mark(String),
}

/// A function that is not executed: a call returns any number of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacedFunction {
    /// Its name.
    pub name: String,
    /// The least number.
    pub low: i64,
    /// The greatest one.
    pub high: i64,
    /// Where the scenario says so.
    pub place: Place,
}

impl ReplacedFunction {
    /// What it returns, for people.
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
    /// Where the scenario names the struct.
    pub place: Place,
    /// Where it says which fields are masked.
    pub mask_place: Place,
}

/// Where a field of a message begins. In a group, bytes count from the beginning of the group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldStart {
    /// Behind the field before it, or at the beginning.
    Next,
    /// At this byte.
    At(u32),
    /// So many bytes before the end of the message.
    BeforeEnd(u32),
    /// Behind this field.
    After(String),
    /// Where this field says.
    Said(String),
}

/// How many bytes a field has, or how often it is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldCount {
    /// So many.
    Fixed(u32),
    /// All up to the end of the message.
    Rest,
    /// As many as this field says.
    Said(String),
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageField {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub start: FieldStart,
    /// Its bytes; those of a group are the bytes of its fields.
    pub size: FieldCount,
    /// How often it is there, one behind the other; `None` for a field that is there once.
    pub repeat: Option<FieldCount>,
    /// The fields of a group.
    pub fields: Vec<MessageField>,
    /// It is a number with its least significant byte first.
    pub little_endian: bool,
    /// The field whose length it says.
    pub length_of: Option<String>,
    /// It is a string, which ends at its first NUL.
    pub is_string: bool,
    /// Clients and server may differ in it.
    pub masked: bool,
}

impl MessageField {
    /// A field of a name and a size behind the one before it.
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

/// When a server accepts a message. A path that ends in a finding accepts it always.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accept {
    /// It answers.
    Reply,
    /// It answers with something that matches this pattern.
    ReplyMatches(String),
    /// It answers with something that does not match this pattern.
    ReplyOther(String),
    /// It makes one of these system calls.
    Calls(Vec<String>),
    /// It marks that in its code.
    Marks,
}

/// Interval between the starts of hosts without a start time.
const BETWEEN_STARTS_NS: u64 = 10_000_000;

impl Scenario {
    /// When each host starts.
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
    /// Its name.
    pub name: String,
    /// Its key in the scenario, the same for all hosts of one `count`.
    pub group: String,
    /// Its number among the hosts of that `count`.
    pub number: u32,
    /// Its processes, in start order.
    pub processes: Vec<Process>,
    /// Further programs that `execve` can start.
    pub programs: Vec<OtherProgram>,
    /// The content of its disk.
    pub files: Vec<FileSource>,
    /// When it starts.
    pub start: Start,
    /// The trace that leads its program to the start of the host, if the program sets up the host
    /// itself.
    pub begin: Option<PathBuf>,
    /// When it is switched off.
    pub stop_ns: Option<u64>,
    /// The offset of its clock from the world's clock.
    pub clock_skew_ns: i64,
    /// Whether its clock is undetermined, except that it is monotonic.
    pub symbolic_clock: bool,
    /// The options of the host.
    pub options: Vec<OptionSetting>,
    /// Program data that invariants observe.
    pub watches: Vec<Watch>,
    /// Variables of its first program that are symbolic when it starts.
    pub variables: Vec<SymbolicVariable>,
    /// It is a live peer, which has no programs.
    pub peer: Option<PeerSetup>,
}

/// A variable that is symbolic when its program starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicVariable {
    /// The variable, or a part of it: `count`, `state.ballot`.
    pub path: String,
    /// The least and the greatest value of a number; any bytes without it.
    pub range: Option<(i64, i64)>,
    /// Where the scenario says so.
    pub place: Place,
}

/// A live peer: something that runs outside and is not explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerSetup {
    /// The command that starts it; empty if it runs already.
    pub command: Vec<String>,
    /// Variables of its environment besides the few that it always has.
    pub env: Vec<(String, String)>,
    /// Files and folders that are copied into its folder.
    pub files: Vec<PathBuf>,
    /// When it is ready.
    pub ready: Ready,
    /// Where the real one is reached, or where it reaches us.
    pub listen: PeerListen,
    /// Its port as hosts see it; for a client, that of the host that it connects to.
    pub port: u16,
    /// The path of a Unix socket at which hosts reach it, too.
    pub path: Option<String>,
    /// It speaks UDP.
    pub is_udp: bool,
    /// The host that it connects to, if it is a client.
    pub connects: Option<HostIndex>,
    /// What makes it as new.
    pub fresh: Fresh,
    /// How many of them run at most.
    pub instances: u32,
    /// Each connection has a recording of its own.
    pub is_independent: bool,
    /// What hosts send counts as the same in any order.
    pub any_order: bool,
    /// Regular expressions for what may differ in what it says.
    pub varies: Vec<String>,
    /// Real time after which it counts as silent.
    pub patience_ns: u64,
    /// Virtual time after which it is asked what it does.
    pub think_ns: Option<u64>,
    /// How often in a row it is silent until it is not asked again before a host does something.
    pub silences: u32,
    /// What becomes of symbolic bytes that are sent to it.
    pub symbolic: PeerSymbolic,
    /// Bytes of its recording at most.
    pub max_bytes: u64,
}

/// Where a live peer is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerListen {
    /// At an address; port 0 for a free one.
    Internet(SocketAddr),
    /// At a Unix socket, relative to its folder.
    Unix(String),
}

/// When a live peer is ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ready {
    /// When its port is open.
    Port,
    /// When it has printed a line that contains this.
    Line(String),
    /// After this time.
    After(u64),
}

/// What makes a live peer as new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fresh {
    /// Another connection to the same process.
    Connection,
    /// Another process.
    Process,
}

/// What becomes of symbolic bytes that are sent to a live peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PeerSymbolic {
    /// They get one value.
    #[default]
    One,
    /// They get all values.
    All,
    /// The path ends.
    Refuse,
}

/// A process.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The program file, as built.
    pub program: PathBuf,
    /// Its arguments, without argv[0].
    pub args: Vec<Argument>,
    /// Its whole environment.
    pub env: Vec<(String, EnvValue)>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Its working directory.
    pub cwd: Option<String>,
    /// How it must end.
    pub expect: Option<Expectation>,
}

/// A program that `execve` can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherProgram {
    /// Its path on the real disk.
    pub program: PathBuf,
    /// Its path in the guest, if different.
    pub guest_path: Option<String>,
}

/// One or several command line arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A fixed text.
    Text(String),
    /// A symbolic argument.
    Symbolic {
        /// Maximal length in bytes.
        length: u32,
    },
    /// Several symbolic arguments.
    SymbolicMany {
        /// Minimal number of arguments.
        least: u32,
        /// Maximal number.
        most: u32,
        /// Maximal length of each in bytes.
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
        /// Maximal length in bytes.
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
        /// Its path on the real disk.
        from: PathBuf,
        /// Its path in the guest.
        to: String,
    },
    /// A file of the real disk (`--file`).
    File {
        /// Its path in the guest.
        to: String,
        /// Its path on the real disk.
        from: PathBuf,
    },
    /// A file with this text.
    Text {
        /// Its path in the guest.
        to: String,
        /// Its content.
        text: String,
    },
    /// A file of symbolic bytes (`--sym-file`).
    Symbolic {
        /// Its path in the guest.
        to: String,
        /// Minimal size in bytes.
        least: u32,
        /// Maximal size.
        most: u32,
    },
}

/// When a host starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Shortly after the previous host without a start time.
    #[default]
    InTurn,
    /// When all hosts before it wait or have ended.
    Blocked,
    /// When the host before it starts.
    Together,
    /// At this virtual time.
    At(u64),
}

/// How a process must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// It exits, with this code or any.
    Exit(Option<u8>),
    /// A signal kills it, this one or any.
    Signal(Option<u8>),
    /// It is still running when the world ends.
    Running,
}

/// Program data that invariants observe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Its name in invariants.
    pub key: String,
    /// The name of the state it belongs to in invariants.
    pub state: String,
    /// A global variable or a part of one, such as `server.table.count`.
    pub path: String,
}

/// An invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The file that contains it; `None` if the text is in the scenario.
    pub file: Option<PathBuf>,
    /// Its text, if that is in the scenario.
    pub text: Option<String>,
    /// Line of the scenario where that text begins, for errors in it.
    pub line: u32,
    /// When it is checked.
    pub when: Vec<CheckTime>,
}

/// When an invariant is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckTime {
    /// When the data it observes changes.
    Change,
    /// At the end of a world.
    End,
    /// It must have held at some time before the end of a world.
    Eventually,
    /// At this virtual time.
    At(u64),
}
