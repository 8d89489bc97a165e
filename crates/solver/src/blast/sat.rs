//! The border to CaDiCaL: one incremental SAT instance behind a safe interface.
//!
//! The crate `cadical` compiles and links the C++ sources. Its own wrapper hides the instance pointer and
//! with it the options that many tiny incremental queries need, so the C interface is declared here.

use std::ffi::{CStr, c_char, c_int, c_void};

// Only the static library inside is wanted.
use cadical as _;

/// A literal in DIMACS form: a variable number from 1, negative when negated.
pub type Lit = i32;

unsafe extern "C" {
    fn ccadical_init() -> *mut c_void;
    fn ccadical_release(instance: *mut c_void);
    fn ccadical_add(instance: *mut c_void, lit: c_int);
    fn ccadical_assume(instance: *mut c_void, lit: c_int);
    fn ccadical_solve(instance: *mut c_void) -> c_int;
    fn ccadical_val(instance: *mut c_void, lit: c_int) -> c_int;
    fn ccadical_failed(instance: *mut c_void, lit: c_int) -> c_int;
    fn ccadical_set_option(instance: *mut c_void, name: *const c_char, value: c_int);
    fn ccadical_limit(instance: *mut c_void, name: *const c_char, value: c_int);
}

/// What one call of the SAT solver found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SatAnswer {
    Sat,
    Unsat,
    /// The conflict budget ran out.
    OverBudget,
}

/// One CaDiCaL instance.
pub struct Sat {
    instance: *mut c_void,
}

// SAFETY: an instance owns all its memory and uses no thread-local state; `Sat` is not `Sync` and the
// methods that change the instance take `&mut self`, so it is never used from two threads at once.
unsafe impl Send for Sat {}

/// Options that differ from CaDiCaL's defaults, all because queries are many, small and incremental:
/// preprocessing would cost more than the search itself.
const OPTIONS: &[(&CStr, c_int)] = &[
    (c"quiet", 1),
    (c"inprocessing", 0),
    (c"lucky", 0),
    (c"walk", 0),
    (c"phase", 0),
];

impl Sat {
    pub fn new() -> Sat {
        // SAFETY: `ccadical_init` has no preconditions.
        let instance = unsafe { ccadical_init() };
        for (name, value) in OPTIONS {
            // SAFETY: the instance is fresh (configuring is only allowed then); the name is NUL-terminated.
            unsafe { ccadical_set_option(instance, name.as_ptr(), *value) };
        }
        Sat { instance }
    }

    pub fn add_clause(&mut self, clause: &[Lit]) {
        for &lit in clause {
            debug_assert!(lit != 0 && lit != Lit::MIN);
            // SAFETY: the instance is alive and the literal valid.
            unsafe { ccadical_add(self.instance, lit) };
        }
        // SAFETY: the instance is alive; 0 ends the clause.
        unsafe { ccadical_add(self.instance, 0) };
    }

    /// Solves under `assumptions`, giving up after `conflicts` conflicts.
    pub fn solve(&mut self, assumptions: &[Lit], conflicts: u32) -> SatAnswer {
        for &lit in assumptions {
            debug_assert!(lit != 0 && lit != Lit::MIN);
            // SAFETY: the instance is alive and the literal valid.
            unsafe { ccadical_assume(self.instance, lit) };
        }
        let limit = c_int::try_from(conflicts).unwrap_or(c_int::MAX);
        // SAFETY: the instance is alive, the limit's name is one that CaDiCaL knows.
        let answer = unsafe {
            ccadical_limit(self.instance, c"conflicts".as_ptr(), limit);
            ccadical_solve(self.instance)
        };
        match answer {
            10 => SatAnswer::Sat,
            20 => SatAnswer::Unsat,
            _ => SatAnswer::OverBudget,
        }
    }

    /// The value of `lit`; only after `solve` said `Sat` and before the next clause.
    pub fn value(&mut self, lit: Lit) -> bool {
        // SAFETY: the instance is alive and in the satisfied state.
        unsafe { ccadical_val(self.instance, lit) > 0 }
    }

    /// Whether the assumption `lit` was needed; only after `solve` said `Unsat`.
    pub fn failed(&mut self, lit: Lit) -> bool {
        // SAFETY: the instance is alive and in the unsatisfied state.
        unsafe { ccadical_failed(self.instance, lit) == 1 }
    }
}

impl Drop for Sat {
    fn drop(&mut self) {
        // SAFETY: the instance is alive and never used again.
        unsafe { ccadical_release(self.instance) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_cores_and_models() {
        let mut sat = Sat::new();
        sat.add_clause(&[-1, 2]);
        sat.add_clause(&[-2, 3]);
        assert_eq!(sat.solve(&[1], 1000), SatAnswer::Sat);
        assert!(sat.value(2) && sat.value(3));
        assert_eq!(sat.solve(&[1, 5, -3], 1000), SatAnswer::Unsat);
        assert!(sat.failed(1) && sat.failed(-3) && !sat.failed(5));
        assert_eq!(sat.solve(&[-3], 1000), SatAnswer::Sat);
        assert!(!sat.value(1));
    }

    /// Six pigeons, five holes: needs conflicts, so a budget of none is exceeded.
    #[test]
    fn the_conflict_budget_is_kept() {
        let mut sat = Sat::new();
        let at = |pigeon: i32, hole: i32| pigeon * 5 + hole + 1;
        for pigeon in 0..6 {
            sat.add_clause(&(0..5).map(|hole| at(pigeon, hole)).collect::<Vec<_>>());
        }
        for hole in 0..5 {
            for one in 0..6 {
                for other in 0..one {
                    sat.add_clause(&[-at(one, hole), -at(other, hole)]);
                }
            }
        }
        assert_eq!(sat.solve(&[], 1), SatAnswer::OverBudget);
        assert_eq!(sat.solve(&[], 1_000_000), SatAnswer::Unsat);
    }
}
