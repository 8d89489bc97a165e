//! Interactive replay: event by event, or in a debugger.

use anyhow::{Context, Result, anyhow, bail};
use everett::{
    BuildSpec, HOST, NativeEnd, NativeReplay, NativeRun, NoWatcher, Session, StoppedRun, Watcher,
    describe_end,
};
use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::display::numbered;

/// How to watch a replay.
#[derive(clap::Args)]
pub struct LookArgs {
    /// Print system calls to stderr, as strace does, each with the number of its event.
    #[arg(long)]
    pub strace: bool,
    /// Stop at the end, or when this event of a host has happened, and open gdb on the process that
    /// caused it. From there on its system calls are not answered: the next one raises SIGSYS. The
    /// host of a single program is called `host`.
    #[arg(
        long,
        value_name = "HOST[:EVENT]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = HOST,
        value_parser = Place::parse,
        conflicts_with_all = ["step", "pcap", "speed"]
    )]
    pub gdb: Option<Place>,
    /// Go through the replay event by event: Enter for the next, b for the one before, a number to
    /// go there, g for gdb, q to quit.
    #[arg(long, conflicts_with_all = ["pcap", "speed"])]
    pub step: bool,
    /// Write the packets of internet sockets to this file, for Wireshark; for a world, to one file
    /// per host, with the name of the host appended.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// `real`: replay in real time instead of as fast as possible.
    #[arg(long, value_name = "SPEED", value_parser = ["real"])]
    pub speed: Option<String>,
}

/// Where to open a debugger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub host: String,
    /// After this event; `None` for the end.
    pub event: Option<usize>,
}

impl Place {
    fn parse(text: &str) -> Result<Place, String> {
        let (host, event) = match text.split_once(':') {
            Some((host, event)) => (host, Some(event)),
            None => (text, None),
        };
        if host.is_empty() && event.is_none() {
            return Err("a place is a host, or a host and an event: HOST:EVENT".to_owned());
        }
        let host = match host {
            "" => HOST,
            host => host,
        };
        let event = event.map(|digits| match digits.parse() {
            Ok(0) | Err(_) => Err(format!("{digits:?} is not an event number; the first is 1")),
            Ok(event) => Ok(event),
        });
        Ok(Place {
            host: host.to_owned(),
            event: event.transpose()?,
        })
    }
}

impl LookArgs {
    /// Returns whether the options apply to a single trace only.
    pub fn is_about_one(&self) -> bool {
        self.gdb.is_some() || self.step || self.pcap.is_some() || self.speed.is_some()
    }

    /// Returns whether the replay prompts the user or opens a debugger.
    pub fn is_interactive(&self) -> bool {
        self.gdb.is_some() || self.step
    }

    /// Returns whether events must be logged.
    pub fn needs_log(&self) -> bool {
        self.strace || self.is_about_one()
    }
}

/// Opens a debugger in a replay, or steps through it. The exit code does not depend on the trace.
pub fn look(args: &LookArgs, path: &Path, build: &BuildSpec, session: &Session) -> Result<()> {
    let replay = NativeReplay::open(path, build, session)?;
    match &args.gdb {
        Some(place) => debug(&replay, place),
        None => walk(&replay),
    }
}

/// Returns the subject of a sentence about an end.
fn who(replay: &NativeReplay, host: &str) -> String {
    match replay.is_world() {
        true => format!("host {host}"),
        false => "the native program".to_owned(),
    }
}

fn nobody<'w>(replay: &NativeReplay) -> Vec<Box<dyn Watcher + 'w>> {
    let hosts = replay.hosts().into_iter();
    hosts
        .map(|_| Box::new(NoWatcher) as Box<dyn Watcher>)
        .collect()
}

/// Returns the debugger: gdb, or the one that EVERETT_GDB names.
fn debugger() -> PathBuf {
    std::env::var_os("EVERETT_GDB").map_or_else(|| PathBuf::from("gdb"), PathBuf::from)
}

/// A watcher that stops a replay and hands the process to a debugger.
struct HandOver {
    /// The event after which to stop; `None` for the end.
    at: Option<usize>,
    /// Whether the process stands at an instruction that faults when it continues.
    faults: bool,
    /// The number of events so far.
    seen: usize,
    /// Whether the debugger opened.
    outcome: Result<()>,
}

impl HandOver {
    /// Creates a watcher that stops after an event, or at the end.
    fn at(event: Option<usize>) -> HandOver {
        HandOver {
            at: event,
            faults: false,
            seen: 0,
            outcome: Ok(()),
        }
    }

