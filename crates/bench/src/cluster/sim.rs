//! A cluster in virtual time. The search tree and the costs are invented or measured; all decisions
//! are made by the code of real workers: balancer and requests (`Station`), checks
//! (`CheckCounter`), division of jobs and their outcomes (`hand_out`, `outcome_of`), queue and
//! leases (`SharedMemory`), and the status (`status`). Equal configurations give equal results.

use anyhow::{Context, Result, ensure};
use everett::{
    JobResult, Pending, States, Trace, TraceInput, Weight, root_state, share_of, weight_of,
};
use everett_cluster::{
    Broker, CheckCounter, Explored, Hash, Key, Kind, Lease, Outcome, PROTOCOL, RunId, SharedMemory,
    Station, Status, Ticket, WORK, hand_out, outcome_of, outcome_of_split, pack_states,
    settle_again, status, unpack_states, work_of_checks,
};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::traffic::{Costs, Line, SharedTraffic, Traffic};

/// Duration of a lease, which is extended three times in that period.
const LEASE_SECONDS: f64 = 30.0;
/// The time for which a worker without a job waits before it asks again, as real ones do.
const PAUSE_SECONDS: f64 = 0.1;
/// A step explores one of this many newest states.
const NEWEST: usize = 64;
/// Resolution of the broker's clock.
const TICKS_A_SECOND: f64 = 1000.0;

/// The configuration of a simulation.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of workers.
    pub workers: usize,
    /// Number of paths of the search.
    pub paths: u64,
    /// Mean duration of a step in seconds: a path has one step of its own, and each fork is one.
    pub step_seconds: f64,
    /// Time of exploration between two checks, in seconds.
    pub check_seconds: f64,
    /// The time that it takes to record a state that stays when a job is divided, in seconds.
    pub record_seconds: f64,
    /// The ratio of the speed of rematerialising states to that of exploring them.
    pub replay_speed: f64,
    /// Costs of operations of the broker.
    pub costs: Costs,
    /// The time after which balancing is switched off, in seconds.
    pub balance_until: f64,
    /// The fraction of the workers that die, and the time at which they do.
    pub deaths: Option<(f64, f64)>,
    /// The seed of random numbers.
    pub seed: u64,
}

/// The course of a simulation.
pub struct Course {
    /// Time until everything is explored, in seconds.
    pub seconds: f64,
    /// Total time of exploration of all workers, and of rematerialising states, in seconds.
    pub useful: f64,
    pub replay: f64,
    /// Total time for which workers waited for the broker, in seconds.
    pub waiting: f64,
    /// The traffic of each second.
    pub traffic: Vec<Line>,
    /// Samples of each second: time of exploration, number of states, states moved, mean and
    /// deviation of the states of workers.
    pub samples: Vec<Sample>,
    /// The status at the end.
    pub status: Status,
}

/// A sample of one second.
#[derive(Copy, Clone, Debug, Default)]
pub struct Sample {
    pub useful: f64,
    pub states: f64,
    pub moved: u64,
    pub deviation: f64,
}

impl Course {
    /// Returns the time of exploration as a fraction of the total time of all workers.
    pub fn efficiency(&self, workers: usize) -> f64 {
        self.useful / (self.seconds * workers as f64)
    }

