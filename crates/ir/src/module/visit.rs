//! Visitors over all references in a function.

use super::instruction::{InstructionKind, Value};
use super::{Function, Linkage};

impl Function {
    /// Calls `visit` once with each operand of each instruction, in no particular order.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        for instruction in &mut self.instructions {
            instruction.kind.for_each_operand_mut(&mut visit);
        }
        self.calls
            .iter_mut()
            .for_each(|call| visit(&mut call.callee));
        self.operands.iter_mut().for_each(&mut visit);
        self.phi_edges
            .iter_mut()
            .for_each(|edge| visit(&mut edge.value));
        self.clauses
            .iter_mut()
            .for_each(|clause| visit(&mut clause.value));
    }

    /// Returns whether the function has a body that takes part in the program.
    pub fn is_definition(&self) -> bool {
        !self.is_declaration() && self.linkage != Linkage::AvailableExternally
    }
}

impl InstructionKind {
    /// Calls `visit` with the operands in the instruction itself, not in a pool.
    pub fn for_each_operand_mut(&mut self, visit: &mut impl FnMut(&mut Value)) {
        use InstructionKind::*;
        match self {
            Phi { .. } | Call { .. } | Invoke { .. } | CallBr { .. } | Branch { .. } => {}
            Unreachable | LandingPad { .. } | Fence { .. } | Unsupported { .. } => {}
            FNeg { value, .. }
            | Cast { value, .. }
            | Switch { value, .. }
            | Resume { value }
            | Freeze { value } => visit(value),
            Return { value } => {
                if let Some(value) = value {
                    visit(value);
                }
            }
            Alloca { count: value, .. }
            | Load { pointer: value, .. }
            | Gep { base: value, .. }
            | CondBranch {
                condition: value, ..
            }
            | IndirectBranch { address: value, .. }
            | ExtractValue {
                aggregate: value, ..
            }
            | VaArg { list: value } => visit(value),
            Binary { lhs: a, rhs: b, .. }
            | ICmp { lhs: a, rhs: b, .. }
            | FCmp { lhs: a, rhs: b, .. }
            | Store {
                pointer: a,
                value: b,
                ..
            }
            | ExtractElement {
                vector: a,
                index: b,
            }
            | ShuffleVector { lhs: a, rhs: b, .. }
            | InsertValue {
                aggregate: a,
                element: b,
                ..
            }
            | AtomicRmw {
                pointer: a,
                value: b,
                ..
            } => {
                visit(a);
                visit(b);
            }
            Select {
                condition: a,
                then: b,
                otherwise: c,
            }
            | InsertElement {
                vector: a,
                element: b,
                index: c,
            }
            | CmpXchg {
                pointer: a,
                expected: b,
                new: c,
                ..
            } => {
                visit(a);
                visit(b);
                visit(c);
            }
        }
    }
}
