//! Compiles terms to a flat list of operations; each operation computes many
//! combinations of values at once.

use crate::lanes;
use everett_expr::{Arena, BinaryOp, ExprId, Node, Variable};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Terms whose products and divisions take fewer gates than this are left to a SAT solver first.
pub const HARD_ARITHMETIC: u64 = 1 << 10;

/// Estimated number of bits of a table that share a gate.
const GATES_SHARED: u64 = 4;

/// The source of a byte's value.
#[derive(Clone, Copy)]
pub enum Byte {
    /// The byte varies, and has this number.
    Varies(usize),
    /// The byte has this value in all combinations.
    Is(u8),
}

/// One operation.
enum Operation {
    Byte(Byte),
    /// A node with its width, the width of its last operand, and the positions of its operands'
    /// operations, which are earlier ones.
    Of(Node, u32, u32, [usize; 3]),
    /// The entry of a table at an index.
    Select(Arc<[u64]>, usize),
}

/// Terms that must hold, compiled to operations.
#[derive(Default)]
pub struct Program {
    operations: Vec<Operation>,
    /// The positions of terms that must hold.
    roots: Vec<usize>,
    position: FxHashMap<ExprId, usize>,
    /// An estimate of the gates that products, divisions and tables would take in a circuit.
    arithmetic: u64,
}

impl Program {
    /// Compiles the terms, in this order. `None` if that takes more than `most` operations, or for
    /// wide terms and floats.
    pub fn compile(
        arena: &Arena,
        terms: impl Iterator<Item = ExprId>,
        byte: &dyn Fn(Variable) -> Byte,
        most: u64,
    ) -> Option<Program> {
        Program::default().with(arena, terms, byte, most)
    }

    /// Compiles terms whose only input is that of one of their parts. The values of the part take
    /// the place of those of a byte.
    pub fn compile_above(
        arena: &Arena,
        terms: impl Iterator<Item = ExprId>,
        part: ExprId,
        most: u64,
    ) -> Option<Program> {
        let program = Program {
            operations: vec![Operation::Byte(Byte::Varies(0))],
            position: FxHashMap::from_iter([(part, 0)]),
            ..Program::default()
        };
        program.with(arena, terms, &|_| Byte::Is(0), most)
    }

    fn with(
        mut self,
        arena: &Arena,
        terms: impl Iterator<Item = ExprId>,
        byte: &dyn Fn(Variable) -> Byte,
        most: u64,
    ) -> Option<Program> {
        let program = &mut self;
        let mut stack = Vec::new();
        for root in terms {
            stack.push(root);
            while let Some(&e) = stack.last() {
                let before = stack.len();
                if !program.position.contains_key(&e) {
                    let missing = |child: &ExprId| !program.position.contains_key(child);
                    stack.extend(arena.node(e).children().filter(missing));
                    if stack.len() > before {
                        continue;
                    }
                    if program.operations.len() as u64 >= most {
                        return None;
                    }
                    let operation = program.operation(arena, e, byte)?;
                    program.operations.push(operation);
                    program.position.insert(e, program.operations.len() - 1);
                }
                stack.pop();
            }
            program.roots.push(program.position[&root]);
        }
        Some(self)
    }

    /// Returns the number of operations.
    pub fn len(&self) -> u64 {
        self.operations.len() as u64
    }

    /// Returns an estimate of the gates that products, divisions and tables would take in a
    /// circuit.
    pub fn arithmetic(&self) -> u64 {
        self.arithmetic
    }

    /// Compiles one term, whose operands are compiled already; `None` for wide terms and floats.
    fn operation(
        &mut self,
        arena: &Arena,
        e: ExprId,
        byte: &dyn Fn(Variable) -> Byte,
    ) -> Option<Operation> {
        let width = arena.width(e);
        if width > 64 {
            return None;
        }
        let node = arena.node(e);
        if let Node::Read { array, index } = node {
            return Some(Operation::Byte(byte(Variable { array, index })));
        }
        let (mut operands, mut last) = ([0; 3], 0);
        for (operand, child) in operands.iter_mut().zip(node.children()) {
            *operand = self.position[&child];
            last = arena.width(child);
        }
        if let Node::Select { table, .. } = node {
            let entries = arena.table(table).1;
            self.arithmetic += entries.len() as u64 * u64::from(width) / GATES_SHARED;
            return Some(Operation::Select(entries, operands[0]));
        }
        // Whether an operation can be evaluated in lanes does not depend on the values.
        lanes::apply(node, width, last, [&[0]; 3])?;
        self.arithmetic += arithmetic(arena, node);
        Some(Operation::Of(node, width, last, operands))
    }

    /// Returns the first combination in `bytes` under which all terms hold.
    pub fn first_lane<const N: usize>(
        &self,
        bytes: &[[u64; N]],
        columns: &mut Vec<[u64; N]>,
    ) -> Option<usize> {
        let truths = self.truths(bytes, columns)?;
        truths.iter().position(|&one| one != 0)
    }

    /// Returns 1 for each combination in `bytes` under which all terms hold, and 0 for the others;
    /// `None` if there is none. Evaluates terms only until no combination is left.
    pub fn truths<const N: usize>(
        &self,
        bytes: &[[u64; N]],
        columns: &mut Vec<[u64; N]>,
    ) -> Option<[u64; N]> {
        columns.resize(self.operations.len(), [0; N]);
        let mut holds = [1u64; N];
        let mut done = 0;
        for &root in &self.roots {
            while done <= root {
                let (before, rest) = columns.split_at_mut(done);
                rest[0] = evaluate(&self.operations[done], bytes, before);
                done += 1;
            }
            for (holds, truth) in holds.iter_mut().zip(&columns[root]) {
                *holds &= truth;
            }
            if holds.iter().all(|&one| one == 0) {
                return None;
            }
        }
        Some(holds)
    }
}

/// Returns an estimate of the gates that a node would take in a circuit.
fn arithmetic(arena: &Arena, node: Node) -> u64 {
    let Node::Binary { op, a, b } = node else {
        return 0;
    };
    let length = |e: ExprId| u64::from(64 - arena.unsigned_range(e).1.leading_zeros());
    let rows = |e: ExprId| match arena.as_const(e) {
        // The approximate number of non-zero digits of the non-adjacent form.
        Some(bits) => u64::from((bits ^ bits.wrapping_mul(3)).count_ones()),
        None => length(e),
    };
    match op {
        BinaryOp::Mul => rows(a).min(rows(b)) * u64::from(arena.width(a)),
        // A product with an unknown factor, which a SAT solver has to find.
        BinaryOp::UDiv | BinaryOp::URem | BinaryOp::SDiv | BinaryOp::SRem => {
            4 * rows(b) * length(a)
        }
        _ => 0,
    }
}

fn evaluate<const N: usize>(
    operation: &Operation,
    bytes: &[[u64; N]],
    columns: &[[u64; N]],
) -> [u64; N] {
    let unused = [0; N];
    match operation {
        &Operation::Byte(Byte::Varies(number)) => bytes[number],
        &Operation::Byte(Byte::Is(value)) => [u64::from(value); N],
        Operation::Select(entries, index) => lanes::look_up(entries, &columns[*index]),
        &Operation::Of(node, width, last, operands) => {
            // The first operation has no operands, and nothing before it.
            let operands = operands.map(|at| columns.get(at).unwrap_or(&unused));
            lanes::apply(node, width, last, operands).unwrap_or(unused)
        }
    }
}