    /// Returns the fraction of states that moved per second, as a mean over all seconds with
    /// states.
    pub fn moved_share(&self) -> f64 {
        let shares = self.samples.iter().filter(|it| it.states > 0.0);
        let shares: Vec<f64> = shares.map(|it| it.moved as f64 / it.states).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}

/// Returns a pseudo-random number that a seed determines.
fn mix(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn unit(number: u64) -> f64 {
    (mix(number) >> 11) as f64 / (1u64 << 53) as f64
}

/// A state: the root of a subtree with this number of paths, which is known only after its
/// exploration.
#[derive(Copy, Clone)]
struct TreeNode {
    seed: u64,
    paths: u64,
    depth: u32,
}

impl TreeNode {
    /// Returns the duration of the state's step in seconds: exponentially distributed, like that of
    /// queries.
    fn seconds(&self, config: &Config) -> f64 {
        -config.step_seconds * (1.0 - unit(self.seed ^ 1)).ln()
    }

    /// Returns the children after a fork, which divides the paths unevenly.
    fn children(&self) -> [TreeNode; 2] {
        let part = unit(self.seed ^ 2).powi(2);
        let first = 1 + ((self.paths - 2) as f64 * part) as u64;
        let child = |number: u64, paths| TreeNode {
            seed: mix(self.seed ^ (number << 32)),
            paths,
            depth: self.depth + 1,
        };
        [child(3, first), child(4, self.paths - first)]
    }

    fn weight(&self) -> Weight {
        Weight {
            halvings: self.depth,
        }
    }

    /// Returns the state in the form in which it is sent. A real trace has inputs of the path; this
    /// one has the data of the tree.
    fn trace(&self) -> Trace {
        let bytes = [self.seed.to_le_bytes(), self.paths.to_le_bytes()].concat();
        let name = "stdin".into();
        Trace {
            inputs: [TraceInput { name, bytes }].into_iter().collect(),
            pending: Some(Pending {
                answered: u64::from(self.depth),
                halvings: self.depth,
                depth: self.depth,
                ..Pending::default()
            }),
            ..Trace::default()
        }
    }

    fn of(trace: &Trace, config: &Config) -> TreeNode {
        let root = TreeNode {
            seed: config.seed,
            paths: config.paths,
            depth: 0,
        };
        let input = trace.inputs.iter().next();
        let Some((bytes, pending)) = input.map(|it| &it.bytes).zip(trace.pending.as_ref()) else {
            return root;
        };
        let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        TreeNode {
            seed: number(0),
            paths: number(8),
            depth: pending.halvings,
        }
    }
}

/// The current activity of a worker.
enum Activity {
    /// The worker waits, and has asked for a job this many times.
    Waits(u32),
    Explores(Box<Exploring>),
    Dead,
}

struct Exploring {
    lease: Lease,
    extended: f64,
    checks: CheckCounter,
    /// Work before the next check: less at the beginning of a job.
    pace: u64,
    states: Vec<TreeNode>,
    done: JobResult,
    /// Time of exploration that is not recorded yet, in seconds.
    seconds: f64,
    random: u64,
}

struct Simulated {
    station: Station,
    activity: Activity,
}

/// The simulated cluster.
struct Cluster<'c> {
    config: &'c Config,
    run: RunId,
    shared: SharedMemory,
    traffic: SharedTraffic,
    broker: Box<dyn Broker>,
    workers: Vec<Simulated>,
    /// The time of the next action of each worker.
    events: BinaryHeap<Reverse<(u64, usize)>>,
    course: Course,
    /// Whether a job has ended since the last check whether all have.
    has_ended: bool,
}

fn weigh(states: &States) -> Option<everett::WeightSum> {
    match states {
        States::Program(states) => weight_of(states),
        States::Worlds(_) => None,
    }
}

fn traces(nodes: &[TreeNode]) -> States {
    States::Program(nodes.iter().map(TreeNode::trace).collect())
}

/// Simulates a run to its end.
pub fn simulate(config: &Config) -> Result<Course> {
    let shared = SharedMemory::with_clock((LEASE_SECONDS * TICKS_A_SECOND) as u64);
    let traffic = SharedTraffic::new(config.costs);
    let mut broker = Traffic::connect(&traffic, shared.connect());
    let run = RunId::parse("ab").context("a name")?;
    let manifest = json!({
        "protocol": PROTOCOL,
        "build": { "version": "", "digest": "" },
        "is_world": false,
        "limits": {},
    });
    broker.record(
        &Key::of_run(Kind::Run, &run),
        manifest.to_string().as_bytes(),
    )?;
    let states = pack_states(&States::Program(vec![root_state()]))?;
    let weight = everett::WeightSum::one();
    let ticket = Ticket::new(&run, run.as_str(), Hash::of(&states), weight);
    broker.put(ticket.states, &states)?;
    broker.publish(&ticket)?;
    let workers = (0..config.workers).map(|number| Simulated {
        station: Station::new(&format!("{number:05}")),
        activity: Activity::Waits(0),
    });
    let mut cluster = Cluster {
        config,
        run,
        shared,
        traffic,
        broker,
        workers: workers.collect(),
        events: BinaryHeap::new(),
        course: Course {
            seconds: 0.0,
            useful: 0.0,
            replay: 0.0,
            waiting: 0.0,
            traffic: Vec::new(),
            samples: Vec::new(),
            status: Status::default(),
        },
        has_ended: false,
    };
    for worker in 0..config.workers {
        // Workers join within a second.
        let at = unit(config.seed ^ (worker as u64) << 8);
        cluster.at(if worker == 0 { 0.0 } else { at }, worker);
    }
    cluster.run()
}

impl Cluster<'_> {
    fn at(&mut self, seconds: f64, worker: usize) {
        self.events.push(Reverse(((seconds * 1e9) as u64, worker)));
    }

