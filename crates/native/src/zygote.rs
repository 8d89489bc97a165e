//! The zygote: a stopped process in the sandbox that is forked for every native process.
//!
//! The kernel compiles the seccomp filter for every process that installs one, and frees it with
//! the last process that uses it. Thousands of these a second have hung a kernel (6.18): all its
//! workers waited for each other in `bpf_prog_pack_free`. Forks of a process share its filter.

use std::cell::RefCell;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::call_numbers::CLONE;
use crate::channel::Channel;
use crate::gate;
use crate::namespace::{Namespace, SpawnNamespace};
use crate::sandbox::{self, SandboxKind};
use crate::tracee::{Tracee, kill_all_tracees};

thread_local! {
    /// The zygotes of this thread, one for each sandbox variant: a process is traced by a thread.
    static ZYGOTES: RefCell<[Option<Zygote>; 2]> = const { RefCell::new([None, None]) };
}

/// The parameters of the start of a program.
pub struct Start<'a> {
    /// The program.
    pub program: &'a Path,
    /// The program's arguments, including its name.
    pub args: &'a [Vec<u8>],
    /// The program's environment.
    pub env: &'a [Vec<u8>],
    /// The channel of which the program has one end.
    pub channel: &'a Channel,
}

/// Starts a program, which has not executed an instruction yet.
pub fn start(start: &Start, kind: SandboxKind) -> io::Result<Tracee> {
    ZYGOTES.with_borrow_mut(|zygotes| {
        let place = &mut zygotes[usize::from(kind == SandboxKind::FullAddressSpace)];
        let copied = place.as_mut().and_then(|zygote| zygote.copy().ok());
        let (zygote, mut tracee) = match (place, copied) {
            (Some(zygote), Some(copied)) => (zygote, copied),
            // There is no zygote yet, or it was killed.
            (place, _) => {
                let zygote = place.insert(Zygote::new(kind)?);
                let copied = zygote.copy()?;
                (zygote, copied)
            }
        };
        match zygote.execute(&mut tracee, start) {
            Ok(()) => Ok(tracee),
            Err(error) => {
                kill_all_tracees(vec![tracee]);
                Err(error)
            }
        }
    })
}

/// A stopped process that is never resumed.
struct Zygote {
    template: Option<Tracee>,
    /// The channel over which its forks receive files.
    channel: Channel,
    /// The namespace of the zygote and its forks, if there is one. It is dropped with the zygote.
    _namespace: Option<Namespace>,
}

