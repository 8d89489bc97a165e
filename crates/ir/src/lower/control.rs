//! Instruction dispatch, branches, and the moves that replace phis.

use super::analysis::terminator;
use super::arithmetic::int_predicate;
use super::body::{Body, Label, Ops, Stub, StubKind, ValueHome};
use crate::address;
use crate::code::{
    BranchTargets, Inst, IntFlags, IntPredicate, Lane, Operand, Register, SwitchTable,
};
use crate::module::{BlockId, CallId, CastOp, InstId, Instruction, InstructionKind, Span, Value};

impl<'a> Body<'a, '_> {
    /// Lowers one instruction; `next` is the block whose code follows.
    pub fn instruction(&mut self, id: InstId, instruction: &Instruction, next: Option<BlockId>) {
        use InstructionKind::*;
        let function = self.function;
        let ty = instruction.ty;
        let ops = match instruction.kind {
            FNeg { value, .. } => self.float_negate(value),
            Binary {
                op,
                lhs,
                rhs,
                flags,
            } => {
                let flags = IntFlags {
                    nsw: flags.nsw,
                    nuw: flags.nuw,
                };
                self.binary(op, lhs, rhs, flags, ty)
            }
            Cast { op, value, .. } => {
                if op == CastOp::SExt && self.extend_at_use(id, value, ty) {
                    return;
                }
                self.cast(op, value, ty)
            }
            ICmp {
                predicate,
                lhs,
                rhs,
                ..
            } => {
                if self.is_fused(id, lhs) {
                    return;
                }
                self.integer_compare(predicate, lhs, rhs)
            }
            FCmp {
                predicate,
                lhs,
                rhs,
                ..
            } => self.float_compare(predicate, false, lhs, rhs),
            Select {
                condition,
                then,
                otherwise,
            } => self.select(condition, then, otherwise, ty),
            Phi { .. } => {
                if !matches!(self.values[id.index()], ValueHome::Ops(_)) {
                    self.unsupported("phi after other instructions");
                }
                return;
            }
            Alloca {
                allocated,
                count,
                align,
                ..
            } => {
                return self.alloca(id, allocated, count, align);
            }
            Load { pointer, access } => return self.load(id, pointer, access, ty),
            Store {
                pointer,
                value,
                access,
            } => return self.store(pointer, value, access),
            Gep {
                source,
                base,
                indices,
                ..
            } => {
                return self.gep(id, source, base, function.operand_list(indices), ty);
            }
            Call { call } => self.call(call, None),
            Freeze { value } => self.operands(value),
            ExtractElement { vector, index } => self.extract_element(vector, index, ty),
            InsertElement {
                vector,
                element,
                index,
            } => self.insert_element(vector, element, index, ty),
            ShuffleVector { lhs, rhs, mask } => {
                self.shuffle(lhs, rhs, &function.masks[mask.range()])
            }
            ExtractValue { aggregate, path } => {
                self.extract_value(aggregate, &function.paths[path.range()], ty)
            }
            InsertValue {
                aggregate,
                element,
                path,
            } => self.insert_value(aggregate, element, &function.paths[path.range()], ty),
            Fence { .. } => return self.emit(Inst::Fence),
            CmpXchg {
                pointer,
                expected,
                new,
                ..
            } => self.compare_exchange(pointer, expected, new),
            AtomicRmw {
                op, pointer, value, ..
            } => self.atomic_update(op, pointer, value),
            LandingPad { .. } => {
                let dst = self.fresh(2);
                self.emit(Inst::LandingPad { dst });
                self.run(dst, 2)
            }
            VaArg { .. } => self.no_code("va_arg", instruction),
            Unsupported { name } => self.no_code(name, instruction),
            _ => return self.terminator(id, instruction, next),
        };
        self.define(id, ops);
    }

    fn no_code(&mut self, name: &str, instruction: &Instruction) -> Ops {
        self.unsupported(name);
        let registers = self
            .shape(instruction.ty)
            .map_or(0, |shape| shape.registers);
        self.zeros(registers)
    }

    fn terminator(&mut self, id: InstId, instruction: &Instruction, next: Option<BlockId>) {
        use InstructionKind::*;
        match instruction.kind {
            Invoke {
                call,
                normal,
                unwind,
            } => {
                let pad = self.landing_pad(unwind);
                let ops = self.call(call, Some(pad));
                self.define(id, ops);
                self.go_to(normal, next);
            }
            CallBr {
                call,
                fallthrough,
                indirect,
            } => self.assembly_branch(id, call, fallthrough, indirect),
            Return { value } => {
                let ops = value.map_or(Ops::EMPTY, |value| self.operands(value));
                let list = self.list(ops).to_vec();
                let start = self.code.operands.len() as u32;
                self.code.operands.extend(list);
                self.emit(Inst::Return {
                    values: (start, ops.len()),
                });
            }
            Branch { target } => self.go_to(target, next),
            CondBranch {
                condition,
                then,
                otherwise,
            } => {
                self.conditional_branch(condition, then, otherwise);
            }
            Switch {
                value,
                default,
                cases,
            } => self.switch(value, default, cases),
            IndirectBranch { address, targets } => self.indirect_branch(address, targets),
            Resume { value } => {
                let exception = self.single(value);
                self.emit(Inst::Resume { exception });
            }
            Unreachable => self.emit(Inst::Unreachable),
            _ => self.unsupported("unknown instruction"),
        }
    }

    /// Emits the moves for the phis of `target` and a jump to it.
    fn go_to(&mut self, target: BlockId, next: Option<BlockId>) {
        let moves = self.edge_moves(self.block, target);
        self.move_all(&moves);
        if next != Some(target) {
            self.emit(Inst::Jump {
                target: target.index() as u32,
            });
        }
    }

    /// Returns the label for an edge of a branch with several targets: the block itself, or a stub
    /// that performs the moves first.
    pub fn edge(&mut self, target: BlockId) -> Label {
        if !self.has_phis(target) {
            return Label(target.index() as u32);
        }
        let known = self
            .stubs
            .iter()
            .rev()
            .take_while(|stub| stub.from == self.block);
        for stub in known {
            if stub.to == target && stub.kind == StubKind::Edge {
                return stub.label;
            }
        }
        let label = self.new_label();
        self.stubs.push(Stub {
            from: self.block,
            to: target,
            label,
            location: self.location,
            kind: StubKind::Edge,
        });
        label
    }

    fn has_phis(&self, block: BlockId) -> bool {
        let first = self.function.block(block).next();
        first.is_some_and(|(_, first)| matches!(first.kind, InstructionKind::Phi { .. }))
    }

    /// Returns the phis of `to` with their values if control comes from `from`.
    fn edge_moves(&mut self, from: BlockId, to: BlockId) -> Vec<(Register, Operand)> {
        let mut moves = Vec::new();
        let function = self.function;
        let mut hint = 0;
        for (id, instruction) in function.block(to) {
            let InstructionKind::Phi { edges } = instruction.kind else {
                break;
            };
            let edges = &function.phi_edges[edges.range()];
            // The phis of a block usually list their predecessors in the same order.
            let found = match edges.get(hint) {
                Some(edge) if edge.block == from => Some(hint),
                _ => edges.iter().position(|edge| edge.block == from),
            };
            let Some(position) = found else { continue };
            hint = position;
            let ValueHome::Ops(phi) = self.values[id.index()] else {
                continue;
            };
            let value = self.operands(edges[position].value);
            for index in 0..phi.len() {
                let Some(dst) = self.at(phi, index).as_register() else {
                    continue;
                };
                let src = self.at(value, index);
                moves.push((dst, src));
            }
        }
        moves
    }

    /// Emits parallel moves.
    pub fn move_all(&mut self, moves: &[(Register, Operand)]) {
        if moves.is_empty() {
            return;
        }
        let mut state = std::mem::take(&mut self.moves);
        let mut sequence = Vec::with_capacity(moves.len() + 1);
        state.sequence(
            moves,
            || self.register(),
            |dst, src| sequence.push((dst, src)),
        );
        self.moves = state;
        for (dst, src) in sequence {
            self.emit(Inst::Move { dst, src });
        }
    }

    /// Returns whether a comparison is fused with the branch at the end of its block, its only
    /// user.
    fn is_fused(&mut self, id: InstId, lhs: Value) -> bool {
        if self.analysis.uses[id.index()] != 1 {
            return false;
        }
        let Some(last) = terminator(self.function, self.block) else {
            return false;
        };
        let InstructionKind::CondBranch { condition, .. } =
            self.function.instructions[last.index()].kind
        else {
            return false;
        };
        condition == Value::Instruction(id) && self.narrow_lane(lhs).is_some()
    }

    fn narrow_lane(&mut self, value: Value) -> Option<Lane> {
        let (lane, lanes) = self.lanes_of(value)?;
        let vector = self.shape_of(value).is_some_and(|shape| shape.is_vector());
        (lanes == 1 && lane.registers() == 1 && !vector).then_some(lane)
    }

    fn conditional_branch(&mut self, condition: Value, then: BlockId, otherwise: BlockId) {
        let fused = match condition {
            Value::Instruction(id) => match self.function.instructions[id.index()].kind {
                InstructionKind::ICmp {
                    predicate,
                    lhs,
                    rhs,
                    ..
                } if self.is_local(id) => self.is_fused(id, lhs).then_some((predicate, lhs, rhs)),
                _ => None,
            },
            _ => None,
        };
        match fused {
            Some((predicate, lhs, rhs)) => {
                let width = self.narrow_lane(lhs).map_or(64, |lane| lane.bits()) as u8;
                let (a, b) = (self.single(lhs), self.single(rhs));
                let (then, other) = (self.edge(then).0, self.edge(otherwise).0);
                let target = self.branch_targets(then, other);
                let pred = int_predicate(predicate);
                self.emit(Inst::CompareBranch {
                    pred,
                    width,
                    a,
                    b,
                    target,
                });
            }
            None => {
                let cond = self.single(condition);
                let (then, other) = (self.edge(then).0, self.edge(otherwise).0);
                let target = self.branch_targets(then, other);
                self.emit(Inst::Branch { cond, target });
            }
        }
    }

    /// Adds the labels of a conditional branch, and returns their index.
    fn branch_targets(&mut self, then: u32, other: u32) -> u32 {
        self.code.branches.push(BranchTargets { then, other });
        self.code.branches.len() as u32 - 1
    }

    /// Returns whether an instruction belongs to the current block.
    fn is_local(&self, id: InstId) -> bool {
        let block = self.function.blocks[self.block.index()];
        (block.start as usize..block.end as usize).contains(&id.index())
    }

    fn switch(&mut self, value: Value, default: BlockId, cases: Span) {
        let function = self.function;
        let cases = &function.switch_cases[cases.range()];
        let ops = self.operands(value);
        let Some((Lane::Int(width), 1)) = self.lanes_of(value) else {
            self.unsupported("switch on a value that is not an integer");
            return;
        };
        let default = self.edge(default);
        if width > 64 {
            let value = self.contiguous_exact(ops, Lane::Int(width).registers());
            for case in cases {
                let constant = self.operands(Value::Constant(case.value));
                let b = self.contiguous_exact(constant, Lane::Int(width).registers());
                let dst = self.register();
                let pred = IntPredicate::Eq;
                self.emit(Inst::WideCompare {
                    pred,
                    width,
                    dst,
                    a: value,
                    b,
                });
                let (then, other) = (self.edge(case.target), self.new_label());
                let cond = Operand::register(dst);
                let target = self.branch_targets(then.0, other.0);
                self.emit(Inst::Branch { cond, target });
                self.bind(other);
            }
            self.emit(Inst::Jump { target: default.0 });
            return;
        }
        let mut edges = EdgeCache::default();
        let mut table: Vec<(u64, u32)> = Vec::with_capacity(cases.len());
        for case in cases {
            let word = self
                .cx
                .folder
                .word(Value::Constant(case.value))
                .unwrap_or(0);
            let label = edges.get(self, case.target);
            table.push((word, label.0));
        }
        let table = switch_table(table, default.0);
        let value = self.at(ops, 0);
        let index = self.code.switches.len() as u32;
        self.code.switches.push(table);
        self.emit(Inst::Switch {
            width: width as u8,
            value,
            table: index,
        });
    }

    /// Lowers a computed goto. Its target is known only at run time, so the values of phis are left
    /// in separate registers, from which the entry stub of each block takes them.
    /// Emits `asm goto`: the assembly, and a switch over the target to which it went.
    fn assembly_branch(&mut self, id: InstId, call: CallId, fallthrough: BlockId, targets: Span) {
        let Some((outputs, exit)) = self.branching_assembly(call) else {
            self.unsupported("callbr of what is not inline assembly");
            return;
        };
        self.define(id, outputs);
        self.start_segment();
        let default = self.edge(fallthrough);
        let function = self.function;
        let mut table = Vec::new();
        for (number, &target) in (1..).zip(&function.targets[targets.range()]) {
            table.push((number, self.edge(target).0));
        }
        let index = self.code.switches.len() as u32;
        self.code.switches.push(switch_table(table, default.0));
        self.emit(Inst::Switch {
            width: 64,
            value: exit,
            table: index,
        });
    }

    fn indirect_branch(&mut self, address: Value, targets: Span) {
        let address = self.single(address);
        let function = self.function;
        for (at, &target) in function.targets[targets.range()].iter().enumerate() {
            let earlier = &function.targets[targets.range()][..at];
            if earlier.contains(&target) {
                continue;
            }
            let moves = self.edge_moves(self.block, target);
            let shadow = self.indirect_entry(target);
            for (dst, (_, src)) in (shadow..).zip(moves) {
                self.emit(Inst::Move { dst, src });
            }
        }
        self.emit(Inst::IndirectBranch { address });
    }

    /// Returns the first register in which indirect branches leave the phis of `target`; creates
    /// its entry stub.
    fn indirect_entry(&mut self, target: BlockId) -> Register {
        if let Some(known) = self.shadows.get(&target) {
            return *known;
        }
        let mut registers = 0;
        for (id, instruction) in self.function.block(target) {
            if !matches!(instruction.kind, InstructionKind::Phi { .. }) {
                break;
            }
            if let ValueHome::Ops(ops) = self.values[id.index()] {
                registers += ops.len();
            }
        }
        let shadow = self.fresh(registers);
        self.shadows.insert(target, shadow);
        let label = if registers == 0 {
            Label(target.index() as u32)
        } else {
            let label = self.new_label();
            self.stubs.push(Stub {
                from: self.block,
                to: target,
                label,
                location: self.location,
                kind: StubKind::Indirect { shadow },
            });
            label
        };
        let address = address::block_address(self.id.0, target.index() as u32);
        self.code.block_addresses.insert(address, label.0);
        shadow
    }

    /// Emits the stubs after the blocks.
    pub fn emit_stubs(&mut self) {
        for stub in std::mem::take(&mut self.stubs) {
            self.location = stub.location;
            self.bind(stub.label);
            let mut moves = self.edge_moves(stub.from, stub.to);
            if let StubKind::Indirect { shadow } = stub.kind {
                for ((_, src), register) in moves.iter_mut().zip(shadow..) {
                    *src = Operand::register(register);
                }
            }
            self.move_all(&moves);
            self.emit(Inst::Jump {
                target: stub.to.index() as u32,
            });
        }
    }
}

