//! Queues of bytes, concrete or symbolic: the contents of pipes and streams.

use std::collections::VecDeque;

use everett_expr::VisitTerms;
use everett_vm::Buffer;
use triomphe::Arc;

/// A byte FIFO. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct ByteQueue {
    pieces: Option<Arc<VecDeque<Arc<Buffer>>>>,
    /// Bytes of the first piece that are already consumed.
    gone: usize,
    len: u64,
}

impl ByteQueue {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends at most `room` bytes of these parts, and returns how many.
    pub fn append(&mut self, parts: &[Buffer], room: u64) -> u64 {
        let mut left = room as usize;
        for part in parts {
            let len = part.len().min(left);
            if len == 0 {
                continue;
            }
            left -= len;
            let piece = if len == part.len() {
                part.clone()
            } else {
                slice(part, 0, len)
            };
            let pieces = self.pieces.get_or_insert_with(Default::default);
            Arc::make_mut(pieces).push_back(Arc::new(piece));
        }
        let taken = room - left as u64;
        self.len += taken;
        taken
    }

    /// A copy of the first bytes, at most `wanted`.
    pub fn peek(&self, wanted: u64) -> Buffer {
        let len = wanted.min(self.len) as usize;
        let mut copy = Buffer::zeroed(len);
        let (mut done, mut from) = (0, self.gone);
        for piece in self.pieces.iter().flat_map(|pieces| pieces.iter()) {
            if done == len {
                break;
            }
            let room = (piece.len() - from).min(len - done);
            copy.copy_from(done, piece, from, room);
            done += room;
            from = 0;
        }
        copy
    }

    /// Drops the first bytes.
    pub fn skip(&mut self, count: u64) {
        let mut left = count.min(self.len) as usize;
        self.len -= left as u64;
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        let pieces = Arc::make_mut(pieces);
        while let Some(first) = pieces.front() {
            let held = first.len() - self.gone;
            if held > left {
                self.gone += left;
                break;
            }
            left -= held;
            self.gone = 0;
            pieces.pop_front();
        }
        if pieces.is_empty() {
            self.pieces = None;
        }
    }

    /// Removes and returns the first bytes, at most `wanted`.
    pub fn take(&mut self, wanted: u64) -> Buffer {
        let taken = self.peek(wanted);
        self.skip(taken.len() as u64);
        taken
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let pieces = self.pieces.iter().flat_map(|pieces| pieces.iter());
        pieces.for_each(|piece| piece.visit_terms(visit));
    }
}

/// A copy of a range of a buffer.
pub fn slice(from: &Buffer, at: usize, len: usize) -> Buffer {
    let mut part = Buffer::zeroed(len);
    part.copy_from(0, from, at, len);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> Buffer {
        Buffer::with_bytes(text.as_bytes(), text.len())
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut queue = ByteQueue::default();
        assert_eq!(queue.append(&[buffer("hello"), buffer(" world")], 8), 8);
        let clone = queue.clone();
        assert_eq!(queue.take(3).bytes(), b"hel");
        assert_eq!(queue.append(&[buffer("!")], 5), 1);
        assert_eq!(queue.peek(99).bytes(), b"lo wo!");
        assert_eq!(queue.take(4).bytes(), b"lo w");
        assert_eq!((queue.len(), queue.take(9).bytes()), (2, &b"o!"[..]));
        assert!(queue.is_empty());
        assert_eq!(clone.peek(99).bytes(), b"hello wo");
    }
}
