//! Formulas over the bytes of a message: exact conditions on the message, and open ones,
//! which still contain client inputs.

use everett_expr::{ExprId, Variable};

/// A client predicate: the condition on a message that a client can send it.
#[derive(Clone, Debug, Default)]
pub struct Formula {
    /// Conditions on the message alone. All of them hold.
    pub exact: Vec<ExprId>,
    /// Conditions with client inputs. For each entry there are inputs that satisfy it.
    pub open: Vec<Open>,
}

/// Conditions on the message and on inputs that could not be eliminated.
#[derive(Clone, Debug)]
pub struct Open {
    /// All of these hold.
    pub conditions: Vec<ExprId>,
    /// The inputs that could not be eliminated.
    pub inputs: Vec<Variable>,
    /// Conditions on the message alone, each of which is sufficient. They come from inputs that
    /// were found for candidates.
    pub known: Vec<ExprId>,
}

/// Equations and conditions that share inputs.
#[derive(Default)]
pub(crate) struct Component {
    /// A term over inputs, and the part of the message that it is equal to.
    pub equations: Vec<(ExprId, ExprId)>,
    /// Other conditions.
    pub conditions: Vec<ExprId>,
    /// The inputs.
    pub inputs: Vec<Variable>,
}
