//! Memory mappings of native processes: the real kernel holds them, the
//! model holds the contents of files.

use std::collections::BTreeSet;
use std::time::Duration;

use everett_linux::{
    Bytes, CallOutcome, Errno, Host, MappedFile, MemoryChange, MemoryRequest, TaskName,
};
use everett_vm::{Buffer, ExecContext, PAGE, made_bytes};
use nix::unistd::Pid;

use super::{Call, NativeEnd, NativeError, NativeLimit, NativeMachine, NativeThread, call_numbers};
use crate::gate;
use crate::sandbox::{MAX_PROMISED, MAX_RESERVED, private_memory, resident, unshared};
use crate::shadow::{SHADOW_GAP, SHADOW_START};
use crate::shared_memory::SharedMemory;
use crate::tracee::{RealMapping, mappings_of};
use crate::watchdog::processor_time;

const PAGE_SIZE: u64 = PAGE as u64;
const TYPE: u64 = 0xf;
const SHARED: u64 = 1;
const PRIVATE: u64 = 2;
const FIXED: u64 = 0x10;
const ANONYMOUS: u64 = 0x20;
const FIXED_NO_REPLACE: u64 = 0x10_0000;
/// `MAP_POPULATE` and `MAP_LOCKED`.
const POPULATE: u64 = 0x8000;
const LOCKED: u64 = 0x2000;
/// `MAP_HUGETLB`.
const HUGE_PAGES: u64 = 0x4_0000;
/// `MAP_NORESERVE`.
const NO_RESERVE: u64 = 0x4000;
/// `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE`.
const POPULATING: [u64; 2] = [22, 23];
/// `PROT_WRITE`.
const WRITE: u64 = 2;

/// The part of the memory limit that the model may allocate between two checks.
const UNCHECKED_PART: u64 = 64;

/// Number of copies of data that a process has written to a mapped file.
const COPIES: u64 = 2;
/// Calls that may remove shared memory from the page tables of all processes.
const HIDING: [u64; 3] = [
    call_numbers::MADVISE,
    call_numbers::MUNMAP,
    call_numbers::MREMAP,
];
/// The part of the memory limit above which shared memory is checked precisely.
const MUCH_SHARED_PART: u64 = 8;
/// Size of data that may be copied without a memory check.
const LITTLE: u64 = 2 << 20;

/// End of the addresses of programs.
const ADDRESSES: u64 = 0x8000_0000_0000;

/// Returns whether a mapping belongs to the program, and not to the kernel or to Everett.
fn is_of_program(mapping: &RealMapping) -> bool {
    mapping.start < ADDRESSES && !gate::overlaps(mapping.start, mapping.end - mapping.start)
}

/// Returns whether a mapping counts for `RLIMIT_DATA`.
fn is_data(mapping: &RealMapping) -> bool {
    mapping.is_data && !mapping.is_shared && !mapping.is_stack
}

fn bytes_inside(mapping: &RealMapping, range: &std::ops::Range<u64>) -> u64 {
    let (start, end) = (mapping.start.max(range.start), mapping.end.min(range.end));
    end.saturating_sub(start)
}

/// Returns whether `shmat` would map a segment over the gate. Addresses are rounded down if the
/// call allows that.
pub(super) fn shares_gate(host: &Host, call: &Call) -> bool {
    let size = host.shared_memory_size(call.args[0] as u32);
    size.is_some_and(|size| gate::overlaps(call.args[1], size))
}

