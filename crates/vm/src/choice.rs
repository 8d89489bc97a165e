//! Choice sites: the subject of a choice that does not depend on data, such as a schedule or a
//! fault.
//!
//! A site is plain data. It has one text form ([`Display`](fmt::Display) and [`FromStr`]), which
//! traces on disk and reports use. No other code parses that text; it uses the methods of the site.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The subject of a choice. The first alternative is always the default: no fault, no preemption.
///
/// Every path stores the sites of its choices, so a clone must be cheap: it shares everything
/// except the name of a system call that was read from a trace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChoiceSite {
    /// The outcome of a system call: the normal one, or one of these failures.
    CallFault {
        /// Name of the system call.
        call: Cow<'static, str>,
        /// Names of errors, or other failures such as `short`.
        failures: FaultNames,
    },
    /// Whether an allocation fails.
    AllocationFault,
    /// Which network fault of the scenario affects a packet.
    PacketFault {
        /// Names of the faults.
        faults: FaultNames,
    },
    /// Which host fault of the scenario affects a host.
    HostFault {
        /// Names of the faults.
        faults: FaultNames,
    },
    /// Whether a file of a host that loses power loses its unsynchronised data.
    UnsyncedLoss {
        /// Path of the file.
        path: Arc<str>,
    },
    /// Whether a fault that is decided once per world occurs.
    WorldFault {
        /// Name of the fault.
        fault: Arc<str>,
    },
    /// Which of the packets that race for a host arrives first.
    PacketOrder,
    /// Which thread runs next, where the current thread is blocked or has used up its time slice.
    Schedule,
    /// Which thread runs next, where the current thread could continue.
    Preemption,
    /// How many bytes of a stream arrive at once.
    StreamPiece,
    /// How many symbolic arguments a program has.
    ArgumentCount,
    /// How long a symbolic file is.
    FileSize {
        /// Last part of the file's path.
        name: Arc<str>,
    },
    /// Which timestamps a file has: its own, far in the past, or far in the future.
    FileTimes {
        /// Last part of the file's path.
        name: Arc<str>,
    },
}

/// Names of faults, in the order of their alternatives; shared.
///
/// The names are stored as one comma-separated text, so that sites are equal if and only if their
/// texts are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FaultNames(Arc<str>);

impl FaultNames {
    /// Returns the names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = (!self.0.is_empty()).then(|| self.0.split(','));
        names.into_iter().flatten()
    }
}

impl<'n> FromIterator<&'n str> for FaultNames {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> FaultNames {
        let mut text = String::with_capacity(64);
        for (number, name) in names.into_iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(name);
        }
        FaultNames(text.into())
    }
}

impl ChoiceSite {
    /// Returns whether every alternative but the first injects a fault.
    pub fn is_fault(&self) -> bool {
        self.fault().is_some()
    }

    /// Returns whether every alternative but the first switches away from a thread that could
    /// continue.
    pub fn is_preemption(&self) -> bool {
        matches!(self, ChoiceSite::Preemption)
    }

    /// Returns whether the choice determines an input of the program, and not an event that affects
    /// it.
    pub fn is_about_inputs(&self) -> bool {
        matches!(
            self,
            ChoiceSite::ArgumentCount | ChoiceSite::FileSize { .. }
        )
    }

