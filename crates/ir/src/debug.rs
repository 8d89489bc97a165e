//! Debug information: source locations, subprograms, global variables and their types.

use crate::module::{GlobalId, LocId};

/// Declares one index type of the debug tables.
macro_rules! debug_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in its table.
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
    /// The whole path, as far as it is known.
    pub fn path(&self) -> String {
        if self.directory.is_empty() || self.name.starts_with('/') {
            return self.name.to_string();
        }
        format!("{}/{}", self.directory.trim_end_matches('/'), self.name)
    }
}

/// A function of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subprogram {
    /// Name in the source.
    pub name: Box<str>,
    /// Symbol name where it differs; else empty.
    pub linkage_name: Box<str>,
    /// File.
    pub file: Option<FileId>,
    /// Line.
    pub line: u32,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// File.
    pub file: Option<FileId>,
    /// Line, 0 for code that belongs to none.
    pub line: u32,
    /// Column, 0 where unknown.
    pub column: u32,
    /// The function of the source, inlined or not.
    pub subprogram: Option<SubprogramId>,
    /// Where that function was inlined, if it was; the chain ends in the function that holds the
    /// instruction. It has no cycle.
    pub inlined_at: Option<LocId>,
}

/// A global variable of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name in the source.
    pub name: Box<str>,
    /// Symbol name where it differs; else empty.
    pub linkage_name: Box<str>,
    /// Enclosing function, where it is a static of one, or namespace path; else empty.
    pub scope: Box<str>,
    /// File.
    pub file: Option<FileId>,
    /// Line.
    pub line: u32,
    /// Type.
    pub ty: Option<DebugTypeId>,
    /// The variable in the program.
    pub global: GlobalId,
    /// Byte offset within it.
    pub offset: u64,
}

/// A type of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugType {
    /// Name, empty where it has none.
    pub name: Box<str>,
    /// Size in bits.
    pub size_bits: u64,
    /// What kind of type.
    pub kind: DebugTypeKind,
}

/// What kind of type of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugTypeKind {
    /// A number, by its DWARF encoding (`DW_ATE_*`).
    Basic { encoding: u32 },
    /// A pointer or reference.
    Pointer { target: Option<DebugTypeId> },
    /// A name or qualifier for another type, by its DWARF tag.
    Modifier {
        tag: u32,
        target: Option<DebugTypeId>,
    },
    /// A struct, class or union.
    Record {
        union: bool,
        fields: Vec<DebugField>,
    },
    /// An array; a count per dimension, `None` where unknown.
    Array {
        element: Option<DebugTypeId>,
        counts: Vec<Option<u64>>,
    },
    /// An enumeration.
    Enum {
        base: Option<DebugTypeId>,
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

/// Where a path such as `server.table.count` leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The variable that holds it.
    pub global: GlobalId,
    /// Distance from the start of the variable in bits; a multiple of 8 except for bit-fields.
    pub offset_bits: u64,
    /// Size in bits.
    pub size_bits: u64,
    /// Type, where debug information knows it. In the middle of an array of several dimensions it
    /// is the type of the innermost element.
    pub ty: Option<DebugTypeId>,
}

/// Why a path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is not written as `name.field[index]`.
    #[error("`{0}` is not a path like name.field[3]")]
    Syntax(String),
    /// No variable has this name.
    #[error("no global variable is named `{0}`")]
    NoVariable(String),
    /// Several variables have this name.
    #[error("several variables are named `{name}`; put its scope in front: {choices}")]
    Ambiguous {
        /// The name.
        name: String,
        /// What could be meant.
        choices: String,
    },
    /// A record has no such field.
    #[error("`{ty}` has no field `{field}`; it has: {fields}")]
    NoField {
        /// The record.
        ty: String,
        /// The field asked for.
        field: String,
        /// The fields that there are.
        fields: String,
    },
    /// An index is beyond the end.
    #[error("index {index} is beyond the {count} elements")]
    Index {
        /// The index.
        index: u64,
        /// Number of elements.
        count: u64,
    },
    /// A step does not fit the type.
    #[error("`{step}` cannot follow `{ty}`, which is {what}")]
    Mismatch {
        /// The step.
        step: String,
        /// The type.
        ty: String,
        /// What kind of type that is.
        what: &'static str,
    },
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(u64),
}

/// Anonymous members and qualifiers are followed at most so deep.
const MAX_NESTING: u32 = 64;

