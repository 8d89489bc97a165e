//! Injects failures into system calls: determines which failures are possible here, and asks the
//! oracle whether one happens.

use everett_vm::{ChoiceSite, FunctionFailure, SystemCall, Value};

use crate::call_arguments::shown_arguments_of;
use crate::errno::Errno;
use crate::faults::{RD, SELECTS, SENDS, WR};
use crate::files::{OpenFlags, Target};
use crate::ids::ObjectId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::socket::message_flag;
use crate::objects::{Object, event};
use crate::signals::SIGPIPE;
use crate::table::property::{self, CLOSES, MESSAGES, POLLS, READS, WRITES};
use crate::table::{ArgKind, Row};

/// A short transfer: fewer bytes than possible.
const SHORT: &str = "short";

/// A spurious wake-up: a descriptor is reported as ready although it is not.
const SPURIOUS: &str = "spurious";

/// Whether a call can transfer fewer bytes than possible.
fn moves(row: &Row) -> bool {
    row.has(READS | WRITES) && !row.has(MESSAGES)
}

/// The directions of a call on a descriptor, as bits. A call that transfers nothing has both.
fn directions(row: &Row) -> u8 {
    match (row.has(READS), row.has(WRITES)) {
        (true, _) => RD,
        (_, true) => WR,
        _ => RD | WR,
    }
}

impl Kernel<'_, '_> {
    /// How many failures may still be injected here, unless a descriptor is marked.
    pub(crate) fn faults_left(&self) -> u32 {
        let in_region = self.host.faults.regions > 0;
        if self.host.options.faults.in_regions && !in_region {
            return 0;
        }
        self.faults_left_at_most(in_region)
    }

    /// How many failures may still be injected into this process. If the program asks for failures
    /// (`asked`) and the run sets no maximum, one failure may be injected.
    fn faults_left_at_most(&self, asked: bool) -> u32 {
        let options = &self.host.options.faults;
        if self.host.internal_call
            || self.host.setup.is_declaring()
            || !options.applies_to(&self.process().execution.name)
        {
            return 0;
        }
        let most = options.most.max(u32::from(asked));
        most.saturating_sub(self.host.faults.used)
    }

    /// How many failures of `malloc` and its family may still be injected.
    pub(crate) fn malloc_faults_left(&self) -> u32 {
        let wanted = self.host.options.faults.allocations_may_fail();
        if wanted { self.faults_left() } else { 0 }
    }

    /// Tells the vm which libc functions may still fail.
    pub(crate) fn set_function_faults(&mut self) {
        let functions = &self.host.options.faults.functions;
        if functions.is_empty() {
            return;
        }
        self.vm.function_faults.functions = functions.clone();
        self.vm.function_faults.left = self.faults_left();
    }

    /// Asks the oracle whether a native call of a libc function fails. The function is one of
    /// [`FaultOptions::functions`](crate::FaultOptions::functions).
    pub(crate) fn ask_function_fault(&mut self, function: usize) -> Option<FunctionFailure> {
        if self.faults_left() == 0 {
            return None;
        }
        let functions = self.host.options.faults.functions.clone();
        let function = functions.get(function)?;
        let alternatives = 1 + function.failures.len() as u32;
        let picked = self.vm.choose(&function.site(), alternatives).ok()?;
        let failure = function.failures.get((picked as usize).checked_sub(1)?)?;
        let what = format!("{} fails: {}", function.name, failure.name);
        self.host.faults.add(what, None);
        Some(failure.clone())
    }

    /// Whether the program has enabled or disabled failures for the descriptor of a call.
    fn marked(&self, row: &Row, call: &SystemCall) -> Option<bool> {
        if row.args.first() != Some(&ArgKind::Fd) {
            return None;
        }
        let fd = call.args[0].as_concrete()? as i32;
        let marked = self.description(fd).ok()?.1.faults?;
        Some(marked & directions(row) != 0)
    }

    /// Whether a call closes a pipe, socket or other kernel object, which cannot fail: only a file
    /// system can report that it lost bytes, or was interrupted while it wrote them.
    fn closes_object(&self, row: &Row, call: &SystemCall) -> bool {
        let fd = call.args[0].as_concrete().filter(|_| row.has(CLOSES));
        fd.is_some_and(|fd| self.object_of(fd as i32).is_some())
    }

    /// Executes a system call, or makes it fail.
    pub(crate) fn dispatch_or_fail(&mut self, row: &Row, call: &SystemCall) -> Answer {
        let Some((which, interval)) = self.interval_of(row, call) else {
            return self.dispatch_or_ask(row, call);
        };
        let count = self.host.faults.counted[which] + 1;
        if count.is_multiple_of(interval) {
            self.host.faults.counted[which] = count;
            let errno = match which {
                SENDS => Errno::EAGAIN,
                _ if count / interval % 2 == 1 => Errno::EINTR,
                _ => Errno::ENOMEM,
            };
            self.announce_again(call, errno);
            return Err(errno.into());
        }
        let result = self.dispatch_or_ask(row, call);
        // A call that asked the oracle runs again, so it is not counted yet.
        if !matches!(result, Err(Stop::Interrupt(_))) {
            self.host.faults.counted[which] = count;
        }
        result
    }

