//! Coverage of lines, branches and functions in lcov's format.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines and functions by file, and whether they were executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    files: BTreeMap<String, FileCoverage>,
    /// Number of instructions with a line.
    pub instructions: u64,
    /// Number of these instructions that were executed.
    pub instructions_covered: u64,
}

/// The coverage of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCoverage {
    /// Lines, and whether they were executed.
    pub lines: BTreeMap<u32, bool>,
    /// Functions by name.
    pub functions: BTreeMap<String, FunctionCoverage>,
    /// Sides of branches and switches, by line, number of the branch in the line, and side. The
    /// value is whether the side was taken; `None` if the branch was never reached.
    pub branches: BTreeMap<(u32, u32, u32), Option<bool>>,
}

/// The coverage of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// The function's first line with code.
    pub line: u32,
    /// Whether a part of the function was executed.
    pub executed: bool,
}

/// Why a text is not coverage in lcov's format.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not coverage in lcov's format: line {line} is `{text}`")]
pub struct LcovError {
    line: usize,
    text: String,
}

impl FileCoverage {
    fn add_function(&mut self, name: &str, line: u32, executed: bool) {
        if !self.functions.contains_key(name) {
            let executed = false;
            self.functions
                .insert(name.to_owned(), FunctionCoverage { line, executed });
        }
        if let Some(function) = self.functions.get_mut(name) {
            function.line = function.line.min(line);
            function.executed |= executed;
        }
    }

    /// Returns the function to which a line belongs: the last one that begins at it or before it.
    fn function_of(&self, line: u32) -> Option<&str> {
        let begun = self
            .functions
            .iter()
            .filter(|(_, function)| function.line <= line);
        let last = begun.max_by_key(|(_, function)| function.line);
        last.map(|(name, _)| name.as_str())
    }

    /// Returns the number of executed lines and of all lines of a function.
    pub fn lines_of(&self, name: &str) -> (usize, usize) {
        let lines = self
            .lines
            .iter()
            .filter(|(line, _)| self.function_of(**line) == Some(name));
        let executed: Vec<bool> = lines.map(|(_, executed)| *executed).collect();
        (
            executed.iter().filter(|executed| **executed).count(),
            executed.len(),
        )
    }

    /// Returns the number of executed lines and of all lines.
    pub fn totals(&self) -> (usize, usize) {
        let hit = self.lines.values().filter(|executed| **executed).count();
        (hit, self.lines.len())
    }

    /// Returns the number of sides of branches that were taken, and of all sides.
    pub fn branch_totals(&self) -> (usize, usize) {
        let taken = self.branches.values().filter(|side| **side == Some(true));
        (taken.count(), self.branches.len())
    }

    fn add_side(&mut self, side: (u32, u32, u32), taken: Option<bool>) {
        let known = self.branches.entry(side).or_insert(taken);
        // The order is: never reached, not taken, taken.
        *known = (*known).max(taken);
    }

    /// Returns the number of executed functions and of all functions.
    pub fn function_totals(&self) -> (usize, usize) {
        let hit = self
            .functions
            .values()
            .filter(|function| function.executed)
            .count();
        (hit, self.functions.len())
    }
}

impl LineCoverage {
    fn file(&mut self, file: &str) -> &mut FileCoverage {
        self.files.entry(file.to_owned()).or_default()
    }

    /// Adds a line of a function; an empty name means no function. A line counts as executed if any
    /// of its parts was.
    pub fn add(&mut self, file: &str, line: u32, function: &str, executed: bool) {
        let file = self.file(file);
        *file.lines.entry(line).or_insert(false) |= executed;
        if !function.is_empty() {
            file.add_function(function, line, executed);
        }
    }

    /// Adds a conditional branch or a switch, after those of the line that were added before, with
    /// the sides that were taken.
    pub fn add_branch(&mut self, file: &str, line: u32, taken: &[bool]) {
        let file = self.file(file);
        let of_line = file
            .branches
            .range((line, 0, 0)..=(line, u32::MAX, u32::MAX));
        let number = of_line.last().map_or(0, |((_, number, _), _)| number + 1);
        let is_reached = taken.contains(&true);
        for (side, taken) in (0..).zip(taken) {
            file.add_side((line, number, side), is_reached.then_some(*taken));
        }
    }

    /// Counts an instruction, if its line counts.
    pub fn count_instruction(&mut self, counts: bool, executed: bool) {
        self.instructions += u64::from(counts);
        self.instructions_covered += u64::from(counts && executed);
    }

