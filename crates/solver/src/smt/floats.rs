//! Float operations in SMT-LIB. Terms are bit vectors throughout. An operation reads its operands
//! as floats, and its result is a fresh bit vector that reads as the result, because not every
//! solver can convert floats back to bits. SMT-LIB has only one NaN, so the NaN payload is defined
//! in bits, as on x86.

use super::print::Printer;
use everett_expr::{
    ExprId, FloatCompareOp, FloatFormat, FloatOp, FloatUnaryOp, Node, RoundingMode, float,
};

/// Returns the exponent and significand bits of the SMT-LIB sort.
fn sort(format: FloatFormat) -> (u32, u32) {
    match format {
        FloatFormat::Half => (5, 11),
        FloatFormat::Single => (8, 24),
        FloatFormat::Double => (11, 53),
        FloatFormat::X87 => (15, 64),
    }
}

fn to_fp(format: FloatFormat) -> String {
    let (exponent, significand) = sort(format);
    format!("(_ to_fp {exponent} {significand})")
}

fn bits(width: u32, value: u128) -> String {
    format!("#b{value:0width$b}", width = width as usize)
}

fn default_nan(format: FloatFormat) -> String {
    bits(format.width(), float::default_nan(format))
}

/// Prints a float operation as an expression for the bits of its result.
pub fn body(printer: &mut Printer<'_>, e: ExprId, node: Node) -> String {
    match node {
        Node::FloatBinary { op, format, a, b } => {
            let nan = propagated_nan(printer, format, a, b);
            let either = format!(
                "(or {} {})",
                is_nan(printer, format, a),
                is_nan(printer, format, b)
            );
            let value = binary(printer, op, format, a, b);
            result(printer, e, format, &value, Some((either, nan)))
        }
        Node::FloatUnary {
            op,
            format,
            e: operand,
        } => {
            let nan = quiet(format, &printer.name(operand));
            let operand_nan = is_nan(printer, format, operand);
            let operand = view(printer, format, operand);
            let value = match op {
                FloatUnaryOp::Sqrt => format!("(fp.sqrt RNE {operand})"),
                FloatUnaryOp::RoundToIntegral(mode) => {
                    format!("(fp.roundToIntegral {} {operand})", mode_name(mode))
                }
            };
            result(printer, e, format, &value, Some((operand_nan, nan)))
        }
        Node::FloatCompare { op, format, a, b } => {
            let (a, b) = (view(printer, format, a), view(printer, format, b));
            let truth = match op {
                FloatCompareOp::Oeq => format!("(fp.eq {a} {b})"),
                FloatCompareOp::Olt => format!("(fp.lt {a} {b})"),
                FloatCompareOp::Ole => format!("(fp.leq {a} {b})"),
                FloatCompareOp::Uno => format!("(or (fp.isNaN {a}) (fp.isNaN {b}))"),
            };
            format!("(ite {truth} #b1 #b0)")
        }
        Node::FloatConvert {
            from,
            to,
            e: operand,
        } => {
            let nan = converted_nan(from, to, &printer.name(operand));
            let operand_nan = is_nan(printer, from, operand);
            let value = format!("({} RNE {})", to_fp(to), view(printer, from, operand));
            result(printer, e, to, &value, Some((operand_nan, nan)))
        }
        Node::FloatFromInt {
            signed,
            format,
            e: operand,
        } => {
            let (exponent, significand) = sort(format);
            let function = if signed { "to_fp" } else { "to_fp_unsigned" };
            let operand = printer.name(operand);
            let value = format!("((_ {function} {exponent} {significand}) RNE {operand})");
            result(printer, e, format, &value, None)
        }
        Node::FloatToInt {
            signed,
            format,
            e: operand,
        } => to_int(printer, e, signed, format, operand),
        _ => printer.name(e),
    }
}

fn mode_name(mode: RoundingMode) -> &'static str {
    match mode {
        RoundingMode::NearestEven => "RNE",
        RoundingMode::NearestAway => "RNA",
        RoundingMode::TowardZero => "RTZ",
        RoundingMode::TowardPositive => "RTP",
        RoundingMode::TowardNegative => "RTN",
    }
}

/// Returns the name of a term's value as a float; defines it on first use.
fn view(printer: &mut Printer<'_>, format: FloatFormat, e: ExprId) -> String {
    let (exponent, significand) = sort(format);
    let name = format!("f{}_{}", e.index(), exponent);
    if printer.float_views.insert(name.clone()) {
        let value = match format {
            FloatFormat::X87 => x87_value(&printer.name(e)),
            _ => format!("({} {})", to_fp(format), printer.name(e)),
        };
        printer.line(format_args!(
            "(define-fun {name} () (_ FloatingPoint {exponent} {significand}) {value})"
        ));
    }
    name
}

