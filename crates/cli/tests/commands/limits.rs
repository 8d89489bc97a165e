//! Every limit, for programs and worlds: it is enforced, listed in `limits_hit`, and a run that it
//! cuts off is not complete.

use crate::common::{build, check_weights, count, everett, expect, folder, summary, text, watched};
use everett::{OPTIONS, RunOption, Scope};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A program that reaches each limit, selected by its argument.
const GREEDY: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *reach(void *way) {
    const char *how = way;
    static char bytes[4096];
    if (strcmp(how, "branch") == 0) {
        int count = 0;
        int size = read(0, bytes, sizeof bytes);
        for (int at = 0; at < size; at++)
            if (bytes[at] & 1)
                count += at;
        usleep(count * 1000);
        _exit(count & 1);
    }
    if (strcmp(how, "spin") == 0)
        for (volatile int at = 0;; at++)
            ;
    if (strcmp(how, "print") == 0)
        for (;;)
            write(1, bytes, 16);
    if (strcmp(how, "write") == 0) {
        int fd = open("file", O_CREAT | O_WRONLY, 0600);
        while (write(fd, bytes, sizeof bytes) == sizeof bytes)
            ;
    }
    if (strcmp(how, "fork") == 0)
        while (1) {
            int child = fork();
            if (child == 0)
                pause();
            if (child < 0)
                _exit(0);
        }
    if (strcmp(how, "wait") == 0)
        for (;;)
            usleep(1000);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (strcmp(argv[2], "thread") == 0) {
        pthread_create(&thread, 0, reach, argv[1]);
        pthread_join(thread, 0);
    } else if (strcmp(argv[2], "main") == 0 || fork() == 0) {
        reach(argv[1]);
    } else {
        wait(0);
    }
    return 0;
}"#;

/// The thread or process that reaches the limit.
const WHO: [&str; 3] = ["main", "thread", "child"];

/// A limit: its option, its value, and how a program reaches it.
struct Limit {
    option: &'static str,
    value: &'static str,
    how: &'static str,
    /// A counter of the summary, and its maximum.
    kept: Option<(&'static str, u64)>,
}

const fn limit(option: &'static str, value: &'static str, how: &'static str) -> Limit {
    Limit {
        option,
        value,
        how,
        kept: None,
    }
}

impl Limit {
    const fn kept(self, counter: &'static str, most: u64) -> Limit {
        let kept = Some((counter, most));
        Limit { kept, ..self }
    }
}

const LIMITS: &[Limit] = &[
    limit("max-time", "1s", "branch"),
    limit("max-paths", "3", "branch").kept("/paths/completed", 3),
    limit("max-forks", "20", "branch").kept("/forks", 20),
    limit("max-depth", "5", "branch").kept("/paths/completed", 0),
    limit("max-total-instructions", "20000", "branch").kept("/instructions", 31000),
    limit("max-instructions", "20000", "spin").kept("/instructions", 21000),
    limit("max-output", "100", "print"),
    limit("max-files", "100000", "write"),
    limit("max-processes", "4", "fork"),
    limit("max-events", "50", "wait"),
    limit("max-virtual-time", "50ms", "wait"),
];

/// Limits that cut nothing off: states are spilled, larger blocks are explored in parts, and calls
/// are counted only in native runs.
const CUT_NOTHING: [&str; 3] = ["max-memory", "max-symbolic-size", "max-calls"];

/// KLEE's limits, which only programs have; `klee_scripts` tests them.
const OF_KLEE: [&str; 2] = ["max-stack-frames", "max-static-"];

fn is_limit(option: &&RunOption) -> bool {
    let is_of_klee = OF_KLEE.iter().any(|name| option.name.starts_with(name));
    option.name.starts_with("max-") && !is_of_klee
}

fn check(limit: &Limit, summary: &Value, is_world: bool) {
    let name = limit.option;
    check_weights(summary);
    assert_eq!(summary["complete"], false, "{name}: {summary:#}");
    let hit = summary["limits_hit"].as_array().expect("limits");
    assert!(hit.iter().any(|hit| hit == name), "{name}: {hit:?}");
    // Worlds that end at the same time are counted together.
    let is_counted = !(is_world && limit.option == "max-paths");
    if let Some((counter, most)) = limit.kept.filter(|_| is_counted) {
        let seen = count(summary, counter);
        assert!(seen <= most, "{name}: {counter} is {seen}");
    }
}

fn explore(folder: &Path, out: &str, words: &[&str]) -> Value {
    let mut run = everett(folder);
    run.args(["run", "--no-confirm", "--no-shrink", "--search", "dfs"]);
    let output = run.args(["--out", out]).args(words).output();
    let output = output.expect("it starts");
    assert!(output.status.code().is_some(), "{}", text(&output));
    assert!(
        folder.join(out).join("summary.json").exists(),
        "{}",
        text(&output)
    );
    summary(&folder.join(out))
}

#[test]
fn the_table_has_all_limits() {
    for option in OPTIONS.iter().filter(is_limit) {
        let is_known = LIMITS.iter().any(|limit| limit.option == option.name);
        let cuts = !CUT_NOTHING.contains(&option.name);
        assert_eq!(is_known, cuts, "--{}", option.name);
    }
}

#[test]
fn limits_of_programs() {
    let folder = folder("limits-programs");
    build(&folder, "greedy", GREEDY, &[]);
    let cases = LIMITS.iter().flat_map(|limit| WHO.map(|who| (limit, who)));
    for (limit, who) in cases {
        let flag = format!("--{}", limit.option);
        let mut words = vec![&*flag, limit.value, "./greedy", limit.how, who];
        if limit.how == "branch" {
            words.extend(["--sym-stdin", "64"]);
        }
        let option = everett::option(limit.option).expect("an option");
        if option.scope != Scope::Worlds {
            let out = format!("{}-{who}", limit.option);
            check(limit, &explore(&folder, &out, &words), false);
            continue;
        }
        // A limit that does not apply to programs is refused, not ignored.
        let output = everett(&folder).arg("run").args(&words).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(&flag), "{}", text(&output));
    }
}

