//! A persistent array of objects. Clones share everything that neither side has written since.

use triomphe::Arc;

use super::object::Object;

const CHUNK: usize = 16;
const BLOCK: usize = 32;

#[derive(Clone, Debug, Default)]
struct Chunk {
    objects: [Option<Object>; CHUNK],
}

#[derive(Clone, Debug, Default)]
struct Block {
    chunks: [Option<Arc<Chunk>>; BLOCK],
}

/// Objects by index.
#[derive(Clone, Debug, Default)]
pub struct Table {
    blocks: Option<Arc<Vec<Option<Arc<Block>>>>>,
    /// The first free index. Indices below it may belong to popped stack slots.
    pub next: u32,
    /// Number of stack slots that were popped since indices of popped slots were last reused.
    pub retired: u32,
}

impl Table {
    /// Returns the object at an index.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<&Object> {
        let index = index as usize;
        let block = self
            .blocks
            .as_ref()?
            .get(index / (CHUNK * BLOCK))?
            .as_ref()?;
        let chunk = block.chunks[index / CHUNK % BLOCK].as_ref()?;
        chunk.objects[index % CHUNK].as_ref()
    }

    /// Returns the object at an index, for writing; unshares it.
    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Object> {
        let index = index as usize;
        let blocks = Arc::make_mut(self.blocks.as_mut()?);
        let block = Arc::make_mut(blocks.get_mut(index / (CHUNK * BLOCK))?.as_mut()?);
        let chunk = Arc::make_mut(block.chunks[index / CHUNK % BLOCK].as_mut()?);
        chunk.objects[index % CHUNK].as_mut()
    }

    /// Sets the object at an index.
    pub fn set(&mut self, index: u32, object: Object) {
        let index = index as usize;
        let blocks = Arc::make_mut(self.blocks.get_or_insert_with(|| Arc::new(Vec::new())));
        let block = index / (CHUNK * BLOCK);
        if blocks.len() <= block {
            blocks.resize_with(block + 1, || None);
        }
        let block = Arc::make_mut(blocks[block].get_or_insert_with(Default::default));
        let chunk =
            Arc::make_mut(block.chunks[index / CHUNK % BLOCK].get_or_insert_with(Default::default));
        chunk.objects[index % CHUNK] = Some(object);
    }

    /// Frees the indices above the highest stack slot that is still allocated.
    pub fn reuse_popped(&mut self) {
        let is_popped = |index: u32| self.get(index).is_none_or(Object::is_popped);
        let mut next = self.next;
        while next > 0 && is_popped(next - 1) {
            next -= 1;
        }
        self.next = next;
        self.retired = 0;
    }

    /// Returns all objects, ordered by index.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        let blocks = self
            .blocks
            .as_ref()
            .map_or(&[][..], |blocks| blocks.as_slice());
        blocks
            .iter()
            .flatten()
            .flat_map(|block| block.chunks.iter().flatten())
            .flat_map(|chunk| chunk.objects.iter().flatten())
    }

    /// Returns the indices at which the objects of two tables may differ, that is, where the tables
    /// do not share them.
    pub fn differing(&self, other: &Table) -> Vec<u32> {
        let blocks = |table: &Table| table.blocks.as_ref().map_or(0, |blocks| blocks.len());
        let block = |table: &Table, at: usize| table.blocks.as_ref()?.get(at)?.clone();
        let mut differing = Vec::new();
        for at in 0..blocks(self).max(blocks(other)) {
            let pair = (block(self, at), block(other, at));
            if matches!(&pair, (Some(one), Some(two)) if Arc::ptr_eq(one, two)) {
                continue;
            }
            let chunk = |block: &Option<Arc<Block>>, at: usize| block.as_ref()?.chunks[at].clone();
            for inner in 0..BLOCK {
                let same = match (chunk(&pair.0, inner), chunk(&pair.1, inner)) {
                    (Some(one), Some(two)) => Arc::ptr_eq(&one, &two),
                    (one, two) => one.is_none() && two.is_none(),
                };
                if !same {
                    let first = ((at * BLOCK + inner) * CHUNK) as u32;
                    differing.extend(first..first + CHUNK as u32);
                }
            }
        }
        differing
    }
}
