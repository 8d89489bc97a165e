//! Search algorithms over a fault space: each picks the next scenario, given the fitness of the
//! earlier ones. Must not know how a scenario is run.

mod adaptive;
mod exhaustive;
mod guided;
mod issued;
mod random;

pub use issued::Issued;

use crate::numbers::Numbers;
use crate::settings::Guided;
use crate::space::{Point, Space};

/// A search. It proposes each scenario at most once, and all of them in the end.
pub trait Search: Send {
    /// Returns the next scenario; `None` if all were proposed.
    fn next(&mut self, space: &Space) -> Option<Point>;

    /// Learns the fitness of a scenario. Called once for each, in the order of proposal.
    fn learn(&mut self, space: &Space, point: &Point, fitness: f64);

    /// Returns the learned sensitivity of each axis, in the order of [`Space::names`]; empty if the
    /// search learns nothing.
    fn sensitivity(&self) -> Vec<f64> {
        Vec::new()
    }
}

/// A row of [`SEARCHES`].
pub struct SearchRow {
    /// The name.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// Creates a search.
    pub new: fn(&Space, &Guided, Numbers) -> Box<dyn Search>,
}

/// All searches.
pub const SEARCHES: &[SearchRow] = &[
    SearchRow {
        name: "guided",
        about: "mutates scenarios of high fitness along the axes that paid (Algorithm 1 of AFEX)",
        new: |space, guided, numbers| Box::new(guided::GuidedSearch::new(space, guided, numbers)),
    },
    SearchRow {
        name: "adaptive",
        about: "learns the fitness of values and pairs of values, in any order, and tries the most promising",
        new: |space, guided, numbers| {
            Box::new(adaptive::AdaptiveSearch::new(space, guided, numbers))
        },
    },
    SearchRow {
        name: "random",
        about: "every scenario is as likely as the others",
        new: |_, _, numbers| Box::new(random::RandomSearch::new(numbers)),
    },
    SearchRow {
        name: "exhaustive",
        about: "all scenarios, in the order of the space",
        new: |_, _, _| Box::new(exhaustive::ExhaustiveSearch::default()),
    },
];

/// Returns the search with a name.
pub fn named(name: &str) -> Option<&'static SearchRow> {
    SEARCHES.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests;
