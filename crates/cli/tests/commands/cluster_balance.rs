//! Workers of a cluster give states to idle ones, know what others have covered, and continue if
//! the balancer, the broker or another worker is dead. The broker is in-process. The idle worker
//! acts in the middle of an operation of the busy one, so that nothing depends on time.

use crate::cluster::{submitted, test_build};
use crate::common::samples::{FORKS, FORKS_PATHS};
use crate::common::{build, endings, folder, summary};
use everett::{
    Budget, Job, JobDecision, JobProgress, JobResult, Parcel, Prepared, RunSpec, Session, Silent,
    States, Supervisor, explore,
};
use everett_cluster::{
    Broker, Error, Hash, JobId, Key, Kind, Lease, MemoryBroker, RunId, SharedMemory, Station,
    Status, Worker, WorkerSpec, WorkerStep, paths, results, share_coverage, status,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// The faults of a connection.
#[derive(Copy, Clone, Default)]
struct Trouble {
    /// The operation at which it breaks for good.
    dies_at: Option<u64>,
    /// Whether all messages between workers are lost.
    is_mute: bool,
    /// Another worker is idle, and balances at multiples of this number of reports.
    idle_at: Option<u64>,
}

/// A connection of a worker, with another worker that is idle.
struct Between {
    broker: MemoryBroker,
    other: MemoryBroker,
    idle: Station,
    trouble: Trouble,
    operations: u64,
    reports: u64,
}

impl Between {
    fn connect(shared: &SharedMemory, trouble: Trouble) -> Box<dyn Broker> {
        Box::new(Between {
            broker: shared.connect(),
            other: shared.connect(),
            idle: Station::new("two"),
            trouble,
            operations: 0,
            reports: 0,
        })
    }

    fn op(&mut self) -> Result<&mut MemoryBroker, Error> {
        self.operations += 1;
        match self.trouble.dies_at {
            Some(at) if self.operations >= at => Err(Error::Usage("dead".to_owned())),
            _ => Ok(&mut self.broker),
        }
    }

    fn tell(&self, key: &Key) -> Result<(), Error> {
        let advice = [Kind::Worker, Kind::Request, Kind::Round, Kind::Coverage];
        match self.trouble.is_mute && advice.contains(&key.kind) {
            true => Err(Error::Broker("mute".to_owned())),
            false => Ok(()),
        }
    }
}

impl Broker for Between {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<(), Error> {
        self.op()?.put(hash, bytes)
    }
    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>, Error> {
        self.op()?.get(hash)
    }
    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>, Error> {
        self.op()?.record(key, value)
    }
    fn note(&mut self, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.tell(key)?;
        self.op()?.note(key, value)?;
        if key.kind == Kind::Worker {
            self.reports += 1;
            let every = self.trouble.idle_at;
            if every.is_some_and(|every| self.reports.is_multiple_of(every)) {
                self.idle.balance(&mut self.other, &key.run)?;
            }
        }
        Ok(())
    }
    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.tell(key)?;
        self.op()?.look_up(key)
    }
    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>, Error> {
        self.op()?.list(kind, run)
    }
    fn runs(&mut self) -> Result<Vec<RunId>, Error> {
        self.op()?.runs()
    }
    fn remove_run(&mut self, run: &RunId) -> Result<(), Error> {
        self.op()?.remove_run(run)
    }
    fn objects(&mut self) -> Result<Vec<Hash>, Error> {
        self.op()?.objects()
    }
    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<(), Error> {
        self.op()?.remove_objects(hashes)
    }
    fn publish(&mut self, ticket: &everett_cluster::Ticket) -> Result<(), Error> {
        self.op()?.publish(ticket)
    }
    fn lease(&mut self) -> Result<Option<Lease>, Error> {
        self.op()?.lease()
    }
    fn extend(&mut self, lease: &Lease) -> Result<(), Error> {
        self.op()?.extend(lease)
    }
    fn acknowledge(&mut self, lease: &Lease) -> Result<bool, Error> {
        self.op()?.acknowledge(lease)
    }
    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<(), Error> {
        self.op()?.release(lease, pause)
    }
    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>, Error> {
        self.op()?.queued(run)
    }
    fn waiting(&mut self) -> Result<u64, Error> {
        self.op()?.waiting()
    }
    fn now(&mut self) -> Result<Duration, Error> {
        self.op()?.now()
    }
    fn lease_time(&self) -> Duration {
        self.broker.lease_time()
    }
}

