//! Answers for a native run: from a trace, or at random from a seed.

use everett_engine::{SourceFrame, Trace, TraceChoice, TraceInput, input_of, is_named};
use everett_expr::{Arena, ArrayId, Assignment, EvalScratch, ExprId};
use everett_linux::{Bytes, split_mix};
use everett_vm::{Buffer, BugKind, ChoiceSite, Oracle, Suspend};

/// Where answers come from.
#[derive(Clone)]
pub enum Source {
    /// What a trace says.
    Trace(Box<Trace>),
    /// Random choices; inputs are random bytes.
    Random(u64),
    /// What a trace says as far as it goes, random from there on.
    Begun(Box<Trace>, u64),
}

/// Inputs with their bytes. What was not made is 0.
#[derive(Default)]
pub struct Inputs(Vec<(ArrayId, Vec<u8>)>);

impl Inputs {
    /// What bytes are, with these inputs.
    pub fn bytes(&self, buffer: &Buffer, arena: &mut Arena) -> Vec<u8> {
        let mut bytes = Bytes::default();
        bytes.append(buffer);
        bytes.evaluate(arena, self)
    }

    /// The same for a string, which ends at its first NUL, wherever its symbolic bytes put it.
    pub fn string(&self, string: &Buffer, arena: &mut Arena) -> Vec<u8> {
        let mut bytes = self.bytes(string, arena);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        bytes
    }
}

impl Assignment for Inputs {
    fn byte(&self, array: ArrayId, index: u32) -> u8 {
        let input = self.0.iter().find(|input| input.0 == array);
        let byte = input.and_then(|input| input.1.get(index as usize));
        byte.copied().unwrap_or(0)
    }
}

/// The oracle of a native run.
pub struct NativeOracle {
    source: Source,
    /// Inputs that were made.
    pub inputs: Inputs,
    /// The same as a trace has them, and what was chosen.
    made: Trace,
    /// Which of them are given again to a host that sets itself up again: it is the same machine.
    pub again: std::ops::Range<usize>,
    inputs_used: usize,
    choices_used: usize,
    scratch: EvalScratch,
    /// The run has left the order of the trace on purpose: what it does not have goes as usual.
    pub is_free: bool,
    /// Whether allocations fail is asked, as in the model.
    pub sees_allocations: bool,
    /// Why the run parts from the trace.
    pub diverged: Option<String>,
    /// What of the trace cannot be done natively.
    pub beyond: Option<String>,
}

impl NativeOracle {
    /// Answers from a source.
    pub fn new(source: Source) -> NativeOracle {
        NativeOracle {
            source,
            inputs: Inputs::default(),
            made: Trace::default(),
            again: 0..0,
            inputs_used: 0,
            choices_used: 0,
            scratch: EvalScratch::new(),
            is_free: false,
            sees_allocations: false,
            diverged: None,
            beyond: None,
        }
    }

    fn diverge(&mut self, message: String) {
        self.diverged.get_or_insert(message);
    }

    fn eval(&mut self, arena: &Arena, term: ExprId) -> u64 {
        arena.eval(term, &self.inputs, &mut self.scratch)
    }

    /// The bytes of the next input.
    fn next_input(&mut self, name: &str, size: u32) -> Vec<u8> {
        let number = self.inputs_used;
        self.inputs_used += 1;
        let bytes = match &mut self.source {
            Source::Random(state) => return random_bytes(state, size),
            Source::Begun(trace, state) if number >= trace.inputs.len() => {
                return random_bytes(state, size);
            }
            Source::Begun(trace, _) | Source::Trace(trace) => trace.inputs.get(number),
        };
        let problem = match bytes {
            Some(input) if input.bytes.len() == size as usize && is_named(&input.name, name) => {
                return input.bytes.clone();
            }
            Some(input) => format!(
                "the trace has {}, the program asks for {}",
                input_of(&input.name, input.bytes.len()),
                input_of(name, size as usize)
            ),
            None => format!("the trace has no more inputs, the program asks for {name}"),
        };
        self.diverge(problem);
        vec![0; size as usize]
    }

    /// An input that was made already, for a host that sets itself up again.
    fn input_again(&mut self, name: &str, size: u32) -> Option<usize> {
        let range = self.again.clone();
        let mut known = self.made.inputs.iter().zip(0..).skip(range.start);
        let (_, at) = known.find(|(input, at)| {
            *at < range.end && input.bytes.len() == size as usize && is_named(&input.name, name)
        })?;
        self.again.start = at + 1;
        Some(at)
    }

