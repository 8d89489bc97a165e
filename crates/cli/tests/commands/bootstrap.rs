//! Worlds that one program boots with the functions of `netklee.h`: from a run of the program to
//! worlds that are followed and replayed natively, and error messages if that fails.

use crate::common::{
    build, check_weights, count, everett, expect, folder, mappings, summary, text,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The program of listing 6 of the paper, with an echo server that changes one byte and a client
/// that sends any byte.
const LISTING_6: &str = r#"
#include <netinet/in.h>
#include <netklee.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int main_server(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)}, from;
  bind(s, (struct sockaddr *)&at, sizeof at);
  char byte;
  socklen_t length = sizeof from;
  recvfrom(s, &byte, 1, 0, (struct sockaddr *)&from, &length);
  if (byte == '!') byte = '?';
  klee_invariant_expose_data(1, "byte", &byte, 1);
  sendto(s, &byte, 1, 0, (struct sockaddr *)&from, length);
  return 0;
}

static int main_client(void) {
  char name[64], byte, back;
  gethostname(name, sizeof name);
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
  to.sin_addr.s_addr = klee_net_make_ipv4(10, 0, 0, 1);
  klee_make_symbolic(&byte, 1, "byte");
  klee_invariant_expose_data(1, "byte", &byte, 1);
  sendto(s, &byte, 1, 0, (struct sockaddr *)&to, sizeof to);
  recv(s, &back, 1, 0);
  printf("this is %s\n", name);
  return 0;
}

int main(int argc, char* argv[]) {
  klee_net_add_network("net0");

  int machine = 0;
  klee_make_symbolic(&machine, sizeof(machine), "machine");

  if(machine == 1) {
    uint32_t ip = klee_net_make_ipv4(10,0,0,1);
    klee_net_add_interface(1, "net0", NULL);
    klee_net_add_ipv4_address(ip, 0, 1, 1, NULL);
    klee_net_host_setup("server", 1, 1);
    return main_server();
  }

  uint32_t ip = klee_net_make_ipv4(10,0,0,2);
  klee_net_add_interface(1, "net0", NULL);
  klee_net_add_ipv4_address(ip, 0, 1, 1, NULL);
  klee_net_host_setup("client", 0, 0);
  return main_client();
}
"#;

const INVARIANT: &str = r#"
invariant same(data[] d) : nodes, states, keys { return d.equalElements(); }
string[] nodes() { return sys.nodes(); }
int[] states(string node) { return int[1]; }
string[] keys(string node, int state) { return string["byte"]; }
"#;

fn built(name: &str, source: &str) -> PathBuf {
    let folder = folder(&format!("bootstrap_{name}"));
    build(&folder, "prog", source, &["-g", "-O1"]);
    folder
}

fn run(folder: &Path, out: &str, options: &[&str], code: i32) -> Output {
    let mut command = everett(folder);
    command.args(["run", "--out", out]).args(options);
    expect(command.arg("./prog"), code)
}

/// Checks that all traces of a run are reproduced, in the engine and natively.
fn happens_again(folder: &Path, out: &str, traces: u64) {
    let followed = expect(everett(folder).args(["follow", out]), 0);
    let all = everett::counted(traces, "trace");
    let wanted = format!("{all} followed, 0 end otherwise");
    assert!(text(&followed).contains(&wanted), "{}", text(&followed));
    let replayed = expect(everett(folder).args(["replay", out]), 0);
    let wanted = format!("{traces} of {traces} worlds confirmed");
    assert!(text(&replayed).contains(&wanted), "{}", text(&replayed));
}

/// Checks that a world is explored completely, with this number of ended worlds.
fn is_complete(folder: &Path, out: &str, worlds: u64) {
    let summary = summary(&folder.join(out));
    check_weights(&summary);
    assert_eq!(summary["complete"], true, "{summary}");
    assert_eq!(count(&summary, "/worlds"), worlds, "{summary}");
    assert_eq!(summary["warnings"], serde_json::json!([]), "{summary}");
}

