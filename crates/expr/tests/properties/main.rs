//! Property tests on random programs over terms.

mod codec;
mod common;
mod history;
mod simplifier;