fn spec(folder: &Path, name: &str, program: &str) -> RunSpec {
    RunSpec {
        all_tests: true,
        out: Some(folder.join(name)),
        batch: Some(50),
        no_confirm: true,
        ..RunSpec::new([folder.join(program)])
    }
}

fn worker<'s>(session: &'s Session, name: &str) -> Worker<'s> {
    let spec = WorkerSpec {
        name: name.to_owned(),
        build: test_build(),
        max_memory: None,
        scratch: None,
        idle: None,
        accept: None,
    };
    Worker::new(spec, session)
}

/// Lets a worker explore jobs until there are none. Returns how many it explored completely, and of
/// how many it kept the rest.
fn work(worker: &mut Worker<'_>, broker: Box<dyn Broker>) -> Result<(u64, u64), Error> {
    let broker = Mutex::new(broker);
    let (mut explored, mut told) = (0, 0);
    loop {
        match worker.step(&broker, &mut |_| told += 1)? {
            WorkerStep::Nothing => return Ok((explored, told)),
            WorkerStep::Explored(_) => explored += 1,
            WorkerStep::Dropped
            | WorkerStep::Balanced(_)
            | WorkerStep::SetAside(..)
            | WorkerStep::Refused(..)
            | WorkerStep::NoMemory(_)
            | WorkerStep::Paused(_) => {}
        }
    }
}

/// One worker explores a run while another is idle; then the other one explores what it was given.
fn two_workers(shared: &SharedMemory, run: &RunId, every: u64) -> Status {
    let session = Session::new();
    let trouble = Trouble {
        idle_at: Some(every),
        ..Trouble::default()
    };
    let (mut one, mut two) = (worker(&session, "one"), worker(&session, "two"));
    let did = work(&mut one, Between::connect(shared, trouble)).expect("it works");
    let left = work(&mut two, Box::new(shared.connect())).expect("it works");
    // The worker took what it was given from the queue again, because the other one had not begun.
    assert!(did.0 > 1 && did.1 > 1, "{did:?}");
    assert_eq!(left, (0, 0));
    status(&mut shared.connect(), run).expect("the accounts add up")
}

#[test]
fn a_worker_gives_states_to_an_idle_one_and_goes_on() {
    let folder = folder("balance-gives");
    build(&folder, "forks", FORKS, &[]);
    explore(
        &spec(&folder, "whole", "forks"),
        &Session::new(),
        &mut Silent,
    )
    .expect("explored");
    let shared = SharedMemory::new(100_000);
    let (run, dir) = submitted(&mut shared.connect(), &spec(&folder, "by", "forks"));
    let status = two_workers(&shared, &run, 5);
    assert!(status.is_complete());
    assert!(status.transfers > 2, "{status}");
    assert!(status.states_moved >= status.transfers && status.bytes_moved > 0);
    assert!(status.bytes_moved < status.bytes, "{status}");
    // The status shows the decision, as text and as JSON.
    let round = status.round.as_ref().expect("a round");
    assert_eq!((round.balancer.as_str(), round.number > 2), ("two", true));
    assert!(status.to_string().contains("of the balancer, "), "{status}");
    let json = status.to_json();
    let workers = json["balance"]["workers"].as_array().expect("a list");
    assert_eq!((workers.len(), &workers[0]["name"]), (2, &"one".into()));
    assert_eq!(workers[0]["given"], status.states_moved);
    let result = results(&mut shared.connect(), &dir, &Session::new(), &mut Silent);
    let figures = result.expect("results").summary.cluster.expect("figures");
    assert_eq!(figures.transfers, status.transfers);
    let (whole, by) = (folder.join("whole"), folder.join("by"));
    assert_eq!(endings(&by), endings(&whole));
    for field in ["complete", "paths", "weight", "coverage", "tests"] {
        assert_eq!(summary(&by)[field], summary(&whole)[field], "{field}");
    }
}

