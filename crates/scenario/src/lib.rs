//! Scenario files: hosts with their programs, the network between them, faults, invariants and
//! limits.
//!
//! The input is text, the output is plain data. Errors point at line and column and say how to fix
//! them. This crate runs nothing; it checks names that other crates define through a
//! [`NameContext`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod faults;
mod hosts;
mod message_fields;
mod model;
mod options;
mod peers;
mod placement;
mod read;
mod reader;
mod show;
mod source;
mod template;
mod toml_tree;
mod trojans;
mod units;

pub use model::{
    Accept, Argument, Check, CheckTime, EnvValue, Expectation, FieldCount, FieldStart, FileSource,
    Fresh, HostSetup, MessageField, OtherProgram, PeerListen, PeerSetup, PeerSymbolic, Process,
    Ready, ReplacedFunction, Scenario, Start, StateEvent, Stdin, SymbolicVariable, Trojans, Watch,
};
pub use options::{OptionKey, OptionKind, OptionSetting, OptionValue};
pub use read::{load, parse};
pub use show::show;
pub use source::{Problem, Problems, ScenarioLocation, nearest};
pub use units::{bytes, duration_ns};

use std::path::Path;

/// A kind of name that another crate defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameKind {
    /// A system call.
    Call,
    /// A path to data of a program.
    Watched,
    /// The text of an invariant.
    Invariant,
    /// A pattern of replies.
    ReplyPattern,
    /// A regular expression.
    Regex,
}

/// The context of a scenario: the files, names and options that it refers to.
pub trait NameContext {
    /// Returns whether the file exists.
    fn is_file(&self, path: &Path) -> bool;
    /// Returns whether the folder exists.
    fn is_folder(&self, path: &Path) -> bool;
    /// Reads the content of a file.
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
    }
    /// Checks a name; the error is the reason for the rejection.
    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        let _ = (kind, name);
        Ok(())
    }
    /// Returns the keys of `[limits]`, `[search]` and of hosts that are options of the caller.
    fn options(&self) -> Vec<OptionKey> {
        Vec::new()
    }
    /// Checks a value of such a key, in the form of [`OptionValue::arguments`]; the error is the
    /// reason for the rejection.
    fn check_option(&self, key: &OptionKey, argument: &str) -> Result<(), String> {
        let _ = (key, argument);
        Ok(())
    }
}

/// A context with the real disk that accepts any name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl NameContext for Disk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }
}
