//! Global variables of the source and the types reachable from them.

use std::collections::HashMap;

use super::Reader;
use super::codes::metadata as code;
use super::metadata::MetadataNode;
use crate::bitstream::decode_signed;
use crate::debug::*;
use crate::module::GlobalId;

/// DWARF tags.
mod tag {
    pub const ARRAY: u64 = 0x01;
    pub const ENUMERATION: u64 = 0x04;
    pub const MEMBER: u64 = 0x0D;
    pub const POINTER: u64 = 0x0F;
    pub const REFERENCE: u64 = 0x10;
    pub const CLASS: u64 = 0x02;
    pub const STRUCTURE: u64 = 0x13;
    pub const UNION: u64 = 0x17;
    pub const VARIANT_PART: u64 = 0x33;
    pub const INHERITANCE: u64 = 0x1C;
    pub const RVALUE_REFERENCE: u64 = 0x42;
}

const FLAG_FORWARD_DECLARATION: u64 = 1 << 2;
const FLAG_STATIC_MEMBER: u64 = 1 << 12;
const OP_PLUS_UCONST: u64 = 0x23;
const OP_LLVM_FRAGMENT: u64 = 0x1000;
/// Maximum number of namespaces and functions around a variable.
const MAX_SCOPES: usize = 64;

/// Maps node numbers to types.
#[derive(Default)]
struct TypeBuilder {
    known: HashMap<u64, DebugTypeId>,
    pending: Vec<(u64, DebugTypeId)>,
    /// Definitions of records by name, built for the first declaration that needs one.
    definitions: Option<HashMap<Box<str>, u64>>,
}

/// The location of a variable, as described by a debug expression.
#[derive(Default)]
struct VariableLocation {
    offset: u64,
    fragment: Option<(u64, u64)>,
    is_computed: bool,
}

impl VariableLocation {
    fn of(mut operations: &[u64]) -> VariableLocation {
        let mut found = VariableLocation::default();
        while !operations.is_empty() {
            operations = match operations {
                [OP_PLUS_UCONST, offset, rest @ ..] => {
                    found.offset = found.offset.saturating_add(*offset);
                    rest
                }
                [OP_LLVM_FRAGMENT, offset_bits, size_bits, rest @ ..] => {
                    found.fragment = Some((*offset_bits, *size_bits));
                    rest
                }
                _ => {
                    found.is_computed = true;
                    return found;
                }
            };
        }
        found
    }
}

