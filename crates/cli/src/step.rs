//! Looking at a replay while it happens: event by event, or in a debugger.

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

/// How a replay is looked at.
#[derive(clap::Args)]
pub struct LookArgs {
    /// Print system calls to stderr, as strace does, each with the number of its event.
    #[arg(long)]
    pub strace: bool,
    /// Stop at the end, or when this event of a host has happened, and open gdb on the process that did it. From there
    /// on nobody answers its system calls: the next one raises SIGSYS. The one host of a program is called `host`.
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
    /// Go through the replay event by event: Enter for the next, b for the one before, a number to go there, g for
    /// gdb, q to quit.
    #[arg(long, conflicts_with_all = ["pcap", "speed"])]
    pub step: bool,
    /// Write what internet sockets send each other to this file, for Wireshark; for a world, a file for each host,
    /// whose name has that of the host behind this one.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// `real`: let the time of the replay go by as the time of its clock does.
    #[arg(long, value_name = "SPEED", value_parser = ["real"])]
    pub speed: Option<String>,
}

/// Where a debugger is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// On this host.
    pub host: String,
    /// When this event has happened; at the end if there is none.
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
            Ok(0) | Err(_) => Err(format!("{digits:?} is no event; the first is 1")),
            Ok(event) => Ok(event),
        });
        Ok(Place {
            host: host.to_owned(),
            event: event.transpose()?,
        })
    }
}

impl LookArgs {
    /// One trace at a time can be looked at.
    pub fn is_about_one(&self) -> bool {
        self.gdb.is_some() || self.step || self.pcap.is_some() || self.speed.is_some()
    }

    /// Somebody is asked, or a debugger is opened.
    pub fn is_interactive(&self) -> bool {
        self.gdb.is_some() || self.step
    }

    /// Events are to be logged.
    pub fn needs_log(&self) -> bool {
        self.strace || self.is_about_one()
    }
}

/// Opens a debugger in a replay, or walks through it. The exit code is not about the trace.
pub fn look(args: &LookArgs, path: &Path, build: &BuildSpec, session: &Session) -> Result<()> {
    let replay = NativeReplay::open(path, build, session)?;
    match &args.gdb {
        Some(place) => debug(&replay, place),
        None => walk(&replay),
    }
}

/// Who it is that ends, for people.
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

/// The debugger: gdb, or what EVERETT_GDB names.
fn debugger() -> PathBuf {
    std::env::var_os("EVERETT_GDB").map_or_else(|| PathBuf::from("gdb"), PathBuf::from)
}

/// Stops a replay and gives the process to a debugger.
struct HandOver {
    /// When this event has happened.
    at: Option<usize>,
    /// It faults where it stands when it goes on.
    faults: bool,
    /// Events so far.
    seen: usize,
    /// Whether the debugger could be opened.
    outcome: Result<()>,
}

impl HandOver {
    /// When an event has happened, or at the end.
    fn at(event: Option<usize>) -> HandOver {
        HandOver {
            at: event,
            faults: false,
            seen: 0,
            outcome: Ok(()),
        }
    }

    /// At the end of a run that went like this.
    fn at_end_of(&mut self, seen: &NativeRun) {
        match &seen.end {
            NativeEnd::Signal { place, .. } => self.faults = place.is_some(),
            NativeEnd::Finding { .. } | NativeEnd::Hang | NativeEnd::Idle => {}
            // Whoever ends is gone afterwards: the last that can be looked at is before that.
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
    // An interrupt from the keyboard is the debugger's.
    let _ = ctrlc::set_handler(|| {});
    let mut command = Command::new(debugger());
    // What stops the process until the debugger is there is no event of its own. Some parts of a program have an index
    // of what is in them; gdb would believe that there is nothing else.
    let quietly = "handle SIGSTOP nostop noprint nopass";
    let number = process.process.to_string();
    command.args(["-q", "-readnow", "-iex", quietly, "-p", &number]);
    // The other threads stand still too.
    command.args(["-ex", "set scheduler-locking on"]);
    if let Some(number) = number_of_thread(process.process, process.thread) {
        command.args(["-ex", &format!("thread {number}")]);
    }
    command.arg(&process.program);
    let status = command.status();
    status.with_context(|| format!("{} cannot be started", debugger().display()))?;
    Ok(())
}

/// The number that gdb gives a thread: first the first one of the process, then the others as the system lists them.
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

/// The host of a replay that a debugger is wanted on, and its number.
fn host_of<'r>(replay: &'r NativeReplay, place: &'r Place) -> Result<(&'r str, usize)> {
    let names = replay.hosts();
    // Where none is named, the one that something is wrong on.
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

/// Opens a debugger on a host; all others stand still.
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
    // What the trace says about the rest of the run says nothing about the part that was looked at.
    if watcher.at.is_none() {
        seen?;
    }
    Ok(())
}

/// Somebody else who looks.
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

/// What somebody who walks through a replay wants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Wish {
    /// To see this event.
    Event(usize),
    /// A debugger.
    Debugger,
    /// To leave.
    Quit,
}

/// Asks what comes next, at an event or behind the last one.
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

/// Somebody who walks through the events of all hosts.
struct Walk {
    /// The next event that is shown.
    next: usize,
    /// What is wanted other than to go on.
    wish: Option<Wish>,
    /// Whether the debugger could be opened, where it was wanted.
    outcome: Result<()>,
    /// Events of all hosts so far.
    events: usize,
    /// The host of the last one.
    on: String,
}

/// The same, at one of the hosts.
struct WalkAt<'w> {
    host: String,
    /// There are several, so that it is said which one it is.
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

/// Walks through a replay event by event.
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
