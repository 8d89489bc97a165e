//! `everett trojans`: functions that the scenario replaces.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = r#"
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static int open_socket(const char *address) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, address, &there.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (!strcmp(address, "0.0.0.0")) {
    if (bind(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  } else if (connect(fd, (struct sockaddr *)&there, sizeof there)) exit(1);
  return fd;
}
/* Nobody inverts this. */
KIND uint32_t digest(const unsigned char *m) {
  uint32_t h = 2166136261u;
  for (int i = 0; i < 90; i++) h = (h ^ m[i % 3]) * 16777619u * (h | 1) + (h >> 13);
  return h;
}
"#;

const SERVER: &str = r#"
__attribute__((noinline)) short level(int user) { return user % 7 - 3; }
int main(void) {
  int fd = open_socket("0.0.0.0");
  for (;;) {
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[8]; uint32_t sum;
    if (recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size) != 7) continue;
    memcpy(&sum, m + 3, 4);
    if (sum != digest(m) || m[1] > 20) continue;
    if (m[0] != 'r' && (m[0] != 'w' || level(m[2]) < 3)) continue;
    sendto(fd, "k", 1, 0, (struct sockaddr *)&from, size);
  }
}
"#;

const CLIENT: &str = r#"
int main(void) {
  unsigned char m[7] = {'r'};
  if (read(0, m + 1, 2) != 2 || m[1] > 9) return 1;
  uint32_t sum = digest(m);
  memcpy(m + 3, &sum, 4);
  int fd = open_socket("10.0.0.1");
  send(fd, m, 7, 0);
  recv(fd, m, 1, 0);
  return 0;
}
"#;

const SCENARIO: &str = r#"[host.server]
program = "./server"
[host.client]
program = "./client"
stdin = { symbolic = 2 }
[trojans]
server = "server"
clients = ["client"]
port = 7000
length = 7
"#;

const KEPT: &str = "#define KIND __attribute__((noinline))\n";

fn world(test: &str, replace: &str) -> PathBuf {
    let folder = folder(&format!("trojan_replace_{test}"));
    build(
        &folder,
        "server",
        &format!("{KEPT}{HEAD}{SERVER}"),
        &["-O1"],
    );
    build(
        &folder,
        "client",
        &format!("{KEPT}{HEAD}{CLIENT}"),
        &["-O1"],
    );
    fs::write(folder.join("scenario.toml"), format!("{SCENARIO}{replace}")).expect("a scenario");
    folder
}

fn analysed(folder: &Path, code: i32) -> Value {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    let mut command = everett(folder);
    expect(
        command.args(["trojans", "--out", "out", "scenario.toml"]),
        code,
    );
    summary(&out)
}

fn contains(folder: &Path, message: &str, word: &str, code: i32) {
    let mut command = everett(folder);
    let command = command.args(["trojans", "--contains", message, "out"]);
    let said = expect(command, code);
    assert_eq!(text(&said).trim(), word, "{message}");
}

#[test]
fn a_checksum_is_any_number_in_all_programs() {
    let replace = "replace = { digest = [0, 0xffffffff], level = [-3, 3] }\n";
    let folder = world("any", replace);
    let summary = analysed(&folder, 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let classes = summary["trojans"].as_array().expect("classes");
    assert_eq!(classes.len(), 2, "{summary:#}");
    for class in classes {
        assert_eq!(class["confirmed"], "confirmed with digest, level replaced");
        assert_eq!(
            (&class["certain"], &class["how"]),
            (&true.into(), &"exact".into())
        );
    }
    contains(&folder, "720a0501020304", "yes", 0);
    contains(&folder, "72090501020304", "no", 1); // a client sends it, with any checksum
    contains(&folder, "77000000000000", "yes", 0);
    contains(&folder, "78000000000000", "no", 1);
    // The replacements in the trace also apply to later replays.
    expect(everett(&folder).args(["test", "out/trojans"]), 0);
    let other = format!("{KEPT}{HEAD}{}", SERVER.replace("m[1] > 20", "m[1] > 9"));
    build(&folder, "fixed", &other.replace("'w'", "'r'"), &["-O1"]);
    let fixed = ["test", "out/trojans", "--fixed", "--on", "server=fixed"];
    expect(everett(&folder).args(fixed), 0);
    let exported = expect(everett(&folder).args(["export", "out/trojans/0001"]), 2);
    let said = String::from_utf8_lossy(&exported.stderr).into_owned();
    assert!(said.contains("functions that were replaced"), "{said}");
    let shown = text(&expect(
        everett(&folder).args(["scenario", "show", "scenario.toml"]),
        0,
    ));
    assert!(
        shown.contains("level is replaced: it returns any of -3 to 3"),
        "{shown}"
    );
}

#[test]
fn a_constant_is_one_number() {
    // Clients send no checksum but 5, and nobody is an administrator.
    let folder = world("constant", "[trojans.replace]\ndigest = 5\nlevel = -1\n");
    let summary = analysed(&folder, 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let classes = summary["trojans"].as_array().expect("classes");
    assert_eq!(classes.len(), 1, "{summary:#}");
    assert_eq!(
        classes[0]["confirmed"],
        "confirmed with digest, level replaced"
    );
    contains(&folder, "720a0505000000", "yes", 0);
    contains(&folder, "72090505000000", "no", 1);
    contains(&folder, "720a0506000000", "no", 1); // the server rejects it
    contains(&folder, "77000005000000", "no", 1);
}

#[test]
fn what_cannot_be_replaced_is_said_with_its_place() {
    let folder = world("errors", "");
    let wrong = |replace: &str, what: &str| {
        let path = folder.join("scenario.toml");
        fs::write(path, format!("{SCENARIO}replace = {replace}\n")).expect("a scenario");
        let mut command = everett(&folder);
        command.args(["trojans", "scenario.toml", "--out", "none"]);
        let said = expect(&mut command, 2);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let at = format!("scenario.toml:11:{what}");
        assert!(said.contains(&at), "{replace}: {said}");
    };
    wrong("{ digset = 1 }", "13: no program has a function \"digset\"");
    wrong(
        "{ level = [0, 70000] }",
        "13: \"level\" of ./server returns a number of 16 bits",
    );
    wrong("{ exit = 1 }", "13: \"exit\" of ./client returns no number");
    wrong("{ level = [3, 1] }", "21: there is no number from 3 to 1");
    wrong("{ level = \"x\" }", "21: expected a number");
    wrong("[\"level\"]", "11: expected what functions return");
    // An inlined copy of the function would still be executed.
    let inlined = format!("#define KIND\n{HEAD}{SERVER}");
    build(&folder, "server", &inlined, &["-O2"]);
    wrong(
        "{ digest = 1 }",
        "13: \"digest\" is inlined in ./server, at ",
    );
}
