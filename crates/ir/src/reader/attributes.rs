//! Attributes of functions, results and parameters.

use super::Reader;
use super::codes::attributes as kind;
use crate::bitstream::ReadError;
use crate::module::{AttributeList, AttributesId, FunctionAttributes, ParamAttributes};

/// An attribute group: its subject and its attributes.
#[derive(Clone, Default)]
pub(super) struct Group {
    /// The subject: 0 for the result, [`FUNCTION_INDEX`] for the function, else parameter number
    /// plus one.
    index: u64,
    function: FunctionAttributes,
    param: ParamAttributes,
}

const FUNCTION_INDEX: u64 = 0xFFFF_FFFF;
/// Maximum length of a parameter list, which a short record could otherwise make huge.
const MAX_PARAMS: u64 = 1 << 16;

impl Reader<'_> {
    /// Reads the block of attribute groups.
    pub(super) fn read_attribute_groups(&mut self) -> Result<(), ReadError> {
        while let Some(record) = self.bits.next_record()? {
            if record != 3 {
                continue;
            }
            let id = self.op(0)?;
            let mut group = Group {
                index: self.op(1)?,
                ..Group::default()
            };
            let mut at = 2;
            while at < self.bits.ops.len() {
                at = self.read_attribute(&mut group, at)?;
            }
            self.attribute_groups.insert(id, group);
        }
        Ok(())
    }

    /// Reads the attribute at `at` into `group`; returns the position of the next one.
    fn read_attribute(&self, group: &mut Group, at: usize) -> Result<usize, ReadError> {
        match self.op(at)? {
            0 => {
                set_flag(group, self.op(at + 1)?);
                Ok(at + 2)
            }
            1 => {
                set_number(group, self.op(at + 1)?, self.op(at + 2)?);
                Ok(at + 3)
            }
            form @ (3 | 4) => {
                let key_end = self.after_string(at + 1)?;
                if form == 4 {
                    self.after_string(key_end)
                } else {
                    Ok(key_end)
                }
            }
            5 => Ok(at + 2),
            6 => {
                let ty = Some(self.type_at(self.op(at + 2)?)?);
                match self.op(at + 1)? {
                    kind::BYVAL => group.param.byval = ty,
                    kind::SRET => group.param.sret = ty,
                    kind::INALLOCA => group.param.inalloca = ty,
                    kind::BYREF => group.param.byref = ty,
                    kind::ELEMENTTYPE => group.param.elementtype = ty,
                    _ => {}
                }
                Ok(at + 3)
            }
            7 => self.after_range(at + 3, self.op(at + 2)?),
            8 => {
                let (count, width) = (self.op(at + 2)?, self.op(at + 3)?);
                let mut next = at + 4;
                for _ in 0..count {
                    next = self.after_range(next, width)?;
                    if next > self.bits.ops.len() {
                        return Err(self.bits.error("an attribute goes beyond its record"));
                    }
                }
                Ok(next)
            }
            form => Err(self
                .bits
                .error(format!("unknown form {form} of an attribute"))),
        }
    }

    /// Returns the end of the zero-terminated string at `at`.
    fn after_string(&self, at: usize) -> Result<usize, ReadError> {
        let rest = self.bits.ops.get(at..).unwrap_or(&[]);
        match rest.iter().position(|&op| op == 0) {
            Some(length) => Ok(at + length + 1),
            None => Err(self.bits.error("a string attribute without an end")),
        }
    }

    /// Returns the end of the pair of bounds of `width` bits at `at`.
    pub(super) fn after_range(&self, at: usize, width: u64) -> Result<usize, ReadError> {
        if width <= 64 {
            return Ok(at + 2);
        }
        let words = self.op(at)?;
        let (low, high) = (words & 0xFFFF_FFFF, words >> 32);
        Ok(at + 1 + low as usize + high as usize)
    }

    /// Reads the block of attribute lists, each a list of groups.
    pub(super) fn read_attribute_lists(&mut self) -> Result<(), ReadError> {
        while let Some(record) = self.bits.next_record()? {
            if record == 1 {
                return Err(self.bits.error("attributes from before LLVM 3.3"));
            }
            if record != 2 {
                continue;
            }
            let mut list = AttributeList::default();
            let mut added = 0;
            for id in &self.bits.ops {
                let Some(group) = self.attribute_groups.get(id) else {
                    return Err(self
                        .bits
                        .error(format!("attribute group {id} does not exist")));
                };
                match group.index {
                    0 => list.result = group.param,
                    FUNCTION_INDEX => list.function = group.function,
                    index @ 1..=MAX_PARAMS => {
                        let param = index as usize - 1;
                        if list.params.len() <= param {
                            added += param + 1 - list.params.len();
                            list.params.resize(param + 1, ParamAttributes::default());
                        }
                        list.params[param] = group.param;
                    }
                    _ => return Err(self.bits.error("an attribute of a parameter far out")),
                }
            }
            self.charge(added)?;
            self.module.attributes.push(list);
        }
        Ok(())
    }

    /// Returns the attribute list with this number; 0 means none.
    pub(super) fn attributes_at(&self, number: u64) -> Result<Option<AttributesId>, ReadError> {
        if number == 0 {
            return Ok(None);
        }
        match usize::try_from(number - 1) {
            Ok(index) if index < self.module.attributes.len() => Ok(Some(AttributesId::new(index))),
            _ => Err(self
                .bits
                .error(format!("attribute list {number} does not exist"))),
        }
    }
}

fn set_flag(group: &mut Group, attribute: u64) {
    let (function, param) = (&mut group.function, &mut group.param);
    match attribute {
        kind::NAKED => function.naked = true,
        kind::NOINLINE => function.noinline = true,
        kind::OPTNONE => function.optnone = true,
        kind::MINSIZE => function.minsize = true,
        kind::NORETURN => function.noreturn = true,
        kind::NOUNWIND => function.nounwind = true,
        kind::RETURNS_TWICE => function.returns_twice = true,
        kind::COLD => function.cold = true,
        kind::STRICTFP => function.strictfp = true,
        kind::WILLRETURN => function.willreturn = true,
        kind::NEST => param.nest = true,
        kind::NOALIAS => param.noalias = true,
        kind::RETURNED => param.returned = true,
        kind::SIGNEXT => param.signext = true,
        kind::ZEROEXT => param.zeroext = true,
        kind::NONNULL => param.nonnull = true,
        kind::NOUNDEF => param.noundef = true,
        _ => {}
    }
}

fn set_number(group: &mut Group, attribute: u64, number: u64) {
    // Alignments that are not a power of two are invalid and ignored.
    let align = if number.is_power_of_two() { number } else { 0 };
    match attribute {
        kind::ALIGN => group.param.align = align,
        kind::STACK_ALIGN => group.param.stack_align = align,
        kind::DEREFERENCEABLE => group.param.dereferenceable = number,
        _ => {}
    }
}
