//! The live peers of a run: their recordings, and the live instances that answer new questions.

use everett_sim::{HostAct, PeerAct, position_after};
use everett_vm::{Outside, OutsideAnswer, OutsideQuestion};
use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::instance::{Instance, Listener};
use crate::process::{Process, Processes};
use crate::recording::{Journal, Recording, RecordingEntry, RecordingError, read};
use crate::setup::{Fresh, LiveSetup, Mode, Where};

/// Counters of a peer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PeerCounts {
    /// The name of the peer.
    pub name: String,
    /// Number of answers in the recording.
    pub recorded: u64,
    /// Number of questions that the recording answered.
    pub replayed: u64,
    /// Number of questions that a live instance answered.
    pub live: u64,
    /// Number of instances that were created.
    pub instances: u64,
    /// Number of answers that were replayed to bring fresh instances to a position.
    pub played: u64,
}

/// The live peers of a run.
pub struct LivePeers {
    peers: BTreeMap<String, Pool>,
    journal: Journal,
}

/// The listener of a client, the address of an instance, and its process if it has one.
type Started = (Option<Listener>, Where, Option<Arc<Mutex<Process>>>);

/// How often a peer is started whose port another program takes first.
const MOST_TRIES: u32 = 5;

/// The recording and the live instances of one peer.
struct Pool {
    setup: Arc<LiveSetup>,
    recording: Mutex<Recording>,
    live: Mutex<Live>,
    counts: Mutex<PeerCounts>,
}

