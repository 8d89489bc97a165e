//! `trojans` and `contains`: the search for messages that a server accepts and no client sends.
//! Owns the phases of the analysis, from a scenario with `[trojans]` to its summary. The crate
//! `trojans` decides what is a Trojan message.

mod afterwards;
mod classes;
mod clients;
mod confirm;
mod environment;
mod native_clients;
mod refute;
mod state_time;
mod stored;
pub(crate) mod summary;
mod text;

use everett_engine::{Explorer, ExplorerConfig, Start, Stopped};
use everett_linux::{Argument, HostOptions};
use everett_native::struct_members;
use everett_net::{HostIndex, StartTime};
use everett_scenario::{Accept, FieldCount, FieldStart, MessageField, Scenario, Trojans};
use everett_solver::SolverConfig;
use everett_trojans::{
    AcceptRule, Accepted, Clients, Count, Encoded, Field, Layout, OnFound, Pattern, Search,
    SearchError, SearchOptions, Server, ServerOptions, Start as FieldsStart, StoredPath,
};
use everett_vm::Image;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::conclusion::Conclusion;
use crate::error::{Error, Result, bail};
use crate::events::{Event, Observer};
use crate::explore::prepare;
use crate::replaced;
use crate::scenario::load_scenario;
use crate::session::Session;
use crate::spec::{AcceptedBy, RunSpec, Sender};

use clients::Sent;
use state_time::{Senders, SentAt};
pub use stored::{Contains, contains};
pub use summary::{
    ClientFigures, Contradiction, KeptFigures, LengthFigures, NativeRuns, Nearest, TrojanEntry,
    TrojanField, TrojanFinding, TrojanGroup, TrojanPhases, TrojansSummary,
};

/// The specification of an analysis.
#[derive(Clone, Debug)]
pub struct TrojansSpec {
    /// The scenario, with its settings, limits and folder for results.
    pub run: RunSpec,
    /// Optimisations of the search.
    pub search: SearchOptions,
    /// Whether to skip sending messages to the native server.
    pub no_confirm: bool,
    /// Maximum number of forks when following the server after it has accepted messages of a
    /// length.
    pub afterwards: u64,
    /// How often clients that limits have cut off are explored further, with higher limits, while
    /// there are classes that they may refute.
    pub refute: u32,
    /// The number of native runs with random inputs, over all clients.
    pub native_runs: u64,
}

/// The default of [`TrojansSpec::native_runs`]. A run takes about as long as the confirmation of a
/// class.
pub const NATIVE_RUNS: u64 = 50;

/// The default of [`TrojansSpec::refute`].
pub const REFUTE: u32 = 3;

/// The default of [`TrojansSpec::afterwards`]. Processing a request can be far more work than
/// accepting it.
pub const AFTERWARDS: u64 = 300;

impl TrojansSpec {
    /// Creates the specification for a scenario, with all defaults.
    pub fn new(run: RunSpec) -> TrojansSpec {
        TrojansSpec {
            run,
            search: SearchOptions::default(),
            no_confirm: false,
            afterwards: AFTERWARDS,
            refute: REFUTE,
            native_runs: NATIVE_RUNS,
        }
    }
}

/// Virtual time after the start of the last host for which clients are explored, unless the scenario
/// has a limit: a server with a timer never becomes idle, so a client that waits for it forever
/// would be explored forever.
const CLIENT_TIME: Duration = Duration::from_secs(600);

/// Virtual time after the message for which the server is explored and confirmed, unless the
/// scenario has a limit. Confirmation replays all of it natively.
const SERVER_TIME: Duration = Duration::from_secs(60);

/// The result of an analysis.
#[derive(Debug)]
pub struct TrojansResult {
    /// The folder of the results.
    pub folder: PathBuf,
    /// The summary.
    pub summary: TrojansSummary,
    /// Whether the analysis was interrupted.
    pub is_interrupted: bool,
}

impl TrojansResult {
    /// Returns the conclusion of the analysis. If it was interrupted, a class counts only if it is
    /// certain: clients that were not explored to their end may send the messages of the others.
    pub fn conclusion(&self) -> Conclusion {
        let mut classes = self.summary.trojans.iter();
        let has_findings = classes.any(|class| class.certain || !self.is_interrupted);
        // Undecided paths may have Trojan messages.
        let has_failed = !self.is_interrupted && !self.summary.undecided.is_empty();
        Conclusion::new(has_findings, has_failed, self.is_interrupted)
    }
}

/// The source port of the message, unless all clients use one of their own.
const SENDER_PORT: u16 = 40_961;
/// The first ephemeral port.
const FIRST_EPHEMERAL: u16 = 32_768;
/// The index of the message's length among the arguments of the sender.
const LENGTH_ARGUMENT: usize = 4;

