//! Writes files in the background, so that a search does not wait for the disk.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::folder::{Folder, WriteError};

/// Files that may wait to be written; more make the search wait.
const WAITING: usize = 1024;

/// A thread that writes files into a folder, in the order in which they are given.
pub struct Writer {
    sender: Option<SyncSender<(String, Vec<u8>)>>,
    thread: Option<JoinHandle<Option<WriteError>>>,
}

impl Writer {
    /// A writer for a folder.
    pub fn new(folder: Folder) -> Writer {
        let (sender, receiver) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || write_all(&folder, &receiver));
        Writer {
            sender: Some(sender),
            thread: Some(thread),
        }
    }

    /// Writes a file, later. `false` if writing has failed already.
    pub fn write(&self, name: String, bytes: Vec<u8>) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|sender| sender.send((name, bytes)).is_ok())
    }

    /// Waits until all is written; the first thing that went wrong, if any.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.sender = None;
        let failure = self
            .thread
            .take()
            .and_then(|thread| thread.join().ok().flatten());
        failure.map_or(Ok(()), Err)
    }
}

/// Stops at the first failure: a full disk does not get better by trying again for every test.
fn write_all(folder: &Folder, files: &Receiver<(String, Vec<u8>)>) -> Option<WriteError> {
    files
        .iter()
        .find_map(|(name, bytes)| folder.write(&name, &bytes).err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_there_when_it_has_finished() {
        let root = std::env::temp_dir().join(format!("everett-writer-{}", std::process::id()));
        let writer = Writer::new(Folder::open(&root).unwrap());
        for number in 0..5000 {
            assert!(writer.write(format!("tests/{number}"), vec![number as u8]));
        }
        writer.finish().unwrap();
        assert_eq!(
            std::fs::read(root.join("tests/4999")).unwrap(),
            [4999u32 as u8]
        );
        assert_eq!(std::fs::read_dir(root.join("tests")).unwrap().count(), 5000);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_first_failure_is_told() {
        let root = std::env::temp_dir().join(format!("everett-writer-bad-{}", std::process::id()));
        let folder = Folder::open(&root).unwrap();
        folder.write("file", b"").unwrap();
        let writer = Writer::new(folder);
        writer.write("file/below".to_owned(), Vec::new());
        let error = writer.finish().unwrap_err();
        assert!(error.to_string().contains("file/below"), "{error}");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
