//! LLVM's bitstream container: blocks, abbreviations and records, without their meaning. Every read
//! is bounded by the input, and every allocation by the rest of the input.

use std::rc::Rc;

/// Why a file cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bitcode at bit {offset_bits}{}: {message}", self.place())]
pub struct ReadError {
    /// Offset from the start of the input in bits.
    pub offset_bits: u64,
    /// The block that was being read.
    pub block: Option<u32>,
    /// The record code that was being read.
    pub record: Option<u32>,
    /// The description of the error.
    pub message: String,
}

impl ReadError {
    fn place(&self) -> String {
        match (self.block, self.record) {
            (Some(block), Some(record)) => format!(" (block {block}, record {record})"),
            (Some(block), None) => format!(" (block {block})"),
            _ => String::new(),
        }
    }
}

/// The next entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEntry {
    /// The end of the block; the reader is back in the enclosing one.
    EndBlock,
    /// A nested block with this id: call [`BitReader::enter`] or [`BitReader::skip`].
    SubBlock(u32),
    /// A record with this code; its operands are in [`BitReader::ops`].
    Record(u32),
}

/// One operand of an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AbbrevOp {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    Array,
    Char6,
    Blob,
}

type Abbrev = Rc<[AbbrevOp]>;

/// A block that is being read.
struct OpenBlock {
    id: u32,
    abbrev_width: u32,
    abbrevs: Vec<Abbrev>,
}

/// A reader of one bitstream.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position: u64,
    end: u64,
    blocks: Vec<OpenBlock>,
    /// Abbreviations that BLOCKINFO defines for all blocks with an id.
    block_info: Vec<(u32, Vec<Abbrev>)>,
    /// Operands of the last record.
    pub ops: Vec<u64>,
    /// The blob of the last record.
    pub blob: &'a [u8],
    record: Option<u32>,
}

const END_BLOCK: u64 = 0;
const ENTER_SUBBLOCK: u64 = 1;
const DEFINE_ABBREV: u64 = 2;
const UNABBREV_RECORD: u64 = 3;
const BLOCKINFO_BLOCK: u32 = 0;
/// Maximum nesting depth; LLVM nests three levels.
const MAX_DEPTH: usize = 32;

impl<'a> BitReader<'a> {
    /// Creates a reader that starts at byte `start` of `bytes`.
    pub fn new(bytes: &'a [u8], start: usize) -> Self {
        Self {
            bytes,
            position: start as u64 * 8,
            end: bytes.len() as u64 * 8,
            blocks: Vec::new(),
            block_info: Vec::new(),
            ops: Vec::new(),
            blob: &[],
            record: None,
        }
    }

    /// Returns the current position in bits.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bits left; nothing in the input can be longer.
    pub fn remaining_bits(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// Returns the capacity to reserve for `announced` entries that take at least one bit each.
    pub fn capped(&self, announced: u64) -> usize {
        usize::try_from(announced.min(self.remaining_bits()).min(1 << 20)).unwrap_or(0)
    }

    /// Creates an error at the current position.
    pub fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError {
            offset_bits: self.position,
            block: self.blocks.last().map(|block| block.id),
            record: self.record,
            message: message.into(),
        }
    }

    /// Reads `width` bits, at most 64.
    #[inline]
    pub fn fixed(&mut self, width: u32) -> Result<u64, ReadError> {
        let (word, bits) = self.window();
        if width.wrapping_sub(1) < bits {
            self.position += u64::from(width);
            return Ok(word & (u64::MAX >> (64 - width)));
        }
        self.fixed_at_edge(width)
    }

    /// Returns the next bits of the input, and how many these are: 57 or more, or 0 at its end.
    #[inline]
    fn window(&self) -> (u64, u32) {
        let byte = (self.position >> 3) as usize;
        let shift = (self.position & 7) as u32;
        match self.bytes.get(byte..).and_then(|rest| rest.first_chunk()) {
            Some(&chunk) => (u64::from_le_bytes(chunk) >> shift, 64 - shift),
            None => (0, 0),
        }
    }

