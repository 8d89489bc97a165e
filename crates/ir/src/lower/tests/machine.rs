//! A simple interpreter for integer code, to test lowered code.

use crate::code::{Body, Code, Inst, IntOp, IntPredicate, Operand, Program};
use crate::lower::fold::{binary, compare};
use crate::lower::shape::{mask, sign_extend};
use crate::module;

/// Runs a function; addresses are offsets in `memory`.
pub fn run(program: &Program, name: &str, args: &[u64], memory: &mut Vec<u8>) -> Vec<u64> {
    let id = program.function(name).expect("no such function");
    let Body::Code(code) = &program.functions[id.0 as usize].body else {
        panic!("{name} has no code")
    };
    assert_eq!(args.len() as u32, code.parameter_registers);
    let mut registers = vec![0; code.registers as usize];
    registers[..args.len()].copy_from_slice(args);
    let mut machine = Machine {
        code,
        registers,
        memory,
        pc: 0,
    };
    for _ in 0..10_000 {
        if let Some(result) = machine.step() {
            return result;
        }
    }
    panic!("{name} does not end")
}

struct Machine<'a> {
    code: &'a Code,
    registers: Vec<u64>,
    memory: &'a mut Vec<u8>,
    pc: usize,
}

impl Machine<'_> {
    fn get(&self, operand: Operand) -> u64 {
        match operand.as_register() {
            Some(register) => self.registers[register as usize],
            None => self.code.constants[operand.as_constant().unwrap() as usize],
        }
    }

    fn step(&mut self) -> Option<Vec<u64>> {
        let inst = self.code.instructions[self.pc];
        self.pc += 1;
        let (dst, value) = match inst {
            Inst::Segment { .. } => return None,
            Inst::Move { dst, src } => (dst, self.get(src)),
            Inst::Int {
                op,
                width,
                dst,
                a,
                b,
                ..
            } => {
                let (a, b) = (self.get(a), self.get(b));
                assert!(
                    a <= mask(width.into()) && b <= mask(width.into()),
                    "{inst:?}"
                );
                (dst, binary(int_op(op), a, b, width.into()).unwrap())
            }
            Inst::Compare {
                pred,
                width,
                dst,
                a,
                b,
            } => (dst, self.compare(pred, width, a, b).into()),
            Inst::Truncate { width, dst, a } => (dst, self.get(a) & mask(width.into())),
            Inst::SignExtend { from, to, dst, a } => {
                let wide = sign_extend(self.get(a), from.into());
                (dst, wide & mask(to.into()))
            }
            Inst::Select {
                dst, cond, a, b, ..
            } => {
                let chosen = if self.get(cond) == 1 { a } else { b };
                (dst, self.get(chosen))
            }
            Inst::Index {
                index_width,
                dst,
                base,
                index,
                scale,
            } => {
                let index = sign_extend(self.get(index), index_width.into());
                let offset = index.wrapping_mul(scale as i64 as u64);
                (dst, self.get(base).wrapping_add(offset))
            }
            Inst::Load {
                bytes,
                width,
                dst,
                ptr,
                offset,
                ..
            } => {
                let at = self.get(ptr).wrapping_add(offset as i64 as u64) as usize;
                let mut word = [0; 8];
                word[..bytes as usize].copy_from_slice(&self.memory[at..at + bytes as usize]);
                (dst, u64::from_le_bytes(word) & mask(width.into()))
            }
            Inst::Alloca { dst, size, .. } => {
                let at = self.memory.len().next_multiple_of(16);
                self.memory.resize(at + size as usize, 0);
                (dst, at as u64)
            }
            _ => return self.control(inst),
        };
        self.registers[dst as usize] = value;
        None
    }

    fn control(&mut self, inst: Inst) -> Option<Vec<u64>> {
        match inst {
            Inst::Store {
                bytes,
                width,
                src,
                ptr,
                offset,
                ..
            } => {
                let at = self.get(ptr).wrapping_add(offset as i64 as u64) as usize;
                let value = self.get(src);
                assert!(value <= mask(width.into()), "upper bits are set");
                let word = value.to_le_bytes();
                self.memory[at..at + bytes as usize].copy_from_slice(&word[..bytes as usize]);
            }
            Inst::Jump { target } => self.pc = target as usize,
            Inst::Branch { cond, target } => {
                let targets = self.code.branches[target as usize];
                let holds = self.get(cond) == 1;
                self.pc = if holds { targets.then } else { targets.other } as usize;
            }
            Inst::CompareBranch {
                pred,
                width,
                a,
                b,
                target,
            } => {
                let targets = self.code.branches[target as usize];
                let holds = self.compare(pred, width, a, b);
                self.pc = if holds { targets.then } else { targets.other } as usize;
            }
            Inst::Switch { value, table, .. } => {
                let table = &self.code.switches[table as usize];
                self.pc = table.target(self.get(value)) as usize;
            }
            Inst::IndirectBranch { address } => {
                self.pc = self.code.block_addresses[&self.get(address)] as usize;
            }
            Inst::Return {
                values: (start, count),
            } => {
                let values = &self.code.operands[start as usize..(start + count) as usize];
                return Some(values.iter().map(|value| self.get(*value)).collect());
            }
            other => panic!("not known here: {other:?}"),
        }
        None
    }

    fn compare(&self, pred: IntPredicate, width: u8, a: Operand, b: Operand) -> bool {
        let predicate = match pred {
            IntPredicate::Eq => module::IntPredicate::Eq,
            IntPredicate::Ne => module::IntPredicate::Ne,
            IntPredicate::Ugt => module::IntPredicate::Ugt,
            IntPredicate::Uge => module::IntPredicate::Uge,
            IntPredicate::Ult => module::IntPredicate::Ult,
            IntPredicate::Ule => module::IntPredicate::Ule,
            IntPredicate::Sgt => module::IntPredicate::Sgt,
            IntPredicate::Sge => module::IntPredicate::Sge,
            IntPredicate::Slt => module::IntPredicate::Slt,
            IntPredicate::Sle => module::IntPredicate::Sle,
        };
        compare(predicate, self.get(a), self.get(b), width.into())
    }
}

fn int_op(op: IntOp) -> module::BinaryOp {
    match op {
        IntOp::Add => module::BinaryOp::Add,
        IntOp::Sub => module::BinaryOp::Sub,
        IntOp::Mul => module::BinaryOp::Mul,
        IntOp::UDiv => module::BinaryOp::UDiv,
        IntOp::SDiv => module::BinaryOp::SDiv,
        IntOp::URem => module::BinaryOp::URem,
        IntOp::SRem => module::BinaryOp::SRem,
        IntOp::And => module::BinaryOp::And,
        IntOp::Or => module::BinaryOp::Or,
        IntOp::Xor => module::BinaryOp::Xor,
        IntOp::Shl => module::BinaryOp::Shl,
        IntOp::LShr => module::BinaryOp::LShr,
        IntOp::AShr => module::BinaryOp::AShr,
    }
}
