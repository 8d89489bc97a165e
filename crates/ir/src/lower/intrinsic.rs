//! LLVM intrinsics: those without code, those that are plain instructions, and those that work lane
//! by lane. All others are built-in operations of the vm.

use super::body::{Body, Ops};
use super::shape::{Shape, mask};
use crate::code::{Callee, ExternalId, Inst, IntFlags, IntPredicate, Lane, Operand, ValueType};
use crate::module::{
    self, BinaryOp, CastOp, ConstantKind, FloatPredicate, InstructionKind, Type, TypeId, Value,
};

/// How an intrinsic is lowered; determined once per name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Intrinsic {
    /// An annotation without effect; it is not even counted.
    Marker,
    /// The begin or end of the scope of a stack slot; it is not counted, either.
    Scope { begins: bool },
    /// No effect.
    Nothing,
    /// The result is the first argument.
    First,
    /// The result is zero.
    Zero,
    /// `llvm.is.constant`: whether the argument is a constant in the code, as a compiler decides it
    /// that does not optimise.
    IsConstant,
    /// `llvm.objectsize`: the size of a stack slot, else unknown.
    ObjectSize,
    /// The minimum or maximum of two integers: the first if the comparison holds.
    Choose(IntPredicate),
    /// The index of the first lane that is not zero; the number of lanes if all are.
    FirstLane,
    /// A constrained floating-point operation that equals the ordinary one.
    Binary(BinaryOp),
    /// A constrained conversion.
    Cast(CastOp),
    /// A constrained comparison.
    FloatCompare { signals: bool },
    /// An operation that works on each lane separately.
    Elementwise,
    /// A built-in operation on the whole value.
    Whole,
}

/// Intrinsics that work lane by lane: names without `llvm.` and types.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "bitreverse",
    "bswap",
    "canonicalize",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "ctlz",
    "ctpop",
    "cttz",
    "exp",
    "exp10",
    "exp2",
    "fabs",
    "floor",
    "fma",
    "fmuladd",
    "fptosi.sat",
    "fptoui.sat",
    "fptrunc.round",
    "frexp",
    "fshl",
    "fshr",
    "is.fpclass",
    "ldexp",
    "llrint",
    "llround",
    "log",
    "log10",
    "log2",
    "lrint",
    "lround",
    "maximum",
    "maximumnum",
    "maxnum",
    "minimum",
    "minimumnum",
    "minnum",
    "modf",
    "nearbyint",
    "pow",
    "powi",
    "rint",
    "round",
    "roundeven",
    "sadd.sat",
    "sadd.with.overflow",
    "scmp",
    "sin",
    "sincos",
    "sinh",
    "smul.fix",
    "smul.fix.sat",
    "smul.with.overflow",
    "sqrt",
    "sshl.sat",
    "ssub.sat",
    "ssub.with.overflow",
    "tan",
    "tanh",
    "trunc",
    "uadd.sat",
    "uadd.with.overflow",
    "ucmp",
    "umul.fix",
    "umul.fix.sat",
    "umul.with.overflow",
    "ushl.sat",
    "usub.sat",
    "usub.with.overflow",
];

impl Intrinsic {
    /// Returns how the intrinsic of this full name is lowered.
    pub fn of(name: &str) -> Intrinsic {
        let rest = name.strip_prefix("llvm.").unwrap_or(name);
        if rest.starts_with("dbg.") {
            return Intrinsic::Marker;
        }
        if let Some(what) = rest.strip_prefix("lifetime.") {
            let begins = what.starts_with("start");
            return Intrinsic::Scope { begins };
        }
        let base = base_name(rest);
        if let Some(constrained) = base.strip_prefix("experimental.constrained.") {
            return constrained_operation(constrained);
        }
        match base {
            "assume" | "pseudoprobe" | "experimental.noalias.scope.decl" => Intrinsic::Marker,
            "donothing"
            | "var.annotation"
            | "invariant.end"
            | "sideeffect"
            | "prefetch"
            | "codeview.annotation"
            | "fake.use" => Intrinsic::Nothing,
            "annotation"
            | "ptr.annotation"
            | "expect"
            | "expect.with.probability"
            | "launder.invariant.group"
            | "strip.invariant.group"
            | "ssa.copy"
            | "arithmetic.fence"
            | "threadlocal.address" => Intrinsic::First,
            "invariant.start" => Intrinsic::Zero,
            "is.constant" => Intrinsic::IsConstant,
            "objectsize" => Intrinsic::ObjectSize,
            "experimental.cttz.elts" => Intrinsic::FirstLane,
            "smax" => Intrinsic::Choose(IntPredicate::Sgt),
            "smin" => Intrinsic::Choose(IntPredicate::Slt),
            "umax" => Intrinsic::Choose(IntPredicate::Ugt),
            "umin" => Intrinsic::Choose(IntPredicate::Ult),
            _ if ELEMENTWISE.binary_search(&base).is_ok() => Intrinsic::Elementwise,
            _ => Intrinsic::Whole,
        }
    }
}