#[test]
fn listing_6_boots_a_server_and_a_client() {
    let folder = built("listing_6", LISTING_6);
    run(&folder, "out", &["--all-tests"], 0);
    is_complete(&folder, "out", 2);
    happens_again(&folder, "out", 2);
    // Every value other than 1 is the client.
    let begin = fs::read_to_string(folder.join("out/server.begin")).expect("a trace");
    assert!(begin.contains("01000000"), "{begin}");
    for mapping in mappings().skip(1) {
        run(&folder, mapping, &["--mapping", mapping], 0);
        is_complete(&folder, mapping, 2);
    }
}

#[test]
fn what_is_written_is_a_scenario_as_any_other() {
    let folder = built("scenario", LISTING_6);
    run(&folder, "out", &[], 0);
    let shown = expect(
        everett(&folder).args(["scenario", "show", "out/world.toml"]),
        0,
    );
    for line in [
        "eth1 on net0 10.0.0.1/24",
        "starts when the hosts before it wait",
        "is set up by its program, as in client.begin",
    ] {
        assert!(text(&shown).contains(line), "{}", text(&shown));
    }
    let mut again = everett(&folder);
    expect(again.args(["run", "--out", "again", "out/world.toml"]), 0);
    is_complete(&folder, "again", 2);
    let native = ["native", "--seed", "3", "out/world.toml"];
    let native = expect(everett(&folder).args(native), 0);
    assert!(
        text(&native).contains("this is client"),
        "{}",
        text(&native)
    );
    let native = ["native", "--runs", "4", "out/world.toml"];
    expect(everett(&folder).args(native), 0);
    // Options of the program are those of each host.
    run(&folder, "up", &["--uptime", "7s"], 0);
    is_complete(&folder, "up", 2);
    let scenario = fs::read_to_string(folder.join("up/world.toml")).expect("a scenario");
    assert!(scenario.contains("uptime = \"7000000000ns\""), "{scenario}");
}

#[test]
fn an_invariant_over_hosts_is_broken() {
    let folder = built("invariant", LISTING_6);
    fs::write(folder.join("same.minv"), INVARIANT).expect("it can be written");
    let more = "[check.same]\nfile = \"same.minv\"\n\n[fault.loss]\nmost = 1\n";
    fs::write(folder.join("more.toml"), more).expect("it can be written");
    let output = run(&folder, "out", &["--world", "more.toml", "--dtest"], 1);
    let said = text(&output);
    assert!(
        said.contains("1 of 1 findings confirmed natively"),
        "{said}"
    );
    let finding = folder.join("out/findings/0001");
    let told = fs::read_to_string(finding.join("finding.txt")).expect("a finding");
    assert!(told.contains("the invariant same does not hold"), "{told}");
    assert!(told.contains("byte = \"!\""), "{told}");
    let messages = fs::read_to_string(finding.join("messages.txt")).expect("messages");
    assert!(messages.contains("client → server"), "{messages}");
    let dtest = fs::read_to_string(finding.join("finding.dtest")).expect("a test");
    assert!(dtest.contains("hostname=\"server\""), "{dtest}");
    // The finding, and three worlds with new coverage.
    happens_again(&folder, "out", 4);
    let confirmed = expect(everett(&folder).args(["confirm", "out"]), 0);
    assert!(
        text(&confirmed).contains("confirmed"),
        "{}",
        text(&confirmed)
    );
}

/// A server on one network, a client on another, and a router between them that the program
/// declares for all, over IPv4 and IPv6.
const ROUTED: &str = r#"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netklee.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int result) { if (result != 0) abort(); }

static int main_server(void) {
  int s = socket(AF_INET6, SOCK_DGRAM, 0);
  struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(7)}, from;
  if (bind(s, (struct sockaddr *)&at, sizeof at)) return 1;
  for (int i = 0; i < 2; i++) {
    char byte;
    socklen_t length = sizeof from;
    if (recvfrom(s, &byte, 1, 0, (struct sockaddr *)&from, &length) != 1) return 2;
    byte++;
    if (sendto(s, &byte, 1, 0, (struct sockaddr *)&from, length) != 1) return 3;
  }
  return 0;
}

