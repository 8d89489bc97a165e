//! Folds constants and constant expressions to register contents.

use super::shape::{Shapes, limb_widths, mask, sign_extend};
use crate::address;
use crate::code::Lane;
use crate::module::{
    AliasId, BinaryOp, CastOp, ConstId, Constant, ConstantKind, IntPredicate, Module, Type, TypeId,
    Value,
};

/// Why a constant is not plain data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NotPlain {
    /// It must be computed where it is used: the address of a thread-local, floating-point
    /// arithmetic.
    AtRunTime,
    /// It is not supported.
    Unsupported(&'static str),
}

/// The memoised state of a constant.
#[derive(Copy, Clone)]
enum Memo {
    New,
    Open,
    Plain { start: u32, len: u32 },
    NotPlain(NotPlain),
}

/// An item whose value is memoised.
#[derive(Copy, Clone)]
enum FoldItem {
    Constant(ConstId),
    Alias(AliasId),
}

/// Addresses that constants refer to.
pub(super) struct Addresses {
    /// Addresses of the module's globals; `None` for thread-local ones.
    pub globals: Vec<Option<u64>>,
    /// Addresses of the module's functions.
    pub functions: Vec<u64>,
    /// Addresses of aliases that are not just their target.
    pub aliases: Vec<Option<u64>>,
    /// Addresses of the module's ifuncs.
    pub ifuncs: Vec<u64>,
}

/// Folds constants, each once.
pub(super) struct Folder<'a> {
    module: &'a Module,
    pub shapes: Shapes<'a>,
    pub addresses: Addresses,
    constants: Vec<Memo>,
    aliases: Vec<Memo>,
    words: Vec<u64>,
}

impl<'a> Folder<'a> {
    pub fn new(module: &'a Module, addresses: Addresses) -> Self {
        Self {
            module,
            shapes: Shapes::new(&module.types),
            addresses,
            constants: vec![Memo::New; module.constants.len()],
            aliases: vec![Memo::New; module.aliases.len()],
            words: Vec::new(),
        }
    }

    /// Returns the registers of a constant, flattened.
    pub fn words(&mut self, value: Value) -> Result<&[u64], NotPlain> {
        let node = match value {
            Value::Constant(id) => FoldItem::Constant(id),
            Value::Alias(id) => FoldItem::Alias(id),
            _ => {
                let word = self.leaf(value)?;
                let start = self.words.len();
                self.words.push(word);
                return Ok(&self.words[start..]);
            }
        };
        if matches!(self.memo(node), Memo::New) {
            self.evaluate(node);
        }
        match self.memo(node) {
            Memo::Plain { start, len } => Ok(&self.words[start as usize..(start + len) as usize]),
            Memo::NotPlain(reason) => Err(reason),
            Memo::New | Memo::Open => Err(NotPlain::Unsupported("cyclic constant")),
        }
    }

    /// Returns the value of a constant of one register.
    pub fn word(&mut self, value: Value) -> Result<u64, NotPlain> {
        match value {
            Value::Constant(_) | Value::Alias(_) => {
                Ok(self.words(value)?.first().copied().unwrap_or(0))
            }
            _ => self.leaf(value),
        }
    }

    /// Returns the value of an operand that is not a constant with operands of its own.
    fn leaf(&self, value: Value) -> Result<u64, NotPlain> {
        match value {
            Value::Global(id) => self.addresses.globals[id.index()].ok_or(NotPlain::AtRunTime),
            Value::Function(id) => Ok(self.addresses.functions[id.index()]),
            Value::Ifunc(id) => Ok(self.addresses.ifuncs[id.index()]),
            _ => Err(NotPlain::Unsupported("operand that is not a constant")),
        }
    }

    fn memo(&self, node: FoldItem) -> Memo {
        match node {
            FoldItem::Constant(id) => self.constants[id.index()],
            FoldItem::Alias(id) => self.aliases[id.index()],
        }
    }

    fn remember(&mut self, node: FoldItem, memo: Memo) {
        match node {
            FoldItem::Constant(id) => self.constants[id.index()] = memo,
            FoldItem::Alias(id) => self.aliases[id.index()] = memo,
        }
    }

