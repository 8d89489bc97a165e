//! The second tier: any solver that speaks SMT-LIB, as a process.

mod floats;
mod print;
mod process;

pub use print::script;
pub use process::{SmtAnswer, SmtProcess};
