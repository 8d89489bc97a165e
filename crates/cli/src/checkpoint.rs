//! What is kept of a run that was stopped, so that `everett resume` goes on where it was.

use anyhow::{Context, Result, bail};
use everett_engine::{
    Explorer, Pending, SharedList, ShelfId, Trace, TraceChoice, TraceInput, Unexplored, WeightSum,
};
use everett_report::Folder;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::output::{FindingEntry, Recorder};

const FILE: &str = "checkpoint.json";
/// Far more forks than a path has: adding up weights takes a bit for each.
const MOST_HALVINGS: u32 = 1 << 24;

/// A run that was stopped.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    /// Parts of the inputs of states, each once.
    inputs: Blocks<TraceInput>,
    /// Parts of the choices of states, each once.
    choices: Blocks<TraceChoice>,
    /// States that are still to be explored.
    pending: Vec<StoredState>,
    /// States that were put away, in the shelf beside this.
    away: Vec<ShelfId>,
    /// Findings so far.
    pub findings: Vec<FindingEntry>,
    /// Tests written so far.
    pub tests: u64,
    /// Time used so far.
    pub wall_seconds: f64,
    finished: String,
    unknown: String,
    instructions: u64,
    replayed: u64,
    forks: u64,
    paths_completed: u64,
    paths_partial: u64,
    states_peak: u64,
    put_away: u64,
    #[serde(default)]
    faults: BTreeMap<String, u64>,
    /// Segments that were executed, one digit each.
    covered: String,
}

impl Checkpoint {
    /// What to keep of a run.
    pub fn of(explorer: &Explorer<'_>, recorder: &Recorder, wall: Duration) -> Checkpoint {
        Checkpoint::with(explorer.pending(), explorer, recorder, wall)
    }

    /// The same with this to be explored.
    pub fn with(
        unexplored: Unexplored,
        explorer: &Explorer<'_>,
        recorder: &Recorder,
        wall: Duration,
    ) -> Checkpoint {
        let Unexplored { traces, away } = unexplored;
        let (mut inputs, mut choices) = (BlockTable::default(), BlockTable::default());
        let stored = |trace: &Trace| StoredState {
            inputs: inputs.numbers(&trace.inputs),
            choices: choices.numbers(&trace.choices),
            pending: trace.pending.clone(),
        };
        let pending = traces.iter().map(stored).collect();
        let statistics = explorer.statistics();
        Checkpoint {
            inputs: inputs.blocks,
            choices: choices.blocks,
            pending,
            away,
            findings: recorder.findings.clone(),
            tests: recorder.tests,
            wall_seconds: wall.as_secs_f64(),
            finished: statistics.finished.to_hex(),
            unknown: statistics.unknown.to_hex(),
            instructions: statistics.instructions,
            replayed: statistics.replayed,
            forks: statistics.forks,
            paths_completed: statistics.paths_completed,
            paths_partial: statistics.paths_partial,
            states_peak: statistics.states_peak,
            put_away: statistics.put_away,
            faults: statistics.faults.clone(),
            covered: explorer
                .coverage()
                .segments
                .iter()
                .map(|mark| if *mark == 0 { '0' } else { '1' })
                .collect(),
        }
    }

    /// How many segments the program had.
    pub fn segments(&self) -> usize {
        self.covered.len()
    }

    /// The text of the file.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Writes it.
    pub fn write(&self, folder: &Folder) -> Result<()> {
        Ok(folder.write(FILE, &self.to_json()?)?)
    }

    /// What is still to be explored.
    pub fn unexplored(&self) -> Result<Unexplored> {
        let trace = |state: &StoredState| {
            Ok(Trace {
                inputs: self.inputs.list(&state.inputs)?,
                choices: self.choices.list(&state.choices)?,
                pending: state.pending.clone(),
                end: None,
            })
        };
        Ok(Unexplored {
            traces: self.pending.iter().map(trace).collect::<Result<_>>()?,
            away: self.away.clone(),
        })
    }