    /// Evaluates an item after its dependencies. Without recursion, because the input determines
    /// the depth.
    fn evaluate(&mut self, start: FoldItem) {
        let mut stack = vec![start];
        while let Some(&node) = stack.last() {
            match self.memo(node) {
                Memo::New => {
                    self.remember(node, Memo::Open);
                    self.push_dependencies(node, &mut stack);
                }
                Memo::Open => {
                    stack.pop();
                    let mut out = Vec::new();
                    let memo = match self.compute(node, &mut out) {
                        Ok(()) => {
                            let start = self.words.len() as u32;
                            self.words.extend_from_slice(&out);
                            Memo::Plain {
                                start,
                                len: out.len() as u32,
                            }
                        }
                        Err(reason) => Memo::NotPlain(reason),
                    };
                    self.remember(node, memo);
                }
                Memo::Plain { .. } | Memo::NotPlain(_) => {
                    stack.pop();
                }
            }
        }
    }

    fn push_dependencies(&self, node: FoldItem, stack: &mut Vec<FoldItem>) {
        let mut push = |value: Value| {
            let operand = match value {
                Value::Constant(id) => FoldItem::Constant(id),
                Value::Alias(id) => FoldItem::Alias(id),
                _ => return,
            };
            if matches!(self.memo(operand), Memo::New) {
                stack.push(operand);
            }
        };
        match node {
            FoldItem::Constant(id) => self.module.constant(id).kind.for_each_operand(push),
            FoldItem::Alias(id) if self.addresses.aliases[id.index()].is_none() => {
                push(self.module.aliases[id.index()].target);
            }
            FoldItem::Alias(_) => {}
        }
    }

    fn compute(&mut self, node: FoldItem, out: &mut Vec<u64>) -> Result<(), NotPlain> {
        match node {
            FoldItem::Constant(id) => self.constant(self.module.constant(id), out),
            FoldItem::Alias(id) => {
                let word = match self.addresses.aliases[id.index()] {
                    Some(address) => address,
                    None => self.known_word(self.module.aliases[id.index()].target)?,
                };
                out.push(word);
                Ok(())
            }
        }
    }

    /// Like [`words`](Self::words), for operands that were evaluated before.
    fn known(&self, value: Value, out: &mut Vec<u64>) -> Result<(), NotPlain> {
        let memo = match value {
            Value::Constant(id) => self.constants[id.index()],
            Value::Alias(id) => self.aliases[id.index()],
            _ => {
                out.push(self.leaf(value)?);
                return Ok(());
            }
        };
        match memo {
            Memo::Plain { start, len } => {
                out.extend_from_slice(&self.words[start as usize..(start + len) as usize]);
                Ok(())
            }
            Memo::NotPlain(reason) => Err(reason),
            Memo::New | Memo::Open => Err(NotPlain::Unsupported("cyclic constant")),
        }
    }

    fn known_words(&self, value: Value) -> Result<Vec<u64>, NotPlain> {
        let mut out = Vec::new();
        self.known(value, &mut out)?;
        Ok(out)
    }

    fn known_word(&self, value: Value) -> Result<u64, NotPlain> {
        Ok(self.known_words(value)?.first().copied().unwrap_or(0))
    }

