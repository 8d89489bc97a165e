//! The SMT-LIB printer against evaluation and against the first tier, if z3 is installed.

use super::{Terms, steps};
use crate::blast::{Blaster, Sat, SatAnswer};
use crate::smt::{SmtAnswer, SmtProcess, script};
use crate::{Constraints, Model, SmtConfig, SmtProgram, Solver, SolverConfig, Verdict};
use everett_expr::{Arena, EvalScratch, ExprId, FloatCompareOp, FloatFormat, FloatOp};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::path::PathBuf;
use std::time::Duration;

/// Returns z3 from the environment variable EVERETT_Z3 or the search path.
fn z3() -> Option<SmtConfig> {
    let named = std::env::var_os("EVERETT_Z3").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| {
        std::env::split_paths(&path)
            .map(|folder| folder.join("z3"))
            .find(|file| file.is_file())
    });
    if found.is_none() {
        eprintln!("skipped: no z3 in EVERETT_Z3 or on the search path");
    }
    found.map(|program| SmtConfig::for_program(program, 100_000_000, None))
}

fn truth(answer: SmtAnswer) -> Result<bool, TestCaseError> {
    match answer {
        SmtAnswer::Sat(_) => Ok(true),
        SmtAnswer::Unsat => Ok(false),
        SmtAnswer::Unknown(reason) => Err(TestCaseError::fail(reason)),
    }
}

/// With all bytes fixed, a term can have the value that evaluation gives it, and no other.
fn has_one_value(
    smt: &mut SmtProcess,
    terms: &mut Terms,
    model: &Model,
) -> Result<(), TestCaseError> {
    let e = *terms.all.last().expect("there are bytes");
    let limbs = terms.arena.eval_limbs(e, model, &mut EvalScratch::new());
    let value = terms.arena.constant_limbs(terms.arena.width(e), &limbs);
    let same = terms.arena.eq(e, value);
    let other = terms.arena.not(same);
    let fixed = terms.fixed(model);
    for (last, expected) in [(same, true), (other, false)] {
        let asked: Vec<_> = fixed.iter().copied().chain([last]).collect();
        let answer = truth(smt.solve(&terms.arena, &asked))?;
        prop_assert_eq!(answer, expected, "{:?} {:?}", model, limbs);
    }
    Ok(())
}

#[test]
fn z3_agrees_with_evaluation() {
    let Some(config) = z3() else { return };
    let smt = std::cell::RefCell::new(SmtProcess::new(config));
    let input = (steps(1..12, 64), any::<[u8; 4]>());
    let checked =
        TestRunner::new(ProptestConfig::with_cases(150)).run(&input, |(steps, values)| {
            let mut terms = Terms::new(4);
            let model = terms.model(&values);
            for step in &steps {
                terms.build(step);
            }
            has_one_value(&mut smt.borrow_mut(), &mut terms, &model)
        });
    checked.expect("z3 and evaluation agree");
}

#[test]
fn z3_agrees_with_evaluation_on_floats() {
    let Some(config) = z3() else { return };
    let smt = std::cell::RefCell::new(SmtProcess::new(config));
    let input = (steps(1..4, 32), any::<[u8; 10]>());
    let checked =
        TestRunner::new(ProptestConfig::with_cases(150)).run(&input, |(steps, values)| {
            let mut terms = Terms::new(10);
            let bytes = terms.all.clone();
            let word = terms.arena.concat_bytes(&bytes);
            terms.all.push(word);
            let model = terms.model(&values);
            for step in &steps {
                terms.build_float(step);
            }
            has_one_value(&mut smt.borrow_mut(), &mut terms, &model)
        });
    checked.expect("z3 and evaluation agree");
}

#[test]
fn z3_agrees_with_the_first_tier() {
    let Some(config) = z3() else { return };
    let smt = std::cell::RefCell::new(SmtProcess::new(config));
    let input = steps(1..12, 14);
    let checked = TestRunner::new(ProptestConfig::with_cases(100)).run(&input, |steps| {
        let mut terms = Terms::new(3);
        let conditions: Vec<_> = steps.iter().map(|step| terms.condition(step)).collect();
        for count in 1..=conditions.len() {
            let asked = &conditions[..count];
            let ours = Blaster::<Sat>::new().solve(
                &terms.arena,
                asked.iter().copied(),
                std::iter::empty(),
                &mut { u32::MAX },
            );
            let theirs = truth(smt.borrow_mut().solve(&terms.arena, asked))?;
            prop_assert_eq!(ours == SatAnswer::Sat, theirs);
        }
        Ok(())
    });
    checked.expect("z3 and the first tier agree");
}

/// Returns a float of symbolic bytes that are mixed, so that no term over it is monotonic in them.
fn mixed(terms: &mut Terms) -> ExprId {
    let bytes = terms.all.clone();
    let arena = &mut terms.arena;
    let (word, mix) = (arena.concat_bytes(&bytes), arena.constant(32, 0x2545_f491));
    arena.mul(word, mix)
}

fn equals(arena: &mut Arena, e: ExprId, value: f32) -> ExprId {
    let value = arena.constant(32, u64::from(value.to_bits()));
    arena.float_compare(FloatCompareOp::Oeq, FloatFormat::Single, e, value)
}

