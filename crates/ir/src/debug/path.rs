//! Source-level data paths: from a global variable through fields, elements and pointers to data.

use super::{DebugField, DebugInfo, DebugTypeId, DebugTypeKind, MAX_NESTING, Variable};
use crate::module::GlobalId;

/// The location of the data that a path such as `server.table.count` denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLocation {
    /// The variable at the start of the path.
    pub global: GlobalId,
    /// Locations of the pointers on the path, as offsets in bits: the first from the start of the
    /// variable, each other one from the target of the previous pointer.
    pub through: Vec<u64>,
    /// Offset in bits from the target of the last pointer, or from the start of the variable; a
    /// multiple of 8 except for bit-fields.
    pub offset_bits: u64,
    /// Size in bits.
    pub size_bits: u64,
    /// Type, if known from debug information. Inside a multi-dimensional array it is the type of
    /// the innermost element.
    pub ty: Option<DebugTypeId>,
}

/// Why a path denotes no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is not written as `name.field[index]`.
    #[error("`{0}` is not a path like name.field[3]")]
    Syntax(String),
    /// No variable has this name.
    #[error("no global variable is named `{name}`{}", suggestion(.nearest))]
    NoVariable {
        /// The name.
        name: String,
        /// Similar names, the closest first.
        nearest: Vec<String>,
    },
    /// Several variables have this name.
    #[error("several variables are named `{name}`; put its scope in front: {choices}")]
    Ambiguous {
        /// The name.
        name: String,
        /// The candidates.
        choices: String,
    },
    /// The variable exists in the source but not in the program.
    #[error("the optimiser has left `{0}` out of the program, or keeps it in another form")]
    Gone(String),
    /// A record has no such field.
    #[error("`{ty}` has no field `{field}`; it has: {fields}")]
    NoField {
        /// The record.
        ty: String,
        /// The requested field.
        field: String,
        /// The existing fields.
        fields: String,
    },
    /// An index is out of range.
    #[error("index {index} is beyond the {count} elements")]
    Index {
        /// The index.
        index: u64,
        /// Number of elements.
        count: u64,
    },
    /// A step does not fit the type.
    #[error("`{step}` cannot follow {ty}, which is {what}")]
    Mismatch {
        /// The step.
        step: String,
        /// The type.
        ty: String,
        /// The kind of that type.
        what: &'static str,
    },
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; there is {}", names.join(", ")),
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Pointed(String),
    Index(u64),
}

/// Finds the data that `path` denotes, such as `server.table.items[2]` or `server.first->key`. The
/// name may be qualified by its scope (`function::name`, `namespace::name`).
pub fn find_path(module: &crate::Module, path: &str) -> Result<DataLocation, PathError> {
    let (name, steps) = parse_path(path)?;
    let parts = find_variable(module, name)?;
    let Some(variable) = parts.first() else {
        return place_of_symbol(module, name, &steps);
    };
    let debug = &module.debug;
    let mut walk = Walk {
        debug,
        ty: variable.ty,
        offset_bits: 0,
        size_bits: 0,
        dimension: 0,
        through: Vec::new(),
    };
    walk.size_bits = walk.ty.map_or(0, |ty| debug.size_bits(ty));
    for step in &steps {
        match step {
            Step::Field(name) => walk.field(name)?,
            Step::Pointed(name) => {
                walk.follow(|| format!("->{name}"))?;
                walk.field(name)?;
            }
            Step::Index(index) => walk.index(*index)?,
        }
    }
    let Walk {
        ty,
        offset_bits,
        size_bits,
        through,
        ..
    } = walk;
    let mut place = DataLocation {
        global: variable.global,
        through,
        offset_bits,
        size_bits,
        ty,
    };
    // The start must be inside the variable, wherever pointers lead.
    let (start_bits, needed_bits) = match place.through.first() {
        Some(pointer) => (*pointer, 64),
        None => (offset_bits, size_bits),
    };
    let mut starts = parts.iter().filter_map(|part| {
        let start = start_in(module, part, start_bits, needed_bits)?;
        Some((part.global, start))
    });
    let Some((global, start)) = starts.next() else {
        return Err(PathError::Gone(path.to_owned()));
    };
    place.global = global;
    match place.through.first_mut() {
        Some(pointer) => *pointer = start,
        None => place.offset_bits = start,
    }
    Ok(place)
}

/// Returns the position of bits of a variable in the part that the program has of it, if they are
/// there.
fn start_in(
    module: &crate::Module,
    part: &Variable,
    start_bits: u64,
    size_bits: u64,
) -> Option<u64> {
    let (first, count) = part.fragment.unwrap_or((0, u64::MAX));
    let start = start_bits.checked_sub(first)?;
    let is_in_part = start.checked_add(size_bits)? <= count;
    let start = part.offset.checked_mul(8)?.checked_add(start)?;
    let there = module.types.size_of(module.globals[part.global.index()].ty);
    let is_there = start.checked_add(size_bits)? <= there.saturating_mul(8);
    (is_in_part && is_there && !part.is_computed).then_some(start)
}

