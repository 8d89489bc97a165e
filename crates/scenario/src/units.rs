//! Human-readable durations, sizes, bandwidths and ranges.

/// Parses `10ms`, `1.5s`, `2h` as nanoseconds.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor = match unit {
        "ns" => 1u64,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if number.chars().all(|c| c == '0') && !number.is_empty() => 1,
        "" => {
            return Err(format!(
                "{text:?} has no unit; write it as \"{text}ms\" or \"{text}s\""
            ));
        }
        _ => {
            return Err(format!(
                "{unit:?} is not a unit of time; use ns, us, ms, s, m or h"
            ));
        }
    };
    scaled(number, factor).ok_or_else(|| refused(text, number, "a duration", "10ms"))
}

/// Parses `64K`, `4G` as bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib") {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return Err(format!("{unit:?} is not a unit of size; use K, M or G")),
    };
    scaled(number, 1 << shift).ok_or_else(|| refused(text, number, "a size", "64K"))
}

/// Parses `10Mbit`, `1G` as bits per second.
pub(crate) fn bits_per_s(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let unit = unit.trim_end_matches("/s").trim_end_matches("bit");
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1u64,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => {
            return Err(format!(
                "{unit:?} is not a unit of bandwidth; use kbit, Mbit or Gbit"
            ));
        }
    };
    scaled(number, factor).ok_or_else(|| refused(text, number, "a bandwidth", "10Mbit"))
}

/// Returns the reason why a number with a unit is rejected.
fn refused(text: &str, number: &str, what: &str, example: &str) -> String {
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match is_whole {
        true => format!("{text:?} is too large"),
        false => format!("{text:?} is not {what}; write it as \"{example}\""),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    (number, text[number.len()..].trim())
}

/// Multiplies a decimal number by a factor, exactly, and truncates the product to an integer.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 12 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let part = fraction.parse::<u128>().ok()? * u128::from(factor);
    let part = part / 10u128.pow(fraction.len() as u32);
    whole.checked_add(u64::try_from(part).ok()?)
}

/// Parses `A-B`, `A-` or `A`, with any kind of number.
pub(crate) fn range<T: Copy + PartialOrd>(
    text: &str,
    last: T,
    number: impl Fn(&str) -> Result<T, String>,
) -> Result<std::ops::RangeInclusive<T>, String> {
    let (from, to) = match text.split_once('-') {
        None => {
            let only = number(text.trim())?;
            return Ok(only..=only);
        }
        Some((from, to)) => (number(from.trim())?, to.trim()),
    };
    let to = if to.is_empty() { last } else { number(to)? };
    if to < from {
        return Err(format!("{text:?} ends before it begins"));
    }
    Ok(from..=to)
}

/// Formats nanoseconds exactly.
pub(crate) fn show_ns(ns: u64) -> String {
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let fitting = units
        .iter()
        .find(|(factor, _)| ns > 0 && ns.is_multiple_of(*factor));
    match fitting {
        Some((factor, unit)) => format!("{}{unit}", ns / factor),
        None if ns == 0 => "0s".to_owned(),
        None => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_numbers_with_units() {
        assert_eq!(duration_ns("10ms"), Ok(10_000_000));
        assert_eq!(duration_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(duration_ns("0"), Ok(0));
        assert_eq!(duration_ns("2 h"), Ok(7_200_000_000_000));
        for bad in ["10", "ms", "-1s", "1..2s", "99999999999h", "1 day", ""] {
            assert!(duration_ns(bad).is_err(), "{bad}");
        }
        assert_eq!(bytes("64K"), Ok(65_536));
        assert_eq!(bytes("4GiB"), Ok(4 << 30));
        assert!(bytes("4T").is_err());
        assert_eq!(bits_per_s("10Mbit"), Ok(10_000_000));
        assert_eq!(bits_per_s("10Mbit/s"), Ok(10_000_000));
        assert!(bits_per_s("fast").is_err());
        let number = |text: &str| text.parse::<u32>().map_err(|_| text.to_owned());
        assert_eq!(range("3", 9, number), Ok(3..=3));
        assert_eq!(range("3-5", 9, number), Ok(3..=5));
        assert_eq!(range("3-", 9, number), Ok(3..=9));
        assert!(range("5-3", 9, number).is_err());
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_shown(ns in any::<u64>(), factor in 0usize..5) {
            let ns = ns / 1000u64.pow(factor as u32 % 4) * 1000u64.pow(factor as u32 % 4);
            prop_assert_eq!(duration_ns(&show_ns(ns)), Ok(ns));
        }
    }
}