/// Labels of the edges of one switch: many cases usually lead to few blocks.
#[derive(Default)]
struct EdgeCache {
    labels: std::collections::HashMap<BlockId, Label>,
}

impl EdgeCache {
    fn get(&mut self, body: &mut Body, target: BlockId) -> Label {
        if let Some(label) = self.labels.get(&target) {
            return *label;
        }
        let label = body.edge(target);
        self.labels.insert(target, label);
        label
    }
}

/// Creates the table of a switch; dense if cases fill at least half of its range.
fn switch_table(mut cases: Vec<(u64, u32)>, default: u32) -> SwitchTable {
    cases.sort_unstable_by_key(|case| case.0);
    cases.dedup_by_key(|case| case.0);
    let mut table = SwitchTable {
        default,
        ..SwitchTable::default()
    };
    if let [(first, _), .., (last, _)] = cases[..]
        && cases.len() > 3
        && last - first < 2 * cases.len() as u64
    {
        table.dense_base = first;
        table.dense = vec![default; (last - first) as usize + 1];
        for (value, target) in &cases {
            table.dense[(value - first) as usize] = *target;
        }
    }
    table.cases = cases;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_switches_agree() {
        let dense = switch_table(vec![(5, 50), (3, 30), (4, 40), (9, 90)], 7);
        assert_eq!((dense.dense_base, dense.dense.len()), (3, 7));
        let sparse = switch_table(vec![(5, 50), (3, 30), (4, 40), (900, 90)], 7);
        assert!(sparse.dense.is_empty());
        for (value, target) in [(3, 30), (4, 40), (5, 50), (6, 7), (2, 7), (u64::MAX, 7)] {
            assert_eq!(dense.target(value), target);
            assert_eq!(sparse.target(value), target);
        }
        assert_eq!(dense.target(9), 90);
        assert_eq!(sparse.target(900), 90);
    }
}
