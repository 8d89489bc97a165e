//! Analysis of a function before code generation: block order, uses of values, and promotable stack
//! slots.

use super::Context;
use crate::code::Lane;
use crate::module::{
    Block, BlockId, CallId, ConstantKind, Function, InstId, InstructionKind, Ordering, TypeId,
    Value,
};

/// Marks a value that is used in another block or by a phi.
const ELSEWHERE: u32 = u32::MAX;

/// Facts about a function. Tables are indexed by instruction unless stated otherwise.
#[derive(Default)]
pub(super) struct Analysis {
    /// Reachable blocks, each after its dominators.
    pub order: Vec<BlockId>,
    /// Number of uses of the result.
    pub uses: Vec<u32>,
    /// Number of uses of the result as the address of a load or store.
    pub address_uses: Vec<u32>,
    /// Number of uses of the result as an index of address arithmetic.
    pub index_uses: Vec<u32>,
    /// Stack slots that are promoted to registers.
    pub promoted: Vec<bool>,
    /// Loads of promoted slots that need no copy, because there is no store before their last use.
    pub aliased: Vec<bool>,
    /// The last instruction of the same block that uses the value, or [`ELSEWHERE`].
    last: Vec<u32>,
    /// The next store to a promoted slot after the current instruction, with its block.
    next_store: Vec<(u32, u32)>,
}

/// How an operand is used.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Role {
    /// As the address of a load or store of this type.
    Address { ty: TypeId, atomic: bool },
    /// As an index of address arithmetic.
    Index,
    /// By an annotation intrinsic.
    Marker,
    /// In any other way.
    Plain,
}

impl Analysis {
    /// Analyses a function; reuses the memory of the previous analysis.
    pub fn run(&mut self, cx: &mut Context, function: &Function, promote: bool) {
        let count = function.instructions.len();
        reset(&mut self.uses, count, 0);
        reset(&mut self.address_uses, count, 0);
        reset(&mut self.index_uses, count, 0);
        reset(&mut self.promoted, count, false);
        reset(&mut self.aliased, count, false);
        reset(&mut self.last, count, 0);
        reset(&mut self.next_store, count, (ELSEWHERE, ELSEWHERE));
        self.find_order(function);
        if promote {
            self.find_candidates(cx, function);
        }
        let returns_twice = self.count_uses(cx, function);
        if returns_twice {
            // A child of `vfork` shares the memory of its parent, not its registers.
            self.promoted.fill(false);
        }
        if promote {
            self.find_aliases(cx, function);
        }
    }

    /// Computes the reverse postorder, in which the first successor of a block tends to follow it.
    fn find_order(&mut self, function: &Function) {
        self.order.clear();
        if function.blocks.is_empty() {
            return;
        }
        let mut seen = vec![false; function.blocks.len()];
        let mut stack: Vec<(BlockId, Vec<BlockId>)> = Vec::new();
        let entry = BlockId::new(0);
        seen[0] = true;
        stack.push((entry, successors(function, entry)));
        while let Some((block, left)) = stack.last_mut() {
            match left.pop() {
                Some(next) if next.index() < seen.len() && !seen[next.index()] => {
                    seen[next.index()] = true;
                    stack.push((next, successors(function, next)));
                }
                Some(_) => {}
                None => {
                    self.order.push(*block);
                    stack.pop();
                }
            }
        }
        self.order.reverse();
    }

    fn find_candidates(&mut self, cx: &mut Context, function: &Function) {
        let Some(Block { start, end }) = function.blocks.first() else {
            return;
        };
        for index in *start as usize..*end as usize {
            let InstructionKind::Alloca {
                allocated, count, ..
            } = function.instructions[index].kind
            else {
                continue;
            };
            let single = match count {
                Value::Constant(id) => {
                    matches!(cx.module.constant(id).kind, ConstantKind::Integer(1))
                }
                _ => false,
            };
            self.promoted[index] = single && register_lane(cx, allocated).is_some();
        }
    }

    /// Counts uses and drops candidates whose address is used other than by loads and stores.
    /// Returns whether the function calls a function that returns twice, such as `setjmp`.
    fn count_uses(&mut self, cx: &mut Context, function: &Function) -> bool {
        let mut returns_twice = false;
        for &block in &self.order {
            let Block { start, end } = function.blocks[block.index()];
            for index in start as usize..end as usize {
                let instruction = &function.instructions[index];
                if let InstructionKind::Call { call } = instruction.kind {
                    returns_twice |= calls_returning_twice(cx, function, call);
                }
                let phi = matches!(instruction.kind, InstructionKind::Phi { .. });
                for_each_use(cx, function, index, |cx, value, role| {
                    let Value::Instruction(id) = value else {
                        return;
                    };
                    let id = id.index();
                    self.uses[id] += 1;
                    if !(start as usize..index).contains(&id) || phi {
                        self.last[id] = ELSEWHERE;
                    }
                    self.address_uses[id] += u32::from(matches!(role, Role::Address { .. }));
                    self.index_uses[id] += u32::from(role == Role::Index);
                    if self.promoted[id] {
                        self.promoted[id] = match role {
                            Role::Marker => true,
                            Role::Plain | Role::Index => false,
                            Role::Address { atomic: true, .. } => false,
                            Role::Address { ty, .. } => same_bits(cx, function, id, ty),
                        };
                    }
                });
            }
        }
        returns_twice
    }

