//! Runs the commands of a test one after the other, enforces all limits, and records what happens.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::child::{Start, start};
use super::sandbox::SandboxFiles;
use super::streams::Stream;
use super::tracer::{SIGNALLING, Tracer, is_crash};
use super::{Ended, Job, Seen, coverage, files, memory, proxy};
use crate::injector::Injection;
use crate::injector::preload::ASK_TRACER;
use crate::results::Isolation;

/// A test ends if its output is this many times what is kept.
const FLOOD: u64 = 64;
/// Number of events that are handled before output and limits get their turn.
const EVENTS: u32 = 256;
/// The longest wait for an event.
const TICK: Duration = Duration::from_millis(25);

struct Supervisor<'j> {
    job: &'j Job,
    place: &'j SandboxFiles,
    tracer: Tracer,
    streams: [Stream; 2],
    child_events: SignalFd,
    env: Vec<(String, String)>,
    traps: Vec<u32>,
    /// The proxy process.
    proxy: Option<Pid>,
}

/// The file to which the proxy logs its changes.
const PROXY_LOG: &str = "proxy.log";

/// Runs a job.
pub(super) fn run(job: &Job, place: &SandboxFiles) -> Result<Seen, String> {
    let mut supervisor =
        Supervisor::new(job, place).map_err(|error| format!("cannot prepare a test: {error}"))?;
    let mut seen = supervisor.run();
    supervisor.end_all();
    let log = std::fs::read_to_string(supervisor.log()).unwrap_or_default();
    crate::injector::preload::read_log(&log, &mut seen);
    if matches!(job.injection, Injection::Corrupt { .. }) {
        let log = std::fs::read_to_string(place.own.join(PROXY_LOG)).unwrap_or_default();
        seen.injected.extend(proxy::read_log(&log));
    }
    crate::profile::read_counts(&place.own, &mut seen.calls);
    if job.sees_coverage {
        seen.coverage = coverage::lines(&place.own);
    }
    Ok(seen)
}

