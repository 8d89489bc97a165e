//! Everett as a library: explores programs and worlds of several hosts, and
//! works with the resulting traces.
//!
//! An operation takes a typed spec ([`RunSpec`] and others), mostly a [`Session`] (clock, memory,
//! stop flag) and an [`Observer`] that receives [`Event`]s during the operation; it returns a typed
//! result or an [`Error`]. Files go to the folder of the run.
//!
//! Architecture invariant: the library prints nothing, installs no signal handler and keeps no
//! process-wide state of a run, so that one process can execute several runs concurrently.
//! Presentation is up to the caller.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod acceptance;
mod against;
mod bootstrap;
mod budget;
mod call_sites;
mod capture;
mod check;
mod checked;
mod checkpoint;
mod compare;
mod conclusion;
mod config;
mod coverage;
mod difference;
mod disk;
mod error;
mod events;
mod exec;
mod explore;
mod export;
mod finding;
mod follow;
mod gathered;
mod handover;
mod host;
mod input;
mod inspect;
mod job;
mod judge;
mod klee;
mod klee_options;
mod layers;
mod load;
mod native;
mod native_world;
mod options;
mod parcel;
mod parcel_file;
mod peers;
mod planned;
mod plans;
mod points;
mod record;
mod regress;
mod repeat;
mod replaced;
mod replay;
mod resolve;
mod scenario;
mod seeds;
mod session;
mod shrink;
mod spec;
mod summarise;
mod summary;
mod tally;
mod text;
mod trace;
mod trojans;
mod verdict;
mod watched;
mod world;

pub use against::explore;
pub use budget::{Budget, Work};
pub use call_sites::{has_arguments, joined_arguments};
pub use compare::describe as describe_end;
pub use conclusion::{Conclusion, Guest};
pub use coverage::{CoverageSpec, coverage};
pub use disk::{DiskContents, DiskEntry};
pub use error::{Error, Result, error_text};
pub use events::{Event, Observer, Progress, Silent, WorldProgress};
pub use exec::{Console, ExecEnding, ExecResult, ExecSpec, OutputStream, exec};
pub use explore::{RunResult, prepare, resume};
pub use export::{ExportSpec, Script, export};
pub use finding::FindingEntry;
pub use follow::{FollowResult, follow, strace};
pub use gathered::{Gathered, conclude, new_folder, remove_new_folder};
pub use host::{HostSpec, parse_fault, parse_preempt, parse_scheduler};
pub use inspect::{StopPoint, Viewer};
pub use job::{
    Job, JobDecision, JobFinding, JobProgress, JobResult, JobTest, Prepared, States, Supervisor,
    root_state, weight_of,
};
pub use klee::{
    KleeFindings, KleeNotes, klee_done, klee_is_error, klee_replaying, klee_tests, klee_warning,
};
pub use klee_options::{KleeCommand, klee_command};
pub use layers::Mount;
pub use load::{GuestProgram, OtherBuild};
pub use native::{Ended, NativeResult, NativeSpec, NativeSummary, native};
pub use options::{OPTIONS, RunOption, ScenarioKey, Scope, Takes, option, options_list};
pub use parcel::Parcel;
pub use parcel_file::{ParcelContents, ParcelFile};
pub use planned::{
    Caller, ExploreLimits, InjectedFault, KeptResults, PlannedFault, PlannedHost, PlannedKind,
    PlannedLimits, PlannedRun, PlannedSite, PlannedWorld, Possible, USUAL,
};
pub use plans::HostPlans;
pub use regress::{ConfirmSpec, TestResult, TestSpec, confirm, test};
pub use repeat::Repeats;
pub use replay::{NativeReplay, ReplayResult, ReplaySpec, replay};
pub use scenario::load_scenario;
pub use seeds::SeedFile;
pub use session::{Notices, ProcessMemory, Session};
pub use shrink::{ShrinkResult, ShrinkSpec, ShrunkTo, TraceSize, shrink};
pub use spec::{
    BuildSpec, ResumeSpec, RunSpec, ScenarioSpec, Sender, VERSION, is_scenario, parse_setting,
    parse_time, parse_variable,
};
pub use summary::{
    ClusterFigures, Comparison, CoverageTotals, DifferenceEntry, Paths, PeerFigures,
    ProgramFigures, ResumeFrom, Summary, TeamFigures, Weights, WorldFigures,
};
pub use tally::NativeUnsupported;
pub use text::{
    comparison_text, coverage_text, event_text, json_line, never_fired_text, numbered, prefixed,
    progress_text, summary_text,
};
pub use trace::{Ending, HOST, HostEnd, WorldTrace, Wrong};
pub use trojans::{
    AFTERWARDS, ClientFigures, Contains, Contradiction, KeptFigures, LengthFigures, NATIVE_RUNS,
    NativeRuns, Nearest, REFUTE, TrojanEntry, TrojanField, TrojanFinding, TrojanGroup,
    TrojanPhases, TrojansResult, TrojansSpec, TrojansSummary, contains, trojans,
};
pub use verdict::Verdict;

// The types of fields of the items above, so that a caller can name them.
pub use everett_engine::{
    Difference, ExplorerConfig, ExplorerError, Finding, FindingKey, HostStatus, MemoryAccount,
    NativePoint, Part, PathEnd, PathEnding, Pending, SavedError, ShownValue, SolverFigures,
    SolverLine, SourceFrame, Statistics, Trace, TraceAnswer, TraceChoice, TraceEnd, TraceInput,
    UnknownMapping, UnknownSearcher, Unsupported, Weight, WeightSum, WorldCounts, WorldFinding,
    WorldStatistics, Worlds, principal, share_of,
};
pub use everett_ir::debug::PathError;
pub use everett_ir::lower::LowerError;
pub use everett_ir::{FileError, ReadError};
pub use everett_linux::{
    Bytes, ChangedFile, ExposedData, FileChange, Packet, PacketKind, PreemptionPoint, Refusal,
    Stream, TaskName,
};
pub use everett_native::{
    DetachedProcess, Event as NativeEvent, EventKind as NativeEventKind, NativeEnd, NativeError,
    NativeFrame, NativeLimit, NativeRun, NativeStack, NoWatcher, SentPacket, StoppedRun, Survey,
    Watcher, WorldRun,
};
pub use everett_net::{FaultIndex, Faults, HostIndex, Topology};
pub use everett_report::{LineCoverage, Outcome, WriteError, counted};
pub use everett_scenario::bytes as parse_memory;
pub use everett_scenario::{
    Check, HostSetup, OptionKey, OptionKind, OptionSetting, OptionValue, Problem, Problems,
    Scenario, Trojans,
};
pub use everett_sim::{History, Message, Observation, ObservationLog, SharedList};
pub use everett_solver::{Clock, SolverError};
pub use everett_toolchain::ToolchainError;
pub use everett_trojans::{Negation, SearchOptions};
pub use everett_vm::{BugKind, CallSite, ChoiceSite, FaultNames, Image, ImageError, Note};

/// The engine, for analyses that drive an explorer of their own; see [`prepare`].
pub use everett_engine as engine;
