//! Socket handlers called directly: symbolic bytes, clones, and wake-up sources.

use everett_vm::{Buffer, Value};

use super::*;
use crate::bytes::input_bytes;
use crate::wait::WakeSource;

const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;

/// Two symbolic bytes between two concrete ones.
fn put_symbolic(bench: &mut Bench, host: &mut Host) -> (u64, Buffer) {
    let address = put(host, b"<..>");
    let input = bench.arena.array(0, "input", 2);
    let bytes = input_bytes(&mut bench.arena, input, 0, 2);
    let object = host.memories[0].object_at_mut(address, 4).unwrap();
    object.write_buffer(1, &bytes);
    (address, get(host, address, 4))
}

fn terms(buffer: &Buffer) -> Vec<ExprId> {
    buffer.terms().collect()
}

fn loopback(host: &mut Host, port: u16) -> u64 {
    let port = port.to_be_bytes();
    let mut bytes = vec![2, 0, port[0], port[1], 127, 0, 0, 1];
    bytes.resize(16, 0);
    put(host, &bytes)
}

/// Descriptors of two connected TCP sockets and of the listener.
fn tcp(bench: &mut Bench, host: &mut Host, port: u16) -> [u64; 3] {
    let address = loopback(host, port);
    let server = bench.call(host, "socket", &[AF_INET, STREAM]).unwrap();
    bench.call(host, "bind", &[server, address, 16]).unwrap();
    bench.call(host, "listen", &[server, 4]).unwrap();
    let client = bench.call(host, "socket", &[AF_INET, STREAM]).unwrap();
    bench.call(host, "connect", &[client, address, 16]).unwrap();
    let accepted = bench.call(host, "accept", &[server]).unwrap();
    [client, accepted, server]
}

#[test]
fn terms_travel_through_sockets_of_all_kinds() {
    let (mut bench, mut host) = idle();
    let (from, sent) = put_symbolic(&mut bench, &mut host);
    assert_eq!(terms(&sent).len(), 2);
    let to = put(&mut host, &[0; 16]);
    let [client, server, _] = tcp(&mut bench, &mut host, 4000);
    let mut pairs = vec![[client, server]];
    for kind in [STREAM, DATAGRAM] {
        let fds = put(&mut host, &[0; 8]);
        bench
            .call(&mut host, "socketpair", &[AF_UNIX, kind, 0, fds])
            .unwrap();
        let fds = get(&host, fds, 8);
        pairs.push([u64::from(fds.bytes()[0]), u64::from(fds.bytes()[4])]);
    }
    for [sender, receiver] in pairs {
        let moved = bench.call(&mut host, "write", &[sender, from, 4]);
        assert_eq!(moved, Ok(4));
        let mut marked = 0;
        host.for_each_term(&mut |_| marked += 1);
        assert!(marked >= 4, "terms in a socket are alive");
        let moved = bench.call(&mut host, "recvfrom", &[receiver, to, 16]);
        assert_eq!(moved, Ok(4));
        assert_eq!(terms(&get(&host, to, 4)), terms(&sent));
    }
}

#[test]
fn clones_of_a_host_have_connections_of_their_own() {
    let (mut bench, mut host) = idle();
    let [client, server, _] = tcp(&mut bench, &mut host, 4000);
    let text = put(&mut host, b"text");
    let to = put(&mut host, &[0; 8]);
    let mut clone = host.clone();
    bench.call(&mut host, "write", &[client, text, 4]).unwrap();
    bench.call(&mut clone, "close", &[client]).unwrap();
    assert_eq!(bench.call(&mut host, "read", &[server, to, 8]), Ok(4));
    assert_eq!(bench.call(&mut clone, "read", &[server, to, 8]), Ok(0));
}

#[test]
fn who_listens_hopes_for_the_outside_and_who_waits_for_a_peer_does_not() {
    let (mut bench, mut host) = idle();
    let [client, _, server] = tcp(&mut bench, &mut host, 4000);
    let to = put(&mut host, &[0; 8]);
    let mut wake_source = |name: &str, args: &[u64]| {
        let args: Vec<Value> = args.iter().map(|bits| Value::concrete(*bits)).collect();
        match bench.call_values(&mut host, name, &args) {
            Err(Stop::Block(wait)) => host.state.wake_source(&wait),
            other => panic!("{name} does not wait: {other:?}"),
        }
    };
    assert_eq!(wake_source("accept", &[server]), WakeSource::External);
    assert_eq!(wake_source("read", &[client, to, 8]), WakeSource::None);
}

#[test]
fn symbolic_bytes_of_a_message_are_not_asked_for_and_bad_addresses_are_refused() {
    let (mut bench, mut host) = idle();
    let (from, _) = put_symbolic(&mut bench, &mut host);
    let socket = bench.call(&mut host, "socket", &[AF_INET, DATAGRAM]);
    let socket = socket.unwrap();
    let nowhere = {
        let mut bytes = vec![2, 0, 0, 80, 93, 184, 216, 34];
        bytes.resize(16, 0);
        put(&mut host, &bytes)
    };
    let sent = bench.call(&mut host, "sendto", &[socket, from, 4, 0, nowhere, 16]);
    assert_eq!(sent, Err(Errno::ENETUNREACH));
    for len in [0, 1, 15, u64::MAX, 1 << 31, 129] {
        let result = bench.call(&mut host, "bind", &[socket, nowhere, len]);
        assert!(result.is_err(), "length {len}");
    }
    assert_eq!(bench.tape.questions, 0);
}

/// Sends two descriptors over a socket.
fn pass(bench: &mut Bench, host: &mut Host, over: u64, passed: [u64; 2]) {
    const RIGHTS: [u32; 2] = [1, 1];
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut control = words(&[24]);
    let halves = RIGHTS.into_iter().chain(passed.map(|fd| fd as u32));
    control.extend(halves.flat_map(u32::to_le_bytes));
    let (byte, control) = (put(host, b"x"), put(host, &control));
    let part = put(host, &words(&[byte, 1]));
    let message = put(host, &words(&[0, 0, part, 1, control, 24, 0]));
    assert_eq!(bench.call(host, "sendmsg", &[over, message, 0]), Ok(1));
}

#[test]
fn a_chain_of_sockets_in_transit_is_closed_on_a_small_stack() {
    let chain = || {
        let (mut bench, mut host) = idle();
        let fds = put(&mut host, &[0; 8]);
        let mut inner: Option<[u64; 2]> = None;
        for _ in 0..3000 {
            let pair = bench.call(&mut host, "socketpair", &[AF_UNIX, STREAM, 0, fds]);
            assert_eq!(pair, Ok(0));
            let outer = get(&host, fds, 8);
            let outer = [u64::from(outer.bytes()[0]), u64::from(outer.bytes()[4])];
            if let Some(inner) = inner.replace(outer) {
                pass(&mut bench, &mut host, outer[0], inner);
                for fd in inner {
                    bench.call(&mut host, "close", &[fd]).unwrap();
                }
            }
        }
        let last = inner.unwrap();
        for fd in last {
            bench.call(&mut host, "close", &[fd]).unwrap();
        }
        assert_eq!(host.state.sockets().count(), 0);
    };
    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(chain).unwrap().join().unwrap();
}
