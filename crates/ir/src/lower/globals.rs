//! Assigns addresses to global variables and defines the symbols that a linker would define.

use std::collections::BTreeMap;

use super::LowerError;
use super::fold::{Folder, NotPlain};
use super::shape::PartKind;
use crate::address::{CLASS_COUNT, Slot, class_for, slots_in};
use crate::code;
use crate::module::{ConstantKind, Global, GlobalId, Linkage, Module, Type, TypeId, Value};

/// Maximum extent of initial content.
const MAX_INITIAL_BYTES: u64 = 1 << 32;
/// Maximum number of scalars that are written one by one: a bound for constants with shared parts.
const MAX_SCALARS: u64 = 1 << 28;
/// Default priority of constructors.
const DEFAULT_PRIORITY: u64 = 65_535;

/// The arrays of functions that run before and after `main`.
const ARRAYS: [(&str, &str); 3] = [
    ("preinit_array", ""),
    ("init_array", "llvm.global_ctors"),
    ("fini_array", "llvm.global_dtors"),
];

/// The layout of globals.
pub(super) struct Layout<'a> {
    module: &'a Module,
    /// The program's globals.
    pub globals: Vec<code::Global>,
    /// Number of slots used in each class.
    pub slots_used: Vec<u32>,
    /// Address of each global of the module; `None` for thread-local ones.
    pub addresses: Vec<Option<u64>>,
    /// The program's global for each global of the module, if it has one.
    pub ids: Vec<Option<code::GlobalId>>,
    /// Addresses of symbols.
    pub symbols: BTreeMap<String, u64>,
    /// Content to be written when all addresses are known.
    contents: Vec<Content>,
    placed: Vec<bool>,
}

/// Initial content of a part of a global.
struct Content {
    global: usize,
    offset: u64,
    value: Value,
}

/// An entry of an init or fini array.
enum InitArrayEntry {
    /// A function from `llvm.global_ctors`.
    Function(Value),
    /// A variable in the section of the array.
    Variable(GlobalId),
}

impl<'a> Layout<'a> {
    /// Assigns every global its address.
    pub fn new(module: &'a Module) -> Result<Self, LowerError> {
        let count = module.globals.len();
        let mut layout = Self {
            module,
            globals: Vec::new(),
            slots_used: vec![0; CLASS_COUNT],
            addresses: vec![Some(0); count],
            ids: vec![None; count],
            symbols: BTreeMap::new(),
            contents: Vec::new(),
            placed: vec![false; count],
        };
        layout.place_arrays()?;
        layout.place_sections()?;
        for (id, global) in module.globals() {
            if layout.placed[id.index()] || is_special(global) {
                continue;
            }
            if global.initializer.is_some() {
                layout.place_global(id, global)?;
            } else {
                layout.place_undefined(id, global)?;
            }
        }
        Ok(layout)
    }

    /// Reserves a slot.
    fn place(&mut self, global: code::Global) -> Result<(code::GlobalId, u64), LowerError> {
        let too_large = || LowerError::GlobalTooLarge {
            name: global.name.clone(),
        };
        let class = class_for(global.size, global.align).ok_or_else(too_large)?;
        let used = &mut self.slots_used[class as usize];
        if u64::from(*used) >= slots_in(class) {
            return Err(too_large());
        }
        let address = Slot {
            class,
            index: *used,
        }
        .start(global.align);
        *used += 1;
        let id = code::GlobalId(self.globals.len() as u32);
        self.globals.push(code::Global { address, ..global });
        Ok((id, address))
    }

    fn place_global(&mut self, id: GlobalId, global: &Global) -> Result<(), LowerError> {
        let (size, align) = self.size_and_align(global);
        let (placed, address) = self.place(code::Global {
            name: global.name.to_string(),
            address: 0,
            size,
            align,
            bytes: Vec::new(),
            constant: global.constant,
            thread_local: global.thread_local,
        })?;
        self.bind(id, global, address, Some(placed));
        if let Some(value) = global.initializer {
            self.contents.push(Content {
                global: placed.0 as usize,
                offset: 0,
                value,
            });
        }
        Ok(())
    }