    fn run(mut self) -> Result<Course> {
        let (mut second, mut deaths) = (0, self.config.deaths);
        while let Some(Reverse((at, worker))) = self.events.pop() {
            let now = at as f64 / 1e9;
            self.shared.advance_to((now * TICKS_A_SECOND) as u64);
            while second as f64 <= now {
                self.sample(second);
                second += 1;
            }
            if let Some((when, part)) = deaths.filter(|(when, _)| now >= *when) {
                deaths = None;
                self.kill(part, when);
            }
            self.traffic.get().begin(now);
            let worked = match &self.workers[worker].activity {
                Activity::Dead => continue,
                Activity::Waits(idle) => {
                    let idle = *idle;
                    self.wait(worker, idle)?
                }
                Activity::Explores(_) => self.explore(worker)?,
            };
            let after = self.traffic.get().now;
            self.course.waiting += after - now;
            if self.is_over()? {
                self.course.seconds = after;
                break;
            }
            self.at(after + worked, worker);
        }
        let status = &self.course.status;
        ensure!(status.is_complete(), "the accounts are not complete");
        let paths = status.work.paths;
        ensure!(paths == self.config.paths, "{paths} paths");
        self.course.traffic = std::mem::take(&mut self.traffic.get().lines);
        Ok(self.course)
    }

    /// Returns whether everything is explored, by the status, which is checked when no worker
    /// explores.
    fn is_over(&mut self) -> Result<bool> {
        let mut workers = self.workers.iter();
        let is_quiet =
            self.has_ended && workers.all(|it| !matches!(it.activity, Activity::Explores(_)));
        if !is_quiet {
            return Ok(false);
        }
        self.has_ended = false;
        self.course.status = status(&mut self.shared.connect(), &self.run)?;
        Ok(self.course.status.is_over())
    }

    fn sample(&mut self, second: usize) {
        let lengths = self.workers.iter().map(|worker| match &worker.activity {
            Activity::Explores(exploring) => exploring.states.len() as u64,
            Activity::Waits(_) | Activity::Dead => 0,
        });
        let lengths: Vec<u64> = lengths.collect();
        let (mean, deviation) = everett_cluster::spread(&lengths);
        let sample = self.sample_of(second);
        sample.states = mean * lengths.len() as f64;
        sample.deviation = deviation;
    }

    fn sample_of(&mut self, second: usize) -> &mut Sample {
        let samples = &mut self.course.samples;
        if samples.len() <= second {
            samples.resize(second + 1, Sample::default());
        }
        &mut samples[second]
    }

    fn kill(&mut self, part: f64, when: f64) {
        let count = (self.workers.len() as f64 * part) as usize;
        // Work since the last record is explored again by others.
        for number in 0..count {
            let at = number * self.workers.len() / count.max(1);
            let worker = &mut self.workers[at];
            if let Activity::Explores(exploring) = &worker.activity {
                self.course.useful -= exploring.seconds;
            }
            worker.activity = Activity::Dead;
        }
        self.sample_of(when as usize);
    }

    /// Lets a worker without a job ask for one; it balances the load periodically. Returns the time
    /// until its next action.
    fn wait(&mut self, number: usize, idle: u32) -> Result<f64> {
        let now = self.traffic.get().now;
        let worker = &mut self.workers[number];
        if let Some(lease) = self.broker.lease()? {
            return self.take(number, lease);
        }
        let idle = idle + 1;
        worker.activity = Activity::Waits(idle);
        if Station::is_round_due(idle) && now < self.config.balance_until {
            worker.station.balance(&mut *self.broker, &self.run)?;
        }
        Ok(PAUSE_SECONDS)
    }

