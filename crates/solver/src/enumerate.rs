//! Queries with few combinations of values, decided by evaluation: the terms are compiled to a list of operations, and
//! each operation works on the values of 64 combinations at once.

use crate::bytes::{ByteSet, single_byte};
use crate::cache::Query;
use crate::chain::{Solver, Verdict, solution, with_solution};
use crate::lanes;
use crate::model::Model;
use everett_expr::{Arena, CompareOp, ExprId, Node, Support, Variable, scalar};
use rustc_hash::FxHashMap;

/// Queries with more combinations are left to the other layers.
const MAX_COMBINATIONS: u64 = 1 << 16;
/// So are larger ones: to look at them takes time, too.
const MAX_VARIABLES: usize = 256;
/// Combinations that are evaluated together.
const LANES: usize = 64;
/// Operations on 64 values that cost less than making a SAT instance.
const MAX_WORK_FIRST: u64 = 1 << 11;
/// The same where the small SAT solver gave up; CaDiCaL and the SMT solver are expected to take longer.
const MAX_WORK: u64 = 1 << 23;
/// Terms of floats and wide terms are evaluated one combination at a time; so many parts of them at most.
const MAX_PARTS_EVALUATED: u64 = 1 << 22;
const MAX_PARTS_FIRST: u64 = 1 << 10;

/// The values of a term for the combinations under way.
type Lanes = [u64; LANES];

/// How much a query may cost this layer.
#[derive(Clone, Copy, PartialEq)]
pub enum Effort {
    /// It has just come.
    First,
    /// The small SAT solver gave up.
    Hard,
}

/// The values that are left of each byte of a query.
struct Domains {
    /// In the order of the arena, which no other path influences.
    variables: Vec<Variable>,
    values: Vec<Vec<u8>>,
    combinations: u64,
}

/// One operation.
enum Operation {
    /// The byte with this number.
    Byte(usize),
    /// A node with its width, that of its last operand, and positions of the operands: those of earlier operations.
    Of(Node, u32, u32, [usize; 3]),
}

/// The terms of a query as operations.
#[derive(Default)]
struct Program {
    operations: Vec<Operation>,
    /// Positions of terms that must hold.
    roots: Vec<usize>,
    position: FxHashMap<ExprId, usize>,
}

impl Solver {
    /// Decides a query that has few combinations of values; `None` if it has many, or too much to evaluate.
    pub(crate) fn solve_by_enumeration(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        effort: Effort,
    ) -> Option<Verdict> {
        let (domains, open) = self.domains(arena, query, support)?;
        let found = match Program::compile(arena, &open, &domains, effort)? {
            Some(program) => first_by_lanes(&program, &domains),
            None => self.first_by_evaluation(arena, &open, &domains, effort)?,
        };
        self.statistics.by_enumeration += 1;
        let Some(values) = found else {
            self.cache.remember_unsat(query, None);
            return Some(Verdict::Unsat);
        };
        let value = |variable: Variable| {
            let at = domains.variables.iter().position(|&one| one == variable);
            at.map_or_else(|| model.value(variable), |at| values[at])
        };
        let solution = solution(query, support, value);
        let found = with_solution(model, &solution);
        self.cache.remember_sat(query, solution, &found);
        Some(Verdict::Sat(found))
    }

    /// The values that terms over single bytes and bounds leave, and the terms that must be evaluated all the same.
    fn domains(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
    ) -> Option<(Domains, Vec<ExprId>)> {
        let grouped = query.groups.iter().map(|group| group.variables.len());
        if grouped.sum::<usize>() > MAX_VARIABLES {
            return None;
        }
        let mut variables = support.variables().to_vec();
        variables.extend(query.groups.iter().flat_map(|group| &group.variables));
        variables.sort_unstable();
        variables.dedup();
        variables.sort_by_key(|&variable| arena.variable_order(variable));
        let number: FxHashMap<Variable, usize> = (0..)
            .zip(&variables)
            .map(|(at, &variable)| (variable, at))
            .collect();
        let mut allowed = vec![ByteSet::ALL; variables.len()];
        let mut open = Vec::new();
        for e in query.terms() {
            let table = single_byte(arena, e)
                .and_then(|variable| Some((number[&variable], self.tables.table(arena, e)?)));
            match table {
                Some((at, set)) => allowed[at] = allowed[at].intersection(set),
                None => open.push(e),
            }
        }
        // Bounds go by the sign of values, which terms over single bytes may have decided.
        for &e in &open {
            narrow(arena, e, &mut |variable, set| {
                let set = allowed[number[&variable]].intersection(set);
                allowed[number[&variable]] = set;
                set
            });
        }
        let mut combinations = 1u64;
        for set in &allowed {
            combinations = combinations.saturating_mul(set.len());
        }
        if combinations > MAX_COMBINATIONS {
            return None;
        }
        let domains = Domains {
            values: allowed.iter().map(|set| set.iter().collect()).collect(),
            variables,
            combinations,
        };
        Some((domains, open))
    }

