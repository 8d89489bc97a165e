//! The commands around replay: `confirm`, `test`, `shrink`, `export` and `replay` itself.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Aborts on some inputs; otherwise prints how many bytes it read.
const LETTERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char b[8] = {0};
  int n = read(0, b, 6);
  if (argc > 1 && argv[1][0] == 'k' && b[0] == 'q' && b[3] > 'm') abort();
  if (b[1] == '!') { puts("bang"); return 3; }
  printf("%d\n", n);
  return 0;
}
"#;

/// Writes past the end of a block, which native code does not notice.
const SURVIVED: &str = r#"
#include <everett.h>
#include <stdlib.h>
int main(void) {
  unsigned char x;
  everett_make_symbolic(&x, 1, "x");
  char *p = malloc(5);
  if (x == 7) p[5] = 1;
  return p == 0;
}
"#;

fn explore(folder: &Path, options: &[&str], program: &[&str], code: i32) {
    let run = ["run", "--quiet", "--out", "out"];
    expect(everett(folder).args(run).args(options).args(program), code);
}

fn lines(output: &std::process::Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_suite_passes_as_recorded_and_fails_on_another_program() {
    let folder = folder("suite");
    build(&folder, "letters", LETTERS, &[]);
    build(
        &folder,
        "fixed",
        &LETTERS.replace("abort()", "return 9"),
        &[],
    );
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &[], &program, 1);
    let same = ["test", "out", "--junit", "junit.xml", "--jobs", "3"];
    let said = lines(&expect(everett(&folder).args(same), 0));
    assert!(said[0].starts_with("ok        out/findings/0001/finding.trace"));
    assert_eq!(
        said[said.len() - 1],
        "6 passed, 0 failed, 0 diverged, 0 skipped"
    );
    let junit = fs::read_to_string(folder.join("junit.xml")).expect("a file");
    assert!(
        junit.contains("tests=\"6\" failures=\"0\" errors=\"0\" skipped=\"0\""),
        "{junit}"
    );
    assert_eq!(junit.matches("<testcase ").count(), 6, "{junit}");

    // The fixed program ends differently, as --fixed expects.
    let other = ["test", "out", "--on", "./fixed"];
    let said = lines(&expect(everett(&folder).args(other), 1));
    assert_eq!(
        said[0],
        "FAILED    out/findings/0001/finding.trace: the native program exits with 9"
    );
    expect(everett(&folder).args(other).arg("--fixed"), 0);
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--fixed"]),
        1,
    ));
    assert_eq!(
        said[0],
        "FAILED    out/findings/0001/finding.trace: it still happens"
    );

    // A part of a run is also a suite, and so is one trace.
    expect(
        everett(&folder).args(["test", "out/tests", "out/findings/0001/finding.trace"]),
        0,
    );
    let nothing = expect(everett(&folder).args(["test", "elsewhere"]), 2);
    assert!(text(&nothing).contains("there is no elsewhere"));
}

#[test]
fn a_program_that_asks_for_something_else_diverges() {
    let folder = folder("diverges");
    build(&folder, "survived", SURVIVED, &[]);
    explore(&folder, &[], &["./survived"], 1);
    let asks_more = SURVIVED.replace("&x, 1, \"x\"", "&x, 1, \"y\"");
    build(&folder, "other", &asks_more, &[]);
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--on", "./other"]),
        1,
    ));
    assert!(said.iter().all(|line| !line.starts_with("ok")), "{said:?}");
    assert!(said[0].starts_with("DIVERGED  "), "{said:?}");
    let fixed = ["test", "out", "--fixed", "--on", "./other"];
    let said = lines(&expect(everett(&folder).args(fixed), 1));
    assert!(said[0].starts_with("DIVERGED  "), "{said:?}");
}

