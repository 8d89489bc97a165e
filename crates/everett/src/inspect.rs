//! Inspects a native replay: event by event, or in a debugger. Must not know how lines are shown,
//! where commands are read, or which debugger it is: that is up to a [`Viewer`].

use everett_native::{DetachedProcess, NativeEnd, NativeRun, NoWatcher, StoppedRun, Watcher};
use std::cell::RefCell;
use std::ffi::OsString;

use crate::compare::describe;
use crate::error::{Error, Result, bail};
use crate::replay::NativeReplay;
use crate::text::numbered;
use crate::trace::HOST;

/// The user who inspects a replay.
pub trait Viewer {
    /// Shows a line.
    fn show(&mut self, line: &str);

    /// Asks for the next command; `None` if there is none any more.
    fn ask(&mut self, prompt: &str) -> Option<String>;

    /// Runs gdb with these arguments until the user closes it.
    fn debug(&mut self, arguments: &[OsString]) -> std::io::Result<()>;
}

/// Where to open a debugger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopPoint {
    /// The host.
    pub host: String,
    /// After this event of the host; `None` for the end.
    pub event: Option<usize>,
}

impl StopPoint {
    /// Parses `HOST`, `HOST:EVENT` or `:EVENT`.
    pub fn parse(text: &str) -> Result<StopPoint, String> {
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
        Ok(StopPoint {
            host: host.to_owned(),
            event: event.transpose()?,
        })
    }
}

/// A viewer that the watchers of all hosts share.
type SharedViewer<'v> = RefCell<&'v mut dyn Viewer>;

/// Returns the subject of a sentence about an end.
fn subject(replay: &NativeReplay, host: &str) -> String {
    match replay.is_world() {
        true => format!("host {host}"),
        false => "the native program".to_owned(),
    }
}

fn no_watchers<'w>(replay: &NativeReplay) -> Vec<Box<dyn Watcher + 'w>> {
    let hosts = replay.hosts().into_iter();
    hosts
        .map(|_| Box::new(NoWatcher) as Box<dyn Watcher>)
        .collect()
}

/// A watcher that stops a replay and hands the process to a debugger.
struct HandOver<'v, 'u> {
    viewer: &'v SharedViewer<'u>,
    /// The event after which to stop; `None` for the end.
    at: Option<usize>,
    /// Whether the process stands at an instruction that faults when it continues.
    faults: bool,
    /// The number of events so far.
    seen: usize,
    /// Whether the debugger opened.
    outcome: &'v RefCell<Result<()>>,
}

/// Returns after which event to stop at the end of a run that ended like this one (`None`: at its
/// very end), and whether the process then stands at an instruction that faults.
fn stop_at_end_of(seen: &NativeRun) -> (Option<usize>, bool) {
    match &seen.end {
        NativeEnd::Signal { place, .. } => (None, place.is_some()),
        NativeEnd::Finding { .. } | NativeEnd::Hang | NativeEnd::Idle => (None, false),
        // The process is gone after its end, so stop at the last event before it.
        _ => (Some(seen.log.len()), false),
    }
}

impl HandOver<'_, '_> {
    fn goes_on(&self, number: usize) -> bool {
        self.at.is_none_or(|at| number < at)
    }
}

impl Watcher for HandOver<'_, '_> {
    fn event(&mut self, number: usize, line: &str, _: u64) -> bool {
        self.seen = number;
        if self.at == Some(number) {
            self.viewer.borrow_mut().show(&numbered(number, line));
        }
        self.goes_on(number)
    }

    fn before_exit(&mut self, number: usize) -> bool {
        if self.at == Some(number) {
            self.seen = number;
            self.viewer.borrow_mut().show(&format!(
                "{number:>6} is the end of the process or thread, which stands before it"
            ));
        }
        self.goes_on(number)
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        *self.outcome.borrow_mut() = match self.at {
            Some(at) if at > self.seen => Err(Error::Trace(format!(
                "the replay has only {} events",
                self.seen
            ))),
            _ => open_debugger(world, self.faults, *self.viewer.borrow_mut()),
        };
    }
}

/// Opens the debugger on the process that ran last, and waits until it is closed.
fn open_debugger(world: &mut StoppedRun<'_>, faults: bool, viewer: &mut dyn Viewer) -> Result<()> {
    let Some(process) = world.detach()? else {
        bail!(Trace, "no process is left at that event");
    };
    viewer.show(&format!(
        "process {} stands still; from here on a system call of it raises SIGSYS",
        process.process
    ));
    if faults {
        viewer.show("it stands at the instruction that faults");
    }
    Ok(viewer.debug(&gdb_arguments(process))?)
}

