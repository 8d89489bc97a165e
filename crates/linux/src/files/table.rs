//! The inode table. Cloning is O(1), and a change copies one chunk, however many inodes there are.

use triomphe::Arc;

use super::inode::Inode;
use crate::ids::InodeId;

/// Inodes in a chunk, which are copied together.
const CHUNK: usize = 64;

type Chunk = Arc<Vec<Option<Arc<Inode>>>>;

/// Inodes by number; numbers are never reused.
#[derive(Clone, Debug, Default)]
pub struct InodeTable {
    chunks: Arc<Vec<Chunk>>,
    len: usize,
}

impl InodeTable {
    /// Adds an inode.
    pub fn push(&mut self, inode: Inode) -> InodeId {
        let chunks = Arc::make_mut(&mut self.chunks);
        if self.len.is_multiple_of(CHUNK) {
            chunks.push(Arc::default());
        }
        if let Some(last) = chunks.last_mut() {
            Arc::make_mut(last).push(Some(Arc::new(inode)));
        }
        self.len += 1;
        InodeId(self.len as u32 - 1)
    }

    /// The number of the next inode.
    pub fn next_id(&self) -> InodeId {
        InodeId(self.len as u32)
    }

    /// The inode with this number.
    pub fn get(&self, id: InodeId) -> Option<&Inode> {
        let index = id.0 as usize;
        self.chunks
            .get(index / CHUNK)?
            .get(index % CHUNK)?
            .as_deref()
    }

    /// The inode with this number, for changing it.
    pub fn get_mut(&mut self, id: InodeId) -> Option<&mut Inode> {
        let index = id.0 as usize;
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(index / CHUNK)?;
        let inode = Arc::make_mut(chunk).get_mut(index % CHUNK)?;
        inode.as_mut().map(Arc::make_mut)
    }

    /// Frees an inode.
    pub fn remove(&mut self, id: InodeId) {
        let index = id.0 as usize;
        if self.get(id).is_some() {
            let chunks = Arc::make_mut(&mut self.chunks);
            Arc::make_mut(&mut chunks[index / CHUNK])[index % CHUNK] = None;
        }
    }

    /// All inodes.
    pub fn iter(&self) -> impl Iterator<Item = &Inode> {
        let chunks = self.chunks.iter();
        chunks.flat_map(|chunk| chunk.iter().flatten().map(|inode| &**inode))
    }
}

#[cfg(test)]
mod tests {
    use super::super::inode::InodeKind;
    use super::*;

    #[test]
    fn clones_part_ways() {
        let mut table = InodeTable::default();
        let link = |name: &[u8]| Inode::new(InodeKind::Link(name.to_vec()), 0o777, 0);
        let ids: Vec<_> = (0..200u8).map(|at| table.push(link(&[at]))).collect();
        let clone = table.clone();
        table.get_mut(ids[150]).unwrap().mode = 1;
        table.remove(ids[3]);
        assert_eq!(table.get(ids[150]).unwrap().mode, 1);
        assert_eq!(clone.get(ids[150]).unwrap().mode, 0o777);
        assert!(table.get(ids[3]).is_none() && clone.get(ids[3]).is_some());
        assert_eq!((table.iter().count(), clone.iter().count()), (199, 200));
        assert_eq!(table.push(link(b"x")), InodeId(200));
    }
}