/// A worker explores all states that it keeps without rematerialising them.
#[test]
fn what_a_worker_keeps_is_not_replayed() {
    let folder = folder("balance-keeps");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(100_000);
    let (run, _) = submitted(&mut shared.connect(), &spec(&folder, "by", "forks"));
    // Nobody is idle: the worker records its results from time to time, and keeps everything.
    let session = Session::new();
    let did = work(&mut worker(&session, "one"), Box::new(shared.connect()));
    let status = status(&mut shared.connect(), &run).expect("the accounts add up");
    assert!(status.is_complete());
    assert_eq!(
        (did.expect("it works"), status.transfers),
        ((1, status.jobs - 1), 0)
    );
    assert!(status.jobs > 2, "{status}");
    assert_eq!((status.states_moved, status.replayed), (0, 0), "{status}");
}

#[test]
fn workers_go_on_when_nothing_they_tell_each_other_arrives() {
    let folder = folder("balance-mute");
    build(&folder, "forks", FORKS, &[]);
    let shared = SharedMemory::new(100_000);
    let (run, _) = submitted(&mut shared.connect(), &spec(&folder, "by", "forks"));
    let session = Session::new();
    let trouble = Trouble {
        is_mute: true,
        ..Trouble::default()
    };
    work(
        &mut worker(&session, "one"),
        Between::connect(&shared, trouble),
    )
    .expect("it works");
    let status = status(&mut shared.connect(), &run).expect("the accounts add up");
    assert!(status.is_complete() && status.loads.is_empty());
    assert_eq!(status.work.paths, FORKS_PATHS);
}

const FEW: &str = r#"
#include <everett.h>
int main(void) {
  unsigned char b[3];
  everett_make_symbolic(b, sizeof b, "b");
  volatile int sink = 0;
  for (int i = 0; i < 3; i++)
    if (b[i] > 7 + i) sink++;
  return sink;
}
"#;

/// A worker that shares its states dies at each of its operations in turn. What it kept is handed
/// out again, and each path is explored once.
#[test]
fn a_worker_may_die_at_any_operation_while_it_shares() {
    let folder = folder("balance-deaths");
    build(&folder, "few", FEW, &["-O0"]);
    let whole = paths_of_one(&folder);
    let session = Session::new();
    for at in 1.. {
        let shared = SharedMemory::new(100_000);
        let (run, _) = submitted_few(&folder, &shared, at);
        let trouble = Trouble {
            dies_at: Some(at),
            idle_at: Some(2),
            ..Trouble::default()
        };
        let died = work(
            &mut worker(&session, "one"),
            Between::connect(&shared, trouble),
        );
        let status = loop {
            shared.expire_leases();
            let mut two = worker(&session, "two");
            work(&mut two, Box::new(shared.connect())).expect("it works");
            let status = status(&mut shared.connect(), &run).expect("the accounts add up");
            if status.is_over() {
                break status;
            }
        };
        assert!(status.is_complete(), "dead at operation {at}");
        let paths = paths(&mut shared.connect(), &run).expect("each path once");
        assert_eq!(paths, whole, "dead at operation {at}");
        if died.is_ok() {
            assert!(at > 50 && status.transfers > 1, "{at} operations: {status}");
            break;
        }
    }
}

