//! Clusters: the cost of broker operations on this machine, two workers over NATS against one, and
//! a simulation of up to thousands of workers with these costs.

mod kills;
mod plot;
mod sim;
mod traffic;

use anyhow::{Context, Result, bail};
use everett_cluster::{
    Broker, JobId, Key, Kind, NatsBroker, Purpose, RunId, Secrets, Status, Submitted, status,
};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use self::plot::{Curve, Panel};
use self::sim::{Config, Course, simulate};
use self::traffic::Costs;
use crate::{Bench, succeed, times};

/// Programs with sizes for which a run takes several seconds.
const PROGRAMS: [(&str, &str); 2] = [
    ("02_branch_tree", "-DBITS=18"),
    ("07_expr_parser", "-DSIZE=9"),
];
/// Number of measurements of a run.
const RUNS: usize = 2;
const OPERATIONS: u32 = 1000;
/// The costs of operations that simulations assume: those of [`Bench::broker_costs`] on a quiet
/// machine with two processors.
const COSTS: Costs = Costs {
    latency: 386e-6,
    read: 100e-6,
    write: 80e-6,
    record: 8e-6,
};
const SIZES: [usize; 8] = [1, 10, 100, 200, 500, 1000, 2000, 4000];

/// A server or a worker, which is interrupted when this value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let id = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).status();
        let _ = self.0.wait();
    }
}

/// Returns the CPU time of a process, in seconds.
fn processor_time(id: u32) -> f64 {
    times(&id.to_string(), [11, 12])
}

/// Returns the process id of the server that `everett cluster up` has started.
fn child_of(id: u32) -> Result<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
    let child = children.split_whitespace().next().context("no server")?;
    Ok(child.parse()?)
}

/// The measurements of a run with one or two workers.
struct Explored {
    seconds: f64,
    /// CPU time of all workers, and of the one that needed most, in seconds.
    processor: f64,
    longest: f64,
    status: Status,
}

impl Bench {
    pub fn cluster(&self, text: &mut String) -> Result<()> {
        self.broker_costs(text)?;
        self.workers_over_nats(text)
    }

    fn server(&self, name: &str) -> Result<(Process, String)> {
        let mut up = Command::new(&self.everett);
        up.args(["cluster", "up", "--dir"])
            .arg(self.work.join(name));
        up.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut up = Process(up.spawn()?);
        let mut url = String::new();
        let lines = up.0.stdout.take().context("no output")?;
        BufReader::new(lines).read_line(&mut url)?;
        Ok((up, url.trim().to_owned()))
    }

