//! The one door through which nondeterminism comes.
//!
//! The vm and the kernel model never ask a solver and never draw a random number: they ask an [`Oracle`].
//! All questions of an instruction or system call are asked before it changes anything. A question
//! that has more than one answer suspends it; it runs again from the start once for each answer.

use everett_expr::{Arena, ArrayId, ExprId};

use crate::choice::ChoiceSite;

/// The question has several answers: leave everything as it is and run again when told.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Suspend;

/// Answers questions about what is not determined.
pub trait Oracle {
    /// Is this bit set? Both answers are explored where both are possible.
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// The value of a term of at most 64 bits. All possible ones are explored.
    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend>;

    /// One of `0 .. alternatives`. All are explored.
    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend>;

    /// From here on the condition holds. `false` if it cannot.
    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// Makes a new symbolic input. Names are made unique by the oracle.
    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend>;

    /// Where several inputs lead the same way, prefer one for which this holds.
    fn prefer(&mut self, arena: &mut Arena, condition: ExprId);

    /// The instruction that asked is done: forget its answers.
    fn commit(&mut self);
}

/// For runs without symbolic data: nothing is ever asked of it.
#[derive(Default, Debug)]
pub struct ConcreteOracle {
    inputs: u32,
}

impl Oracle for ConcreteOracle {
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(evaluate_with_zeros(arena, condition) != 0)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        Ok(evaluate_with_zeros(arena, term))
    }

    fn choose(&mut self, _site: &ChoiceSite, _alternatives: u32) -> Result<u32, Suspend> {
        Ok(0)
    }

    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(evaluate_with_zeros(arena, condition) != 0)
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        self.inputs += 1;
        Ok(arena.array(self.inputs - 1, name, size))
    }

    fn prefer(&mut self, _arena: &mut Arena, _condition: ExprId) {}

    fn commit(&mut self) {}
}

/// A run without exploration takes zero for every symbolic byte.
fn evaluate_with_zeros(arena: &mut Arena, term: ExprId) -> u64 {
    arena.eval(
        term,
        &|_: everett_expr::ArrayId, _: u32| 0u8,
        &mut everett_expr::EvalScratch::new(),
    )
}