static int ask(int family, const void *address, socklen_t length) {
  int s = socket(family, SOCK_DGRAM, 0);
  char byte = 'a', back = 0;
  if (sendto(s, &byte, 1, 0, address, length) != 1) return 1;
  if (recv(s, &back, 1, 0) != 1) return 2;
  return back == 'b' ? 0 : 3;
}

static int main_client(void) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(7)};
  four.sin_addr.s_addr = klee_net_make_ipv4(10, 0, 0, 1);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(7)};
  inet_pton(AF_INET6, "fd00:0:0:1::1", &six.sin6_addr);
  int result = ask(AF_INET, &four, sizeof four);
  return result ? result : 10 * ask(AF_INET6, &six, sizeof six);
}

int main(void) {
  must(klee_net_add_network("net0"));
  must(klee_net_add_network("net1"));
  must(klee_net_add_router("router"));
  must(klee_net_add_interface(1, "net0", "router"));
  must(klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, 2), 24, 1, 1, "router"));
  must(klee_net_add_ipv6_address("fd00:0:0:1::2", 64, 1, 0, "router"));
  must(klee_net_add_interface(2, "net1", "router"));
  must(klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 1, 2), 24, 2, 1, "router"));
  must(klee_net_add_ipv6_address("fd00:0:0:2::2", 64, 2, 0, "router"));
  int machine = klee_int("machine");
  klee_assume(machine >= 0 & machine < 2);
  if (machine == 0) {
    must(klee_net_add_interface(1, "net0", NULL));
    must(klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, 1), 24, 1, 1, NULL));
    must(klee_net_add_ipv6_address("fd00:0:0:1::1", 64, 1, 0, NULL));
    must(klee_net_add_ipv4_route(0, 0, klee_net_make_ipv4(10, 0, 0, 2), NULL));
    must(klee_net_add_ipv6_route(NULL, 0, "fd00:0:0:1::2", NULL));
    must(klee_net_host_setup("server", 1, 0));
    return main_server();
  }
  must(klee_net_add_interface(1, "net1", NULL));
  must(klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 1, 1), 24, 1, 1, NULL));
  must(klee_net_add_ipv6_address("fd00:0:0:2::1", 64, 1, 0, NULL));
  must(klee_net_add_ipv4_route(klee_net_make_ipv4(10, 0, 0, 0), 24, klee_net_make_ipv4(10, 0, 1, 2), NULL));
  must(klee_net_add_ipv6_route("fd00:0:0:1::", 64, "fd00:0:0:2::2", NULL));
  must(klee_net_host_setup("client", 0, 0));
  return main_client();
}
"#;

#[test]
fn packets_go_over_a_router_with_both_kinds_of_addresses() {
    let folder = built("routed", ROUTED);
    let expected = ["--set", "defaults.expect=exit 0"];
    run(
        &folder,
        "out",
        &[&expected[..], &["--all-tests"]].concat(),
        0,
    );
    is_complete(&folder, "out", 1);
    happens_again(&folder, "out", 1);
    let without = ["--set", "host.client.routes={}"];
    run(&folder, "without", &[&expected[..], &without].concat(), 1);
}

/// Runs a program with this `main`, whose world cannot be created.
fn without_world(name: &str, main: &str, options: &[&str], code: i32) -> String {
    let source = format!(
        "#include <netklee.h>\n#include <stdlib.h>\n\
         static int machine(void) {{ return klee_int(\"machine\"); }}\n\
         static void place(unsigned char last) {{\n\
           klee_net_add_network(\"net0\");\n\
           klee_net_add_interface(1, \"net0\", NULL);\n\
           klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, last), 0, 1, 1, NULL);\n\
         }}\n\
         int main(void) {{ {main} }}\n"
    );
    let folder = built(name, &source);
    let said = text(&run(&folder, "out", options, code));
    assert!(!folder.join("out/mapping.csv").exists(), "{said}");
    said
}

