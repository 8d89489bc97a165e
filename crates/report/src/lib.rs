//! Formats on disk: plain data in, files out. Knows nothing of engines.

mod folder;
mod junit;
mod ktest;
mod lcov;
mod pcap;
mod writer;

pub use folder::{Folder, WriteError};
pub use junit::{Outcome, TestCase, junit};
pub use ktest::{KTest, KTestError};
pub use lcov::LineCoverage;
pub use pcap::{CapturedPacket, PacketContent, pcap};
pub use writer::{NamedFile, Writer};
