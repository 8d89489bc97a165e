//! Decides whether a path of the server accepts a message that no client sends.
//!
//! The messages of clients are formulas over the message, as far as their inputs could be
//! eliminated. A candidate that satisfies the path condition and none of these formulas is a
//! Trojan, unless a formula is open. Then the solver is asked for inputs with which the client
//! sends exactly this candidate. If there are some, all messages that these inputs cover are
//! excluded, and the search continues with another candidate.

use everett_expr::codec::DecodeError;
use everett_expr::{Arena, ArrayInfo, ExprId};
use everett_solver::{Constraints, Model, Solver, SolverConfig, SolverError, Verdict};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::domain::values_of;
use crate::eliminate::eliminate;
use crate::formula::Formula;
use crate::layout::{Layout, Shape, masked, unmasked};
use crate::path_input::PathInput;
use crate::predicate::{Encoded, Message, StoredPath, pinned};

/// How it is said that a client does not send a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Negation {
    /// As it is.
    #[default]
    Exact,
    /// Value by value, as the literature approximates it: a byte that is no expression differs, or
    /// the constraints on the inputs of one that is do not hold. For comparisons: it misses
    /// messages, and may take some for Trojans that clients send.
    ByValues,
}

/// How many predicates paths of the server have kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Paths, also those that were not at their end.
    pub paths: u64,
    /// The predicates of all of them.
    pub predicates: u64,
    /// The most that one of them has kept.
    pub most: usize,
}

/// What a search may do besides being right. The answers are the same with each of the first three
/// on and off.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SearchOptions {
    /// Server paths without Trojan messages are pruned as soon as that is known.
    pub prune: bool,
    /// Predicates that a path contradicts are dropped for all that comes after.
    pub drop: bool,
    /// Where a path contradicts a field of a predicate, all predicates with the same field
    /// are dropped without the solver.
    pub by_fields: bool,
    /// Candidates for one question; more leave it undecided.
    pub most_candidates: u64,
    /// How what clients send is negated.
    pub negation: Negation,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            prune: true,
            drop: true,
            by_fields: true,
            most_candidates: 2000,
            negation: Negation::Exact,
        }
    }
}

/// How it was shown that no client sends a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// All inputs of clients were eliminated.
    Exact,
    /// Candidates were tried.
    Refined,
    /// It was not: the negation is approximate.
    ByValues,
}

impl How {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            How::Exact => "exact",
            How::Refined => "refined",
            How::ByValues => "approximate",
        }
    }
}

/// A Trojan message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its bytes.
    pub message: Vec<u8>,
    /// How it was shown that no client sends it.
    pub how: How,
}

/// Whether a path has Trojan messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This one is.
    Trojan(Found),
    /// None is.
    None,
    /// It is not known, for this reason.
    Undecided(String),
}

/// A message that a client sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The client.
    pub client: String,
    /// The message.
    pub message: Vec<u8>,
}

/// What a server would have to check so that it accepts only what one predicate sends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// All of these.
    pub facts: Vec<String>,
    /// More than that, which could not be said as a condition on the message.
    pub is_open: bool,
}

/// What was counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchStatistics {
    /// Candidates that turned out to be sent by a client.
    pub candidates: u64,
    /// Predicates that were dropped by the solver's answer.
    pub dropped: u64,
    /// Predicates that were dropped because another one with the same field was.
    pub dropped_by_fields: u64,
}

struct Predicate {
    client: String,
    bytes: Vec<ExprId>,
    conditions: Vec<ExprId>,
    formula: Formula,
    /// The conditions on each field alone.
    fields: Vec<Vec<ExprId>>,
    /// Its approximate negation, where that is asked for.
    negated: Option<ExprId>,
}

/// Decides about messages of one length.
pub struct Search {
    arena: Arena,
    solver: Solver,
    message: Message,
    layout: Layout,
    /// The shapes of messages, which differ in what is masked.
    shapes: Rc<Vec<Shape>>,
    fields: Vec<std::ops::Range<usize>>,
    predicates: Vec<Predicate>,
    options: SearchOptions,
    statistics: SearchStatistics,
    /// Predicates that a path does not contradict.
    alive: HashMap<Vec<ExprId>, Rc<Vec<usize>>>,
    /// How many these are, by the number of conditions of a path.
    kept: BTreeMap<usize, Kept>,
}

