//! The execution context of states: term arena, solver, coverage. A worker runs and splits the
//! state that it is given; the explorer decides which state runs and what happens to it afterwards.

use everett_expr::{Arena, EvalScratch};
use everett_linux::{ChangedFile, Disk, Ending, FileChange, Host, HostConfig, HostExit, Stream};
use everett_sim::Plan;
use everett_solver::{Solver, SolverConfig, SolverError};
use everett_vm::{
    Bug, BugKind, CallSite, Coverage, ExecContext, Image, Interrupt, Outside, StackId, StackTable,
    Value, VmOptions,
};
use std::sync::Arc;

use crate::finding::{Finding, FindingKey, FrameArgument, PathEnding};
use crate::oracle::{Fork, PathOracle};
use crate::path::Answer;
use crate::seeds::Seed;
use crate::shares::Shares;
use crate::source::{
    IsCallAt, SourceFrame, describe, describe_ends, end_of_main, is_out_of_memory, kind_of_abort,
    principal, take_trap_reason,
};
use crate::state::State;
use crate::trace::{Trace, TraceChoice, TraceEnd, digest};

/// How long a host runs at most.
#[derive(Copy, Clone, Debug)]
pub enum RunFor {
    /// About this number of instructions.
    Budget(u64),
    /// Until the host has executed this number of instructions since boot.
    To(u64),
}

/// The worker: the context in which states run.
pub struct Worker<'a> {
    /// The programs.
    pub images: &'a [Image],
    /// Settings of the vm.
    pub vm: VmOptions,
    /// The terms of all states of this worker.
    pub arena: Arena,
    pub solver: Solver,
    /// Interned call stacks.
    pub stacks: StackTable,
    /// The code that was executed.
    pub coverage: Coverage,
    /// Reusable memory for evaluating terms.
    pub scratch: EvalScratch,
    /// The source of answers for live peers.
    pub outside: Option<Arc<dyn Outside>>,
    /// The planned faults of each host, if faults are planned.
    pub plans: Vec<Plan>,
    /// Returns whether a call comes from the call site of a planned fault.
    pub is_at: Option<IsCallAt>,
    /// Whether paths can be merged.
    pub merges: bool,
    /// The seeds of the search.
    pub seeds: Vec<Seed>,
    /// Whether somebody hears what programs say to their user.
    pub keeps_notes: bool,
    /// The forks and queries so far, if their shares are limited.
    pub shares: Option<Shares>,
}

/// The other side of a fork.
pub enum Other {
    /// The other state of the fork.
    State(Box<State>),
    /// The solver could not decide, for this reason, whether the other side is feasible.
    Unknown(String),
}

