//! Rewritten queries beside the queries as they are.

use everett_expr::{Arena, EvalScratch, ExprId, Variable};
use proptest::prelude::*;

use super::{Terms, steps};
use crate::blast::{Blaster, Sat, SatAnswer};
use crate::bytes::ByteTables;
use crate::model::Model;
use crate::reduce::Reduced;
use crate::{Constraints, Solver, SolverConfig, Verdict, cadical_alone};

const BYTES: u32 = 6;

fn reduced(terms: &mut Terms, conditions: &[ExprId]) -> Reduced {
    let array = terms.array;
    let variables: Vec<Variable> = (0..BYTES).map(|index| Variable { array, index }).collect();
    let mut tables = ByteTables::default();
    Reduced::of(&mut terms.arena, &mut tables, conditions, &variables).expect("a small query")
}

/// Returns a solution of the rewritten query as a model of the query, if there is one.
fn solution(terms: &Terms, reduced: &Reduced) -> Option<Model> {
    let mut blaster = Blaster::<Sat>::new();
    let conditions = reduced.terms.iter().copied();
    let answer = blaster.solve(&terms.arena, conditions, std::iter::empty(), &mut {
        u32::MAX
    });
    if answer == SatAnswer::Unsat {
        return None;
    }
    let array = terms.array;
    let found = (0..BYTES).filter_map(|index| {
        let value = blaster.value(Variable { array, index })?;
        Some((array, index, value))
    });
    let found = Model::new().with(found);
    let mut scratch = EvalScratch::new();
    let mut value = |index| {
        reduced.value(
            &terms.arena,
            &mut scratch,
            &found,
            Variable { array, index },
        )
    };
    Some(Model::new().with((0..BYTES).map(|index| (array, index, value(index)))))
}

fn hold(arena: &Arena, conditions: &[ExprId], model: &Model) -> bool {
    let mut scratch = EvalScratch::new();
    let mut conditions = conditions.iter();
    conditions.all(|&e| arena.eval_bool(e, model, &mut scratch))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A rewritten query has a solution if and only if the query has one, and its solutions are
    /// solutions of the query.
    #[test]
    fn agrees_with_the_query(
        all in steps(4..24, 40),
        last in steps(1..6, 40),
        pairs in prop::collection::vec((0..BYTES, 0..BYTES, 0u8..5), 0..4),
    ) {
        let mut terms = Terms::new(BYTES);
        let mut conditions = Vec::new();
        for (one, other, kind) in pairs {
            let (a, b) = (terms.all[one as usize], terms.all[other as usize]);
            let condition = match kind {
                0 => terms.arena.eq(a, b),
                1 => {
                    let (a, b) = (terms.arena.concat(a, b), terms.arena.concat(b, a));
                    terms.arena.eq(a, b)
                }
                2 => terms.arena.ult(a, b),
                _ => {
                    let most = terms.arena.constant(8, u64::from(kind) * 3);
                    terms.arena.ule(a, most)
                }
            };
            conditions.push(condition);
        }
        for step in &all {
            terms.build(step);
        }
        for (at, step) in last.iter().enumerate() {
            let condition = terms.condition(step);
            let negated = terms.arena.not(condition);
            let other = terms.resized(at as u16, 1);
            conditions.push([condition, negated, other][at % 3]);
        }
        let Some(expected) = cadical_alone(&terms.arena, &conditions, 20_000) else {
            return Ok(());
        };
        let reduced = reduced(&mut terms, &conditions);
        let found = solution(&terms, &reduced);
        prop_assert_eq!(found.is_some(), expected);
        if let Some(model) = found {
            prop_assert!(hold(&terms.arena, &conditions, &model));
        }
    }
}

/// Two words that are equal have equal products: evident once one takes the place of the other.
#[test]
fn equal_words_have_equal_hashes() {
    let mut terms = Terms::new(BYTES);
    let (high, low) = (terms.all[..2].to_vec(), terms.all[2..4].to_vec());
    let arena = &mut terms.arena;
    let (x, y) = (arena.concat_bytes(&high), arena.concat_bytes(&low));
    let factor = arena.constant(16, 40503);
    let (p, q) = (arena.mul(x, factor), arena.mul(y, factor));
    let (equal, differ) = (arena.eq(x, y), arena.ne(p, q));
    let reduced = reduced(&mut terms, &[equal, differ]);
    assert!(reduced.is_refuted(&terms.arena));
}

/// Bits that no allowed value has are constants in the rewritten query.
#[test]
fn bits_that_are_always_the_same_become_constants() {
    let mut terms = Terms::new(BYTES);
    let (x, y) = (terms.all[0], terms.all[1]);
    let arena = &mut terms.arena;
    let eight = arena.constant(8, 8);
    let small = arena.ult(x, eight);
    let (wide_x, wide_y) = (arena.zext(x, 16), arena.zext(y, 16));
    let product = arena.mul(wide_x, wide_y);
    let most = arena.constant(16, 7 * 255);
    let large = arena.ult(most, product);
    assert!(reduced(&mut terms, &[small, large]).is_refuted(&terms.arena));
}

/// A query that the small SAT solver does not decide within its budget is decided nevertheless.
#[test]
fn the_chain_rewrites_hard_queries() {
    let mut terms = Terms::new(BYTES);
    let all = terms.all.clone();
    let arena = &mut terms.arena;
    let (x, y) = (arena.concat_bytes(&all[..3]), arena.concat_bytes(&all[3..]));
    let square = |arena: &mut Arena, e| {
        let wide = arena.zext(e, 48);
        arena.mul(wide, wide)
    };
    let (p, q) = (square(arena, x), square(arena, y));
    let mut constraints = Constraints::new();
    let equal = arena.eq(x, y);
    constraints.add(arena, equal);
    let differ = arena.ne(p, q);
    let config = SolverConfig {
        light_conflict_budget: 1,
        ..SolverConfig::default()
    };
    let mut solver = Solver::new(config).expect("no directory is needed");
    let verdict = solver.check(arena, &constraints, &Model::new(), differ);
    assert_eq!(verdict, Verdict::Unsat);
}