/// Returns the arguments of gdb for a stopped process.
fn gdb_arguments(process: DetachedProcess) -> Vec<OsString> {
    // The SIGSTOP that holds the process until the debugger attaches is not an event of the
    // program. `-readnow`: if only some units of a program have an index, gdb ignores everything
    // that the index does not list.
    let quietly = "handle SIGSTOP nostop noprint nopass";
    let number = process.process.to_string();
    let mut arguments: Vec<OsString> = ["-q", "-readnow", "-iex", quietly, "-p", &number]
        // Keep the other threads stopped too.
        .into_iter()
        .chain(["-ex", "set scheduler-locking on"])
        .map(OsString::from)
        .collect();
    if let Some(number) = number_of_thread(process.process, process.thread) {
        arguments.extend(["-ex".into(), format!("thread {number}").into()]);
    }
    arguments.push(process.program.into());
    arguments
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
fn host_of<'r>(replay: &'r NativeReplay, point: &'r StopPoint) -> Result<(&'r str, usize)> {
    let names = replay.hosts();
    // The default is the host of the finding.
    let name = match replay.wrong_host() {
        Some(wrong) if point.host == HOST && !names.contains(&HOST) => wrong,
        _ => &point.host,
    };
    match names.iter().position(|other| *other == name) {
        Some(at) => Ok((name, at)),
        None if replay.is_world() => bail!(
            Trace,
            "there is no host {name:?}; there are: {}",
            names.join(", ")
        ),
        None => bail!(Trace, "there is no host {name:?}; the only one is {HOST}"),
    }
}

/// A command of the user who steps through a replay.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum StepCommand {
    /// Show this event.
    Event(usize),
    /// Open a debugger.
    Debugger,
    /// Quit.
    Quit,
}

impl StepCommand {
    /// Asks for the next command, at an event or after the last one.
    fn ask(number: usize, viewer: &mut dyn Viewer) -> StepCommand {
        const PROMPT: &str = "(next: Enter, back: b, event: its number, gdb: g, quit: q) ";
        loop {
            let Some(line) = viewer.ask(PROMPT) else {
                return StepCommand::Quit;
            };
            match line.trim() {
                "" => return StepCommand::Event(number + 1),
                "b" => return StepCommand::Event(number.saturating_sub(1).max(1)),
                "g" => return StepCommand::Debugger,
                "q" => return StepCommand::Quit,
                other => match other.parse::<usize>() {
                    Ok(event) if event > 0 => return StepCommand::Event(event),
                    _ => viewer.show(&format!("{other:?} is none of these")),
                },
            }
        }
    }
}

/// The state of stepping through the events of all hosts.
struct Walk {
    /// The next event to show.
    next: usize,
    /// The last command, unless it was to continue.
    command: Option<StepCommand>,
    /// Whether the debugger opened, if it was requested.
    outcome: Result<()>,
    /// The number of events of all hosts so far.
    events: usize,
    /// The host of the last event.
    on: String,
}

/// The watcher of one host.
struct WalkAt<'w, 'u> {
    host: String,
    /// Whether to show the host's name, because there are several hosts.
    is_named: bool,
    walk: &'w RefCell<Walk>,
    viewer: &'w SharedViewer<'u>,
}

impl Watcher for WalkAt<'_, '_> {
    fn event(&mut self, number: usize, line: &str, _: u64) -> bool {
        let walk = &mut *self.walk.borrow_mut();
        if walk.command.is_some() {
            return false;
        }
        walk.events += 1;
        walk.on.clone_from(&self.host);
        let event = walk.events;
        if event < walk.next {
            return true;
        }
        let viewer = &mut **self.viewer.borrow_mut();
        match self.is_named {
            true => viewer.show(&numbered(event, &format!("{}:{number} {line}", self.host))),
            false => viewer.show(&numbered(event, line)),
        }
        match StepCommand::ask(event, viewer) {
            StepCommand::Event(wanted) if wanted > event => walk.next = wanted,
            command => walk.command = Some(command),
        }
        walk.command.is_none()
    }

    fn stopped(&mut self, world: &mut StoppedRun<'_>) {
        let walk = &mut *self.walk.borrow_mut();
        if walk.on == self.host && walk.command == Some(StepCommand::Debugger) {
            walk.outcome = open_debugger(world, false, *self.viewer.borrow_mut());
        }
    }
}

