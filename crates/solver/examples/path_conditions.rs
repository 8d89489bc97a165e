//! Time per query on growing path conditions, without and with multiplication and division.
//!
//! `cargo run --release -p everett-solver --example path_conditions`

#![allow(clippy::print_stderr, clippy::print_stdout)]

use everett_expr::{Arena, BinaryOp, CompareOp, EvalScratch, ExprId};
use everett_solver::{Clock, Constraints, Model, Solver, SolverConfig, Verdict};
use std::time::{Duration, Instant};

const CONDITIONS: usize = 200;
const INPUT_BYTES: u32 = 64;

/// A small deterministic generator, so that every run measures the same queries.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

struct Generator {
    arena: Arena,
    words: Vec<ExprId>,
    numbers: Numbers,
    operators: &'static [BinaryOp],
}

const PLAIN: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::LShr,
];
const WITH_PRODUCTS: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Xor,
    BinaryOp::Mul,
    BinaryOp::UDiv,
    BinaryOp::URem,
    BinaryOp::LShr,
    BinaryOp::Mul,
];

impl Generator {
    fn new(operators: &'static [BinaryOp]) -> Generator {
        let mut arena = Arena::new();
        let array = arena.array(0, "input", INPUT_BYTES);
        let words = (0..INPUT_BYTES / 4)
            .map(|word| {
                let bytes: Vec<ExprId> = (0..4)
                    .map(|byte| arena.read(array, word * 4 + byte))
                    .collect();
                arena.concat_bytes(&bytes)
            })
            .collect();
        Generator {
            arena,
            words,
            numbers: Numbers(1),
            operators,
        }
    }

    /// Returns a term of a few operations, as a program computes it from its input.
    fn word(&mut self) -> ExprId {
        let mut e = self.words[self.numbers.below(self.words.len())];
        for _ in 0..1 + self.numbers.below(3) {
            let op = self.operators[self.numbers.below(self.operators.len())];
            let shift = matches!(op, BinaryOp::Shl | BinaryOp::LShr);
            let other = match self.numbers.below(3) {
                0 if !shift => self.words[self.numbers.below(self.words.len())],
                _ if shift => self.arena.constant(32, 1 + self.numbers.below(9) as u64),
                _ => self.arena.constant(32, 3 + self.numbers.below(1000) as u64),
            };
            e = self.arena.binary(op, e, other);
        }
        e
    }

    fn condition(&mut self) -> ExprId {
        let (a, b) = (self.word(), self.word());
        let bound = self.arena.constant(32, self.numbers.below(1 << 31) as u64);
        match self.numbers.below(5) {
            0 => self.arena.compare(CompareOp::Ult, a, b),
            1 => self.arena.compare(CompareOp::Slt, a, bound),
            2 => self.arena.compare(CompareOp::Ule, bound, a),
            3 => {
                let low = self.arena.extract(a, 0, 8);
                let value = self.arena.constant(8, self.numbers.below(256) as u64);
                self.arena.compare(CompareOp::Eq, low, value)
            }
            _ => self.arena.compare(CompareOp::Eq, a, b),
        }
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn run(title: &str, operators: &'static [BinaryOp], paths: usize) {
    let mut generator = Generator::new(operators);
    let config = SolverConfig {
        clock: Clock::start(),
        ..SolverConfig::default()
    };
    let mut solver = Solver::new(config).expect("no directory to make");
    let mut scratch = EvalScratch::new();
    let (mut all, mut by_sat) = (Vec::new(), Vec::new());
    let mut unknown = 0;
    let begun = Instant::now();
    for _ in 0..paths {
        let mut constraints = Constraints::new();
        let mut model = Model::new();
        for _ in 0..CONDITIONS / paths {
            let condition = generator.condition();
            let taken = generator.arena.eval_bool(condition, &model, &mut scratch);
            let opposite = generator.arena.not(condition);
            let (holds, other) = if taken {
                (condition, opposite)
            } else {
                (opposite, condition)
            };
            let before = solver.statistics().sat_queries;
            let started = Instant::now();
            let verdict = solver.check(&mut generator.arena, &constraints, &model, other);
            let taken = started.elapsed();
            all.push(taken);
            if solver.statistics().sat_queries > before {
                by_sat.push(taken);
            }
            unknown += usize::from(matches!(verdict, Verdict::Unknown(_)));
            // Every second time the path takes the side that was queried.
            match verdict {
                Verdict::Sat(found) if generator.numbers.below(2) == 0 => {
                    constraints.add(&mut generator.arena, other);
                    model = found;
                }
                _ => constraints.add(&mut generator.arena, holds),
            }
        }
    }
    let total = begun.elapsed();
    let worst = all.iter().max().copied().unwrap_or_default();
    println!(
        "{title:28} {paths:3} paths: median {:9.1?}, of {:3} at SAT {:9.1?}, worst {worst:9.1?}, total {total:.1?}, unknown {unknown}",
        median(&mut all),
        by_sat.len(),
        median(&mut by_sat),
    );
    println!("    {:?}", solver.statistics());
}

/// Measures cheap queries, each answered by one layer without a search.
fn cheap_layers() {
    let mut generator = Generator::new(PLAIN);
    let arena = &mut generator.arena;
    let array = arena.array(0, "input", INPUT_BYTES);
    let mut solver = Solver::new(SolverConfig::default()).expect("no directory to make");
    let mut constraints = Constraints::new();
    let model = Model::new();
    let mut conditions = Vec::new();
    for index in 0..INPUT_BYTES {
        let byte = arena.read(array, index);
        let bound = arena.constant(8, 200);
        let small = arena.ult(byte, bound);
        constraints.add(arena, small);
        let letter = arena.constant(8, u64::from(index) + 30);
        conditions.push(arena.eq(byte, letter));
    }
    for (name, rounds) in [
        ("truth tables, first time", 1),
        ("truth tables, again", 1000),
    ] {
        let started = Instant::now();
        for _ in 0..rounds {
            for &condition in &conditions {
                let verdict = solver.check(arena, &constraints, &model, condition);
                assert!(matches!(verdict, Verdict::Sat(_)));
            }
        }
        println!(
            "{name:28} {:9.0?} a query",
            started.elapsed() / (rounds * INPUT_BYTES)
        );
    }
    let started = Instant::now();
    for _ in 0..1000 {
        for &condition in &conditions {
            let opposite = arena.not(condition);
            assert!(matches!(
                solver.check(arena, &constraints, &model, opposite),
                Verdict::Sat(_)
            ));
        }
    }
    println!(
        "{:28} {:9.0?} a query",
        "true under the model",
        started.elapsed() / (1000 * INPUT_BYTES)
    );
}

fn main() {
    cheap_layers();
    for paths in [1, 10, 40] {
        run("no products", PLAIN, paths);
    }
    for paths in [10, 40] {
        run("products and quotients", WITH_PRODUCTS, paths);
    }
}
