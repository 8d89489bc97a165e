//! Calls that Linux would execute but the kernel model refuses are reported: in the summary, and at
//! the end of every command.

use crate::common::{build, everett, expect, folder, summary, text};
use std::fs;

const REFUSED: &str = r#"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreq_source group = {0};
    inet_pton(AF_INET, "224.0.0.1", &group.imr_multiaddr);
    socket(AF_INET6, SOCK_RAW, 58);
    socket(AF_KEY, SOCK_RAW, 2);
    setsockopt(fd, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &group, sizeof group);
    for (int at = 0; at < 2; at++)
        prctl(PR_SET_MM, 0, 0, 0, 0);
    mount("none", "/", "tmpfs", 0, 0);
    open("/proc/net/ptype", O_RDONLY);
    open("/proc/99999/stat", O_RDONLY);
    open("/dev/shm/nothing", O_RDONLY);
    syscall(1234);
    fd = open("large", O_CREAT | O_WRONLY, 0600);
    if (pwrite(fd, "x", 1, 1L << 32) != -1 || pwrite(fd, "x", 1, 1L << 45) != -1)
        return 1;
    return 0;
}"#;

/// The program's calls, in order, and how often each is refused.
const CALLS: [(&str, u64); 8] = [
    ("socket", 1),
    ("socket", 1),
    ("setsockopt", 1),
    ("prctl", 2),
    ("mount", 1),
    ("open", 1),
    ("syscall 1234", 1),
    ("write", 1),
];

#[test]
fn refusals_are_said() {
    let folder = folder("unsupported");
    build(&folder, "refused", REFUSED, &["-g"]);
    let scenario = "[host.one]\nprogram = \"./refused\"\n[host.other]\nprogram = \"./refused\"\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    for (out, what) in [("program", "./refused"), ("world", "world.toml")] {
        let output = expect(everett(&folder).args(["run", "--out", out, what]), 0);
        let said = text(&output);
        assert!(said.contains("unsupported: 8 requests"), "{said}");
        assert!(said.contains("in main at "), "{said}");
        let summary = summary(&folder.join(out));
        let listed = summary["unsupported"].as_array().expect("a list");
        let mut seen: Vec<(&str, u64)> = Vec::new();
        for one in listed {
            assert_eq!(one["function"], "main", "{one}");
            assert!(one["line"].as_u64() > Some(0), "{one}");
            seen.push((
                one["call"].as_str().expect("a call"),
                one["count"].as_u64().expect("a count"),
            ));
        }
        seen.sort_unstable();
        let mut expected = CALLS;
        expected.sort_unstable();
        assert_eq!(seen, expected, "{listed:#?}");
        assert_eq!(summary["findings"], serde_json::json!([]));
    }
    for command in ["exec", "native"] {
        let output = expect(everett(&folder).args([command, "./refused"]), 0);
        let said = text(&output);
        for what in [
            "family 15",
            "system call mount",
            "the file /proc/net/ptype",
            "prctl operation 35",
            "syscall 1234 is not modelled",
            "a file of more than 4 GiB",
        ] {
            assert!(said.contains(what), "{command}: {said}");
        }
    }
    let output = expect(everett(&folder).args(["native", "world.toml"]), 0);
    assert!(text(&output).contains("host one: system call mount is not modelled"));
    // Many runs report each call once.
    let many = ["native", "--runs", "3", "--out", "many", "./refused"];
    let output = expect(everett(&folder).args(many), 0);
    let said = text(&output);
    assert_eq!(
        said.matches("system call mount is not").count(),
        1,
        "{said}"
    );
    let listed = summary(&folder.join("many"))["unsupported"].clone();
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(CALLS.len()),
        "{listed}"
    );
}

#[test]
fn failures_of_calls_that_are_never_made_are_told() {
    let folder = folder("never-made");
    let program = "#include <unistd.h>\nint main(void) { return write(1, \"x\", 1) != 1; }";
    build(&folder, "writes", program, &[]);
    let scenario = "[host.one]\nprogram = \"./writes\"\nfaults = 1\nfault_calls = [\"write:EIO\", \"read\"]\n\
                    [host.other]\nprogram = \"./writes\"\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    let flags = ["--faults", "1", "--fault", "write:EIO", "--fault", "read"];
    for (out, words) in [
        ("program", [&flags[..], &["./writes"]].concat()),
        ("world", vec!["world.toml"]),
    ] {
        let mut run = everett(&folder);
        let output = expect(run.args(["run", "--out", out]).args(&words), 0);
        let said = text(&output);
        assert!(said.contains("faults that never fired: read\n"), "{said}");
        let never = &summary(&folder.join(out))["faults_never_fired"];
        assert_eq!(*never, serde_json::json!(["read"]));
    }
}

