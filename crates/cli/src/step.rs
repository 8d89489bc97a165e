//! Looking at a replay while it happens: event by event, in a debugger, as packets, at the speed of its own clock.

use anyhow::{Context, Result, anyhow, bail};
use everett_engine::Trace;
use everett_linux::PacketKind;
use everett_native::{
    NativeConfig, NativeEnd, NativeRun, SentPacket, Source, StoppedRun, Watcher, run_watched,
};
use everett_report::{CapturedPacket, PacketContent, pcap};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::compare::describe;
use crate::output::HOST;

/// How a replay is looked at.
#[derive(clap::Args)]
pub struct LookArgs {
    /// Print system calls to stderr, as strace does, each with the number of its event.
    #[arg(long)]
    pub strace: bool,
    /// Stop at the end, or when this event of a host has happened, and open gdb on the process that did it. From there on
    /// nobody answers its system calls: the next one raises SIGSYS. The one host of a program is called `host`.
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
    /// Write what internet sockets send each other to this file, for Wireshark; for a world, a file for each host, whose
    /// name has that of the host behind this one.
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

    /// Events are to be logged.
    pub fn needs_log(&self) -> bool {
        self.strace || self.is_about_one()
    }
}

/// Prints an event.
pub fn show(number: usize, line: &str) -> String {
    format!("{number:>6} {line}")
}

/// Prints the log of a run that is over.
pub fn print_log(log: &[String]) {
    for (number, line) in (1..).zip(log) {
        eprintln!("{}", show(number, line));
    }
}

/// Opens a debugger in a replay, or walks through it. The exit code is not about the trace.
pub fn look(args: &LookArgs, config: &NativeConfig, trace: &Trace) -> Result<()> {
    match &args.gdb {
        Some(place) if place.host != HOST => {
            bail!("there is no host {:?}; the only one is {HOST}", place.host)
        }
        Some(place) => debug(config, trace, place.event),
        None => walk(config, trace),
    }
}

fn source(trace: &Trace) -> Source {
    Source::Trace(Box::new(trace.clone()))
}

/// The debugger: gdb, or what EVERETT_GDB names.
fn debugger() -> PathBuf {
    std::env::var_os("EVERETT_GDB").map_or_else(|| PathBuf::from("gdb"), PathBuf::from)
}

/// Stops a replay and gives the process to a debugger.
pub struct HandOver {
    /// When this event has happened.
    pub at: Option<usize>,
    /// It faults where it stands when it goes on.
    faults: bool,
    /// Events so far.
    seen: usize,
    /// Whether the debugger could be opened.
    pub outcome: Result<()>,
}

impl HandOver {
    /// When an event has happened, or at the end.
    pub fn at(event: Option<usize>) -> HandOver {
        HandOver {
            at: event,
            faults: false,
            seen: 0,
            outcome: Ok(()),
        }
    }

    /// At the end of a run that went like this.
    pub fn at_end_of(&mut self, seen: &NativeRun) {
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
            println!("{}", show(number, line));
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

fn debug(config: &NativeConfig, trace: &Trace, event: Option<usize>) -> Result<()> {
    let mut watcher = HandOver::at(event);
    if watcher.at.is_none() {
        let seen = everett_native::run(config, source(trace))?;
        println!("the native program {}", describe(&seen));
        watcher.at_end_of(&seen);
    }
    let seen = run_watched(config, source(trace), &mut watcher);
    watcher.outcome?;
    // What the trace says about the rest of the run says nothing about the part that was looked at.
    if watcher.at.is_none() {
        seen?;
    }
    Ok(())
}

/// What somebody who walks through a replay wants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// To see this event.
    Event(usize),
    /// A debugger.
    Debugger,
    /// To leave.
    Quit,
}

/// Asks what comes next, at an event or behind the last one.
pub fn ask(number: usize) -> Wish {
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

/// Shows events and asks.
pub struct Walker {
    /// The next event that is shown.
    pub next: usize,
    /// What is wanted other than to go on.
    pub wish: Option<Wish>,
    /// Whether the debugger could be opened, where it was wanted.
    pub outcome: Result<()>,
}

impl Watcher for Walker {
    fn event(&mut self, number: usize, line: &str, _: u64) -> bool {
        if number < self.next || self.wish.is_some() {
            return self.wish.is_none();
        }
        println!("{}", show(number, line));
        match ask(number) {
            Wish::Event(event) if event > number => self.next = event,
            wish => self.wish = Some(wish),
        }
        self.wish.is_none()
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        if self.wish == Some(Wish::Debugger) {
            self.outcome = open_debugger(world, false);
        }
    }
}

fn walk(config: &NativeConfig, trace: &Trace) -> Result<()> {
    let mut next = 1;
    loop {
        let mut walker = Walker {
            next,
            wish: None,
            outcome: Ok(()),
        };
        let seen = run_watched(config, source(trace), &mut walker);
        if let Err(error) = walker.outcome {
            println!("{error:#}");
        }
        let wish = match walker.wish {
            Some(wish) => wish,
            None => {
                let seen = seen?;
                println!("       the native program {}", describe(&seen));
                match ask(seen.log.len() + 1) {
                    Wish::Event(event) if event > seen.log.len() => Wish::Quit,
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

/// Lets time go by as the clock of the replay does, and prints what happens.
pub struct Pace {
    prints: bool,
    since: Option<Instant>,
}

impl Pace {
    /// As the arguments say.
    pub fn new(args: &LookArgs) -> Pace {
        Pace {
            prints: args.strace,
            since: args.speed.as_ref().map(|_| Instant::now()),
        }
    }
}

impl Watcher for Pace {
    fn event(&mut self, number: usize, line: &str, clock_ns: u64) -> bool {
        if let Some(since) = self.since {
            let due = Duration::from_nanos(clock_ns);
            std::thread::sleep(due.saturating_sub(since.elapsed()));
        }
        if self.prints {
            eprintln!("{}", show(number, line));
        }
        true
    }
}

/// Writes the packets of a replay.
pub fn write_packets(file: &Path, config: &NativeConfig, seen: &NativeRun) -> Result<()> {
    let start = config.host.start_time_ns;
    let captured = |(packet, bytes): &SentPacket| {
        let content = match packet.kind {
            PacketKind::Established | PacketKind::SynAck { .. } => PacketContent::Opened,
            PacketKind::Refused => PacketContent::Refused,
            PacketKind::Data(_) => PacketContent::Data(bytes.clone()),
            PacketKind::Fin => PacketContent::End,
            PacketKind::Reset => PacketContent::Reset,
            PacketKind::Datagram(_) => PacketContent::Datagram(bytes.clone()),
            PacketKind::Syn { .. }
            | PacketKind::WindowUpdate { .. }
            | PacketKind::Unreachable(_) => {
                return None;
            }
        };
        Some(CapturedPacket {
            time_ns: start.saturating_add(packet.clock_ns),
            from: packet.from,
            to: packet.to,
            content,
        })
    };
    let packets: Vec<CapturedPacket> = seen.packets.iter().filter_map(captured).collect();
    std::fs::write(file, pcap(&packets))
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("{} packets are in {}", packets.len(), file.display());
    Ok(())
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
