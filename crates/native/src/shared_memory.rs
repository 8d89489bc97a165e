//! Memory without a file that native processes share. A page of it lives as long as any process
//! maps it, also if none has it in its tables any more; so a real file in memory is mapped
//! instead, which tells how much it holds.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::tracee::memory_file;

/// So many files are made before those are looked for that nobody maps any more.
const MANY: usize = 64;

/// Bytes that a file in memory holds.
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
    /// A file for a new mapping.
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

    /// Bytes that it holds. If that is more than `much`, files that nobody
    /// maps are forgotten; `mapped` are the inodes of the others.
    pub fn held(&self, much: u64, mapped: impl FnOnce() -> BTreeSet<u64>) -> u64 {
        let mut files = self.files.borrow_mut();
        let held = files.iter().map(held_by).sum();
        if held <= much {
            return held;
        }
        keep(&mut files, &mapped());
        files.iter().map(held_by).sum()
    }

    /// Whether there is any.
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
