//! The type table. Typed pointers (LLVM 14) become opaque pointers; their pointees are kept for the
//! few records that need them.

use super::codes::types as code;
use super::{Reader, text};
use crate::bitstream::ReadError;
use crate::module::{StructType, Type, TypeId};

/// A type record as in the file: components are file ids and may come later.
enum RawType {
    Plain(Type),
    TypedPointer {
        pointee: u64,
        address_space: u32,
    },
    Array {
        element: u64,
        count: u64,
    },
    Vector {
        element: u64,
        count: u32,
        scalable: bool,
    },
    Struct {
        name: Option<Box<str>>,
        fields: Vec<u64>,
        packed: bool,
        opaque: bool,
    },
    Function {
        result: u64,
        params: Vec<u64>,
        varargs: bool,
    },
}

/// Types by their number in the file.
#[derive(Default)]
pub(super) struct FileTypes {
    ids: Vec<TypeId>,
    pointees: Vec<Option<u32>>,
}

/// Maximum number of lanes, more than x86-64 code has; it bounds the expansion of a shuffle in a
/// short record.
const MAX_LANES: u64 = 4096;
/// LLVM's own limit of integer widths.
const MAX_INTEGER_WIDTH: u64 = 1 << 23;
/// Maximum nesting depth, more than any program uses.
const MAX_DEPTH: u32 = 256;