/// The live instances of a peer.
struct Live {
    mode: Mode,
    starter: Option<Starter>,
    /// The process that instances share if they differ by their connections.
    shared: Option<Arc<Mutex<Process>>>,
    instances: Vec<Instance>,
    /// Number of questions so far.
    asked: u64,
    /// The reason why the peer is not asked any more.
    broken: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LivePeers {
    /// Creates the live peers of a scenario.
    pub fn new(setups: Vec<LiveSetup>, mode: Mode) -> LivePeers {
        let pool = |setup: LiveSetup| {
            let name = setup.name.clone();
            let pool = Pool {
                counts: Mutex::new(PeerCounts {
                    name: name.clone(),
                    ..PeerCounts::default()
                }),
                setup: Arc::new(setup),
                recording: Mutex::default(),
                live: Mutex::new(Live {
                    mode,
                    starter: None,
                    shared: None,
                    instances: Vec::new(),
                    asked: 0,
                    broken: None,
                }),
            };
            (name, pool)
        };
        LivePeers {
            peers: setups.into_iter().map(pool).collect(),
            journal: Journal::default(),
        }
    }

    /// Loads the answers of an earlier run.
    pub fn load(&self, folder: &Path) -> Result<(), RecordingError> {
        read(folder, |peer, id, after, events, answer| {
            if let Some(pool) = self.peers.get(peer) {
                lock(&pool.recording).add(id, after, events, &answer);
            }
        })
    }

    /// Opens the recording in the folder of a run, to which all subsequent answers are appended.
    /// Writes all known answers that it lacks.
    pub fn record_to(&self, folder: &Path) -> Result<(), RecordingError> {
        let mut known = std::collections::BTreeSet::new();
        read(folder, |peer, id, _, _, _| {
            known.insert((peer.to_owned(), id));
        })?;
        self.journal.open(folder)?;
        for (name, pool) in &self.peers {
            let recording = lock(&pool.recording);
            for (id, entry) in recording.in_order() {
                if !known.contains(&(name.clone(), id)) {
                    let places = (id, entry.after);
                    let written = entry
                        .events
                        .bytes()
                        .and_then(|events| self.journal.note(name, places, &events, &entry.answer));
                    written.map_err(|error| RecordingError {
                        file: folder.join(crate::RECORDING),
                        message: error.to_string(),
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns the counters of all peers.
    pub fn counts(&self) -> Vec<PeerCounts> {
        let pools = self.peers.values();
        let counts = pools.map(|pool| PeerCounts {
            recorded: lock(&pool.recording).len() as u64,
            ..lock(&pool.counts).clone()
        });
        counts.collect()
    }

    /// Ends all instances.
    pub fn stop(&self) {
        for pool in self.peers.values() {
            let mut live = lock(&pool.live);
            live.instances.clear();
            live.shared = None;
            live.starter = None;
        }
    }

    fn keep(
        &self,
        pool: &Pool,
        question: &OutsideQuestion<'_>,
        answer: &Arc<[u8]>,
    ) -> Result<(), String> {
        let OutsideQuestion {
            peer,
            id,
            after,
            events,
        } = *question;
        if lock(&pool.recording).get(id).is_some() {
            return Ok(());
        }
        let written = self.journal.note(peer, (id, after), events, answer);
        let events =
            written.map_err(|error| format!("its recording cannot be written: {error}"))?;
        // If another worker has learnt the same meanwhile, the file has it twice.
        lock(&pool.recording).add(id, after, events, answer);
        Ok(())
    }
}

impl Outside for LivePeers {
    fn answer(&self, question: &OutsideQuestion<'_>) -> OutsideAnswer {
        let Some(pool) = self.peers.get(question.peer) else {
            return Err(format!("the scenario has no peer {}", question.peer));
        };
        let known = |counts: &mut PeerCounts| counts.replayed += 1;
        if let Some(entry) = lock(&pool.recording).get(question.id) {
            known(&mut lock(&pool.counts));
            return Ok(entry.answer.clone());
        }
        let mut live = lock(&pool.live);
        // Another worker may have asked the same question meanwhile.
        if let Some(entry) = lock(&pool.recording).get(question.id) {
            known(&mut lock(&pool.counts));
            return Ok(entry.answer.clone());
        }
        let act = pool.ask_live(&mut live, question)?;
        let answer: Arc<[u8]> = act.encode().into();
        self.keep(pool, question, &answer)?;
        live.note_answer(question, &act, &answer, pool.setup.any_order);
        Ok(answer)
    }

    fn learn(&self, question: &OutsideQuestion<'_>, answer: &Arc<[u8]>) {
        if let Some(pool) = self.peers.get(question.peer) {
            // A recording that cannot be written is reported at the next question.
            let _ = self.keep(pool, question, answer);
        }
    }
}

impl Live {
    /// Updates the position of the instance that was asked last after its answer.
    fn note_answer(
        &mut self,
        question: &OutsideQuestion<'_>,
        act: &PeerAct,
        answer: &[u8],
        any_order: bool,
    ) {
        let asked = self.asked;
        if let Some(instance) = self.instances.iter_mut().find(|one| one.used == asked)
            && !(any_order && *act == PeerAct::Silence)
        {
            instance.after = position_after(question.id, answer);
            instance.told.clear();
        }
    }
}

/// Removes the acts that an instance was told already. Returns `false` if it was told other acts.
fn keep_untold(acts: &mut Vec<HostAct>, told: &[HostAct], any_order: bool) -> bool {
    if !any_order {
        let fits = acts.starts_with(told);
        acts.drain(..told.len().min(acts.len()));
        return fits;
    }
    told.iter().all(|act| {
        let at = acts.iter().position(|other| other == act);
        at.map(|at| acts.remove(at)).is_some()
    })
}

/// Returns whether an instance was told only some of these acts.
fn fits(acts: &[HostAct], told: &[HostAct], any_order: bool) -> bool {
    match any_order {
        false => acts.starts_with(told),
        true => told.is_empty() || keep_untold(&mut acts.to_vec(), told, true),
    }
}

impl Pool {
    fn ask_live(&self, live: &mut Live, question: &OutsideQuestion<'_>) -> Result<PeerAct, String> {
        let setup = &self.setup;
        if live.mode == Mode::Offline {
            return Err(
                "its recording has no answer to what the hosts send to it here (`offline`)"
                    .to_owned(),
            );
        }
        if let Some(why) = &live.broken {
            return Err(why.clone());
        }
        if lock(&self.recording).bytes > setup.max_bytes {
            return Err(format!(
                "its recording has more than {} bytes (max_bytes)",
                setup.max_bytes
            ));
        }
        let Some(mut acts) = HostAct::decode(question.events) else {
            return Err("what was sent to it is damaged".to_owned());
        };
        live.asked += 1;
        let at = self.instance_for(live, question.after, &acts)?;
        let any_order = setup.any_order;
        let instance = &mut live.instances[at];
        instance.used = live.asked;
        if !keep_untold(&mut acts, &instance.told, any_order) {
            return Err("the instance stands elsewhere".to_owned());
        }
        acts.into_iter().for_each(|act| instance.tell(act));
        lock(&self.counts).live += 1;
        let act = instance.ask()?;
        // A peer that Everett has not started, and that never answered, is not a peer that refuses.
        let is_outside = setup.command.is_empty() && !setup.is_client;
        if is_outside && matches!(act, PeerAct::Refuse(_)) && lock(&self.recording).len() == 0 {
            let message = format!("nothing listens at {}: start it first", setup.listen);
            live.broken = Some(message.clone());
            return Err(message);
        }
        Ok(act)
    }

    /// Returns an instance at a position that was told at most these acts.
    fn instance_for(
        &self,
        live: &mut Live,
        after: u128,
        acts: &[HostAct],
    ) -> Result<usize, String> {
        let any_order = self.setup.any_order;
        let fits = |instance: &Instance, after: u128, acts: &[HostAct]| {
            instance.after == after && fits(acts, &instance.told, any_order)
        };
        let here = live
            .instances
            .iter()
            .position(|instance| fits(instance, after, acts));
        if let Some(at) = here {
            return Ok(at);
        }
        let way = lock(&self.recording).way_to(after);
        let way = way.ok_or("what led to where it stands is not in its recording")?;
        // The instance at the nearest earlier position, or a fresh one.
        let nearest = way.iter().enumerate().rev().find_map(|(step, entry)| {
            // The acts are read only if an instance stands there.
            let all = &live.instances;
            all.iter().find(|instance| instance.after == entry.after)?;
            let acts = entry.acts().ok()?;
            let at = all
                .iter()
                .position(|instance| fits(instance, entry.after, &acts))?;
            Some((at, step))
        });
        let (at, from) = match nearest {
            Some(found) => found,
            None => (self.make(live)?, 0),
        };
        self.play(live, at, &way[from..], way.len())?;
        Ok(at)
    }

    /// Replays recorded acts to an instance, so that it reaches a position.
    fn play(
        &self,
        live: &mut Live,
        at: usize,
        way: &[Arc<RecordingEntry>],
        length: usize,
    ) -> Result<(), String> {
        let any_order = self.setup.any_order;
        for (step, entry) in way.iter().enumerate() {
            let instance = &mut live.instances[at];
            let mut left = entry.acts()?;
            if keep_untold(&mut left, &instance.told, any_order) {
                left.into_iter().for_each(|act| instance.tell(act));
            }
            lock(&self.counts).played += 1;
            if let Err(seen) = instance.expect(&entry.act) {
                live.instances.remove(at);
                let before = length - way.len() + step;
                let answers = if before == 1 { "answer" } else { "answers" };
                let message = format!(
                    "it is not deterministic: after the same {before} {answers} it {seen}; before, it {}. Say what may \
                     differ (varies = [\"REGEX\"]), or that the order does not matter (order = \"any\")",
                    entry.act.describe()
                );
                live.broken = Some(message.clone());
                return Err(message);
            }
            instance.after = position_after(entry.id, &entry.answer);
            instance.told.clear();
        }
        Ok(())
    }

    /// Creates a fresh instance. If there are too many, it replaces the one that was not used for
    /// the longest time.
    fn make(&self, live: &mut Live) -> Result<usize, String> {
        let setup = &self.setup;
        let is_started = !setup.command.is_empty();
        let has_own_place = match &setup.listen {
            Where::Internet(address) => address.port() == 0,
            Where::Unix(path) => path.is_relative(),
        };
        let shares_place = is_started && !has_own_place && setup.fresh != Fresh::Connection;
        let is_copied = setup.fresh == Fresh::Snapshot;
        let most = if shares_place || is_copied || setup.is_client && !has_own_place {
            1
        } else {
            setup.instances
        };
        while live.instances.len() >= most.max(1) {
            let all = live.instances.iter().enumerate();
            let oldest = all.min_by_key(|(_, instance)| instance.used);
            let oldest = oldest.map_or(0, |(at, _)| at);
            live.instances.remove(oldest);
        }
        if setup.is_client && !is_started && lock(&self.counts).instances > 0 {
            return Err(
                "a client that runs already cannot be started afresh: give its command".to_owned(),
            );
        }
        let (listener, at, process) = self.start(live)?;
        let at = process
            .as_ref()
            .map_or(at, |process| lock(process).at.clone());
        lock(&self.counts).instances += 1;
        live.instances
            .push(Instance::new(setup.clone(), process, at, listener));
        Ok(live.instances.len() - 1)
    }

    /// Starts the process of a new instance, if it has one of its own, and returns its address too.
    fn start(&self, live: &mut Live) -> Result<Started, String> {
        let setup = &self.setup;
        let mut tries = 1;
        loop {
            let (listener, at) = self.place()?;
            let by_connection = setup.fresh == Fresh::Connection;
            let started = match (setup.command.is_empty(), by_connection) {
                (true, _) => Ok(None),
                (false, false) => live.start(setup, &at).map(Some),
                (false, true) => match &live.shared {
                    Some(shared) => Ok(Some(shared.clone())),
                    None => live.start(setup, &at).map(|process| {
                        live.shared = Some(process.clone());
                        Some(process)
                    }),
                },
            };
            match started {
                Ok(process) => return Ok((listener, at, process)),
                Err(_) if self.has_lost_port(&at) && tries < MOST_TRIES => tries += 1,
                Err(error) => {
                    // What cannot be copied now cannot be copied later.
                    if setup.fresh == Fresh::Snapshot {
                        live.broken = Some(error.clone());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Returns whether another program has taken the port that was chosen for an instance.
    fn has_lost_port(&self, at: &Where) -> bool {
        match (&self.setup.listen, at) {
            // The port of a client is taken by the listener for it.
            _ if self.setup.is_client => false,
            (Where::Internet(wanted), Where::Internet(at)) if wanted.port() == 0 => {
                match self.setup.is_datagram {
                    true => UdpSocket::bind(at).is_err(),
                    false => TcpListener::bind(at).is_err(),
                }
            }
            _ => false,
        }
    }

    /// Returns the listener for a client, and the address of a new instance.
    fn place(&self) -> Result<(Option<Listener>, Where), String> {
        let setup = &self.setup;
        let failed = |error: std::io::Error| format!("{:?}: {error}", setup.listen);
        match (&setup.listen, setup.is_client) {
            (Where::Internet(address), true) if setup.is_datagram => {
                let socket = UdpSocket::bind(address).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                let at = Where::Internet(socket.local_addr().map_err(failed)?);
                Ok((Some(Listener::Udp(Arc::new(socket))), at))
            }
            (Where::Internet(address), true) => {
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let at = Where::Internet(listener.local_addr().map_err(failed)?);
                Ok((Some(Listener::Tcp(listener)), at))
            }
            (Where::Unix(path), true) => {
                let own = path.is_relative().then(tempfile::tempdir).transpose();
                let own = own.map_err(failed)?;
                let path = own
                    .as_ref()
                    .map_or(path.clone(), |own| own.path().join(path));
                let listener = UnixListener::bind(&path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let listener = Listener::Unix {
                    listener,
                    _folder: own,
                };
                Ok((Some(listener), Where::Unix(path)))
            }
            (Where::Internet(address), false) if address.port() == 0 => {
                // A port that is free now. Another program may take it before the peer does.
                let listener = TcpListener::bind(address).map_err(failed)?;
                let at = listener.local_addr().map_err(failed)?;
                Ok((None, Where::Internet(at)))
            }
            (listen, false) => Ok((None, listen.clone())),
        }
    }
}

impl Live {
    fn start(&mut self, setup: &Arc<LiveSetup>, at: &Where) -> Result<Arc<Mutex<Process>>, String> {
        let starter = self.starter.get_or_insert_with(Starter::new);
        starter.start(setup.clone(), at.clone())
    }
}

/// The thread that starts processes. They die with the thread that started them, so it must live as
/// long as they do, which a worker need not.
struct Starter {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A peer to start, its address, and the channel for the result.
type Order = (Arc<LiveSetup>, Where, Sender<Result<Process, String>>);

impl Starter {
    fn new() -> Starter {
        let (sender, orders) = channel::<Order>();
        let thread = std::thread::spawn(move || {
            let mut processes = Processes::default();
            for (setup, at, reply) in orders {
                let _ = reply.send(processes.start(&setup, &at));
            }
        });
        Starter {
            orders: Some(sender),
            thread: Some(thread),
        }
    }

    fn start(&self, setup: Arc<LiveSetup>, at: Where) -> Result<Arc<Mutex<Process>>, String> {
        let (reply, started) = channel();
        let gone = || "the thread that starts peers is gone".to_owned();
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send((setup, at, reply)).map_err(|_| gone())?;
        let process = started.recv().map_err(|_| gone())??;
        Ok(Arc::new(Mutex::new(process)))
    }
}

/// The thread ends what it has stopped.
impl Drop for Starter {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