impl<'a> Worker<'a> {
    /// Creates a worker that has run nothing yet.
    pub fn new(
        images: &'a [Image],
        vm: VmOptions,
        solver: SolverConfig,
    ) -> Result<Worker<'a>, SolverError> {
        Ok(Worker {
            images,
            vm,
            arena: Arena::new(),
            solver: Solver::new(solver)?,
            stacks: StackTable::default(),
            coverage: Coverage::of(images),
            scratch: EvalScratch::new(),
            outside: None,
            plans: Vec::new(),
            is_at: None,
            merges: false,
            seeds: Vec::new(),
            keeps_notes: false,
            shares: None,
        })
    }

    /// Runs a state for a while. A state without a host boots it first, with the disk that the host
    /// had when it was switched off, if it was. Returns why it stopped, and the fork to make, if
    /// there is one.
    pub fn run(
        &mut self,
        state: &mut State,
        config: &HostConfig,
        disk: Option<&Disk>,
        run_for: RunFor,
    ) -> (HostExit, Option<Fork>) {
        let (solver, scratch) = (&mut self.solver, &mut self.scratch);
        let state_is_alone = state.net.is_none();
        let merges = self.merges && state_is_alone;
        let number = state.net.as_ref().map_or(0, |net| net.host.index());
        let oracle = PathOracle::new(&mut state.path, solver, scratch);
        let oracle = oracle.with_plan(self.plans.get(number));
        let oracle = oracle.with_call_sites(self.images, self.is_at.as_ref());
        let oracle = oracle.with_seeds(&self.seeds);
        let oracle = oracle.with_notes(self.keeps_notes && state_is_alone);
        let oracle = oracle.with_shares(self.shares.as_mut().filter(|_| state_is_alone));
        let mut oracle = oracle.with_merging(merges);
        let mut around = ExecContext {
            images: self.images,
            arena: &mut self.arena,
            oracle: &mut oracle,
            stacks: &mut self.stacks,
            coverage: &mut self.coverage,
            options: &self.vm,
        };
        let exit = match &mut state.host {
            Some(host) => match run_for {
                RunFor::Budget(budget) => host.run(around, budget),
                RunFor::To(instructions) => host.run_to(around, instructions),
            },
            None => match Host::boot(config, disk, &mut around) {
                Ok(host) => {
                    around.oracle.commit();
                    state.host = Some(host);
                    HostExit::Budget
                }
                Err(Interrupt::Suspend) => HostExit::Suspended,
                Err(Interrupt::Bug(bug)) => HostExit::Ended(Ending::Bug(bug)),
                Err(_) => HostExit::Ended(Ending::EndPath),
            },
        };
        (exit, oracle.fork)
    }

    /// Splits a state at a question with several answers: the state takes one of them, the returned
    /// state takes the others.
    pub fn split(&mut self, state: &mut State, fork: Fork) -> Other {
        state.path.weight = state.path.weight.half();
        state.path.depth += 1;
        match fork {
            Fork::Branch {
                condition,
                side,
                other,
            } => {
                let negated = self.arena.not(condition);
                let (here, there) = if side {
                    (condition, negated)
                } else {
                    (negated, condition)
                };
                let other = other.map(|model| {
                    let mut child = Box::new(state.clone());
                    child.path.model = model;
                    child.path.constrain(&mut self.arena, there);
                    child.path.answer(Answer::Bool(!side));
                    child.path.seeds.keep(&self.arena, there, &mut self.scratch);
                    child
                });
                state.path.seeds.keep(&self.arena, here, &mut self.scratch);
                state.path.constrain(&mut self.arena, here);
                state.path.answer(Answer::Bool(side));
                other.map_or_else(Other::Unknown, Other::State)
            }
            Fork::Value { term, value, other } => {
                let width = self.arena.width(term);
                let constant = self.arena.constant(width, value);
                let here = self.arena.eq(term, constant);
                let there = self.arena.not(here);
                let other = other.map(|model| {
                    let mut child = Box::new(state.clone());
                    child.path.model = model;
                    child.path.constrain(&mut self.arena, there);
                    child.path.excluded.push(value);
                    child.path.seeds.keep(&self.arena, there, &mut self.scratch);
                    child
                });
                state.path.seeds.keep(&self.arena, here, &mut self.scratch);
                state.path.constrain(&mut self.arena, here);
                state.path.answer(Answer::Value(value));
                other.map_or_else(Other::Unknown, Other::State)
            }
            Fork::Choice {
                site,
                alternatives,
                picked,
            } => {
                let mut child = Box::new(state.clone());
                child.path.excluded.push(u64::from(picked));
                state.path.choose(TraceChoice {
                    site,
                    alternatives,
                    picked,
                });
                Other::State(child)
            }
        }
    }
}

/// Maximum number of stack frames of a finding that its trace keeps.
const MOST_FRAMES: usize = 16;

/// The location of a finding.
pub struct FindingLocation {
    /// The stack, innermost frame first.
    stack: Vec<SourceFrame>,
    /// Where the memory concerned was allocated.
    allocated: Vec<SourceFrame>,
    message: String,
    /// Whether it is an abort of Rust's runtime because an allocation failed, which can happen
    /// anywhere: all of them are one finding.
    is_out_of_memory: bool,
    /// The instruction of the principal frame.
    site: Option<CallSite>,
}

impl FindingLocation {
    /// Returns the key that identifies the finding among others, of other instructions too if
    /// `by_instruction`.
    pub fn key(&self, bug: &Bug, by_instruction: bool) -> FindingKey {
        let kind = bug.kind.name().to_owned();
        if self.is_out_of_memory {
            return (kind, String::new(), 0, "out of memory".to_owned());
        }
        match principal(&self.stack) {
            // Rust code often has several calls on a line, each of which can panic.
            Some(at) if bug.kind == BugKind::Panic => {
                let function = format!("{}:{}", at.function, at.column);
                (kind, at.file.clone(), at.line, function)
            }
            Some(at) => {
                let site = self.site.filter(|_| by_instruction);
                let function = match site {
                    Some(site) => format!("{}:{:?}:{:?}", at.function, site.function, site.pc),
                    None => at.function.clone(),
                };
                (kind, at.file.clone(), at.line, function)
            }
            None => (kind, String::new(), 0, String::new()),
        }
    }
}

