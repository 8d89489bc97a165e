//! `everett trojans` over streams: several messages of a connection, greetings, native clients.

use crate::trojan_clients::{CLIENT, CLIENTS, HEAD, analysed, contains, trojans, world};
use serde_json::json;

/// A stream server that expects `L` and a number below 10, or `U` and one below 50.
fn server() -> String {
    format!(
        "{HEAD}int main(void) {{
  int fd = open_socket(SOCK_STREAM, \"0.0.0.0\");
  listen(fd, 3);
  for (;;) {{
    int peer = accept(fd, 0, 0);
    unsigned char m[2];
    while (recv(peer, m, 2, MSG_WAITALL) == 2) {{
      if (m[0] == 'L' && m[1] < 10) send(peer, \"hi\", 2, 0);
      else if (m[0] == 'U' && m[1] < 50) send(peer, \"ok\", 2, 0);
      else break;
    }}
    close(peer);
  }}
}}"
    )
}

/// A client that identifies itself, byte by byte, and sends more after an answer.
fn client() -> String {
    format!(
        "{HEAD}int main(void) {{
  unsigned char x, m[2], answer[8];
  if (read(0, &x, 1) != 1 || x > 4) return 1;
  int fd = open_socket(SOCK_STREAM, \"10.0.0.1\");
  m[0] = 'L'; m[1] = x;
  send(fd, m, 1, 0);
  usleep(1000);
  send(fd, m + 1, 1, 0);
  if (recv(fd, answer, 2, MSG_WAITALL) != 2 || answer[0] != 'h') return 1;
  m[0] = 'U'; m[1] = x + 1;
  send(fd, m, 2, 0);
  recv(fd, answer, 8, 0);
  return 0;
}}"
    )
}

#[test]
fn messages_after_an_answer_count_where_they_are_meant() {
    let table = format!("{CLIENTS}length = 2\nprotocol = \"tcp\"\n");
    let folder = world("rounds", &server(), &client(), CLIENT, &table);
    for (set, is_login, is_use) in [
        ("trojans.against=\"state\"", false, true),
        ("trojans.against=\"ever\"", false, false),
        ("trojans.number=2", true, false),
        ("trojans.state={ at = \"1s\" }", false, false),
    ] {
        let args = ["--set", set, "--native-runs", "80"];
        let summary = analysed(&folder, &args, 1);
        assert_eq!(summary["complete"], true, "{set}: {summary:#}");
        let native = &summary["native_runs"];
        assert_eq!(
            (&native["runs"], &native["contradictions"]),
            (&json!(80), &json!([]))
        );
        assert!(native["different"].as_u64() > Some(0), "{native:#}");
        let expect = |message, is_trojan| match is_trojan {
            true => contains(&folder, message, "yes", 0),
            false => contains(&folder, message, "no", 1),
        };
        expect("4c04", is_login);
        expect("5505", is_use);
        expect("4c05", true);
        expect("5506", true);
        expect("5532", false);
    }
}

/// Messages of a native stream client are found, including where they end.
#[test]
fn native_clients_of_streams_contradict_what_is_wrong() {
    let client = format!(
        "#include <sys/auxv.h>\n{HEAD}int main(void) {{
  unsigned char m[2] = {{'L', 1}}, answer[8], x;
  if (read(0, &x, 1) != 1) return 1;
  unsigned char *drawn = (unsigned char *)getauxval(AT_RANDOM);
  if (drawn[3] % 5 == DRAWN) m[1] = 7;
  int fd = open_socket(SOCK_STREAM, \"10.0.0.1\");
  send(fd, m, 1, 0);
  send(fd, m + 1, 1, 0);
  recv(fd, answer, 2, MSG_WAITALL);
  send(fd, \"U\\0\", 2, 0);
  recv(fd, answer, 8, 0);
  return 0;
}}"
    );
    let mut refuted = 0;
    // The exploration tries two values, so it sees at most two of these.
    for drawn in ["0", "1", "2"] {
        let table = format!("{CLIENTS}length = 2\nprotocol = \"tcp\"\n");
        let client = client.replace("DRAWN", drawn);
        let test = format!("stream_contradiction_{drawn}");
        let folder = world(&test, &server(), &client, CLIENT, &table);
        let summary = analysed(&folder, &["--native-runs", "60"], 1);
        if summary["clients"][0]["depends_on"].is_null() {
            let all = summary["native_runs"]["contradictions"].as_array();
            let all = all.expect("contradictions");
            assert_eq!((all.len(), &all[0]["message"]), (1, &json!("4c07")));
            contains(&folder, "4c07", "undecided", 4);
            refuted += 1;
        }
    }
    assert!(refuted >= 1, "{refuted}");
}

