//! The translation to SAT against evaluation.

use super::{Terms, steps};
use crate::blast::{Blaster, SatAnswer};
use everett_expr::EvalScratch;
use proptest::prelude::*;

const NO_BUDGET: u32 = u32::MAX;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With all bytes fixed, a term can have the value that evaluation gives it, and no other.
    #[test]
    fn translation_agrees_with_evaluation(
        steps in steps(1..12, 64),
        values in any::<[u8; 4]>(),
    ) {
        let mut terms = Terms::new(4);
        let model = terms.model(&values);
        let mut scratch = EvalScratch::new();
        let mut blaster = Blaster::new();
        for step in &steps {
            let e = terms.build(step);
            let limbs = terms.arena.eval_limbs(e, &model, &mut scratch);
            let width = terms.arena.width(e);
            let value = terms.arena.constant_limbs(width, &limbs);
            let same = terms.arena.eq(e, value);
            let other = terms.arena.not(same);
            let fixed = terms.fixed(&model);
            let with = |last| fixed.iter().copied().chain([last]);
            let yes = blaster.solve(&terms.arena, with(same), NO_BUDGET);
            prop_assert_eq!(yes, SatAnswer::Sat);
            let no = blaster.solve(&terms.arena, with(other), NO_BUDGET);
            prop_assert_eq!(no, SatAnswer::Unsat);
        }
    }

    /// What the SAT solver finds holds by evaluation; what it rules out holds for no byte value.
    #[test]
    fn answers_agree_with_all_values(steps in steps(1..10, 16)) {
        let mut terms = Terms::new(1);
        for step in &steps {
            terms.build(step);
        }
        let condition = terms.condition(&steps[0]);
        let mut scratch = EvalScratch::new();
        let expected = (0..=255u8).any(|value| {
            terms.arena.eval_bool(condition, &|_, _| value, &mut scratch)
        });
        let answer = Blaster::new().solve(&terms.arena, [condition].into_iter(), NO_BUDGET);
        prop_assert_eq!(answer == SatAnswer::Sat, expected);
    }
}
