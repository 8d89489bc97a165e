//! Memory without a file that native processes share. A page of it exists while any process maps
//! it, even if no page table contains it any more. So a real file in memory is mapped instead,
//! whose size can be queried.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::tracee::memory_file;

/// Number of files that are created before unmapped ones are searched for.
const MANY: usize = 64;

/// Returns the number of bytes that a file in memory holds.
pub fn held_by(file: &File) -> u64 {
    /// Bytes in a block of `stat`.
    const BLOCK: u64 = 512;
    file.metadata().map_or(0, |data| data.blocks() * BLOCK)
}

/// All shared memory of a run.
#[derive(Default)]
pub struct SharedMemory {
    files: RefCell<Vec<File>>,
}

impl SharedMemory {
    /// Creates a file for a new mapping.
    pub fn file(len: u64) -> io::Result<File> {
        let file = memory_file()?;
        file.set_len(len)?;
        Ok(file)
    }

    /// Records that a process has mapped a file.
    pub fn add(&self, file: File, mapped: impl FnOnce() -> BTreeSet<u64>) {
        let mut files = self.files.borrow_mut();
        files.push(file);
        if files.len().is_multiple_of(MANY) {
            keep(&mut files, &mapped());
        }
    }

    /// Returns the number of bytes that the memory holds. If that is more than `much`, forgets
    /// files that no process maps; `mapped` returns the inodes of the others.
    pub fn held(&self, much: u64, mapped: impl FnOnce() -> BTreeSet<u64>) -> u64 {
        let mut files = self.files.borrow_mut();
        let held = files.iter().map(held_by).sum();
        if held <= much {
            return held;
        }
        keep(&mut files, &mapped());
        files.iter().map(held_by).sum()
    }

    /// Returns whether there is any shared memory.
    pub fn is_any(&self) -> bool {
        !self.files.borrow().is_empty()
    }
}

fn keep(files: &mut Vec<File>, mapped: &BTreeSet<u64>) {
    let is_mapped = |file: &File| {
        file.metadata()
            .is_ok_and(|data| mapped.contains(&data.ino()))
    };
    files.retain(is_mapped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_mapped_counts() {
        let memory = SharedMemory::default();
        assert!(!memory.is_any());
        let files = [(); 2].map(|()| SharedMemory::file(1 << 20).unwrap());
        for file in &files {
            file.write_all_at(&[1; 8192], 4096).unwrap();
        }
        let inode = files[0].metadata().unwrap().ino();
        for file in files {
            memory.add(file, BTreeSet::new);
        }
        assert_eq!(memory.held(16384, || unreachable!()), 16384);
        assert_eq!(memory.held(10000, || BTreeSet::from([inode])), 8192);
        assert_eq!(memory.held(0, BTreeSet::new), 0);
        assert!(!memory.is_any());
    }
}
