//! Files of the model that native processes map. Each has a real counterpart in memory, which the
//! processes map; the two are synchronised before and after every action of the model, as far as
//! either side can have written. Only one process runs at a time, so all see the same bytes. A run
//! without file mappings has no cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use everett_expr::Arena;
use everett_linux::{Bytes, Host, MappedFile};
use everett_vm::PAGE;

use crate::oracle::Inputs;
use crate::shared_memory::held_by;
use crate::tracee::{RealMapping, memory_file};

const PAGE_SIZE: u64 = PAGE as u64;
/// Number of bytes compared at once.
const AT_ONCE: u64 = 1 << 18;

/// All mapped files of a run.
#[derive(Default)]
pub struct SharedFiles {
    files: BTreeMap<u32, SharedFile>,
    /// Mapped files by process.
    mapped: BTreeMap<u32, BTreeSet<MappedFile>>,
}

/// A file of the model and its real counterpart.
struct SharedFile {
    real: File,
    /// The model's contents at the last synchronisation.
    synced: Bytes,
    /// The contents at the last synchronisation as bytes, for pages that are not all zeros.
    known: BTreeMap<u64, Box<[u8]>>,
    /// Whether processes may write to the file.
    is_written: bool,
}

impl SharedFiles {
    /// Returns whether no file is mapped.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns an upper bound of the bytes that processes have written and that the model does not
    /// have yet.
    pub fn unsynced(&self) -> u64 {
        let written = self.files.values().filter(|shared| shared.is_written);
        let more = written.map(|shared| {
            let known = shared.known.len() as u64 * PAGE_SIZE;
            held_by(&shared.real).saturating_sub(known)
        });
        more.sum()
    }

    /// Returns the number of bytes that the real files hold.
    pub fn held(&self) -> u64 {
        let files = self.files.values();
        files.map(|shared| held_by(&shared.real)).sum()
    }

    /// Returns the real counterpart of a file that a process is about to map; read-only if the
    /// process may not write.
    pub fn real_file(
        &mut self,
        host: &Host,
        file: MappedFile,
        (arena, inputs): (&mut Arena, &Inputs),
    ) -> io::Result<File> {
        let shared = match self.files.entry(file.inode) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let mut shared = SharedFile {
                    real: memory_file()?,
                    synced: Bytes::default(),
                    known: BTreeMap::new(),
                    is_written: false,
                };
                if let Some(bytes) = host.mapped_bytes(file.inode) {
                    shared.push(bytes, arena, inputs)?;
                }
                entry.insert(shared)
            }
        };
        shared.is_written |= file.may_write;
        let path = format!("/proc/self/fd/{}", shared.real.as_raw_fd());
        File::options().read(true).write(file.may_write).open(path)
    }

    /// Records that a process has mapped a file.
    pub fn add(&mut self, host: &mut Host, pid: u32, file: MappedFile) {
        if self.mapped.entry(pid).or_default().insert(file) {
            host.retain_mapped(file);
        }
    }

    /// Records that a child inherits its parent's mappings.
    pub fn inherit(&mut self, host: &mut Host, parent: u32, child: u32) {
        for file in self.mapped.get(&parent).cloned().unwrap_or_default() {
            self.add(host, child, file);
        }
    }

    /// Removes all mappings of a process except these.
    pub fn keep_only(&mut self, host: &mut Host, pid: u32, left: &[RealMapping]) {
        let Some(mapped) = self.mapped.get_mut(&pid) else {
            return;
        };
        let real_inode = |file: &MappedFile| {
            let real = self.files.get(&file.inode);
            let data = real.and_then(|shared| shared.real.metadata().ok());
            data.map(|data| data.ino())
        };
        let is_left = |file: &MappedFile| {
            let number = real_inode(file);
            left.iter().any(|mapping| Some(mapping.inode) == number)
        };
        for file in mapped.iter() {
            let number = real_inode(file);
            let mut all = left.iter();
            if !all.any(|mapping| Some(mapping.inode) == number && mapping.is_shared) {
                host.forget_mapped_writes(pid, *file);
            }
        }
        let gone: Vec<MappedFile> = mapped
            .iter()
            .filter(|file| !is_left(file))
            .copied()
            .collect();
        for file in gone {
            mapped.remove(&file);
            host.release_mapped(file);
        }
        if mapped.is_empty() {
            self.mapped.remove(&pid);
        }
        let used: BTreeSet<u32> = self.mapped.values().flatten().map(|f| f.inode).collect();
        self.files.retain(|inode, _| used.contains(inode));
    }

    /// Returns the processes with file mappings.
    pub fn processes(&self) -> Vec<u32> {
        self.mapped.keys().copied().collect()
    }

    /// Copies what processes have written to the files of the model.
    pub fn pull(&mut self, host: &mut Host) -> io::Result<()> {
        for (inode, shared) in &mut self.files {
            let Some(bytes) = host.mapped_bytes(*inode) else {
                continue;
            };
            let len = bytes.len();
            shared.changes(len, |changes| host.write_mapped(*inode, changes))?;
        }
        Ok(())
    }

    /// Copies what the model has written to the real files.
    pub fn push(&mut self, host: &Host, arena: &mut Arena, inputs: &Inputs) -> io::Result<()> {
        for (inode, shared) in &mut self.files {
            if let Some(bytes) = host.mapped_bytes(*inode) {
                shared.push(bytes, arena, inputs)?;
            }
        }
        Ok(())
    }
}

