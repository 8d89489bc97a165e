//! LLVM intrinsics: conversion of operands and results from and to registers, and the intrinsics
//! that belong to no family.

pub mod integer;
pub mod memory;
pub mod x86;
pub mod x86_bits;

use everett_expr::ExprId;
use everett_ir::code::{FloatKind, Lane, ValueType};
use smallvec::smallvec;

use super::{Operation, supplied};
use crate::bug::{Bug, BugKind};
use crate::integer::Wide;
use crate::unwind;
use crate::value::Value;
use crate::vm::{Arguments, Done, Interrupt, Vm};

/// The operations of this family.
pub const OPERATIONS: &[Operation] = &[
    supplied("llvm.trap", trap),
    supplied("llvm.ubsantrap", trap),
    supplied("llvm.debugtrap", trap),
    supplied("llvm.readcyclecounter", cycle_counter),
    supplied("llvm.readsteadycounter", cycle_counter),
    supplied("llvm.returnaddress", zero),
    supplied("llvm.addressofreturnaddress", zero),
    supplied("llvm.frameaddress", zero),
    supplied("llvm.sponentry", zero),
    supplied("llvm.thread.pointer", thread_pointer),
    supplied("llvm.prefetch", nothing),
    supplied("llvm.clear_cache", nothing),
    supplied("llvm.eh.typeid.for", typeid_for),
];

impl Arguments<'_> {
    /// Returns the registers of an argument, by its index at the call site.
    pub(crate) fn operand(&self, index: usize) -> Wide {
        let Some(ty) = self.call.arg_types.get(index) else {
            return smallvec![Value::ZERO];
        };
        let before = self.call.arg_types.iter().take(index);
        let first: usize = before.map(|ty| ty.registers() as usize).sum();
        (first..first + ty.registers() as usize)
            .map(|register| self.get(register))
            .collect()
    }

    /// Returns the type of an argument.
    pub(crate) fn type_of(&self, index: usize) -> ValueType {
        let types = &self.call.arg_types;
        types.get(index).copied().unwrap_or(ValueType::Void)
    }

    /// Returns the format of a floating-point argument.
    pub(crate) fn float_kind(&self, index: usize) -> Result<FloatKind, Interrupt> {
        match self.type_of(index) {
            ValueType::Float(kind) => Ok(kind),
            _ => Err(self.unsupported("of an argument that is not a floating-point value")),
        }
    }

    /// Returns the lanes of a vector argument.
    pub(crate) fn lanes(&self, index: usize) -> Result<(Lane, usize), Interrupt> {
        match self.type_of(index) {
            ValueType::Vector { lanes, lane } => Ok((lane, usize::from(lanes))),
            _ => Err(self.unsupported("of an argument that is not a vector")),
        }
    }

    /// Returns the finding for a call that is not supported.
    pub(crate) fn unsupported(&self, why: &str) -> Interrupt {
        let message = format!("{} is not supported {why}", self.name);
        Bug::new(BugKind::Unsupported, message).into()
    }
}

impl Vm<'_> {
    /// Returns an argument as one term.
    pub(crate) fn operand_term(
        &mut self,
        args: &Arguments<'_>,
        index: usize,
        width: u32,
    ) -> ExprId {
        let registers = args.operand(index);
        self.wide_term(&registers, width)
    }

    /// Converts a term to the result.
    pub(crate) fn done(&mut self, term: ExprId) -> Done {
        done(self.wide_value(term))
    }
}

/// Converts registers to the result.
pub fn done(registers: Wide) -> Done {
    match registers[..] {
        [value] => Done::Value(value),
        _ => Done::Values(registers),
    }
}

fn nothing(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Void)
}

/// Returns "unknown". Machine stack addresses do not exist in the vm, and programs must accept this
/// answer.
fn zero(_: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::ZERO))
}

fn trap(_: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    Err(Bug::trap(args.name).into())
}

/// Reads the cycle counter. Time is the instruction count, so that it is deterministic.
fn cycle_counter(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(vm.clock_ns)))
}

fn thread_pointer(vm: &mut Vm<'_>, _: &Arguments<'_>) -> Result<Done, Interrupt> {
    Ok(Done::Value(Value::concrete(vm.thread.fs_base)))
}

fn typeid_for(vm: &mut Vm<'_>, args: &Arguments<'_>) -> Result<Done, Interrupt> {
    let type_info = vm.concretize(args.get(0))?;
    Ok(Done::Value(Value::concrete(unwind::selector_for(
        type_info,
    ))))
}
