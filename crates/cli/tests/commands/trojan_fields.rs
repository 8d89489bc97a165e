//! `everett trojans`: fields whose place or length depends on other fields, and repeated fields.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = r#"
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in at(const char *address) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, address, &here.sin_addr);
  return here;
}
"#;

/// A server that accepts the message `m` of `n` bytes if `ok` is set.
fn server(checks: &str) -> String {
    format!(
        "{HEAD}int main(void) {{
  struct sockaddr_in here = at(\"0.0.0.0\"), from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  for (;;) {{
    socklen_t size = sizeof from; unsigned char m[16]; int ok = 0;
    ssize_t n = recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size);
    {checks}
    if (ok) sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    )
}

/// A client that makes a message `m` of `n` bytes from five bytes of input `x`.
fn client(makes: &str) -> String {
    format!(
        "{HEAD}int main(void) {{
  struct sockaddr_in to = at(\"10.0.0.1\");
  unsigned char x[5], m[16]; int n;
  if (read(0, x, 5) != 5) return 1;
  {makes}
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
  send(fd, m, n, 0);
  recv(fd, m, 1, 0);
  return 0;
}}"
    )
}

fn world(test: &str, server: &str, client: &str, table: &str) -> PathBuf {
    let folder = folder(&format!("trojan_fields_{test}"));
    build(&folder, "server", server, &["-O1"]);
    build(&folder, "client", client, &["-O1"]);
    let scenario = format!(
        "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
         stdin = {{ symbolic = 5 }}\n[trojans]\nserver = \"server\"\nclients = [\"client\"]\n\
         port = 7000\n{table}"
    );
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

fn analysed(folder: &Path, code: i32) -> Value {
    let mut command = everett(folder);
    let command = command.args(["trojans", "--no-confirm", "--out", "out", "scenario.toml"]);
    expect(command, code);
    summary(&folder.join("out"))
}

fn contains(folder: &Path, messages: &[(&str, &str)]) {
    for (message, word) in messages {
        let mut command = everett(folder);
        let command = command.args(["trojans", "--contains", message, "out"]);
        let said = expect(command, i32::from(*word == "no"));
        assert_eq!(text(&said).trim(), *word, "{message}");
    }
}

fn field_names(class: &Value) -> Vec<&str> {
    let fields = class["fields"].as_array().expect("fields");
    let names = fields.iter().map(|field| field["name"].as_str());
    names.map(|name| name.expect("a name")).collect()
}

#[test]
fn a_masked_field_lies_behind_one_of_any_length() {
    // The server accepts more bytes than the length says, and no bytes at all.
    let server = server(
        "if (n < 3 || m[0] != 7 || m[1] + 3 > n) continue;
         ok = 1; for (int i = 0; i < m[1]; i++) ok &= m[2 + i] >= 'a' && m[2 + i] <= 'z';",
    );
    let client = client(
        "if (x[0] < 1 || x[0] > 3) return 1;
         m[0] = 7; m[1] = x[0]; n = 3 + x[0];
         for (int i = 0; i < x[0]; i++) { if (x[1 + i] < 'a' || x[1 + i] > 'z') return 1; m[2 + i] = x[1 + i]; }
         m[2 + x[0]] = getpid();",
    );
    let table = "length = \"3-6\"\nfields = [{ name = \"cmd\", size = 1 }, { name = \"len\", size = 1 },\n\
                 { name = \"payload\", size = \"len\" }, { name = \"sum\", after = \"payload\", size = 1 }]\n\
                 mask = [\"sum\"]\n";
    let folder = world("behind", &server, &client, table);
    let summary = analysed(&folder, 1);
    // The field that contains the process id is masked, wherever it is.
    assert_eq!(
        summary["clients"][0]["depends_on"],
        Value::Null,
        "{summary:#}"
    );
    assert_eq!(summary["complete"], true, "{summary:#}");
    contains(
        &folder,
        &[
            ("070033", "yes"),
            ("07016155", "no"),
            ("07016199", "no"), // another checksum
            ("07014155", "no"), // the server rejects it
            ("0702616200", "no"),
            ("0701616263", "yes"), // a byte behind the checksum
            ("070261626300", "yes"),
            ("07026162", "no"),
        ],
    );
}

#[test]
fn groups_are_repeated_as_often_as_a_field_says() {
    // The server knows a third kind of options, and does not check the length of one.
    let server = server(
        "int at = 1; ok = n > 1;
         for (int i = 0; i < m[0] && ok; i++) {
           if (at + 2 > n || m[at] < 1 || m[at] > 3) { ok = 0; break; }
           at += 2 + m[at + 1]; ok = at <= n;
         }
         ok = ok && at + 1 == n;",
    );
    let client = client(
        "if (x[0] < 1 || x[0] > 2 || x[1] < 1 || x[1] > 2) return 1;
         m[0] = 1; m[1] = x[0]; m[2] = 1; m[3] = x[2]; m[4] = getpid(); n = 5;
         if (x[4] & 1) { m[0] = 2; m[4] = x[1]; m[5] = 0; m[6] = getpid(); n = 7; }",
    );
    let table = "length = \"5-7\"\nfields = [{ name = \"count\", size = 1 },\n\
                 { name = \"option\", repeat = \"count\", fields = [{ name = \"kind\", size = 1 },\n\
                 { name = \"len\", size = 1 }, { name = \"value\", size = \"len\" }] },\n\
                 { name = \"tag\", size = 1 }]\nmask = [\"tag\"]\n";
    let folder = world("groups", &server, &client, table);
    let summary = analysed(&folder, 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let classes = summary["trojans"].as_array().expect("classes");
    let group = |name: &str| classes.iter().find(|class| class["group"] == name);
    let kind = group("option.kind").expect("another kind");
    let expected = [
        "count",
        "option[0].kind",
        "option[0].len",
        "option[0].value",
        "tag",
    ];
    assert_eq!(field_names(kind), expected);
    contains(
        &folder,
        &[
            ("01010199aa", "no"),
            ("01020199bb", "no"),
            ("01030199aa", "yes"),
            ("020101990200cc", "no"),
            ("020101990300cc", "yes"),
            ("0102029999cc", "yes"),
            ("0102029999", "no"),
        ],
    );
    let mut command = everett(&folder);
    let shown = text(&expect(
        command.args(["scenario", "show", "scenario.toml"]),
        0,
    ));
    assert!(
        shown.contains("a group behind the field before it, as often as count says"),
        "{shown}"
    );
}

#[test]
fn what_fields_cannot_say_is_said_with_its_place() {
    let folder = world("errors", &server(""), &client("n = 5;"), "");
    let path = folder.join("scenario.toml");
    let head = fs::read_to_string(&path).expect("a scenario");
    for (fields, mask, what) in [
        (
            "{ name = \"a\", size = \"b\" }",
            "",
            "11:32: unknown earlier field \"b\"",
        ),
        (
            "{ name = \"a\", size = 9 }, { name = \"b\", size = \"a\" }",
            "",
            "11:58: field \"a\" is not a number",
        ),
        (
            "{ name = \"a\", size = 1, repeat = \"rest\" }, { name = \"b\", size = 1 }",
            "",
            "11:54: field \"a\" before it takes the rest",
        ),
        (
            "{ name = \"a\", size = 1, fields = [{ name = \"b\", size = 1 }] }",
            "",
            "11:32: both \"fields\" and \"size\" are given",
        ),
        (
            "{ name = \"a\", repeat = 6, fields = [{ name = \"b\", size = 2 }] }",
            "",
            "11:11: field \"a\" ends at byte 12, behind the message of 9",
        ),
        (
            "{ name = \"a\", offset = -10, size = 1 }",
            "",
            "11:34: messages have no 10 bytes",
        ),
        (
            "{ name = \"a\", size = 1 }, { name = \"b\", size = \"a\" }, { name = \"c\", size = 1 }",
            "\"a\", \"c\"",
            "12:8: field \"a\" is masked, and says where others lie",
        ),
        (
            "{ name = \"a\", fields = [{ name = \"b\", size = 2 }] }",
            "\"a.c\"",
            "12:9: unknown field \"a.c\"",
        ),
    ] {
        let table = format!("length = 9\nfields = [{fields}]\nmask = [{mask}]\n");
        fs::write(&path, format!("{head}{table}")).expect("a scenario");
        let said = expect(
            everett(&folder).args(["scenario", "check", "scenario.toml"]),
            2,
        );
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.contains(&format!("scenario.toml:{what}")),
            "{fields}: {said}"
        );
    }
}
