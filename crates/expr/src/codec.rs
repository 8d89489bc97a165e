//! Terms as bytes: compact, with shared parts written once. Reading builds the terms as they were,
//! so arrays and terms that the receiving arena has are found again and digests stay the same.
//! Bytes from anywhere are safe to read: what is wrong with them is reported with its place.
//!
//! Layout: a version byte; the arrays (ordinal, size, name); the nodes, operands first, each a tag,
//! a width and its fields, operands as backward distances, tables with their first
//! use; the roots. Numbers are LEB128.

use crate::arena::Arena;
use crate::limbs;
use crate::node::{
    ArrayId, BinaryOp, CompareOp, ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, Node,
    RoundingMode, TableId, tag,
};
use crate::scalar;
use std::collections::HashMap;

const VERSION: u8 = 1;
/// Maximum width of a decoded term, so that few bytes cannot cause much work.
pub const MAX_WIDTH: u32 = 1 << 14;
/// Maximum sum of the widths of all terms over 64 bits in one message.
const MAX_TOTAL_WIDTH: u64 = 1 << 28;
const MAX_NAME: u64 = 1 << 16;

/// Why bytes are not valid terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("terms cannot be read at byte {offset}: {reason}")]
pub struct DecodeError {
    /// Offset of the error.
    pub offset: usize,
    /// The description of the error.
    pub reason: &'static str,
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Encoder<'a> {
    arena: &'a Arena,
    array_numbers: HashMap<ArrayId, u64>,
    arrays: Vec<ArrayId>,
    table_numbers: HashMap<TableId, u64>,
    node_numbers: HashMap<ExprId, u64>,
    body: Vec<u8>,
}

impl Encoder<'_> {
    /// Writes all subterms that are not yet written, operands first.
    fn term(&mut self, root: ExprId) {
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            if self.node_numbers.contains_key(&e) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let missing = |child: &ExprId| !self.node_numbers.contains_key(child);
            stack.extend(self.arena.node(e).children().filter(missing));
            if stack.len() == before {
                self.node(e);
                self.node_numbers.insert(e, self.node_numbers.len() as u64);
                stack.pop();
            }
        }
    }

    fn array(&mut self, array: ArrayId) -> u64 {
        let next = self.arrays.len() as u64;
        let number = *self.array_numbers.entry(array).or_insert(next);
        if number == next {
            self.arrays.push(array);
        }
        number
    }

    /// Writes the number of a table; its entries follow if it is new.
    fn table(&mut self, table: TableId) {
        let next = self.table_numbers.len() as u64;
        let number = *self.table_numbers.entry(table).or_insert(next);
        put(&mut self.body, number);
        if number == next {
            let (_, entries) = self.arena.table(table);
            put(&mut self.body, entries.len() as u64);
            for &entry in entries.iter() {
                put(&mut self.body, entry);
            }
        }
    }

    fn node(&mut self, e: ExprId) {
        let node = self.arena.node(e);
        let code = node.code();
        self.body.push(code.tag);
        put(&mut self.body, u64::from(self.arena.width(e)));
        self.body.extend(code.parts.iter().flatten());
        if let Some(number) = code.number {
            put(&mut self.body, number);
        }
        if let Node::Read { array, .. } = node {
            let number = self.array(array);
            put(&mut self.body, number);
        }
        if let Node::WideConstant { .. } = node {
            for &limb in self.arena.as_const_limbs(e).unwrap_or(&[]) {
                put(&mut self.body, limb);
            }
        }
        if let Node::Select { table, .. } = node {
            self.table(table);
        }
        let here = self.node_numbers.len() as u64;
        for child in node.children() {
            put(&mut self.body, here - self.node_numbers[&child]);
        }
    }
}