/// `x + 1.0 == 3.5`, `x * x == 6.25` and `x / 4.0 == 0.625`.
#[test]
fn sums_products_and_quotients_of_floats_need_no_second_tier() {
    for (op, other, target) in [
        (FloatOp::Add, Some(1f32), 3.5),
        (FloatOp::Mul, None, 6.25),
        (FloatOp::Div, Some(4.0), 0.625),
    ] {
        let mut terms = Terms::new(4);
        let x = mixed(&mut terms);
        let arena = &mut terms.arena;
        let other = other.map(|value| arena.constant(32, u64::from(value.to_bits())));
        let format = FloatFormat::Single;
        let result = arena.float_binary(op, format, x, other.unwrap_or(x));
        let condition = equals(arena, result, target);
        let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
        let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
        let Verdict::Sat(model) = verdict else {
            panic!("{verdict:?}")
        };
        let value = arena.eval(x, &model, &mut EvalScratch::new());
        assert_eq!(f32::from_bits(value as u32).abs(), 2.5);
        let impossible = equals(arena, x, 2.0);
        let mut constraints = Constraints::new();
        constraints.add(arena, condition);
        let verdict = solver.check(arena, &constraints, &model, impossible);
        assert_eq!(verdict, Verdict::Unsat);
    }
}

/// `x + 1.0 == 3.5`, where the SAT solvers may not search.
#[test]
fn what_the_first_tier_leaves_is_solved_by_the_second() {
    let mut terms = Terms::new(4);
    let x = mixed(&mut terms);
    let arena = &mut terms.arena;
    let one = arena.constant(32, u64::from(1f32.to_bits()));
    let sum = arena.float_binary(FloatOp::Add, FloatFormat::Single, x, one);
    let condition = equals(arena, sum, 3.5);
    let limited = SolverConfig {
        light_conflict_budget: 1,
        conflict_budget: 0,
        ..SolverConfig::default()
    };
    let without = Solver::new(limited.clone())
        .expect("no directory to make")
        .check(arena, &Constraints::new(), &Model::new(), condition);
    assert!(matches!(without, Verdict::Unknown(_)));
    let Some(config) = z3() else { return };
    let config = SolverConfig {
        smt: Some(config),
        ..limited
    };
    let mut solver = Solver::new(config).expect("no directory to make");
    let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
    let Verdict::Sat(model) = verdict else {
        panic!("{verdict:?}")
    };
    let value = arena.eval(x, &model, &mut EvalScratch::new());
    assert_eq!(f32::from_bits(value as u32), 2.5);
    assert_eq!(solver.statistics().smt_queries, 1);
}

/// Slow queries are logged as scripts that the solver can read.
#[test]
fn slow_queries_are_logged() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let config = SolverConfig {
        solver_log: Some(folder.path().join("queries")),
        slow_query: Duration::ZERO,
        ..SolverConfig::default()
    };
    let mut terms = Terms::new(2);
    let arena = &mut terms.arena;
    let product = arena.mul(terms.all[0], terms.all[1]);
    let target = arena.constant(8, 77);
    let condition = arena.eq(product, target);
    let mut solver = Solver::new(config).expect("the directory can be made");
    let verdict = solver.check(arena, &Constraints::new(), &Model::new(), condition);
    assert!(matches!(verdict, Verdict::Sat(_)));
    let files: Vec<_> = std::fs::read_dir(folder.path().join("queries"))
        .expect("the log is a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let [file] = files.as_slice() else {
        panic!("{files:?}")
    };
    let text = std::fs::read_to_string(file).expect("text");
    assert!(
        text.contains("(set-info :status sat)") && text.contains("bvmul"),
        "{text}"
    );
    let Some(SmtProgram::Path(z3)) = z3().map(|config| config.program) else {
        return;
    };
    let output = std::process::Command::new(z3)
        .arg(file)
        .output()
        .expect("z3 runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "sat");
}

#[test]
fn queries_do_not_depend_on_ids() {
    let query = |arrays: &[u32], unrelated: u64| {
        let mut arena = Arena::new();
        for value in 0..unrelated {
            arena.constant(64, value);
        }
        for &ordinal in arrays {
            arena.array(ordinal, "input", 4);
        }
        let bytes = [2, 0, 1].map(|ordinal| {
            let array = arena.array(ordinal, "input", 4);
            arena.read(array, ordinal)
        });
        let limit = arena.constant(8, 100);
        let mut constraints = Constraints::new();
        for byte in bytes {
            let small = arena.ult(byte, limit);
            constraints.add(&mut arena, small);
        }
        let sum = arena.add(bytes[0], bytes[1]);
        let product = arena.mul(sum, bytes[2]);
        let condition = arena.ult(limit, product);
        let mut terms = constraints.slice_for(&mut arena, condition);
        terms.push(condition);
        script(&arena, &terms).text
    };
    let expected = query(&[0, 1, 2], 0);
    assert!(expected.contains("v0_2") && expected.contains("v2_1"));
    assert_eq!(query(&[2, 1, 0], 9), expected);
    assert_eq!(query(&[1, 0, 2], 3), expected);
}