    fn take(&mut self, number: usize, lease: Lease) -> Result<f64> {
        let (config, run) = (self.config, &lease.ticket.run);
        self.broker.look_up(&Key::of_run(Kind::Cancelled, run))?;
        let key = Key::of_job(Kind::Outcome, run, &lease.ticket.job);
        if let Some(recorded) = self.broker.look_up(&key)? {
            let outcome = Outcome::read(&recorded)?;
            settle_again(&mut *self.broker, &lease, &outcome)?;
            self.workers[number].activity = Activity::Waits(0);
            return Ok(0.0);
        }
        let states = self.broker.get(lease.ticket.states)?;
        let States::Program(states) = unpack_states(&states.context("states")?)? else {
            anyhow::bail!("states of a program");
        };
        let key = Key::of_job(Kind::Lease, run, &lease.ticket.job);
        self.broker.note(&key, b"{}")?;
        let states: Vec<TreeNode> = states.iter().map(|it| TreeNode::of(it, config)).collect();
        let depth: u64 = states.iter().map(|state| u64::from(state.depth)).sum();
        let replay = depth as f64 * config.step_seconds / config.replay_speed;
        self.course.replay += replay;
        let exploring = Exploring {
            extended: self.traffic.get().now,
            random: states.first().map_or(0, |state| state.seed),
            lease,
            checks: CheckCounter::default(),
            pace: work_of_checks(WORK).0,
            states,
            done: JobResult::default(),
            seconds: 0.0,
        };
        self.workers[number].activity = Activity::Explores(Box::new(exploring));
        Ok(replay + self.advance(number))
    }

    /// Explores until the next check. Returns the time that this takes.
    fn advance(&mut self, number: usize) -> f64 {
        let (config, mut seconds) = (self.config, 0.0);
        let Activity::Explores(exploring) = &mut self.workers[number].activity else {
            return 0.0;
        };
        let work = work_of_checks(WORK).1;
        let until = config.check_seconds * exploring.pace as f64 / work as f64;
        exploring.pace = work.min(2 * exploring.pace);
        let statistics = &mut exploring.done.part.statistics;
        while seconds < until && !exploring.states.is_empty() {
            exploring.random = mix(exploring.random);
            // The newest states are selected, as by searchers that go deep: the frontier stays
            // small.
            let newest = exploring.states.len().min(NEWEST);
            let at = exploring.states.len() - 1 - exploring.random as usize % newest;
            let node = exploring.states.swap_remove(at);
            seconds += node.seconds(config);
            statistics.instructions += 1;
            if node.paths == 1 {
                statistics.finished.add(node.weight());
                statistics.paths_completed += 1;
            } else {
                statistics.forks += 1;
                exploring.states.extend(node.children());
            }
        }
        exploring.seconds += seconds;
        self.course.useful += seconds;
        let now = self.traffic.get().now;
        // The exploration may continue in the next seconds.
        let (mut at, end) = (now, now + seconds);
        while at < end {
            let part = (at.floor() + 1.0).min(end) - at;
            self.sample_of(at as usize).useful += part;
            at += part.max(1e-9);
        }
        seconds
    }

    /// Performs the check of a worker after it has explored for a while. Returns the time until its
    /// next action.
    fn explore(&mut self, number: usize) -> Result<f64> {
        let worker = &mut self.workers[number];
        let Activity::Explores(exploring) = &mut worker.activity else {
            return Ok(0.0);
        };
        let now = self.traffic.get().now;
        if now - exploring.extended > LEASE_SECONDS / 3.0 {
            exploring.extended = now;
            self.broker.extend(&exploring.lease)?;
        }
        if exploring.states.is_empty() {
            return self.finish(number);
        }
        exploring.checks.begin();
        let states = exploring.states.len() as u64;
        let asked = worker
            .station
            .check_in(&mut *self.broker, &self.run, states)?;
        if exploring.checks.ends_piece() {
            self.broker
                .look_up(&Key::of_run(Kind::Coverage, &self.run))?;
            self.broker
                .look_up(&Key::of_run(Kind::Cancelled, &self.run))?;
        }
        let work = work_of_checks(WORK).1;
        let recording = match exploring.checks.divide(asked, states, work) {
            Some(given) => self.split(number, given as usize)?,
            None => 0.0,
        };
        Ok(recording + self.advance(number))
    }

