//! What folders of results must not have before a search, and what does not stay in them.

use everett_report::Folder;
use std::path::Path;

use crate::error::{Error, Result};

/// Removes the folders that only tests need while they run, and that other kinds of runs have.
pub(crate) fn remove_unused(folder: &Folder) {
    let _ = std::fs::remove_dir_all(folder.path().join("scratch"));
    for unused in ["tests", "findings"] {
        // Folders that other kinds of runs need; non-empty ones stay.
        let _ = std::fs::remove_dir(folder.path().join(unused));
    }
}

/// The files that a rejected search leaves behind.
const REMAINS: &[&str] = &["preload.c", "preload.so", "scratch", "tests", "findings"];

/// Rejects a folder with other files, so that results do not mix with them.
pub(crate) fn refuse_foreign(path: &Path) -> Result<()> {
    if path.join("journal.jsonl").exists() {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        return Ok(());
    };
    let is_foreign = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut all| all.next().is_none());
        match REMAINS.iter().any(|own| name == *own) {
            true => entry.path().is_dir() && name != "scratch" && !is_empty(),
            false => true,
        }
    };
    match entries.flatten().find(is_foreign) {
        None => Ok(()),
        Some(entry) => Err(Error::Usage(format!(
            "{} is not empty and has no results of a fault search (there is {}); choose another `out`",
            path.display(),
            entry.file_name().to_string_lossy()
        ))),
    }
}