    /// The first combination under which all terms hold, tried one by one. `None` if that is too much.
    fn first_by_evaluation(
        &mut self,
        arena: &Arena,
        open: &[ExprId],
        domains: &Domains,
        effort: Effort,
    ) -> Option<Option<Vec<u8>>> {
        let most = match effort {
            Effort::First => MAX_PARTS_FIRST,
            Effort::Hard => MAX_PARTS_EVALUATED,
        };
        let parts = parts(arena, open, most / domains.combinations.max(1))?;
        debug_assert!(parts * domains.combinations <= most);
        let number: FxHashMap<Variable, usize> = (0..)
            .zip(&domains.variables)
            .map(|(at, &variable)| (variable, at))
            .collect();
        let mut values = vec![0; domains.variables.len()];
        Some((0..domains.combinations).find_map(|combination| {
            domains.decode(combination, &mut values);
            let byte = |array, index| values[number[&Variable { array, index }]];
            let holds = |&e: &ExprId| arena.eval(e, &byte, &mut self.scratch) & 1 == 1;
            open.iter().all(holds).then(|| values.clone())
        }))
    }
}

impl Domains {
    /// The values of all bytes in a combination: its digits.
    fn decode(&self, combination: u64, values: &mut [u8]) {
        let mut rest = combination;
        for (value, all) in values.iter_mut().zip(&self.values) {
            *value = all[(rest % all.len() as u64) as usize];
            rest /= all.len() as u64;
        }
    }
}

/// How many different parts the terms have; `None` if more than `most`.
fn parts(arena: &Arena, terms: &[ExprId], most: u64) -> Option<u64> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = terms.to_vec();
    while let Some(e) = stack.pop() {
        if seen.insert(e) {
            if seen.len() as u64 > most {
                return None;
            }
            stack.extend(arena.node(e).children());
        }
    }
    Some(seen.len() as u64)
}

/// Narrows bytes by a comparison of them, put together, with a constant.
fn narrow(arena: &Arena, e: ExprId, keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet) {
    let Node::Compare { op, a, b } = arena.node(e) else {
        return;
    };
    let (CompareOp::Ult | CompareOp::Slt | CompareOp::Ule | CompareOp::Sle, Some(bound)) =
        (op, arena.as_const(b))
    else {
        return;
    };
    let sign = 1u64 << (arena.width(b) - 1);
    if matches!(op, CompareOp::Slt | CompareOp::Sle)
        && (bound & sign != 0 || !is_not_negative(arena, a, keep))
    {
        return;
    }
    let strict = matches!(op, CompareOp::Ult | CompareOp::Slt);
    if let Some(most) = bound.checked_sub(u64::from(strict)) {
        narrow_to(arena, a, most, keep);
    }
}

/// Whether the highest bit of a term is 0 whatever is left of its highest byte.
fn is_not_negative(
    arena: &Arena,
    e: ExprId,
    keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet,
) -> bool {
    match arena.node(e) {
        Node::Concat { hi, .. } => is_not_negative(arena, hi, keep),
        Node::ZeroExtend { .. } => true,
        Node::Read { array, index } => {
            let left = keep(Variable { array, index }, ByteSet::ALL);
            left.iter().all(|value| value < 128)
        }
        _ => false,
    }
}

/// Leaves the bytes of a term the values with which it is at most `most`, as far as each byte alone tells.
fn narrow_to(
    arena: &Arena,
    e: ExprId,
    most: u64,
    keep: &mut dyn FnMut(Variable, ByteSet) -> ByteSet,
) {
    match arena.node(e) {
        Node::Read { array, index } => {
            keep(Variable { array, index }, ByteSet::up_to(most));
        }
        Node::ZeroExtend { e } => narrow_to(arena, e, most, keep),
        Node::Concat { hi, lo } if arena.width(e) <= 64 => {
            let width = arena.width(lo);
            narrow_to(arena, hi, most >> width, keep);
            if most >> width == 0 {
                narrow_to(arena, lo, most & scalar::mask(width), keep);
            }
        }
        _ => {}
    }
}

