//! A worker's part in load balancing. A worker that explores reports how many states it has, and
//! receives requests to give some of them away. An idle worker is the balancer: it reads the
//! reports of the others, decides ([`pairs`]) and sends requests. So the balancer costs nothing:
//! while all workers have work there is none, and if it dies, another idle worker takes its place.
//! States that are given away are jobs in the queue, which idle workers take.
//!
//! With its reports, a worker merges its coverage into that of all workers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::balance::{DELTA, pairs, spread};
use crate::broker::{Broker, JobId, Key, Kind, RunId};
use crate::error::{Error, Result};
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
    /// Number of states that the worker gave away on request.
    pub given: u64,
    /// Number of rounds in which the worker was the balancer.
    pub rounds: u64,
    /// The time for which the worker has waited for jobs, in seconds.
    pub idle_seconds: f64,
}

/// A request of the balancer to a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Request {
    round: u64,
    states: u64,
    to: String,
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
}

/// The state of a worker that other workers see.
pub struct Station {
    name: String,
    id: JobId,
    heard: BTreeMap<RunId, u64>,
    /// The last round of each run that the worker has seen.
    seen: BTreeMap<RunId, u64>,
    given: u64,
    rounds: u64,
    idle: Duration,
}

impl Station {
    /// Creates a worker that has reported nothing yet.
    pub fn new(name: &str) -> Station {
        let id = Hash::of_parts(&[b"worker", name.as_bytes()]).to_string();
        Station {
            name: name.to_owned(),
            id: JobId::parse(&id[..32]).unwrap_or_else(|| JobId::of(name, Hash::of(b""))),
            heard: BTreeMap::new(),
            seen: BTreeMap::new(),
            given: 0,
            rounds: 0,
            idle: Duration::ZERO,
        }
    }

    /// Returns the name of the worker.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds time that the worker has waited for a job.
    pub fn waited(&mut self, time: Duration) {
        self.idle += time;
    }

