//! The number of tests that run at once.

use libtest_mimic::Arguments;

/// Returns the arguments of a test binary. Unless they say how many tests run at once, it is one more
/// than there are cores, because tests also wait: for builds, for servers, and for each other.
pub fn arguments() -> Arguments {
    let mut arguments = Arguments::from_args();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(cores + 1);
    arguments
}
