//! `everett trojans`: what the server does with a message after accepting it.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = r#"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static int open_socket(const char *address, int port) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &there.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (!strcmp(address, "0.0.0.0")) {
    if (bind(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  } else if (connect(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  return fd;
}
"#;

/// A server of messages of two bytes.
fn server(serve: &str) -> String {
    format!(
        "{HEAD}static int table[8];
int main(void) {{
  int fd = open_socket(\"0.0.0.0\", 7000);
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[16];
    if (recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size) != 2) continue;
    {serve}
  }}
}}"
    )
}

const CLIENT: &str = r#"
int main(void) {
  unsigned char m[2];
  if (read(0, m, 2) != 2 || (m[0] != 'p' && m[0] != 'g') || m[1] > 7) return 1;
  int fd = open_socket("10.0.0.1", 7000);
  send(fd, m, 2, 0);
  recv(fd, m, 1, 0);
  return 0;
}
"#;

fn world(test: &str, server: &str, hosts: &str) -> PathBuf {
    let folder = folder(&format!("trojan_afterwards_{test}"));
    build(&folder, "server", server, &["-O1"]);
    build(&folder, "client", &format!("{HEAD}{CLIENT}"), &["-O1"]);
    let scenario = format!(
        "[host.server]\nprogram = \"./server\"\n{hosts}[host.client]\nprogram = \"./client\"\n\
         stdin = {{ symbolic = 2 }}\nstart = \"blocked\"\n[trojans]\nserver = \"server\"\n\
         clients = [\"client\"]\nport = 7000\nlength = 2\n"
    );
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

fn analysed(folder: &Path, args: &[&str]) -> (Value, String) {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    let mut command = everett(folder);
    command
        .args(["trojans", "--out", "out", "scenario.toml"])
        .args(args);
    let said = text(&expect(&mut command, 1));
    (summary(&out), said)
}

#[test]
fn findings_behind_an_answer_are_told_and_confirmed() {
    // Only Trojan messages reach the first finding; all messages reach the second one.
    let server = server(
        "if ((m[0] != 'p' && m[0] != 'g') || (m[0] == 'g' && m[1] != 5 && m[1] != 9)) continue;
    sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);
    if (m[0] == 'p') table[m[1] & 15]++;
    else abort();",
    );
    let folder = world("answer", &server, "");
    let (summary, said) = analysed(&folder, &[]);
    let findings = summary["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 2, "{summary:#}");
    for finding in findings {
        let what = finding["what"].as_str().expect("what");
        let is_only = what.starts_with("out-of-bounds");
        assert!(is_only || what.starts_with("abort"), "{what}");
        assert_eq!(finding["only"], is_only, "{finding:#}");
        assert_eq!(finding["afterwards"], true);
        assert!(finding["line"].as_u64() > Some(20), "{finding:#}");
        let confirmed = finding["confirmed"].as_str().expect("confirmed");
        assert!(confirmed.starts_with("confirmed"), "{confirmed}");
        let message = finding["example"].as_str().expect("a message");
        let contains = ["trojans", "--contains", message, "out"];
        expect(everett(&folder).args(contains), 0);
    }
    assert!(
        said.contains("; no message of a client leads to it; confirmed"),
        "{said}"
    );
    assert!(
        said.contains("; messages of clients lead to it, too; confirmed"),
        "{said}"
    );
    expect(everett(&folder).args(["test", "out/findings"]), 0);
    let (summary, _) = analysed(&folder, &["--no-confirm", "--afterwards", "0"]);
    assert_eq!(summary["findings"], Value::Array(Vec::new()));
}

#[test]
fn a_message_that_is_accepted_by_a_finding_is_one_of_them() {
    let server = server(
        "if (m[0] == 'p') table[m[1] & 15]++;
    if (m[0] == 'p' || m[0] == 'g') sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);",
    );
    let folder = world("crash", &server, "");
    let (summary, _) = analysed(&folder, &["--no-confirm"]);
    let [finding] = &summary["findings"].as_array().expect("findings")[..] else {
        panic!("one finding: {summary:#}");
    };
    assert_eq!(
        (&finding["afterwards"], &finding["only"]),
        (&false.into(), &true.into())
    );
    let class = finding["trojans"][0].as_u64().expect("a class") as usize;
    assert_eq!(finding["dir"], summary["trojans"][class - 1]["dir"]);
    assert_eq!(finding["what"], summary["trojans"][class - 1]["why"]);
}

#[test]
fn a_server_may_ask_another_host_before_it_answers() {
    let server = server(
        "int other = open_socket(\"10.0.0.2\", 7001);
    send(other, m, 2, 0);
    if (recv(other, m, 2, 0) != 1 || m[0] != 'y') continue;
    sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);",
    );
    let base = format!(
        "{HEAD}int main(void) {{
  int fd = open_socket(\"0.0.0.0\", 7001);
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[2];
    recvfrom(fd, m, 2, 0, (struct sockaddr *)&from, &size);
    sendto(fd, m[0] == 'g' && m[1] < 20 ? \"y\" : \"n\", 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let folder = world("asks", &server, "[host.base]\nprogram = \"./base\"\n");
    build(&folder, "base", &base, &["-O1"]);
    let (summary, _) = analysed(&folder, &["--no-confirm"]);
    assert_eq!(summary["complete"], true, "{summary:#}");
    for (message, code) in [("6708", 0), ("6707", 1), ("6714", 1), ("7008", 1)] {
        let contains = ["trojans", "--contains", message, "out"];
        expect(everett(&folder).args(contains), code);
    }
}