/// The result of exploring the server.
struct Accepts {
    classes: Vec<Class>,
    /// Findings that messages of the classes reach.
    reached: Vec<afterwards::Found>,
    summary: TrojansSummary,
}

/// A client whose place the sender of the unconstrained message takes.
#[derive(Clone, Debug)]
struct Origin {
    client: HostIndex,
    /// The address of the server.
    address: IpAddr,
    /// The source port of messages.
    port: u16,
    /// The port that the client itself sends from, if it is not ephemeral.
    own_port: Option<u16>,
    /// Whether the client closes its streams after the message.
    closes: bool,
    /// The number of bytes that the server sends before the message.
    greeting: usize,
    /// When the message is sent.
    sent_at: SentAt,
}

impl Origin {
    fn of(client: HostIndex, heard: &Clients) -> Origin {
        let mut ports = heard.ports.iter();
        let own_port = match (ports.next(), ports.next()) {
            (Some(port), None) if *port < FIRST_EPHEMERAL => Some(*port),
            _ => None,
        };
        let address = heard.addresses.first().copied();
        Origin {
            client,
            address: address.unwrap_or(IpAddr::from([0, 0, 0, 0])),
            port: own_port.unwrap_or(SENDER_PORT),
            own_port,
            closes: heard.closes,
            greeting: heard.greeting,
            sent_at: SentAt::Start,
        }
    }

    /// Returns the same sender at another time. Beside a client, it cannot send from the client's port,
    /// and its message must be distinguishable from those of the client.
    fn at(&self, sent_at: SentAt) -> Origin {
        let port = match (sent_at, self.own_port) {
            (SentAt::Start, Some(port)) => port,
            _ => SENDER_PORT,
        };
        Origin {
            port,
            sent_at,
            ..self.clone()
        }
    }
}

/// The inputs and context of an analysis.
pub(crate) struct Analysis<'a> {
    spec: &'a TrojansSpec,
    session: &'a Session,
    scenario: Scenario,
    setup: Trojans,
    layout: Layout,
    /// The start of the last host, if the user has not limited virtual time.
    started: Option<Duration>,
}

/// A class: a server path that has Trojan messages, or may have some.
pub(crate) struct Class {
    pub(crate) length: u32,
    pub(crate) accepted: Accepted,
    /// The clients whose messages it accepts.
    pub(crate) senders: Vec<HostIndex>,
    /// When the first of them sends.
    sent_at: SentAt,
    /// Other paths that accept the same messages, in other states of the world or from other
    /// senders.
    pub(crate) also: Vec<StoredPath>,
    /// Seconds of server exploration before it was found.
    pub(crate) found_after: f64,
}

impl Class {
    fn of(accepted: &Accepted, length: u32, origin: &Origin, found_after: f64) -> Class {
        Class {
            length,
            accepted: accepted.clone(),
            senders: vec![origin.client],
            sent_at: origin.sent_at,
            also: Vec::new(),
            found_after,
        }
    }
}

/// Searches for messages that a server accepts and no client sends.
pub fn trojans(
    spec: &TrojansSpec,
    session: &Session,
    observer: &mut dyn Observer,
) -> Result<TrojansResult> {
    if !spec.run.is_scenario() {
        bail!(
            Usage,
            "trojans are looked for in a scenario (FILE.toml), which has a server and its clients"
        );
    }
    let scenario = load_scenario(&spec.run.scenario())?;
    let Some(mut setup) = scenario.trojans.clone() else {
        bail!(
            Usage,
            "the scenario has no [trojans]: it says which host is the server, and what a message is"
        );
    };
    resolve_fields(&mut setup, &scenario)?;
    replaced::check(&scenario)?;
    let mut spec = spec.clone();
    spec.run.replaces = !setup.replace.is_empty();
    let limit = spec.run.with_scenario(&scenario)?.max_virtual_time;
    let started = limit.is_none().then(|| last_start(&scenario));
    if let Some(started) = started {
        let state = Duration::from_nanos(setup.state_ns.unwrap_or(0));
        spec.run.max_virtual_time = Some(started.max(state) + CLIENT_TIME);
    }
    let analysis = Analysis {
        spec: &spec,
        session,
        layout: layout(&setup),
        scenario,
        setup,
        started,
    };
    analysis.run(observer)
}

