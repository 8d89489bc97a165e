//! Validates values of options: the one place that says which are possible. The rows of the table
//! in `options.rs` name these functions. Command lines and scenario keys set options through the
//! table, and `RunSpec::check` checks the specs of callers.

use everett_engine::{MAPPINGS, SEARCHERS};
use std::borrow::Borrow;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use crate::host::{parse_fault, parse_preempt, parse_scheduler};
use crate::layers::Mount;
use crate::load::GuestProgram;
use crate::spec::parse_variable;

/// What is wrong with a value, as text for people.
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

/// A number that must not be 0.
pub(crate) fn positive(number: &u64) -> Checked {
    match number {
        0 => Err("0 is not in 1..".to_owned()),
        _ => Ok(()),
    }
}

/// A time that fits the clocks of hosts.
pub(crate) fn time(time: &Duration) -> Checked {
    no_longer(time, u64::MAX)
}

/// An uptime, which leaves the clocks of the host as much time again.
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

/// Text that a program gets, where a NUL byte is the end.
pub(crate) fn no_nul(text: &OsStr) -> Checked {
    match text.as_encoded_bytes().contains(&0) {
        true => Err(format!("{text:?} has a NUL byte")),
        false => Ok(()),
    }
}

/// A path of the disk or of the guest.
pub(crate) fn path(path: &Path) -> Checked {
    match path.as_os_str().is_empty() {
        true => Err("a path is empty".to_owned()),
        false => no_nul(path.as_os_str()),
    }
}

/// Panics that are findings; empty for the default.
pub(crate) fn panics(text: &str) -> Checked {
    match text {
        "" | "all" | "main" => Ok(()),
        _ => Err(format!("`{text}` is neither `all` nor `main`")),
    }
}

/// The name of a searcher.
pub(crate) fn searcher(name: &str) -> Checked {
    known("searcher", name, SEARCHERS.iter().map(|row| row.name))
}

/// The name of a state mapping.
pub(crate) fn mapping(name: &str) -> Checked {
    known(
        "state mapping",
        name,
        MAPPINGS.iter().map(|(name, _)| *name),
    )
}

/// Checks a name against those that exist.
fn known(what: &str, name: &str, names: impl Iterator<Item = &'static str>) -> Checked {
    let names: Vec<&str> = names.collect();
    if names.contains(&name) {
        return Ok(());
    }
    let names = names.join(", ");
    Err(format!("{name:?} is not a {what}; there are: {names}"))
}

/// The name of a scheduler.
pub(crate) fn scheduler(name: &str) -> Checked {
    parse_scheduler(name).map(|_| ())
}

/// The name of a preemption mode.
pub(crate) fn preempt(name: &str) -> Checked {
    parse_preempt(name).map(|_| ())
}

/// A failure to inject.
pub(crate) fn fault(name: &str) -> Checked {
    parse_fault(name).map(|_| ())
}

/// An environment variable.
pub(crate) fn variable(text: &str) -> Checked {
    parse_variable(text)?;
    no_nul(text.as_ref())
}

/// A further program. Its file may be elsewhere, in what is sent to another machine.
pub(crate) fn program(program: &GuestProgram) -> Checked {
    path(program.path.as_ref())?;
    no_nul(program.file.as_os_str())
}

/// A mount; only the contents of a folder have no path in the guest.
pub(crate) fn mount(mount: &Mount) -> Checked {
    let (from, to) = mount.ends();
    path(from)?;
    path(to)
}

/// The contents of a folder in the working directory.
pub(crate) fn contents(mount: &Mount) -> Checked {
    let (from, to) = mount.ends();
    path(from)?;
    no_nul(to.as_os_str())
}