impl<'j> Supervisor<'j> {
    fn new(job: &'j Job, place: &'j SandboxFiles) -> nix::Result<Supervisor<'j>> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGCHLD);
        signals.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let (faults, counts, by_site) = match &job.injection {
            Injection::Calls(faults) => (faults.as_slice(), false, false),
            Injection::CountCalls { by_site } => (&[][..], true, *by_site),
            Injection::Preload { by_site, .. } => (&[][..], false, *by_site),
            _ => (&[][..], false, false),
        };
        let mut tracer = Tracer::new(faults, &job.programs);
        tracer.calls = counts.then(Default::default);
        tracer.observed = by_site.then(Default::default);
        if let Injection::Preload { faults, .. } = &job.injection {
            let happening = faults.iter().filter(|fault| fault.first > 0);
            tracer.asked = happening.cloned().collect();
        }
        tracer.guards = place.isolation != Isolation::Namespaces;
        let mut traps: Vec<u32> = match counts {
            true => everett_linux::rows()
                .map(|row| row.number)
                .filter(|number| *number < 1024)
                .collect(),
            false => faults.iter().filter_map(|fault| fault.call).collect(),
        };
        if by_site || !tracer.asked.is_empty() {
            traps.push(ASK_TRACER);
        }
        if tracer.guards {
            traps.extend(SIGNALLING);
        }
        let mut supervisor = Supervisor {
            job,
            place,
            tracer,
            streams: [
                Stream::new(job.limits.output)?,
                Stream::new(job.limits.output)?,
            ],
            child_events: SignalFd::with_flags(&signals, flags)?,
            env: std::env::vars()
                .filter(|(name, _)| !name.starts_with("EVERETT_"))
                .collect(),
            traps,
            proxy: None,
        };
        supervisor.set("PWD", place.folder.display().to_string());
        for (name, value) in &job.env {
            supervisor.set(name, value.clone());
        }
        supervisor.set("EVERETT_SCRATCH", place.own.display().to_string());
        if job.sees_coverage {
            let (name, value) = coverage::variable(&place.own);
            supervisor.set(&name, value);
        }
        Ok(supervisor)
    }

    fn set(&mut self, name: &str, value: String) {
        self.env.retain(|(own, _)| own != name);
        self.env.push((name.to_owned(), value));
    }

    /// Returns the file to which the preloaded library logs.
    fn log(&self) -> PathBuf {
        self.place.own.join("preload.log")
    }

    fn run(&mut self) -> Seen {
        self.set_preload_variables();
        let mut seen = Seen::nothing(self.place.isolation);
        let limits = self.job.limits.clone();
        seen.start_failure = self.start_proxy().err();
        if seen.start_failure.is_some() {
            return seen;
        }
        if let Some(words) = &self.job.start {
            let ended = self.command(words, limits.setup_timeout);
            if !ended.is_success() {
                let said = self.streams[1].output().text;
                seen.start_failure = Some(format!("{ended}: {}", last_line(&said)));
            }
            self.streams
                .iter_mut()
                .for_each(|stream| drop(stream.output()));
        }
        if seen.start_failure.is_none() {
            let begun = Instant::now();
            seen.test = self.command(&self.job.test, limits.timeout);
            seen.seconds = begun.elapsed().as_secs_f64();
        }
        self.take_traced(&mut seen);
        self.stop_injecting();
        if let Some(words) = &self.job.measure {
            self.set("EVERETT_END", seen.test.to_string());
            let ended = self.command(words, limits.setup_timeout);
            let said = self.streams[0].output().text;
            seen.measured = Some(match ended.is_success() {
                true => said,
                false => format!("{ended}"),
            });
        }
        if self.job.sees_files {
            seen.files = files::changed(self.place);
        }
        if let Some(words) = &self.job.cleanup {
            let ended = self.command(words, limits.setup_timeout);
            seen.cleanup_failure = (!ended.is_success()).then(|| ended.to_string());
        }
        seen
    }

    /// Sets the variables of the preloaded library, if there is one.
    fn set_preload_variables(&mut self) {
        if let Injection::Preload {
            library,
            counts,
            by_site,
            ..
        } = &self.job.injection
        {
            if *by_site {
                self.set("EVERETT_PRELOAD_OBSERVE", "1".to_owned());
            }
            let log = self.log().display().to_string();
            if *counts {
                self.set(
                    "EVERETT_PRELOAD_COUNTS",
                    self.place.own.display().to_string(),
                );
            }
            for (name, value) in
                crate::injector::preload::variables(&self.job.injection, &self.job.programs)
            {
                self.set(&name, value);
            }
            self.set("LD_PRELOAD", library.display().to_string());
            self.set("EVERETT_PRELOAD_LOG", log);
        }
    }

    /// Takes what the test printed, and what the tracer saw of it.
    fn take_traced(&mut self, seen: &mut Seen) {
        seen.output = [self.streams[0].output(), self.streams[1].output()];
        seen.injected = std::mem::take(&mut self.tracer.injected);
        seen.crashes = std::mem::take(&mut self.tracer.crashes);
        seen.core = self.tracer.core.take().map(|core| super::core::pack(&core));
        seen.calls = self.tracer.calls.take().unwrap_or_default();
        let sites = self.tracer.observed.take().unwrap_or_default().into_iter();
        let most = |counts: BTreeMap<i32, u64>| counts.into_values().max().unwrap_or(0);
        seen.sites = sites.map(|(site, counts)| (site, most(counts))).collect();
    }

    fn start_proxy(&mut self) -> Result<(), String> {
        let Injection::Corrupt { proxy, faults } = &self.job.injection else {
            return Ok(());
        };
        let started = proxy::start(proxy, faults, &self.place.own.join(PROXY_LOG));
        let listen = proxy.listen;
        let failed = |error| format!("the proxy cannot listen at {listen}: {error}");
        self.proxy = Some(started.map_err(failed)?);
        Ok(())
    }

    /// Stops the injection: the commands after the test are not part of the system under test.
    fn stop_injecting(&mut self) {
        self.env
            .retain(|(name, _)| name != "LD_PRELOAD" && !name.starts_with("EVERETT_PRELOAD"));
        self.tracer.stop_injecting();
        self.traps = match self.tracer.guards {
            true => SIGNALLING.to_vec(),
            false => Vec::new(),
        };
    }

    /// Runs a command until it ends or exceeds a limit.
    fn command(&mut self, words: &[String], time: Duration) -> Ended {
        let begin = Start {
            words,
            env: &self.env,
            folder: &self.place.folder,
            streams: [&self.streams[0].theirs, &self.streams[1].theirs],
            traps: &self.traps,
        };
        let child = match start(&begin) {
            Ok(child) => child,
            Err(error) => return Ended::NotStarted(error.to_string()),
        };
        if let Err(error) = self.attach(child) {
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
            return Ended::NotStarted(format!("it cannot be traced: {error}"));
        }
        let deadline = Instant::now() + time;
        loop {
            let ended = self.events(child);
            while self.streams[0].take() | self.streams[1].take() && ended.is_some() {}
            if let Some(ended) = ended {
                return ended;
            }
            let exceeded = match () {
                () if Instant::now() >= deadline => Some(Ended::Timeout),
                () if self.tracer.alive() as u64 > self.job.limits.processes => {
                    Some(Ended::Limit("processes".to_owned()))
                }
                () if self
                    .streams
                    .iter()
                    .any(|one| one.bytes > FLOOD * self.job.limits.output) =>
                {
                    Some(Ended::Limit("output".to_owned()))
                }
                () if self.is_out_of_memory() => Some(Ended::Limit("memory".to_owned())),
                () => None,
            };
            if let Some(exceeded) = exceeded {
                self.end_all();
                return exceeded;
            }
            self.wait(deadline);
        }
    }

    /// Returns whether all processes together exceed the memory limit. Shared pages count once.
    /// Because that is slow, it is computed only if the plain sum exceeds the limit.
    fn is_out_of_memory(&self) -> bool {
        let most = self.job.limits.memory;
        let sum = |of: fn(i32) -> u64| self.tracer.processes().map(of).sum::<u64>();
        sum(memory::resident) > most && sum(memory::proportional) > most
    }

    /// Waits until the child has stopped itself, and then traces it.
    fn attach(&mut self, child: Pid) -> nix::Result<()> {
        loop {
            match waitpid(child, Some(WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Stopped(..)) => break,
                Ok(_) => return Err(Errno::ECHILD),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.tracer.seize(child)?;
        kill(child, Signal::SIGCONT)
    }

    /// Handles events of all processes. Returns how the child ended, if it did.
    fn events(&mut self, child: Pid) -> Option<Ended> {
        // Drain the notifications; the loop below handles all events until now.
        while let Ok(Some(_)) = self.child_events.read_signal() {}
        for _ in 0..EVENTS {
            let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
            let Ok(status) = waitpid(None, Some(flags)) else {
                return None;
            };
            let ended = match status {
                WaitStatus::StillAlive => return None,
                WaitStatus::Exited(pid, code) if pid == child => Some(self.exited(code)),
                WaitStatus::Signaled(pid, signal, _) if pid == child => {
                    Some(Ended::Signal(signal as i32))
                }
                _ => None,
            };
            self.handle(status);
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    fn exited(&self, code: i32) -> Ended {
        match code {
            // Shells report signals this way.
            code if code > 128 && is_crash(code - 128) => Ended::Signal(code - 128),
            code => Ended::Exit(code),
        }
    }

    fn wait(&self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now()).min(TICK);
        let mut all = [
            PollFd::new(self.child_events.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.streams[0].ours.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.streams[1].ours.as_fd(), PollFlags::POLLIN),
        ];
        let timeout =
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut all, timeout);
    }

    /// Kills all processes of the test.
    fn end_all(&mut self) {
        loop {
            match self.place.isolation {
                // Sent by the first process of a namespace, this reaches all other processes in it,
                // and no others.
                Isolation::Namespaces => drop(kill(Pid::from_raw(-1), Signal::SIGKILL)),
                _ => {
                    let own = self.proxy.map(Pid::as_raw);
                    for process in self.tracer.processes().chain(own) {
                        let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
                    }
                }
            }
            match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Err(Errno::EINTR) => {}
                Err(_) => return,
                Ok(status) => self.handle(status),
            }
        }
    }

    fn handle(&mut self, status: WaitStatus) {
        if matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..))
            && status.pid() == self.proxy
        {
            // The process id may be reused soon.
            self.proxy = None;
        }
        self.tracer.handle(status);
    }
}

fn last_line(text: &str) -> &str {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("")
        .trim()
}
