//! Redundancy clusters: failures whose stacks, at the injection point and at the crash, are nearly equal.

use std::collections::BTreeMap;

/// Returns the edit distance of two stacks, in frames (Levenshtein).
pub fn distance(one: &[String], two: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, frame) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (other, column) in two.iter().zip(1..) {
            let replaced = diagonal + usize::from(frame != other);
            diagonal = row[column];
            row[column] = replaced.min(row[column] + 1).min(row[column - 1] + 1);
        }
    }
    row[two.len()]
}

/// Returns the similarity of two stacks: 1 if they are equal, 0 if they have nothing in common.
pub fn similarity(one: &[String], two: &[String]) -> f64 {
    let longest = one.len().max(two.len());
    match longest {
        0 => 0.0,
        longest => 1.0 - distance(one, two) as f64 / longest as f64,
    }
}

/// Returns the frames of a stack without the outermost ones, by which all programs start: in short stacks, they would
/// make different failures look alike.
pub fn own_frames(stack: &[String]) -> &[String] {
    let is_start = |frame: &String| {
        let is_library = ["libc.", "libc-", "ld-linux", "ld-musl"]
            .iter()
            .any(|name| frame.starts_with(name));
        is_library || frame.contains("!_start+")
    };
    let end = stack.iter().rposition(|frame| !is_start(frame));
    &stack[..end.map_or(0, |end| end + 1)]
}

/// The distinct stacks so far, and their clusters.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    distinct: Vec<Vec<String>>,
    known: BTreeMap<Vec<String>, usize>,
    /// The union-find parent of each distinct stack; similar stacks are merged.
    parent: Vec<usize>,
}

impl Stacks {
    /// Adds a stack. Returns its number among the distinct ones, and its maximum similarity to
    /// earlier ones: 1 if it is known. A stack without frames is similar to nothing.
    pub fn add(&mut self, stack: &[String], threshold: f64) -> (usize, f64) {
        if let Some(at) = self.known.get(stack) {
            let is_known = !stack.is_empty();
            return (*at, f64::from(u8::from(is_known)));
        }
        let number = self.distinct.len();
        self.parent.push(number);
        let mut most: f64 = 0.0;
        for other in 0..number {
            let alike = similarity(stack, &self.distinct[other]);
            most = most.max(alike);
            if alike > 0.0 && 1.0 - alike <= threshold {
                let (one, two) = (self.root(number), self.root(other));
                self.parent[one.max(two)] = one.min(two);
            }
        }
        self.known.insert(stack.to_vec(), number);
        self.distinct.push(stack.to_vec());
        (number, most)
    }

    /// Returns the first stack of the cluster that contains a stack.
    pub fn root(&self, mut number: usize) -> usize {
        while self.parent[number] != number {
            number = self.parent[number];
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (one, two, expected) in [
            ("", "", 0),
            ("a b c", "a b c", 0),
            ("a b c", "", 3),
            ("a b c", "a x c", 1),
            ("k i t t e n", "s i t t i n g", 3),
            ("b c", "a b c", 1),
        ] {
            assert_eq!(distance(&stack(one), &stack(two)), expected);
            assert_eq!(distance(&stack(two), &stack(one)), expected);
        }
        assert_eq!(similarity(&stack("a b c d"), &stack("a b c x")), 0.75);
    }

    #[test]
    fn frames_of_the_start_do_not_count() {
        let start = "libc.so.6+0x27249 libc.so.6!__libc_start_main+0x84 a!_start+0x20";
        let [one, two] = ["malloc a!main+0x12", "strdup a!main+0x2b"]
            .map(|own| stack(&format!("{own} {start}")));
        assert_eq!(own_frames(&one), stack("malloc a!main+0x12"));
        let mut stacks = Stacks::default();
        let [one, two] = [one, two].map(|stack| stacks.add(own_frames(&stack), 0.3).0);
        assert_ne!(stacks.root(one), stacks.root(two));
        assert!(own_frames(&stack(start)).is_empty());
    }

    #[test]
    fn near_stacks_are_one_cluster() {
        let mut stacks = Stacks::default();
        let a = stacks.add(&stack("a b c d"), 0.3);
        let b = stacks.add(&stack("x y z w"), 0.3);
        let c = stacks.add(&stack("a b c e"), 0.3);
        assert_eq!((a.1, b.1, c.1), (0.0, 0.0, 0.75));
        assert_eq!(stacks.root(a.0), stacks.root(c.0));
        assert_ne!(stacks.root(a.0), stacks.root(b.0));
        assert_eq!(stacks.add(&stack("a b c d"), 0.3), (a.0, 1.0));
        let none = stacks.add(&[], 0.3);
        assert_eq!(none.1, 0.0);
        assert_eq!(stacks.add(&[], 0.3), none);
    }
}
