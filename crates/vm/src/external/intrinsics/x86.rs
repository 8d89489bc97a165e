//! x86 vector intrinsics: those of baseline x86-64, and of a few later extensions.

use everett_expr::{
    Arena, BinaryOp, ExprId, FloatCompareOp, FloatFormat, FloatUnaryOp, RoundingMode,
};
use everett_ir::code::{FloatPredicate, IntOp, Lane};

use super::super::environment::{known_flags, set_mxcsr};
use super::super::{Operation, supplied};
use crate::floating::format;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.x86.sse2.pmovmskb.128", movmsk),
    supplied("llvm.x86.sse2.movmsk.pd", movmsk),
    supplied("llvm.x86.sse.movmsk.ps", movmsk),
    supplied("llvm.x86.sse2.packsswb.128", pack_signed),
    supplied("llvm.x86.sse2.packssdw.128", pack_signed),
    supplied("llvm.x86.sse2.packuswb.128", pack_unsigned),
    supplied("llvm.x86.sse41.packusdw", pack_unsigned),
    supplied("llvm.x86.sse2.pmulh.w", pmulh),
    supplied("llvm.x86.sse2.pmulhu.w", pmulhu),
    supplied("llvm.x86.sse2.pmadd.wd", pmadd_wd),
    supplied("llvm.x86.ssse3.pmadd.ub.sw.128", pmadd_ub_sw),
    supplied("llvm.x86.sse2.pavg.b", pavg),
    supplied("llvm.x86.sse2.pavg.w", pavg),
    supplied("llvm.x86.sse2.psad.bw", psad_bw),
    supplied("llvm.x86.ssse3.pshuf.b.128", pshuf_b),
    supplied("llvm.x86.sse41.pblendvb", blend),
    supplied("llvm.x86.sse41.blendvps", blend),
    supplied("llvm.x86.sse41.blendvpd", blend),
    supplied("llvm.x86.sse41.ptestz", ptestz),
    supplied("llvm.x86.sse41.ptestc", ptestc),
    supplied("llvm.x86.sse2.psll.w", shift_left),
    supplied("llvm.x86.sse2.psll.d", shift_left),
    supplied("llvm.x86.sse2.psll.q", shift_left),
    supplied("llvm.x86.sse2.pslli.w", shift_left),
    supplied("llvm.x86.sse2.pslli.d", shift_left),
    supplied("llvm.x86.sse2.pslli.q", shift_left),
    supplied("llvm.x86.sse2.psrl.w", shift_right),
    supplied("llvm.x86.sse2.psrl.d", shift_right),
    supplied("llvm.x86.sse2.psrl.q", shift_right),
    supplied("llvm.x86.sse2.psrli.w", shift_right),
    supplied("llvm.x86.sse2.psrli.d", shift_right),
    supplied("llvm.x86.sse2.psrli.q", shift_right),
    supplied("llvm.x86.sse2.psra.w", shift_arithmetic),
    supplied("llvm.x86.sse2.psra.d", shift_arithmetic),
    supplied("llvm.x86.sse2.psrai.w", shift_arithmetic),
    supplied("llvm.x86.sse2.psrai.d", shift_arithmetic),
    supplied("llvm.x86.sse2.cvtsd2si", to_int_rounded),
    supplied("llvm.x86.sse2.cvtsd2si64", to_int_rounded),
    supplied("llvm.x86.sse2.cvttsd2si", to_int_truncated),
    supplied("llvm.x86.sse2.cvttsd2si64", to_int_truncated),
    supplied("llvm.x86.sse.cvtss2si", to_int_rounded),
    supplied("llvm.x86.sse.cvtss2si64", to_int_rounded),
    supplied("llvm.x86.sse.cvttss2si", to_int_truncated),
    supplied("llvm.x86.sse.cvttss2si64", to_int_truncated),
    supplied("llvm.x86.sse2.cvtps2dq", lanes_to_int_rounded),
    supplied("llvm.x86.sse2.cvttps2dq", lanes_to_int_truncated),
    supplied("llvm.x86.sse2.cvtpd2dq", lanes_to_int_rounded),
    supplied("llvm.x86.sse2.cvttpd2dq", lanes_to_int_truncated),
    supplied("llvm.x86.sse.min.ps", min_packed),
    supplied("llvm.x86.sse2.min.pd", min_packed),
    supplied("llvm.x86.sse.max.ps", max_packed),
    supplied("llvm.x86.sse2.max.pd", max_packed),
    supplied("llvm.x86.sse.min.ss", min_single),
    supplied("llvm.x86.sse2.min.sd", min_single),
    supplied("llvm.x86.sse.max.ss", max_single),
    supplied("llvm.x86.sse2.max.sd", max_single),
    supplied("llvm.x86.sse.cmp.ps", cmp_packed),
    supplied("llvm.x86.sse2.cmp.pd", cmp_packed),
    supplied("llvm.x86.sse.cmp.ss", cmp_single),
    supplied("llvm.x86.sse2.cmp.sd", cmp_single),
    supplied("llvm.x86.sse.comieq.ss", comi),
    supplied("llvm.x86.sse.comilt.ss", comi),
    supplied("llvm.x86.sse.comile.ss", comi),
    supplied("llvm.x86.sse.comigt.ss", comi),
    supplied("llvm.x86.sse.comige.ss", comi),
    supplied("llvm.x86.sse.comineq.ss", comi),
    supplied("llvm.x86.sse.ucomieq.ss", comi),
    supplied("llvm.x86.sse.ucomilt.ss", comi),
    supplied("llvm.x86.sse.ucomile.ss", comi),
    supplied("llvm.x86.sse.ucomigt.ss", comi),
    supplied("llvm.x86.sse.ucomige.ss", comi),
    supplied("llvm.x86.sse.ucomineq.ss", comi),
    supplied("llvm.x86.sse2.comieq.sd", comi),
    supplied("llvm.x86.sse2.comilt.sd", comi),
    supplied("llvm.x86.sse2.comile.sd", comi),
    supplied("llvm.x86.sse2.comigt.sd", comi),
    supplied("llvm.x86.sse2.comige.sd", comi),
    supplied("llvm.x86.sse2.comineq.sd", comi),
    supplied("llvm.x86.sse2.ucomieq.sd", comi),
    supplied("llvm.x86.sse2.ucomilt.sd", comi),
    supplied("llvm.x86.sse2.ucomile.sd", comi),
    supplied("llvm.x86.sse2.ucomigt.sd", comi),
    supplied("llvm.x86.sse2.ucomige.sd", comi),
    supplied("llvm.x86.sse2.ucomineq.sd", comi),
    supplied("llvm.x86.sse.stmxcsr", stmxcsr),
    supplied("llvm.x86.sse.ldmxcsr", ldmxcsr),
    supplied("llvm.x86.sse.sfence", nothing),
    supplied("llvm.x86.sse2.lfence", nothing),
    supplied("llvm.x86.sse2.mfence", nothing),
    supplied("llvm.x86.sse2.pause", nothing),
    supplied("llvm.x86.sse2.clflush", nothing),
    supplied("llvm.x86.sse42.crc32.32.8", crc32),
    supplied("llvm.x86.sse42.crc32.32.16", crc32),
    supplied("llvm.x86.sse42.crc32.32.32", crc32),
    supplied("llvm.x86.sse42.crc32.64.64", crc32),
    supplied("llvm.x86.addcarry.32", addcarry),
    supplied("llvm.x86.addcarry.64", addcarry),
    supplied("llvm.x86.subborrow.32", subborrow),
    supplied("llvm.x86.subborrow.64", subborrow),
    supplied("llvm.x86.rdtsc", rdtsc),
    supplied("llvm.x86.rdtscp", rdtscp),
    supplied("llvm.x86.xgetbv", xgetbv),
];

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