impl NativeMachine<'_> {
    /// Answers a memory management call: the real kernel carries it out unless it is made to fail.
    pub(crate) fn memory_call(
        &mut self,
        name: TaskName,
        call: Call,
    ) -> Result<CallOutcome, NativeError> {
        if call.number == call_numbers::ARCH_PRCTL
            && let Some(native) = self.threads.get_mut(&name)
        {
            native.has_initialised_tls = true;
        }
        if let Some(errno) = gate_error(&call) {
            return Ok(CallOutcome::Done(errno.result(), Vec::new()));
        }
        if let Some(refusal) = self.memory_limit_error(name, &call)? {
            return Ok(CallOutcome::Done(refusal, Vec::new()));
        }
        let served = match call.number {
            call_numbers::MMAP => self.map_or_fail(name, call)?,
            _ => self.change_memory(name, call)?,
        };
        if let (call_numbers::MMAP | call_numbers::MREMAP, CallOutcome::Done(result, _)) =
            (call.number, &served)
        {
            self.note_bound(name, &call, *result);
        }
        if call.number == call_numbers::MUNMAP
            && matches!(served, CallOutcome::Done(result, _) if !is_error(result))
        {
            self.host
                .unlock_mapped(name.pid, call.args[0], call.args[1]);
        }
        if may_unmap(&call) {
            self.update_mapped_files(name.pid)?;
        }
        Ok(served)
    }

    /// Maps memory, and asks afterwards whether the call fails: only successful calls can be made
    /// to fail.
    fn map_or_fail(&mut self, name: TaskName, call: Call) -> Result<CallOutcome, NativeError> {
        let served = self.map(name, call)?;
        let CallOutcome::Done(start, _) = served else {
            return Ok(served);
        };
        if is_error(start) {
            return Ok(served);
        }
        let Some(errno) = self.ask_memory_call_fault(name, call) else {
            let is_locked = call.args[3] & LOCKED != 0;
            self.host
                .lock_mapped(name.pid, start, call.args[1], is_locked);
            return Ok(served);
        };
        if let Some(native) = self.threads.get_mut(&name) {
            let mapping = [start, call.args[1], 0, 0, 0, 0];
            native
                .tracee
                .inject_call_preserving(call_numbers::MUNMAP, mapping)?;
        }
        self.update_mapped_files(name.pid)?;
        Ok(CallOutcome::Done(errno.result(), Vec::new()))
    }

    fn change_memory(&mut self, name: TaskName, call: Call) -> Result<CallOutcome, NativeError> {
        if let Some(errno) = self.ask_memory_call_fault(name, call) {
            return Ok(CallOutcome::Done(errno.result(), Vec::new()));
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(CallOutcome::Exited);
        };
        let result = match affects_only_itself(&call) {
            true => native
                .tracee
                .inject_call_preserving(call.number, call.args)?,
            false => Errno::EINVAL.result(),
        };
        if call.number == call_numbers::MREMAP && !is_error(result) {
            self.note_shared(call.args[2]);
        }
        Ok(CallOutcome::Done(result, Vec::new()))
    }

    /// Refuses memory to processes that have reached the limit.
    /// Reserved but unused memory is harmless.
    fn memory_limit_error(
        &mut self,
        name: TaskName,
        call: &Call,
    ) -> Result<Option<u64>, NativeError> {
        let [first, second, third, fourth, ..] = call.args;
        let more = match call.number {
            call_numbers::MMAP => second,
            call_numbers::MREMAP => third.saturating_sub(second),
            call_numbers::MADVISE if POPULATING.contains(&third) => second,
            call_numbers::BRK if first != 0 => 0,
            call_numbers::MPROTECT if third & WRITE != 0 => {
                return self.address_space_error(name, call, 0);
            }
            _ => return Ok(None),
        };
        if let Some(refusal) = self.address_space_error(name, call, more)? {
            return Ok(Some(refusal));
        }
        let populates = match call.number {
            call_numbers::MMAP => fourth & (POPULATE | LOCKED) != 0,
            call_numbers::MADVISE => true,
            _ => false,
        };
        self.asked = self.asked.saturating_add(more);
        if !self.threads.contains_key(&name) {
            return Ok(None);
        }
        if self.exceeds_promise(name, call, more) {
            self.host
                .refuse_mapping("more than 16 GiB of memory in a process");
            return Ok(Some(Errno::ENOMEM.result()));
        }
        let may_be_much =
            populates || self.asked > self.config.max_memory || call.number == call_numbers::BRK;
        // Populated memory is used at once.
        let soon = if populates { more } else { 0 };
        if !may_be_much || self.used_memory().saturating_add(soon) <= self.config.max_memory {
            return Ok(None);
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let refusal = match call.number {
            call_numbers::BRK => {
                let end = native
                    .tracee
                    .inject_call_preserving(call_numbers::BRK, [0; 6])?;
                (first > end).then_some(end)
            }
            _ => (more > 0).then(|| Errno::ENOMEM.result()),
        };
        if refusal.is_some() {
            self.host.refuse_memory();
        }
        Ok(refusal)
    }

    /// Records that memory was refused because of Everett's limit on the address space.
    fn note_bound(&mut self, name: TaskName, call: &Call, result: u64) {
        let Some(native) = self.threads.get(&name) else {
            return;
        };
        let more = match call.number {
            call_numbers::MREMAP => call.args[2],
            _ => call.args[1],
        };
        if result == Errno::ENOMEM.result()
            && private_memory(native.tracee.process).saturating_add(more) > MAX_RESERVED
        {
            self.host
                .refuse_mapping("more than 1 TiB of reserved memory");
        }
    }

    /// Returns whether a request exceeds the private memory that a process may have, not counting
    /// memory that it only reserves.
    fn exceeds_promise(&mut self, name: TaskName, call: &Call, more: u64) -> bool {
        let flags = call.args[3];
        let is_private = call.number == call_numbers::MREMAP
            || (call.number == call_numbers::MMAP && flags & TYPE == PRIVATE);
        if call.number == call_numbers::MMAP && flags & NO_RESERVE != 0 {
            self.reserved = self.reserved.saturating_add(more);
            return false;
        }
        let Some(native) = self.threads.get(&name) else {
            return false;
        };
        // A checked build maps terabytes of its own.
        if !is_private || self.asked <= MAX_PROMISED || native.tracee.is_checked {
            return false;
        }
        let promised = private_memory(native.tracee.process).saturating_sub(self.reserved);
        promised.saturating_add(more) > MAX_PROMISED
    }

    /// Refuses memory that the limits of the process itself do not allow.
    fn address_space_error(
        &mut self,
        name: TaskName,
        call: &Call,
        more: u64,
    ) -> Result<Option<u64>, NativeError> {
        let is_checked = |native: &NativeThread| native.tracee.is_checked;
        // A checked build maps terabytes of its own.
        if self.threads.get(&name).is_none_or(is_checked)
            || !self.host.limits_memory(name.pid)
            || call.number == call_numbers::MADVISE
        {
            return Ok(None);
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let end = match call.number {
            call_numbers::BRK => native
                .tracee
                .inject_call_preserving(call_numbers::BRK, [0; 6])?,
            _ => 0,
        };
        let more = match call.number {
            call_numbers::BRK => call.args[0].saturating_sub(end),
            _ => more.next_multiple_of(PAGE_SIZE),
        };
        let mappings = mappings_of(native.tracee.process)?;
        let own: Vec<_> = mappings.into_iter().filter(is_of_program).collect();
        let request = self.memory_request(name, call, &own, more);
        let refusal = self.host.refuses_memory(name.pid, &request);
        Ok(match (refusal, call.number) {
            (None, _) => None,
            (Some(_), call_numbers::BRK) => Some(end),
            (Some(_), _) if (request.more, request.more_data) == (0, 0) => None,
            (Some(errno), _) => Some(errno.result()),
        })
    }

    /// What a call asks for that takes `more` bytes, besides the mappings of the program.
    fn memory_request(
        &self,
        name: TaskName,
        call: &Call,
        own: &[RealMapping],
        more: u64,
    ) -> MemoryRequest {
        let [first, second, third, flags, ..] = call.args;
        let replaced = match call.number {
            call_numbers::MMAP if flags & FIXED != 0 => first..first.saturating_add(more),
            _ => 0..0,
        };
        let left = |mapping: &&RealMapping| {
            let all = mapping.end - mapping.start;
            all - bytes_inside(mapping, &replaced)
        };
        let data = own.iter().filter(|mapping| is_data(mapping));
        let (is_locked, more_data) = match call.number {
            call_numbers::MMAP => {
                let is_data = flags & TYPE == PRIVATE && third & WRITE != 0;
                (flags & LOCKED != 0, if is_data { more } else { 0 })
            }
            call_numbers::MREMAP => {
                let end = first.saturating_add(second);
                let mut all = own.iter();
                let grows = all.any(|one| is_data(one) && (one.start..one.end).contains(&first));
                let is_locked = self.host.is_memory_locked(name.pid, first, end);
                (is_locked, if grows { more } else { 0 })
            }
            call_numbers::MPROTECT => {
                let changed = first..first.saturating_add(second.next_multiple_of(PAGE_SIZE));
                let others = own.iter().filter(|one| !one.is_data && !one.is_shared);
                (false, others.map(|one| bytes_inside(one, &changed)).sum())
            }
            _ => (false, more),
        };
        MemoryRequest {
            mapped: own.iter().map(|mapping| left(&mapping)).sum(),
            data: data.map(|mapping| left(&mapping)).sum(),
            more,
            more_data,
            is_locked,
            is_break: call.number == call_numbers::BRK && more > 0,
        }
    }

    /// Checks the time at every call, since a single call can move much memory. Checks the other
    /// limits periodically, the more often the more memory could be used.
    pub(super) fn check_limits_periodically(&self) -> Option<NativeEnd> {
        if let Some(end) = self.check_time() {
            return Some(end);
        }
        let pause = if self.asked > self.config.max_memory / 2 {
            8
        } else {
            64
        };
        // The model keeps at most what it has allocated since the last check.
        let made = made_bytes().saturating_sub(self.made_when_checked.get());
        let is_much = made > self.config.max_memory / UNCHECKED_PART;
        let is_seen = is_much || self.watchdog.has_seen_much_memory();
        // Shared memory can be filled and removed from the page tables call by call.
        let hides = self.shared_memory.is_any() && HIDING.contains(&self.last_call);
        let is_due = self.calls.is_multiple_of(pause) || is_seen || hides;
        is_due.then(|| self.check_limits()).flatten()
    }

    /// Checks limits. Returns the end of a run that uses too much memory of the real machine, or
    /// takes too long.
    pub(crate) fn check_limits(&self) -> Option<NativeEnd> {
        let most = self.config.max_memory;
        self.made_when_checked.set(made_bytes());
        let used = self.used_memory();
        self.watchdog.allow(most.saturating_sub(used));
        if used > most {
            return Some(NativeEnd::Limit(NativeLimit::Memory(most)));
        }
        self.check_time()
    }

    /// Allows a host of a world that is about to run the memory that other hosts have left.
    pub(crate) fn share_memory(&self) {
        if !self.watchdog.has_seen_much_memory() {
            let most = self.config.max_memory;
            let used = self.account.all() + self.own_when_checked.get();
            self.watchdog.allow(most.saturating_sub(used));
        }
    }

    /// Records the memory of a host of a world after it has run, and checks the limit. The check
    /// takes longer than many hosts run, so it is done only if there was enough time to allocate
    /// much.
    pub(crate) fn check_memory(&mut self) -> Option<NativeEnd> {
        const ENOUGH_FOR_MUCH: Duration = Duration::from_millis(2);
        let processes = self.processes().into_iter();
        let time = processes.map(|pid| processor_time(pid.as_raw()));
        let time = time.sum();
        if (self.memory_noted_at..self.memory_noted_at + ENOUGH_FOR_MUCH).contains(&time) {
            return None;
        }
        self.memory_noted_at = time;
        self.check_limits()
    }

    /// Checks the time. Returns the end of a run that takes too long.
    fn check_time(&self) -> Option<NativeEnd> {
        let is_late = self.config.deadline.as_ref().is_some_and(|late| late());
        is_late.then_some(NativeEnd::Limit(NativeLimit::Time))
    }

    /// Returns the end of a run whose processes have written so much to mapped files that there is
    /// no memory for the copies of the model.
    pub(super) fn check_mapped_files(&self) -> Option<NativeEnd> {
        if !self.activity.has_run() {
            return None;
        }
        self.check_memory_for(self.shared_files.unsynced().saturating_mul(COPIES))
    }

    /// Returns the end of a run that has no memory for this many bytes of the model.
    pub(super) fn check_memory_for(&self, bytes: u64) -> Option<NativeEnd> {
        if bytes < LITTLE {
            return None;
        }
        let most = self.config.max_memory;
        let used = self.used_memory().saturating_add(bytes);
        self.watchdog.allow(most.saturating_sub(used));
        (used > most).then_some(NativeEnd::Limit(NativeLimit::Memory(most)))
    }

    /// Returns the inodes of the files that processes map.
    fn mapped_inodes(&self) -> BTreeSet<u64> {
        let mappings = self.processes().into_iter().map(mappings_of);
        let mappings = mappings.filter_map(Result::ok).flatten();
        mappings.map(|mapping| mapping.inode).collect()
    }

    fn processes(&self) -> BTreeSet<Pid> {
        let threads = self.threads.values();
        threads.map(|native| native.tracee.process).collect()
    }

    /// Returns the memory of all processes, also of other hosts, and Everett's own memory that
    /// counts.
    fn used_memory(&self) -> u64 {
        let own = resident(nix::unistd::getpid()).saturating_sub(self.own_memory);
        let unshared = self.unshared_memory();
        let much = self.config.max_memory / MUCH_SHARED_PART;
        let shared = self.shared_memory.held(much, || self.mapped_inodes());
        let used = unshared + shared + self.shared_files.held();
        self.account.note(used);
        self.own_when_checked.set(own);
        used + self.account.others() + own
    }

    /// Returns the memory of all processes without what they share. Only those that have run since
    /// the last call are measured again: a server may have a thousand that wait.
    fn unshared_memory(&self) -> u64 {
        let mut measured = self.measured.borrow_mut();
        for process in self.activity.take() {
            measured.remove(&process);
        }
        let processes = self.processes();
        measured.retain(|process, _| processes.contains(process));
        let memory = |process: Pid| {
            let known = measured.entry(process);
            *known.or_insert_with(|| unshared(process))
        };
        processes.into_iter().map(memory).sum()
    }

    /// Returns whether a process would share more memory than it may, which the real kernel does
    /// not limit. The mappings are read only when all requests together could have reached the
    /// limit: programs with many thousand mappings have as many to read.
    fn exceeds_shared(&mut self, name: TaskName, more: u64) -> Result<bool, NativeError> {
        self.note_shared(more);
        if self.shared_bound <= MAX_PROMISED {
            return Ok(false);
        }
        let mut most = 0;
        for process in self.processes() {
            most = most.max(shared(process)?);
        }
        let Some(native) = self.threads.get(&name) else {
            return Ok(false);
        };
        let own = shared(native.tracee.process)?;
        self.shared_bound = most;
        self.note_shared(more);
        Ok(own.saturating_add(more) > MAX_PROMISED)
    }

    /// Records that a process may share this much more memory.
    fn note_shared(&mut self, more: u64) {
        let more = more.saturating_add(PAGE_SIZE);
        self.shared_bound = self.shared_bound.saturating_add(more);
    }

    /// Maps memory in the real process; the contents of files come from the model.
    fn map(&mut self, name: TaskName, call: Call) -> Result<CallOutcome, NativeError> {
        let [address, len, protection, flags, _, offset] = call.args;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(CallOutcome::Exited);
        };
        let is_shared = flags & TYPE != PRIVATE;
        if is_shared {
            native.tracee.shares = true;
            if self.exceeds_shared(name, len)? {
                self.host
                    .refuse_mapping("more than 16 GiB of shared memory");
                return Ok(CallOutcome::Done(Errno::ENOMEM.result(), Vec::new()));
            }
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(CallOutcome::Exited);
        };
        if flags & ANONYMOUS != 0 && flags & (TYPE | HUGE_PAGES) == SHARED {
            return self.map_shared_memory(name, call);
        }
        if flags & ANONYMOUS != 0 {
            let result = native
                .tracee
                .inject_call_preserving(call_numbers::MMAP, call.args)?;
            if native.tracee.is_checked && result == SHADOW_START {
                // The shadow has no shadow of its own.
                let (start, len) = SHADOW_GAP;
                native
                    .tracee
                    .inject_call_preserving(call_numbers::MPROTECT, [start, len, 0, 0, 0, 0])?;
            }
            return Ok(CallOutcome::Done(result, Vec::new()));
        }
        let file = match self.host.file_to_map(&mut around!(self), call.args) {
            Ok(file) => file,
            Err(errno) => return Ok(CallOutcome::Done(errno.result(), Vec::new())),
        };
        let Some(mut file) = file else {
            // A file that always reads as zeros is mapped as anonymous memory.
            let args = [address, len, protection, flags | ANONYMOUS, u64::MAX, 0];
            let result = native
                .tracee
                .inject_call_preserving(call_numbers::MMAP, args)?;
            return Ok(CallOutcome::Done(result, Vec::new()));
        };
        let held = self.host.mapped_bytes(file.inode).map_or(0, Bytes::len);
        let is_inside = offset.saturating_add(len) <= held.next_multiple_of(PAGE_SIZE);
        if !is_shared {
            if is_inside && !self.host.is_writable(file) {
                return self.map_copy(name, call, file.inode);
            }
            file.may_write = false;
        }
        let result = self.map_real(name, file, call.args)?;
        Ok(CallOutcome::Done(result, Vec::new()))
    }

    /// Maps memory that processes share.
    fn map_shared_memory(
        &mut self,
        name: TaskName,
        call: Call,
    ) -> Result<CallOutcome, NativeError> {
        let [address, len, protection, flags, ..] = call.args;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(CallOutcome::Exited);
        };
        let Ok(file) = SharedMemory::file(len.next_multiple_of(PAGE_SIZE)) else {
            self.host.refuse_memory();
            return Ok(CallOutcome::Done(Errno::ENOMEM.result(), Vec::new()));
        };
        let number = self.channel.send_file(&mut native.tracee, &file)?;
        let args = [address, len, protection, flags & !ANONYMOUS, number, 0];
        let start = native
            .tracee
            .inject_call_preserving(call_numbers::MMAP, args)?;
        self.channel.close_file(&mut native.tracee, number)?;
        if !is_error(start) {
            self.shared_memory.add(file, || self.mapped_inodes());
        }
        Ok(CallOutcome::Done(start, Vec::new()))
    }

    /// Maps a copy for a private mapping of a file that is never written: most of these are parts
    /// of libraries.
    fn map_copy(
        &mut self,
        name: TaskName,
        call: Call,
        inode: u32,
    ) -> Result<CallOutcome, NativeError> {
        let [address, len, protection, flags, _, offset] = call.args;
        let bytes = self.host.mapped_bytes(inode);
        let contents = bytes.map(|bytes| bytes.read(offset, len));
        let contents = contents.unwrap_or_else(|| Buffer::zeroed(0));
        let bytes = self.oracle.inputs.bytes(&contents, &mut self.arena);
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(CallOutcome::Exited);
        };
        let args = [
            address,
            len,
            protection | WRITE,
            flags | ANONYMOUS,
            u64::MAX,
            0,
        ];
        let start = native
            .tracee
            .inject_call_preserving(call_numbers::MMAP, args)?;
        if !is_error(start) {
            native.tracee.poke(start, &bytes);
            native.tracee.inject_call_preserving(
                call_numbers::MPROTECT,
                [start, len, protection, 0, 0, 0],
            )?;
        }
        Ok(CallOutcome::Done(start, Vec::new()))
    }

    /// Maps the real file that represents a file of the model; replaces the descriptor argument.
    fn map_real(
        &mut self,
        name: TaskName,
        file: MappedFile,
        args: [u64; 6],
    ) -> Result<u64, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(Errno::ENOMEM.result());
        };
        let known = (&mut self.arena, &self.oracle.inputs);
        let real = self.shared_files.real_file(&self.host, file, known)?;
        let number = self.channel.send_file(&mut native.tracee, &real)?;
        let [address, len, protection, flags, _, offset] = args;
        let args = [address, len, protection, flags, number, offset];
        let start = native
            .tracee
            .inject_call_preserving(call_numbers::MMAP, args)?;
        self.channel.close_file(&mut native.tracee, number)?;
        if !is_error(start) {
            self.shared_files.add(&mut self.host, name.pid, file);
        }
        Ok(start)
    }

    /// Applies the memory changes that the model requested during a call.
    pub(crate) fn apply_memory_changes(&mut self, name: TaskName) -> Result<(), NativeError> {
        for change in self.host.memory_changes() {
            match change {
                MemoryChange::Map {
                    start,
                    size,
                    protection,
                    file,
                } => {
                    if let Some(native) = self.threads.get_mut(&name) {
                        native.tracee.shares = true;
                    }
                    self.note_shared(size);
                    let flags = SHARED | FIXED_NO_REPLACE;
                    let args = [start, size, protection, flags, 0, 0];
                    if self.map_real(name, file, args)? != start {
                        let message = format!("shared memory does not fit at {start:#x}");
                        return Err(NativeError::NotReplayable(message));
                    }
                }
                MemoryChange::Unmap { start, size } if gate::overlaps(start, size) => {}
                MemoryChange::Unmap { start, size } => {
                    if let Some(native) = self.threads.get_mut(&name) {
                        let args = [start, size, 0, 0, 0, 0];
                        native
                            .tracee
                            .inject_call_preserving(call_numbers::MUNMAP, args)?;
                    }
                    self.update_mapped_files(name.pid)?;
                }
            }
        }
        Ok(())
    }

    /// Synchronises mapped files between the model and the processes.
    pub(crate) fn sync_files(&mut self) -> Result<(), NativeError> {
        if !self.shared_files.is_empty() {
            let inputs = &self.oracle.inputs;
            if self.activity.has_run() {
                self.shared_files.pull(&mut self.host)?;
                self.activity.clear();
            }
            self.shared_files
                .push(&self.host, &mut self.arena, inputs)?;
        }
        Ok(())
    }

    /// Updates the set of files that a process still maps.
    pub(crate) fn update_mapped_files(&mut self, pid: u32) -> Result<(), NativeError> {
        if self.shared_files.is_empty() {
            return Ok(());
        }
        self.sync_files()?;
        let mut threads = self.threads.iter();
        let native = threads.find(|(name, _)| name.pid == pid);
        let mappings = match native {
            Some((_, native)) => mappings_of(native.tracee.process)?,
            None => Vec::new(),
        };
        self.shared_files.keep_only(&mut self.host, pid, &mappings);
        Ok(())
    }
}