impl NativeReplay {
    /// Replays up to a point and opens a debugger on its host there; all other hosts stay stopped.
    pub fn debug(&self, point: &StopPoint, viewer: &mut dyn Viewer) -> Result<()> {
        let (name, index) = host_of(self, point)?;
        let (mut at, mut faults) = (point.event, false);
        if at.is_none() {
            let seen = self.run(no_watchers(self))?;
            if let Some(host) = seen.get(name) {
                viewer.show(&format!("{} {}", subject(self, name), describe(host)));
                (at, faults) = stop_at_end_of(host);
            }
        }
        let (viewer, outcome) = (RefCell::new(viewer), RefCell::new(Ok(())));
        let mut watchers = no_watchers(self);
        watchers[index] = Box::new(HandOver {
            viewer: &viewer,
            at,
            faults,
            seen: 0,
            outcome: &outcome,
        });
        let seen = self.run(watchers);
        outcome.into_inner()?;
        // If the replay stopped early, errors about the rest of the trace do not matter.
        if at.is_none() {
            seen?;
        }
        Ok(())
    }

    /// Steps through the replay event by event.
    pub fn step(&self, viewer: &mut dyn Viewer) -> Result<()> {
        let viewer = RefCell::new(viewer);
        let mut next = 1;
        loop {
            let walk = RefCell::new(Walk {
                next,
                command: None,
                outcome: Ok(()),
                events: 0,
                on: String::new(),
            });
            let at = |host: &str| -> Box<dyn Watcher + '_> {
                Box::new(WalkAt {
                    host: host.to_owned(),
                    is_named: self.is_world(),
                    walk: &walk,
                    viewer: &viewer,
                })
            };
            let seen = self.run(self.hosts().into_iter().map(at).collect());
            let walk = walk.into_inner();
            let viewer = &mut **viewer.borrow_mut();
            if let Err(error) = walk.outcome {
                viewer.show(&error.chain());
            }
            let command = match walk.command {
                Some(command) => command,
                None => {
                    for (name, host) in &seen? {
                        viewer.show(&format!(
                            "       {} {}",
                            subject(self, name),
                            describe(host)
                        ));
                    }
                    match StepCommand::ask(walk.events + 1, viewer) {
                        StepCommand::Event(event) if event > walk.events => StepCommand::Quit,
                        command => command,
                    }
                }
            };
            match command {
                StepCommand::Event(event) => next = event,
                StepCommand::Debugger | StepCommand::Quit => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_points_name_the_host_and_an_event() {
        let point = |host: &str, event| {
            Ok(StopPoint {
                host: host.to_owned(),
                event,
            })
        };
        assert_eq!(StopPoint::parse("host"), point(HOST, None));
        assert_eq!(StopPoint::parse("host:17"), point(HOST, Some(17)));
        assert_eq!(StopPoint::parse("server:2"), point("server", Some(2)));
        assert_eq!(StopPoint::parse(":3"), point(HOST, Some(3)));
        for wrong in ["", ":", "host:", "host:0", "host:x"] {
            assert!(StopPoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// A user who types these lines, and sees others.
    struct Typing(Vec<&'static str>, Vec<String>);

    impl Viewer for Typing {
        fn show(&mut self, line: &str) {
            self.1.push(line.to_owned());
        }

        fn ask(&mut self, _: &str) -> Option<String> {
            (!self.0.is_empty()).then(|| self.0.remove(0).to_owned())
        }

        fn debug(&mut self, _: &[OsString]) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn commands_are_asked_for_until_one_is_understood() {
        let cases = [
            ("", StepCommand::Event(6)),
            ("b", StepCommand::Event(4)),
            ("17", StepCommand::Event(17)),
            ("g", StepCommand::Debugger),
            ("q", StepCommand::Quit),
        ];
        for (text, expected) in cases {
            let mut user = Typing(vec!["0", "x", text], Vec::new());
            assert_eq!(StepCommand::ask(5, &mut user), expected);
            assert_eq!(user.1, ["\"0\" is none of these", "\"x\" is none of these"]);
        }
        let mut gone = Typing(Vec::new(), Vec::new());
        assert_eq!(StepCommand::ask(5, &mut gone), StepCommand::Quit);
        let mut first = Typing(vec!["b"], Vec::new());
        assert_eq!(StepCommand::ask(1, &mut first), StepCommand::Event(1));
    }
}
