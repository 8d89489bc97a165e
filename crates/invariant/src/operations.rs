//! The operations of the language by name: their signatures, and the alternatives to suggest for a
//! wrong name.

use crate::code::{Application, Operation};
use crate::syntax::Type;

/// The parameters of an operation besides its object, and its result.
pub(crate) struct Signature {
    pub operation: Operation,
    pub arguments: Vec<Argument>,
    pub result: Type,
}

/// An argument of an operation.
pub(crate) enum Argument {
    Of(Type),
    /// An optional offset; 0 by default.
    Offset,
    /// A state, by number or name.
    State,
}

/// Returns the array operation with a function argument of this name.
pub(crate) fn application(name: &str) -> Option<Application> {
    match name {
        "all" => Some(Application::All),
        "any" => Some(Application::Any),
        "count" => Some(Application::Count),
        "filter" => Some(Application::Filter),
        "map" => Some(Application::Map),
        _ => None,
    }
}

/// The operations of `sys`, for messages.
pub(crate) const SYS: &str = "nodes(), index(node), states(node), keys(node, state), \
    has(node, state, key), data(node, state, key)";

/// Finds an operation of `sys`.
pub(crate) fn of_sys(name: &str) -> Option<Signature> {
    use Argument::{Of, State};
    let node = || Of(Type::String);
    let key = || Of(Type::String);
    let (operation, arguments, result) = match name {
        "nodes" => (Operation::Nodes, vec![], Type::String.array()),
        "index" => (Operation::NodeIndex, vec![node()], Type::Int),
        "states" => (Operation::States, vec![node()], Type::String.array()),
        "keys" => (Operation::Keys, vec![node(), State], Type::String.array()),
        "has" => (Operation::Has, vec![node(), State, key()], Type::Bool),
        "data" => (Operation::Data, vec![node(), State, key()], Type::Data),
        _ => return None,
    };
    Some(Signature {
        operation,
        arguments,
        result,
    })
}

/// Returns the operations of a type, for messages.
pub(crate) fn names_of(kind: &Type) -> &'static str {
    match kind {
        Type::Bool | Type::Int => "none",
        Type::String => "size(), slice(from, to), startsWith(s), endsWith(s), contains(s), data()",
        Type::Data => {
            "size(), slice(from, to), startsWith(d), endsWith(d), contains(d), string(), int(), uint(), \
             u8, i8, u16, i16, u32, i32, u64, i64 and u16be … i64be, each with an offset or ()"
        }
        Type::Array(element) if **element == Type::Int => {
            "size(), equalElements(), distinctElements(), contains(x), all(f), any(f), count(f), filter(f), \
             map(f), sum(), min(), max()"
        }
        Type::Array(_) => {
            "size(), equalElements(), distinctElements(), contains(x), all(f), any(f), count(f), filter(f), map(f)"
        }
    }
}

/// Finds an operation on values of a type, except those with function arguments.
pub(crate) fn of_type(kind: &Type, name: &str) -> Option<Signature> {
    let (operation, arguments, result) = match kind {
        Type::Bool | Type::Int => return None,
        Type::Array(element) => of_array(element, name)?,
        Type::String | Type::Data => match of_bytes(kind, name) {
            Some(found) => found,
            None if *kind == Type::String => return None,
            None => of_data(name)?,
        },
    };
    Some(Signature {
        operation,
        arguments,
        result,
    })
}

type Found = (Operation, Vec<Argument>, Type);

fn of_array(element: &Type, name: &str) -> Option<Found> {
    let of_int = *element == Type::Int;
    Some(match name {
        "size" => (Operation::ArraySize, vec![], Type::Int),
        "equalElements" => (Operation::EqualElements, vec![], Type::Bool),
        "distinctElements" => (Operation::DistinctElements, vec![], Type::Bool),
        "contains" => {
            let wanted = Argument::Of(element.clone());
            (Operation::ArrayContains, vec![wanted], Type::Bool)
        }
        "sum" if of_int => (Operation::Sum, vec![], Type::Int),
        "min" if of_int => (Operation::Min, vec![], Type::Int),
        "max" if of_int => (Operation::Max, vec![], Type::Int),
        _ => return None,
    })
}

fn of_bytes(kind: &Type, name: &str) -> Option<Found> {
    let same = || vec![Argument::Of(kind.clone())];
    let index = || Argument::Of(Type::Int);
    Some(match name {
        "size" => (Operation::BytesSize, vec![], Type::Int),
        "slice" => (Operation::Slice, vec![index(), index()], kind.clone()),
        "startsWith" => (Operation::StartsWith, same(), Type::Bool),
        "endsWith" => (Operation::EndsWith, same(), Type::Bool),
        "contains" => (Operation::BytesContain, same(), Type::Bool),
        "data" if *kind == Type::String => (Operation::Same, vec![], Type::Data),
        _ => return None,
    })
}

fn of_data(name: &str) -> Option<Found> {
    match name {
        "string" => return Some((Operation::CString, vec![], Type::String)),
        "int" => return Some((Operation::DecodeAll { signed: true }, vec![], Type::Int)),
        "uint" => return Some((Operation::DecodeAll { signed: false }, vec![], Type::Int)),
        _ => {}
    }
    let signed = name.starts_with('i');
    let digits = name.strip_prefix(['i', 'u'])?;
    let (digits, big_endian) = match digits.strip_suffix("be") {
        Some(digits) => (digits, true),
        None => (digits.strip_suffix("le").unwrap_or(digits), false),
    };
    let size = match digits {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" => 8,
        _ => return None,
    };
    let decode = Operation::Decode {
        size,
        signed,
        big_endian,
    };
    Some((decode, vec![Argument::Offset], Type::Int))
}
