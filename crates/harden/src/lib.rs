//! Elastic instrumentation: a production build of a program with as many checks as a given overhead
//! allows, placed where they help most.
//!
//! The five steps are functions with a file each: [`instrument`], [`divide`] (atoms), [`estimate`]
//! (cost and benefit), [`choose`] (selection) and [`activate`]. [`harden`] does all of them.
//! [`survey`](survey()) counts how popular the configurations of an API are in source trees.
//!
//! Architecture invariant: [`select`], [`cost`], [`benefit`] and [`curve`] know no process, no
//! file and no clock. The selection is a function of counts, measured times, weights and the
//! budget. The crate prints nothing.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod benefit;
pub mod cost;
pub mod curve;
mod error;
mod files;
mod history;
mod runs;
pub mod select;
mod steps;
pub mod survey;
mod text;
mod workload;

pub use error::{Error, Result};
pub use files::{
    AtomRecord, AtomsFile, Estimated, EstimatesFile, HardAtom, HardFile, Measured, PathAtom,
    SelectionFile, Target, hard_path, harden_folder,
};
pub use steps::{
    ActivateSpec, EstimateSpec, HardenSpec, InstrumentSpec, SelectSpec, activate, choose, divide,
    estimate, harden, initialised, instrument,
};
pub use survey::{SurveySpec, survey};
