//! Failures of libc functions that fault injection can cause: plain data.

use std::sync::Arc;

use crate::call_arguments::ShownArgument;
use crate::choice::{ChoiceSite, FaultNames};
use crate::stacks::StackId;

/// The bit of musl's `FILE` that says that an error has occurred, in the first word.
pub const STREAM_ERROR: u64 = 32;

/// A libc function that can fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailingFunction {
    /// The name, followed by `()`.
    pub name: String,
    /// The symbols by which programs call it.
    pub symbols: Vec<String>,
    /// Its failures.
    pub failures: Vec<FunctionFailure>,
    /// The argument whose error indicator a failure sets: a stream.
    pub stream: Option<usize>,
    /// Whether it does its work even if it fails.
    pub is_done: bool,
    /// What its arguments are.
    pub arguments: Vec<ShownArgument>,
}

/// A failure of a libc function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionFailure {
    /// The name: an errno, or `=VALUE`, or both of them.
    pub name: String,
    /// The errno that it sets, if it sets one.
    pub errno: Option<u32>,
    /// The return value.
    pub value: i64,
}

impl FailingFunction {
    /// Returns the site of the choice whether a call fails.
    pub fn site(&self) -> ChoiceSite {
        let names = self.failures.iter().map(|failure| failure.name.as_str());
        ChoiceSite::CallFault {
            call: self.name.clone().into(),
            failures: names.collect::<FaultNames>(),
        }
    }
}

/// The functions that can fail in a process.
#[derive(Clone, Default, Debug)]
pub struct FunctionFaults {
    /// The functions.
    pub functions: Arc<[FailingFunction]>,
    /// Number of failures that may still be injected.
    pub left: u32,
    /// The failures since they were last taken, each with its call stack.
    pub injected: Vec<(String, Option<StackId>)>,
}