    fn constant(&mut self, constant: &'a Constant, out: &mut Vec<u64>) -> Result<(), NotPlain> {
        let ty = constant.ty;
        match &constant.kind {
            ConstantKind::Null | ConstantKind::Undef | ConstantKind::Poison => {
                let shape = self.shapes.get(ty).ok_or(NotPlain::Unsupported("type"))?;
                out.resize(shape.registers as usize, 0);
            }
            ConstantKind::Integer(bits) | ConstantKind::Float(bits) => {
                let width = self.lane(ty)?.bits();
                out.push(bits & mask(width));
            }
            ConstantKind::WideInteger(words) => {
                let limbs = self.lane(ty)?.registers() as usize;
                out.extend_from_slice(words);
                out.resize(limbs, 0);
            }
            ConstantKind::WideFloat(words) => out.extend_from_slice(words),
            ConstantKind::Aggregate(members) => {
                for &member in members {
                    self.known(member, out)?;
                }
            }
            ConstantKind::Data(bytes) => self.data(ty, bytes, out)?,
            ConstantKind::Cast { op, value } => self.cast(*op, *value, ty, out)?,
            ConstantKind::Gep {
                source,
                base,
                indices,
                ..
            } => {
                let address = self.gep(*source, *base, indices, ty)?;
                out.push(address);
            }
            ConstantKind::Binary { op, lhs, rhs } => self.binary(*op, *lhs, *rhs, ty, out)?,
            ConstantKind::ICmp {
                predicate,
                lhs,
                rhs,
            } => {
                let lane = self.value_lane(*lhs)?;
                narrow(lane)?;
                let (a, b) = (self.known_words(*lhs)?, self.known_words(*rhs)?);
                let compare = |(a, b): (&u64, &u64)| compare(*predicate, *a, *b, lane.bits());
                out.extend(a.iter().zip(&b).map(|pair| u64::from(compare(pair))));
            }
            ConstantKind::Select {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.known_words(*condition)?;
                let (a, b) = (self.known_words(*then)?, self.known_words(*otherwise)?);
                let per_lane = (a.len() / condition.len().max(1)).max(1);
                out.extend(a.iter().zip(&b).enumerate().map(|(at, (a, b))| {
                    let bit = condition.get(at / per_lane).copied().unwrap_or(0);
                    if bit & 1 == 1 { *a } else { *b }
                }));
            }
            ConstantKind::ExtractElement { vector, index } => {
                let limbs = self.lane(ty)?.registers() as usize;
                let (words, index) = (self.known_words(*vector)?, self.known_word(*index)?);
                let start = (index as usize).saturating_mul(limbs);
                out.extend(
                    (0..limbs).map(|at| words.get(start.saturating_add(at)).copied().unwrap_or(0)),
                );
            }
            ConstantKind::InsertElement {
                vector,
                element,
                index,
            } => {
                let limbs = self.lane(ty)?.registers() as usize;
                self.known(*vector, out)?;
                let (element, index) = (self.known_words(*element)?, self.known_word(*index)?);
                let start = (index as usize).saturating_mul(limbs);
                for (at, word) in element.iter().take(limbs).enumerate() {
                    if let Some(slot) = out.get_mut(start.saturating_add(at)) {
                        *slot = *word;
                    }
                }
            }
            ConstantKind::ShuffleVector { lhs, rhs, mask } => {
                let limbs = self.lane(ty)?.registers() as usize;
                let mut words = self.known_words(*lhs)?;
                self.known(*rhs, &mut words)?;
                for pick in self.known_words(*mask)? {
                    let start = (pick as usize).saturating_mul(limbs);
                    out.extend(
                        (0..limbs)
                            .map(|at| words.get(start.saturating_add(at)).copied().unwrap_or(0)),
                    );
                }
            }
            ConstantKind::BlockAddress { function, block } => {
                out.push(address::block_address(
                    function.index() as u32,
                    block.index() as u32,
                ));
            }
            ConstantKind::DsoLocalEquivalent(value) | ConstantKind::NoCfi(value) => {
                self.known(*value, out)?;
            }
            ConstantKind::FNeg { .. } | ConstantKind::FCmp { .. } => {
                return Err(NotPlain::AtRunTime);
            }
            ConstantKind::Unsupported(name) => return Err(NotPlain::Unsupported(name)),
        }
        Ok(())
    }

    fn lane(&mut self, ty: TypeId) -> Result<Lane, NotPlain> {
        let shape = self.shapes.get(ty).ok_or(NotPlain::Unsupported("type"))?;
        shape.lane.ok_or(NotPlain::Unsupported("type"))
    }

    fn value_lane(&mut self, value: Value) -> Result<Lane, NotPlain> {
        match value {
            Value::Constant(id) => self.lane(self.module.constant(id).ty),
            _ => Ok(Lane::Pointer),
        }
    }

