//! Shapes: the layout of values in registers and in memory.

use std::rc::Rc;

use crate::code::{FloatKind, Lane, ValueType};
use crate::module::{Type, TypeId, TypeTable};

/// Maximum number of registers of a value; larger ones would be arrays passed by value, and are not
/// executed.
const MAX_REGISTERS: u64 = 65_535;
/// Maximum nesting depth of a type; deeper ones are not executed.
const MAX_DEPTH: u32 = 200;

/// The registers of a type and their offsets in memory.
#[derive(Debug)]
pub(super) struct Shape {
    /// The parts that are loaded and stored one by one.
    pub parts: Vec<Part>,
    /// Number of registers of a value.
    pub registers: u32,
    /// The type in calls.
    pub value: ValueType,
    /// The lane type: the type itself for scalars, `None` for aggregates and void.
    pub lane: Option<Lane>,
    /// Number of lanes; 1 for scalars, 0 for aggregates and void.
    pub lanes: u32,
}

/// A scalar within a value.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part {
    /// Bytes from the start of the value.
    pub offset: u64,
    /// First register of the part.
    pub register: u32,
    /// The content.
    pub kind: PartKind,
}

impl Part {
    /// Returns the number of bytes of the part in memory.
    pub fn bytes(&self) -> u64 {
        let bits = match self.kind {
            PartKind::Scalar(lane) => u64::from(lane.bits()),
            PartKind::Packed { lanes, width } => u64::from(lanes) * u64::from(width),
        };
        bits.div_ceil(8)
    }
}

/// The content of a part of a value.
#[derive(Copy, Clone, Debug)]
pub(super) enum PartKind {
    /// One scalar.
    Scalar(Lane),
    /// A vector whose lanes are not whole bytes; bits are packed from the lowest.
    Packed { lanes: u32, width: u16 },
}

impl Shape {
    /// Returns whether the shape is that of a vector.
    pub fn is_vector(&self) -> bool {
        matches!(self.value, ValueType::Vector { .. })
    }
}

/// Shapes of the types of a module, computed on demand.
pub(super) struct Shapes<'a> {
    types: &'a TypeTable,
    known: Vec<Option<Option<Rc<Shape>>>>,
}

impl<'a> Shapes<'a> {
    pub fn new(types: &'a TypeTable) -> Self {
        Self {
            types,
            known: vec![None; types.len()],
        }
    }

    /// Returns the shape of a type; `None` if its values cannot be held in registers.
    pub fn get(&mut self, ty: TypeId) -> Option<Rc<Shape>> {
        self.get_at(ty, 0)
    }

    fn get_at(&mut self, ty: TypeId, depth: u32) -> Option<Rc<Shape>> {
        if let Some(known) = self.known.get(ty.index())? {
            return known.clone();
        }
        let shape = if depth > MAX_DEPTH {
            None
        } else {
            self.compute(ty, depth).map(Rc::new)
        };
        self.known[ty.index()] = Some(shape.clone());
        shape
    }

    fn compute(&mut self, ty: TypeId, depth: u32) -> Option<Shape> {
        let types = self.types;
        match &types[ty] {
            Type::Void => Some(empty(ValueType::Void)),
            Type::Label | Type::Metadata | Type::Token => Some(empty(ValueType::Ignored)),
            Type::Array { element, count } => {
                let element_shape = self.get_at(*element, depth + 1)?;
                let registers = u64::from(element_shape.registers).checked_mul(*count)?;
                if registers > MAX_REGISTERS {
                    return None;
                }
                let mut parts = Vec::new();
                // An array of empty elements has no parts, however long it is.
                let count = if element_shape.registers == 0 {
                    0
                } else {
                    *count
                };
                let stride = types.size_of(*element);
                for index in 0..count {
                    let register = index as u32 * element_shape.registers;
                    append(&mut parts, &element_shape, index * stride, register);
                }
                Some(aggregate(parts, registers as u32))
            }
            Type::Struct(body) => {
                if body.opaque {
                    return None;
                }
                let mut parts = Vec::new();
                let mut registers = 0u64;
                for (index, &field) in body.fields.iter().enumerate() {
                    let field_shape = self.get_at(field, depth + 1)?;
                    let offset = types.field_offset(ty, index)?;
                    append(&mut parts, &field_shape, offset, registers as u32);
                    registers += u64::from(field_shape.registers);
                    if registers > MAX_REGISTERS {
                        return None;
                    }
                }
                Some(aggregate(parts, registers as u32))
            }
            Type::Vector { scalable: true, .. } => None,
            Type::Vector { element, count, .. } => vector(scalar(&types[*element])?, *count),
            other => {
                let lane = scalar(other)?;
                let parts = vec![Part {
                    offset: 0,
                    register: 0,
                    kind: PartKind::Scalar(lane),
                }];
                let value = match lane {
                    Lane::Int(width) => ValueType::Int(width),
                    Lane::Pointer => ValueType::Pointer,
                    Lane::Float(kind) => ValueType::Float(kind),
                };
                let registers = lane.registers();
                Some(Shape {
                    parts,
                    registers,
                    value,
                    lane: Some(lane),
                    lanes: 1,
                })
            }
        }
    }
}

