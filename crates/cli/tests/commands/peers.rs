//! Live peers: hosts are explored while they talk to real programs, which are not explored.

use crate::cluster::{Process, wait_for};
use crate::common::{
    check_weights, count, everett, expect, files, folder, mappings, summary, text,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The programs of the tests, built once.
fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = folder("peers_programs");
        let example = root().join("examples/live-peer/order.c");
        let sources = ["answerer", "clerks", "store", "talk", "threads", "web"]
            .map(|name| root().join(format!("tests/peers/{name}.c")));
        for source in sources.into_iter().chain([example]) {
            let name = source.file_stem().expect("a name").to_owned();
            let mut command = everett(&folder);
            command.args(["cc", "-g", "-O1", "-Wall", "-pthread", "-I"]);
            command.arg(root().join("include")).arg("-o").arg(name);
            expect(command.arg(source), 0);
        }
        folder
    })
}

/// Creates a folder with the programs and a scenario.
fn world(name: &str, scenario: &str) -> PathBuf {
    let folder = folder(&format!("peers_{name}"));
    for path in fs::read_dir(programs()).expect("programs").flatten() {
        fs::copy(path.path(), folder.join(path.file_name())).expect("copied");
    }
    fs::copy(root().join("tests/peers/peer.py"), folder.join("peer.py")).expect("copied");
    fs::write(folder.join("world.toml"), scenario).expect("written");
    folder
}

/// Returns a scenario with one host that talks to a peer of a kind.
fn talking(words: &[&str], kind: &str, keys: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let protocol = if kind == "udp" { "udp" } else { "tcp" };
    // A slow machine does not count as silence, unless silence is expected.
    let patience = if keys.contains("patience") {
        ""
    } else {
        "patience = \"20s\""
    };
    format!(
        "[host.guest]\nprogram = \"./talk\"\nargs = [\"10.0.0.9\", \"7\", \"{protocol}\", {}]\n\
         [peer.db]\ncommand = [\"python3\", \"peer.py\", \"{kind}\", \"{{port}}\"]\nlisten = \"127.0.0.1:0\"\n\
         address = \"10.0.0.9\"\nport = 7\nprotocol = \"{protocol}\"\n{patience}\n{keys}\n",
        words.join(", ")
    )
}

fn run(folder: &Path, out: &str, more: &[&str]) -> Command {
    let mut run = everett(folder);
    run.args(["run", "--all-tests", "--out", out]);
    run.args(more).arg("world.toml");
    run
}

/// Explores with the live peer, checks the exit code, and returns the summary.
fn explored(folder: &Path, more: &[&str], code: i32) -> Value {
    let more = [&["--allow-live"], more].concat();
    expect(&mut run(folder, "out", &more), code);
    let summary = summary(&folder.join("out"));
    check_weights(&summary);
    summary
}

fn peer(summary: &Value, figure: &str) -> u64 {
    count(summary, &format!("/peers/0/{figure}"))
}

/// Returns what the guest prints in each world when the bitcode follows it.
fn printed(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in fs::read_dir(folder.join("out/tests"))
        .expect("tests")
        .flatten()
    {
        let path = path.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "world")
        {
            let output = expect(everett(folder).arg("replay").arg(&path), 0);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = said.lines().filter(|line| !line.contains("confirmed"));
            let lines = lines.map(|line| line.split_once(": ").map_or(line, |(_, line)| line));
            all.insert(lines.collect::<Vec<_>>().join("|"));
        }
    }
    all
}

/// Returns how the hosts of each world ended, sorted.
fn ends(out: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for (name, bytes) in files(&out.join("tests")) {
        if name.ends_with(".world") {
            let world: Value = serde_json::from_slice(&bytes).expect("a world");
            let hosts = world["hosts"].as_object().expect("hosts");
            let hosts = hosts
                .iter()
                .map(|(name, trace)| format!("{name} {}", trace["end"]));
            all.push(hosts.collect());
        }
    }
    assert!(!all.is_empty());
    all.sort();
    all
}

fn says(output: &Output, what: &str) {
    let said = text(output);
    assert!(said.contains(what), "{said}");
}