/// Returns the sign bits of all lanes.
fn movmsk(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (lane, count) = args.lanes(0)?;
    let top = lane.bits() - 1;
    if args.values.iter().all(|value| value.term.is_none()) {
        let lanes = args.values.iter().take(count).enumerate();
        let bits = lanes.fold(0, |bits, (at, lane)| bits | (lane.bits >> top & 1) << at);
        return Ok(Done::Value(Value::concrete(bits)));
    }
    let (_, lanes) = vm.lane_terms(args, 0)?;
    let arena = &mut *vm.arena;
    let signs: Vec<ExprId> = lanes
        .into_iter()
        .map(|lane| arena.extract(lane, top, 1))
        .collect();
    let bits = arena.concat_bytes(&signs);
    let result = arena.zext(bits, args.result_width());
    Ok(vm.done(result))
}

/// Saturates a signed number to half its width.
fn saturate(arena: &mut Arena, e: ExprId, signed: bool) -> ExprId {
    let width = arena.width(e);
    let half = width / 2;
    let (least, greatest) = if signed {
        let greatest = (1u64 << (half - 1)) - 1;
        (!greatest, greatest)
    } else {
        (0, (1u64 << half) - 1)
    };
    let (least, greatest) = (
        arena.constant(width, least),
        arena.constant(width, greatest),
    );
    let too_small = arena.slt(e, least);
    let too_large = arena.sgt(e, greatest);
    let result = arena.ite(too_large, greatest, e);
    let result = arena.ite(too_small, least, result);
    arena.extract(result, 0, half)
}