/// Returns the virtual time at which the last host starts, as far as it is known.
fn last_start(scenario: &Scenario) -> Duration {
    let starts = scenario.start_times().into_iter();
    let known = starts.filter_map(|start| match start {
        StartTime::At(at_ns) => Some(at_ns),
        StartTime::Blocked(_) => None,
    });
    Duration::from_nanos(known.max().unwrap_or(0))
}

/// If the scenario names a C struct, sets the fields to its members, from the debug information of
/// the server or of a client.
fn resolve_fields(setup: &mut Trojans, scenario: &Scenario) -> Result<()> {
    let Some(of) = &setup.fields_of else {
        return Ok(());
    };
    let hosts = std::iter::once(&setup.server).chain(&setup.clients);
    let processes = hosts.flat_map(|host| &scenario.hosts[host.index()].processes);
    let mut members = processes.map(|process| struct_members(&process.program, &of.name));
    let members = match (members.next(), members.find_map(std::result::Result::ok)) {
        (Some(Ok(members)), _) | (_, Some(members)) => members,
        (Some(Err(error)), None) => {
            let help = "its members are read from debug information".to_owned();
            let problems = of.place.wrong(error.to_string(), help);
            return Err(Error::Scenario { problems });
        }
        (None, None) => bail!(Usage, "[trojans] fields: the server has no program"),
    };
    let place = of.mask_place.clone();
    let members = members.into_iter();
    let members = members.map(|member| (member.name, member.offset, member.size));
    let set = setup.set_members(members);
    set.map_err(|(message, help)| Error::Scenario {
        problems: place.wrong(message, help),
    })
}

/// Returns the fields of a message.
fn layout(setup: &Trojans) -> Layout {
    fn count(count: &FieldCount) -> Count {
        match count {
            FieldCount::Fixed(count) => Count::Fixed(*count),
            FieldCount::Rest => Count::Rest,
            FieldCount::Said(name) => Count::Said(name.clone()),
        }
    }
    fn of_field(field: &MessageField) -> Field {
        Field {
            name: field.name.clone(),
            start: match &field.start {
                FieldStart::Next => FieldsStart::Next,
                FieldStart::At(at) => FieldsStart::At(*at),
                FieldStart::BeforeEnd(bytes) => FieldsStart::BeforeEnd(*bytes),
                FieldStart::After(name) => FieldsStart::After(name.clone()),
                FieldStart::Said(name) => FieldsStart::Said(name.clone()),
            },
            size: count(&field.size),
            repeat: field.repeat.as_ref().map(count),
            fields: field.fields.iter().map(of_field).collect(),
            little_endian: field.little_endian,
            length_of: field.length_of.clone(),
            is_string: field.is_string,
            masked: field.masked,
        }
    }
    Layout {
        fields: setup.fields.iter().map(of_field).collect(),
    }
}

/// Returns the error for a search that could not be set up.
pub(crate) fn not_set_up(error: SearchError) -> Error {
    Error::Invalid(error.to_string())
}

