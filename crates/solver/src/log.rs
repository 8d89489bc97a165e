//! The log of queries, as SMT-LIB files. If all queries are logged, their encoded terms are
//! written, too.

use everett_expr::{Arena, ExprId, codec};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::Query;
use crate::config::{Layer, SolverError};
use crate::smt;
use crate::verdict::Verdict;

/// A folder to which queries are written.
pub struct QueryLog {
    directory: PathBuf,
    /// Minimum time of a query that is written.
    slowest: Duration,
    with_terms: bool,
    written: u32,
}

impl QueryLog {
    /// Creates the log of queries that take at least a given time.
    pub fn of_slow(directory: PathBuf, slowest: Duration) -> Result<QueryLog, SolverError> {
        QueryLog::new(directory, slowest, false)
    }

    /// Creates the log of all queries that no cheap layer answers.
    pub fn of_all(directory: PathBuf) -> Result<QueryLog, SolverError> {
        QueryLog::new(directory, Duration::ZERO, true)
    }

    fn new(
        directory: PathBuf,
        slowest: Duration,
        with_terms: bool,
    ) -> Result<QueryLog, SolverError> {
        match fs::create_dir_all(&directory) {
            Ok(()) => Ok(QueryLog {
                directory,
                slowest,
                with_terms,
                written: 0,
            }),
            Err(reason) => Err(SolverError::LogDirectory { directory, reason }),
        }
    }

    /// Writes a query. Ignores write errors: a full disk must not stop the search.
    pub fn write(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        verdict: &Verdict,
        layer: Layer,
        taken: Duration,
    ) {
        if taken < self.slowest {
            return;
        }
        let terms: Vec<ExprId> = query.terms().collect();
        let status = match verdict {
            Verdict::Sat(_) => "sat",
            Verdict::Unsat => "unsat",
            Verdict::Unknown(_) => "unknown",
        };
        let text = format!(
            "; {layer:?}, {} us\n(set-info :status {status})\n{}(check-sat)\n",
            taken.as_micros(),
            smt::script(arena, &terms).text
        );
        // Several workers may write to the same folder.
        while self.written < u32::MAX {
            let path = self
                .directory
                .join(format!("query-{:06}.smt2", self.written));
            self.written += 1;
            match File::create_new(&path) {
                Ok(mut file) => {
                    let _ = file.write_all(text.as_bytes());
                    self.write_terms(arena, &terms, &path);
                    return;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => return,
            }
        }
    }

    fn write_terms(&self, arena: &Arena, terms: &[ExprId], beside: &Path) {
        if self.with_terms {
            let _ = fs::write(beside.with_extension("terms"), codec::encode(arena, terms));
        }
    }
}
