//! The bitcode reader: the container of the file and the order of its blocks. The other files of
//! this folder read one kind of block each.

mod attributes;
mod calls;
mod codes;
mod constants;
mod debug_types;
mod function;
mod globals;
mod instructions;
mod locations;
mod memory;
mod metadata;
mod types;

use std::collections::HashMap;

use crate::bitstream::{BitReader, ReadError, StreamEntry};
use crate::module::*;
use codes::{blocks, module as code};

/// Reads the only module of a file.
pub(crate) fn read_module(bytes: &[u8]) -> Result<Module, ReadError> {
    let mut modules = read_modules(bytes)?;
    match (modules.pop(), modules.len()) {
        (Some(module), 0) => Ok(module),
        (None, _) => Err(plain_error(0, "the file contains no module")),
        (_, more) => {
            let count = more + 1;
            Err(plain_error(
                0,
                format!("the file holds {count} modules; read them all and link"),
            ))
        }
    }
}

/// Reads all modules of a file; most files contain one.
pub fn read_modules(bytes: &[u8]) -> Result<Vec<Module>, ReadError> {
    let container = Container::scan(bytes)?;
    let mut modules = Vec::new();
    for (index, &(start_bits, ref producer)) in container.modules.iter().enumerate() {
        // The string table of a module is the first one after it.
        let strtab = container.strtabs.iter().find(|(at, _)| *at > start_bits);
        let strtab = strtab.map_or(&[][..], |&(_, blob)| blob);
        let mut bits = BitReader::new(bytes, (start_bits / 8) as usize);
        // The scan stopped after the block id; the header follows.
        bits.next_entry()?;
        bits.enter(blocks::MODULE)?;
        let mut reader = Reader::new(bits, strtab, bytes.len());
        reader.module.producer = producer.clone();
        if container.modules.len() > 1 {
            reader.module.name = format!("module {index}");
        }
        modules.push(reader.read()?);
    }
    Ok(modules)
}

fn plain_error(offset_bits: u64, message: impl Into<String>) -> ReadError {
    ReadError {
        offset_bits,
        block: None,
        record: None,
        message: message.into(),
    }
}

/// The top-level content of a file.
struct Container<'a> {
    /// Start of each module block in bits, and its producer.
    modules: Vec<(u64, String)>,
    /// Start of each string table in bits, with its content.
    strtabs: Vec<(u64, &'a [u8])>,
}

impl<'a> Container<'a> {
    fn scan(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let bytes = unwrapped(bytes)?;
        let start = bytes.start;
        let mut bits = BitReader::new(&bytes.whole[..bytes.end], start + 4);
        let mut found = Self {
            modules: Vec::new(),
            strtabs: Vec::new(),
        };
        let mut producer = String::new();
        while !bits.at_end() {
            let at = bits.position();
            match bits.next_entry()? {
                StreamEntry::SubBlock(blocks::MODULE) => {
                    found.modules.push((at, producer.clone()));
                    bits.skip()?;
                }
                StreamEntry::SubBlock(blocks::IDENTIFICATION) => {
                    bits.enter(blocks::IDENTIFICATION)?;
                    while let Some(record) = bits.next_record()? {
                        if record == 1 {
                            producer = text(&bits.ops).into();
                        }
                    }
                }
                StreamEntry::SubBlock(blocks::STRTAB) => {
                    bits.enter(blocks::STRTAB)?;
                    while let Some(record) = bits.next_record()? {
                        if record == 1 {
                            found.strtabs.push((at, bits.blob));
                        }
                    }
                }
                StreamEntry::SubBlock(_) => bits.skip()?,
                _ => return Err(bits.error("a record outside of all blocks")),
            }
        }
        Ok(found)
    }
}

/// The bitstream part of a file, with its signature.
struct Unwrapped<'a> {
    whole: &'a [u8],
    start: usize,
    end: usize,
}