#[test]
fn limits_of_worlds() {
    let folder = folder("limits-worlds");
    build(&folder, "greedy", GREEDY, &[]);
    let cases = LIMITS.iter().flat_map(|limit| WHO.map(|who| (limit, who)));
    for (limit, who) in cases {
        let option = everett::option(limit.option).expect("an option");
        let Some(key) = option.scenario_key else {
            assert!(
                option.scope != Scope::Worlds,
                "{} is of nothing",
                limit.option
            );
            continue;
        };
        let value = match limit.value.parse::<u64>() {
            Ok(_) => limit.value.to_owned(),
            Err(_) => format!("{:?}", limit.value),
        };
        let own = format!("{} = {value}\n", key.name);
        let (of_host, of_run) = match key.table {
            "host" => (own, String::new()),
            table => (String::new(), format!("[{table}]\n{own}")),
        };
        let text = format!(
            "[host.one]\nprogram = \"./greedy\"\nargs = [{:?}, {who:?}]\nstdin = {{ symbolic = {} }}\n{of_host}\
             [host.other]\nprogram = \"./greedy\"\nargs = [\"nothing\", \"main\"]\n{of_run}",
            limit.how,
            // A time limit needs worlds without end; other limits need some that end.
            if limit.option == "max-time" { 64 } else { 8 }
        );
        let out = format!("{}-{who}", limit.option);
        let file = format!("{out}.toml");
        fs::write(folder.join(&file), text).expect("written");
        check(limit, &explore(&folder, &out, &[&file]), true);
    }
}

/// Takes as much memory as it gets.
const HOARDER: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    for (int at = 0; at < 600; at++) {
        void *block = strcmp(argv[1], "map") == 0
            ? mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            : malloc(1 << 20);
        if (!block || block == MAP_FAILED)
            return 0;
    }
    abort();
}"#;

#[test]
fn memory_that_a_program_does_not_get_is_told() {
    let folder = folder("limits-heap");
    build(&folder, "hoarder", HOARDER, &[]);
    for how in ["malloc", "map"] {
        let words = ["--max-memory", "300M", "./hoarder", how];
        let summary = explore(&folder, how, &words);
        assert_eq!(summary["complete"], false, "{summary:#}");
        let hit = summary["limits_hit"].as_array().expect("limits");
        assert!(hit.iter().any(|hit| hit == "max-heap"), "{summary:#}");
    }
}

