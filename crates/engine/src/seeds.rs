//! Seeds: inputs that a search follows first. A state knows which seeds take its way, so all seeds
//! together explore each way once. Owns their values and how they part at forks; must not know
//! searchers.

use everett_expr::{Arena, EvalScratch, ExprId};
use everett_sim::SharedList;
use everett_solver::Model;
use std::sync::Arc;

use crate::input::Input;
use crate::trace::TraceInput;

/// A seed.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The inputs, by name.
    pub inputs: Arc<[TraceInput]>,
    /// An input whose name the seed lacks gets the value at its position, as in KLEE.
    pub in_order: bool,
}

impl Seed {
    /// Returns the value of an input of a path, by its position among all.
    fn value_of(&self, inputs: &SharedList<Input>, position: usize) -> Option<&TraceInput> {
        let input = inputs.iter().nth(position)?;
        let named = self.inputs.iter().find(|one| one.name == input.name);
        // What belongs to another input by its name is not used twice.
        let is_free = |one: &&TraceInput| inputs.iter().all(|input| input.name != one.name);
        let next = || self.inputs.get(position).filter(is_free);
        named.or_else(|| next().filter(|_| self.in_order))
    }
}

/// The seeds that take the way of a path. All of them fulfil the path condition.
#[derive(Clone, Default)]
pub struct Seeds {
    /// The number of each seed, and the values of the inputs so far.
    seeds: Vec<(u32, Model)>,
    /// The number of inputs that have values.
    given: usize,
}

impl Seeds {
    /// Returns the seeds with these numbers. They get values later ([`Seeds::give`]).
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Seeds {
        let numbers = numbers.into_iter();
        Seeds {
            seeds: numbers.map(|number| (number, Model::default())).collect(),
            given: 0,
        }
    }

    /// Returns whether no seed takes this way.
    pub fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }

    /// Returns the numbers of the seeds.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.seeds.iter().map(|(number, _)| *number)
    }

    /// Returns the values of the first seed, which the path takes.
    pub fn model(&self) -> Option<&Model> {
        Some(&self.seeds.first()?.1)
    }

    /// Gives new inputs their values in each seed. What a seed has no value for is 0, and what is
    /// too long for the input is ignored.
    pub fn give(&mut self, all: &[Seed], inputs: &SharedList<Input>) {
        for (position, input) in inputs.iter().enumerate().skip(self.given) {
            for (number, model) in &mut self.seeds {
                let seed = all.get(*number as usize);
                let given = seed.and_then(|seed| seed.value_of(inputs, position));
                let bytes = given.map_or(&[][..], |one| &one.bytes);
                let values = bytes.iter().take(input.size as usize).zip(0..);
                *model = model.with(values.map(|(byte, at)| (input.array, at, *byte)));
            }
        }
        self.given = inputs.len();
    }

    /// Returns the values of a seed for which a term has another value than this one.
    pub fn other(
        &self,
        arena: &Arena,
        (term, value): (ExprId, u64),
        scratch: &mut EvalScratch,
    ) -> Option<Model> {
        let differs = |(_, model): &&(u32, Model)| arena.eval(term, model, scratch) != value;
        Some(self.seeds.iter().find(differs)?.1.clone())
    }

    /// Keeps the seeds that fulfil a condition.
    pub fn keep(&mut self, arena: &Arena, condition: ExprId, scratch: &mut EvalScratch) {
        self.seeds
            .retain(|(_, model)| arena.eval(condition, model, scratch) != 0);
    }
}
