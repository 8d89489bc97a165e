//! Minimal, maximal and all values of a term.

use everett_expr::{Arena, ExprId, scalar};
use rustc_hash::FxHashSet;

use crate::bytes::single_byte;
use crate::chain::Solver;
use crate::constraints::Constraints;
use crate::model::Model;
use crate::verdict::Verdict;

impl Solver {
    /// Returns the minimal unsigned value of `e` (of at most 64 bits) under the constraints, with a
    /// model; or the reason why it could not be determined.
    pub fn unsigned_min(
        &mut self,
        arena: &mut Arena,
        constraints: &Constraints,
        model: &Model,
        e: ExprId,
    ) -> Result<(u64, Model), String> {
        let mut best = self.value_under(arena, model, e)?;
        let (mut low, _) = arena.unsigned_range(e);
        let mut found = model.clone();
        let mut probe = low;
        while low < best {
            let bound = arena.constant(arena.width(e), probe);
            let condition = arena.ule(e, bound);
            match self.check(arena, constraints, &found, condition) {
                Verdict::Sat(model) => {
                    best = arena.eval(e, &model, &mut self.scratch);
                    found = model;
                }
                Verdict::Unsat => low = probe + 1,
                Verdict::Unknown(reason) => return Err(reason),
            }
            probe = low + best.saturating_sub(low) / 2;
        }
        Ok((best, found))
    }

    /// Returns the maximal unsigned value of `e`; like [`Solver::unsigned_min`].
    pub fn unsigned_max(
        &mut self,
        arena: &mut Arena,
        constraints: &Constraints,
        model: &Model,
        e: ExprId,
    ) -> Result<(u64, Model), String> {
        let mut best = self.value_under(arena, model, e)?;
        let (_, mut high) = arena.unsigned_range(e);
        let mut found = model.clone();
        let mut probe = high;
        while high > best {
            let bound = arena.constant(arena.width(e), probe);
            let condition = arena.ule(bound, e);
            match self.check(arena, constraints, &found, condition) {
                Verdict::Sat(model) => {
                    best = arena.eval(e, &model, &mut self.scratch);
                    found = model;
                }
                Verdict::Unsat => high = probe - 1,
                Verdict::Unknown(reason) => return Err(reason),
            }
            probe = high - high.saturating_sub(best) / 2;
        }
        Ok((best, found))
    }

    /// Returns up to `limit` distinct values of `e` (of at most 64 bits), each with a model, the
    /// value under `model` first; and whether these are all.
    pub fn values(
        &mut self,
        arena: &mut Arena,
        constraints: &Constraints,
        model: &Model,
        e: ExprId,
        limit: usize,
    ) -> (Vec<(u64, Model)>, bool) {
        let mut found: Vec<(u64, Model)> = Vec::new();
        let Ok(first) = self.value_under(arena, model, e) else {
            return (found, false);
        };
        if limit == 0 {
            return (found, false);
        }
        found.push((first, model.clone()));
        if arena.is_const(e) {
            return (found, true);
        }
        if let Some(answer) = self.values_of_byte(arena, constraints, model, e, limit) {
            return answer;
        }
        // The range bounds the number of values, so the last query can be skipped.
        let (low, high) = arena.unsigned_range(e);
        let mut others = arena.bool_constant(true);
        loop {
            if found.len() as u64 > high.saturating_sub(low) {
                return (found, true);
            }
            let Some((last, last_model)) = found.last() else {
                return (found, false);
            };
            let last_model = last_model.clone();
            let value = arena.constant(arena.width(e), *last);
            let differs = arena.ne(e, value);
            others = arena.and(others, differs);
            match self.check(arena, constraints, &last_model, others) {
                Verdict::Sat(_) if found.len() >= limit => return (found, false),
                Verdict::Sat(model) => {
                    let value = arena.eval(e, &model, &mut self.scratch);
                    found.push((value, model));
                }
                Verdict::Unsat => return (found, true),
                Verdict::Unknown(_) => return (found, false),
            }
        }
    }

    /// Like [`Solver::values`], computed from a table, if the term and its constraints depend on
    /// one byte.
    fn values_of_byte(
        &mut self,
        arena: &Arena,
        constraints: &Constraints,
        model: &Model,
        e: ExprId,
        limit: usize,
    ) -> Option<(Vec<(u64, Model)>, bool)> {
        let variable = single_byte(arena, e)?;
        let mut groups = Vec::new();
        constraints.groups_for(&[variable], &mut groups);
        if groups.iter().any(|group| group.variables.len() > 1) {
            return None;
        }
        let allowed = self.allowed_values(arena, &groups, variable, true)?;
        let column = *self.tables.column(arena, e)?;
        let now = model.value(variable);
        let mut found = vec![(column[usize::from(now)], model.clone())];
        let mut known = FxHashSet::from_iter([column[usize::from(now)]]);
        for byte in allowed.iter().filter(|&byte| byte != now) {
            let value = column[usize::from(byte)];
            if !known.insert(value) {
                continue;
            }
            if found.len() >= limit {
                return Some((found, false));
            }
            found.push((value, model.with([(variable.array, variable.index, byte)])));
        }
        Some((found, true))
    }

    fn value_under(&mut self, arena: &Arena, model: &Model, e: ExprId) -> Result<u64, String> {
        if arena.width(e) > 64 {
            return Err("values of terms of more than 64 bits are not enumerated".to_owned());
        }
        Ok(arena.eval(e, model, &mut self.scratch) & scalar::mask(arena.width(e)))
    }
}