/// Fails in the engine, and forks without end natively.
const FORK_BOMB: &str = r#"
#include <everett.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    if (!everett_is_symbolic(everett_symbolic_u8("x")))
        for (;;)
            fork();
    abort();
}"#;

#[test]
fn the_time_limit_is_one_of_native_runs_too() {
    let folder = folder("limits-native");
    build(&folder, "bomb", FORK_BOMB, &[]);
    // Without a limit it would never end; no machine is so slow that it takes this long.
    let mut run = Command::new("timeout");
    run.args(["--signal=KILL", "600"])
        .arg(everett(&folder).get_program());
    run.args(["run", "--max-time", "6s", "--out", "out", "./bomb"]);
    let output = run.current_dir(&folder).output().expect("it starts");
    // On a slow machine, the time may be over before the finding is confirmed.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{}", text(&output));
    let summary = summary(&folder.join("out"));
    let entry = &summary["findings"][0];
    let why = entry["confirmed_reason"].as_str();
    assert!(
        entry["confirmed"].is_null() || why.is_some_and(|why| why.contains("`max_time`")),
        "{summary:#}"
    );
}

/// Writes to 60 MB on every path, several times, or fills pipes.
const LARGE: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static char bytes[SIZE];
int main(int argc, char **argv) {
    unsigned char input[4];
    if (argc == 2) {
        read(0, input, sizeof input);
        memset(bytes, input[0], sizeof bytes);
        return 0;
    }
    if (argc == 1) {
        read(0, input, sizeof input);
        for (int at = 0; at < 4; at++)
            if (input[at] & 1)
                memset(bytes, 1 + at, sizeof bytes);
            else
                memset(bytes, 11 + at, sizeof bytes);
        return 0;
    }
    memset(bytes, 1, 1 << 16);
    for (int at = 0; at < 400; at++) {
        int ends[2];
        pipe(ends);
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        fcntl(ends[1], 1031, 1 << 20);
        while (write(ends[1], bytes, 1 << 16) > 0)
            ;
    }
    return 0;
}"#;

/// Returns a limit of this many MiB plus five per cent.
fn about(mebibytes: u64) -> u64 {
    (mebibytes << 20) / 100 * 105
}

#[test]
fn large_states_are_within_the_memory_limit() {
    let folder = folder("limits-large");
    build(&folder, "large", &LARGE.replace("SIZE", "60 << 20"), &[]);
    build(&folder, "larger", &LARGE.replace("SIZE", "400 << 20"), &[]);
    let peak = |program: &str, workers: &str, out: &str, mebibytes: u64| {
        let mut run = everett(&folder);
        run.args(["run", "--no-confirm", "--max-memory"]);
        run.args([&format!("{mebibytes}M"), "--workers", workers, "--out", out]);
        run.args(program.split(' '));
        watched(run.args(["--sym-stdin", "4"]))
    };
    // Under the smaller limit, states that share an object may not both have pages of their own.
    for (workers, mebibytes) in [("1", 150), ("1", 200), ("2", 200)] {
        let out = format!("{workers}-{mebibytes}");
        let peak = peak("./large", workers, &out, mebibytes);
        assert!(peak < about(mebibytes), "{out}: {peak} bytes");
        let summary = summary(&folder.join(&out));
        check_weights(&summary);
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert!(count(&summary, "/states_spilled") > 0, "{summary:#}");
        assert_eq!(count(&summary, "/paths/completed"), 16);
    }
    // Not even one of these states fits; symbolic bytes take more memory than others.
    for (program, out) in [
        ("./larger", "out-larger"),
        ("./large symbolic", "out-symbolic"),
    ] {
        let peak = peak(program, "1", out, 200);
        assert!(peak < about(200), "{program}: {peak} bytes");
        let summary = summary(&folder.join(out));
        check_weights(&summary);
        assert_eq!(summary["complete"], false, "{summary:#}");
        let hit = summary["limits_hit"].as_array().expect("limits");
        assert!(hit.iter().any(|hit| hit == "max-memory"), "{summary:#}");
    }
}