fn submitted_few(folder: &Path, shared: &SharedMemory, number: u64) -> (RunId, ()) {
    let submission = everett_cluster::Submission {
        spec: RunSpec {
            batch: Some(20),
            ..spec(folder, "by", "few")
        },
        build: test_build(),
        work: Some(1),
        max_work: None,
        nonce: number.to_le_bytes().to_vec(),
        key: None,
    };
    let run = everett_cluster::submit(&mut shared.connect(), &submission, &Session::new());
    (run.expect("it is submitted").0, ())
}

/// Returns the paths of a run that one worker explores alone.
fn paths_of_one(folder: &Path) -> BTreeSet<u64> {
    let shared = SharedMemory::new(100_000);
    let (run, ()) = submitted_few(folder, &shared, 0);
    let session = Session::new();
    work(&mut worker(&session, "one"), Box::new(shared.connect())).expect("it works");
    paths(&mut shared.connect(), &run).expect("each path once")
}

/// A program whose argument selects the part that is executed; `x` selects all.
const PARTS: &str = r#"
#include <everett.h>
static volatile int sink;
static int wide(unsigned char b) {
  switch (b) {
#define ONE(n) case n: for (sink = n; sink < 4000; sink++); return n + 1;
#define TEN(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3) ONE(n + 4) ONE(n + 5) ONE(n + 6) ONE(n + 7)
  TEN(0) TEN(8) TEN(16) TEN(24) TEN(32) TEN(40) TEN(48) TEN(56) TEN(64) TEN(72) TEN(80) TEN(88)
  }
  return 0;
}
static int deep(const unsigned char *b) {
#define STEP(i) if (b[i] != 3 * i + 7) return i; sink = i;
  STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
  return 100;
}
int main(int count, char **words) {
  unsigned char b[8];
  everett_make_symbolic(b, sizeof b, "b");
  if (words[1][0] == 'w') return wide(b[0]);
  return b[1] > 127 ? wide(b[0]) : deep(b);
}
"#;

/// A supervisor that knows what is covered elsewhere. Records after how many checks each segment
/// was covered.
struct Watching {
    elsewhere: Vec<u8>,
    first: Vec<u64>,
    checks: u64,
}

impl Supervisor for Watching {
    fn check(&mut self, progress: &JobProgress<'_>, covered: &mut Vec<u8>) -> JobDecision {
        self.checks += 1;
        self.first.resize(progress.covered.len(), 0);
        for (first, mark) in self.first.iter_mut().zip(progress.covered) {
            if *mark != 0 && *first == 0 {
                *first = self.checks;
            }
        }
        covered.clone_from(&self.elsewhere);
        JobDecision::GoOn
    }

    fn split(&mut self, _: JobResult) -> bool {
        true
    }
}

fn watched(folder: &Path, word: &str, elsewhere: Vec<u8>) -> (Watching, JobResult) {
    let spec = RunSpec {
        search: vec!["coverage".to_owned()],
        batch: Some(500),
        ..RunSpec::new([
            folder.join("parts").into_os_string(),
            word.to_owned().into(),
        ])
    };
    let session = Session::new();
    let parcel = Parcel::of(&spec, &session).expect("a parcel");
    let prepared = Prepared::of(&parcel, &session).expect("a program");
    let mut watching = Watching {
        elsewhere,
        first: Vec::new(),
        checks: 0,
    };
    let job = Job {
        states: States::beginning(false),
        budget: Budget::default(),
        deadline: None,
        work: 1,
        first: 1,
        supervisor: &mut watching,
        parts: 1,
        spill: None,
    };
    let result = prepared.explore(job, &session).expect("it is explored");
    (watching, result.expect("a result"))
}

