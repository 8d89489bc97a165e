//! A loaded program: verified, with built-in operations resolved and memory laid out.

use everett_ir::address;
use everett_ir::code::{Body, Code, ExternalId, FunctionId, Program};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::memory::Memory;
use crate::stacks::ImageId;
use crate::vm::Handler;

/// A loaded program, ready for execution. All states share it.
pub struct Image {
    program: Program,
    number: ImageId,
    /// Index of the program's first segment. Segments are numbered consecutively over all programs
    /// of a run.
    first_segment: u32,
    /// Index of the program's first branch edge. The edges of conditional branches follow the
    /// segments of all programs.
    first_edge: u32,
    externals: Vec<Option<Handler>>,
    /// What intercepted functions do if they do not fail, by their entry of [`Program::externals`].
    intercepted: Vec<Option<Intercepted>>,
    assembly: Vec<Handler>,
    memory: Memory,
    tracks_floats: bool,
    replaced: Vec<Replaced>,
    /// Addresses of the functions that pointers can refer to, in order.
    pointed_to: OnceLock<Vec<u64>>,
}

/// What the vm does if an intercepted call does not fail.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Intercepted {
    /// It executes the program's own definition.
    Definition(FunctionId),
    /// It executes its own operation.
    Operation(Handler),
}

/// A function of the program that the vm does not execute: a call returns any number of a range, as
/// a symbolic input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replaced {
    /// The symbol of the function.
    pub symbol: String,
    /// The name of the input.
    pub name: String,
    /// The least number.
    pub low: i64,
    /// The greatest number.
    pub high: i64,
    /// Size of the return value in bytes.
    pub bytes: u32,
}

/// The error for malformed bytecode.
#[derive(Debug, thiserror::Error)]
#[error("the lowered program {program} is not well-formed: {reason}")]
pub struct ImageError {
    pub(crate) program: String,
    pub(crate) reason: String,
}

impl Image {
    /// Creates an image from a verified program and the handlers of the built-in operations and
    /// pieces of inline assembly that it uses.
    pub(crate) fn resolved(
        program: Program,
        externals: Vec<Option<Handler>>,
        assembly: Vec<Handler>,
        tracks_floats: bool,
    ) -> Image {
        Image {
            memory: Memory::new(&program),
            first_edge: program.segments.len() as u32,
            program,
            number: ImageId::default(),
            first_segment: 0,
            externals,
            intercepted: Vec::new(),
            assembly,
            tracks_floats,
            replaced: Vec::new(),
            pointed_to: OnceLock::new(),
        }
    }

    /// Returns the same program with this handler for calls of these functions.
    pub(crate) fn handling(mut self, replaced: &[Replaced], by: Handler) -> Image {
        for (name, handler) in self.program.externals.iter().zip(&mut self.externals) {
            if replaced.iter().any(|function| function.symbol == *name) {
                *handler = Some(by);
            }
        }
        self.replaced = replaced.to_vec();
        self
    }

    /// Returns the same program with calls of these symbols intercepted. Those that the vm does not
    /// execute itself must have been lowered as intercepted.
    pub fn intercepting(mut self, is_meant: &dyn Fn(&str) -> bool) -> Image {
        let definitions = self.definitions();
        let externals = self.program.externals.iter().zip(&self.externals);
        let intercepted = externals.zip(definitions).map(|((name, handler), known)| {
            let operation = || Some(Intercepted::Operation((*handler)?));
            let definition = known.map(Intercepted::Definition);
            is_meant(name).then(|| definition.or_else(operation))?
        });
        self.intercepted = intercepted.collect();
        self
    }

