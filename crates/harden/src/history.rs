//! The version-control history of the files that contain atoms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::benefit::FileHistory;
use crate::error::{Error, FileContext, Result};

/// The separator of commits in the output of git.
const COMMIT: char = '\u{1}';

/// Words that mark a change as a fix.
const FIXES: [&str; 7] = ["fix", "bug", "crash", "overflow", "cve-", "leak", "corrupt"];

/// Returns the history of all files in the repository of a folder, by absolute path.
pub fn history(folder: &Path) -> Result<BTreeMap<String, FileHistory>> {
    let root = git(folder, &["rev-parse", "--show-toplevel"])?;
    let format = format!("--format={COMMIT}%ct %s");
    let log = git(
        folder,
        &[
            "-c",
            "core.quotepath=off",
            "log",
            "--no-merges",
            "--name-only",
            &format,
        ],
    )?;
    Ok(read_log(&log, root.trim_end()))
}

fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(args)
        .output()
        .context("run git in", folder)?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(Error::Form {
            path: folder.to_owned(),
            message: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        }),
    }
}

/// Parses commits: a line with time and subject each, then the files.
fn read_log(log: &str, root: &str) -> BTreeMap<String, FileHistory> {
    let mut files: BTreeMap<String, FileHistory> = BTreeMap::new();
    for commit in log.split(COMMIT).skip(1) {
        let mut lines = commit.lines();
        let (time, subject) = lines
            .next()
            .and_then(|head| head.split_once(' '))
            .unwrap_or_default();
        let time = time.parse().unwrap_or(0);
        let subject = subject.to_lowercase();
        let is_fix = FIXES.iter().any(|word| subject.contains(word));
        let names: BTreeSet<&str> = lines.filter(|line| !line.is_empty()).collect();
        for name in names {
            let file = files.entry(format!("{root}/{name}")).or_default();
            file.last_change = file.last_change.max(time);
            file.fixes += u32::from(is_fix);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_counted_by_file() {
        let log = "\u{1}30 fix: off by one\n\na.c\nsub/b.c\n\u{1}20 add a thing\n\na.c\n\u{1}10 Crash\n\na.c\n";
        let files = read_log(log, "/r");
        assert_eq!(
            files["/r/a.c"],
            FileHistory {
                last_change: 30,
                fixes: 2
            }
        );
        assert_eq!(files["/r/sub/b.c"].fixes, 1);
    }
}
