//! Verifies that a lowered program satisfies the invariants that the vm relies on.

use crate::code::{
    Body, Callee, Code, FloatCast, FloatKind, FunctionId, Inst, Operand, Pc, Program, Register,
    ValueType,
};

/// Verifies all functions; the error names the function, the instruction and the problem.
pub fn verify(program: &Program) -> Result<(), String> {
    for (index, function) in program.functions.iter().enumerate() {
        let complain = |what: String| format!("{}: {what}", function.name);
        match &function.body {
            Body::External(id) => {
                in_table(id.0, program.externals.len(), "external").map_err(complain)?;
            }
            Body::Code(code) => {
                let id = FunctionId(index as u32);
                Checker { program, code, id }.run().map_err(complain)?;
            }
        }
    }
    for (index, (id, pc)) in program.segments.iter().enumerate() {
        let starts = match program
            .functions
            .get(id.0 as usize)
            .map(|function| &function.body)
        {
            Some(Body::Code(code)) => code.instructions.get(*pc as usize),
            _ => None,
        };
        match starts {
            Some(Inst::Segment { id, .. }) if id.0 as usize == index => {}
            _ => {
                return Err(format!(
                    "segment {index} does not start where it is said to"
                ));
            }
        }
    }
    Ok(())
}

struct Checker<'a> {
    program: &'a Program,
    code: &'a Code,
    id: FunctionId,
}