fn empty(value: ValueType) -> Shape {
    Shape {
        parts: Vec::new(),
        registers: 0,
        value,
        lane: None,
        lanes: 0,
    }
}

fn aggregate(parts: Vec<Part>, registers: u32) -> Shape {
    let value = ValueType::Aggregate {
        registers: registers as u16,
    };
    Shape {
        parts,
        registers,
        value,
        lane: None,
        lanes: 0,
    }
}

fn append(parts: &mut Vec<Part>, member: &Shape, offset: u64, register: u32) {
    parts.extend(member.parts.iter().map(|part| Part {
        offset: part.offset + offset,
        register: part.register + register,
        kind: part.kind,
    }));
}

fn vector(lane: Lane, count: u32) -> Option<Shape> {
    let registers = u64::from(lane.registers()) * u64::from(count);
    if registers > MAX_REGISTERS {
        return None;
    }
    let value = ValueType::Vector {
        lanes: count as u16,
        lane,
    };
    let parts = match lane {
        Lane::Int(width) if width % 8 != 0 => {
            vec![Part {
                offset: 0,
                register: 0,
                kind: PartKind::Packed {
                    lanes: count,
                    width,
                },
            }]
        }
        _ => (0..count)
            .map(|index| Part {
                offset: u64::from(index) * u64::from(lane.bits() / 8),
                register: index * lane.registers(),
                kind: PartKind::Scalar(lane),
            })
            .collect(),
    };
    Some(Shape {
        parts,
        registers: registers as u32,
        value,
        lane: Some(lane),
        lanes: count,
    })
}

fn scalar(ty: &Type) -> Option<Lane> {
    Some(match ty {
        Type::Integer(width) => Lane::Int(u16::try_from(*width).ok().filter(|width| *width > 0)?),
        Type::Half => Lane::Float(FloatKind::Half),
        Type::BFloat => Lane::Float(FloatKind::BFloat),
        Type::Float => Lane::Float(FloatKind::Single),
        Type::Double => Lane::Float(FloatKind::Double),
        Type::X86Fp80 => Lane::Float(FloatKind::X87),
        Type::Fp128 => Lane::Float(FloatKind::Quad),
        Type::Pointer {
            address_space: 270 | 271,
        } => return None,
        Type::Pointer { .. } => Lane::Pointer,
        _ => return None,
    })
}

/// Returns the widths of a lane's limbs: the width in bits of each of its registers.
pub(super) fn limb_widths(lane: Lane) -> impl Iterator<Item = u32> + Clone {
    let bits = lane.bits();
    (0..lane.registers()).map(move |index| (bits - index * 64).min(64))
}

/// Returns a mask of the low `width` bits.
pub(super) fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// Sign-extends from `width` bits to 64.
pub(super) fn sign_extend(value: u64, width: u32) -> u64 {
    let unused = 64 - width.clamp(1, 64);
    (((value << unused) as i64) >> unused) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::StructType;

    #[test]
    fn aggregates_are_laid_out_field_by_field() {
        let mut types = TypeTable::default();
        let byte = types.intern(Type::Integer(8));
        let wide = types.intern(Type::Integer(128));
        let long_double = types.intern(Type::X86Fp80);
        let bit = types.intern(Type::Integer(1));
        let bits = types.intern(Type::Vector {
            element: bit,
            count: 12,
            scalable: false,
        });
        let pair = types.intern(Type::Array {
            element: byte,
            count: 2,
        });
        let body = StructType {
            name: None,
            fields: [byte, wide, pair, long_double, bits].into(),
            packed: false,
            opaque: false,
        };
        let all = types.intern(Type::Struct(body));
        types.compute_layouts().unwrap();
        let shape = Shapes::new(&types).get(all).unwrap();
        let places: Vec<_> = shape
            .parts
            .iter()
            .map(|part| (part.offset, part.register))
            .collect();
        assert_eq!(places, [(0, 0), (8, 1), (24, 3), (25, 4), (32, 5), (48, 7)]);
        assert_eq!(shape.registers, 19);
    }

    #[test]
    fn what_does_not_fit_into_registers_has_no_shape() {
        let mut types = TypeTable::default();
        let byte = types.intern(Type::Integer(8));
        let huge = types.intern(Type::Array {
            element: byte,
            count: 1 << 40,
        });
        let void_array = types.intern(Type::Array {
            element: huge,
            count: 0,
        });
        types.compute_layouts().unwrap();
        let mut shapes = Shapes::new(&types);
        assert!(shapes.get(huge).is_none());
        assert!(shapes.get(void_array).is_none());
    }
}
