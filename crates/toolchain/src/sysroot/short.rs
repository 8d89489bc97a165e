//! The libraries of bitcode without mathematics.
//!
//! The linker takes every function that a compiler may call by itself (`pow`, `tgammal`) out of
//! libraries of bitcode into every program, and keeps it until the last pass. Most programs need
//! none of them, and are linked in less than half the time where there are none.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::read::archive::ArchiveFile;

use super::machine_code;
use crate::error::{IoContext, ToolchainError};
use crate::link;
use crate::roots;

/// Mathematics that reading and writing numbers needs.
const USUAL: [&str; 2] = ["scalbn", "scalbnl"];

/// A definition in an archive: its name, and the range of its member.
type Definition = (String, (u64, u64));

/// Makes an archive without the members that define mathematics.
pub fn without_members(zig: &Path, from: &Path, to: &Path) -> Result<(), ToolchainError> {
    let removed = definitions(from)?.into_iter().filter(is_removed);
    let removed: BTreeSet<(u64, u64)> = removed.map(|(_, range)| range).collect();
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let members = machine_code::unpack(from, work.path(), |range| !removed.contains(&range))?;
    machine_code::pack(zig, work.path(), &members.files, to)
}

/// Makes an archive of which the members define no mathematics.
pub fn without_functions(zig: &Path, from: &Path, to: &Path) -> Result<(), ToolchainError> {
    let kept = definitions(from)?.into_iter().filter(|it| !is_removed(it));
    let kept = kept.map(|(name, _)| name).collect();
    machine_code::rewritten(zig, from, to, &link::passes(&kept))
}

fn is_removed((name, _): &Definition) -> bool {
    roots::is_mathematics(name) && !USUAL.contains(&&**name)
}

fn definitions(archive: &Path) -> Result<Vec<Definition>, ToolchainError> {
    let bytes = fs::read(archive).context("read", archive)?;
    let broken = |error: object::Error| ToolchainError::Sysroot {
        what: "the libraries without mathematics",
        reason: format!("{}: {error}", archive.display()),
    };
    let parsed = ArchiveFile::parse(&*bytes).map_err(broken)?;
    let symbols = parsed.symbols().map_err(broken)?;
    let definition = |symbol: object::Result<_>| {
        let symbol: object::read::archive::ArchiveSymbol<'_> = symbol?;
        let member = parsed.member(symbol.offset())?;
        let name = String::from_utf8_lossy(symbol.name()).into_owned();
        Ok((name, member.file_range()))
    };
    let found: object::Result<Vec<Definition>> =
        symbols.into_iter().flatten().map(definition).collect();
    found.map_err(broken)
}
