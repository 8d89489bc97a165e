//! Which faults are possible when, and how they are counted.

use everett_net::{
    Alternative, DeliveryOutcome, Fault, FaultCounters, FaultIndex, Faults, HostEvent,
    HostFaultEffect, HostFaultPoint, HostIndex, HostSet, KINDS, Numbers, Packet, Ports, Protocol,
    Scope, Times, Value, kind,
};

const A: HostIndex = HostIndex(0);
const B: HostIndex = HostIndex(1);
const C: HostIndex = HostIndex(2);

fn packet(from: HostIndex, to: HostIndex, port: u16, sent_ns: u64) -> Packet {
    let address = |host: HostIndex, port: u16| ([10, 0, 0, host.0 as u8 + 1], port).into();
    Packet {
        from,
        to,
        protocol: Protocol::Udp,
        source: address(from, 5000),
        destination: address(to, port),
        size: 10,
        sent_ns,
        misses_by_ns: None,
    }
}

fn fault(name: &str) -> Fault {
    Fault::new(name, kind(name).expect("a kind"))
}

fn delivery_outcomes(
    faults: &Faults,
    packet: &Packet,
    counters: &FaultCounters,
) -> Vec<DeliveryOutcome> {
    let all = faults.delivery_outcomes(packet, packet.from, counters);
    all.iter().map(|alternative| alternative.effect).collect()
}

/// Chooses the alternative with this effect.
fn take(faults: &Faults, packet: &Packet, effect: DeliveryOutcome, counters: &mut FaultCounters) {
    let all = faults.delivery_outcomes(packet, packet.from, counters);
    let picked = all
        .iter()
        .rposition(|alternative| alternative.effect == effect);
    let marks = faults.symbolic_ranges(packet, packet.from, counters);
    let picked = picked.expect("it is possible");
    faults.record_packet(packet, packet.from, &all, picked, &marks, counters);
}

#[test]
fn the_list_has_each_kind_once() {
    for (at, one) in KINDS.iter().enumerate() {
        assert!(!one.help.is_empty());
        assert!(KINDS[..at].iter().all(|other| other.name != one.name));
        assert_eq!(fault(one.name).values.len(), one.parameters.len());
    }
}

#[test]
fn each_fault_is_one_alternative_until_it_is_used_up() {
    let mut window = fault("reordering");
    assert!(window.set("window", Value::Count(2)));
    assert!(!window.set("size", Value::Count(2)));
    let list = vec![fault("loss"), fault("duplication"), window, fault("delay")];
    let faults = Faults::new(list);
    let mut counters = FaultCounters::default();
    let first = packet(A, B, 80, 0);
    let all = [
        DeliveryOutcome::Deliver,
        DeliveryOutcome::Drop,
        DeliveryOutcome::Duplicate { after_ns: 1_000 },
        DeliveryOutcome::HoldBack { packets: 2 },
        DeliveryOutcome::Delay { by_ns: 10_000_000 },
    ];
    assert_eq!(delivery_outcomes(&faults, &first, &counters), all);
    take(&faults, &first, DeliveryOutcome::Drop, &mut counters);
    assert_eq!(
        delivery_outcomes(&faults, &first, &counters),
        [&all[..1], &all[2..]].concat()
    );
    assert_eq!(counters.total_used(), 1);
    // TCP hides most packet faults.
    let stream = Packet {
        protocol: Protocol::Tcp,
        ..first
    };
    assert_eq!(
        delivery_outcomes(&faults, &stream, &FaultCounters::default()),
        [all[0], all[4]]
    );
}

