//! Random worlds: hosts that send, wait, branch on symbolic data and lose messages in random order.
//! Every state mapping must reach the same worlds. Each world is followed in a simulation of one
//! world, and replayed on native programs, and must end as recorded.

use crate::cluster::{Trouble, simulate, submitted};
use crate::common::generator::Numbers;
use crate::common::{
    build, check_weights, everett, expect, files, folder, is_at_its_end, mappings, searchers,
    stop_at, summary,
};
use everett::{Clock, MemoryAccount, ResumeSpec, RunSpec, Session, Silent, Summary};
use everett_cluster::{SharedMemory, results};
use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A host. Its first argument is a list of instructions: letters, some with a host. Its exit code is
/// what it has learned.
const NODE: &str = r#"
#include <arpa/inet.h>
#include <everett.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PORT = 7000 };

static unsigned known, last;

static void send_to(int fd, char host, unsigned char byte) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    to.sin_addr.s_addr = htonl(0x0a000001u + (unsigned)(host - '0'));
    sendto(fd, &byte, 1, 0, (struct sockaddr *)&to, sizeof to);
}

int main(int argc, char **argv) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct timeval wait = {.tv_usec = 5000};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (argc < 2 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0)
        return 2;
    for (const char *at = argv[1]; *at; at++) {
        unsigned char byte = 0;
        switch (*at) {
        case 's': /* sends what it knows */
            send_to(fd, *++at, (unsigned char)known);
            break;
        case 'y': /* sends what it got last */
            send_to(fd, *++at, (unsigned char)last);
            break;
        case 'r': /* receives */
            if (recv(fd, &byte, 1, 0) == 1) {
                last = byte;
                known = known * 3 + 1;
            } else {
                known = known * 3 + 2;
            }
            break;
        case 'm': /* gets something symbolic */
            everett_make_symbolic(&byte, 1, "byte");
            last = byte;
            break;
        case 'c': /* decides by it */
            if (last > 100)
                known += 7;
            break;
        case 'w':
            usleep(1000);
            break;
        }
    }
    return (int)(known % 100);
}
"#;

const HOSTS: usize = 3;

/// Maximum numbers of faults; the first two apply to the world.
const BOUNDS: [&str; 5] = [
    "most = 1",
    "most = 2",
    "per = \"causal\"",
    "most = 2\nper = \"causal\"",
    "per = \"host\"",
];

/// Returns a random scenario; in some, hosts start when the previous ones wait.
fn scenario(seed: u64) -> String {
    let random = &mut Numbers(seed);
    let mut text = String::from("[defaults]\nprogram = \"./node\"\nstart = \"0ms\"\n");
    for host in 0..HOSTS {
        let mut script = String::new();
        for _ in 0..3 + random.below(4) {
            let other = (host + 1 + random.below(HOSTS - 1)) % HOSTS;
            match random.below(8) {
                0 | 1 => script.push_str(&format!("s{other}")),
                2 => script.push_str(&format!("my{other}")),
                3 => script.push_str("mc"),
                4 => script.push('w'),
                _ => script.push_str("rc"),
            }
        }
        text.push_str(&format!("[host.h{host}]\nargs = [\"{script}\"]\n"));
    }
    let faults = [
        "kind = \"loss\"",
        "kind = \"duplication\"\nafter = \"2ms\"",
        "kind = \"delay\"\nby = \"3ms\"",
        "kind = \"reordering\"",
        "kind = \"late\"",
        "kind = \"partition\"\nbetween = [\"h0\"]\nheal = \"4ms\"",
        "kind = \"corruption\"",
        "kind = \"automark\"",
        "kind = \"crash\"\nhosts = [\"h1\"]\non = \"message\"",
        "kind = \"restart\"\nhosts = [\"h2\"]\non = \"call\"\ncalls = [\"recvfrom\"]",
        "kind = \"pause\"\nhosts = [\"h0\"]\non = \"message\"\nfor = \"4ms\"",
    ];
    if random.below(4) == 0 {
        text.push_str("[search]\norders = 1\n");
    }
    for number in 0..1 + random.below(2) {
        let fault = random.pick(&faults);
        let bound = random.pick(&BOUNDS);
        text.push_str(&format!("[fault.f{number}]\n{fault}\n{bound}\n"));
    }
    if seed.is_multiple_of(2) {
        let orders = "kind = \"permutation\"\nwindow = 2";
        text = text.replace("kind = \"reordering\"", orders);
    }
    let starting = if seed.is_multiple_of(4) { HOSTS } else { 0 };
    for host in 1..starting {
        if random.below(3) > 0 {
            let table = format!("[host.h{host}]\n");
            text = text.replace(&table, &format!("{table}start = \"blocked\"\n"));
        }
    }
    text
}

