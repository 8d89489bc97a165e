//! Checks whether the messages of a client depend on environment values that are concrete during
//! the exploration: process ids, `AT_RANDOM`, monotonic clocks, ephemeral ports. Explores the
//! client again with other values, and compares the messages.

use everett_engine::ExplorerConfig;
use everett_linux::HostConfig;
use everett_net::HostIndex;
use everett_solver::Solver;
use everett_trojans::{Encoded, unmasked};
use everett_vm::Image;
use std::collections::BTreeSet;

use super::Analysis;
use crate::error::{Error, Result};

/// An environment value that is concrete during the exploration, and how to change it for a host.
struct EnvironmentValue {
    name: &'static str,
    change: fn(&mut HostConfig),
}

const ALL: [EnvironmentValue; 4] = [
    EnvironmentValue {
        name: "process ids",
        // Each byte differs from the one of the default id.
        change: |host| host.options.first_pid = 2_113_047,
    },
    EnvironmentValue {
        name: "AT_RANDOM",
        change: |host| host.random_seed ^= 0x9e37_79b9_7f4a_7c15,
    },
    EnvironmentValue {
        name: "monotonic clocks",
        change: |host| host.options.uptime_ns += 86_400_123_456_789,
    },
    EnvironmentValue {
        name: "ephemeral ports",
        change: |host| host.options.skipped_ports += 7,
    },
];

/// The set of values that differ from the defaults, as bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Environment(u32);

impl Environment {
    const OTHER: Environment = Environment((1 << ALL.len()) - 1);

    pub(super) fn apply(self, host: &mut HostConfig) {
        for (number, value) in ALL.iter().enumerate() {
            if self.0 >> number & 1 == 1 {
                (value.change)(host);
            }
        }
    }
}

impl Analysis<'_> {
    /// Returns the environment values on which the unmasked bytes of a client's messages depend, or
    /// why this is unknown: the client was cut off with other values.
    pub(super) fn depends_on(
        &self,
        client: HostIndex,
        sent: &BTreeSet<Encoded>,
        config: &ExplorerConfig,
        images: &[Image],
    ) -> Result<Result<Vec<String>, String>> {
        let solver = Solver::new(config.solver.clone());
        let mut solver = solver.map_err(|error| Error::Invalid(error.to_string()))?;
        let mut comparable = |sent: &BTreeSet<Encoded>| {
            let sent = unmasked(sent, &self.layout, &mut solver);
            sent.map_err(|error| Error::Invalid(error.to_string()))
        };
        let usual = comparable(sent)?;
        let mut differs = |environment| -> Result<Result<bool, String>> {
            let (other, cut_off) = self.client(client, environment, config, images)?;
            Ok(match cut_off {
                Some(why) => Err(why),
                None => Ok(comparable(&other.sent)? != usual),
            })
        };
        match differs(Environment::OTHER)? {
            Ok(true) => {}
            same_or_unknown => return Ok(same_or_unknown.map(|_| Vec::new())),
        }
        let mut names = Vec::new();
        for (number, value) in ALL.iter().enumerate() {
            match differs(Environment(1 << number))? {
                Ok(true) => names.push(value.name.to_owned()),
                Ok(false) => {}
                Err(why) => return Ok(Err(why)),
            }
        }
        if names.is_empty() {
            let all = ALL.map(|value| value.name);
            names.push(format!("several of {}", all.join(", ")));
        }
        Ok(Ok(names))
    }
}