fn pack(vm: &mut Vm<'_>, args: &Arguments<'_>, signed: bool) -> Result<Done, Interrupt> {
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let lanes: Vec<ExprId> = first
        .into_iter()
        .chain(second)
        .map(|lane| saturate(vm.arena, lane, signed))
        .collect();
    Ok(vm.done_lanes(lanes))
}

fn pack_signed(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    pack(vm, args, true)
}

fn pack_unsigned(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    pack(vm, args, false)
}

/// Combines two vectors lane by lane.
fn zip(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    combine: impl Fn(&mut Arena, u32, ExprId, ExprId) -> ExprId,
) -> Result<Done, Interrupt> {
    let (lane, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let lanes: Vec<ExprId> = first
        .into_iter()
        .zip(second)
        .map(|(x, y)| combine(vm.arena, lane.bits(), x, y))
        .collect();
    Ok(vm.done_lanes(lanes))
}

fn pmulh(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    zip(vm, args, |arena, width, x, y| {
        let (x, y) = (arena.sext(x, 2 * width), arena.sext(y, 2 * width));
        let product = arena.mul(x, y);
        arena.extract(product, width, width)
    })
}

fn pmulhu(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    zip(vm, args, |arena, width, x, y| {
        let (x, y) = (arena.zext(x, 2 * width), arena.zext(y, 2 * width));
        let product = arena.mul(x, y);
        arena.extract(product, width, width)
    })
}

/// Computes sums of adjacent products.
fn pmadd_wd(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let products: Vec<ExprId> = first
        .into_iter()
        .zip(second)
        .map(|(x, y)| {
            let (x, y) = (vm.arena.sext(x, 32), vm.arena.sext(y, 32));
            vm.arena.mul(x, y)
        })
        .collect();
    let sums: Vec<ExprId> = products
        .chunks_exact(2)
        .map(|pair| vm.arena.add(pair[0], pair[1]))
        .collect();
    Ok(vm.done_lanes(sums))
}

/// Computes saturated sums of adjacent products of unsigned and signed bytes.
fn pmadd_ub_sw(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let products: Vec<ExprId> = first
        .into_iter()
        .zip(second)
        .map(|(x, y)| {
            let (x, y) = (vm.arena.zext(x, 32), vm.arena.sext(y, 32));
            vm.arena.mul(x, y)
        })
        .collect();
    let sums: Vec<ExprId> = products
        .chunks_exact(2)
        .map(|pair| {
            let sum = vm.arena.add(pair[0], pair[1]);
            saturate(vm.arena, sum, true)
        })
        .collect();
    Ok(vm.done_lanes(sums))
}

fn pavg(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    zip(vm, args, |arena, width, x, y| {
        let (x, y) = (arena.zext(x, width + 1), arena.zext(y, width + 1));
        let sum = arena.add(x, y);
        let one = arena.constant(width + 1, 1);
        let sum = arena.add(sum, one);
        arena.extract(sum, 1, width)
    })
}

/// Computes sums of absolute differences over groups of eight bytes.
fn psad_bw(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let arena = &mut *vm.arena;
    let distances: Vec<ExprId> = first
        .into_iter()
        .zip(second)
        .map(|(x, y)| {
            let less = arena.ult(x, y);
            let (up, down) = (arena.sub(y, x), arena.sub(x, y));
            let distance = arena.ite(less, up, down);
            arena.zext(distance, 64)
        })
        .collect();
    let zero = arena.zero(64);
    let sums: Vec<ExprId> = distances
        .chunks(8)
        .map(|part| {
            part.iter()
                .fold(zero, |sum, &distance| arena.add(sum, distance))
        })
        .collect();
    Ok(vm.done_lanes(sums))
}

/// Selects bytes by the low bits of the second vector; its high bit selects zero.
fn pshuf_b(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (_, bytes) = vm.lane_terms(args, 0)?;
    let (_, choices) = vm.lane_terms(args, 1)?;
    let arena = &mut *vm.arena;
    let zero = arena.zero(8);
    let lanes: Vec<ExprId> = choices
        .into_iter()
        .map(|choice| {
            let position = arena.extract(choice, 0, 4);
            let mut chosen = zero;
            for (at, byte) in bytes.iter().enumerate() {
                let here = arena.constant(4, at as u64);
                let here = arena.eq(position, here);
                chosen = arena.ite(here, *byte, chosen);
            }
            let clear = arena.extract(choice, 7, 1);
            arena.ite(clear, zero, chosen)
        })
        .collect();
    Ok(vm.done_lanes(lanes))
}

/// Selects lanes of the second vector where the third has its sign bit set.
fn blend(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let (lane, _) = args.lanes(0)?;
    let (_, choices) = vm.lane_terms(args, 2)?;
    let mut choices = choices.into_iter();
    let signs: Vec<ExprId> = choices
        .by_ref()
        .map(|choice| vm.arena.extract(choice, lane.bits() - 1, 1))
        .collect();
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let lanes: Vec<ExprId> = signs
        .into_iter()
        .zip(first.into_iter().zip(second))
        .map(|(sign, (x, y))| vm.arena.ite(sign, y, x))
        .collect();
    Ok(vm.done_lanes(lanes))
}

/// Returns whether the second vector has no set bit outside (or inside) the first.
fn test_bits(vm: &mut Vm<'_>, args: &Arguments<'_>, inverted: bool) -> Result<Done, Interrupt> {
    let (_, first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    let arena = &mut *vm.arena;
    let mut all = arena.bool_constant(true);
    for (x, y) in first.into_iter().zip(second) {
        let x = if inverted { arena.not(x) } else { x };
        let both = arena.and(x, y);
        let width = arena.width(both);
        let zero = arena.zero(width);
        let none = arena.eq(both, zero);
        all = arena.and(all, none);
    }
    let result = arena.zext(all, args.result_width());
    Ok(vm.done(result))
}

fn ptestz(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    test_bits(vm, args, false)
}

fn ptestc(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    test_bits(vm, args, true)
}

/// Shifts all lanes by the same amount: the low 64 bits of a vector, or an integer.
fn shift(vm: &mut Vm<'_>, args: &Arguments<'_>, op: BinaryOp) -> Result<Done, Interrupt> {
    let (lane, lanes) = vm.lane_terms(args, 0)?;
    let width = lane.bits();
    let count = match args.lanes(1) {
        Ok((count_lane, _)) => {
            let (_, parts) = vm.lane_terms(args, 1)?;
            let low = 64 / count_lane.bits() as usize;
            vm.arena.concat_bytes(&parts[..low.min(parts.len())])
        }
        Err(_) => {
            let count = vm.operand_term(args, 1, 32);
            vm.arena.zext(count, 64)
        }
    };
    // An amount of at least the width clears the lane, or fills it with the sign.
    let limit = vm.arena.constant(64, u64::from(width));
    let small = vm.arena.ult(count, limit);
    let count = vm.arena.ite(small, count, limit);
    let count = vm.arena.zext_or_trunc(count, width);
    let lanes: Vec<ExprId> = lanes
        .into_iter()
        .map(|lane| vm.arena.binary(op, lane, count))
        .collect();
    Ok(vm.done_lanes(lanes))
}

fn shift_left(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    shift(vm, args, BinaryOp::Shl)
}

fn shift_right(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    shift(vm, args, BinaryOp::LShr)
}

fn shift_arithmetic(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    shift(vm, args, BinaryOp::AShr)
}

fn lane_format(args: &Arguments<'_>) -> Result<FloatFormat, Interrupt> {
    match args.lanes(0)?.0 {
        Lane::Float(kind) => format(kind),
        _ => Err(args.unsupported("for lanes that are not floating-point values")),
    }
}

fn convert(arena: &mut Arena, format: FloatFormat, x: ExprId, width: u32, round: bool) -> ExprId {
    let nearest = FloatUnaryOp::RoundToIntegral(RoundingMode::NearestEven);
    let x = if round {
        arena.float_unary(nearest, format, x)
    } else {
        x
    };
    arena.float_to_int(true, format, x, width)
}

fn to_int(vm: &mut Vm<'_>, args: &Arguments<'_>, round: bool) -> Result<Done, Interrupt> {
    let format = lane_format(args)?;
    let (_, lanes) = vm.lane_terms(args, 0)?;
    let mode = round.then(|| vm.float_rounding(format));
    let result = vm.float_to_int_term(format, mode, lanes[0], args.result_width());
    Ok(vm.done(result))
}

fn to_int_rounded(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    to_int(vm, args, true)
}

fn to_int_truncated(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    to_int(vm, args, false)
}

/// Converts lanes to integers. Lanes without a counterpart are zero.
fn lanes_to_int(vm: &mut Vm<'_>, args: &Arguments<'_>, round: bool) -> Result<Done, Interrupt> {
    let format = lane_format(args)?;
    let (_, lanes) = vm.lane_terms(args, 0)?;
    let width = args.result_width();
    let mut results: Vec<ExprId> = lanes
        .into_iter()
        .map(|lane| convert(vm.arena, format, lane, width, round))
        .collect();
    let zero = vm.arena.zero(width);
    results.resize(args.call.result.registers() as usize, zero);
    Ok(vm.done_lanes(results))
}

fn lanes_to_int_rounded(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    lanes_to_int(vm, args, true)
}

fn lanes_to_int_truncated(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    lanes_to_int(vm, args, false)
}

/// Computes only the first lane; the others are those of the first vector.
fn first_lane_only(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    combine: impl Fn(&mut Arena, u32, ExprId, ExprId) -> ExprId,
) -> Result<Done, Interrupt> {
    let (lane, mut first) = vm.lane_terms(args, 0)?;
    let (_, second) = vm.lane_terms(args, 1)?;
    first[0] = combine(vm.arena, lane.bits(), first[0], second[0]);
    Ok(vm.done_lanes(first))
}

/// Returns the minimum as the processor does: the second operand if the comparison fails, also for
/// NaNs.
fn lesser(format: FloatFormat) -> impl Fn(&mut Arena, u32, ExprId, ExprId) -> ExprId {
    move |arena, _, x, y| {
        let less = arena.float_compare(FloatCompareOp::Olt, format, x, y);
        arena.ite(less, x, y)
    }
}

fn greater(format: FloatFormat) -> impl Fn(&mut Arena, u32, ExprId, ExprId) -> ExprId {
    move |arena, _, x, y| {
        let less = arena.float_compare(FloatCompareOp::Olt, format, y, x);
        arena.ite(less, x, y)
    }
}

fn min_packed(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    zip(vm, args, lesser(lane_format(args)?))
}

fn max_packed(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    zip(vm, args, greater(lane_format(args)?))
}

fn min_single(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    first_lane_only(vm, args, lesser(lane_format(args)?))
}

fn max_single(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    first_lane_only(vm, args, greater(lane_format(args)?))
}

/// Compares lanes with the predicate in the third argument; all ones where it holds.
fn comparison(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
) -> Result<impl Fn(&mut Arena, u32, ExprId, ExprId) -> ExprId + use<>, Interrupt> {
    let format = lane_format(args)?;
    let predicate = args.operand(2)[0];
    let predicate = vm.concretize(predicate)?;
    let (op, negate) = match predicate & 7 {
        0 => (FloatCompareOp::Oeq, false),
        1 => (FloatCompareOp::Olt, false),
        2 => (FloatCompareOp::Ole, false),
        3 => (FloatCompareOp::Uno, false),
        4 => (FloatCompareOp::Oeq, true),
        5 => (FloatCompareOp::Olt, true),
        6 => (FloatCompareOp::Ole, true),
        _ => (FloatCompareOp::Uno, true),
    };
    Ok(move |arena: &mut Arena, width: u32, x: ExprId, y: ExprId| {
        let holds = arena.float_compare(op, format, x, y);
        let holds = if negate { arena.not(holds) } else { holds };
        arena.sext(holds, width)
    })
}

fn cmp_packed(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let compare = comparison(vm, args)?;
    zip(vm, args, compare)
}

fn cmp_single(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let compare = comparison(vm, args)?;
    first_lane_only(vm, args, compare)
}

/// Compares the first lanes; the predicate is part of the name.
fn comi(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let Lane::Float(kind) = args.lanes(0)?.0 else {
        return Err(args.unsupported("for lanes that are not floating-point values"));
    };
    let name = args.name.rsplit('.').nth(1).unwrap_or("");
    let predicate = match name.split_once("comi").map_or("", |parts| parts.1) {
        "eq" => FloatPredicate::Oeq,
        "lt" => FloatPredicate::Olt,
        "le" => FloatPredicate::Ole,
        "gt" => FloatPredicate::Ogt,
        "ge" => FloatPredicate::Oge,
        _ => FloatPredicate::Une,
    };
    let (x, y) = (args.operand(0), args.operand(1));
    let signals = !args.name.contains("ucomi");
    let holds = vm.float_compare(predicate, signals, kind, &x[..1], &y[..1])?;
    let result = holds.to_term(vm.arena, args.result_width());
    Ok(vm.done(result))
}

fn stmxcsr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    known_flags(vm, args)?;
    vm.store(
        args.get(0),
        4,
        Value::concrete(vm.thread.floats.mxcsr.into()),
    )?;
    Ok(Done::Void)
}

fn ldmxcsr(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let word = vm.load(args.get(0), 4)?;
    let word = vm.concretize(word)?;
    set_mxcsr(vm, args, word)?;
    Ok(Done::Void)
}

fn crc32(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let crc = vm.operand_term(args, 0, args.width(0));
    let data = vm.operand_term(args, 1, args.width(1));
    let arena = &mut *vm.arena;
    let crc = arena.zext_or_trunc(crc, 32);
    let crc = crc32c(arena, crc, data);
    let result = arena.zext(crc, args.result_width().max(32));
    Ok(vm.done(result))
}

/// Adds data to a CRC-32C (Castagnoli) bit by bit.
pub fn crc32c(arena: &mut Arena, mut crc: ExprId, data: ExprId) -> ExprId {
    const POLYNOMIAL: u64 = 0x82f6_3b78;
    let polynomial = arena.constant(32, POLYNOMIAL);
    let one = arena.constant(32, 1);
    for at in 0..arena.width(data) {
        let bit = arena.extract(data, at, 1);
        let low = arena.extract(crc, 0, 1);
        let flips = arena.xor(bit, low);
        let shifted = arena.lshr(crc, one);
        let flipped = arena.xor(shifted, polynomial);
        crc = arena.ite(flips, flipped, shifted);
    }
    crc
}

/// Returns the carry out, then the sum.
fn with_carry(vm: &mut Vm<'_>, args: &Arguments<'_>, op: IntOp) -> Result<Done, Interrupt> {
    let width = args.width(1);
    let carry = vm.operand_term(args, 0, 8);
    let carry = vm.arena.is_nonzero(carry);
    let x = vm.operand_term(args, 1, width);
    let y = vm.operand_term(args, 2, width);
    let arena = &mut *vm.arena;
    let [x, y, carry] = [x, y, carry].map(|term| arena.zext(term, width + 1));
    let op = crate::integer::term_op(op);
    let wide = arena.binary(op, x, y);
    let wide = arena.binary(op, wide, carry);
    let out = arena.extract(wide, width, 1);
    let out = arena.zext(out, 8);
    let result = arena.extract(wide, 0, width);
    Ok(vm.done_lanes([out, result]))
}

fn addcarry(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_carry(vm, args, IntOp::Add)
}

fn subborrow(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    with_carry(vm, args, IntOp::Sub)
}

fn rdtsc(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(vm.clock_ns)))
}

fn rdtscp(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    let values = [Value::concrete(vm.clock_ns), Value::ZERO];
    Ok(Done::Values(values.into_iter().collect()))
}

/// Reports that x87 and SSE state are enabled, and nothing else.
fn xgetbv(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(3)))
}

#[cfg(test)]
mod tests;