/// Returns the choices in the worlds of a run and how hosts end in them, with the number of equal
/// worlds.
fn worlds(out: &Path) -> BTreeMap<String, usize> {
    let tests = files(&out.join("tests")).into_values();
    let told = tests.map(|bytes| {
        let world: serde_json::Value = serde_json::from_slice(&bytes).expect("a world");
        let hosts = world["hosts"].as_object().expect("hosts").iter();
        let told = hosts
            .map(|(name, trace)| format!("{name}: {} {}", trace["choices"], trace["end"]["exit"]));
        told.collect::<Vec<_>>().join("\n")
    });
    let mut counts = BTreeMap::new();
    for world in told {
        *counts.entry(world).or_default() += 1;
    }
    counts
}

/// Creates a folder with the program of the hosts.
fn with_node(name: &str) -> PathBuf {
    let folder = folder(name);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let include = format!("-I{}", include.display());
    build(&folder, "node", NODE, &["-g", "-O1", &include]);
    folder
}

/// Checks that no world of a run has more faults than the scenario allows.
fn check_bounds(out: &Path, scenario: &str) {
    let bounds = scenario.split("[fault.").skip(1).filter_map(|fault| {
        let (name, keys) = fault.split_once("]\n")?;
        let most = keys.lines().find_map(|line| line.strip_prefix("most = "))?;
        (!keys.contains("per = ")).then(|| (name, most.parse::<usize>().expect("a number")))
    });
    for (name, most) in bounds {
        for (file, bytes) in files(&out.join("tests")) {
            let world: serde_json::Value = serde_json::from_slice(&bytes).expect("a world");
            let hosts = world["hosts"].as_object().expect("hosts").values();
            let choices = hosts.filter_map(|trace| trace["choices"].as_array());
            let is_it = |choice: &&serde_json::Value| {
                let names = choice["site"]
                    .as_str()
                    .and_then(|site| site.rsplit(':').next());
                let picked = choice["picked"].as_u64().expect("a number") as usize;
                let mut names = names.into_iter().flat_map(|names| names.split(','));
                picked > 0 && names.nth(picked - 1) == Some(name)
            };
            let happens = choices.flatten().filter(is_it).count();
            assert!(
                happens <= most,
                "{name} happens {happens} times in {file}\n{scenario}"
            );
        }
    }
}

/// Returns the seeds. EVERETT_RANDOM_SEEDS=100 requests more, EVERETT_RANDOM_SEEDS=59-59 a range.
fn seeds() -> RangeInclusive<u64> {
    let asked = std::env::var("EVERETT_RANDOM_SEEDS").unwrap_or("8".to_owned());
    let number = |text: &str| text.parse().expect("a number");
    match asked.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => 1..=number(&asked),
    }
}

#[test]
fn all_mappings_reach_the_same_worlds_and_each_happens_again() {
    let folder = with_node("random-worlds");
    // All of them reach the same worlds.
    let searchers: Vec<&str> = searchers().chain(["fewest-faults,random-path"]).collect();
    for seed in seeds() {
        let text = scenario(seed);
        fs::write(folder.join("world.toml"), &text).expect("it can be written");
        let mut reached: Option<BTreeMap<String, usize>> = None;
        let searcher = searchers[seed as usize % searchers.len()];
        let mut turns = mappings().cycle().skip(seed as usize);
        for way in mappings().chain([searcher]) {
            let mapping = match way == searcher {
                true => turns.next().expect("a mapping"),
                false => way,
            };
            let out = folder.join(format!("out-{seed}-{way}"));
            let mut run = everett(&folder);
            run.args([
                "run",
                "-q",
                "--all-tests",
                "--max-time",
                "1000s",
                "--mapping",
                mapping,
            ]);
            if way == searcher {
                run.args(["--search", searcher]);
            }
            expect(run.arg("--out").arg(&out).arg("world.toml"), 0);
            let summary = summary(&out);
            assert_eq!(
                summary["complete"], true,
                "seed {seed}, {way}: {summary:#}\n{text}"
            );
            check_weights(&summary);
            check_bounds(&out, &text);
            let found = worlds(&out);
            match &reached {
                None => {
                    expect(everett(&folder).arg("follow").arg(&out), 0);
                    expect(everett(&folder).arg("replay").arg(&out), 0);
                    reached = Some(found);
                }
                Some(first) => {
                    let mut differing = first.iter().filter(|one| found.get(one.0) != Some(one.1));
                    let seen = (differing.next(), found.len());
                    let same = (None, first.len());
                    assert_eq!(seen, same, "seed {seed}: cob and {way} differ\n{text}");
                }
            }
        }
    }
}

