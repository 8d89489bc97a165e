//! The symbols that the bitcode of a program must keep: those that its machine code or its
//! intrinsics refer to.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

/// libm functions, each with its float and long double variants.
const MATH: [&str; 60] = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "nexttoward",
    "pow",
    "remainder",
    "remquo",
    "rint",
    "round",
    "roundeven",
    "scalbln",
    "scalbn",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
];

/// Functions that share a member of the library's archive with one of [`MATH`]. If only one of the
/// two were in the library of machine code, a program that uses the other would get both members,
/// and both define the first.
const SIBLINGS: [&str; 13] = [
    "__lgamma_r",
    "__lgammaf_r",
    "__lgammal_r",
    "__signgam",
    "drem",
    "dremf",
    "lgamma_r",
    "lgammaf_r",
    "lgammal_r",
    "pow10",
    "pow10f",
    "pow10l",
    "signgam",
];

/// Functions with inexact results: an intrinsic of that name has the result of the program's own
/// library. Exact ones (`ceil`, `fma`) need no library.
const INEXACT: [&str; 18] = [
    "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "ldexp", "log",
    "log10", "log2", "pow", "sin", "sinh", "tan", "tanh",
];

/// Returns the names of all libm functions that are in the library of machine code.
pub fn mathematics() -> BTreeSet<String> {
    let siblings = SIBLINGS.map(str::to_owned);
    let forms = MATH
        .iter()
        .flat_map(|name| ["", "f", "l"].map(|form| format!("{name}{form}")));
    forms.chain(siblings).collect()
}

/// Returns the names of all libm functions in the libraries of bitcode: also those for other types,
/// which the compiler's runtime has.
pub fn mathematics_of_libraries() -> impl Iterator<Item = String> {
    let others = MATH.iter().flat_map(|name| {
        ["h", "x"]
            .map(|form| format!("__{name}{form}"))
            .into_iter()
            .chain([format!("{name}f128")])
    });
    mathematics().into_iter().chain(others)
}

/// Returns whether a symbol is one of [`mathematics_of_libraries`].
pub fn is_mathematics(symbol: impl AsRef<str>) -> bool {
    static NAMES: LazyLock<HashSet<String>> =
        LazyLock::new(|| mathematics_of_libraries().collect());
    NAMES.contains(symbol.as_ref())
}

/// Returns whether a file refers to a traced symbol that none defines. A line of the linker is
/// `FILE: reference to SYMBOL`, or `FILE: definition of SYMBOL`.
pub fn is_missing(trace: &str) -> bool {
    let symbols = |what: &'static str| {
        let lines = trace.lines();
        lines.filter_map(move |line| Some(line.rsplit_once(what)?.1))
    };
    let defined: HashSet<&str> = symbols(": definition of ").collect();
    symbols(": reference to ").any(|symbol| !defined.contains(symbol))
}

/// Returns the defined symbols that machine code refers to, from the linker's resolution file.
///
/// A line is `-r=FILE,SYMBOL,FLAGS`: `p` means that the definition in this file is the prevailing
/// one, `x` that it is visible to machine code.
pub fn from_resolutions(text: &str) -> BTreeSet<String> {
    let mut symbols = BTreeSet::new();
    for line in text.lines() {
        let Some((rest, flags)) = line
            .strip_prefix("-r=")
            .and_then(|line| line.rsplit_once(','))
        else {
            continue;
        };
        let Some((_, symbol)) = rest.rsplit_once(',') else {
            continue;
        };
        if flags.contains('p') && flags.contains('x') {
            symbols.insert(symbol.to_string());
        }
    }
    symbols
}

/// Returns the libm functions that native code calls for the intrinsics in the bitcode.
///
/// The string table of a bitcode file contains names as plain text.
pub fn from_intrinsics(bitcode: &[u8]) -> BTreeSet<String> {
    let mut symbols = BTreeSet::new();
    let mut rest = bitcode;
    while let Some(at) = find(rest, b"llvm.") {
        rest = &rest[at + b"llvm.".len()..];
        let end = rest
            .iter()
            .position(|byte| !is_name_byte(*byte))
            .unwrap_or(rest.len());
        let name = rest[..end]
            .strip_prefix(b"experimental.constrained.")
            .unwrap_or(&rest[..end]);
        symbols.extend(library_function(name));
        if name.starts_with(b"sincos.") {
            for part in [b"sin", b"cos"] {
                let part: Vec<u8> = [&part[..], &name[b"sincos".len()..]].concat();
                symbols.extend(library_function(&part));
            }
        }
    }
    symbols
}

fn library_function(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (function, types) = name.split_once('.')?;
    if !INEXACT.contains(&function) {
        return None;
    }
    // Names in the table are adjacent without separators, so only the start of a type is certain.
    let mut widths = types.split('.').filter_map(|part| {
        let lane = match part.strip_prefix('v') {
            Some(vector) => vector.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => part,
        };
        lane.strip_prefix('f')
    });
    let width = widths.next()?;
    let suffix = match width {
        _ if width.starts_with("32") => "f",
        _ if width.starts_with("80") => "l",
        _ => "",
    };
    Some(format!("{function}{suffix}"))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_'
}

pub fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn visible_prevailing_symbols_are_roots() {
        let text = "a,b.o\n-r=a,b.o,main,plx\n-r=a,b.o,memcpy,lx\n-r=libc.a(x.o at 3),exit,pl\n\
                    -r=libc.a(x.o at 3),_fini,px\n";
        assert_eq!(from_resolutions(text), set(&["_fini", "main"]));
    }

    #[test]
    fn mathematics_that_nothing_defines_is_missing() {
        let trace = "a.o: reference to pow\nlibc.a(pow.o): lazy definition of pow\n";
        assert!(is_missing(trace));
        assert!(!is_missing(&format!("{trace}b.o: definition of pow\n")));
        assert!(!is_missing("b.o: definition of round\n"));
        for name in ["pow", "powf", "__sinx", "sinf128", "lgammal_r"] {
            assert!(is_mathematics(name), "{name}");
        }
        for name in ["memcpy", "__math_oflow", "power"] {
            assert!(!is_mathematics(name), "{name}");
        }
    }

    #[test]
    fn intrinsics_name_their_functions() {
        let text = b"\x00mainllvm.exp.f64llvm.sin.f32llvm.memcpy.p0.p0.i64printf\x00\
                     llvm.experimental.constrained.log.f80\x01llvm.sincos.f64\x00\
                     llvm.pow.v4f32\x00llvm.tanh.f64llvm.ceil.f64\x00llvm.pow.f80frexpl\x00\
                     llvm.ldexp.f64.i32\x00";
        let expected = [
            "exp", "sinf", "logl", "sin", "cos", "powf", "powl", "tanh", "ldexp",
        ];
        assert_eq!(from_intrinsics(text), set(&expected));
        assert_eq!(from_intrinsics(b"llvm."), set(&[]));
    }
}
