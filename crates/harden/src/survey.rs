//! Counts how popular the configurations of an API are in source trees. A configuration is the name
//! of a function with the named constants in its arguments; other arguments are `any`. `open(path,
//! O_RDONLY)` is `open(any, O_RDONLY)`.

mod draw;
mod source;

pub use draw::{figure_csv, figure_svg, popularity_c};
pub use source::{Constants, configurations};

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext, Result};

/// The parameters of a survey.
#[derive(Clone, Debug, Default)]
pub struct SurveySpec {
    /// Source trees.
    pub sources: Vec<PathBuf>,
    /// Folders of headers with the constants of the API.
    pub headers: Vec<PathBuf>,
    /// The functions of the API; by default the system calls that the headers number.
    pub functions: Vec<String>,
    /// A file with a configuration that had a vulnerability on each line, for the figure.
    pub vulnerabilities: Option<PathBuf>,
    /// The folder for the results.
    pub out: PathBuf,
}

/// The results of a survey.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// Number of files that were read.
    pub files: u64,
    /// Number of occurrences of each configuration.
    pub configurations: BTreeMap<String, u64>,
    /// Configurations that had vulnerabilities.
    pub vulnerabilities: Vec<String>,
}

impl Survey {
    /// Returns the number of all calls.
    pub fn calls(&self) -> u64 {
        self.configurations.values().sum()
    }
}

/// The name of the file with the counts.
pub const COUNTS: &str = "popularity.csv";

/// Counts configurations, and writes the counts, the figure and the popularity as a C function.
pub fn survey(spec: &SurveySpec) -> Result<Survey> {
    for folder in spec.sources.iter().chain(&spec.headers) {
        fs::metadata(folder).context("read", folder)?;
    }
    let mut constants = Constants::default();
    for folder in &spec.headers {
        for path in files_below(folder, &["h"])? {
            let text = read_lossy(&path)?;
            let name = path.strip_prefix(folder).unwrap_or(&path);
            constants.add(&name.display().to_string(), &text);
        }
    }
    let functions: BTreeSet<String> = match spec.functions.is_empty() {
        true => constants.system_calls().map(str::to_owned).collect(),
        false => spec.functions.iter().cloned().collect(),
    };
    if functions.is_empty() {
        return Err(Error::Usage(
            "the headers number no system calls; name the functions of the API".to_owned(),
        ));
    }
    let mut survey = Survey::default();
    for folder in &spec.sources {
        for path in files_below(folder, &["c", "h", "cc", "cpp", "cxx", "hh", "hpp"])? {
            let text = read_lossy(&path)?;
            survey.files += 1;
            for configuration in configurations(&text, &functions, &constants) {
                *survey.configurations.entry(configuration).or_default() += 1;
            }
        }
    }
    if let Some(path) = &spec.vulnerabilities {
        let text = read_lossy(path)?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        survey.vulnerabilities = lines.map(str::to_owned).collect();
    }
    fs::create_dir_all(&spec.out).context("create", &spec.out)?;
    for (name, text) in [
        (COUNTS, counts_csv(&survey.configurations)),
        ("figure.csv", figure_csv(&survey)),
        ("figure.svg", figure_svg(&survey)),
        ("popularity.c", popularity_c(&survey, &constants)),
    ] {
        let path = spec.out.join(name);
        fs::write(&path, text).context("write", &path)?;
    }
    Ok(survey)
}

/// Returns the files below a folder with one of these extensions, in order.
fn files_below(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).context("read", &folder)? {
            let entry = entry.context("read", &folder)?;
            let kind = entry.file_type().context("look at", entry.path())?;
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() && extension.is_some_and(|one| extensions.contains(&one)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_lossy(path: &Path) -> Result<String> {
    let bytes = fs::read(path).context("read", path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Formats counts as CSV, most popular first.
fn counts_csv(configurations: &BTreeMap<String, u64>) -> String {
    let mut rows: Vec<(&String, &u64)> = configurations.iter().collect();
    rows.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut text = String::from("configuration,count\n");
    for (configuration, count) in rows {
        text.push_str(&format!("\"{configuration}\",{count}\n"));
    }
    text
}

/// Reads the counts of a survey, given its file or its folder.
pub fn read(path: &Path) -> Result<BTreeMap<String, u64>> {
    let path = match path.is_dir() {
        true => path.join(COUNTS),
        false => path.to_owned(),
    };
    let text = read_lossy(&path)?;
    let mut counts = BTreeMap::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let row = line
            .strip_prefix('"')
            .and_then(|rest| rest.rsplit_once("\","))
            .and_then(|(configuration, count)| Some((configuration, count.parse().ok()?)));
        let Some((configuration, count)) = row else {
            return Err(Error::Form {
                message: format!("line {} is not a row of a survey", number + 1),
                path,
            });
        };
        counts.insert(configuration.to_owned(), count);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_surveyed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "include/fcntl.h",
            "#define __NR_open 2\n#define __NR_close 3\n#define O_RDONLY 0\n#define O_CREAT 0100\n#define O_RDWR 2\n",
        );
        write(
            "src/a.c",
            "int f(void) { close(open(p, O_RDONLY)); return open(q, O_RDWR | O_CREAT, 0600); }\n",
        );
        write(
            "src/sub/b.c",
            "// open(p, O_RDONLY)\nvoid g(void) { x = open(p, O_RDONLY); }\n",
        );
        write("src/c.txt", "open(p, O_RDONLY)");
        write(
            "holes",
            "# known\nopen(any, O_CREAT|O_RDWR, any)\nopen(any, O_NEVER)\n",
        );
        let spec = SurveySpec {
            sources: vec![folder.path().join("src")],
            headers: vec![folder.path().join("include")],
            vulnerabilities: Some(folder.path().join("holes")),
            out: folder.path().join("out"),
            ..SurveySpec::default()
        };
        let found = survey(&spec).unwrap();
        assert_eq!((found.files, found.calls()), (2, 4));
        assert_eq!(found.configurations["open(any, O_RDONLY)"], 2);
        assert_eq!(found.configurations["open(any, O_CREAT|O_RDWR, any)"], 1);
        assert_eq!(read(&spec.out).unwrap(), found.configurations);
        let code = fs::read_to_string(spec.out.join("popularity.c")).unwrap();
        assert!(code.contains("#include <fcntl.h>"), "{code}");
        assert!(
            code.contains("if (arguments[1] == (O_CREAT|O_RDWR)) return 1;"),
            "{code}"
        );
        let figure = fs::read_to_string(spec.out.join("figure.csv")).unwrap();
        assert!(figure.starts_with("popularity,configurations,calls,vulnerabilities\n"));
    }
}
