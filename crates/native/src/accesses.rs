//! Memory accesses of native code at which random schedules preempt threads: finds them, excludes
//! those that a survey run found to be private to a thread, and sets breakpoints. Must not know how
//! threads are picked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use addr2line::gimli;
use everett_engine::NativePoint;
use everett_ir::library::LibraryFolders;
use everett_linux::TaskName;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::operands::{
    Accesses, LONGEST, MemoryOperand, instruction_at, is_atomic, shared_accesses,
};
use crate::points::library_folders;
use crate::priorities::Order;
use crate::tracee::Tracee;

const BREAKPOINT: u8 = 0xcc;
const PAGE: u64 = 4096;
/// Maximum number of accesses in a run at which a thread stops. After that, threads are preempted
/// at system calls only.
const MAX_STOPS: u64 = 20_000;
/// Number of accesses of a thread without a system call or a switch after which it is considered to
/// be busy-waiting.
const QUANTUM: u64 = 1000;
/// An instruction that is executed more often than this uses up the stops of a survey.
const FREQUENT: u64 = 100;
/// Number of times in a row that a thread makes the same access before it is considered to be
/// busy-waiting.
const MAX_SAME: u32 = 30;

/// How threads are preempted at random.
#[derive(Clone, Default)]
pub struct RandomSchedule {
    /// One more than the number of random events at which the running thread is preempted.
    pub depth: u32,
    /// The results of surveys so far.
    pub survey: Arc<Survey>,
    /// If set, the run surveys accesses that are not known to be private, with threads in this
    /// order.
    pub surveys: Option<Order>,
    /// The accesses of the first program, computed on first use.
    pub candidates: Arc<OnceLock<Candidates>>,
}

/// The observations of a run about the accesses of its threads.
#[derive(Clone, Default, Debug)]
pub struct Survey {
    /// Number of events at which a thread could have been preempted, without private accesses.
    pub events: u64,
    /// Instructions that only accessed memory that no other thread wrote or that only one thread
    /// accessed, by their addresses in the file. All others were not executed, or can race.
    private: BTreeSet<u64>,
    /// Number of events by instruction.
    by_instruction: BTreeMap<u64, u64>,
    /// Number of other events: system calls.
    others: u64,
    /// Whether the program has accesses to stop at; it needs debug information.
    pub has_accesses: bool,
    /// Whether threads reached the limit of stops, so that there were more events.
    pub is_cut: bool,
}

impl Survey {
    /// Adds the results of a survey of the remaining accesses.
    pub fn add(&mut self, other: Survey) {
        self.events = other.events;
        self.others = other.others;
        self.is_cut = other.is_cut;
        self.has_accesses |= other.has_accesses;
        self.private.extend(other.private);
        self.by_instruction.extend(other.by_instruction);
    }

    /// Merges this survey with one of another order of threads. An instruction is private if
    /// neither survey saw it race.
    #[must_use]
    pub fn merge(self, other: Survey) -> Survey {
        let races = |survey: &Survey, at: &u64| {
            survey.by_instruction.contains_key(at) && !survey.private.contains(at)
        };
        let all = self.private.union(&other.private).copied();
        let private: BTreeSet<u64> = all
            .filter(|at| !races(&self, at) && !races(&other, at))
            .collect();
        let events = |survey: &Survey| survey.events_without(&private);
        Survey {
            events: events(&self).max(events(&other)),
            has_accesses: self.has_accesses || other.has_accesses,
            is_cut: self.is_cut || other.is_cut,
            private,
            ..self
        }
    }

    /// Returns the number of events without those at some instructions.
    fn events_without(&self, private: &BTreeSet<u64>) -> u64 {
        let left = self.by_instruction.iter();
        let left = left.filter(|(at, _)| !private.contains(at));
        self.others + left.map(|(_, events)| events).sum::<u64>()
    }
}

/// The instructions of a program that can access shared memory.
#[derive(Default)]
pub struct Candidates {
    /// Entry point in the file.
    entry: u64,
    /// Addresses in the file.
    addresses: Vec<u64>,
}

impl Candidates {
    /// Finds the candidates of a program by its debug information. Libraries of the toolchain are
    /// excluded: the program could as well be preempted before or after their accesses. Their code
    /// that the program instantiates belongs to the program. Atomic accesses of their locks are
    /// included: between two of them, a program may access nothing itself.
    pub fn of(program: &Path) -> Candidates {
        Candidates::read(program).unwrap_or_default()
    }

