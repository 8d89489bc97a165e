//! Small programs, run from start to end.

use super::*;
use crate::{Ending, Stream};
use everett_vm::BugKind;

const WRITE: u64 = 1;
const RT_SIGACTION: u64 = 13;
const RT_SIGPROCMASK: u64 = 14;
const NANOSLEEP: u64 = 35;
const GETPID: u64 = 39;
const FUTEX: u64 = 202;
const KILL: u64 = 62;
const TKILL: u64 = 200;
const EXIT_GROUP: u64 = 231;

const OWN_PID: u64 = 1000;
const SIGABRT: u64 = 6;
const SIGTERM: u64 = 15;

/// A program whose calls may use a block of memory with these bytes. The block's address is the
/// same in every boot of the same script, so a first boot finds it.
fn with_block(bytes: &[u8], script: impl Fn(u64) -> Script) -> (Bench, Host) {
    let mut address = 0;
    loop {
        let mut bench = Bench::new(script(address).program());
        let mut host = bench.boot(&HostConfig::default());
        let at = put(&mut host, bytes);
        if at == address {
            return (bench, host);
        }
        address = at;
    }
}

fn bug_kind(exit: &HostExit) -> Option<BugKind> {
    match exit {
        HostExit::Ended(Ending::Bug(bug)) => Some(bug.kind),
        _ => None,
    }
}

#[test]
fn output_is_collected_and_the_status_returned() {
    let (mut bench, mut host) = with_block(b"hello\n", |block| {
        Script::default()
            .call(WRITE, &[1, block, 6])
            .call(WRITE, &[2, block, 2])
            .call(EXIT_GROUP, &[0x1_07])
    });
    let exit = bench.run(&mut host);
    assert_eq!(exit, HostExit::Ended(Ending::Exit(Value::concrete(7))));
    let (out, err) = (
        host.output(Stream::Stdout).clone(),
        host.output(Stream::Stderr).clone(),
    );
    assert_eq!(bench.text(&out), b"hello\n");
    assert_eq!(bench.text(&err), b"he");
    assert!(host.instructions() >= 1);
    assert!(host.clock_ns() >= 2000);
    assert_eq!(host.stack().len(), 1);
}

#[test]
fn returning_from_main_is_the_status() {
    let mut bench = Bench::new(Script::default().call(GETPID, &[]).program());
    let mut host = bench.boot(&HostConfig::default());
    let exit = bench.run(&mut host);
    assert_eq!(
        exit,
        HostExit::Ended(Ending::Exit(Value::concrete(OWN_PID & 0xff)))
    );
}

#[test]
fn a_symbolic_status_stays_symbolic() {
    let mut bench = Bench::new(Script::default().program());
    let mut host = bench.boot(&HostConfig::default());
    let input = bench.arena.array(3, "s", 1);
    let byte = bench.arena.read(input, 0);
    let status = Value {
        bits: 0,
        term: Some(bench.arena.zext(byte, 32)),
    };
    let stop = bench.call_values(&mut host, "exit_group", &[status]);
    let expected = Value {
        bits: 0,
        term: Some(byte),
    };
    assert!(
        matches!(stop, Err(Stop::Exit(crate::process::ExitStatus::Exit(status))) if status == expected)
    );
}

#[test]
fn sleeping_takes_no_instructions_but_time() {
    let times = [3u64, 5].map(u64::to_le_bytes).concat();
    let (mut bench, mut host) = with_block(&times, |block| {
        Script::default().call(NANOSLEEP, &[block, 0])
    });
    assert_eq!(
        bench.run(&mut host),
        HostExit::Ended(Ending::Exit(Value::ZERO))
    );
    assert!((3_000_000_005..3_000_100_000).contains(&host.clock_ns()));
    assert!(host.instructions() < 10);
}

#[test]
fn waiting_alone_for_ever_is_a_deadlock() {
    let (mut bench, mut host) = with_block(&[1, 0, 0, 0], |block| {
        Script::default().call(FUTEX, &[block, 128, 1, 0])
    });
    assert_eq!(bug_kind(&bench.run(&mut host)), Some(BugKind::Deadlock));
    // A wait for a value that has changed returns at once, and a timeout ends a wait.
    let futex = put(&mut host, &[1, 0, 0, 0]);
    assert_eq!(
        bench.call(&mut host, "futex", &[futex, 128, 2, 0]),
        Err(Errno::EAGAIN)
    );
    assert_eq!(bench.call(&mut host, "futex", &[futex, 129, 1]), Ok(0));
}

#[test]
fn a_fatal_signal_ends_the_path() {
    let mut bench = Bench::new(Script::default().call(KILL, &[OWN_PID, SIGTERM]).program());
    let mut host = bench.boot(&HostConfig::default());
    assert_eq!(bench.run(&mut host), HostExit::Ended(Ending::Signal(15)));
    assert_eq!(
        bench.call(&mut host, "kill", &[4321, SIGTERM]),
        Err(Errno::ESRCH)
    );
    assert_eq!(
        bench.call(&mut host, "kill", &[OWN_PID, 99]),
        Err(Errno::EINVAL)
    );
    assert_eq!(bench.call(&mut host, "kill", &[OWN_PID, 0]), Ok(0));
}