fn constrained_operation(name: &str) -> Intrinsic {
    match name {
        "fadd" => Intrinsic::Binary(BinaryOp::FAdd),
        "fsub" => Intrinsic::Binary(BinaryOp::FSub),
        "fmul" => Intrinsic::Binary(BinaryOp::FMul),
        "fdiv" => Intrinsic::Binary(BinaryOp::FDiv),
        "frem" => Intrinsic::Binary(BinaryOp::FRem),
        "fptosi" => Intrinsic::Cast(CastOp::FpToSi),
        "fptoui" => Intrinsic::Cast(CastOp::FpToUi),
        "sitofp" => Intrinsic::Cast(CastOp::SiToFp),
        "uitofp" => Intrinsic::Cast(CastOp::UiToFp),
        "fptrunc" => Intrinsic::Cast(CastOp::FpTrunc),
        "fpext" => Intrinsic::Cast(CastOp::FpExt),
        "fcmp" => Intrinsic::FloatCompare { signals: false },
        "fcmps" => Intrinsic::FloatCompare { signals: true },
        _ => Intrinsic::Elementwise,
    }
}

/// Returns a name without its type suffixes.
fn base_name(name: &str) -> &str {
    let mut base = name;
    while let Some((front, last)) = base.rsplit_once('.') {
        if !is_type(last) {
            break;
        }
        base = front;
    }
    base
}

/// Returns whether a component of a name denotes a type: `i32`, `p0`, `f64`, `v4i32`, `nxv4i32`,
/// `sl_...`.
fn is_type(component: &str) -> bool {
    let scalar = lane_name(component).unwrap_or(component);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = ["i", "f", "bf", "p", "ppcf"]
        .iter()
        .any(|prefix| scalar.strip_prefix(prefix).is_some_and(digits));
    numbered || scalar.starts_with("sl_") || scalar.starts_with("s_") || scalar.starts_with("nxv")
}

/// Returns the lane's name in a vector's name: `i32` of `v4i32`.
fn lane_name(component: &str) -> Option<&str> {
    let rest = component.strip_prefix('v')?;
    let lane = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    (lane.len() < rest.len() && !lane.is_empty()).then_some(lane)
}

/// Returns the name of the same operation on one lane.
fn scalar_name(name: &str) -> String {
    let plain = name.replace("llvm.experimental.constrained.", "llvm.");
    let components: Vec<&str> = plain
        .split('.')
        .map(|component| lane_name(component).unwrap_or(component))
        .collect();
    components.join(".")
}

impl Body<'_, '_> {
    /// Emits the begin or end of the scope of a stack slot. Optimised code has none: it may read
    /// slots outside of their scope if it does not use the value.
    fn scope(&mut self, begins: bool, slot: Option<Value>) {
        let Some(slot @ Value::Instruction(id)) = slot else {
            return;
        };
        if self.code.optimised || self.analysis.promoted[id.index()] {
            return;
        }
        let slot = self.single(slot);
        self.emit(Inst::Scope { begins, slot });
    }

    /// Returns whether a value is a constant that does not depend on addresses.
    fn is_manifest(&self, value: Value) -> bool {
        let Value::Constant(id) = value else {
            return false;
        };
        match &self.cx.module.constants[id.index()].kind {
            ConstantKind::Null
            | ConstantKind::Undef
            | ConstantKind::Poison
            | ConstantKind::Integer(_)
            | ConstantKind::WideInteger(_)
            | ConstantKind::Float(_)
            | ConstantKind::WideFloat(_)
            | ConstantKind::Data(_) => true,
            ConstantKind::Aggregate(members) => {
                members.iter().all(|&member| self.is_manifest(member))
            }
            _ => false,
        }
    }

