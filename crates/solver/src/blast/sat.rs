//! The interface to SAT solvers, and the binding to CaDiCaL: one incremental instance behind a safe
//! interface.
//!
//! The crate `cadical` compiles and links the C++ sources. Its own wrapper hides the instance
//! pointer, and with it the options that many tiny incremental queries need, so the C interface is
//! declared here.

use std::ffi::{CStr, c_char, c_int, c_void};

// Only the static library in it is used.
use cadical as _;

use crate::interrupt::Interrupt;

/// A DIMACS literal: a variable number from 1, negative if negated.
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
    fn ccadical_set_terminate(
        instance: *mut c_void,
        state: *mut c_void,
        terminate: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    );
    fn ccadical_limit(instance: *mut c_void, name: *const c_char, value: c_int);
}

/// The answer of a SAT solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SatAnswer {
    Sat,
    Unsat,
    /// The conflict budget is exhausted, or an interrupt was due.
    OverBudget,
}

/// An incremental SAT solver.
pub trait Backend {
    /// Maximum number of pairs of bits of a product of floats that is translated. Larger ones are
    /// unconstrained.
    const MAX_FLOAT_PRODUCT: usize;

    fn new() -> Self;

    fn add_clause(&mut self, clause: &[Lit]);

    /// Adds a division, whose results are already defined by clauses.
    fn add_division(&mut self, _division: Division) {}

    /// Sets the interrupt that stops the solver. A solver whose time is bounded by its budget can
    /// ignore it.
    fn interrupt_by(&mut self, _interrupt: &Interrupt) {}

    /// Solves under `assumptions` and gives up after `conflicts` conflicts, which are counted down
    /// if the solver supports it. The variables of `inputs`, whose signs are good phases, determine
    /// every gate that the assumptions depend on, together with divisions of such gates.
    fn solve(&mut self, assumptions: &[Lit], inputs: &[Lit], conflicts: &mut u32) -> SatAnswer;

    /// Returns the value of `lit`; only valid after `Sat` and before the next clause.
    fn value(&mut self, lit: Lit) -> bool;

    /// Returns whether the assumption `lit` is in the core; only valid after `Unsat`.
    fn failed(&mut self, lit: Lit) -> bool;
}

/// A division. Its results are not gates: propagation alone does not determine them.
pub struct Division {
    pub dividend: Vec<Lit>,
    pub divisor: Vec<Lit>,
    pub quotient: Vec<Lit>,
    pub remainder: Vec<Lit>,
}

impl Division {
    /// Returns an unassigned bit of the results with the sign it must have, if the operands are
    /// assigned.
    pub fn next_result(&self, value: impl Fn(Lit) -> Option<bool>) -> Option<Lit> {
        let open = |word: &[Lit]| word.iter().position(|&lit| value(lit).is_none());
        let number = |word: &[Lit]| {
            let bits = word.iter().rev().map(|&lit| value(lit));
            bits.into_iter()
                .try_fold(0u128, |number, bit| Some(number << 1 | u128::from(bit?)))
        };
        let (dividend, divisor) = (number(&self.dividend)?, number(&self.divisor)?);
        let signed = |lit: Lit, bits: u128, at: usize| {
            if bits.checked_shr(at as u32).unwrap_or(0) & 1 == 1 {
                lit
            } else {
                -lit
            }
        };
        if let Some(at) = open(&self.quotient) {
            let bits = dividend.checked_div(divisor).unwrap_or(u128::MAX);
            return Some(signed(self.quotient[at], bits, at));
        }
        let at = open(&self.remainder)?;
        let bits = dividend.checked_rem(divisor).unwrap_or(dividend);
        Some(signed(self.remainder[at], bits, at))
    }
}

/// One CaDiCaL instance.
pub struct Sat {
    instance: *mut c_void,
    /// The interrupt, which the instance polls while it solves. A box, because the instance keeps
    /// its address.
    interrupt: *mut Interrupt,
}

/// Returns whether the search must stop.
///
/// # Safety
/// `state` points to an [`Interrupt`] that lives at least as long as the instance that calls this.
unsafe extern "C" fn must_stop(state: *mut c_void) -> c_int {
    // SAFETY: the caller's promise; nothing changes the interrupt while the instance solves.
    let interrupt = unsafe { &*state.cast::<Interrupt>() };
    c_int::from(interrupt.is_due())
}

// SAFETY: an instance owns all its memory and uses no thread-local state. `Sat` is not `Sync`, and
// methods that change the instance take `&mut self`, so it is never used from two threads at once.
unsafe impl Send for Sat {}

/// Options that differ from CaDiCaL's defaults. Queries are many, small and incremental:
/// preprocessing would cost more than the search.
const OPTIONS: &[(&CStr, c_int)] = &[
    (c"quiet", 1),
    (c"inprocessing", 0),
    (c"lucky", 0),
    (c"walk", 0),
    (c"phase", 0),
];