    /// The concrete bytes of an input, for code that is native.
    pub fn input_bytes(&mut self, arena: &mut Arena, name: &str, size: u32) -> Vec<u8> {
        let at = self.take_input(arena, name, size);
        self.inputs.0[at].1.clone()
    }

    /// The number of an input, made now unless it was already.
    fn take_input(&mut self, arena: &mut Arena, name: &str, size: u32) -> usize {
        if let Some(at) = self.input_again(name, size) {
            return at;
        }
        let ordinal = self.inputs.0.len() as u32;
        let array = arena.array(ordinal, &format!("{name}#{ordinal}"), size);
        let bytes = self.next_input(name, size);
        self.made.inputs.push(TraceInput {
            name: name.into(),
            bytes: bytes.clone(),
        });
        self.inputs.0.push((array, bytes));
        self.inputs.0.len() - 1
    }

    /// A native allocator that is not watched is not asked whether it fails. Where it did not fail in the trace
    /// either, that is no difference.
    fn skip_allocations(&mut self, asked: Option<&ChoiceSite>) {
        if self.sees_allocations || asked == Some(&ChoiceSite::AllocationFault) {
            return;
        }
        let (Source::Trace(trace) | Source::Begun(trace, _)) = &self.source else {
            return;
        };
        let rest = trace.choices.iter().skip(self.choices_used);
        let skipped = rest.take_while(|choice| choice.site == ChoiceSite::AllocationFault);
        for choice in skipped {
            self.choices_used += 1;
            if choice.picked != 0 {
                self.beyond.get_or_insert(
                    "the native program has no allocator that can be found".to_owned(),
                );
            }
        }
    }

    fn pick(&mut self, site: &ChoiceSite, alternatives: u32) -> u32 {
        self.skip_allocations(Some(site));
        let number = self.choices_used;
        self.choices_used += 1;
        let choice = match &mut self.source {
            Source::Random(state) => return at_random(state, site, alternatives),
            Source::Begun(trace, state) => {
                let choice = trace.choices.get(number);
                if let Some(choice) = choice.filter(|choice| choice.site == *site) {
                    return choice.picked.min(alternatives.saturating_sub(1));
                }
                // It is not about how the host is set up.
                self.choices_used = number;
                return at_random(state, site, alternatives);
            }
            Source::Trace(trace) => trace.choices.get(number),
        };
        let problem = match choice {
            Some(choice) if choice.site == *site && choice.picked < alternatives => {
                return choice.picked;
            }
            Some(choice) => format!(
                "choice {number} of the trace is {}, the program asks {site}",
                choice.site
            ),
            None => format!("the trace has no more choices, the program asks {site}"),
        };
        if !self.is_free {
            self.diverge(problem);
        }
        0
    }

    /// Random bytes are drawn again until something is true of them. `false` if it does not become true.
    fn draws_again(&mut self, arena: &mut Arena, condition: ExprId) -> bool {
        const MOST_DRAWS: u32 = 10_000;
        let (mut state, fixed) = match &self.source {
            Source::Random(state) => (*state, 0),
            Source::Begun(trace, state) => (*state, trace.inputs.len()),
            Source::Trace(_) => return false,
        };
        let support = arena.support(condition);
        let mut holds = false;
        for _ in 0..MOST_DRAWS {
            for variable in support.variables() {
                let byte = split_mix(&mut state) as u8;
                let (array, at) = (variable.array, variable.index as usize);
                let input = self.inputs.0.iter().position(|input| input.0 == array);
                let Some(input) = input.filter(|input| *input >= fixed) else {
                    continue;
                };
                if let Some(known) = self.inputs.0[input].1.get_mut(at) {
                    *known = byte;
                }
            }
            holds = self.eval(arena, condition) != 0;
            if holds {
                break;
            }
        }
        if let Source::Random(drawn) | Source::Begun(_, drawn) = &mut self.source {
            *drawn = state;
        }
        holds
    }

    /// What was given and chosen, as a trace.
    pub fn trace(&self) -> Trace {
        let made = self.made.inputs.iter().zip(&self.inputs.0);
        let inputs = made.map(|(input, (_, bytes))| TraceInput {
            name: input.name.clone(),
            bytes: bytes.clone(),
        });
        Trace {
            inputs: inputs.collect(),
            ..self.made.clone()
        }
    }

