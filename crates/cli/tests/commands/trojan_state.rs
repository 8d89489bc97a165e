//! `everett trojans`: local state of clients and server, variables that a scenario makes symbolic,
//! and random runs of native clients.

use crate::common::{build, everett, expect, folder, summary, text};
use crate::trojans::analysed;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn contains(folder: &Path, message: &str, word: &str, code: i32) {
    let mut command = everett(folder);
    let said = command.args(["trojans", "--contains", message, "out"]);
    assert_eq!(text(&expect(said, code)).trim(), word, "{message}");
}

fn trojans(summary: &Value) -> &Vec<Value> {
    summary["trojans"].as_array().expect("classes")
}

fn paxos(test: &str) -> PathBuf {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/paxos-accept");
    let folder = folder(&format!("trojan_state_{test}"));
    for entry in fs::read_dir(example).expect("an example") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a copy");
    }
    for program in ["acceptor", "acceptor-fixed", "proposer"] {
        let source = format!("{program}.c");
        let mut command = everett(&folder);
        expect(command.args(["cc", "-g", "-O1", "-o", program, &source]), 0);
    }
    folder
}

/// Checks which messages are Trojan messages in the second phase, which are not, and whether the
/// fixed acceptor has any.
fn check_paxos(state: &str, yes: &[&str], no: &[&str], is_fixed: bool) {
    let folder = paxos(state);
    let scenario = format!("{state}.toml");
    let summary = analysed(&folder, &[&scenario], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    for class in trojans(&summary) {
        assert_eq!(
            (&class["certain"], &class["confirmed"]),
            (&true.into(), &"confirmed".into())
        );
    }
    for message in yes {
        contains(&folder, message, "yes", 0);
    }
    for message in no {
        contains(&folder, message, "no", 1);
    }
    let fixed = ["--set", "host.acceptor.program=./acceptor-fixed", &scenario];
    let summary = analysed(&folder, &fixed, i32::from(!is_fixed));
    assert_eq!(summary["complete"], true, "{summary:#}");
}

#[test]
fn the_second_phase_of_paxos_from_a_concrete_state() {
    // The promised ballot is 2, the proposed value 7: the fixed acceptor still accepts other
    // values.
    let yes = ["030206", "030200", "030307"];
    check_paxos("concrete", &yes, &["030207", "030107", "010300"], false);
}

#[test]
fn the_second_phase_of_paxos_from_a_constructed_state() {
    let yes = ["030200", "03020a", "030405"];
    check_paxos("constructed", &yes, &["030207", "030106", "010300"], true);
}

#[test]
fn the_second_phase_of_paxos_from_an_annotated_state() {
    let yes = ["030200", "03020a", "030405"];
    check_paxos("annotated", &yes, &["030207", "030106", "010300"], true);
}

#[test]
fn variables_are_symbolic_by_name() {
    let folder = folder("trojan_state_variables");
    let source = "#include <assert.h>
struct { int kind; struct { short ballot; char name[3]; } in; } state = {1, {2, \"ab\"}};
int *behind;
int main(void) {
  if (state.kind != 1) return 1;
  assert(state.in.ballot != -7 || state.in.name[1] != 'x');
  return state.in.ballot < -9 || state.in.ballot > 4;
}
";
    build(&folder, "prog", source, &["-g", "-O1"]);
    let scenario = |variables: &str| {
        let text = format!("[host.a]\nprogram = \"./prog\"\nsymbolic = {{ {variables} }}\n");
        fs::write(folder.join("scenario.toml"), text).expect("a scenario");
    };
    scenario("\"state.in.ballot\" = [-9, 4], \"state.in.name\" = \"any\"");
    let mut run = everett(&folder);
    expect(run.args(["run", "--out", "found", "scenario.toml"]), 1);
    let found = summary(&folder.join("found"));
    assert_eq!(found["complete"], true, "{found:#}");
    let findings = found["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["kind"], "assertion");
    assert_eq!(findings[0]["confirmed"], "confirmed");
    let mut show = everett(&folder);
    let shown = text(&expect(show.args(["scenario", "show", "scenario.toml"]), 0));
    assert!(
        shown.contains("state.in.ballot is symbolic from -9 to 4"),
        "{shown}"
    );
    assert!(shown.contains("state.in.name is symbolic\n"), "{shown}");
    for (variables, said) in [
        ("other = 1", "scenario.toml:3:14: "),
        ("\"state.in.none\" = 1", "none"),
        ("\"behind.x\" = 1", "behind"),
        (
            "\"state.in.ballot\" = [0, 70000]",
            "state.in.ballot has 2 bytes",
        ),
        ("\"state.in.name\" = \"some\"", "expected a number"),
        ("\"state.kind\" = [2, 1]", "there is no number from 2 to 1"),
    ] {
        scenario(variables);
        let mut run = everett(&folder);
        let output = expect(run.args(["run", "--out", "wrong", "scenario.toml"]), 2);
        let output = String::from_utf8_lossy(&output.stderr);
        assert!(output.contains(said), "{variables}: {output}");
    }
}

const HEAD: &str = "
#include <arpa/inet.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>
static int open_socket(const char *address) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, address, &there.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (!strcmp(address, \"0.0.0.0\")) bind(fd, (struct sockaddr *)&there, sizeof there);
  else connect(fd, (struct sockaddr *)&there, sizeof there);
  return fd;
}
";

/// A server that accepts a message of one byte under a condition, and a client that makes `m` from
/// its argument `x`.
fn one_byte(test: &str, accepts: &str, makes: &str) -> PathBuf {
    let folder = folder(&format!("trojan_state_{test}"));
    let server = format!(
        "{HEAD}int main(void) {{
  int fd = open_socket(\"0.0.0.0\"), heard = 0;
  for (;; heard++) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[4];
    if (recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size) != 1) continue;
    if ({accepts}) sendto(fd, m, 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let client = format!(
        "{HEAD}int main(int argc, char **argv) {{
  unsigned char x = argv[1][0], m = 0;
  {makes}
  int fd = open_socket(\"10.0.0.1\");
  send(fd, &m, 1, 0);
  return recv(fd, &m, 1, 0) != 1;
}}"
    );
    build(&folder, "server", &server, &["-O1"]);
    build(&folder, "client", &client, &["-O1"]);
    let scenario = "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
                    args = [{ symbolic = 1 }]\n[trojans]\nserver = \"server\"\n\
                    clients = [\"client\"]\nport = 7000\nlength = 1\n";
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

#[test]
fn random_runs_of_native_clients_send_no_trojan() {
    let folder = one_byte(
        "native_runs",
        "1",
        "if (x < 'A' || x > 'z') return 1; m = x;",
    );
    let summary = analysed(&folder, &["--native-runs", "60", "scenario.toml"], 1);
    let native = &summary["native_runs"];
    assert_eq!(
        (&native["runs"], &native["contradictions"]),
        (&60.into(), &Value::Array(vec![]))
    );
    assert!(native["messages"].as_u64() >= native["different"].as_u64());
    assert!(native["different"].as_u64() > Some(1), "{native:#}");
    assert_eq!(summary["complete"], true);
    let summary = analysed(&folder, &["--native-runs", "0", "scenario.toml"], 1);
    assert_eq!(summary["native_runs"]["runs"], 0);
}

/// A client message may depend on a value of which the exploration tried only two.
#[test]
fn a_class_that_a_native_client_sends_is_not_certain() {
    let makes = "unsigned char *drawn = (unsigned char *)getauxval(AT_RANDOM);
  m = x ? 'b' : 'c';
  if (drawn[3] % 5 == DRAWN) m = 'A';";
    let mut refuted = 0;
    // The exploration tries two values, so it sees at most two of these.
    for drawn in ["0", "1", "2"] {
        let folder = one_byte(
            &format!("contradiction_{drawn}"),
            "1",
            &makes.replace("DRAWN", drawn),
        );
        let summary = analysed(&folder, &["--native-runs", "60", "scenario.toml"], 1);
        let all = &summary["native_runs"]["contradictions"];
        let all = all.as_array().expect("contradictions");
        let depends = !summary["clients"][0]["depends_on"].is_null();
        let Some(first) = all.first().filter(|_| !depends) else {
            continue;
        };
        refuted += 1;
        assert_eq!(
            (&first["client"], &first["message"]),
            (&"client".into(), &"41".into())
        );
        let number = first["trojans"][0].as_u64().expect("a class") as usize;
        assert_eq!(trojans(&summary)[number - 1]["certain"], false);
        assert_eq!(summary["complete"], false);
        contains(&folder, "41", "undecided", 4);
    }
    assert!(refuted >= 1, "{refuted}");
}

/// The approximate negation of the literature, which exists for comparisons.
#[test]
fn a_negation_value_by_value_misses_even_numbers() {
    let folder = one_byte("negation", "1", "m = x | 1;");
    let summary = analysed(&folder, &["--no-confirm", "scenario.toml"], 1);
    assert_eq!(trojans(&summary)[0]["certain"], true);
    contains(&folder, "04", "yes", 0);
    let by_values = ["--no-confirm", "--negate-values", "scenario.toml"];
    let summary = analysed(&folder, &by_values, 0);
    assert!(trojans(&summary).is_empty());
    // Its findings are not certain.
    let makes = "if (x < 'd' || x > 'f') return 1; m = x;";
    let folder = one_byte("negation_any", "m[0] >= 'c'", makes);
    let summary = analysed(&folder, &by_values, 1);
    let class = &trojans(&summary)[0];
    let (certain, how) = (&class["certain"], &class["how"]);
    assert_eq!((certain, how), (&false.into(), &"approximate".into()));
}

/// A server that accepts what its client sends, and also the number of messages that it has
/// received.
fn counting(test: &str, start: &str) -> PathBuf {
    let folder = folder(&format!("trojan_state_{test}"));
    let server = format!(
        "#include <everett.h>\n{HEAD}int main(void) {{
  int fd = open_socket(\"0.0.0.0\"), count = 0;
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m;
    if (recvfrom(fd, &m, 1, 0, (struct sockaddr *)&from, &size) != 1) continue;
    int is_known = m >= 'a' && m <= 'c';
    if (is_known && ++count == 3) everett_mark_state(\"all\");
    if (is_known || m == '0' + count) sendto(fd, &m, 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let client = format!(
        "{HEAD}int main(int argc, char **argv) {{
  int fd = open_socket(\"10.0.0.1\");
  unsigned char m, answer;
  for (m = 'a'; m <= 'c'; m++) {{
    if (m == 'b') sleep(argv[1][0] == 's' ? 2 : 1);
    send(fd, &m, 1, 0);
    recv(fd, &answer, 1, 0);
  }}
  return 0;
}}"
    );
    build(&folder, "server", &server, &["-O1"]);
    build(&folder, "client", &client, &["-O1"]);
    let scenario = format!(
        "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
         args = [{{ symbolic = 1 }}]\nstart = \"{start}\"\n[trojans]\nserver = \"server\"\n\
         clients = [\"client\"]\nport = 7000\nlength = 1\n"
    );
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

#[test]
fn a_state_is_that_after_a_message_or_a_mark() {
    let folder = counting("events", "0s");
    for (state, digit) in [("message = 1", "31"), ("at = \"500ms\"", "31")] {
        let set = format!("trojans.state={{ {state} }}");
        let args = ["--native-runs", "0", "--set", &set, "scenario.toml"];
        let summary = analysed(&folder, &args, 1);
        let found = trojans(&summary);
        let found: Vec<_> = found
            .iter()
            .map(|class| (&class["example"], &class["confirmed"]))
            .collect();
        assert!(
            found.iter().all(|(example, _)| **example == digit),
            "{state}: {found:?}"
        );
        assert!(
            found
                .iter()
                .all(|(_, confirmed)| **confirmed == "confirmed"),
            "{found:?}"
        );
        assert_eq!(summary["complete"], true);
    }
    // Some clients wait longer than others before they continue: the message is sent when each of
    // them has got there.
    for (state, digit) in [("message = 2", "32"), ("mark = \"all\"", "33")] {
        let set = format!("trojans.state={{ {state} }}");
        let args = ["--native-runs", "0", "--set", &set, "scenario.toml"];
        let summary = analysed(&folder, &args, 1);
        let found = trojans(&summary);
        let found: Vec<_> = found
            .iter()
            .map(|class| (&class["example"], &class["confirmed"], &class["certain"]))
            .collect();
        assert_eq!(
            found,
            [(&digit.into(), &"confirmed".into(), &true.into())],
            "{state}: {summary:#}"
        );
        assert_eq!(summary["complete"], true);
        let times: Vec<_> = seconds(&summary["lengths"]);
        assert_eq!(times, [1, 2], "{state}: {summary:#}");
        contains(&folder, digit, "yes", 0);
        contains(&folder, "31", "no", 1);
        contains(&folder, "61", "no", 1);
        let mut test = everett(&folder);
        expect(test.args(["test", "out/trojans"]), 0);
    }
    for (state, said) in [
        (
            "message = 7",
            "it never happens that the server has received message 7",
        ),
        (
            "mark = \"none\"",
            "it never happens that a host has marked \"none\"",
        ),
        ("message = 0", "there is no message 0"),
        ("message = 1, mark = \"all\"", "a state says one thing"),
        ("", "a state says one thing"),
    ] {
        let set = format!("trojans.state={{ {state} }}");
        let mut command = everett(&folder);
        command.args(["trojans", "--out", "wrong", "--set", &set, "scenario.toml"]);
        let output = text(&expect(&mut command, 2));
        assert!(output.contains(said), "{state}: {output}");
    }
}

/// Returns the seconds of virtual time at which messages were sent.
fn seconds(of: &Value) -> Vec<u64> {
    let of = of.as_array().expect("a list").iter();
    let at_ns = of.map(|one| one["state_ns"].as_u64().expect("a time"));
    at_ns.map(|at_ns| at_ns / 1_000_000_000).collect()
}

/// A client whose number it sends, waits for as many seconds, and then says so. With an even
/// number, it says nothing.
fn waiting(test: &str, says: &str) -> PathBuf {
    let folder = folder(&format!("trojan_state_{test}"));
    let server = format!(
        "#include <everett.h>\n{HEAD}int main(void) {{
  int fd = open_socket(\"0.0.0.0\"); unsigned char known = 9;
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m;
    if (recvfrom(fd, &m, 1, 0, (struct sockaddr *)&from, &size) != 1) continue;
    if (m == '0' + known) sendto(fd, &m, 1, 0, (struct sockaddr *)&from, size);
    if (m < 4) known = m;
    if (m == 'm') everett_mark_state(\"said\");
  }}
}}"
    );
    let client = format!(
        "#include <everett.h>\n{HEAD}int main(int argc, char **argv) {{
  int fd = open_socket(\"10.0.0.1\"), said = open_socket(\"10.0.0.1\");
  unsigned char m = argv[1][0] - 'a';
  if (m > 3) return 1;
  send(fd, &m, 1, 0);
  sleep(m + 1);
  if (m % 2 == 0) pause();
  {says}
  pause();
}}"
    );
    build(&folder, "server", &server, &["-O1"]);
    build(&folder, "client", &client, &["-O1"]);
    let scenario = "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
         args = [{ symbolic = 1 }]\n[trojans]\nserver = \"server\"\n\
         clients = [\"client\"]\nport = 7000\nlength = 1\nstate = { mark = \"said\" }\n";
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

/// Only worlds that have reached the mark count, each at its own time, whether the server or another
/// host makes it.
#[test]
fn paths_reach_a_mark_at_different_times_or_never() {
    let by_server = "send(said, \"m\", 1, 0);";
    let by_client = "everett_mark_state(\"said\");";
    for (test, says) in [("mark_server", by_server), ("mark_client", by_client)] {
        let folder = waiting(test, says);
        let summary = analysed(&folder, &["--native-runs", "0", "scenario.toml"], 1);
        let found = trojans(&summary).iter();
        let mut found: Vec<_> = found
            .map(|class| (class["example"].as_str(), class["confirmed"].as_str()))
            .collect();
        found.sort();
        let wanted = ["31", "33"].map(|digit| (Some(digit), Some("confirmed")));
        assert_eq!(found, wanted, "{test}: {summary:#}");
        assert_eq!(summary["complete"], true, "{test}: {summary:#}");
        let mut times = seconds(&summary["trojans"]);
        times.sort_unstable();
        assert_eq!(times, [2, 4], "{test}: {summary:#}");
        for (message, word, code) in [("31", "yes", 0), ("32", "no", 1), ("30", "no", 1)] {
            contains(&folder, message, word, code);
        }
        let mut test = everett(&folder);
        expect(test.args(["test", "out/trojans"]), 0);
    }
}

/// The time of a state is virtual time of the world, whenever the client starts.
#[test]
fn the_time_of_a_state_does_not_depend_on_the_start_of_the_client() {
    let folder = counting("late", "1s");
    // The client sends its second message at 2 s or 3 s.
    let state = "trojans.state={ at = \"1500ms\" }";
    let args = ["--native-runs", "0", "--set", state, "scenario.toml"];
    let summary = analysed(&folder, &args, 1);
    let found = trojans(&summary);
    assert!(
        found.iter().all(|class| class["example"] == "31"),
        "{summary:#}"
    );
}

/// Random runs of native clients keep to the ranges of variables: they must not contradict what is
/// known of clients with other values.
#[test]
fn native_clients_keep_to_the_ranges_of_variables() {
    let folder = one_byte("ranges", "m[0] <= 6", "if (x > 3) return 1; m = x;");
    let source = fs::read_to_string(folder.join("client.c")).expect("a source");
    let source = source.replace("int main(", "int most = 3;\nint main(");
    let source = source.replace("x > 3", "x > most");
    build(&folder, "client", &source, &["-g", "-O1"]);
    let scenario = fs::read_to_string(folder.join("scenario.toml")).expect("a scenario");
    let symbolic = "args = [{ symbolic = 1 }]\nsymbolic = { most = [2, 4] }";
    let scenario = scenario.replace("args = [{ symbolic = 1 }]", symbolic);
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    let summary = analysed(&folder, &["scenario.toml"], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(trojans(&summary)[0]["certain"], true, "{summary:#}");
    contains(&folder, "05", "yes", 0);
    contains(&folder, "04", "no", 1);
}

/// The native server draws the random bytes with which it was explored: what clients send depends on
/// them.
#[test]
fn native_clients_meet_the_server_that_was_explored() {
    let folder = folder("trojan_state_nonce");
    let server = format!(
        "{HEAD}#include <sys/random.h>
int main(void) {{
  int fd = open_socket(\"0.0.0.0\"); unsigned char nonce = 0, known = 0;
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m;
    if (recvfrom(fd, &m, 1, 0, (struct sockaddr *)&from, &size) != 1) continue;
    if (!known) {{ getrandom(&nonce, 1, 0); nonce |= 16; known = 1; m = nonce; }}
    else if (m != (nonce ^ 1) && m != (nonce ^ 2)) continue;
    sendto(fd, &m, 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let client = format!(
        "{HEAD}int main(int argc, char **argv) {{
  int fd = open_socket(\"10.0.0.1\"); unsigned char m = 0;
  send(fd, &m, 1, 0);
  if (recv(fd, &m, 1, 0) != 1) return 1;
  m ^= 1;
  send(fd, &m, 1, 0);
  return 0;
}}"
    );
    build(&folder, "server", &server, &["-O1"]);
    build(&folder, "client", &client, &["-O1"]);
    let scenario = "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
                    [trojans]\nserver = \"server\"\nclients = [\"client\"]\nport = 7000\n\
                    length = 1\nstate = { message = 1 }\n";
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    let summary = analysed(&folder, &["scenario.toml"], 1);
    let native = &summary["native_runs"];
    assert_eq!(native["contradictions"], Value::Array(vec![]), "{native:#}");
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(trojans(&summary).len(), 1, "{summary:#}");
    assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
}

/// A client that sends from a port of its own, with a state: its own messages are not taken for the
/// message, which comes from another port then.
#[test]
fn a_client_with_a_port_of_its_own_before_a_state() {
    let bound = "struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(5000)};";
    let makes = "if (x < 'a') return 1; m = x;";
    let folder = one_byte("own_port", "m[0] >= 'a' || (m[0] < 9 && heard)", makes);
    let mut source = fs::read_to_string(folder.join("client.c")).expect("a source");
    let bind = format!("{bound} bind(fd, (struct sockaddr *)&own, sizeof own);");
    source = source.replace(
        "send(fd, &m, 1, 0);",
        "send(fd, &m, 1, 0); recv(fd, &m, 1, 0);",
    );
    source = source.replace(
        "int fd = socket(AF_INET, SOCK_DGRAM, 0);",
        &format!("int fd = socket(AF_INET, SOCK_DGRAM, 0); {bind}"),
    );
    build(&folder, "client", &source, &["-O1"]);
    for state in ["at = \"1s\"", "message = 1"] {
        let set = format!("trojans.state={{ {state} }}");
        let summary = analysed(&folder, &["--set", &set, "scenario.toml"], 1);
        let found = trojans(&summary);
        assert_eq!(found.len(), 1, "{state}: {summary:#}");
        assert_eq!(found[0]["confirmed"], "confirmed");
        contains(&folder, "05", "yes", 0);
        // Messages from the port of the client were not tried.
        assert_eq!(summary["complete"], false, "{state}: {summary:#}");
        contains(&folder, "41", "undecided", 4);
        contains(&folder, "61", "no", 1);
    }
}

#[test]
fn classes_are_said_as_they_are_found() {
    let folder = one_byte(
        "said",
        "(m[0] == 7 && !write(1, m, 0)) || m[0] == 201",
        "m = x | 16;",
    );
    let mut command = everett(&folder);
    let said = expect(
        command.args(["trojans", "--out", "out", "scenario.toml"]),
        1,
    );
    let said = text(&said);
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    let found = ["found 1: ", "found 2: "];
    assert!(place(found[0]) < place(found[1]), "{said}");
    assert!(place(found[1]) < place("client client: "), "{said}");
}
