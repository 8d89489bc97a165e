//! A process of a live peer: started in a fresh folder with a clean environment, and killed with
//! all its children.

use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::setup::{Fresh, LiveSetup, ReadyWhen, Where};
use crate::snapshot::{Copied, Snapshot};

/// Maximum time until a peer is ready.
const MAX_START: Duration = Duration::from_secs(30);
/// The interval between two checks of a peer that starts.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The file in the peer's folder with its output.
const OUTPUT: &str = ".everett-output";

/// A running process of a live peer. It is killed when this value is dropped.
pub struct Process {
    running: Running,
    folder: Arc<TempDir>,
    /// The address of the peer.
    pub at: Where,
}

/// What runs.
enum Running {
    Started(Child),
    Copied(Copied),
}

/// Starts the processes of a peer.
#[derive(Default)]
pub struct Processes {
    /// The stopped process of which fresh ones are copies. The snapshot ends before its process.
    stopped: Option<(Snapshot, Process)>,
}

impl Processes {
    /// Returns a fresh process of a peer that is ready. A client is told to connect to `at`.
    pub fn start(&mut self, setup: &LiveSetup, at: &Where) -> Result<Process, String> {
        if setup.fresh != Fresh::Snapshot {
            return Process::start(setup, at);
        }
        let of_copies = |why: String| {
            let command = &setup.command;
            format!(
                "{command:?} cannot be copied (fresh = \"snapshot\"): {why}. Write fresh = \"process\""
            )
        };
        if self.stopped.is_none() {
            let process = Process::start(setup, at)?;
            let snapshot =
                Snapshot::take(process.id(), process.folder.path()).map_err(of_copies)?;
            self.stopped = Some((snapshot, process));
        }
        let Some((snapshot, stopped)) = &self.stopped else {
            return Err("it was not started".to_owned());
        };
        let copied = snapshot.copy(stopped.folder.path()).map_err(of_copies)?;
        Ok(Process {
            running: Running::Copied(copied),
            folder: stopped.folder.clone(),
            at: stopped.at.clone(),
        })
    }
}