    fn read(program: &Path) -> Option<Candidates> {
        let bytes = std::fs::read(program).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let loader = addr2line::Loader::new(program).ok()?;
        let folders = library_folders(&file, &loader);
        let own = code_of_program(&file, &folders).ok()?;
        let mut addresses = BTreeSet::new();
        for (start, len, _) in loader.find_location_range(0, u64::MAX).ok()? {
            let before = own.partition_point(|range| range.start <= start);
            let range = before.checked_sub(1).and_then(|at| own.get(at));
            if !range.is_some_and(|range| range.contains(&start)) {
                continue;
            }
            let mut sections = file.sections();
            let Some(code) = sections.find_map(|section| section.data_range(start, len).ok()?)
            else {
                continue;
            };
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            let decoder = decoder.iter();
            let shared =
                decoder.filter(|instruction| shared_accesses(instruction) != Accesses::None);
            addresses.extend(shared.map(|instruction| instruction.ip()));
        }
        // The locks may be the only memory that a program shares.
        if !own.is_empty() {
            addresses.extend(synchronisation(&file));
        }
        Some(Candidates {
            entry: file.entry(),
            addresses: addresses.into_iter().collect(),
        })
    }

    /// Returns the entry point of a program in its file.
    fn entry_of(program: &Path) -> Option<u64> {
        let bytes = std::fs::read(program).ok()?;
        Some(object::File::parse(&*bytes).ok()?.entry())
    }
}

/// Prefixes of the names of C library functions by which threads synchronise, without leading
/// underscores.
const SYNCHRONISING: &[&str] = &[
    "pthread_mutex_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "pthread_barrier_",
    "pthread_once",
    "private_cond_signal",
    "sem_",
    "mtx_",
    "cnd_",
    "call_once",
];

fn is_synchronising(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    SYNCHRONISING.iter().any(|begin| name.starts_with(begin))
}

/// Returns the atomic accesses of functions by which threads synchronise.
fn synchronisation(file: &object::File<'_>) -> BTreeSet<u64> {
    let is_one = |name: Result<&str, _>| name.is_ok_and(is_synchronising);
    let functions = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && is_one(symbol.name()));
    let code = functions.filter_map(|symbol| {
        let (start, len) = (symbol.address(), symbol.size());
        let mut sections = file.sections();
        let code = sections.find_map(|section| section.data_range(start, len).ok()?);
        Some((start, code?))
    });
    code.flat_map(|(start, code)| atomic_accesses(start, code))
        .collect()
}

/// Returns the atomic accesses of a function. If a part of it is not code, returns none, because
/// the bytes behind that part may not be decoded at instruction boundaries.
fn atomic_accesses(start: u64, code: &[u8]) -> Vec<u64> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let all: Vec<Instruction> = decoder.iter().collect();
    if all.iter().any(Instruction::is_invalid) {
        return Vec::new();
    }
    let atomic = all.iter().filter(|one| is_atomic(one));
    let shared = atomic.filter(|one| shared_accesses(one) != Accesses::None);
    shared.map(Instruction::ip).collect()
}

/// Returns the debug information of a program; empty if it has none.
pub(crate) fn debug_sections<'d>(
    file: &object::File<'d>,
) -> Result<gimli::DwarfSections<Cow<'d, [u8]>>, gimli::Error> {
    gimli::DwarfSections::load(|id| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.uncompressed_data().ok());
        Ok(data.unwrap_or_default())
    })
}

/// Returns the code of compilation units that are not part of a library of
/// the toolchain, in ascending order.
fn code_of_program(
    file: &object::File<'_>,
    folders: &LibraryFolders,
) -> Result<Vec<Range<u64>>, gimli::Error> {
    let sections = debug_sections(file)?;
    let dwarf = sections.borrow(|data| gimli::EndianSlice::new(data, gimli::LittleEndian));
    let mut code = Vec::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let text = |part: Option<gimli::EndianSlice<'_, _>>| {
            part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
        };
        let (folder, name) = (text(unit.comp_dir), text(unit.name));
        let path = match name.starts_with('/') || folder.is_empty() {
            true => name,
            false => format!("{}/{name}", folder.trim_end_matches('/')),
        };
        if folders.contains(&path) {
            continue;
        }
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            code.push(range.begin..range.end);
        }
    }
    code.sort_by_key(|range| range.start);
    Ok(code)
}

/// Code of one page, without and with breakpoints.
#[derive(Clone)]
struct Page {
    start: u64,
    original: Vec<u8>,
    stopping: Vec<u8>,
}

