//! Counts in texts for people.

use std::fmt::Display;

/// Returns a count with its noun, in the singular or the plural: `1 path`, `2 paths`, `3 classes`.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = match (count.as_str(), noun.ends_with('s')) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let texts = [0, 1, 2, 11].map(|count| counted(count, "path"));
        assert_eq!(texts, ["0 paths", "1 path", "2 paths", "11 paths"]);
        assert_eq!(counted(1u64, "class"), "1 class");
        assert_eq!(counted(3usize, "class"), "3 classes");
        assert_eq!(
            counted(u128::MAX, "distinct end"),
            format!("{} distinct ends", u128::MAX)
        );
    }
}