#[test]
fn paths_that_are_no_hosts_are_counted() {
    let main = "int m = machine(); if (m == 1) { place(1); klee_net_host_setup(\"a\", 0, 0); return 0; }\n\
                if (m == 2) { place(2); klee_net_host_setup(\"b\", 0, 0); return 0; }\n\
                return 0;";
    let said = without_world("no_hosts", main, &[], 2);
    let wanted =
        "1 of 3 paths ended without klee_net_host_setup, so they are no hosts (these are: a, b)";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("klee_silent_exit"), "{said}");
}

#[test]
fn what_is_wrong_before_the_hosts_are_there_is_a_finding() {
    let main = "if (machine() == 1) { place(1); klee_net_host_setup(\"a\", 0, 0); return 0; }\n\
                abort();";
    let said = without_world("bug", main, &[], 1);
    assert!(said.contains("abort"), "{said}");
    assert!(said.contains("no world is explored"), "{said}");
    assert!(said.contains("1 of 1 findings confirmed"), "{said}");
}

#[test]
fn a_host_is_one_path() {
    let main = "if (machine() == 3) place(1); else place(2);\n\
                klee_net_host_setup(\"a\", 0, 0); return 0;";
    let said = without_world("twice", main, &[], 2);
    assert!(said.contains("two paths set up host a"), "{said}");
    assert!(said.contains("integer 3"), "{said}");
    assert!(said.contains("klee_assume"), "{said}");
}

#[test]
fn routers_are_the_same_for_all() {
    let main = "klee_net_add_network(\"net0\"); klee_net_add_router(\"r\");\n\
                if (machine() == 1) {\n\
                  klee_net_add_interface(1, \"net0\", \"r\");\n\
                  place(1); klee_net_host_setup(\"a\", 0, 0); return 0;\n\
                }\n\
                place(2); klee_net_host_setup(\"b\", 0, 0); return 0;";
    let said = without_world("routers", main, &[], 2);
    assert!(said.contains("different routers r"), "{said}");
}

#[test]
fn hosts_are_on_networks_with_addresses() {
    let nowhere = "klee_net_host_setup(\"a\", 0, 0); return 0;";
    let said = without_world("nowhere", nowhere, &[], 2);
    assert!(said.contains("host a is on no network"), "{said}");
    let nameless = "klee_net_add_network(\"net0\"); klee_net_add_interface(1, \"net0\", NULL);\n\
                    klee_net_host_setup(\"a\", 0, 0); return 0;";
    let said = without_world("nameless", nameless, &[], 2);
    assert!(
        said.contains("nobody has an address on network net0"),
        "{said}"
    );
    let same = "place(1);\n\
                if (machine() == 1) { klee_net_host_setup(\"a\", 0, 0); return 0; }\n\
                klee_net_host_setup(\"b\", 0, 0); return 0;";
    let said = without_world("same_address", same, &[], 2);
    assert!(said.contains("10.0.0.1"), "{said}");
}

#[test]
fn what_was_stopped_is_no_world() {
    let main = "if (machine() == 1) { place(1); klee_net_host_setup(\"a\", 0, 0); return 0; }\n\
                place(2); klee_net_host_setup(\"b\", 0, 0); return 0;";
    let said = without_world("stopped", main, &["--max-paths", "1"], 2);
    assert!(said.contains("max-paths"), "{said}");
    assert!(
        said.contains("not all hosts of the world are set up"),
        "{said}"
    );
}

#[test]
fn a_world_for_a_program_that_boots_none_is_refused() {
    let folder = folder("bootstrap_no_world");
    build(&folder, "prog", "int main(void) { return 0; }", &[]);
    let said = text(&run(&folder, "out", &["--world", "more.toml"], 2));
    assert!(said.contains("never calls klee_net_host_setup"), "{said}");
}

/// An option that only the search for hosts could obey is refused before anything is explored.
#[test]
fn options_of_single_programs_are_refused() {
    let folder = built("single", LISTING_6);
    for options in [["--stop-at", "all"], ["--against", "prog"]] {
        let said = text(&run(&folder, "out", &options, 2));
        assert!(said.contains("this one boots a world"), "{said}");
        assert!(!folder.join("out").exists(), "{said}");
    }
}

