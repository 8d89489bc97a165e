//! The types of a module and their x86-64 data layout.

use std::collections::HashMap;

use super::ids::TypeId;

/// A type. Equal types have the same [`TypeId`], except named structs, which are always distinct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    Void,
    /// An integer of the given width in bits.
    Integer(u32),
    /// IEEE binary16.
    Half,
    /// bfloat16.
    BFloat,
    /// IEEE binary32.
    Float,
    /// IEEE binary64.
    Double,
    /// x87 80-bit extended.
    X86Fp80,
    /// IEEE binary128.
    Fp128,
    /// PowerPC double-double.
    PpcFp128,
    /// An opaque pointer.
    Pointer {
        /// LLVM address space, 0 for ordinary memory.
        address_space: u32,
    },
    /// A basic block as an operand.
    Label,
    /// Metadata as an operand.
    Metadata,
    /// A token (coroutines, Windows exception handling).
    Token,
    /// A fixed-length array.
    Array {
        /// Type of an element.
        element: TypeId,
        /// Number of elements.
        count: u64,
    },
    /// A SIMD vector.
    Vector {
        /// Type of a lane.
        element: TypeId,
        /// Number of lanes (the minimum if scalable).
        count: u32,
        /// Whether the number of lanes is a multiple known only at run time; not executable.
        scalable: bool,
    },
    /// A struct.
    Struct(StructType),
    /// A function signature.
    Function {
        /// Type of the result.
        result: TypeId,
        /// Types of the fixed parameters.
        params: Box<[TypeId]>,
        /// Whether more arguments may follow.
        varargs: bool,
    },
    /// A type that no x86-64 C, C++ or Rust program uses, by its name.
    Other(Box<str>),
}

/// The body of a struct type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructType {
    /// Name of a named struct; `None` for a literal struct.
    pub name: Option<Box<str>>,
    /// Types of the fields.
    pub fields: Box<[TypeId]>,
    /// Whether there is no padding between the fields.
    pub packed: bool,
    /// Whether the struct was declared without a body.
    pub opaque: bool,
}

/// Size and alignment of a type, in bytes.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// Number of bytes that a store accesses.
    store_size: u64,
    /// ABI alignment, a power of two.
    align: u64,
    /// Byte offset of each field of a struct.
    offsets: Box<[u64]>,
    /// Nesting depth of aggregates in the type.
    depth: u32,
}

/// Maximum nesting depth, more than any program uses.
const MAX_DEPTH: u32 = 512;

/// Why the layout of a type cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutProblem {
    /// A struct contains itself by value.
    Recursive(TypeId),
    /// The size in bytes does not fit in 64 bits.
    TooLarge(TypeId),
    /// Types are nested too deeply for recursive code.
    TooDeep(TypeId),
}

/// The parts of the data layout string that differ between the supported compilers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// ABI alignment of `i128` in bytes: 8 until LLVM 17, 16 from LLVM 18 on.
    pub i128_align: u64,
    /// ABI alignment of `i64` and `double` in bytes.
    pub i64_align: u64,
    /// ABI alignment of `x86_fp80` in bytes.
    pub f80_align: u64,
    /// Size of a pointer in bytes.
    pub pointer_size: u64,
}

impl Default for DataLayout {
    fn default() -> Self {
        Self {
            i128_align: 8,
            i64_align: 8,
            f80_align: 16,
            pointer_size: 8,
        }
    }
}

impl DataLayout {
    /// Parses the relevant parts of an LLVM data layout string; the rest is as on x86-64.
    pub fn parse(text: &str) -> Self {
        let mut layout = Self::default();
        for part in text.split('-') {
            let mut fields = part.split(':');
            let key = fields.next().unwrap_or("");
            let bits = |field: Option<&str>| field.and_then(|text| text.parse::<u64>().ok());
            let first = bits(fields.next());
            let target = match key {
                "i128" => &mut layout.i128_align,
                "i64" => &mut layout.i64_align,
                "f80" => &mut layout.f80_align,
                "p" | "p0" => &mut layout.pointer_size,
                _ => continue,
            };
            match first {
                Some(bits) if (8..=256).contains(&bits) && bits.is_power_of_two() => {
                    *target = bits / 8;
                }
                _ => {}
            }
        }
        layout
    }
}