    /// Reads nothing, at the end of the input, or a value that spans nine bytes.
    fn fixed_at_edge(&mut self, width: u32) -> Result<u64, ReadError> {
        if u64::from(width) > self.remaining_bits() {
            return Err(self.error("the file ends in the middle of a record"));
        }
        let value = self.fixed_slowly(width);
        self.position += u64::from(width);
        Ok(value)
    }

    /// Reads bits byte by byte, for the end of the input and for values that span nine bytes.
    fn fixed_slowly(&self, width: u32) -> u64 {
        let mut value = 0u64;
        let mut done = 0;
        while done < width {
            let at = self.position + u64::from(done);
            let byte = u64::from(self.bytes.get((at >> 3) as usize).copied().unwrap_or(0));
            let offset = (at & 7) as u32;
            let take = (8 - offset).min(width - done);
            value |= ((byte >> offset) & ((1 << take) - 1)) << done;
            done += take;
        }
        value
    }

    /// Reads a variable-width number in chunks of `width` bits.
    #[inline]
    pub fn vbr(&mut self, width: u32) -> Result<u64, ReadError> {
        let (word, bits) = self.window();
        let high = 1u64 << (width - 1);
        if width <= bits && word & high == 0 {
            self.position += u64::from(width);
            return Ok(word & (high - 1));
        }
        self.vbr_of_chunks(width)
    }

