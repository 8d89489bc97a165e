//! `mapping.csv` and `mapping.svg`: the number of states and dstates of a search of worlds over
//! time.

use everett_engine::Explorer;
use everett_report::{Curve, Folder, Panel, plot};
use std::time::Duration;

use crate::error::Result;
use crate::session::Session;

/// Columns of `mapping.csv`.
const COLUMNS: &str = "seconds,virtual_seconds,states,virtual_states,dstates,states_total,forks,copied,united,memory_bytes\n";
/// The longest interval between two rows; at the beginning, rows are denser.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);
const LEAST_BETWEEN_SAMPLES: Duration = Duration::from_millis(1);

/// Draws a chart of `mapping.csv`.
fn picture(samples: &str) -> String {
    let column = |name: &str| -> Vec<f64> {
        let at = COLUMNS
            .trim_end()
            .split(',')
            .position(|other| other == name);
        let cell = |line: &str| line.split(',').nth(at?)?.parse().ok();
        samples.lines().skip(1).filter_map(cell).collect()
    };
    let panel = |title: &str, names: &[&str]| Panel {
        title: title.to_owned(),
        curves: names
            .iter()
            .map(|name| Curve {
                name: name.replace('_', " "),
                values: column(name),
            })
            .collect(),
    };
    let panels = [
        panel("states at a time", &["states", "virtual_states"]),
        panel("dstates at a time", &["dstates"]),
        panel(
            "states so far",
            &["states_total", "forks", "copied", "united"],
        ),
        panel("memory (bytes)", &["memory_bytes"]),
    ];
    plot(&column("seconds"), &panels)
}

/// Rows of `mapping.csv`.
pub(crate) struct Samples {
    rows: String,
    /// The time at which the next row is due.
    next: Duration,
}

impl Samples {
    /// Creates a table without rows.
    pub(crate) fn new() -> Samples {
        Samples {
            rows: COLUMNS.to_owned(),
            next: Duration::ZERO,
        }
    }

    /// Adds a row if it is due.
    pub(crate) fn tick(&mut self, worlds: &Explorer<'_>, session: &Session) {
        let now = session.now();
        if now >= self.next {
            self.next = now + (now / 100).clamp(LEAST_BETWEEN_SAMPLES, BETWEEN_SAMPLES);
            self.add(worlds, session);
        }
    }

    fn add(&mut self, worlds: &Explorer<'_>, session: &Session) {
        let counted = worlds.world_statistics();
        self.rows.push_str(&format!(
            "{:.3},{:.6},{},{},{},{},{},{},{},{}\n",
            session.now().as_secs_f64(),
            worlds.virtual_ns().unwrap_or(0) as f64 / 1e9,
            worlds.states(),
            worlds.table().virtual_states(),
            worlds.table().len(),
            counted.states_total(),
            worlds.statistics().forks,
            counted.copies,
            counted.merged,
            session.memory.used(),
        ));
    }

    /// Adds the last row and writes the files.
    pub(crate) fn write(
        &mut self,
        worlds: &Explorer<'_>,
        session: &Session,
        folder: &Folder,
    ) -> Result<()> {
        self.add(worlds, session);
        folder.write("mapping.csv", self.rows.as_bytes())?;
        Ok(folder.write("mapping.svg", picture(&self.rows).as_bytes())?)
    }
}