    fn data(&mut self, ty: TypeId, bytes: &[u8], out: &mut Vec<u64>) -> Result<(), NotPlain> {
        let element = self
            .module
            .types
            .element(ty, 0)
            .ok_or(NotPlain::Unsupported("data"))?;
        let size = (self.lane(element)?.bits() / 8).max(1) as usize;
        for chunk in bytes.chunks(size) {
            let mut words = chunk.chunks(8).map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            });
            out.extend(&mut words);
        }
        Ok(())
    }

    fn cast(
        &mut self,
        op: CastOp,
        value: Value,
        ty: TypeId,
        out: &mut Vec<u64>,
    ) -> Result<(), NotPlain> {
        let words = self.known_words(value)?;
        let (from, to) = (self.value_lane(value)?, self.lane(ty)?);
        match op {
            CastOp::BitCast => {
                let total = words.len() as u32 / from.registers().max(1) * from.bits();
                let source: Vec<_> = words
                    .iter()
                    .copied()
                    .zip(limb_widths(from).cycle())
                    .collect();
                let lanes = total / to.bits();
                for lane in 0..lanes {
                    let mut at = lane * to.bits();
                    for width in limb_widths(to) {
                        out.push(gather_words(&source, at, width));
                        at += width;
                    }
                }
                Ok(())
            }
            CastOp::Trunc
            | CastOp::ZExt
            | CastOp::PtrToInt
            | CastOp::IntToPtr
            | CastOp::AddrSpaceCast
            | CastOp::PtrToAddr
            | CastOp::SExt => {
                let limbs = from.registers().max(1) as usize;
                for lane in words.chunks(limbs) {
                    extend(lane, from.bits(), to, op == CastOp::SExt, out);
                }
                Ok(())
            }
            _ => Err(NotPlain::AtRunTime),
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        lhs: Value,
        rhs: Value,
        ty: TypeId,
        out: &mut Vec<u64>,
    ) -> Result<(), NotPlain> {
        let lane = self.lane(ty)?;
        narrow(lane)?;
        let (a, b) = (self.known_words(lhs)?, self.known_words(rhs)?);
        for (a, b) in a.iter().zip(&b) {
            out.push(binary(op, *a, *b, lane.bits()).ok_or(NotPlain::AtRunTime)?);
        }
        Ok(())
    }

    fn gep(
        &mut self,
        source: TypeId,
        base: Value,
        indices: &[Value],
        ty: TypeId,
    ) -> Result<u64, NotPlain> {
        if matches!(self.module.types[ty], Type::Vector { .. }) {
            return Err(NotPlain::AtRunTime);
        }
        let mut address = self.known_word(base)?;
        let mut walk = GepWalk::new(source);
        for &index in indices {
            let width = self.value_lane(index)?.bits();
            let index = sign_extend(self.known_word(index)?, width);
            let step = walk
                .step(self.module, Some(index))
                .ok_or(NotPlain::Unsupported("gep"))?;
            address = address.wrapping_add(match step {
                GepStep::Offset(offset) => offset,
                GepStep::Scale(scale) => scale.wrapping_mul(index),
            });
        }
        Ok(address)
    }
}

/// One step of address arithmetic.
pub(super) enum GepStep {
    /// A field: bytes to add.
    Offset(u64),
    /// An element: bytes to multiply the index by.
    Scale(u64),
}

/// Follows the indices of a `getelementptr` through its types.
pub(super) struct GepWalk {
    ty: TypeId,
    first: bool,
}

impl GepWalk {
    pub fn new(source: TypeId) -> Self {
        Self {
            ty: source,
            first: true,
        }
    }

    /// Returns the number of elements of the array that the next index selects from.
    pub fn array_length(&self, module: &Module) -> Option<u64> {
        match module.types[self.ty] {
            Type::Array { count, .. } if !self.first => Some(count),
            _ => None,
        }
    }

    /// Applies the next index (`None` if not constant); `None` if the types do not allow it.
    pub fn step(&mut self, module: &Module, index: Option<u64>) -> Option<GepStep> {
        let types = &module.types;
        if self.first {
            self.first = false;
            return Some(GepStep::Scale(types.size_of(self.ty)));
        }
        if matches!(types[self.ty], Type::Struct(_)) {
            let field = index?;
            let offset = types.field_offset(self.ty, usize::try_from(field).ok()?)?;
            self.ty = types.element(self.ty, field)?;
            return Some(GepStep::Offset(offset));
        }
        self.ty = types.element(self.ty, 0)?;
        Some(GepStep::Scale(types.size_of(self.ty)))
    }
}

fn narrow(lane: Lane) -> Result<(), NotPlain> {
    let plain = lane.bits() <= 64 && !matches!(lane, Lane::Float(_));
    if plain {
        Ok(())
    } else {
        Err(NotPlain::AtRunTime)
    }
}