    /// Measures the cost of operations of a broker on NATS: the time that they take, and the CPU
    /// time of the server.
    fn broker_costs(&self, text: &mut String) -> Result<()> {
        let (up, url) = self.server("costs")?;
        let server = child_of(up.0.id())?;
        let mut broker =
            NatsBroker::connect(&url, &Secrets::default(), None, Purpose::Explorations)?;
        let run = RunId::parse("ab").context("a name")?;
        let key = |number: u32| -> Result<Key> {
            let job = JobId::parse(&format!("{number:08x}")).context("a name")?;
            Ok(Key::of_job(Kind::Worker, &run, &job))
        };
        let value = [b'x'; 150];
        type Operation<'o> = &'o mut dyn FnMut(&mut NatsBroker, u32) -> Result<()>;
        let mut timed = |count: u32, operation: Operation<'_>| -> Result<(f64, f64)> {
            let (before, start) = (processor_time(server), Instant::now());
            for number in 0..count {
                operation(&mut broker, number)?;
            }
            let all = f64::from(count);
            let busy = processor_time(server) - before;
            Ok((start.elapsed().as_secs_f64() / all, busy / all))
        };
        let write = timed(OPERATIONS, &mut |broker, number| {
            Ok(broker.note(&key(number)?, &value)?)
        })?;
        let read = timed(OPERATIONS, &mut |broker, number| {
            broker.look_up(&key(number)?)?;
            Ok(())
        })?;
        let list = timed(10, &mut |broker, _| {
            let found = broker.list(Kind::Worker, &run)?.len();
            match found == OPERATIONS as usize {
                true => Ok(()),
                false => bail!("{found} records"),
            }
        })?;
        let of_each = |all: f64| all / f64::from(OPERATIONS);
        writeln!(
            text,
            "## What a broker costs\n\n\
             A NATS server on this machine, {OPERATIONS} operations one after another; its own processor time is what \
             limits many workers.\n\n\
             | operation | from request to answer, µs | processor time of the server, µs |\n|---|---|---|\n\
             | store a record | {:.0} | {:.0} |\n| read a record | {:.0} | {:.0} |\n\
             | one of {OPERATIONS} records of a list | {:.0} | {:.0} |\n",
            1e6 * write.0,
            1e6 * write.1,
            1e6 * read.0,
            1e6 * read.1,
            1e6 * of_each(list.0),
            1e6 * of_each(list.1),
        )?;
        Ok(())
    }

    fn workers_over_nats(&self, text: &mut String) -> Result<()> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(
            text,
            "## Two workers over NATS\n\n\
             The best of {RUNS} runs each, in turns, without tests, until the last job is recorded; load of the machine \
             at the beginning: {load}. Where others use the machine, seconds say little; processor time does: \
             \"balanced\" is the processor time of one worker by that of the busier one of two, which is how much \
             faster two are with processors to themselves if they never wait for jobs. Work is instructions and 1,000 \
             for each fork. Columns: seconds of one and of two workers; processor seconds of one, of both, and of the \
             busier of both; states that moved, and in how many transfers; replay as a part of instructions and of \
             work; bytes a moved state, of its trace and of all that was sent for it.\n\n\
             | program | paths | seconds | faster | processor | balanced | moved | transfers | replay | bytes |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        )?;
        for (program, size) in PROGRAMS {
            let source = self.root.join(format!("benches/programs/{program}.c"));
            let mut build = Command::new(&self.everett);
            let built = build
                .args(["cc", "-O0", size, "-o"])
                .arg(self.work.join(program));
            succeed(built.arg(source))?;
            let (mut one, mut two) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                one.push(self.over_nats(program, 1)?);
                two.push(self.over_nats(program, 2)?);
            }
            let best = |runs: &[Explored], of: fn(&Explored) -> f64| {
                runs.iter().map(of).fold(f64::MAX, f64::min)
            };
            let seconds = [best(&one, |it| it.seconds), best(&two, |it| it.seconds)];
            let (alone, longest) = (best(&one, |it| it.longest), best(&two, |it| it.longest));
            let status = &two[0].status;
            let moved = status.states_moved.max(1) as f64;
            let rest = status.bytes - one[0].status.bytes.min(status.bytes);
            let work = status.work.instructions + 1000 * status.work.forks + status.replayed;
            writeln!(
                text,
                "| {program} {size} | {} | {:.2}, {:.2} | {:.2} | {alone:.2}, {:.2}, {longest:.2} | {:.2} | {} | {} | \
                 {:.1}, {:.2} % | {:.0}, {:.0} |",
                status.work.paths,
                seconds[0],
                seconds[1],
                seconds[0] / seconds[1],
                best(&two, |it| it.processor),
                alone / longest,
                status.states_moved,
                status.transfers,
                100.0 * status.replay_share(),
                100.0 * status.replayed as f64 / work as f64,
                status.bytes_moved as f64 / moved,
                rest as f64 / moved,
            )?;
        }
        writeln!(text)?;
        Ok(())
    }

    fn over_nats(&self, program: &str, workers: usize) -> Result<Explored> {
        let number = self.number();
        let (_up, url) = self.server(&format!("broker-{number}"))?;
        let out = self.work.join(format!("out-{number}"));
        let mut submit = Command::new(&self.everett);
        submit.args([
            "submit",
            "--no-tests",
            "--no-confirm",
            "--broker",
            &url,
            "--out",
        ]);
        succeed(submit.arg(&out).arg(self.work.join(program)))?;
        let start = Instant::now();
        let mut processes = Vec::new();
        for name in 0..workers {
            let mut worker = Command::new(&self.everett);
            let name = name.to_string();
            worker.args([
                "worker",
                "--quiet",
                "--workers",
                "1",
                "--join",
                &url,
                "--name",
                &name,
            ]);
            processes.push(Process(worker.spawn()?));
        }
        let status = wait_for(&url, &out)?;
        let seconds = start.elapsed().as_secs_f64();
        if !status.is_complete() {
            bail!("{program} is not complete");
        }
        let times = processes.iter().map(|it| processor_time(it.0.id()));
        let times: Vec<f64> = times.collect();
        Ok(Explored {
            seconds,
            processor: times.iter().sum(),
            longest: times.iter().copied().fold(0.0, f64::max),
            status,
        })
    }

    /// Simulates clusters. Time is virtual: the results are the same on every machine.
    pub fn simulation(&self, text: &mut String) -> Result<()> {
        let all = |workers: usize| Config {
            workers,
            // More than the 74,503 paths of half a second each on memcached (Cloud9): 1,000 workers
            // need about two minutes.
            paths: 1_000_000,
            step_seconds: 0.05,
            check_seconds: 0.5,
            // A third of a second for 60,000 states in the development profile.
            record_seconds: 5e-6,
            replay_speed: 20.0,
            costs: COSTS,
            balance_until: f64::MAX,
            deaths: None,
            seed: 7,
        };
        writeln!(text, "{}\n\n{HEAD}", SIMULATION.trim())?;
        let (mut thousand, mut limits) = (None, (0, usize::MAX));
        let mut scaling = Vec::new();
        for workers in SIZES {
            let course = simulate(&all(workers))?;
            let row = row(&workers.to_string(), workers, &course);
            eprintln!("{row}");
            writeln!(text, "{row}")?;
            let efficiency = 100.0 * course.efficiency(workers);
            scaling.push((workers as f64, course.seconds, efficiency));
            let busy = course.traffic.iter().map(|line| line.busy).sum::<f64>() / course.seconds;
            let useful = course.efficiency(workers);
            limits.0 = limits.0.max(if useful >= GOOD { workers } else { 0 });
            limits.1 = limits
                .1
                .min(if busy >= GOOD { workers } else { usize::MAX });
            if workers == 1000 {
                thousand = Some(course);
            }
        }
        let thousand = thousand.context("a thousand workers")?;
        // With fewer workers and paths, a rest that few workers explore takes long.
        let few = Config {
            paths: 200_000,
            ..all(FEW)
        };
        let off = without_balancing(&few, text)?;
        let panels = panels(&scaling, &thousand, &off);
        let path = self.root.join("docs/cluster-simulation.svg");
        std::fs::write(path, plot::svg(&panels))?;
        for panel in panels {
            let path = self.root.join("benches/curves");
            std::fs::write(path.join(format!("{}.csv", panel.name)), panel.csv())?;
        }
        let broker = match limits.1 {
            usize::MAX => "is never so busy in the mean".to_owned(),
            workers => format!("is busy for as much of the time from {workers} on"),
        };
        writeln!(
            text,
            "\nUp to {} workers, {:.0} % of the time or more is useful work; the broker {broker}. {}",
            limits.0,
            100.0 * GOOD,
            CONCLUSION.trim()
        )?;
        Ok(())
    }
}