impl Reader<'_> {
    /// Builds the table of global variables and their types, after everything is read.
    pub(super) fn finish_debug_info(&mut self) {
        let mut builder = TypeBuilder::default();
        for (global, node) in std::mem::take(&mut self.metadata.global_attachments) {
            if let Some(variable) = self.variable(&mut builder, global, node) {
                self.module.debug.variables.push(variable);
            }
        }
        while let Some((node, id)) = builder.pending.pop() {
            let ty = self.debug_type(&mut builder, node);
            self.module.debug.types[id.index()] = ty;
        }
    }

    /// Adds the variable of `DIGlobalVariableExpression` `[distinct, variable, expression]`.
    fn variable(
        &mut self,
        builder: &mut TypeBuilder,
        global: GlobalId,
        node: u64,
    ) -> Option<Variable> {
        let ops = self.metadata.record_of(node, code::GLOBAL_VAR_EXPR)?;
        let &[_, variable, expression, ..] = ops else {
            return None;
        };
        let expression = expression
            .checked_sub(1)
            .and_then(|node| self.metadata.record_of(node, code::EXPRESSION));
        let whereabouts =
            VariableLocation::of(expression.and_then(|ops| ops.get(1..)).unwrap_or(&[]));
        let ops = self
            .metadata
            .record_of(variable.checked_sub(1)?, code::GLOBAL_VAR)?;
        let &[_, scope, name, linkage_name, file, line, ty, ..] = ops else {
            return None;
        };
        Some(Variable {
            name: self.metadata.text_or_empty(name),
            linkage_name: self.metadata.text_or_empty(linkage_name),
            scope: self.scope_path(scope),
            file: self.file(file),
            line: u32::try_from(line).unwrap_or(0),
            ty: self.type_reference(builder, ty),
            global,
            offset: whereabouts.offset,
            fragment: whereabouts.fragment,
            declaration: variable,
            is_computed: whereabouts.is_computed,
        })
    }

    /// Returns the names of the namespaces and functions around a variable, joined by `::`.
    fn scope_path(&self, mut reference: u64) -> Box<str> {
        let mut names = Vec::new();
        while let Some(node) = reference.checked_sub(1)
            && names.len() < MAX_SCOPES
        {
            let Some((found, ops)) = self.metadata.record(node) else {
                break;
            };
            let op = |index: usize| ops.get(index).copied().unwrap_or(0);
            match found {
                // `[distinct, scope, name]`, formerly `[distinct, scope, file, name, line]`
                code::NAMESPACE => names.push(op(if ops.len() == 5 { 3 } else { 2 })),
                code::SUBPROGRAM => names.push(op(2)),
                // Blocks have no names; they are counted, so that a cycle terminates.
                code::LEXICAL_BLOCK | code::LEXICAL_BLOCK_FILE => names.push(0),
                code::COMPOSITE_TYPE => {
                    names.push(op(2));
                    reference = op(5);
                    continue;
                }
                _ => break,
            }
            reference = op(1);
        }
        let names: Vec<_> = names
            .iter()
            .rev()
            .map(|&name| self.metadata.text_or_empty(name))
            .collect();
        let names: Vec<&str> = names
            .iter()
            .map(|name| &**name)
            .filter(|n| !n.is_empty())
            .collect();
        names.join("::").into()
    }

    /// Returns the type that a reference (number plus one) denotes; the type is built later.
    fn type_reference(&mut self, builder: &mut TypeBuilder, reference: u64) -> Option<DebugTypeId> {
        let node = reference.checked_sub(1)?;
        let (found, _) = self.metadata.record(node)?;
        if !matches!(
            found,
            code::BASIC_TYPE | code::DERIVED_TYPE | code::COMPOSITE_TYPE
        ) {
            return None;
        }
        if let Some(&known) = builder.known.get(&node) {
            return Some(known);
        }
        let types = &mut self.module.debug.types;
        let id = DebugTypeId(types.len() as u32);
        let unknown = DebugType {
            name: Box::default(),
            size_bits: 0,
            kind: DebugTypeKind::Opaque,
        };
        types.push(unknown);
        builder.known.insert(node, id);
        builder.pending.push((node, id));
        Some(id)
    }

    /// Returns a size or offset, which newer versions store as a constant node.
    fn size(&self, op: u64, is_node: bool) -> u64 {
        match (is_node, op.checked_sub(1)) {
            (false, _) => op,
            (true, Some(node)) => self.metadata_integer(node).unwrap_or(0),
            (true, None) => 0,
        }
    }

    fn debug_type(&mut self, builder: &mut TypeBuilder, node: u64) -> DebugType {
        let opaque = DebugType {
            name: Box::default(),
            size_bits: 0,
            kind: DebugTypeKind::Opaque,
        };
        let Some((found, ops)) = self.metadata.record(node) else {
            return opaque;
        };
        let ops = ops.to_vec();
        let op = |index: usize| ops.get(index).copied().unwrap_or(0);
        let name = self.metadata.text_or_empty(op(2));
        match found {
            // `[flags, tag, name, size, align, encoding, …]`
            code::BASIC_TYPE => DebugType {
                name,
                size_bits: self.size(op(3), op(0) & 2 != 0),
                kind: DebugTypeKind::Basic {
                    encoding: op(5) as u32,
                },
            },
            // `[flags, tag, name, file, line, scope, base, size, align, offset, flags, …]`
            code::DERIVED_TYPE => {
                let target = self.type_reference(builder, op(6));
                let kind = match op(1) {
                    tag::POINTER | tag::REFERENCE | tag::RVALUE_REFERENCE => {
                        DebugTypeKind::Pointer { target }
                    }
                    tag => DebugTypeKind::Modifier {
                        tag: tag as u32,
                        target,
                    },
                };
                DebugType {
                    name,
                    size_bits: self.size(op(7), op(0) & 2 != 0),
                    kind,
                }
            }
            code::COMPOSITE_TYPE => self.composite(builder, node, &ops, name),
            _ => opaque,
        }
    }

    /// Reads `[flags, tag, name, file, line, scope, base, size, align, offset, flags, elements,
    /// …]`.
    fn composite(
        &mut self,
        builder: &mut TypeBuilder,
        node: u64,
        ops: &[u64],
        name: Box<str>,
    ) -> DebugType {
        let op = |index: usize| ops.get(index).copied().unwrap_or(0);
        let size_bits = self.size(op(7), op(0) & 4 != 0);
        if op(10) & FLAG_FORWARD_DECLARATION != 0
            && let Some(definition) = self.definition(builder, &name, node)
        {
            let target = self.type_reference(builder, definition + 1);
            let kind = DebugTypeKind::Modifier {
                tag: op(1) as u32,
                target,
            };
            return DebugType {
                name,
                size_bits,
                kind,
            };
        }
        let elements = self.elements(op(11));
        let kind = match op(1) {
            tag::STRUCTURE | tag::CLASS | tag::UNION | tag::VARIANT_PART => {
                let fields = elements
                    .iter()
                    .filter_map(|&node| self.field(builder, node))
                    .collect();
                DebugTypeKind::Record {
                    union: op(1) == tag::UNION,
                    fields,
                }
            }
            tag::ARRAY => {
                let element = self.type_reference(builder, op(6));
                let counts = elements.iter().map(|&node| self.subrange(node)).collect();
                DebugTypeKind::Array { element, counts }
            }
            tag::ENUMERATION => {
                let base = self.type_reference(builder, op(6));
                let values = elements
                    .iter()
                    .filter_map(|&node| self.enumerator(node))
                    .collect();
                DebugTypeKind::Enum { base, values }
            }
            _ => DebugTypeKind::Opaque,
        };
        DebugType {
            name,
            size_bits,
            kind,
        }
    }

    /// Returns the numbers of the nodes in a list.
    fn elements(&self, reference: u64) -> Vec<u64> {
        let list = reference
            .checked_sub(1)
            .and_then(|node| self.metadata.record(node));
        match list {
            Some((code::NODE | code::DISTINCT_NODE, ops)) => {
                ops.iter().filter_map(|op| op.checked_sub(1)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn field(&mut self, builder: &mut TypeBuilder, node: u64) -> Option<DebugField> {
        let (found, ops) = self.metadata.record(node)?;
        if found == code::COMPOSITE_TYPE {
            // The variants of a Rust enum are an unnamed member.
            let ty = self.type_reference(builder, node + 1);
            return Some(DebugField {
                name: Box::default(),
                ty,
                offset_bits: 0,
                size_bits: 0,
            });
        }
        let &[
            flags,
            tag,
            name,
            _,
            _,
            _,
            base,
            size,
            _,
            offset,
            ref more @ ..,
        ] = ops
        else {
            return None;
        };
        let is_static = more
            .first()
            .is_some_and(|flags| flags & FLAG_STATIC_MEMBER != 0);
        if found != code::DERIVED_TYPE || is_static {
            return None;
        }
        let name = match tag {
            tag::MEMBER => self.metadata.text_or_empty(name),
            tag::INHERITANCE => Box::default(),
            _ => return None,
        };
        let is_node = flags & 2 != 0;
        let (size_bits, offset_bits) = (self.size(size, is_node), self.size(offset, is_node));
        let ty = self.type_reference(builder, base);
        Some(DebugField {
            name,
            ty,
            offset_bits,
            size_bits,
        })
    }

    /// Returns the number of elements of one dimension: `[version << 1, count, …]`
    fn subrange(&self, node: u64) -> Option<u64> {
        let ops = self.metadata.record_of(node, code::SUBRANGE)?;
        let &[version, count, ..] = ops else {
            return None;
        };
        let count = match version >> 1 {
            0 => count,
            _ => self.metadata_integer(count.checked_sub(1)?)?,
        };
        // An unknown count is -1.
        (count <= i64::MAX as u64).then_some(count)
    }

    /// Reads `[flags, value, name]`, or `[flags, width, name, words…]` with bit 2 of the flags.
    fn enumerator(&self, node: u64) -> Option<(Box<str>, i64)> {
        let ops = self.metadata.record_of(node, code::ENUMERATOR)?;
        let &[flags, first, name, ref words @ ..] = ops else {
            return None;
        };
        let value = if flags & 4 != 0 {
            *words.first()?
        } else {
            first
        };
        Some((self.metadata.text_or_empty(name), decode_signed(value)))
    }

    /// Returns the definition of a record of which this is only a declaration.
    fn definition(&self, builder: &mut TypeBuilder, name: &str, declaration: u64) -> Option<u64> {
        if name.is_empty() {
            return None;
        }
        let definitions = builder
            .definitions
            .get_or_insert_with(|| self.definitions());
        definitions
            .get(name)
            .copied()
            .filter(|&definition| definition != declaration)
    }

    fn definitions(&self) -> HashMap<Box<str>, u64> {
        let mut found = HashMap::new();
        for (number, node) in self.metadata.nodes.iter().enumerate() {
            let MetadataNode::Record {
                code: code::COMPOSITE_TYPE,
                ..
            } = node
            else {
                continue;
            };
            let Some((_, ops)) = self.metadata.record(number as u64) else {
                continue;
            };
            let &[_, _, name, _, _, _, _, _, _, _, flags, ..] = ops else {
                continue;
            };
            let name = self.metadata.text_or_empty(name);
            if flags & FLAG_FORWARD_DECLARATION == 0 && !name.is_empty() {
                found.entry(name).or_insert(number as u64);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_say_where_variables_are() {
        let of = |operations: &[u64]| {
            let found = VariableLocation::of(operations);
            (found.offset, found.fragment, found.is_computed)
        };
        assert_eq!(of(&[]), (0, None, false));
        assert_eq!(of(&[OP_PLUS_UCONST, 8]), (8, None, false));
        assert_eq!(of(&[OP_LLVM_FRAGMENT, 32, 16]), (0, Some((32, 16)), false));
        let both = [OP_PLUS_UCONST, 4, OP_LLVM_FRAGMENT, 64, 8];
        assert_eq!(of(&both), (4, Some((64, 8)), false));
        const DEREF_SIZE: u64 = 0x94;
        assert!(of(&[DEREF_SIZE, 1]).2);
        assert!(of(&[OP_PLUS_UCONST]).2);
    }
}
