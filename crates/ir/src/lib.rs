//! Programs as data: reads LLVM bitcode, links modules and lowers them to compact bytecode.
//!
//! This room knows nothing of execution, memory or solvers.

pub mod debug;
pub mod module;