/// Splits `scope::name.field[3]` into `scope::name` and the steps.
fn parse_path(path: &str) -> Result<(&str, Vec<Step>), PathError> {
    let syntax = || PathError::Syntax(path.to_owned());
    let (name, mut rest) = path.split_at(name_end(path));
    if name.is_empty() {
        return Err(syntax());
    }
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let field = rest.strip_prefix('.');
        let pointed = rest.strip_prefix("->");
        if let Some(after) = field.or(pointed) {
            let (name, more) = after.split_at(name_end(after));
            if name.is_empty() {
                return Err(syntax());
            }
            steps.push(match pointed {
                Some(_) => Step::Pointed(name.to_owned()),
                None => Step::Field(name.to_owned()),
            });
            rest = more;
        } else {
            let after = rest.strip_prefix('[').ok_or_else(syntax)?;
            let (index, more) = after.split_once(']').ok_or_else(syntax)?;
            steps.push(Step::Index(index.trim().parse().map_err(|_| syntax())?));
            rest = more;
        }
    }
    Ok((name, steps))
}

/// Returns the end of a name.
fn name_end(text: &str) -> usize {
    let ends = [text.find(['.', '[']), text.find("->")];
    ends.into_iter().flatten().min().unwrap_or(text.len())
}

/// Returns variables with similar names, the closest first.
fn nearest(module: &crate::Module, name: &str) -> Vec<String> {
    const MOST: usize = 3;
    let farthest = name.chars().count().div_ceil(3);
    let names = module.debug.variables.iter().map(|one| &*one.name);
    let mut found: Vec<(usize, &str)> = names
        .map(|other| (distance(name, other), other))
        .filter(|(far, _)| *far <= farthest)
        .collect();
    found.sort_unstable();
    found.dedup();
    let found = found.into_iter().take(MOST);
    found.map(|(_, name)| format!("`{name}`")).collect()
}

/// Returns the edit distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *theirs);
            diagonal = row[to + 1];
            row[to + 1] = changed.min(row[to] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// Returns the variable with this name, as all its fragments, if debug information has one.
fn find_variable<'a>(
    module: &'a crate::Module,
    name: &str,
) -> Result<Vec<&'a Variable>, PathError> {
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
    // A variable outside of all functions and namespaces takes precedence over function statics.
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
    let is_one = choice
        .windows(2)
        .all(|two| two[0].global == two[1].global || two[0].declaration == two[1].declaration);
    match is_one {
        true => Ok(choice),
        false => {
            let named = choice.iter().map(|v| format!("{}::{}", v.scope, v.name));
            let choices = named.collect::<Vec<_>>().join(", ");
            Err(PathError::Ambiguous {
                name: name.to_owned(),
                choices,
            })
        }
    }
}

/// Returns the location of a symbol without debug information, which can only be named as a whole.
fn place_of_symbol(
    module: &crate::Module,
    name: &str,
    steps: &[Step],
) -> Result<DataLocation, PathError> {
    match (module.global_named(name), steps) {
        (Some(global), []) => {
            let size = module.types.size_of(module.globals[global.index()].ty);
            Ok(DataLocation {
                global,
                through: Vec::new(),
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
        (None, _) => Err(PathError::NoVariable {
            name: name.to_owned(),
            nearest: nearest(module, name),
        }),
    }
}

/// A walk from a variable to one of its parts.
struct Walk<'a> {
    debug: &'a DebugInfo,
    ty: Option<DebugTypeId>,
    offset_bits: u64,
    size_bits: u64,
    /// Number of dimensions of the array `ty` that have been indexed.
    dimension: usize,
    /// Locations of the pointers on the path.
    through: Vec<u64>,
}

impl Walk<'_> {
    fn mismatch(&self, step: String) -> PathError {
        let ty = self
            .ty
            .map(|ty| &self.debug.types[self.debug.resolved(ty).index()]);
        let what = match ty.map(|ty| &ty.kind) {
            None => "of an unknown type",
            Some(DebugTypeKind::Pointer { .. }) => "a pointer; `->` follows it",
            Some(DebugTypeKind::Array { .. }) => "an array",
            Some(DebugTypeKind::Record { .. }) => "a struct or union",
            Some(_) => "a plain value",
        };
        let ty = match ty {
            Some(ty) if !ty.name.is_empty() => ty.name.to_string(),
            _ => "this".to_owned(),
        };
        PathError::Mismatch { step, ty, what }
    }

    /// Dereferences a pointer.
    fn follow(&mut self, step: impl Fn() -> String) -> Result<(), PathError> {
        let pointer = self.ty.filter(|_| self.dimension == 0);
        let pointer = pointer.map(|ty| &self.debug.types[self.debug.resolved(ty).index()].kind);
        let Some(DebugTypeKind::Pointer { target }) = pointer else {
            return Err(self.mismatch(step()));
        };
        self.through.push(self.offset_bits);
        self.offset_bits = 0;
        self.ty = *target;
        self.size_bits = target.map_or(0, |ty| self.debug.size_bits(ty));
        Ok(())
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
        // Rust names the fields of tuples `__0`, `__1`, and so on.
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

/// Returns a field by name, also within anonymous members and base classes.
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
        let (name, steps) = parse_path("a->b.c->d").unwrap();
        let pointed = |name: &str| Step::Pointed(name.into());
        assert_eq!(name, "a");
        assert_eq!(steps, [pointed("b"), field("c"), pointed("d")]);
        for bad in [
            "", ".a", "a.", "a..b", "a[", "a[x]", "a[1", "a[1]b", "a[-1]", "a->", "->a",
        ] {
            assert!(parse_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_as_far_apart_as_they_have_different_letters() {
        for (one, other, far) in [
            ("count", "count", 0),
            ("count", "cuont", 2),
            ("count", "counts", 1),
            ("", "abc", 3),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (far, far));
        }
    }
}