/// The searcher of a worker prefers code that nobody has executed, not only code that is new to
/// itself. Its reported coverage is still only its own.
#[test]
fn searchers_keep_away_from_what_others_have_covered() {
    let folder = folder("balance-coverage");
    build(&folder, "parts", PARTS, &["-O0"]);
    let (_, wide) = watched(&folder, "w", Vec::new());
    let marks: Vec<u8> = wide.part.covered.bytes().map(|it| it - b'0').collect();
    let (alone, all) = watched(&folder, "x", Vec::new());
    let (knowing, same) = watched(&folder, "x", marks.clone());
    assert_eq!(all.part.covered, same.part.covered);
    assert_eq!(all.part.statistics.finished, same.part.statistics.finished);
    assert_eq!(all.paths.len(), same.paths.len());
    // The last segment that only the deep part covers.
    let last = |seen: &Watching| {
        let firsts = seen.first.iter().zip(&marks);
        firsts
            .filter(|(_, mark)| **mark == 0)
            .map(|(first, _)| *first)
            .max()
    };
    let (alone, knowing) = (last(&alone).expect("one"), last(&knowing).expect("one"));
    assert!(4 * knowing < 3 * alone, "{knowing} checks, {alone} alone");
}

#[test]
fn coverage_of_workers_is_that_of_one_process() {
    let folder = folder("balance-union");
    build(&folder, "forks", FORKS, &["-g"]);
    let session = Session::new();
    let shared = SharedMemory::new(100_000);
    let spec = spec(&folder, "by", "forks");
    let (run, dir) = submitted(&mut shared.connect(), &spec);
    let status = two_workers(&shared, &run, 5);
    assert!(status.transfers > 0);
    // The second worker knows the coverage of the first one, and has covered nothing itself.
    let parcel = Parcel::of(&spec, &session).expect("a parcel");
    let prepared = Prepared::of(&parcel, &session).expect("a program");
    let nothing = vec![0; prepared.segments()];
    let known = share_coverage(&mut shared.connect(), &run, &nothing).expect("marks");
    results(&mut shared.connect(), &dir, &session, &mut Silent).expect("results");
    explore(
        &self::spec(&folder, "whole", "forks"),
        &session,
        &mut Silent,
    )
    .expect("explored");
    assert_eq!(
        summary(&dir)["coverage"],
        summary(&folder.join("whole"))["coverage"]
    );
    let count = known.iter().filter(|mark| **mark != 0).count() as u64;
    assert_eq!((count, count > 20), (status.covered, true));
    // A run of a single worker reports the same.
    let alone = SharedMemory::new(100_000);
    let (run, _) = submitted(&mut alone.connect(), &self::spec(&folder, "alone", "forks"));
    work(&mut worker(&session, "one"), Box::new(alone.connect())).expect("it works");
    let all = share_coverage(&mut alone.connect(), &run, &nothing).expect("marks");
    assert_eq!(known, all);
}

/// A program with a long beginning that all paths have in common, inputs that are made late, and
/// choices of data of all kinds.
const LATE: &str = r#"
#include <everett.h>
static volatile int sink;
int main(void) {
  unsigned char b[4], table[64];
  for (int i = 0; i < 100; i++) table[i % 64] = 3 * i;
  everett_make_symbolic(b, sizeof b, "b");
  for (int i = 0; i < 4; i++) {
    if (b[i] > 60 + i) sink++;
    if (table[b[i] % 4] & 1) sink += 2;
  }
  unsigned char c;
  everett_make_symbolic(&c, 1, "c");
  everett_assume(c != 7);
  switch (c) { case 1: return 1; case 3: return sink; case 9: return 9; }
  return everett_choose(3, "last") + c % 3;
}
"#;

/// A supervisor that gives states away once, at a check, and keeps the results.
struct Giving {
    at: u64,
    checks: u64,
    given: Vec<States>,
    parts: Vec<JobResult>,
}

impl Supervisor for Giving {
    fn check(&mut self, _: &JobProgress<'_>, _: &mut Vec<u8>) -> JobDecision {
        self.checks += 1;
        match self.checks == self.at {
            true => JobDecision::Give(1000),
            false => JobDecision::GoOn,
        }
    }