    /// Returns the system call that may fail.
    pub fn failing_call(&self) -> Option<&str> {
        match self {
            ChoiceSite::CallFault { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Returns whether the choice is about a failure of a call or an allocation, which has a call
    /// stack.
    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            ChoiceSite::CallFault { .. } | ChoiceSite::AllocationFault
        )
    }

    /// Returns the target of a fault as one word: the name of a system call, `malloc`, `packet`,
    /// `host`, `lost` or `world`.
    pub fn fault_target(&self) -> Option<&str> {
        self.fault().map(|(target, _)| target)
    }

    /// Returns the names of the faults among the alternatives, from the second alternative on.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        let (several, one) = match self {
            ChoiceSite::CallFault {
                failures: names, ..
            }
            | ChoiceSite::PacketFault { faults: names }
            | ChoiceSite::HostFault { faults: names } => (Some(names), None),
            _ => (None, self.fault().map(|(_, name)| name)),
        };
        several.into_iter().flat_map(FaultNames::iter).chain(one)
    }

    /// Describes a picked alternative for people.
    pub fn describe(&self, picked: u32, alternatives: u32) -> String {
        let number = (picked as usize).checked_sub(1);
        let fault = number.and_then(|number| self.faults().nth(number));
        match (self, fault) {
            (ChoiceSite::PacketOrder, _) => {
                "a packet arrives before one that was earlier".to_owned()
            }
            (ChoiceSite::UnsyncedLoss { path }, Some(_)) => {
                format!("{path} loses what was not synchronised")
            }
            (ChoiceSite::PacketFault { .. }, Some(name)) => format!("{name} happens to a packet"),
            (ChoiceSite::HostFault { .. }, Some(name)) => format!("{name} happens to the host"),
            (ChoiceSite::WorldFault { .. }, Some(name)) => format!("{name} happens"),
            (_, Some(name)) => {
                let call = self.fault_target().unwrap_or_default();
                format!("{call} fails: {name}")
            }
            (ChoiceSite::FileTimes { name }, None) => {
                let when = ["as they are", "in the past", "in the future"];
                let when = when.get(picked as usize).unwrap_or(&"unknown");
                format!("the times of {name} are {when}")
            }
            (ChoiceSite::Preemption, None) => format!("preempt: {picked} of {alternatives}"),
            (_, None) => format!("{self}: {picked} of {alternatives}"),
        }
    }

    /// Returns the target of a fault, and the names of the faults as the text contains them.
    fn fault(&self) -> Option<(&str, &str)> {
        Some(match self {
            ChoiceSite::CallFault { call, failures } => (call, &failures.0),
            ChoiceSite::AllocationFault => (ALLOCATION, NO_MEMORY),
            ChoiceSite::PacketFault { faults } => (PACKET, &faults.0),
            ChoiceSite::HostFault { faults } => (HOST, &faults.0),
            ChoiceSite::UnsyncedLoss { path } => (UNSYNCED, path),
            ChoiceSite::WorldFault { fault } => (WORLD, fault),
            ChoiceSite::PacketOrder
            | ChoiceSite::Schedule
            | ChoiceSite::Preemption
            | ChoiceSite::StreamPiece
            | ChoiceSite::ArgumentCount
            | ChoiceSite::FileSize { .. }
            | ChoiceSite::FileTimes { .. } => return None,
        })
    }
}

/// Targets of faults in texts. No system call has one of these names.
const ALLOCATION: &str = "malloc";
const PACKET: &str = "packet";
const HOST: &str = "host";
const UNSYNCED: &str = "lost";
const WORLD: &str = "world";
/// The only failure of allocations.
const NO_MEMORY: &str = "ENOMEM";

/// Texts and text prefixes of the other sites.
const FAULT: &str = "fault:";
const PACKET_ORDER: &str = "order:packet";
const SCHEDULE: &str = "schedule";
const PREEMPTION: &str = "preempt:";
const STREAM_PIECE: &str = "fragment";
const ARGUMENT_COUNT: &str = "n_args";
const FILE_SIZE: &str = "size of ";
const FILE_TIMES: &str = "times of ";

impl fmt::Display for ChoiceSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChoiceSite::PacketOrder => f.write_str(PACKET_ORDER),
            ChoiceSite::Schedule => f.write_str(SCHEDULE),
            ChoiceSite::Preemption => f.write_str(PREEMPTION),
            ChoiceSite::StreamPiece => f.write_str(STREAM_PIECE),
            ChoiceSite::ArgumentCount => f.write_str(ARGUMENT_COUNT),
            ChoiceSite::FileSize { name } => write!(f, "{FILE_SIZE}{name}"),
            ChoiceSite::FileTimes { name } => write!(f, "{FILE_TIMES}{name}"),
            ChoiceSite::CallFault { .. }
            | ChoiceSite::AllocationFault
            | ChoiceSite::PacketFault { .. }
            | ChoiceSite::HostFault { .. }
            | ChoiceSite::UnsyncedLoss { .. }
            | ChoiceSite::WorldFault { .. } => {
                let (target, names) = self.fault().unwrap_or_default();
                write!(f, "{FAULT}{target}:{names}")
            }
        }
    }
}

