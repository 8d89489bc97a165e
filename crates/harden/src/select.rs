//! Selects atoms: the most benefit for a given cost, or the least cost for a given benefit. Greedy
//! by the ratio of benefit to cost, or exact by dynamic programming.

use std::cmp::Ordering;

/// An atom for selection.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Item {
    /// The cost of the atom; not negative.
    pub cost: f64,
    /// The benefit of the atom; not negative.
    pub benefit: f64,
}

/// The method of selection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Method {
    /// In the order of the ratio of benefit to cost.
    Greedy,
    /// Optimal, up to the resolution of costs.
    Exact,
}

/// The aim of the selection.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Aim {
    /// The most benefit for at most this cost.
    Budget(f64),
    /// The least cost for at least this fraction of all benefit.
    Goal(f64),
}

impl Aim {
    /// Refuses numbers that are not a cost or a fraction of the benefit.
    pub fn check(self) -> Result<(), String> {
        let (Aim::Budget(number) | Aim::Goal(number)) = self;
        match self {
            _ if !number.is_finite() || number < 0.0 => Err(format!("{number} is not a part")),
            Aim::Goal(goal) if goal > 1.0 => {
                Err("there is no more than 100% of the benefit".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The number of units into which a budget is divided to count costs.
const RESOLUTION: usize = 4096;

/// Selects atoms.
pub fn select(items: &[Item], aim: Aim, method: Method) -> Vec<bool> {
    match (aim, method) {
        (Aim::Budget(budget), Method::Greedy) => greedy(items, budget),
        (Aim::Budget(budget), Method::Exact) => exact(items, budget),
        (Aim::Goal(goal), Method::Greedy) => greedy_for_goal(items, goal),
        (Aim::Goal(goal), Method::Exact) => exact_for_goal(items, goal),
    }
}

/// Returns cost and benefit of a selection.
pub fn totals(items: &[Item], kept: &[bool]) -> Item {
    let chosen = items.iter().zip(kept).filter(|(_, kept)| **kept);
    chosen.fold(
        Item {
            cost: 0.0,
            benefit: 0.0,
        },
        |sum, (item, _)| Item {
            cost: sum.cost + item.cost,
            benefit: sum.benefit + item.benefit,
        },
    )
}

/// Returns the atoms by decreasing ratio of benefit to cost; atoms without cost come first.
pub fn by_ratio(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| {
        let (first, second) = (items[a], items[b]);
        match (first.cost <= 0.0, second.cost <= 0.0) {
            (true, true) => second.benefit.total_cmp(&first.benefit),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                let (left, right) = (first.benefit / first.cost, second.benefit / second.cost);
                right.total_cmp(&left)
            }
        }
        .then(a.cmp(&b))
    });
    order
}

fn greedy(items: &[Item], budget: f64) -> Vec<bool> {
    let mut kept = vec![false; items.len()];
    let mut left = budget;
    for at in by_ratio(items) {
        let cost = items[at].cost;
        if cost <= 0.0 || cost <= left {
            kept[at] = true;
            left -= cost.max(0.0);
        }
    }
    kept
}

fn greedy_for_goal(items: &[Item], goal: f64) -> Vec<bool> {
    let all: f64 = items.iter().map(|item| item.benefit).sum();
    let mut kept = vec![false; items.len()];
    let mut benefit = 0.0;
    for at in by_ratio(items) {
        if benefit >= goal * all && items[at].cost > 0.0 {
            break;
        }
        kept[at] = true;
        benefit += items[at].benefit;
    }
    kept
}

fn exact(items: &[Item], budget: f64) -> Vec<bool> {
    // Costs are rounded up: no selection exceeds the budget.
    let table = Table::new(items, budget, |parts| parts.ceil().max(1.0));
    table.trace(items, RESOLUTION)
}

fn exact_for_goal(items: &[Item], goal: f64) -> Vec<bool> {
    let all: f64 = items.iter().map(|item| item.benefit).sum();
    let free = items.iter().filter(|item| item.cost <= 0.0);
    let free: f64 = free.map(|item| item.benefit).sum();
    let cost: f64 = items.iter().map(|item| item.cost.max(0.0)).sum();
    // Costs are rounded down: all atoms together fit, so each goal can be reached.
    let table = Table::new(items, cost, f64::floor);
    let enough = |best: &&f64| free + **best >= goal * all - 1e-9 * all;
    let found = table.best.iter().position(|best| enough(&best));
    table.trace(items, found.unwrap_or(RESOLUTION))
}

/// The table of dynamic programming: the most benefit for each cost, atom by atom.
struct Table {
    /// The most benefit of all atoms, for each maximum cost.
    best: Vec<f64>,
    /// For each atom with a cost: its number, its cost in units, and the costs for which it is
    /// taken.
    rows: Vec<(usize, usize, Vec<u64>)>,
}

impl Table {
    fn new(items: &[Item], budget: f64, rounded: impl Fn(f64) -> f64) -> Table {
        let mut best = vec![0.0_f64; RESOLUTION + 1];
        let mut rows = Vec::new();
        for (number, item) in items.iter().enumerate() {
            // Atoms without cost are always taken, and atoms that exceed the budget never.
            if item.cost <= 0.0 || item.cost > budget {
                continue;
            }
            let parts = rounded(item.cost / budget * RESOLUTION as f64) as usize;
            let parts = parts.min(RESOLUTION);
            let mut taken = vec![0_u64; RESOLUTION / 64 + 1];
            for room in (parts..=RESOLUTION).rev() {
                let with = best[room - parts] + item.benefit;
                if with > best[room] {
                    best[room] = with;
                    taken[room / 64] |= 1 << (room % 64);
                }
            }
            rows.push((number, parts, taken));
        }
        Table { best, rows }
    }

    fn trace(&self, items: &[Item], mut room: usize) -> Vec<bool> {
        let mut kept: Vec<bool> = items.iter().map(|item| item.cost <= 0.0).collect();
        for (number, parts, taken) in self.rows.iter().rev() {
            if taken[room / 64] >> (room % 64) & 1 == 1 {
                kept[*number] = true;
                room -= parts;
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items() -> impl Strategy<Value = Vec<Item>> {
        // Costs are multiples of a unit, so that the exact method has nothing to round.
        let item = (0_u32..40, 0_u32..100).prop_map(|(cost, benefit)| Item {
            cost: f64::from(cost),
            benefit: f64::from(benefit),
        });
        proptest::collection::vec(item, 0..12)
    }

    /// Returns the best of all selections within a budget.
    fn best(items: &[Item], budget: f64) -> f64 {
        let choices = 0..1_u32 << items.len();
        let of = |choice: u32| {
            let kept: Vec<bool> = (0..items.len()).map(|at| choice >> at & 1 == 1).collect();
            totals(items, &kept)
        };
        choices
            .map(of)
            .filter(|sum| sum.cost <= budget)
            .map(|sum| sum.benefit)
            .fold(0.0, f64::max)
    }

    #[test]
    fn impossible_aims_are_refused() {
        let refused = [
            Aim::Budget(-0.1),
            Aim::Budget(f64::NAN),
            Aim::Budget(f64::INFINITY),
            Aim::Goal(-1.0),
            Aim::Goal(1.01),
        ];
        assert!(refused.iter().all(|aim| aim.check().is_err()));
        let possible = [Aim::Budget(0.0), Aim::Budget(3.0), Aim::Goal(1.0)];
        assert!(possible.iter().all(|aim| aim.check().is_ok()));
    }

    proptest! {
        #[test]
        fn no_choice_exceeds_the_budget(items in items(), budget in 0_u32..200) {
            for method in [Method::Greedy, Method::Exact] {
                let budget = f64::from(budget);
                let kept = select(&items, Aim::Budget(budget), method);
                prop_assert!(totals(&items, &kept).cost <= budget + 1e-9);
                // Atoms without cost are always selected.
                let free = items.iter().zip(&kept).all(|(item, kept)| item.cost > 0.0 || *kept);
                prop_assert!(free);
            }
        }

        #[test]
        fn the_exact_choice_is_the_best(items in items(), power in 5_u32..8) {
            // A power of two divides into units without rest.
            let budget = f64::from(1_u32 << power);
            let exact = totals(&items, &select(&items, Aim::Budget(budget), Method::Exact));
            let greedy = totals(&items, &select(&items, Aim::Budget(budget), Method::Greedy));
            prop_assert!((exact.benefit - best(&items, budget)).abs() < 1e-9);
            prop_assert!(greedy.benefit <= exact.benefit + 1e-9);
            // Greedy misses at most the atom that does not fit.
            let largest = items.iter().map(|item| item.benefit).fold(0.0, f64::max);
            prop_assert!(greedy.benefit + largest + 1e-9 >= exact.benefit);
        }

        #[test]
        fn a_goal_is_reached(items in items(), goal in 0_u32..=100) {
            let goal = f64::from(goal) / 100.0;
            let all: f64 = items.iter().map(|item| item.benefit).sum();
            for method in [Method::Greedy, Method::Exact] {
                let kept = select(&items, Aim::Goal(goal), method);
                prop_assert!(totals(&items, &kept).benefit >= goal * all - 1e-6 * all);
            }
        }
    }

    #[test]
    fn greedy_takes_what_fits_behind_what_does_not() {
        let item = |cost, benefit| Item { cost, benefit };
        let items = [
            item(3.0, 9.0),
            item(10.0, 20.0),
            item(2.0, 1.0),
            item(0.0, 0.1),
        ];
        assert_eq!(
            select(&items, Aim::Budget(6.0), Method::Greedy),
            [true, false, true, true]
        );
    }
}
