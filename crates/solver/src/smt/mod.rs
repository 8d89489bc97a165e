//! The second tier: an SMT-LIB solver as a process.

mod floats;
mod print;
mod process;

pub use print::script;
pub use process::{SmtAnswer, SmtProcess};
