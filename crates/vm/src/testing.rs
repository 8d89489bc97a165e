//! Test harness: a process without a program, and an oracle with a fixed model of the symbolic
//! bytes.
//!
//! Tests call operations and inline assembly on symbolic data and check the result against C
//! semantics under the oracle's model.

use everett_expr::{Arena, ArrayId, Assignment, EvalScratch, ExprId};
use everett_ir::code::{Assembly, Call, Callee, ExternalId, FloatKind, Program, ValueType};
use std::collections::HashMap;

use crate::bug::BugKind;
use crate::choice::ChoiceSite;
use crate::external::{resolve, resolve_assembly};
use crate::image::Image;
use crate::integer::Wide;
use crate::memory::{Memory, ObjectKind};
use crate::options::VmOptions;
use crate::oracle::{Note, Oracle, Suspend};
use crate::stacks::StackTable;
use crate::thread::Thread;
use crate::value::Value;
use crate::vm::{Arguments, Coverage, Done, ExecContext, Handler, Interrupt, Vm};

/// An argument: its type and its registers.
pub type Argument = (ValueType, Vec<Value>);

/// An oracle that answers according to a fixed assignment of the symbolic bytes.
#[derive(Default)]
pub struct ModelOracle {
    /// The assignment; bytes that are not listed are zero.
    pub bytes: HashMap<(ArrayId, u32), u8>,
    /// Number of questions asked about data.
    pub questions: usize,
    /// Inputs created: name and size.
    pub inputs: Vec<(String, u32)>,
    /// Soft constraints.
    pub preferred: Vec<ExprId>,
    /// What the program had to say.
    pub notes: Vec<Note>,
}

impl Assignment for ModelOracle {
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        self.bytes.get(&(array, index)).copied().unwrap_or(0)
    }
}

impl ModelOracle {
    /// Evaluates a term in the model.
    pub fn eval(&self, arena: &Arena, term: ExprId) -> u64 {
        arena.eval(term, self, &mut EvalScratch::new())
    }
}

impl Oracle for ModelOracle {
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

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn commit(&mut self) {}
}

/// Returns the types of several results of inline assembly: words, and numbers of the x87.
fn result_types(constraints: &str) -> Vec<ValueType> {
    let codes = constraints.split(',');
    let outputs = codes.filter(|code| code.starts_with('=') && !code.starts_with("=*"));
    let types = outputs.map(|code| match code.contains("{st") {
        true => ValueType::Float(FloatKind::X87),
        false => ValueType::Int(64),
    });
    types.collect()
}

/// A process without a program.
pub struct Harness {
    pub image: Image,
    pub arena: Arena,
    pub world: ModelOracle,
    pub stacks: StackTable,
    pub coverage: Coverage,
    pub options: VmOptions,
    pub memory: Memory,
    pub thread: Thread,
}

impl Harness {
    /// Creates a process without a program.
    pub fn new() -> Harness {
        Harness::with(Program::default())
    }

    /// Creates a process at the start of this program.
    pub fn with(program: Program) -> Harness {
        let image = Image::new(program).expect("a well-formed program");
        let memory = image.initial_memory();
        Harness {
            // Programs assembled by hand list no segments.
            coverage: Coverage::new(image.program().segments.len().max(64)),
            image,
            arena: Arena::new(),
            world: ModelOracle::default(),
            stacks: StackTable::default(),
            options: VmOptions::default(),
            memory,
            thread: Thread::new(0),
        }
    }