impl SharedFile {
    /// Finds changes made by processes, up to the end of the file, and passes them on in parts: if
    /// every other byte has changed, they need many times the memory of the file.
    fn changes(&mut self, len: u64, mut take: impl FnMut(&[(u64, Vec<u8>)])) -> io::Result<()> {
        if !self.is_written {
            return Ok(());
        }
        let mut changes = Vec::new();
        let mut take_all = |changes: &mut Vec<(u64, Vec<u8>)>| {
            if !changes.is_empty() {
                take(changes);
                changes.clear();
            }
        };
        let len = len.min(self.synced.len());
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while let Some((from, to)) = self.data_from(at, len)? {
            at = to;
            let mut part = vec![0; (to - from) as usize];
            self.real.read_exact_at(&mut part, from)?;
            for (index, page) in part.chunks(PAGE).enumerate() {
                let number = from / PAGE_SIZE + index as u64;
                seen.insert(number);
                self.compare(number, page, &mut changes);
            }
            take_all(&mut changes);
        }
        // Pages that were punched out are zeros.
        let gone: Vec<u64> = self.known.keys().copied().collect();
        for number in gone.into_iter().filter(|number| !seen.contains(number)) {
            let end = len.min((number + 1) * PAGE_SIZE);
            if let Some(size) = end.checked_sub(number * PAGE_SIZE) {
                self.compare(number, &[0; PAGE][..size as usize], &mut changes);
            }
        }
        take_all(&mut changes);
        Ok(())
    }

    /// Returns the next data range of the real file, extended to whole pages.
    fn data_from(&self, at: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
        if at >= end {
            return Ok(None);
        }
        let Some(from) = seek(&self.real, at, libc::SEEK_DATA)?.filter(|from| *from < end) else {
            return Ok(None);
        };
        let hole = seek(&self.real, from, libc::SEEK_HOLE)?.unwrap_or(end);
        let from = from - from % PAGE_SIZE;
        Ok(Some((from, hole.min(end).min(from + AT_ONCE))))
    }

    /// Adds the differences between a page and its known contents.
    fn compare(&mut self, number: u64, page: &[u8], changes: &mut Vec<(u64, Vec<u8>)>) {
        const ZEROS: [u8; PAGE] = [0; PAGE];
        let known = self.known.get(&number).map_or(&ZEROS[..], |known| known);
        if known.get(..page.len()) == Some(page) {
            return;
        }
        let differs = |at: &usize| known.get(*at) != page.get(*at);
        let mut at = 0;
        while let Some(from) = (at..page.len()).find(differs) {
            let to = (from..page.len()).find(|at| !differs(at));
            at = to.unwrap_or(page.len());
            changes.push((number * PAGE_SIZE + from as u64, page[from..at].to_vec()));
        }
    }

