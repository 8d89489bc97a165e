//! The journal of a search: all results that it learned, in order, so that a stopped search can
//! continue. The course of a search is a function of its seed and of these results, so nothing else
//! is needed.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::results::{Isolation, Outcome};

/// The result of a scenario.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JournalEntry {
    /// The position of the scenario in the space.
    pub position: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The impact without new lines.
    pub repeatable: f64,
    /// The impact.
    pub impact: f64,
    /// The contributions to the impact.
    pub why: Vec<String>,
    /// Lines that no earlier run covered.
    pub new_lines: Vec<String>,
    /// Whether the fault happened, if that is known.
    pub injected: Option<bool>,
    /// The stack at the injection point.
    pub stack: Vec<String>,
    /// The arguments of the call that failed first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// The stack of the first crash, if there is also one at the injection point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crash: Vec<String>,
    /// The test, if it fails without any fault.
    pub fails_without: Option<String>,
    /// Whether cleanup failed.
    pub cleanup_failed: bool,
    /// How it was isolated.
    pub isolation: Isolation,
    /// The duration of the test.
    #[serde(default)]
    pub seconds: f64,
}

/// The identity of a journal: only the same search can continue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The name of the search algorithm.
    pub search: String,
    /// The seed.
    pub seed: u64,
    /// A digest of the configuration.
    pub digest: u64,
}

/// A journal.
pub(crate) struct Journal {
    file: File,
    /// The results learned earlier, in order.
    pub known: Vec<JournalEntry>,
}

impl Journal {
    /// Opens the journal of a folder, or creates it.
    pub(crate) fn open(folder: &Path, head: &Head) -> Result<Journal> {
        let path = folder.join("journal.jsonl");
        let mut known = Vec::new();
        let mut length = 0;
        if let Ok(file) = File::open(&path) {
            let mut reader = BufReader::new(file);
            let mut line = String::new();
            let mut is_first = true;
            // The last line may be incomplete if the search was killed. Its scenario runs again.
            while reader.read_line(&mut line).map_err(Error::reading(&path))? > 0
                && line.ends_with('\n')
            {
                if is_first {
                    let other: Head = match serde_json::from_str(&line) {
                        Ok(other) => other,
                        Err(source) => return Err(Error::Damaged { path, source }),
                    };
                    if other != *head {
                        return Err(Error::Usage(format!(
                            "{} has results of another search (or seed, or file); choose another `out`",
                            folder.display()
                        )));
                    }
                    is_first = false;
                } else {
                    match serde_json::from_str(&line) {
                        Ok(entry) => known.push(entry),
                        Err(source) => return Err(Error::Damaged { path, source }),
                    }
                }
                length += line.len() as u64;
                line.clear();
            }
        }
        let options = OpenOptions::new().create(true).append(true).open(&path);
        let file = options.map_err(Error::writing(&path))?;
        file.set_len(length).map_err(Error::writing(&path))?;
        let mut journal = Journal { file, known };
        if length == 0 {
            journal.line(head, &path)?;
        }
        Ok(journal)
    }

    fn line(&mut self, what: &impl Serialize, path: &Path) -> Result<()> {
        let mut line = serde_json::to_vec(what).unwrap_or_default();
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::writing(path))
    }

    /// Appends a result.
    pub(crate) fn add(&mut self, entry: &JournalEntry) -> Result<()> {
        self.line(entry, Path::new("journal.jsonl"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let head = Head {
            search: "guided".to_owned(),
            seed: 1,
            digest: 2,
        };
        let entry = JournalEntry {
            position: 7,
            ..JournalEntry::default()
        };
        Journal::open(folder.path(), &head)
            .unwrap()
            .add(&entry)
            .unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"position\": 8").unwrap();
        let mut again = Journal::open(folder.path(), &head).unwrap();
        assert_eq!(again.known, std::slice::from_ref(&entry));
        again.add(&entry).unwrap();
        assert_eq!(Journal::open(folder.path(), &head).unwrap().known.len(), 2);
        let other = Head { seed: 2, ..head };
        assert!(Journal::open(folder.path(), &other).is_err());
    }
}