/// Instructions and calls that write much at once.
const WRITES: &str = r#"
#define _GNU_SOURCE
#include <everett.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char bytes[400 << 20];
static char *mapped(size_t size) {
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(int argc, char **argv) {
    size_t part = 100 << 20;
    switch (argv[1][0]) {
    case 'z': // zeros need no memory
        memset(bytes, 0, sizeof bytes);
        bzero(bytes, sizeof bytes);
        return bytes[part];
    case 'r': // neither does memory that is freed
        for (int at = 0; at < 100; at++) {
            char *part = mapped(60 << 20);
            memset(part, 1, 60 << 20);
            munmap(part, 60 << 20);
        }
        return 0;
    case 'm':
        memcpy(mapped(part), memset(mapped(part), 1, part), part);
        return 0;
    case 'v':
        memset(bytes, 1, part);
        memmove(bytes + 4096, bytes, part - 4096);
        return 0;
    case 'd':
        return read(open("/dev/zero", O_RDONLY), bytes, 0x7ffff000) == 0;
    case 's':
        everett_make_symbolic(bytes, 60 << 20, "bytes");
        return 0;
    case 'c': {
        int from = open("from", O_RDWR | O_CREAT, 0600), to = open("to", O_RDWR | O_CREAT, 0600);
        memset(bytes, 1, 16 << 20);
        write(from, bytes, 16 << 20);
        for (int at = 0; at < 40; at++) {
            off_t start = 0;
            copy_file_range(from, &start, to, 0, 16 << 20, 0);
        }
        return 0;
    }
    }
    return 1;
}"#;

#[test]
fn large_writes_are_within_the_memory_limit() {
    let folder = folder("limits-writes");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let include = format!("-I{}", include.display());
    build(&folder, "writes", WRITES, &["-w", &include]);
    for (mode, fits) in [
        ("z", true),
        ("r", true),
        ("m", false),
        ("v", false),
        ("d", false),
        ("s", false),
        ("c", false),
    ] {
        let mut run = everett(&folder);
        run.args(["run", "--no-confirm", "--max-memory", "200M"]);
        run.args(["--workers", "1", "--out", mode, "./writes", mode]);
        let peak = watched(&mut run);
        assert!(peak < about(200), "{mode}: {peak} bytes");
        let summary = summary(&folder.join(mode));
        assert_eq!(summary["complete"], fits, "{mode}: {summary:#}");
        let hit = summary["limits_hit"].as_array().expect("limits");
        let is_hit = hit.iter().any(|hit| hit == "max-memory");
        assert_eq!(is_hit, !fits, "{mode}: {summary:#}");
    }
}

/// States share the terms of a long input, so they take little memory. A list of the terms of each
/// state, or of all their values, would not.
#[test]
fn long_inputs_are_within_the_memory_limit() {
    let folder = folder("limits-long");
    build(&folder, "long", LONG, &[]);
    for workers in ["1", "2"] {
        let mut run = everett(&folder);
        run.args([
            "run",
            "--no-confirm",
            "--max-memory",
            "100M",
            "--checkpoint",
            "1h",
        ]);
        run.args(["--workers", workers, "--max-forks", "5000"]);
        run.args(["--search", "bfs", "--out", workers, "./long"]);
        run.args(["--sym-stdin", "20000"]);
        let peak = watched(&mut run);
        // The bug was a factor of two; how workers reach their limit depends on the machine.
        assert!(peak < about(160), "{workers} workers: {peak} bytes");
        let summary = summary(&folder.join(workers));
        check_weights(&summary);
        assert_eq!(summary["complete"], false, "{summary:#}");
        assert_eq!(summary["states_unsaved"], 0, "{summary:#}");
    }
}

const LONG: &str = r#"
#include <unistd.h>
static char bytes[20000];
int main(void) {
    int size = read(0, bytes, sizeof bytes), count = 0;
    for (int at = 0; at < size; at++)
        if (bytes[at] == 'x')
            count++;
    return count > 100;
}"#;

/// One call of `memset` takes more than the limit, also in a host of a world.
#[test]
fn large_hosts_are_within_the_memory_limit() {
    let folder = folder("limits-large-hosts");
    build(&folder, "large", &LARGE.replace("SIZE", "400 << 20"), &[]);
    let host = "program = \"./large\"\nstdin = { symbolic = 2 }\n";
    let text = format!("[host.a]\n{host}\n[host.b]\n{host}");
    fs::write(folder.join("world.toml"), text).expect("written");
    let mut run = everett(&folder);
    run.args(["run", "--no-confirm", "--max-memory", "200M"]);
    let peak = watched(run.args(["--workers", "1", "--out", "out", "world.toml"]));
    assert!(peak < about(200), "{peak} bytes");
    let summary = summary(&folder.join("out"));
    check_weights(&summary);
    assert_eq!(summary["complete"], false, "{summary:#}");
    let hit = summary["limits_hit"].as_array().expect("limits");
    assert!(hit.iter().any(|hit| hit == "max-memory"), "{summary:#}");
}

/// Terms take memory too: a host that runs alone for long must not take it unnoticed.
#[test]
fn terms_of_hosts_are_within_the_memory_limit() {
    let folder = folder("limits-terms-of-hosts");
    let source = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    char byte = 0;
    read(0, &byte, 1);
    for (;;) {
        char *block = malloc(1 << 20);
        for (int at = 0; block && at < 1 << 20; at += 64)
            block[at] = at * 7 + byte;
    }
}"#;
    build(&folder, "terms", source, &[]);
    let text = "[host.a]\nprogram = \"./terms\"\nstdin = { symbolic = 1 }\n";
    fs::write(folder.join("world.toml"), text).expect("written");
    let mut run = everett(&folder);
    run.args(["run", "--no-tests", "--max-memory", "200M"]);
    let peak = watched(run.args(["--workers", "1", "--out", "out", "world.toml"]));
    assert!(peak < about(200), "{peak} bytes");
    assert_eq!(summary(&folder.join("out"))["complete"], false);
}