impl Backend for Sat {
    const MAX_FLOAT_PRODUCT: usize = 1 << 14;

    fn new() -> Sat {
        // SAFETY: `ccadical_init` has no preconditions.
        let instance = unsafe { ccadical_init() };
        for (name, value) in OPTIONS {
            // SAFETY: the instance is new (options can only be set then); the name is
            // NUL-terminated.
            unsafe { ccadical_set_option(instance, name.as_ptr(), *value) };
        }
        let interrupt = Box::into_raw(Box::<Interrupt>::default());
        // SAFETY: the instance is alive; the state is freed after the instance is released.
        unsafe { ccadical_set_terminate(instance, interrupt.cast(), Some(must_stop)) };
        Sat {
            instance,
            interrupt,
        }
    }

    fn interrupt_by(&mut self, interrupt: &Interrupt) {
        // SAFETY: the box is alive, and the instance does not solve now.
        unsafe { *self.interrupt = interrupt.clone() };
    }

    fn add_clause(&mut self, clause: &[Lit]) {
        for &lit in clause {
            debug_assert!(lit != 0 && lit != Lit::MIN);
            // SAFETY: the instance is alive and the literal valid.
            unsafe { ccadical_add(self.instance, lit) };
        }
        // SAFETY: the instance is alive; 0 ends the clause.
        unsafe { ccadical_add(self.instance, 0) };
    }

    fn solve(&mut self, assumptions: &[Lit], _inputs: &[Lit], conflicts: &mut u32) -> SatAnswer {
        for &lit in assumptions {
            debug_assert!(lit != 0 && lit != Lit::MIN);
            // SAFETY: the instance is alive and the literal valid.
            unsafe { ccadical_assume(self.instance, lit) };
        }
        let limit = c_int::try_from(*conflicts).unwrap_or(c_int::MAX);
        // SAFETY: the instance is alive; CaDiCaL knows the name of the limit.
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

    fn value(&mut self, lit: Lit) -> bool {
        // SAFETY: the instance is alive and in the satisfied state.
        unsafe { ccadical_val(self.instance, lit) > 0 }
    }

    fn failed(&mut self, lit: Lit) -> bool {
        // SAFETY: the instance is alive and in the unsatisfied state.
        unsafe { ccadical_failed(self.instance, lit) == 1 }
    }
}

impl Drop for Sat {
    fn drop(&mut self) {
        // SAFETY: the instance and the box are alive and not used afterwards.
        unsafe {
            ccadical_release(self.instance);
            drop(Box::from_raw(self.interrupt));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn an_interrupt_stops_the_search() {
        let mut sat = pigeons(12);
        sat.interrupt_by(&Interrupt {
            stop: Some(Arc::new(AtomicBool::new(true))),
            ..Interrupt::default()
        });
        // Without the interrupt this takes hours.
        let mut budget = u32::MAX;
        assert_eq!(sat.solve(&[], &[], &mut budget), SatAnswer::OverBudget);
        sat.interrupt_by(&Interrupt {
            clock: Clock::start(),
            deadline: Some(Duration::ZERO),
            ..Interrupt::default()
        });
        assert_eq!(sat.solve(&[], &[], &mut budget), SatAnswer::OverBudget);
    }

    #[test]
    fn assumptions_cores_and_models() {
        let mut sat = Sat::new();
        sat.add_clause(&[-1, 2]);
        sat.add_clause(&[-2, 3]);
        assert_eq!(sat.solve(&[1], &[], &mut 1000), SatAnswer::Sat);
        assert!(sat.value(2) && sat.value(3));
        assert_eq!(sat.solve(&[1, 5, -3], &[], &mut 1000), SatAnswer::Unsat);
        assert!(sat.failed(1) && sat.failed(-3) && !sat.failed(5));
        assert_eq!(sat.solve(&[-3], &[], &mut 1000), SatAnswer::Sat);
        assert!(!sat.value(1));
    }

    /// Builds the pigeonhole problem with one pigeon more than holes.
    fn pigeons(holes: i32) -> Sat {
        let mut sat = Sat::new();
        let at = |pigeon: i32, hole: i32| pigeon * holes + hole + 1;
        for pigeon in 0..=holes {
            sat.add_clause(&(0..holes).map(|hole| at(pigeon, hole)).collect::<Vec<_>>());
        }
        for hole in 0..holes {
            for one in 0..=holes {
                for other in 0..one {
                    sat.add_clause(&[-at(one, hole), -at(other, hole)]);
                }
            }
        }
        sat
    }

    /// The problem needs conflicts, so it exceeds a small budget.
    #[test]
    fn the_conflict_budget_is_kept() {
        let mut sat = pigeons(5);
        assert_eq!(sat.solve(&[], &[], &mut 1), SatAnswer::OverBudget);
        assert_eq!(sat.solve(&[], &[], &mut 1_000_000), SatAnswer::Unsat);
    }
}