    /// Returns the size of the stack slot that a value points to the start of, if it is constant.
    fn slot_size(&mut self, pointer: Value) -> Option<u64> {
        let Value::Instruction(id) = pointer else {
            return None;
        };
        let InstructionKind::Alloca {
            allocated, count, ..
        } = self.function.instructions[id.index()].kind
        else {
            return None;
        };
        let count = self.single(count);
        let count = self.constant_value(count)?;
        self.cx.module.types.size_of(allocated).checked_mul(count)
    }

    /// Lowers a call of an LLVM intrinsic.
    pub fn intrinsic(&mut self, id: ExternalId, call: &module::Call, args: &[Value]) -> Ops {
        let kind = self.cx.intrinsics[id.0 as usize];
        let result = match self.cx.module.types[call.signature] {
            Type::Function { result, .. } => result,
            _ => return Ops::EMPTY,
        };
        let arg = |index: usize| args.get(index).copied();
        if let Some(mode) = self.other_rounding(args)
            && !self.is_exact(kind, arg(0), result)
        {
            let name = &self.cx.externals[id.0 as usize];
            self.unsupported(&format!("{name} with {mode}"));
            let registers = self.shape(result).map_or(0, |shape| shape.registers);
            return self.zeros(registers);
        }
        match (kind, arg(0), arg(1)) {
            (Intrinsic::Marker | Intrinsic::Nothing, ..) => Ops::EMPTY,
            (Intrinsic::Scope { begins }, ..) => {
                self.scope(begins, args.last().copied());
                Ops::EMPTY
            }
            (Intrinsic::First, Some(first), _) => self.operands(first),
            (Intrinsic::Zero, ..) => {
                let registers = self.shape(result).map_or(0, |shape| shape.registers);
                self.zeros(registers)
            }
            (Intrinsic::IsConstant, Some(value), _) => {
                let is_constant = self.constant(u64::from(self.is_manifest(value)));
                self.one(is_constant)
            }
            (Intrinsic::ObjectSize, Some(object), Some(minimum)) => {
                let minimum = self.single(minimum);
                let width = self.lanes_of_type(result).map_or(64, |lane| lane.0.bits());
                let size = match (self.slot_size(object), self.constant_value(minimum)) {
                    (Some(size), _) => size & mask(width),
                    (None, Some(1)) => 0,
                    (None, _) => mask(width),
                };
                let size = self.constant(size);
                self.one(size)
            }
            (Intrinsic::Choose(predicate), Some(a), Some(b)) => {
                self.lesser_or_greater(id, predicate, a, b, call, result)
            }
            (Intrinsic::FirstLane, Some(vector), _) => self
                .first_lane(vector, result)
                .unwrap_or_else(|| self.whole(id, call, args)),
            (Intrinsic::Binary(op), Some(a), Some(b)) => {
                self.binary(op, a, b, IntFlags::default(), result)
            }
            (Intrinsic::Cast(op), Some(value), _) => self.cast(op, value, result),
            (Intrinsic::FloatCompare { signals }, Some(a), Some(b)) => match self.predicate(arg(2))
            {
                Some(predicate) => self.float_compare(predicate, signals, a, b),
                None => self.whole(id, call, args),
            },
            (Intrinsic::Elementwise, ..) => self.elementwise(id, args, call, result),
            _ => self.whole(id, call, args),
        }
    }

    fn whole(&mut self, id: ExternalId, call: &module::Call, args: &[Value]) -> Ops {
        self.emit_call(Callee::External(id), call, args, &[], None)
    }

    /// Returns a metadata argument that is a string.
    fn metadata_string(&self, value: Value) -> Option<&str> {
        let Value::Metadata(index) = value else {
            return None;
        };
        let string = self.cx.module.metadata_strings.get(index as usize)?;
        Some(string)
    }

    /// Returns the rounding mode that an argument requests, unless it is to nearest or the current
    /// mode of the program (`round.dynamic`). Operations to nearest occur in programs that do not
    /// change the mode.
    fn other_rounding(&self, args: &[Value]) -> Option<String> {
        let strings = args.iter().filter_map(|&arg| self.metadata_string(arg));
        let mut modes = strings.filter(|string| string.starts_with("round."));
        modes
            .find(|mode| !matches!(*mode, "round.tonearest" | "round.dynamic"))
            .map(str::to_owned)
    }