    /// Returns the files.
    pub fn files(&self) -> impl Iterator<Item = (&str, &FileCoverage)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file))
    }

    /// Adds the coverage of another run: code that one of them executed is covered.
    pub fn merge(&mut self, other: &LineCoverage) {
        for (name, added) in &other.files {
            let file = self.file(name);
            for (line, executed) in &added.lines {
                *file.lines.entry(*line).or_insert(false) |= executed;
            }
            for (name, function) in &added.functions {
                file.add_function(name, function.line, function.executed);
            }
            for (side, taken) in &added.branches {
                file.add_side(*side, *taken);
            }
        }
    }

    /// Keeps only the files whose paths end in one of these files, and the functions with one of
    /// these names. An empty list keeps all.
    pub fn choose(&mut self, files: &[String], functions: &[String]) {
        let is_chosen = |name: &String| files.iter().any(|end| is_path_end(name, end));
        self.files
            .retain(|name, _| files.is_empty() || is_chosen(name));
        if functions.is_empty() {
            return;
        }
        for file in self.files.values_mut() {
            let lines = file.lines.clone().into_iter();
            let lines = lines.filter(|(line, _)| {
                let function = file.function_of(*line);
                function.is_some_and(|name| functions.iter().any(|chosen| chosen == name))
            });
            let lines: BTreeMap<u32, bool> = lines.collect();
            let is_in = |line: u32| {
                let function = file.function_of(line);
                function.is_some_and(|name| functions.iter().any(|chosen| chosen == name))
            };
            let sides = file.branches.iter().filter(|((line, ..), _)| is_in(*line));
            file.branches = sides.map(|(side, taken)| (*side, *taken)).collect();
            file.lines = lines;
            file.functions.retain(|name, _| functions.contains(name));
        }
        self.files.retain(|_, file| !file.functions.is_empty());
    }

    /// Returns the number of executed lines and of all lines.
    pub fn totals(&self) -> (usize, usize) {
        sum(self.files.values().map(FileCoverage::totals))
    }

    /// Returns the number of executed functions and of all functions.
    pub fn function_totals(&self) -> (usize, usize) {
        sum(self.files.values().map(FileCoverage::function_totals))
    }

    /// Returns the number of sides of branches that were taken, and of all sides.
    pub fn branch_totals(&self) -> (usize, usize) {
        sum(self.files.values().map(FileCoverage::branch_totals))
    }

    /// Returns the text of an lcov file.
    pub fn to_lcov(&self) -> String {
        let mut text = String::new();
        for (name, file) in &self.files {
            let _ = writeln!(text, "TN:\nSF:{name}");
            let mut functions: Vec<_> = file.functions.iter().collect();
            functions.sort_by_key(|(_, function)| function.line);
            for (name, function) in &functions {
                let _ = writeln!(text, "FN:{},{name}", function.line);
            }
            for (name, function) in &functions {
                let _ = writeln!(text, "FNDA:{},{name}", u32::from(function.executed));
            }
            let (hit, all) = file.function_totals();
            let _ = writeln!(text, "FNF:{all}\nFNH:{hit}");
            for ((line, number, side), taken) in &file.branches {
                let taken = taken.map_or("-", |taken| if taken { "1" } else { "0" });
                let _ = writeln!(text, "BRDA:{line},{number},{side},{taken}");
            }
            let (hit, all) = file.branch_totals();
            let _ = writeln!(text, "BRF:{all}\nBRH:{hit}");
            for (line, executed) in &file.lines {
                let _ = writeln!(text, "DA:{line},{}", u32::from(*executed));
            }
            let (hit, all) = file.totals();
            let _ = writeln!(text, "LF:{all}\nLH:{hit}\nend_of_record");
        }
        text
    }

    /// Reads an lcov file. Records of other kinds are skipped.
    pub fn from_lcov(text: &str) -> Result<LineCoverage, LcovError> {
        let mut coverage = LineCoverage::default();
        let mut name = None;
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = || LcovError {
                line,
                text: text.to_owned(),
            };
            let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
            if kind == "SF" {
                name = Some(rest);
            }
            if !["DA", "FN", "FNDA", "BRDA"].contains(&kind) {
                continue;
            }
            let file = coverage.file(name.ok_or_else(wrong)?);
            let (number, rest) = rest.split_once(',').ok_or_else(wrong)?;
            let number: u32 = number.parse().map_err(|_| wrong())?;
            match kind {
                "FN" => file.add_function(rest, number, false),
                "FNDA" if number > 0 => {
                    let function = file.functions.get_mut(rest).ok_or_else(wrong)?;
                    function.executed = true;
                }
                "FNDA" => {}
                "BRDA" => {
                    let (side, taken) = parse_side(rest).ok_or_else(wrong)?;
                    file.add_side((number, side.0, side.1), taken);
                }
                _ => {
                    // The line may have a checksum.
                    let count = rest
                        .split(',')
                        .next()
                        .and_then(|count| count.parse::<u64>().ok());
                    *file.lines.entry(number).or_insert(false) |= count.ok_or_else(wrong)? > 0;
                }
            }
        }
        Ok(coverage)
    }
}