/// Why a search could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// Of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// Of terms.
    #[error("terms cannot be read: {0}")]
    Terms(#[from] DecodeError),
    /// Of fields that say too much about others.
    #[error("what is masked in messages of {0} bytes depends on what fields say in too many ways")]
    Shapes(u32),
}

impl Search {
    /// A search among messages of a length, against what clients send.
    pub fn new(
        length: u32,
        layout: &Layout,
        sent: &[Encoded],
        solver: SolverConfig,
        options: SearchOptions,
    ) -> Result<Search, SearchError> {
        let mut arena = Arena::new();
        let message = Message::of(&mut arena, length);
        let fields = unmasked(&layout.fixed(length), length).into_iter();
        let shapes = layout.shapes(length).ok_or(SearchError::Shapes(length))?;
        let mut search = Search {
            solver: Solver::new(solver)?,
            message,
            layout: layout.clone(),
            shapes: Rc::new(shapes),
            fields: fields.map(|(_, range)| range).collect(),
            arena,
            predicates: Vec::new(),
            options,
            statistics: SearchStatistics::default(),
            alive: HashMap::new(),
            kept: BTreeMap::new(),
        };
        let mut known: BTreeMap<Vec<ExprId>, ()> = BTreeMap::new();
        for (number, encoded) in sent.iter().enumerate() {
            if encoded.length == length {
                search.add(number, encoded, &mut known)?;
            }
        }
        Ok(search)
    }

    fn add(
        &mut self,
        number: usize,
        encoded: &Encoded,
        known: &mut BTreeMap<Vec<ExprId>, ()>,
    ) -> Result<(), SearchError> {
        let (bytes, conditions) = encoded.decode(&mut self.arena, number)?;
        let shapes = self.shapes.clone();
        let bytes = match shapes.len() > 1 {
            true => pinned(&mut self.arena, &bytes, &conditions),
            false => bytes,
        };
        for shape in shapes.iter() {
            let mut conditions = conditions.clone();
            if shapes.len() > 1 {
                conditions.extend(shape.conditions(&mut self.arena, &bytes));
                if self.solve(&conditions) == Verdict::Unsat {
                    continue;
                }
            }
            self.add_shape(&encoded.client, (&bytes, conditions), shape, known);
        }
        Ok(())
    }

    /// Adds what a path sends in messages of a shape.
    fn add_shape(
        &mut self,
        client: &str,
        (bytes, conditions): (&[ExprId], Vec<ExprId>),
        shape: &Shape,
        known: &mut BTreeMap<Vec<ExprId>, ()>,
    ) {
        let unmasked: Vec<Option<ExprId>> = bytes
            .iter()
            .zip(&shape.masked)
            .map(|(byte, masked)| (!masked).then_some(*byte))
            .collect();
        let mut formula = eliminate(
            &mut self.arena,
            &mut self.solver,
            self.message.array,
            &unmasked,
            &conditions,
        );
        formula.exact.retain(|fact| !self.arena.is_true(*fact));
        formula.exact.sort_unstable();
        formula.exact.dedup();
        if formula.open.is_empty() && known.insert(formula.exact.clone(), ()).is_some() {
            // Another path sends the same.
            return;
        }
        let fields = self.fields.clone();
        let of_field = |range: &std::ops::Range<usize>| {
            let facts = formula.exact.iter().copied();
            facts
                .filter(|fact| self.is_within(*fact, range))
                .collect::<Vec<_>>()
        };
        let fields = fields.iter().map(of_field).collect();
        let negated = match self.options.negation {
            Negation::Exact => None,
            Negation::ByValues => Some(self.negated_by_values(&unmasked, &conditions)),
        };
        self.predicates.push(Predicate {
            client: client.to_owned(),
            bytes: bytes.to_vec(),
            conditions,
            formula,
            fields,
            negated,
        });
    }