/// Strips the wrapper of Apple's tools, and reports other file types.
fn unwrapped(bytes: &[u8]) -> Result<Unwrapped<'_>, ReadError> {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let mut range = (0, bytes.len());
    if word(0) == Some(0x0B17_C0DE) {
        let (Some(offset), Some(size)) = (word(8), word(12)) else {
            return Err(plain_error(0, "the file ends in its wrapper header"));
        };
        let end = offset.saturating_add(size);
        if end > bytes.len() {
            return Err(plain_error(
                64,
                "the wrapper names more than the file holds",
            ));
        }
        if offset % 4 != 0 {
            return Err(plain_error(64, "the wrapped bitcode is not aligned"));
        }
        range = (offset, end);
    }
    match &bytes[range.0..range.1] {
        [b'B', b'C', 0xC0, 0xDE, ..] => Ok(Unwrapped {
            whole: bytes,
            start: range.0,
            end: range.1,
        }),
        [0x7F, b'E', b'L', b'F', ..] => Err(plain_error(
            0,
            "this is a native ELF file, not bitcode; compile with -flto or -emit-llvm",
        )),
        start if start.starts_with(b"!<arch>") || start.starts_with(b"!<thin>") => {
            Err(plain_error(
                0,
                "this is an archive, not bitcode; read its members one by one",
            ))
        }
        [] => Err(plain_error(0, "the file is empty")),
        start if start.is_ascii() => Err(plain_error(
            0,
            "this is text, not bitcode; assemble it with llvm-as",
        )),
        _ => Err(plain_error(
            0,
            "this is not bitcode: it does not start with 'BC' 0xC0DE",
        )),
    }
}

/// Converts the characters of a record to text.
fn text(ops: &[u64]) -> Box<str> {
    let bytes: Vec<u8> = ops.iter().map(|&op| op as u8).collect();
    String::from_utf8_lossy(&bytes).into()
}

/// The state of reading one module.
struct Reader<'a> {
    bits: BitReader<'a>,
    strtab: &'a [u8],
    module: Module,
    types: types::FileTypes,
    /// Values by number: the module's, then those of the current function.
    values: Vec<Value>,
    /// The types of the values.
    value_types: Vec<TypeId>,
    /// References that can be resolved only when all constants are known.
    late: globals::LateReferences,
    attribute_groups: HashMap<u64, attributes::Group>,
    sections: Vec<Box<str>>,
    gc_names: Vec<Box<str>>,
    sync_scopes: Vec<Box<str>>,
    /// Functions whose bodies are still to come, the next one first.
    bodies: std::collections::VecDeque<FunctionId>,
    metadata: metadata::Metadata<'a>,
    constants: constants::ConstantPool,
    common: Option<CommonTypes>,
    /// Number of entries (mask lanes, words of wide integers) that records may still represent
    /// beyond their own length. It bounds the expansion of a small file.
    expansion_budget: usize,
    /// Whether each function, by id, is an `llvm.dbg.*` intrinsic.
    debug_intrinsics: Vec<bool>,
}

/// Types that results of instructions need.
#[derive(Clone, Copy)]
struct CommonTypes {
    void: TypeId,
    bit: TypeId,
    pointer: TypeId,
    token: TypeId,
}

impl<'a> Reader<'a> {
    fn new(bits: BitReader<'a>, strtab: &'a [u8], file_size: usize) -> Self {
        Self {
            bits,
            strtab,
            module: Module::default(),
            types: types::FileTypes::default(),
            values: Vec::new(),
            value_types: Vec::new(),
            late: globals::LateReferences::default(),
            attribute_groups: HashMap::new(),
            sections: Vec::new(),
            gc_names: Vec::new(),
            sync_scopes: Vec::new(),
            bodies: std::collections::VecDeque::new(),
            metadata: metadata::Metadata::new(file_size.saturating_mul(64)),
            constants: constants::ConstantPool::default(),
            common: None,
            expansion_budget: file_size.saturating_mul(64),
            debug_intrinsics: Vec::new(),
        }
    }

    /// Returns operand `index` of the current record.
    #[inline]
    fn op(&self, index: usize) -> Result<u64, ReadError> {
        match self.bits.ops.get(index) {
            Some(&op) => Ok(op),
            None => Err(self
                .bits
                .error(format!("the record has no operand {index}"))),
        }
    }

    /// Returns operand `index`, or 0 if the record ends before it.
    #[inline]
    fn op_or_zero(&self, index: usize) -> u64 {
        self.bits.ops.get(index).copied().unwrap_or(0)
    }

    /// Accounts for `count` entries that the file does not contain explicitly.
    fn charge(&mut self, count: usize) -> Result<(), ReadError> {
        match self.expansion_budget.checked_sub(count) {
            Some(left) => {
                self.expansion_budget = left;
                Ok(())
            }
            None => Err(self
                .bits
                .error("the file expands to far more than its size")),
        }
    }