#[test]
fn what_native_code_survives_is_neither_passed_nor_mended() {
    let folder = folder("survives");
    build(&folder, "survived", SURVIVED, &[]);
    explore(&folder, &[], &["./survived"], 1);
    let said = lines(&expect(everett(&folder).args(["test", "out"]), 0));
    let finding = &said[0];
    let was_seen = summary(&folder.join("out"))["findings"][0]["confirmed"] == "confirmed";
    assert!(was_seen || finding.starts_with("skipped "), "{said:?}");
    // The bitcode still has the finding, whatever happens natively.
    let said = lines(&expect(
        everett(&folder).args(["test", "out", "--fixed"]),
        1,
    ));
    assert!(said[0].starts_with("FAILED    out/findings/0001/finding.trace: it still happens"));
    build(
        &folder,
        "mended",
        &SURVIVED.replace("malloc(5)", "malloc(6)"),
        &[],
    );
    expect(
        everett(&folder).args(["test", "out", "--fixed", "--on", "./mended"]),
        0,
    );
}

/// Two threads that count, each on its own line.
const RACING: &str = r#"
#include <pthread.h>
static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
  counter++;
  return arg;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  counter++;
  return pthread_join(thread, 0);
}
"#;

#[test]
fn a_race_is_confirmed_where_both_threads_come_to_their_accesses_and_nowhere_else() {
    let folder = folder("racing");
    build(&folder, "racing", RACING, &[]);
    explore(&folder, &["--check-races"], &["./racing"], 1);
    let said = lines(&expect(
        everett(&folder).args(["replay", "out/findings"]),
        0,
    ));
    assert!(said[0].ends_with(": confirmed"), "{said:?}");
    let locked = "pthread_mutex_lock(&lock); counter++; pthread_mutex_unlock(&lock);";
    build(
        &folder,
        "mended",
        &RACING.replace("counter++;", locked),
        &[],
    );
    let mended = ["replay", "out/findings", "--on", "./mended"];
    let said = lines(&expect(everett(&folder).args(mended), 1));
    assert!(said[0].contains(": not-reproduced: "), "{said:?}");
}

#[test]
fn confirming_is_noted_in_the_summary() {
    let folder = folder("confirming");
    build(&folder, "letters", LETTERS, &[]);
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &["--no-confirm"], &program, 1);
    let confirmed = || summary(&folder.join("out"))["findings"][0]["confirmed"].clone();
    assert_eq!(confirmed(), Value::Null);
    let said = lines(&expect(everett(&folder).args(["confirm", "out"]), 0));
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(confirmed(), "confirmed");
    let said = lines(&expect(
        everett(&folder).args(["confirm", "--tests", "out"]),
        0,
    ));
    assert_eq!(said[said.len() - 1], "6 of 6 traces confirmed");
}

/// Needs two of its bytes and one failure, whatever the others are.
const NOISY: &str = r#"
#include <everett.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  unsigned char text[12];
  int failed = 0;
  everett_make_symbolic(text, sizeof text, "text");
  for (int i = 0; i < 3; i++) failed += write(1, "x", 1) != 1;
  if (failed > 0 && text[3] > 'b' && text[7] != 0) abort();
  return 0;
}
"#;

fn trace_of(path: &Path) -> (String, Vec<u64>) {
    let bytes = fs::read(path).expect("a trace");
    let trace: Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = trace["inputs"][0]["bytes"]
        .as_str()
        .expect("bytes")
        .to_owned();
    let choices = trace["choices"].as_array().cloned().unwrap_or_default();
    let picked = choices
        .iter()
        .map(|choice| choice["picked"].as_u64().expect("a number"));
    (text, picked.collect())
}

