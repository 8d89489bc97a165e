//! The oracle: the only source of nondeterminism.
//!
//! The vm and the kernel model never call a solver and never draw a random number: they ask an
//! [`Oracle`]. An instruction or system call asks all its questions before it changes anything. A
//! question with more than one answer suspends it; it restarts once for each answer.

use everett_expr::{Arena, ArrayId, ExprId};

use crate::choice::ChoiceSite;
use crate::outside::{OutsideAnswer, OutsideQuestion};
use crate::stacks::CallSite;

/// The question has several answers: leave everything as it is and run again when told.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Suspend;

/// What [`Oracle::narrow`] tells about a term.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Narrowed {
    /// It has this value.
    Value(u64),
    /// Its least and greatest values.
    Range(u64, u64),
}

/// Answers questions about what is not determined.
pub trait Oracle {
    /// Says where in the program the questions to come are asked.
    fn asks_from(&mut self, _site: CallSite) {}

    /// Whether this condition holds. If both answers are feasible, both are explored.
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// The value of a term of at most 64 bits. All feasible values are explored.
    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend>;

    /// The least and the greatest value that the path condition leaves a term of at most 64 bits,
    /// both exact, if these are `few`; else its value, as `concretize` tells it.
    fn narrow(
        &mut self,
        arena: &mut Arena,
        term: ExprId,
        _few: &dyn Fn((u64, u64)) -> bool,
    ) -> Result<Narrowed, Suspend> {
        self.concretize(arena, term).map(Narrowed::Value)
    }

    /// One of `0 .. alternatives`. All are explored.
    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend>;

    /// Says which threads the alternatives of the next choice are, by their thread numbers.
    fn offer_threads(&mut self, _threads: &[u32]) {}

    /// Adds the condition to the path condition. Returns `false` if the path is then infeasible.
    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// Creates a symbolic input. The oracle makes its name unique.
    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend>;

    /// Adds a soft constraint: prefer inputs for which the condition holds.
    fn prefer(&mut self, arena: &mut Arena, condition: ExprId);

    /// Switches forks on data off or on again: while they are off, a question about data has one
    /// answer, and the others are not explored.
    fn set_forking(&mut self, _on: bool) {}

    /// The program opens a region whose paths are to be merged where it closes it.
    fn open_merge(&mut self) -> Result<(), Suspend> {
        Ok(())
    }

    /// The program closes the region that it opened last.
    fn close_merge(&mut self) -> Result<(), Suspend> {
        Ok(())
    }

    /// What a live peer does next.
    fn outside(&mut self, question: &OutsideQuestion<'_>) -> Result<OutsideAnswer, Suspend> {
        Ok(Err(format!("nothing answers for peer {}", question.peer)))
    }

    /// The instruction has completed: forget the answers given to it.
    fn commit(&mut self);
}

/// An oracle for runs without symbolic data.
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

/// Evaluates a term with all inputs zero.
fn evaluate_with_zeros(arena: &mut Arena, term: ExprId) -> u64 {
    arena.eval(
        term,
        &|_: everett_expr::ArrayId, _: u32| 0u8,
        &mut everett_expr::EvalScratch::new(),
    )
}
