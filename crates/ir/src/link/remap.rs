//! Maps the ids of one module to those of the linked one.

use std::collections::HashMap;

use crate::debug::{DebugField, DebugTypeId, DebugTypeKind, FileId, SubprogramId};
use crate::module::*;

/// The id mapping of one module.
pub(super) struct Remap {
    pub types: Vec<TypeId>,
    pub constants: usize,
    pub inline_asms: usize,
    pub attributes: usize,
    pub locations: usize,
    pub subprograms: u32,
    pub files: u32,
    pub debug_types: u32,
    pub bundle_tags: Vec<u32>,
    pub metadata_strings: Vec<u32>,
    pub comdats: Vec<ComdatId>,
    pub globals: Vec<Value>,
    pub functions: Vec<Value>,
    pub aliases: Vec<Value>,
}

impl Remap {
    pub fn ty(&self, id: TypeId) -> TypeId {
        self.types[id.index()]
    }

    pub fn constant(&self, id: ConstId) -> ConstId {
        ConstId::new(self.constants + id.index())
    }

    pub fn location(&self, id: LocId) -> LocId {
        LocId::new(self.locations + id.index())
    }

    pub fn attributes(&self, id: AttributesId) -> AttributesId {
        AttributesId::new(self.attributes + id.index())
    }

    pub fn subprogram(&self, id: SubprogramId) -> SubprogramId {
        SubprogramId(self.subprograms + id.0)
    }

    pub fn file(&self, id: FileId) -> FileId {
        FileId(self.files + id.0)
    }

    pub fn debug_type(&self, id: DebugTypeId) -> DebugTypeId {
        DebugTypeId(self.debug_types + id.0)
    }

    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::Constant(id) => Value::Constant(self.constant(id)),
            Value::Global(id) => self.globals[id.index()],
            Value::Function(id) => self.functions[id.index()],
            Value::Alias(id) => self.aliases[id.index()],
            Value::InlineAsm(id) => {
                Value::InlineAsm(InlineAsmId::new(self.inline_asms + id.index()))
            }
            Value::Metadata(NO_METADATA) => value,
            Value::Metadata(index) => Value::Metadata(self.metadata_strings[index as usize]),
            Value::Instruction(_) | Value::Argument(_) | Value::Block(_) | Value::Ifunc(_) => value,
        }
    }

    /// Remaps everything that the body and header of a function refer to.
    pub fn function(&self, function: &mut Function) {
        function.ty = self.ty(function.ty);
        function
            .params
            .iter_mut()
            .for_each(|param| *param = self.ty(*param));
        function.attributes = function.attributes.map(|id| self.attributes(id));
        function.comdat = function.comdat.map(|id| self.comdats[id.index()]);
        function.personality = function.personality.map(|value| self.value(value));
        function.subprogram = function.subprogram.map(|id| self.subprogram(id));
        function.for_each_operand_mut(|operand| *operand = self.value(*operand));
        for instruction in &mut function.instructions {
            instruction.ty = self.ty(instruction.ty);
            instruction.loc = instruction.loc.map(|loc| self.location(loc));
            match &mut instruction.kind {
                InstructionKind::Alloca { allocated: ty, .. }
                | InstructionKind::Gep { source: ty, .. } => *ty = self.ty(*ty),
                _ => {}
            }
        }
        for call in &mut function.calls {
            call.signature = self.ty(call.signature);
            call.attributes = call.attributes.map(|id| self.attributes(id));
        }
        for case in &mut function.switch_cases {
            case.value = self.constant(case.value);
        }
        for bundle in &mut function.bundles {
            bundle.tag = self.bundle_tags[bundle.tag as usize];
        }
    }

    pub fn constant_kind(&self, kind: ConstantKind) -> ConstantKind {
        use ConstantKind::*;
        let list = |values: Box<[Value]>| values.into_iter().map(|v| self.value(v)).collect();
        match kind {
            Null | Undef | Poison | Integer(_) | WideInteger(_) | Float(_) | WideFloat(_)
            | Data(_) | Unsupported(_) => kind,
            Aggregate(members) => Aggregate(list(members)),
            Cast { op, value } => Cast {
                op,
                value: self.value(value),
            },
            Gep {
                source,
                base,
                indices,
                flags,
            } => Gep {
                source: self.ty(source),
                base: self.value(base),
                indices: list(indices),
                flags,
            },
            Binary { op, lhs, rhs } => Binary {
                op,
                lhs: self.value(lhs),
                rhs: self.value(rhs),
            },
            FNeg { value } => FNeg {
                value: self.value(value),
            },
            ICmp {
                predicate,
                lhs,
                rhs,
            } => ICmp {
                predicate,
                lhs: self.value(lhs),
                rhs: self.value(rhs),
            },
            FCmp {
                predicate,
                lhs,
                rhs,
            } => FCmp {
                predicate,
                lhs: self.value(lhs),
                rhs: self.value(rhs),
            },
            Select {
                condition,
                then,
                otherwise,
            } => Select {
                condition: self.value(condition),
                then: self.value(then),
                otherwise: self.value(otherwise),
            },
            ExtractElement { vector, index } => ExtractElement {
                vector: self.value(vector),
                index: self.value(index),
            },
            InsertElement {
                vector,
                element,
                index,
            } => InsertElement {
                vector: self.value(vector),
                element: self.value(element),
                index: self.value(index),
            },
            ShuffleVector { lhs, rhs, mask } => ShuffleVector {
                lhs: self.value(lhs),
                rhs: self.value(rhs),
                mask: self.value(mask),
            },
            BlockAddress { function, block } => match self.functions[function.index()] {
                Value::Function(function) => BlockAddress { function, block },
                _ => Unsupported("address of a block in a function that was replaced"),
            },
            DsoLocalEquivalent(value) => DsoLocalEquivalent(self.value(value)),
            NoCfi(value) => NoCfi(self.value(value)),
        }
    }

    pub fn attribute_list(&self, list: &mut AttributeList) {
        for param in list.params.iter_mut().chain([&mut list.result]) {
            for ty in [
                &mut param.byval,
                &mut param.sret,
                &mut param.inalloca,
                &mut param.byref,
                &mut param.elementtype,
            ] {
                *ty = ty.map(|ty| self.ty(ty));
            }
        }
    }

    pub fn debug_type_kind(&self, kind: DebugTypeKind) -> DebugTypeKind {
        let ty = |id: Option<DebugTypeId>| id.map(|id| self.debug_type(id));
        match kind {
            DebugTypeKind::Basic { .. } | DebugTypeKind::Opaque => kind,
            DebugTypeKind::Pointer { target } => DebugTypeKind::Pointer { target: ty(target) },
            DebugTypeKind::Modifier { tag, target } => DebugTypeKind::Modifier {
                tag,
                target: ty(target),
            },
            DebugTypeKind::Record { union, fields } => DebugTypeKind::Record {
                union,
                fields: fields
                    .into_iter()
                    .map(|field| DebugField {
                        ty: ty(field.ty),
                        ..field
                    })
                    .collect(),
            },
            DebugTypeKind::Array { element, counts } => DebugTypeKind::Array {
                element: ty(element),
                counts,
            },
            DebugTypeKind::Enum { base, values } => DebugTypeKind::Enum {
                base: ty(base),
                values,
            },
        }
    }
}

