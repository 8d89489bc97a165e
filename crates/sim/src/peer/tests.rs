use super::*;
use everett_expr::{ArrayId, ExprId};
use everett_vm::{Buffer, ChoiceSite, OutsideAnswer, Suspend};

/// An oracle that answers from a list, and records what it was asked.
#[derive(Default)]
struct Script {
    answers: Vec<PeerAct>,
    asked: Vec<(u128, Vec<HostAct>)>,
}

impl Oracle for Script {
    fn branch(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
        Err(Suspend)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        Ok(arena.as_const(term).unwrap_or(u64::from(b'?')))
    }

    fn choose(&mut self, _: &ChoiceSite, _: u32) -> Result<u32, Suspend> {
        Err(Suspend)
    }

    fn assume(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
        Err(Suspend)
    }

    fn input(&mut self, _: &mut Arena, _: &str, _: u32) -> Result<ArrayId, Suspend> {
        Err(Suspend)
    }

    fn prefer(&mut self, _: &mut Arena, _: ExprId) {}

    fn outside(&mut self, question: &OutsideQuestion<'_>) -> Result<OutsideAnswer, Suspend> {
        let acts = HostAct::decode(question.events).unwrap_or_default();
        self.asked.push((question.id, acts));
        match self.answers.is_empty() {
            true => Err(Suspend),
            false => Ok(Ok(self.answers.remove(0).encode().into())),
        }
    }

    fn commit(&mut self) {}
}

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn config() -> PeerConfig {
    PeerConfig {
        name: "db".to_owned(),
        addresses: vec![at("10.0.0.9:0").ip()],
        port: 7,
        connects_to: None,
        is_udp: false,
        think_ns: 100,
        silences: 1,
        is_independent: false,
        any_order: false,
        symbolic: SymbolicBytes::One,
    }
}

fn packet(from: u16, kind: PacketKind) -> Packet {
    Packet {
        clock_ns: 0,
        from: SocketAddr::new(at("10.0.0.1:0").ip(), from),
        to: at("10.0.0.9:7"),
        kind,
    }
}

fn data(text: &str) -> PacketKind {
    PacketKind::Data(Buffer::with_bytes(text.as_bytes(), text.len()))
}

fn act(peer: &mut Peer, script: &mut Script) -> Vec<Packet> {
    let mut arena = Arena::new();
    let acted = peer.act(script, &mut arena).expect("it is answered");
    acted.expect("it is known").packets
}

fn opened(config: PeerConfig, script: &mut Script) -> Peer {
    let mut peer = Peer::new(Arc::new(config));
    peer.start(0);
    assert_eq!(peer.ask_ns(), None);
    peer.receive(&packet(1, PacketKind::Syn { window: 4 }), 10);
    assert_eq!(peer.ask_ns(), Some(10), "who connects waits for an answer");
    script.answers.insert(0, PeerAct::Accept(0));
    let sent = act(&mut peer, script);
    assert!(matches!(sent[0].kind, PacketKind::SynAck { .. }));
    peer
}

#[test]
fn what_hosts_send_in_a_row_is_one_question() {
    let mut script = Script::default();
    let mut peer = opened(config(), &mut script);
    peer.receive(&packet(1, data("ab")), 20);
    peer.receive(&packet(1, data("c")), 30);
    assert_eq!(peer.ask_ns(), Some(130));
    script.answers = vec![PeerAct::Silence];
    assert!(act(&mut peer, &mut script).is_empty());
    assert_eq!(script.asked[1].1, [HostAct::Send(0, b"abc".to_vec())]);
    assert_eq!(
        peer.ask_ns(),
        None,
        "it is silent until a host does something"
    );
}

#[test]
fn nothing_changes_while_a_question_is_open() {
    let mut script = Script::default();
    let mut peer = opened(config(), &mut script);
    peer.receive(&packet(1, data("ab")), 20);
    assert!(peer.act(&mut script, &mut Arena::new()).is_err());
    script.answers = vec![PeerAct::Silence];
    act(&mut peer, &mut script);
    assert_eq!(script.asked[1], script.asked[2]);
}

#[test]
fn a_host_that_does_not_read_is_not_flooded() {
    let mut script = Script::default();
    let mut peer = opened(config(), &mut script);
    script.answers = vec![PeerAct::Send(0, b"abcdef".to_vec())];
    let sent = act(&mut peer, &mut script);
    assert!(matches!(&sent[0].kind, PacketKind::Data(bytes) if bytes.bytes() == b"abcd"));
    assert_eq!(peer.ask_ns(), None, "the window is full");
    let sent = peer.receive(&packet(1, PacketKind::WindowUpdate { bytes: 4 }), 500);
    assert!(matches!(&sent[0].kind, PacketKind::Data(bytes) if bytes.bytes() == b"ef"));
    assert_eq!(peer.ask_ns(), Some(600));
}

#[test]
fn only_its_own_port_is_open() {
    let mut peer = Peer::new(Arc::new(config()));
    let mut request = packet(1, PacketKind::Syn { window: 4 });
    request.to.set_port(8);
    let sent = peer.receive(&request, 5);
    assert!(matches!(sent[0].kind, PacketKind::Refused));
    assert_eq!(peer.ask_ns(), None);
    request.to = at("10.0.0.255:7");
    assert!(peer.receive(&request, 6).is_empty());
}

#[test]
fn a_connection_that_both_ends_have_closed_is_over() {
    let mut script = Script::default();
    let mut peer = opened(config(), &mut script);
    peer.receive(&packet(1, PacketKind::Fin), 20);
    script.answers = vec![PeerAct::End(0)];
    let sent = act(&mut peer, &mut script);
    assert!(matches!(sent[0].kind, PacketKind::Fin));
    assert_eq!(peer.ask_ns(), None, "nobody is there who could hear it");
    let sent = peer.receive(&packet(1, data("late")), 30);
    assert!(matches!(sent[0].kind, PacketKind::Reset));
}

#[test]
fn independent_connections_have_the_same_questions() {
    let independent = PeerConfig {
        is_independent: true,
        ..config()
    };
    let mut script = Script::default();
    let mut peer = opened(independent, &mut script);
    peer.receive(&packet(2, PacketKind::Syn { window: 4 }), 20);
    script.answers = vec![PeerAct::Accept(0)];
    act(&mut peer, &mut script);
    assert_eq!(script.asked[0], script.asked[1]);
}

#[test]
fn a_log_may_come_in_any_order() {
    let any = PeerConfig {
        any_order: true,
        ..config()
    };
    let ids = [["a", "b"], ["b", "a"]].map(|order| {
        let mut script = Script::default();
        let mut peer = opened(any.clone(), &mut script);
        for text in order {
            peer.receive(&packet(1, data(text)), 20);
            script.answers = vec![PeerAct::Silence];
            act(&mut peer, &mut script);
        }
        script.asked.last().expect("it was asked").0
    });
    assert_eq!(ids[0], ids[1]);
}