    /// The counter and the interval of a call that fails at intervals.
    fn interval_of(&self, row: &Row, call: &SystemCall) -> Option<(usize, u64)> {
        let options = &self.host.options.faults;
        let is_own = self.host.internal_call || self.task().fault_asked;
        let (which, interval) = match row {
            row if row.has(property::SELECTS) => (SELECTS, options.select_interval),
            row if row.has(WRITES) && moves(row) => (SENDS, options.block_interval),
            _ => return None,
        };
        if interval == 0 || is_own || !options.applies_to(&self.process().execution.name) {
            return None;
        }
        let fd = call.args[0].as_concrete()? as i32;
        let sends = || {
            let id = self.object_of(fd)?;
            self.host.socket(id).filter(|_| self.is_nonblocking(fd))
        };
        (which == SELECTS || sends().is_some()).then_some((which, u64::from(interval)))
    }

    /// The object behind a descriptor.
    fn object_of(&self, fd: i32) -> Option<ObjectId> {
        match self.description(fd).ok()?.1.target {
            Target::Object(id) => Some(id),
            _ => None,
        }
    }

    /// Whether a descriptor is non-blocking.
    pub(crate) fn is_nonblocking(&self, fd: i32) -> bool {
        let found = self.description(fd);
        found.is_ok_and(|found| found.1.flags.has(OpenFlags::NONBLOCK))
    }

    /// Announces free space after `EAGAIN`, so that edge-triggered epoll reports it.
    fn announce_again(&mut self, call: &SystemCall, errno: Errno) {
        let fd = call.args[0].as_concrete();
        let object = fd.and_then(|fd| self.object_of(fd as i32));
        if let Some(object) = object.filter(|_| errno == Errno::EAGAIN) {
            self.host.announce(object, event::WRITING);
        }
    }

    fn dispatch_or_ask(&mut self, row: &Row, call: &SystemCall) -> Answer {
        let may_fail = match self.marked(row, call) {
            Some(marked) => marked && self.faults_left_at_most(true) > 0,
            None => self.faults_left() > 0,
        };
        let has_failures = !row.errnos.is_empty() || moves(row) || row.has(POLLS);
        if !may_fail || !has_failures || self.closes_object(row, call) {
            return self.dispatch(row, call);
        }
        let before = (self.host.clone(), self.vm.memory.clone());
        let result = self.dispatch(row, call);
        if matches!(result, Err(Stop::Interrupt(_))) {
            return result;
        }
        // The arguments are already concrete here, so this does not ask the oracle again.
        let args = self.concrete_arguments(row, call)?;
        let failures = self.failures(row, &args, &result);
        if failures.is_empty() {
            return result;
        }
        let asked = (&site(row, &failures), 1 + failures.len() as u32);
        let word = |at: usize| match row.args.get(at) {
            Some(ArgKind::Symbolic) => call.args[at],
            _ => Value::concrete(args[at]),
        };
        let words: [Value; 6] = std::array::from_fn(word);
        let shown = || shown_arguments_of(row.number.into());
        let picked = self.vm.choose_failure(asked, shown, &words);
        if matches!(picked, Ok(0)) {
            return result;
        }
        // A descriptor is closed even if `close` fails.
        if !row.has(CLOSES) || picked.is_err() {
            (*self.host, *self.vm.memory) = before;
        }
        let Some((name, errno)) = failures.get(picked? as usize - 1) else {
            return result;
        };
        self.note_failure(row, name);
        if let Some(errno) = errno {
            self.announce_again(call, *errno);
            if matches!(*errno, Errno::EPIPE | Errno::ECONNRESET) {
                let socket = self.object_of(args[0] as i32);
                let reads = row.has(READS);
                socket.inspect(|id| self.host.break_connection(*id, reads));
            }
            if *errno == Errno::ECONNABORTED {
                let listener = self.object_of(args[0] as i32);
                listener.inspect(|id| self.host.abort_pending(*id));
            }
            if *errno == Errno::EPIPE && !sends_without_signal(row, &args) {
                self.raise(SIGPIPE);
            }
            return Err(Stop::Errno(*errno));
        }
        let moved = result.ok().and_then(|moved| moved.as_concrete());
        self.host.faults.at_most = moved.filter(|_| *name == SHORT).map(half);
        self.host.faults.spurious = *name == SPURIOUS;
        let result = self.dispatch(row, call);
        self.host.faults.at_most = None;
        self.host.faults.spurious = false;
        result
    }

    /// Asks the oracle whether a memory management call fails that would succeed and that the
    /// native kernel carries out.
    pub(crate) fn ask_memory_call_fault(&mut self, row: &Row) -> Option<Errno> {
        if self.faults_left() == 0 {
            return None;
        }
        let failures = self.failures(row, &[0; 6], &Ok(Value::concrete(0)));
        if failures.is_empty() {
            return None;
        }
        let picked = self
            .vm
            .choose(&site(row, &failures), 1 + failures.len() as u32);
        let failure = failures.get((picked.ok()? as usize).checked_sub(1)?)?;
        self.note_failure(row, failure.0);
        failure.1
    }