impl Program {
    /// Compiles the terms. `None` if they are too much to evaluate, `Some(None)` if an operation is not of this kind.
    fn compile(
        arena: &Arena,
        terms: &[ExprId],
        domains: &Domains,
        effort: Effort,
    ) -> Option<Option<Program>> {
        let rounds = domains.combinations.div_ceil(LANES as u64).max(1);
        let most = match effort {
            Effort::First => MAX_WORK_FIRST,
            Effort::Hard => MAX_WORK,
        };
        let mut program = Program::default();
        let mut stack = Vec::new();
        for &root in terms {
            stack.push(root);
            while let Some(&e) = stack.last() {
                let before = stack.len();
                if !program.position.contains_key(&e) {
                    let missing = |child: &ExprId| !program.position.contains_key(child);
                    stack.extend(arena.node(e).children().filter(missing));
                    if stack.len() > before {
                        continue;
                    }
                    if program.operations.len() as u64 >= most / rounds {
                        return None;
                    }
                    let Some(operation) = program.operation(arena, e, domains) else {
                        return Some(None);
                    };
                    program.operations.push(operation);
                    program.position.insert(e, program.operations.len() - 1);
                }
                stack.pop();
            }
            program.roots.push(program.position[&root]);
        }
        Some(Some(program))
    }

    /// `None` for wide terms and floats.
    fn operation(&self, arena: &Arena, e: ExprId, domains: &Domains) -> Option<Operation> {
        if arena.width(e) > 64 {
            return None;
        }
        let node = arena.node(e);
        if let Node::Read { array, index } = node {
            let variable = Variable { array, index };
            let number = domains.variables.iter().position(|&one| one == variable)?;
            return Some(Operation::Byte(number));
        }
        let (mut operands, mut last) = ([0; 3], 0);
        for (operand, child) in operands.iter_mut().zip(node.children()) {
            *operand = self.position[&child];
            last = arena.width(child);
        }
        let width = arena.width(e);
        // Whether the operation is of this kind does not depend on values.
        lanes::apply(node, width, last, [&[0]; 3])?;
        Some(Operation::Of(node, width, last, operands))
    }
}

/// The first combination under which all terms hold.
fn first_by_lanes(program: &Program, domains: &Domains) -> Option<Vec<u8>> {
    let mut bytes = vec![[0u64; LANES]; domains.variables.len()];
    let mut columns = vec![[0u64; LANES]; program.operations.len()];
    let mut values = vec![0; domains.variables.len()];
    let mut first = 0;
    while first < domains.combinations {
        for lane in 0..LANES as u64 {
            // Beyond the end the last combination is evaluated again.
            domains.decode((first + lane).min(domains.combinations - 1), &mut values);
            for (column, &value) in bytes.iter_mut().zip(&values) {
                column[lane as usize] = u64::from(value);
            }
        }
        if let Some(lane) = first_lane(program, &bytes, &mut columns) {
            domains.decode(first + lane as u64, &mut values);
            return Some(values);
        }
        first += LANES as u64;
    }
    None
}

/// The first of the combinations under way under which all terms hold. A term is evaluated while one is left.
fn first_lane(program: &Program, bytes: &[Lanes], columns: &mut [Lanes]) -> Option<usize> {
    let mut holds = [1u64; LANES];
    let mut done = 0;
    for &root in &program.roots {
        while done <= root {
            let (before, rest) = columns.split_at_mut(done);
            rest[0] = evaluate(&program.operations[done], bytes, before);
            done += 1;
        }
        for (holds, truth) in holds.iter_mut().zip(&columns[root]) {
            *holds &= truth;
        }
        if holds.iter().all(|&one| one == 0) {
            return None;
        }
    }
    holds.iter().position(|&one| one != 0)
}

fn evaluate(operation: &Operation, bytes: &[Lanes], columns: &[Lanes]) -> Lanes {
    const UNUSED: Lanes = [0; LANES];
    match *operation {
        Operation::Byte(number) => bytes[number],
        Operation::Of(node, width, last, operands) => {
            // The first operation has no operands, and nothing before it.
            let operands = operands.map(|at| columns.get(at).unwrap_or(&UNUSED));
            lanes::apply(node, width, last, operands).unwrap_or(UNUSED)
        }
    }
}