/// A memory account that is nearly full at each query until memory is released. It stops the run
/// after some number of queries.
#[derive(Debug)]
struct Full {
    is_freed: AtomicBool,
    asked: AtomicU64,
    most: u64,
    stop: Arc<AtomicBool>,
}

impl MemoryAccount for Full {
    fn used(&self) -> u64 {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.stop.store(true, Ordering::Relaxed);
        }
        match self.is_freed.swap(false, Ordering::Relaxed) {
            true => 0,
            false => MOST_MEMORY / 10 * 9,
        }
    }

    fn release(&self) {
        self.is_freed.store(true, Ordering::Relaxed);
    }
}

const MOST_MEMORY: u64 = 1 << 30;

/// Creates a session whose memory is always nearly full, and which stops after this many queries.
fn full(most: u64) -> Session {
    let session = Session::new();
    let memory = Full {
        is_freed: AtomicBool::new(false),
        asked: AtomicU64::new(0),
        most,
        stop: session.stop.clone(),
    };
    Session {
        memory: Arc::new(memory),
        ..session
    }
}

/// Explores a scenario, and resumes it as often as it stops.
fn explore(
    file: &Path,
    out: &Path,
    mapping: &str,
    workers: u64,
    session: impl Fn() -> Session,
) -> (Summary, u32) {
    let spec = RunSpec {
        mapping: Some(mapping.to_owned()),
        workers: Some(workers),
        batch: Some(50),
        all_tests: true,
        no_confirm: true,
        no_shrink: true,
        max_memory: Some(MOST_MEMORY),
        out: Some(out.to_owned()),
        ..RunSpec::new([file])
    };
    let mut stops = 0;
    let mut result = everett::explore(&spec, &session(), &mut Silent);
    loop {
        let run = result.unwrap_or_else(|error| panic!("{}: {error}", out.display()));
        if run.summary.stopped != "asked" {
            return (run.summary, stops);
        }
        stops += 1;
        result = everett::resume(&ResumeSpec::new(out), &session(), &mut Silent);
    }
}

#[test]
fn worlds_that_are_spilled_stopped_and_resumed_all_the_time_are_the_same() {
    let folder = with_node("spilled-worlds");
    let mut stopped = 0;
    for seed in seeds() {
        let text = scenario(seed);
        let file = folder.join("world.toml");
        fs::write(&file, &text).expect("it can be written");
        for mapping in mappings() {
            let mut run = |name: &str, workers: u64, session: &dyn Fn() -> Session| {
                let out = folder.join(format!("{name}-{seed}-{mapping}"));
                let (told, stops) = explore(&file, &out, mapping, workers, session);
                stopped += stops;
                let summary = summary(&out);
                let state = (told.complete, &told.warnings);
                assert_eq!(
                    state,
                    (true, &Vec::new()),
                    "seed {seed}: {summary:#}\n{text}"
                );
                check_weights(&summary);
                // Copy on write copies more if dstates are completed one after the other.
                let states = (mapping != "cow").then(|| summary["states_total"].to_string());
                (states, worlds(&out))
            };
            let plain = run("plain", 1, &Session::new);
            let spilled = run("spilled", 1, &|| full(u64::MAX));
            assert!(plain == spilled, "seed {seed}, {mapping}: spilled\n{text}");
            let resumed = run("resumed", 1, &|| full(100 + seed));
            assert!(plain == resumed, "seed {seed}, {mapping}: resumed\n{text}");
            // States in dstates of several workers are counted by each.
            let ways = [
                ("team", None),
                ("full", Some(u64::MAX)),
                ("asked", Some(300)),
            ];
            for (name, most) in ways.into_iter().filter(|_| seed % 3 == 0) {
                let session = || most.map_or_else(Session::new, full);
                let (_, worlds) = run(name, 3, &session);
                assert!(plain.1 == worlds, "seed {seed}, {mapping}: {name}\n{text}");
            }
        }
    }
    assert!(stopped > 0, "no run was stopped");
}

