//! `corrupt`: changes bytes of messages that pass through a local proxy between a client and a
//! server.

use serde::{Deserialize, Serialize};

use super::{Injection, Injector, Means, numbers_of};
use crate::space::{Fault, Scenario};

/// The injector.
pub(super) struct Corrupt;

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    /// Returns the direction as text for people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
        }
    }
}

/// The change of a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Inverts the bits of this mask.
    Invert(u8),
    /// Replaces the byte.
    Set(u8),
    /// Inserts this byte before it.
    Insert(u8),
    /// Removes the byte.
    Remove,
}

/// A change of one byte in a range of messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ByteFault {
    /// The direction of the messages.
    pub direction: Direction,
    /// The first message, counted from 1 in each direction over all connections; 0 if none.
    pub first: u64,
    /// The last message.
    pub last: u64,
    /// The byte of the message, counted from 0.
    pub offset: u64,
    /// The change.
    pub change: Change,
}

impl ByteFault {
    /// Returns whether the fault changes this byte.
    pub(crate) fn hits(&self, direction: Direction, message: u64, offset: u64) -> bool {
        self.direction == direction
            && self.first > 0
            && (self.first..=self.last).contains(&message)
            && self.offset == offset
    }
}

const ATTRIBUTES: &[&str] = &[
    "message",
    "callNumber",
    "number",
    "persistent",
    "direction",
    "offset",
    "change",
    "mask",
    "bit",
    "value",
];

impl Injector for Corrupt {
    fn plan(&self, scenario: &Scenario, means: &Means) -> Result<Injection, String> {
        let proxy = means.proxy.clone();
        let proxy = proxy.ok_or("`[proxy]` is missing: where it listens, and where it goes to")?;
        let faults = scenario.faults.iter().map(byte_fault);
        Ok(Injection::Corrupt {
            proxy,
            faults: faults.collect::<Result<_, _>>()?,
        })
    }

    fn attributes(&self) -> &'static [&'static str] {
        ATTRIBUTES
    }
}

fn byte_fault(fault: &Fault) -> Result<ByteFault, String> {
    let (first, last) = numbers_of(fault, &["message", "number", "callNumber"])?;
    let word = |name: &str| fault.any(&[name]).map(ToString::to_string);
    let direction = match word("direction").as_deref() {
        None | Some("to-server" | "server" | "request") => Direction::ToServer,
        Some("to-client" | "client" | "response") => Direction::ToClient,
        Some(other) => return Err(format!("direction is to-server or to-client, not {other}")),
    };
    let byte = |name: &str, most: i64| match fault.any(&[name]) {
        None => Ok(None),
        Some(value) => {
            let number = value.numbers().filter(|(from, to)| from == to);
            match number.filter(|(from, _)| (0..=most).contains(from)) {
                Some((number, _)) => Ok(u8::try_from(number).ok()),
                None => Err(format!("{name} is a number from 0 to {most}, not {value}")),
            }
        }
    };
    let offset = match fault.any(&["offset"]) {
        None => 0,
        Some(value) => {
            let number = value.numbers().filter(|(from, to)| from == to);
            let number = number.and_then(|(from, _)| u64::try_from(from).ok());
            number.ok_or_else(|| format!("{value} is not the offset of a byte: 0, 1, ..."))?
        }
    };
    let (mask, bit, value) = (byte("mask", 255)?, byte("bit", 7)?, byte("value", 255)?);
    if mask.is_some() && bit.is_some() {
        return Err("`mask` and `bit` exclude each other".to_owned());
    }
    let mask = mask.or(bit.map(|bit| 1 << bit));
    let needs = |what: &str| format!("`change {what}` needs a `value`");
    let change = match (word("change").as_deref(), mask, value) {
        (None | Some("invert"), mask, None) => Change::Invert(mask.unwrap_or(0xff)),
        (None | Some("set"), None, Some(value)) => Change::Set(value),
        (Some("insert"), None, Some(value)) => Change::Insert(value),
        (Some("remove"), None, None) => Change::Remove,
        (Some(what @ ("set" | "insert")), None, None) => return Err(needs(what)),
        (None, Some(_), Some(_)) => {
            return Err("`value` and `mask` or `bit` exclude each other".to_owned());
        }
        (Some(what @ ("invert" | "set" | "insert" | "remove")), ..) => {
            return Err(format!(
                "`change {what}` has {}",
                match what {
                    "invert" => "a `mask` or a `bit`, no `value`",
                    "remove" => "no `mask`, `bit` or `value`",
                    _ => "a `value`, no `mask` or `bit`",
                }
            ));
        }
        (Some(other), ..) => {
            return Err(format!(
                "change is invert, set, insert or remove, not {other}"
            ));
        }
    };
    Ok(ByteFault {
        direction,
        first,
        last,
        offset,
        change,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Proxy;

    fn plan(text: &str) -> Result<Vec<ByteFault>, String> {
        let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let means = Means {
            proxy: Some(Proxy {
                listen: nowhere,
                to: nowhere,
                is_udp: false,
            }),
            ..Means::default()
        };
        match Corrupt.plan(&Scenario::parse(text).unwrap(), &means)? {
            Injection::Corrupt { faults, .. } => Ok(faults),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scenarios_become_changes_of_bytes() {
        let faults = plan("message 3 offset 7 mask 16").unwrap();
        assert_eq!(faults[0].change, Change::Invert(16));
        assert!(faults[0].hits(Direction::ToServer, 3, 7));
        assert!(!faults[0].hits(Direction::ToServer, 3, 8));
        assert!(!faults[0].hits(Direction::ToServer, 4, 7));
        assert!(!faults[0].hits(Direction::ToClient, 3, 7));
        let faults = plan("message 2 direction to-client bit 7 persistent yes").unwrap();
        assert_eq!(faults[0].change, Change::Invert(128));
        assert!(faults[0].hits(Direction::ToClient, 9, 0));
        let change = |text: &str| plan(text).map(|faults| faults[0].change);
        assert_eq!(change("message 1 value 0"), Ok(Change::Set(0)));
        assert_eq!(
            change("message 1 change insert value 9"),
            Ok(Change::Insert(9))
        );
        assert_eq!(change("message 1 change remove"), Ok(Change::Remove));
        assert!(!plan("message 0").unwrap()[0].hits(Direction::ToServer, 0, 0));
    }

    #[test]
    fn what_it_does_not_understand_is_said() {
        for (text, why) in [
            ("message x", "x is not the number"),
            ("message 1 direction up", "not up"),
            ("message 1 offset -1", "-1 is not the offset"),
            ("message 1 mask 256", "from 0 to 255"),
            ("message 1 mask 1 bit 1", "exclude"),
            ("message 1 mask 1 value 1", "exclude"),
            ("message 1 change set", "needs a `value`"),
            ("message 1 change remove value 1", "no `mask`"),
            ("message 1 change melt", "not melt"),
        ] {
            assert!(plan(text).unwrap_err().contains(why), "{text}");
        }
        let scenario = Scenario::parse("message 1").unwrap();
        let without = Corrupt.plan(&scenario, &Means::default());
        assert!(without.unwrap_err().contains("[proxy]"));
    }
}
