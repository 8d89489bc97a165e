//! A worker's part in load balancing. A worker that explores reports how many states it has, and
//! receives requests to give some of them away. An idle worker is the balancer: it reads the
//! reports of the others, decides ([`pairs`]) and sends requests. So the balancer costs nothing:
//! while all workers have work there is none, and if it dies, another idle worker takes its place.
//! States that are given away are jobs in the queue, which idle workers take.
//!
//! With its reports, a worker merges its coverage into that of all workers.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::balance::{DELTA, pairs, spread};
use crate::broker::{Broker, JobId, Key, Kind, RunId};
use crate::error::Result;
use crate::hash::Hash;

/// Idle workers check whether to balance after this number of requests for a job without success.
const IDLE_A_ROUND: u32 = 4;

/// The number of states that a worker of a run has, as it last reported.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The name of the worker.
    pub name: String,
    /// The number of states that the worker has to explore.
    pub states: u64,
    /// The round of the last request that the worker has received.
    pub heard: u64,
    /// Whether the worker has left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_left: bool,
    /// Whether the worker has too little memory for its states, and has spilled some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_short: bool,
    /// Number of states that the worker gave away on request.
    pub given: u64,
    /// Number of states that the worker gave away because it had too little memory for them.
    #[serde(default)]
    pub given_for_memory: u64,
    /// Number of rounds in which the worker was the balancer.
    pub rounds: u64,
    /// The time for which the worker has waited for jobs while the run was going on, in seconds.
    pub idle_seconds: f64,
}

/// A request of the balancer to a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Request {
    round: u64,
    states: u64,
    /// The number of states that the worker had then, as last reported.
    of: u64,
    to: String,
}

impl Request {
    /// Returns how many of this number of states are to be given away: the same share as of those
    /// that the worker had when it was asked, of which at least half stay.
    fn share_of(&self, states: u64) -> u64 {
        let share = u128::from(self.states) * u128::from(states) / u128::from(self.of.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).min(states / 2)
    }
}

/// A request that one worker gives states away because another has few.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The worker that gives.
    pub from: String,
    /// The worker that has few states.
    pub to: String,
    /// The number of states.
    pub states: u64,
}

/// A decision of the balancer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// The number of the round.
    pub number: u64,
    /// The worker that was the balancer.
    pub balancer: String,
    /// The mean of the numbers of states.
    pub mean: f64,
    /// The standard deviation of the numbers of states.
    pub deviation: f64,
    /// The requests; none if the load is balanced.
    pub transfers: Vec<Transfer>,
    /// Whether the balancer has found that the run is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

/// What a worker did in a run.
#[derive(Clone, Debug, Default)]
struct Account {
    /// The round of the last request that the worker has received.
    heard: u64,
    /// The last round that the worker has seen.
    seen: u64,
    /// Number of states that the worker gave away on request, and because memory was short.
    given: u64,
    given_for_memory: u64,
    /// Whether the worker has spilled states.
    is_short: bool,
    /// Number of rounds in which the worker was the balancer.
    rounds: u64,
    /// The time for which the worker waited for jobs.
    idle: Duration,
}

/// What a check whether to balance a run found.
#[derive(Clone, PartialEq, Debug)]
pub enum Balancing {
    /// Another worker balances; `true` if it has found that the run is over.
    Other(bool),
    /// The worker was the balancer; its decision.
    Balanced(Round),
}

/// Reads an advisory record. A damaged one counts as missing: nothing depends on it.
fn advice<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// The state of a worker that other workers see.
pub struct Station {
    name: String,
    id: JobId,
    accounts: BTreeMap<RunId, Account>,
}

impl Station {
    /// Creates a worker that has reported nothing yet.
    pub fn new(name: &str) -> Station {
        let id = Hash::of_parts(&[b"worker", name.as_bytes()]).to_string();
        Station {
            name: name.to_owned(),
            id: JobId::parse(&id[..32]).unwrap_or_else(|| JobId::of(name, Hash::of(b""))),
            accounts: BTreeMap::new(),
        }
    }

