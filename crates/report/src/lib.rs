//! Output formats: plain data in, files out. This crate knows nothing of engines.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod count;
mod dtest;
mod folder;
mod junit;
mod ktest;
mod lcov;
mod pcap;
mod plot;
mod sequence;
mod sqlite;
mod writer;

pub use count::counted;
pub use dtest::{DTest, TestHost, TestInterface, TestNode, dtest_files};
pub use folder::{Folder, Series, WriteError, read_file, read_text};
pub use junit::{Outcome, TestCase, junit};
pub use ktest::{KTest, KTestError};
pub use lcov::{FileCoverage, FunctionCoverage, LcovError, LineCoverage};
pub use pcap::{CapturedPacket, PacketContent, pcap};
pub use plot::{Curve, Panel, plot};
pub use sequence::{Arrow, sequence_chart};
pub use sqlite::{Cell, Column, database_of_one_row};
pub use writer::{NamedFile, Unwritten, Writer};
