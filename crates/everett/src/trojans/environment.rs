//! Values that a client does not choose and that have one value each while it is explored. What it sends with one value
//! says nothing about the others; so it is explored once more with other values, and must send the same.

use everett_engine::ExplorerConfig;
use everett_linux::HostConfig;
use everett_net::HostIndex;
use everett_trojans::{Encoded, unmasked};
use everett_vm::Image;
use std::collections::BTreeSet;

use super::Analysis;
use crate::error::{Error, Result};

/// A value of the environment, and how to give a host another one.
struct Unchosen {
    name: &'static str,
    change: fn(&mut HostConfig),
}

const ALL: [Unchosen; 4] = [
    Unchosen {
        name: "process ids",
        // None of its bytes is one of the usual id.
        change: |host| host.options.first_pid = 2_113_047,
    },
    Unchosen {
        name: "AT_RANDOM",
        change: |host| host.random_seed ^= 0x9e37_79b9_7f4a_7c15,
    },
    Unchosen {
        name: "monotonic clocks",
        change: |host| host.options.uptime_ns += 86_400_123_456_789,
    },
    Unchosen {
        name: "ephemeral ports",
        change: |host| host.options.skipped_ports += 7,
    },
];

/// Which values are other ones than usual, as bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Environment(u32);

impl Environment {
    const OTHER: Environment = Environment((1 << ALL.len()) - 1);

    pub(super) fn apply(self, host: &mut HostConfig) {
        for (number, unchosen) in ALL.iter().enumerate() {
            if self.0 >> number & 1 == 1 {
                (unchosen.change)(host);
            }
        }
    }
}

impl Analysis<'_> {
    /// The values that what a client sends depends on, in bytes that are not masked.
    pub(super) fn depends_on(
        &self,
        client: HostIndex,
        sent: &BTreeSet<Encoded>,
        config: &ExplorerConfig,
        images: &[Image],
    ) -> Result<Vec<String>> {
        let comparable = |sent: &BTreeSet<Encoded>| {
            let sent = unmasked(sent, &self.layout);
            sent.map_err(|error| Error::Invalid(error.to_string()))
        };
        let usual = comparable(sent)?;
        let differs = |environment| -> Result<bool> {
            let (other, cut_off) = self.client(client, environment, config, images)?;
            Ok(cut_off.is_some() || comparable(&other.sent)? != usual)
        };
        if !differs(Environment::OTHER)? {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for (number, unchosen) in ALL.iter().enumerate() {
            if differs(Environment(1 << number))? {
                names.push(unchosen.name.to_owned());
            }
        }
        if names.is_empty() {
            let all = ALL.map(|unchosen| unchosen.name);
            names.push(format!("several of {}", all.join(", ")));
        }
        Ok(names)
    }
}
