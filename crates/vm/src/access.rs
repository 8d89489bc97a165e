//! Loads and stores through concrete and symbolic pointers.
//!
//! Pointer resolution first reduces a symbolic pointer to one memory object: the object that
//! contains the constant part of the pointer, or one of the objects that an if-then-else inside the
//! pointer selects. The vm then asks the oracle whether the access stays in bounds; the path on
//! which it does not ends with a finding. If few positions are left, or if a read finds only
//! concrete bytes, the access becomes one expression over all positions. Otherwise the vm
//! concretises the pointer and forks one path per value.

use everett_expr::{BinaryOp, ExprId, Node};

use crate::bug::bytes;
use crate::memory::{AccessFault, JournaledWrites, Object, ObjectKind, SymbolicWrite, join_bytes};
use crate::oracle::{Narrowed, Note};
use crate::positions::Positions;
use crate::preemption::Access;
use crate::stride::{Overlap, Stride};
use crate::value::Value;
use crate::vm::{Interrupt, Vm};

/// Size of objects above which accesses at symbolic offsets are warned of, as in KLEE.
const LARGE_ARRAY: u64 = 4096;

/// The target of a load or store, after the bounds check.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AccessTarget {
    /// A concrete address.
    At(u64),
    /// A symbolic offset into the object that starts at `object`. The offset is in bounds.
    Within {
        /// First address of the object.
        object: u64,
        /// The offset, a 64-bit term.
        offset: ExprId,
        /// The possible values of the offset.
        positions: Positions,
    },
}

/// Minimum size of a table. A smaller set of concrete values becomes an if-then-else, which other
/// terms fold into.
const MIN_TABLE: usize = 16;
/// Maximum number of concrete values that a read through a symbolic pointer may select from.
const MAX_TABLE: u64 = 1 << 18;

/// Maximum number of if-then-else leaves that are examined before the pointer is concretised.
const MAX_LEAVES: usize = 32;