#[test]
fn what_the_program_declares_is_not_said_again() {
    let folder = built("again", LISTING_6);
    let more = "[fault.loss]\n\n[network.net0]\nlatency = \"5ms\"\n";
    fs::write(folder.join("more.toml"), more).expect("it can be written");
    let said = text(&run(&folder, "out", &["--world", "more.toml"], 2));
    assert!(said.contains("more.toml:3: hosts, networks"), "{said}");
    assert!(said.contains("--set network.NAME.KEY=VALUE"), "{said}");
    let latency = ["--set", "network.net0.latency=5ms"];
    run(&folder, "slower", &latency, 0);
    is_complete(&folder, "slower", 2);
}

/// Two servers that take longer than usual to become reachable, and two clients.
const SLOW_SERVERS: &str = r#"
#include <netinet/in.h>
#include <netklee.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
  bind(s, (struct sockaddr *)&at, sizeof at);
  return s;
}

static void send_to(int s, int last, char byte) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
  to.sin_addr.s_addr = klee_net_make_ipv4(10, 0, 0, last);
  sendto(s, &byte, 1, 0, (struct sockaddr *)&to, sizeof to);
}

/* The sum of what the other server and the clients send. */
static int first_server(void) {
  usleep(100000);
  int s = bound(), sum = 0;
  for (int i = 0; i < 3; i++) {
    char byte;
    recv(s, &byte, 1, 0);
    sum += byte;
  }
  return sum;
}

static int second_server(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  send_to(s, 1, 1);
  usleep(200000);
  char byte = 0;
  recv(bound(), &byte, 1, 0);
  return byte;
}

static void place(int last) {
  klee_net_add_interface(1, "net0", NULL);
  klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, last), 0, 1, 1, NULL);
}

int main(void) {
  klee_net_add_network("net0");
  int machine = 0;
  klee_make_symbolic(&machine, sizeof machine, "machine");
  if (machine == 1) {
    place(1);
    klee_net_host_setup("first", 1, 1);
    return first_server();
  }
  if (machine == 2) {
    place(2);
    klee_net_host_setup("second", 1, 2);
    return second_server();
  }
  if (machine == 3) {
    place(3);
    klee_net_host_setup("one", 0, 0);
    send_to(bound(), 1, 2);
    return 0;
  }
  place(4);
  klee_net_host_setup("other", 0, 0);
  int s = bound();
  send_to(s, 1, 4);
  send_to(s, 2, 8);
  return 0;
}
"#;

#[test]
fn servers_run_until_they_are_blocked_before_clients_start() {
    let folder = built("slow_servers", SLOW_SERVERS);
    let ends = [
        ["--set", "host.first.expect=exit 7"],
        ["--set", "host.second.expect=exit 8"],
    ];
    for mapping in mappings() {
        let mut options = vec!["--all-tests", "--mapping", mapping];
        options.extend(ends.iter().flatten());
        run(&folder, mapping, &options, 0);
        is_complete(&folder, mapping, 1);
        happens_again(&folder, mapping, 1);
    }
    let shown = ["scenario", "show", "sds/world.toml"];
    let shown = text(&expect(everett(&folder).args(shown), 0));
    let starts: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("starts"))
        .collect();
    let wanted = [
        "  starts at 0s",
        "  starts when the hosts before it wait",
        "  starts when the hosts before it wait",
        "  starts when the hosts up to second wait",
    ];
    assert_eq!(starts, wanted);
    // A host with a start time still starts at that time.
    let early = ["--set", "host.one.start=1ms"];
    let options: Vec<&str> = ends.iter().flatten().copied().chain(early).collect();
    let said = text(&run(&folder, "early", &options, 1));
    assert!(said.contains("deadlock"), "{said}");
}

