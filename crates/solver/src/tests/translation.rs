//! Bit-blasting against evaluation, with both SAT solvers.

use super::{Step, Terms, steps};
use crate::Model;
use crate::blast::{Backend, Blaster, Cdcl, Sat, SatAnswer};
use everett_expr::{EvalScratch, ExprId, Variable};
use proptest::prelude::*;

fn ask<B: Backend>(blaster: &mut Blaster<B>, terms: &Terms, asked: &[ExprId]) -> SatAnswer {
    let guesses = (0..terms.bytes).map(|index| {
        (
            Variable {
                array: terms.array,
                index,
            },
            0,
        )
    });
    blaster.solve(&terms.arena, asked.iter().copied(), guesses, &mut {
        u32::MAX
    })
}

/// With all bytes fixed, a term can have the value that evaluation gives it, and no other.
fn agrees<B: Backend>(steps: &[Step], values: &[u8]) -> Result<(), TestCaseError> {
    let mut terms = Terms::new(4);
    let model: Model = terms.model(values);
    let mut scratch = EvalScratch::new();
    let mut blaster = Blaster::<B>::new();
    for step in steps {
        let e = terms.build(step);
        let limbs = terms.arena.eval_limbs(e, &model, &mut scratch);
        let width = terms.arena.width(e);
        let value = terms.arena.constant_limbs(width, &limbs);
        let same = terms.arena.eq(e, value);
        let other = terms.arena.not(same);
        let fixed = terms.fixed(&model);
        let with = |last: ExprId| [fixed.as_slice(), &[last]].concat();
        prop_assert_eq!(ask(&mut blaster, &terms, &with(same)), SatAnswer::Sat);
        prop_assert_eq!(ask(&mut blaster, &terms, &with(other)), SatAnswer::Unsat);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cadical_agrees_with_evaluation(steps in steps(1..12, 64), values in any::<[u8; 4]>()) {
        agrees::<Sat>(&steps, &values)?;
    }

    #[test]
    fn the_small_solver_agrees_with_evaluation(
        steps in steps(1..12, 64),
        values in any::<[u8; 4]>(),
    ) {
        agrees::<Cdcl>(&steps, &values)?;
    }

    /// A model satisfies the terms by evaluation; for `Unsat`, no byte value does.
    #[test]
    fn answers_agree_with_all_values(steps in steps(1..10, 16)) {
        let mut terms = Terms::new(1);
        for step in &steps {
            terms.build(step);
        }
        let condition = terms.condition(&steps[0]);
        let mut scratch = EvalScratch::new();
        let expected = (0..=255u8)
            .any(|value| terms.arena.eval_bool(condition, &|_, _| value, &mut scratch));
        let answer = ask(&mut Blaster::<Sat>::new(), &terms, &[condition]);
        prop_assert_eq!(answer == SatAnswer::Sat, expected);
        let mut small = Blaster::<Cdcl>::new();
        prop_assert_eq!(ask(&mut small, &terms, &[condition]), answer);
        if answer == SatAnswer::Sat {
            let byte = small.value(Variable { array: terms.array, index: 0 }).unwrap_or(0);
            prop_assert!(terms.arena.eval_bool(condition, &|_, _| byte, &mut scratch));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Floats are either exact or reported as unconstrained.
    #[test]
    fn exact_floats_agree_with_evaluation(steps in steps(1..8, 64), values in any::<[u8; 4]>()) {
        let mut terms = Terms::new(4);
        let model = terms.model(&values);
        let mut scratch = EvalScratch::new();
        for (at, step) in steps.iter().enumerate() {
            let e = if at % 2 == 0 { terms.build_float(step) } else { terms.build(step) };
            let limbs = terms.arena.eval_limbs(e, &model, &mut scratch);
            let width = terms.arena.width(e);
            let value = terms.arena.constant_limbs(width, &limbs);
            let same = terms.arena.eq(e, value);
            let other = terms.arena.not(same);
            let fixed = terms.fixed(&model);
            for (last, expected) in [(same, SatAnswer::Sat), (other, SatAnswer::Unsat)] {
                let asked = [fixed.as_slice(), &[last]].concat();
                let mut small = Blaster::<Cdcl>::new();
                let answer = ask(&mut small, &terms, &asked);
                prop_assert!(answer == expected || small.saw_floats());
                let mut large = Blaster::<Sat>::new();
                let answer = ask(&mut large, &terms, &asked);
                prop_assert!(answer == expected || large.saw_floats());
            }
        }
    }
}