impl Vm<'_> {
    /// Loads `len` (1 to 8) bytes.
    #[cold]
    #[inline(never)]
    pub fn load(&mut self, pointer: Value, len: usize) -> Result<Value, Interrupt> {
        if let Some(word) = self.before_function(pointer, len)? {
            return Ok(Value::concrete(word));
        }
        match self.resolve_access(pointer, len as u64, false)? {
            AccessTarget::At(address) => {
                let object = self.checked(address, len as u64, false)?;
                let (start, address) = (object.start, address);
                let object = self.memory.near(start).ok_or(Interrupt::EndPath)?;
                Ok(object.load(self.arena, address - start, len))
            }
            AccessTarget::Within {
                object,
                offset,
                positions,
            } => self.load_within(object, offset, positions, len),
        }
    }

    /// Stores `len` (1 to 8) bytes.
    #[cold]
    #[inline(never)]
    pub fn store(&mut self, pointer: Value, len: usize, value: Value) -> Result<(), Interrupt> {
        let place = self.resolve_access(pointer, len as u64, true)?;
        self.store_at(place, len, value)
    }

    /// Stores `len` (1 to 8) bytes to a target that [`Vm::resolve_access`] returned. Asks the
    /// oracle nothing, so that an operation with several stores can resolve all targets before the
    /// first store.
    pub(crate) fn store_at(
        &mut self,
        place: AccessTarget,
        len: usize,
        value: Value,
    ) -> Result<(), Interrupt> {
        let value = self.fit(value, len);
        match place {
            AccessTarget::At(address) => {
                if self.options.log_writes {
                    self.log_write(address, len as u64);
                }
                if let Some(object) = self.memory.object_at_mut(address, len as u64) {
                    let offset = address - object.start;
                    object.store(self.arena, offset, len, value);
                }
                Ok(())
            }
            AccessTarget::Within {
                object,
                offset,
                positions,
            } => self.store_within(object, offset, positions, len, value),
        }
    }

    /// Resizes a term to the bytes that it fills: terms in memory have exactly that width.
    #[inline(always)]
    pub(crate) fn fit(&mut self, value: Value, len: usize) -> Value {
        match value.term {
            None => value,
            Some(_) => {
                let term = value.to_term(self.arena, 8 * len as u32);
                Value::of_term(self.arena, term)
            }
        }
    }

    /// Resolves the target of an access of `len` bytes, asking the oracle as needed. The returned
    /// target is in bounds.
    pub fn resolve_access(
        &mut self,
        pointer: Value,
        len: u64,
        write: bool,
    ) -> Result<AccessTarget, Interrupt> {
        let Some(term) = pointer.term else {
            self.checked(pointer.bits, len, write)?;
            return Ok(AccessTarget::At(pointer.bits));
        };
        let term = self.choose_leaf(term)?;
        if let Some(address) = self.arena.as_const(term) {
            self.checked(address, len, write)?;
            return Ok(AccessTarget::At(address));
        }
        match self.base_object(term) {
            Some((start, size)) => self.resolve_within(term, start, size, len, write),
            None => self.resolve_anywhere(term, len, write),
        }
    }

    pub(crate) fn resolve_within(
        &mut self,
        term: ExprId,
        start: u64,
        size: u64,
        len: u64,
        write: bool,
    ) -> Result<AccessTarget, Interrupt> {
        let base = self.arena.constant(64, start);
        let offset = self.arena.sub(term, base);
        let inside = if len <= size {
            let last = self.arena.constant(64, size - len);
            self.arena.ule(offset, last)
        } else {
            self.arena.bool_constant(false)
        };
        if !self.decide_term(inside)? {
            return Err(self.outside(term, start, len, write));
        }
        if self.differs(start, size, write) {
            let address = self.concretize(Value {
                bits: 0,
                term: Some(term),
            })?;
            self.checked(address, len, write)?;
            return Ok(AccessTarget::At(address));
        }
        self.check_live(start, len, write)?;
        self.check_symbolic_size(start, offset, len, write)?;
        if let Some(offset) = self.arena.as_const(offset) {
            return Ok(AccessTarget::At(start + offset));
        }
        self.target_in_bounds(start, offset, size, len, write)
    }

    /// Chooses the target of an access: all positions that the offset alone allows; if these are
    /// too many, the positions that the path condition allows; if these are also too many, one
    /// concrete position.
    fn target_in_bounds(
        &mut self,
        start: u64,
        offset: ExprId,
        size: u64,
        len: u64,
        write: bool,
    ) -> Result<AccessTarget, Interrupt> {
        if size > LARGE_ARRAY && self.oracle.keeps_notes() {
            self.note_large_array(start, size, write);
        }
        let object = start;
        let range = self.arena.unsigned_range(offset);
        if let Some(positions) = self.positions(start, offset, range, size, len, write) {
            return Ok(AccessTarget::Within {
                object,
                offset,
                positions,
            });
        }
        let offset = self.initialised(offset)?;
        if let Some(offset) = self.arena.as_const(offset) {
            return Ok(AccessTarget::At(start + offset));
        }
        self.asks();
        let most = self.most_positions(start, size, write);
        let step = Stride::of(self.arena, offset).step;
        let few = |(min, max): (u64, u64)| (max - min) / step < most;
        match self.oracle.narrow(self.arena, offset, &few)? {
            Narrowed::Value(offset) => Ok(AccessTarget::At(start + offset)),
            Narrowed::Range(min, max) => {
                let positions = self.positions(start, offset, (min, max), size, len, write);
                let positions = positions.ok_or(Interrupt::EndPath)?;
                Ok(AccessTarget::Within {
                    object,
                    offset,
                    positions,
                })
            }
        }
    }

    /// Warns once of each large object that is accessed at a symbolic offset, in KLEE's words.
    fn note_large_array(&mut self, start: u64, size: u64, write: bool) {
        let access = if write { "write" } else { "read" };
        let note = format!(
            "Symbolic memory {access} will send the following array of {size} bytes to the constraint \
             solver -- large symbolic arrays may cause significant performance issues: at {start:#x}"
        );
        self.note(Note::WarningOnce(note));
    }

    /// Returns a part of a target: `len` bytes that start `at` bytes after its first byte. `None`
    /// if the part has too many positions.
    pub(crate) fn shifted(
        &mut self,
        target: AccessTarget,
        at: u64,
        len: u64,
    ) -> Option<AccessTarget> {
        let (object, offset, positions) = match target {
            AccessTarget::At(address) => return Some(AccessTarget::At(address + at)),
            AccessTarget::Within {
                object,
                offset,
                positions,
            } => (object, offset, positions),
        };
        let (_, size) = self.extent_at(object)?;
        let distance = self.arena.constant(64, at);
        let offset = self.arena.add(offset, distance);
        let last = positions.first + positions.step * (positions.count - 1);
        let range = (positions.first + at, last + at);
        let positions = self.positions(object, offset, range, size, len, true)?;
        Some(AccessTarget::Within {
            object,
            offset,
            positions,
        })
    }

    /// Returns whether the pages of a mapping have different permissions, so that each access needs
    /// its own check.
    fn differs(&self, start: u64, size: u64, write: bool) -> bool {
        let region = self.memory.near(start);
        let region = region.and_then(|object| Some((object, object.region()?)));
        region.is_some_and(|(object, region)| !region.allows(start - object.start, size, write))
    }

    /// Returns the finding for an access that leaves the object that its pointer was derived from.
    fn outside(&mut self, _term: ExprId, start: u64, len: u64, write: bool) -> Interrupt {
        let extent = self.extent_at(start);
        let object = self.memory.near(start).filter(|_| extent.is_some());
        let end = object.map_or(start, |object| {
            let (base, size) = extent.unwrap_or((0, object.size));
            object.start + base + size
        });
        let mut bug = self.memory.explain(AccessFault {
            address: end,
            len,
            write,
        });
        if let Some(object) = self.memory.near(start).filter(|object| object.is_live()) {
            let verb = if write { "write" } else { "read" };
            bug.message = format!(
                "{verb} of {} at a symbolic offset outside a {} of {}",
                bytes(len),
                object.kind.noun(),
                bytes(extent.map_or(object.size, |extent| extent.1))
            );
        }
        bug.into()
    }

    fn check_live(&mut self, start: u64, len: u64, write: bool) -> Result<(), Interrupt> {
        let object = self.memory.near(start);
        let usable = object.is_some_and(|object| {
            let allowed = match object.region() {
                None => object.is_live(),
                Some(region) => region.allows(start - object.start, 1, write),
            };
            allowed && !(write && object.kind == ObjectKind::Constant)
        });
        if usable {
            return Ok(());
        }
        Err(self
            .memory
            .explain(AccessFault {
                address: start,
                len,
                write,
            })
            .into())
    }

    /// Checks an access against the symbolic size of its object.
    fn check_symbolic_size(
        &mut self,
        start: u64,
        offset: ExprId,
        len: u64,
        write: bool,
    ) -> Result<(), Interrupt> {
        let Some(size) = self.memory.near(start).and_then(|object| object.size_term) else {
            return Ok(());
        };
        // The object's extent bounds the size, so this sum does not wrap.
        let len_term = self.arena.constant(64, len);
        let end = self.arena.add(offset, len_term);
        let inside = self.arena.ule(end, size);
        if self.decide_term(inside)? {
            return Ok(());
        }
        let mut bug = self.memory.explain(AccessFault {
            address: start,
            len,
            write,
        });
        let verb = if write { "write" } else { "read" };
        bug.kind = crate::bug::BugKind::OutOfBounds;
        bug.message = format!(
            "{verb} of {} past the end of a block of symbolic size",
            bytes(len)
        );
        Err(bug.into())
    }

    /// Returns the live object that contains these bytes, or the finding.
    fn checked(&mut self, address: u64, len: u64, write: bool) -> Result<&Object, Interrupt> {
        let (start, size_term) = match self.memory.object_at(address, len) {
            Some(object)
                if !write
                    || object.kind != ObjectKind::Constant
                        && object.allows(address - object.start, len, true) =>
            {
                (object.start, object.size_term)
            }
            _ => {
                return Err(self
                    .memory
                    .explain(AccessFault {
                        address,
                        len,
                        write,
                    })
                    .into());
            }
        };
        if size_term.is_some() {
            let offset = self.arena.constant(64, address - start);
            self.check_symbolic_size(start, offset, len, write)?;
        }
        self.memory
            .object_at(address, len)
            .ok_or(Interrupt::EndPath)
    }

    /// Checks that `len` bytes at a concrete address are accessible, for operations on ranges.
    pub fn check_range(&mut self, address: u64, len: u64, write: bool) -> Result<(), Interrupt> {
        self.check_range_for(address, len, write, false)
    }

    /// Checks a range that the kernel accesses for a system call of the program.
    pub fn check_kernel_range(
        &mut self,
        address: u64,
        len: u64,
        write: bool,
    ) -> Result<(), Interrupt> {
        self.check_range_for(address, len, write, true)
    }

    fn check_range_for(
        &mut self,
        address: u64,
        len: u64,
        write: bool,
        by_kernel: bool,
    ) -> Result<(), Interrupt> {
        if len > 0 {
            self.checked(address, len, write)?;
            if self.checks_races() {
                self.check_race(Access {
                    pointer: Value::concrete(address),
                    len,
                    write,
                    atomic: false,
                    by_kernel,
                })?;
            }
            if write && self.options.log_writes {
                self.log_write(address, len);
            }
        }
        Ok(())
    }

    /// Resolves a pointer of the form `c ? p : q` by asking for `c`, so that only one object
    /// remains.
    fn choose_leaf(&mut self, mut term: ExprId) -> Result<ExprId, Interrupt> {
        for _ in 0..MAX_LEAVES {
            match self.arena.node(term) {
                Node::Ite { c, a, b } => {
                    term = if self.decide_term(c)? { a } else { b };
                }
                Node::Binary {
                    op: BinaryOp::Add,
                    a,
                    b,
                } => {
                    let Some((rest, choice)) = self.ite_operand(a, b) else {
                        break;
                    };
                    let Node::Ite { c, a, b } = self.arena.node(choice) else {
                        break;
                    };
                    let leaf = if self.decide_term(c)? { a } else { b };
                    term = self.arena.add(rest, leaf);
                }
                _ => break,
            }
        }
        Ok(term)
    }

    /// Splits the operands of a sum into the if-then-else over addresses and the other operand.
    fn ite_operand(&self, a: ExprId, b: ExprId) -> Option<(ExprId, ExprId)> {
        let names_object = |e: ExprId| match self.arena.node(e) {
            Node::Ite { a, b, .. } => [a, b]
                .into_iter()
                .any(|leaf| self.constant_part(leaf, 8).is_some()),
            _ => false,
        };
        if names_object(a) {
            Some((b, a))
        } else if names_object(b) {
            Some((a, b))
        } else {
            None
        }
    }

    /// Returns the constant summand of a term, if it is an address.
    pub(crate) fn constant_part(&self, term: ExprId, depth: u32) -> Option<u64> {
        if let Some(address) = self.arena.as_const(term) {
            return self.memory.is_address(address).then_some(address);
        }
        if depth == 0 {
            return None;
        }
        match self.arena.node(term) {
            Node::Binary {
                op: BinaryOp::Add,
                a,
                b,
            } => self
                .constant_part(b, depth - 1)
                .or_else(|| self.constant_part(a, depth - 1)),
            _ => None,
        }
    }

    /// Returns start and size of the object that contains the constant part of a pointer. The
    /// constant may point slightly before or past the object (`table - 'a'`): the gaps around
    /// objects keep it in the object's slot.
    pub(crate) fn base_object(&self, term: ExprId) -> Option<(u64, u64)> {
        let address = self.constant_part(term, 8)?;
        let object = self.memory.near(address)?;
        match object.region() {
            None => Some((object.start, object.size)),
            Some(_) => {
                let (offset, size) = object.extent(address.wrapping_sub(object.start))?;
                Some((object.start + offset, size))
            }
        }
    }

    /// The positions of an access whose offset is in a range; `None` if there are too many.
    fn positions(
        &self,
        start: u64,
        offset: ExprId,
        (min, max): (u64, u64),
        size: u64,
        len: u64,
        write: bool,
    ) -> Option<Positions> {
        let stride = Stride::of(self.arena, offset);
        let step = stride.step;
        let first = stride.first_from(min).min(size);
        let last = max.min(size - len);
        let count = last.saturating_sub(first) / step + 1;
        let few = count <= self.most_positions(start, size, write);
        few.then_some(Positions { first, step, count })
    }

    /// Returns the maximum number of positions of an object that one expression may cover.
    fn most_positions(&self, start: u64, size: u64, write: bool) -> u64 {
        match write {
            true => self.options.max_positions,
            false if self.is_concrete(start, size) => MAX_TABLE,
            false => self.options.max_positions_read,
        }
    }

    /// Returns whether all `size` bytes at `start` are concrete.
    fn is_concrete(&self, start: u64, size: u64) -> bool {
        let object = self.memory.near(start);
        object.is_some_and(|object| !object.has_symbolic(start - object.start, size))
    }

    /// Returns start and size of the accessible extent at `start`; a pointer must stay within it.
    fn extent_at(&self, start: u64) -> Option<(u64, u64)> {
        let object = self.memory.near(start)?;
        match object.region() {
            None => Some((0, object.size)),
            Some(_) => object.extent(start.wrapping_sub(object.start)),
        }
    }

    fn load_within(
        &mut self,
        start: u64,
        offset: ExprId,
        positions: Positions,
        len: usize,
    ) -> Result<Value, Interrupt> {
        let Some((base, _)) = self.extent_at(start) else {
            return Err(Interrupt::EndPath);
        };
        let object = self.memory.near(start).cloned();
        let object = object.ok_or(Interrupt::EndPath)?;
        let few = match object.has_symbolic(base + positions.first, positions.extent(len as u64)) {
            true => positions.few(self.arena, offset),
            false => None,
        };
        if let Some(few) = few {
            let term = self.load_few(&object, base, offset, &few, len);
            return Ok(Value::of_term(self.arena, term));
        }
        if base == 0
            && let Some(term) = self.load_journaled(start, offset, positions, len)
        {
            return Ok(Value::of_term(self.arena, term));
        }
        let term = self.load_selected(&object, base, offset, positions, len);
        Ok(Value::of_term(self.arena, term))
    }

    /// Reads through the journal of the object: the result is the last write that hits the offset,
    /// or else the content before the writes; for dirty bytes it is the current content. Returns
    /// `None` if a write may overlap the read partially, or if there are too many writes.
    fn load_journaled(
        &mut self,
        start: u64,
        offset: ExprId,
        positions: Positions,
        len: usize,
    ) -> Option<ExprId> {
        let object = self.memory.near(start)?.clone();
        let JournaledWrites {
            before,
            writes,
            dirty,
        } = object.symbolic_writes()?;
        let stride = Stride::of(self.arena, offset);
        let mut hits = Vec::new();
        for write in writes {
            let other = Stride::of(self.arena, write.offset);
            match stride.overlap(len as u64, &other, write.len as u64) {
                Overlap::Never => {}
                Overlap::Inside(behind) => hits.push((write, behind)),
                Overlap::Partly => return None,
            }
        }
        let dirty = positions.of_bytes(&dirty, len as u64);
        if positions.count <= 2 * (hits.len() + dirty.len()) as u64 {
            return None;
        }
        let mut term = self.load_selected(&before, 0, offset, positions, len);
        let (first, width) = (positions.first, 8 * len as u32);
        for (write, behind) in hits {
            let distance = self.arena.constant(64, behind);
            let place = self.arena.add(write.offset, distance);
            let hit = self.arena.eq(offset, place);
            let value = self.arena.extract(write.value, 8 * behind as u32, width);
            term = self.arena.ite(hit, value, term);
        }
        let chosen = stride.index(self.arena, offset, first);
        for index in dirty {
            let here = self.arena.constant(64, index);
            let hit = self.arena.eq(chosen, here);
            let value = object.load(self.arena, first + index * positions.step, len);
            let value = value.to_term(self.arena, width);
            term = self.arena.ite(hit, value, term);
        }
        Some(term)
    }

    /// Reads at few positions of an object; one of them is the offset.
    fn load_few(
        &mut self,
        object: &Object,
        base: u64,
        offset: ExprId,
        few: &[u64],
        len: usize,
    ) -> ExprId {
        let mut term = None;
        for &at in few {
            let value = object.load(self.arena, base + at, len);
            let value = value.to_term(self.arena, 8 * len as u32);
            term = Some(match term {
                Some(others) => {
                    let place = self.arena.constant(64, at);
                    let hit = self.arena.eq(offset, place);
                    self.arena.ite(hit, value, others)
                }
                None => value,
            });
        }
        term.expect("an offset has a value")
    }

    /// Reads at all positions of an object and selects among the results by the offset.
    fn load_selected(
        &mut self,
        object: &Object,
        base: u64,
        offset: ExprId,
        positions: Positions,
        len: usize,
    ) -> ExprId {
        let Positions { first, step, count } = positions;
        let mut leaves = Vec::with_capacity(count as usize);
        for index in 0..count {
            let at = first + index * step;
            leaves.push(object.load(self.arena, base + at, len));
        }
        let stride = Stride::of(self.arena, offset);
        let index = stride.index(self.arena, offset, first);
        self.select(index, &leaves, 8 * len as u32)
    }

    /// `leaves[index]` as a tree of if-then-else terms over the bits of the index, with tables for
    /// concrete leaves. The last leaf stands for all indices past the end.
    fn select(&mut self, index: ExprId, leaves: &[Value], width: u32) -> ExprId {
        if let [leaf] = leaves {
            return leaf.to_term(self.arena, width);
        }
        let bits = usize::BITS - (leaves.len() - 1).leading_zeros();
        if let Some(entries) = table_of(leaves, width) {
            let index = self.arena.extract(index, 0, bits);
            return self.arena.select(width, &entries, index);
        }
        let half = 1usize << (bits - 1);
        let low = self.select(index, &leaves[..half], width);
        let high = self.select(index, &leaves[half..], width);
        if low == high {
            return low;
        }
        let bit = self.arena.extract(index, bits - 1, 1);
        self.arena.ite(bit, high, low)
    }

    fn store_within(
        &mut self,
        start: u64,
        offset: ExprId,
        positions: Positions,
        len: usize,
        value: Value,
    ) -> Result<(), Interrupt> {
        let Some((base, _)) = self.extent_at(start) else {
            return Err(Interrupt::EndPath);
        };
        let Positions { first, step, .. } = positions;
        let width = 8 * len as u32;
        let new = value.to_term(self.arena, width);
        // If the step is smaller than the access, positions overlap and each byte is selected by
        // itself.
        let (piece, pieces) = if step >= len as u64 {
            (len, 1)
        } else {
            (1, len)
        };
        let journal = self.memory.near(start).filter(|_| base == 0);
        let journal = journal.and_then(Object::journal);
        for (at, hit) in self.places(offset, positions) {
            if self.options.log_writes {
                self.log_write(start + at, len as u64);
            }
            for part in 0..pieces {
                let place = at + part as u64;
                let Some(object) = self.memory.object_at_mut(start + place, piece as u64) else {
                    continue;
                };
                let place = base + place;
                let old = object.load(self.arena, place, piece);
                let old = old.to_term(self.arena, 8 * piece as u32);
                let new = self.arena.extract(new, 8 * part as u32, 8 * piece as u32);
                let merged = self.arena.ite(hit, new, old);
                object.store(self.arena, place, piece, Value::of_term(self.arena, merged));
            }
        }
        let object = self.memory.object_at_mut(start + first, len as u64);
        if let (Some(object), Some(journal)) = (object, journal) {
            let value = new;
            object.add_to_journal(journal, SymbolicWrite { offset, value, len });
        }
        Ok(())
    }

    /// Loads one byte at a concrete address that was checked.
    pub fn byte_at(&mut self, address: u64) -> Value {
        match self.memory.object_at(address, 1) {
            Some(object) => object.byte(self.arena, address - object.start),
            None => Value::ZERO,
        }
    }

    /// Loads a range of any size as 64-bit registers (the last one may be narrower).
    pub fn load_wide(&mut self, pointer: Value, len: usize) -> Result<Vec<Value>, Interrupt> {
        let mut values = Vec::new();
        for at in (0..len).step_by(8) {
            let at_pointer = self.offset_pointer(pointer, at as u64);
            values.push(self.load(at_pointer, (len - at).min(8))?);
        }
        Ok(values)
    }

    /// `pointer + offset`.
    pub fn offset_pointer(&mut self, pointer: Value, offset: u64) -> Value {
        match pointer.term {
            None => Value::concrete(pointer.bits.wrapping_add(offset)),
            Some(term) => {
                let offset = self.arena.constant(64, offset);
                let sum = self.arena.add(term, offset);
                Value::of_term(self.arena, sum)
            }
        }
    }

    /// Reads the concrete prefix of the C string at a concrete address. For names and messages.
    pub fn read_string(&mut self, address: u64, limit: usize) -> String {
        let mut bytes = Vec::new();
        for at in 0..limit as u64 {
            if self.memory.object_at(address + at, 1).is_none() {
                break;
            }
            match self.byte_at(address + at).as_concrete() {
                Some(0) => break,
                Some(byte) => bytes.push(byte as u8),
                None => bytes.push(b'?'),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Joins the bytes of a checked range into one value of at most 8 bytes.
    pub fn join(&mut self, bytes: &[Value]) -> Value {
        join_bytes(self.arena, bytes)
    }
}

/// Returns the leaves as a table if there are enough of them and all are concrete. Leaves that may
/// be addresses stay an if-then-else, because pointer resolution splits a path on its condition.
fn table_of(leaves: &[Value], width: u32) -> Option<Vec<u64>> {
    if leaves.len() < MIN_TABLE {
        return None;
    }
    let is_number = |bits: u64| width < 64 || bits >> 32 == 0 || bits >> 48 != 0;
    let entry = |leaf: &Value| leaf.as_concrete().filter(|&bits| is_number(bits));
    leaves.iter().map(entry).collect()
}
