//! Formulas over the bytes of a message: exact conditions on the message, and open ones,
//! which still contain client inputs.

use everett_expr::{ExprId, Variable};

/// What a client can send, as a condition on the message.
#[derive(Clone, Debug, Default)]
pub struct Formula {
    /// All of these hold.
    pub exact: Vec<ExprId>,
    /// And for each of these there are inputs.
    pub open: Vec<Open>,
}

/// Conditions on the message and on inputs that could not be eliminated.
#[derive(Clone, Debug)]
pub struct Open {
    /// All of these hold.
    pub conditions: Vec<ExprId>,
    /// The inputs.
    pub inputs: Vec<Variable>,
    /// Conditions on the message alone, each of which is sufficient:
    /// those of inputs that were found.
    pub known: Vec<ExprId>,
}

/// Terms that are equal to parts of the message, and conditions that share inputs.
#[derive(Default)]
pub(crate) struct Component {
    /// A term over inputs, and the part of the message that it is equal to.
    pub equations: Vec<(ExprId, ExprId)>,
    /// Other conditions.
    pub conditions: Vec<ExprId>,
    /// The inputs.
    pub inputs: Vec<Variable>,
}