    fn vbr_of_chunks(&mut self, width: u32) -> Result<u64, ReadError> {
        let high = 1u64 << (width - 1);
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let chunk = self.fixed(width)?;
            let bits = chunk & (high - 1);
            if shift >= 64 || (shift > 0 && bits << shift >> shift != bits) {
                return Err(self.error("a variable-width number exceeds 64 bits"));
            }
            value |= bits << shift;
            if chunk & high == 0 {
                return Ok(value);
            }
            shift += width - 1;
        }
    }

    fn align32(&mut self) -> Result<(), ReadError> {
        let aligned = self.position.next_multiple_of(32);
        if aligned > self.end {
            return Err(self.error("the file ends in the middle of a word"));
        }
        self.position = aligned;
        Ok(())
    }

    /// Returns whether all blocks are closed and the rest is too short for another block (padding).
    pub fn at_end(&self) -> bool {
        self.blocks.is_empty() && self.remaining_bits() < 64
    }

    fn abbrev_width(&self) -> u32 {
        self.blocks.last().map_or(2, |block| block.abbrev_width)
    }

    /// Reads up to the next entry of interest to the caller.
    pub fn next_entry(&mut self) -> Result<StreamEntry, ReadError> {
        loop {
            self.record = None;
            match self.fixed(self.abbrev_width())? {
                END_BLOCK => {
                    self.align32()?;
                    if self.blocks.pop().is_none() {
                        return Err(self.error("a block ends that was never opened"));
                    }
                    return Ok(StreamEntry::EndBlock);
                }
                ENTER_SUBBLOCK => {
                    let id = self.vbr(8)?;
                    let id = u32::try_from(id).map_err(|_| self.error("block id too large"))?;
                    if id != BLOCKINFO_BLOCK {
                        return Ok(StreamEntry::SubBlock(id));
                    }
                    self.enter(BLOCKINFO_BLOCK)?;
                    self.read_block_info()?;
                }
                DEFINE_ABBREV => {
                    let abbrev = self.read_abbrev()?;
                    match self.blocks.last_mut() {
                        Some(block) => block.abbrevs.push(abbrev),
                        None => return Err(self.error("an abbreviation outside of all blocks")),
                    }
                }
                UNABBREV_RECORD => return self.unabbreviated().map(StreamEntry::Record),
                id => return self.abbreviated(id).map(StreamEntry::Record),
            }
        }
    }

    /// Reads the next record of a block without nested blocks of interest; `None` at its end.
    pub fn next_record(&mut self) -> Result<Option<u32>, ReadError> {
        loop {
            match self.next_entry()? {
                StreamEntry::EndBlock => return Ok(None),
                StreamEntry::SubBlock(_) => self.skip()?,
                StreamEntry::Record(code) => return Ok(Some(code)),
            }
        }
    }

    /// Opens the block that [`StreamEntry::SubBlock`] announced.
    pub fn enter(&mut self, id: u32) -> Result<(), ReadError> {
        let (width, _) = self.block_header()?;
        if self.blocks.len() >= MAX_DEPTH {
            return Err(self.error("blocks are nested too deeply"));
        }
        if !(2..=32).contains(&width) {
            return Err(self.error("bad width of abbreviation ids"));
        }
        let known = self.block_info.iter().find(|(known, _)| *known == id);
        let abbrevs = known
            .map(|(_, abbrevs)| abbrevs.clone())
            .unwrap_or_default();
        self.blocks.push(OpenBlock {
            id,
            abbrev_width: width as u32,
            abbrevs,
        });
        Ok(())
    }

    /// Jumps over the block that [`StreamEntry::SubBlock`] announced.
    pub fn skip(&mut self) -> Result<(), ReadError> {
        let (_, end) = self.block_header()?;
        self.position = end;
        Ok(())
    }

    /// Reads the rest of a block's header: width of abbreviation ids and end of the block.
    fn block_header(&mut self) -> Result<(u64, u64), ReadError> {
        let width = self.vbr(4)?;
        self.align32()?;
        let words = self.fixed(32)?;
        let end = self.position + words * 32;
        if end > self.end {
            return Err(self.error("a block goes beyond the end of the file"));
        }
        Ok((width, end))
    }

    /// Reads BLOCKINFO, which defines abbreviations for later blocks.
    fn read_block_info(&mut self) -> Result<(), ReadError> {
        let mut current = None;
        loop {
            match self.fixed(self.abbrev_width())? {
                END_BLOCK => {
                    self.align32()?;
                    self.blocks.pop();
                    return Ok(());
                }
                DEFINE_ABBREV => {
                    let abbrev = self.read_abbrev()?;
                    let Some(index) = current else {
                        return Err(self.error("an abbreviation before a block id in BLOCKINFO"));
                    };
                    let (_, abbrevs): &mut (u32, Vec<Abbrev>) = &mut self.block_info[index];
                    abbrevs.push(abbrev);
                }
                UNABBREV_RECORD => {
                    if self.unabbreviated()? == 1 {
                        let id = self.ops.first().copied().unwrap_or(u64::MAX);
                        let id = u32::try_from(id).map_err(|_| self.error("bad block id"))?;
                        current = Some(self.block_info_index(id));
                    }
                }
                ENTER_SUBBLOCK => return Err(self.error("a block inside BLOCKINFO")),
                id => {
                    self.abbreviated(id)?;
                }
            }
        }
    }

    fn block_info_index(&mut self, id: u32) -> usize {
        let known = self.block_info.iter().position(|(known, _)| *known == id);
        known.unwrap_or_else(|| {
            self.block_info.push((id, Vec::new()));
            self.block_info.len() - 1
        })
    }

    fn read_abbrev(&mut self) -> Result<Abbrev, ReadError> {
        let count = self.vbr(5)?;
        let mut ops = Vec::with_capacity(self.capped(count).min(64));
        for _ in 0..count {
            if self.fixed(1)? == 1 {
                ops.push(AbbrevOp::Literal(self.vbr(8)?));
                continue;
            }
            let op = match self.fixed(3)? {
                1 => AbbrevOp::Fixed(self.abbrev_op_width(0)?),
                2 => AbbrevOp::Vbr(self.abbrev_op_width(2)?),
                3 => AbbrevOp::Array,
                4 => AbbrevOp::Char6,
                5 => AbbrevOp::Blob,
                _ => return Err(self.error("unknown encoding in an abbreviation")),
            };
            ops.push(op);
        }
        self.check_abbrev(&ops)?;
        Ok(ops.into())
    }

    /// Reads the width of a Fixed or VBR operand; 0 means the literal 0 in both.
    fn abbrev_op_width(&mut self, least: u64) -> Result<u32, ReadError> {
        match self.vbr(5)? {
            width if width <= 64 && (width == 0 || width >= least) => Ok(width as u32),
            _ => Err(self.error("bad width in an abbreviation")),
        }
    }

    /// Checks an abbreviation: an array must be the last but one operand with elements of non-zero
    /// size; a blob must be the last.
    fn check_abbrev(&self, ops: &[AbbrevOp]) -> Result<(), ReadError> {
        for (index, op) in ops.iter().enumerate() {
            let rest = &ops[index + 1..];
            let good = match op {
                AbbrevOp::Array => matches!(
                    rest,
                    [AbbrevOp::Char6] | [AbbrevOp::Fixed(1..=64)] | [AbbrevOp::Vbr(2..=64)]
                ),
                AbbrevOp::Blob => rest.is_empty() && index > 0,
                _ => true,
            };
            if !good {
                return Err(self.error("misplaced array or blob in an abbreviation"));
            }
        }
        match ops.first() {
            None | Some(AbbrevOp::Array | AbbrevOp::Blob) => {
                Err(self.error("an abbreviation without a record code"))
            }
            _ => Ok(()),
        }
    }

    fn unabbreviated(&mut self) -> Result<u32, ReadError> {
        let code = self.vbr(6)?;
        let code = u32::try_from(code).map_err(|_| self.error("record code too large"))?;
        self.record = Some(code);
        let count = self.vbr(6)?;
        if count > self.remaining_bits() / 6 {
            return Err(self.error("a record is longer than the rest of the file"));
        }
        self.ops.clear();
        self.blob = &[];
        for _ in 0..count {
            let op = self.vbr(6)?;
            self.ops.push(op);
        }
        Ok(code)
    }

    #[inline]
    fn scalar(&mut self, op: AbbrevOp) -> Result<u64, ReadError> {
        match op {
            AbbrevOp::Literal(value) => Ok(value),
            AbbrevOp::Fixed(width) => self.fixed(width),
            AbbrevOp::Vbr(0) => Ok(0),
            AbbrevOp::Vbr(width) => self.vbr(width),
            AbbrevOp::Char6 => Ok(u64::from(CHAR6[self.fixed(6)? as usize & 63])),
            AbbrevOp::Array | AbbrevOp::Blob => Err(self.error("misplaced array or blob")),
        }
    }

    fn abbreviated(&mut self, id: u64) -> Result<u32, ReadError> {
        let abbrevs = self.blocks.last().map_or(&[][..], |block| &block.abbrevs);
        let index = usize::try_from(id - 4).unwrap_or(usize::MAX);
        let Some(abbrev) = abbrevs.get(index).cloned() else {
            return Err(self.error(format!("abbreviation {id} is not defined")));
        };
        self.ops.clear();
        self.blob = &[];
        let code = self.scalar(abbrev[0])?;
        let code = u32::try_from(code).map_err(|_| self.error("record code too large"))?;
        self.record = Some(code);
        let mut index = 1;
        while index < abbrev.len() {
            match abbrev[index] {
                AbbrevOp::Array => {
                    self.array(abbrev[index + 1])?;
                    index += 1;
                }
                AbbrevOp::Blob => self.read_blob()?,
                op => {
                    let value = self.scalar(op)?;
                    self.ops.push(value);
                }
            }
            index += 1;
        }
        Ok(code)
    }

    fn array(&mut self, element: AbbrevOp) -> Result<(), ReadError> {
        let count = self.vbr(6)?;
        let width = match element {
            AbbrevOp::Fixed(width) | AbbrevOp::Vbr(width) => width,
            _ => 6,
        };
        if count > self.remaining_bits() / u64::from(width.max(1)) {
            return Err(self.error("an array is longer than the rest of the file"));
        }
        self.ops.reserve(count as usize);
        for _ in 0..count {
            let value = self.scalar(element)?;
            self.ops.push(value);
        }
        Ok(())
    }

    fn read_blob(&mut self) -> Result<(), ReadError> {
        let length = self.vbr(6)?;
        self.align32()?;
        let start = (self.position >> 3) as usize;
        let blob = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.get(start..start.checked_add(length)?));
        let Some(blob) = blob else {
            return Err(self.error("a blob goes beyond the end of the file"));
        };
        self.blob = blob;
        self.position += length * 8;
        self.align32()
    }
}