impl Analysis<'_> {
    fn new_summary(&self, clients: &[ClientFigures]) -> TrojansSummary {
        TrojansSummary {
            complete: clients.iter().all(ClientFigures::is_known),
            server: self.name(self.setup.server),
            clients: clients.to_vec(),
            lengths: Vec::new(),
            kept: Vec::new(),
            native_runs: NativeRuns::default(),
            phases: TrojanPhases::default(),
            trojans: Vec::new(),
            groups: Vec::new(),
            findings: Vec::new(),
            afterwards_cut_off: Vec::new(),
            undecided: Vec::new(),
        }
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<TrojansResult> {
        let folder = self.spec.run.folder()?;
        observer.event(&Event::Started {
            folder: folder.path(),
        });
        let (sent, accepts) = self.compared(observer)?;
        let Accepts {
            classes,
            reached,
            mut summary,
        } = accepts;
        if self.spec.native_runs > 0 && !self.spec.no_confirm {
            observer.event(&Event::Phase("random runs of native clients"));
            native_clients::run(self, &sent.predicates, &classes, &mut summary)?;
        }
        let before = self.session.now();
        if !self.spec.no_confirm && !summary.trojans.is_empty() {
            observer.event(&Event::Phase("native confirmation"));
        }
        confirm::confirm(self, &sent.origins, &classes, &folder, &mut summary)?;
        confirm::findings(self, &sent.origins, &reached, &folder, &mut summary)?;
        summary.phases.confirmation = (self.session.now() - before).as_secs_f64();
        summary.group();
        stored::write(self, &folder, &sent.predicates, &classes, &summary)?;
        folder.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
        Ok(TrojansResult {
            folder: folder.path().to_owned(),
            summary,
            is_interrupted: self.session.stop.load(Ordering::SeqCst),
        })
    }

    /// Returns what the server accepts that no client sends. In the last round, reports classes as
    /// they are found, and follows the server afterwards.
    fn accepts(&self, sent: &Sent, is_last: bool, observer: &mut dyn Observer) -> Result<Accepts> {
        let mut worlds = Vec::new();
        let Senders { all, cut_off } = self.senders(&sent.origins)?;
        for origin in &all {
            let run = self.with_sender(origin)?;
            let (config, images) = prepare(&run, self.session)?;
            worlds.push((origin, run, config, images));
        }
        let mut summary = self.new_summary(&sent.figures);
        let began = self.session.now();
        let (mut classes, mut reached) = (Vec::new(), Vec::new());
        let mut has_received = false;
        for length in self.setup.least_length..=self.setup.most_length {
            let from = summary.trojans.len();
            let solver = worlds.first().map(|world| world.2.solver.clone());
            let mut search = self.search(length, &sent.predicates, &solver.unwrap_or_default())?;
            for (origin, run, config, images) in &mut worlds {
                set_length(config, run, origin.client, length);
                let mut note = |search: &mut Search, accepted: &Accepted| {
                    let found_after = (self.session.now() - began).as_secs_f64();
                    let class = Class::of(accepted, length, origin, found_after);
                    if !classes::merge(search, &mut classes, class) {
                        return;
                    }
                    let class = &classes[classes.len() - 1];
                    let is_trojan = classes::describe(self, search, class, &mut summary);
                    if let Some(entry) = summary.trojans.last().filter(|_| is_trojan && is_last) {
                        observer.event(&Event::Trojan(entry));
                    }
                };
                let (mut figures, received) =
                    self.server((config, images), &mut search, (length, origin), &mut note)?;
                has_received |= received;
                figures.is_cut_off_by(cut_off.as_ref());
                summary.note_length(figures);
            }
            classes::note_senders(self, &classes, &mut summary);
            summary.note_kept(search.kept());
            if is_last && summary.trojans.len() > from && self.spec.afterwards > 0 {
                let before = self.session.now();
                let senders = afterwards::senders(&classes, length);
                let of_classes = worlds.iter();
                let is_sender =
                    |origin: &Origin| senders.contains(&(origin.client, origin.sent_at));
                let of_classes = of_classes.filter(|world| is_sender(world.0));
                for (origin, _, config, images) in of_classes {
                    let world = (config, &images[..]);
                    let of = (length, *origin);
                    reached.extend(self.afterwards(world, &mut search, of, &mut summary)?);
                }
                afterwards::note(self, &mut search, &mut reached, &classes, &mut summary);
                summary.phases.afterwards += (self.session.now() - before).as_secs_f64();
            }
        }
        if !has_received {
            bail!(
                Usage,
                "the server never receives: no message of {} to {} bytes reaches port {}",
                self.setup.least_length,
                self.setup.most_length,
                self.setup.port
            );
        }
        Ok(Accepts {
            classes,
            reached,
            summary,
        })
    }

    fn name(&self, host: HostIndex) -> String {
        self.scenario.hosts[host.index()].name.clone()
    }

    fn search(&self, length: u32, sent: &[Encoded], solver: &SolverConfig) -> Result<Search> {
        let options = self.spec.search;
        Search::new(length, &self.layout, sent, solver.clone(), options).map_err(not_set_up)
    }

    /// Returns the run in which the sender takes the place of a client.
    fn with_sender(&self, sent: &Origin) -> Result<RunSpec> {
        let notices = &self.session.notices;
        let program = everett_toolchain::sender(&|text| notices.tell(text))?;
        // The time as a clock of the sender's host shows it.
        let uptime_ns = HostOptions::default().uptime_ns;
        let at_ns = match (sent.sent_at, sent.sent_at.time_ns()) {
            (SentAt::Never, _) => "-1".to_owned(),
            (_, at_ns) => {
                let at_ns = at_ns.map_or(0, |at_ns| at_ns.saturating_add(uptime_ns));
                at_ns.to_string()
            }
        };
        let words = [
            if self.setup.is_stream { "tcp" } else { "udp" },
            &sent.address.to_string(),
            &self.setup.port.to_string(),
            &self.setup.least_length.to_string(),
            &sent.port.to_string(),
            if sent.closes { "close" } else { "open" },
            &at_ns,
            &sent.greeting.to_string(),
        ]
        .map(str::to_owned);
        let beside = self.setup.has_state();
        let others = self.setup.clients.iter();
        let others = others.filter(|other| !beside && **other != sent.client);
        let others = others.map(|other| self.name(*other));
        Ok(RunSpec {
            sender: Some(Sender {
                host: self.name(sent.client),
                program,
                args: words.to_vec(),
                idle: others.collect(),
                beside,
                accepted: Some(self.accepted_by(sent.port)),
            }),
            out: None,
            max_virtual_time: match self.started {
                Some(started) => {
                    let state = Duration::from_nanos(sent.sent_at.time_ns().unwrap_or(0));
                    Some(started.max(state) + SERVER_TIME)
                }
                None => self.spec.run.max_virtual_time,
            },
            ..self.spec.run.clone()
        })
    }

    /// Returns the rule by which the native server accepts the message.
    fn accepted_by(&self, port: u16) -> AcceptedBy {
        AcceptedBy {
            server: self.name(self.setup.server),
            port,
            rule: self.setup.accept.clone(),
        }
    }

    fn rule(&self) -> Result<AcceptRule> {
        let pattern =
            |text: &String| Pattern::parse(text).map_err(|error| Error::Invalid(error.to_string()));
        Ok(match &self.setup.accept {
            Accept::Reply => AcceptRule::Reply,
            Accept::ReplyMatches(text) => AcceptRule::ReplyMatches(pattern(text)?),
            Accept::ReplyOther(text) => AcceptRule::ReplyOther(pattern(text)?),
            Accept::Calls(calls) => AcceptRule::Calls(calls.clone()),
            Accept::Marks => AcceptRule::Marks,
        })
    }

    fn server_options(&self, length: u32, origin: &Origin) -> Result<ServerOptions> {
        Ok(ServerOptions {
            server: self.setup.server,
            clients: self.setup.clients.clone(),
            sender_port: origin.port,
            length,
            accept: self.rule()?,
            point_time: origin.sent_at.point_time(&self.setup),
        })
    }

    /// Explores the server on messages of one length from one client.
    fn server(
        &self,
        (config, images): (&ExplorerConfig, &[Image]),
        search: &mut Search,
        (length, origin): (u32, &Origin),
        on_found: OnFound<'_>,
    ) -> Result<(LengthFigures, bool)> {
        let mut config = quiet(config);
        let options = self.server_options(length, origin)?;
        if let AcceptRule::Calls(_) = options.accept {
            let server = &mut config.hosts[self.setup.server.index()];
            server.config.options.stops_at_calls = true;
        }
        let predicates = search.predicates();
        let open = search.open_predicates();
        let mut server = Server::new(options, search, Some(on_found));
        let mut explorer = Explorer::new(images, config, Start::Beginning)?;
        let stopped = explorer.run(&self.session.stop, &mut server);
        let mut cut_off = incomplete(&explorer, stopped);
        if let Some(problem) = server.problems.first() {
            cut_off.get_or_insert(problem.clone());
        }
        let figures = LengthFigures {
            length,
            sender: self.name(origin.client),
            state_ns: origin.sent_at.time_ns(),
            predicates,
            open,
            accepting: server.accepting,
            rejecting: server.rejecting,
            pruned: server.pruned,
            explored: cut_off.is_none(),
            cut_off,
        };
        Ok((figures, server.has_received))
    }
}

