//! Prints terms as SMT-LIB. Each term is one definition that names its operands, so the size of the
//! text is linear in the shared graph and nothing nests deeply.

use super::floats;
use everett_expr::{Arena, ArrayId, BinaryOp, CompareOp, ExprId, Node, Variable};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// A query as text, without the commands that start it.
pub struct Script {
    pub text: String,
    /// The declared variables with their names, in the order of declaration.
    pub variables: Vec<(Variable, String)>,
}

/// Prints the query whether all `terms` can hold.
pub fn script(arena: &Arena, terms: &[ExprId]) -> Script {
    let mut printer = Printer::new(arena);
    for &e in terms {
        printer.define(e);
    }
    for &e in terms {
        let name = printer.name(e);
        printer.line(format_args!("(assert (= {name} #b1))"));
    }
    let logic = if printer.has_floats {
        "QF_BVFP"
    } else {
        "QF_BV"
    };
    let text = format!("(set-logic {logic})\n{}", printer.text);
    Script {
        text,
        variables: printer.variables,
    }
}

pub(super) struct Printer<'a> {
    pub arena: &'a Arena,
    text: String,
    /// The numbers of defined terms, in the order of definition. Names are made of these numbers
    /// and not of ids, so that a solver answers alike in every run. Float views are named by id.
    numbers: FxHashMap<ExprId, usize>,
    /// The numbers of arrays, in the order of declaration.
    arrays: FxHashMap<ArrayId, usize>,
    /// The names of defined float views of terms.
    pub float_views: FxHashSet<String>,
    variables: Vec<(Variable, String)>,
    pub has_floats: bool,
}

impl<'a> Printer<'a> {
    fn new(arena: &'a Arena) -> Printer<'a> {
        Printer {
            arena,
            text: String::new(),
            numbers: FxHashMap::default(),
            arrays: FxHashMap::default(),
            float_views: FxHashSet::default(),
            variables: Vec::new(),
            has_floats: false,
        }
    }

    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Returns the reference to a term: constants by value, others by name.
    pub fn name(&self, e: ExprId) -> String {
        match self.arena.node(e) {
            Node::Constant { .. } | Node::WideConstant { .. } => self.constant(e),
            Node::Read { array, index } => format!("v{}_{index}", self.arrays[&array]),
            _ => format!("t{}", self.numbers[&e]),
        }
    }

    fn constant(&self, e: ExprId) -> String {
        let limbs = self.arena.as_const_limbs(e).unwrap_or_default();
        let bit = |at: u32| limbs[at as usize / 64] >> (at % 64) & 1 == 1;
        let bits = (0..self.arena.width(e)).rev();
        std::iter::once("#b")
            .chain(bits.map(|at| if bit(at) { "1" } else { "0" }))
            .collect()
    }

    /// Defines a term after its operands, without recursion.
    fn define(&mut self, root: ExprId) {
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            if self.numbers.contains_key(&e) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let missing = |child: &ExprId| !self.numbers.contains_key(child);
            stack.extend(self.arena.node(e).children().filter(missing));
            if stack.len() == before {
                stack.pop();
                self.numbers.insert(e, self.numbers.len());
                self.define_node(e);
            }
        }
    }

    fn define_node(&mut self, e: ExprId) {
        let node = self.arena.node(e);
        let width = self.arena.width(e);
        let body = match node {
            Node::Constant { .. } | Node::WideConstant { .. } => return,
            Node::Read { array, index } => {
                let next = self.arrays.len();
                self.arrays.entry(array).or_insert(next);
                let name = self.name(e);
                self.line(format_args!("(declare-fun {name} () (_ BitVec 8))"));
                self.variables.push((Variable { array, index }, name));
                return;
            }
            Node::Not { e } => format!("(bvnot {})", self.name(e)),
            Node::Binary { op, a, b } => {
                format!("({} {} {})", binary_name(op), self.name(a), self.name(b))
            }
            Node::Compare { op, a, b } => {
                let (op, a, b) = (compare_name(op), self.name(a), self.name(b));
                format!("(ite ({op} {a} {b}) #b1 #b0)")
            }
            Node::Ite { c, a, b } => {
                format!(
                    "(ite (= {} #b1) {} {})",
                    self.name(c),
                    self.name(a),
                    self.name(b)
                )
            }
            Node::Select { table, index } => {
                let (_, entries) = self.arena.table(table);
                let bits = self.arena.width(index);
                let mut body = String::new();
                selection(&mut body, &self.name(index), bits, &entries, width);
                body
            }
            Node::Extract { e, low } => {
                format!("((_ extract {} {low}) {})", low + width - 1, self.name(e))
            }
            Node::Concat { hi, lo } => format!("(concat {} {})", self.name(hi), self.name(lo)),
            Node::ZeroExtend { e } => {
                format!(
                    "((_ zero_extend {}) {})",
                    width - self.arena.width(e),
                    self.name(e)
                )
            }
            Node::SignExtend { e } => {
                format!(
                    "((_ sign_extend {}) {})",
                    width - self.arena.width(e),
                    self.name(e)
                )
            }
            float => {
                self.has_floats = true;
                floats::body(self, e, float)
            }
        };
        let name = self.name(e);
        self.line(format_args!(
            "(define-fun {name} () (_ BitVec {width}) {body})"
        ));
    }
}

/// Prints the entry of a table at an index of which the lowest `bits` are left, as choices by its
/// bits.
fn selection(out: &mut String, index: &str, bits: u32, entries: &[u64], width: u32) {
    let last = entries[entries.len() - 1];
    if bits == 0 || entries.iter().all(|&entry| entry == last) {
        let _ = write!(out, "(_ bv{} {width})", entries[0]);
        return;
    }
    let bit = bits - 1;
    let half = 1usize.checked_shl(bit).unwrap_or(usize::MAX);
    let (low, high) = entries.split_at(half.min(entries.len()));
    let _ = write!(out, "(ite (= ((_ extract {bit} {bit}) {index}) #b1) ");
    selection(
        out,
        index,
        bit,
        if high.is_empty() {
            &entries[entries.len() - 1..]
        } else {
            high
        },
        width,
    );
    out.push(' ');
    selection(out, index, bit, low, width);
    out.push(')');
}

fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "bvadd",
        BinaryOp::Sub => "bvsub",
        BinaryOp::Mul => "bvmul",
        BinaryOp::UDiv => "bvudiv",
        BinaryOp::SDiv => "bvsdiv",
        BinaryOp::URem => "bvurem",
        BinaryOp::SRem => "bvsrem",
        BinaryOp::And => "bvand",
        BinaryOp::Or => "bvor",
        BinaryOp::Xor => "bvxor",
        BinaryOp::Shl => "bvshl",
        BinaryOp::LShr => "bvlshr",
        BinaryOp::AShr => "bvashr",
    }
}

fn compare_name(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "=",
        CompareOp::Ult => "bvult",
        CompareOp::Ule => "bvule",
        CompareOp::Slt => "bvslt",
        CompareOp::Sle => "bvsle",
    }
}