    /// Runs `work` with a [`Vm`].
    pub fn vm<T>(&mut self, work: impl FnOnce(&mut Vm<'_>) -> T) -> T {
        let context = ExecContext {
            images: std::slice::from_ref(&self.image),
            arena: &mut self.arena,
            oracle: &mut self.world,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        };
        work(&mut Vm::new(
            context,
            crate::stacks::ImageId::default(),
            &mut self.memory,
            &mut self.thread,
        ))
    }

    /// Allocates a heap block with these bytes.
    pub fn block(&mut self, bytes: &[u8]) -> u64 {
        let object = self
            .memory
            .allocate(bytes.len() as u64, 16, ObjectKind::Heap)
            .expect("room for a block");
        object.write_concrete(0, bytes);
        object.start
    }

    /// Makes one byte symbolic; it keeps its value in the model.
    pub fn make_symbolic(&mut self, address: u64) {
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

    /// Creates a symbolic number with this value in the model.
    pub fn symbolic(&mut self, number: u64, bytes: u32) -> Value {
        let term = self.symbolic_term(number.into(), 8 * bytes);
        Value::of_term(&self.arena, term)
    }

    /// Creates a symbolic term of any width with this value in the model.
    pub fn symbolic_term(&mut self, number: u128, width: u32) -> ExprId {
        let bytes = width.div_ceil(8);
        let ordinal = self.world.bytes.len() as u32;
        let array = self.arena.array(ordinal, &format!("n{ordinal}"), bytes);
        let mut terms = Vec::new();
        for at in 0..bytes {
            let byte = (number >> (8 * at)) as u8;
            self.world.bytes.insert((array, at), byte);
            terms.push(self.arena.read(array, at));
        }
        let term = self.arena.concat_bytes(&terms);
        self.arena.extract(term, 0, width)
    }

    /// Evaluates a value in the model.
    pub fn eval_value(&self, value: Value) -> u64 {
        match value.term {
            None => value.bits,
            Some(term) => self.world.eval(&self.arena, term),
        }
    }

    /// Evaluates a byte of memory in the model.
    pub fn byte(&mut self, address: u64) -> u8 {
        let value = self
            .memory
            .load(&mut self.arena, address, 1)
            .expect("a byte of an object");
        self.eval_value(value) as u8
    }

    /// Evaluates bytes of memory in the model.
    pub fn bytes(&mut self, address: u64, len: usize) -> Vec<u8> {
        (0..len as u64).map(|at| self.byte(address + at)).collect()
    }

    /// Calls an operation with 64-bit arguments and a 64-bit result.
    pub fn call(&mut self, name: &str, args: &[Value]) -> Result<Done, Interrupt> {
        let long = ValueType::Int(64);
        let args: Vec<Argument> = args.iter().map(|value| (long, vec![*value])).collect();
        self.call_typed(name, &args, long)
    }

    /// Calls an operation by its full name, with typed arguments.
    pub fn call_typed(
        &mut self,
        name: &str,
        args: &[Argument],
        result: ValueType,
    ) -> Result<Done, Interrupt> {
        let handler = resolve(name).unwrap_or_else(|| panic!("{name} is known"));
        let callee = Callee::External(ExternalId(0));
        self.run(handler, callee, name, args, result)
    }

    /// Calls an operation and returns the registers of its result.
    pub fn compute(&mut self, name: &str, args: &[Argument], result: ValueType) -> Wide {
        let done = self.call_typed(name, args, result);
        registers(done.unwrap_or_else(|interrupt| panic!("{name}: {interrupt:?}")))
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
            results: match result {
                ValueType::Aggregate { .. } => result_types(constraints),
                ValueType::Void => Vec::new(),
                single => vec![single],
            },
            intel: false,
        };
        let handler = resolve_assembly(&assembly);
        let mut program = Program::default();
        program.assembly.push(assembly);
        self.image = Image::new(program).expect("a well-formed program");
        self.run(handler, Callee::Assembly(0), template, args, result)
            .map(registers)
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
        let values = args.iter().flat_map(|arg| arg.1.iter().copied()).collect();
        self.vm(|vm| {
            let arguments = Arguments {
                values,
                call: &call,
                name,
            };
            handler(vm, &arguments)
        })
    }

    /// Calls an operation with concrete arguments. Returns the result in the model, or the kind of
    /// the finding.
    pub fn call_concrete(&mut self, name: &str, args: &[u64]) -> Result<u64, BugKind> {
        let args: Vec<Value> = args.iter().copied().map(Value::concrete).collect();
        let done = self.call(name, &args);
        self.outcome(done)
    }

    /// Returns the result in the model, or the kind of the finding.
    pub fn outcome(&self, done: Result<Done, Interrupt>) -> Result<u64, BugKind> {
        match done {
            Ok(Done::Value(value)) => Ok(self.eval_value(value)),
            Ok(Done::Void) => Ok(0),
            Err(Interrupt::Bug(bug)) => Err(bug.kind),
            other => panic!("neither a value nor a finding: {other:?}"),
        }
    }
}

fn registers(done: Done) -> Wide {
    match done {
        Done::Void | Done::Moved => Wide::new(),
        Done::Value(value) => Wide::from_slice(&[value]),
        Done::Values(values) => values,
    }
}

/// Returns an integer argument.
pub fn int(width: u16, bits: u128) -> Argument {
    let values = (0..u32::from(width).div_ceil(64))
        .map(|limb| Value::concrete((bits >> (64 * limb)) as u64))
        .collect();
    (ValueType::Int(width), values)
}

/// Returns a pointer argument.
pub fn pointer(address: u64) -> Argument {
    (ValueType::Pointer, vec![Value::concrete(address)])
}

/// Returns the number in concrete registers.
pub fn number(registers: &[u64]) -> u128 {
    let limbs = registers.iter().rev();
    limbs.fold(0, |bits, limb| bits << 64 | u128::from(*limb))
}

/// Returns the concrete bits of registers.
pub fn bits(registers: &[Value]) -> Vec<u64> {
    registers
        .iter()
        .map(|value| value.as_concrete().expect("a concrete value"))
        .collect()
}