impl Reader<'_> {
    /// Returns the type with number `id` in the file.
    pub(super) fn type_at(&self, id: u64) -> Result<TypeId, ReadError> {
        let found = usize::try_from(id)
            .ok()
            .and_then(|id| self.types.ids.get(id));
        found
            .copied()
            .ok_or_else(|| self.bits.error(format!("type {id} does not exist")))
    }

    /// Returns the pointee of typed pointer `id` of the file, else `id` itself.
    pub(super) fn pointee_or_self(&self, id: u64) -> Result<TypeId, ReadError> {
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        match self.types.pointees.get(index) {
            Some(&Some(pointee)) => self.type_at(u64::from(pointee)),
            _ => self.type_at(id),
        }
    }

    /// Reads the type block.
    pub(super) fn read_types(&mut self) -> Result<(), ReadError> {
        let mut raw = Vec::new();
        let mut name = None;
        while let Some(record) = self.bits.next_record()? {
            match record {
                code::NUM_ENTRY => raw.reserve(self.bits.capped(self.op(0)?)),
                code::STRUCT_NAME => name = Some(text(&self.bits.ops)),
                _ => {
                    let ty = self.raw_type(record, &mut name)?;
                    raw.push(ty);
                }
            }
        }
        self.types.pointees = raw
            .iter()
            .map(|ty| match ty {
                RawType::TypedPointer { pointee, .. } => u32::try_from(*pointee).ok(),
                _ => None,
            })
            .collect();
        self.resolve_types(raw)
    }

    fn raw_type(&self, record: u32, name: &mut Option<Box<str>>) -> Result<RawType, ReadError> {
        let ops = &self.bits.ops;
        let rest = |from: usize| ops.get(from..).unwrap_or(&[]).to_vec();
        let address_space = |index: usize| ops.get(index).map_or(0, |&space| space as u32);
        Ok(match record {
            code::VOID => RawType::Plain(Type::Void),
            code::HALF => RawType::Plain(Type::Half),
            code::BFLOAT => RawType::Plain(Type::BFloat),
            code::FLOAT => RawType::Plain(Type::Float),
            code::DOUBLE => RawType::Plain(Type::Double),
            code::X86_FP80 => RawType::Plain(Type::X86Fp80),
            code::FP128 => RawType::Plain(Type::Fp128),
            code::PPC_FP128 => RawType::Plain(Type::PpcFp128),
            code::LABEL => RawType::Plain(Type::Label),
            code::METADATA => RawType::Plain(Type::Metadata),
            code::TOKEN => RawType::Plain(Type::Token),
            code::X86_MMX => RawType::Plain(Type::Other("x86_mmx".into())),
            code::X86_AMX => RawType::Plain(Type::Other("x86_amx".into())),
            code::INTEGER => match self.op(0)? {
                width @ 1..=MAX_INTEGER_WIDTH => RawType::Plain(Type::Integer(width as u32)),
                width => return Err(self.bits.error(format!("integer of {width} bits"))),
            },
            code::OPAQUE_POINTER => RawType::Plain(Type::Pointer {
                address_space: address_space(0),
            }),
            code::POINTER => RawType::TypedPointer {
                pointee: self.op(0)?,
                address_space: address_space(1),
            },
            code::ARRAY => RawType::Array {
                count: self.op(0)?,
                element: self.op(1)?,
            },
            code::VECTOR => {
                let count = self.op(0)?;
                if count == 0 || count > MAX_LANES {
                    return Err(self.bits.error(format!("vector of {count} lanes")));
                }
                let scalable = ops.get(2).is_some_and(|&flag| flag != 0);
                RawType::Vector {
                    element: self.op(1)?,
                    count: count as u32,
                    scalable,
                }
            }
            code::STRUCT_ANON => RawType::Struct {
                name: None,
                packed: self.op(0)? != 0,
                fields: rest(1),
                opaque: false,
            },
            code::STRUCT_NAMED => RawType::Struct {
                name: Some(name.take().unwrap_or_default()),
                packed: self.op(0)? != 0,
                fields: rest(1),
                opaque: false,
            },
            code::OPAQUE => RawType::Struct {
                name: Some(name.take().unwrap_or_default()),
                packed: false,
                fields: Vec::new(),
                opaque: true,
            },
            code::FUNCTION => RawType::Function {
                varargs: self.op(0)? != 0,
                result: self.op(1)?,
                params: rest(2),
            },
            code::TARGET_TYPE => {
                RawType::Plain(Type::Other(name.take().unwrap_or_else(|| "target".into())))
            }
            code::BYTE => RawType::Plain(Type::Other("byte".into())),
            _ => return Err(self.bits.error(format!("unknown type record {record}"))),
        })
    }

    /// Converts the file's types. Named structs get their ids first, so that other types can refer
    /// to them before their bodies are known.
    fn resolve_types(&mut self, raw: Vec<RawType>) -> Result<(), ReadError> {
        let mut known = vec![None; raw.len()];
        for (index, ty) in raw.iter().enumerate() {
            if let RawType::Struct {
                name: Some(name),
                packed,
                opaque,
                ..
            } = ty
            {
                let body = StructType {
                    name: Some(name.clone()),
                    fields: Box::default(),
                    packed: *packed,
                    opaque: *opaque,
                };
                known[index] = Some(self.module.types.intern(Type::Struct(body)));
            }
        }
        for index in 0..raw.len() {
            self.resolve_type(&raw, index as u64, &mut known, 0)?;
        }
        for (index, ty) in raw.iter().enumerate() {
            if let (
                RawType::Struct {
                    name: Some(name),
                    fields,
                    packed,
                    opaque,
                },
                Some(id),
            ) = (ty, known[index])
            {
                let fields = self.resolve_all(&raw, fields, &mut known, 0)?;
                let body = StructType {
                    name: Some(name.clone()),
                    fields,
                    packed: *packed,
                    opaque: *opaque,
                };
                self.module.types.set_struct_body(id, body);
            }
        }
        self.types.ids = known.into_iter().flatten().collect();
        Ok(())
    }

    fn resolve_all(
        &mut self,
        raw: &[RawType],
        parts: &[u64],
        known: &mut [Option<TypeId>],
        depth: u32,
    ) -> Result<Box<[TypeId]>, ReadError> {
        parts
            .iter()
            .map(|&part| self.resolve_type(raw, part, known, depth))
            .collect()
    }

    fn resolve_type(
        &mut self,
        raw: &[RawType],
        id: u64,
        known: &mut [Option<TypeId>],
        depth: u32,
    ) -> Result<TypeId, ReadError> {
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let Some(ty) = raw.get(index) else {
            return Err(self.bits.error(format!("type {id} does not exist")));
        };
        if let Some(done) = known[index] {
            return Ok(done);
        }
        if depth > MAX_DEPTH {
            return Err(self
                .bits
                .error("types are nested too deeply or contain themselves"));
        }
        let depth = depth + 1;
        let resolved = match ty {
            RawType::Plain(ty) => ty.clone(),
            RawType::TypedPointer { address_space, .. } => Type::Pointer {
                address_space: *address_space,
            },
            RawType::Array { element, count } => Type::Array {
                element: self.resolve_type(raw, *element, known, depth)?,
                count: *count,
            },
            RawType::Vector {
                element,
                count,
                scalable,
            } => Type::Vector {
                element: self.resolve_type(raw, *element, known, depth)?,
                count: *count,
                scalable: *scalable,
            },
            RawType::Struct {
                name,
                fields,
                packed,
                opaque,
            } => Type::Struct(StructType {
                name: name.clone(),
                fields: self.resolve_all(raw, fields, known, depth)?,
                packed: *packed,
                opaque: *opaque,
            }),
            RawType::Function {
                result,
                params,
                varargs,
            } => Type::Function {
                result: self.resolve_type(raw, *result, known, depth)?,
                params: self.resolve_all(raw, params, known, depth)?,
                varargs: *varargs,
            },
        };
        let id = self.module.types.intern(resolved);
        known[index] = Some(id);
        Ok(id)
    }
}
