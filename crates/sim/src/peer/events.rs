//! Events between hosts and a live peer, and their encoding in traces and recordings.

use everett_expr::Digest128;

/// A connection of a peer, by its number in the order in which the peer sees them. A sender of
/// datagrams counts as a connection, too.
pub type ConnectionId = u32;

/// An act of a host towards a peer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HostAct {
    /// A host connects, or the first datagram of a sender follows.
    Open(ConnectionId),
    /// A host has accepted a connection of the peer.
    Accept(ConnectionId),
    /// A host has refused a connection of the peer.
    Refuse(ConnectionId),
    /// A host sends bytes of a stream, or a datagram.
    Send(ConnectionId, Vec<u8>),
    /// A host sends nothing more on a connection.
    End(ConnectionId),
    /// A host resets a connection.
    Reset(ConnectionId),
}

/// An act of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerAct {
    /// The peer sends nothing within the time for which it was asked.
    Silence,
    /// The peer has taken all that was sent; its next act is not known.
    Taken,
    /// The peer accepts a connection.
    Accept(ConnectionId),
    /// The peer refuses a connection or datagrams.
    Refuse(ConnectionId),
    /// The peer connects to a host.
    Open(ConnectionId),
    /// The peer sends bytes of a stream, or a datagram.
    Send(ConnectionId, Vec<u8>),
    /// The peer sends nothing more on a connection.
    End(ConnectionId),
    /// The peer resets a connection.
    Reset(ConnectionId),
}

/// Size of an entry's tag, connection and number of bytes.
const HEAD: usize = 9;

/// Encodes an entry: its tag, connection and bytes.
fn put(out: &mut Vec<u8>, tag: u8, connection: ConnectionId, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&connection.to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Decodes the next entry: its tag, connection and bytes, and the remaining input.
fn take(from: &[u8]) -> Option<(u8, ConnectionId, &[u8], &[u8])> {
    let (head, rest) = from.split_at_checked(HEAD)?;
    let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let (bytes, rest) = rest.split_at_checked(number(5)? as usize)?;
    Some((head[0], number(1)?, bytes, rest))
}

impl HostAct {
    /// Returns the connection of the act.
    pub fn connection(&self) -> ConnectionId {
        match self {
            HostAct::Open(connection)
            | HostAct::Accept(connection)
            | HostAct::Refuse(connection)
            | HostAct::Send(connection, _)
            | HostAct::End(connection)
            | HostAct::Reset(connection) => *connection,
        }
    }

    fn encode_to(&self, out: &mut Vec<u8>) {
        match self {
            HostAct::Open(connection) => put(out, 0, *connection, &[]),
            HostAct::Accept(connection) => put(out, 1, *connection, &[]),
            HostAct::Refuse(connection) => put(out, 2, *connection, &[]),
            HostAct::Send(connection, bytes) => put(out, 3, *connection, bytes),
            HostAct::End(connection) => put(out, 4, *connection, &[]),
            HostAct::Reset(connection) => put(out, 5, *connection, &[]),
        }
    }

    /// Encodes several acts.
    pub fn encode(acts: &[HostAct]) -> Vec<u8> {
        let sent = |act: &HostAct| match act {
            HostAct::Send(_, bytes) => bytes.len(),
            _ => 0,
        };
        let size = acts.iter().map(|act| sent(act) + HEAD).sum();
        let mut out = Vec::with_capacity(size);
        acts.iter().for_each(|act| act.encode_to(&mut out));
        out
    }

    /// Returns whether the bytes are encoded acts.
    pub fn is_encoded(mut from: &[u8]) -> bool {
        while !from.is_empty() {
            match take(from) {
                Some((0..=5, _, _, rest)) => from = rest,
                _ => return false,
            }
        }
        true
    }

    /// Decodes acts; `None` if the bytes are damaged.
    pub fn decode(mut from: &[u8]) -> Option<Vec<HostAct>> {
        let mut acts = Vec::new();
        while !from.is_empty() {
            let (tag, connection, bytes, rest) = take(from)?;
            acts.push(match tag {
                0 => HostAct::Open(connection),
                1 => HostAct::Accept(connection),
                2 => HostAct::Refuse(connection),
                3 => HostAct::Send(connection, bytes.to_vec()),
                4 => HostAct::End(connection),
                5 => HostAct::Reset(connection),
                _ => return None,
            });
            from = rest;
        }
        Some(acts)
    }
}

impl PeerAct {
    /// Encodes the act.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            PeerAct::Silence => put(&mut out, 0, 0, &[]),
            PeerAct::Taken => put(&mut out, 1, 0, &[]),
            PeerAct::Accept(connection) => put(&mut out, 2, *connection, &[]),
            PeerAct::Refuse(connection) => put(&mut out, 3, *connection, &[]),
            PeerAct::Open(connection) => put(&mut out, 4, *connection, &[]),
            PeerAct::Send(connection, bytes) => put(&mut out, 5, *connection, bytes),
            PeerAct::End(connection) => put(&mut out, 6, *connection, &[]),
            PeerAct::Reset(connection) => put(&mut out, 7, *connection, &[]),
        }
        out
    }

    /// Decodes an act; `None` if the bytes are damaged.
    pub fn decode(from: &[u8]) -> Option<PeerAct> {
        let (tag, connection, bytes, rest) = take(from)?;
        let act = match tag {
            0 => PeerAct::Silence,
            1 => PeerAct::Taken,
            2 => PeerAct::Accept(connection),
            3 => PeerAct::Refuse(connection),
            4 => PeerAct::Open(connection),
            5 => PeerAct::Send(connection, bytes.to_vec()),
            6 => PeerAct::End(connection),
            7 => PeerAct::Reset(connection),
            _ => return None,
        };
        rest.is_empty().then_some(act)
    }

    /// Describes the act without its connection, for people.
    pub fn describe(&self) -> String {
        match self {
            PeerAct::Silence | PeerAct::Taken => "says nothing".to_owned(),
            PeerAct::Accept(_) => "accepts the connection".to_owned(),
            PeerAct::Refuse(_) => "refuses the connection".to_owned(),
            PeerAct::Open(_) => "connects".to_owned(),
            PeerAct::Send(_, bytes) => format!("sends {:?}", String::from_utf8_lossy(bytes)),
            PeerAct::End(_) => "ends the stream".to_owned(),
            PeerAct::Reset(_) => "breaks the connection off".to_owned(),
        }
    }
}

