//! Native worlds: runs are deterministic, and nothing of the machine is reachable.

use crate::cluster::{Process, wait_for};
use crate::common::{build, everett, expect, folder, text};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Processes, threads, sockets, signals and time.
const WORLD: &str = include_str!("../native/world.c");

#[test]
fn one_trace_gives_one_log_of_events() {
    let folder = folder("native-same");
    build(&folder, "world", WORLD, &["-g"]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "--all-tests", "--no-confirm"]);
    run.args([
        "--scheduler",
        "random:7",
        "--preempt",
        "syscalls",
        "./world",
    ]);
    expect(&mut run, 0);
    let output = expect(everett(&folder).args(["replay", "--times", "20", "out"]), 0);
    let said = text(&output);
    assert!(said.contains("20 runs, 0 with another log"), "{said}");
    assert!(said.contains("1 of 1 traces confirmed"), "{said}");
    // A log of a few events would prove nothing.
    let events = said.split("which has ").nth(1).expect("a count of events");
    let events: u32 = events
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .expect("a number");
    assert!(events > 1000, "{said}");
}

/// Tries to open, delete, connect, kill, fill memory and to get around the model.
const SANDBOX: &str = include_str!("../native/sandbox.c");

/// The answers of the model to a real file, a real process and a real port as targets.
const REFUSED: &str = "\
open: errno 2
create: errno 2
unlink: errno 2
unlink again: errno 2
kill: errno 3
kill -1: errno 3
ptrace: errno 3
process_vm_readv: errno 38
connect: errno 111
io_uring_setup: errno 38
bpf: errno 38
mount: errno 38
reboot: errno 38
int 0x80: -38 -38 -38
x32: -38
no such call: -38
old time: 1
PR_SET_TSC: 0
ARCH_SET_CPUID: -22
counter: 1
";

#[test]
fn nothing_of_the_machine_is_within_reach() {
    let folder = folder("native-sandbox");
    build(&folder, "sandbox", SANDBOX, &[]);
    let real = folder.join("real");
    fs::write(&real, "untouched").expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // The few processes that the guest has when it sends signals have ids from 1000 on.
    let other = std::iter::repeat_with(|| {
        let sleep = Command::new("sleep").arg("infinity").spawn();
        Process(sleep.expect("sleep"))
    });
    let mut other = other
        .take(200)
        .find(|other| !(1000..1100).contains(&other.0.id()))
        .expect("an id that the guest does not have");
    let mut run = everett(&folder);
    run.args(["native", "./sandbox"]).arg(&real);
    run.args([
        other.0.id().to_string(),
        port.to_string(),
        "bomb".to_owned(),
    ]);
    let output = expect(&mut run, 0);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(REFUSED), "{said}");
    let told = String::from_utf8_lossy(&output.stderr);
    for refused in [
        "int 0x80 with 20",
        "syscall ",
        "16 GiB of memory",
        "16 GiB of shared",
    ] {
        assert!(told.contains(refused), "{told}");
    }
    for bounded in ["private memory", "shared memory", "fork"] {
        assert!(said.contains(&format!("{bounded}: bounded\n")), "{said}");
    }
    assert!(said.contains("madvise HWPOISON: errno 22\n"), "{said}");
    assert_eq!(fs::read_to_string(&real).expect("the file"), "untouched");
    assert!(
        other.0.try_wait().expect("a process").is_none(),
        "it was killed"
    );
    listener.set_nonblocking(true).expect("a socket");
    assert!(listener.accept().is_err(), "somebody has connected");
}

#[test]
fn native_processes_die_with_their_master() {
    let folder = folder("native-orphans");
    let source = "int main(void) { for (volatile int i = 0;; i++) {} }";
    build(&folder, "spins", source, &[]);
    let mut run = everett(&folder);
    let mut master = run.args(["native", "./spins"]).spawn().expect("it starts");
    let children = format!("/proc/{0}/task/{0}/children", master.id());
    let started = || fs::read_to_string(&children).unwrap_or_default();
    // The program, the process that is copied for every program, and perhaps the first one of a
    // namespace.
    let runs = |child: &PathBuf| {
        let program = fs::read_link(child.join("exe")).unwrap_or_default();
        program.ends_with("spins")
    };
    let children = std::iter::repeat_with(started)
        .inspect(|_| std::thread::sleep(Duration::from_millis(10)))
        .take_while(|_| master.try_wait().expect("a process").is_none())
        .map(|children| {
            let children = children.split_whitespace();
            let paths = children.map(|child| PathBuf::from(format!("/proc/{child}")));
            paths.collect::<Vec<PathBuf>>()
        })
        .find(|children| children.iter().any(runs))
        .expect("native processes");
    assert!(children.iter().all(|child| child.exists()));
    master.kill().expect("it can be killed");
    master.wait().expect("it has ended");
    // Whoever inherits them may not reap them.
    let lives = |child: &PathBuf| fs::read_link(child.join("exe")).is_ok();
    wait_for("the end of the native processes", || {
        (!children.iter().any(lives)).then_some(())
    });
}