#[test]
fn a_begin_that_leads_elsewhere_is_found() {
    let folder = built("elsewhere", LISTING_6);
    run(&folder, "out", &[], 0);
    let elsewhere = ["--set", "host.client.begin=server.begin"];
    let mut command = everett(&folder);
    command.args(["run", "--out", "again"]).args(elsewhere);
    let said = text(&expect(command.arg("out/world.toml"), 2));
    let wanted = "the program declares host server, the scenario expects client";
    assert!(said.contains(wanted), "{said}");
    fs::write(
        folder.join("out/client.begin"),
        "{\"inputs\":[],\"pending\":{\"answered\":9,\"halvings\":0,\"depth\":0}}",
    )
    .expect("it can be written");
    let mut command = everett(&folder);
    command.args(["run", "--out", "damaged", "out/world.toml"]);
    expect(&mut command, 2);
    let summary = summary(&folder.join("damaged"));
    assert_eq!(summary["complete"], false, "{summary}");
    let said = summary["warnings"].to_string();
    assert!(
        said.contains("host client does not reach its start"),
        "{said}"
    );
}

#[test]
fn a_host_that_starts_again_is_the_same_machine() {
    let folder = built("restart", LISTING_6);
    let more = "[fault.power]\nkind = \"restart\"\nhosts = \"server\"\non = \"call\"\ncalls = [\"recvfrom\"]\n";
    fs::write(folder.join("more.toml"), more).expect("it can be written");
    run(&folder, "out", &["--world", "more.toml", "--all-tests"], 0);
    let worlds = count(&summary(&folder.join("out")), "/worlds");
    assert!(worlds > 2, "{worlds}");
    is_complete(&folder, "out", worlds);
    happens_again(&folder, "out", worlds);
    let native = ["native", "--runs", "4", "out/world.toml"];
    expect(everett(&folder).args(native), 0);
}

#[test]
fn calls_fail_only_after_the_host_is_set_up() {
    let folder = built("faults", LISTING_6);
    let options = ["--faults", "1", "--fault", "sendto", "--all-tests"];
    run(&folder, "out", &options, 0);
    let worlds = count(&summary(&folder.join("out")), "/worlds");
    assert!(worlds > 2, "{worlds}");
    is_complete(&folder, "out", worlds);
    happens_again(&folder, "out", worlds);
}

/// A program whose arguments, environment and files reach every host of its world.
const TOLD: &str = r#"
#include <fcntl.h>
#include <netklee.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  klee_net_add_network("net0");
  klee_net_add_interface(1, "net0", NULL);
  klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, 1), 0, 1, 1, NULL);
  klee_net_host_setup("only.host", 0, 0);
  char byte = 0;
  int file = open("data", O_RDONLY);
  if (argc != 3 || strcmp(argv[1], "a \"b\"") || read(file, &byte, 1) != 1) return 9;
  int copy = open("copy", O_WRONLY | O_CREAT, 0600);
  write(copy, &byte, 1);
  klee_net_write_filesystem();
  if (byte == 'x' && argv[2][0] == 'y' && getenv("Z")[0] == 'z') return 1;
  return 0;
}
"#;

#[test]
fn the_command_line_reaches_all_hosts() {
    let folder = built("told", TOLD);
    let mut command = everett(&folder);
    command.args(["run", "--out", "out", "--all-tests"]);
    command.args(["--set", "defaults.expect=exit 0"]);
    command.args(["--env", "A=b c", "./prog", "a \"b\""]);
    command.args([
        "--sym-arg",
        "1",
        "--sym-env",
        "Z",
        "1",
        "--sym-file",
        "data",
        "1",
    ]);
    let said = text(&expect(&mut command, 1));
    assert!(said.contains("1 of 1 findings confirmed"), "{said}");
    let tests = count(&summary(&folder.join("out")), "/tests");
    assert!(tests > 1, "{tests}");
    happens_again(&folder, "out", tests + 1);
    let list = folder.join("out/tests/000001-only.host.fs.txt");
    let list = fs::read_to_string(list).expect("what the program saved");
    assert!(list.contains("/copy (1 byte)"), "{list}");
    let finding = folder.join("out/findings/0001");
    let copy = fs::read(finding.join("only.host.fs/copy")).expect("what the program saved");
    assert_eq!(copy, b"x");
    let list = fs::read_to_string(finding.join("only.host.fs.txt")).expect("a list");
    assert!(list.contains("file 0600 /copy (1 byte)"), "{list}");
}