/// The error for a text that is not a choice site.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a choice that this version of Everett knows")]
pub struct UnknownSite(String);

impl FromStr for ChoiceSite {
    type Err = UnknownSite;

    fn from_str(text: &str) -> Result<ChoiceSite, UnknownSite> {
        let fault = text.strip_prefix(FAULT);
        if let Some((target, names)) = fault.and_then(|fault| fault.split_once(':')) {
            return match target {
                "" => Err(UnknownSite(text.to_owned())),
                target => Ok(fault_site(target, names)),
            };
        }
        match text {
            PACKET_ORDER => Ok(ChoiceSite::PacketOrder),
            SCHEDULE => Ok(ChoiceSite::Schedule),
            PREEMPTION => Ok(ChoiceSite::Preemption),
            STREAM_PIECE => Ok(ChoiceSite::StreamPiece),
            ARGUMENT_COUNT => Ok(ChoiceSite::ArgumentCount),
            _ => {
                let name = |prefix: &str| text.strip_prefix(prefix).map(Arc::from);
                let size = name(FILE_SIZE).map(|name| ChoiceSite::FileSize { name });
                let times = || name(FILE_TIMES).map(|name| ChoiceSite::FileTimes { name });
                let site = size.or_else(times);
                site.ok_or_else(|| UnknownSite(text.to_owned()))
            }
        }
    }
}

