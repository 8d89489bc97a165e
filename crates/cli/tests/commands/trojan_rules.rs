//! `everett trojans`: rules of acceptance, and whether a fixed server rejects a message by the same
//! rule.

use crate::common::{build, everett, expect, text};
use crate::trojan_clients::{
    CLIENT, CLIENTS, HEAD, analysed, contains, trojans, udp_client, udp_server, world,
};
use std::path::Path;

/// A server that handles messages up to this value, and always answers.
fn answering_server(most: u32) -> String {
    format!(
        "{HEAD}#include <everett.h>
#include <stdio.h>
int main(void) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  unlink(\"stale\");
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[16];
    if (recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size) != 1) continue;
    if (m[0] <= {most}) {{
      unlink(\"file\");
      everett_mark_accept();
      sendto(fd, \"OK\", 2, 0, (struct sockaddr *)&from, size);
    }} else {{
      everett_mark_reject();
      sendto(fd, m[0] & 1 ? \"ERR\" : \"NO\", m[0] & 1 ? 3 : 2, 0, (struct sockaddr *)&from, size);
    }}
  }}
}}"
    )
}

fn tests(folder: &Path, args: &[&str], code: i32) -> String {
    let mut command = everett(folder);
    let command = command.args(["test", "out/trojans"]).args(args);
    text(&expect(command, code))
}

/// A server may answer that it rejects a message: the rule decides whether it is fixed.
#[test]
fn a_fixed_server_may_answer_what_it_rejects() {
    let client = udp_client("if (x > 3) return 1; m[0] = x; n = 1;");
    let table = format!("{CLIENTS}length = 1\n");
    let folder = world("rules", &answering_server(9), &client, CLIENT, &table);
    build(&folder, "fixed", &answering_server(3), &["-O1"]);
    for (rule, why) in [
        ("accept={ reply = \"^OK$\" }", "reply"),
        ("accept={ reject_reply = \"^(ERR|NO)\" }", "reply"),
        ("reject={ reply = \"^[^O]\" }", "reply"),
        ("accept={ calls = [\"unlink\"] }", "call unlink"),
        ("accept=\"mark\"", "mark"),
        // A mark that rejects counts with any rule.
        ("accept=\"reply\"", "reply"),
    ] {
        let rule = format!("trojans.{rule}");
        let args = ["--native-runs", "0", "--set", &rule];
        let summary = analysed(&folder, &args, 1);
        let all = trojans(&summary);
        assert_eq!((all.len(), &all[0]["why"]), (1, &why.into()), "{rule}");
        assert_eq!(all[0]["confirmed"], "confirmed", "{rule}");
        contains(&folder, "09", "yes", 0);
        contains(&folder, "0a", "no", 1);
        tests(&folder, &[], 0);
        tests(&folder, &["--fixed"], 1);
        tests(&folder, &["--fixed", "--on", "server=./fixed"], 0);
        let said = tests(&folder, &["--on", "server=./fixed"], 1);
        assert!(said.contains("does not accept"), "{said}");
    }
}

/// A server that only makes a system call and never answers.
#[test]
fn a_call_accepts_without_an_answer() {
    let server = |most: &str| {
        let does = format!("n == 1 && m[0] <= {most}");
        udp_server(&does).replace(
            "sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size)",
            "unlink(\"file\")",
        )
    };
    let client = udp_client("if (x > 3) return 1; m[0] = x; n = 1;");
    let table = format!("{CLIENTS}length = 1\naccept = {{ calls = [\"unlink\", \"rename\"] }}\n");
    let folder = world("call", &server("9"), &client, CLIENT, &table);
    build(&folder, "fixed", &server("3"), &["-O1"]);
    let summary = analysed(&folder, &["--native-runs", "0"], 1);
    assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
    tests(&folder, &["--fixed"], 1);
    tests(&folder, &["--fixed", "--on", "server=./fixed"], 0);
}

/// Marks for an earlier message do not count for a later one.
#[test]
fn marks_are_those_of_the_message() {
    let server = format!(
        "{HEAD}#include <everett.h>
int main(void) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[16];
    if (recvfrom(fd, m, sizeof m, 0, (struct sockaddr *)&from, &size) != 1) continue;
    everett_expose(\"seen\", \"last\", m, 1);
    if (m[0] >= 4 && m[0] <= 9) everett_mark_accept(); else everett_mark_reject();
    sendto(fd, m, 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let client = udp_client("m[0] = x & 3; n = 1;");
    let table = format!("{CLIENTS}length = 1\naccept = \"mark\"\nstate = {{ at = \"1s\" }}\n");
    let folder = world("stale_marks", &server, &client, CLIENT, &table);
    let summary = analysed(&folder, &["--native-runs", "0"], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    contains(&folder, "04", "yes", 0);
    contains(&folder, "09", "yes", 0);
    contains(&folder, "0a", "no", 1);
}

/// A length that counts the NUL of its string is normal if clients send it so.
#[test]
fn groups_compare_lengths_with_what_clients_send() {
    let server = udp_server("n == 4 && m[0] <= 2 && m[1] >= 2 && m[1] <= 3 && m[3] == 0");
    let client = udp_client("if (!x) return 1; m[0] = 1; m[1] = 2; m[2] = x; m[3] = 0; n = 4;");
    let fields = "fields = [{ name = \"cmd\", size = 1 }, { name = \"len\", size = 1, length_of = \"name\" }, \
                  { name = \"name\", size = \"rest\", string = true }]\n";
    let table = format!("{CLIENTS}length = 4\n{fields}");
    let folder = world("usual_length", &server, &client, CLIENT, &table);
    for (accepts, group) in [
        ("m[0] == 2 && m[1] == 2 && m[2] && !m[3]", "cmd"),
        (
            "m[0] == 1 && m[1] == 3 && m[2] && !m[3]",
            "len > length of name",
        ),
        (
            "m[0] == 1 && m[1] == 0 && m[2] && !m[3]",
            "len < length of name",
        ),
        (
            "m[0] == 1 && m[1] == 2 && !m[2] && !m[3]",
            "len > length of name",
        ),
    ] {
        build(
            &folder,
            "server",
            &udp_server(&format!("n == 4 && {accepts}")),
            &["-O1"],
        );
        let summary = analysed(&folder, &["--no-confirm"], 1);
        let all = trojans(&summary);
        assert_eq!(all.len(), 1, "{accepts}: {summary:#}");
        assert_eq!(all[0]["group"], group, "{accepts}");
    }
}
