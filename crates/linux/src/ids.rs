//! Typed indices into the tables of a host.

/// Inode number on its host, at least 1.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InodeId(pub u32);

/// Id of an open file description on its host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DescriptionId(pub u32);

/// Id of an object on its host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// Denotes the host's standard input when events are announced.
    pub const STDIN: ObjectId = ObjectId(u32::MAX);
}
