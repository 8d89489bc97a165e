//! The cache of invariant evaluations: interned exposed data, and the result for each combination
//! of it. Both are bounded; an evicted result is computed again.

use everett_expr::ExprId;
use everett_linux::ExposedData;
use std::collections::{HashMap, HashSet};

/// Maximum number of interned data and of cached results.
const MOST: usize = 1 << 14;

/// The key of a result: an invariant, by its file and its number there, and the addresses of the
/// interned exposed data of each host.
type Key = ((usize, usize), Vec<usize>);

/// The result of an evaluation.
struct Known {
    broken: Option<ExprId>,
    /// The data, kept so that its address is not reused.
    _shown: Vec<ExposedData>,
}

/// The cache of invariant evaluations.
#[derive(Default)]
pub struct Verdicts {
    shown: HashSet<ExposedData>,
    known: HashMap<Key, Known>,
}

impl Verdicts {
    /// Returns the interned copy of exposed data, so that equal data has one address.
    pub fn shared(&mut self, data: &ExposedData) -> ExposedData {
        if let Some(known) = self.shown.get(data) {
            return known.clone();
        }
        if self.shown.len() >= MOST {
            self.shown.clear();
        }
        self.shown.insert(data.clone());
        data.clone()
    }

    /// Returns the cached result: the condition under which the invariant is broken, or `None` if
    /// it could not be evaluated.
    pub fn known(
        &self,
        invariant: (usize, usize),
        shown: &[&ExposedData],
    ) -> Option<Option<ExprId>> {
        let known = self.known.get(&(invariant, places(shown)))?;
        Some(known.broken)
    }

    /// Caches a result.
    pub fn remember(
        &mut self,
        invariant: (usize, usize),
        shown: &[&ExposedData],
        broken: Option<ExprId>,
    ) {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let known = Known {
            broken,
            _shown: shown.iter().map(|data| (*data).clone()).collect(),
        };
        self.known.insert((invariant, places(shown)), known);
    }
}

fn places(shown: &[&ExposedData]) -> Vec<usize> {
    let place = |data: &&ExposedData| std::ptr::from_ref(&***data).addr();
    shown.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_expr::Arena;
    use everett_vm::Buffer;
    use std::collections::BTreeMap;

    fn shown(value: usize) -> ExposedData {
        let bytes = value.to_le_bytes();
        let bytes = Buffer::with_bytes(&bytes, bytes.len()).into();
        let key = ("0".to_owned(), "x".to_owned());
        ExposedData::new(BTreeMap::from([(key, bytes)]))
    }

    #[test]
    fn what_looks_the_same_is_looked_at_once() {
        let mut verdicts = Verdicts::default();
        let mut arena = Arena::new();
        let [yes, no] = [1, 0].map(|bit| arena.constant(1, bit));
        let [one, same, other] = [7, 7, 8].map(|value| verdicts.shared(&shown(value)));
        assert_eq!(verdicts.known((0, 0), &[&one, &other]), None);
        verdicts.remember((0, 0), &[&one, &other], Some(yes));
        verdicts.remember((0, 1), &[&one, &other], Some(no));
        verdicts.remember((1, 0), &[&one, &other], None);
        assert_eq!(verdicts.known((0, 0), &[&same, &other]), Some(Some(yes)));
        assert_eq!(verdicts.known((0, 1), &[&same, &other]), Some(Some(no)));
        assert_eq!(verdicts.known((1, 0), &[&same, &other]), Some(None));
        assert_eq!(verdicts.known((0, 0), &[&other, &one]), None);
    }

    #[test]
    fn not_everything_is_remembered() {
        let mut verdicts = Verdicts::default();
        for value in 0..3 * MOST {
            let data = verdicts.shared(&shown(value));
            verdicts.remember((0, 0), &[&data], None);
            assert_eq!(verdicts.known((0, 0), &[&data]), Some(None));
        }
        assert!(verdicts.shown.len() <= MOST && verdicts.known.len() <= MOST);
    }
}
