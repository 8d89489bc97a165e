//! Validates values of options: the one place that defines which values are possible. The rows of
//! the table in `options.rs` name these functions. Command lines and scenario keys set options
//! through the table, and `RunSpec::check` checks the specs of callers.

use everett_engine::{MAPPINGS, SEARCHERS};
use everett_vm::BugKind;
use std::borrow::Borrow;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use crate::host::{parse_fault, parse_preempt, parse_scheduler};
use crate::layers::Mount;
use crate::load::GuestProgram;
use crate::spec::parse_variable;

/// The result of a check: the error is a text for people.
pub(crate) type Checked = Result<(), String>;

/// Checks each of some values.
pub(crate) fn all<T: Borrow<V>, V: ?Sized>(values: &[T], check: fn(&V) -> Checked) -> Checked {
    values.iter().try_for_each(|value| check(value.borrow()))
}

/// Checks a value if there is one.
pub(crate) fn some<T: Borrow<V>, V: ?Sized>(
    value: &Option<T>,
    check: fn(&V) -> Checked,
) -> Checked {
    value.as_ref().map_or(Ok(()), |value| check(value.borrow()))
}

/// Checks that a number is not 0.
pub(crate) fn positive(number: &u64) -> Checked {
    match number {
        0 => Err("0 is not in 1..".to_owned()),
        _ => Ok(()),
    }
}

/// Checks that a share is from 0 to 1.
pub(crate) fn share(share: &f64) -> Checked {
    match (0.0..=1.0).contains(share) {
        true => Ok(()),
        false => Err(format!("{share} is not in 0..=1")),
    }
}

/// Checks that a time fits the clocks of hosts.
pub(crate) fn time(time: &Duration) -> Checked {
    no_longer(time, u64::MAX)
}

/// Checks an uptime, which must leave the same time again to the clocks of the host.
pub(crate) fn uptime(time: &Duration) -> Checked {
    no_longer(time, u64::MAX / 2)
}

fn no_longer(time: &Duration, most_ns: u64) -> Checked {
    let most = Duration::from_nanos(most_ns);
    match time > &most {
        true => Err(format!("more than {} s is too long", most.as_secs())),
        false => Ok(()),
    }
}

/// Checks that a text for a program contains no NUL byte, which would end it.
pub(crate) fn no_nul(text: &OsStr) -> Checked {
    match text.as_encoded_bytes().contains(&0) {
        true => Err(format!("{text:?} has a NUL byte")),
        false => Ok(()),
    }
}

/// Checks a path of the disk or of the guest.
pub(crate) fn path(path: &Path) -> Checked {
    match path.as_os_str().is_empty() {
        true => Err("a path is empty".to_owned()),
        false => no_nul(path.as_os_str()),
    }
}

/// Checks which panics are findings; empty for the default.
pub(crate) fn panics(text: &str) -> Checked {
    match text {
        "" | "all" | "main" => Ok(()),
        _ => Err(format!("`{text}` is neither `all` nor `main`")),
    }
}

/// Checks the name of a searcher.
pub(crate) fn searcher(name: &str) -> Checked {
    known("searcher", name, SEARCHERS.iter().map(|row| row.name))
}

/// Checks the name of a kind of findings, or `all`.
pub(crate) fn finding(name: &str) -> Checked {
    let kinds = BugKind::ALL.iter().map(|kind| kind.name());
    known("kind of findings", name, kinds.chain(["all"]))
}

/// Checks the name of a state mapping.
pub(crate) fn mapping(name: &str) -> Checked {
    known("state mapping", name, MAPPINGS.iter().map(|row| row.name))
}

/// Checks that a name is one of the existing names.
fn known(what: &str, name: &str, names: impl Iterator<Item = &'static str>) -> Checked {
    let names: Vec<&str> = names.collect();
    if names.contains(&name) {
        return Ok(());
    }
    let names = names.join(", ");
    Err(format!("{name:?} is not a {what}; there are: {names}"))
}

/// Checks the name of a scheduler.
pub(crate) fn scheduler(name: &str) -> Checked {
    parse_scheduler(name).map(|_| ())
}

/// Checks the name of a preemption mode.
pub(crate) fn preempt(name: &str) -> Checked {
    parse_preempt(name).map(|_| ())
}

/// Checks the name of a failure to inject.
pub(crate) fn fault(name: &str) -> Checked {
    parse_fault(name).map(|_| ())
}

/// Checks an environment variable.
pub(crate) fn variable(text: &str) -> Checked {
    parse_variable(text)?;
    no_nul(text.as_ref())
}

/// Checks a further program. Its file may not exist here, because specs are sent to other machines.
pub(crate) fn program(program: &GuestProgram) -> Checked {
    path(program.path.as_ref())?;
    no_nul(program.file.as_os_str())
}

/// Checks a mount; only the contents of a folder may have no path in the guest.
pub(crate) fn mount(mount: &Mount) -> Checked {
    let (from, to) = mount.ends();
    path(from)?;
    path(to)
}

/// Checks a folder whose contents are mounted in the working directory.
pub(crate) fn contents(mount: &Mount) -> Checked {
    let (from, to) = mount.ends();
    path(from)?;
    no_nul(to.as_os_str())
}