#[test]
fn a_trace_is_made_simpler_and_ends_the_same() {
    let folder = folder("shrinking");
    build(&folder, "noisy", NOISY, &[]);
    let options = ["--no-shrink", "--faults", "3", "--fault", "write:EINTR"];
    explore(&folder, &options, &["./noisy"], 1);
    let path = folder.join("out/findings/0001/finding.trace");
    let original = folder.join("out/findings/0001/finding.original.trace");
    assert!(!original.exists());
    // More than necessary: every byte, and all three failures.
    let bytes = fs::read_to_string(&path).expect("a trace");
    let mut trace: Value = serde_json::from_str(&bytes).expect("JSON");
    trace["inputs"][0]["bytes"] = "ff".repeat(12).into();
    for choice in trace["choices"].as_array_mut().expect("choices") {
        choice["picked"] = 1.into();
    }
    trace["end"]["output"][0] = "0:cbf29ce484222325".into();
    fs::write(&path, trace.to_string()).expect("it can be written");
    expect(everett(&folder).args(["follow", "out/findings/0001"]), 0);

    let output = expect(everett(&folder).args(["shrink", "out/findings/0001"]), 0);
    let said = text(&output);
    assert!(
        said.starts_with("before: 3 choices that are not as usual, 12 of 12 bytes not zero\n"),
        "{said}"
    );
    let (text, picked) = trace_of(&path);
    assert_eq!(picked.iter().sum::<u64>(), 1, "{picked:?}");
    let printable = |digits: &str| {
        let byte = u8::from_str_radix(digits, 16).expect("a byte");
        byte == 0 || byte.is_ascii_graphic()
    };
    let bytes: Vec<&str> = (0..12).map(|at| &text[2 * at..2 * at + 2]).collect();
    assert_eq!(
        bytes.iter().filter(|byte| **byte != "00").count(),
        2,
        "{text}"
    );
    assert!(bytes[7] != "00" && printable(bytes[7]), "{text}");
    assert_eq!(trace_of(&original), ("ff".repeat(12), vec![1, 1, 1]));
    // The finding is the same, in the engine and natively, and the original is not a separate
    // trace.
    let followed = expect(everett(&folder).args(["follow", "out"]), 0);
    assert!(!crate::common::text(&followed).contains("original"));
    let confirmed = expect(everett(&folder).args(["confirm", "out"]), 0);
    assert!(crate::common::text(&confirmed).ends_with("1 of 1 traces confirmed\n"));
    let finding = fs::read_to_string(folder.join("out/findings/0001/finding.txt"));
    assert!(
        finding
            .expect("a finding")
            .contains("(made simpler; as it was found")
    );
    // The second time, nothing is left to shrink.
    let again = expect(everett(&folder).args(["shrink", "out/findings/0001"]), 0);
    assert!(crate::common::text(&again).ends_with("nothing simpler ends the same\n"));
}

#[test]
fn the_end_of_a_test_stays_when_it_is_made_simpler() {
    let folder = folder("shrinking-tests");
    build(&folder, "letters", LETTERS, &[]);
    let program = ["./letters", "--sym-arg", "2", "--sym-stdin", "6"];
    explore(&folder, &["--all-tests"], &program, 1);
    for number in 1..=5 {
        let path = format!("out/tests/{number:06}.trace");
        expect(everett(&folder).args(["shrink", &path]), 0);
    }
    expect(everett(&folder).args(["follow", "out"]), 0);
    expect(everett(&folder).args(["test", "out"]), 0);
}

/// Takes a part of everything that can be symbolic.
const EVERYTHING: &str = r#"
#include <everett.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  unsigned v;
  char b[8] = {0}, in[400];
  everett_make_symbolic(&v, sizeof v, "v");
  int n = read(open("data/f", O_RDONLY), b, 8);
  long m = read(0, in, sizeof in);
  const char *mode = getenv("MODE");
  if (argc == 3 && argv[1][0] == '\n' && argv[2][0] == (char)0xe9 && v == 77 && n == 3 &&
      b[2] == '%' && mode && mode[0] == '\'' && m == 400 && in[399] == 7) abort();
  return 0;
}
"#;

#[test]
fn a_script_lets_a_finding_happen_again_with_nothing_of_everett() {
    let folder = folder("exporting");
    build(&folder, "everything", EVERYTHING, &[]);
    let symbolic = [
        "./everything",
        "--sym-args",
        "0",
        "3",
        "2",
        "--sym-file",
        "data/f",
        "2-5",
        "--sym-env",
        "MODE",
        "3",
        "--sym-stdin",
        "400",
    ];
    explore(&folder, &[], &symbolic, 1);
    expect(
        everett(&folder).args(["export", "out/findings/0001", "--out", "again.sh"]),
        0,
    );
    let mut script = std::process::Command::new("./again.sh");
    let output = expect(script.current_dir(&folder), 1);
    assert!(
        text(&output).contains("it happened: exit status 134"),
        "{}",
        text(&output)
    );
    let mut other = std::process::Command::new("./again.sh");
    let output = expect(other.arg("/bin/true").current_dir(&folder), 0);
    assert!(
        text(&output).contains("it did not happen: exit status 0"),
        "{}",
        text(&output)
    );
    let several = expect(everett(&folder).args(["export", "out"]), 2);
    assert!(
        text(&several).contains("has several traces"),
        "{}",
        text(&several)
    );
}