    /// Returns the definition of each intercepted function: the last function with its name.
    fn definitions(&self) -> Vec<Option<FunctionId>> {
        let functions = &self.program.functions;
        let numbered = || (0..).zip(functions);
        let last: BTreeMap<&str, u32> = numbered()
            .filter(|(_, function)| matches!(function.body, Body::Code(_)))
            .map(|(id, function)| (function.name.as_str(), id))
            .collect();
        let mut definitions = vec![None; self.externals.len()];
        for (own, function) in numbered() {
            if let Body::External(id) = function.body
                && let Some(found) = last.get(function.name.as_str())
                && *found > own
            {
                definitions[id.0 as usize] = Some(FunctionId(*found));
            }
        }
        definitions
    }

    /// Returns what an intercepted function does if it does not fail.
    pub(crate) fn intercepted(&self, id: ExternalId) -> Option<Intercepted> {
        self.intercepted.get(id.0 as usize).copied().flatten()
    }

    /// Returns the replacement of a function.
    pub fn replaced(&self, symbol: &str) -> Option<&Replaced> {
        let mut all = self.replaced.iter();
        all.find(|function| function.symbol == symbol)
    }

    /// Assigns consecutive indices to the programs of a run and to their segments.
    pub fn number_all(images: &mut [Image]) {
        let mut first_segment = 0;
        for (number, image) in (0..).zip(&mut *images) {
            image.number = ImageId(number);
            image.first_segment = first_segment;
            first_segment += image.program.segments.len() as u32;
        }
        let mut first_edge = first_segment;
        for image in images {
            image.first_edge = first_edge;
            first_edge += 2 * image.program.branches;
        }
    }

    /// Returns the index among the programs of the run.
    pub fn number(&self) -> ImageId {
        self.number
    }

    /// Returns the index of the first segment in [`crate::Coverage::segments`].
    pub fn first_segment(&self) -> u32 {
        self.first_segment
    }

    /// Returns the index of the first conditional branch edge in [`crate::Coverage::segments`].
    pub fn first_edge(&self) -> u32 {
        self.first_edge
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the initial memory of a process that runs this program.
    pub fn initial_memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Returns whether the program can set rounding modes or read exception flags. If it cannot,
    /// arithmetic rounds to nearest and the vm tracks no flags.
    #[inline(always)]
    pub fn tracks_floats(&self) -> bool {
        self.tracks_floats
    }

    /// Returns the handler of an entry of [`Program::externals`].
    pub fn external(&self, id: everett_ir::code::ExternalId) -> Option<Handler> {
        self.externals[id.0 as usize]
    }

    /// Returns the handler of an entry of [`Program::assembly`].
    pub fn assembly(&self, index: u32) -> Handler {
        self.assembly[index as usize]
    }

    /// Returns the code of a function, if it has any.
    #[inline(always)]
    pub fn code(&self, function: FunctionId) -> Option<&Code> {
        match &self.program.functions[function.0 as usize].body {
            Body::Code(code) => Some(code),
            Body::External(_) => None,
        }
    }

    /// Returns the sorted addresses of the functions whose address the program takes: only they can
    /// be the target of a valid function pointer.
    pub fn pointed_to(&self) -> &[u64] {
        self.pointed_to.get_or_init(|| {
            let count = self.program.functions.len() as u64;
            let is_function = |word: &u64| {
                address::function_at(*word).is_some_and(|function| u64::from(function) < count)
            };
            let globals = self.program.globals.iter().flat_map(|global| {
                // Trailing zeros are omitted.
                global.bytes.chunks(8).map(|bytes| {
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    u64::from_le_bytes(word)
                })
            });
            let codes = self
                .program
                .functions
                .iter()
                .filter_map(|function| match &function.body {
                    Body::Code(code) => Some(code.constants.iter().copied()),
                    Body::External(_) => None,
                });
            let mut found: Vec<u64> = globals.chain(codes.flatten()).filter(is_function).collect();
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// Returns whether a function takes all its arguments in registers, none as a copy in memory.
    #[inline(always)]
    pub fn takes_registers(&self, function: FunctionId) -> bool {
        self.code(function)
            .is_none_or(|code| code.by_value.is_empty())
    }
}
