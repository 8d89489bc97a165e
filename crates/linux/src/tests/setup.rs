//! Programs that declare their world.

use everett_vm::HYPERCALL_BASE;

use super::*;
use crate::{Boot, HostStart};

/// A host with this boot mode.
fn booting(boot: Boot) -> (Bench, Host) {
    let mut bench = Bench::new(Script::default().program());
    let config = HostConfig {
        boot,
        ..HostConfig::default()
    };
    let host = bench.boot(&config);
    (bench, host)
}

/// The result as a C program sees it.
fn declare(bench: &mut Bench, host: &mut Host, name: &str, args: &[u64]) -> i32 {
    let result = bench.call(host, name, args).unwrap();
    assert!(result <= u64::from(u32::MAX), "{name} returns an int");
    result as u32 as i32
}

fn error(errno: Errno) -> i32 {
    -errno.0
}

#[test]
fn every_call_has_its_own_number() {
    for (row, at) in crate::syscalls::bootstrap::ROWS.iter().zip(0..) {
        assert_eq!(row.number, HYPERCALL_BASE + 32 + at);
        let found = syscalls::row(u64::from(row.number)).unwrap();
        assert_eq!(found.name, row.name);
    }
    let last = crate::syscalls::own::ROWS.len() as u64;
    assert!(last <= 32, "the numbers of the two families do not meet");
    assert!(syscalls::row(u64::from(HYPERCALL_BASE) + last).is_none());
}

#[test]
fn declarations_are_kept_and_errors_returned() {
    let (mut bench, mut host) = booting(Boot::Standalone);
    let (net, other) = (put_path(&mut host, "net0"), put_path(&mut host, "net1"));
    let router = put_path(&mut host, "r");
    let mut say = |name: &str, args: &[u64]| declare(&mut bench, &mut host, name, args);
    assert_eq!(say("klee_net_add_network", &[net]), 0);
    assert_eq!(say("klee_net_add_network", &[net]), error(Errno::EEXIST));
    assert_eq!(say("klee_net_add_network", &[0]), error(Errno::EFAULT));
    assert_eq!(say("klee_net_add_router", &[router]), 0);
    let add = "klee_net_add_interface";
    assert_eq!(say(add, &[1, other, 0]), error(Errno::ENOENT));
    assert_eq!(say(add, &[1, net, other]), error(Errno::ENOENT));
    assert_eq!(say(add, &[1, net, 0]), 0);
    assert_eq!(say(add, &[7, net, router]), 0);
    let address = u64::from(u32::from_le_bytes([10, 0, 0, 1]));
    let add = "klee_net_add_ipv4_address";
    assert_eq!(say(add, &[address, 0, 2, 1, 0]), error(Errno::ENODEV));
    assert_eq!(say(add, &[address, 0, 1, 1, 0]), 0);
    assert_eq!(
        say(add, &[address, 0, 7, 1, router]),
        error(Errno::EADDRINUSE)
    );
    let gateway = u64::from(u32::from_le_bytes([10, 0, 0, 9]));
    let add = "klee_net_add_ipv4_route";
    assert_eq!(say(add, &[address, 0, gateway, 0]), error(Errno::EINVAL));
    assert_eq!(say(add, &[0, 0, gateway, 0]), 0);
    assert_eq!(
        say(add, &[0, 0, gateway, router]),
        error(Errno::ENETUNREACH)
    );
    let setup = host.setup();
    assert!(setup.is_declaring());
    assert_eq!(setup.networks, ["net0"]);
    let route = setup.own.routes[0];
    assert_eq!(
        (route.to.prefix_len, route.via.to_string()),
        (0, "10.0.0.9".to_owned())
    );
    let own = setup.own.interfaces[0].addresses[0];
    assert_eq!(
        (own.address.to_string(), own.prefix_len),
        ("10.0.0.1".to_owned(), 24)
    );
    assert_eq!(setup.routers[0].interfaces[0].number, 7);
}

