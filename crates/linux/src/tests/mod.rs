//! Tests of whole hosts: handlers called by hand, and small programs that make system calls.

mod files;
mod memory;
mod programs;
mod refusals;
mod setup;
mod sockets;
mod start;

use std::collections::VecDeque;

use everett_expr::{Arena, ArrayId, ExprId};
use everett_ir::address::function_address;
use everett_ir::code::{
    Assembly, Body, Call, Callee, Code, Function, FunctionId, Inst, Operand, Program, SegmentId,
    ValueType,
};
use everett_vm::{
    Buffer, ChoiceSite, Coverage, ExecContext, Image, ObjectKind, Oracle, StackTable, Suspend,
    Value, VmOptions,
};

use crate::errno::Errno;
use crate::kernel::Stop;
use crate::{Host, HostConfig, HostExit, syscalls};

/// An oracle that answers from a tape, and suspends at its end.
#[derive(Default)]
struct Tape {
    answers: VecDeque<u64>,
    inputs: Vec<(String, u32)>,
    questions: u32,
    commits: u32,
}

impl Tape {
    fn next(&mut self) -> Result<u64, Suspend> {
        self.questions += 1;
        self.answers.pop_front().ok_or(Suspend)
    }
}

impl Oracle for Tape {
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        match arena.as_const(condition) {
            Some(bit) => Ok(bit != 0),
            None => self.next().map(|answer| answer != 0),
        }
    }

    fn concretize(&mut self, _: &mut Arena, _: ExprId) -> Result<u64, Suspend> {
        self.next()
    }

    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend> {
        assert_eq!(*site, ChoiceSite::ArgumentCount);
        self.next()
            .map(|answer| (answer as u32).min(alternatives - 1))
    }

    fn assume(&mut self, _: &mut Arena, _: ExprId) -> Result<bool, Suspend> {
        Ok(true)
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        self.inputs.push((name.to_owned(), size));
        Ok(arena.array(self.inputs.len() as u32 - 1, name, size))
    }

    fn prefer(&mut self, _: &mut Arena, _: ExprId) {}

    fn commit(&mut self) {
        self.commits += 1;
    }
}

/// The execution context of a host.
struct Bench {
    image: Image,
    arena: Arena,
    tape: Tape,
    stacks: StackTable,
    coverage: Coverage,
    options: VmOptions,
}

impl Bench {
    fn new(program: Program) -> Bench {
        let coverage = Coverage::new(program.segments.len());
        Bench {
            image: Image::new(program).unwrap(),
            arena: Arena::new(),
            tape: Tape::default(),
            stacks: StackTable::default(),
            coverage,
            options: VmOptions::default(),
        }
    }

    fn around(&mut self) -> ExecContext<'_> {
        ExecContext {
            images: std::slice::from_ref(&self.image),
            arena: &mut self.arena,
            oracle: &mut self.tape,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.options,
        }
    }

    fn boot(&mut self, config: &HostConfig) -> Host {
        Host::boot(config, None, &mut self.around()).unwrap()
    }

    fn run(&mut self, host: &mut Host) -> HostExit {
        host.run(self.around(), 1_000_000)
    }

    /// Calls a handler by the name of its system call.
    fn call_values(&mut self, host: &mut Host, name: &str, args: &[Value]) -> Result<Value, Stop> {
        let own = crate::syscalls::bootstrap::ROWS;
        let mut rows = syscalls::rows().chain(own);
        let row = rows.find(|row| row.name == name).unwrap();
        let mut all = [Value::ZERO; 6];
        all[..args.len()].copy_from_slice(args);
        let call = everett_vm::SystemCall::new(Value::ZERO, all);
        let dispatch =
            |mut slice: crate::dispatch::TimeSlice<'_, '_>| slice.kernel.dispatch(row, &call);
        host.with_running(&mut self.around(), dispatch).unwrap()
    }

    /// Calls a handler with concrete arguments and a concrete result.
    fn call(&mut self, host: &mut Host, name: &str, args: &[u64]) -> Result<u64, Errno> {
        let args: Vec<Value> = args.iter().map(|bits| Value::concrete(*bits)).collect();
        match self.call_values(host, name, &args) {
            Ok(value) => Ok(value.as_concrete().unwrap()),
            Err(Stop::Errno(errno)) => Err(errno),
            Err(stop) => panic!("{name} stopped: {stop:?}"),
        }
    }

    /// The bytes of a stream or file when every symbolic byte is its index.
    fn text(&mut self, bytes: &crate::Bytes) -> Vec<u8> {
        bytes.evaluate(&mut self.arena, &|_: ArrayId, index: u32| {
            b'a' + index as u8
        })
    }
}

