//! Decides whether a server path accepts a message that no client sends.
//!
//! Each client predicate is a formula over the message, as far as its inputs could be eliminated. A
//! candidate that satisfies the path condition and none of these formulas is a Trojan message,
//! unless a formula is open. Then the search asks the solver for inputs with which the client sends
//! exactly this candidate. If there are some, it excludes all messages that these inputs cover, and
//! continues with another candidate.

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

/// How client predicates are negated.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Negation {
    /// Exactly.
    #[default]
    Exact,
    /// Value by value, as in the literature: a constant byte differs, or the constraints on the
    /// inputs of a symbolic byte do not hold. This is for comparisons. It misses Trojan messages,
    /// and may report messages that clients send.
    ByValues,
}

/// Statistics of the client predicates that server paths have kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// The number of paths, including unfinished ones.
    pub paths: u64,
    /// The sum of the predicates that they kept.
    pub predicates: u64,
    /// The maximum that one path kept.
    pub most: usize,
}

/// The options of a search. The first three are optimisations: they do not change the answers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SearchOptions {
    /// Prune a server path as soon as it is known to have no Trojan messages.
    pub prune: bool,
    /// Drop the predicates that a path contradicts for all extensions of the path.
    pub drop: bool,
    /// If a path contradicts a field of a predicate, drop all predicates with the same field
    /// without asking the solver.
    pub by_fields: bool,
    /// Maximum number of candidates for one question; beyond it the answer is undecided.
    pub most_candidates: u64,
    /// How client predicates are negated.
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

/// How the search showed that no client sends a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// All client inputs were eliminated.
    Exact,
    /// Candidates were refined.
    Refined,
    /// It did not: the negation is approximate.
    ByValues,
}

impl How {
    /// Returns the name for results.
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
    /// The bytes of the message.
    pub message: Vec<u8>,
    /// How the search showed that no client sends it.
    pub how: How,
}

/// Whether a path accepts Trojan messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It accepts this one.
    Trojan(Found),
    /// It accepts none.
    None,
    /// Unknown, for this reason.
    Undecided(String),
}

/// A message that a client sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The name of the client.
    pub client: String,
    /// The bytes of the message.
    pub message: Vec<u8>,
}

/// What a server would have to check to accept only the messages of one predicate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// Conditions that are all to be checked.
    pub facts: Vec<String>,
    /// Whether there is more to check, which is not a condition on the message alone.
    pub is_open: bool,
}

/// Counters of a search.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchStatistics {
    /// Candidates that a client sends after all.
    pub candidates: u64,
    /// Predicates dropped by an answer of the solver.
    pub dropped: u64,
    /// Predicates dropped because another one with the same field was contradicted.
    pub dropped_by_fields: u64,
}

pub(crate) struct Predicate {
    client: String,
    bytes: Vec<ExprId>,
    conditions: Vec<ExprId>,
    pub(crate) formula: Formula,
    /// For each field, the conditions on it alone.
    fields: Vec<Vec<ExprId>>,
    /// The approximate negation, with [`Negation::ByValues`].
    negated: Option<ExprId>,
}

/// The search for Trojan messages of one length.
pub struct Search {
    pub(crate) arena: Arena,
    solver: Solver,
    message: Message,
    layout: Layout,
    /// The shapes of messages, which differ in their masks.
    shapes: Rc<Vec<Shape>>,
    fields: Vec<std::ops::Range<usize>>,
    pub(crate) predicates: Vec<Predicate>,
    options: SearchOptions,
    statistics: SearchStatistics,
    /// For each path, the predicates that it does not contradict.
    alive: HashMap<Vec<ExprId>, Rc<Vec<usize>>>,
    /// How many predicates paths have kept, by the number of conditions of a path.
    kept: BTreeMap<usize, Kept>,
}

/// Why a search could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// An error of the solver.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// Terms could not be decoded.
    #[error("terms cannot be read: {0}")]
    Terms(#[from] DecodeError),
    /// The messages of this length have too many shapes.
    #[error("what is masked in messages of {0} bytes depends on what fields say in too many ways")]
    Shapes(u32),
}