/// Returns the digest that identifies a question: what hosts did after the answer at `after`, and
/// how often the peer was silent since.
pub fn question_id(after: u128, events: &[u8], silences: u32) -> u128 {
    let digest = Digest128::new().then_u128(after).then_u64(silences.into());
    digest.then_bytes(events).finish()
}

/// Returns the digest that identifies a question where the order of acts does not matter.
pub fn question_id_in_any_order(after: u128, acts: &[HostAct], silences: u32) -> u128 {
    let digest = Digest128::new().then_u128(after).then_u64(silences.into());
    let sum = acts.iter().fold(0u128, |sum, act| {
        let one = HostAct::encode(std::slice::from_ref(act));
        sum.wrapping_add(Digest128::new().then_bytes(&one).finish())
    });
    digest.then_u128(sum).finish()
}

/// Returns the position of a peer after an answer.
pub fn position_after(question: u128, answer: &[u8]) -> u128 {
    Digest128::new()
        .then_u128(question)
        .then_bytes(answer)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_come_back_as_they_were() {
        let acts = [
            HostAct::Open(0),
            HostAct::Send(0, b"hello".to_vec()),
            HostAct::Accept(7),
            HostAct::Refuse(1),
            HostAct::End(0),
            HostAct::Reset(3),
        ];
        let encoded = HostAct::encode(&acts);
        assert_eq!(HostAct::decode(&encoded).as_deref(), Some(&acts[..]));
        assert!(HostAct::is_encoded(&encoded));
        let mut unknown = encoded.clone();
        unknown[0] = 6;
        for damaged in [&encoded[..encoded.len() - 1], &unknown] {
            assert_eq!(HostAct::decode(damaged), None);
            assert!(!HostAct::is_encoded(damaged));
        }
        for act in [
            PeerAct::Silence,
            PeerAct::Taken,
            PeerAct::Accept(1),
            PeerAct::Refuse(1),
            PeerAct::Open(9),
            PeerAct::Send(4, vec![0, 255]),
            PeerAct::End(1),
            PeerAct::Reset(1),
        ] {
            let encoded = act.encode();
            assert_eq!(PeerAct::decode(&encoded), Some(act));
            assert_eq!(PeerAct::decode(&encoded[1..]), None);
        }
        assert_eq!(PeerAct::decode(&[]), None);
    }

    #[test]
    fn the_order_matters_unless_it_is_said_not_to() {
        let (one, two) = (
            HostAct::Send(0, b"a".to_vec()),
            HostAct::Send(0, b"b".to_vec()),
        );
        let orders = [[one.clone(), two.clone()], [two, one]];
        let id = |at: usize| question_id(5, &HostAct::encode(&orders[at]), 0);
        assert_ne!(id(0), id(1));
        let any = |at: usize| question_id_in_any_order(5, &orders[at], 0);
        assert_eq!(any(0), any(1));
        assert_ne!(question_id_in_any_order(6, &orders[0], 0), any(0));
        assert_ne!(question_id_in_any_order(5, &orders[0], 1), any(0));
    }
}
