//! Generates the contents of files such as those in `/proc` from the tables of the host.

use everett_vm::{Buffer, Memory};
use std::fmt::Write;

use crate::bytes::Bytes;
use crate::files::{About, Generated};
use crate::host::HostState;
use crate::limits::{Limits, MAX_DESCRIPTORS, PENDING_SIGNALS, UNLIMITED};
use crate::process::{ExitState, INIT, ProcessState, RunState};
use crate::signals::IGNORE;
use crate::timers::TimeBase;

impl HostState {
    /// The current contents of a generated file. `memory` is the reading process's pid and memory.
    pub fn generate(&self, what: Generated, memory: (u32, &Memory)) -> Bytes {
        let text = match what {
            Generated::Text(text) | Generated::System(text) => text.to_owned(),
            // The kernel draws it where random bytes are at hand.
            Generated::Uuid => String::new(),
            Generated::Load => {
                let running = self
                    .tasks
                    .iter()
                    .filter(|task| task.run_state == RunState::Running);
                let (running, all) = (running.count(), self.tasks.len());
                format!("0.00 0.00 0.00 {running}/{all} {}\n", self.next_pid - 1)
            }
            Generated::Uptime => {
                let hundredths = self.shown(TimeBase::Host) / 10_000_000;
                let (seconds, rest) = (hundredths / 100, hundredths % 100);
                format!("{seconds}.{rest:02} {seconds}.{rest:02}\n")
            }
            Generated::Counters => {
                let ticks = self.clock_ns / 10_000_000;
                let start = self.start_time_ns.saturating_sub(self.uptime_ns) / 1_000_000_000;
                format!(
                    "cpu  {ticks} 0 0 0 0 0 0 0 0 0\ncpu0 {ticks} 0 0 0 0 0 0 0 0 0\n\
                     btime {start}\nprocesses {}\nprocs_running 1\nprocs_blocked 0\n",
                    self.next_pid
                )
            }
            Generated::Interfaces => self.interfaces_text(),
            Generated::Network(list) => self.network_text(list),
            Generated::Ipc(list) => self.ipc_text(list),
            Generated::Sockets(list) => return Bytes::from_concrete(&self.sockets_text(list)),
            Generated::Descriptor(pid, fd) => self.descriptor_text(pid, fd),
            Generated::Process(pid, about) => {
                let Some(process) = self.process_by_pid(pid) else {
                    return Bytes::default();
                };
                return self.about_process(process, about, memory);
            }
        };
        Bytes::from_concrete(text.as_bytes())
    }

    /// A random UUID and a newline.
    pub(crate) fn random_uuid(&mut self) -> Bytes {
        let mut bytes = self.random_bytes(16);
        bytes[6] = bytes[6] & 0xf | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::new();
        for (at, byte) in bytes.iter().enumerate() {
            text += if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            let _ = write!(text, "{byte:02x}");
        }
        Bytes::from_concrete(format!("{text}\n").as_bytes())
    }

    fn about_process(&self, process: &ProcessState, about: About, memory: (u32, &Memory)) -> Bytes {
        let own_memory = (memory.0 == process.pid).then_some(memory.1);
        let size = own_memory.map_or(0, Memory::heap_bytes);
        let text = match about {
            About::Arguments => return strings(&process.execution.args),
            About::Environment => return strings(&process.execution.env),
            About::Name => format!("{}\n", self.name_of(process.pid)),
            About::Constant(text) => text.to_owned(),
            About::ControlGroup => "0::/\n".to_owned(),
            About::Transfers => "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\n\
                                 write_bytes: 0\ncancelled_write_bytes: 0\n"
                .to_owned(),
            About::Limits => limits(&process.limits),
            // The kernel generates them where the memory is at hand.
            About::Mappings | About::DetailedMappings | About::Auxiliary => String::new(),
            About::OutOfMemory => format!("{}\n", process.out_of_memory.adjustment),
            About::Sizes => {
                let pages = size / 4096 + 1;
                format!("{pages} {pages} 0 1 0 {pages} 0\n")
            }
            About::Numbers => self.numbers(process, size),
            About::Status => self.status_text(process, size),
        };
        Bytes::from_concrete(text.as_bytes())
    }

