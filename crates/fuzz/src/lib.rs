//! Fuzzing without special compilers: seeds are mutated at random, and a parser must answer with a
//! value or an error, in bounded time. A panic or a time-out is a failure, and its input is kept.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod mutate;
mod targets;

pub use mutate::{Mutator, Random};
pub use targets::{TARGETS, Target, target};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Time limit per input. Inputs are small, so this is ample even in unoptimised code on a busy
/// machine.
pub const MAX_TIME: Duration = Duration::from_secs(20);

/// Statistics of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of accepted inputs.
    pub accepted: u64,
    /// Number of inputs that were rejected with an error.
    pub refused: u64,
}

/// An input that triggered a bug.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The input.
    pub input: Vec<u8>,
    /// What happened.
    pub reason: String,
}

/// Tries one input; returns whether it was accepted.
pub fn try_input(target: &Target, input: &[u8]) -> Result<bool, Failure> {
    let begin = Instant::now();
    let failure = |reason| Failure {
        input: input.to_vec(),
        reason,
    };
    match catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        Ok(_) if begin.elapsed() > MAX_TIME => {
            let seconds = begin.elapsed().as_secs_f64();
            Err(failure(format!("it took {seconds:.1} s")))
        }
        Ok(accepted) => Ok(accepted),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(failure(text.unwrap_or_else(|| "a panic".to_owned())))
        }
    }
}

/// Tries the seeds, then mutated ones until the time is over or a failure is found.
pub fn fuzz(
    target: &Target,
    seeds: &[Vec<u8>],
    random_seed: u64,
    time: Duration,
) -> Result<Tally, Box<Failure>> {
    let begin = Instant::now();
    let mut tally = Tally::default();
    let mut count = |input: &[u8]| -> Result<(), Box<Failure>> {
        match try_input(target, input)? {
            true => tally.accepted += 1,
            false => tally.refused += 1,
        }
        Ok(())
    };
    for seed in seeds {
        count(seed)?;
    }
    let mut mutator = Mutator::new(random_seed, seeds, target.spans);
    while begin.elapsed() < time {
        count(&mutator.input())?;
    }
    Ok(tally)
}