#[test]
fn a_blocked_abort_waits_until_it_is_unblocked() {
    let all = u64::MAX.to_le_bytes();
    let (mut bench, mut host) = with_block(&all, |block| {
        Script::default()
            .call(RT_SIGPROCMASK, &[0, block, 0, 8])
            .call(TKILL, &[OWN_PID, SIGABRT])
            .call(WRITE, &[1, block, 3])
            .call(RT_SIGPROCMASK, &[1, block, 0, 8])
            .call(EXIT_GROUP, &[0])
    });
    assert_eq!(bug_kind(&bench.run(&mut host)), Some(BugKind::Abort));
    assert_eq!(host.output(Stream::Stdout).len(), 3);
}

#[test]
fn a_handler_runs_before_the_program_goes_on() {
    let action = [Script::second(), 0, 0, 0, 0]
        .map(u64::to_le_bytes)
        .concat();
    let bytes = [&action[..], b"in", b"out"].concat();
    let (mut bench, mut host) = with_block(&bytes, |block| Script {
        second: vec![
            (WRITE, vec![1, block + 40, 2]),
            // Its own signal is blocked while the handler runs.
            (KILL, vec![OWN_PID, SIGTERM]),
            (WRITE, vec![1, block + 40, 1]),
            (RT_SIGACTION, vec![SIGTERM, block + 8, 0, 8]),
        ],
        ..Script::default()
            .call(RT_SIGACTION, &[SIGTERM, block, 0, 8])
            .call(KILL, &[OWN_PID, SIGTERM])
            .call(WRITE, &[1, block + 42, 3])
    });
    // The handler restored the default action, so the second signal kills.
    assert_eq!(bench.run(&mut host), HostExit::Ended(Ending::Signal(15)));
    let output = host.output(Stream::Stdout).clone();
    assert_eq!(bench.text(&output), b"ini");
}

#[test]
fn what_is_not_modelled_says_so_once() {
    let script = Script::default()
        .call(298, &[])
        .call(298, &[])
        .call(9999, &[]);
    let mut bench = Bench::new(script.program());
    let mut host = bench.boot(&HostConfig::default());
    let status = Value::concrete(Errno::ENOSYS.result() & 0xff);
    assert_eq!(bench.run(&mut host), HostExit::Ended(Ending::Exit(status)));
    let refusals = host.refusals().iter();
    let refusals: Vec<(&str, u64)> = refusals.map(|one| (&*one.what, one.count)).collect();
    // The calls are at different places.
    let expected = [
        ("system call perf_event_open", 1),
        ("system call perf_event_open", 1),
        ("syscall 9999", 1),
    ];
    assert_eq!(refusals, expected);
}

#[test]
fn clones_go_their_own_ways() {
    let (mut bench, mut host) =
        with_block(b"x", |block| Script::default().call(WRITE, &[1, block, 1]));
    let clone = host.clone();
    bench.run(&mut host);
    assert_eq!(host.output(Stream::Stdout).len(), 1);
    assert!(clone.output(Stream::Stdout).is_empty());
    assert_eq!(clone.instructions(), 0);
}

#[test]
fn a_small_budget_comes_back() {
    let mut bench = Bench::new(Script::default().call(GETPID, &[]).program());
    let mut host = bench.boot(&HostConfig::default());
    assert_eq!(host.run(bench.around(), 0), HostExit::Budget);
    assert_eq!(host.run(bench.around(), 1), HostExit::Budget);
    assert!(matches!(
        bench.run(&mut host),
        HostExit::Ended(Ending::Exit(_))
    ));
}

#[test]
fn clocks_tell_the_virtual_time() {
    let (mut bench, mut host) = idle();
    // The host has been up for 100 seconds when it starts.
    host.state.clock_ns = 2_500_000_000;
    let room = put(&mut host, &[0; 16]);
    assert_eq!(bench.call(&mut host, "clock_gettime", &[1, room]), Ok(0));
    assert_eq!(
        get(&host, room, 16).bytes(),
        [102u64, 500_000_000].map(u64::to_le_bytes).concat()
    );
    assert_eq!(bench.call(&mut host, "time", &[0]), Ok(1_577_836_802));
    assert_eq!(
        bench.call(&mut host, "clock_gettime", &[10, room]),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        bench.call(&mut host, "clock_gettime", &[1, 0]),
        Err(Errno::EFAULT)
    );
}

#[test]
fn a_handler_that_asks_gets_information() {
    let (mut bench, mut host) = idle();
    let action = [Script::second(), 4, 0, 0].map(u64::to_le_bytes).concat();
    let block = put(&mut host, &action);
    assert_eq!(
        bench.call(&mut host, "rt_sigaction", &[SIGTERM, block, 0, 8]),
        Ok(0)
    );
    assert_eq!(bench.call(&mut host, "kill", &[OWN_PID, SIGTERM]), Ok(0));
    let deliver = |mut slice: crate::dispatch::TimeSlice<'_, '_>| slice.kernel.deliver_signals();
    host.with_running(&mut bench.around(), deliver)
        .unwrap()
        .unwrap();
    let thread = host.thread();
    assert_eq!(thread.frames.len(), 2);
    let base = thread.frames[1].base as usize;
    let [signal, information, context] = [0, 1, 2].map(|at| thread.registers[base + at].bits);
    assert_eq!(signal, SIGTERM);
    assert_eq!(get(&host, information, 128).bytes()[0], SIGTERM as u8);
    assert!(host.memory().object_at(context, 968).is_some());
    // The `siginfo_t` and the `ucontext` are freed when the handler returns.
    assert!(matches!(
        bench.run(&mut host),
        HostExit::Ended(Ending::Exit(_))
    ));
    assert!(host.memory().object_at(information, 1).is_none());
}
