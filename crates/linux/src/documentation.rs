//! The documentation page that lists every Linux system call as modelled, partial or unsupported.

use std::fmt::Write;

use crate::numbers::{NAMES, is_gone};
use crate::syscalls;
use crate::table::{ArgKind, Row};

/// The text of `docs/syscalls.md`.
pub fn documentation() -> String {
    let (mut modelled, mut partial, mut gone) = (0, 0, 0);
    let (mut lines, mut notes) = (String::new(), String::new());
    for (number, name) in NAMES {
        let row = syscalls::row(u64::from(*number));
        let state = match row {
            None if is_gone(name) => {
                gone += 1;
                "gone"
            }
            None => "no",
            Some(row) if row.missing.is_empty() => {
                modelled += 1;
                "yes"
            }
            Some(row) => {
                partial += 1;
                let _ = writeln!(notes, "- `{name}`: {}", row.missing);
                "partial"
            }
        };
        let args = row.map_or_else(String::new, arguments);
        let errnos = row.map_or_else(String::new, injected);
        let _ = writeln!(
            lines,
            "| {number} | `{name}` | {state} | {args} | {errnos} |"
        );
    }
    format!(
        "# System calls\n\n\
         What the kernel model knows of Linux on x86-64. This page is made from the table of system calls; a test\n\
         holds it against the table.\n\n\
         {modelled} are modelled, {partial} in part, {} not: those answer `ENOSYS`, and the run says so once. {gone}\n\
         are gone from Linux: it answers `ENOSYS`, too.\n\n\
         Arguments: `int`, `flags`, `fd`, `pointer` and `path` are made concrete (one path of the search for each\n\
         value); `symbolic` is passed on as it is; the bytes behind a `buffer` keep their expressions. Errors are\n\
         those that fault injection may return, where command, flags and kind of descriptor allow them.\n\n\
         | number | name | modelled | arguments | errors |\n\
         |---:|---|---|---|---|\n\
         {lines}\n\
         ## What is missing\n\n\
         {notes}",
        NAMES.len() - modelled - partial - gone
    )
}

fn arguments(row: &Row) -> String {
    let kind = |kind: &ArgKind| match kind {
        ArgKind::Int => "int",
        ArgKind::Symbolic => "symbolic",
        ArgKind::Flags => "flags",
        ArgKind::Fd => "fd",
        ArgKind::Pointer => "pointer",
        ArgKind::Buffer => "buffer",
        ArgKind::Path => "path",
    };
    row.args.iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn injected(row: &Row) -> String {
    row.errnos
        .iter()
        .map(|errno| errno.name())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/syscalls.md");
        if std::env::var_os("EVERETT_WRITE_DOCS").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        let advice = "EVERETT_WRITE_DOCS=1 cargo test -p everett-linux writes it";
        assert!(
            committed == documentation(),
            "docs/syscalls.md is out of date; {advice}"
        );
    }

    #[test]
    fn rows_have_the_names_of_their_numbers() {
        let mut seen = std::collections::BTreeSet::new();
        for row in syscalls::rows() {
            assert_eq!(crate::numbers::name(u64::from(row.number)), Some(row.name));
            assert!(seen.insert(row.number), "{} is listed twice", row.name);
            assert!(row.args.len() <= 6);
        }
    }
}