    /// Undefined arithmetic that the trace ends in, and where: file and line.
    pub fn expected_arithmetic(&self) -> Option<(BugKind, String, u32)> {
        let kinds = [BugKind::Overflow, BugKind::UndefinedShift];
        let kind = kinds.into_iter().find(|kind| self.expects(*kind))?;
        let Source::Trace(trace) = &self.source else {
            return None;
        };
        let place = trace
            .end
            .as_ref()?
            .stack
            .iter()
            .find(|frame| frame.line != 0)?;
        Some((kind, place.file.clone(), place.line))
    }

    /// The two lines of a race that the trace ends in.
    pub fn expected_race(&self) -> Option<[(String, u32); 2]> {
        let Source::Trace(trace) = &self.source else {
            return None;
        };
        let end = trace
            .end
            .as_ref()
            .filter(|_| self.expects(BugKind::DataRace))?;
        let line = |stack: &[SourceFrame]| {
            let frame = stack.iter().find(|frame| frame.line != 0)?;
            Some((frame.file.clone(), frame.line))
        };
        Some([line(&end.stack)?, line(&end.races_with)?])
    }

    /// The trace ends in a finding of this kind.
    pub fn expects(&self, kind: BugKind) -> bool {
        match &self.source {
            Source::Trace(trace) => ends_in(trace, kind),
            Source::Random(_) | Source::Begun(..) => false,
        }
    }

    /// Where answers come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Looks at what of the trace was not asked for.
    pub fn look_ahead(&mut self) {
        self.skip_allocations(None);
    }
}

/// Calls that native allocators make, too: which are theirs has to be known.
const SHARED_WITH_ALLOCATORS: [&str; 3] = ["mmap", "mremap", "mprotect"];

/// An allocation fails on the path of a trace, or is what the path ends in, or can be mistaken for what may fail.
pub fn depends_on_allocations(trace: &Trace) -> bool {
    let fails = |choice: &TraceChoice| {
        let is_shared = |call| SHARED_WITH_ALLOCATORS.contains(&call);
        (choice.site == ChoiceSite::AllocationFault && choice.picked != 0)
            || choice.site.failing_call().is_some_and(is_shared)
    };
    let kinds = [BugKind::HugeAllocation, BugKind::Leak];
    kinds.iter().any(|kind| ends_in(trace, *kind)) || trace.choices.iter().any(fails)
}

fn ends_in(trace: &Trace, kind: BugKind) -> bool {
    let end = trace.end.as_ref();
    end.is_some_and(|end| end.finding.as_deref() == Some(kind.name()))
}

fn random_bytes(state: &mut u64, size: u32) -> Vec<u8> {
    (0..size).map(|_| split_mix(state) as u8).collect()
}

/// A choice at random. Things that go wrong are rare, so that a run comes to what follows.
fn at_random(state: &mut u64, site: &ChoiceSite, alternatives: u32) -> u32 {
    const ONE_IN: u64 = 16;
    if site.is_fault() && !split_mix(state).is_multiple_of(ONE_IN) {
        return 0;
    }
    (split_mix(state) % u64::from(alternatives.max(1))) as u32
}

impl Oracle for NativeOracle {
    fn branch(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(self.eval(arena, condition) != 0)
    }

    fn concretize(&mut self, arena: &mut Arena, term: ExprId) -> Result<u64, Suspend> {
        Ok(self.eval(arena, term))
    }

    fn choose(&mut self, site: &ChoiceSite, alternatives: u32) -> Result<u32, Suspend> {
        let picked = self.pick(site, alternatives);
        self.made.choices.push(TraceChoice {
            site: site.clone(),
            alternatives,
            picked,
        });
        Ok(picked)
    }

    fn assume(&mut self, arena: &mut Arena, condition: ExprId) -> Result<bool, Suspend> {
        Ok(self.eval(arena, condition) != 0 || self.draws_again(arena, condition))
    }

    fn input(&mut self, arena: &mut Arena, name: &str, size: u32) -> Result<ArrayId, Suspend> {
        let at = self.take_input(arena, name, size);
        Ok(self.inputs.0[at].0)
    }

    fn prefer(&mut self, _: &mut Arena, _: ExprId) {}

    fn commit(&mut self) {}
}