    /// Returns whether an operation gives the same result in every rounding mode.
    fn is_exact(&mut self, kind: Intrinsic, value: Option<Value>, result: TypeId) -> bool {
        let signed = match kind {
            Intrinsic::Binary(BinaryOp::FRem) => return true,
            Intrinsic::Cast(CastOp::SiToFp) => true,
            Intrinsic::Cast(CastOp::UiToFp) => false,
            _ => return false,
        };
        let from = value.and_then(|value| self.lanes_of(value));
        match (from, self.lanes_of_type(result)) {
            // The least signed number is a power of two.
            (Some((Lane::Int(width), _)), Some((Lane::Float(to), _))) => {
                u32::from(width) <= to.precision() + u32::from(signed)
            }
            _ => false,
        }
    }

    /// Returns the predicate of a constrained comparison, which is a string.
    fn predicate(&self, value: Option<Value>) -> Option<FloatPredicate> {
        Some(match self.metadata_string(value?)? {
            "oeq" => FloatPredicate::Oeq,
            "ogt" => FloatPredicate::Ogt,
            "oge" => FloatPredicate::Oge,
            "olt" => FloatPredicate::Olt,
            "ole" => FloatPredicate::Ole,
            "one" => FloatPredicate::One,
            "ord" => FloatPredicate::Ord,
            "uno" => FloatPredicate::Uno,
            "ueq" => FloatPredicate::Ueq,
            "ugt" => FloatPredicate::Ugt,
            "uge" => FloatPredicate::Uge,
            "ult" => FloatPredicate::Ult,
            "ule" => FloatPredicate::Ule,
            "une" => FloatPredicate::Une,
            _ => return None,
        })
    }

    /// Lowers `llvm.experimental.cttz.elts` of conditions: one select per lane, the last lane
    /// first.
    fn first_lane(&mut self, vector: Value, result: TypeId) -> Option<Ops> {
        let (_, lanes) = self.lanes_of(vector).filter(|(lane, _)| lane.bits() == 1)?;
        let (number, _) = self.lanes_of_type(result)?;
        if number.bits() > 64 {
            return None;
        }
        let conditions = self.operands(vector);
        let mut first = self.constant(u64::from(lanes) & mask(number.bits()));
        for index in (0..lanes).rev() {
            let condition = self.at(conditions, index);
            let here = self.constant(u64::from(index) & mask(number.bits()));
            first = self.choose(condition, number.bits(), here, first);
        }
        Some(self.one(first))
    }

    /// Lowers `llvm.smax` and similar: a comparison and a select per lane.
    fn lesser_or_greater(
        &mut self,
        id: ExternalId,
        pred: IntPredicate,
        a: Value,
        b: Value,
        call: &module::Call,
        result: TypeId,
    ) -> Ops {
        let Some((lane, lanes)) = self
            .lanes_of_type(result)
            .filter(|(lane, _)| lane.bits() <= 64)
        else {
            return self.elementwise(id, &[a, b], call, result);
        };
        let (a, b) = (self.operands(a), self.operands(b));
        let mut results = Vec::with_capacity(lanes as usize);
        for index in 0..lanes {
            let (a, b) = (self.at(a, index), self.at(b, index));
            let dst = self.register();
            self.emit(Inst::Compare {
                pred,
                width: lane.bits() as u8,
                dst,
                a,
                b,
            });
            results.push(self.choose(Operand::register(dst), lane.bits(), a, b));
        }
        self.ops(results)
    }

    /// Emits one call of the scalar operation per lane.
    fn elementwise(
        &mut self,
        id: ExternalId,
        args: &[Value],
        call: &module::Call,
        result: TypeId,
    ) -> Ops {
        let full_name = self.cx.externals[id.0 as usize].clone();
        let name = scalar_name(&full_name);
        let Some(shape) = self.shape(result) else {
            return self.whole(id, call, args);
        };
        let arguments: Vec<Argument> = args.iter().filter_map(|&arg| self.argument(arg)).collect();
        let lanes = arguments
            .iter()
            .map(|argument| argument.lanes)
            .max()
            .unwrap_or(1);
        if lanes <= 1 {
            if name == full_name {
                return self.whole(id, call, args);
            }
            return self.lane_call(&name, &arguments, 0, shape.value);
        }
        let members = self.result_lanes(result, &shape, lanes);
        let Some(members) = members else {
            return self.whole(id, call, args);
        };
        let result_type = match members[..] {
            [lane] => lane_type(lane),
            _ => ValueType::Aggregate {
                registers: members.iter().map(|lane| lane.registers()).sum::<u32>() as u16,
            },
        };
        let calls: Vec<Ops> = (0..lanes)
            .map(|lane| self.lane_call(&name, &arguments, lane, result_type))
            .collect();
        // In a result of several vectors, all lanes of the first precede those of the second.
        let mut results = Vec::new();
        let mut first = 0;
        for member in members {
            results.extend(
                calls
                    .iter()
                    .map(|call| call.slice(first, member.registers())),
            );
            first += member.registers();
        }
        self.concat(&results)
    }

