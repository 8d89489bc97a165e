//! The output of commands: the beginning is kept, the rest is counted.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{pipe2, read};
use std::os::fd::OwnedFd;

use super::{Output, digest};

/// A pipe that a command writes to.
pub(super) struct Stream {
    /// The manager's end.
    pub ours: OwnedFd,
    /// The commands' end.
    pub theirs: OwnedFd,
    kept: Vec<u8>,
    most: usize,
    /// The number of bytes so far.
    pub bytes: u64,
}

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;
/// Number of pieces that are read before other work gets its turn.
const PIECES: u32 = 16;

impl Stream {
    pub(super) fn new(most: u64) -> nix::Result<Stream> {
        let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Stream {
            ours,
            theirs,
            kept: Vec::new(),
            most: most as usize,
            bytes: 0,
        })
    }

    /// Reads what is available. Returns `false` if nothing was.
    pub(super) fn take(&mut self) -> bool {
        let mut piece = [0; PIECE];
        let mut is_any = false;
        for _ in 0..PIECES {
            match read(&self.ours, &mut piece) {
                Ok(0) => break,
                Ok(count) => {
                    is_any = true;
                    self.bytes += count as u64;
                    let room = self.most.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(&piece[..count.min(room)]);
                }
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        is_any
    }

    /// Returns the output so far, and starts over.
    pub(super) fn output(&mut self) -> Output {
        let kept = std::mem::take(&mut self.kept);
        let output = Output {
            digest: digest(&kept),
            text: String::from_utf8_lossy(&kept).into_owned(),
            bytes: self.bytes,
        };
        self.bytes = 0;
        output
    }
}