/// A network stack of events, as in listing 11 of the paper: a connection, then a byte on it.
const EVENTS: &str = r#"
#include <netklee.h>
#include <assert.h>

enum { PORT = 80, CLIENT_PORT = 9000 };
static uint32_t server_ip, client_ip;

static int main_server(void) {
  struct net_event mask = {net_event_type_request, 0, 0, server_ip, 0, PORT, 0, 0}, event;
  if (klee_net_has_pending_events(&mask, 1, 1)) return 1;
  klee_net_will_get_events(&mask, 1, 1, 0, 0);
  if (klee_net_events_get(&event, 1, &mask, 1) != 1) return 2;
  klee_net_event_remove(event.identifier);
  struct net_event reply = {net_event_type_reply, 0,    server_ip,    event.from_ip,
                            PORT,                 event.from_port, event.req_id, 7};
  klee_net_event_put(&reply, NULL);
  struct net_event data = {net_event_type_data | net_event_type_close, 0, 0, 0, 0, 0, 0, 7};
  if (klee_net_will_get_events(&data, 1, 1, 5, 0) != 1) return 3;
  if (klee_net_events_get(&event, 1, &data, 1) != 1 || event.type != net_event_type_data) return 4;
  uint32_t size = 0;
  uint8_t *bytes = klee_net_event_data_alloc(event.identifier, &size);
  assert(size == 3 && bytes[2] != 'x');
  klee_net_event_data_free(bytes);
  return klee_net_event_remove(event.identifier) || klee_net_event_remove(event.identifier) == 0;
}

static int main_client(void) {
  struct net_event request = {net_event_type_request, 0, client_ip, server_ip, CLIENT_PORT, PORT, 3, 0};
  struct net_event mask = {net_event_type_reply, 0, server_ip, client_ip, PORT, CLIENT_PORT, 3, 0}, reply;
  klee_net_event_put(&request, NULL);
  if (klee_net_will_get_events(&mask, 1, 1, 5, 0) != 1) return 1;
  if (klee_net_events_get(&reply, 1, &mask, 1) != 1) return 2;
  klee_net_event_remove(reply.identifier);
  uint8_t *bytes = malloc(3);
  klee_make_symbolic(bytes, 3, "bytes");
  struct net_event data = {net_event_type_data, 0,    client_ip, server_ip,
                           CLIENT_PORT,         PORT, 0,         reply.con_id};
  klee_net_event_put(&data, bytes);
  free(bytes);
  struct net_event none = {0};
  return klee_net_event_put(&none, NULL) != -EINVAL || klee_net_will_get_events(&mask, 1, 1, 0, 2000);
}

int main(void) {
  server_ip = klee_net_make_ipv4(10, 0, 0, 1), client_ip = klee_net_make_ipv4(10, 0, 0, 2);
  klee_net_add_network("net0");
  int is_server = klee_int("machine") == 1;
  klee_net_add_interface(1, "net0", NULL);
  klee_net_add_ipv4_address(is_server ? server_ip : client_ip, 0, 1, 1, NULL);
  klee_net_host_setup(is_server ? "server" : "client", is_server, is_server);
  return is_server ? main_server() : main_client();
}
"#;

#[test]
fn events_are_sent_and_kept_until_they_are_removed() {
    let folder = built("events", EVENTS);
    let options = ["--all-tests", "--set", "defaults.expect=exit 0"];
    run(&folder, "out", &options, 1);
    is_complete(&folder, "out", 1);
    let summary = summary(&folder.join("out"));
    assert_eq!(count(&summary, "/findings/0/line"), 22, "{summary}");
    assert_eq!(summary["findings"][0]["kind"], "assertion");
    assert_eq!(summary["findings"][0]["confirmed"], "confirmed");
    assert_eq!(
        summary["findings"].as_array().map(Vec::len),
        Some(1),
        "{summary}"
    );
    happens_again(&folder, "out", 2);
}