    /// Returns the lanes of the vectors of which a result consists.
    fn result_lanes(&mut self, result: TypeId, shape: &Shape, lanes: u32) -> Option<Vec<Lane>> {
        if let Some(lane) = shape.lane {
            return (shape.lanes == lanes).then(|| vec![lane]);
        }
        let Type::Struct(body) = &self.cx.module.types[result] else {
            return None;
        };
        body.fields
            .iter()
            .map(|&field| match self.lanes_of_type(field) {
                Some((lane, count)) if count == lanes => Some(lane),
                _ => None,
            })
            .collect()
    }

    fn argument(&mut self, arg: Value) -> Option<Argument> {
        let (lane, lanes) = self.lanes_of(arg)?;
        Some(Argument {
            ops: self.operands(arg),
            lane,
            lanes,
        })
    }

    fn lane_call(
        &mut self,
        name: &str,
        arguments: &[Argument],
        lane: u32,
        result: ValueType,
    ) -> Ops {
        let mut args = Vec::new();
        for argument in arguments {
            let limbs = argument.lane.registers();
            let first = if argument.lanes > 1 { lane * limbs } else { 0 };
            for limb in 0..limbs {
                args.push(self.at(argument.ops, first + limb));
            }
        }
        let types = arguments
            .iter()
            .map(|argument| lane_type(argument.lane))
            .collect();
        self.emit_scalar_call(name, args, types, result)
    }
}

/// An argument of an operation that works lane by lane.
struct Argument {
    ops: Ops,
    lane: Lane,
    lanes: u32,
}

fn lane_type(lane: Lane) -> ValueType {
    match lane {
        Lane::Int(width) => ValueType::Int(width),
        Lane::Pointer => ValueType::Pointer,
        Lane::Float(kind) => ValueType::Float(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert!(ELEMENTWISE.is_sorted());
        assert_eq!(
            Intrinsic::of("llvm.umin.v16i8"),
            Intrinsic::Choose(IntPredicate::Ult)
        );
        assert_eq!(Intrinsic::of("llvm.memcpy.p0.p0.i64"), Intrinsic::Whole);
        assert_eq!(
            Intrinsic::of("llvm.uadd.with.overflow.i64"),
            Intrinsic::Elementwise
        );
        assert_eq!(Intrinsic::of("llvm.dbg.value"), Intrinsic::Marker);
        let scope = |begins| Intrinsic::Scope { begins };
        assert_eq!(Intrinsic::of("llvm.lifetime.start.p0"), scope(true));
        assert_eq!(Intrinsic::of("llvm.lifetime.end.p0"), scope(false));
        assert_eq!(Intrinsic::of("llvm.expect.i1"), Intrinsic::First);
        assert_eq!(
            Intrinsic::of("llvm.experimental.constrained.fadd.f64"),
            Intrinsic::Binary(BinaryOp::FAdd)
        );
        assert_eq!(
            Intrinsic::of("llvm.vector.reduce.add.v4i32"),
            Intrinsic::Whole
        );
        assert_eq!(Intrinsic::of("llvm.is.fpclass.f64"), Intrinsic::Elementwise);
        assert_eq!(Intrinsic::of("llvm.assume"), Intrinsic::Marker);
        assert_eq!(scalar_name("llvm.powi.v4f32.i32"), "llvm.powi.f32.i32");
        assert_eq!(
            scalar_name("llvm.fptosi.sat.v4i32.v4f32"),
            "llvm.fptosi.sat.i32.f32"
        );
        assert_eq!(
            scalar_name("llvm.experimental.constrained.sqrt.v2f64"),
            "llvm.sqrt.f64"
        );
        assert_eq!(lane_name("vector"), None);
    }
}