    /// Returns the name of the worker.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn account(&mut self, run: &RunId) -> &mut Account {
        self.accounts.entry(run.clone()).or_default()
    }

    /// Adds time that the worker has waited for a job while a run was going on.
    pub fn waited(&mut self, run: &RunId, time: Duration) {
        self.account(run).idle += time;
    }

    /// Reports the number of states of the worker.
    pub fn report(&self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<()> {
        self.note(broker, run, states, false)
    }

    /// Reports that the worker leaves, to all runs of which it has explored jobs.
    pub fn leave(&self, broker: &mut dyn Broker) -> Result<()> {
        let mut runs = self.accounts.keys();
        runs.try_for_each(|run| self.note(broker, run, 0, true))
    }

    fn note(
        &self,
        broker: &mut dyn Broker,
        run: &RunId,
        states: u64,
        has_left: bool,
    ) -> Result<()> {
        let account = self.accounts.get(run).cloned().unwrap_or_default();
        let status = WorkerStatus {
            name: self.name.clone(),
            states,
            heard: account.heard,
            has_left,
            is_short: account.is_short && states > 0,
            given: account.given,
            given_for_memory: account.given_for_memory,
            rounds: account.rounds,
            idle_seconds: account.idle.as_secs_f64(),
        };
        let status = serde_json::to_vec(&status).map_err(everett::Error::from)?;
        broker.note(&Key::of_job(Kind::Worker, run, &self.id), &status)
    }

    /// Returns the current request to this worker, if it is new.
    fn hear(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Option<Request>> {
        let request = broker.look_up(&Key::of_job(Kind::Request, run, &self.id))?;
        let request: Option<Request> = request.as_deref().and_then(advice);
        let heard = &mut self.account(run).heard;
        let request = request.filter(|request| request.round != *heard);
        if let Some(request) = &request {
            *heard = request.round;
        }
        Ok(request)
    }

    /// Reports the number of states while the worker explores, and returns how many of them it must
    /// give away. Since it was asked, their number may have changed.
    pub fn check_in(&mut self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<u64> {
        let asked = self.hear(broker, run)?;
        self.report(broker, run, states)?;
        Ok(asked.map_or(0, |request| request.share_of(states)))
    }

    /// Counts states that the worker has given away, on request or because memory was short.
    pub fn gave(&mut self, run: &RunId, states: u64, for_memory: bool) {
        let account = self.account(run);
        match for_memory {
            true => account.given_for_memory += states,
            false => account.given += states,
        }
    }

    /// Records whether the worker has too little memory for its states.
    pub fn note_memory(&mut self, run: &RunId, is_short: bool) {
        self.account(run).is_short = is_short;
    }

    /// Returns whether another worker of a run has memory for more states, as it last reported.
    pub fn others_have_room(&self, broker: &mut dyn Broker, run: &RunId) -> Result<bool> {
        let all = broker.list(Kind::Worker, run)?.into_iter();
        let others = all.filter(|(id, _)| *id != self.id);
        let mut others = others.filter_map(|(_, status)| advice::<WorkerStatus>(&status));
        Ok(others.any(|other| !other.has_left && !other.is_short))
    }

    /// Returns whether a worker that has found no job this many times checks whether to balance.
    pub fn is_round_due(idle: u32) -> bool {
        idle.is_power_of_two() || idle.is_multiple_of(IDLE_A_ROUND)
    }

    /// Balances the load of a run; called by an idle worker. Does nothing if another worker
    /// balances, that is, if there was a round since the last check.
    pub fn balance(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Balancing> {
        let key = Key::of_run(Kind::Round, run);
        let last = broker.look_up(&key)?;
        let last: Option<Round> = last.as_deref().and_then(advice);
        let number = last.as_ref().map_or(0, |last| last.number);
        let seen = std::mem::replace(&mut self.account(run).seen, number);
        if seen != number {
            return Ok(Balancing::Other(last.is_some_and(|last| last.is_over)));
        }
        self.hear(broker, run)?;
        self.account(run).rounds += 1;
        self.report(broker, run, 0)?;
        let round = self.decide(broker, run, number + 1)?;
        self.note_round(broker, run, &round)?;
        Ok(Balancing::Balanced(round))
    }

    /// Tells the other idle workers that a run is over, after the last round of the balancer.
    pub fn close(&mut self, broker: &mut dyn Broker, run: &RunId, last: &Round) -> Result<()> {
        let round = Round {
            number: last.number + 1,
            is_over: true,
            ..last.clone()
        };
        self.note_round(broker, run, &round)
    }

    fn note_round(&mut self, broker: &mut dyn Broker, run: &RunId, round: &Round) -> Result<()> {
        self.account(run).seen = round.number;
        let text = serde_json::to_vec(round).map_err(everett::Error::from)?;
        broker.note(&Key::of_run(Kind::Round, run), &text)
    }

    /// Decides which worker gives how many states to which, and sends the requests. A worker that
    /// has not received the last request is ignored: it may be dead.
    fn decide(&self, broker: &mut dyn Broker, run: &RunId, number: u64) -> Result<Round> {
        let mut asked = BTreeMap::new();
        for (id, request) in broker.list(Kind::Request, run)? {
            asked.extend(advice::<Request>(&request).map(|request| (id, request.round)));
        }
        let mut workers = Vec::new();
        for (id, status) in broker.list(Kind::Worker, run)? {
            let Some(status) = advice::<WorkerStatus>(&status) else {
                continue;
            };
            let has_heard = asked.get(&id).is_none_or(|round| *round == status.heard);
            if has_heard && !status.has_left {
                workers.push((id, status));
            }
        }
        let lengths: Vec<u64> = workers.iter().map(|(_, status)| status.states).collect();
        let (mean, deviation) = spread(&lengths);
        let mut transfers = Vec::new();
        for pair in pairs(&lengths, DELTA) {
            let (from, to) = (&workers[pair.from], &workers[pair.to]);
            let request = Request {
                round: number,
                states: pair.states,
                of: from.1.states,
                to: to.1.name.clone(),
            };
            let text = serde_json::to_vec(&request).map_err(everett::Error::from)?;
            broker.note(&Key::of_job(Kind::Request, run, &from.0), &text)?;
            transfers.push(Transfer {
                from: from.1.name.clone(),
                to: request.to,
                states: pair.states,
            });
        }
        Ok(Round {
            number,
            balancer: self.name.clone(),
            mean,
            deviation,
            transfers,
            is_over: false,
        })
    }
}

/// Merges the coverage of a worker into that of all workers, and returns the result: a mark for
/// each segment. If two workers do this at once, one may overwrite what the other has added; a
/// worker adds missing marks again the next time.
pub fn share_coverage(broker: &mut dyn Broker, run: &RunId, mine: &[u8]) -> Result<Vec<u8>> {
    let key = Key::of_run(Kind::Coverage, run);
    let known = broker.look_up(&key)?.unwrap_or_default();
    let mut all = marks(&known, mine.len());
    let mut is_new = false;
    for (mark, known) in mine.iter().zip(&mut all) {
        is_new |= *mark != 0 && *known == 0;
        *known |= u8::from(*mark != 0);
    }
    if is_new {
        broker.note(&key, &bits(&all))?;
    }
    Ok(all)
}

/// Packs marks into bits.
pub(crate) fn bits(marks: &[u8]) -> Vec<u8> {
    let byte = |marks: &[u8]| {
        let bits = marks.iter().zip(0..);
        bits.fold(0, |byte, (mark, at)| byte | u8::from(*mark != 0) << at)
    };
    marks.chunks(8).map(byte).collect()
}

/// Unpacks this number of marks from untrusted bits.
fn marks(bits: &[u8], count: usize) -> Vec<u8> {
    let mark = |at: usize| bits.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1);
    (0..count).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SharedMemory;

    fn run() -> RunId {
        RunId::parse("ab").unwrap()
    }

    /// Lets a worker balance, and returns its decision if it was the balancer.
    fn balance(worker: &mut Station, broker: &mut dyn Broker) -> Option<Round> {
        match worker.balance(broker, &run()).unwrap() {
            Balancing::Balanced(round) => Some(round),
            Balancing::Other(_) => None,
        }
    }

    #[test]
    fn idle_workers_ask_those_that_have_most() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut one, mut two, mut idle] = ["one", "two", "idle"].map(Station::new);
        assert_eq!(one.check_in(&mut broker, &run(), 10).unwrap(), 0);
        assert_eq!(two.check_in(&mut broker, &run(), 30).unwrap(), 0);
        let round = balance(&mut idle, &mut broker).unwrap();
        let transfer = |from: &str, states| Transfer {
            from: from.to_owned(),
            to: "idle".to_owned(),
            states,
        };
        assert_eq!(round.transfers, [transfer("two", 15)]);
        assert_eq!((round.number, &*round.balancer), (1, "idle"));
        // The worker has not received the request: others are asked meanwhile.
        let round = balance(&mut idle, &mut broker).unwrap();
        assert_eq!(round.transfers, [transfer("one", 5)]);
        // The worker gives away the requested share, once, also of the states that it has got since.
        assert_eq!(two.check_in(&mut broker, &run(), 40).unwrap(), 20);
        assert_eq!(two.check_in(&mut broker, &run(), 25).unwrap(), 0);
        // The worker had more states when it was asked.
        assert_eq!(one.check_in(&mut broker, &run(), 3).unwrap(), 1);
    }

    #[test]
    fn workers_that_are_short_of_memory_have_no_room() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut one, mut two] = ["one", "two"].map(Station::new);
        one.note_memory(&run(), true);
        one.check_in(&mut broker, &run(), 10).unwrap();
        // Nobody else has reported.
        assert!(!one.others_have_room(&mut broker, &run()).unwrap());
        assert!(!two.others_have_room(&mut broker, &run()).unwrap());
        two.check_in(&mut broker, &run(), 10).unwrap();
        assert!(one.others_have_room(&mut broker, &run()).unwrap());
        // One that has nothing left has room again; one that has left has none.
        one.report(&mut broker, &run(), 0).unwrap();
        assert!(two.others_have_room(&mut broker, &run()).unwrap());
        two.leave(&mut broker).unwrap();
        assert!(!one.others_have_room(&mut broker, &run()).unwrap());
    }

    #[test]
    fn there_is_one_balancer() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut busy, mut one, mut two] = ["busy", "one", "two"].map(Station::new);
        busy.check_in(&mut broker, &run(), 100).unwrap();
        assert!(balance(&mut one, &mut broker).is_some());
        assert!(balance(&mut two, &mut broker).is_none());
        assert!(balance(&mut one, &mut broker).is_some());
        assert!(balance(&mut two, &mut broker).is_none());
        // The balancer is dead: nothing has happened since.
        assert!(balance(&mut two, &mut broker).is_some());
    }

    #[test]
    fn who_is_dead_or_has_left_is_asked_no_more() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut dead, mut gone, mut idle] = ["dead", "gone", "idle"].map(Station::new);
        dead.check_in(&mut broker, &run(), 100).unwrap();
        gone.check_in(&mut broker, &run(), 50).unwrap();
        gone.leave(&mut broker).unwrap();
        let round = balance(&mut idle, &mut broker).unwrap();
        assert_eq!(round.transfers.len(), 1);
        let round = balance(&mut idle, &mut broker).unwrap();
        assert_eq!(round.transfers, []);
    }

    /// What a worker does in one run is not counted for another.
    #[test]
    fn runs_have_accounts_of_their_own() {
        let mut broker = SharedMemory::new(1000).connect();
        let other = RunId::parse("cd").unwrap();
        let mut worker = Station::new("one");
        worker.gave(&run(), 7, false);
        worker.waited(&run(), Duration::from_secs(2));
        worker.check_in(&mut broker, &run(), 5).unwrap();
        worker.check_in(&mut broker, &other, 5).unwrap();
        let mut told = |run: &RunId| -> WorkerStatus {
            let all = broker.list(Kind::Worker, run).unwrap();
            serde_json::from_slice(&all[0].1).unwrap()
        };
        let (first, second) = (told(&run()), told(&other));
        assert_eq!((first.given, first.idle_seconds), (7, 2.0));
        assert_eq!((second.given, second.idle_seconds), (0, 0.0));
    }

    #[test]
    fn idle_workers_hear_of_the_end() {
        let mut broker = SharedMemory::new(1000).connect();
        let [mut one, mut two] = ["one", "two"].map(Station::new);
        let last = balance(&mut one, &mut broker).unwrap();
        let answer = two.balance(&mut broker, &run()).unwrap();
        assert_eq!(answer, Balancing::Other(false));
        one.close(&mut broker, &run(), &last).unwrap();
        let answer = two.balance(&mut broker, &run()).unwrap();
        assert_eq!(answer, Balancing::Other(true));
    }

    /// Reports and requests are advice: damaged ones are as if they were not there.
    #[test]
    fn damaged_advice_is_ignored() {
        let mut broker = SharedMemory::new(1000).connect();
        let [mut one, mut idle] = ["one", "idle"].map(Station::new);
        one.check_in(&mut broker, &run(), 10).unwrap();
        for id in [&one.id, &JobId::parse("12").unwrap()] {
            let key = Key::of_job(Kind::Request, &run(), id);
            broker.note(&key, b"no request").unwrap();
        }
        let stranger = Key::of_job(Kind::Worker, &run(), &JobId::parse("34").unwrap());
        broker.note(&stranger, b"no report").unwrap();
        broker
            .note(&Key::of_run(Kind::Round, &run()), b"no round")
            .unwrap();
        let round = balance(&mut idle, &mut broker).unwrap();
        assert_eq!((round.number, round.transfers.len()), (1, 1));
        assert_eq!(one.check_in(&mut broker, &run(), 10).unwrap(), 5);
    }

    #[test]
    fn coverage_is_that_of_all() {
        let mut broker = SharedMemory::new(1000).connect();
        let mut share = |mine: &[u8]| share_coverage(&mut broker, &run(), mine).unwrap();
        let one = [1, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(share(&one), one);
        let two = [0, 0, 1, 0, 0, 0, 0, 1, 1, 0];
        assert_eq!(share(&two), [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(share(&one), [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(marks(&bits(&one), 10), one);
        assert_eq!(marks(b"x", 20).len(), 20);
    }
}