impl Worker<'_> {
    /// Returns a value under the model of a state.
    pub fn value(&mut self, state: &State, value: Value) -> u64 {
        match value.term {
            None => value.bits,
            Some(term) => self.arena.eval(term, &state.path.model, &mut self.scratch),
        }
    }

    /// Returns the standard output and error of a state, under its model.
    pub fn output(&mut self, state: &State) -> [Vec<u8>; 2] {
        let Some(host) = &state.host else {
            return [Vec::new(), Vec::new()];
        };
        [Stream::Stdout, Stream::Stderr].map(|stream| {
            host.output(stream)
                .evaluate(&mut self.arena, &state.path.model)
        })
    }

    /// Returns what a state has printed since this was called last, under its model.
    pub fn output_since(&mut self, state: &mut State) -> [Vec<u8>; 2] {
        let Some(host) = &state.host else {
            return [Vec::new(), Vec::new()];
        };
        let path = &mut state.path;
        let streams = [Stream::Stdout, Stream::Stderr].into_iter().enumerate();
        let mut since = [Vec::new(), Vec::new()];
        for (at, stream) in streams {
            let output = host.output(stream);
            let range = path.printed[at]..output.len();
            since[at] = output.evaluate_range(range, &mut self.arena, &path.model);
            path.printed[at] = path.printed[at].max(output.len());
        }
        since
    }

    /// Returns files with their contents under the model of a state.
    pub fn written(
        &mut self,
        state: &State,
        files: Vec<ChangedFile>,
    ) -> Vec<(ChangedFile, Vec<u8>)> {
        let mut written = Vec::with_capacity(files.len());
        for file in files {
            let bytes = match &file.what {
                FileChange::File(bytes) => bytes.evaluate(&mut self.arena, &state.path.model),
                _ => Vec::new(),
            };
            written.push((file, bytes));
        }
        written
    }

    /// Returns the files that a state's program asked to save, with their contents under the model.
    pub fn saved_files(&mut self, state: &State) -> Vec<(ChangedFile, Vec<u8>)> {
        let saved = state.host.as_ref().and_then(Host::saved_files);
        match saved.map(<[ChangedFile]>::to_vec) {
            Some(files) => self.written(state, files),
            None => Vec::new(),
        }
    }

    /// Refines the kind of an abort from the stack.
    pub fn name_abort(&self, state: &State, bug: &mut Bug) {
        let (BugKind::Abort, Some(host)) = (bug.kind, &state.host) else {
            return;
        };
        let sites = host.stack();
        if is_out_of_memory(self.images, &sites) {
            bug.message = "an allocation failed, and Rust aborts the program".to_owned();
            return;
        }
        bug.kind = kind_of_abort(self.images, &sites);
        match bug.kind {
            BugKind::Panic => bug.message = "a panic aborted the program".to_owned(),
            BugKind::UncaughtException => {
                bug.message = "an exception that may go no further ended the program".to_owned();
            }
            _ => {}
        }
    }

    /// Returns the innermost instruction of the program's own code.
    fn principal_site(&self, sites: &[CallSite]) -> Option<CallSite> {
        let is_own = |site: &&CallSite| {
            let frames = describe(self.images, &[**site]);
            frames
                .iter()
                .any(|frame| !frame.is_library() && frame.line != 0)
        };
        sites.iter().find(is_own).or(sites.first()).copied()
    }

    /// Returns the location of a finding.
    pub fn place_of(&self, state: &State, bug: &Bug) -> FindingLocation {
        let sites = state.host.as_ref().map_or_else(Vec::new, Host::stack);
        let allocated = self.stack_of(bug.allocated);
        // For a leak, the location of the allocation matters, not that of the exit.
        let mut stack = match bug.kind {
            BugKind::Leak if !allocated.is_empty() => allocated.clone(),
            _ => describe_ends(self.images, &sites),
        };
        // What is detected at the end of a program that has returned from its `main` is located
        // there.
        let is_late = matches!(bug.kind, BugKind::Expectation | BugKind::Invariant);
        if is_late && stack.iter().all(SourceFrame::is_library) {
            let image = sites.first().map(|site| usize::from(site.image.0));
            let main = image.and_then(|image| end_of_main(self.images[image].program()));
            stack.splice(0..0, main);
        }
        let message = match take_trap_reason(&mut stack) {
            Some(reason) => format!("{} ({reason})", bug.message),
            None => bug.message.clone(),
        };
        FindingLocation {
            stack,
            allocated,
            message,
            is_out_of_memory: bug.kind == BugKind::Abort && is_out_of_memory(self.images, &sites),
            site: self.principal_site(&sites),
        }
    }

    /// Returns the frames of an interned stack.
    pub fn stack_of(&self, id: Option<StackId>) -> Vec<SourceFrame> {
        id.map_or_else(Vec::new, |id| {
            describe_ends(self.images, &self.stacks.sites(id))
        })
    }

    /// Creates the finding for a bug, without files.
    pub fn finding(
        &self,
        state: &State,
        bug: &Bug,
        place: FindingLocation,
        trace: Trace,
        output: [Vec<u8>; 2],
    ) -> Finding {
        let host = state.host.as_ref();
        let threads = host.map_or_else(Vec::new, Host::threads);
        let threads = match threads.len() {
            0 | 1 => Vec::new(),
            _ => threads
                .into_iter()
                .map(|(who, sites)| (who, describe_ends(self.images, &sites)))
                .collect(),
        };
        Finding {
            failures: host.map_or_else(Vec::new, |host| self.failures(host)),
            values: Vec::new(),
            arguments: host.map_or_else(Vec::new, |host| self.arguments(host)),
            threads,
            kind: bug.kind,
            message: place.message,
            allocated: place.allocated,
            freed: self.stack_of(bug.freed),
            stack: place.stack,
            trace,
            digest: state.answers(),
            clock_ns: state.clock_ns(),
            instructions: state.instructions(),
            output,
            files: Vec::new(),
        }
    }

    /// Returns the functions that the running thread of a host is in, and their arguments.
    fn arguments(&self, host: &Host) -> Vec<(String, Vec<FrameArgument>)> {
        const MOST: usize = 200;
        let (thread, image) = (host.thread(), &self.images[usize::from(host.image().0)]);
        let frames = thread.frames.iter().rev().take(MOST);
        let described = frames.filter_map(|frame| {
            let function = &image.program().functions[frame.function.0 as usize];
            let count = image.code(frame.function)?.parameter_registers as usize;
            let first = frame.base as usize;
            let values = thread.registers.get(first..first + count)?.iter();
            // A parameter that takes several registers has no name here.
            let names = Some(&function.parameters).filter(|names| names.len() == count);
            let values = values.enumerate().map(|(at, value)| FrameArgument {
                name: names.map_or_else(Box::default, |names| names[at].clone()),
                value: value.as_concrete(),
            });
            Some((function.name.clone(), values.collect()))
        });
        described.collect()
    }

    /// Returns the failures that were injected into a host, and where.
    pub fn failures(&self, host: &Host) -> Vec<(String, Vec<SourceFrame>)> {
        let failures = host.injected_failures().iter();
        failures
            .map(|failure| (failure.what.to_string(), self.stack_of(failure.stack)))
            .collect()
    }

    /// Returns the frames of an interned stack, as many as traces keep.
    pub fn frames_of(&self, id: StackId) -> Vec<SourceFrame> {
        let mut frames = self.stack_of(Some(id));
        frames.truncate(MOST_FRAMES);
        frames
    }

    /// Returns how a path ended, to compare it when its trace is followed again.
    pub fn trace_end(&mut self, state: &State, ending: &PathEnding) -> TraceEnd {
        let output = self.output(state).map(|bytes| digest(&bytes));
        let mut end = TraceEnd {
            output,
            ..TraceEnd::default()
        };
        match ending {
            PathEnding::Exit(status) => end.exit = Some(*status),
            PathEnding::Signal(signal) => end.signal = Some(*signal),
            PathEnding::Bug(kind) => {
                end.finding = Some(kind.name().to_owned());
                // The location at which a hang is cut off is arbitrary.
                let host = state.host.as_ref().filter(|_| *kind != BugKind::Hang);
                let sites = host.map_or_else(Vec::new, Host::stack);
                end.stack = describe_ends(self.images, &sites);
                end.stack.truncate(MOST_FRAMES);
            }
            PathEnding::Idle => end.idle = true,
            PathEnding::Off => end.off = true,
            PathEnding::Silent | PathEnding::Cut(_) => {}
        }
        end
    }
}