/// Prints the value of a float in the 80-bit format, which has an explicit integer bit. If that bit
/// is clear where it should be set, the operand is invalid; if it is set with the least exponent,
/// the number has the next exponent.
fn x87_value(name: &str) -> String {
    let exponent = format!("((_ extract 78 64) {name})");
    let zero = bits(15, 0);
    let cleared = format!("(= ((_ extract 63 63) {name}) #b0)");
    let stored = format!(
        "(ite (and (= {exponent} {zero}) (not {cleared})) {} {exponent})",
        bits(15, 1)
    );
    let packed = format!("(concat ((_ extract 79 79) {name}) {stored} ((_ extract 62 0) {name}))");
    format!(
        "(ite (and (not (= {exponent} {zero})) {cleared}) (_ NaN 15 64) ((_ to_fp 15 64) {packed}))"
    )
}

fn is_nan(printer: &mut Printer<'_>, format: FloatFormat, e: ExprId) -> String {
    format!("(fp.isNaN {})", view(printer, format, e))
}

/// Prints bits that read as `value`. `nan` is the condition that an operand is NaN, and the result
/// in that case.
fn result(
    printer: &mut Printer<'_>,
    e: ExprId,
    format: FloatFormat,
    value: &str,
    nan: Option<(String, String)>,
) -> String {
    let (exponent, significand) = sort(format);
    let (fresh, float) = (format!("r{}", e.index()), format!("g{}", e.index()));
    let packed = exponent + significand;
    printer.line(format_args!(
        "(define-fun {float} () (_ FloatingPoint {exponent} {significand}) {value})"
    ));
    printer.line(format_args!("(declare-fun {fresh} () (_ BitVec {packed}))"));
    printer.line(format_args!(
        "(assert (or (fp.isNaN {float}) (= ({} {fresh}) {float})))",
        to_fp(format)
    ));
    let number = match format {
        FloatFormat::X87 => {
            let stored = format!("((_ extract 77 63) {fresh})");
            let integer = format!("(ite (= {stored} {}) #b0 #b1)", bits(15, 0));
            let (high, low) = ("((_ extract 78 63) ", "((_ extract 62 0) ");
            format!("(concat {high}{fresh}) {integer} {low}{fresh}))")
        }
        _ => fresh,
    };
    let defined = format!("(ite (fp.isNaN {float}) {} {number})", default_nan(format));
    match nan {
        Some((case, bits)) => format!("(ite {case} {bits} {defined})"),
        None => defined,
    }
}

fn binary(
    printer: &mut Printer<'_>,
    op: FloatOp,
    format: FloatFormat,
    a: ExprId,
    b: ExprId,
) -> String {
    let (a, b) = (view(printer, format, a), view(printer, format, b));
    match op {
        FloatOp::Add => format!("(fp.add RNE {a} {b})"),
        FloatOp::Sub => format!("(fp.sub RNE {a} {b})"),
        FloatOp::Mul => format!("(fp.mul RNE {a} {b})"),
        FloatOp::Div => format!("(fp.div RNE {a} {b})"),
        // SMT-LIB's remainder rounds the quotient to nearest. If its sign differs from that of the
        // dividend, adding one divisor (exactly) gives the remainder of the truncated quotient.
        FloatOp::Rem => {
            let nearest = format!("(fp.rem {a} {b})");
            let signed = |x: &str| format!("(ite (fp.isNegative {a}) (fp.neg {x}) {x})");
            let zero = {
                let (exponent, significand) = sort(format);
                signed(&format!("(_ +zero {exponent} {significand})"))
            };
            let divisor = signed(&format!("(fp.abs {b})"));
            format!(
                "(ite (fp.isZero {nearest}) {zero} (ite (= (fp.isNegative {nearest}) \
                 (fp.isNegative {a})) {nearest} (fp.add RNE {nearest} {divisor})))"
            )
        }
    }
}

fn quiet_bit(format: FloatFormat) -> u128 {
    match format {
        FloatFormat::X87 => 1 << 62,
        _ => 1 << (sort(format).1 - 2),
    }
}

/// Prints the quiet form of a NaN, as operations return it.
fn quiet(format: FloatFormat, name: &str) -> String {
    let set = format!("(bvor {name} {})", bits(format.width(), quiet_bit(format)));
    if format != FloatFormat::X87 {
        return set;
    }
    // An invalid encoding becomes the default NaN.
    let valid = format!("(= ((_ extract 78 63) {name}) {})", bits(16, 0xffff));
    format!("(ite {valid} {set} {})", default_nan(format))
}

