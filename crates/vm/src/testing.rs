//! A process without a program, and an oracle that knows what the symbolic bytes are: operations are called on
//! symbolic data and must do what C says for the bytes that the oracle has in mind.

use everett_expr::{Arena, ArrayId, Assignment, EvalScratch, ExprId};
use everett_ir::code::{Call, Callee, ExternalId, Program, ValueType};
use std::collections::HashMap;

use crate::bug::BugKind;
use crate::external::resolve;
use crate::image::Image;
use crate::memory::{Memory, ObjectKind};
use crate::oracle::{ChoiceSite, Oracle, Suspend};
use crate::stacks::StackTable;
use crate::thread::Thread;
use crate::value::Value;
use crate::vm::{Arguments, Coverage, Done, Interrupt, Surroundings, Vm, VmOptions};

/// Answers as if the symbolic bytes had these values.
#[derive(Default)]
pub struct World {
    /// The bytes; those that are not listed are zero.
    pub bytes: HashMap<(ArrayId, u32), u8>,
    /// How many questions about data were asked.
    pub questions: usize,
    /// Inputs that were made: name and size.
    pub inputs: Vec<(String, u32)>,
    /// What is preferred.
    pub preferred: Vec<ExprId>,
}

impl Assignment for World {
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        self.bytes.get(&(array, index)).copied().unwrap_or(0)
    }
}

impl World {
    /// The value of a term.
    pub fn eval(&self, arena: &Arena, term: ExprId) -> u64 {
        arena.eval(term, self, &mut EvalScratch::new())
    }
}

impl Oracle for World {
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        self.questions += 1;
        Ok(self.eval(arena, condition) != 0)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        self.questions += 1;
        Ok(self.eval(arena, term))
    }

    fn choose(&mut self, _: &ChoiceSite, _: u32) -> Result<u32, Suspend> {
        Ok(0)
    }

    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(self.eval(arena, condition) != 0)
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        self.inputs.push((name.to_owned(), size));
        Ok(arena.array(self.inputs.len() as u32 - 1, name, size))
    }

    fn prefer(&mut self, _: &mut Arena, condition: ExprId) {
        self.preferred.push(condition);
    }

    fn commit(&mut self) {}
}

/// A process without a program.
pub struct Lab {
    pub image: Image,
    pub arena: Arena,
    pub world: World,
    pub stacks: StackTable,
    pub coverage: Coverage,
    pub options: VmOptions,
    pub memory: Memory,
    pub thread: Thread,
}

impl Lab {
    /// A process that has nothing.
    pub fn new() -> Lab {
        Lab::with(Program::default())
    }

    /// A process that has just started this program.
    pub fn with(program: Program) -> Lab {
        let image = Image::new(program).expect("a well-formed program");
        let memory = image.initial_memory();
        Lab {
            coverage: Coverage::new(image.program().segments.len()),
            image,
            arena: Arena::new(),
            world: World::default(),
            stacks: StackTable::default(),
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
            oracle: &mut self.world,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        };
        work(&mut Vm::new(around, &mut self.memory, &mut self.thread))
    }

    /// A heap block with these bytes.
    pub fn block(&mut self, bytes: &[u8]) -> u64 {
        let object = self
            .memory
            .allocate(bytes.len() as u64, 16, ObjectKind::Heap)
            .expect("room for a block");
        object.write_concrete(0, bytes);
        object.start
    }

    /// Makes one byte symbolic; it keeps its value in the world.
    pub fn blur(&mut self, address: u64) {
        let value = self.byte(address);
        let ordinal = self.world.bytes.len() as u32;
        let array = self.arena.array(ordinal, &format!("b{ordinal}"), 1);
        let term = self.arena.read(array, 0);
        self.world.bytes.insert((array, 0), value);
        let value = Value::of_term(&self.arena, term);
        self.memory
            .store(&mut self.arena, address, 1, value)
            .expect("a byte of an object");
    }

    /// A symbolic number that has this value in the world.
    pub fn symbolic(&mut self, number: u64, bytes: u32) -> Value {
        let ordinal = self.world.bytes.len() as u32;
        let array = self.arena.array(ordinal, &format!("n{ordinal}"), bytes);
        let mut terms = Vec::new();
        for at in 0..bytes {
            self.world
                .bytes
                .insert((array, at), (number >> (8 * at)) as u8);
            terms.push(self.arena.read(array, at));
        }
        let term = self.arena.concat_bytes(&terms);
        Value::of_term(&self.arena, term)
    }

    /// What a value is in the world.
    pub fn known(&self, value: Value) -> u64 {
        match value.term {
            None => value.bits,
            Some(term) => self.world.eval(&self.arena, term),
        }
    }

    /// A byte of memory, in the world.
    pub fn byte(&mut self, address: u64) -> u8 {
        let value = self
            .memory
            .load(&mut self.arena, address, 1)
            .expect("a byte of an object");
        self.known(value) as u8
    }

    /// Bytes of memory, in the world.
    pub fn bytes(&mut self, address: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|at| self.byte(address + at)).collect()
    }

    /// Calls an operation; all arguments are 64 bits wide.
    pub fn call(&mut self, name: &str, args: &[Value]) -> Result<Done, Interrupt> {
        let types = vec![ValueType::Int(64); args.len()];
        self.call_typed(name, args, types)
    }

    /// The same with types.
    pub fn call_typed(
        &mut self,
        name: &str,
        args: &[Value],
        arg_types: Vec<ValueType>,
    ) -> Result<Done, Interrupt> {
        let call = Call {
            callee: Callee::External(ExternalId(0)),
            args: Vec::new(),
            fixed: arg_types.len() as u32,
            arg_types,
            by_value: Vec::new(),
            dst: 0,
            result: ValueType::Int(64),
            unwind: None,
        };
        let handler = resolve(name).expect("an operation with this name");
        self.vm(|vm| {
            let values = args.iter().copied().collect();
            let arguments = Arguments {
                values,
                call: &call,
                name,
            };
            handler(vm, &arguments)
        })
    }

    /// Calls an operation with concrete arguments: its result in the world, or what it found.
    pub fn ask(&mut self, name: &str, args: &[u64]) -> Result<u64, BugKind> {
        let args: Vec<Value> = args.iter().copied().map(Value::concrete).collect();
        let done = self.call(name, &args);
        self.outcome(done)
    }

    /// The result in the world, or the kind of the finding.
    pub fn outcome(&self, done: Result<Done, Interrupt>) -> Result<u64, BugKind> {
        match done {
            Ok(Done::Value(value)) => Ok(self.known(value)),
            Ok(Done::Void) => Ok(0),
            Err(Interrupt::Bug(bug)) => Err(bug.kind),
            other => panic!("neither a value nor a finding: {other:?}"),
        }
    }
}