    /// Finds loads of promoted slots whose uses can read the slot's register directly.
    fn find_aliases(&mut self, cx: &mut Context, function: &Function) {
        if !self.promoted.contains(&true) {
            return;
        }
        for at in 0..self.order.len() {
            let Block { start, end } = function.blocks[self.order[at].index()];
            for index in (start as usize..end as usize).rev() {
                let kind = &function.instructions[index].kind;
                let until = self.needed_until(kind, index);
                for_each_use(cx, function, index, |_, value, _| {
                    let Value::Instruction(id) = value else {
                        return;
                    };
                    self.last[id.index()] = self.last[id.index()].max(until);
                });
                self.note_promoted_access(kind, index, start);
            }
        }
    }

    /// Returns the last position at which the operands of an instruction are read.
    fn needed_until(&self, kind: &InstructionKind, index: usize) -> u32 {
        match kind {
            InstructionKind::Phi { .. } => ELSEWHERE,
            // These emit no code, or emit it at their uses, so their uses read their operands.
            InstructionKind::Cast { .. }
            | InstructionKind::Freeze { .. }
            | InstructionKind::Gep { .. }
            | InstructionKind::ICmp { .. }
            | InstructionKind::Call { .. }
            | InstructionKind::Binary { .. }
            | InstructionKind::ExtractElement { .. }
            | InstructionKind::InsertElement { .. }
            | InstructionKind::ShuffleVector { .. }
            | InstructionKind::ExtractValue { .. }
            | InstructionKind::InsertValue { .. } => self.last[index].max(index as u32),
            _ => index as u32,
        }
    }

    fn note_promoted_access(&mut self, kind: &InstructionKind, index: usize, block: u32) {
        match kind {
            InstructionKind::Store {
                pointer: Value::Instruction(slot),
                ..
            } if self.promoted[slot.index()] => {
                self.next_store[slot.index()] = (index as u32, block);
            }
            InstructionKind::Load {
                pointer: Value::Instruction(slot),
                ..
            } if self.promoted[slot.index()] => {
                let (store, store_block) = self.next_store[slot.index()];
                let limit = if store_block == block {
                    store
                } else {
                    ELSEWHERE - 1
                };
                self.aliased[index] = self.last[index] <= limit;
            }
            _ => {}
        }
    }
}

fn reset<T: Copy>(table: &mut Vec<T>, count: usize, value: T) {
    table.clear();
    table.resize(count, value);
}

/// Returns the scalar type of a slot, if it can be a register.
pub(super) fn register_lane(cx: &mut Context, ty: TypeId) -> Option<Lane> {
    let shape = cx.folder.shapes.get(ty)?;
    let scalar = shape.lanes == 1 && !shape.is_vector() && shape.registers <= 2;
    shape.lane.filter(|_| scalar)
}

/// Returns whether a value of type `ty` fills a slot's registers exactly.
fn same_bits(cx: &mut Context, function: &Function, slot: usize, ty: TypeId) -> bool {
    let InstructionKind::Alloca { allocated, .. } = function.instructions[slot].kind else {
        return false;
    };
    if allocated == ty {
        return true;
    }
    match (register_lane(cx, allocated), register_lane(cx, ty)) {
        (Some(slot), Some(accessed)) => slot.bits() == accessed.bits(),
        _ => false,
    }
}

fn calls_returning_twice(cx: &Context, function: &Function, call: CallId) -> bool {
    let call = &function.calls[call.index()];
    let twice = |id| {
        cx.module
            .attributes(id)
            .is_some_and(|list| list.function.returns_twice)
    };
    let callee_twice = match call.callee {
        Value::Function(id) => twice(cx.module.functions[id.index()].attributes),
        _ => false,
    };
    callee_twice || twice(call.attributes)
}

