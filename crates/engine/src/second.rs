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
    /// How it ended.
    pub ending: PathEnding,
    /// Its exit status, which may be symbolic.
    pub status: Option<Value>,
    /// The same for traces, without what depends on the input.
    pub end: TraceEnd,
    /// What it wrote to standard output and standard error.
    pub output: [Bytes; 2],
    /// What it left behind in files.
    pub files: Vec<ChangedFile>,
}

impl Behaviour {
    /// It came to its end by itself. What a program has written when it dies
    /// depends on what its buffers hold.
    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self.ending, PathEnding::Exit(_) | PathEnding::Idle)
    }

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

/// The second run of a path: what the first one did, and what of its environment is left.
#[derive(Clone)]
pub struct Second {
    /// What the first program did.
    pub(crate) first: Arc<Behaviour>,
    /// Inputs that the first one made.
    pub(crate) inputs: usize,
    /// Choices that it made.
    pub(crate) choices: usize,
    /// Instructions that it executed.
    pub(crate) instructions: u64,
    /// Its choices that the second one has not come to, by what was asked.
    left: BTreeMap<ChoiceSite, VecDeque<u32>>,
    /// Inputs that the second one has asked for.
    pub(crate) asked: SharedList<Input>,
}

impl Second {
    /// The second run after a path of the first, with the number of its inputs and its choices.
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

    /// The choice that the first run has made where this is asked.
    pub(crate) fn choice(&self, site: &ChoiceSite, alternatives: u32) -> Option<u32> {
        let picked = self.left.get(site)?.front().copied();
        picked.filter(|picked| *picked < alternatives)
    }

    /// Removes the choice that the second run has now made here.
    pub(crate) fn mark_chosen(&mut self, site: &ChoiceSite) {
        if let Some(queue) = self.left.get_mut(site) {
            queue.pop_front();
        }
    }

    /// Records an input that the second run has asked for.
    pub(crate) fn add_asked(&mut self, name: &str, array: ArrayId, size: u32) {
        self.asked.push(Input {
            name: name.into(),
            array,
            size,
        });
    }

    /// The input of this name that the first run made.
    pub(crate) fn input<'p>(&self, all: &'p SharedList<Input>, name: &str) -> Option<&'p Input> {
        let mut shared = all.iter().take(self.inputs);
        shared.find(|input| *input.name == *name)
    }
}
