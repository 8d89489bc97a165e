//! Line coverage of programs built with `--coverage`, by `gcov`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the environment variable that tells such programs where to write their counts, and the
/// folder.
pub(super) fn variable(own: &Path) -> (String, String) {
    (
        "GCOV_PREFIX".to_owned(),
        own.join("gcov").display().to_string(),
    )
}

/// Maximum number of files of one run of gcov: arguments have a maximum length.
const MOST_FILES: usize = 200;

/// Returns the covered lines, as `FILE:LINE`.
pub(super) fn lines(own: &Path) -> Vec<String> {
    let prefix = own.join("gcov");
    let mut counts = Vec::new();
    find(&prefix, &mut counts);
    counts.sort();
    counts.retain(|file| {
        // The notes are where the program was built; gcov wants them next to the counts.
        let notes = file.with_extension("gcno");
        let Ok(path) = notes.strip_prefix(&prefix) else {
            return false;
        };
        let _ = std::os::unix::fs::symlink(Path::new("/").join(path), &notes);
        true
    });
    let mut lines = BTreeSet::new();
    for some in counts.chunks(MOST_FILES) {
        let gcov = Command::new("gcov")
            .args(["--json-format", "--stdout"])
            .args(some)
            .current_dir(&prefix)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        if let Ok(gcov) = gcov {
            add(&gcov.stdout, &mut lines);
        }
    }
    lines.into_iter().collect()
}

fn find(folder: &Path, counts: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&path, counts);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "gcda")
        {
            counts.push(path);
        }
    }
}

fn add(json: &[u8], lines: &mut BTreeSet<String>) {
    let of_each = serde_json::Deserializer::from_slice(json).into_iter::<serde_json::Value>();
    for read in of_each.map_while(Result::ok) {
        for file in read["files"].as_array().into_iter().flatten() {
            let name = file["file"].as_str().unwrap_or_default();
            for line in file["lines"].as_array().into_iter().flatten() {
                if line["count"].as_u64().unwrap_or(0) > 0 {
                    lines.insert(format!("{name}:{}", line["line_number"]));
                }
            }
        }
    }
}
