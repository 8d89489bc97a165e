//! Fuzzing without special compilers: seeds are damaged at random, what reads them must answer with a value or
//! an error, and soon. A panic or an answer that takes too long is a failure, and its input is kept.

mod mutate;
mod targets;

pub use mutate::{Mutator, Random};
pub use targets::{TARGETS, Target, target};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long one input may take. Inputs are small, so this is much even in unoptimised code on a busy machine.
pub const MOST_TIME: Duration = Duration::from_secs(20);

/// What was tried.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Inputs that were read.
    pub accepted: u64,
    /// Inputs that were refused with an error.
    pub refused: u64,
}

/// An input that showed a bug.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The input.
    pub input: Vec<u8>,
    /// What happened.
    pub reason: String,
}

/// Tries one input: whether it was accepted.
pub fn try_input(target: &Target, input: &[u8]) -> Result<bool, Failure> {
    let begin = Instant::now();
    let failure = |reason| Failure {
        input: input.to_vec(),
        reason,
    };
    match catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        Ok(_) if begin.elapsed() > MOST_TIME => {
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

/// Tries the seeds, then damaged ones until the time is over or a failure is found.
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
