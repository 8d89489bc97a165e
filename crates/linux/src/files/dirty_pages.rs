//! Pages of mapped files that a process can write without a page fault,
//! because it has written them before.

use std::collections::{BTreeMap, BTreeSet};
use triomphe::Arc;

use crate::ids::InodeId;

/// Pages by process and file.
#[derive(Clone, Debug, Default)]
pub struct DirtyPages {
    all: Arc<BTreeMap<(u32, InodeId), BTreeSet<u64>>>,
}

impl DirtyPages {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records that a process has written pages. Returns whether one of them is new.
    pub fn add(&mut self, pid: u32, file: InodeId, pages: impl IntoIterator<Item = u64>) -> bool {
        let before = self.all.get(&(pid, file));
        let is_new = |page: &u64| before.is_none_or(|before| !before.contains(page));
        let new: Vec<u64> = pages.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return false;
        }
        let all = Arc::make_mut(&mut self.all);
        all.entry((pid, file)).or_default().extend(new);
        true
    }

    /// Records that all pages of a file were written back.
    pub fn clean(&mut self, file: InodeId) {
        if self.all.keys().any(|(_, of)| *of == file) {
            Arc::make_mut(&mut self.all).retain(|(_, of), _| *of != file);
        }
    }

    /// Records that a process maps only these files now.
    pub fn keep(&mut self, pid: u32, is_mapped: impl Fn(InodeId) -> bool) {
        let is_kept = |(of, file): &(u32, InodeId)| *of != pid || is_mapped(*file);
        if !self.all.keys().all(is_kept) {
            Arc::make_mut(&mut self.all).retain(|key, _| is_kept(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_new_once_for_each_process_until_it_is_clean() {
        let mut pages = DirtyPages::default();
        let (one, other) = (InodeId(1), InodeId(2));
        assert!(pages.add(7, one, [0, 1]) && !pages.add(7, one, [1]));
        assert!(pages.add(7, one, [1, 2]) && pages.add(8, one, [2]) && pages.add(7, other, [0]));
        pages.keep(8, |_| false);
        assert!(pages.add(8, one, [2]) && !pages.add(7, one, [2]));
        pages.clean(one);
        assert!(pages.add(7, one, [2]) && !pages.add(7, other, [0]));
    }
}
