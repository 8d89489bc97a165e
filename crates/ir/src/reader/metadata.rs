//! Metadata blocks: kept as flat records, and decoded only on demand.

use super::Reader;
use super::codes::metadata as code;
use crate::bitstream::{BitReader, ReadError};
use crate::debug::{CompileUnit, FileId, SubprogramId};
use crate::module::*;
use rustc_hash::FxHashMap;

/// One metadata node or string.
#[derive(Clone, Copy)]
pub(super) enum MetadataNode<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A constant, by its value number.
    Constant(u32),
    /// A relevant record: code and operands in the pool.
    Record { code: u32, start: u32, len: u32 },
    /// A node that is never used.
    Other,
}

/// All metadata in scope: the module's, then that of the current function.
#[derive(Default)]
pub(super) struct Metadata<'a> {
    pub nodes: Vec<MetadataNode<'a>>,
    /// Number of bytes of names that may still be copied. It bounds the expansion of a small file
    /// with many references to one long string. Further names are left empty.
    text_left: std::cell::Cell<usize>,
    pool: Vec<u64>,
    /// Resolved scopes, by node number; truncated with the nodes.
    pub scopes: Vec<Option<Scope>>,
    pub locations: Vec<Option<Option<LocId>>>,
    pub files: Vec<Option<FileId>>,
    /// Ids of distinct locations and strings; never iterated.
    pub interned_locations: FxHashMap<crate::debug::Location, LocId>,
    pub interned_files: FxHashMap<crate::debug::SourceFile, FileId>,
    pub interned_strings: FxHashMap<Box<str>, u32>,
    /// References to the files of compile units, and whether these units were optimised.
    units: Vec<(u64, bool)>,
    /// Global variables and the nodes that describe them.
    pub global_attachments: Vec<(GlobalId, u64)>,
}

/// The file and function of a scope.
#[derive(Clone, Copy, Default)]
pub(super) struct Scope {
    pub subprogram: Option<SubprogramId>,
    pub file: Option<FileId>,
}

/// A position in the metadata, taken before a function is read.
#[derive(Clone, Copy)]
pub(super) struct MetadataMark {
    nodes: usize,
    pool: usize,
}

impl<'a> Metadata<'a> {
    /// Creates empty metadata; at most `text_left` bytes of names will be copied.
    pub fn new(text_left: usize) -> Self {
        Self {
            text_left: std::cell::Cell::new(text_left),
            ..Self::default()
        }
    }

    pub fn mark(&self) -> MetadataMark {
        MetadataMark {
            nodes: self.nodes.len(),
            pool: self.pool.len(),
        }
    }

    /// Drops everything after `mark`.
    pub fn reset(&mut self, mark: MetadataMark) {
        self.nodes.truncate(mark.nodes);
        self.pool.truncate(mark.pool);
        self.scopes.truncate(mark.nodes);
        self.locations.truncate(mark.nodes);
        self.files.truncate(mark.nodes);
    }

    pub fn node(&self, number: u64) -> Option<MetadataNode<'a>> {
        self.nodes.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns code and operands of a record.
    pub fn record(&self, number: u64) -> Option<(u32, &[u64])> {
        match self.node(number)? {
            MetadataNode::Record { code, start, len } => {
                Some((code, self.pool.get(start as usize..(start + len) as usize)?))
            }
            _ => None,
        }
    }

    /// Returns the operands of a record that must have this code.
    pub fn record_of(&self, number: u64, code: u32) -> Option<&[u64]> {
        self.record(number)
            .filter(|(found, _)| *found == code)
            .map(|(_, ops)| ops)
    }

    /// Returns the string with this number plus one; empty if there is none.
    pub fn text_or_empty(&self, reference: u64) -> Box<str> {
        match reference
            .checked_sub(1)
            .and_then(|number| self.node(number))
        {
            Some(MetadataNode::Text(bytes)) => {
                match self.text_left.get().checked_sub(bytes.len()) {
                    Some(left) => {
                        self.text_left.set(left);
                        String::from_utf8_lossy(bytes).into()
                    }
                    None => Box::default(),
                }
            }
            _ => Box::default(),
        }
    }

    fn push_record(&mut self, code: u32, ops: &[u64]) {
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(ops);
        self.nodes.push(MetadataNode::Record {
            code,
            start,
            len: ops.len() as u32,
        });
    }
}

