//! Formats on disk: plain data in, files out. Knows nothing of engines.

mod folder;
mod ktest;
mod lcov;
mod writer;

pub use folder::{Folder, WriteError};
pub use ktest::{KTest, KTestError};
pub use lcov::LineCoverage;
pub use writer::{NamedFile, Writer};