#[test]
fn addresses_of_ipv6_are_texts() {
    let (mut bench, mut host) = booting(Boot::Standalone);
    let net = put_path(&mut host, "net0");
    let (good, bad) = (put_path(&mut host, "fd00::1"), put_path(&mut host, "fd00"));
    let mut say = |name: &str, args: &[u64]| declare(&mut bench, &mut host, name, args);
    assert_eq!(say("klee_net_add_network", &[net]), 0);
    assert_eq!(say("klee_net_add_interface", &[1, net, 0]), 0);
    let add = "klee_net_add_ipv6_address";
    assert_eq!(say(add, &[bad, 0, 1, 1, 0]), error(Errno::EINVAL));
    assert_eq!(say(add, &[good, 129, 1, 1, 0]), error(Errno::EINVAL));
    assert_eq!(say(add, &[good, 0, 1, 1, 0]), 0);
    let gateway = put_path(&mut host, "fd00::2");
    let add = "klee_net_add_ipv6_route";
    assert_eq!(declare(&mut bench, &mut host, add, &[0, 0, gateway, 0]), 0);
    assert_eq!(host.setup().own.interfaces[0].addresses[0].prefix_len, 64);
}

#[test]
fn a_path_stands_where_its_host_is_set_up() {
    let (mut bench, mut host) = booting(Boot::StopAtSetup);
    let name = put_path(&mut host, "server");
    let args = [name, 1, 2].map(Value::concrete);
    let stop = bench.call_values(&mut host, "klee_net_host_setup", &args);
    assert!(matches!(stop, Err(Stop::SetUp)), "{stop:?}");
    let setup = host.setup();
    assert!(setup.is_over() && setup.is_server);
    assert_eq!((setup.own.name.as_str(), setup.sequence), ("server", 2));
}

#[test]
fn the_host_of_a_world_waits_for_its_start() {
    let begin = HostStart {
        name: "server".to_owned(),
        at_ns: 5_000,
        random: 77,
    };
    let (mut bench, mut host) = booting(Boot::Start(begin));
    assert!(host.setup().is_before_start());
    let (name, other) = (put_path(&mut host, "server"), put_path(&mut host, "client"));
    let mut elsewhere = host.clone();
    let args = [other, 0, 0].map(Value::concrete);
    let stop = bench.call_values(&mut elsewhere, "klee_net_host_setup", &args);
    assert!(matches!(stop, Err(Stop::Interrupt(_))), "{stop:?}");
    let before = host.state.random;
    let args = [name, 0, 0].map(Value::concrete);
    let stop = bench.call_values(&mut host, "klee_net_host_setup", &args);
    assert!(matches!(stop, Err(Stop::Block(_))), "{stop:?}");
    assert!(
        !host.setup().is_before_start(),
        "others can reach it already"
    );
    assert_eq!(host.state.random, before ^ 77);
    host.pass_time(1);
    assert_eq!(host.interruption(), Some(HostExit::Horizon));
    host.pass_time(5_000);
    triomphe::Arc::make_mut(&mut host.state.tasks[0]).deadline_ns = Some(5_000);
    let args = [name, 0, 0];
    assert_eq!(
        declare(&mut bench, &mut host, "klee_net_host_setup", &args),
        0
    );
    assert_eq!(host.state.random, before ^ 77, "it is set up once");
    triomphe::Arc::make_mut(&mut host.state.tasks[0]).deadline_ns = None;
    let again = declare(&mut bench, &mut host, "klee_net_host_setup", &args);
    assert_eq!(again, error(Errno::EBUSY));
}

#[test]
fn data_is_shown_in_states_that_are_numbers() {
    let (mut bench, mut host) = booting(Boot::Standalone);
    let (key, data) = (put_path(&mut host, "decision"), put(&mut host, b"yes"));
    let args = [u64::from(u32::MAX), key, data, 3];
    assert_eq!(
        declare(&mut bench, &mut host, "klee_invariant_expose_data", &args),
        0
    );
    let name = ("-1".to_owned(), "decision".to_owned());
    assert_eq!(host.exposed()[&name].bytes(), b"yes");
    assert!(!host.setup().is_declaring(), "it declares nothing");
}

#[test]
fn files_are_written_down_as_they_are() {
    let (mut bench, mut host) = booting(Boot::Standalone);
    assert!(host.saved_files().is_none());
    let path = put_path(&mut host, "/made");
    const CREATE: u64 = 0o101;
    bench
        .call(&mut host, "open", &[path, CREATE, 0o600])
        .unwrap();
    assert_eq!(
        declare(&mut bench, &mut host, "klee_net_write_filesystem", &[]),
        0
    );
    bench.call(&mut host, "unlink", &[path]).unwrap();
    let saved = host.saved_files().unwrap();
    assert_eq!(saved.len(), 1);
    assert_eq!(saved[0].path, b"/made");
}
