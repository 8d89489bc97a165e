//! The oracle: the only source of nondeterminism.
//!
//! The vm and the kernel model never call a solver and never draw a random number: they ask an
//! [`Oracle`]. An instruction or system call asks all its questions before it changes the state. A
//! question with more than one feasible answer suspends it, and the state forks; the instruction
//! restarts once for each answer.

use everett_expr::{Arena, ArrayId, ExprId};

use crate::choice::ChoiceSite;
use crate::outside::{OutsideAnswer, OutsideQuestion};
use crate::stacks::CallSite;

/// The question has several answers: the caller leaves the state unchanged and runs again when it
/// is resumed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Suspend;

/// The result of [`Oracle::narrow`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Narrowed {
    /// The term has this value.
    Value(u64),
    /// The least and greatest values of the term.
    Range(u64, u64),
}

/// What a program has to say to the user of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// A warning.
    Warning(String),
    /// A warning that is shown once.
    WarningOnce(String),
    /// Any other text.
    Text(String),
}

/// Answers questions whose answer the state does not determine.
pub trait Oracle {
    /// Sets the program location of the questions that follow.
    fn asks_from(&mut self, _site: CallSite) {}

    /// Returns whether [`Oracle::asks_along`] is called.
    fn wants_call_path(&self) -> bool {
        false
    }

    /// Sets the program location of the questions that follow, and a digest of the calls that led
    /// to the function. A recursive call leads to where the first one led.
    fn asks_along(&mut self, _site: CallSite, _path: u64) {}

    /// Decides a condition. If both answers are feasible, both are explored.
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// Concretises a term of at most 64 bits. All feasible values are explored.
    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend>;

    /// Returns the exact least and greatest values of a term of at most 64 bits under the path
    /// condition if that range is `few`, and otherwise its value, like `concretize`.
    fn narrow(
        &mut self,
        arena: &mut Arena,
        term: ExprId,
        _few: &dyn Fn((u64, u64)) -> bool,
    ) -> Result<Narrowed, Suspend> {
        self.concretize(arena, term).map(Narrowed::Value)
    }

    /// Chooses one of `0 .. alternatives`. All are explored.
    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend>;

    /// Returns whether the answer to a choice about a failing call depends on where it comes from.
    fn wants_origin(&self, _site: &ChoiceSite) -> bool {
        false
    }

    /// Sets where the call of the next choice comes from, innermost first, and its arguments without
    /// addresses.
    fn called_from(&mut self, _sites: Vec<CallSite>, _arguments: Vec<String>) {}

    /// Sets the thread numbers of the alternatives of the next choice.
    fn offer_threads(&mut self, _threads: &[u32]) {}

    /// Adds the condition to the path condition. Returns `false` if the path is then infeasible.
    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend>;

    /// Returns whether it is certain that the condition holds for no input of the path.
    fn is_excluded(&mut self, _arena: &mut Arena, _condition: ExprId) -> bool {
        false
    }

    /// Creates a symbolic input. The oracle makes its name unique.
    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend>;

    /// Adds a soft constraint: prefer inputs for which the condition holds.
    fn prefer(&mut self, arena: &mut Arena, condition: ExprId);

    /// Whether notes are kept. Where they are not, none needs to be made.
    fn keeps_notes(&self) -> bool {
        false
    }

    /// Notes what the program has to say to its user, if the instruction completes.
    fn note(&mut self, _note: Note) {}

    /// Disables or re-enables forks on data. While they are disabled, a question about data has one
    /// answer, and the others are not explored.
    fn set_forking(&mut self, _on: bool) {}

    /// The same for the operands of one operation on floats.
    fn set_forking_on_floats(&mut self, _on: bool) {}

    /// Opens a region of the program whose paths are merged where the program closes it.
    fn open_merge(&mut self) -> Result<(), Suspend> {
        Ok(())
    }

    /// Closes the region that was opened last.
    fn close_merge(&mut self) -> Result<(), Suspend> {
        Ok(())
    }

    /// Asks what a live peer does next.
    fn outside(&mut self, question: &OutsideQuestion<'_>) -> Result<OutsideAnswer, Suspend> {
        Ok(Err(format!("nothing answers for peer {}", question.peer)))
    }

    /// Notes that the instruction has completed, and discards the answers given to it.
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
