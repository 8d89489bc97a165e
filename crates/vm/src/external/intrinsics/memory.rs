//! Memory intrinsics: dynamic stack allocation, masked accesses, relative loads.

use everett_ir::code::{Lane, ValueType};

use super::super::{Operation, supplied};
use super::done;
use crate::access::AccessTarget;
use crate::integer::Wide;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.stacksave", stacksave),
    supplied("llvm.stackrestore", stackrestore),
    supplied("llvm.load.relative", load_relative),
    supplied("llvm.masked.load", masked_load),
    supplied("llvm.masked.gather", masked_gather),
    supplied("llvm.masked.store", masked_store),
    supplied("llvm.masked.scatter", masked_scatter),
    supplied("llvm.masked.expandload", masked_expand_load),
    supplied("llvm.masked.compressstore", masked_compress_store),
];

/// Saves the stack position: the token is the number of stack slots.
fn stacksave(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(vm.thread.slots.len() as u64)))
}

/// Frees the slots that the top frame has allocated since the token was taken.
fn stackrestore(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let token = vm.concretize(args.get(0))?;
    let first = vm.thread.top().map_or(0, |frame| frame.first_slot);
    let keep = token.max(u64::from(first));
    while vm.thread.slots.len() as u64 > keep {
        vm.pop_slot();
    }
    Ok(Done::Void)
}

/// Loads from a table of relative offsets: `ptr + sext(*(i32 *)(ptr + offset))`.
fn load_relative(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let width = args.width(1);
    let base = args.get(0).to_term(vm.arena, 64);
    let offset = args.get(1).to_term(vm.arena, width);
    let offset = vm.arena.sext_or_trunc(offset, 64);
    let place = vm.arena.add(base, offset);
    let distance = vm.load(Value::of_term(vm.arena, place), 4)?;
    let distance = distance.to_term(vm.arena, 32);
    let distance = vm.arena.sext(distance, 64);
    let result = vm.arena.add(base, distance);
    Ok(Done::Value(Value::of_term(vm.arena, result)))
}

/// Returns the index of the mask argument. Some versions of LLVM pass the alignment as an argument
/// before it, others as an attribute.
fn mask_position(args: &Arguments<'_>, from: usize) -> Result<usize, Interrupt> {
    let types = args.call.arg_types.iter().enumerate().skip(from);
    let is_mask = |ty: &ValueType| {
        matches!(
            ty,
            ValueType::Vector {
                lane: Lane::Int(1),
                ..
            }
        )
    };
    types
        .filter(|(_, ty)| is_mask(ty))
        .map(|(index, _)| index)
        .next()
        .ok_or_else(|| args.unsupported("without a mask"))
}

/// Returns the active lanes.
fn mask(vm: &mut Vm<'_>, args: &Arguments<'_>, position: usize) -> Result<Vec<bool>, Interrupt> {
    let bits = args.operand(position);
    bits.into_iter().map(|bit| vm.decide(bit)).collect()
}

/// Returns the size of a lane in memory.
fn lane_bytes(args: &Arguments<'_>, lane: Lane) -> Result<usize, Interrupt> {
    match lane.bits() {
        bits if bits % 8 == 0 => Ok(bits as usize / 8),
        _ => Err(args.unsupported("for lanes that are not whole bytes")),
    }
}

fn result_lane(args: &Arguments<'_>) -> Result<(Lane, usize), Interrupt> {
    match args.call.result {
        ValueType::Vector { lanes, lane } => Ok((lane, usize::from(lanes))),
        _ => Err(args.unsupported("for a result that is not a vector")),
    }
}