/// Encodes terms with all their subterms.
pub fn encode(arena: &Arena, roots: &[ExprId]) -> Vec<u8> {
    let mut encoder = Encoder {
        arena,
        array_numbers: HashMap::new(),
        arrays: Vec::new(),
        table_numbers: HashMap::new(),
        node_numbers: HashMap::new(),
        body: Vec::new(),
    };
    for &root in roots {
        encoder.term(root);
    }
    let mut out = vec![VERSION];
    put(&mut out, encoder.arrays.len() as u64);
    for &array in &encoder.arrays {
        let info = arena.array_info(array);
        put(&mut out, u64::from(info.ordinal));
        put(&mut out, u64::from(info.size));
        put(&mut out, info.name.len() as u64);
        out.extend_from_slice(info.name.as_bytes());
    }
    put(&mut out, encoder.node_numbers.len() as u64);
    out.append(&mut encoder.body);
    put(&mut out, roots.len() as u64);
    for root in roots {
        put(&mut out, encoder.node_numbers[root]);
    }
    out
}

struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
    arrays: Vec<ArrayId>,
    tables: Vec<Vec<u64>>,
    nodes: Vec<ExprId>,
    total_width: u64,
}

type Decoded<T> = Result<T, DecodeError>;

impl Decoder<'_> {
    fn fail<T>(&self, reason: &'static str) -> Decoded<T> {
        Err(DecodeError {
            offset: self.offset,
            reason,
        })
    }

    fn check(&self, condition: bool, reason: &'static str) -> Decoded<()> {
        if condition { Ok(()) } else { self.fail(reason) }
    }

    fn byte(&mut self) -> Decoded<u8> {
        match self.bytes.get(self.offset) {
            Some(&byte) => {
                self.offset += 1;
                Ok(byte)
            }
            None => self.fail("the end came too early"),
        }
    }

    fn number(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            self.check(part << shift >> shift == part, "a number is too large")?;
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.fail("a number is too long")
    }

    fn number32(&mut self) -> Decoded<u32> {
        let value = self.number()?;
        u32::try_from(value).or_else(|_| self.fail("a number is too large"))
    }

    /// Returns a number of items that follow; each takes at least one byte.
    fn count(&mut self) -> Decoded<usize> {
        let count = self.number()?;
        let rest = (self.bytes.len() - self.offset) as u64;
        self.check(
            count <= rest,
            "more items are announced than bytes are left",
        )?;
        Ok(count as usize)
    }

    fn choice<T: Copy>(&mut self, all: &[T]) -> Decoded<T> {
        let number = usize::from(self.byte()?);
        all.get(number)
            .copied()
            .map_or_else(|| self.fail("an unknown operator"), Ok)
    }

    fn arrays(&mut self, arena: &mut Arena) -> Decoded<()> {
        for _ in 0..self.count()? {
            let ordinal = self.number32()?;
            let size = self.number32()?;
            let length = self.number()?;
            self.check(length <= MAX_NAME, "the name of an array is too long")?;
            let end = self.offset + length as usize;
            let name = self
                .bytes
                .get(self.offset..end)
                .and_then(|b| str::from_utf8(b).ok());
            let Some(name) = name else {
                return self.fail("the name of an array is not text");
            };
            self.offset = end;
            self.arrays.push(arena.array(ordinal, name, size));
        }
        Ok(())
    }

    fn operand(&mut self) -> Decoded<ExprId> {
        let distance = self.number()?;
        let position = (self.nodes.len() as u64).checked_sub(distance);
        match position.and_then(|position| self.nodes.get(position as usize)) {
            Some(&e) => Ok(e),
            None => self.fail("an operand that was not written before"),
        }
    }

    fn operand_of(&mut self, arena: &Arena, width: u32) -> Decoded<ExprId> {
        let e = self.operand()?;
        self.check(arena.width(e) == width, "an operand of the wrong width")?;
        Ok(e)
    }

    fn node(&mut self, arena: &mut Arena) -> Decoded<ExprId> {
        let tag = self.byte()?;
        let width = self.number32()?;
        self.check(
            (1..=MAX_WIDTH).contains(&width),
            "the width of a term is out of range",
        )?;
        if width > 64 {
            self.total_width += u64::from(width);
        }
        self.check(
            self.total_width <= MAX_TOTAL_WIDTH,
            "the terms are too large together",
        )?;
        let e = match tag {
            tag::CONSTANT => {
                self.check(width <= 64, "a short constant of more than 64 bits")?;
                let bits = self.number()?;
                arena.constant(width, bits)
            }
            tag::WIDE_CONSTANT => {
                let limbs: Decoded<Vec<u64>> =
                    (0..limbs::count(width)).map(|_| self.number()).collect();
                arena.constant_limbs(width, &limbs?)
            }
            tag::READ => self.read(arena, width)?,
            tag::ITE => {
                let c = self.operand_of(arena, 1)?;
                let (a, b) = (
                    self.operand_of(arena, width)?,
                    self.operand_of(arena, width)?,
                );
                arena.ite(c, a, b)
            }
            tag::SELECT => self.select(arena, width)?,
            tag::NOT | tag::EXTRACT..=tag::SIGN_EXTEND => self.bits(arena, tag, width)?,
            tag::FLOAT_BINARY..=tag::FLOAT_TO_INT => self.float(arena, tag, width)?,
            _ => self.operator(arena, tag, width)?,
        };
        self.check(arena.width(e) == width, "the width of a term is wrong")?;
        Ok(e)
    }

    fn read(&mut self, arena: &mut Arena, width: u32) -> Decoded<ExprId> {
        self.check(width == 8, "a byte that has not 8 bits")?;
        let index = self.number32()?;
        let number = self.number()?;
        let Some(&array) = self.arrays.get(number as usize) else {
            return self.fail("an array that was not written before");
        };
        self.check(
            index < arena.array_info(array).size,
            "a byte past the end of its array",
        )?;
        Ok(arena.read(array, index))
    }

    fn bits(&mut self, arena: &mut Arena, tag: u8, width: u32) -> Decoded<ExprId> {
        match tag {
            tag::NOT => {
                let e = self.operand_of(arena, width)?;
                Ok(arena.not(e))
            }
            tag::EXTRACT => {
                let low = self.number32()?;
                let e = self.operand()?;
                let fits = low
                    .checked_add(width)
                    .is_some_and(|end| end <= arena.width(e));
                self.check(fits, "bits past the end of a term")?;
                Ok(arena.extract(e, low, width))
            }
            tag::CONCAT => {
                let (hi, lo) = (self.operand()?, self.operand()?);
                let sum = arena.width(hi) + arena.width(lo);
                self.check(sum == width, "parts of the wrong width")?;
                Ok(arena.concat(hi, lo))
            }
            _ => {
                let e = self.operand()?;
                self.check(arena.width(e) <= width, "an extension to a smaller width")?;
                Ok(if tag == tag::ZERO_EXTEND {
                    arena.zext(e, width)
                } else {
                    arena.sext(e, width)
                })
            }
        }
    }

    fn operator(&mut self, arena: &mut Arena, tag: u8, width: u32) -> Decoded<ExprId> {
        if let Some(&op) = BinaryOp::ALL.get(usize::from(tag.wrapping_sub(tag::BINARY))) {
            let (a, b) = (
                self.operand_of(arena, width)?,
                self.operand_of(arena, width)?,
            );
            return Ok(arena.binary(op, a, b));
        }
        let Some(&op) = CompareOp::ALL.get(usize::from(tag.wrapping_sub(tag::COMPARE))) else {
            return self.fail("an unknown kind of term");
        };
        let a = self.operand()?;
        let b = self.operand_of(arena, arena.width(a))?;
        Ok(arena.compare(op, a, b))
    }

    fn select(&mut self, arena: &mut Arena, width: u32) -> Decoded<ExprId> {
        self.check(width <= 64, "an entry of more than 64 bits")?;
        let number = self.number()? as usize;
        self.check(number <= self.tables.len(), "an unknown table")?;
        if number == self.tables.len() {
            let count = self.count()?;
            self.check(count > 0, "a table without entries")?;
            let entries: Decoded<Vec<u64>> = (0..count).map(|_| self.number()).collect();
            self.tables.push(entries?);
        }
        let index = self.operand()?;
        self.check(arena.width(index) <= 64, "an index of more than 64 bits")?;
        let entries = &self.tables[number];
        let fits = entries
            .iter()
            .all(|entry| entry & !scalar::mask(width) == 0);
        self.check(fits, "an entry is too large")?;
        Ok(arena.plain_select(width, &self.tables[number], index))
    }

    fn float(&mut self, arena: &mut Arena, tag: u8, width: u32) -> Decoded<ExprId> {
        match tag {
            tag::FLOAT_BINARY => {
                let op = self.choice(&FloatOp::ALL)?;
                let format = self.choice(&FloatFormat::ALL)?;
                let a = self.operand_of(arena, format.width())?;
                let b = self.operand_of(arena, format.width())?;
                Ok(arena.float_binary(op, format, a, b))
            }
            tag::FLOAT_UNARY => {
                let number = usize::from(self.byte()?);
                let op = match number.checked_sub(1) {
                    None => FloatUnaryOp::Sqrt,
                    Some(mode) => match RoundingMode::ALL.get(mode) {
                        Some(&mode) => FloatUnaryOp::RoundToIntegral(mode),
                        None => return self.fail("an unknown operator"),
                    },
                };
                let format = self.choice(&FloatFormat::ALL)?;
                let e = self.operand_of(arena, format.width())?;
                Ok(arena.float_unary(op, format, e))
            }
            tag::FLOAT_COMPARE => {
                let op = self.choice(&FloatCompareOp::ALL)?;
                let format = self.choice(&FloatFormat::ALL)?;
                let a = self.operand_of(arena, format.width())?;
                let b = self.operand_of(arena, format.width())?;
                Ok(arena.float_compare(op, format, a, b))
            }
            tag::FLOAT_CONVERT => {
                let from = self.choice(&FloatFormat::ALL)?;
                let to = self.choice(&FloatFormat::ALL)?;
                let e = self.operand_of(arena, from.width())?;
                Ok(arena.float_convert(from, to, e))
            }
            _ => {
                let signed = self.choice(&[false, true])?;
                let format = self.choice(&FloatFormat::ALL)?;
                if tag == tag::FLOAT_FROM_INT {
                    let e = self.operand()?;
                    return Ok(arena.float_from_int(signed, format, e));
                }
                let e = self.operand_of(arena, format.width())?;
                Ok(arena.float_to_int(signed, format, e, width))
            }
        }
    }
}

/// Decodes terms into an arena.
pub fn decode(arena: &mut Arena, bytes: &[u8]) -> Result<Vec<ExprId>, DecodeError> {
    arena.without_rules(|arena| read_terms(arena, bytes))
}

fn read_terms(arena: &mut Arena, bytes: &[u8]) -> Result<Vec<ExprId>, DecodeError> {
    let mut decoder = Decoder {
        bytes,
        offset: 0,
        arrays: Vec::new(),
        tables: Vec::new(),
        nodes: Vec::new(),
        total_width: 0,
    };
    let version = decoder.byte()?;
    decoder.check(version == VERSION, "an unknown version")?;
    decoder.arrays(arena)?;
    for _ in 0..decoder.count()? {
        let e = decoder.node(arena)?;
        decoder.nodes.push(e);
    }
    let mut roots = Vec::new();
    for _ in 0..decoder.count()? {
        let number = decoder.number()?;
        match decoder.nodes.get(number as usize) {
            Some(&e) => roots.push(e),
            None => return decoder.fail("a term that was not written before"),
        }
    }
    decoder.check(decoder.offset == bytes.len(), "bytes are left over")?;
    Ok(roots)
}