#[test]
fn filters_are_about_ports_times_and_numbers() {
    let mut loss = fault("loss");
    loss.filter.ports = Ports(vec![80..=81]);
    loss.filter.times = Times(100..=200);
    loss.filter.numbers = Numbers(2..=2);
    loss.filter.to = HostSet::of(vec![B]);
    let faults = Faults::new(vec![loss]);
    let mut counters = FaultCounters::default();
    let fitting = packet(A, B, 81, 150);
    let others = [
        packet(A, B, 82, 150),
        packet(A, B, 80, 99),
        packet(A, B, 80, 201),
        packet(A, C, 80, 150),
    ];
    assert_eq!(
        delivery_outcomes(&faults, &fitting, &counters),
        [DeliveryOutcome::Deliver],
        "the first"
    );
    take(&faults, &fitting, DeliveryOutcome::Deliver, &mut counters);
    for other in &others {
        assert_eq!(
            delivery_outcomes(&faults, other, &counters),
            [DeliveryOutcome::Deliver]
        );
        take(&faults, other, DeliveryOutcome::Deliver, &mut counters);
    }
    assert_eq!(
        delivery_outcomes(&faults, &fitting, &counters).len(),
        2,
        "the second"
    );
    take(&faults, &fitting, DeliveryOutcome::Deliver, &mut counters);
    assert_eq!(
        delivery_outcomes(&faults, &fitting, &counters),
        [DeliveryOutcome::Deliver],
        "the third"
    );
}

#[test]
fn bytes_stay_within_the_packet() {
    let mut corruption = fault("corruption");
    corruption.set("offset", Value::Count(8));
    corruption.set("length", Value::Count(100));
    let faults = Faults::new(vec![corruption]);
    let counters = FaultCounters::default();
    let mut short = packet(A, B, 80, 0);
    let corrupt = DeliveryOutcome::Corrupt {
        offset: 8,
        length: 2,
    };
    assert_eq!(
        delivery_outcomes(&faults, &short, &counters),
        [DeliveryOutcome::Deliver, corrupt]
    );
    short.size = 8;
    assert_eq!(
        delivery_outcomes(&faults, &short, &counters),
        [DeliveryOutcome::Deliver]
    );
}

#[test]
fn marks_are_no_alternatives() {
    let mut mark = fault("automark");
    mark.set("length", Value::Count(4));
    mark.max_count = 2;
    let faults = Faults::new(vec![mark]);
    let mut counters = FaultCounters::default();
    let sent = packet(A, B, 80, 0);
    for left in [1, 1, 0] {
        assert_eq!(
            delivery_outcomes(&faults, &sent, &counters),
            [DeliveryOutcome::Deliver]
        );
        assert_eq!(faults.symbolic_ranges(&sent, A, &counters).len(), left);
        take(&faults, &sent, DeliveryOutcome::Deliver, &mut counters);
    }
}

#[test]
fn what_is_certain_is_not_asked() {
    let mut loss = fault("loss");
    loss.always = true;
    let faults = Faults::new(vec![loss, fault("delay")]);
    let mut counters = FaultCounters::default();
    let sent = packet(A, B, 80, 0);
    assert_eq!(
        delivery_outcomes(&faults, &sent, &counters),
        [DeliveryOutcome::Drop]
    );
    take(&faults, &sent, DeliveryOutcome::Drop, &mut counters);
    assert_eq!(delivery_outcomes(&faults, &sent, &counters).len(), 2);
}

#[test]
fn numbers_are_counted_along_the_causal_past_or_on_each_host() {
    let scopes = [
        (Scope::World, 1, 1),
        (Scope::Causal, 1, 1),
        (Scope::Host, 2, 0),
    ];
    for (scope, elsewhere, heard) in scopes {
        let mut loss = fault("loss");
        loss.scope = scope;
        let faults = Faults::new(vec![loss]);
        let mut of_a = FaultCounters::default();
        take(
            &faults,
            &packet(A, B, 80, 0),
            DeliveryOutcome::Drop,
            &mut of_a,
        );
        let mut of_b = FaultCounters::default();
        // B does not know of it until it receives a message from A.
        assert_eq!(
            delivery_outcomes(&faults, &packet(B, C, 80, 0), &of_b).len(),
            2
        );
        // A second message changes nothing.
        faults.learn(&mut of_b, &of_a);
        faults.learn(&mut of_b, &of_a);
        assert_eq!(of_b.total_used(), heard);
        assert_eq!(
            delivery_outcomes(&faults, &packet(B, C, 80, 0), &of_b).len(),
            elsewhere
        );
    }
}