const BACKTRACE: &str = r#"
#include <stdlib.h>
#include <unwind.h>
static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames) {
    ++*(int *)frames;
    return _URC_NO_REASON;
}
int main(void) {
    int frames = 0;
    _Unwind_Backtrace(count, &frames);
    exit(frames);
}"#;

/// Backtraces of Rust programs use the same calls. There are no machine frames to show.
#[test]
fn empty_backtraces_are_said() {
    let folder = folder("empty_backtraces");
    build(&folder, "backtrace", BACKTRACE, &["-g", "-lunwind"]);
    let output = expect(everett(&folder).args(["exec", "./backtrace"]), 0);
    let said = text(&output);
    assert!(
        said.contains("a backtrace (it is empty) is not modelled"),
        "{said}"
    );
    expect(
        everett(&folder).args(["run", "--out", "out", "./backtrace"]),
        0,
    );
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["unsupported"][0]["call"], "_Unwind_Backtrace");
    assert_eq!(summary["unsupported"][0]["function"], "main");
}

#[test]
fn a_world_in_which_nothing_is_sent_says_so() {
    let folder = folder("silent-world");
    build(&folder, "nothing", "int main(void) { return 0; }", &[]);
    let scenario = "[host.one]\nprogram = \"./nothing\"\n[host.other]\nprogram = \"./nothing\"\n\
                    [fault.lost]\nkind = \"loss\"\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    let output = expect(
        everett(&folder).args(["run", "--out", "out", "world.toml"]),
        0,
    );
    let said = text(&output);
    assert!(
        said.contains("no packet was sent between the 2 hosts"),
        "{said}"
    );
    assert!(said.contains("faults that never fired: lost"), "{said}");

    for runs in [&[][..], &["--runs", "3", "--out", "native"]] {
        let native = everett(&folder)
            .arg("native")
            .args(runs)
            .arg("world.toml")
            .output();
        let said = text(&native.expect("it runs"));
        assert!(said.contains("no packet was sent"), "{said}");
        assert!(said.contains("faults that never fired: lost"), "{said}");
    }
    let summary = summary(&folder.join("native"));
    assert_eq!(summary["faults_never_fired"][0], "lost");
}

#[test]
fn native_runs_say_which_failures_were_never_injected() {
    let folder = folder("native-never-fired");
    let source = "#include <stdlib.h>\nint main(void) { void *p = malloc(9); free(p); return 0; }";
    build(&folder, "allocates", source, &[]);
    let faults = ["--faults", "1", "--fault", "malloc,read"];
    let mut native = everett(&folder);
    native.args(["native", "--runs", "20", "--out", "out"]);
    expect(native.args(faults).arg("./allocates"), 0);
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["faults_never_fired"].to_string(), "[\"read\"]");
}

/// Linux connects and sends. Here the program gets the error of a kernel without fast open, and no
/// signal.
#[test]
fn fast_open_is_refused_and_the_number_of_syns_is_said() {
    let folder = folder("fast-open");
    let source = r#"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
int main(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int socket_ = socket(AF_INET, SOCK_STREAM, 0), once = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_SYNCNT, &once, sizeof once);
    if (sendto(socket_, "x", 1, MSG_FASTOPEN, (void *)&to, sizeof to) == 1)
        return 1;
    return errno == EOPNOTSUPP ? 0 : 2;
}"#;
    build(&folder, "opens", source, &["-g"]);
    expect(everett(&folder).args(["run", "--out", "out", "./opens"]), 0);
    let unsupported = summary(&folder.join("out"))["unsupported"].to_string();
    assert!(unsupported.contains("MSG_FASTOPEN"), "{unsupported}");
    assert!(unsupported.contains("setsockopt"), "{unsupported}");
}

#[test]
fn native_worlds_say_which_limits_they_reached() {
    let folder = folder("native-world-limits");
    let source = "#include <unistd.h>\nint main(void) { for (int i = 0; i < 99; i++) usleep(1000); return 0; }";
    build(&folder, "ticks", source, &[]);
    let scenario = "[host.one]\nprogram = \"./ticks\"\n";
    fs::write(folder.join("world.toml"), scenario).expect("written");
    let limits = [
        ("virtual_time=\"50ms\"", 0, "max-virtual-time"),
        ("events=50", 1, "max-events"),
    ];
    for (limit, code, name) in limits {
        let mut native = everett(&folder);
        native.args(["native", "--runs", "2", "--out", name, "world.toml"]);
        expect(native.args(["--set", &format!("limits.{limit}")]), code);
        let hit = summary(&folder.join(name))["limits_hit"].to_string();
        assert_eq!(hit, format!("[\"{name}\"]"));
    }
}
