//! The solver chain: each layer answers what it can, cheap ones first, and passes the rest on.

use everett_expr::{Arena, EvalScratch, ExprId, Support, Variable};
use std::time::Duration;

use crate::blast::{Blaster, Cdcl, Sat, SatAnswer};
use crate::bytes::{ByteSet, ByteTables, single_byte};
use crate::cache::{Cache, CachedAnswer, Query, Solution};
use crate::config::{Asker, Layer, SolverConfig, SolverError, SolverStatistics};
use crate::congruence::congruences;
use crate::constraints::{Constraints, Group};
use crate::interrupt::Interrupt;
use crate::log::QueryLog;
use crate::model::Model;
use crate::reduce::Reduced;
use crate::smt::{SmtAnswer, SmtProcess};
use crate::verdict::{Effort, Verdict};

/// Answers the queries of one worker. All terms belong to one arena; call [`Solver::on_sweep`]
/// after sweeping it.
pub struct Solver {
    pub(crate) config: SolverConfig,
    pub(crate) statistics: SolverStatistics,
    pub(crate) scratch: EvalScratch,
    pub(crate) tables: ByteTables,
    pub(crate) cache: Cache,
    /// The SAT instance for easy queries; see `light`.
    pub(crate) light: Blaster<Cdcl>,
    heavy: Blaster<Sat>,
    smt: Option<SmtProcess>,
    logs: Vec<QueryLog>,
    asker: Asker,
    /// The number of queries that no cheap layer answered.
    asked: u64,
    interrupt: Interrupt,
    /// When the current query ends without an answer, if queries have a time limit.
    query_until: Option<Duration>,
    /// Whether the current query is a case of another one, by the values of its waist; see `waist`.
    pub(crate) is_at_waist: bool,
}

/// Conflicts of CaDiCaL after which a query is evaluated with most effort, before CaDiCaL goes on.
const FIRST_CONFLICTS: u32 = 1000;
/// Maximum number of values tried for one byte of a larger group.
const MAX_BYTE_TRIALS: usize = 4;
/// Maximum number of constraints evaluated per trial.
const MAX_TRIAL_CONSTRAINTS: usize = 32;

impl Solver {
    /// Creates a solver. The SMT process is started when first needed.
    pub fn new(config: SolverConfig) -> Result<Solver, SolverError> {
        let slow = config.solver_log.clone();
        let slow = slow.map(|directory| QueryLog::of_slow(directory, config.slow_query));
        let all = config.log_queries.clone().map(QueryLog::of_all);
        let logs = slow.into_iter().chain(all).collect::<Result<_, _>>()?;
        Ok(Solver {
            statistics: SolverStatistics::default(),
            scratch: EvalScratch::new(),
            tables: ByteTables::default(),
            cache: Cache::default(),
            light: Blaster::new(),
            heavy: Blaster::new(),
            smt: config.smt.clone().map(SmtProcess::new),
            logs,
            asker: Asker::default(),
            asked: 0,
            interrupt: Interrupt {
                stop: config.stop.clone(),
                clock: config.clock,
                deadline: config.deadline,
            },
            query_until: None,
            is_at_waist: false,
            config,
        })
    }

    /// Sets the time of the run's clock after which no query may run.
    pub fn set_deadline(&mut self, deadline: Option<Duration>) {
        self.interrupt.deadline = deadline;
    }

