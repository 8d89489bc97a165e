//! What a state knows about how it came to be: its condition, a model of it, its inputs and choices.

use everett_expr::{Arena, ArrayId, ExprId};
use everett_solver::{Constraints, Model};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::trace::{Pending, Trace, TraceChoice, TraceInput};
use crate::weight::Weight;

/// A symbolic input of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its name, unique on the path.
    pub name: Arc<str>,
    /// Its bytes.
    pub array: ArrayId,
    /// How many.
    pub size: u32,
}

/// An answer that was given to the instruction under way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To `branch` and `assume`.
    Bool(bool),
    /// To `concretize`.
    Value(u64),
    /// To `choose`.
    Choice(u32),
    /// To `input`.
    Input(ArrayId),
}

/// A trace that is being followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Choices used so far.
    pub choices_used: usize,
}

/// How a state came to be.
#[derive(Clone, Default)]
pub struct Path {
    /// What its inputs fulfil.
    pub constraints: Constraints,
    /// Inputs that fulfil it.
    pub model: Model,
    /// Inputs, in the order of their making.
    pub inputs: Arc<Vec<Input>>,
    /// Choices, in order.
    pub choices: Arc<Vec<TraceChoice>>,
    /// What tests should fulfil if they can.
    pub preferences: Arc<Vec<ExprId>>,
    /// Answers to the instruction under way.
    pub tape: SmallVec<[Answer; 2]>,
    /// Values of the next question that other states have taken.
    pub excluded: SmallVec<[u64; 1]>,
    /// They come from a trace, so that the condition does not exclude them yet.
    pub excluded_anew: bool,
    /// Questions answered since the start.
    pub answered: u64,
    /// Its part of the search.
    pub weight: Weight,
    /// Forks on the way.
    pub depth: u32,
    /// The trace that it follows, if it has not come to its end.
    pub follow: Option<Box<Follow>>,
    /// Following the trace went wrong: what was expected, what was seen.
    pub diverged: Option<String>,
}

impl Path {
    /// The start of a path that follows a trace as far as it goes.
    pub fn following(trace: Arc<Trace>) -> Path {
        let mut path = Path::default();
        if let Some(pending) = &trace.pending {
            path.weight = Weight {
                halvings: pending.halvings,
            };
            path.depth = pending.depth;
        }
        let at_its_end = trace
            .pending
            .as_ref()
            .is_some_and(|pending| pending.answered == 0);
        if at_its_end {
            path.excluded = trace
                .pending
                .iter()
                .flat_map(|pending| pending.excluded.iter().copied())
                .collect();
            path.excluded_anew = true;
        } else {
            path.follow = Some(Box::new(Follow {
                trace,
                choices_used: 0,
            }));
        }
        path
    }

    /// Notes an answer.
    pub fn answer(&mut self, answer: Answer) {
        self.tape.push(answer);
        self.answered += 1;
        self.excluded.clear();
        let Some(follow) = &self.follow else { return };
        let Some(pending) = &follow.trace.pending else {
            return;
        };
        if self.answered >= pending.answered {
            self.excluded = pending.excluded.iter().copied().collect();
            self.excluded_anew = true;
            self.follow = None;
        }
    }

    /// From here on this holds.
    pub fn constrain(&mut self, arena: &mut Arena, condition: ExprId) {
        self.constraints.add(arena, condition);
    }

    /// Makes the name of a new input unique as KLEE does: `x`, `x_1`, `x_2`.
    pub fn unique_name(&self, name: &str) -> String {
        let (mut is_taken, mut numbers) = (false, BTreeSet::new());
        for input in self.inputs.iter() {
            match input.name.strip_prefix(name) {
                Some("") => is_taken = true,
                Some(rest) => {
                    let digits = rest.strip_prefix('_').unwrap_or("");
                    numbers.extend(digits.parse::<u32>().ok());
                }
                None => {}
            }
        }
        if !is_taken {
            return name.to_owned();
        }
        let free = (1..).find(|number| !numbers.contains(number));
        format!("{name}_{}", free.unwrap_or(u32::MAX))
    }

    /// Inputs under a model.
    pub fn inputs_under(&self, model: &Model) -> Vec<TraceInput> {
        let bytes = |input: &Input| TraceInput {
            name: input.name.to_string(),
            bytes: model.bytes(input.array, input.size),
        };
        self.inputs.iter().map(bytes).collect()
    }

    /// The trace of a finished path under a model of its condition.
    pub fn trace_under(&self, model: &Model) -> Trace {
        let choices = (*self.choices).clone();
        Trace {
            inputs: self.inputs_under(model),
            choices,
            pending: None,
            end: None,
        }
    }

    /// The trace that leads back to where it stands.
    pub fn pending_trace(&self) -> Trace {
        // One that is still following an earlier trace stands where that one ends.
        if let Some(follow) = &self.follow {
            return (*follow.trace).clone();
        }
        let pending = Pending {
            answered: self.answered,
            excluded: self.excluded.to_vec(),
            halvings: self.weight.halvings,
            depth: self.depth,
        };
        Trace {
            pending: Some(pending),
            ..self.trace_under(&self.model)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inputs_get_the_first_free_number() {
        let mut arena = Arena::new();
        let mut path = Path::default();
        let mut names = Vec::new();
        for name in ["x", "x_2", "x", "x", "xy", "x", "y_1", "y", "y"] {
            let name = path.unique_name(name);
            let array = arena.array(names.len() as u32, &name, 1);
            let input = Input {
                name: name.as_str().into(),
                array,
                size: 1,
            };
            Arc::make_mut(&mut path.inputs).push(input);
            names.push(name);
        }
        let expected = ["x", "x_2", "x_1", "x_3", "xy", "x_4", "y_1", "y", "y_2"];
        assert_eq!(names, expected);
    }
}
