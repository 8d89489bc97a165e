//! IP addresses and prefixes, as used by subnets and routes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address with the length of its subnet prefix: `10.0.0.7/24`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Why a text is not a prefix.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PrefixError {
    /// The part before the slash is not an address.
    #[error("{0:?} is not an IPv4 or IPv6 address")]
    Address(String),
    /// The part after the slash is not a valid length.
    #[error("{text:?} is not a prefix length; use a number from 0 to {most}")]
    Length {
        /// The text found.
        text: String,
        /// The maximal length.
        most: u8,
    },
    /// There is no slash.
    #[error("{0:?} has no length; write it as ADDRESS/BITS, such as 10.0.0.0/24")]
    NoLength(String),
}

impl Prefix {
    /// Creates a prefix; `None` if the length exceeds that of the address.
    pub fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        (length <= bits(address)).then_some(Prefix { address, length })
    }

    /// Creates the prefix of full length that contains only this address.
    pub fn single(address: IpAddr) -> Prefix {
        Prefix {
            address,
            length: bits(address),
        }
    }

    /// All IPv4 addresses.
    pub const ALL_V4: Prefix = Prefix {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        length: 0,
    };
    /// All IPv6 addresses.
    pub const ALL_V6: Prefix = Prefix {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        length: 0,
    };

    /// Returns the address, including its host bits.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Returns the prefix with the host bits cleared.
    pub fn subnet(self) -> Prefix {
        Prefix {
            address: self.with_host_bits(0),
            ..self
        }
    }

    /// Returns whether the address is in the subnet.
    pub fn contains(self, address: IpAddr) -> bool {
        let mask = self.mask();
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                number(self.address) & mask == number(address) & mask
            }
            _ => false,
        }
    }

    /// Returns whether both subnets have an address in common.
    pub fn overlaps(self, other: Prefix) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// Returns the broadcast address. IPv6 subnets and subnets of one or two addresses have none.
    pub fn broadcast(self) -> Option<IpAddr> {
        let has_one = self.address.is_ipv4() && self.length < 31;
        has_one.then(|| self.with_host_bits(u128::MAX))
    }

    /// Returns the number of host addresses. The first has number 1.
    pub fn capacity(self) -> u128 {
        let host_bits = u32::from(bits(self.address) - self.length);
        let all = 1u128.checked_shl(host_bits).unwrap_or(u128::MAX);
        match self.broadcast() {
            Some(_) => all - 2,
            // The address with all host bits zero is the subnet-router anycast address.
            None => all - 1,
        }
    }

    /// Returns the host address with this number, from 1.
    pub fn nth(self, index: u128) -> Option<IpAddr> {
        (1..=self.capacity())
            .contains(&index)
            .then(|| self.with_host_bits(index))
    }

    fn mask(self) -> u128 {
        let host_bits = u32::from(bits(self.address) - self.length);
        let host = 1u128.checked_shl(host_bits).map_or(u128::MAX, |n| n - 1);
        !host
    }

    fn with_host_bits(self, host: u128) -> IpAddr {
        let mask = self.mask();
        let value = (number(self.address) & mask) | (host & !mask);
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(value as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(value)),
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let Some((address, length)) = text.split_once('/') else {
            return Err(PrefixError::NoLength(text.to_owned()));
        };
        let parsed = address.parse::<IpAddr>();
        let parsed = parsed.map_err(|_| PrefixError::Address(address.to_owned()))?;
        let prefix = length.parse().ok().and_then(|n| Prefix::new(parsed, n));
        prefix.ok_or_else(|| PrefixError::Length {
            text: length.to_owned(),
            most: bits(parsed),
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Returns whether this is a loopback address.
pub fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(
            || address.is_loopback(),
            |address: Ipv4Addr| address.is_loopback(),
        ),
    }
}

/// Returns whether this is `0.0.0.0` or `::`, which as a destination means the host itself.
pub fn is_unspecified(address: IpAddr) -> bool {
    canonical(address).is_unspecified()
}

/// Returns whether this is a multicast address or the limited broadcast address.
pub fn is_multicast_or_broadcast(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}

/// Converts an IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) to IPv4.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }

    #[test]
    fn prefixes_are_read_and_written() {
        assert_eq!(prefix("10.0.0.7/24").to_string(), "10.0.0.7/24");
        assert_eq!(prefix("10.0.0.7/24").subnet().to_string(), "10.0.0.0/24");
        assert_eq!(prefix("fd00::5/64").subnet().to_string(), "fd00::/64");
        assert_eq!(
            "10.0.0.1".parse::<Prefix>(),
            Err(PrefixError::NoLength("10.0.0.1".to_owned()))
        );
        assert!("10.0.0.1/33".parse::<Prefix>().is_err());
        assert!("10.0.0/24".parse::<Prefix>().is_err());
        assert!("fd00::/129".parse::<Prefix>().is_err());
    }

    #[test]
    fn subnets_have_bounds() {
        let lan = prefix("10.0.0.0/30");
        assert_eq!(lan.capacity(), 2);
        assert_eq!(lan.nth(0), None);
        assert_eq!(lan.nth(2), "10.0.0.2".parse().ok());
        assert_eq!(lan.nth(3), None);
        assert_eq!(lan.broadcast(), "10.0.0.3".parse().ok());
        assert_eq!(prefix("10.0.0.0/31").broadcast(), None);
        assert_eq!(prefix("10.0.0.1/32").capacity(), 0);
        assert_eq!(prefix("::/0").capacity(), u128::MAX - 1);
        assert_eq!(prefix("fd00::/64").nth(1), "fd00::1".parse().ok());
        assert!(!prefix("0.0.0.0/0").contains("::1".parse().expect("an address")));
    }

    #[test]
    fn overlaps_are_seen_from_both_sides() {
        assert!(prefix("10.0.0.0/8").overlaps(prefix("10.1.0.0/16")));
        assert!(prefix("10.1.0.0/16").overlaps(prefix("10.0.0.0/8")));
        assert!(!prefix("10.1.0.0/16").overlaps(prefix("10.2.0.0/16")));
    }

    proptest! {
        #[test]
        fn every_numbered_address_lies_in_its_subnet(bits in any::<u32>(), length in 0u8..=32, index in any::<u128>()) {
            let subnet = Prefix::new(IpAddr::V4(Ipv4Addr::from_bits(bits)), length).expect("short enough");
            prop_assert_eq!(prefix(&subnet.to_string()), subnet);
            let index = index % (subnet.capacity() + 2);
            match subnet.nth(index) {
                Some(address) => {
                    prop_assert!(subnet.contains(address));
                    prop_assert_ne!(Some(address), subnet.broadcast());
                }
                None => prop_assert!(index == 0 || index > subnet.capacity()),
            }
        }
    }
}
