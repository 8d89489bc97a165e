//! The second run of a path when two builds are compared: what the first run did, and which of its
//! choices are left to repeat. Must not know paths or the comparison.

use everett_expr::{ArrayId, VisitTerms};
use everett_linux::{Bytes, ChangedFile, FileChange};
use everett_sim::SharedList;
use everett_vm::{ChoiceSite, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::finding::PathEnding;
use crate::input::Input;
use crate::trace::{TraceChoice, TraceEnd};

/// The externally visible behaviour of a program.
#[derive(Clone)]
pub(crate) struct Behaviour {
    /// How the program ended.
    pub ending: PathEnding,
    /// The exit status, which may be symbolic.
    pub status: Option<Value>,
    /// How the program ended, as in a trace, without what depends on the inputs.
    pub end: TraceEnd,
    /// Standard output and standard error.
    pub output: [Bytes; 2],
    /// The files that the program changed.
    pub files: Vec<ChangedFile>,
}

impl Behaviour {
    /// Returns whether the program ended by itself. What a program has written when it crashes
    /// depends on its buffers, so only orderly behaviour is compared in full.
    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self.ending, PathEnding::Exit(_) | PathEnding::Idle)
    }

    /// Visits all terms in the exit status, the output and the files.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        self.status
            .and_then(|it| it.term)
            .into_iter()
            .for_each(|term| visit.term(term));
        self.output
            .iter()
            .for_each(|bytes| bytes.for_each_term(visit));
        for file in &self.files {
            if let FileChange::File(bytes) = &file.what {
                bytes.for_each_term(visit);
            }
        }
    }
}

/// The second run of a path: what the first run did, and which of its choices are left to repeat.
#[derive(Clone)]
pub struct Second {
    /// The behaviour of the first run.
    pub(crate) first: Arc<Behaviour>,
    /// The number of inputs that the first run made.
    pub(crate) inputs: usize,
    /// The number of choices that the first run made.
    pub(crate) choices: usize,
    /// The number of instructions that the first run executed.
    pub(crate) instructions: u64,
    /// The choices of the first run that the second one has not reached, by site.
    left: BTreeMap<ChoiceSite, VecDeque<u32>>,
    /// The inputs that the second run has requested.
    pub(crate) asked: SharedList<Input>,
}

impl Second {
    /// Creates the second run after a path of the first, with the number of its inputs and its
    /// choices.
    pub(crate) fn after(
        (inputs, choices): (usize, &SharedList<TraceChoice>),
        first: Behaviour,
        instructions: u64,
    ) -> Second {
        let mut left: BTreeMap<ChoiceSite, VecDeque<u32>> = BTreeMap::new();
        for choice in choices.iter() {
            let queue = left.entry(choice.site.clone()).or_default();
            queue.push_back(choice.picked);
        }
        Second {
            first: Arc::new(first),
            inputs,
            choices: choices.len(),
            instructions,
            left,
            asked: SharedList::default(),
        }
    }

    /// Returns the choice that the first run made at this site.
    pub(crate) fn choice(&self, site: &ChoiceSite, alternatives: u32) -> Option<u32> {
        let picked = self.left.get(site)?.front().copied();
        picked.filter(|picked| *picked < alternatives)
    }

    /// Removes the choice that the second run has now made at this site.
    pub(crate) fn mark_chosen(&mut self, site: &ChoiceSite) {
        if let Some(queue) = self.left.get_mut(site) {
            queue.pop_front();
        }
    }

    /// Records an input that the second run has requested.
    pub(crate) fn add_asked(&mut self, name: &str, array: ArrayId, size: u32) {
        self.asked.push(Input {
            name: name.into(),
            array,
            size,
        });
    }

    /// Returns the input of this name that the first run made.
    pub(crate) fn input<'p>(&self, all: &'p SharedList<Input>, name: &str) -> Option<&'p Input> {
        let mut shared = all.iter().take(self.inputs);
        shared.find(|input| *input.name == *name)
    }
}