/// Prints the NaN that results if at least one operand is NaN.
fn propagated_nan(printer: &mut Printer<'_>, format: FloatFormat, a: ExprId, b: ExprId) -> String {
    let (a_nan, b_nan) = (is_nan(printer, format, a), is_nan(printer, format, b));
    let (x, y) = (printer.name(a), printer.name(b));
    let (from_a, from_b) = (quiet(format, &x), quiet(format, &y));
    let first = format!("(ite {a_nan} {from_a} {from_b})");
    if format != FloatFormat::X87 {
        return first;
    }
    // Of two NaNs the x87 selects the quiet one, then the larger significand, then the positive
    // one.
    let is_quiet = |name: &str| format!("((_ extract 62 62) {name})");
    let significand = |name: &str| format!("((_ extract 63 0) {name})");
    let by_sign = format!("(ite (bvule {from_a} {from_b}) {from_a} {from_b})");
    let by_size = format!(
        "(ite (bvugt {sx} {sy}) {from_a} (ite (bvult {sx} {sy}) {from_b} {by_sign}))",
        sx = significand(&x),
        sy = significand(&y)
    );
    let both = format!(
        "(ite (bvugt {qx} {qy}) {from_a} (ite (bvult {qx} {qy}) {from_b} {by_size}))",
        qx = is_quiet(&x),
        qy = is_quiet(&y)
    );
    format!("(ite (and {a_nan} {b_nan}) {both} {first})")
}

/// Prints the conversion of a NaN to another format, which keeps its sign and the highest bits of
/// its payload.
fn converted_nan(from: FloatFormat, to: FloatFormat, name: &str) -> String {
    let (source, target) = (sort(from).1 - 1, sort(to).1 - 1);
    let quiet = quiet(from, name);
    let payload = match target.checked_sub(source) {
        Some(0) => format!("((_ extract {} 0) {quiet})", source - 1),
        Some(more) => {
            format!(
                "(concat ((_ extract {} 0) {quiet}) {})",
                source - 1,
                bits(more, 0)
            )
        }
        None => format!("((_ extract {} {}) {quiet})", source - 1, source - target),
    };
    let top = from.width() - 1;
    let ones = to.width() - 1 - target;
    format!(
        "(concat ((_ extract {top} {top}) {quiet}) {} {payload})",
        bits(ones, (1 << ones) - 1)
    )
}

/// Prints the truncation to an integer. Out of range, the result is the integer indefinite (only
/// the sign bit set).
fn to_int(
    printer: &mut Printer<'_>,
    e: ExprId,
    signed: bool,
    format: FloatFormat,
    operand: ExprId,
) -> String {
    let width = printer.arena.width(e);
    let (exponent, significand) = sort(format);
    let operand = view(printer, format, operand);
    let whole = format!("i{}", e.index());
    printer.line(format_args!(
        "(define-fun {whole} () (_ FloatingPoint {exponent} {significand}) \
         (fp.roundToIntegral RTZ {operand}))"
    ));
    let power = if signed { width - 1 } else { width };
    let finite = format!("(not (or (fp.isNaN {whole}) (fp.isInfinite {whole})))");
    let below = power_of_two(format, power).map_or("true".to_owned(), |bound| {
        format!("(fp.lt {whole} {bound})")
    });
    let above = match (signed, power_of_two(format, power)) {
        (false, _) => format!("(fp.leq (_ +zero {exponent} {significand}) {whole})"),
        (true, Some(bound)) => format!("(fp.leq (fp.neg {bound}) {whole})"),
        (true, None) => "true".to_owned(),
    };
    let function = if signed { "fp.to_sbv" } else { "fp.to_ubv" };
    let indefinite: String = std::iter::once("#b1")
        .chain((1..width).map(|_| "0"))
        .collect();
    format!(
        "(ite (and {finite} {below} {above}) ((_ {function} {width}) RTZ {whole}) {indefinite})"
    )
}

/// Prints the literal 2^power; `None` if it exceeds the format's finite range.
fn power_of_two(format: FloatFormat, power: u32) -> Option<String> {
    let (exponent, significand) = sort(format);
    let bias = (1u32 << (exponent - 1)) - 1;
    (power <= bias).then(|| {
        format!(
            "(fp #b0 {} {})",
            bits(exponent, u128::from(power + bias)),
            bits(significand - 1, 0)
        )
    })
}