impl Search {
    /// Creates a search among messages of a length, against what clients send.
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
        if options.negation == Negation::Exact {
            search.drop_subsumed();
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

    /// Adds the predicate of a client path for messages of a shape.
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
            // Another path has the same predicate.
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

    /// Returns the approximate negation of a predicate: a value of the message differs from a
    /// constant, or the constraints on the inputs of a value do not hold. Values without
    /// constraints are left out.
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

    /// Returns whether a condition depends only on these bytes of the message.
    fn is_within(&mut self, condition: ExprId, range: &std::ops::Range<usize>) -> bool {
        let support = self.arena.support(condition);
        let mut variables = support.variables().iter();
        variables.all(|variable| {
            variable.array == self.message.array && range.contains(&(variable.index as usize))
        })
    }

    /// Returns the number of distinct predicates.
    pub fn predicates(&self) -> usize {
        self.predicates.len()
    }

    /// Returns how many of them have inputs that could not be eliminated.
    pub fn open_predicates(&self) -> usize {
        let all = self.predicates.iter();
        all.filter(|one| !one.formula.open.is_empty()).count()
    }

    /// Returns how many predicates paths kept, by the number of their conditions.
    pub fn kept(&self) -> &BTreeMap<usize, Kept> {
        &self.kept
    }

    /// Returns the counters.
    pub fn statistics(&self) -> SearchStatistics {
        self.statistics
    }

    /// Returns the options.
    pub fn options(&self) -> SearchOptions {
        self.options
    }

    /// Returns the fields of the message.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Imports a path whose conditions are terms of another arena and whose message is this input.
    pub fn path(
        &mut self,
        arena: &Arena,
        input: &ArrayInfo,
        conditions: &[ExprId],
    ) -> Result<Vec<ExprId>, DecodeError> {
        StoredPath::of(arena, input, conditions).decode(&mut self.arena, self.message)
    }

    /// Imports a stored path.
    pub fn stored(&mut self, path: &StoredPath) -> Result<Vec<ExprId>, DecodeError> {
        path.decode(&mut self.arena, self.message)
    }

    /// Looks for a model of all conditions.
    pub(crate) fn solve(&mut self, conditions: &[ExprId]) -> Verdict {
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

    /// Returns the predicates that a path does not contradict; all of them if they are not dropped.
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
        // For each field and its conditions in a predicate: whether the path contradicts them.
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

    /// Returns whether a path contradicts a predicate in one field.
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

    /// Returns the negation of a predicate, as far as it is known.
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

    /// Returns whether a path can still have a Trojan message; `true` if that is not known.
    pub fn is_possible(&mut self, path: &[ExprId]) -> bool {
        let alive = self.alive(path);
        let mut conditions = path.to_vec();
        for at in alive.iter() {
            conditions.push(self.not_sent(*at));
        }
        self.solve(&conditions) != Verdict::Unsat
    }

    /// Returns whether a client sends a message that takes a path; `true` if that is not known.
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

    /// Decides whether a path has Trojan messages.
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

    /// Returns whether an open predicate sends exactly these bytes. If it does, remembers the
    /// condition that the found inputs give.
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

    /// Returns inputs with which the open parts of a predicate give these bytes.
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

    /// Returns whether a message takes a path.
    pub fn takes(&mut self, path: &[ExprId], bytes: &[u8]) -> Result<bool, String> {
        self.takes_like(path, bytes, &(0..bytes.len()).collect::<Vec<_>>())
    }

    /// Returns whether a path is taken by a message that agrees with these bytes at these places.
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

    /// Returns values of the other inputs with which a message takes a path; only inputs that the
    /// path condition constrains.
    pub fn inputs_with(&mut self, path: &[ExprId], bytes: &[u8]) -> Vec<PathInput> {
        let mut conditions = self.equal(bytes, &(0..bytes.len()).collect::<Vec<_>>());
        conditions.extend(path);
        let Verdict::Sat(model) = self.solve(&conditions) else {
            return Vec::new();
        };
        PathInput::of(&mut self.arena, &model, path, self.message)
    }

    /// Returns whether two paths are taken by the same messages; `false` if that is not known.
    pub fn take_the_same(&mut self, one: &[ExprId], other: &[ExprId]) -> bool {
        let (one, other) = (self.arena.all(one), self.arena.all(other));
        [(one, other), (other, one)]
            .into_iter()
            .all(|(one, other)| {
                let not_other = self.arena.not(other);
                self.solve(&[one, not_other]) == Verdict::Unsat
            })
    }

    /// Returns the conditions of a path on the message, in the order of the path. `None` if a
    /// condition relates the message to other inputs.
    pub fn message_conditions(&mut self, path: &[ExprId]) -> Option<Vec<ExprId>> {
        let mut own = Vec::new();
        for term in path {
            let variables = self.arena.support(*term);
            let mut variables = variables.variables().iter();
            let is_own = |variable: &everett_expr::Variable| variable.array == self.message.array;
            match variables.clone().all(is_own) {
                true => own.push(*term),
                false if variables.any(is_own) => return None,
                false => {}
            }
        }
        Some(own)
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

    /// Returns a client message that agrees with these bytes at these places, if there is one. Uses
    /// the client's original terms, without elimination.
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

    /// Returns the offsets of the bytes of a message that are not masked.
    pub fn unmasked(&self, message: &[u8]) -> Vec<usize> {
        let masked = masked(&self.layout.place(message), message.len() as u32);
        let places = masked.iter().enumerate();
        places
            .filter(|(_, masked)| !**masked)
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns conditions as text, with bytes of the message by name.
    pub fn text(&self, conditions: &[ExprId]) -> Vec<String> {
        let all = conditions.iter();
        all.map(|condition| self.arena.display(*condition).to_string())
            .collect()
    }

    /// Returns what the server would have to check: for each predicate that the path does not
    /// contradict, the conditions that the path condition does not imply.
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

    /// Returns, as text, the predicates that the path does not contradict. No message of the path's
    /// class satisfies one of them.
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
