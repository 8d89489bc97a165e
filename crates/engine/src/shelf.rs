//! Where states that are put away wait: a file of traces, so that they take no memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::trace::Trace;

/// A trace on the shelf.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ShelfId {
    offset: u64,
    len: u32,
}

/// A file of traces.
pub struct Shelf {
    file: File,
    end: u64,
}

impl Shelf {
    /// An empty shelf in a new file.
    pub fn create(path: &Path) -> io::Result<Shelf> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        Ok(Shelf { file, end: 0 })
    }

    /// Puts a trace away.
    pub fn put(&mut self, trace: &Trace) -> io::Result<ShelfId> {
        let bytes = serde_json::to_vec(trace)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&bytes)?;
        let id = ShelfId {
            offset: self.end,
            len: bytes.len() as u32,
        };
        self.end += bytes.len() as u64;
        Ok(id)
    }

    /// Takes a trace up again.
    pub fn get(&mut self, id: ShelfId) -> io::Result<Trace> {
        let mut bytes = vec![0; id.len as usize];
        self.file.seek(SeekFrom::Start(id.offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}