/// Returns whether a call may remove mappings, as every one that chooses its address itself may.
fn may_unmap(call: &Call) -> bool {
    match call.number {
        call_numbers::MMAP => call.args[3] & FIXED != 0,
        call_numbers::MUNMAP | call_numbers::MREMAP => true,
        _ => false,
    }
}

/// Returns the size of the shared mappings of a process.
fn shared(process: Pid) -> Result<u64, NativeError> {
    let mappings = mappings_of(process)?;
    let shared = mappings.iter().filter(|mapping| mapping.is_shared);
    Ok(shared.map(|mapping| mapping.end - mapping.start).sum())
}

/// Returns whether the result of a system call is an error.
fn is_error(result: u64) -> bool {
    (-4095..0).contains(&(result as i64))
}

/// Returns the error of a call that would change the gate.
fn gate_error(call: &Call) -> Option<Errno> {
    /// `MREMAP_FIXED`.
    const TO_FIXED: u64 = 2;
    let [first, second, third, fourth, fifth, _] = call.args;
    let touches = gate::overlaps(first, second);
    match call.number {
        call_numbers::MMAP if fourth & FIXED != 0 && touches => Some(Errno::ENOMEM),
        call_numbers::MUNMAP if touches => Some(Errno::EINVAL),
        call_numbers::MPROTECT | call_numbers::MADVISE | call_numbers::MINCORE if touches => {
            Some(Errno::ENOMEM)
        }
        // An old size of 0 means the whole mapping.
        call_numbers::MREMAP if gate::overlaps(first, second.max(1)) => Some(Errno::EFAULT),
        call_numbers::MREMAP if fourth & TO_FIXED != 0 && gate::overlaps(fifth, third) => {
            Some(Errno::EINVAL)
        }
        _ => None,
    }
}

/// Returns whether a call affects only the process itself, nothing else of the machine.
fn affects_only_itself(call: &Call) -> bool {
    const SET_GS: u64 = 0x1001;
    const GET_GS: u64 = 0x1004;
    /// `MADV_HWPOISON`, which removes pages from the machine.
    const POISON: u64 = 100;
    match call.number {
        call_numbers::ARCH_PRCTL => (SET_GS..=GET_GS).contains(&call.args[0]),
        call_numbers::MADVISE => call.args[2] < POISON,
        _ => true,
    }
}