impl Checker<'_> {
    fn run(&self) -> Result<(), String> {
        let code = self.code;
        if code.parameter_registers > code.registers {
            return Err("more parameters than registers".into());
        }
        if code.locations.len() != code.instructions.len() {
            return Err("locations and instructions differ in number".into());
        }
        if !matches!(code.instructions.first(), Some(Inst::Segment { .. })) {
            return Err("does not start with a segment".into());
        }
        for (pc, inst) in code.instructions.iter().enumerate() {
            self.inst(pc as Pc, inst)
                .map_err(|what| format!("{pc} {inst:?}: {what}"))?;
        }
        if let Some(last) = code.instructions.last()
            && !ends(last)
        {
            return Err(format!("control runs past the end after {last:?}"));
        }
        for location in code.locations.iter().flatten() {
            in_table(location.0, self.program.locations.len(), "location")?;
        }
        for pc in code.block_addresses.values() {
            self.target(*pc)?;
        }
        Ok(())
    }

    fn branch(&self, target: u32) -> Result<(), String> {
        let targets = self.code.branches.get(target as usize);
        let targets = targets.ok_or("no targets")?;
        self.target(targets.then)?;
        self.target(targets.other)
    }

    fn inst(&self, pc: Pc, inst: &Inst) -> Result<(), String> {
        match *inst {
            Inst::Segment { id, .. } => match self.program.segments.get(id.0 as usize) {
                Some(entry) if *entry == (self.id, pc) => Ok(()),
                _ => Err("segment is not listed".into()),
            },
            Inst::Move { dst, src } => self.io(dst, 1, &[(src, 1)]),
            Inst::Int {
                width, dst, a, b, ..
            }
            | Inst::Compare {
                width, dst, a, b, ..
            } => {
                narrow(width)?;
                self.io(dst, 1, &[(a, 1), (b, 1)])
            }
            Inst::WideInt {
                width, dst, a, b, ..
            } => {
                let limbs = wide(width)?;
                self.io(dst, limbs, &[(a, limbs), (b, limbs)])
            }
            Inst::WideCompare {
                width, dst, a, b, ..
            } => {
                let limbs = wide(width)?;
                self.io(dst, 1, &[(a, limbs), (b, limbs)])
            }
            Inst::Truncate { width, dst, a } => {
                narrow(width)?;
                self.io(dst, 1, &[(a, 1)])
            }
            Inst::SignExtend { from, to, dst, a } => {
                narrow(from)?;
                narrow(to)?;
                self.io(dst, 1, &[(a, 1)])
            }
            Inst::WideSignExtend { from, to, dst, a } => {
                self.io(dst, wide(to)?, &[(a, limbs(from))])
            }
            Inst::WideExtract {
                from,
                low,
                width,
                dst,
                a,
            } => {
                if u32::from(low) + u32::from(width) > u32::from(from) {
                    return Err("bits outside of the value".into());
                }
                self.io(dst, limbs(width), &[(a, limbs(from))])
            }
            Inst::Select {
                width,
                dst,
                cond,
                a,
                b,
            } => {
                narrow(width)?;
                self.io(dst, 1, &[(cond, 1), (a, 1), (b, 1)])
            }
            Inst::Index {
                index_width,
                dst,
                base,
                index,
                ..
            } => {
                narrow(index_width)?;
                self.io(dst, 1, &[(base, 1), (index, 1)])
            }
            Inst::Load {
                bytes,
                width,
                dst,
                ptr,
                ..
            } => {
                accessed(bytes, width)?;
                self.io(dst, 1, &[(ptr, 1)])
            }
            Inst::Store {
                bytes,
                width,
                src,
                ptr,
                ..
            } => {
                accessed(bytes, width)?;
                self.io(0, 0, &[(src, 1), (ptr, 1)])
            }
            Inst::Alloca { dst, align, .. } => {
                power(align)?;
                self.io(dst, 1, &[])
            }
            Inst::AllocaDynamic {
                count_width,
                dst,
                count,
                align,
                ..
            } => {
                narrow(count_width)?;
                power(align)?;
                self.io(dst, 1, &[(count, 1)])
            }
            Inst::ThreadLocal { dst, global } => {
                let global = self.program.globals.get(global.0 as usize);
                if !global.is_some_and(|global| global.thread_local) {
                    return Err("no thread-local global".into());
                }
                self.io(dst, 1, &[])
            }
            _ => self.other(pc, inst),
        }
    }

    fn other(&self, pc: Pc, inst: &Inst) -> Result<(), String> {
        match *inst {
            Inst::Float {
                kind, dst, a, b, ..
            } => {
                let limbs = kind.registers();
                self.io(dst, limbs, &[(a, limbs), (b, limbs)])
            }
            Inst::FloatNegate { kind, dst, a } => {
                self.io(dst, kind.registers(), &[(a, kind.registers())])
            }
            Inst::FloatCompare {
                kind, dst, a, b, ..
            } => self.io(dst, 1, &[(a, kind.registers()), (b, kind.registers())]),
            Inst::FloatCast { cast, dst, a } => {
                let float = FloatKind::registers;
                let (from, to) = match cast {
                    FloatCast::Format { from, to } => (float(from), float(to)),
                    FloatCast::ToInt { from, width, .. } => (float(from), limbs(width)),
                    FloatCast::FromInt { width, to, .. } => (limbs(width), float(to)),
                };
                self.io(dst, to, &[(a, from)])
            }
            Inst::AtomicUpdate {
                dst, ptr, value, ..
            } => self.io(dst, 1, &[(ptr, 1), (value, 1)]),
            Inst::CompareExchange {
                bytes,
                dst,
                ptr,
                expected,
                new,
            } => {
                let limbs = u32::from(bytes).div_ceil(8);
                self.io(dst, limbs + 1, &[(ptr, 1), (expected, limbs), (new, limbs)])
            }
            Inst::Fence | Inst::Unreachable => Ok(()),
            Inst::Scope { slot, .. } => self.io(0, 0, &[(slot, 1)]),
            Inst::Jump { target } => self.target(target),
            Inst::Branch { cond, target } => {
                self.io(0, 0, &[(cond, 1)])?;
                self.branch(target)
            }
            Inst::CompareBranch {
                width,
                a,
                b,
                target,
                ..
            } => {
                narrow(width)?;
                self.io(0, 0, &[(a, 1), (b, 1)])?;
                self.branch(target)
            }
            Inst::Switch {
                width,
                value,
                table,
            } => {
                narrow(width)?;
                self.io(0, 0, &[(value, 1)])?;
                self.switch(table)
            }
            Inst::IndirectBranch { address } => self.io(0, 0, &[(address, 1)]),
            Inst::Call { call } => self.call(pc, call),
            Inst::Return {
                values: (start, count),
            } => {
                let range = start as usize..start as usize + count as usize;
                let values = self.code.operands.get(range).ok_or("no such operands")?;
                values.iter().try_for_each(|value| self.operand(*value, 1))
            }
            Inst::LandingPad { dst } => self.io(dst, 2, &[]),
            Inst::Resume { exception } => self.io(0, 0, &[(exception, 1)]),
            Inst::Unsupported { what } => {
                in_table(what, self.code.unsupported.len(), "unsupported instruction")
            }
            _ => Ok(()),
        }
    }

    fn switch(&self, table: u32) -> Result<(), String> {
        let table = self
            .code
            .switches
            .get(table as usize)
            .ok_or("no such table")?;
        self.target(table.default)?;
        if !table.cases.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("cases are not ascending".into());
        }
        for (value, target) in &table.cases {
            self.target(*target)?;
            if table.target(*value) != *target {
                return Err("dense and sparse cases differ".into());
            }
        }
        table
            .dense
            .iter()
            .try_for_each(|target| self.target(*target))
    }

    fn call(&self, pc: Pc, call: u32) -> Result<(), String> {
        let call = self.code.calls.get(call as usize).ok_or("no such call")?;
        match call.callee {
            Callee::Function(id) => match self.program.functions.get(id.0 as usize) {
                Some(function) if matches!(function.body, Body::Code(_)) => {}
                _ => return Err("callee has no code".into()),
            },
            Callee::External(id) => {
                in_table(id.0, self.program.externals.len(), "external")?;
            }
            Callee::Assembly(index) => {
                in_table(index, self.program.assembly.len(), "assembly")?;
            }
            Callee::Pointer(operand) => self.operand(operand, 1)?,
        }
        let registers: u32 = call.arg_types.iter().map(|ty| ty.registers()).sum();
        if registers as usize != call.args.len() {
            return Err("arguments and their types differ in number".into());
        }
        if call.fixed as usize > call.arg_types.len() {
            return Err("more fixed arguments than arguments".into());
        }
        call.args.iter().try_for_each(|arg| self.operand(*arg, 1))?;
        for copy in &call.by_value {
            match call.arg_types.get(copy.argument as usize) {
                Some(ValueType::Pointer) => power(copy.align)?,
                _ => return Err("copied argument is not a pointer".into()),
            }
        }
        if call.result.registers() > 0 {
            self.write(call.dst, call.result.registers())?;
        }
        if let Some(pad) = call.unwind {
            let pad = self
                .code
                .landing_pads
                .get(pad as usize)
                .ok_or("no such landing pad")?;
            self.target(pad.target)?;
        }
        self.target(pc + 1)
    }

    fn io(&self, dst: Register, count: u32, operands: &[(Operand, u32)]) -> Result<(), String> {
        if count > 0 {
            self.write(dst, count)?;
        }
        operands
            .iter()
            .try_for_each(|(operand, count)| self.operand(*operand, *count))
    }

    fn write(&self, dst: Register, count: u32) -> Result<(), String> {
        if u64::from(dst) + u64::from(count) > u64::from(self.code.registers) {
            return Err(format!(
                "register {dst} with {count} is outside of the frame"
            ));
        }
        Ok(())
    }

    fn operand(&self, operand: Operand, count: u32) -> Result<(), String> {
        match (operand.as_register(), operand.as_constant()) {
            (Some(register), _) => self.write(register, count),
            (_, Some(index)) if (index + count) as usize <= self.code.constants.len() => Ok(()),
            _ => Err(format!("no such constant: {operand:?} with {count}")),
        }
    }

    fn target(&self, pc: Pc) -> Result<(), String> {
        in_table(pc, self.code.instructions.len(), "target")
    }
}