/// Loads the active lanes from the addresses that `address` gives; the others come from the last
/// argument.
fn load_lanes(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    mask_at: usize,
    address: impl Fn(&mut Vm<'_>, usize, usize) -> Value,
) -> Result<Done, Interrupt> {
    let (lane, lanes) = result_lane(args)?;
    let bytes = lane_bytes(args, lane)?;
    let registers = lane.registers() as usize;
    let mask = mask(vm, args, mask_at)?;
    let rest = args.operand(mask_at + 1);
    let mut result = Wide::new();
    let mut taken = 0;
    for index in 0..lanes {
        if mask.get(index) == Some(&true) {
            let pointer = address(vm, index, taken);
            result.extend(vm.load_wide(pointer, bytes)?);
            taken += 1;
        } else {
            let rest = rest.iter().skip(index * registers).take(registers);
            result.extend(rest.copied());
        }
    }
    result.resize(lanes * registers, Value::ZERO);
    Ok(done(result))
}

/// Stores the active lanes to the addresses that `address` gives.
fn store_lanes(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    address: impl Fn(&mut Vm<'_>, usize, usize) -> Value,
) -> Result<Done, Interrupt> {
    let (lane, _) = args.lanes(0)?;
    let bytes = lane_bytes(args, lane)?;
    let registers = lane.registers() as usize;
    let mask_at = mask_position(args, 1)?;
    let mask = mask(vm, args, mask_at)?;
    let values = args.operand(0);
    let mut writes: Vec<(AccessTarget, usize, Value)> = Vec::new();
    let lanes = values.chunks(registers).zip(mask).enumerate();
    let chosen = lanes.filter(|(_, (_, chosen))| *chosen);
    for (taken, (index, (value, _))) in chosen.enumerate() {
        let pointer = address(vm, index, taken);
        for (limb, value) in value.iter().enumerate() {
            let len = (bytes - 8 * limb).min(8);
            let pointer = vm.offset_pointer(pointer, 8 * limb as u64);
            writes.push((vm.resolve_access(pointer, len as u64, true)?, len, *value));
        }
    }
    for (place, len, value) in writes {
        vm.store_at(place, len, value)?;
    }
    Ok(Done::Void)
}

/// Returns the address of lane `index` of the consecutive lanes at a pointer.
fn consecutive(
    vm: &mut Vm<'_>,
    args: &Arguments<'_>,
    argument: usize,
    bytes: usize,
    index: usize,
) -> Value {
    let pointer = args.operand(argument)[0];
    vm.offset_pointer(pointer, (bytes * index) as u64)
}

fn masked_load(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let bytes = lane_bytes(args, result_lane(args)?.0)?;
    let mask_at = mask_position(args, 1)?;
    load_lanes(vm, args, mask_at, |vm, index, _| {
        consecutive(vm, args, 0, bytes, index)
    })
}

fn masked_expand_load(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let bytes = lane_bytes(args, result_lane(args)?.0)?;
    let mask_at = mask_position(args, 1)?;
    load_lanes(vm, args, mask_at, |vm, _, taken| {
        consecutive(vm, args, 0, bytes, taken)
    })
}

fn masked_gather(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let pointers = args.operand(0);
    let mask_at = mask_position(args, 1)?;
    load_lanes(vm, args, mask_at, |_, index, _| {
        pointers.get(index).copied().unwrap_or(Value::ZERO)
    })
}

fn masked_store(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let bytes = lane_bytes(args, args.lanes(0)?.0)?;
    store_lanes(vm, args, |vm, index, _| {
        consecutive(vm, args, 1, bytes, index)
    })
}

fn masked_compress_store(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let bytes = lane_bytes(args, args.lanes(0)?.0)?;
    store_lanes(vm, args, |vm, _, taken| {
        consecutive(vm, args, 1, bytes, taken)
    })
}

fn masked_scatter(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let pointers = args.operand(1);
    store_lanes(vm, args, |_, index, _| {
        pointers.get(index).copied().unwrap_or(Value::ZERO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Argument, Harness, bits, int, pointer};

    fn vector(width: u16, lanes: &[u64]) -> Argument {
        let ty = ValueType::Vector {
            lanes: lanes.len() as u16,
            lane: Lane::Int(width),
        };
        (
            ty,
            lanes.iter().map(|lane| Value::concrete(*lane)).collect(),
        )
    }

    #[test]
    fn lanes_outside_the_mask_are_not_touched() {
        let mut harness = Harness::new();
        // The last lane would be out of bounds.
        let start = harness.block(&[1, 2, 3]);
        let mask = vector(1, &[1, 0, 1, 0]);
        let rest = vector(8, &[7, 8, 9, 10]);
        let args = [pointer(start), mask.clone(), rest.clone()];
        let result = harness.compute("llvm.masked.load.v4i8.p0", &args, rest.0);
        assert_eq!(bits(&result), [1, 8, 3, 10]);
        // Older modules pass the alignment, too.
        let args = [pointer(start), int(32, 1), mask.clone(), rest.clone()];
        let result = harness.compute("llvm.masked.load.v4i8.p0", &args, rest.0);
        assert_eq!(bits(&result), [1, 8, 3, 10]);
        let args = [rest, pointer(start), mask];
        harness.compute("llvm.masked.store.v4i8.p0", &args, ValueType::Void);
        assert_eq!(harness.bytes(start, 3), [7, 2, 9]);
        let outside = [pointer(start), vector(1, &[0, 0, 0, 1]), vector(8, &[0; 4])];
        let result = harness.call_typed("llvm.masked.load.v4i8.p0", &outside, outside[2].0);
        assert!(matches!(result, Err(Interrupt::Bug(_))));
    }

    #[test]
    fn the_stack_is_taken_back() {
        let mut harness = Harness::new();
        let kept = harness.vm(|vm| vm.push_slot(8, 8)).expect("room");
        let token = harness.compute("llvm.stacksave.p0", &[], ValueType::Pointer);
        let freed = harness.vm(|vm| vm.push_slot(8, 8)).expect("room");
        let token = (ValueType::Pointer, token.to_vec());
        harness.compute("llvm.stackrestore.p0", &[token], ValueType::Void);
        assert!(harness.memory.object_at(kept, 8).is_some());
        assert!(harness.memory.object_at(freed, 8).is_none());
    }

    #[test]
    fn relative_tables() {
        let mut harness = Harness::new();
        let start = harness.block(&[0, 0, 0, 0, 0xf0, 0xff, 0xff, 0xff]);
        let args = [pointer(start), int(64, 4)];
        let result = harness.compute("llvm.load.relative.i64", &args, ValueType::Pointer);
        assert_eq!(bits(&result), [start - 16]);
    }
}
