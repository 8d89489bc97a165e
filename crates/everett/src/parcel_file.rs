//! Converts guest files to plain data in a parcel, and back.

use everett_linux::{Contents, FileSpec};
use serde::{Deserialize, Serialize};

/// A file that the guest sees; `B` is the type of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParcelFile<B> {
    /// The path in the guest.
    pub path: Vec<u8>,
    /// The contents of the file.
    pub contents: ParcelContents<B>,
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Modification time, in nanoseconds since 1970.
    pub modified_ns: Option<u64>,
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParcelContents<B> {
    /// The bytes of a regular file.
    Bytes(B),
    /// A directory.
    Directory,
    /// A symbolic link to this path.
    Link(Vec<u8>),
}

impl<B> ParcelFile<B> {
    /// Converts the bytes of the file.
    pub fn try_map<C, E>(self, map: impl FnOnce(B) -> Result<C, E>) -> Result<ParcelFile<C>, E> {
        Ok(ParcelFile {
            path: self.path,
            contents: match self.contents {
                ParcelContents::Bytes(bytes) => ParcelContents::Bytes(map(bytes)?),
                ParcelContents::Directory => ParcelContents::Directory,
                ParcelContents::Link(target) => ParcelContents::Link(target),
            },
            mode: self.mode,
            owner: self.owner,
            modified_ns: self.modified_ns,
        })
    }
}

/// Converts a file to its form in a parcel.
pub(crate) fn parcel_file(file: &FileSpec) -> ParcelFile<Vec<u8>> {
    ParcelFile {
        path: file.path.clone(),
        contents: match &file.contents {
            Contents::Shared(source) => ParcelContents::Bytes(source.bytes().to_vec()),
            Contents::Concrete(bytes) => ParcelContents::Bytes(bytes.to_vec()),
            Contents::Link(target) => ParcelContents::Link(target.clone()),
            _ => ParcelContents::Directory,
        },
        mode: file.mode,
        owner: file.owner,
        modified_ns: file.modified_ns,
    }
}

/// Converts a file of a parcel to its form in the guest.
pub(crate) fn file_spec(file: &ParcelFile<Vec<u8>>) -> FileSpec {
    FileSpec {
        owner: file.owner,
        modified_ns: file.modified_ns,
        ..FileSpec::new(
            file.path.clone(),
            match &file.contents {
                ParcelContents::Bytes(bytes) => Contents::Concrete(bytes.as_slice().into()),
                ParcelContents::Directory => Contents::Directory,
                ParcelContents::Link(target) => Contents::Link(target.clone()),
            },
            file.mode,
        )
    }
}
