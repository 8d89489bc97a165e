//! Line coverage in lcov's format.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines by file, and whether they were executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    files: BTreeMap<String, BTreeMap<u32, bool>>,
    /// Instructions with a line.
    pub instructions: u64,
    /// Those that were executed.
    pub instructions_covered: u64,
}

impl LineCoverage {
    /// Adds a line. It counts as executed if any of its parts was.
    pub fn add(&mut self, file: &str, line: u32, executed: bool) {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), BTreeMap::new());
        }
        if let Some(lines) = self.files.get_mut(file) {
            *lines.entry(line).or_insert(false) |= executed;
        }
    }

    /// Counts an instruction, if it is one of a line that counts.
    pub fn count_instruction(&mut self, counts: bool, executed: bool) {
        self.instructions += u64::from(counts);
        self.instructions_covered += u64::from(counts && executed);
    }

    /// The number of executed lines and of all lines.
    pub fn totals(&self) -> (usize, usize) {
        let lines = || self.files.values().flat_map(|lines| lines.values());
        (
            lines().filter(|executed| **executed).count(),
            lines().count(),
        )
    }

    /// The text of an lcov file.
    pub fn to_lcov(&self) -> String {
        let mut text = String::new();
        for (file, lines) in &self.files {
            let _ = writeln!(text, "TN:\nSF:{file}");
            for (line, executed) in lines {
                let _ = writeln!(text, "DA:{line},{}", u32::from(*executed));
            }
            let hit = lines.values().filter(|executed| **executed).count();
            let _ = writeln!(text, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_executed_by_one_of_its_parts_is_executed() {
        let mut coverage = LineCoverage::default();
        coverage.add("a.c", 3, false);
        coverage.add("a.c", 3, true);
        coverage.add("a.c", 3, false);
        coverage.add("a.c", 4, false);
        assert_eq!(coverage.totals(), (1, 2));
        assert_eq!(
            coverage.to_lcov(),
            "TN:\nSF:a.c\nDA:3,1\nDA:4,0\nLF:2\nLH:1\nend_of_record\n"
        );
    }
}
