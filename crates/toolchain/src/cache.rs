//! The user's cache folder: its location, and how several processes fill it concurrently.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, ToolchainError};
use crate::process::BuildTime;

/// Returns the cache folder; creates it if it is missing.
pub fn folder() -> Result<PathBuf, ToolchainError> {
    let path = folder_from(|name| env::var_os(name)).ok_or(ToolchainError::NoCache)?;
    fs::create_dir_all(&path).context("create the cache folder", &path)?;
    path.canonicalize().context("find the cache folder", &path)
}

fn folder_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("EVERETT_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|path| path.join("everett")))
        .or_else(|| set("HOME").map(|path| path.join(".cache/everett")))
}

/// Creates `target` once: `make` fills a temporary folder beside it, which is then renamed.
///
/// Other processes wait meanwhile, and find `target` either complete or missing.
pub fn make_once(
    target: &Path,
    time: &BuildTime,
    make: impl FnOnce(&Path) -> Result<(), ToolchainError>,
) -> Result<(), ToolchainError> {
    if target.is_dir() {
        return Ok(());
    }
    let _lock = lock_within(target, time)?;
    if target.is_dir() {
        return Ok(());
    }
    let parent = target.parent().unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix("unfinished-")
        .tempdir_in(parent)
        .context("create a folder in", parent)?;
    make(temporary.path())?;
    let finished = temporary.keep();
    // A temporary folder is private to its owner; a cache may be shared.
    set_mode(&finished, 0o755)?;
    fs::rename(&finished, target).context("move the finished folder to", target)
}

/// Holds the lock of `target` until the returned file is dropped.
pub fn lock(target: &Path) -> Result<File, ToolchainError> {
    lock_within(target, &BuildTime::from_now(None))
}

/// Holds the lock of `target` like [`lock`], but fails if another process still holds it when the
/// time is over.
pub fn lock_within(target: &Path, time: &BuildTime) -> Result<File, ToolchainError> {
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(".lock");
    let path = target.with_file_name(name);
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .context("open the lock file", &path)?;
    time.wait_for(&path, || match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).context("lock", &path),
    })?;
    Ok(file)
}

/// Sets the permission bits of a file or folder.
pub fn set_mode(path: &Path, mode: u32) -> Result<(), ToolchainError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .context("set the permissions of", path)
}

/// Returns a short content hash for folder names.
pub fn fingerprint(parts: &[&[u8]]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        let length = (part.len() as u64).to_le_bytes();
        for byte in length.iter().chain(part.iter()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Option<PathBuf> {
        folder_from(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn nobody_waits_for_a_lock_longer_than_they_may() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("sysroot");
        let held = lock(&target).unwrap();
        let no_time = BuildTime::from_now(Some(std::time::Duration::ZERO));
        let make = |_: &Path| panic!("somebody else makes it");
        let error = make_once(&target, &no_time, make).unwrap_err();
        assert!(matches!(error, ToolchainError::TooSlow { .. }), "{error}");
        drop(held);
        lock_within(&target, &no_time).unwrap();
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [
            ("EVERETT_CACHE", "/e"),
            ("XDG_CACHE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        assert_eq!(with(&all), Some("/e".into()));
        assert_eq!(with(&all[1..]), Some("/x/everett".into()));
        assert_eq!(with(&all[2..]), Some("/h/.cache/everett".into()));
        assert_eq!(
            with(&[("EVERETT_CACHE", ""), ("HOME", "/h")]),
            Some("/h/.cache/everett".into())
        );
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn a_folder_is_made_once_and_never_half() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("thing");
        let always = BuildTime::from_now(None);
        let failed = make_once(&target, &always, |folder| {
            fs::write(folder.join("half"), "").unwrap();
            Err(ToolchainError::NoCache)
        });
        assert!(failed.is_err() && !target.exists());
        make_once(&target, &always, |folder| {
            fs::write(folder.join("whole"), "").context("write", folder)
        })
        .unwrap();
        make_once(&target, &always, |_| panic!("made twice")).unwrap();
        assert!(target.join("whole").is_file() && !target.join("half").exists());
    }

    #[test]
    fn fingerprints_tell_where_parts_end() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[b"ab"]), fingerprint(&[b"ab"]));
    }
}
