//! `everett faults` with injector `corrupt`: messages between real programs.

use crate::fault_search::{TestFolder, outcome};
use serde_json::Value;
use std::process::Command;

/// A server that trusts the length in its requests, and answers with a sum.
const SERVER: &str = r#"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static unsigned char message[16], kept[16];
static int all(int from, unsigned char *to, int size) {
  for (int got = 0; got < size;) {
    int more = recv(from, to + got, size - got, 0);
    if (more <= 0) return 0;
    got += more;
  }
  return 1;
}
static unsigned char sum(int size) {
  unsigned char sum = 0;
  for (int at = 0; at < size; at++) sum += message[at];
  return sum;
}
int main(int count, char **words) {
  int kind = strcmp(words[1], "udp") ? SOCK_STREAM : SOCK_DGRAM;
  int server = socket(AF_INET, kind, 0), on = 1;
  struct sockaddr_in own = {AF_INET, htons(4712), {htonl(INADDR_LOOPBACK)}};
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, (void *)&own, sizeof own)) return 1;
  if (kind == SOCK_STREAM && listen(server, 8)) return 1;
  if (fork()) return 0;
  for (;;) {
    if (kind == SOCK_DGRAM) {
      struct sockaddr_in from;
      socklen_t size = sizeof from;
      int got = recvfrom(server, message, sizeof message, 0, (void *)&from, &size);
      if (got < 1) continue;
      if (message[0] > got - 1) abort();
      unsigned char reply = sum(got);
      sendto(server, &reply, 1, 0, (void *)&from, size);
      continue;
    }
    int client = accept(server, 0, 0);
    while (all(client, message, 1)) {
      if (message[0] > sizeof message - 1) abort();
      if (!all(client, message + 1, message[0])) break;
      unsigned char reply = sum(message[0] + 1);
      send(client, &reply, 1, 0);
    }
    close(client);
  }
}
"#;

/// A client that checks the sums of two requests.
const CLIENT: &str = r#"
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
  int kind = strcmp(words[1], "udp") ? SOCK_STREAM : SOCK_DGRAM;
  int client = socket(AF_INET, kind, 0);
  struct sockaddr_in proxy = {AF_INET, htons(4711), {htonl(INADDR_LOOPBACK)}};
  if (connect(client, (void *)&proxy, sizeof proxy)) return 1;
  struct timeval patience = {5, 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  unsigned char first[] = {2, 10, 20}, second[] = {1, 30}, reply;
  send(client, first, sizeof first, 0);
  if (recv(client, &reply, 1, 0) != 1 || reply != 32) return 2;
  send(client, second, sizeof second, 0);
  if (recv(client, &reply, 1, 0) != 1 || reply != 31) return 3;
  return 0;
}
"#;

fn place(protocol: &str) -> TestFolder {
    let search = format!(
        "space = '''\n\
         message : [0,2] offset : [0,1] mask : {{ 1, 128 }} ;\n\
         message : [1,2] direction : {{ to-client }} ;\n\
         message : {{ 1 }} offset : {{ 1 }} value : {{ 10 }} ;\n\
         '''\n\
         injector = \"corrupt\"\nstart = \"./server {protocol}\"\ntest = \"./client {protocol}\"\n\
         [proxy]\nlisten = \"127.0.0.1:4711\"\nto = \"127.0.0.1:4712\"\nprotocol = \"{protocol}\"\n"
    );
    let files = [
        ("server.c", SERVER),
        ("client.c", CLIENT),
        ("s.toml", search.as_str()),
    ];
    let place = TestFolder::new(&format!("corrupt-{protocol}"), &files);
    place.build("server", &["-g"]);
    place.build("client", &["-g"]);
    place
}

/// Returns the number of parallel tests: two, on the same ports, if each can have its own network.
fn jobs() -> &'static str {
    let has_networks = Command::new("unshare").args(["-n", "true"]).status();
    match has_networks.is_ok_and(|status| status.success()) {
        true => "2",
        false => "1",
    }
}

fn check(protocol: &str, summary: &Value) {
    let expect = |scenario: &str, expected: &str| {
        assert_eq!(
            outcome(summary, scenario),
            expected,
            "{protocol} {scenario}"
        );
    };
    // There is no message 0.
    expect("message 0 offset 0 mask 128", "passed");
    // The length gets its highest bit.
    expect("message 1 offset 0 mask 128", "crashed");
    expect("message 2 offset 0 mask 128", "crashed");
    expect("message 1 offset 1 mask 1", "failed");
    expect("message 2 offset 1 mask 128", "failed");
    expect("message 1 direction to-client", "failed");
    // The byte already has this value.
    expect("message 1 offset 1 value 10", "passed");
    let results = summary["results"].as_array().unwrap();
    let injected = results.iter().filter(|one| one["injected"] == true);
    assert_eq!(injected.count(), 11, "{summary}");
    assert_eq!(summary["scenarios_run"], 15);
}

#[test]
fn bytes_of_streams_are_changed_and_failures_replay() {
    let place = place("tcp");
    let summary = place.run("out", &["--search", "exhaustive", "--jobs", jobs()]);
    check("tcp", &summary);
    let crashed = outcome_name(&summary, "message 1 offset 0 mask 128");
    for _ in 0..3 {
        let replayed = place.faults(&["replay", &format!("out/{crashed}")]);
        let said = String::from_utf8_lossy(&replayed.stderr).into_owned();
        assert_eq!(replayed.status.code(), Some(0), "{said}");
    }
}

#[test]
fn bytes_of_datagrams_are_changed() {
    let place = place("udp");
    let summary = place.run("out", &["--search", "exhaustive", "--jobs", jobs()]);
    check("udp", &summary);
}

/// Returns the name of a scenario's folder.
fn outcome_name(summary: &Value, scenario: &str) -> String {
    let results = summary["results"].as_array().unwrap();
    let found = results.iter().find(|result| result["scenario"] == scenario);
    found.unwrap()["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_proxy_that_is_not_understood_is_said() {
    for (text, why) in [
        ("", "`[proxy]` is missing"),
        ("[proxy]\nlisten = \"127.0.0.1:1\"", "[proxy] needs `to`"),
        ("[proxy]\nlisten = \"here\"", "an address and a port"),
        ("[proxy]\nport = 1", "[proxy] has no key `port`"),
    ] {
        let search = format!(
            "space = \"message : [1,2];\"\ninjector = \"corrupt\"\ntest = \"true\"\n{text}\n"
        );
        let place = TestFolder::new("corrupt-bad", &[("s.toml", search.as_str())]);
        let output = place.faults(&["run", "s.toml", "--out", "out"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