/// Native code continues after an overflow: a script cannot conclude that it did not happen.
#[test]
fn scripts_of_overflows_deny_nothing() {
    let folder = folder("exporting-overflow");
    let source = "#include <everett.h>\nint main(void) {\n  int a;\n  \
                  everett_make_symbolic(&a, 4, \"a\");\n  if (a < 0 || a > 2147483600)\n    return 0;\n  \
                  int s = a + 100;\n  return s < 0;\n}\n";
    build(&folder, "overflow", source, &["-g"]);
    let run = ["run", "--quiet", "--check-overflow", "--out", "out"];
    expect(everett(&folder).args(run).arg("./overflow"), 1);
    assert_eq!(
        summary(&folder.join("out"))["findings"][0]["confirmed"],
        "confirmed"
    );
    let export = ["export", "out/findings/0001", "--out", "again.sh"];
    expect(everett(&folder).args(export), 0);
    let mut script = std::process::Command::new(folder.join("again.sh"));
    let said = text(&expect(&mut script, 2));
    assert!(said.contains("does not say whether it happened"), "{said}");
}

/// The parent ends normally; the message of the checked build shows the error.
#[test]
fn scripts_show_errors_of_children() {
    let folder = folder("exporting-child");
    let source = "#include <everett.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n  \
                  unsigned char at;\n  everett_make_symbolic(&at, 1, \"at\");\n  if (at > 8)\n    return 0;\n  \
                  if (fork() == 0) {\n    volatile char bytes[8];\n    bytes[at] = 1;\n    _exit(bytes[0]);\n  }\n  \
                  wait(0);\n  return 0;\n}\n";
    build(&folder, "forks", source, &["-g"]);
    expect(
        everett(&folder).args(["run", "--quiet", "--out", "out", "./forks"]),
        1,
    );
    let export = ["export", "out/findings/0001", "--out", "again.sh"];
    expect(everett(&folder).args(export), 0);
    let mut script = std::process::Command::new(folder.join("again.sh"));
    let said = text(&expect(&mut script, 1));
    assert!(
        said.contains("it happened: an error that was checked"),
        "{said}"
    );
    // A crash of the child does not show in any status.
    let source = source.replace("volatile char bytes[8];", "volatile char *bytes = 0;");
    build(&folder, "crashes", &source, &["-g"]);
    let mut run = everett(&folder);
    expect(
        run.args(["run", "--quiet", "--out", "crash", "./crashes"]),
        1,
    );
    let export = ["export", "crash/findings/0001", "--out", "crash.sh"];
    expect(everett(&folder).args(export), 0);
    let mut script = std::process::Command::new(folder.join("crash.sh"));
    let said = text(&expect(&mut script, 2));
    assert!(said.contains("does not say whether it happened"), "{said}");
}

/// A panic of a thread, which does not end the program.
const THREAD: &str = r#"
fn main() {
    let thread = std::thread::spawn(|| {
        let text = std::env::args().nth(1).unwrap_or_default();
        assert!(text != "x", "it is x");
    });
    std::process::exit(i32::from(thread.join().is_err() as u8 > 1));
}
"#;

