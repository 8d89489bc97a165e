//! Tables of constants that terms select from: interned, so that a read of
//! a large table is one small term.

use crate::digest::Digest128;
use crate::facts::Facts;
use crate::hash::FastMap;
use crate::node::TableId;
use std::sync::Arc;

/// One table.
pub(crate) struct Table {
    pub(crate) width: u32,
    pub(crate) entries: Arc<[u64]>,
    /// A digest of the table by content.
    pub(crate) digest: u64,
    /// Facts that hold for all entries.
    facts: Facts,
}

impl Table {
    /// Returns the value at an index; indices past the end give the last entry.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> u64 {
        let last = self.entries.len() - 1;
        self.entries[usize::try_from(index).map_or(last, |at| at.min(last))]
    }

    /// Returns facts that hold for the entries between two indices.
    pub(crate) fn facts_between(&self, min: u64, max: u64) -> Facts {
        let last = self.entries.len() as u64 - 1;
        match (min.min(last) as usize, max.min(last) as usize) {
            (0, end) if end as u64 == last => self.facts,
            (start, end) => facts_of(&self.entries[start..=end]),
        }
    }
}

fn facts_of(entries: &[u64]) -> Facts {
    let mut facts = Facts::constant(entries[0]);
    for &entry in entries {
        facts.zeros &= !entry;
        facts.ones &= entry;
        facts.min = facts.min.min(entry);
        facts.max = facts.max.max(entry);
    }
    facts.refined()
}

/// All tables of an arena.
#[derive(Default)]
pub(crate) struct Tables {
    tables: Vec<Option<Table>>,
    /// The tables by digest; tables whose digests collide are not shared.
    ids: FastMap<u64, TableId>,
    free: Vec<u32>,
}

impl Tables {
    /// Returns the table with these entries, which must not be empty.
    pub(crate) fn intern(&mut self, width: u32, entries: &[u64]) -> TableId {
        let start = Digest128::new().then_u64(u64::from(width));
        let digest = entries.iter().fold(start, |digest, &e| digest.then_u64(e));
        let digest = digest.finish() as u64;
        let same = |&id: &TableId| {
            let table = self.get(id);
            table.width == width && *table.entries == *entries
        };
        if let Some(id) = self.ids.get(&digest).copied().filter(same) {
            return id;
        }
        let table = Some(Table {
            width,
            entries: entries.into(),
            digest,
            facts: facts_of(entries),
        });
        let id = match self.free.pop() {
            Some(at) => {
                self.tables[at as usize] = table;
                TableId(at)
            }
            None => {
                self.tables.push(table);
                TableId(u32::try_from(self.tables.len() - 1).expect("fewer than 2^32 tables"))
            }
        };
        self.ids.insert(digest, id);
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: TableId) -> &Table {
        let table = self.tables[id.0 as usize].as_ref();
        table.expect("a table in use is stored")
    }

    /// Drops the tables that are not used.
    pub(crate) fn retain(&mut self, used: &[bool]) {
        for (at, _) in used.iter().enumerate().filter(|(_, used)| !**used) {
            if let Some(table) = self.tables[at].take() {
                if self.ids.get(&table.digest) == Some(&TableId(at as u32)) {
                    self.ids.remove(&table.digest);
                }
                self.free.push(at as u32);
            }
        }
    }

    /// Returns one more than the highest number of a table.
    pub(crate) fn bound(&self) -> usize {
        self.tables.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let tables = self.tables.iter().flatten();
        tables.map(|table| 64 + 8 * table.entries.len()).sum()
    }
}