/// Reads `NUMBER,SIDE,TAKEN` of a branch.
fn parse_side(text: &str) -> Option<((u32, u32), Option<bool>)> {
    let mut words = text.split(',');
    // Some tools mark branches of exceptions with an `e`.
    let number = words.next()?.trim_start_matches('e').parse().ok()?;
    let side = words.next()?.parse().ok()?;
    let taken = match words.next()? {
        "-" => None,
        count => Some(count.parse::<u64>().ok()? > 0),
    };
    Some(((number, side), taken))
}

fn sum(parts: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

/// Returns whether a path ends in these whole parts.
fn is_path_end(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/') || end.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "TN:\nSF:/s/a.c\nFN:3,f\nFN:7,g\nFNDA:1,f\nFNDA:0,g\nFNF:2\nFNH:1\n\
                        BRDA:3,0,0,1\nBRDA:3,0,1,0\nBRDA:3,1,0,-\nBRDA:3,1,1,-\nBRF:4\nBRH:1\nDA:3,1\nDA:4,0\nDA:8,0\n\
                        LF:3\nLH:1\nend_of_record\n";

    fn example() -> LineCoverage {
        let mut coverage = LineCoverage::default();
        coverage.add("/s/a.c", 3, "f", false);
        coverage.add("/s/a.c", 3, "f", true);
        coverage.add_branch("/s/a.c", 3, &[true, false]);
        coverage.add_branch("/s/a.c", 3, &[false, false]);
        coverage.add("/s/a.c", 4, "f", false);
        coverage.add("/s/a.c", 8, "g", false);
        coverage.add("/s/a.c", 7, "g", false);
        coverage.files.get_mut("/s/a.c").unwrap().lines.remove(&7);
        coverage
    }

    #[test]
    fn a_line_executed_by_one_of_its_parts_is_executed() {
        assert_eq!(example().totals(), (1, 3));
        assert_eq!(example().function_totals(), (1, 2));
        assert_eq!(example().to_lcov(), TEXT);
        assert_eq!(LineCoverage::from_lcov(TEXT), Ok(example()));
    }

    #[test]
    fn runs_are_merged_and_parts_are_chosen() {
        let mut all = example();
        let mut other = LineCoverage::default();
        other.add("/s/a.c", 8, "g", true);
        other.add("/s/b.c", 1, "h", true);
        other.add_branch("/s/a.c", 3, &[false, true]);
        other.add_branch("/s/a.c", 8, &[false, true]);
        all.merge(&other);
        assert_eq!(all.branch_totals(), (3, 6));
        assert_eq!((all.totals(), all.function_totals()), ((3, 4), (3, 3)));
        let mut chosen = all.clone();
        chosen.choose(&["a.c".to_owned()], &["f".to_owned()]);
        assert_eq!(
            (chosen.totals(), chosen.function_totals()),
            ((1, 2), (1, 1))
        );
        assert_eq!(chosen.branch_totals(), (2, 4));
        let (_, file) = chosen.files().next().unwrap();
        assert_eq!(file.lines_of("f"), (1, 2));
        all.choose(&[".c".to_owned()], &[]);
        assert_eq!(all.totals(), (0, 0), "a part of a name is no file");
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_line() {
        for text in [
            "DA:3,1",
            "SF:a\nDA:3",
            "SF:a\nDA:x,1",
            "SF:a\nFNDA:1,f",
            "SF:a\nBRDA:1,0,0",
        ] {
            let line = text.lines().count();
            let error = LineCoverage::from_lcov(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
        }
    }
}
