//! The digest of a state's history.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A digest of everything that made a state of a world what it is: its host, the sides of its forks, what it received and
/// when. The history and the path condition determine what a host does.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HistoryDigest(u64, u64);

impl HistoryDigest {
    /// The history with one more event.
    pub fn then(self, event: &impl Hash) -> HistoryDigest {
        let half = |half: u8| {
            let mut hasher = DefaultHasher::new();
            (half, self.0, self.1).hash(&mut hasher);
            event.hash(&mut hasher);
            hasher.finish()
        };
        HistoryDigest(half(0), half(1))
    }
}