/// Finds the place that `path` names, such as `server.table.items[2].key`. The name may be
/// preceded by its scope (`function::name`, `namespace::name`).
pub fn find_path(module: &crate::Module, path: &str) -> Result<Place, PathError> {
    let (name, steps) = parse_path(path)?;
    let Some(variable) = find_variable(module, name)? else {
        return place_of_symbol(module, name, &steps);
    };
    let debug = &module.debug;
    let start = variable.offset.saturating_mul(8);
    let mut walk = Walk {
        debug,
        ty: variable.ty,
        offset_bits: start,
        size_bits: 0,
        dimension: 0,
    };
    walk.size_bits = walk.ty.map_or(0, |ty| debug.size_bits(ty));
    for step in &steps {
        match step {
            Step::Field(name) => walk.field(name)?,
            Step::Index(index) => walk.index(*index)?,
        }
    }
    let Walk {
        ty,
        offset_bits,
        size_bits,
        ..
    } = walk;
    Ok(Place {
        global: variable.global,
        offset_bits,
        size_bits,
        ty,
    })
}

/// Splits `scope::name.field[3]` into `scope::name` and the steps.
fn parse_path(path: &str) -> Result<(&str, Vec<Step>), PathError> {
    let syntax = || PathError::Syntax(path.to_owned());
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    if name.is_empty() {
        return Err(syntax());
    }
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return Err(syntax());
            }
            steps.push(Step::Field(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let after = rest.strip_prefix('[').ok_or_else(syntax)?;
            let (index, more) = after.split_once(']').ok_or_else(syntax)?;
            steps.push(Step::Index(index.trim().parse().map_err(|_| syntax())?));
            rest = more;
        }
    }
    Ok((name, steps))
}

/// The variable with this name, where debug information has one.
fn find_variable<'a>(
    module: &'a crate::Module,
    name: &str,
) -> Result<Option<&'a Variable>, PathError> {
    let (scope, plain) = match name.rsplit_once("::") {
        Some((scope, plain)) => (Some(scope), plain),
        None => (None, name),
    };
    let fits = |variable: &&Variable| {
        let in_scope = scope.is_none_or(|scope| {
            let rest = variable.scope.strip_suffix(scope);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        });
        (&*variable.name == plain && in_scope) || &*variable.linkage_name == name
    };
    let found: Vec<&Variable> = module.debug.variables.iter().filter(fits).collect();
    // A variable outside of all functions and namespaces wins over statics of functions.
    let outer: Vec<_> = found
        .iter()
        .copied()
        .filter(|found| found.scope.is_empty())
        .collect();
    let choice = if scope.is_none() && !outer.is_empty() {
        outer
    } else {
        found
    };
    match &choice[..] {
        [] => Ok(None),
        [first, others @ ..] if others.iter().all(|other| other.global == first.global) => {
            Ok(Some(first))
        }
        _ => {
            let named = choice.iter().map(|v| format!("{}::{}", v.scope, v.name));
            let choices = named.collect::<Vec<_>>().join(", ");
            Err(PathError::Ambiguous {
                name: name.to_owned(),
                choices,
            })
        }
    }
}

/// A symbol without debug information: its whole is all that can be named.
fn place_of_symbol(module: &crate::Module, name: &str, steps: &[Step]) -> Result<Place, PathError> {
    match (module.global_named(name), steps) {
        (Some(global), []) => {
            let size = module.types.size_of(module.globals[global.index()].ty);
            Ok(Place {
                global,
                offset_bits: 0,
                size_bits: size.saturating_mul(8),
                ty: None,
            })
        }
        (Some(_), [step, ..]) => Err(PathError::Mismatch {
            step: format!("{step:?}"),
            ty: name.to_owned(),
            what: "a variable without debug information",
        }),
        (None, _) => Err(PathError::NoVariable(name.to_owned())),
    }
}

impl DebugInfo {
    /// A location and the calls that it was inlined through, from the inside out.
    pub fn chain(&self, location: LocId) -> impl Iterator<Item = &Location> {
        let first = self.locations.get(location.index());
        std::iter::successors(first, |inner| self.locations.get(inner.inlined_at?.index()))
    }

    /// Size of a type in bits, through names and qualifiers.
    pub fn size_bits(&self, ty: DebugTypeId) -> u64 {
        let ty = self.resolved(ty);
        self.types[ty.index()].size_bits
    }

    /// The type behind names and qualifiers.
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

/// A walk from a variable inwards.
struct Walk<'a> {
    debug: &'a DebugInfo,
    ty: Option<DebugTypeId>,
    offset_bits: u64,
    size_bits: u64,
    /// How many dimensions of the array `ty` have been indexed.
    dimension: usize,
}