    /// Records an injected failure of the running call.
    fn note_failure(&mut self, row: &Row, failure: &str) {
        let what = format!("{} fails: {failure}", row.name);
        let stack = self.vm.stack();
        self.host.faults.add(what, stack);
    }

    /// The failures that are possible for a call with this result, by name.
    /// `None` as errno is a short transfer.
    fn failures(
        &self,
        row: &Row,
        args: &[u64; 6],
        result: &Answer,
    ) -> Vec<(&'static str, Option<Errno>)> {
        let options = &self.host.options.faults;
        let wanted = |name: &str| options.wants(row.name, name);
        let waits = match result {
            Ok(_) => false,
            Err(Stop::Block(_)) if !self.task().fault_asked => true,
            Err(_) => return Vec::new(),
        };
        let interruptible = waits || self.may_have_waited(row, args, result);
        let errnos = row
            .errnos
            .iter()
            .filter(|errno| match **errno {
                Errno::EINTR => interruptible,
                _ => !waits,
            })
            .filter(|errno| (row.can_fail)(self, args, **errno));
        let named = errnos.map(|errno| (errno.name(), Some(*errno)));
        let mut failures: Vec<_> = named.filter(|(name, _)| wanted(name)).collect();
        let moved = matches!(result, Ok(value) if value.as_concrete().is_some_and(|n| n > 1));
        if moved && moves(row) && wanted(SHORT) && self.is_divisible(args[0] as i32) {
            failures.push((SHORT, None));
        }
        if waits && row.has(POLLS) && wanted(SPURIOUS) {
            failures.push((SPURIOUS, None));
        }
        failures
    }

    /// Whether a signal can interrupt a call although it does not wait in the model. Linux looks for
    /// signals only where a call would wait. A call that finds what it wants is not interrupted.
    fn may_have_waited(&self, row: &Row, args: &[u64; 6], result: &Answer) -> bool {
        // These look for a signal even if their timeout is 0.
        if row.has(POLLS) {
            return matches!(result, Ok(value) if value.as_concrete() == Some(0));
        }
        // A file system may write the rest of a file only now.
        if row.has(CLOSES) {
            return true;
        }
        // The other end of a standard stream is unknown: it may be slow.
        let fd = args[0] as i32;
        let target = self.description(fd).map(|found| found.1.target);
        moves(row)
            && matches!(target, Ok(Target::Stdin(_) | Target::Output(_)))
            && !self.is_nonblocking(fd)
    }

    /// Whether a transfer through a descriptor can be partial. Messages and the values of counters,
    /// timers and the like are transferred whole.
    fn is_divisible(&self, fd: i32) -> bool {
        let Some(id) = self.object_of(fd) else {
            return true;
        };
        match self.host.objects.get(id.0) {
            Some(Object::Pipe(_) | Object::Terminal(_) | Object::TerminalLine(_)) => true,
            Some(Object::Socket(_)) => !self.host.keeps_messages(id),
            _ => false,
        }
    }

    /// Maximum number of bytes that a call may transfer, given how many it could.
    pub fn limit_transfer(&self, wanted: u64) -> u64 {
        let most = self.host.faults.at_most.unwrap_or(wanted);
        wanted.min(most)
    }

    /// How many of the available bytes of a stream one read returns.
    pub fn fragment(&mut self, available: u64, wanted: u64) -> Result<u64, Stop> {
        let whole = available.min(wanted).min(MAX_PIECE);
        // Reading everything at once is the first alternative.
        let picked = self.vm.choose(&ChoiceSite::StreamPiece, whole as u32)?;
        Ok(match picked {
            0 => wanted,
            bytes => u64::from(bytes),
        })
    }
}

/// The names of all failures of a call, common ones first.
pub fn failures(row: &Row) -> Vec<&'static str> {
    let errnos = row.errnos.iter().map(|errno| errno.name());
    let short = moves(row).then_some(SHORT);
    let spurious = row.has(POLLS).then_some(SPURIOUS);
    errnos.chain(short).chain(spurious).collect()
}

/// The number of bytes that a short transfer moves.
fn half(bytes: u64) -> u64 {
    (bytes / 2).max(1)
}

/// Whether a send asks for no signal on a broken connection (`MSG_NOSIGNAL`).
fn sends_without_signal(row: &Row, args: &[u64; 6]) -> bool {
    let flags = match row.name {
        "sendmsg" => args[2],
        "sendto" | "sendmmsg" => args[3],
        _ => 0,
    };
    flags as u32 & message_flag::NO_SIGNAL != 0
}

/// The choice site of a call's failure.
fn site(row: &Row, failures: &[(&'static str, Option<Errno>)]) -> ChoiceSite {
    ChoiceSite::CallFault {
        call: row.name.into(),
        failures: failures.iter().map(|failure| failure.0).collect(),
    }
}

/// Maximum length of a first piece; longer ones are not distinguished.
const MAX_PIECE: u64 = 4096;
