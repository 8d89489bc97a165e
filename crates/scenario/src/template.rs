//! Templates: texts that differ between the hosts of one `count`. `{i}` is the number of the host,
//! `{n}` the number of hosts, and braces may contain an expression such as `{(i+1)%n}`. Literal
//! braces are doubled.

/// The number of a host, and the number of hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    pub number: u32,
    pub count: u32,
}

/// Maximum length of a result.
const MAX_LENGTH: usize = 1 << 16;

/// Expands a template.
pub(crate) fn expand(text: &str, numbering: Numbering) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        if let Some(after) = tail.strip_prefix("{{") {
            out.push('{');
            rest = after;
        } else if let Some(after) = tail.strip_prefix("}}") {
            out.push('}');
            rest = after;
        } else if let Some(inner) = tail.strip_prefix('{') {
            let (formula, after) = inner.split_once('}').ok_or_else(|| {
                format!("a brace in {text:?} is not closed; write {{{{ for a brace")
            })?;
            let value = Formula::evaluate(formula, numbering)
                .ok_or_else(|| format!("{{{formula}}} is not a number; use i, n, numbers, + - * / % and parentheses, or write {{{{ for a brace"))?;
            out.push_str(&value.to_string());
            rest = after;
        } else {
            return Err(format!(
                "a brace in {text:?} is not opened; write }}}} for a brace"
            ));
        }
        if out.len() > MAX_LENGTH {
            return Err("it becomes too long".to_owned());
        }
    }
    out.push_str(rest);
    Ok(out)
}

struct Formula<'t> {
    rest: &'t [u8],
    numbering: Numbering,
    /// Number of parentheses that may still be opened.
    depth: u32,
}

impl Formula<'_> {
    fn evaluate(text: &str, numbering: Numbering) -> Option<i64> {
        let mut formula = Formula {
            rest: text.as_bytes(),
            numbering,
            depth: 16,
        };
        let value = formula.sum()?;
        formula.rest.trim_ascii().is_empty().then_some(value)
    }

    fn next(&mut self, among: &[u8]) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        let first = *self.rest.first()?;
        among.contains(&first).then(|| {
            self.rest = &self.rest[1..];
            first
        })
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(sign) = self.next(b"+-") {
            let other = self.product()?;
            value = match sign {
                b'+' => value.checked_add(other)?,
                _ => value.checked_sub(other)?,
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while let Some(sign) = self.next(b"*/%") {
            let other = self.factor()?;
            value = match sign {
                b'*' => value.checked_mul(other)?,
                b'/' => value.checked_div_euclid(other)?,
                _ => value.checked_rem_euclid(other)?,
            };
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        match self.next(b"in(") {
            Some(b'i') => return Some(self.numbering.number.into()),
            Some(b'n') => return Some(self.numbering.count.into()),
            Some(_) => {
                self.depth = self.depth.checked_sub(1)?;
                let value = self.sum()?;
                return self.next(b")").map(|_| value);
            }
            None => {}
        }
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
        let (number, rest) = self.rest.split_at(digits.count());
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn third_of_five(text: &str) -> Result<String, String> {
        expand(
            text,
            Numbering {
                number: 2,
                count: 5,
            },
        )
    }

    #[test]
    fn braces_hold_numbers() {
        let is = |text: &str, wanted: &str| assert_eq!(third_of_five(text).as_deref(), Ok(wanted));
        is("node{i}", "node2");
        is("10.0.{i/2}.{ (i + 1) % n + 1 }", "10.0.1.4");
        is("{i-3}", "-1");
        is("{{i}} {i*10+n}", "{i} 25");
        is("plain", "plain");
    }

    #[test]
    fn other_braces_are_refused() {
        for bad in [
            "{",
            "}",
            "{x}",
            "{}",
            "{i",
            "{i+}",
            "{1/0}",
            "{i i}",
            "{9999999999999999999}",
        ] {
            assert!(third_of_five(bad).is_err(), "{bad}");
        }
        assert!(third_of_five(&format!("{{{}i", "(".repeat(100))).is_err());
    }
}