fn fault_site(target: &str, names: &str) -> ChoiceSite {
    let several = || FaultNames(names.into());
    match target {
        ALLOCATION if names == NO_MEMORY => ChoiceSite::AllocationFault,
        PACKET => ChoiceSite::PacketFault { faults: several() },
        HOST => ChoiceSite::HostFault { faults: several() },
        UNSYNCED => ChoiceSite::UnsyncedLoss { path: names.into() },
        WORLD => ChoiceSite::WorldFault {
            fault: names.into(),
        },
        call => ChoiceSite::CallFault {
            call: call.to_owned().into(),
            failures: several(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(all: &[&str]) -> FaultNames {
        all.iter().copied().collect()
    }

    /// Every kind of site, with its text.
    fn sites() -> Vec<(ChoiceSite, &'static str)> {
        vec![
            (
                ChoiceSite::CallFault {
                    call: "read".into(),
                    failures: names(&["EIO", "EINTR", "short"]),
                },
                "fault:read:EIO,EINTR,short",
            ),
            (ChoiceSite::AllocationFault, "fault:malloc:ENOMEM"),
            (
                ChoiceSite::PacketFault {
                    faults: names(&["lost", "clock of a:1"]),
                },
                "fault:packet:lost,clock of a:1",
            ),
            (
                ChoiceSite::HostFault {
                    faults: names(&["crash"]),
                },
                "fault:host:crash",
            ),
            (
                ChoiceSite::UnsyncedLoss {
                    path: "/var/a:b,c".into(),
                },
                "fault:lost:/var/a:b,c",
            ),
            (
                ChoiceSite::WorldFault {
                    fault: "cut, here".into(),
                },
                "fault:world:cut, here",
            ),
            (ChoiceSite::PacketOrder, "order:packet"),
            (ChoiceSite::Schedule, "schedule"),
            (ChoiceSite::Preemption, "preempt:"),
            (ChoiceSite::StreamPiece, "fragment"),
            (ChoiceSite::ArgumentCount, "n_args"),
            (ChoiceSite::FileSize { name: "A".into() }, "size of A"),
        ]
    }

    #[test]
    fn every_site_has_its_text() {
        for (site, text) in sites() {
            assert_eq!(site.to_string(), text);
            assert_eq!(text.parse(), Ok(site));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "s",
            "fault:",
            "fault:read",
            "fault::EIO",
            "preempt",
            "schedule ",
        ] {
            let error = text.parse::<ChoiceSite>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn alternatives_are_described() {
        let described = sites()
            .into_iter()
            .map(|(site, _)| site.describe(1, 4))
            .collect::<Vec<_>>();
        let expected = [
            "read fails: EIO",
            "malloc fails: ENOMEM",
            "lost happens to a packet",
            "crash happens to the host",
            "/var/a:b,c loses what was not synchronised",
            "cut, here happens",
            "a packet arrives before one that was earlier",
            "schedule: 1 of 4",
            "preempt: 1 of 4",
            "fragment: 1 of 4",
            "n_args: 1 of 4",
            "size of A: 1 of 4",
        ];
        assert_eq!(described, expected);
        let (read, _) = sites().swap_remove(0);
        assert_eq!(read.describe(3, 4), "read fails: short");
        assert_eq!(
            read.describe(4, 5),
            "fault:read:EIO,EINTR,short: 4 of 5",
            "there is no such failure"
        );
    }

    #[test]
    fn faults_are_the_sites_that_name_some() {
        for (site, text) in sites() {
            assert_eq!(site.is_fault(), text.starts_with("fault:"));
            assert_eq!(site.is_fault(), site.faults().next().is_some());
            assert_eq!(site.is_fault(), site.fault_target().is_some());
            assert_eq!(site.is_preemption(), text.starts_with("preempt:"));
        }
        let (packet, _) = sites().swap_remove(2);
        assert_eq!(
            packet.faults().collect::<Vec<_>>(),
            ["lost", "clock of a:1"]
        );
        assert_eq!(names(&[]).iter().count(), 0);
    }

    fn any_names() -> impl Strategy<Value = FaultNames> {
        let one = "[^,]{1,8}";
        prop::collection::vec(one, 1..5)
            .prop_map(|all| all.iter().map(String::as_str).collect::<FaultNames>())
    }

    fn any_site() -> impl Strategy<Value = ChoiceSite> {
        let targets = [ALLOCATION, PACKET, HOST, UNSYNCED, WORLD];
        let call =
            "[a-z_0-9]{1,9}".prop_filter("a target", move |name| !targets.contains(&name.as_str()));
        prop_oneof![
            (call, any_names()).prop_map(|(call, failures)| ChoiceSite::CallFault {
                call: call.into(),
                failures,
            }),
            any_names().prop_map(|faults| ChoiceSite::PacketFault { faults }),
            any_names().prop_map(|faults| ChoiceSite::HostFault { faults }),
            any::<String>().prop_map(|path| ChoiceSite::UnsyncedLoss { path: path.into() }),
            any::<String>().prop_map(|fault| ChoiceSite::WorldFault {
                fault: fault.into()
            }),
            any::<String>().prop_map(|name| ChoiceSite::FileSize { name: name.into() }),
            any::<String>().prop_map(|name| ChoiceSite::FileTimes { name: name.into() }),
            prop::sample::select(sites()).prop_map(|(site, _)| site),
        ]
    }

    proptest! {
        #[test]
        fn texts_are_read_back(site in any_site()) {
            prop_assert_eq!(site.to_string().parse(), Ok(site));
        }

        #[test]
        fn what_is_read_is_written_the_same(text in "(fault:)?[a-z]{0,6}:?.{0,9}|size of .{0,9}") {
            if let Ok(site) = text.parse::<ChoiceSite>() {
                prop_assert_eq!(site.to_string(), text);
            }
        }

        #[test]
        fn names_come_back(all in prop::collection::vec("[^,]{1,8}", 0..5)) {
            let names = all.iter().map(String::as_str).collect::<FaultNames>();
            prop_assert_eq!(names.iter().collect::<Vec<_>>(), all);
        }
    }
}