/// A client may connect before it knows that it has nothing to send. The server's answer to that is
/// not a greeting.
#[test]
fn an_answer_to_the_end_of_a_stream_is_no_greeting() {
    let server = server().replace(
        "close(peer);",
        "send(peer, \"bye\", 3, MSG_NOSIGNAL); close(peer);",
    );
    let client = format!(
        "{HEAD}int main(void) {{
  unsigned char x, m[2] = {{'L'}};
  int fd = open_socket(SOCK_STREAM, \"10.0.0.1\");
  if (read(0, &x, 1) != 1 || x > 4) return 1;
  m[1] = x;
  send(fd, m, 2, 0);
  recv(fd, m, 2, 0);
  return 0;
}}"
    );
    let table =
        format!("{CLIENTS}length = 2\nprotocol = \"tcp\"\naccept = {{ reply = \"^(hi|ok)\" }}\n");
    let folder = world("ended", &server, &client, CLIENT, &table);
    let summary = analysed(&folder, &["--native-runs", "0"], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    assert_eq!(trojans(&summary).len(), 2, "{summary:#}");
    contains(&folder, "4c05", "yes", 0);
    contains(&folder, "4c04", "no", 1);
}

/// Streams that arrive in pieces lead to the same classes.
#[test]
fn messages_may_arrive_in_pieces() {
    let table = format!("{CLIENTS}length = 2\nprotocol = \"tcp\"\n");
    let folder = world("pieces", &server(), &client(), CLIENT, &table);
    let args = ["--native-runs", "0", "--set", "host.server.fragment=2"];
    let summary = analysed(&folder, &args, 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&json!(true), 2)
    );
    contains(&folder, "4c05", "yes", 0);
    contains(&folder, "4c04", "no", 1);
}

/// A server that wakes up again and again never ends; clients do.
#[test]
fn a_server_that_never_sleeps_for_long_is_analysed() {
    let wait = "struct pollfd ready = {fd, POLLIN};
    if (poll(&ready, 1, 500) < 1) continue;";
    let datagrams = format!(
        "#include <poll.h>\n{HEAD}int main(void) {{
  int fd = open_socket(SOCK_DGRAM, \"0.0.0.0\");
  for (;;) {{
    {wait}
    struct sockaddr_in from; socklen_t size = sizeof from; unsigned char m[2];
    if (recvfrom(fd, m, 2, 0, (struct sockaddr *)&from, &size) == 2 && m[0] == 'L' && m[1] < 10)
      sendto(fd, \"hi\", 2, 0, (struct sockaddr *)&from, size);
  }}
}}"
    );
    let accepts = "int peer = accept(fd, 0, 0);";
    let streams = server().replace(accepts, &format!("{wait}\n{accepts}"));
    let streams = format!("#include <poll.h>\n{streams}");
    for (protocol, kind, server) in [
        ("udp", "SOCK_DGRAM", &datagrams),
        ("tcp", "SOCK_STREAM", &streams),
    ] {
        let client = format!(
            "{HEAD}int main(void) {{
  unsigned char m[2] = {{'L'}};
  if (read(0, m + 1, 1) != 1 || m[1] > 4) return 1;
  int fd = open_socket({kind}, \"10.0.0.1\");
  send(fd, m, 2, 0);
  recv(fd, m, 2, 0);
  return 0;
}}"
        );
        let table = format!("{CLIENTS}length = 2\nprotocol = \"{protocol}\"\n");
        let test = format!("awake_{protocol}");
        let folder = world(&test, server, &client, CLIENT, &table);
        let summary = analysed(&folder, &["--native-runs", "0"], 1);
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
        contains(&folder, "4c05", "yes", 0);
        contains(&folder, "4c04", "no", 1);
    }
}
