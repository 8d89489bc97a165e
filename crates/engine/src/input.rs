//! A symbolic input of a path.

use everett_expr::ArrayId;
use std::sync::Arc;

/// A symbolic input of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// The name of the input, unique on the path.
    pub name: Arc<str>,
    /// The array of its bytes.
    pub array: ArrayId,
    /// The number of bytes.
    pub size: u32,
}