/// Simulates a cluster whose balancing is switched off at various moments, and whose workers die.
/// Returns the courses, with their names.
fn without_balancing(few: &Config, text: &mut String) -> Result<Vec<(String, Course)>> {
    writeln!(
        text,
        "\n{FEW} workers and 200,000 paths, with load balancing switched off at various moments, and with deaths:\n\n{HEAD}"
    )?;
    let mut off = vec![("never off".to_owned(), simulate(few)?)];
    let whole = off[0].1.seconds;
    for part in [0.05, 0.25, 0.5, 0.75] {
        let config = Config {
            balance_until: part * whole,
            ..few.clone()
        };
        off.push((format!("off at {:.0} s", part * whole), simulate(&config)?));
    }
    for (name, course) in &off {
        writeln!(text, "{}", row(name, FEW, course))?;
    }
    let with = Config {
        deaths: Some((0.5 * whole, 0.1)),
        ..few.clone()
    };
    let name = format!("{} die at {:.0} s", FEW / 10, 0.5 * whole);
    writeln!(text, "{}", row(&name, FEW, &simulate(&with)?))?;
    Ok(off)
}

/// Number of workers of the simulations in which balancing is switched off.
const FEW: usize = 200;
/// The fraction of the time above which a cluster counts as used, and a broker as busy.
const GOOD: f64 = 0.8;

const HEAD: &str = "| workers | seconds | faster | useful | waiting | replay | transfers | moved | messages | KiB/s | broker |\n\
|---|---|---|---|---|---|---|---|---|---|---|";

const SIMULATION: &str = "## Simulated\n\n\
A search of 1,000,000 paths with steps (forks and ends of paths) of 50 ms in the mean, exponentially distributed; \
forks divide paths unevenly. Workers look every 0.5 s of work, more often at the beginning of a job, and repeat steps \
20 times faster than they explore them; they repeat all steps of each state that moves, while real ones do once what \
states have in common. To record a state that stays when a job is divided takes 5 µs. The broker has the costs \
that `benches/run cluster` measured on a quiet machine with two processors: a request takes 386 µs, of which the \
server is busy for 100 µs to read a record, 80 µs to store one, and 8 µs for each record of a list, on one processor. All that decides is the code of real workers: balancer, division of jobs, queue, leases, accounts; \
the weights sum to 1 in each row. Time is virtual, and results do not depend on the machine. \
Columns: how many times faster than one worker; exploration (\"useful work\"), waiting for the broker and replay as \
parts of all time of all workers; the part of all states that moves in a second; messages a second, \
in the mean and at most; KiB a second in the mean; how busy the broker is, in the mean and at most.\n";

