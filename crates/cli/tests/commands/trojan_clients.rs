//! `everett trojans`: the sender of the unconstrained message, values that clients do not choose,
//! greetings, and the description of classes.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const HEAD: &str = r#"
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static struct sockaddr_in at(const char *address) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, address, &here.sin_addr);
  return here;
}
static int open_socket(int kind, const char *address) {
  struct sockaddr_in there = at(address);
  int fd = socket(AF_INET, kind, 0);
  if (!strcmp(address, "0.0.0.0")) {
    if (bind(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  } else if (connect(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  return fd;
}
"#;

/// A UDP server that accepts if this condition holds for the message `m`, its size `n` and its
/// sender `from`.
pub(crate) fn udp_server(accepts: &str) -> String {
    format!(
        "{HEAD}int main(void) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[16];
    ssize_t n = recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size);
    if ({accepts}) sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    )
}

/// A UDP client that makes a message `m` of `n` bytes from its input `x` with this code.
pub(crate) fn udp_client(makes: &str) -> String {
    format!(
        "{HEAD}int main(int argc, char **argv) {{
  unsigned char x, buffer[16], *m = buffer; size_t n = 0;
  if (read(0, &x, 1) != 1) return 1;
  {makes}
  int fd = open_socket(SOCK_DGRAM, \"10.0.0.1\");
  send(fd, m, n, 0);
  recv(fd, buffer, 1, 0);
  return 0;
}}"
    )
}

const TABLE: &str = "[trojans]\nserver = \"server\"\nport = 7000\n";
pub(crate) const CLIENT: &str =
    "[host.client]\nprogram = \"./client\"\nstdin = { symbolic = 1 }\nstart = \"blocked\"\n";

pub(crate) fn world(test: &str, server: &str, client: &str, hosts: &str, table: &str) -> PathBuf {
    let folder = folder(&format!("trojan_clients_{test}"));
    build(&folder, "server", server, &["-O1"]);
    build(&folder, "client", client, &["-O1"]);
    let scenario = format!("[host.server]\nprogram = \"./server\"\n{hosts}{TABLE}{table}");
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

pub(crate) fn analysed(folder: &Path, args: &[&str], code: i32) -> Value {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    let mut command = everett(folder);
    command.args(["trojans", "--out", "out", "scenario.toml"]);
    expect(command.args(args), code);
    summary(&out)
}

pub(crate) fn contains(folder: &Path, message: &str, word: &str, code: i32) {
    let mut command = everett(folder);
    let command = command.args(["trojans", "--contains", message, "out"]);
    let said = expect(command, code);
    assert_eq!(text(&said).trim(), word, "{message}");
}

pub(crate) fn trojans(summary: &Value) -> &Vec<Value> {
    summary["trojans"].as_array().expect("classes")
}

#[test]
fn the_message_is_tried_from_each_client() {
    let server = udp_server(
        "n == 2 && ((m[0] == 'R' && m[1] < 6) || \
         (m[0] == 'A' && m[1] < 200 && ntohl(from.sin_addr.s_addr) == 0x0a000003))",
    );
    let client = udp_client("m[0] = argv[1][0]; m[1] = x; n = 2; if (x > 3) return 1;");
    let host = |name: &str, letter: &str| {
        format!(
            "[host.{name}]\nprogram = \"./client\"\nargs = [\"{letter}\"]\nstdin = {{ symbolic = 1 }}\n"
        )
    };
    let hosts = host("user", "R") + &host("admin", "A");
    let table = "clients = [\"user\", \"admin\"]\nlength = 2\n";
    let folder = world("senders", &server, &client, &hosts, table);
    let summary = analysed(&folder, &[], 1);
    assert_eq!(summary["complete"], true);
    let mut found: Vec<(String, Value)> = Vec::new();
    for class in trojans(&summary) {
        assert_eq!(class["confirmed"], "confirmed");
        let file = class["file"].as_str().expect("a file");
        assert!(file.ends_with("server.c"), "{file}");
        let example = class["example"].as_str().expect("an example");
        found.push((example[..2].to_owned(), class["senders"].clone()));
    }
    found.sort_by(|one, two| one.0.cmp(&two.0));
    let expected = [
        ("41".to_owned(), Value::from(vec!["admin"])),
        ("52".to_owned(), Value::from(vec!["user", "admin"])),
    ];
    assert_eq!(found, expected);
    contains(&folder, "4164", "yes", 0); // admin's address only
    contains(&folder, "4102", "no", 1);
    contains(&folder, "5205", "yes", 0);
    contains(&folder, "5206", "no", 1);
}

/// Checks that there are no Trojan messages with a client whose bytes come from something that it
/// does not choose, and a server that accepts any of them.
fn nothing_with(test: &str, makes: &str, accepts: &str, length: &str) {
    let (server, client) = (udp_server(accepts), udp_client(makes));
    let table = format!("clients = [\"client\"]\nlength = {length}\n");
    let folder = world(test, &server, &client, CLIENT, &table);
    let summary = analysed(&folder, &["--no-confirm"], 0);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&true.into(), 0)
    );
}

#[test]
fn random_bytes_of_a_client_are_any() {
    let makes = "if (x > 9 || getrandom(m, 2, 0) != 2) return 1; m[2] = x; n = 3;";
    nothing_with("random", makes, "n == 3 && m[2] <= 9", "3");
}

#[test]
fn a_client_runs_at_any_time() {
    let makes = "if (x > 9) return 1; m[0] = time(0) % 10; n = 1;";
    nothing_with("time", makes, "n == 1 && m[0] <= 9", "1");
    let folder = folder_of("time");
    // A value that no time gives is still a Trojan message.
    build(
        &folder,
        "server",
        &udp_server("n == 1 && m[0] <= 11"),
        &["-O1"],
    );
    let summary = analysed(&folder, &["--no-confirm"], 1);
    assert_eq!(trojans(&summary)[0]["certain"], true);
    contains(&folder, "0a", "yes", 0);
    contains(&folder, "09", "no", 1);
}

fn folder_of(test: &str) -> PathBuf {
    let made = folder(&format!("trojan_clients_{test}_again"));
    for name in ["server", "client"] {
        build(&made, name, &udp_server("0"), &["-O1"]);
    }
    let client = udp_client("if (x > 9) return 1; m[0] = time(0) % 10; n = 1;");
    build(&made, "client", &client, &["-O1"]);
    let scenario = format!(
        "[host.server]\nprogram = \"./server\"\n{CLIENT}{TABLE}clients = [\"client\"]\nlength = 1\n"
    );
    fs::write(made.join("scenario.toml"), scenario).expect("a scenario");
    made
}

#[test]
fn memory_that_a_client_has_not_written_holds_anything() {
    let makes = "if (x > 9) return 1; m = malloc(4); if (!m) return 1; m[0] = 1; m[3] = x; n = 4;";
    nothing_with("padding", makes, "n == 4 && m[0] == 1 && m[3] <= 9", "4");
}

#[test]
fn memory_of_calloc_is_zero() {
    let makes = "if (x > 9) return 1; m = calloc(1, 4); if (!m) return 1; m[3] = x; n = 4;";
    nothing_with(
        "calloc",
        makes,
        "n == 4 && !m[0] && !m[1] && !m[2] && m[3] <= 9",
        "4",
    );
    let folder = crate::common::folder("trojan_clients_calloc_again");
    let client = udp_client(makes);
    build(&folder, "client", &client, &["-O1"]);
    build(
        &folder,
        "server",
        &udp_server("n == 4 && m[3] <= 9"),
        &["-O1"],
    );
    let hosts = format!("[host.server]\nprogram = \"./server\"\n{CLIENT}");
    let scenario = format!("{hosts}{TABLE}clients = [\"client\"]\nlength = 4\n");
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    let summary = analysed(&folder, &["--no-confirm"], 1);
    assert_eq!(summary["complete"], true);
    contains(&folder, "00000005", "no", 1);
    contains(&folder, "01000005", "yes", 0);
}

/// A client does not choose the padding of a socket address.
#[test]
fn padding_of_addresses_does_not_matter() {
    let makes = "if (x > 9) return 1; m[0] = x; n = 1;
  struct sockaddr_in *to = malloc(sizeof *to); if (!to) return 1;
  to->sin_family = AF_INET; to->sin_port = htons(9); inet_pton(AF_INET, \"10.0.0.1\", &to->sin_addr);
  sendto(socket(AF_INET, SOCK_DGRAM, 0), m, 1, 0, (struct sockaddr *)to, sizeof *to);";
    nothing_with("address", makes, "n == 1 && m[0] <= 9", "1");
}

#[test]
fn memory_at_the_same_address_holds_something_else_later() {
    let makes = "if (x > 9) return 1; m[2] = x; n = 3;
  for (int i = 0; i < 2; i++) {
    volatile unsigned char *p = malloc(4); if (!p) return 1;
    m[i] = p[0]; free((void *)p);
  }";
    nothing_with("again", makes, "n == 3 && m[2] <= 9", "3");
}

#[test]
fn the_length_of_bytes_is_not_that_of_a_string() {
    // The server ignores the first byte, and the payload may contain zeros.
    let server = udp_server("n == 4 && m[1] == 2");
    let client = udp_client("m[0] = 'S'; m[1] = 2; m[2] = x; m[3] = x; n = 4;");
    let fields = |string: &str| {
        format!(
            "clients = [\"client\"]\nlength = 4\nfields = [{{ name = \"op\", size = 1 }}, \
             {{ name = \"len\", size = 1, length_of = \"d\" }}, {{ name = \"d\", size = \"rest\"{string} }}]\n"
        )
    };
    let folder = world("binary", &server, &client, CLIENT, &fields(""));
    let summary = analysed(&folder, &["--no-confirm"], 1);
    for class in trojans(&summary) {
        assert!(
            !class["group"]
                .as_str()
                .expect("a group")
                .contains("length of")
        );
    }
}

#[test]
fn a_server_may_greet_first() {
    let server = format!(
        "{HEAD}int main(void) {{
  int fd = open_socket(SOCK_STREAM, \"0.0.0.0\");
  listen(fd, 3);
  for (;;) {{
    int peer = accept(fd, 0, 0); unsigned char m[2];
    send(peer, \"220 \", 4, 0); send(peer, \"hi\\n\", 3, 0);
    if (recv(peer, m, 2, MSG_WAITALL) == 2 && m[0] == 1 && m[1] < 20) send(peer, \"200\\n\", 4, 0);
    close(peer);
  }}
}}"
    );
    let client = format!(
        "{HEAD}int main(void) {{
  unsigned char m[2] = {{1, 0}}, answer[8];
  if (read(0, m + 1, 1) != 1 || m[1] > 9) return 1;
  int fd = open_socket(SOCK_STREAM, \"10.0.0.1\");
  if (recv(fd, answer, 7, MSG_WAITALL) != 7) return 1;
  send(fd, m, 2, 0);
  recv(fd, answer, 8, 0);
  return 0;
}}"
    );
    let table = "clients = [\"client\"]\nlength = 2\nprotocol = \"tcp\"\n";
    let folder = world("greeting", &server, &client, CLIENT, table);
    for args in [&[][..], &["--set", "trojans.against=\"ever\""]] {
        let summary = analysed(&folder, args, 1);
        assert_eq!(
            (&summary["complete"], trojans(&summary).len()),
            (&true.into(), 1)
        );
        assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
        contains(&folder, "0113", "yes", 0);
        contains(&folder, "0109", "no", 1);
        contains(&folder, "0114", "no", 1);
    }
}

#[test]
fn a_hint_that_is_not_sufficient_says_so_and_places_are_the_users() {
    let server = udp_server("n == 3 && m[0] == 7");
    let makes = "uint16_t y = x * x * 3; m[0] = 7; m[1] = y >> 8; m[2] = y; n = 3;";
    let table = "clients = [\"client\"]\nlength = 3\n";
    let folder = world("hint", &server, &udp_client(makes), CLIENT, table);
    let summary = analysed(&folder, &["--no-confirm"], 1);
    let class = &trojans(&summary)[0];
    let file = class["file"].as_str().expect("a file");
    assert!(file.ends_with("server.c"), "{file}");
    assert_eq!(class["how"], "refined");
    {
        let hint = class["fix_hint"].as_str().expect("a hint");
        assert!(hint.contains("not sufficient"), "{hint}");
    }
}

pub(crate) const CLIENTS: &str = "clients = [\"client\"]\n";

/// Exploration with another value finds a dependency on a value that a client does not choose.
#[test]
fn values_that_were_not_tried_make_nothing_certain() {
    let server = udp_server("n == 2 && m[0] < 4");
    let port = "struct sockaddr_in me; socklen_t size = sizeof me;
  int other = open_socket(SOCK_DGRAM, \"10.0.0.1\");
  getsockname(other, (struct sockaddr *)&me, &size); m[1] = ntohs(me.sin_port) >> 8;";
    let clock =
        "struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); m[1] = now.tv_nsec / 1000;";
    let random = "m[1] = *(unsigned char *)getauxval(16 + 9);";
    for (name, makes) in [
        ("process ids", "m[1] = getpid();"),
        ("ephemeral ports", port),
        ("monotonic clocks", clock),
        ("AT_RANDOM", random),
    ] {
        let client = format!("m[0] = x & 3; n = 2; {makes}");
        let client = format!("#include <sys/auxv.h>\n{}", udp_client(&client));
        let test = format!("unchosen_{}", name.replace(' ', "_"));
        let folder = world(
            &test,
            &server,
            &client,
            CLIENT,
            &format!("{CLIENTS}length = 2\n"),
        );
        let summary = analysed(&folder, &["--no-confirm"], 1);
        let expected = serde_json::json!([name]);
        assert_eq!(summary["clients"][0]["depends_on"], expected, "{summary:#}");
        assert_eq!(summary["complete"], false);
        assert!(
            trojans(&summary)
                .iter()
                .all(|class| class["certain"] == false)
        );
        let example = trojans(&summary)[0]["example"].as_str().expect("bytes");
        contains(&folder, example, "undecided", 4);
        // A masked field does not matter.
        let table = format!(
            "{CLIENTS}length = 2\nfields = [{{ name = \"id\", offset = 1, size = 1 }}]\nmask = [\"id\"]\n"
        );
        let scenario = format!("[host.server]\nprogram = \"./server\"\n{CLIENT}{TABLE}{table}");
        fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
        let summary = analysed(&folder, &["--no-confirm"], 0);
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert_eq!(summary["clients"][0]["depends_on"], Value::Null);
    }
}

#[test]
fn classes_are_refuted_by_what_clients_send_beyond_their_limits() {
    let makes = "volatile int most = 40;
  int to = open_socket(SOCK_DGRAM, \"10.0.0.1\");
  for (int i = 0; i < most; i++) if (x == i) { m[0] = i; send(to, m, 1, 0); return 0; }
  return 1;";
    let table = format!("{CLIENTS}length = 1\n[limits]\nforks = 6\n");
    let server = udp_server("n == 1 && m[0] < 40");
    let folder = world("refuted", &server, &udp_client(makes), CLIENT, &table);
    let summary = analysed(&folder, &["--no-confirm", "--refute", "1"], 1);
    assert_eq!(summary["clients"][0]["cut_off"], "max-forks");
    assert_eq!(summary["clients"][0]["raised"], 4);
    assert_eq!(trojans(&summary)[0]["certain"], false);
    let summary = analysed(&folder, &["--no-confirm"], 0);
    assert_eq!(summary["clients"][0]["raised"], 16, "{summary:#}");
    assert_eq!(summary["complete"], true, "{summary:#}");
    // A smaller limit is raised more often.
    let args = ["--no-confirm", "--set", "limits.forks=2", "--refute", "4"];
    let summary = analysed(&folder, &args, 0);
    assert_eq!(summary["clients"][0]["raised"], 64, "{summary:#}");
    // What clients do not send at all is certain then.
    build(
        &folder,
        "server",
        &udp_server("n == 1 && m[0] < 45"),
        &["-O1"],
    );
    let summary = analysed(&folder, &["--no-confirm"], 1);
    assert_eq!(trojans(&summary)[0]["certain"], true, "{summary:#}");
    contains(&folder, "28", "yes", 0);
    contains(&folder, "27", "no", 1);
}

/// Clients with the same program have the same classes, whichever of them sends the message. Each
/// of them starts although the others do nothing.
#[test]
fn several_clients_that_wait_for_the_server_are_all_explored() {
    let server = udp_server("n == 2 && m[0] < 9 && (m[1] ^ m[0] ^ (m[1] << 1)) != 3");
    let client = udp_client("if (x > 4) return 1; m[0] = x; m[1] = 0; n = 2;");
    let hosts = CLIENT.to_owned() + "count = 3\n";
    let table = format!("{CLIENTS}length = 2\n");
    let folder = world("blocked", &server, &client, &hosts, &table);
    let summary = analysed(&folder, &["--native-runs", "0"], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(trojans(&summary).len(), 1, "{summary:#}");
    let senders = serde_json::json!(["client0", "client1", "client2"]);
    assert_eq!(trojans(&summary)[0]["senders"], senders);
}

/// A client that was cut off is explored with the inputs that give messages of a class. Further
/// exploration would take many times as much: each byte of its message has four cases.
#[test]
fn classes_are_refuted_by_clients_with_pinned_inputs() {
    let server = udp_server("n == 8 && !memcmp(m, \"SHUT(2))\", 8)");
    let client = format!(
        "{HEAD}int main(void) {{
  unsigned char m[8];
  if (read(0, m, 8) != 8) return 1;
  for (int i = 0; i < 8; i++) {{
    volatile unsigned char c = m[i];
    if (c >= 'a' && c <= 'z') m[i] = c; else if (c >= 'A' && c <= 'Z') m[i] = c;
    else if (c >= '0' && c <= '9') m[i] = c; else if (c == '(' || c == ')') m[i] = c; else m[i] = '.';
  }}
  int fd = open_socket(SOCK_DGRAM, \"10.0.0.1\");
  send(fd, m, 8, 0);
  recv(fd, m, 1, 0);
  return 0;
}}"
    );
    let hosts = CLIENT.replace("symbolic = 1", "symbolic = 8");
    let table = format!("{CLIENTS}length = 8\n[limits]\nforks = 200\n");
    let folder = world("pinned", &server, &client, &hosts, &table);
    let summary = analysed(&folder, &["--no-confirm", "--refute", "1"], 0);
    assert!(
        summary["clients"][0]["pinned"].as_u64() > Some(0),
        "{summary:#}"
    );
    assert_eq!(summary["clients"][0]["cut_off"], "max-forks");
    // Whatever else clients send, there is no class to refute.
    assert_eq!(summary["complete"], true, "{summary:#}");
    contains(&folder, "5348555428322929", "no", 1);
    // A class that no client sends stays, and is not certain.
    build(
        &folder,
        "server",
        &udp_server("n == 8 && !memcmp(m, \"SHUT+2))\", 8)"),
        &["-O1"],
    );
    let summary = analysed(&folder, &["--no-confirm", "--refute", "1"], 1);
    assert_eq!(trojans(&summary)[0]["certain"], false, "{summary:#}");
    contains(&folder, "534855542b322929", "undecided", 4);
}