/// The confirmation of a finding may take no more memory than the run.
#[test]
fn native_confirmation_is_within_the_memory_limit() {
    let folder = folder("limits-confirmation");
    let source = r#"
#include <sys/mman.h>
int main(void) {
    static char bytes[8];
    volatile int last = 9;
    char *much = mmap(0, 400 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; much != MAP_FAILED && at < 400 << 20; at += 4096)
        much[at] = 1;
    volatile char read = bytes[last];
    return 0;
}"#;
    build(&folder, "hoarder", source, &["-O0"]);
    let run = ["run", "--max-memory", "150M", "--out", "out", "./hoarder"];
    let said = text(&expect(everett(&folder).args(run), 1));
    assert!(said.contains("more memory than 150 MiB"), "{said}");
}

/// Each host alone is within the limit, which applies to the world.
#[test]
fn native_hosts_share_the_memory_limit() {
    let folder = folder("limits-native-hosts");
    let source = r#"
#include <string.h>
#include <unistd.h>
static char much[100 << 20];
int main(void) {
    memset(much, 1, sizeof much);
    sleep(5);
    return 0;
}"#;
    build(&folder, "large", source, &["-O0"]);
    let hosts = ["a", "b", "c"].map(|name| format!("[host.{name}]\nprogram = \"./large\"\n"));
    for (file, hosts) in [("one.toml", &hosts[..1]), ("all.toml", &hosts[..])] {
        fs::write(folder.join(file), hosts.join("\n")).expect("written");
    }
    let run = ["native", "--max-memory", "200M"];
    expect(everett(&folder).args(run).arg("one.toml"), 0);
    let said = text(&expect(everett(&folder).args(run).arg("all.toml"), 2));
    assert!(said.contains("more memory than 200 MiB"), "{said}");
}

#[test]
fn what_pipes_hold_is_within_the_memory_limit() {
    let folder = folder("limits-pipes");
    build(&folder, "pipes", &LARGE.replace("SIZE", "1 << 16"), &[]);
    let run = ["exec", "--max-memory", "150M", "./pipes", "fill", "pipes"];
    let peak = watched(everett(&folder).args(run));
    assert!(peak < about(150), "{peak} bytes");
    let said = text(&expect(everett(&folder).args(run), 2));
    assert!(said.contains("more memory than 150 MiB"), "{said}");
}