    /// Messages that differ from those of a path in one value: from a constant, or in that the
    /// constraints on the inputs of the value do not hold. A value without constraints is left out.
    fn negated_by_values(&mut self, bytes: &[Option<ExprId>], conditions: &[ExprId]) -> ExprId {
        let mut parts = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            let Some(byte) = byte else { continue };
            let read = self.arena.read(self.message.array, at as u32);
            let same = self.arena.eq(read, *byte);
            if self.arena.as_const(*byte).is_some() {
                parts.push(self.arena.not(same));
                continue;
            }
            let inputs = self.arena.support(*byte);
            let mut about = Vec::new();
            for condition in conditions {
                let support = self.arena.support(*condition);
                let mut variables = support.variables().iter();
                if variables.any(|variable| inputs.variables().contains(variable)) {
                    about.push(*condition);
                }
            }
            if !about.is_empty() {
                let holds = self.arena.all(&about);
                let broken = self.arena.not(holds);
                parts.push(self.arena.all(&[same, broken]));
            }
        }
        self.arena.any(&parts)
    }

    /// A condition is about these bytes of the message only.
    fn is_within(&mut self, condition: ExprId, range: &std::ops::Range<usize>) -> bool {
        let support = self.arena.support(condition);
        let mut variables = support.variables().iter();
        variables.all(|variable| {
            variable.array == self.message.array && range.contains(&(variable.index as usize))
        })
    }

    /// How many predicates there are, of those that say the same one.
    pub fn predicates(&self) -> usize {
        self.predicates.len()
    }

    /// How many of them have inputs that could not be eliminated.
    pub fn open_predicates(&self) -> usize {
        let all = self.predicates.iter();
        all.filter(|one| !one.formula.open.is_empty()).count()
    }

    /// How many predicates paths kept, by the number of their conditions.
    pub fn kept(&self) -> &BTreeMap<usize, Kept> {
        &self.kept
    }

    /// What was counted.
    pub fn statistics(&self) -> SearchStatistics {
        self.statistics
    }

    /// What the search may do.
    pub fn options(&self) -> SearchOptions {
        self.options
    }

    /// The fields of the message.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A path whose conditions are terms of another arena, over this input as its message.
    pub fn path(
        &mut self,
        arena: &Arena,
        input: &ArrayInfo,
        conditions: &[ExprId],
    ) -> Result<Vec<ExprId>, DecodeError> {
        StoredPath::of(arena, input, conditions).decode(&mut self.arena, self.message)
    }

    /// A path that was stored.
    pub fn stored(&mut self, path: &StoredPath) -> Result<Vec<ExprId>, DecodeError> {
        path.decode(&mut self.arena, self.message)
    }

    /// Looks for a model of all conditions.
    fn solve(&mut self, conditions: &[ExprId]) -> Verdict {
        self.solve_from(&mut Constraints::new(), Model::new(), conditions)
    }

    fn solve_from(
        &mut self,
        constraints: &mut Constraints,
        mut model: Model,
        conditions: &[ExprId],
    ) -> Verdict {
        for condition in conditions {
            let arena = &mut self.arena;
            match self.solver.check(arena, constraints, &model, *condition) {
                Verdict::Sat(found) => model = found,
                other => return other,
            }
            constraints.add(arena, *condition);
        }
        Verdict::Sat(model)
    }

    /// The predicates that a path does not contradict, as far as that is worth knowing.
    fn alive(&mut self, path: &[ExprId]) -> Rc<Vec<usize>> {
        if !self.options.drop {
            return Rc::new((0..self.predicates.len()).collect());
        }
        if let Some(known) = self.alive.get(path) {
            return known.clone();
        }
        let before = (0..path.len())
            .rev()
            .find_map(|end| self.alive.get(&path[..end]));
        let before = match before {
            Some(before) => before.clone(),
            None => Rc::new((0..self.predicates.len()).collect()),
        };
        // Of each field: what predicates say about it, and whether the path contradicts that.
        let mut known: HashMap<(usize, Vec<ExprId>), bool> = HashMap::new();
        let mut alive = Vec::new();
        for at in before.iter() {
            if self.options.by_fields && self.is_field_contradicted(*at, path, &mut known) {
                continue;
            }
            let mut conditions = path.to_vec();
            conditions.extend(&self.predicates[*at].formula.exact);
            match self.solve(&conditions) {
                Verdict::Unsat => self.statistics.dropped += 1,
                _ => alive.push(*at),
            }
        }
        let kept = self.kept.entry(path.len()).or_default();
        kept.paths += 1;
        kept.predicates += alive.len() as u64;
        kept.most = kept.most.max(alive.len());
        let alive = Rc::new(alive);
        self.alive.insert(path.to_vec(), alive.clone());
        alive
    }

    /// A path contradicts what a predicate says about one of its fields.
    fn is_field_contradicted(
        &mut self,
        at: usize,
        path: &[ExprId],
        known: &mut HashMap<(usize, Vec<ExprId>), bool>,
    ) -> bool {
        for field in 0..self.fields.len() {
            let facts = self.predicates[at].fields[field].clone();
            if facts.is_empty() {
                continue;
            }
            let key = (field, facts.clone());
            if let Some(contradicted) = known.get(&key) {
                if *contradicted {
                    self.statistics.dropped_by_fields += 1;
                    return true;
                }
                continue;
            }
            let range = self.fields[field].clone();
            let mut conditions = Vec::new();
            for condition in path {
                if self.is_within(*condition, &range) {
                    conditions.push(*condition);
                }
            }
            conditions.extend(facts);
            let contradicted = self.solve(&conditions) == Verdict::Unsat;
            known.insert(key, contradicted);
            if contradicted {
                self.statistics.dropped += 1;
                return true;
            }
        }
        false
    }

    /// That a predicate does not send the message, as far as is known.
    fn not_sent(&mut self, at: usize) -> ExprId {
        if let Some(negated) = self.predicates[at].negated {
            return negated;
        }
        let formula = &self.predicates[at].formula;
        let mut parts = formula.exact.clone();
        let opens: Vec<Vec<ExprId>> = formula.open.iter().map(|open| open.known.clone()).collect();
        for known in opens {
            parts.push(self.arena.any(&known));
        }
        let sent = self.arena.all(&parts);
        self.arena.not(sent)
    }

    /// Whether a path can still have a Trojan message; `true` if that is not known.
    pub fn is_possible(&mut self, path: &[ExprId]) -> bool {
        let alive = self.alive(path);
        let mut conditions = path.to_vec();
        for at in alive.iter() {
            conditions.push(self.not_sent(*at));
        }
        self.solve(&conditions) != Verdict::Unsat
    }

    /// Whether a client sends a message that takes a path; `true` if that is not known.
    pub fn may_be_sent(&mut self, path: &[ExprId]) -> bool {
        let alive = self.alive(path);
        alive.iter().any(|at| {
            let formula = &self.predicates[*at].formula;
            let open = formula.open.iter().flat_map(|open| &open.conditions);
            let conditions = path.iter().chain(&formula.exact).chain(open);
            let conditions: Vec<ExprId> = conditions.copied().collect();
            self.solve(&conditions) != Verdict::Unsat
        })
    }

    /// Whether a path has Trojan messages.
    pub fn decide(&mut self, path: &[ExprId]) -> Answer {
        let alive = self.alive(path);
        for _ in 0..self.options.most_candidates {
            let mut conditions = path.to_vec();
            for at in alive.iter() {
                conditions.push(self.not_sent(*at));
            }
            let model = match self.solve(&conditions) {
                Verdict::Sat(model) => model,
                Verdict::Unsat => return Answer::None,
                Verdict::Unknown(reason) => return Answer::Undecided(reason),
            };
            let bytes = model.bytes(self.message.array, self.message.length);
            if self.options.negation == Negation::ByValues {
                return Answer::Trojan(Found {
                    message: bytes,
                    how: How::ByValues,
                });
            }
            match self.is_sent_by_open(&alive, &bytes) {
                Ok(true) => self.statistics.candidates += 1,
                Ok(false) => {
                    let is_open = |at: &usize| !self.predicates[*at].formula.open.is_empty();
                    let how = match alive.iter().any(is_open) {
                        true => How::Refined,
                        false => How::Exact,
                    };
                    return Answer::Trojan(Found {
                        message: bytes,
                        how,
                    });
                }
                Err(reason) => return Answer::Undecided(reason),
            }
        }
        let most = self.options.most_candidates;
        Answer::Undecided(format!("clients send each of {most} candidates"))
    }

    /// Whether an open predicate sends exactly these bytes; what the inputs that do
    /// so allow is known from then on.
    fn is_sent_by_open(&mut self, alive: &[usize], bytes: &[u8]) -> Result<bool, String> {
        for at in alive {
            if self.predicates[*at].formula.open.is_empty() || !self.holds_exact(*at, bytes) {
                continue;
            }
            let Some(model) = self.inputs_for(*at, bytes)? else {
                continue;
            };
            for number in 0..self.predicates[*at].formula.open.len() {
                let open = self.predicates[*at].formula.open[number].clone();
                let map = values_of(&mut self.arena, &open.inputs, &model);
                let parts: Vec<ExprId> = open
                    .conditions
                    .iter()
                    .map(|condition| self.arena.substitute(*condition, &map))
                    .collect();
                let known = self.arena.all(&parts);
                let list = &mut self.predicates[*at].formula.open[number].known;
                if !list.contains(&known) {
                    list.push(known);
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn given(&self, bytes: &[u8]) -> Model {
        let mut model = Model::new();
        for (at, byte) in bytes.iter().enumerate() {
            model.set(self.message.array, at as u32, *byte);
        }
        model
    }

    fn holds_exact(&mut self, at: usize, bytes: &[u8]) -> bool {
        let model = self.given(bytes);
        let mut scratch = everett_expr::EvalScratch::new();
        let facts = self.predicates[at].formula.exact.iter();
        facts
            .copied()
            .all(|fact| self.arena.eval_bool(fact, &model, &mut scratch))
    }

    /// Inputs with which the open parts of a predicate give these bytes.
    fn inputs_for(&mut self, at: usize, bytes: &[u8]) -> Result<Option<Model>, String> {
        let mut map = HashMap::new();
        for (index, byte) in bytes.iter().enumerate() {
            let read = self.arena.read(self.message.array, index as u32);
            map.insert(read, self.arena.constant(8, u64::from(*byte)));
        }
        let opens = self.predicates[at].formula.open.clone();
        let mut conditions = Vec::new();
        for condition in opens.iter().flat_map(|open| &open.conditions) {
            conditions.push(self.arena.substitute(*condition, &map));
        }
        match self.solve(&conditions) {
            Verdict::Sat(model) => Ok(Some(model)),
            Verdict::Unsat => Ok(None),
            Verdict::Unknown(reason) => Err(reason),
        }
    }

    /// Whether a path takes a message.
    pub fn takes(&mut self, path: &[ExprId], bytes: &[u8]) -> Result<bool, String> {
        self.takes_like(path, bytes, &(0..bytes.len()).collect::<Vec<_>>())
    }

    /// Whether a path takes a message that agrees with these bytes at these places.
    pub fn takes_like(
        &mut self,
        path: &[ExprId],
        bytes: &[u8],
        places: &[usize],
    ) -> Result<bool, String> {
        let mut conditions = self.equal(bytes, places);
        conditions.extend(path);
        match self.solve(&conditions) {
            Verdict::Sat(_) => Ok(true),
            Verdict::Unsat => Ok(false),
            Verdict::Unknown(reason) => Err(reason),
        }
    }

    /// Inputs with which a path takes a message, other than the message; those that its condition
    /// says something about.
    pub fn inputs_with(&mut self, path: &[ExprId], bytes: &[u8]) -> Vec<PathInput> {
        let mut conditions = self.equal(bytes, &(0..bytes.len()).collect::<Vec<_>>());
        conditions.extend(path);
        let Verdict::Sat(model) = self.solve(&conditions) else {
            return Vec::new();
        };
        PathInput::of(&mut self.arena, &model, path, self.message)
    }

    /// Whether two paths take the same messages; `false` if that is not known.
    pub fn take_the_same(&mut self, one: &[ExprId], other: &[ExprId]) -> bool {
        let (one, other) = (self.arena.all(one), self.arena.all(other));
        [(one, other), (other, one)]
            .into_iter()
            .all(|(one, other)| {
                let not_other = self.arena.not(other);
                self.solve(&[one, not_other]) == Verdict::Unsat
            })
    }

    fn equal(&mut self, bytes: &[u8], places: &[usize]) -> Vec<ExprId> {
        let mut conditions = Vec::new();
        for at in places {
            let read = self.arena.read(self.message.array, *at as u32);
            let byte = self.arena.constant(8, u64::from(bytes[*at]));
            conditions.push(self.arena.eq(read, byte));
        }
        conditions
    }

    /// A message of a client that agrees with these bytes at these places, if there is one. This
    /// asks about the client's own terms: nothing is eliminated.
    pub fn produced(&mut self, bytes: &[u8], places: &[usize]) -> Result<Option<Produced>, String> {
        let mut unknown = None;
        for at in 0..self.predicates.len() {
            let mut conditions = self.predicates[at].conditions.clone();
            for place in places {
                let byte = self.arena.constant(8, u64::from(bytes[*place]));
                let term = self.predicates[at].bytes[*place];
                conditions.push(self.arena.eq(term, byte));
            }
            match self.solve(&conditions) {
                Verdict::Sat(model) => {
                    let mut scratch = everett_expr::EvalScratch::new();
                    let terms = self.predicates[at].bytes.clone().into_iter();
                    let arena = &self.arena;
                    let message = terms.map(|term| arena.eval(term, &model, &mut scratch) as u8);
                    return Ok(Some(Produced {
                        client: self.predicates[at].client.clone(),
                        message: message.collect(),
                    }));
                }
                Verdict::Unsat => {}
                Verdict::Unknown(reason) => unknown = Some(reason),
            }
        }
        match unknown {
            Some(reason) => Err(reason),
            None => Ok(None),
        }
    }

    /// The places of bytes of a message that are not masked.
    pub fn unmasked(&self, message: &[u8]) -> Vec<usize> {
        let masked = masked(&self.layout.place(message), message.len() as u32);
        let places = masked.iter().enumerate();
        places
            .filter(|(_, masked)| !**masked)
            .map(|(at, _)| at)
            .collect()
    }

    /// Conditions as text, with the bytes of the message by their names.
    pub fn text(&self, conditions: &[ExprId]) -> Vec<String> {
        let all = conditions.iter();
        all.map(|condition| self.arena.display(*condition).to_string())
            .collect()
    }

    /// What the server would have to check: for each predicate that the path does not contradict,
    /// what it says beyond the path's own condition.
    pub fn missing(&mut self, path: &[ExprId]) -> Vec<Missing> {
        let alive = self.alive(path);
        let mut all = Vec::new();
        for at in alive.iter() {
            let mut missing = Vec::new();
            for fact in self.predicates[*at].formula.exact.clone() {
                let mut conditions = path.to_vec();
                conditions.push(self.arena.not(fact));
                if self.solve(&conditions) != Verdict::Unsat {
                    missing.push(fact);
                }
            }
            all.push(Missing {
                facts: self.text(&missing),
                is_open: !self.predicates[*at].formula.open.is_empty(),
            });
        }
        all.sort();
        all.dedup();
        all
    }

    /// What no message of a path's class may satisfy: what the predicates send
    /// that the path does not contradict.
    pub fn sent_text(&mut self, path: &[ExprId]) -> Vec<String> {
        let alive = self.alive(path);
        let mut all = Vec::new();
        for at in alive.iter() {
            let formula = &self.predicates[*at].formula;
            let mut parts = self.text(&formula.exact);
            if !formula.open.is_empty() {
                parts.push("bytes that depend on inputs in other ways".to_owned());
            }
            if parts.is_empty() {
                parts.push("true".to_owned());
            }
            all.push(parts.join(" and "));
        }
        all.sort();
        all.dedup();
        all
    }
}