impl Zygote {
    fn new(kind: SandboxKind) -> io::Result<Zygote> {
        let channel = Channel::new()?;
        let end = channel.process_end();
        let namespace = Namespace::new(end, kind);
        let spawned = match &namespace {
            Some(namespace) => Tracee::spawn(end, kind, SpawnNamespace::Inside(namespace)),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        let namespace = namespace.filter(|_| spawned.is_ok());
        let mut zygote = Zygote {
            template: Some(spawned.or_else(|_| Tracee::spawn(end, kind, SpawnNamespace::Here))?),
            channel,
            _namespace: namespace,
        };
        if let Some(template) = &mut zygote.template {
            gate::install(template)?;
            template.install_filter(&sandbox::gate_filter())?;
        }
        Ok(zygote)
    }

    /// Creates a fork that is stopped where the zygote is. It is a child of Everett, not of the
    /// zygote, which could not reap it.
    fn copy(&mut self) -> io::Result<Tracee> {
        let refused = || io::Error::other("the real machine refuses to create more processes");
        let template = self.template.as_mut().ok_or_else(refused)?;
        let before = template.registers()?;
        let (_, created) = template.inject_call(CLONE, [sandbox::SIBLING, 0, 0, 0, 0, 0])?;
        template.set_registers(before)?;
        let copy = template.child(created.ok_or_else(refused)?, false)?;
        copy.set_registers(before)?;
        sandbox::share_affinity(copy.process);
        Ok(copy)
    }

    /// Makes a fork execute a program.
    fn execute(&self, copy: &mut Tracee, start: &Start) -> io::Result<()> {
        let given = self.channel.send_file(copy, start.channel.process_end())?;
        self.channel.close_file(copy, copy.channel)?;
        copy.channel = given;
        // A name without a slash must not be looked up in the search path.
        let mut path = std::path::absolute(start.program)?
            .into_os_string()
            .into_vec();
        path.push(0);
        path.resize(path.len().next_multiple_of(8), 0);
        let lists = |at: u64| {
            let args = string_list(start.args, at + path.len() as u64);
            let env = string_list(start.env, at + (path.len() + args.len()) as u64);
            (args, env)
        };
        let (args, env) = lists(0);
        let size = (path.len() + args.len() + env.len()) as u64;
        let room = copy.map_room(size)?;
        let (args, env) = lists(room);
        let argv = room + path.len() as u64;
        let envp = argv + args.len() as u64;
        if !copy.poke(room, &[path, args, env].concat()) {
            return Err(io::Error::other("arguments of a program are too long"));
        }
        match copy.inject_exec([room, argv, envp, 0, 0, 0])? as i64 {
            0 if copy.registers().is_ok() => Ok(()),
            // The real kernel has killed the process without giving a reason.
            0 => {
                let program = start.program.display();
                Err(io::Error::other(format!("{program} cannot be executed")))
            }
            error => Err(io::Error::from_raw_os_error(-error as i32)),
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let template = self.template.take();
        if let Some(template) = &template {
            // All descendants are in its group, which exists until it is reaped.
            let group = Pid::from_raw(-template.process.as_raw());
            let _ = nix::sys::signal::kill(group, Signal::SIGKILL);
        }
        kill_all_tracees(template.into_iter().collect());
    }
}

/// Lays out a NULL-terminated array of pointers, followed by the strings, for an address. The size
/// is a multiple of eight bytes.
pub fn string_list(strings: &[Vec<u8>], at: u64) -> Vec<u8> {
    let mut next = at + 8 * (strings.len() as u64 + 1);
    let mut list = Vec::new();
    for string in strings {
        list.extend_from_slice(&next.to_le_bytes());
        next += string.len() as u64 + 1;
    }
    list.extend_from_slice(&[0; 8]);
    for string in strings {
        list.extend_from_slice(string);
        list.push(0);
    }
    list.resize(list.len().next_multiple_of(8), 0);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracee::Stopped;

    fn start_one() -> Tracee {
        start_program(Path::new("/bin/sh"))
    }

    fn start_program(program: &Path) -> Tracee {
        let what = Start {
            program,
            args: &[b"sh".to_vec()],
            env: &[],
            channel: &Channel::new().unwrap(),
        };
        start(&what, SandboxKind::LimitedMemory).unwrap()
    }

    fn line_of_status(tracee: &Tracee, key: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", tracee.process)).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line[key.len()..].trim().to_owned()
    }

    fn template() -> Option<nix::unistd::Pid> {
        ZYGOTES.with_borrow(|all| Some(all[0].as_ref()?.template.as_ref()?.process))
    }

    fn values() -> everett_linux::AuxiliaryValues {
        everett_linux::AuxiliaryValues {
            random: vec![7; 16],
            ids: Default::default(),
            name: Vec::new(),
        }
    }

    #[test]
    fn copies_are_ours_and_stand_behind_the_wall() {
        let first = start_one();
        let from = template();
        let second = start_one();
        assert_eq!(template(), from);
        for tracee in [&first, &second] {
            assert_eq!(line_of_status(tracee, "Seccomp:"), "2");
            assert_eq!(
                line_of_status(tracee, "PPid:"),
                std::process::id().to_string()
            );
        }
        kill_all_tracees(vec![first, second]);
    }

    #[test]
    fn copies_live_in_a_namespace_where_there_is_one() {
        let one = start_one();
        let has_one = ZYGOTES.with_borrow(|all| all[0].as_ref().unwrap()._namespace.is_some());
        let numbers = line_of_status(&one, "NSpid:").split_whitespace().count();
        let ours = std::fs::read_to_string("/proc/self/status").unwrap();
        let ours = ours.lines().find(|line| line.starts_with("NSpid:"));
        let ours = ours.unwrap().split_whitespace().count() - 1;
        assert_eq!(numbers, ours + usize::from(has_one));
        kill_all_tracees(vec![one]);
    }

    #[test]
    fn programs_have_a_gate_and_no_clock_page() {
        let mut one = start_one();
        one.set_up_program(&values()).unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", one.process)).unwrap();
        assert!(
            !maps.contains("[vdso]") && !maps.contains("[vvar"),
            "{maps}"
        );
        let gate = format!("{:x}-{:x} r-xp", gate::GATE, gate::SCRATCH);
        assert!(maps.contains(&gate), "{maps}");
        kill_all_tracees(vec![one]);
    }

    #[test]
    fn a_program_that_is_still_open_for_writing_is_waited_for() {
        let program = std::env::temp_dir().join(format!("everett-busy-{}", std::process::id()));
        std::fs::copy("/bin/sh", &program).unwrap();
        let writer = std::fs::File::options()
            .append(true)
            .open(&program)
            .unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(writer);
        });
        kill_all_tracees(vec![start_program(&program)]);
        closing.join().unwrap();
        std::fs::remove_file(&program).unwrap();
    }