/// Adds the types of `source` to `target`. Named structs with equal name and body are merged.
pub(super) fn merge_types(
    target: &mut TypeTable,
    source: &TypeTable,
    named: &mut HashMap<StructType, TypeId>,
) -> Vec<TypeId> {
    let mut map: Vec<Option<TypeId>> = vec![None; source.len()];
    for id in source.ids() {
        merge_type(target, source, named, &mut map, id);
    }
    map.into_iter().flatten().collect()
}

/// Adds a type and the types that it contains. Recursion is as deep as types are nested, which the
/// reader limits. Types have no cycles, because pointers are opaque.
fn merge_type(
    target: &mut TypeTable,
    source: &TypeTable,
    named: &mut HashMap<StructType, TypeId>,
    map: &mut [Option<TypeId>],
    id: TypeId,
) -> TypeId {
    if let Some(done) = map[id.index()] {
        return done;
    }
    let mut part = |id: TypeId| merge_type(target, source, named, map, id);
    let ty = match &source[id] {
        Type::Array { element, count } => Type::Array {
            element: part(*element),
            count: *count,
        },
        Type::Vector {
            element,
            count,
            scalable,
        } => Type::Vector {
            element: part(*element),
            count: *count,
            scalable: *scalable,
        },
        Type::Struct(body) => {
            let fields = body.fields.iter().map(|&field| part(field)).collect();
            Type::Struct(StructType {
                fields,
                ..body.clone()
            })
        }
        Type::Function {
            result,
            params,
            varargs,
        } => Type::Function {
            result: part(*result),
            params: params.iter().map(|&param| part(param)).collect(),
            varargs: *varargs,
        },
        other => other.clone(),
    };
    let new = match ty {
        Type::Struct(body) if body.name.is_some() => match named.get(&body) {
            Some(&known) => known,
            None => {
                let id = target.intern(Type::Struct(body.clone()));
                named.insert(body, id);
                id
            }
        },
        ty => target.intern(ty),
    };
    map[id.index()] = Some(new);
    new
}
