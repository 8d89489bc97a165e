//! `everett trojans`: the examples, streams, clients that were cut off, and error messages for
//! scenarios that cannot be analysed.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAMS: [&str; 3] = ["server", "server-fixed", "client"];

/// Copies an example with its programs.
fn example(name: &str, programs: &[&str]) -> PathBuf {
    example_with(name, name, programs, &[])
}

/// Copies an example with its programs, which are built with these flags.
fn example_with(test: &str, name: &str, programs: &[&str], flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = folder(&format!("trojans_{test}"));
    for entry in fs::read_dir(root.join("examples").join(name)).expect("an example") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a copy");
    }
    for program in programs {
        let mut command = everett(&folder);
        let source = format!("{program}.c");
        let command = command.args(["cc", "-O1", "-o", program, &source]);
        expect(command.args(flags), 0);
    }
    folder
}

pub(crate) fn analysed(folder: &Path, args: &[&str], code: i32) -> Value {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    let mut command = everett(folder);
    expect(command.args(["trojans", "--out", "out"]).args(args), code);
    summary(&out)
}

fn contains(folder: &Path, message: &str, word: &str, code: i32) {
    let mut command = everett(folder);
    let said = expect(
        command.args(["trojans", "--contains", message, "out"]),
        code,
    );
    assert_eq!(text(&said).trim(), word, "{message}");
}

fn trojans(summary: &Value) -> &Vec<Value> {
    summary["trojans"].as_array().expect("classes")
}

#[test]
fn a_read_with_a_negative_address_is_all_there_is() {
    let folder = example("trojan-read", &PROGRAMS);
    for flags in [&[][..], &["--no-prune"], &["--no-drop"], &["--no-fields"]] {
        let args = [&["scenario.toml", "--no-confirm"], flags].concat();
        let summary = analysed(&folder, &args, 1);
        assert_eq!(summary["complete"], true);
        for class in trojans(&summary) {
            let bytes = class["example"].as_str().expect("an example");
            assert_eq!(&bytes[2..4], "01", "a READ: {bytes}");
            let high = u8::from_str_radix(&bytes[6..8], 16).expect("a byte");
            assert!(high >= 0x80, "a negative address: {bytes}");
            assert_eq!(
                (&class["certain"], &class["how"]),
                (&true.into(), &"exact".into())
            );
            assert_eq!(class["group"], "address");
            assert!(
                class["file"]
                    .as_str()
                    .is_some_and(|file| file.ends_with("server.c"))
            );
        }
        assert!(!trojans(&summary).is_empty());
    }
    // READ at -1 and at 7, with checksums; WRITE at -1, which the server rejects; a wrong checksum.
    let message = |request: u8, address: i16| {
        let [low, high] = address.to_le_bytes();
        let mut bytes = vec![5, request, low, high, 0, 0];
        let crc = bytes.iter().fold(0xffff_u16, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte), |crc, _| {
                crc >> 1 ^ (0xa001 * (crc & 1))
            })
        });
        bytes.extend(crc.to_le_bytes());
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    contains(&folder, &message(1, -1), "yes", 0);
    contains(&folder, &message(1, -30_000), "yes", 0);
    contains(&folder, &message(1, 7), "no", 1);
    contains(&folder, &message(2, -1), "no", 1);
    contains(&folder, "0501ffff00000000", "no", 1);
    let fixed = analysed(&folder, &["fixed.toml"], 0);
    assert!(trojans(&fixed).is_empty() && fixed["complete"] == true);
}

/// Returns command, said and real length of the classes of FSP with a wrong length. All others have a
/// `*`.
fn mismatched(summary: &Value) -> BTreeSet<(u8, usize, usize)> {
    let mut mismatched = BTreeSet::new();
    for class in trojans(summary) {
        assert_eq!(
            (&class["certain"], &class["confirmed"]),
            (&true.into(), &"confirmed".into())
        );
        let digits = class["example"].as_str().expect("an example");
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("a byte");
        let path: Vec<u8> = (12..digits.len() / 2).map(byte).collect();
        let real = path.iter().position(|byte| *byte == 0).expect("an end");
        let said = usize::from(byte(7));
        if class["group"] == "len > length of path" {
            assert!(real < said);
            mismatched.insert((byte(0), said, real));
        } else {
            assert!(
                real == said && path.contains(&b'*') && byte(0) != 0x46,
                "{digits}"
            );
        }
    }
    mismatched
}

/// With the annotations of the literature instead of computed checksums.
#[test]
fn all_mismatched_lengths_of_fsp_are_found_with_annotations() {
    let folder = example_with("fsp_annotated", "fsp", &PROGRAMS, &["-DANNOTATED"]);
    let summary = analysed(&folder, &["scenario.toml"], 1);
    assert_eq!(summary["complete"], true);
    let classes = (mismatched(&summary).len(), trojans(&summary).len());
    assert_eq!(classes, (80, 108));
    let fixed = analysed(&folder, &["fixed.toml"], 0);
    assert!(trojans(&fixed).is_empty() && fixed["complete"] == true);
}