    /// Returns whether queries are stopped, by the deadline or by the caller. An answer `Unknown`
    /// means nothing then.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_due()
    }

    /// Returns what stops the current query: what stops all, and its own time limit.
    fn query_interrupt(&self) -> Interrupt {
        let limits = self.interrupt.deadline.into_iter().chain(self.query_until);
        Interrupt {
            deadline: limits.min(),
            ..self.interrupt.clone()
        }
    }

    /// Sets whom subsequent queries are counted for.
    pub fn set_asker(&mut self, asker: Asker) {
        self.asker = asker;
    }

    /// Returns the number of queries so far that no cheap layer answered.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns the statistics: queries so far, by the layer that answered them.
    pub fn statistics(&self) -> &SolverStatistics {
        &self.statistics
    }

    /// Drops everything keyed by term; must be called after terms were swept from the arena.
    pub fn on_sweep(&mut self) {
        self.forget();
    }

    /// Drops all cached answers and the SAT instance. Only costs time: answers do not change.
    pub fn forget(&mut self) {
        self.tables.clear();
        self.cache.clear();
        self.light = Blaster::new();
        self.heavy = Blaster::new();
    }

    /// Returns whether `condition` is satisfiable together with `constraints`, which hold under
    /// `model`. The model in the answer agrees with `model` on all bytes that are independent of
    /// the condition.
    pub fn check(
        &mut self,
        arena: &mut Arena,
        constraints: &Constraints,
        model: &Model,
        condition: ExprId,
    ) -> Verdict {
        self.statistics.queries += 1;
        if arena.eval_bool(condition, model, &mut self.scratch) {
            self.statistics.by_model += 1;
            return Verdict::Sat(model.clone());
        }
        let verdict = self.check_false_under_model(arena, constraints, model, condition);
        if let Verdict::Sat(found) = &verdict {
            debug_assert!(
                arena.eval_bool(condition, found, &mut self.scratch),
                "the condition"
            );
            debug_assert!(
                constraints
                    .iter()
                    .all(|e| arena.eval_bool(e, found, &mut self.scratch)),
                "a constraint does not hold under the model that was found"
            );
        }
        verdict
    }

    fn check_false_under_model(
        &mut self,
        arena: &mut Arena,
        constraints: &Constraints,
        model: &Model,
        condition: ExprId,
    ) -> Verdict {
        let condition = constraints.simplify(arena, condition);
        if constraints.contradiction().is_some() || arena.is_const(condition) {
            // The condition is false under the model, so if it is constant, it is false.
            self.statistics.by_simplification += 1;
            return Verdict::Unsat;
        }
        if arena.unsigned_range(condition).1 == 0 {
            self.statistics.by_ranges += 1;
            return Verdict::Unsat;
        }
        let support = arena.support(condition);
        let mut groups: Vec<&Group> = Vec::new();
        constraints.groups_for(support.variables(), &mut groups);
        let query = Query {
            groups: &groups,
            condition,
        };
        let opposite = arena.not(condition);
        if query.has_constraint(opposite) {
            self.statistics.by_simplification += 1;
            return Verdict::Unsat;
        }
        if let Some(verdict) = self.solve_by_bytes(arena, &query, model) {
            self.statistics.by_bytes += 1;
            return verdict;
        }
        if let Some(verdict) = self.ask_cache(arena, &query, &support, model) {
            return verdict;
        }
        self.ask_tiers(arena, &query, &support, model)
    }

    /// Decides a query whose terms all depend on one byte; for others, tries a few values of one
    /// byte.
    fn solve_by_bytes(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        model: &Model,
    ) -> Option<Verdict> {
        let variable = single_byte(arena, query.condition)?;
        let alone = query.groups.iter().all(|group| group.variables.len() == 1);
        let allowed = self.allowed_values(arena, query.groups, variable, alone)?;
        let allowed = self
            .tables
            .among(arena, query.condition, variable, allowed)?;
        if allowed.is_empty() {
            return Some(Verdict::Unsat);
        }
        if alone {
            let value = allowed.first()?;
            return Some(Verdict::Sat(model.with([(
                variable.array,
                variable.index,
                value,
            )])));
        }
        self.try_values(arena, query, model, variable, allowed)
            .map(Verdict::Sat)
    }

    /// Returns the values that the constraints on this byte alone allow. With `exact`, `None` if
    /// one of them is too large for a table.
    pub(crate) fn allowed_values(
        &mut self,
        arena: &Arena,
        groups: &[&Group],
        variable: Variable,
        exact: bool,
    ) -> Option<ByteSet> {
        let mut allowed = ByteSet::ALL;
        let mut large = Vec::new();
        for &e in groups.iter().flat_map(|group| &group.ordered) {
            if single_byte(arena, e) != Some(variable) {
                continue;
            }
            match self.tables.table(arena, e) {
                Some(table) => allowed = allowed.intersection(table),
                None => large.push(e),
            }
        }
        // Large terms are evaluated where the others have left few values.
        for e in large {
            match self.tables.among(arena, e, variable, allowed) {
                Some(left) => allowed = left,
                None if exact => return None,
                None => {}
            }
        }
        Some(allowed)
    }

    /// Changes one byte of the model and checks whether the other constraints still hold.
    fn try_values(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        model: &Model,
        variable: Variable,
        allowed: ByteSet,
    ) -> Option<Model> {
        let mask = arena.support_mask(query.condition);
        let touched: Vec<ExprId> = query
            .groups
            .iter()
            .flat_map(|group| group.ordered.iter().copied())
            .filter(|&e| arena.support_mask(e) & mask != 0)
            .filter(|&e| single_byte(arena, e) != Some(variable))
            .take(MAX_TRIAL_CONSTRAINTS + 1)
            .collect();
        if touched.len() > MAX_TRIAL_CONSTRAINTS {
            return None;
        }
        allowed.iter().take(MAX_BYTE_TRIALS).find_map(|value| {
            let trial = model.with([(variable.array, variable.index, value)]);
            let holds = |&e: &ExprId| arena.eval_bool(e, &trial, &mut self.scratch);
            touched.iter().all(holds).then_some(trial)
        })
    }

    fn ask_cache(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<Verdict> {
        match self.cache.answer(query) {
            Some(CachedAnswer::Unsat) => {
                self.statistics.by_cache += 1;
                return Some(Verdict::Unsat);
            }
            Some(CachedAnswer::Sat(solution)) => {
                self.statistics.by_cache += 1;
                return Some(Verdict::Sat(with_solution(model, solution)));
            }
            None => {}
        }
        if self.cache.contains_core(query) {
            self.statistics.by_core += 1;
            self.cache.remember_unsat(query, None);
            return Some(Verdict::Unsat);
        }
        let found = self.cache.fitting_model(arena, query)?;
        self.statistics.by_cached_model += 1;
        let solution = solution(query, support, |variable| found.value(variable));
        let model = with_solution(model, &solution);
        self.cache.remember_sat(query, solution, &model);
        Some(Verdict::Sat(model))
    }

    fn ask_tiers(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Verdict {
        let started = self.config.clock.now();
        self.query_until = self.config.query_time.map(|limit| started + limit);
        let (verdict, layer) = self.decide(arena, query, support, model);
        let taken = self.config.clock.now().saturating_sub(started);
        for log in &mut self.logs {
            log.write(arena, query, &verdict, layer, taken);
        }
        let cost = self.statistics.askers.entry(self.asker).or_default();
        cost.queries += 1;
        cost.time += taken;
        self.asked += 1;
        if matches!(verdict, Verdict::Unknown(_)) {
            self.statistics.unknown += 1;
        }
        verdict
    }

    /// Decides a query that no cheap layer can answer.
    pub(crate) fn decide(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> (Verdict, Layer) {
        self.evaluate(arena, query, support, model, Effort::First)
            .or_else(|| self.solve_by_factors(arena, query, support, model))
            .unwrap_or_else(|| self.search(arena, query, support, model))
    }

    /// Decides a query by evaluation.
    fn evaluate(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
        effort: Effort,
    ) -> Option<(Verdict, Layer)> {
        if let Some(verdict) = self.solve_by_enumeration(arena, query, support, model, effort) {
            return Some((verdict, Layer::Enumeration));
        }
        let verdict = self.solve_by_samples(arena, query, support, model, effort)?;
        Some((verdict, Layer::Samples))
    }

    /// Decides a query by search, in the SAT solvers and in the SMT process.
    fn search(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> (Verdict, Layer) {
        let started = self.config.clock.now();
        self.statistics.sat_queries += 1;
        let is_warm = self.heavy.is_used();
        let small = self.solve_light(arena, query, support, model);
        let answer = small
            .map(|verdict| (verdict, Layer::Small))
            .or_else(|| {
                let is_refuted = self.is_refuted_by_ranges(arena, query, support);
                is_refuted.then_some((Verdict::Unsat, Layer::Ranges))
            })
            .or_else(|| {
                let is_refuted = self.is_refuted_by_bounds(arena, query, support);
                is_refuted.then_some((Verdict::Unsat, Layer::Factors))
            })
            .or_else(|| {
                let verdict = self.solve_backwards(arena, query, support, model)?;
                Some((verdict, Layer::Inversion))
            })
            .or_else(|| self.evaluate(arena, query, support, model, Effort::Hard))
            .or_else(|| self.solve_by_waist(arena, query, support, model))
            .or_else(|| self.search_reduced(arena, query, support, model));
        self.statistics.sat_time += self.config.clock.now().saturating_sub(started);
        match answer {
            Some(answer) => answer,
            None if self.interrupt.is_due() => {
                let late = Verdict::Unknown("the run ends".to_owned());
                (late, Layer::Cadical)
            }
            None if self.query_interrupt().is_due() => {
                let late = Verdict::Unknown("it takes longer than a query may".to_owned());
                (late, Layer::Cadical)
            }
            None => match self.ask_smt(arena, query, support, model) {
                Verdict::Unknown(reason) if is_warm => {
                    let afresh = self.solve_afresh(arena, query, support, model);
                    let unknown = || (Verdict::Unknown(reason), Layer::Smt);
                    afresh.map_or_else(unknown, |verdict| (verdict, Layer::Cadical))
                }
                verdict => (verdict, Layer::Smt),
            },
        }
    }

    /// Solves the whole query with a new instance of CaDiCaL, after the old one has given up: what
    /// that learnt from other queries may have led it astray, and other workers have asked others.
    /// So a query is unknown only where a worker that has asked nothing else does not know either.
    fn solve_afresh(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<Verdict> {
        if self.query_interrupt().is_due() {
            return None;
        }
        self.heavy = Blaster::new();
        self.statistics.sat_restarts += 1;
        let reduced = self.reduced(arena, query, support);
        self.add_congruences(arena, &reduced);
        let mut budget = self.config.conflict_budget;
        self.solve_heavy(arena, query, &reduced, support, model, &mut budget)
    }

    /// Rewrites the whole query to an easier one.
    fn reduced(&mut self, arena: &mut Arena, query: &Query<'_>, support: &Support) -> Reduced {
        let terms: Vec<ExprId> = query.terms().collect();
        let variables: Vec<Variable> = variables(query, support).collect();
        Reduced::of(arena, &mut self.tables, &terms, &variables)
            .unwrap_or_else(|| Reduced::unchanged(terms))
    }

    /// Rewrites the whole query and solves it with CaDiCaL: first with few conflicts, then, if
    /// evaluation fails as well, with all of the budget.
    fn search_reduced(
        &mut self,
        arena: &mut Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Option<(Verdict, Layer)> {
        if self.heavy.is_outgrown(self.config.clause_limit) {
            self.heavy = Blaster::new();
            self.statistics.sat_restarts += 1;
        }
        self.statistics.cadical_queries += 1;
        let reduced = self.reduced(arena, query, support);
        if reduced.is_refuted(arena) {
            self.cache.remember_unsat(query, None);
            return Some((Verdict::Unsat, Layer::Reduction));
        }
        self.add_congruences(arena, &reduced);
        let mut budget = self.config.conflict_budget;
        let mut first = budget.min(FIRST_CONFLICTS);
        budget -= first;
        let verdict = self.solve_heavy(arena, query, &reduced, support, model, &mut first);
        let answer = verdict.map(|verdict| (verdict, Layer::Cadical));
        answer
            .or_else(|| self.evaluate(arena, query, support, model, Effort::Last))
            .or_else(|| {
                let verdict =
                    self.solve_heavy(arena, query, &reduced, support, model, &mut budget)?;
                Some((verdict, Layer::Cadical))
            })
            .or_else(|| {
                self.statistics.sat_over_budget += 1;
                None
            })
    }

    fn add_congruences(&mut self, arena: &Arena, reduced: &Reduced) {
        for congruence in congruences(arena, &reduced.terms) {
            self.heavy.add_congruence(arena, &congruence);
        }
    }

    /// Solves a rewritten query with CaDiCaL; `None` if the budget is exhausted or floats are
    /// involved.
    fn solve_heavy(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        reduced: &Reduced,
        support: &Support,
        model: &Model,
        budget: &mut u32,
    ) -> Option<Verdict> {
        self.heavy.interrupt_by(&self.query_interrupt());
        let terms = reduced.terms.iter().copied();
        match self.heavy.solve(arena, terms, std::iter::empty(), budget) {
            SatAnswer::Sat => {
                let heavy = &mut self.heavy;
                let found = model.with(variables(query, support).filter_map(|variable| {
                    let value = heavy.value(variable)?;
                    Some((variable.array, variable.index, value))
                }));
                let scratch = &mut self.scratch;
                let value = |variable| reduced.value(arena, scratch, &found, variable);
                let solution = solution(query, support, value);
                let found = with_solution(model, &solution);
                // Floats are unconstrained in the SAT instance, so the model may be wrong.
                let is_certain = reduced.is_unchanged() && !self.heavy.saw_floats();
                if !is_certain && !self.holds(arena, query, &found) {
                    return None;
                }
                self.cache.remember_sat(query, solution, &found);
                Some(Verdict::Sat(found))
            }
            SatAnswer::Unsat => {
                let terms = reduced.terms.iter().enumerate();
                // What was rewritten says no longer which constraints are needed for it.
                let core = reduced.is_unchanged().then(|| {
                    let constraints = terms.take(reduced.terms.len() - 1);
                    let core = constraints.filter(|&(at, _)| self.heavy.is_in_core(at));
                    core.map(|(_, &e)| e).collect()
                });
                self.cache.remember_unsat(query, core);
                Some(Verdict::Unsat)
            }
            SatAnswer::OverBudget => None,
        }
    }

    fn ask_smt(
        &mut self,
        arena: &Arena,
        query: &Query<'_>,
        support: &Support,
        model: &Model,
    ) -> Verdict {
        let interrupt = self.query_interrupt();
        let Some(smt) = &mut self.smt else {
            let why = if self.heavy.saw_floats() {
                "it has floats".to_owned()
            } else {
                format!(
                    "it takes more than {} conflicts",
                    self.config.conflict_budget
                )
            };
            return Verdict::Unknown(format!(
                "the query needs an SMT solver, because {why}, and none is configured"
            ));
        };
        self.statistics.smt_queries += 1;
        let started = self.config.clock.now();
        let terms: Vec<ExprId> = query.terms().collect();
        let answer = smt.solve_until(arena, &terms, &interrupt);
        self.statistics.smt_time += self.config.clock.now().saturating_sub(started);
        match answer {
            SmtAnswer::Sat(values) => {
                let value = |variable: Variable| {
                    values
                        .get(&variable)
                        .copied()
                        .unwrap_or_else(|| model.value(variable))
                };
                let solution = solution(query, support, value);
                let found = with_solution(model, &solution);
                if !self.holds(arena, query, &found) {
                    return Verdict::Unknown("the SMT solver gave a wrong model".to_owned());
                }
                self.cache.remember_sat(query, solution, &found);
                Verdict::Sat(found)
            }
            SmtAnswer::Unsat => {
                self.cache.remember_unsat(query, None);
                Verdict::Unsat
            }
            SmtAnswer::Unknown(reason) => Verdict::Unknown(reason),
        }
    }

    pub(crate) fn holds(&mut self, arena: &Arena, query: &Query<'_>, model: &Model) -> bool {
        query
            .terms()
            .all(|e| arena.eval_bool(e, model, &mut self.scratch))
    }
}

/// Returns whether all terms can hold, decided by CaDiCaL alone in a new instance: the reference
/// for the layers, in tests and in benchmarks. `None` if that takes more conflicts, or if the terms
/// contain floats and are not refuted without them.
pub fn cadical_alone(arena: &Arena, terms: &[ExprId], conflicts: u32) -> Option<bool> {
    let mut blaster = Blaster::<Sat>::new();
    let terms = terms.iter().copied();
    match blaster.solve(arena, terms, std::iter::empty(), &mut { conflicts }) {
        SatAnswer::Sat => (!blaster.saw_floats()).then_some(true),
        SatAnswer::Unsat => Some(false),
        SatAnswer::OverBudget => None,
    }
}

/// Returns the values of all variables of the query, each once.
pub(crate) fn solution(
    query: &Query<'_>,
    support: &Support,
    mut value: impl FnMut(Variable) -> u8,
) -> Solution {
    variables(query, support)
        .map(|variable| (variable, value(variable)))
        .collect()
}

/// Returns all variables of the query, each once.
fn variables<'a>(
    query: &'a Query<'_>,
    support: &'a Support,
) -> impl Iterator<Item = Variable> + 'a {
    let is_free = move |variable: &&Variable| {
        let mut groups = query.groups.iter();
        !groups.any(|group| group.variables.binary_search(variable).is_ok())
    };
    let grouped = query.groups.iter().flat_map(|group| &group.variables);
    let free = support.variables().iter().filter(is_free);
    grouped.chain(free).copied()
}

pub(crate) fn with_solution(model: &Model, solution: &Solution) -> Model {
    model.with(
        solution
            .iter()
            .map(|&(variable, value)| (variable.array, variable.index, value)),
    )
}