#[test]
fn what_several_hosts_can_take_is_bounded_by_the_world() {
    let change = |kind: &str, change: &dyn Fn(&mut Fault)| {
        let mut fault = fault(kind);
        change(&mut fault);
        fault
    };
    let only_a = || HostSet::of(vec![A]);
    let faults = Faults::new(vec![
        change("loss", &|loss| loss.max_count = 3),
        change("loss", &|loss| loss.scope = Scope::Causal),
        change("loss", &|loss| loss.scope = Scope::Host),
        change("loss", &|loss| loss.always = true),
        change("loss", &|loss| loss.filter.to = only_a()),
        change("late", &|late| late.max_count = u32::MAX),
        change("automark", &|_| {}),
        change("partition", &|_| {}),
        change("crash", &|crash| {
            crash.set("hosts", Value::Hosts(only_a()));
        }),
        change("pause", &|_| {}),
    ]);
    let bounds = [(FaultIndex(0), 3), (FaultIndex(9), 1)];
    assert_eq!(faults.world_bounds(3), bounds);
    assert_eq!(faults.world_bounds(1), []);
}

#[test]
fn what_two_hosts_know_of_a_third_is_counted_once() {
    let mut loss = fault("loss");
    loss.max_count = 5;
    let faults = Faults::new(vec![loss]);
    let lost = |counters: &mut FaultCounters, at: HostIndex| {
        let sent = packet(C, at, 80, 0);
        let outcomes = faults.delivery_outcomes(&sent, at, counters);
        faults.record_packet(&sent, at, &outcomes, 1, &[], counters);
    };
    let mut of_a = FaultCounters::default();
    lost(&mut of_a, A);
    let mut of_b = FaultCounters::default();
    faults.learn(&mut of_b, &of_a);
    lost(&mut of_b, B);
    lost(&mut of_a, A);
    let together = |known: &[&FaultCounters]| {
        FaultCounters::used_together(FaultIndex(0), known.iter().copied())
    };
    assert_eq!((together(&[&of_a]), together(&[&of_b])), (2, 2));
    assert_eq!(together(&[&of_a, &of_b, &of_b]), 3);
}

#[test]
fn a_partition_is_decided_once_for_a_world() {
    let mut partition = fault("partition");
    partition.set("between", Value::Hosts(HostSet::of(vec![A])));
    partition.set("at", Value::Duration(100));
    partition.set("heal", Value::Duration(50));
    let mut never = partition.clone();
    never.max_count = 0;
    assert_eq!(Faults::new(vec![never]).world_faults(), []);
    let faults = Faults::new(vec![partition]);
    let fresh = FaultCounters::default();
    assert_eq!(
        delivery_outcomes(&faults, &packet(A, B, 80, 99), &fresh),
        [DeliveryOutcome::Deliver]
    );
    assert_eq!(
        delivery_outcomes(&faults, &packet(B, C, 80, 120), &fresh),
        [DeliveryOutcome::Deliver]
    );
    let (mut cut, mut whole) = (fresh.clone(), fresh.clone());
    assert_eq!(faults.world_faults(), [FaultIndex(0)]);
    cut.decide(FaultIndex(0), true);
    whole.decide(FaultIndex(0), false);
    for (counters, effect) in [
        (&cut, DeliveryOutcome::Drop),
        (&whole, DeliveryOutcome::Deliver),
    ] {
        assert_eq!(
            delivery_outcomes(&faults, &packet(A, B, 80, 149), counters),
            [effect]
        );
        assert_eq!(
            delivery_outcomes(&faults, &packet(A, B, 80, 150), counters),
            [DeliveryOutcome::Deliver]
        );
    }
}

#[test]
fn losing_a_packet_is_no_partition() {
    let mut partition = fault("partition");
    partition.set("between", Value::Hosts(HostSet::of(vec![A])));
    let faults = Faults::new(vec![fault("loss"), partition]);
    let mut counters = FaultCounters::default();
    let sent = packet(A, B, 80, 0);
    counters.decide(FaultIndex(1), false);
    let all = faults.delivery_outcomes(&sent, A, &counters);
    assert_eq!(
        delivery_outcomes(&faults, &sent, &counters),
        [DeliveryOutcome::Deliver, DeliveryOutcome::Drop]
    );
    faults.record_packet(&sent, A, &all, 1, &[], &mut counters);
    assert_eq!(
        delivery_outcomes(&faults, &sent, &counters),
        [DeliveryOutcome::Deliver]
    );
}