#[test]
fn all_mismatched_lengths_of_fsp_are_found_and_confirmed() {
    let folder = example("fsp", &PROGRAMS);
    let summary = analysed(&folder, &["scenario.toml"], 1);
    assert_eq!(summary["complete"], true);
    let mismatched = mismatched(&summary);
    assert_eq!((mismatched.len(), trojans(&summary).len()), (80, 108));
    contains(&folder, "4300000000000002000000006162 00", "no", 1);
    // After the server is fixed, the messages must be rejected.
    let mut command = everett(&folder);
    command.args([
        "test",
        "out/trojans/0001",
        "--fixed",
        "--on",
        "server=server-fixed",
    ]);
    expect(&mut command, 0);
    expect(everett(&folder).args(["test", "out/trojans/0001"]), 0);
    let fixed = analysed(&folder, &["fixed.toml"], 0);
    assert!(trojans(&fixed).is_empty() && fixed["complete"] == true);
}

#[test]
fn a_primary_that_checks_no_authenticators_is_found() {
    let folder = example("pbft-mac", &["replica", "replica-fixed", "client"]);
    let summary = analysed(&folder, &["scenario.toml"], 1);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let [class] = &trojans(&summary)[..] else {
        panic!("one class: {summary:#}");
    };
    assert_eq!(class["group"], "authenticator");
    assert_eq!(class["confirmed"], "confirmed with digest_of replaced");
    assert_eq!(class["certain"], true);
    // A request of client 1 with these authenticators, to be answered by this replica.
    let request = |replier: u16, authenticators: [u32; 4]| {
        let mut bytes = vec![1, 0, 0, 0, 56, 0, 0, 0];
        bytes.extend(
            [0x1d1d_1d1du64; 2]
                .iter()
                .flat_map(|half| half.to_le_bytes()),
        );
        bytes.extend(
            [replier, 8, 1, 7]
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        bytes.extend(b"transfer");
        bytes.extend(authenticators.iter().flat_map(|one| one.to_le_bytes()));
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let right = 0x5a5a_5a5a;
    contains(&folder, &request(3, [right; 4]), "no", 1);
    contains(&folder, &request(3, [right, right, 0, right]), "yes", 0);
    contains(&folder, &request(4, [0; 4]), "no", 1); // there is no such replica
    let mut command = everett(&folder);
    command.args([
        "test",
        "out/trojans",
        "--fixed",
        "--on",
        "primary=replica-fixed",
    ]);
    expect(&mut command, 0);
    let fixed = analysed(&folder, &["fixed.toml"], 0);
    assert!(trojans(&fixed).is_empty() && fixed["complete"] == true);
}

const HEAD: &str = r#"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in at(const char *address) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, address, &here.sin_addr);
  return here;
}
"#;

/// A server that expects a letter and a digit, and answers with `+` or `-`.
fn server(kind: &str) -> String {
    let serve = match kind {
        "SOCK_STREAM" => {
            "listen(fd, 3); for (;;) { int peer = accept(fd, 0, 0); char m[2];
             if (recv(peer, m, 2, MSG_WAITALL) == 2 && is_wanted(m)) send(peer, \"+\", 1, 0); close(peer); }"
        }
        _ => {
            "for (;;) { struct sockaddr_in from; socklen_t size = sizeof from; char m[2];
             if (recvfrom(fd, m, 2, 0, (struct sockaddr *)&from, &size) != 2) continue;
             sendto(fd, is_wanted(m) ? \"+\" : \"-\", 1, 0, (struct sockaddr *)&from, size); }"
        }
    };
    format!(
        "{HEAD}
static int is_wanted(const char *m) {{ return m[0] >= 'a' && m[0] <= 'z' && m[1] >= '0' && m[1] <= '9'; }}
int main(void) {{
  struct sockaddr_in here = at(\"0.0.0.0\");
  int fd = socket(AF_INET, {kind}, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  {serve}
}}
"
    )
}

/// A client that sends a letter and a digit below 5, this many times.
fn client(kind: &str, times: &str) -> String {
    format!(
        "{HEAD}
int main(void) {{
  struct sockaddr_in to = at(\"10.0.0.1\");
  char m[2];
  if (read(0, m, 2) != 2) return 1;
  if (m[0] < 'a' || m[0] > 'z' || m[1] < '0' || m[1] > '4') return 1;
  int fd = socket(AF_INET, {kind}, 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
  for (int i = 0; {times}; i++) {{ if (send(fd, m, 2, 0) != 2) return 1; usleep(1000); }}
  recv(fd, m, 2, 0);
  return 0;
}}
"
    )
}

const HOSTS: &str = "[host.server]\nprogram = \"./server\"\n[host.client]\nprogram = \"./client\"\n\
                     stdin = { symbolic = 2 }\n";

fn pair(test: &str, kind: &str, times: &str, table: &str) -> PathBuf {
    let folder = folder(&format!("trojans_{test}"));
    build(&folder, "server", &server(kind), &["-O1"]);
    build(&folder, "client", &client(kind, times), &["-O1"]);
    let scenario = format!(
        "{HOSTS}[trojans]\nserver = \"server\"\nclients = [\"client\"]\nport = 7000\nlength = 2\n{table}"
    );
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario");
    folder
}

#[test]
fn a_stream_has_messages_too() {
    let folder = pair("stream", "SOCK_STREAM", "i < 1", "protocol = \"tcp\"\n");
    let summary = analysed(&folder, &["scenario.toml"], 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&true.into(), 1)
    );
    assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
    contains(&folder, "6135", "yes", 0); // a5
    contains(&folder, "6134", "no", 1); // a4: a client sends it
    contains(&folder, "4135", "no", 1); // A5: the server rejects it
}

/// A server that takes a proposal and then acceptances, and a client that proposes and accepts the
/// same value.
fn proposals() -> [String; 2] {
    let server = "int main(void) {
  struct sockaddr_in here = at(\"0.0.0.0\"), from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0), value = -1;
  bind(fd, (struct sockaddr *)&here, sizeof here);
  for (;;) {
    unsigned char m[2];
    socklen_t size = sizeof from;
    if (recvfrom(fd, m, 2, 0, (struct sockaddr *)&from, &size) != 2) continue;
    if (m[0] == 'p' && value < 0) value = m[1];
    else if (m[0] != 'a' || value < 0) continue;
    sendto(fd, m, 2, 0, (struct sockaddr *)&from, size);
  }
}";
    let client = "int main(void) {
  struct sockaddr_in to = at(\"10.0.0.1\");
  unsigned char m[2] = {'p', 7}, answer[2];
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  connect(fd, (struct sockaddr *)&to, sizeof to);
  send(fd, m, 2, 0);
  recv(fd, answer, 2, 0);
  m[0] = 'a';
  send(fd, m, 2, 0);
  recv(fd, answer, 2, 0);
  return 0;
}";
    [server, client].map(|program| format!("{HEAD}{program}"))
}

#[test]
fn a_server_in_a_later_state_accepts_other_messages() {
    let folder = pair("state", "SOCK_DGRAM", "i < 1", "");
    for (name, source) in ["server", "client"].into_iter().zip(proposals()) {
        build(&folder, name, &source, &["-O1"]);
    }
    // Before the first proposal, any other proposal is one that no client makes, and nothing can be
    // accepted.
    let summary = analysed(&folder, &["scenario.toml", "--no-confirm"], 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&true.into(), 1)
    );
    contains(&folder, "7008", "yes", 0);
    contains(&folder, "7007", "no", 1);
    contains(&folder, "6108", "no", 1);
    // Afterwards, only the proposed value should be accepted.
    let args = ["scenario.toml", "--set", "trojans.state={ at = \"1s\" }"];
    let summary = analysed(&folder, &args, 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&true.into(), 1)
    );
    assert_eq!(trojans(&summary)[0]["confirmed"], "confirmed");
    contains(&folder, "6108", "yes", 0);
    contains(&folder, "6107", "no", 1);
    contains(&folder, "7008", "no", 1);
}

#[test]
fn a_mark_in_the_code_accepts() {
    let folder = pair("marks", "SOCK_DGRAM", "i < 1", "accept = \"mark\"\n");
    let marked = server("SOCK_DGRAM").replace(
        "sendto(fd, is_wanted(m) ?",
        "if (is_wanted(m)) everett_mark_accept(); sendto(fd, 1 ?",
    );
    let marked = format!("#include <everett.h>\n{marked}");
    build(&folder, "server", &marked, &["-O1"]);
    let summary = analysed(&folder, &["scenario.toml", "--no-confirm"], 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&true.into(), 1)
    );
    assert_eq!(trojans(&summary)[0]["why"], "mark");
    contains(&folder, "6135", "yes", 0);
    contains(&folder, "4135", "no", 1);
}

#[test]
fn fields_are_the_members_of_a_struct() {
    let table = "accept = { reject_reply = \"^-\" }\nfields = \"struct command\"\nmask = [\"head.digit\"]\n";
    let folder = pair("struct", "SOCK_DGRAM", "i < 1", table);
    let typed = "struct head { char digit; };\n\
                 struct command { char letter; struct head head; unsigned low : 4, high : 4; char rest[]; };\n\
                 struct command command_of_server;\n";
    let source = format!("{typed}{}", server("SOCK_DGRAM"));
    build(&folder, "server", &source, &["-O1", "-g"]);
    // Clients send all letters with the digits 0 to 4 that the server accepts.
    let summary = analysed(&folder, &["scenario.toml", "--no-confirm"], 0);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let settings = ["--set", "trojans.mask=[\"letter\"]"];
    let args = [&["scenario.toml", "--no-confirm"], &settings[..]].concat();
    let summary = analysed(&folder, &args, 1);
    let fields = trojans(&summary)[0]["fields"].as_array().expect("fields");
    let fields: Vec<_> = fields
        .iter()
        .map(|field| (&field["name"], &field["offset"]))
        .collect();
    let digit = ("head.digit".into(), 1.into());
    assert_eq!(
        fields,
        [(&"letter".into(), &0.into()), (&digit.0, &digit.1)]
    );
    for (setting, what) in [
        ("trojans.mask=[\"digit\"]", "there are: letter, head.digit"),
        (
            "trojans.mask=[\"letter\", \"head.digit\"]",
            "all bytes of the message are masked",
        ),
        ("trojans.fields=\"struct nobody\"", "build it with -g"),
    ] {
        let mut command = everett(&folder);
        command.args([
            "trojans",
            "scenario.toml",
            "--out",
            "none",
            "--set",
            setting,
        ]);
        let output = expect(&mut command, 2);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(what), "{setting}: {said}");
    }
}

#[test]
fn a_client_that_is_cut_off_makes_nothing_certain() {
    // The client sends forever, and both answers are replies.
    let folder = pair(
        "cut_off",
        "SOCK_DGRAM",
        "1",
        "accept = { reject_reply = \"^-\" }\n",
    );
    let summary = analysed(&folder, &["scenario.toml", "--no-confirm"], 1);
    assert_eq!(
        (&summary["complete"], trojans(&summary).len()),
        (&false.into(), 1)
    );
    assert_eq!(trojans(&summary)[0]["certain"], false);
    contains(&folder, "6135", "undecided", 4);
    contains(&folder, "6130", "no", 1);
    // Only the first message matters here, so the client is explored completely.
    let args = ["scenario.toml", "--no-confirm", "--set", "trojans.number=1"];
    let summary = analysed(&folder, &args, 1);
    assert_eq!(trojans(&summary)[0]["certain"], true);
    contains(&folder, "6135", "yes", 0);
}

#[test]
fn what_cannot_be_analysed_is_said() {
    let folder = pair("errors", "SOCK_DGRAM", "i < 1", "");
    let wrong = |settings: &[&str], what: &str| {
        let mut command = everett(&folder);
        command.args(["trojans", "scenario.toml", "--out", "none"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let output = expect(&mut command, 2);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(what), "{settings:?}: {said}");
        let _ = fs::remove_dir_all(folder.join("none"));
    };
    wrong(&["trojans.port=7001"], "never sends a message to port 7001");
    wrong(&["trojans.length=\"5-3\""], "lengths from 5 to 3");
    let field = "trojans.fields=[{ name = \"x\", offset = 1, size = 2 }]";
    wrong(
        &[field],
        "field \"x\" ends at byte 3, behind the message of 2",
    );
    wrong(&["trojans.mask=[\"y\"]"], "unknown field \"y\"");
    let all = "trojans.fields=[{ name = \"x\", size = \"rest\" }]";
    wrong(
        &[all, "trojans.mask=[\"x\"]"],
        "all bytes of the message are masked",
    );
    let both =
        "trojans.fields=[{ name = \"x\", size = 2 }, { name = \"y\", offset = 1, size = 1 }]";
    wrong(
        &[both, "trojans.mask=[\"y\"]"],
        "field \"y\" is masked, and field \"x\" with bytes of it is not",
    );
    wrong(&["trojans.number=0"], "there is no message 0");
    let behind = "trojans.fields=[{ name = \"x\", size = \"rest\" }, { name = \"y\", size = 1 }]";
    wrong(&[behind], "field \"x\" before it takes the rest");
    wrong(&["trojans.server=\"client\""], "is the server");
    wrong(
        &["trojans.accept={ calls = [\"nonsense\"] }"],
        "is not a system call",
    );
    let none = "trojans.accept={ calls = [] }";
    wrong(&[none], "there is no call that accepts");
    wrong(&["trojans.reject={}"], "reject says nothing");
    wrong(
        &["trojans.accept={ reply = \"a**\" }"],
        "cannot be used here",
    );
    // Errors in the file have line and column.
    let path = folder.join("scenario.toml");
    let text = fs::read_to_string(&path).expect("a scenario");
    fs::write(&path, text.replace("port = 7000", "port = 70000")).expect("a scenario");
    wrong(&[], "scenario.toml:9:8");
    fs::write(&path, HOSTS).expect("a scenario");
    wrong(&[], "the scenario has no [trojans]");
}