    /// Makes it stop at the end of a run that ended like this one.
    fn at_end_of(&mut self, seen: &NativeRun) {
        match &seen.end {
            NativeEnd::Signal { place, .. } => self.faults = place.is_some(),
            NativeEnd::Finding { .. } | NativeEnd::Hang | NativeEnd::Idle => {}
            // The process is gone after its end, so stop at the last event before it.
            _ => self.at = Some(seen.log.len()),
        }
    }

    fn goes_on(&self, number: usize) -> bool {
        self.at.is_none_or(|at| number < at)
    }
}

impl Watcher for HandOver {
    fn event(&mut self, number: usize, line: &str, _: u64) -> bool {
        self.seen = number;
        if self.at == Some(number) {
            println!("{}", numbered(number, line));
        }
        self.goes_on(number)
    }

    fn before_exit(&mut self, number: usize) -> bool {
        if self.at == Some(number) {
            self.seen = number;
            println!("{number:>6} is the end of the process or thread, which stands before it");
        }
        self.goes_on(number)
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        self.outcome = match self.at {
            Some(at) if at > self.seen => Err(anyhow!("the replay has only {} events", self.seen)),
            _ => open_debugger(world, self.faults),
        };
    }
}

/// Opens the debugger on the process that ran last, and waits until it is closed.
fn open_debugger(world: &mut StoppedRun<'_>, faults: bool) -> Result<()> {
    let Some(process) = world.detach()? else {
        bail!("no process is left at that event");
    };
    println!(
        "process {} stands still; from here on a system call of it raises SIGSYS",
        process.process
    );
    if faults {
        println!("it stands at the instruction that faults");
    }
    // Leave keyboard interrupts to the debugger.
    crate::session::ignore_interrupts();
    let mut command = Command::new(debugger());
    // The SIGSTOP that holds the process until the debugger attaches is not an event of the
    // program. `-readnow`: if only some units of a program have an index, gdb ignores everything
    // that the index does not list.
    let quietly = "handle SIGSTOP nostop noprint nopass";
    let number = process.process.to_string();
    command.args(["-q", "-readnow", "-iex", quietly, "-p", &number]);
    // Keep the other threads stopped too.
    command.args(["-ex", "set scheduler-locking on"]);
    if let Some(number) = number_of_thread(process.process, process.thread) {
        command.args(["-ex", &format!("thread {number}")]);
    }
    command.arg(&process.program);
    let status = command.status();
    status.with_context(|| format!("{} cannot be started", debugger().display()))?;
    Ok(())
}

/// Returns the number that gdb gives a thread: the main thread comes first, then the others in the
/// system's order.
fn number_of_thread(process: i32, thread: i32) -> Option<usize> {
    if process == thread {
        return None;
    }
    let listed = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let names = listed.flatten().map(|entry| entry.file_name());
    let threads = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    let mut others = threads.filter(|other| *other != process);
    Some(others.position(|other| other == thread)? + 2)
}

/// Returns the host to open a debugger on, and its index.
fn host_of<'r>(replay: &'r NativeReplay, place: &'r Place) -> Result<(&'r str, usize)> {
    let names = replay.hosts();
    // The default is the host of the finding.
    let name = match replay.wrong_host() {
        Some(wrong) if place.host == HOST && !names.contains(&HOST) => wrong,
        _ => &place.host,
    };
    match names.iter().position(|other| *other == name) {
        Some(at) => Ok((name, at)),
        None if replay.is_world() => {
            bail!("there is no host {name:?}; there are: {}", names.join(", "))
        }
        None => bail!("there is no host {name:?}; the only one is {HOST}"),
    }
}

/// Opens a debugger on a host; all others stay stopped.
fn debug(replay: &NativeReplay, place: &Place) -> Result<()> {
    let (name, at) = host_of(replay, place)?;
    let mut watcher = HandOver::at(place.event);
    if watcher.at.is_none() {
        let seen = replay.run(nobody(replay))?;
        if let Some(host) = seen.get(name) {
            println!("{} {}", who(replay, name), describe_end(host));
            watcher.at_end_of(host);
        }
    }
    let mut watchers = nobody(replay);
    watchers[at] = Box::new(Borrowed(&mut watcher));
    let seen = replay.run(watchers);
    watcher.outcome?;
    // If the replay stopped early, errors about the rest of the trace do not matter.
    if watcher.at.is_none() {
        seen?;
    }
    Ok(())
}

