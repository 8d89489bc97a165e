//! Function bodies: blocks, value numbers, forward references and debug locations. The other files
//! of this folder decode the instructions.

use super::Reader;
use super::codes::{blocks, function as code, metadata as metadata_code};
use crate::bitstream::{ReadError, StreamEntry};
use crate::module::*;

/// The state of reading one function body.
pub(super) struct Body {
    pub function: Function,
    block_count: usize,
    /// First instruction of the block being read.
    block_start: usize,
    /// Value numbers used before their definition, with the expected type.
    forward: Vec<(usize, TypeId)>,
    last_location: Option<LocId>,
    /// Whether the last call was dropped because it only carries debug information.
    pub dropped: bool,
    /// The first of the operand bundles that belong to the next call.
    pub bundle_start: usize,
}

/// Until the body is read, references to undefined values have their value number plus this as
/// instruction id.
const FORWARD: usize = 1 << 31;

impl Reader<'_> {
    /// Reads a function block, which has been entered.
    pub(super) fn read_function_body(&mut self) -> Result<(), ReadError> {
        let Some(id) = self.bodies.pop_front() else {
            return Err(self
                .bits
                .error("more function bodies than functions with a body"));
        };
        let (values, metadata) = (self.values.len(), self.metadata.mark());
        let nothing = Function::declaration(Box::default(), self.common().void);
        let function = std::mem::replace(&mut self.module.functions[id.index()], nothing);
        for (index, &ty) in function.params.iter().enumerate() {
            self.values.push(Value::Argument(index as u32));
            self.value_types.push(ty);
        }
        let mut body = Body {
            function,
            block_count: 0,
            block_start: 0,
            forward: Vec::new(),
            last_location: None,
            dropped: false,
            bundle_start: 0,
        };
        self.read_body(&mut body, values)?;
        self.finish_body(&mut body)?;
        self.module.functions[id.index()] = body.function;
        self.values.truncate(values);
        self.value_types.truncate(values);
        self.metadata.reset(metadata);
        Ok(())
    }

    fn read_body(&mut self, body: &mut Body, values: usize) -> Result<(), ReadError> {
        loop {
            match self.bits.next_entry()? {
                StreamEntry::EndBlock => return Ok(()),
                StreamEntry::SubBlock(id @ blocks::CONSTANTS) => {
                    self.bits.enter(id)?;
                    self.read_constants()?;
                }
                StreamEntry::SubBlock(id @ blocks::METADATA) => {
                    self.bits.enter(id)?;
                    self.read_metadata()?;
                }
                StreamEntry::SubBlock(id @ blocks::METADATA_ATTACHMENT) => {
                    self.bits.enter(id)?;
                    self.read_attachments(body)?;
                }
                StreamEntry::SubBlock(id @ blocks::VALUE_SYMTAB) => {
                    self.bits.enter(id)?;
                    self.read_parameter_names(body, values)?;
                }
                StreamEntry::SubBlock(_) => self.bits.skip()?,
                StreamEntry::Record(record) => self.read_body_record(body, record)?,
            }
        }
    }

    fn read_body_record(&mut self, body: &mut Body, record: u32) -> Result<(), ReadError> {
        match record {
            code::DECLARE_BLOCKS => {
                let count = self.op(0)?;
                // A block takes at least one record.
                if count == 0 || count > self.bits.remaining_bits() || body.block_count != 0 {
                    return Err(self.bits.error("bad number of basic blocks"));
                }
                body.block_count = count as usize;
                body.function.blocks.reserve(self.bits.capped(count));
                Ok(())
            }
            code::DEBUG_LOC => {
                let (line, column) = (self.op(0)?, self.op(1)?);
                let (scope, inlined_at) = (self.op(2)?, self.op_or_zero(3));
                let location = self.location(line, column, scope, inlined_at);
                set_location(body, location);
                Ok(())
            }
            code::DEBUG_LOC_AGAIN => {
                let location = body.last_location;
                set_location(body, location);
                Ok(())
            }
            code::BLOCK_ADDRESS_USERS | code::DEBUG_RECORD_FIRST..=code::DEBUG_RECORD_LAST => {
                Ok(())
            }
            code::OPERAND_BUNDLE => self.read_bundle(body),
            _ => {
                if body.function.blocks.len() >= body.block_count {
                    return Err(self.bits.error("an instruction after the last block"));
                }
                body.dropped = false;
                let (kind, ty) = self.read_instruction(body, record)?;
                if body.dropped {
                    return Ok(());
                }
                self.push_instruction(body, kind, ty)
            }
        }
    }

    fn push_instruction(
        &mut self,
        body: &mut Body,
        kind: InstructionKind,
        ty: TypeId,
    ) -> Result<(), ReadError> {
        let index = body.function.instructions.len();
        if index >= FORWARD / 2 {
            return Err(self.bits.error("a function with too many instructions"));
        }
        body.function.instructions.push(Instruction {
            ty,
            loc: None,
            kind,
        });
        if !matches!(self.module.types[ty], Type::Void) {
            self.push_value(Value::Instruction(InstId::new(index)), ty);
        }
        if kind.is_terminator() {
            let block = Block {
                start: body.block_start as u32,
                end: index as u32 + 1,
            };
            body.function.blocks.push(block);
            body.block_start = index + 1;
        }
        Ok(())
    }

    /// Reads the names of values, of which only those of the parameters are kept. `first` is the
    /// number of the first parameter.
    fn read_parameter_names(&mut self, body: &mut Body, first: usize) -> Result<(), ReadError> {
        const ENTRY: u32 = 1;
        let count = body.function.params.len();
        while let Some(record) = self.bits.next_record()? {
            let value = self
                .bits
                .ops
                .first()
                .and_then(|&op| usize::try_from(op).ok());
            let parameter = value.and_then(|value| value.checked_sub(first));
            let Some(parameter) = parameter.filter(|at| record == ENTRY && *at < count) else {
                continue;
            };
            let name = super::text(&self.bits.ops[1..]);
            let names = &mut body.function.param_names;
            if names.is_empty() {
                *names = vec![Box::default(); count].into();
            }
            names[parameter] = name;
        }
        Ok(())
    }

    /// Reads the metadata attachments of the function: its subprogram and its signature.
    fn read_attachments(&mut self, body: &mut Body) -> Result<(), ReadError> {
        while let Some(record) = self.bits.next_record()? {
            // An odd length means that the attachment belongs to an instruction.
            if record == metadata_code::ATTACHMENT && self.bits.ops.len().is_multiple_of(2) {
                self.attach_subprogram(&mut body.function, 0);
                body.function.signature = self.attached_signature();
            }
        }
        Ok(())
    }

    /// Returns the words of `!func_sanitize` in the attachments of a function.
    fn attached_signature(&self) -> Option<[u32; 2]> {
        // The number of the kind is the same in all versions.
        const FUNC_SANITIZE: u64 = 32;
        let mut pairs = self.bits.ops.chunks_exact(2);
        let node = pairs.find(|pair| pair[0] == FUNC_SANITIZE)?[1];
        let &[mark, kind] = self.metadata.record_of(node, metadata_code::NODE)? else {
            return None;
        };
        // References to nodes count from 1.
        let word = |reference: u64| {
            let number = self.metadata_integer(reference.checked_sub(1)?)?;
            Some(number as u32)
        };
        Some([word(mark)?, word(kind)?])
    }

    /// Records the `!dbg` attachment in the pairs of kind and node from operand `from` on.
    pub(super) fn attach_subprogram(&mut self, function: &mut Function, from: usize) {
        let pairs = self.bits.ops.get(from..).unwrap_or(&[]).chunks_exact(2);
        // Kind 0 is `dbg` in all versions.
        let node = pairs
            .into_iter()
            .find(|pair| pair[0] == 0)
            .map(|pair| pair[1]);
        if let Some(node) = node {
            function.subprogram = self.subprogram(node);
        }
    }

    /// Resolves forward references and checks that the body is complete.
    fn finish_body(&mut self, body: &mut Body) -> Result<(), ReadError> {
        let complete = body.function.blocks.len() == body.block_count && body.block_count > 0;
        if !complete || body.block_start != body.function.instructions.len() {
            return Err(self
                .bits
                .error("the function ends in the middle of a block"));
        }
        if body.function.bundles.len() != body.bundle_start {
            return Err(self.bits.error("operand bundles without a call"));
        }
        if body.forward.is_empty() {
            return Ok(());
        }
        for &(number, expected) in &body.forward {
            match (self.values.get(number), self.value_types.get(number)) {
                (Some(Value::Instruction(_)), Some(&ty)) if ty == expected => {}
                _ => {
                    let message = format!("value {number} is used, but not defined as it should");
                    return Err(self.bits.error(message));
                }
            }
        }
        let values = &self.values;
        body.function.for_each_operand_mut(|operand| {
            if let Value::Instruction(id) = operand
                && id.index() >= FORWARD
            {
                *operand = values[id.index() - FORWARD];
            }
        });
        Ok(())
    }

    /// Returns the block with this number.
    pub(super) fn block_at(&self, body: &Body, number: u64) -> Result<BlockId, ReadError> {
        match usize::try_from(number) {
            Ok(index) if index < body.block_count => Ok(BlockId::new(index)),
            _ => Err(self.bits.error(format!("block {number} does not exist"))),
        }
    }

    /// Returns the value with this absolute number, expected to have type `ty`.
    pub(super) fn value_at(
        &mut self,
        body: &mut Body,
        number: usize,
        ty: TypeId,
    ) -> Result<Value, ReadError> {
        if let Some(&value) = self.values.get(number) {
            if self.value_types[number] != ty {
                return Err(self
                    .bits
                    .error(format!("operand {number} has an unexpected type")));
            }
            return Ok(value);
        }
        let ahead = (number - self.values.len()) as u64;
        if ahead > self.bits.remaining_bits() || number >= FORWARD / 2 {
            return Err(self.bits.error(format!("value {number} does not exist")));
        }
        body.forward.push((number, ty));
        Ok(Value::Instruction(InstId::new(FORWARD + number)))
    }

    /// Returns the absolute number of the value that a relative number denotes. Differences wrap at
    /// 32 bits.
    #[inline]
    pub(super) fn absolute(&self, relative: u64) -> usize {
        (self.values.len() as u32).wrapping_sub(relative as u32) as usize
    }

    /// Returns the operand at `at`, whose type is known from the context.
    pub(super) fn typed_operand(
        &mut self,
        body: &mut Body,
        at: usize,
        ty: TypeId,
    ) -> Result<Value, ReadError> {
        let relative = self.op(at)?;
        if matches!(self.module.types[ty], Type::Metadata) {
            return Ok(self.metadata_operand(self.absolute(relative)));
        }
        self.value_at(body, self.absolute(relative), ty)
    }

    /// Returns the operand at `at`, followed by its type if it is a forward reference; advances
    /// `at`.
    #[inline]
    pub(super) fn operand_and_type(
        &mut self,
        body: &mut Body,
        at: &mut usize,
    ) -> Result<(Value, TypeId), ReadError> {
        let number = self.absolute(self.op(*at)?);
        *at += 1;
        if let Some(&value) = self.values.get(number) {
            return Ok((value, self.value_types[number]));
        }
        let ty = self.type_at(self.op(*at)?)?;
        *at += 1;
        Ok((self.value_at(body, number, ty)?, ty))
    }

    /// Reads `[tag, operands…]`.
    fn read_bundle(&mut self, body: &mut Body) -> Result<(), ReadError> {
        /// Marks a metadata operand.
        const METADATA_MARKER: u64 = 0x8000_0000;
        let tag = self.op(0)?;
        if tag >= self.module.bundle_tags.len() as u64 {
            return Err(self.bits.error(format!("bundle tag {tag} does not exist")));
        }
        let start = body.function.operands.len();
        let mut at = 1;
        while at < self.bits.ops.len() {
            let value = if self.op(at)? == METADATA_MARKER {
                at += 2;
                Value::Metadata(NO_METADATA)
            } else {
                self.operand_and_type(body, &mut at)?.0
            };
            body.function.operands.push(value);
        }
        let operands = span(start, body.function.operands.len());
        body.function.bundles.push(Bundle {
            tag: tag as u32,
            operands,
        });
        Ok(())
    }
}

fn set_location(body: &mut Body, location: Option<LocId>) {
    body.last_location = location;
    if !body.dropped
        && let Some(last) = body.function.instructions.last_mut()
    {
        last.loc = location;
    }
}

/// Returns the span of the entries of a pool from `start` to `end`.
pub(super) fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        len: (end - start) as u32,
    }
}
