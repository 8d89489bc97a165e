//! The query cache: answers to equal queries, models that satisfy other queries, and cores that
//! other queries contain. Keys are term ids, so it is valid until terms are swept from the arena.

use crate::constraints::Group;
use crate::model::Model;
use everett_expr::{Arena, EvalScratch, ExprId, Variable};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum size of a table; it is cleared beyond that.
const MAX_ANSWERS: usize = 1 << 17;
const MAX_CONDITIONS_WITH_CORES: usize = 1 << 15;
const MAX_CORES_EACH: usize = 8;
const RECENT_SOLUTIONS: usize = 12;
/// Maximum number of terms evaluated for one candidate model.
const MAX_EVALUATIONS: usize = 64;

/// Values of the variables of a slice.
pub type Solution = Arc<[(Variable, u8)]>;

#[derive(Clone)]
pub enum CachedAnswer {
    Sat(Solution),
    Unsat,
}

/// The question whether a condition can hold together with groups of constraints.
pub struct Query<'a> {
    pub groups: &'a [&'a Group],
    pub condition: ExprId,
}

impl Query<'_> {
    fn key(&self) -> (u128, ExprId) {
        let sum = self
            .groups
            .iter()
            .fold(0u128, |sum, group| sum.wrapping_add(group.hash));
        (sum, self.condition)
    }

    /// Returns all terms that must hold, the condition last.
    pub fn terms(&self) -> impl Iterator<Item = ExprId> + '_ {
        let constraints = self
            .groups
            .iter()
            .flat_map(|group| group.ordered.iter().copied());
        constraints.chain(std::iter::once(self.condition))
    }

    pub fn has_constraint(&self, e: ExprId) -> bool {
        self.groups
            .iter()
            .any(|group| group.sorted.binary_search(&e).is_ok())
    }
}

/// A model, and the terms known to hold under it.
struct Witness {
    satisfied: Vec<ExprId>,
    model: Model,
}

#[derive(Default)]
pub struct Cache {
    answers: FxHashMap<(u128, ExprId), CachedAnswer>,
    /// For a condition, sets of constraints that contradict it.
    cores: FxHashMap<ExprId, Vec<Box<[ExprId]>>>,
    /// Recent models, the most recent first.
    witnesses: VecDeque<Witness>,
    scratch: EvalScratch,
}

impl Cache {
    pub fn clear(&mut self) {
        self.answers.clear();
        self.cores.clear();
        self.witnesses.clear();
    }

    pub fn answer(&self, query: &Query<'_>) -> Option<&CachedAnswer> {
        self.answers.get(&query.key())
    }

    pub fn contains_core(&self, query: &Query<'_>) -> bool {
        self.cores.get(&query.condition).is_some_and(|cores| {
            cores
                .iter()
                .any(|core| core.iter().all(|&e| query.has_constraint(e)))
        })
    }

    /// Returns a recent model that satisfies the whole query.
    pub fn fitting_model(&mut self, arena: &Arena, query: &Query<'_>) -> Option<Model> {
        let scratch = &mut self.scratch;
        let found = self.witnesses.iter().position(|witness| {
            arena.eval_bool(query.condition, &witness.model, scratch)
                && fits(arena, query, witness, scratch)
        })?;
        Some(self.witnesses[found].model.clone())
    }

    pub fn remember_sat(&mut self, query: &Query<'_>, solution: Solution, model: &Model) {
        let mut satisfied: Vec<ExprId> = query.terms().collect();
        satisfied.sort_unstable();
        self.witnesses.truncate(RECENT_SOLUTIONS - 1);
        self.witnesses.push_front(Witness {
            satisfied,
            model: model.clone(),
        });
        self.remember(query, CachedAnswer::Sat(solution));
    }

    pub fn remember_unsat(&mut self, query: &Query<'_>, core: Option<Box<[ExprId]>>) {
        if let Some(core) = core {
            if self.cores.len() >= MAX_CONDITIONS_WITH_CORES {
                self.cores.clear();
            }
            let cores = self.cores.entry(query.condition).or_default();
            if cores.len() >= MAX_CORES_EACH {
                cores.remove(0);
            }
            cores.push(core);
        }
        self.remember(query, CachedAnswer::Unsat);
    }

    fn remember(&mut self, query: &Query<'_>, answer: CachedAnswer) {
        if self.answers.len() >= MAX_ANSWERS {
            self.answers.clear();
        }
        self.answers.insert(query.key(), answer);
    }
}

/// Returns whether the constraints hold under the witness's model. Evaluates only those not known
/// to hold.
fn fits(arena: &Arena, query: &Query<'_>, witness: &Witness, scratch: &mut EvalScratch) -> bool {
    let mut evaluations = 0;
    query.groups.iter().all(|group| {
        let mut known = witness.satisfied.iter().peekable();
        group.sorted.iter().all(|e| {
            while known.next_if(|&satisfied| satisfied < e).is_some() {}
            if known.peek() == Some(&e) {
                return true;
            }
            evaluations += 1;
            evaluations <= MAX_EVALUATIONS && arena.eval_bool(*e, &witness.model, scratch)
        })
    })
}