    /// Gives states away as the engine does: the heaviest, up to their share of the weight. Returns
    /// the time that it takes to record those that stay.
    fn split(&mut self, number: usize, asked: usize) -> Result<f64> {
        let worker = &mut self.workers[number];
        let Activity::Explores(exploring) = &mut worker.activity else {
            return Ok(0.0);
        };
        exploring.states.sort_by_key(|state| state.depth);
        let given = share_of(exploring.states.iter().map(|state| state.depth), asked);
        let given: Vec<TreeNode> = exploring.states.drain(..given).collect();
        let mut result = std::mem::take(&mut exploring.done);
        let seconds = std::mem::take(&mut exploring.seconds);
        let recording = self.config.record_seconds * exploring.states.len() as f64;
        result.left = vec![traces(&exploring.states)];
        if !given.is_empty() {
            result.left.push(traces(&given));
        }
        let (name, ticket) = (worker.station.name(), &exploring.lease.ticket);
        let explored: Explored = outcome_of_split(name, ticket, &weigh, result)?;
        worker.station.gave(&self.run, given.len() as u64, false);
        let is_ours = hand_out(&mut *self.broker, &mut exploring.lease, &explored)?;
        if !is_ours {
            // Another worker has explored the job, too.
            self.course.useful -= seconds;
            worker.activity = Activity::Waits(0);
            return Ok(0.0);
        }
        let now = self.traffic.get().now;
        self.sample_of(now as usize).moved += given.len() as u64;
        Ok(recording)
    }

    fn finish(&mut self, number: usize) -> Result<f64> {
        let worker = &mut self.workers[number];
        let activity = std::mem::replace(&mut worker.activity, Activity::Waits(0));
        let Activity::Explores(exploring) = activity else {
            return Ok(0.0);
        };
        let (name, ticket) = (worker.station.name(), &exploring.lease.ticket);
        let explored = outcome_of(name, ticket, &weigh, exploring.done)?;
        self.has_ended = true;
        let outcome = self.broker.finish(&exploring.lease, &explored)?;
        if outcome != explored.outcome {
            self.course.useful -= exploring.seconds;
        }
        worker.station.report(&mut *self.broker, &self.run, 0)?;
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(workers: usize) -> Config {
        Config {
            workers,
            paths: 4000,
            step_seconds: 0.05,
            check_seconds: 0.5,
            record_seconds: 5e-6,
            replay_speed: 20.0,
            costs: Costs {
                latency: 0.0005,
                read: 0.00005,
                write: 0.0002,
                record: 0.00001,
            },
            balance_until: f64::MAX,
            deaths: None,
            seed: 1,
        }
    }

    #[test]
    fn the_same_configuration_gives_the_same_course() {
        let [one, two] = [(), ()].map(|()| simulate(&config(20)).unwrap());
        assert_eq!(one.seconds.to_bits(), two.seconds.to_bits());
        assert_eq!(one.status.jobs, two.status.jobs);
        assert_eq!(one.status.work.paths, 4000);
        let (jobs, transfers) = (one.status.jobs, one.status.transfers);
        assert!(jobs > transfers && transfers > 20, "{jobs} {transfers}");
    }

    /// All work is done, whatever the number of workers. Twenty take far less time than one,
    /// because of the balancer.
    #[test]
    fn balance_makes_it_faster() {
        let seconds = |config: &Config| simulate(config).unwrap().seconds;
        let (one, twenty) = (seconds(&config(1)), seconds(&config(20)));
        assert!(one > 12.0 * twenty, "{one} {twenty}");
        let without = Config {
            balance_until: 2.0,
            ..config(20)
        };
        assert!(seconds(&without) > 1.5 * twenty);
    }

    #[test]
    fn who_dies_costs_time_and_nothing_else() {
        let with = Config {
            deaths: Some((5.0, 0.5)),
            ..config(20)
        };
        let course = simulate(&with).unwrap();
        assert!(course.status.is_complete());
        assert!(course.seconds > LEASE_SECONDS);
    }
}