/// A watcher by reference.
struct Borrowed<'w>(&'w mut dyn Watcher);

impl Watcher for Borrowed<'_> {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        self.0.event(number, line, clock_ns)
    }

    fn before_exit(&mut self, number: usize) -> bool {
        self.0.before_exit(number)
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        self.0.stopped(world);
    }
}

/// A command of the user who steps through a replay.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Wish {
    /// Show this event.
    Event(usize),
    /// Open a debugger.
    Debugger,
    /// Quit.
    Quit,
}

/// Prompts for the next command, at an event or after the last one.
fn ask(number: usize) -> Wish {
    loop {
        print!("(next: Enter, back: b, event: its number, gdb: g, quit: q) ");
        let _ = std::io::stdout().flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return Wish::Quit,
            Ok(_) => {}
        }
        match line.trim() {
            "" => return Wish::Event(number + 1),
            "b" => return Wish::Event(number.saturating_sub(1).max(1)),
            "g" => return Wish::Debugger,
            "q" => return Wish::Quit,
            other => match other.parse::<usize>() {
                Ok(event) if event > 0 => return Wish::Event(event),
                _ => println!("{other:?} is none of these"),
            },
        }
    }
}

/// The state of stepping through the events of all hosts.
struct Walk {
    /// The next event to show.
    next: usize,
    /// The last command, unless it was to continue.
    wish: Option<Wish>,
    /// Whether the debugger opened, if it was requested.
    outcome: Result<()>,
    /// The number of events of all hosts so far.
    events: usize,
    /// The host of the last event.
    on: String,
}

/// The watcher of one host.
struct WalkAt<'w> {
    host: String,
    /// Whether to print the host's name, because there are several hosts.
    is_named: bool,
    walk: &'w RefCell<Walk>,
}

impl Watcher for WalkAt<'_> {
    fn event(&mut self, number: usize, line: &str, _: u64) -> bool {
        let walk = &mut *self.walk.borrow_mut();
        if walk.wish.is_some() {
            return false;
        }
        walk.events += 1;
        walk.on.clone_from(&self.host);
        let event = walk.events;
        if event < walk.next {
            return true;
        }
        match self.is_named {
            true => println!(
                "{}",
                numbered(event, &format!("{}:{number} {line}", self.host))
            ),
            false => println!("{}", numbered(event, line)),
        }
        match ask(event) {
            Wish::Event(wanted) if wanted > event => walk.next = wanted,
            wish => walk.wish = Some(wish),
        }
        walk.wish.is_none()
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        let walk = &mut *self.walk.borrow_mut();
        if walk.on == self.host && walk.wish == Some(Wish::Debugger) {
            walk.outcome = open_debugger(world, false);
        }
    }
}

/// Steps through a replay event by event.
fn walk(replay: &NativeReplay) -> Result<()> {
    let mut next = 1;
    loop {
        let walk = RefCell::new(Walk {
            next,
            wish: None,
            outcome: Ok(()),
            events: 0,
            on: String::new(),
        });
        let at = |host: &str| -> Box<dyn Watcher + '_> {
            Box::new(WalkAt {
                host: host.to_owned(),
                is_named: replay.is_world(),
                walk: &walk,
            })
        };
        let seen = replay.run(replay.hosts().into_iter().map(at).collect());
        let walk = walk.into_inner();
        if let Err(error) = walk.outcome {
            println!("{error:#}");
        }
        let wish = match walk.wish {
            Some(wish) => wish,
            None => {
                for (name, host) in &seen? {
                    println!("       {} {}", who(replay, name), describe_end(host));
                }
                match ask(walk.events + 1) {
                    Wish::Event(event) if event > walk.events => Wish::Quit,
                    wish => wish,
                }
            }
        };
        match wish {
            Wish::Event(event) => next = event,
            Wish::Debugger | Wish::Quit => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_name_the_host_and_an_event() {
        let place = |host: &str, event| {
            Ok(Place {
                host: host.to_owned(),
                event,
            })
        };
        assert_eq!(Place::parse("host"), place(HOST, None));
        assert_eq!(Place::parse("host:17"), place(HOST, Some(17)));
        assert_eq!(Place::parse("server:2"), place("server", Some(2)));
        assert_eq!(Place::parse(":3"), place(HOST, Some(3)));
        for wrong in ["", ":", "host:", "host:0", "host:x"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }
}
