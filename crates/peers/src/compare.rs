//! Compares what an instance says with its recording. Parts may differ, and come in other pieces.

use regex::bytes::Regex;

/// The result of a comparison.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// This number of bytes is as recorded.
    Same(usize),
    /// What has arrived so far may become the same.
    NotYet,
    /// The position of the first difference.
    Other(usize),
}

/// Compares received bytes with recorded ones. Parts that match one of the patterns there only need
/// to match it here, too. Of a stream, more may have arrived, or less; a datagram is complete.
pub fn compare(wanted: &[u8], seen: &[u8], varies: &[Regex], is_stream: bool) -> Comparison {
    if seen.is_empty() && !wanted.is_empty() {
        return Comparison::NotYet;
    }
    let (mut at, mut here) = (0, 0);
    loop {
        let varying = first_match(varies, wanted, at);
        let end = varying.map_or(wanted.len(), |(start, ..)| start);
        let (literal, rest) = (&wanted[at..end], &seen[here..]);
        let pairs = literal.iter().zip(rest);
        let common = pairs.take_while(|(one, other)| one == other).count();
        if common < literal.len() {
            return match is_stream && common == rest.len() {
                true => Comparison::NotYet,
                false => Comparison::Other(here + common),
            };
        }
        here += common;
        let Some((_, end, pattern)) = varying else {
            break;
        };
        let found = pattern.find_at(seen, here);
        match found.filter(|found| found.start() == here) {
            Some(found) => here = found.end(),
            None if is_stream => return Comparison::NotYet,
            None => return Comparison::Other(here),
        }
        at = end;
    }
    match is_stream || here == seen.len() {
        true => Comparison::Same(here),
        false => Comparison::Other(here),
    }
}

/// Returns the first part from a position on that matches a pattern: its start, its end and the
/// pattern.
fn first_match<'p>(
    patterns: &'p [Regex],
    bytes: &[u8],
    from: usize,
) -> Option<(usize, usize, &'p Regex)> {
    let found = patterns.iter().filter_map(|pattern| {
        let mut at = from;
        while at <= bytes.len() {
            let found = pattern.find_at(bytes, at)?;
            if !found.is_empty() {
                return Some((found.start(), found.end(), pattern));
            }
            at = found.end() + 1;
        }
        None
    });
    found.min_by_key(|(start, ..)| *start)
}

#[cfg(test)]
mod tests {
    use super::Comparison::{NotYet, Other, Same};
    use super::*;

    fn compared(wanted: &str, seen: &str, patterns: &[&str]) -> Comparison {
        let patterns = patterns
            .iter()
            .map(|pattern| Regex::new(pattern).expect("a pattern"));
        let patterns: Vec<Regex> = patterns.collect();
        compare(wanted.as_bytes(), seen.as_bytes(), &patterns, true)
    }

    #[test]
    fn streams_arrive_in_any_pieces() {
        assert_eq!(compared("hello", "hello", &[]), Same(5));
        assert_eq!(compared("hello", "hello, you", &[]), Same(5));
        assert_eq!(compared("hello", "hel", &[]), NotYet);
        assert_eq!(compared("hello", "", &[]), NotYet);
        assert_eq!(compared("hello", "help", &[]), Other(3));
        assert_eq!(compared("", "more", &[]), Same(0));
    }

    #[test]
    fn varying_parts_may_have_another_length_and_more_may_follow() {
        let date = "Date: [^\r]*";
        let wanted = "A\r\nDate: Mon 9\r\n\r\n";
        assert_eq!(
            compared(wanted, "A\r\nDate: Tue 10\r\n\r\nbody", &[date]),
            Same(19)
        );
        assert_eq!(compared(wanted, "A\r\nDate: Tue", &[date]), NotYet);
        assert_eq!(compared(wanted, "A\r\nDa", &[date]), NotYet);
        assert_eq!(
            compared(wanted, "B\r\nDate: Mon 9\r\n\r\n", &[date]),
            Other(0)
        );
        assert_eq!(
            compared(wanted, "A\r\nDate: Mon 9\r\nX", &[date]),
            Other(16)
        );
        let patterns = ["key [0-9]+", "id [a-z]*"];
        assert_eq!(
            compared("id ab, key 7;", "id xyz, key 123;", &patterns),
            Same(16)
        );
        assert_eq!(compared("id ab, key 7;", "id xyz, kex", &patterns), NotYet);
    }

    #[test]
    fn datagrams_are_complete() {
        let patterns = [Regex::new("[0-9]+").expect("a pattern")];
        let compared = |wanted: &[u8], seen: &[u8]| compare(wanted, seen, &patterns, false);
        assert_eq!(compared(b"id 7", b"id 99"), Same(5));
        assert_eq!(compared(b"id 7", b"id 9x"), Other(4));
        assert_eq!(compared(b"id 7", b"id"), Other(2));
        assert_eq!(compared(b"id 7", b""), NotYet);
    }
}