/// Changes the width of an integer in limbs.
fn extend(limbs: &[u64], from: u32, to: Lane, signed: bool, out: &mut Vec<u64>) {
    let top = limbs.last().copied().unwrap_or(0);
    let top_width = from.saturating_sub(64 * (limbs.len() as u32).saturating_sub(1));
    let negative = signed && sign_extend(top, top_width) >> 63 == 1;
    for (index, width) in limb_widths(to).enumerate() {
        let word = match limbs.get(index) {
            Some(word) if signed && index + 1 == limbs.len() => sign_extend(*word, top_width),
            Some(word) => *word,
            None if negative => u64::MAX,
            None => 0,
        };
        out.push(word & mask(width));
    }
}

/// Returns `width` bits (at most 64) at bit `low` of concatenated words.
fn gather_words(source: &[(u64, u32)], low: u32, width: u32) -> u64 {
    let mut result = 0;
    let mut start = 0;
    for &(word, bits) in source {
        let (from, to) = (low.max(start), (low + width).min(start + bits));
        if from < to {
            result |= (word >> (from - start) & mask(to - from)) << (from - low);
        }
        start += bits;
    }
    result
}

/// Compares integers of `width` bits.
pub(super) fn compare(predicate: IntPredicate, a: u64, b: u64, width: u32) -> bool {
    let (x, y) = (sign_extend(a, width) as i64, sign_extend(b, width) as i64);
    match predicate {
        IntPredicate::Eq => a == b,
        IntPredicate::Ne => a != b,
        IntPredicate::Ugt => a > b,
        IntPredicate::Uge => a >= b,
        IntPredicate::Ult => a < b,
        IntPredicate::Ule => a <= b,
        IntPredicate::Sgt => x > y,
        IntPredicate::Sge => x >= y,
        IntPredicate::Slt => x < y,
        IntPredicate::Sle => x <= y,
    }
}

/// Computes on integers of `width` bits; `None` if the result is undefined.
pub(super) fn binary(op: BinaryOp, a: u64, b: u64, width: u32) -> Option<u64> {
    let (x, y) = (sign_extend(a, width) as i64, sign_extend(b, width) as i64);
    let shift = u32::try_from(b).ok().filter(|shift| *shift < width);
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::UDiv => a.checked_div(b)?,
        BinaryOp::SDiv => x.checked_div(y)? as u64,
        BinaryOp::URem => a.checked_rem(b)?,
        BinaryOp::SRem => x.checked_rem(y)? as u64,
        BinaryOp::Shl => a << shift?,
        BinaryOp::LShr => a >> shift?,
        BinaryOp::AShr => (x >> shift?) as u64,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        _ => return None,
    };
    Some(result & mask(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_gathered_across_words() {
        let source = [(0x1122_3344, 32), (0x5566_7788, 32), (0x99, 8)];
        assert_eq!(gather_words(&source, 16, 32), 0x7788_1122);
        assert_eq!(gather_words(&source, 60, 12), 0x995);
        assert_eq!(gather_words(&source, 64, 64), 0x99);
    }

    #[test]
    fn widths_change_with_their_sign() {
        let mut out = Vec::new();
        extend(&[0x80], 8, Lane::Int(128), true, &mut out);
        assert_eq!(out, [0xffff_ffff_ffff_ff80, u64::MAX]);
        out.clear();
        extend(&[0x80], 8, Lane::Int(70), false, &mut out);
        assert_eq!(out, [0x80, 0]);
        out.clear();
        extend(&[7, 1], 65, Lane::Int(16), true, &mut out);
        assert_eq!(out, [7]);
        out.clear();
        extend(&[7, 1], 65, Lane::Int(128), true, &mut out);
        assert_eq!(out, [7, u64::MAX]);
    }

    #[test]
    fn undefined_results_are_not_folded() {
        assert_eq!(binary(BinaryOp::Shl, 1, 32, 32), None);
        assert_eq!(binary(BinaryOp::SDiv, 0x80, 0xff, 8), Some(0x80));
        assert_eq!(binary(BinaryOp::UDiv, 1, 0, 8), None);
        assert!(compare(IntPredicate::Slt, 0xff, 0, 8));
    }
}
