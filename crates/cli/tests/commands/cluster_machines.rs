//! Three machines, simulated with network namespaces: a broker and two workers. One worker is cut
//! off for longer than its lease, and comes back.

use crate::cluster::{FINDINGS, Process, wait_for};
use crate::common::samples::FORKS;
use crate::common::{build, check_weights, endings, everett, expect, folder, summary};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The address of the broker, as seen by its own machine and by the machines of the workers.
const BROKERS: [&str; 3] = ["127.0.0.1", "10.77.1.1", "10.77.2.1"];
const PORT: &str = "4222";

/// Machines with a link from the first one to each of the others.
struct Machines(String);

impl Machines {
    /// Creates the machines; `None` if that is not permitted.
    fn new() -> Option<Machines> {
        let machines = Machines(format!("everett-{}", std::process::id()));
        for machine in 0..BROKERS.len() {
            if !ip(&["netns", "add", &machines.name(machine)]) {
                return None;
            }
            machines.set(machine, &["link", "set", "lo", "up"]);
        }
        for (machine, broker) in BROKERS.iter().enumerate().skip(1) {
            let (cable, other) = (format!("cable{machine}"), machines.name(machine));
            let pair = ["link", "add", &cable, "type", "veth"];
            let peer = ["peer", "name", "eth0", "netns", &other];
            machines.set(0, &[&pair[..], &peer].concat());
            let own = format!("{broker}/24");
            machines.set(0, &["addr", "add", &own, "dev", &cable]);
            machines.set(0, &["link", "set", &cable, "up"]);
            let own = format!("10.77.{machine}.2/24");
            machines.set(machine, &["addr", "add", &own, "dev", "eth0"]);
            machines.set(machine, &["link", "set", "eth0", "up"]);
        }
        Some(machines)
    }

    fn name(&self, machine: usize) -> String {
        format!("{}-{machine}", self.0)
    }

    fn set(&self, machine: usize, words: &[&str]) {
        let name = self.name(machine);
        let done = ip(&[&["-n", name.as_str()][..], words].concat());
        assert!(done, "ip {words:?}");
    }

    /// Returns a command that runs on a machine.
    fn on(&self, machine: usize, command: &Command) -> Command {
        let mut on = Command::new("ip");
        on.args(["netns", "exec", &self.name(machine)]);
        on.arg(command.get_program()).args(command.get_args());
        on.current_dir(command.get_current_dir().expect("a folder"));
        for (name, value) in command.get_envs() {
            on.env(name, value.unwrap_or_default());
        }
        on
    }

    fn worker(&self, machine: usize, folder: &Path) -> Process {
        let mut worker = everett(folder);
        let url = format!("nats://{}:{PORT}", BROKERS[machine]);
        worker.args(["worker", "--join", &url, "--lease", "2s", "--workers", "1"]);
        worker.args(["--name", &format!("machine{machine}")]);
        let log = fs::File::create(folder.join(format!("{machine}.log"))).expect("a log");
        let mut worker = self.on(machine, &worker);
        Process(worker.stderr(log).spawn().expect("it starts"))
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in 0..BROKERS.len() {
            ip(&["netns", "delete", &self.name(machine)]);
        }
    }
}

fn ip(words: &[&str]) -> bool {
    let output = Command::new("ip").args(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns the jobs that were explored in total and by one worker, and whether the run is over.
fn explored(machines: &Machines, folder: &Path, by: &str) -> Option<(u64, u64, bool)> {
    let mut look = everett(folder);
    let url = format!("nats://{}:{PORT}", BROKERS[0]);
    look.args(["status", "by", "--json", "--broker", &url]);
    let output = machines.on(0, &look).output().expect("it starts");
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    let all = status["jobs"]["explored"].as_u64()?;
    let own = status["workers"][by]["jobs"].as_u64().unwrap_or(0);
    Some((all, own, status["over"] == true))
}

#[test]
fn a_machine_that_was_cut_off_comes_back() {
    let Some(machines) = Machines::new() else {
        // Only the superuser may create network namespaces.
        assert!(!nix::unistd::geteuid().is_root() || !ip(&["netns", "add", "everett-try"]));
        return;
    };
    let folder = folder("cluster-machines");
    build(&folder, "forks", FORKS, &[]);
    let common = ["--all-tests", "--no-confirm", "--batch", "50", "--out"];
    let mut whole = everett(&folder);
    expect(
        whole.arg("run").args(common).args(["whole", "./forks"]),
        FINDINGS,
    );
    let broker = folder.join("broker");
    let mut server = Command::new("nats-server");
    server
        .args(["-a", "0.0.0.0", "-p", PORT, "-js", "-sd"])
        .arg(&broker);
    server.current_dir(&folder);
    let log = fs::File::create(folder.join("broker.log")).expect("a log");
    let mut server = machines.on(0, &server);
    let _server = Process(server.stderr(log).spawn().expect("nats-server starts"));
    let url = format!("nats://{}:{PORT}", BROKERS[0]);
    wait_for("the submission", || {
        let _ = fs::remove_dir_all(folder.join("by"));
        let mut submit = everett(&folder);
        submit.args(["submit", "--broker", &url, "--job-work", "500"]);
        submit.args(common).args(["by", "./forks"]);
        let output = machines.on(0, &submit).output().expect("it starts");
        output.status.success().then_some(())
    });
    // The run has about 140 jobs. If it is over before the machine is cut off, the result is
    // compared anyway.
    let _first = machines.worker(1, &folder);
    let has_jobs = |more_than: u64| {
        let (_, own, is_over) = explored(&machines, &folder, "machine1")?;
        (own > more_than || is_over).then_some(own)
    };
    wait_for("some jobs", || has_jobs(1));
    machines.set(0, &["link", "set", "cable1", "down"]);
    // Longer than the lease: the job is handed out again, to the same worker if it is alone.
    std::thread::sleep(Duration::from_secs(3));
    let own = wait_for("a status", || {
        Some(explored(&machines, &folder, "machine1")?.1)
    });
    machines.set(0, &["link", "set", "cable1", "up"]);
    wait_for("jobs of the machine that is back", || has_jobs(own));
    let _second = machines.worker(2, &folder);
    wait_for("the end", || {
        let (_, _, is_over) = explored(&machines, &folder, "machine1")?;
        is_over.then_some(())
    });
    let mut results = everett(&folder);
    results.args(["results", "by", "--broker", &url]);
    expect(&mut machines.on(0, &results), FINDINGS);
    let (whole, by) = (folder.join("whole"), folder.join("by"));
    assert_eq!(endings(&by), endings(&whole));
    let (whole, by) = (summary(&whole), summary(&by));
    check_weights(&by);
    for field in ["complete", "paths", "weight", "coverage", "tests"] {
        assert_eq!(by[field], whole[field], "{field}");
    }
}
