//! Finds the files that a test created, changed or removed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::digest;
use super::sandbox::{SandboxFiles, path_of};
use crate::results::Isolation;

/// Maximum number of files that are examined.
const MAX_FILES: usize = 10_000;

/// Returns the files below the folder of the test that were written, with a digest of their
/// content, or a mark if they were removed.
pub(super) fn changed(place: &SandboxFiles) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (point, layer) in &place.written {
        let layer = path_of(layer);
        match place.isolation {
            Isolation::Namespaces => {
                let Ok(below) = place.folder.strip_prefix(point) else {
                    continue;
                };
                // If a nested file system contains the folder, its layer has the files.
                let is_further = |(other, _): &&(std::path::PathBuf, fs::File)| {
                    other.starts_with(point) && other != point && place.folder.starts_with(other)
                };
                if place.written.iter().any(|other| is_further(&other)) {
                    continue;
                }
                collect(&layer.join(below), "", &mut files);
            }
            _ => collect(&layer, "", &mut files),
        }
    }
    files
}

fn collect(folder: &Path, name: &str, files: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if files.len() >= MAX_FILES {
            return;
        }
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = match name {
            "" => own,
            name => format!("{name}/{own}"),
        };
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        let kind = metadata.file_type();
        if kind.is_dir() {
            files.insert(format!("{name}/"), "folder".to_owned());
            collect(&entry.path(), &name, files);
        } else if kind.is_char_device() && metadata.rdev() == 0 {
            files.insert(name, "removed".to_owned());
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            files.insert(name, format!("link to {}", target.display()));
        } else if kind.is_file() {
            let content = fs::read(entry.path()).unwrap_or_default();
            files.insert(
                name,
                format!("{} bytes {:016x}", content.len(), digest(&content)),
            );
        } else {
            files.insert(name, "special".to_owned());
        }
    }
}
