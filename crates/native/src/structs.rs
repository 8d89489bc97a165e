//! Layouts of C structs, from the debug information of a native program.

use addr2line::gimli::{
    self, AttributeValue, DebuggingInformationEntry, DwTag, EndianSlice, LittleEndian, Unit,
    UnitOffset, constants as dw,
};
use std::path::Path;

use crate::accesses::debug_sections;

/// A member of a struct. Members of nested structs have names with dots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructMember {
    /// The name of the member.
    pub name: String,
    /// Offset of the member in bytes.
    pub offset: u32,
    /// Size of the member in bytes; `None` for an array whose size is not declared.
    pub size: Option<u32>,
}

/// Why there is no layout.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The program cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, String),
    /// The program has no such struct, or no debug information.
    #[error("{program} has no debug information about `{name}`; build it with -g")]
    Unknown {
        /// The program.
        program: String,
        /// The struct.
        name: String,
    },
    /// A member has no layout in bytes.
    #[error("member `{0}` has no layout in whole bytes")]
    NoBytes(String),
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type DebugEntry<'a> = DebuggingInformationEntry<Bytes<'a>>;

/// Returns the members of a struct of a program: `struct NAME`, or the NAME of a struct or a
/// typedef.
pub fn struct_members(program: &Path, name: &str) -> Result<Vec<StructMember>, LayoutError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        LayoutError::Unreadable(program.display().to_string(), error.to_string())
    };
    let bytes = std::fs::read(program).map_err(|error| unreadable(&error))?;
    let file = object::File::parse(&*bytes).map_err(|error| unreadable(&error))?;
    let sections = debug_sections(&file);
    let sections = sections.map_err(|error| unreadable(&error))?;
    let dwarf = sections.borrow(|data| EndianSlice::new(data, LittleEndian));
    let wanted = name.strip_prefix("struct ").unwrap_or(name).trim();
    let reader = Reader::new(&dwarf).map_err(|error| unreadable(&error))?;
    let found = reader.find(wanted).map_err(|error| unreadable(&error))?;
    let Some(place) = found else {
        return Err(LayoutError::Unknown {
            program: program.display().to_string(),
            name: name.to_owned(),
        });
    };
    let mut members = Vec::new();
    match reader.members(place, "", 0, 0, &mut members) {
        Ok(None) => Ok(members),
        Ok(Some(member)) => Err(LayoutError::NoBytes(member)),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Maximum nesting depth of types; beyond it, debug information is considered damaged.
const MOST_NESTED: usize = 64;
/// Maximum number of members of a struct; beyond it, debug information is considered damaged.
const MOST_MEMBERS: usize = 10_000;

/// The position of an entry: the index of its unit, and the offset in that unit.
type EntryPosition = (usize, UnitOffset);

/// A reader of types. Linked bitcode has entries that refer to those of other units.
struct Reader<'u, 'a> {
    dwarf: &'u gimli::Dwarf<Bytes<'a>>,
    units: Vec<Unit<Bytes<'a>>>,
}

impl<'u, 'a> Reader<'u, 'a> {
    fn new(dwarf: &'u gimli::Dwarf<Bytes<'a>>) -> Result<Reader<'u, 'a>, gimli::Error> {
        let (mut headers, mut units) = (dwarf.units(), Vec::new());
        while let Some(header) = headers.next()? {
            units.push(dwarf.unit(header)?);
        }
        Ok(Reader { dwarf, units })
    }

    fn entry(&self, (unit, at): EntryPosition) -> Result<DebugEntry<'a>, gimli::Error> {
        self.units[unit].entry(at)
    }

    /// Returns a struct of this name with members, also behind a typedef.
    fn find(&self, wanted: &str) -> Result<Option<EntryPosition>, gimli::Error> {
        for (unit, entries) in self.units.iter().enumerate() {
            let mut entries = entries.entries();
            while let Some(entry) = entries.next_dfs()? {
                let is_type = matches!(entry.tag(), dw::DW_TAG_structure_type | dw::DW_TAG_typedef);
                if !is_type || self.name(unit, entry)?.as_deref() != Some(wanted) {
                    continue;
                }
                if let Some((place, dw::DW_TAG_structure_type)) =
                    self.resolve((unit, entry.offset()))?
                    && self.entry(place)?.attr(dw::DW_AT_declaration).is_none()
                {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    fn name(&self, unit: usize, entry: &DebugEntry<'a>) -> Result<Option<String>, gimli::Error> {
        let Some(value) = entry.attr_value(dw::DW_AT_name) else {
            return Ok(None);
        };
        let text = self.dwarf.attr_string(&self.units[unit], value)?;
        Ok(Some(text.to_string_lossy().into_owned()))
    }

    fn number(entry: &DebugEntry<'a>, name: gimli::DwAt) -> Option<u64> {
        entry.attr_value(name)?.udata_value()
    }

    /// Returns the type of an entry.
    fn type_of(&self, unit: usize, entry: &DebugEntry<'a>) -> Option<EntryPosition> {
        match entry.attr_value(dw::DW_AT_type)? {
            AttributeValue::UnitRef(at) => Some((unit, at)),
            AttributeValue::DebugInfoRef(at) => {
                let mut units = self.units.iter().enumerate();
                units.find_map(|(unit, known)| Some((unit, at.to_unit_offset(&known.header)?)))
            }
            _ => None,
        }
    }

    /// Returns the type behind typedefs and qualifiers.
    fn resolve(
        &self,
        mut place: EntryPosition,
    ) -> Result<Option<(EntryPosition, DwTag)>, gimli::Error> {
        for _ in 0..MOST_NESTED {
            let entry = self.entry(place)?;
            match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_atomic_type => match self.type_of(place.0, &entry) {
                    Some(next) => place = next,
                    None => return Ok(None),
                },
                tag => return Ok(Some((place, tag))),
            }
        }
        Ok(None)
    }

    /// Returns the size of a type in bytes; `None` if it is not declared.
    fn size(&self, place: EntryPosition, depth: usize) -> Result<Option<u64>, gimli::Error> {
        let Some((place, tag)) = self.resolve(place)? else {
            return Ok(None);
        };
        let entry = self.entry(place)?;
        let own = Self::number(&entry, dw::DW_AT_byte_size);
        if tag != dw::DW_TAG_array_type || own.is_some() || depth > MOST_NESTED {
            return Ok(own);
        }
        let Some(element) = self.type_of(place.0, &entry) else {
            return Ok(None);
        };
        let mut size = self.size(element, depth + 1)?;
        let mut tree = self.units[place.0].entries_tree(Some(place.1))?;
        let mut dimensions = tree.root()?.children();
        while let Some(dimension) = dimensions.next()? {
            let entry = dimension.entry();
            let count = Self::number(entry, dw::DW_AT_count);
            let last = Self::number(entry, dw::DW_AT_upper_bound);
            let count = count.or_else(|| last?.checked_add(1));
            size = size
                .zip(count)
                .and_then(|(size, count)| size.checked_mul(count));
        }
        Ok(size.filter(|size| *size > 0))
    }

    /// Adds the members of a struct that begins at `base`. Returns the name of a member that has no
    /// layout in bytes, if there is one.
    fn members(
        &self,
        (unit, at): EntryPosition,
        prefix: &str,
        base: u64,
        depth: usize,
        members: &mut Vec<StructMember>,
    ) -> Result<Option<String>, gimli::Error> {
        if depth > MOST_NESTED || members.len() > MOST_MEMBERS {
            return Ok(Some(prefix.to_owned()));
        }
        let mut tree = self.units[unit].entries_tree(Some(at))?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() != dw::DW_TAG_member {
                continue;
            }
            let own = self.name(unit, entry)?;
            let name = match (&own, prefix) {
                (Some(own), "") => own.clone(),
                (Some(own), prefix) => format!("{prefix}.{own}"),
                (None, prefix) => prefix.to_owned(),
            };
            let bits = Self::number(entry, dw::DW_AT_bit_size);
            let offset = match bits {
                // A bit field has the offset of the byte that it starts in.
                Some(_) => Self::number(entry, dw::DW_AT_data_bit_offset).map(|bit| bit / 8),
                None => Some(Self::number(entry, dw::DW_AT_data_member_location).unwrap_or(0)),
            };
            let (Some(kind), Some(offset)) = (self.type_of(unit, entry), offset) else {
                return Ok(Some(name));
            };
            let offset = base + offset;
            if let (None, Some((nested, dw::DW_TAG_structure_type))) = (bits, self.resolve(kind)?) {
                if let Some(wrong) = self.members(nested, &name, offset, depth + 1, members)? {
                    return Ok(Some(wrong));
                }
                continue;
            }
            let first = Self::number(entry, dw::DW_AT_data_bit_offset).unwrap_or(0) % 8;
            let size = match bits {
                Some(bits) => Some((first + bits).div_ceil(8)),
                None => self.size(kind, 0)?,
            };
            let Ok(offset) = u32::try_from(offset) else {
                return Ok(Some(name));
            };
            let size = size.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
            add(members, StructMember { name, offset, size });
        }
        Ok(None)
    }
}

/// Adds a member. A member that shares bytes with the previous one, as bit fields do, becomes a
/// part of that.
fn add(members: &mut Vec<StructMember>, member: StructMember) {
    if let Some(last) = members.last_mut()
        && let Some(size) = last.size
        && member.offset < last.offset.saturating_add(size)
    {
        last.name = format!("{}+{}", last.name, member.name);
        let end = member.size.map(|size| member.offset.saturating_add(size));
        last.size = end.map(|end| size.max(end - last.offset));
        return;
    }
    members.push(member);
}
