//! Drops client predicates whose messages others send too.

use everett_solver::Verdict;

use crate::search::Search;

/// Maximum number of predicates of which all pairs are compared with the solver.
const MOST_COMPARED: usize = 24;

impl Search {
    /// Drops predicates that another one subsumes: it has no open inputs, and its conditions follow
    /// from theirs.
    pub(crate) fn drop_subsumed(&mut self) {
        self.drop_if(|search, one, other| {
            let facts = |at: usize| &search.predicates[at].formula.exact;
            let (one, other) = (facts(one), facts(other));
            // Facts are sorted.
            other.iter().all(|fact| one.binary_search(fact).is_ok())
        });
        if self.predicates.len() <= MOST_COMPARED {
            self.drop_if(|search, one, other| {
                let other = search.predicates[other].formula.exact.clone();
                let mut conditions = search.predicates[one].formula.exact.clone();
                let all = search.arena.all(&other);
                conditions.push(search.arena.not(all));
                search.solve(&conditions) == Verdict::Unsat
            });
        }
    }

    /// Drops each predicate that is subsumed by another one that is left.
    fn drop_if(&mut self, is_subsumed: impl Fn(&mut Search, usize, usize) -> bool) {
        let mut one = 0;
        while one < self.predicates.len() {
            let is_closed = |at: &usize| self.predicates[*at].formula.open.is_empty();
            let others = (0..self.predicates.len()).filter(|other| *other != one);
            let others: Vec<usize> = others.filter(is_closed).collect();
            match others
                .into_iter()
                .any(|other| is_subsumed(self, one, other))
            {
                true => drop(self.predicates.remove(one)),
                false => one += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use crate::predicate::Encoded;
    use crate::search::{Negation, Search, SearchOptions};
    use everett_expr::{Arena, ExprId};
    use everett_solver::SolverConfig;

    /// Encodes a client that sends one byte of its input, under a condition.
    fn client(holds: impl Fn(&mut Arena, ExprId) -> ExprId) -> Encoded {
        let mut arena = Arena::new();
        let input = arena.array(0, "client:input", 1);
        let byte = arena.read(input, 0);
        let condition = holds(&mut arena, byte);
        Encoded::of(&arena, "client", &[byte], &[condition])
    }

    fn below(number: u64) -> Encoded {
        client(|arena, byte| {
            let number = arena.constant(8, number);
            arena.ult(byte, number)
        })
    }

    #[test]
    fn messages_that_other_paths_send_count_once() {
        let even = client(|arena, byte| {
            let (bit, zero) = (arena.extract(byte, 0, 1), arena.constant(1, 0));
            arena.eq(bit, zero)
        });
        let sent = [below(10), below(20), below(20), even, below(3)];
        let layout = Layout { fields: Vec::new() };
        let kept = |negation: Negation| {
            let options = SearchOptions {
                negation,
                ..SearchOptions::default()
            };
            let search = Search::new(1, &layout, &sent, SolverConfig::default(), options);
            search.expect("a search").predicates()
        };
        assert_eq!(kept(Negation::Exact), 2);
        // The comparison with the literature keeps all different ones.
        assert_eq!(kept(Negation::ByValues), 4);
    }
}