fn warns(summary: &Value, what: &str) {
    let warnings = summary["warnings"].to_string();
    assert!(warnings.contains(what), "{warnings}");
}

#[test]
fn a_finding_against_a_live_peer_is_confirmed_from_the_recording() {
    let example = root().join("examples/live-peer");
    let scenario = fs::read_to_string(example.join("order.toml")).expect("read");
    // A slow machine is no silence.
    assert!(scenario.contains("\nlisten = "), "{scenario}");
    let scenario = scenario.replacen("\nlisten = ", "\npatience = \"20s\"\nlisten = ", 1);
    let folder = world("order", &scenario);
    fs::copy(example.join("shop.py"), folder.join("shop.py")).expect("copied");
    let live = explored(&folder, &[], 1);
    assert_eq!(live["complete"], true, "{live:#}");
    assert_eq!(count(&live, "/worlds"), 8, "the ninth ends in the finding");
    let findings = live["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{live:#}");
    assert_eq!(findings[0]["confirmed"], "confirmed", "{live:#}");
    // A fresh shop for each second order after the first one of a kind.
    assert!(peer(&live, "instances") > 3, "{live:#}");
    let out = folder.join("out");
    expect(everett(&folder).arg("replay").arg("--live").arg(&out), 0);
    // The shop is gone: the recording contains everything that it said.
    fs::remove_file(folder.join("shop.py")).expect("removed");
    expect(everett(&folder).arg("follow").arg(&out), 0);
    expect(everett(&folder).arg("replay").arg(&out), 0);
    for mapping in mappings() {
        let name = format!("offline-{mapping}");
        let more = ["--offline", "out", "--mapping", mapping];
        expect(&mut run(&folder, &name, &more), 1);
        let offline = summary(&folder.join(&name));
        assert_eq!(offline["complete"], true, "{offline:#}");
        assert_eq!(offline["worlds"], live["worlds"]);
        assert_eq!(peer(&offline, "live"), 0);
        assert_eq!(ends(&folder.join(&name)), ends(&out));
    }
    let tests = |name: &str| files(&folder.join(name).join("tests"));
    assert_eq!(tests("offline-sds"), tests("out"));
    // Nothing else is known about the shop.
    let more = ["--offline", "out", "--set", "host.customer.faults=1"];
    expect(&mut run(&folder, "beyond", &more), 1);
    let beyond = summary(&folder.join("beyond"));
    assert_eq!(beyond["complete"], false);
    warns(
        &beyond,
        "peer shop does not answer: its recording has no answer",
    );
}

#[test]
fn nothing_live_is_started_without_permission() {
    let scenario = talking(&["+"], "echo", "").replace("\"python3\"", "\"touch\", \"started\"");
    let folder = world("permission", &scenario);
    let output = expect(&mut run(&folder, "out", &[]), 2);
    says(&output, "--allow-live lets them be started and contacted");
    assert!(!folder.join("out").exists());
    let output = expect(&mut run(&folder, "out", &["--allow-live"]), 2);
    drop(output);
    let failed = summary(&folder.join("out"));
    warns(&failed, "it ended before it was ready");
    assert_eq!(failed["complete"], false);
}