    fn name_of(&self, pid: u32) -> String {
        let mut tasks = self.tasks.iter().map(|task| &**task);
        let first = tasks.find(|task| task.tid == pid);
        let first = first.or((pid == INIT).then_some(&self.init.task));
        let name = first.map_or(&b""[..], |task| &task.name[..]);
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    fn letter(&self, process: &ProcessState) -> (char, &'static str) {
        let running = |pid| {
            self.tasks_of(pid)
                .any(|task| task.run_state == RunState::Running)
        };
        match process.exit_state {
            ExitState::Zombie(_) | ExitState::Reaped => ('Z', "zombie"),
            _ if running(process.pid) => ('R', "running"),
            _ => ('S', "sleeping"),
        }
    }

    /// `stat`: 52 fields; unknown ones are 0.
    fn numbers(&self, process: &ProcessState, size: u64) -> String {
        let ProcessState {
            pid,
            parent,
            group,
            session,
            ..
        } = process;
        let ticks = self.clock_ns / 10_000_000;
        let threads = self.tasks_of(*pid).count().max(1);
        let mut text = format!(
            "{pid} ({}) {} {parent} {group} {session} 0 -1 4194304 0 0 0 0 {ticks} 0 0 0 20 0 \
             {threads} 0 0 {size} {}",
            self.name_of(*pid),
            self.letter(process).0,
            size / 4096 + 1,
        );
        for _ in 24..52 {
            text.push_str(" 0");
        }
        text.push('\n');
        text
    }

    fn status_text(&self, process: &ProcessState, size: u64) -> String {
        let (letter, word) = self.letter(process);
        let pid = process.pid;
        let threads = self.tasks_of(pid).count().max(1);
        let kib = size / 1024;
        let mut text = format!(
            "Name:\t{}\nUmask:\t{:04o}\nState:\t{letter} ({word})\nTgid:\t{pid}\nNgid:\t0\n\
             Pid:\t{pid}\nPPid:\t{}\nTracerPid:\t0\n",
            self.name_of(pid),
            process.umask,
            process.parent
        );
        let [user, group] = process.file_ids;
        for (name, ids, of_files) in [("Uid", process.uid, user), ("Gid", process.gid, group)] {
            let [real, effective, saved] = ids;
            let of_files = of_files.unwrap_or(effective);
            let _ = writeln!(text, "{name}:\t{real}\t{effective}\t{saved}\t{of_files}");
        }
        let groups: Vec<String> = process.groups.iter().map(u32::to_string).collect();
        let groups = groups.join(" ");
        let _ = write!(
            text,
            "FDSize:\t{}\nGroups:\t{groups} \nVmPeak:\t{kib:8} kB\nVmSize:\t{kib:8} kB\nVmHWM:\t{kib:8} kB\n\
             VmRSS:\t{kib:8} kB\nVmData:\t{kib:8} kB\nVmSwap:\t       0 kB\nThreads:\t{threads}\n\
             SigQ:\t{}/{}\n",
            MAX_DESCRIPTORS,
            self.queued_signals(process.uid[0]),
            process.limits.soft(PENDING_SIGNALS),
        );
        for (name, set) in self.signal_sets(process) {
            let _ = writeln!(text, "{name}:\t{set:016x}");
        }
        let sets = &process.capabilities;
        for (name, set) in [
            ("CapInh", sets.inheritable),
            ("CapPrm", sets.permitted),
            ("CapEff", sets.effective),
            ("CapBnd", sets.bounding),
            ("CapAmb", sets.ambient),
        ] {
            let _ = writeln!(text, "{name}:\t{set:016x}");
        }
        let no_more = u32::from(process.no_new_privileges);
        let _ = writeln!(
            text,
            "NoNewPrivs:\t{no_more}\nSeccomp:\t0\nSeccomp_filters:\t0"
        );
        text.push_str("Cpus_allowed:\t1\nCpus_allowed_list:\t0\n");
        text
    }

    /// The sets of signals in `status`, those of threads as the first thread has them.
    fn signal_sets(&self, process: &ProcessState) -> [(&'static str, u64); 5] {
        let first = self.tasks_of(process.pid).next();
        let (pending, blocked) = first.map_or((0, 0), |task| (task.pending.mask(), task.blocked));
        let with = |has: fn(u64) -> bool| {
            let actions = process.actions.iter().enumerate();
            let chosen = actions.filter(|(_, action)| has(action.handler));
            chosen.fold(0, |set, (at, _)| set | 1 << at)
        };
        [
            ("SigPnd", pending),
            ("ShdPnd", process.pending.mask()),
            ("SigBlk", blocked),
            ("SigIgn", with(|handler| handler == IGNORE)),
            ("SigCgt", with(|handler| handler > IGNORE)),
        ]
    }
}

/// NUL-terminated strings, symbolic bytes included.
fn strings(strings: &[Buffer]) -> Bytes {
    let mut bytes = Bytes::default();
    for string in strings {
        bytes.append(string);
        bytes.append(&Buffer::zeroed(1));
    }
    bytes
}

pub(crate) fn limits(limits: &Limits) -> String {
    const ROWS: [(&str, &str); 16] = [
        ("Max cpu time", "seconds"),
        ("Max file size", "bytes"),
        ("Max data size", "bytes"),
        ("Max stack size", "bytes"),
        ("Max core file size", "bytes"),
        ("Max resident set", "bytes"),
        ("Max processes", "processes"),
        ("Max open files", "files"),
        ("Max locked memory", "bytes"),
        ("Max address space", "bytes"),
        ("Max file locks", "locks"),
        ("Max pending signals", "signals"),
        ("Max msgqueue size", "bytes"),
        ("Max nice priority", ""),
        ("Max realtime priority", ""),
        ("Max realtime timeout", "us"),
    ];
    let mut text = format!(
        "{:<25} {:<20} {:<20} {:<10}\n",
        "Limit", "Soft Limit", "Hard Limit", "Units"
    );
    for (resource, (name, unit)) in ROWS.into_iter().enumerate() {
        let Some(limit) = limits.get(resource) else {
            continue;
        };
        let [soft, hard] = [limit.soft, limit.hard].map(|number| match number {
            UNLIMITED => "unlimited".to_owned(),
            number => number.to_string(),
        });
        let _ = writeln!(text, "{name:<25} {soft:<20} {hard:<20} {unit:<10}");
    }
    text
}