#[test]
fn hosts_fail_at_calls_messages_and_times() {
    let mut crash = fault("crash");
    crash.set("hosts", Value::Hosts(HostSet::of(vec![B])));
    crash.set("on", Value::Word("call"));
    crash.set("calls", Value::Words(vec!["fsync".to_owned()]));
    let mut restart = fault("restart");
    restart.filter.ports = Ports(vec![80..=80]);
    let mut pause = fault("pause");
    pause.set("on", Value::Word("time"));
    pause.set("at", Value::Duration(500));
    let faults = Faults::new(vec![crash, restart, pause]);
    let mut counters = FaultCounters::default();
    let count = |point: HostFaultPoint<'_>, host, now_ns, counters: &FaultCounters| {
        let event = HostEvent {
            host,
            point,
            now_ns,
        };
        faults.host_fault_effects(&event, counters).len()
    };
    assert_eq!(count(HostFaultPoint::Call("fsync"), B, 0, &counters), 2);
    assert_eq!(count(HostFaultPoint::Call("write"), B, 0, &counters), 1);
    assert_eq!(count(HostFaultPoint::Call("fsync"), A, 0, &counters), 1);
    let (near, far) = (packet(A, B, 80, 0), packet(A, B, 81, 0));
    assert_eq!(count(HostFaultPoint::Message(&near), B, 0, &counters), 2);
    assert_eq!(count(HostFaultPoint::Message(&far), B, 0, &counters), 1);
    assert_eq!(faults.times(A), [500]);
    assert_eq!(count(HostFaultPoint::Time, A, 500, &counters), 2);
    assert_eq!(count(HostFaultPoint::Time, A, 501, &counters), 1);
    assert!(faults.has_call_faults(B) && !faults.has_call_faults(A));
    assert!(faults.has_message_faults(A));
    let event = HostEvent {
        host: B,
        point: HostFaultPoint::Call("fsync"),
        now_ns: 0,
    };
    let taken = Alternative {
        fault: Some(FaultIndex(0)),
        effect: HostFaultEffect::Crash,
    };
    faults.record_host_fault(&event, &taken, &mut counters);
    assert_eq!(
        faults.host_fault_effects(&event, &counters).len(),
        1,
        "used up"
    );
}

#[test]
fn what_is_late_arrives_behind_a_time_out() {
    let faults = Faults::new(vec![fault("late")]);
    let counters = FaultCounters::default();
    let mut sent = packet(A, B, 80, 0);
    assert_eq!(
        delivery_outcomes(&faults, &sent, &counters),
        [DeliveryOutcome::Deliver]
    );
    sent.misses_by_ns = Some(70);
    let late = DeliveryOutcome::Delay { by_ns: 70 };
    assert_eq!(
        delivery_outcomes(&faults, &sent, &counters),
        [DeliveryOutcome::Deliver, late]
    );
}

#[test]
fn packets_of_a_window_are_held_back_behind_those_that_follow() {
    let mut any_order = fault("permutation");
    assert!(any_order.set("window", Value::Count(3)));
    any_order.max_count = 2;
    let faults = Faults::new(vec![any_order]);
    let mut counters = FaultCounters::default();
    let sent = packet(A, B, 80, 0);
    let choices: Vec<usize> = (0..8)
        .map(|_| {
            let outcomes = delivery_outcomes(&faults, &sent, &counters);
            take(&faults, &sent, DeliveryOutcome::Deliver, &mut counters);
            outcomes.len()
        })
        .collect();
    assert_eq!(choices, [3, 2, 1, 3, 2, 1, 1, 1]);
}

/// The one that is counted is missing later, so each of them is an alternative.
#[test]
fn faults_with_equal_effects_are_all_alternatives_unless_one_has_no_bound() {
    let named = |name: &str, max_count: u32| Fault {
        name: name.to_owned(),
        max_count,
        ..fault("loss")
    };
    let (counters, first) = (FaultCounters::default(), packet(A, B, 80, 0));
    let count = |list: Vec<Fault>| delivery_outcomes(&Faults::new(list), &first, &counters).len();
    assert_eq!(count(vec![named("any", 1), named("first", 1)]), 3);
    assert_eq!(count(vec![named("any", u32::MAX), named("first", 1)]), 2);
    assert_eq!(count(vec![named("first", 1), named("any", u32::MAX)]), 2);
}