/// A program whose `main` returns at once, for calling handlers by hand.
fn idle() -> (Bench, Host) {
    let mut bench = Bench::new(Script::default().program());
    let host = bench.boot(&HostConfig::default());
    (bench, host)
}

/// Places bytes in guest memory.
fn put(host: &mut Host, bytes: &[u8]) -> u64 {
    let memory = &mut host.memories[0];
    let object = memory
        .allocate(bytes.len() as u64, 8, ObjectKind::Heap)
        .unwrap();
    object.write_concrete(0, bytes);
    object.start
}

/// Places a path in guest memory.
fn put_path(host: &mut Host, path: &str) -> u64 {
    put(host, &[path.as_bytes(), b"\0"].concat())
}

/// A copy of guest memory.
fn get(host: &Host, address: u64, len: u64) -> Buffer {
    let object = host.memory().object_at(address, len).unwrap();
    object.snapshot(address - object.start, len)
}

/// How the libc binds the operands of a system call.
const CONSTRAINTS: &str =
    "={ax},{ax},{di},{si},{dx},{r10},{r8},{r9},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}";

/// A `main` that makes system calls and returns the result of the last.
#[derive(Default)]
struct Script {
    calls: Vec<(u64, Vec<u64>)>,
    /// A function that makes these calls, whose address is [`Script::second`].
    second: Vec<(u64, Vec<u64>)>,
}

impl Script {
    fn call(mut self, number: u64, args: &[u64]) -> Script {
        self.calls.push((number, args.to_vec()));
        self
    }

    /// Address of the second function.
    fn second() -> u64 {
        function_address(1)
    }

    fn program(self) -> Program {
        let function = |name: &str, code: Code| Function {
            name: name.to_owned(),
            parameters: Box::default(),
            body: Body::Code(Box::new(code)),
            location: None,
        };
        let mut program = Program {
            name: "script".to_owned(),
            ..Program::default()
        };
        program
            .functions
            .push(function("main", code(&self.calls, 0)));
        program
            .functions
            .push(function("second", code(&self.second, 1)));
        program
            .symbols
            .insert("main".to_owned(), function_address(0));
        program
            .symbols
            .insert("second".to_owned(), function_address(1));
        program.assembly.push(Assembly {
            template: "syscall".to_owned(),
            constraints: CONSTRAINTS.to_owned(),
            results: vec![ValueType::Int(64)],
            intel: false,
        });
        program.segments = vec![(FunctionId(0), 0), (FunctionId(1), 0)];
        program
    }
}

fn code(calls: &[(u64, Vec<u64>)], segment: u32) -> Code {
    let mut code = Code {
        registers: 4,
        parameter_registers: 3,
        ..Code::default()
    };
    code.result = Some(ValueType::Int(64));
    code.instructions.push(Inst::Segment {
        count: 1,
        id: SegmentId(segment),
    });
    for (number, args) in calls {
        let mut operands = Vec::new();
        let padding = std::iter::repeat_n(&0, 6 - args.len());
        for constant in std::iter::once(number).chain(args).chain(padding) {
            operands.push(Operand::constant(code.constants.len() as u32));
            code.constants.push(*constant);
        }
        code.instructions.push(Inst::Call {
            call: code.calls.len() as u32,
        });
        code.calls.push(Call {
            callee: Callee::Assembly(0),
            arg_types: vec![ValueType::Int(64); operands.len()],
            fixed: operands.len() as u32,
            args: operands,
            by_value: Vec::new(),
            dst: 3,
            result: ValueType::Int(64),
            unwind: None,
        });
    }
    code.operands.push(Operand::register(3));
    code.instructions.push(Inst::Return { values: (0, 1) });
    code.locations = vec![None; code.instructions.len()];
    code
}
