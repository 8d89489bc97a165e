//! A symbolic input of a path.

use everett_expr::ArrayId;
use std::sync::Arc;

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