/// Changes the length of the message in a run.
fn set_length(config: &mut ExplorerConfig, run: &RunSpec, client: HostIndex, length: u32) {
    let Some(sender) = &run.sender else {
        return;
    };
    let host = &mut config.hosts[client.index()].config;
    let args = match host.others.last_mut().filter(|_| sender.beside) {
        Some(process) => &mut process.args,
        None => &mut host.args,
    };
    if let Some(argument) = args.get_mut(LENGTH_ARGUMENT) {
        *argument = Argument::Concrete(length.to_string().into_bytes());
    }
}

/// Returns the configuration of an exploration that writes no files. States keep the packets that
/// they sent, so they are not spilled.
fn quiet(config: &ExplorerConfig) -> ExplorerConfig {
    ExplorerConfig {
        no_tests: true,
        all_tests: false,
        all_findings: true,
        spill: None,
        ..config.clone()
    }
}

/// Returns why an exploration is incomplete, if it is.
fn incomplete(explorer: &Explorer<'_>, stopped: Stopped) -> Option<String> {
    if stopped != Stopped::Finished {
        return Some(stopped.name().to_owned());
    }
    if let Some(limit) = explorer.limits_hit().first() {
        return Some((*limit).to_owned());
    }
    let statistics = explorer.statistics();
    let mut explored = statistics.finished.clone();
    explored.add_sum(&statistics.pruned);
    explored.add_sum(&statistics.excluded);
    match explored.is_one() {
        true => None,
        false => Some("not all paths were explored".to_owned()),
    }
}
