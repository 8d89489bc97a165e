//! Unique names for the symbolic inputs of a path.

use std::sync::Arc;

const BUCKETS: usize = 16;

/// The names that were requested. Each has the first number that may be free: the name itself and
/// all smaller numbers are taken. A clone is O(1).
#[derive(Clone, Default)]
pub struct Names {
    buckets: Arc<[Bucket; BUCKETS]>,
}

type Bucket = Option<Arc<Vec<(Arc<str>, u32)>>>;

fn bucket_of(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as usize % BUCKETS
}

impl Names {
    fn next_number(&self, name: &str) -> Option<u32> {
        let bucket = self.buckets[bucket_of(name)].as_ref()?;
        let entry = bucket.iter().find(|(known, _)| **known == *name);
        entry.map(|(_, next)| *next)
    }

    fn set_next_number(&mut self, name: &str, next: u32) {
        let bucket = &mut Arc::make_mut(&mut self.buckets)[bucket_of(name)];
        let bucket = Arc::make_mut(bucket.get_or_insert_default());
        match bucket.iter_mut().find(|(known, _)| **known == *name) {
            Some(entry) => entry.1 = next,
            None => bucket.push((name.into(), next)),
        }
    }

    /// Returns whether an input has this name: it was requested, or is a numbered one.
    fn is_taken(&self, name: &str) -> bool {
        let is_numbered = || {
            let (stem, digits) = name.rsplit_once('_')?;
            let number = digits.parse::<u32>().ok()?;
            let is_canonical = number > 0 && number.to_string() == digits;
            Some(is_canonical && number < self.next_number(stem)?)
        };
        self.next_number(name).is_some() || is_numbered() == Some(true)
    }

    /// Takes a name and makes it unique as KLEE does: `x`, `x_1`, `x_2`.
    pub fn take(&mut self, name: &str) -> String {
        if !self.is_taken(name) {
            self.set_next_number(name, 1);
            return name.to_owned();
        }
        let first = self.next_number(name).unwrap_or(1);
        let is_free = |number: &u32| !self.is_taken(&format!("{name}_{number}"));
        let number = (first..u32::MAX).find(is_free).unwrap_or(u32::MAX);
        self.set_next_number(name, number.saturating_add(1));
        format!("{name}_{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_inputs_get_the_first_free_number() {
        let mut names = Names::default();
        let asked = ["x", "x_2", "x", "x", "xy", "x", "y_1", "y", "y"];
        let expected = ["x", "x_2", "x_1", "x_3", "xy", "x_4", "y_1", "y", "y_2"];
        assert_eq!(asked.map(|name| names.take(name)), expected);
        assert_eq!(names.take("x_1"), "x_1_1");
        assert_eq!(names.take("x_03"), "x_03");
        assert_eq!(names.clone().take("x_3"), names.take("x_3"));
    }

    #[test]
    fn names_are_never_given_twice() {
        let (mut names, mut given) = (Names::default(), BTreeSet::new());
        for round in 0..300u32 {
            let asked = match round % 5 {
                0 => "a".to_owned(),
                1 => format!("a_{}", round % 7),
                2 => format!("a_{}_{}", round % 3, round % 4),
                3 => format!("a_{}", u32::MAX),
                _ => format!("b{round}"),
            };
            let name = names.take(&asked);
            assert!(given.insert(name.clone()), "{name} for {asked}");
        }
    }
}
