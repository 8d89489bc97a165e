//! Debug information: source locations, subprograms, global variables and their types.

mod path;

pub use path::{DataLocation, PathError, find_path};

use crate::module::{GlobalId, LocId};

/// Declares one index type of the debug tables.
macro_rules! debug_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position in the table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

debug_id!(
    /// A source file in [`DebugInfo::files`].
    FileId
);
debug_id!(
    /// A function of the source in [`DebugInfo::subprograms`].
    SubprogramId
);
debug_id!(
    /// A type of the source in [`DebugInfo::types`].
    DebugTypeId
);

/// All debug information of a module.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo {
    /// Source files.
    pub files: Vec<SourceFile>,
    /// Compile units.
    pub units: Vec<CompileUnit>,
    /// Functions of the source.
    pub subprograms: Vec<Subprogram>,
    /// Source locations of instructions, each once.
    pub locations: Vec<Location>,
    /// Global variables of the source.
    pub variables: Vec<Variable>,
    /// Types of the source that global variables reach.
    pub types: Vec<DebugType>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceFile {
    /// Directory that `name` is relative to; may be empty.
    pub directory: Box<str>,
    /// File name or path.
    pub name: Box<str>,
}

impl SourceFile {
    /// Returns the whole path, as far as known.
    pub fn path(&self) -> String {
        if self.directory.is_empty() || self.name.starts_with('/') {
            return self.name.to_string();
        }
        format!("{}/{}", self.directory.trim_end_matches('/'), self.name)
    }
}

/// A compile unit: a file that was compiled, with all files that it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompileUnit {
    /// The file of the unit.
    pub file: Option<FileId>,
    /// Whether the compiler optimised the unit.
    pub optimised: bool,
}

/// A function of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subprogram {
    /// Name in the source.
    pub name: Box<str>,
    /// Symbol name if it differs; else empty.
    pub linkage_name: Box<str>,
    /// File.
    pub file: Option<FileId>,
    /// Line.
    pub line: u32,
}

/// A source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// File.
    pub file: Option<FileId>,
    /// Line; 0 for code without a line.
    pub line: u32,
    /// Column; 0 if unknown.
    pub column: u32,
    /// The function of the source, inlined or not.
    pub subprogram: Option<SubprogramId>,
    /// The call site into which that function was inlined, if it was. The chain ends in the
    /// function that contains the instruction and has no cycle.
    pub inlined_at: Option<LocId>,
}

/// A global variable of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name in the source.
    pub name: Box<str>,
    /// Symbol name if it differs; else empty.
    pub linkage_name: Box<str>,
    /// Enclosing function of a static variable, or namespace path; else empty.
    pub scope: Box<str>,
    /// File.
    pub file: Option<FileId>,
    /// Line.
    pub line: u32,
    /// Type.
    pub ty: Option<DebugTypeId>,
    /// The variable in the program.
    pub global: GlobalId,
    /// Byte offset within the global.
    pub offset: u64,
    /// If the optimiser split the variable: the bits that exist, as first bit and count.
    pub fragment: Option<(u64, u64)>,
    /// The number of the variable's declaration, which all fragments share.
    pub declaration: u64,
    /// Whether the value must be computed from the stored data.
    pub is_computed: bool,
}

/// A type of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugType {
    /// Name; empty if it has none.
    pub name: Box<str>,
    /// Size in bits.
    pub size_bits: u64,
    /// The kind of type.
    pub kind: DebugTypeKind,
}

/// The kind of a source type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugTypeKind {
    /// A number, by its DWARF encoding (`DW_ATE_*`).
    Basic {
        /// The DWARF encoding.
        encoding: u32,
    },
    /// A pointer or reference.
    Pointer {
        /// The type pointed to.
        target: Option<DebugTypeId>,
    },
    /// A name or qualifier for another type, by its DWARF tag.
    Modifier {
        /// The DWARF tag.
        tag: u32,
        /// The underlying type.
        target: Option<DebugTypeId>,
    },
    /// A struct, class or union.
    Record {
        /// Whether it is a union.
        union: bool,
        /// The fields.
        fields: Vec<DebugField>,
    },
    /// An array, with a count per dimension; `None` if unknown.
    Array {
        /// The element type.
        element: Option<DebugTypeId>,
        /// Number of elements per dimension.
        counts: Vec<Option<u64>>,
    },
    /// An enumeration.
    Enum {
        /// The underlying integer type.
        base: Option<DebugTypeId>,
        /// Names and values.
        values: Vec<(Box<str>, i64)>,
    },
    /// A function type, or something else that has no fields.
    Opaque,
}

/// A field of a record; a base class is a field without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugField {
    /// Name, empty for a base class or an anonymous member.
    pub name: Box<str>,
    /// Type.
    pub ty: Option<DebugTypeId>,
    /// Offset in bits from the start of the record.
    pub offset_bits: u64,
    /// Size in bits.
    pub size_bits: u64,
}

/// Maximum number of typedefs and qualifiers that are followed.
const MAX_NESTING: u32 = 64;

impl DebugInfo {
    /// Returns the path of a source file.
    pub fn path(&self, file: FileId) -> Option<String> {
        Some(self.files.get(file.index())?.path())
    }

    /// Returns a location and the call sites through which it was inlined, innermost first.
    pub fn chain(&self, location: LocId) -> impl Iterator<Item = &Location> {
        let first = self.locations.get(location.index());
        std::iter::successors(first, |inner| self.locations.get(inner.inlined_at?.index()))
    }

    /// Returns the size of a type in bits, through typedefs and qualifiers.
    pub fn size_bits(&self, ty: DebugTypeId) -> u64 {
        let ty = self.resolved(ty);
        self.types[ty.index()].size_bits
    }

    /// Returns the type behind typedefs and qualifiers.
    pub fn resolved(&self, mut ty: DebugTypeId) -> DebugTypeId {
        for _ in 0..MAX_NESTING {
            match self.types[ty.index()].kind {
                DebugTypeKind::Modifier {
                    target: Some(target),
                    ..
                } => ty = target,
                _ => break,
            }
        }
        ty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_names_need_no_directory() {
        let file = |directory: &str, name: &str| SourceFile {
            directory: directory.into(),
            name: name.into(),
        };
        assert_eq!(file("/src/", "a.c").path(), "/src/a.c");
        assert_eq!(file("/src", "/b/a.c").path(), "/b/a.c");
        assert_eq!(file("", "a.c").path(), "a.c");
    }
}