const CONCLUSION: &str = "\
Beyond that, two things take the time. The broker serves one request after another: each worker reports twice a \
second of work, and at the beginning and at the end those that wait ask for jobs ten times a second; reports that \
wait delay the requests of the balancer, too. And a round pairs each worker with one other, so that the number of \
those that have work doubles at each look at best, and falls as slowly at the end: of a run of a minute or two, \
that is a tenth. Several brokers, each for a part of the workers, would help against the first; longer runs help \
against the second. The curves are in `docs/cluster-simulation.svg`, their data in `benches/curves/cluster-*.csv`; \
they are of the simulation. \"Times faster\" compares with all exploration on one worker without a broker.";

fn row(name: &str, workers: usize, course: &Course) -> String {
    let most = |of: fn(&traffic::Line) -> f64| course.traffic.iter().map(of).fold(0.0, f64::max);
    let sum = |of: fn(&traffic::Line) -> f64| course.traffic.iter().map(of).sum::<f64>();
    let all = course.seconds * workers as f64;
    format!(
        "| {name} | {:.0} | {:.1} | {:.1} % | {:.1} % | {:.2} % | {} | {:.1} % | {:.0}, {:.0} | {:.0} | {:.0} %, {:.0} % |",
        course.seconds,
        course.useful / course.seconds,
        100.0 * course.efficiency(workers),
        100.0 * course.waiting / all,
        100.0 * course.replay / all,
        course.status.transfers,
        100.0 * course.moved_share(),
        sum(|line| line.messages as f64) / course.seconds,
        most(|line| line.messages as f64),
        sum(|line| line.bytes as f64) / course.seconds / 1024.0,
        100.0 * sum(|line| line.busy) / course.seconds,
        100.0 * most(|line| line.busy),
    )
}

/// Waits for the end of a run.
fn wait_for(url: &str, out: &Path) -> Result<Status> {
    let run = Submitted::of(out)?.run;
    let mut broker = NatsBroker::connect(url, &Secrets::default(), None, Purpose::Explorations)?;
    loop {
        let status = status(&mut broker, &run)?;
        if status.is_over() {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the curves. `scaling` has the seconds and the useful part of the time by workers.
fn panels(scaling: &[(f64, f64, f64)], course: &Course, off: &[(String, Course)]) -> Vec<Panel> {
    let seconds = |of: &dyn Fn(usize) -> f64, count: usize| -> Vec<(f64, f64)> {
        (0..count).map(|at| (at as f64, of(at))).collect()
    };
    let useful = |course: &Course| {
        let of = |at: usize| 100.0 * course.samples[at].useful / FEW as f64;
        seconds(&of, course.samples.len())
    };
    let moved = |at: usize| {
        let sample = course.samples[at];
        100.0 * sample.moved as f64 / sample.states.max(1.0)
    };
    let balance = |at: usize| {
        let sample = course.samples[at];
        sample.deviation / (sample.states / 1000.0).max(0.001)
    };
    let messages = |at: usize| course.traffic[at].messages as f64;
    let curve = |name: &str, points: Vec<(f64, f64)>| Curve {
        name: name.to_owned(),
        points,
    };
    let panel = |name: &'static str, title: &str, curves: Vec<Curve>| Panel {
        name,
        title: title.to_owned(),
        x: "s",
        is_log: false,
        curves,
    };
    let by_workers = |name: &'static str, title: &str, is_log: bool, curve: Curve| Panel {
        x: "workers",
        is_log,
        ..panel(name, title, vec![curve])
    };
    let samples = course.samples.len();
    vec![
        by_workers(
            "cluster-seconds",
            "seconds to the end, by number of workers (both logarithmic)",
            true,
            curve("seconds", scaling.iter().map(|it| (it.0, it.1)).collect()),
        ),
        by_workers(
            "cluster-useful",
            "useful work, % of all time, by number of workers",
            false,
            curve("useful", scaling.iter().map(|it| (it.0, it.2)).collect()),
        ),
        panel(
            "cluster-balancing-off",
            "useful work each second, % of 200 workers, balancing switched off",
            off.iter()
                .map(|(name, course)| curve(name, useful(course)))
                .collect(),
        ),
        panel(
            "cluster-moved",
            "states moved each second, % of all, 1,000 workers",
            vec![curve("moved", seconds(&moved, samples))],
        ),
        panel(
            "cluster-deviation",
            "deviation of states a worker, in means, 1,000 workers",
            vec![curve("deviation", seconds(&balance, samples))],
        ),
        panel(
            "cluster-messages",
            "messages a second at the broker, 1,000 workers",
            vec![curve("messages", seconds(&messages, course.traffic.len()))],
        ),
    ]
}