/// Two threads increment a counter without a lock.
const LOST_UPDATE: &str = "
#include <assert.h>
#include <pthread.h>
static int counter;
static void *add(void *unused) {
    for (int i = 0; i < 2; i++)
        counter++;
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, 0);
    pthread_create(&b, 0, add, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(counter == 4);
}
";

/// Both threads test a lock before one of them takes it.
const BROKEN_LOCK: &str = "
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int held;
static int inside;
static void *work(void *unused) {
    if (atomic_load(&held) == 0) {
        atomic_store(&held, 1);
        inside++;
        if (inside != 1) abort();
        inside--;
        atomic_store(&held, 0);
    }
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
";

#[test]
fn preemption_between_system_calls_happens_natively() {
    let folder = folder("native-points");
    for (name, source) in [("lost", LOST_UPDATE), ("lock", BROKEN_LOCK)] {
        build(&folder, name, source, &["-g"]);
        let mut run = everett(&folder);
        run.args(["run", "--out", &format!("{name}-out"), "--no-tests"]);
        run.args(["--scheduler", "bounded:2", "--preempt", "memory"]);
        run.args(["--stop-at", "all"]);
        let output = expect(run.arg(format!("./{name}")), 1);
        let said = text(&output);
        assert!(
            said.contains("1 of 1 findings confirmed natively"),
            "{said}"
        );
    }
}

#[test]
fn many_seeded_runs_find_what_one_trace_shows_again() {
    let folder = folder("native-runs");
    // Two threads take two locks, in opposite orders.
    let source = "
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static void *other(void *unused) {
    pthread_mutex_lock(&second);
    usleep(10);
    pthread_mutex_lock(&first);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    getppid();
    pthread_mutex_lock(&first);
    getppid();
    pthread_mutex_lock(&second);
    return 0;
}
";
    build(&folder, "locks", source, &["-g"]);
    let runs = |out: &str| {
        let mut run = everett(&folder);
        run.args([
            "native", "--runs", "30", "--seed", "1", "--out", out, "./locks",
        ]);
        text(&expect(&mut run, 1))
    };
    let said = runs("a");
    assert!(said.contains(" 1 finding,"), "{said}");
    assert!(said.contains("ends in deadlock"), "{said}");
    let again = runs("b");
    let ends = |said: &str| {
        said.lines()
            .skip(1)
            .map(|line| line.replace("b/", "a/"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ends(&said),
        ends(&again),
        "the same seeds are the same runs"
    );
    let replayed = text(&expect(everett(&folder).args(["replay", "a"]), 0));
    assert!(replayed.contains("1 of 1 traces confirmed"), "{replayed}");
}

/// A thread computes without a system call until another, sleeping thread lets it end.
const SPINS: &str = "
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
static atomic_int over;
static void *spin(void *unused) {
    while (!over) {}
    return unused;
}
int main(void) {
    pthread_t thread;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    pthread_create(&thread, 0, spin, 0);
    usleep(300000);
    clock_gettime(CLOCK_MONOTONIC, &to);
    over = 1;
    pthread_join(thread, 0);
    long passed = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    return passed >= 300 && passed < 302 ? 0 : 1;
}
";

/// Computes without a system call until a timer on its processor time has expired five times.
const PROFILED: &str = "
#include <signal.h>
#include <sys/time.h>
#include <time.h>
static volatile sig_atomic_t times;
static void count(int signal) { times += signal == SIGPROF; }
int main(void) {
    struct itimerval every = {{0, 10000}, {0, 10000}};
    struct timespec used;
    signal(SIGPROF, count);
    setitimer(ITIMER_PROF, &every, 0);
    while (times < 5) {}
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec == 0 && used.tv_nsec >= 50000000 && used.tv_nsec < 52000000 ? 0 : 1;
}
";

#[test]
fn timers_on_processor_time_expire_for_native_threads_that_compute() {
    let folder = folder("native-profiled");
    build(&folder, "profiled", PROFILED, &["-O1"]);
    let mut run = everett(&folder);
    expect(run.args(["native", "--runs", "1", "./profiled"]), 0);
    expect(everett(&folder).args(["native", "./profiled"]), 0);
}

#[test]
fn time_passes_for_a_native_thread_as_long_as_it_computes() {
    let folder = folder("native-spins");
    build(&folder, "spins", SPINS, &["-O1"]);
    // More than 40 long computations count as a hang.
    let mut run = everett(&folder);
    let said = text(&expect(
        run.args([
            "native",
            "--runs",
            "1",
            "--scheduler",
            "round-robin",
            "./spins",
        ]),
        0,
    ));
    assert!(said.contains("exits with 0"), "{said}");
}

#[test]
fn a_run_with_more_calls_than_were_allowed_is_a_hang() {
    let folder = folder("native-calls");
    let source = "#include <unistd.h>\nint main(void) { for (int i = 0; i < 100; i++) getppid(); }";
    build(&folder, "calls", source, &[]);
    expect(everett(&folder).args(["native", "./calls"]), 0);
    let mut few = everett(&folder);
    let said = text(&expect(
        few.args(["native", "--max-calls", "50", "./calls"]),
        1,
    ));
    assert!(said.contains("does not end"), "{said}");
    // A host has its own limit, whatever others have.
    let world =
        "[host.few]\nprogram = \"./calls\"\nmax_calls = 50\n[host.other]\nprogram = \"./calls\"\n";
    std::fs::write(folder.join("world.toml"), world).expect("written");
    let said = text(&expect(everett(&folder).args(["native", "world.toml"]), 1));
    assert!(said.contains("host few: hang"), "{said}");
    assert!(!said.contains("host other: hang"), "{said}");
}

/// Bugs between two lock calls, without shared accesses by the program itself: a lock taken in two
/// orders, a check and an act in two critical sections, and two lost wake-ups.
const BETWEEN_LOCKS: [(&str, &str); 4] = [
    (
        "orders",
        "static void *one(void *unused) { LOCK(a); LOCK(b); x++; UNLOCK(b); UNLOCK(a); return unused; }
static void *two(void *unused) { LOCK(b); LOCK(a); x++; UNLOCK(a); UNLOCK(b); return unused; }",
    ),
    (
        "check",
        "static int get(void) { LOCK(a); int seen = x; UNLOCK(a); return seen; }
static void *one(void *unused) {
    if (get() == 0) { LOCK(a); x++; UNLOCK(a); }
    if (x > 1) abort();
    return unused;
}
static void *two(void *unused) { return one(unused); }",
    ),
    (
        "wake",
        "static void *one(void *unused) {
    if (!x) { LOCK(a); pthread_cond_wait(&c, &a); UNLOCK(a); }
    return unused;
}
static void *two(void *unused) { x = 1; LOCK(a); pthread_cond_signal(&c); UNLOCK(a); return unused; }",
    ),
    (
        "locked",
        "static int get(void) { LOCK(a); int seen = x; UNLOCK(a); return seen; }
static void *one(void *unused) {
    if (!get()) { LOCK(a); pthread_cond_wait(&c, &a); UNLOCK(a); }
    return unused;
}
static void *two(void *unused) { LOCK(a); x = 1; pthread_cond_signal(&c); UNLOCK(a); return unused; }",
    ),
];

#[test]
fn random_schedules_find_bugs_between_calls_of_locks() {
    let folder = folder("native-locks");
    for (name, threads) in BETWEEN_LOCKS {
        let source = format!(
            "#include <pthread.h>
#include <stdlib.h>
#define LOCK(lock) pthread_mutex_lock(&lock)
#define UNLOCK(lock) pthread_mutex_unlock(&lock)
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile int x;
{threads}
int main(void) {{
    pthread_t first, second;
    LOCK(b); pthread_cond_signal(&c); UNLOCK(b);
    pthread_create(&first, 0, one, 0);
    pthread_create(&second, 0, two, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return 0;
}}
"
        );
        build(&folder, name, &source, &["-g"]);
        let out = format!("{name}-out");
        let mut run = everett(&folder);
        run.args(["native", "--runs", "200", "--preempt", "atomics"]);
        let said = text(&expect(run.args(["--out", &out, &format!("./{name}")]), 1));
        assert!(said.contains("findings/0001"), "{name}: {said}");
        let replayed = text(&expect(everett(&folder).args(["replay", &out]), 0));
        assert!(replayed.contains("traces confirmed"), "{replayed}");
    }
}

/// The threads share only locks, so the code of the program itself has no shared access.
#[test]
fn random_schedules_find_deadlocks_of_threads_that_only_lock() {
    let folder = folder("native-only-locks");
    let source = r#"
#include <pthread.h>
static pthread_mutex_t forks[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *eat(void *number) {
    long first = (long)number;
    pthread_mutex_lock(&forks[first]);
    pthread_mutex_lock(&forks[1 - first]);
    pthread_mutex_unlock(&forks[1 - first]);
    pthread_mutex_unlock(&forks[first]);
    return 0;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, eat, (void *)1);
    eat((void *)0);
    pthread_join(other, 0);
    return 0;
}"#;
    build(&folder, "eats", source, &["-g"]);
    let mut run = everett(&folder);
    run.args(["native", "--runs", "200", "--preempt", "memory"]);
    let said = text(&expect(run.args(["--out", "out", "./eats"]), 1));
    assert!(said.contains("deadlock"), "{said}");
    assert!(!said.contains("debug information"), "{said}");
}
