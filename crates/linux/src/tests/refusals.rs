//! The model records the requests that it refuses or ignores although Linux would fulfil them, and
//! does not record requests that Linux refuses too.

use super::*;

/// The refusal that a call records, if any.
fn refused(bench: &mut Bench, host: &mut Host, name: &str, args: &[u64]) -> Option<String> {
    let all = |host: &Host| host.refusals().iter().map(|one| one.count).sum::<u64>();
    let before = all(host);
    let _ = bench.call(host, name, args);
    (all(host) > before).then(|| host.refusals().last().unwrap().what.clone())
}

#[test]
fn calls_that_are_refused_or_ignored_are_told() {
    let (mut bench, mut host) = idle();
    let block = put(&mut host, &[0; 4096]);
    let one = put(&mut host, &[1, 0, 0, 0]);
    let on_device = put(&mut host, b"eth0");
    let little = put(&mut host, &[[1u8, 0, 0, 0, 0, 0, 0, 0]; 2].concat());
    let groups = put(&mut host, &[16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    let mut header = vec![20, 0, 0, 0, 30, 0, 1, 3];
    header.resize(20, 0);
    let neighbours = put(&mut host, &header);
    let netlink = bench.call(&mut host, "socket", &[16, 3]).unwrap();
    let tcp = bench.call(&mut host, "socket", &[2, 1]).unwrap();
    let pages = bench.call(&mut host, "mmap", &[0, 4096, 3, 0x22, u64::MAX]);
    let pages = pages.unwrap();
    let cases: &[(&str, &[u64], &str)] = &[
        ("sendto", &[netlink, neighbours, 20], "netlink request 30"),
        (
            "connect",
            &[netlink, groups, 12],
            "connect of a netlink socket",
        ),
        (
            "setsockopt",
            &[tcp, 1, 9, one, 4],
            "socket option 9 of level 1",
        ),
        (
            "setsockopt",
            &[tcp, 1, 25, on_device, 4],
            "socket option 25 of level 1",
        ),
        (
            "setsockopt",
            &[tcp, 6, 18, one, 4],
            "socket option 18 of level 6",
        ),
        ("mmap", &[0, 4096, 3, 0x62, u64::MAX], "MAP_32BIT"),
        ("mmap", &[0, 4096, 3, 0x122, u64::MAX], "MAP_GROWSDOWN"),
        ("mmap", &[0, 4096, 3, 0x4_0022, u64::MAX], "MAP_HUGETLB"),
        ("madvise", &[pages, 4096, 102], "madvise with advice 102"),
        ("clone", &[0x4000_0011], "a namespace of clone"),
        ("clone", &[0x1_1f00], "CLONE_PIDFD of a thread"),
        ("clone", &[0x411], "a process that shares its files"),
        ("setrlimit", &[15, little], "resource limit 15"),
        (
            "arch_prctl",
            &[0x1001, block],
            "arch_prctl operation 0x1001",
        ),
        ("membarrier", &[8], "membarrier command 8"),
        (
            "sched_setscheduler",
            &[0, 1, one],
            "a real-time scheduling policy",
        ),
        ("shmctl", &[0, 14, block], "shmctl command 14"),
        ("pidfd_open", &[1, 0o200], "PIDFD_THREAD"),
    ];
    for (name, args, what) in cases {
        let said = refused(&mut bench, &mut host, name, args);
        assert_eq!(said.as_deref(), Some(*what), "{name}");
    }
}

#[test]
fn what_linux_refuses_too_is_not_told() {
    let (mut bench, mut host) = idle();
    let much = put(&mut host, &[0xff; 16]);
    let zero = put(&mut host, &[0; 4]);
    let tcp = bench.call(&mut host, "socket", &[2, 1]).unwrap();
    let cases: &[(&str, &[u64])] = &[
        ("setsockopt", &[tcp, 1, 9, zero, 4]),
        ("setsockopt", &[tcp, 1, 2, zero, 4]),
        ("mmap", &[0, 4096, 3, 0x2_8022, u64::MAX]),
        ("mmap", &[0, 0, 3, 0x22, u64::MAX]),
        ("madvise", &[0, 0, 77]),
        ("madvise", &[0, 0, 1]),
        ("madvise", &[0, 4096, 10]),
        ("madvise", &[0, 4096, 18]),
        // A thread that shares no memory.
        ("clone", &[0x1_0600]),
        ("clone", &[0x1_0000]),
        ("arch_prctl", &[0x3001, much]),
        ("membarrier", &[3]),
        ("setrlimit", &[9, much]),
        ("setrlimit", &[3, much]),
        ("membarrier", &[0]),
        ("setfsuid", &[77]),
        ("shmctl", &[0, 99, zero]),
        ("ioctl", &[1, 0x5401, zero]),
    ];
    for (name, args) in cases {
        let said = refused(&mut bench, &mut host, name, args);
        assert_eq!(said, None, "{name}");
    }
}