    /// Reports the number of states of the worker.
    pub fn report(&self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<()> {
        self.note(broker, run, states, false)
    }

    /// Reports that the worker leaves, to all runs of which it has explored jobs.
    pub fn leave(&self, broker: &mut dyn Broker) -> Result<()> {
        let mut runs = self.heard.keys();
        runs.try_for_each(|run| self.note(broker, run, 0, true))
    }

    fn note(
        &self,
        broker: &mut dyn Broker,
        run: &RunId,
        states: u64,
        has_left: bool,
    ) -> Result<()> {
        let status = WorkerStatus {
            name: self.name.clone(),
            states,
            heard: self.heard.get(run).copied().unwrap_or(0),
            has_left,
            given: self.given,
            rounds: self.rounds,
            idle_seconds: self.idle.as_secs_f64(),
        };
        let status = serde_json::to_vec(&status).map_err(everett::Error::from)?;
        broker.note(&Key::of_job(Kind::Worker, run, &self.id), &status)
    }

    /// Returns the current request to this worker, if it is new.
    fn hear(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Option<Request>> {
        let request = broker.look_up(&Key::of_job(Kind::Request, run, &self.id))?;
        let request = request.as_deref().map(serde_json::from_slice::<Request>);
        let request = request.transpose().map_err(Error::damaged)?;
        let heard = self.heard.entry(run.clone()).or_default();
        let request = request.filter(|request| request.round != *heard);
        if let Some(request) = &request {
            *heard = request.round;
        }
        Ok(request)
    }

    /// Reports the number of states while the worker explores, and returns how many of them it must
    /// give away. It keeps at least half of them: it may have had more when it was asked.
    pub fn check_in(&mut self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<u64> {
        let asked = self.hear(broker, run)?;
        self.report(broker, run, states)?;
        Ok(asked.map_or(0, |request| request.states.min(states / 2)))
    }

    /// Counts states that the worker has given away.
    pub fn gave(&mut self, states: u64) {
        self.given += states;
    }

    /// Returns whether a worker that has found no job this many times checks whether to balance.
    pub fn is_round_due(idle: u32) -> bool {
        idle.is_power_of_two() || idle.is_multiple_of(IDLE_A_ROUND)
    }

    /// Balances the load of a run; called by an idle worker. Does nothing if another worker
    /// balances, that is, if there was a round since the last check. Returns the decision.
    pub fn balance(&mut self, broker: &mut dyn Broker, run: &RunId) -> Result<Option<Round>> {
        let key = Key::of_run(Kind::Round, run);
        let last = broker.look_up(&key)?;
        let last = last.as_deref().map(serde_json::from_slice::<Round>);
        let number = last
            .transpose()
            .map_err(Error::damaged)?
            .map_or(0, |last| last.number);
        let seen = self.seen.insert(run.clone(), number).unwrap_or(0);
        if seen != number {
            return Ok(None);
        }
        self.hear(broker, run)?;
        self.rounds += 1;
        self.report(broker, run, 0)?;
        let round = self.decide(broker, run, number + 1)?;
        self.seen.insert(run.clone(), round.number);
        let text = serde_json::to_vec(&round).map_err(everett::Error::from)?;
        broker.note(&key, &text)?;
        Ok(Some(round))
    }

    /// Decides which worker gives how many states to which, and sends the requests. A worker that
    /// has not received the last request is ignored: it may be dead.
    fn decide(&self, broker: &mut dyn Broker, run: &RunId, number: u64) -> Result<Round> {
        let mut asked = BTreeMap::new();
        for (id, request) in broker.list(Kind::Request, run)? {
            let request: Request = serde_json::from_slice(&request).map_err(Error::damaged)?;
            asked.insert(id, request.round);
        }
        let mut workers = Vec::new();
        for (id, status) in broker.list(Kind::Worker, run)? {
            let status: WorkerStatus = serde_json::from_slice(&status).map_err(Error::damaged)?;
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

    #[test]
    fn idle_workers_ask_those_that_have_most() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut one, mut two, mut idle] = ["one", "two", "idle"].map(Station::new);
        assert_eq!(one.check_in(&mut broker, &run(), 10).unwrap(), 0);
        assert_eq!(two.check_in(&mut broker, &run(), 30).unwrap(), 0);
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        let transfer = |from: &str, states| Transfer {
            from: from.to_owned(),
            to: "idle".to_owned(),
            states,
        };
        assert_eq!(round.transfers, [transfer("two", 15)]);
        assert_eq!((round.number, &*round.balancer), (1, "idle"));
        // The worker has not received the request: others are asked meanwhile.
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        assert_eq!(round.transfers, [transfer("one", 5)]);
        // The worker gives away the requested states, once.
        assert_eq!(two.check_in(&mut broker, &run(), 40).unwrap(), 15);
        assert_eq!(two.check_in(&mut broker, &run(), 25).unwrap(), 0);
        // The worker had more states when it was asked.
        assert_eq!(one.check_in(&mut broker, &run(), 3).unwrap(), 1);
    }

    #[test]
    fn there_is_one_balancer() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut busy, mut one, mut two] = ["busy", "one", "two"].map(Station::new);
        busy.check_in(&mut broker, &run(), 100).unwrap();
        assert!(one.balance(&mut broker, &run()).unwrap().is_some());
        assert!(two.balance(&mut broker, &run()).unwrap().is_none());
        assert!(one.balance(&mut broker, &run()).unwrap().is_some());
        assert!(two.balance(&mut broker, &run()).unwrap().is_none());
        // The balancer is dead: nothing has happened since.
        assert!(two.balance(&mut broker, &run()).unwrap().is_some());
    }

    #[test]
    fn who_is_dead_or_has_left_is_asked_no_more() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut dead, mut gone, mut idle] = ["dead", "gone", "idle"].map(Station::new);
        dead.check_in(&mut broker, &run(), 100).unwrap();
        gone.check_in(&mut broker, &run(), 50).unwrap();
        gone.leave(&mut broker).unwrap();
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        assert_eq!(round.transfers.len(), 1);
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        assert_eq!(round.transfers, []);
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
