//! Calls operations of the vm without a program around them.

use everett_expr::{Arena, EvalScratch, ExprId};
use everett_ir::code::{Assembly, Call, Callee, ExternalId, Program, ValueType};
use smallvec::SmallVec;

use crate::external::{Handler, resolve, resolve_assembly};
use crate::image::Image;
use crate::integer::Wide;
use crate::memory::Memory;
use crate::oracle::{ConcreteOracle, Oracle};
use crate::stacks::StackTable;
use crate::thread::Thread;
use crate::value::Value;
use crate::vm::{Arguments, Coverage, Done, Interrupt, Surroundings, Vm, VmOptions};

/// An argument: its type and its registers.
pub type Argument = (ValueType, Vec<Value>);

/// A process without a program.
pub struct Bench {
    pub image: Image,
    pub arena: Arena,
    pub oracle: Box<dyn Oracle>,
    pub stacks: StackTable,
    pub coverage: Coverage,
    pub options: VmOptions,
    pub memory: Memory,
    pub thread: Thread,
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::with(Program::default())
    }
}

impl Bench {
    /// A process that has just started this program.
    pub fn with(program: Program) -> Bench {
        let image = Image::new(program).expect("a well-formed program");
        let memory = image.initial_memory();
        Bench {
            image,
            arena: Arena::new(),
            oracle: Box::new(ConcreteOracle::default()),
            stacks: StackTable::default(),
            coverage: Coverage::new(64),
            options: VmOptions::default(),
            memory,
            thread: Thread::new(0),
        }
    }

    /// Works with the vm.
    pub fn vm<T>(&mut self, work: impl FnOnce(&mut Vm<'_>) -> T) -> T {
        let around = Surroundings {
            image: &self.image,
            arena: &mut self.arena,
            oracle: &mut *self.oracle,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        };
        work(&mut Vm::new(around, &mut self.memory, &mut self.thread))
    }

    fn run(
        &mut self,
        handler: Handler,
        callee: Callee,
        name: &str,
        args: &[Argument],
        result: ValueType,
    ) -> Result<Done, Interrupt> {
        let call = Call {
            callee,
            args: Vec::new(),
            arg_types: args.iter().map(|arg| arg.0).collect(),
            fixed: args.len() as u32,
            by_value: Vec::new(),
            dst: 0,
            result,
            unwind: None,
        };
        let values: SmallVec<[Value; 8]> = args.iter().flat_map(|arg| arg.1.clone()).collect();
        self.vm(|vm| {
            let arguments = Arguments {
                values,
                call: &call,
                name,
            };
            handler(vm, &arguments)
        })
    }

    /// Calls an operation by its full name.
    pub fn call(&mut self, name: &str, args: &[Argument], result: ValueType) -> Wide {
        self.try_call(name, args, result)
            .unwrap_or_else(|interrupt| panic!("{name}: {interrupt:?}"))
    }

    /// The same, where it may fail.
    pub fn try_call(
        &mut self,
        name: &str,
        args: &[Argument],
        result: ValueType,
    ) -> Result<Wide, Interrupt> {
        let handler = resolve(name).unwrap_or_else(|| panic!("{name} is known"));
        let callee = Callee::External(ExternalId(0));
        self.run(handler, callee, name, args, result).map(registers)
    }

    /// Executes inline assembly.
    pub fn assembly(
        &mut self,
        template: &str,
        constraints: &str,
        args: &[Argument],
        result: ValueType,
    ) -> Result<Wide, Interrupt> {
        let assembly = Assembly {
            template: template.to_owned(),
            constraints: constraints.to_owned(),
        };
        let handler = resolve_assembly(&assembly)
            .unwrap_or_else(|| panic!("{template:?} with {constraints:?} is known"));
        let mut program = Program::default();
        program.assembly.push(assembly);
        self.image = Image::new(program).expect("a well-formed program");
        self.run(handler, Callee::Assembly(0), template, args, result)
            .map(registers)
    }

    /// A symbolic value of this many bits whose bytes are `values[at..]` of the input.
    pub fn symbolic(&mut self, at: u32, width: u32) -> ExprId {
        let array = self.arena.array(0, "x", 256);
        let bytes: Vec<ExprId> = (0..width.div_ceil(8))
            .map(|i| self.arena.read(array, at + i))
            .collect();
        let term = self.arena.concat_bytes(&bytes);
        self.arena.extract(term, 0, width)
    }

    /// The bits of registers, each as wide as the value of one is, where the input has these bytes.
    pub fn evaluate(&self, registers: &[Value], input: &[u8]) -> Vec<u64> {
        let assignment =
            |_: everett_expr::ArrayId, index: u32| input.get(index as usize).copied().unwrap_or(0);
        let mut scratch = EvalScratch::new();
        registers
            .iter()
            .map(|value| match value.term {
                None => value.bits,
                Some(term) => self.arena.eval(term, &assignment, &mut scratch),
            })
            .collect()
    }
}

fn registers(done: Done) -> Wide {
    match done {
        Done::Void | Done::Moved => Wide::new(),
        Done::Value(value) => Wide::from_slice(&[value]),
        Done::Values(values) => values,
    }
}

/// An integer argument.
pub fn int(width: u16, bits: u128) -> Argument {
    let values = (0..u32::from(width).div_ceil(64))
        .map(|limb| Value::concrete((bits >> (64 * limb)) as u64))
        .collect();
    (ValueType::Int(width), values)
}

/// A pointer argument.
pub fn pointer(address: u64) -> Argument {
    (ValueType::Pointer, vec![Value::concrete(address)])
}

/// The number in registers.
pub fn number(registers: &[u64]) -> u128 {
    let limbs = registers.iter().rev();
    limbs.fold(0, |bits, limb| bits << 64 | u128::from(*limb))
}

/// The concrete bits of registers.
pub fn bits(registers: &[Value]) -> Vec<u64> {
    registers
        .iter()
        .map(|value| value.as_concrete().expect("a concrete value"))
        .collect()
}