/// The port of a peer is free when it is chosen. Another program may take it before the peer does.
#[test]
fn a_peer_whose_port_is_taken_gets_another_one() {
    let folder = world("taken", &talking(&["+", ">hi", "<"], "taken", ""));
    let mut run = run(&folder, "out", &["--allow-live"]);
    let mut run = Process(run.spawn().expect("it starts"));
    let port = wait_for("the first start", || {
        fs::read_to_string(folder.join("port")).ok()
    });
    let _taken = TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port");
    fs::write(folder.join("taken"), "").expect("written");
    assert_eq!(run.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(summary(&folder.join("out"))["complete"], true);
}

#[test]
fn a_guest_reaches_nothing_but_its_peers() {
    let real = TcpListener::bind("127.0.0.1:0").expect("a port");
    real.set_nonblocking(true).expect("set");
    let port = real.local_addr().expect("an address").port();
    let mut scenario = talking(&["+", ">hi", "<"], "echo", "");
    for (at, to) in ["127.0.0.1", "10.0.0.9", "192.168.1.1", "10.0.0.77"]
        .iter()
        .enumerate()
    {
        scenario.push_str(&format!(
            "[host.other{at}]\nprogram = \"./talk\"\nexpect = \"exit 3\"\n\
             args = [\"{to}\", \"{port}\", \"tcp\", \"+\"]\n"
        ));
    }
    let folder = world("reach", &scenario);
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert!(real.accept().is_err(), "somebody came through");
}

#[test]
fn states_that_say_different_things_have_instances_of_their_own() {
    let folder = world(
        "branches",
        &talking(&["+", "?a|b|c", "<", "?d|e", "<"], "counter", ""),
    );
    let summary = explored(&folder, &["--workers", "2"], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(count(&summary, "/worlds"), 6);
    let wanted = ["a", "b", "c"]
        .iter()
        .flat_map(|first| ["d", "e"].map(|second| format!("heard 1 {first}|heard 2 {second}")));
    let said: BTreeSet<String> = printed(&folder);
    for line in wanted {
        assert!(
            said.iter().any(|said| said.contains(&line)),
            "{line}: {said:?}"
        );
    }
}

#[test]
fn a_chat_server_tells_each_schedule_how_many_are_there() {
    let mut scenario = talking(&[], "chat", "");
    scenario = scenario.replace("./talk", "./threads");
    scenario = scenario.replace(
        "args = [\"10.0.0.9\", \"7\", \"tcp\", ]",
        "args = [\"chat\"]\nscheduler = \"bounded:1\"",
    );
    let folder = world("chat", &scenario);
    let summary = explored(&folder, &["--set", "host.guest.preempt=\"syscalls\""], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let said = printed(&folder);
    assert!(said.contains("one: 1 here|other: 2 here"), "{said:?}");
    assert!(said.contains("other: 1 here|one: 2 here"), "{said:?}");
    assert!(peer(&summary, "instances") > 1, "{summary:#}");
}

/// What a peer does at a new connection is not overtaken by what happens on another one.
#[test]
fn a_peer_notices_a_connection_before_another_one_ends() {
    let words = ["+", "<", "+", "=0", "x", "=1", "<"];
    let folder = world("late", &talking(&words, "late", ""));
    explored(&folder, &[], 0);
    let said = printed(&folder);
    assert_eq!(
        said,
        BTreeSet::from(["heard 1 here|heard 2 here".to_owned()])
    );
}

#[test]
fn a_logger_takes_lines_in_any_order() {
    for (order, instances) in [("any", 1), ("seen", 2)] {
        let keys = format!("patience = \"20ms\"\norder = \"{order}\"");
        let mut scenario = talking(&[], "log", &keys);
        scenario = scenario.replace("./talk", "./threads");
        scenario = scenario.replace(
            "args = [\"10.0.0.9\", \"7\", \"tcp\", ]",
            "args = [\"log\"]\nscheduler = \"bounded:1\"\npreempt = \"syscalls\"",
        );
        let folder = world(&format!("log_{order}"), &scenario);
        let summary = explored(&folder, &[], 0);
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert!(count(&summary, "/worlds") > 1);
        let made = peer(&summary, "instances");
        assert!(
            if instances == 1 { made == 1 } else { made > 1 },
            "{order}: {summary:#}"
        );
    }
}

/// Returns how often the guest ended in each way, over all worlds.
fn guest_ends(out: &Path) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for (name, bytes) in files(&out.join("tests")) {
        if name.ends_with(".world") {
            let world: Value = serde_json::from_slice(&bytes).expect("a world");
            *all.entry(world["hosts"]["guest"]["end"].to_string())
                .or_default() += 1;
        }
    }
    all
}

/// Explores a client of the server `store`, live and as a host: it ends in the same ways as often.
/// Returns the summary and the folder of the live run.
fn live_and_as_host(name: &str, guest: &str) -> (Value, PathBuf) {
    let guest = format!("[host.guest]\nprogram = \"./clerks\"\nstart = \"10ms\"\n{guest}\n");
    let live = format!(
        "{guest}[peer.store]\ncommand = [\"./store\", \"{{port}}\"]\nlisten = \"127.0.0.1:0\"\n\
         address = \"10.0.0.9\"\nport = 7\nfresh = \"connection\"\ninstances = 1\npatience = \"8s\"\n"
    );
    let host = format!("{guest}[host.store]\nprogram = \"./store\"\naddress = \"10.0.0.9\"\n");
    let folders = [("live", live), ("host", host)].map(|(kind, scenario)| {
        let folder = world(&format!("{name}_{kind}"), &scenario);
        (explored(&folder, &["--no-confirm"], 0), folder.join("out"))
    });
    let [(live, live_out), (host, host_out)] = folders;
    assert_eq!(live["complete"], true, "{live:#}");
    assert_eq!(host["complete"], true, "{host:#}");
    assert_eq!(live["worlds"], host["worlds"]);
    assert_eq!(guest_ends(&live_out), guest_ends(&host_out));
    (live, live_out)
}

#[test]
fn a_thousand_paths_over_one_live_server_end_as_with_the_server_as_a_host() {
    let (live, _) = live_and_as_host("steps", "args = [\"steps\"]");
    assert_eq!(count(&live, "/worlds"), 1024);
    assert!(peer(&live, "live") >= 1024, "{live:#}");
}

#[test]
fn schedules_and_failing_calls_find_the_same_live_and_as_a_host() {
    let guest = "args = [\"race\"]\nscheduler = \"bounded:1\"\npreempt = \"syscalls\"";
    let (live, out) = live_and_as_host("race", guest);
    assert!(count(&live, "/worlds") > 1, "{live:#}");
    let ends = guest_ends(&out);
    // Both clerks have taken 60 of 100.
    assert!(ends.keys().any(|end| end.contains("120")), "{ends:?}");
    let guest = "args = [\"race\"]\nfaults = 1";
    live_and_as_host("race_faults", guest);
}

#[test]
fn a_peer_that_is_not_deterministic_is_reported_unless_that_is_said() {
    let words = ["+", "<", "?a|b", "<"];
    let folder = world("varying", &talking(&words, "key", ""));
    let summary = explored(&folder, &[], 2);
    assert_eq!(summary["complete"], false, "{summary:#}");
    warns(&summary, "peer db does not answer: it is not deterministic");
    let folder = world("varies", &talking(&words, "key", "varies = [\"[0-9]{6}\"]"));
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(count(&summary, "/worlds"), 2);
}

#[test]
fn bad_peers_have_clear_outcomes() {
    let dies = ["+", ">hello", "<", "+"];
    let cases: [(&str, &[&str], &str); 6] = [
        ("dies", &dies, "end|cannot connect: Connection refused"),
        ("breaks", &["+", ">hello", "<"], "Connection reset by peer"),
        ("stalls", &["+", ">hello", "~500"], "nothing"),
        ("garbage", &["+", "."], "1024 bytes, end"),
        ("floods", &["+", "<", "x"], "heard xxx"),
        (
            "echo",
            &["+", ">one", "<", "-", "."],
            "heard one|0 bytes, end",
        ),
    ];
    for (kind, words, wanted) in cases {
        let patience = match kind {
            "stalls" => "patience = \"50ms\"\n",
            _ => "",
        };
        let keys = format!("{patience}max_bytes = \"4M\"");
        let folder = world(kind, &talking(words, kind, &keys));
        let summary = explored(&folder, &[], 0);
        assert_eq!(summary["complete"], true, "{kind}: {summary:#}");
        let said = printed(&folder);
        assert!(
            said.iter().any(|said| said.contains(wanted)),
            "{kind}: {said:?}"
        );
    }
}

/// A peer that is not there cuts off all paths, and that is not success.
#[test]
fn a_peer_that_cannot_be_reached_is_work_that_is_not_done() {
    // Nobody listens at a port that was free, at an address that no other test uses.
    let free = std::net::TcpListener::bind("127.0.77.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let started = talking(&["+"], "echo", "");
    let outside = started.replace(
        "listen = \"127.0.0.1:0\"",
        &format!("listen = \"{address}\""),
    );
    let outside: Vec<&str> = outside
        .lines()
        .filter(|line| !line.starts_with("command"))
        .collect();
    let cases = [
        (
            "not_started",
            started.replace("peer.py", "nothing.py"),
            "it ended before it was ready",
        ),
        (
            "not_there",
            outside.join("\n"),
            "nothing listens at 127.0.77.1:",
        ),
    ];
    for (name, scenario, why) in cases {
        let folder = world(name, &scenario);
        let summary = explored(&folder, &[], 2);
        assert_eq!(summary["complete"], false, "{summary:#}");
        warns(&summary, why);
    }
    let folder = world("few", &talking(&["+"], "echo", "instances = 0"));
    says(
        &expect(&mut run(&folder, "out", &["--allow-live"]), 2),
        "0 is too few",
    );
}

/// Returns whether Everett may make PID namespaces.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A scenario with a peer that writes where it is started, outside of its folder.
fn counted_starts(name: &str, words: &[&str], kind: &str, keys: &str) -> PathBuf {
    let scenario = talking(words, kind, keys);
    let scenario = scenario.replace("\"{port}\"", "\"{port}\", \"{folder}/started\"");
    world(name, &scenario)
}

/// A peer is started once; each fresh instance is a copy of it as it was when it was ready. What
/// copies leave in memory, in files, in pipes and in the queue of connections is not seen by others.
#[test]
fn fresh_instances_are_copies_of_a_stopped_process() {
    if !is_root() {
        let words = ["+", "?a|b", "<"];
        let folder = world(
            "copies_user",
            &talking(&words, "serial", "fresh = \"snapshot\""),
        );
        warns(&explored(&folder, &[], 2), "PID namespaces");
        return;
    }
    let words = ["+", "+", "?a|b|c", "<", "=0", "?d|e", "<"];
    let seen = |fresh: &str| {
        let name = format!("copies_{fresh}");
        let folder = counted_starts(&name, &words, "ledger", &format!("fresh = \"{fresh}\""));
        let summary = explored(&folder, &[], 0);
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert_eq!(count(&summary, "/worlds"), 6);
        let started = fs::read_to_string(folder.join("started")).expect("it was started");
        let (started, instances) = (started.lines().count(), peer(&summary, "instances"));
        (printed(&folder), started, instances)
    };
    let (processes, started, instances) = seen("process");
    assert!(started > 3 && started as u64 == instances, "{started}");
    let (copies, started, instances) = seen("snapshot");
    assert_eq!(copies, processes);
    assert!(started == 1 && instances > 3, "{started}, {instances}");
    // Connections that a copy has not accepted, and datagrams that it has not read, are gone. A copy
    // has the number of the process.
    let cases: [(&str, &[&str], &str); 2] = [
        (
            "serial",
            &["+", "+", "=0", "?a|b", "<", "?d|e", "<"],
            "heard 1 a|heard 1 d",
        ),
        (
            "loop",
            &["+", "?a|b", "<", "?d|e", "<"],
            "heard 1 a|heard 2 d",
        ),
    ];
    for (kind, words, wanted) in cases {
        let name = format!("copies_{kind}");
        let folder = world(&name, &talking(words, kind, "fresh = \"snapshot\""));
        let summary = explored(&folder, &[], 0);
        assert_eq!(summary["complete"], true, "{summary:#}");
        let said = printed(&folder);
        assert!(said.len() == 4 && said.contains(wanted), "{kind}: {said:?}");
    }
    let words = ["+", "?a|b|c", "<", "+", ">d", "<"];
    let folder = world(
        "copies_udp",
        &talking(&words, "udp", "fresh = \"snapshot\""),
    );
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let unix = talking(
        &["+", "?c|d", "<"],
        "unix",
        "path = \"/run/db\"\nfresh = \"snapshot\"",
    )
    .replace("10.0.0.9\", \"7\", \"tcp", "/run/db\", \"0\", \"unix")
    .replace("{port}", "{address}")
    .replace("127.0.0.1:0", "unix:db.socket");
    let folder = world("copies_unix", &unix);
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
}

/// What a copy would lack, or would share with others, is refused.
#[test]
fn processes_that_cannot_be_copied_are_refused() {
    let cases = [
        ("thread", "it has 2 threads, of which a copy would have one"),
        ("forked", "it has children"),
        ("timer", "it has a timer"),
        ("shared", "it shares /dev/zero"),
    ];
    for (kind, why) in cases {
        let name = format!("uncopied_{kind}");
        let folder = world(
            &name,
            &talking(&["+", "?a|b", "<"], kind, "fresh = \"snapshot\""),
        );
        let summary = explored(&folder, &[], 2);
        assert_eq!(summary["complete"], false, "{summary:#}");
        warns(&summary, "cannot be copied (fresh =");
        warns(&summary, why);
    }
    if !is_root() {
        return;
    }
    // A change that cannot be undone is found before the next copy.
    let words = ["+", "?a|b", "<"];
    let folder = counted_starts("uncopied_epoll", &words, "ledger", "fresh = \"snapshot\"");
    let scenario = fs::read_to_string(folder.join("world.toml")).expect("read");
    let once = scenario.replace("started\"]", "started\", \"once\"]");
    fs::write(folder.join("world.toml"), once).expect("written");
    let summary = explored(&folder, &[], 2);
    warns(&summary, "a copy has changed what it waits for (epoll)");
}

#[test]
fn a_flood_that_is_read_for_ever_is_cut_off() {
    let folder = world(
        "flood",
        &talking(&["+", "."], "floods", "max_bytes = \"1M\""),
    );
    let summary = explored(&folder, &[], 2);
    assert_eq!(summary["complete"], false);
    warns(&summary, "its recording has more than 1048576 bytes");
}

#[test]
fn a_web_server_is_explored_with_a_live_client() {
    let scenario = |last: &str| {
        let keys = format!(
            "[host.web]\nprogram = \"./web\"\nexpect = \"exit 0\"\n[peer.browser]\nrole = \"client\"\n\
             command = [\"python3\", \"peer.py\", \"web\", \"{{port}}\", \"{last}\"]\nlisten = \"127.0.0.1:0\"\n\
             address = \"10.0.0.9\"\nport = 80\npatience = \"20s\"\n"
        );
        keys
    };
    let folder = world("web", &scenario("/e"));
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let said = printed(&folder);
    assert!(
        said.iter().all(|said| said.contains("5 requests")),
        "{said:?}"
    );
    let folder = world("web_parts", &scenario("/e"));
    let summary = explored(&folder, &["--set", "host.web.fragment=2"], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert!(count(&summary, "/worlds") > 1, "{summary:#}");
    let folder = world("web_wrong", &scenario("e"));
    let summary = explored(&folder, &[], 1);
    let findings = summary["findings"].as_array().expect("findings");
    assert_eq!(findings[0]["confirmed"], "confirmed", "{summary:#}");
}

#[test]
fn a_live_client_that_does_not_start_is_started_once() {
    let scenario = "[host.web]\nprogram = \"./web\"\n[peer.browser]\nrole = \"client\"\n\
                    command = [\"sh\", \"-c\", \"echo >> $0; exit 3\", \"{folder}/started\"]\n\
                    listen = \"127.0.0.1:0\"\nready = \"never\"\naddress = \"10.0.0.9\"\nport = 80\n";
    let folder = world("no_client", scenario);
    let summary = explored(&folder, &[], 2);
    assert_eq!(summary["complete"], false, "{summary:#}");
    warns(&summary, "it ended before it was ready");
    // Its port is taken, but by the listener for it.
    let started = fs::read_to_string(folder.join("started")).expect("starts");
    assert_eq!(started, "\n");
}

#[test]
fn a_live_client_sends_datagrams() {
    let scenario = "[host.server]\nprogram = \"./answerer\"\nexpect = \"exit 0\"\n[peer.asker]\nrole = \"client\"\n\
                    protocol = \"udp\"\ncommand = [\"python3\", \"peer.py\", \"ask\", \"{port}\"]\n\
                    listen = \"127.0.0.1:0\"\naddress = \"10.0.0.9\"\nport = 53\npatience = \"20s\"\n";
    let folder = world("udp_client", scenario);
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let said = printed(&folder);
    assert!(
        said.iter()
            .all(|said| said.contains("3 datagrams from 2 senders")),
        "{said:?}"
    );
}

#[test]
fn datagrams_unix_sockets_and_independent_connections() {
    let folder = world(
        "udp",
        &talking(
            &["+", "?a|b", "<", "+", ">c", "<"],
            "udp",
            "patience = \"6s\"",
        ),
    );
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let said = printed(&folder);
    assert!(
        said.iter()
            .any(|said| said.contains("heard got b|heard got c")),
        "{said:?}"
    );
    // A guest can also reach a peer by the path of a Unix socket, wherever the real one is.
    let unix = talking(&["+", ">c", "<"], "unix", "path = \"/run/db\"")
        .replace("10.0.0.9\", \"7\", \"tcp", "/run/db\", \"0\", \"unix")
        .replace("{port}", "{address}")
        .replace("127.0.0.1:0", "unix:db.socket");
    let folder = world("unix", &unix);
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let said = printed(&folder);
    assert!(said.contains("heard c"), "{said:?}");
    let words = ["+", ">a", "<", "+", ">a", "<", "=0", "?b|c", "<"];
    let folder = world(
        "independent",
        &talking(&words, "echo", "independent = true"),
    );
    let summary = explored(&folder, &[], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    // The answers to the second connection are known from the first; all connections go to one
    // process.
    assert!(peer(&summary, "from_recording") > 0, "{summary:#}");
}

#[test]
fn symbolic_bytes_get_one_value_or_all_or_are_refused() {
    let words = ["+", "?1", "<", "!7"];
    let folder = world("one", &talking(&words, "echo", ""));
    let one = explored(&folder, &[], 0);
    assert_eq!(one["complete"], false);
    assert_eq!(count(&one, "/bytes_concretised"), 1);
    warns(
        &one,
        "symbolic bytes that are sent to peer db get one value",
    );
    let folder = world("all", &talking(&words, "echo", "symbolic = \"all\""));
    let all = explored(&folder, &["--max-forks", "20"], 0);
    assert!(all["bytes_concretised"].is_null(), "{all:#}");
    assert!(peer(&all, "live") > 10, "each value is asked: {all:#}");
    let folder = world("refuse", &talking(&words, "echo", "symbolic = \"refuse\""));
    let refused = explored(&folder, &[], 2);
    assert_eq!(refused["complete"], false);
    warns(&refused, "symbolic bytes to db, which are refused");
}

#[test]
fn a_run_is_resumed_with_its_recording() {
    let folder = world(
        "resume",
        &talking(&["+", "?a|b|c", "<", "?d|e|f", "<"], "counter", ""),
    );
    let stopped = explored(&folder, &["--max-paths", "2"], 0);
    assert_eq!(stopped["complete"], false);
    let resume = |more: &[&str], code: i32| {
        let mut command = everett(&folder);
        expect(command.arg("resume").args(more).arg("out"), code)
    };
    says(&resume(&[], 2), "--allow-live");
    resume(&["--allow-live"], 0);
    let whole = summary(&folder.join("out"));
    assert_eq!(whole["complete"], true, "{whole:#}");
    assert_eq!(count(&whole, "/worlds"), 9);
}

#[test]
fn children_of_a_peer_die_with_the_run() {
    let folder = world("child", &talking(&["+", ">a", "<"], "child", ""));
    explored(&folder, &[], 0);
    let marker = folder.join("peer.py").display().to_string();
    let is_left = || {
        let all = fs::read_dir("/proc").expect("processes").flatten();
        let mut all = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        all.any(|words| String::from_utf8_lossy(&words).contains(&marker))
    };
    wait_for("the end of the peer's child", || (!is_left()).then_some(()));
}
