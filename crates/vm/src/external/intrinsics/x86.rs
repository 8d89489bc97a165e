//! x
use super::super::Operation;
pub const OPERATIONS: &[Operation] = &[];
