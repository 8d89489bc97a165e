//! A program made ready for execution: verified, its operations resolved, its memory laid out.

use everett_ir::code::{Body, Code, FunctionId, Program};
use everett_ir::lower::verify;

use crate::external::{self, Handler};
use crate::memory::Memory;

/// Number of a program among those of a run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ImageId(pub u16);

/// A program made ready for execution. Shared by all states.
pub struct Image {
    program: Program,
    number: ImageId,
    /// Segments of all programs of a run are numbered through; those of this one begin here.
    first_segment: u32,
    externals: Vec<Option<Handler>>,
    assembly: Vec<Option<Handler>>,
    memory: Memory,
}

/// The bytecode is not well-formed.
#[derive(Debug, thiserror::Error)]
#[error("the lowered program {program} is not well-formed: {reason}")]
pub struct ImageError {
    program: String,
    reason: String,
}

impl Image {
    /// Verifies a program and resolves what it needs of the vm. Operations that the vm does not
    /// have are findings when they are executed, not errors here.
    pub fn new(program: Program) -> Result<Image, ImageError> {
        if let Err(reason) = verify(&program) {
            return Err(ImageError {
                program: program.name,
                reason,
            });
        }
        let externals = program
            .externals
            .iter()
            .map(|name| external::resolve(name))
            .collect();
        let assembly = program
            .assembly
            .iter()
            .map(external::resolve_assembly)
            .collect();
        let memory = Memory::new(&program);
        Ok(Image {
            program,
            number: ImageId::default(),
            first_segment: 0,
            externals,
            assembly,
            memory,
        })
    }

    /// Numbers the programs of a run and their segments through.
    pub fn number_all(images: &mut [Image]) {
        let mut first_segment = 0;
        for (number, image) in (0..).zip(images) {
            image.number = ImageId(number);
            image.first_segment = first_segment;
            first_segment += image.program.segments.len() as u32;
        }
    }

    /// Its number among the programs of the run.
    pub fn number(&self) -> ImageId {
        self.number
    }

    /// Number of its first segment in [`crate::Coverage::segments`].
    pub fn first_segment(&self) -> u32 {
        self.first_segment
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The memory of a process that was just started.
    pub fn initial_memory(&self) -> Memory {
        self.memory.clone()
    }

    /// The operation behind an entry of [`Program::externals`].
    pub fn external(&self, id: everett_ir::code::ExternalId) -> Option<Handler> {
        self.externals[id.0 as usize]
    }

    /// The operation behind an entry of [`Program::assembly`].
    pub fn assembly(&self, index: u32) -> Option<Handler> {
        self.assembly[index as usize]
    }

    /// The code of a function, if it has any.
    #[inline(always)]
    pub fn code(&self, function: FunctionId) -> Option<&Code> {
        match &self.program.functions[function.0 as usize].body {
            Body::Code(code) => Some(code),
            Body::External(_) => None,
        }
    }

    /// Whether a function takes its arguments as they are in registers, none as a copy in memory.
    #[inline(always)]
    pub fn takes_registers(&self, function: FunctionId) -> bool {
        self.code(function)
            .is_none_or(|code| code.by_value.is_empty())
    }
}