impl Reader<'_> {
    /// Reads a metadata block, which has been entered.
    pub(super) fn read_metadata(&mut self) -> Result<(), ReadError> {
        while let Some(record) = self.bits.next_record()? {
            match record {
                code::STRINGS => self.read_strings()?,
                code::STRING_OLD => {
                    // LLVM 14 to 22 write all strings into one record; this old form is not needed.
                    self.metadata.nodes.push(MetadataNode::Other);
                }
                code::VALUE => {
                    let value = u32::try_from(self.op(1)?).unwrap_or(u32::MAX);
                    self.metadata.nodes.push(MetadataNode::Constant(value));
                }
                code::COMPILE_UNIT => {
                    self.metadata.nodes.push(MetadataNode::Other);
                    // `[distinct, language, file, producer, optimised, …]`
                    let unit = (self.op_or_zero(2), self.op_or_zero(4) != 0);
                    self.metadata.units.push(unit);
                }
                code::GLOBAL_DECL_ATTACHMENT => self.read_global_attachment()?,
                code::NAME | code::NAMED_NODE | code::KIND => {}
                code::INDEX_OFFSET | code::INDEX => {}
                code::NODE
                | code::LOCATION
                | code::SUBRANGE
                | code::ENUMERATOR
                | code::BASIC_TYPE
                | code::FILE
                | code::DERIVED_TYPE
                | code::COMPOSITE_TYPE
                | code::SUBPROGRAM
                | code::LEXICAL_BLOCK
                | code::LEXICAL_BLOCK_FILE
                | code::NAMESPACE
                | code::GLOBAL_VAR
                | code::EXPRESSION
                | code::DISTINCT_NODE
                | code::GLOBAL_VAR_EXPR => self.metadata.push_record(record, &self.bits.ops),
                _ => self.metadata.nodes.push(MetadataNode::Other),
            }
        }
        for (file, optimised) in std::mem::take(&mut self.metadata.units) {
            let file = self.file(file);
            let unit = CompileUnit { file, optimised };
            self.module.debug.units.push(unit);
        }
        if self.metadata.pool.len() > u32::MAX as usize {
            return Err(self.bits.error("too much metadata"));
        }
        Ok(())
    }

    /// Reads `[count, offset of the characters]`, with lengths and characters in the blob.
    fn read_strings(&mut self) -> Result<(), ReadError> {
        let (count, offset) = (self.op(0)?, self.op(1)?);
        let blob = self.bits.blob;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset > blob.len() {
            return Err(self.bits.error("the strings lie outside of their record"));
        }
        let (lengths, mut chars) = blob.split_at(offset);
        let mut lengths = BitReader::new(lengths, 0);
        self.metadata.nodes.reserve(self.bits.capped(count));
        for _ in 0..count {
            let length = lengths
                .vbr(6)
                .map_err(|_| self.bits.error("too few string lengths"))?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > chars.len() {
                return Err(self.bits.error("a string goes beyond its record"));
            }
            let (string, rest) = chars.split_at(length);
            self.metadata.nodes.push(MetadataNode::Text(string));
            chars = rest;
        }
        Ok(())
    }

    /// Reads `[value, (kind, node)…]`.
    fn read_global_attachment(&mut self) -> Result<(), ReadError> {
        let number = usize::try_from(self.op(0)?).unwrap_or(usize::MAX);
        match self.values.get(number) {
            Some(&Value::Global(id)) => {
                for pair in self.bits.ops[1..].chunks_exact(2) {
                    if pair[0] == 0 {
                        self.metadata.global_attachments.push((id, pair[1]));
                    }
                }
            }
            // Declarations have their subprograms here.
            Some(&Value::Function(id)) => {
                let pairs = self.bits.ops[1..].chunks_exact(2);
                let node = pairs
                    .into_iter()
                    .find(|pair| pair[0] == 0)
                    .map(|pair| pair[1]);
                let subprogram = node.and_then(|node| self.subprogram(node));
                self.module.functions[id.index()].subprogram = subprogram;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns metadata as an argument of a call: strings are kept, also those wrapped in a node.
    pub(super) fn metadata_operand(&mut self, number: usize) -> Value {
        let number = number as u64;
        let string: Option<Box<str>> = match self.metadata.node(number) {
            Some(MetadataNode::Text(bytes)) => Some(String::from_utf8_lossy(bytes).into()),
            Some(MetadataNode::Record {
                code: code::NODE, ..
            }) => match self.metadata.record(number) {
                Some((_, &[reference])) => Some(self.metadata.text_or_empty(reference)),
                _ => None,
            },
            _ => None,
        };
        let Some(string) = string.filter(|string| !string.is_empty()) else {
            return Value::Metadata(NO_METADATA);
        };
        let strings = &mut self.module.metadata_strings;
        let index = *self
            .metadata
            .interned_strings
            .entry(string)
            .or_insert_with_key(|string| {
                strings.push(string.clone());
                strings.len() as u32 - 1
            });
        Value::Metadata(index)
    }

    /// Returns the integer in a node.
    pub(super) fn metadata_integer(&self, number: u64) -> Option<u64> {
        let MetadataNode::Constant(value) = self.metadata.node(number)? else {
            return None;
        };
        let Value::Constant(id) = *self.values.get(value as usize)? else {
            return None;
        };
        match self.module.constant(id).kind {
            ConstantKind::Integer(value) => Some(value),
            ConstantKind::Null => Some(0),
            _ => None,
        }
    }
}