/// A byte that threads have accessed.
#[derive(Copy, Clone)]
struct Byte {
    thread: u32,
    by_several: bool,
    is_written: bool,
}

/// The observations of a survey about an instruction.
#[derive(Clone, Default)]
struct Seen {
    events: u64,
    bytes: BTreeSet<u64>,
    is_shared: bool,
}

/// Accesses at which threads stop.
#[derive(Clone, Default)]
pub struct AccessPoints {
    pages: Vec<Page>,
    addresses: BTreeMap<u64, u8>,
    /// Load bias of the program.
    bias: u64,
    /// Processes in which the breakpoints are set.
    placed: BTreeSet<u32>,
    /// Number of times each thread has reached each access.
    passed: BTreeMap<(u32, u64), u64>,
    stops: u64,
    events: u64,
    /// Number of events since the last system call or decision.
    since: u64,
    /// Whether there was a system call since the last event, which may have made another thread
    /// runnable.
    pub after_call: bool,
    /// Events at which the priority of the running thread changes.
    changes: BTreeMap<u64, i64>,
    /// The thread, instruction and operand of the last access.
    last: (u32, u64, u64),
    same: u32,
    bytes: BTreeMap<u64, Byte>,
    seen: Option<BTreeMap<u64, Seen>>,
}

/// The effect of an event on the running thread.
pub enum Event {
    /// The thread continues.
    Nothing,
    /// The scheduler picks a thread again.
    Decides,
    /// The priority of the thread changes.
    Changes(i64),
    /// The thread has run for long: all others run before it.
    Yields,
}

impl AccessPoints {
    /// Creates the points of a trace that a random schedule recorded.
    pub fn of_trace(
        program: &Path,
        points: &[NativePoint],
        tracee: &Tracee,
    ) -> std::io::Result<AccessPoints> {
        let Some(entry) = Candidates::entry_of(program) else {
            return Ok(AccessPoints::default());
        };
        let addresses: BTreeSet<u64> = points.iter().map(|point| point.address).collect();
        AccessPoints::at(entry, addresses.into_iter(), tracee)
    }

    /// Creates the points of a random schedule, which changes priorities at these events.
    pub fn of_random(
        program: &Path,
        random: &RandomSchedule,
        changes: BTreeMap<u64, i64>,
        tracee: &Tracee,
    ) -> std::io::Result<AccessPoints> {
        let all = random.candidates.get_or_init(|| Candidates::of(program));
        let addresses = all.addresses.iter().copied();
        let addresses = addresses.filter(|at| !random.survey.private.contains(at));
        Ok(AccessPoints {
            changes,
            seen: random.surveys.map(|_| BTreeMap::new()),
            ..AccessPoints::at(all.entry, addresses, tracee)?
        })
    }

    fn at(
        entry: u64,
        addresses: impl Iterator<Item = u64>,
        tracee: &Tracee,
    ) -> std::io::Result<AccessPoints> {
        let bias = tracee.start_address()?.wrapping_sub(entry);
        let mut by_page: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for address in addresses.map(|address| address.wrapping_add(bias)) {
            by_page.entry(address / PAGE).or_default().push(address);
        }
        let mut points = AccessPoints {
            bias,
            ..AccessPoints::default()
        };
        for addresses in by_page.into_values() {
            let (Some(first), Some(last)) = (addresses.first(), addresses.last()) else {
                continue;
            };
            let mut original = vec![0; (last - first + 1) as usize];
            if !tracee.peek(*first, &mut original) {
                continue;
            }
            let mut stopping = original.clone();
            for address in &addresses {
                let at = (address - first) as usize;
                // Breakpoints of the program itself are left as they are.
                if original[at] != BREAKPOINT {
                    points.addresses.insert(*address, original[at]);
                    stopping[at] = BREAKPOINT;
                }
            }
            points.pages.push(Page {
                start: *first,
                original,
                stopping,
            });
        }
        Ok(points)
    }