#[test]
fn scripts_show_what_the_plain_program_survives() {
    let folder = folder("exporting-survived");
    build(&folder, "survived", SURVIVED, &["-g"]);
    fs::write(folder.join("thread.rs"), THREAD).expect("a source");
    let rustc = ["rustc", "-g", "-o", "thread", "thread.rs"];
    expect(everett(&folder).args(rustc), 0);
    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let cases: [(&str, &[&str], &str); 2] = [
        ("memory", &["./survived"], "exit status 134"),
        ("panic", &["./thread", "--sym-arg", "1"], "a panic"),
    ];
    for (out, program, sign) in cases {
        let run = ["run", "--quiet", "--out", out];
        expect(everett(&folder).args(run).args(program), 1);
        // From another folder, and run in yet another one.
        let found = format!("../{out}/findings/0001");
        let script = format!("../{out}.sh");
        expect(
            everett(&elsewhere).args(["export", &found, "--out", &script]),
            0,
        );
        let mut script = std::process::Command::new(folder.join(format!("{out}.sh")));
        let said = text(&expect(script.current_dir("/"), 1));
        assert!(said.contains(&format!("it happened: {sign}")), "{said}");
        expect(everett(&elsewhere).args(["replay", &found]), 0);
    }
    // The plain program survives it.
    let mut script = std::process::Command::new(folder.join("memory.sh"));
    let said = text(&expect(script.arg(folder.join("survived")), 0));
    assert!(said.contains("it did not happen"), "{said}");
    let mut script = std::process::Command::new(folder.join("memory.sh"));
    expect(script.arg("/nowhere"), 2);
}

#[test]
fn what_only_everett_can_do_is_not_exported() {
    let folder = folder("exporting-faults");
    build(&folder, "noisy", NOISY, &[]);
    explore(&folder, &["--faults", "1"], &["./noisy"], 1);
    let output = expect(everett(&folder).args(["export", "out/findings/0001"]), 2);
    let said = text(&output);
    assert!(
        said.contains("it needs a failure that is injected (write fails: "),
        "{said}"
    );
}

/// A client and a server, with a fault at the end.
const TALK: &str = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static int *nowhere;
int main(int argc, char **argv) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  char b[16];
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  bind(listener, (void *)&at, sizeof at);
  listen(listener, 3);
  if (fork() == 0) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    connect(client, (void *)&at, sizeof at);
    write(client, "hello", 5);
    read(client, b, sizeof b);
    _exit(0);
  }
  int server = accept(listener, 0, 0);
  read(server, b, sizeof b);
  write(server, "world", 5);
  close(server);
  wait(0);
  if (argv[1][0] == 'z') *nowhere = 3;
  sleep(1);
  return 0;
}
"#;

fn talk(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    build(&folder, "talk", TALK, &["-g"]);
    explore(&folder, &[], &["./talk", "--sym-arg", "1"], 1);
    folder
}

#[test]
fn events_have_numbers_and_can_be_walked_through() {
    let folder = talk("walking");
    let trace = "out/tests/000001.trace";
    let output = expect(everett(&folder).args(["replay", "--strace", trace]), 0);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let events: Vec<&str> = log.lines().filter(|line| line.contains(" [10")).collect();
    for (number, line) in (1..).zip(&events) {
        assert!(line.starts_with(&format!("{number:>6} ")), "{line}");
    }
    assert!(
        events
            .iter()
            .any(|line| line.contains("write(4, \"hello\", 5) = 5")),
        "{log}"
    );

    // Forward, back, to an event, and quit.
    fs::write(folder.join("keys"), "\n\nb\n9\nx\n4\nq\n").expect("a file");
    let keys = fs::File::open(folder.join("keys")).expect("a file");
    let output = expect(
        everett(&folder)
            .args(["replay", "--step", trace])
            .stdin(keys),
        0,
    );
    let said = text(&output);
    let seen: Vec<&str> = said
        .split(") ")
        .filter_map(|part| part.lines().find(|line| line.contains(" [10")))
        .map(|line| line.trim_start().split(' ').next().unwrap_or(""))
        .collect();
    let numbers: Vec<&str> = seen
        .into_iter()
        .filter(|word| word.parse::<u32>().is_ok())
        .collect();
    assert_eq!(numbers, ["1", "2", "3", "2", "9", "4"], "{said}");
    assert!(said.contains("\"x\" is none of these"), "{said}");
    let several = expect(everett(&folder).args(["replay", "--step", "out"]), 2);
    assert!(
        text(&several).contains("name the one to look at"),
        "{}",
        text(&several)
    );
}