    /// Copies the model's changes to the real file.
    fn push(&mut self, bytes: &Bytes, arena: &mut Arena, inputs: &Inputs) -> io::Result<()> {
        if bytes.is_same(&self.synced) {
            return Ok(());
        }
        let before = self.synced.len();
        if bytes.len() != before {
            self.real.set_len(bytes.len())?;
        }
        let mut pages: BTreeSet<u64> = self.known.keys().copied().collect();
        let mut at = 0;
        while let Some(data) = bytes.next_change(at, true) {
            pages.insert(data / PAGE_SIZE);
            at = (data / PAGE_SIZE + 1) * PAGE_SIZE;
        }
        // A process that maps a page can write behind the end of the file. If the file grows, those
        // bytes must not become visible.
        let tail = (bytes.len() != before).then_some(before / PAGE_SIZE);
        pages.extend(tail);
        for number in pages {
            let offset = number * PAGE_SIZE;
            if offset >= bytes.len() {
                self.known.remove(&number);
                continue;
            }
            if Some(number) != tail && bytes.is_same_page(&self.synced, number as usize) {
                continue;
            }
            let mut page = inputs.bytes(&bytes.read(offset, PAGE_SIZE), arena);
            self.real.write_all_at(&page, offset)?;
            page.resize(PAGE, 0);
            match page.iter().all(|byte| *byte == 0) {
                true => self.known.remove(&number),
                false => self.known.insert(number, page.into()),
            };
        }
        self.synced = bytes.clone();
        Ok(())
    }
}

/// Returns the offset of the next data or hole, if any.
fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: numbers only.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from as i64, whence) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_expr::ArrayId;
    use everett_vm::Buffer;

    fn shared() -> SharedFile {
        SharedFile {
            real: memory_file().unwrap(),
            synced: Bytes::default(),
            known: BTreeMap::new(),
            is_written: true,
        }
    }

    fn holds(bytes: &Bytes) -> Vec<u8> {
        bytes.evaluate(&mut Arena::new(), &|_: ArrayId, _: u32| 0)
    }

    /// Synchronises both sides of one file.
    fn sync(shared: &mut SharedFile, bytes: &mut Bytes) {
        let len = bytes.len();
        let write = |changes: &[(u64, Vec<u8>)]| {
            for (offset, change) in changes {
                bytes.write(*offset, &Buffer::with_bytes(change, change.len()));
            }
        };
        shared.changes(len, write).unwrap();
        let inputs = Inputs::default();
        shared.push(bytes, &mut Arena::new(), &inputs).unwrap();
        let mut real = vec![0; bytes.len() as usize];
        shared.real.read_exact_at(&mut real, 0).unwrap();
        assert_eq!(shared.real.metadata().unwrap().len(), bytes.len());
        assert_eq!(real, holds(bytes));
    }

    #[test]
    fn what_one_side_writes_the_other_has() {
        let mut file = shared();
        let mut bytes = Bytes::from_concrete(&[7; 10_000]);
        sync(&mut file, &mut bytes);
        file.real.write_all_at(b"native", 5000).unwrap();
        bytes.write(4990, &Buffer::with_bytes(b"model", 5));
        sync(&mut file, &mut bytes);
        assert_eq!(
            &holds(&bytes)[4988..5007],
            b"\x07\x07model\x07\x07\x07\x07\x07native\x07"
        );
        // Zeros count as changes too.
        file.real.write_all_at(&[0; 6], 5000).unwrap();
        sync(&mut file, &mut bytes);
        assert_eq!(holds(&bytes)[5000..5007], [0, 0, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn files_shrink_and_grow_with_zeros() {
        let mut file = shared();
        let mut bytes = Bytes::from_concrete(&[7; 9000]);
        sync(&mut file, &mut bytes);
        bytes.set_len(4100);
        sync(&mut file, &mut bytes);
        bytes.set_len(1 << 30);
        bytes.write(20_000, &Buffer::with_bytes(b"far", 3));
        let none = |changes: &[(u64, Vec<u8>)]| unreachable!("{changes:?}");
        file.changes(bytes.len(), none).unwrap();
        let inputs = Inputs::default();
        file.push(&bytes, &mut Arena::new(), &inputs).unwrap();
        let mut real = [1; 8];
        file.real.read_exact_at(&mut real, 4097).unwrap();
        assert_eq!(real, [7, 7, 7, 0, 0, 0, 0, 0]);
        file.real.read_exact_at(&mut real, 19_998).unwrap();
        assert_eq!(&real, b"\0\0far\0\0\0");
    }
}