    /// Returns whether there are no points.
    pub fn is_off(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Sets the breakpoints of a process or removes them.
    pub fn place(&mut self, pid: u32, tracee: &mut Tracee, is_wanted: bool) {
        if is_wanted == self.placed.contains(&pid) {
            return;
        }
        for page in &self.pages {
            let bytes = match is_wanted {
                true => &page.stopping,
                false => &page.original,
            };
            tracee.poke(page.start, bytes);
        }
        match is_wanted {
            true => self.placed.insert(pid),
            false => self.placed.remove(&pid),
        };
    }

    /// Records that a process got a copy of another process's memory, with its breakpoints.
    pub fn inherit(&mut self, parent: u32, child: u32) {
        if self.placed.contains(&parent) {
            self.placed.insert(child);
        }
    }

    /// Records that a process got new memory, without breakpoints.
    pub fn forget(&mut self, pid: u32) {
        self.placed.remove(&pid);
    }

    /// Turns all points off. The breakpoints must have been removed.
    pub fn turn_off(&mut self) {
        self.addresses.clear();
        self.pages.clear();
    }

    /// Returns whether the limit of stops is reached.
    pub fn is_used_up(&self) -> bool {
        self.stops >= MAX_STOPS
    }

    /// Returns the instruction at a point; `None` if there is no point.
    pub fn instruction(&self, address: u64, tracee: &Tracee) -> Option<(Instruction, u8)> {
        let original = *self.addresses.get(&address)?;
        let mut code = [0; LONGEST];
        // The last bytes may lie on an unmapped page. No other instruction starts within this one.
        if !tracee.peek(address, &mut code) {
            for (at, byte) in code.iter_mut().enumerate() {
                tracee.peek(address + at as u64, std::slice::from_mut(byte));
            }
        }
        code[0] = original;
        Some((instruction_at(&code, address)?, original))
    }

    /// Counts the arrival of a thread at a point, where it accesses this memory.
    pub fn arrive(&mut self, name: TaskName, address: u64, operands: &[MemoryOperand]) {
        let start = operands.first().map_or(0, |operand| operand.start);
        let access = (name.tid, address, start);
        self.same = match access == self.last {
            true => self.same + 1,
            false => 0,
        };
        self.last = access;
        self.stops += 1;
        *self.passed.entry((name.tid, address)).or_default() += 1;
    }

    /// Returns a point in the form in which traces store it.
    pub fn named(&self, name: TaskName, address: u64, halfway: bool) -> NativePoint {
        let arrived = self.passed.get(&(name.tid, address));
        NativePoint {
            pid: name.pid,
            tid: name.tid,
            address: address.wrapping_sub(self.bias),
            passed: arrived.copied().unwrap_or(0).saturating_sub(1),
            halfway,
        }
    }

    /// Counts an event of a random schedule: a thread is about to access memory or to make a system
    /// call. Returns the effect on the thread.
    pub fn event(&mut self) -> Event {
        self.events += 1;
        self.since += 1;
        let is_long = self.since > QUANTUM || self.same > MAX_SAME;
        if let Some(priority) = self.changes.remove(&self.events) {
            self.since = 0;
            return Event::Changes(priority);
        }
        if is_long {
            (self.since, self.same) = (0, 0);
            return Event::Yields;
        }
        match std::mem::take(&mut self.after_call) {
            true => Event::Decides,
            false => Event::Nothing,
        }
    }

    /// Records that a thread has made a system call.
    pub fn called(&mut self) {
        self.since = 0;
        self.after_call = true;
    }

    /// Records the memory that an instruction accesses, for the survey. `is_shared` says that
    /// processes share its memory.
    pub fn record_access(
        &mut self,
        name: TaskName,
        address: u64,
        operands: &[MemoryOperand],
        is_shared: bool,
    ) {
        let Some(seen) = &mut self.seen else {
            return;
        };
        let seen = seen.entry(address.wrapping_sub(self.bias)).or_default();
        seen.events += 1;
        seen.is_shared |= is_shared;
        for operand in operands {
            for byte in operand.start..operand.end {
                let known = self.bytes.entry(byte).or_insert(Byte {
                    thread: name.tid,
                    by_several: false,
                    is_written: false,
                });
                known.by_several |= known.thread != name.tid;
                known.is_written |= operand.writes;
                seen.bytes.insert(byte);
            }
        }
    }

    /// Returns the results of the survey, if the run was one.
    pub fn survey(&self) -> Option<Survey> {
        let seen = self.seen.as_ref()?;
        let can_race = |byte: &u64| {
            let byte = self.bytes.get(byte);
            byte.is_some_and(|byte| byte.by_several && byte.is_written)
        };
        // A survey that reached the limit has not seen all threads at all accesses. It excludes the
        // instructions that used up the stops.
        let is_known = |seen: &Seen| !self.is_used_up() || seen.events > FREQUENT;
        let is_private =
            |seen: &Seen| is_known(seen) && !seen.is_shared && !seen.bytes.iter().any(can_race);
        let private = seen.iter().filter(|(_, seen)| is_private(seen));
        let private = private.map(|(address, _)| *address).collect();
        let by_instruction: BTreeMap<u64, u64> = seen
            .iter()
            .map(|(address, seen)| (*address, seen.events))
            .collect();
        let accesses: u64 = by_instruction.values().sum();
        let mut survey = Survey {
            others: self.events.saturating_sub(accesses),
            by_instruction,
            has_accesses: !self.pages.is_empty() || !seen.is_empty(),
            is_cut: self.is_used_up(),
            ..Survey::default()
        };
        survey.events = survey.events_without(&private);
        survey.private = private;
        Some(survey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(points: &mut AccessPoints, tid: u32, at: u64, start: u64, writes: bool) {
        let name = TaskName { pid: 1, tid };
        let end = start + 4;
        let operands = [MemoryOperand { start, end, writes }];
        points.arrive(name, at, &operands);
        points.record_access(name, at, &operands, false);
        points.event();
    }

    fn surveying() -> AccessPoints {
        AccessPoints {
            seen: Some(BTreeMap::new()),
            ..AccessPoints::default()
        }
    }

    #[test]
    fn accesses_are_private_if_nobody_else_writes() {
        let mut points = surveying();
        for tid in [1, 2] {
            // Every thread has words of its own, all threads read one word, and all write another.
            access(&mut points, tid, 0x10, 0x1000 + u64::from(tid) * 4, true);
            access(&mut points, tid, 0x20, 0x2000, false);
            access(&mut points, tid, 0x30, 0x3000, true);
        }
        // One thread writes a word that the other reads.
        access(&mut points, 1, 0x40, 0x4000, true);
        access(&mut points, 2, 0x50, 0x4002, false);
        let survey = points.survey().expect("a survey");
        assert_eq!(survey.private, BTreeSet::from([0x10, 0x20]));
        assert_eq!((survey.events, survey.is_cut), (4, false));
    }

    #[test]
    fn what_races_in_one_of_two_surveys_is_not_private() {
        // In one order, the second thread is alone when it reaches 0x10.
        let mut alone = surveying();
        access(&mut alone, 1, 0x10, 0x1000, true);
        access(&mut alone, 1, 0x20, 0x2000, true);
        let mut together = surveying();
        access(&mut together, 2, 0x10, 0x1000, true);
        access(&mut together, 1, 0x10, 0x1000, true);
        access(&mut together, 1, 0x30, 0x3000, true);
        together.event();
        let [alone, together] = [alone, together].map(|points| points.survey().expect("a survey"));
        assert_eq!(alone.private, BTreeSet::from([0x10, 0x20]));
        let merged = alone.merge(together);
        assert_eq!(merged.private, BTreeSet::from([0x20, 0x30]));
        assert_eq!(merged.events, 3);
    }

    #[test]
    fn a_survey_that_was_cut_leaves_out_what_used_it_up() {
        let mut points = surveying();
        for at in 0..MAX_STOPS {
            access(&mut points, 1, 0x10, 0x10000 + at * 4, true);
        }
        access(&mut points, 1, 0x20, 0x2000, true);
        let survey = points.survey().expect("a survey");
        assert_eq!(survey.private, BTreeSet::from([0x10]));
        assert!(survey.is_cut);
    }

    #[test]
    fn atomic_accesses_of_locks_are_found() {
        let names = [
            "pthread_mutex_lock",
            "__pthread_mutex_timedlock",
            "sem_post",
        ];
        assert!(names.into_iter().all(is_synchronising));
        let others = ["malloc", "pthread_create", "assembly", "my_sem_post"];
        assert!(!others.into_iter().any(is_synchronising));
        // mov eax, [rdi]; lock cmpxchg [rdi], ecx; xchg [rdi], eax; xchg ecx, edx; ret
        let code = [
            0x8b, 0x07, 0xf0, 0x0f, 0xb1, 0x0f, 0x87, 0x07, 0x87, 0xd1, 0xc3,
        ];
        assert_eq!(atomic_accesses(0x100, &code), [0x102, 0x106]);
        // A byte that does not begin an instruction.
        assert!(atomic_accesses(0x100, &[&code[..], &[0x06]].concat()).is_empty());
    }

    #[test]
    fn waiting_in_a_loop_lets_others_run() {
        let mut points = AccessPoints::default();
        let name = TaskName { pid: 1, tid: 1 };
        let waits = (0..=MAX_SAME + 1).any(|_| {
            points.arrive(name, 0x10, &[]);
            matches!(points.event(), Event::Yields)
        });
        assert!(waits);
    }
}