    fn split(&mut self, mut result: JobResult) -> bool {
        self.given.extend(result.left.split_off(1));
        self.parts.push(result);
        true
    }
}

/// Explores states. Returns the results, and the states that were given away at a check.
fn given_at(prepared: &Prepared, states: States, at: u64) -> (Vec<JobResult>, Vec<States>) {
    let mut giving = Giving {
        at,
        checks: 0,
        given: Vec::new(),
        parts: Vec::new(),
    };
    let job = Job {
        states,
        budget: Budget::default(),
        deadline: None,
        work: 200,
        first: 200,
        supervisor: &mut giving,
        parts: 1,
        spill: None,
    };
    let result = prepared.explore(job, &Session::new());
    let rest = result.expect("it is explored").expect("a result");
    giving.parts.push(rest);
    (giving.parts, giving.given)
}

/// States that move together execute the common parts of their paths once. They reach the same ends
/// as where they come from, at whatever time they move.
#[test]
fn states_that_move_together_are_replayed_together() {
    let folder = folder("balance-together");
    build(&folder, "late", LATE, &["-O0"]);
    let spec = RunSpec {
        batch: Some(100),
        search: vec!["bfs".to_owned()],
        ..RunSpec::new([folder.join("late")])
    };
    let session = Session::new();
    let parcel = Parcel::of(&spec, &session).expect("a parcel");
    let prepared = Prepared::of(&parcel, &session).expect("a program");
    let ends = |parts: &[JobResult]| -> Vec<(u64, u32)> {
        let mut ends: Vec<_> = parts.iter().flat_map(|it| it.paths.clone()).collect();
        ends.sort_unstable();
        ends
    };
    let executed = |parts: &[JobResult]| -> u64 {
        parts.iter().map(|it| it.part.statistics.instructions).sum()
    };
    let whole = given_at(&prepared, States::beginning(false), 0).0;
    assert!(ends(&whole).len() > 500, "{} paths", ends(&whole).len());
    let mut most = 0;
    for at in [4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 120] {
        let (mut parts, given) = given_at(&prepared, States::beginning(false), at);
        for states in given {
            let States::Program(traces) = &states else {
                panic!("states of a program")
            };
            let count = traces.len() as u64;
            let pending = traces.iter().filter_map(|it| it.pending.as_ref());
            let alone: u64 = pending.map(|it| it.instructions).sum();
            let rest = given_at(&prepared, states, 0).0;
            let replayed: u64 = rest.iter().map(|it| it.part.statistics.replayed).sum();
            assert!(count < 4 || 2 * replayed < alone, "{replayed} of {alone}");
            most = most.max(count);
            parts.extend(rest);
        }
        assert_eq!(ends(&parts), ends(&whole), "at check {at}");
        assert_eq!(executed(&parts), executed(&whole), "at check {at}");
    }
    assert!(most > 8, "{most} states moved together");
}

/// The lead of several workers panics, for instance because an observer does: the others leave, and
/// the panic reaches the caller.
#[test]
fn a_panic_of_the_lead_ends_all_workers() {
    struct Panicking;
    impl everett::Observer for Panicking {
        fn event(&mut self, event: &everett::Event<'_>) {
            assert!(!matches!(event, everett::Event::PathDone(_)), "on purpose");
        }
    }
    let folder = folder("balance-panic");
    build(&folder, "forks", FORKS, &[]);
    let spec = RunSpec {
        workers: Some(3),
        ..spec(&folder, "out", "forks")
    };
    let (sender, ended) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let run = || explore(&spec, &Session::new(), &mut Panicking).map(|_| ());
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        sender.send(run.is_err()).expect("somebody waits");
    });
    // The run ends at once; a run that waits forever fails here.
    let panicked = ended.recv_timeout(Duration::from_secs(300));
    assert_eq!(panicked, Ok(true));
    thread.join().expect("it has ended");
}
