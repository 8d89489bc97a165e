//! Extended attributes of files.

use everett_expr::VisitTerms;
use everett_vm::Buffer;
use triomphe::Arc;

use crate::errno::Errno;

/// Bytes that attributes may take in an inode of ext4, and in a block of their own. The first ones
/// are in the inode if they fit.
const ROOM: [usize; 2] = [88, 4096 - 36];
/// Bytes that an attribute takes besides its name and its value.
const OWN_ROOM: usize = 16;

/// The name and the value of an attribute.
type Attribute = (Vec<u8>, Buffer);

/// The extended attributes of a file, in the order in which they were set. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Attributes(Option<Arc<Vec<Attribute>>>);

impl Attributes {
    fn all(&self) -> &[Attribute] {
        self.0.as_ref().map_or(&[], |all| all.as_slice())
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.all().iter().map(|(name, _)| name.as_slice())
    }

    /// The value of an attribute.
    pub fn get(&self, name: &[u8]) -> Option<&Buffer> {
        let mut all = self.all().iter();
        all.find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// Sets an attribute: `ENOSPC` if there is no room for it.
    pub fn set(&mut self, name: &[u8], value: Buffer) -> Result<(), Errno> {
        let mut left = ROOM;
        let others = self.all().iter().filter(|(of, _)| of != name);
        let others = others.map(|(name, value)| room(name, value));
        for taken in others.chain([room(name, &value)]) {
            let place = left.iter_mut().find(|left| **left >= taken);
            *place.ok_or(Errno::ENOSPC)? -= taken;
        }
        let all = Arc::make_mut(self.0.get_or_insert_default());
        match all.iter_mut().find(|(of, _)| of == name) {
            Some((_, old)) => *old = value,
            None => all.push((name.to_vec(), value)),
        }
        Ok(())
    }

    /// Removes an attribute. Returns whether it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        if self.get(name).is_none() {
            return false;
        }
        let all = Arc::make_mut(self.0.get_or_insert_default());
        all.retain(|(of, _)| of != name);
        true
    }

    /// Visits all terms.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for (_, value) in self.all() {
            value.terms().for_each(|term| visit.term(term));
        }
    }
}

fn room(name: &[u8], value: &Buffer) -> usize {
    // The file system has numbers for what precedes the first dot.
    let prefix = name.iter().position(|byte| *byte == b'.');
    let name = name.len() - prefix.map_or(0, |at| at + 1);
    OWN_ROOM + name.next_multiple_of(4) + value.len().next_multiple_of(4)
}