fn ends(inst: &Inst) -> bool {
    matches!(
        inst,
        Inst::Jump { .. }
            | Inst::Branch { .. }
            | Inst::CompareBranch { .. }
            | Inst::Switch { .. }
            | Inst::IndirectBranch { .. }
            | Inst::Return { .. }
            | Inst::Resume { .. }
            | Inst::Unreachable
            | Inst::Unsupported { .. }
    )
}

fn in_table(index: u32, len: usize, what: &str) -> Result<(), String> {
    if (index as usize) < len {
        Ok(())
    } else {
        Err(format!("no such {what}: {index}"))
    }
}

fn limbs(width: u16) -> u32 {
    u32::from(width).div_ceil(64)
}

fn wide(width: u16) -> Result<u32, String> {
    if width > 64 {
        Ok(limbs(width))
    } else {
        Err("a narrow width".into())
    }
}

fn narrow(width: u8) -> Result<(), String> {
    if (1..=64).contains(&width) {
        Ok(())
    } else {
        Err(format!("width {width}"))
    }
}

fn accessed(bytes: u8, width: u8) -> Result<(), String> {
    narrow(width)?;
    if width.div_ceil(8) == bytes {
        Ok(())
    } else {
        Err("width and bytes differ".into())
    }
}

fn power(align: u32) -> Result<(), String> {
    if align.is_power_of_two() {
        Ok(())
    } else {
        Err(format!("alignment {align}"))
    }
}