impl Process {
    /// Starts a peer and waits until it is ready.
    fn start(setup: &LiveSetup, at: &Where) -> Result<Process, String> {
        let named = |error: io::Error| format!("{:?} cannot be started: {error}", setup.command);
        let folder = tempfile::Builder::new().prefix("everett-peer-").tempdir();
        let folder = folder.map_err(named)?;
        for file in &setup.files {
            copy(file, folder.path()).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let at = match at {
            Where::Unix(path) => Where::Unix(folder.path().join(path)),
            at => at.clone(),
        };
        let output = File::create(folder.path().join(OUTPUT)).map_err(named)?;
        let errors = output.try_clone().map_err(named)?;
        let words: Vec<String> = setup
            .command
            .iter()
            .map(|word| filled(word, &at, setup))
            .collect();
        let Some((program, args)) = words.split_first() else {
            return Err("it has no command".to_owned());
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", folder.path())
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .envs(
                setup
                    .env
                    .iter()
                    .map(|(name, value)| (name, filled(value, &at, setup))),
            )
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        die_with_us(&mut command, setup.fresh == Fresh::Snapshot);
        let child = command.spawn().map_err(named)?;
        let mut process = Process {
            running: Running::Started(child),
            folder: Arc::new(folder),
            at,
        };
        process.wait_until_ready(setup)?;
        Ok(process)
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.running {
            Running::Started(child) => matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
            Running::Copied(copied) => copied.has_ended(),
        }
    }

    /// Returns the number of the peer's first process. If it has its own namespace, that is not the
    /// process that was started, but a child of the first one there.
    fn id(&self) -> Pid {
        let Running::Started(child) = &self.running else {
            return Pid::from_raw(0);
        };
        let started = Pid::from_raw(child.id().cast_signed());
        let first = only_child(started).filter(|first| is_first_of_namespace(*first));
        first.and_then(only_child).unwrap_or(started)
    }

    /// Returns whether the peer listens on its port. Another program may have taken a port that was
    /// free when it was chosen, so its socket must belong to a process of the peer then.
    fn listens(&self, address: SocketAddr, setup: &LiveSetup) -> bool {
        let sockets = listening(address, setup.is_datagram);
        match (&setup.listen, &self.running) {
            (Where::Internet(wanted), Running::Started(child)) if wanted.port() == 0 => {
                let mut sockets = sockets.iter();
                sockets.any(|socket| has_socket(child.id(), socket))
            }
            _ => !sockets.is_empty(),
        }
    }

    /// Returns the last output of the process, for people.
    pub fn printed(&self) -> String {
        /// Number of bytes that are shown.
        const MOST: usize = 400;
        let text = std::fs::read(self.folder.path().join(OUTPUT)).unwrap_or_default();
        let end = &text[text.len().saturating_sub(MOST)..];
        String::from_utf8_lossy(end).trim().to_owned()
    }

    fn wait_until_ready(&mut self, setup: &LiveSetup) -> Result<(), String> {
        let began = Instant::now();
        let ready = match (&setup.ready, setup.is_client) {
            (ReadyWhen::Port, true) => &ReadyWhen::After(Duration::ZERO),
            (ready, _) => ready,
        };
        loop {
            // If the process has ended, another program may have its port.
            let has_ended = self.has_ended();
            let is_ready = match ready {
                ReadyWhen::After(time) => began.elapsed() >= *time,
                ReadyWhen::Line(text) => {
                    let printed = std::fs::read(self.folder.path().join(OUTPUT));
                    let printed = printed.unwrap_or_default();
                    String::from_utf8_lossy(&printed).contains(text.as_str())
                }
                ReadyWhen::Port if has_ended => false,
                ReadyWhen::Port => match &self.at {
                    Where::Internet(address) => self.listens(*address, setup),
                    Where::Unix(path) => is_listening_unix(path, setup.is_datagram),
                },
            };
            if is_ready {
                return Ok(());
            }
            let why = match (has_ended, began.elapsed() > MAX_START) {
                (true, _) => "it ended before it was ready",
                (false, true) => "it does not become ready",
                (false, false) => {
                    std::thread::sleep(POLL_INTERVAL);
                    continue;
                }
            };
            let (command, printed) = (&setup.command, self.printed());
            return Err(format!("{command:?}: {why}; it printed {printed:?}"));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Running::Started(child) = &mut self.running else {
            return;
        };
        // If the process has its own namespace, the kernel kills all others with its first process.
        let group = Pid::from_raw(child.id().cast_signed());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn only_child(pid: Pid) -> Option<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let mut children = children.split_whitespace();
    match (children.next(), children.next()) {
        (Some(child), None) => child.parse().ok().map(Pid::from_raw),
        _ => None,
    }
}

/// Returns whether a process is the first one of a PID namespace inside of ours.
fn is_first_of_namespace(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let numbers: Vec<&str> = numbers.unwrap_or_default().split_whitespace().collect();
    numbers.len() > 1 && numbers.last() == Some(&"1")
}

/// Expands a word of a command: replaces `{port}`, `{address}` and `{folder}`, and makes paths of
/// the scenario's files absolute, because the command starts in a folder of its own. A word without
/// a dot or a slash is never a file.
fn filled(word: &str, at: &Where, setup: &LiveSetup) -> String {
    let file = setup.folder.join(word);
    if word.contains(['.', '/']) && file.is_file() {
        let whole = std::path::absolute(&file).unwrap_or(file);
        return whole.display().to_string();
    }
    let (address, port) = match at {
        Where::Internet(address) => (address.ip().to_string(), address.port().to_string()),
        Where::Unix(path) => (path.display().to_string(), String::new()),
    };
    let folder = match setup.folder.as_os_str().is_empty() {
        // The scenario is in the current folder.
        true => std::env::current_dir(),
        false => std::path::absolute(&setup.folder),
    };
    let folder = folder.unwrap_or_else(|_| setup.folder.clone());
    word.replace("{port}", &port)
        .replace("{address}", &address)
        .replace("{folder}", &folder.display().to_string())
}

/// Copies a file or a folder into a folder.
fn copy(from: &Path, into: &Path) -> io::Result<()> {
    let name = from.file_name().map(PathBuf::from).unwrap_or_default();
    let to = into.join(name);
    if !from.is_dir() {
        return std::fs::copy(from, to).map(|_| ());
    }
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(from)? {
        copy(&entry?.path(), &to)?;
    }
    Ok(())
}

/// Returns the inodes of the sockets that listen on a port.
fn listening(address: SocketAddr, is_datagram: bool) -> Vec<String> {
    const LISTENING: &str = "0A";
    const INODE: usize = 9;
    let kind = if is_datagram { "udp" } else { "tcp" };
    let port = format!(":{:04X}", address.port());
    let mut found = Vec::new();
    for version in ["", "6"] {
        let table = std::fs::read_to_string(format!("/proc/net/{kind}{version}"));
        for line in table.unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_there = words.get(1).is_some_and(|local| local.ends_with(&port));
            if is_there && (is_datagram || words.get(3) == Some(&LISTENING)) {
                found.extend(words.get(INODE).map(|inode| format!("socket:[{inode}]")));
            }
        }
    }
    found
}

/// Returns whether a process, or one that descends from it, has a socket.
fn has_socket(process: u32, socket: &str) -> bool {
    let folder = format!("/proc/{process}");
    let files = std::fs::read_dir(format!("{folder}/fd"))
        .into_iter()
        .flatten();
    let mut links = files
        .flatten()
        .flat_map(|file| std::fs::read_link(file.path()));
    if links.any(|link| link.as_os_str() == socket) {
        return true;
    }
    let tasks = std::fs::read_dir(format!("{folder}/task"))
        .into_iter()
        .flatten();
    let children = tasks
        .flatten()
        .flat_map(|task| std::fs::read_to_string(task.path().join("children")));
    let children: Vec<u32> = children
        .flat_map(|text| {
            text.split_whitespace()
                .flat_map(str::parse)
                .collect::<Vec<u32>>()
        })
        .collect();
    children.into_iter().any(|child| has_socket(child, socket))
}

/// Returns whether a socket listens at the path of a Unix socket.
fn is_listening_unix(path: &Path, is_datagram: bool) -> bool {
    const LISTENING: &str = "00010000";
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = path.display().to_string();
    table.lines().skip(1).any(|line| {
        let flags = line.split_whitespace().nth(3);
        line.ends_with(&name) && (is_datagram || flags == Some(LISTENING))
    })
}

/// Makes the process and its children die with Everett: it is killed with the thread that started
/// it. If the machine allows it, it is in a PID namespace, whose processes the kernel kills with
/// the first of them. That ends with the peer, or, if copies take its place, with the last of them.
#[allow(unsafe_code)]
fn die_with_us(command: &mut Command, is_copied: bool) {
    let us = std::process::id();
    // SAFETY: between `fork` and `exec` the closure makes system calls on
    // numbers only, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            die_with_parent(us as libc::pid_t)?;
            if libc::unshare(libc::CLONE_NEWPID) != 0 {
                return Ok(());
            }
            // The first process of the namespace only waits; the one that it starts becomes the
            // peer.
            if go_on_in_child(false)? {
                die_with_parent(0)?;
                go_on_in_child(is_copied)?;
                die_with_parent(1)?;
            }
            Ok(())
        });
    }
}

/// Makes the kernel kill the calling process when its parent dies. `parent` is the expected parent;
/// 0 for one outside of the namespace.
#[allow(unsafe_code)]
fn die_with_parent(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: numbers only.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != parent {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(())
}

/// Forks. The child continues; its parent waits for it, or for all processes, and ends.
#[allow(unsafe_code)]
fn go_on_in_child(waits_for_all: bool) -> io::Result<bool> {
    // SAFETY: a plain fork of a process with one thread; the parent makes system calls on numbers
    // only. It closes its descriptors, one of which tells the starter that the peer was executed.
    unsafe {
        match libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) {
            0 => Ok(true),
            child if child > 0 => {
                libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
                loop {
                    let mut status = 0;
                    let ended = libc::waitpid(-1, &raw mut status, 0);
                    if ended < 0 || i64::from(ended) == child && !waits_for_all {
                        libc::_exit(status >> 8 & 0xff);
                    }
                }
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}