impl Walk<'_> {
    fn mismatch(&self, step: String) -> PathError {
        let ty = self
            .ty
            .map(|ty| &self.debug.types[self.debug.resolved(ty).index()]);
        let what = match ty.map(|ty| &ty.kind) {
            None => "of an unknown type",
            Some(DebugTypeKind::Pointer { .. }) => "a pointer, and paths stay within a variable",
            Some(DebugTypeKind::Array { .. }) => "an array",
            Some(DebugTypeKind::Record { .. }) => "a struct or union",
            Some(_) => "a plain value",
        };
        let ty = ty.map_or(String::new(), |ty| ty.name.to_string());
        PathError::Mismatch { step, ty, what }
    }

    fn field(&mut self, name: &str) -> Result<(), PathError> {
        let resolved = self
            .ty
            .filter(|_| self.dimension == 0)
            .map(|ty| self.debug.resolved(ty));
        let Some(record) = resolved.map(|ty| &self.debug.types[ty.index()]) else {
            return Err(self.mismatch(format!(".{name}")));
        };
        let DebugTypeKind::Record { fields, .. } = &record.kind else {
            return Err(self.mismatch(format!(".{name}")));
        };
        // Rust numbers the fields of tuples.
        let tuple = format!("__{name}");
        let found = find_field(self.debug, fields, name, 0)
            .or_else(|| find_field(self.debug, fields, &tuple, 0));
        let Some((field, offset_bits)) = found else {
            let fields: Vec<&str> = fields
                .iter()
                .map(|field| &*field.name)
                .filter(|name| !name.is_empty())
                .collect();
            return Err(PathError::NoField {
                ty: record.name.to_string(),
                field: name.to_owned(),
                fields: fields.join(", "),
            });
        };
        self.offset_bits = self.offset_bits.saturating_add(offset_bits);
        self.ty = field.ty;
        self.size_bits = match field.size_bits {
            0 => field.ty.map_or(0, |ty| self.debug.size_bits(ty)),
            size => size,
        };
        Ok(())
    }

    fn index(&mut self, index: u64) -> Result<(), PathError> {
        let step = || format!("[{index}]");
        let Some(array) = self.ty.map(|ty| self.debug.resolved(ty)) else {
            return Err(self.mismatch(step()));
        };
        let DebugTypeKind::Array { element, counts } = &self.debug.types[array.index()].kind else {
            return Err(self.mismatch(step()));
        };
        let count = counts.get(self.dimension).copied().flatten();
        if let Some(count) = count.filter(|&count| index >= count) {
            return Err(PathError::Index { index, count });
        }
        let inner = counts.get(self.dimension + 1..).unwrap_or(&[]);
        let element_bits = element.map_or(0, |element| self.debug.size_bits(element));
        let inner_bits = inner.iter().fold(element_bits, |bits, count| {
            bits.saturating_mul(count.unwrap_or(0))
        });
        self.offset_bits = self
            .offset_bits
            .saturating_add(inner_bits.saturating_mul(index));
        self.size_bits = inner_bits;
        if inner.is_empty() {
            self.ty = *element;
            self.dimension = 0;
        } else {
            self.ty = Some(array);
            self.dimension += 1;
        }
        Ok(())
    }
}

/// A field by name, also within anonymous members and base classes.
fn find_field<'a>(
    debug: &'a DebugInfo,
    fields: &'a [DebugField],
    name: &str,
    depth: u32,
) -> Option<(&'a DebugField, u64)> {
    if let Some(field) = fields.iter().find(|field| &*field.name == name) {
        return Some((field, field.offset_bits));
    }
    if depth > MAX_NESTING {
        return None;
    }
    fields
        .iter()
        .filter(|field| field.name.is_empty())
        .find_map(|outer| {
            let ty = debug.resolved(outer.ty?);
            let DebugTypeKind::Record { fields, .. } = &debug.types[ty.index()].kind else {
                return None;
            };
            let (field, offset) = find_field(debug, fields, name, depth + 1)?;
            Some((field, offset.saturating_add(outer.offset_bits)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_into_steps() {
        let (name, steps) = parse_path("a::b.c[3][4].d").unwrap();
        assert_eq!(name, "a::b");
        let field = |name: &str| Step::Field(name.into());
        assert_eq!(
            steps,
            [field("c"), Step::Index(3), Step::Index(4), field("d")]
        );
        for bad in [
            "", ".a", "a.", "a..b", "a[", "a[x]", "a[1", "a[1]b", "a[-1]",
        ] {
            assert!(parse_path(bad).is_err(), "{bad}");
        }
    }

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