/// The time is over at its first call. The program makes fewer calls than there are between two
/// checks of its memory.
#[test]
fn the_time_of_a_native_run_is_looked_at_before_every_call() {
    let folder = folder("limits-calls");
    let source = "#include <unistd.h>\nint main(void) { write(1, \"late\", 4); return 0; }\n";
    build(&folder, "short", source, &[]);
    let run = ["native", "--max-time", "1us", "./short"];
    let said = text(&expect(everett(&folder).args(run), 2));
    assert!(said.contains("--max-time"), "{said}");
    assert!(!said.contains("late"), "{said}");
}

/// A program that reaches the limits of native runs, selected by its argument.
const NATIVELY_GREEDY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define SHARED (MAP_SHARED | MAP_ANONYMOUS)
static char bytes[1 << 20];
static char *map(long size, int flags, int fd) {
    return mmap(0, size, PROT_READ | PROT_WRITE, flags, fd, 0);
}
int main(int argc, char **argv) {
    const char *how = argv[1];
    if (strcmp(how, "touch") == 0)
        for (int at = 0; at < 600; at++)
            memset(map(1 << 20, MAP_PRIVATE | MAP_ANONYMOUS, -1), 1, 1 << 20);
    if (strcmp(how, "reserve") == 0)
        return map(16L << 30, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1) == MAP_FAILED;
    if (strcmp(how, "populate") == 0)
        return map(3L << 30, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1) == MAP_FAILED ? 7 : 0;
    if (strcmp(how, "hide") == 0)
        for (int at = 0; at < 200; at++) {
            char *part = map(4 << 20, SHARED, -1);
            memset(part, 1, 4 << 20);
            madvise(part, 4 << 20, MADV_DONTNEED);
        }
    if (strcmp(how, "pass") == 0)
        for (int at = 0; at < 200; at++) {
            char *part = map(4 << 20, SHARED, -1);
            memset(part, 1, 4 << 20);
            munmap(part, 4 << 20);
        }
    if (strcmp(how, "pipes") == 0)
        for (int at = 0; at < 400; at++) {
            int ends[2];
            pipe(ends);
            fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
            write(ends[1], bytes, 1 << 20);
        }
    if (strcmp(how, "mapped") == 0) {
        int fd = open("mapped", O_CREAT | O_RDWR, 0600);
        ftruncate(fd, 600 << 20);
        char *file = map(600 << 20, MAP_SHARED, fd);
        for (long at = 0; at < 600 << 20; at += 4096)
            file[at] = 1;
    }
    if (strcmp(how, "alternate") == 0) {
        long size = 4 << 20;
        int fd = open("mapped", O_CREAT | O_RDWR, 0600);
        ftruncate(fd, size);
        char *file = map(size, MAP_SHARED, fd);
        for (long at = 0; at < size; at += 2)
            file[at] = 1;
        getppid();
    }
    if (strcmp(how, "write") == 0) {
        int fd = open("file", O_CREAT | O_WRONLY, 0600);
        while (write(fd, bytes, 4096) == 4096)
            ;
    }
    if (strcmp(how, "fork") == 0)
        for (;;) {
            int child = fork();
            if (child == 0)
                pause();
            if (child < 0)
                _exit(0);
        }
    return 0;
}"#;

fn natively_greedy(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    build(&folder, "greedy", NATIVELY_GREEDY, &["-O1"]);
    folder
}

#[test]
fn limits_of_a_scenario_are_limits_of_native_runs() {
    let folder = natively_greedy("limits-native-scenario");
    let world =
        "[host.one]\nprogram = \"./greedy\"\nargs = [\"touch\"]\n[limits]\nmemory = \"200M\"\n";
    fs::write(folder.join("world.toml"), world).expect("written");
    let native = |words: &[&str], code| {
        let mut run = everett(&folder);
        text(&expect(run.arg("native").args(words), code))
    };
    let most = "more memory than 200 MiB";
    let said = native(&["world.toml"], 2);
    assert!(said.contains(most), "{said}");
    let said = native(&["--runs", "2", "--out", "many", "world.toml"], 2);
    assert!(said.contains(&format!("2 one uses {most}")), "{said}");
    assert_eq!(
        summary(&folder.join("many"))["limits_hit"][0],
        "max-memory",
        "{said}"
    );
    // The command line takes precedence.
    native(&["--max-memory", "2G", "world.toml"], 0);
    let said = native(&["--set", "limits.time=\"1ms\"", "world.toml"], 2);
    assert!(said.contains("--max-time"), "{said}");
}

