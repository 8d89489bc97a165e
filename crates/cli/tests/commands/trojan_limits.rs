//! `everett trojans`: servers with timers, which never become idle, and servers with symbolic inputs
//! of their own.

use crate::common::{everett, expect, text};
use crate::trojan_clients::{CLIENT, HEAD, analysed, trojans, udp_client, world};

const CLIENTS: &str = "clients = [\"client\"]\nlength = 1\n";

/// A server with a timer of a second: it never becomes idle. It does this with a message.
fn periodic_server(handles: &str) -> String {
    format!(
        "{HEAD}#include <poll.h>
int main(void) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  for (;;) {{
    struct pollfd one = {{.fd = fd, .events = POLLIN}};
    if (poll(&one, 1, 1000) != 1) continue;
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m;
    if (recvfrom(fd, &m, 1, 0, (struct sockaddr *)&from, &size) != 1) continue;
    {handles}
  }}
}}"
    )
}

#[test]
fn a_client_that_waits_forever_for_a_server_with_a_timer_is_cut_off() {
    let server =
        periodic_server("if (m >= 'c') sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);");
    let client = udp_client("if (x < 'a' || x > 'd') return 1; m[0] = x; n = 1;");
    let table = format!("{CLIENTS}against = \"ever\"\n");
    let folder = world("forever", &server, &client, CLIENT, &table);
    let summary = analysed(&folder, &["--native-runs", "0"], 1);
    let client = &summary["clients"][0];
    let of_client = (&client["explored"], &client["cut_off"]);
    assert_eq!(of_client, (&false.into(), &"max-virtual-time".into()));
    assert_eq!(summary["complete"], false);
    // The client sends `c` and `d`; other messages are in a class, which is not certain.
    let class = &trojans(&summary)[0];
    assert_eq!(class["certain"], false);
    assert_eq!(class["confirmed"], "confirmed");
    // The limit of the scenario counts, if it has one.
    let limited = ["--native-runs", "0", "--set", "limits.virtual_time=\"5s\""];
    let summary = analysed(&folder, &limited, 1);
    assert_eq!(summary["clients"][0]["cut_off"], "max-virtual-time");
}

#[test]
fn a_server_with_a_timer_that_does_not_answer_is_confirmed() {
    let server = periodic_server("if (m < 'x') unlink(\"file\"), everett_mark_accept();");
    let server = format!("#include <everett.h>\n{server}");
    let client = udp_client("if (x < 'a' || x > 'c') return 1; m[0] = x; n = 1;");
    let folder = world("silent", &server, &client, CLIENT, CLIENTS);
    for rule in ["accept={ calls = [\"unlink\"] }", "accept=\"mark\""] {
        let rule = format!("trojans.{rule}");
        let args = ["--native-runs", "0", "--set", &rule];
        let summary = analysed(&folder, &args, 1);
        let all = trojans(&summary);
        assert_eq!(all.len(), 1, "{summary:#}");
        let class = (&all[0]["certain"], &all[0]["confirmed"]);
        assert_eq!(class, (&true.into(), &"confirmed".into()), "{rule}");
        // The test of the class is bounded, too.
        let mut test = everett(&folder);
        let said = text(&expect(test.args(["test", "out/trojans"]), 0));
        assert!(said.contains("ok"), "{said}");
    }
}

#[test]
fn classes_that_differ_in_inputs_of_the_server_are_one() {
    let server = format!(
        "{HEAD}int main(int argc, char **argv) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  unsigned char mode = argv[1][0];
  if (mode == 'x') dup(0);
  else if (mode == 'y') dup(1);
  for (;;) {{
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m;
    if (recvfrom(fd, &m, 1, 0, (struct sockaddr *)&from, &size) != 1) continue;
    if (m < 'k') sendto(fd, \"k\", 1, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let client = udp_client("if (x < 'a' || x > 'c') return 1; m[0] = x; n = 1;");
    let folder = world("own_inputs", &server, &client, CLIENT, CLIENTS);
    let symbolic = [
        "--native-runs",
        "0",
        "--set",
        "host.server.args=[{ symbolic = 1 }]",
    ];
    let summary = analysed(&folder, &symbolic, 1);
    let all = trojans(&summary);
    assert_eq!(all.len(), 1, "{summary:#}");
    let class = (&all[0]["certain"], &all[0]["confirmed"]);
    assert_eq!(class, (&true.into(), &"confirmed".into()));
    let of_length = &summary["lengths"][0];
    assert_eq!(of_length["accepting"], 3, "{of_length:#}");
}
