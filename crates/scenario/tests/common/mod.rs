//! Options for tests, as a caller declares them.

use everett_scenario::{OptionKey, OptionKind};

const NUMBER: OptionKind = OptionKind::Number { most: u64::MAX };
const SMALL: OptionKind = OptionKind::Number {
    most: u32::MAX as u64,
};

/// Returns options of all kinds.
pub fn options() -> Vec<OptionKey> {
    let rows: [(&str, &str, OptionKind, Option<&str>); 21] = [
        ("limits", "time", OptionKind::Duration, None),
        ("limits", "memory", OptionKind::Size, Some("4G")),
        ("limits", "paths", NUMBER, None),
        ("limits", "forks", NUMBER, None),
        ("limits", "depth", SMALL, None),
        ("limits", "instructions", NUMBER, None),
        ("limits", "events", NUMBER, None),
        ("limits", "virtual_time", OptionKind::Duration, None),
        ("search", "order", OptionKind::Texts, None),
        ("search", "mapping", OptionKind::Text, Some("sds")),
        ("search", "orders", SMALL, Some("0")),
        ("search", "seed", NUMBER, Some("0")),
        ("host", "scheduler", OptionKind::Text, None),
        ("host", "preempt", OptionKind::Text, None),
        ("host", "faults", SMALL, Some("0")),
        ("host", "fault_calls", OptionKind::Texts, None),
        ("host", "fault_programs", OptionKind::Texts, None),
        ("host", "fault_regions", OptionKind::Flag, None),
        ("host", "fragment", SMALL, Some("0")),
        ("host", "wait_all", OptionKind::Flag, None),
        ("host", "trust_handlers", OptionKind::Flag, None),
    ];
    let key = |(table, name, kind, default)| OptionKey {
        table,
        name,
        kind,
        default,
    };
    rows.map(key).to_vec()
}