#[test]
fn limits_that_native_runs_meet_are_told() {
    let folder = natively_greedy("limits-native-told");
    for (option, value, how, code) in [
        ("max-files", "100000", "write", 0),
        ("max-processes", "4", "fork", 0),
        ("max-memory", "300M", "populate", 7),
    ] {
        let flag = format!("--{option}");
        let words = [&*flag, value, "./greedy", how];
        for command in ["native", "exec"] {
            let said = text(&expect(everett(&folder).arg(command).args(words), code));
            assert!(said.contains(&flag), "{command}: {said}");
        }
        let mut many = everett(&folder);
        many.args(["native", "--runs", "2", "--out", option]);
        let said = text(&expect(many.args(words), 0));
        assert_eq!(said.matches(&format!("see {flag}")).count(), 1, "{said}");
        let summary = summary(&folder.join(option));
        assert_eq!(summary["limits_hit"][0], option, "{summary:#}");
    }
    // Memory that is never touched does not count.
    for command in ["native", "exec"] {
        let words = [command, "--max-memory", "300M", "./greedy", "reserve"];
        let said = text(&expect(everett(&folder).args(words), 0));
        assert!(!said.contains("--max-memory"), "{command}: {said}");
    }
}

#[test]
fn native_runs_do_not_depend_on_the_memory_of_earlier_ones() {
    let folder = natively_greedy("limits-native-runs");
    let words = ["--max-memory", "200M", "./greedy", "pipes"];
    let mut many = everett(&folder);
    many.args(["native", "--runs", "3", "--out", "out"]);
    let peak = watched(many.args(words));
    assert!(peak < about(200), "{peak} bytes");
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["ends"][0]["runs"], 3, "{summary:#}");
    assert_eq!(summary["limits_hit"][0], "max-memory", "{summary:#}");
}

#[test]
fn shared_memory_is_within_the_memory_limit() {
    let folder = natively_greedy("limits-native-shared");
    let words = |how| ["native", "--max-memory", "200M", "./greedy", how];
    // It holds pages that are in no page table.
    let said = text(&expect(everett(&folder).args(words("hide")), 2));
    assert!(said.contains("more memory than 200 MiB"), "{said}");
    // Pages that nobody maps are not held.
    expect(everett(&folder).args(words("pass")), 0);
    let changes = ["native", "--max-memory", "100M", "./greedy", "alternate"];
    let peak = watched(everett(&folder).args(changes));
    assert!(peak < about(100), "{peak} bytes");
    // The model's copies of a mapped file count before they are made.
    let peak = watched(everett(&folder).args(words("mapped")));
    assert!(peak < about(200), "{peak} bytes");
    let said = text(&expect(everett(&folder).args(words("mapped")), 2));
    assert!(said.contains("more memory than 200 MiB"), "{said}");
}

/// Writes pieces of 64 KiB until that fails, and prints how many bytes were written.
const FILLS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    static char piece[65536];
    int fd = open("file", O_CREAT | O_WRONLY, 0600);
    long written = 0;
    for (long now; (now = write(fd, piece, sizeof piece)) > 0;)
        written += now;
    printf("written %ld\n", written);
    return 0;
}"#;

#[test]
fn files_hold_no_more_than_they_may() {
    let folder = folder("max-files-exact");
    build(&folder, "fills", FILLS, &[]);
    for (limit, most) in [("2M", 2 << 20), ("5M", 5 << 20)] {
        for command in ["exec", "native"] {
            let words = [command, "--max-files", limit, "./fills"];
            let said = text(&expect(everett(&folder).args(words), 0));
            let written = said.lines().find_map(|line| line.strip_prefix("written "));
            let written: u64 = written.and_then(|it| it.parse().ok()).expect("a number");
            // At most two per cent more; a host's initial files also count.
            assert!(written <= most + most / 50, "{words:?}: {written}");
            assert!(written >= most - (256 << 10), "{words:?}: {written}");
        }
    }
}