#[test]
fn packets_can_be_looked_at() {
    let folder = talk("packets");
    let trace = "out/tests/000001.trace";
    expect(
        everett(&folder).args(["replay", "--pcap", "talk.pcap", trace]),
        0,
    );
    let file = fs::read(folder.join("talk.pcap")).expect("a file");
    assert_eq!(&file[..4], &0xa1b2_3c4du32.to_le_bytes());
    let holds = |bytes: &[u8]| file.windows(bytes.len()).any(|part| part == bytes);
    assert!(holds(b"hello") && holds(b"world") && holds(&7000u16.to_be_bytes()));
}

#[test]
fn time_goes_by_as_on_the_clock_of_the_replay() {
    let folder = talk("real-time");
    let trace = "out/tests/000001.trace";
    let start = std::time::Instant::now();
    expect(
        everett(&folder).args(["replay", "--speed", "real", trace]),
        0,
    );
    assert!(start.elapsed().as_secs_f64() >= 1.0);
}

/// A substitute for gdb: prints how it was called, and whether the process exists and is untraced.
const DEBUGGER: &str = r#"#!/bin/sh
echo "called: $*"
for word; do
  [ -r "/proc/$word/status" ] && grep -E '^(State|TracerPid|Seccomp):' "/proc/$word/status"
done
kill -CONT $(echo "$*" | sed 's/.* -p \([0-9]*\) .*/\1/')
sleep 0.3
exit 0
"#;

#[test]
fn a_debugger_gets_a_process_that_stands_still_and_reaches_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = talk("debugging");
    let debugger = folder.join("debugger");
    fs::write(&debugger, DEBUGGER).expect("a file");
    fs::set_permissions(&debugger, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let debug = |place: &str, trace: &str| {
        let mut command = everett(&folder);
        command.env("EVERETT_GDB", &debugger);
        text(&expect(command.args(["replay", place, trace]), 0))
    };
    for (place, trace, expected) in [
        (
            "--gdb",
            "out/findings/0001",
            "it stands at the instruction that faults",
        ),
        (
            "--gdb=host:3",
            "out/tests/000001.trace",
            "     3 0.000003 [1000] bind(3, ",
        ),
        ("--gdb", "out/tests/000001.trace", "which stands before it"),
    ] {
        let said = debug(place, trace);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("State:\tT (stopped)"), "{said}");
        assert!(said.contains("TracerPid:\t0\n"), "{said}");
        assert!(said.contains("Seccomp:\t2\n"), "{said}");
        assert!(said.contains("-p ") && said.contains("talk"), "{said}");
    }
    let mut command = everett(&folder);
    let far = ["replay", "--gdb=host:999", "out/tests/000001.trace"];
    let output = expect(command.env("EVERETT_GDB", &debugger).args(far), 2);
    assert!(
        text(&output).contains("the replay has only"),
        "{}",
        text(&output)
    );
}

/// Interactive replays also show thread switches between system calls.
#[test]
fn turns_between_system_calls_are_there_for_those_who_look() {
    let folder = folder("turns");
    let source = include_str!("../../../../tests/programs/c/findings/lost_update.c");
    build(&folder, "turns", source, &["-g"]);
    let order = ["--scheduler", "bounded:1", "--preempt", "memory"];
    explore(&folder, &order, &["./turns"], 1);
    let trace = "out/findings/0001";
    let mut times = everett(&folder);
    let said = text(&expect(times.args(["replay", "--times", "5", trace]), 0));
    assert!(said.contains("5 runs, 0 with another log"), "{said}");
    let mut step = everett(&folder);
    let mut step = step
        .args(["replay", "--step", trace])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut typed = step.stdin.take().expect("a pipe");
    typed.write_all(b"1000\n").expect("it reads");
    drop(typed);
    let output = step.wait_with_output().expect("it ends");
    let said = text(&output);
    assert!(said.contains("the native program ends in abort"), "{said}");
    // The output is that of one run, not of all that were tried.
    let output = expect(everett(&folder).args(["replay", "--strace", trace]), 0);
    let said = text(&output);
    assert_eq!(said.matches("set_tid_address").count(), 1, "{said}");
}
