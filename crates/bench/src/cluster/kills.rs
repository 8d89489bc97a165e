//! A real server that two workers explore, which are killed again and again.

use anyhow::{Result, bail};
use everett_cluster::{
    Error, NatsBroker, Purpose, RunId, Secrets, Status, Submitted, paths, status,
};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Bench, children_time, succeed};

/// The server: its script, and what is symbolic.
const SCRIPT: &str = "memcached-codes.script";
const KILLS: u32 = 100;
/// Number of requests that a busy server may leave without an answer, one after another.
const MOST_TRIES: u32 = 20;
/// Two workers are killed up to this time after one of them has begun to explore, in milliseconds.
const MOST_LATER: u64 = 100;
/// The work of a job, in instructions: so much that workers which are killed all the time do not come
/// to the end before all kills.
const JOB_WORK: &str = "40000";

/// A worker, which is killed when this value is dropped.
struct Doomed {
    name: String,
    process: Child,
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a run came to.
struct Course {
    status: Status,
    paths: BTreeSet<u64>,
    seconds: f64,
    /// Processor time of all processes of the run.
    processor: f64,
}

impl Bench {
    /// Compares a run whose workers are killed with one whose workers are not.
    pub fn kills(&self, text: &mut String) -> Result<()> {
        let work = self.prepare("memcached", Some(SCRIPT))?;
        writeln!(
            text,
            "## Workers that are killed\n\n\
             memcached, four commands of the binary protocol with any operation and sizes \
             (`benches/servers/{SCRIPT}`), explored by two workers over NATS. Both are killed (SIGKILL) at a random \
             moment of the {MOST_LATER} ms after one of them has begun to explore, and others take their places; \
             leases last 1 s. The weights of a run sum to 1, and its paths, by digests of their answers, are those of \
             the run without kills.\n\n\
             | kills | paths | jobs | handed out again | seconds | processor seconds |\n|---|---|---|---|---|---|"
        )?;
        let mut calm: Option<Course> = None;
        for kills in [0, KILLS] {
            let course = self.with_kills(&work, kills)?;
            if let Some(calm) = &calm
                && calm.paths != course.paths
            {
                bail!("{kills} kills change the paths");
            }
            let status = &course.status;
            let row = format!(
                "| {kills} | {} | {} | {} | {:.0} | {:.0} |",
                status.work.paths,
                status.jobs,
                status.redelivered,
                course.seconds,
                course.processor
            );
            eprintln!("{row}");
            writeln!(text, "{row}")?;
            calm.get_or_insert(course);
        }
        Ok(())
    }

    fn with_kills(&self, work: &Path, kills: u32) -> Result<Course> {
        let (before, start) = (children_time(), Instant::now());
        let number = self.number();
        let (up, url) = self.server(&format!("broker-{number}"))?;
        let out = self.work.join(format!("out-{number}"));
        let mut submit = Command::new(&self.everett);
        submit
            .current_dir(work)
            .args(["submit", "--quiet", "--no-tests", "--no-confirm"]);
        submit
            .args(["--job-work", JOB_WORK, "--broker", &url, "--out"])
            .arg(&out);
        submit.args([
            "--files",
            "files",
            "--program",
            "./memcached",
            "./driver",
            SCRIPT,
        ]);
        succeed(&mut submit)?;
        let run = Submitted::of(&out)?.run;
        let mut broker =
            NatsBroker::connect(&url, &Secrets::default(), None, Purpose::Explorations)?;
        let mut workers = self.pair(&url, 0)?;
        let mut random = 1u64;
        for killed in (0..kills).step_by(workers.len()) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            wait_for_work(&mut broker, &run, &workers, killed)?;
            sleep(Duration::from_millis((random >> 33) % MOST_LATER));
            // Those before are killed, and then others take their places.
            drop(workers);
            workers = self.pair(&url, killed + 1)?;
        }
        let status = wait_for_end(&mut broker, &run)?;
        if !status.is_complete() {
            bail!("the run is not complete: {status}");
        }
        let paths = paths(&mut broker, &run)?;
        let seconds = start.elapsed().as_secs_f64();
        drop((workers, up));
        Ok(Course {
            status,
            paths,
            seconds,
            processor: children_time() - before,
        })
    }

    /// Starts two workers.
    fn pair(&self, url: &str, number: u32) -> Result<[Doomed; 2]> {
        Ok([
            self.doomed(url, format!("a{number}"))?,
            self.doomed(url, format!("b{number}"))?,
        ])
    }

    fn doomed(&self, url: &str, name: String) -> Result<Doomed> {
        let mut worker = Command::new(&self.everett);
        worker.args(["worker", "--quiet", "--workers", "1", "--lease", "1s"]);
        worker
            .args(["--join", url, "--name", &name])
            .stderr(Stdio::null());
        let process = worker.spawn()?;
        Ok(Doomed { name, process })
    }
}

/// Waits until one of these workers explores something.
fn wait_for_work(
    broker: &mut NatsBroker,
    run: &RunId,
    workers: &[Doomed],
    killed: u32,
) -> Result<()> {
    loop {
        let status = patient_status(broker, run)?;
        let mut busy = status.loads.iter().filter(|load| load.states > 0);
        if busy.any(|load| workers.iter().any(|worker| worker.name == load.name)) {
            return Ok(());
        }
        if status.is_over() {
            bail!("the run has ended after {killed} kills: it is too short");
        }
        sleep(Duration::from_millis(50));
    }
}

/// Returns the status of a run; a server that is busy may not answer at once.
fn patient_status(broker: &mut NatsBroker, run: &RunId) -> Result<Status> {
    for _ in 0..MOST_TRIES {
        match status(broker, run) {
            Err(Error::Broker(_)) => {}
            status => return Ok(status?),
        }
    }
    bail!("the broker does not answer")
}

/// Waits for the end of a run.
fn wait_for_end(broker: &mut NatsBroker, run: &RunId) -> Result<Status> {
    loop {
        let status = patient_status(broker, run)?;
        if status.is_over() {
            return Ok(status);
        }
        sleep(Duration::from_millis(200));
    }
}