    fn bind(&mut self, id: GlobalId, global: &Global, address: u64, own: Option<code::GlobalId>) {
        self.placed[id.index()] = true;
        self.addresses[id.index()] = (!global.thread_local).then_some(address);
        self.ids[id.index()] = own;
        if !global.name.is_empty() {
            self.symbols.insert(global.name.to_string(), address);
        }
    }

    fn size_and_align(&self, global: &Global) -> (u64, u64) {
        let types = &self.module.types;
        let align = global.align.max(types.abi_align(global.ty)).min(1 << 30);
        (types.size_of(global.ty), align.next_power_of_two())
    }

    /// Places a symbol that the module only declares.
    fn place_undefined(&mut self, id: GlobalId, global: &Global) -> Result<(), LowerError> {
        if let Some(&address) = self.symbols.get(&*global.name) {
            self.bind(id, global, address, None);
            return Ok(());
        }
        if global.linkage == Linkage::ExternalWeak && !global.thread_local {
            self.bind(id, global, 0, None);
            return Ok(());
        }
        // This is an object of size zero: its address can be taken, and any access is a finding.
        let (placed, address) = self.place(empty_object(&global.name, global.thread_local))?;
        self.bind(id, global, address, Some(placed));
        Ok(())
    }

    /// Places the arrays of constructors and destructors, with their symbols.
    fn place_arrays(&mut self) -> Result<(), LowerError> {
        for (array, list) in ARRAYS {
            let mut entries = self.listed_functions(list);
            self.find_section_entries(array, &mut entries);
            entries.sort_by_key(|(priority, _)| *priority);
            let mut size = 0u64;
            let mut offsets = Vec::with_capacity(entries.len());
            for (_, entry) in &entries {
                offsets.push(size);
                size += match entry {
                    InitArrayEntry::Function(_) => 8,
                    InitArrayEntry::Variable(id) => {
                        let global = &self.module.globals[id.index()];
                        self.size_and_align(global).0.next_multiple_of(8)
                    }
                };
            }
            let name = format!("__{array}_start");
            let object = code::Global {
                size,
                constant: true,
                ..empty_object(&name, false)
            };
            let (placed, address) = self.place(object)?;
            self.symbols.insert(name, address);
            self.symbols
                .insert(format!("__{array}_end"), address + size);
            for ((_, entry), offset) in entries.into_iter().zip(offsets) {
                let value = match entry {
                    InitArrayEntry::Function(value) => value,
                    InitArrayEntry::Variable(id) => {
                        let global = &self.module.globals[id.index()];
                        self.bind(id, global, address + offset, None);
                        let Some(value) = global.initializer else {
                            continue;
                        };
                        value
                    }
                };
                self.contents.push(Content {
                    global: placed.0 as usize,
                    offset,
                    value,
                });
            }
        }
        Ok(())
    }

    /// Returns the functions that `llvm.global_ctors` or `llvm.global_dtors` lists, with their
    /// priorities.
    fn listed_functions(&self, list: &str) -> Vec<(u64, InitArrayEntry)> {
        let constant = |value: Value| match value {
            Value::Constant(id) => Some(&self.module.constant(id).kind),
            _ => None,
        };
        let members = |value: Value| match constant(value) {
            Some(ConstantKind::Aggregate(members)) => &members[..],
            _ => &[],
        };
        let list = self.module.global_named(list);
        let initializer = list.and_then(|id| self.module.globals[id.index()].initializer);
        let mut entries = Vec::new();
        for &entry in initializer.map(members).unwrap_or_default() {
            let [priority, function, ..] = members(entry) else {
                continue;
            };
            let priority = match constant(*priority) {
                Some(ConstantKind::Integer(priority)) => *priority,
                _ => 0,
            };
            if !matches!(constant(*function), Some(ConstantKind::Null)) {
                entries.push((priority, InitArrayEntry::Function(*function)));
            }
        }
        entries
    }