/// All types of a module, each with its layout.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    types: Vec<Type>,
    /// Maps equal types to their id; never iterated.
    interned: HashMap<Type, TypeId>,
    layouts: Vec<Layout>,
    /// The layout rules.
    pub data_layout: DataLayout,
}

impl std::ops::Index<TypeId> for TypeTable {
    type Output = Type;

    #[inline]
    fn index(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }
}

impl TypeTable {
    /// Returns the number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns whether there are no types.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Returns all ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.types.len()).map(TypeId::new)
    }

    /// Returns the id of `ty`, and adds `ty` if it is new. Named structs are always added. Call
    /// [`compute_layouts`](Self::compute_layouts) before asking for the size of a new type.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        let named = matches!(&ty, Type::Struct(body) if body.name.is_some());
        if !named && let Some(&known) = self.interned.get(&ty) {
            return known;
        }
        let id = TypeId::new(self.types.len());
        if !named {
            self.interned.insert(ty.clone(), id);
        }
        self.types.push(ty);
        id
    }

    /// Sets the body of a named struct, while building a type table with cycles.
    pub fn set_struct_body(&mut self, id: TypeId, body: StructType) {
        self.types[id.index()] = Type::Struct(body);
    }

    /// Computes the layouts of all types added since the last call.
    pub fn compute_layouts(&mut self) -> Result<(), LayoutProblem> {
        let mut states = vec![State::Done; self.layouts.len()];
        states.resize(self.types.len(), State::New);
        self.layouts.resize(self.types.len(), Layout::default());
        for start in 0..self.types.len() {
            self.compute_from(TypeId::new(start), &mut states)?;
        }
        Ok(())
    }

    /// Lays out `start` after all types that it contains. Without recursion, because the input
    /// determines the depth.
    fn compute_from(&mut self, start: TypeId, states: &mut [State]) -> Result<(), LayoutProblem> {
        let mut stack = vec![start];
        while let Some(&id) = stack.last() {
            match states[id.index()] {
                State::Done => {
                    stack.pop();
                }
                State::Open => {
                    let mut layout = self.layout_of(id).ok_or(LayoutProblem::TooLarge(id))?;
                    let depths = self
                        .contained(id)
                        .iter()
                        .map(|part| self.layouts[part.index()].depth);
                    layout.depth = depths.max().map_or(0, |deepest| deepest + 1);
                    if layout.depth > MAX_DEPTH {
                        return Err(LayoutProblem::TooDeep(id));
                    }
                    self.layouts[id.index()] = layout;
                    states[id.index()] = State::Done;
                    stack.pop();
                }
                State::New => {
                    states[id.index()] = State::Open;
                    for &part in self.contained(id) {
                        match states[part.index()] {
                            State::Open => return Err(LayoutProblem::Recursive(part)),
                            State::New => stack.push(part),
                            State::Done => {}
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the types that the layout of `id` depends on.
    fn contained(&self, id: TypeId) -> &[TypeId] {
        match &self.types[id.index()] {
            Type::Array { element, .. } | Type::Vector { element, .. } => {
                std::slice::from_ref(element)
            }
            Type::Struct(body) => &body.fields,
            _ => &[],
        }
    }

    fn layout_of(&self, id: TypeId) -> Option<Layout> {
        let plain = |size: u64, align: u64| {
            Some(Layout {
                store_size: size,
                align,
                ..Layout::default()
            })
        };
        match &self.types[id.index()] {
            Type::Void | Type::Label | Type::Metadata | Type::Token | Type::Function { .. } => {
                plain(0, 1)
            }
            Type::Other(_) => plain(0, 1),
            Type::Integer(width) => {
                plain(u64::from(*width).div_ceil(8), self.integer_align(*width))
            }
            Type::Half | Type::BFloat => plain(2, 2),
            Type::Float => plain(4, 4),
            Type::Double => plain(8, self.data_layout.i64_align),
            Type::X86Fp80 => plain(10, self.data_layout.f80_align),
            Type::Fp128 | Type::PpcFp128 => plain(16, 16),
            Type::Pointer {
                address_space: 270 | 271,
            } => plain(4, 4),
            Type::Pointer { .. } => {
                plain(self.data_layout.pointer_size, self.data_layout.pointer_size)
            }
            Type::Array { element, count } => plain(
                self.size_of(*element).checked_mul(*count)?,
                self.abi_align(*element),
            ),
            Type::Vector { element, count, .. } => {
                let bits = self.bits_of(*element)?.checked_mul(u64::from(*count))?;
                let bytes = bits.div_ceil(8);
                plain(bytes, bytes.max(1).checked_next_power_of_two()?)
            }
            Type::Struct(body) => self.struct_layout(body),
        }
    }

    fn integer_align(&self, width: u32) -> u64 {
        match width {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            33..=64 => self.data_layout.i64_align,
            _ => self.data_layout.i128_align,
        }
    }

    fn struct_layout(&self, body: &StructType) -> Option<Layout> {
        let mut offsets = Vec::with_capacity(body.fields.len());
        let mut end = 0u64;
        let mut align = 1;
        for &field in &body.fields {
            if !body.packed {
                align = align.max(self.abi_align(field));
                end = end.checked_next_multiple_of(self.abi_align(field))?;
            }
            offsets.push(end);
            end = end.checked_add(self.size_of(field))?;
        }
        let store_size = end.checked_next_multiple_of(align)?;
        Some(Layout {
            store_size,
            align,
            offsets: offsets.into(),
            depth: 0,
        })
    }

    /// Returns the width in bits of a scalar or vector of scalars, `None` on overflow.
    fn bits_of(&self, id: TypeId) -> Option<u64> {
        match &self.types[id.index()] {
            Type::Integer(width) => Some(u64::from(*width)),
            Type::X86Fp80 => Some(80),
            _ => self.store_size(id).checked_mul(8),
        }
    }

    /// Returns the allocation size in bytes: the distance between two array elements of this type
    /// (`sizeof`).
    #[inline]
    pub fn size_of(&self, id: TypeId) -> u64 {
        let layout = &self.layouts[id.index()];
        layout
            .store_size
            .checked_next_multiple_of(layout.align.max(1))
            .unwrap_or(u64::MAX)
    }

    /// Returns the number of bytes that a load or store of this type accesses.
    #[inline]
    pub fn store_size(&self, id: TypeId) -> u64 {
        self.layouts[id.index()].store_size
    }

    /// Returns the ABI alignment in bytes.
    #[inline]
    pub fn abi_align(&self, id: TypeId) -> u64 {
        self.layouts[id.index()].align.max(1)
    }

    /// Returns the byte offset of field `field` of struct `id`; `None` if there is no such field.
    #[inline]
    pub fn field_offset(&self, id: TypeId, field: usize) -> Option<u64> {
        self.layouts[id.index()].offsets.get(field).copied()
    }

    /// Returns the width in bits of an integer, float, pointer or vector; 0 for types without a
    /// width.
    pub fn bit_width(&self, id: TypeId) -> u64 {
        match &self.types[id.index()] {
            Type::Vector { element, count, .. } => self
                .bits_of(*element)
                .unwrap_or(0)
                .saturating_mul(u64::from(*count)),
            _ => self.bits_of(id).unwrap_or(0),
        }
    }

    /// Returns the type of element `index` of an aggregate or vector.
    pub fn element(&self, id: TypeId, index: u64) -> Option<TypeId> {
        match &self.types[id.index()] {
            // A GEP index is not bounded by the length of the array.
            Type::Array { element, .. } | Type::Vector { element, .. } => Some(*element),
            Type::Struct(body) => body.fields.get(usize::try_from(index).ok()?).copied(),
            _ => None,
        }
    }

    /// Returns the number of elements of an aggregate or vector.
    pub fn element_count(&self, id: TypeId) -> Option<u64> {
        match &self.types[id.index()] {
            Type::Array { count, .. } => Some(*count),
            Type::Vector { count, .. } => Some(u64::from(*count)),
            Type::Struct(body) => Some(body.fields.len() as u64),
            _ => None,
        }
    }

    /// Returns the pointer type of an address space, if the module uses it.
    pub fn pointer(&self, address_space: u32) -> Option<TypeId> {
        self.interned.get(&Type::Pointer { address_space }).copied()
    }

    /// Returns whether the type is a pointer.
    pub fn is_pointer(&self, id: TypeId) -> bool {
        matches!(self.types[id.index()], Type::Pointer { .. })
    }

    /// Returns whether the type is a floating-point scalar.
    pub fn is_float(&self, id: TypeId) -> bool {
        matches!(
            self.types[id.index()],
            Type::Half
                | Type::BFloat
                | Type::Float
                | Type::Double
                | Type::X86Fp80
                | Type::Fp128
                | Type::PpcFp128
        )
    }

    /// Returns the lane type of a vector, or the type itself.
    pub fn scalar(&self, id: TypeId) -> TypeId {
        match self.types[id.index()] {
            Type::Vector { element, .. } => element,
            _ => id,
        }
    }
}

/// Progress of computing the layout of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(fields: &[TypeId], packed: bool) -> Type {
        Type::Struct(StructType {
            name: None,
            fields: fields.into(),
            packed,
            opaque: false,
        })
    }

    #[test]
    fn structs_are_laid_out_as_by_the_abi() {
        let mut types = TypeTable::default();
        let byte = types.intern(Type::Integer(8));
        let wide = types.intern(Type::Integer(64));
        let odd = types.intern(Type::Integer(33));
        let float = types.intern(Type::X86Fp80);
        let vector = types.intern(Type::Vector {
            element: byte,
            count: 3,
            scalable: false,
        });
        let plain = types.intern(structure(&[byte, wide, byte, float], false));
        let packed = types.intern(structure(&[byte, wide, float], true));
        let rows = types.intern(Type::Array {
            element: plain,
            count: 3,
        });
        types.compute_layouts().unwrap();
        let offsets = |id, count| {
            (0..count)
                .map(|f| types.field_offset(id, f))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            offsets(plain, 5),
            [Some(0), Some(8), Some(16), Some(32), None]
        );
        assert_eq!((types.size_of(plain), types.abi_align(plain)), (48, 16));
        assert_eq!(offsets(packed, 3), [Some(0), Some(1), Some(9)]);
        assert_eq!((types.size_of(packed), types.abi_align(packed)), (25, 1));
        assert_eq!(types.size_of(rows), 144);
        assert_eq!(
            (
                types.store_size(odd),
                types.size_of(odd),
                types.bit_width(odd)
            ),
            (5, 8, 33)
        );
        assert_eq!((types.store_size(float), types.size_of(float)), (10, 16));
        assert_eq!((types.store_size(vector), types.size_of(vector)), (3, 4));
    }

    #[test]
    fn equal_types_are_one() {
        let mut types = TypeTable::default();
        let first = types.intern(Type::Integer(32));
        let second = types.intern(Type::Integer(32));
        assert_eq!(first, second);
        let a = types.intern(structure(&[first], false));
        let b = types.intern(structure(&[second], false));
        assert_eq!(a, b);
        assert_ne!(a, types.intern(structure(&[first], true)));
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let mut types = TypeTable::default();
        let name = Some("loop".into());
        let body = StructType {
            name,
            fields: Box::default(),
            packed: false,
            opaque: false,
        };
        let own = types.intern(Type::Struct(body.clone()));
        types.set_struct_body(
            own,
            StructType {
                fields: Box::new([own]),
                ..body
            },
        );
        assert_eq!(types.compute_layouts(), Err(LayoutProblem::Recursive(own)));
        let mut types = TypeTable::default();
        let wide = types.intern(Type::Integer(64));
        let huge = types.intern(Type::Array {
            element: wide,
            count: u64::MAX / 2,
        });
        assert_eq!(types.compute_layouts(), Err(LayoutProblem::TooLarge(huge)));
    }
}