    fn common(&mut self) -> CommonTypes {
        let types = &mut self.module.types;
        *self.common.get_or_insert_with(|| CommonTypes {
            void: types.intern(Type::Void),
            bit: types.intern(Type::Integer(1)),
            pointer: types.intern(Type::Pointer { address_space: 0 }),
            token: types.intern(Type::Token),
        })
    }

    /// Reads the module block, which has been entered.
    fn read(mut self) -> Result<Module, ReadError> {
        self.common();
        loop {
            match self.bits.next_entry()? {
                StreamEntry::EndBlock => break,
                StreamEntry::SubBlock(id) => self.read_block(id)?,
                StreamEntry::Record(record) => self.read_record(record)?,
            }
        }
        if !self.bodies.is_empty() {
            let missing = self.bodies.len();
            return Err(self
                .bits
                .error(format!("{missing} function bodies are missing")));
        }
        self.finish_globals()?;
        self.check_constants()?;
        self.finish_debug_info();
        self.compute_layouts()?;
        Ok(self.module)
    }

    fn read_block(&mut self, id: u32) -> Result<(), ReadError> {
        let known = matches!(
            id,
            blocks::PARAM_ATTRIBUTES
                | blocks::ATTRIBUTE_GROUPS
                | blocks::CONSTANTS
                | blocks::FUNCTION
                | blocks::METADATA
                | blocks::TYPES
                | blocks::OPERAND_BUNDLE_TAGS
                | blocks::SYNC_SCOPE_NAMES
        );
        if !known {
            // Symbol tables, use-list orders and summaries do not affect execution.
            return self.bits.skip();
        }
        self.bits.enter(id)?;
        match id {
            blocks::PARAM_ATTRIBUTES => self.read_attribute_lists(),
            blocks::ATTRIBUTE_GROUPS => self.read_attribute_groups(),
            blocks::CONSTANTS => self.read_constants(),
            blocks::FUNCTION => self.read_function_body(),
            blocks::METADATA => self.read_metadata(),
            blocks::TYPES => self.read_types(),
            blocks::OPERAND_BUNDLE_TAGS => {
                while self.bits.next_record()?.is_some() {
                    self.module.bundle_tags.push(text(&self.bits.ops));
                }
                Ok(())
            }
            _ => {
                while self.bits.next_record()?.is_some() {
                    self.sync_scopes.push(text(&self.bits.ops));
                }
                Ok(())
            }
        }
    }

    fn read_record(&mut self, record: u32) -> Result<(), ReadError> {
        match record {
            code::VERSION => match self.op(0)? {
                2 => {}
                version => {
                    let message = format!("module format {version} (before LLVM 5) is not read");
                    return Err(self.bits.error(message));
                }
            },
            code::TRIPLE => self.module.target_triple = text(&self.bits.ops).into(),
            code::DATA_LAYOUT => {
                self.module.data_layout = text(&self.bits.ops).into();
                self.module.types.data_layout = DataLayout::parse(&self.module.data_layout);
            }
            code::ASM => self.module.module_asm = text(&self.bits.ops).into(),
            code::SOURCE_FILENAME => self.module.name = text(&self.bits.ops).into(),
            code::SECTION_NAME => self.sections.push(text(&self.bits.ops)),
            code::GC_NAME => self.gc_names.push(text(&self.bits.ops)),
            code::COMDAT => self.read_comdat()?,
            code::GLOBAL => self.read_global()?,
            code::FUNCTION => self.read_function()?,
            code::ALIAS => self.read_alias()?,
            code::IFUNC => self.read_ifunc()?,
            code::ALIAS_OLD => return Err(self.bits.error("an alias record from before LLVM 3.8")),
            _ => {}
        }
        Ok(())
    }

    fn compute_layouts(&mut self) -> Result<(), ReadError> {
        self.module.types.compute_layouts().map_err(|problem| {
            let what = match problem {
                LayoutProblem::Recursive(_) => "a struct contains itself",
                LayoutProblem::TooLarge(_) => "a type is larger than the address space",
                LayoutProblem::TooDeep(_) => "types are nested too deeply",
            };
            self.bits.error(what)
        })
    }
}

impl Module {
    /// Reads a module from bitcode.
    pub fn read(bytes: &[u8]) -> Result<Module, crate::ReadError> {
        read_module(bytes)
    }
}