    /// Adds the variables in a section `.init_array` or `.init_array.PRIORITY` to `entries`.
    fn find_section_entries(&self, array: &str, entries: &mut Vec<(u64, InitArrayEntry)>) {
        for (id, global) in self.module.globals() {
            let Some(section) = &global.section else {
                continue;
            };
            let Some(rest) = section
                .strip_prefix('.')
                .and_then(|name| name.strip_prefix(array))
            else {
                continue;
            };
            let priority = match rest.strip_prefix('.') {
                Some(priority) => priority.parse().unwrap_or(DEFAULT_PRIORITY),
                None if rest.is_empty() => DEFAULT_PRIORITY,
                None => continue,
            };
            if global.initializer.is_some() && !global.thread_local {
                entries.push((priority, InitArrayEntry::Variable(id)));
            }
        }
    }

    /// Places each section whose start or end the program refers to as one object.
    fn place_sections(&mut self) -> Result<(), LowerError> {
        let mut members: BTreeMap<&str, Vec<GlobalId>> = BTreeMap::new();
        for (_, global) in self.module.globals() {
            let section = section_of_bound(&global.name);
            if let Some(section) = section.filter(|_| global.initializer.is_none()) {
                members.entry(section).or_default();
            }
        }
        for (id, global) in self.module.globals() {
            let wanted = global.initializer.is_some() && !global.thread_local;
            let section = global.section.as_deref().filter(|_| wanted);
            if let Some(list) = section.and_then(|section| members.get_mut(section)) {
                list.push(id);
            }
        }
        for (section, members) in members {
            self.place_section(section, &members)?;
        }
        Ok(())
    }

    fn place_section(&mut self, section: &str, members: &[GlobalId]) -> Result<(), LowerError> {
        let (mut size, mut align, mut constant) = (0u64, 16, true);
        let mut offsets = Vec::with_capacity(members.len());
        let module = self.module;
        for id in members {
            let global = &module.globals[id.index()];
            let (member_size, member_align) = self.size_and_align(global);
            let too_large = || LowerError::GlobalTooLarge {
                name: section.to_owned(),
            };
            size = size
                .checked_next_multiple_of(member_align)
                .ok_or_else(too_large)?;
            offsets.push(size);
            size = size.checked_add(member_size).ok_or_else(too_large)?;
            align = align.max(member_align);
            constant &= global.constant;
        }
        if members.is_empty() && self.is_weak_bound(section) {
            return Ok(());
        }
        let object = code::Global {
            size,
            align,
            constant,
            ..empty_object(section, false)
        };
        let (placed, address) = self.place(object)?;
        self.symbols.insert(format!("__start_{section}"), address);
        self.symbols
            .insert(format!("__stop_{section}"), address + size);
        for (id, offset) in members.iter().zip(offsets) {
            let global = &module.globals[id.index()];
            self.bind(*id, global, address + offset, None);
            if let Some(value) = global.initializer {
                self.contents.push(Content {
                    global: placed.0 as usize,
                    offset,
                    value,
                });
            }
        }
        Ok(())
    }

    /// Returns whether the bounds of an empty section may be null.
    fn is_weak_bound(&self, section: &str) -> bool {
        [format!("__start_{section}"), format!("__stop_{section}")]
            .iter()
            .all(|name| {
                self.module.global_named(name).is_none_or(|id| {
                    self.module.globals[id.index()].linkage == Linkage::ExternalWeak
                })
            })
    }

    /// Writes the initial content of all globals.
    pub fn fill(&mut self, folder: &mut Folder<'a>) -> Result<(), LowerError> {
        let mut budget = MAX_SCALARS;
        for content in std::mem::take(&mut self.contents) {
            let global = &mut self.globals[content.global];
            let mut writer = Writer {
                module: self.module,
                folder,
                bytes: &mut global.bytes,
            };
            writer
                .write(content.value, content.offset, &mut budget)
                .map_err(|what| LowerError::Initializer {
                    name: global.name.clone(),
                    what,
                })?;
        }
        Ok(())
    }
}

/// Returns whether a global is metadata for the compiler or the linker, not part of the program.
fn is_special(global: &Global) -> bool {
    global.linkage == Linkage::Appending || global.section.as_deref() == Some("llvm.metadata")
}

/// Returns the section of `__start_SECTION` or `__stop_SECTION`.
fn section_of_bound(name: &str) -> Option<&str> {
    let section = name
        .strip_prefix("__start_")
        .or_else(|| name.strip_prefix("__stop_"))?;
    let identifier = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!section.is_empty() && section.bytes().all(identifier)).then_some(section)
}