    /// Replaces the code of the gate, which no guest can do, and injects a call.
    fn hijack(code: &[u8]) -> String {
        let mut one = start_one();
        one.set_up_program(&values()).unwrap();
        assert!(one.poke(gate::GATE, code));
        let error = one.inject_call(11, [0x1000, 4096, 0, 0, 0, 0]).unwrap_err();
        // The process was killed, so it has no registers any more.
        let gone = one.registers().is_err() || one.step().unwrap() == Stopped::Gone;
        assert!(gone);
        kill_all_tracees(vec![one]);
        error.to_string()
    }

    #[test]
    fn another_call_than_the_injected_one_kills() {
        // Another number; another argument; 32-bit; two bytes further;
        // no call at all; an endless fault.
        for code in [
            &[0xb8, 39, 0, 0, 0, 0x0f, 0x05][..],
            &[0x31, 0xff, 0x0f, 0x05],
            &[0xcd, 0x80],
            &[0x90, 0x0f, 0x05],
            &[0xf4],
            &[0xcc],
        ] {
            let message = hijack(code);
            assert!(
                message.contains("replaced an injected system call"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_template_that_somebody_ended_is_replaced() {
        kill_all_tracees(vec![start_one()]);
        let from = template().unwrap();
        nix::sys::signal::kill(from, nix::sys::signal::Signal::SIGKILL).unwrap();
        kill_all_tracees(vec![start_one()]);
        assert_ne!(template(), Some(from));
    }

    #[test]
    fn what_cannot_be_executed_is_said() {
        let what = Start {
            program: Path::new("/no/such/program"),
            args: &[],
            env: &[],
            channel: &Channel::new().unwrap(),
        };
        for _ in 0..2 {
            let error = start(&what, SandboxKind::LimitedMemory).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            kill_all_tracees(vec![start_one()]);
        }
    }

    #[test]
    fn lists_of_strings_say_where_they_lie() {
        let strings = [b"ab".to_vec(), Vec::new()];
        let list = string_list(&strings, 0x1000);
        let words: Vec<u64> = list
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(
            words,
            [0x1018, 0x101b, 0, u64::from(u16::from_le_bytes(*b"ab"))]
        );
        assert_eq!(string_list(&[], 8), [0; 8]);
    }
}
