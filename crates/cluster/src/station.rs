//! A worker's part in the balance of load. A worker that explores reports how many states it has,
//! and hears how many of them it is asked to give away. A worker that has nothing to do is the
//! balancer: it reads what the others reported, decides ([`pairs`]) and asks. So the balancer is on
//! nobody's way: while all have work there is none, and where it dies, another idle worker is.
//! States that are given away are jobs in the queue, which idle workers take.
//!
//! With its reports, a worker merges what it has covered into what all workers have.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::balance::{DELTA, pairs, spread};
use crate::broker::{Broker, JobId, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::hash::Hash;

/// Idle workers that find nothing look whether to balance so often, in times that they asked for a
/// job.
const IDLE_A_ROUND: u32 = 4;

/// How many states a worker of a run has, as it last reported.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// The states that it has to explore.
    pub states: u64,
    /// The round of the last request that it has heard.
    pub heard: u64,
    /// It has left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_left: bool,
    /// States that it gave away because it was asked to.
    pub given: u64,
    /// Rounds in which it was the balancer.
    pub rounds: u64,
    /// How long it has waited for jobs.
    pub idle_seconds: f64,
}

/// What the balancer asks of a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Request {
    round: u64,
    states: u64,
    to: String,
}

/// States that one worker was asked to give away because another has few.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Who is asked.
    pub from: String,
    /// Who has few.
    pub to: String,
    /// How many.
    pub states: u64,
}

/// A decision of the balancer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// Its number.
    pub number: u64,
    /// The worker that was the balancer.
    pub balancer: String,
    /// The mean of the numbers of states.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// What was decided; nothing if all is in balance.
    pub transfers: Vec<Transfer>,
}

/// A worker as the others see it.
pub struct Station {
    name: String,
    id: JobId,
    heard: BTreeMap<RunId, u64>,
    /// The last round that it has seen of a run.
    seen: BTreeMap<RunId, u64>,
    given: u64,
    rounds: u64,
    idle: Duration,
}

impl Station {
    /// A worker that has reported nothing yet.
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

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It has waited for a job.
    pub fn waited(&mut self, time: Duration) {
        self.idle += time;
    }

    /// Reports how many states it has.
    pub fn report(&self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<()> {
        self.note(broker, run, states, false)
    }

    /// Reports that it leaves, to all runs that it has explored jobs of.
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

    /// What it is asked to do and has not heard of.
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

    /// Reports how many states it has while it explores, and returns how many of them it is to give
    /// away. It keeps half of them at least: it may have had more when it was asked.
    pub fn look(&mut self, broker: &mut dyn Broker, run: &RunId, states: u64) -> Result<u64> {
        let asked = self.hear(broker, run)?;
        self.report(broker, run, states)?;
        Ok(asked.map_or(0, |request| request.states.min(states / 2)))
    }

    /// It has given states away.
    pub fn gave(&mut self, states: u64) {
        self.given += states;
    }

    /// Whether a worker that has found no job so many times looks whether to balance.
    pub fn is_round_due(idle: u32) -> bool {
        idle.is_power_of_two() || idle.is_multiple_of(IDLE_A_ROUND)
    }

    /// For a worker that has nothing to do: balances the load of a run, unless another worker does,
    /// which is so if there was a round since it looked the last time. Returns what it decided.
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

    /// Decides who gives how many states to whom, and asks them. Who has not heard the last request
    /// is not asked again, and does not count: it may be dead.
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

/// Merges what a worker has covered into what all workers have, and returns that: a mark for each
/// segment. Where two workers do it at once, one of them may overwrite what the other has added;
/// who misses something adds it again the next time.
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

/// Marks as bits.
pub(crate) fn bits(marks: &[u8]) -> Vec<u8> {
    let byte = |marks: &[u8]| {
        let bits = marks.iter().zip(0..);
        bits.fold(0, |byte, (mark, at)| byte | u8::from(*mark != 0) << at)
    };
    marks.chunks(8).map(byte).collect()
}

/// This number of marks, from untrusted bits.
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
        assert_eq!(one.look(&mut broker, &run(), 10).unwrap(), 0);
        assert_eq!(two.look(&mut broker, &run(), 30).unwrap(), 0);
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        let transfer = |from: &str, states| Transfer {
            from: from.to_owned(),
            to: "idle".to_owned(),
            states,
        };
        assert_eq!(round.transfers, [transfer("two", 15)]);
        assert_eq!((round.number, &*round.balancer), (1, "idle"));
        // It has not heard of it: others are asked meanwhile.
        let round = idle.balance(&mut broker, &run()).unwrap().unwrap();
        assert_eq!(round.transfers, [transfer("one", 5)]);
        // It gives away what it is asked for, once.
        assert_eq!(two.look(&mut broker, &run(), 40).unwrap(), 15);
        assert_eq!(two.look(&mut broker, &run(), 25).unwrap(), 0);
        // It had more when it was asked.
        assert_eq!(one.look(&mut broker, &run(), 3).unwrap(), 1);
    }

    #[test]
    fn there_is_one_balancer() {
        let shared = SharedMemory::new(1000);
        let mut broker = shared.connect();
        let [mut busy, mut one, mut two] = ["busy", "one", "two"].map(Station::new);
        busy.look(&mut broker, &run(), 100).unwrap();
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
        dead.look(&mut broker, &run(), 100).unwrap();
        gone.look(&mut broker, &run(), 50).unwrap();
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