fn empty_object(name: &str, thread_local: bool) -> code::Global {
    code::Global {
        name: name.to_owned(),
        address: 0,
        size: 0,
        align: 16,
        bytes: Vec::new(),
        constant: false,
        thread_local,
    }
}

/// Writes constants as bytes.
struct Writer<'w, 'a> {
    module: &'a Module,
    folder: &'w mut Folder<'a>,
    bytes: &'w mut Vec<u8>,
}

impl Writer<'_, '_> {
    /// Writes a constant at an offset. Without recursion, because the input determines the depth.
    fn write(&mut self, value: Value, offset: u64, budget: &mut u64) -> Result<(), &'static str> {
        let mut stack = vec![(value, offset)];
        while let Some((value, offset)) = stack.pop() {
            *budget = budget.checked_sub(1).ok_or("too many parts")?;
            let Value::Constant(id) = value else {
                let word = self.folder.word(value).map_err(reason)?;
                self.put(offset, &word.to_le_bytes())?;
                continue;
            };
            let constant = self.module.constant(id);
            match &constant.kind {
                ConstantKind::Null | ConstantKind::Undef | ConstantKind::Poison => {}
                ConstantKind::Data(bytes) => self.put(offset, bytes)?,
                ConstantKind::Aggregate(members)
                    if !matches!(self.module.types[constant.ty], Type::Vector { .. }) =>
                {
                    self.push_members(constant.ty, members, offset, &mut stack)?;
                }
                _ => self.scalar(value, constant.ty, offset)?,
            }
        }
        Ok(())
    }

    fn push_members(
        &self,
        ty: TypeId,
        members: &[Value],
        offset: u64,
        stack: &mut Vec<(Value, u64)>,
    ) -> Result<(), &'static str> {
        let types = &self.module.types;
        for (index, &member) in members.iter().enumerate() {
            let element = types.element(ty, index as u64).ok_or("aggregate")?;
            if types.size_of(element) == 0 {
                continue;
            }
            let inside = match types.field_offset(ty, index) {
                Some(field) => field,
                None => types
                    .size_of(element)
                    .checked_mul(index as u64)
                    .ok_or("aggregate")?,
            };
            stack.push((member, offset.checked_add(inside).ok_or("aggregate")?));
        }
        Ok(())
    }

    /// Writes a scalar or vector.
    fn scalar(&mut self, value: Value, ty: TypeId, offset: u64) -> Result<(), &'static str> {
        let shape = self.folder.shapes.get(ty).ok_or("type")?;
        let words = self.folder.words(value).map_err(reason)?.to_vec();
        for part in &shape.parts {
            let first = part.register as usize;
            let at = offset + part.offset;
            match part.kind {
                PartKind::Scalar(lane) => {
                    let size = lane.bits().div_ceil(8) as usize;
                    let bytes: Vec<u8> = words
                        .iter()
                        .skip(first)
                        .flat_map(|word| word.to_le_bytes())
                        .collect();
                    self.put(at, bytes.get(..size).unwrap_or(&bytes))?;
                }
                PartKind::Packed { lanes, width } => {
                    let limbs = usize::from(width).div_ceil(64);
                    let mut bytes = vec![0u8; (lanes as usize * usize::from(width)).div_ceil(8)];
                    for bit in 0..lanes as usize * usize::from(width) {
                        let (lane, low) = (bit / usize::from(width), bit % usize::from(width));
                        let word = words.get(first + lane * limbs + low / 64).copied();
                        let set = word.unwrap_or(0) >> (low % 64) & 1;
                        bytes[bit / 8] |= (set as u8) << (bit % 8);
                    }
                    self.put(at, &bytes)?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), &'static str> {
        let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let end = offset
            .checked_add(used as u64)
            .filter(|end| *end <= MAX_INITIAL_BYTES);
        let end = end.ok_or("contents too large")? as usize;
        if used == 0 {
            return Ok(());
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset as usize..end].copy_from_slice(&bytes[..used]);
        Ok(())
    }
}

fn reason(problem: NotPlain) -> &'static str {
    match problem {
        NotPlain::AtRunTime => "an expression that is known at run time only",
        NotPlain::Unsupported(name) => name,
    }
}