    /// Reads it.
    pub fn read(dir: &Path) -> Result<Checkpoint> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).with_context(|| {
            format!(
                "{} has nothing to go on with: the run is at its end",
                dir.display()
            )
        })?;
        let checkpoint: Checkpoint = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        checkpoint
            .check()
            .with_context(|| format!("{} is damaged", path.display()))?;
        Ok(checkpoint)
    }

    /// Looks for numbers that no run can have.
    fn check(&self) -> Result<()> {
        for weight in [&self.finished, &self.unknown] {
            WeightSum::from_hex(weight).context("a weight is no number")?;
        }
        Duration::try_from_secs_f64(self.wall_seconds).context("the time is no time")?;
        let pending = self.pending.iter().filter_map(|at| at.pending.as_ref());
        let halvings = pending.map(|at| at.halvings);
        let mut halvings = halvings.chain(self.away.iter().map(|at| at.halvings));
        if halvings.any(|halvings| halvings > MOST_HALVINGS) {
            bail!("a state has a weight that is too small");
        }
        self.unexplored().map(|_| ())
    }

    /// Removes it: the run is at its end.
    pub fn remove(dir: &Path) -> Result<()> {
        for name in [FILE, "shelf"] {
            match std::fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).context(format!("cannot remove {name}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives an explorer the counts of the earlier run.
    pub fn restore(&self, explorer: &mut Explorer<'_>) {
        for (mark, digit) in explorer
            .coverage_mut()
            .segments
            .iter_mut()
            .zip(self.covered.chars())
        {
            *mark = u8::from(digit == '1');
        }
        for finding in &self.findings {
            let (kind, file) = (finding.kind.clone(), finding.file.clone());
            explorer
                .findings_mut()
                .count((kind, file, finding.line, finding.function.clone()));
        }
        let statistics = explorer.statistics_mut();
        statistics.finished = WeightSum::from_hex(&self.finished).unwrap_or_default();
        statistics.unknown = WeightSum::from_hex(&self.unknown).unwrap_or_default();
        statistics.instructions = self.instructions;
        statistics.replayed = self.replayed;
        statistics.forks = self.forks;
        statistics.paths_completed = self.paths_completed;
        statistics.paths_partial = self.paths_partial;
        statistics.states_peak = self.states_peak;
        statistics.put_away = self.put_away;
        statistics.faults = self.faults.clone();
    }
}

/// A state that is still to be explored: numbers of blocks, and where it stands.
#[derive(Serialize, Deserialize)]
struct StoredState {
    inputs: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<u32>,
    pending: Option<Pending>,
}

/// Parts that lists have in common.
struct Blocks<T>(Vec<Arc<Vec<T>>>);

impl<T> Blocks<T> {
    fn list(&self, numbers: &[u32]) -> Result<SharedList<T>> {
        let block = |number: &u32| self.0.get(*number as usize).cloned();
        let blocks: Option<Vec<_>> = numbers.iter().map(block).collect();
        blocks
            .and_then(SharedList::from_blocks)
            .context("a state refers to what is not there")
    }
}

impl<T: Serialize> Serialize for Blocks<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|block| &**block))
    }
}

impl<'d, T: Deserialize<'d>> Deserialize<'d> for Blocks<T> {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        let blocks = Vec::<Vec<T>>::deserialize(from)?;
        Ok(Blocks(blocks.into_iter().map(Arc::new).collect()))
    }
}

/// Numbers blocks as they come up. It holds them, so none of them moves meanwhile.
struct BlockTable<T> {
    blocks: Blocks<T>,
    numbers: HashMap<usize, u32>,
}

impl<T> Default for BlockTable<T> {
    fn default() -> Self {
        BlockTable {
            blocks: Blocks(Vec::new()),
            numbers: HashMap::new(),
        }
    }
}

impl<T> BlockTable<T> {
    fn numbers(&mut self, list: &SharedList<T>) -> Vec<u32> {
        let number = |block: &Arc<Vec<T>>| {
            let number = self.numbers.entry(Arc::as_ptr(block) as usize);
            *number.or_insert_with(|| {
                self.blocks.0.push(block.clone());
                self.blocks.0.len() as u32 - 1
            })
        };
        list.blocks().map(number).collect()
    }
}