#[test]
fn worlds_of_killed_and_resumed_runs_are_the_same() {
    let folder = with_node("killed-worlds");
    for (seed, mapping) in seeds().zip(mappings().cycle()).take(6) {
        let text = scenario(seed);
        fs::write(folder.join("world.toml"), &text).expect("it can be written");
        let whole = folder.join(format!("whole-{seed}"));
        let out = folder.join(format!("killed-{seed}"));
        let run = |out: &Path, workers: &str| {
            let mut run = everett(&folder);
            run.args(["run", "--all-tests", "--no-confirm", "--checkpoint", "0s"]);
            run.args(["--workers", workers, "--batch", "50"]);
            run.args(["--mapping", mapping, "--out"]);
            run.arg(out);
            run.arg("world.toml");
            run
        };
        expect(&mut run(&whole, "1"), 0);
        let all = worlds(&whole);
        let tests: usize = all.values().sum();
        let workers = if seed % 2 == 0 { "1" } else { "3" };
        let mut command = run(&out, workers);
        for part in [0, 1, 3, 5, 7] {
            let enough = (tests * part / 8).max(1);
            stop_at(&mut command, "KILL", &out.join("tests"), enough);
            command = everett(&folder);
            command.arg("resume").arg(&out);
        }
        if !is_at_its_end(&out) {
            expect(&mut command, 0);
        }
        assert!(worlds(&out) == all, "seed {seed}, {mapping}\n{text}");
        let count = |out: &Path, key: &str| summary(out)[key].to_string();
        let is_alone = workers == "1";
        let keys = ["complete", "worlds", "tests", "states_total"];
        for key in keys
            .into_iter()
            .filter(|key| is_alone || *key != "states_total")
        {
            assert_eq!(
                count(&out, key),
                count(&whole, key),
                "seed {seed}: {key}\n{text}"
            );
        }
    }
}

/// Random worlds on a cluster, with workers that die and jobs that are late or duplicated.
#[test]
fn worlds_on_a_cluster_are_the_same() {
    let folder = with_node("clustered-worlds");
    for (seed, mapping) in seeds().zip(mappings().cycle()).take(6) {
        let text = scenario(seed);
        let file = folder.join("world.toml");
        fs::write(&file, &text).expect("it can be written");
        let plain = folder.join(format!("plain-{seed}"));
        explore(&file, &plain, mapping, 1, Session::new);
        let spec = RunSpec {
            mapping: Some(mapping.to_owned()),
            batch: Some(50),
            all_tests: true,
            no_confirm: true,
            no_shrink: true,
            out: Some(folder.join(format!("by-{seed}"))),
            ..RunSpec::new([file])
        };
        let shared = SharedMemory::new(40);
        let (run, dir) = submitted(&mut shared.connect(), &spec);
        let trouble = Trouble {
            kills: 3,
            disorder: true,
        };
        let (status, _) = simulate(&shared, &run, 3, seed, trouble);
        assert!(status.is_complete(), "seed {seed}\n{text}");
        let mut broker = shared.connect();
        results(&mut broker, &dir, &Session::new(), &mut Silent).expect("results");
        check_weights(&summary(&dir));
        assert!(
            worlds(&dir) == worlds(&plain),
            "seed {seed}, {mapping}\n{text}"
        );
    }
}

/// A run that is stopped by its time limit, wherever that is, and resumed loses no world. In this
/// scenario a host that has ended still answers that nobody listens.
#[test]
fn worlds_of_runs_that_were_stopped_at_any_time_and_resumed_are_the_same() {
    let folder = with_node("late-worlds");
    let file = folder.join("world.toml");
    fs::write(&file, scenario(6)).expect("it can be written");
    for mapping in mappings() {
        let spec = |name: &str, max_time: Option<Duration>| RunSpec {
            mapping: Some(mapping.to_owned()),
            all_tests: true,
            no_confirm: true,
            max_time,
            out: Some(folder.join(format!("{name}-{mapping}"))),
            ..RunSpec::new([&file])
        };
        let looks: &'static AtomicU64 = Box::leak(Box::default());
        let session = Session {
            clock: Clock::Looks(looks),
            ..Session::new()
        };
        everett::explore(&spec("plain", None), &session, &mut Silent).expect("it runs");
        let all = looks.load(Ordering::Relaxed);
        let plain = worlds(&folder.join(format!("plain-{mapping}")));
        for at in (1..all).step_by(29) {
            let spec = spec("stopped", Some(Duration::from_millis(at)));
            let out = spec.out.clone().expect("a folder");
            looks.store(0, Ordering::Relaxed);
            let stopped = everett::explore(&spec, &session, &mut Silent).expect("it runs");
            if stopped.summary.stopped != "finished" {
                let resumed = ResumeSpec::new(&out);
                everett::resume(&resumed, &Session::new(), &mut Silent).expect("it runs");
            }
            assert!(plain == worlds(&out), "{mapping}, stopped at {at}");
            fs::remove_dir_all(&out).expect("it can be removed");
        }
    }
}
