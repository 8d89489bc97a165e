//! The log of slow queries, as SMT-LIB files.

use crate::cache::Query;
use crate::chain::Verdict;
use crate::config::SolverError;
use crate::smt;
use everett_expr::{Arena, ExprId};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

pub struct QueryLog {
    directory: PathBuf,
    written: u32,
}

impl QueryLog {
    pub fn new(directory: PathBuf) -> Result<QueryLog, SolverError> {
        match fs::create_dir_all(&directory) {
            Ok(()) => Ok(QueryLog {
                directory,
                written: 0,
            }),
            Err(reason) => Err(SolverError::LogDirectory { directory, reason }),
        }
    }

    /// Writes a query. Ignores write errors: a full disk must not stop the search.
    pub fn write(&mut self, arena: &Arena, query: &Query<'_>, verdict: &Verdict, taken: Duration) {
        let terms: Vec<ExprId> = query.terms().collect();
        let status = match verdict {
            Verdict::Sat(_) => "sat",
            Verdict::Unsat => "unsat",
            Verdict::Unknown(_) => "unknown",
        };
        let milliseconds = taken.as_millis();
        let text = format!(
            "; {milliseconds} ms\n(set-info :status {status})\n{}(check-sat)\n",
            smt::script(arena, &terms).text
        );
        let name = format!("query-{:06}-{milliseconds}ms.smt2", self.written);
        self.written += 1;
        let _ = fs::write(self.directory.join(name), text);
    }
}
