//! Reads the folders of explorations: coverage and findings, as evidence for the benefit of checks.

use everett_report::LineCoverage;
use everett_report::counted;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

use crate::benefit::Explored;
use crate::error::{Error, FileContext, Result};
use crate::files;

/// Reads the coverage and findings of runs.
pub fn explored(runs: &[PathBuf]) -> Result<Explored> {
    let mut explored = Explored {
        coverage: LineCoverage::default(),
        complete: LineCoverage::default(),
        findings: Vec::new(),
        bounds: Vec::new(),
    };
    for run in runs {
        let summary: Value = files::read(&run.join("summary.json"))?;
        let path = run.join("coverage.lcov");
        let text = fs::read_to_string(&path).context("read", &path)?;
        let coverage = LineCoverage::from_lcov(&text).map_err(|error| Error::Form {
            path,
            message: error.to_string(),
        })?;
        explored.coverage.merge(&coverage);
        let is_complete = is_complete(&summary);
        if is_complete {
            explored.complete.merge(&coverage);
        }
        explored.bounds.push(bounds(run, &summary, is_complete));
        explored.findings.extend(findings(&summary));
    }
    Ok(explored)
}

/// Returns whether a run has explored everything, without refused operations.
fn is_complete(summary: &Value) -> bool {
    let is_empty = |key: &str| summary[key].as_array().is_none_or(Vec::is_empty);
    summary["complete"] == true && is_empty("unsupported")
}

fn bounds(run: &Path, summary: &Value, is_complete: bool) -> String {
    let run = run.display();
    let paths = counted(&summary["paths"]["completed"], "path");
    if is_complete {
        return format!(
            "exploration {run}: complete, {paths}; it speaks of its own inputs, hosts and faults only"
        );
    }
    let limits = summary["limits_hit"].as_array().into_iter().flatten();
    let limits: Vec<&str> = limits.filter_map(Value::as_str).collect();
    let why = match limits.is_empty() {
        true => summary["stopped"].as_str().unwrap_or("stopped").to_owned(),
        false => limits.join(", "),
    };
    format!(
        "exploration {run}: not complete ({why}), {paths}; what it reached keeps half of its benefit"
    )
}

/// Returns the locations of findings: of every object that has a file and a line.
fn findings(summary: &Value) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut pending = vec![&summary["findings"]];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(values) => pending.extend(values),
            Value::Object(object) => {
                let file = object.get("file").and_then(Value::as_str);
                let line = object.get("line").and_then(Value::as_u64);
                if let (Some(file), Some(line)) = (file, line) {
                    found.push((file.to_owned(), line as u32));
                }
                pending.extend(object.values());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn runs_are_read_with_their_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str, summary: Value| {
            let run = folder.path().join(name);
            fs::create_dir(&run).unwrap();
            fs::write(run.join("summary.json"), summary.to_string()).unwrap();
            let mut coverage = LineCoverage::default();
            coverage.add(&format!("/{name}.c"), 1, "f", true);
            fs::write(run.join("coverage.lcov"), coverage.to_lcov()).unwrap();
            run
        };
        let paths = json!({ "completed": 7 });
        let place = json!({ "file": "/a.c", "line": 5 });
        let findings = json!([{ "kind": "x", "stack": [place] }]);
        let runs = [
            run(
                "a",
                json!({ "complete": true, "paths": paths, "findings": findings }),
            ),
            run(
                "b",
                json!({ "complete": false, "paths": paths, "limits_hit": ["time"] }),
            ),
            run(
                "c",
                json!({ "complete": true, "paths": paths, "unsupported": [1] }),
            ),
        ];
        let explored = explored(&runs).unwrap();
        let files = |coverage: &LineCoverage| coverage.files().count();
        assert_eq!(
            (files(&explored.coverage), files(&explored.complete)),
            (3, 1)
        );
        assert_eq!(explored.findings, [("/a.c".to_owned(), 5)]);
        assert!(explored.bounds[0].contains("complete, 7 paths"));
        assert!(explored.bounds[1].contains("not complete (time)"));
    }
}