/// Returns the successors of a block; the preferred fall-through first.
pub(super) fn successors(function: &Function, block: BlockId) -> Vec<BlockId> {
    let Block { start, end } = function.blocks[block.index()];
    let Some(last) = function.instructions[start as usize..end as usize].last() else {
        return Vec::new();
    };
    match last.kind {
        InstructionKind::Branch { target } => vec![target],
        InstructionKind::CondBranch {
            then, otherwise, ..
        } => vec![then, otherwise],
        InstructionKind::Invoke { normal, unwind, .. } => vec![normal, unwind],
        InstructionKind::Switch { default, cases, .. } => {
            let cases = &function.switch_cases[cases.range()];
            [default]
                .into_iter()
                .chain(cases.iter().map(|case| case.target))
                .collect()
        }
        InstructionKind::IndirectBranch { targets, .. } => {
            function.targets[targets.range()].to_vec()
        }
        InstructionKind::CallBr {
            fallthrough,
            indirect,
            ..
        } => {
            let mut all = vec![fallthrough];
            all.extend_from_slice(&function.targets[indirect.range()]);
            all
        }
        _ => Vec::new(),
    }
}

/// Calls `visit` with each operand of an instruction that is a value.
fn for_each_use(
    cx: &mut Context,
    function: &Function,
    index: usize,
    mut visit: impl FnMut(&mut Context, Value, Role),
) {
    use InstructionKind::*;
    let mut plain = |cx: &mut Context, value: Value| visit(cx, value, Role::Plain);
    match function.instructions[index].kind {
        FNeg { value, .. } | Cast { value, .. } | Freeze { value } | Resume { value } => {
            plain(cx, value);
        }
        Binary { lhs, rhs, .. }
        | ICmp { lhs, rhs, .. }
        | FCmp { lhs, rhs, .. }
        | ShuffleVector { lhs, rhs, .. } => {
            plain(cx, lhs);
            plain(cx, rhs);
        }
        Select {
            condition,
            then,
            otherwise,
        } => {
            [condition, then, otherwise]
                .into_iter()
                .for_each(|value| plain(cx, value));
        }
        Phi { edges } => {
            function.phi_edges[edges.range()]
                .iter()
                .for_each(|edge| plain(cx, edge.value));
        }
        Alloca { count, .. } => plain(cx, count),
        Load { pointer, access } => {
            let atomic = access.ordering != Ordering::NotAtomic;
            let ty = function.instructions[index].ty;
            visit(cx, pointer, Role::Address { ty, atomic });
        }
        Store {
            pointer,
            value,
            access,
        } => {
            plain(cx, value);
            let atomic = access.ordering != Ordering::NotAtomic;
            match cx.module.value_type(function, value) {
                Some(ty) => visit(cx, pointer, Role::Address { ty, atomic }),
                None => visit(cx, pointer, Role::Plain),
            }
        }
        Gep { base, indices, .. } => {
            plain(cx, base);
            let indices = function.operand_list(indices);
            indices
                .iter()
                .for_each(|value| visit(cx, *value, Role::Index));
        }
        Call { call } | Invoke { call, .. } | CallBr { call, .. } => {
            let callee = function.calls[call.index()].callee;
            let role = if cx.is_marker(callee) {
                Role::Marker
            } else {
                Role::Plain
            };
            visit(cx, callee, Role::Plain);
            function
                .call_args(call)
                .iter()
                .for_each(|value| visit(cx, *value, role));
        }
        Return { value } => value.into_iter().for_each(|value| plain(cx, value)),
        CondBranch { condition, .. } => plain(cx, condition),
        Switch { value, .. } => plain(cx, value),
        IndirectBranch { address, .. } => plain(cx, address),
        ExtractElement { vector, index } => {
            plain(cx, vector);
            plain(cx, index);
        }
        InsertElement {
            vector,
            element,
            index,
        } => {
            [vector, element, index]
                .into_iter()
                .for_each(|value| plain(cx, value));
        }
        ExtractValue { aggregate, .. } => plain(cx, aggregate),
        InsertValue {
            aggregate, element, ..
        } => {
            plain(cx, aggregate);
            plain(cx, element);
        }
        CmpXchg {
            pointer,
            expected,
            new,
            ..
        } => {
            [pointer, expected, new]
                .into_iter()
                .for_each(|value| plain(cx, value));
        }
        AtomicRmw { pointer, value, .. } => {
            plain(cx, pointer);
            plain(cx, value);
        }
        VaArg { list } => plain(cx, list),
        LandingPad { .. } | Fence { .. } | Branch { .. } | Unreachable | Unsupported { .. } => {}
    }
}

/// Returns the instruction that ends a block.
pub(super) fn terminator(function: &Function, block: BlockId) -> Option<InstId> {
    let Block { start, end } = function.blocks[block.index()];
    (start < end).then(|| InstId::new(end as usize - 1))
}