const CHAR6: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

/// Decodes a number whose sign is in the lowest bit.
#[inline]
pub fn decode_signed(value: u64) -> i64 {
    match value {
        // Minus zero encodes the least number.
        1 => i64::MIN,
        _ if value & 1 == 0 => (value >> 1) as i64,
        _ => -((value >> 1) as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_reads_across_nine_bytes() {
        let bytes: Vec<u8> = (1..=16).collect();
        let mut reader = BitReader::new(&bytes, 0);
        assert_eq!(reader.fixed(3).unwrap(), 1);
        let expected = (u128::from_le_bytes(bytes[..16].try_into().unwrap()) >> 3) as u64;
        assert_eq!(reader.fixed(64).unwrap(), expected);
        assert_eq!(reader.position(), 67);
    }

    #[test]
    fn numbers_of_all_widths_are_read_at_all_positions() {
        let bytes: Vec<u8> = (1..=20u8).map(|at| at.wrapping_mul(0x9d)).collect();
        let bit = |at: u64| u64::from(bytes[(at / 8) as usize] >> (at % 8) & 1);
        let of_bits = |at: u64, width: u32| {
            (0..width)
                .rev()
                .fold(0, |v, i| v << 1 | bit(at + u64::from(i)))
        };
        for width in 0..=64 {
            for start in 0..=160 - u64::from(width) {
                let mut reader = BitReader::new(&bytes, 0);
                reader.position = start;
                assert_eq!(reader.fixed(width).unwrap(), of_bits(start, width));
                assert_eq!(reader.position(), start + u64::from(width));
                reader.position = start;
                if width >= 2 && of_bits(start, width) >> (width - 1) == 0 {
                    assert_eq!(reader.vbr(width).unwrap(), of_bits(start, width));
                    assert_eq!(reader.position(), start + u64::from(width));
                }
            }
            let mut reader = BitReader::new(&bytes, 0);
            reader.position = 161 - u64::from(width);
            assert_eq!(reader.fixed(width).is_err(), width > 0);
        }
    }

    #[test]
    fn the_end_is_an_error_with_its_place() {
        let mut reader = BitReader::new(&[0xff], 0);
        let error = reader.fixed(9).unwrap_err();
        assert_eq!(error.offset_bits, 0);
        assert!(error.to_string().contains("file ends"));
    }

    #[test]
    fn vbr_joins_chunks_and_refuses_more_than_64_bits() {
        // 0b100001, 0b000011: 1 + (3 << 5).
        let mut reader = BitReader::new(&[0b1110_0001, 0b0000_0000], 0);
        assert_eq!(reader.vbr(6).unwrap(), 1 + (3 << 5));
        let mut endless = BitReader::new(&[0xff; 64], 0);
        assert!(endless.vbr(6).is_err());
    }

    #[test]
    fn signs_are_in_the_lowest_bit() {
        assert_eq!(decode_signed(6), 3);
        assert_eq!(decode_signed(7), -3);
        assert_eq!(decode_signed(1), i64::MIN);
    }
}
