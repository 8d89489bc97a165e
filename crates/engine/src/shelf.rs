//! Where states that are put away wait: a file of traces, so that they take no memory.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::trace::Trace;

/// A trace on the shelf.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShelfId {
    offset: u64,
    len: u32,
    /// The weight of its state is 1 halved this often.
    pub halvings: u32,
}

/// A file of traces. It only grows, so what an earlier run wrote down about it stays true.
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

    /// The shelf of an earlier run.
    pub fn open(path: &Path) -> io::Result<Shelf> {
        let file = File::options().read(true).write(true).open(path)?;
        let end = file.metadata()?.len();
        Ok(Shelf { file, end })
    }

    /// Puts a trace away.
    pub fn put(&mut self, trace: &Trace) -> io::Result<ShelfId> {
        let bytes = serde_json::to_vec(trace)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&bytes)?;
        let id = ShelfId {
            offset: self.end,
            len: bytes.len() as u32,
            halvings: trace.pending.as_ref().map_or(0, |pending| pending.halvings),
        };
        self.end += bytes.len() as u64;
        Ok(id)
    }

    /// Takes a trace up again.
    pub fn get(&mut self, id: ShelfId) -> io::Result<Trace> {
        // Numbers from a file may be anything.
        let end = id.offset.checked_add(u64::from(id.len));
        if end.is_none_or(|end| end > self.end) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; id.len as usize];
        self.file.seek(SeekFrom::Start(id.offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Pending;

    #[test]
    fn traces_are_there_after_opening_again() {
        let path = std::env::temp_dir().join(format!("everett-shelf-{}", std::process::id()));
        let trace = |halvings| Trace {
            pending: Some(Pending {
                halvings,
                ..Pending::default()
            }),
            ..Trace::default()
        };
        let first = Shelf::create(&path).unwrap().put(&trace(3)).unwrap();
        let mut shelf = Shelf::open(&path).unwrap();
        let second = shelf.put(&trace(5)).unwrap();
        assert_eq!(shelf.get(first).unwrap(), trace(3));
        assert_eq!(shelf.get(second).unwrap(), trace(5));
        assert_eq!((first.halvings, second.halvings), (3, 5));
        for (offset, len) in [
            (0, u32::MAX),
            (u64::MAX, 9),
            (second.offset, second.len + 1),
        ] {
            let wrong = ShelfId {
                offset,
                len,
                ..first
            };
            assert!(shelf.get(wrong).is_err());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
