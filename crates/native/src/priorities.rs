//! Random thread priorities of probabilistic concurrency testing (PCT: Burckhardt, Kothari,
//! Musuvathi, Nagarakatte, "A randomized scheduler with probabilistic guarantees of finding bugs",
//! ASPLOS 2010). The runnable thread with the highest priority runs; at a few random events the
//! running thread's priority drops below all others.

use std::collections::BTreeMap;

use everett_linux::split_mix;

/// The least initial priority of a thread; priorities of change points are lower.
const LEAST: i64 = 1 << 32;
/// Number of times that the same thread is picked although others could run, before it is
/// considered to be busy-waiting.
const MAX_REPEATED: u32 = 1000;

/// The order of the initial priorities of threads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Random.
    Random,
    /// Older threads run first.
    OldestFirst,
    /// Newer threads run first.
    NewestFirst,
}

/// The priorities of threads.
#[derive(Clone, Debug)]
pub struct Priorities {
    random: u64,
    order: Order,
    of: BTreeMap<u32, i64>,
    /// The priority of the thread that yielded last, below all others.
    lowest: i64,
    last: u32,
    repeated: u32,
}

impl Priorities {
    /// Creates priorities, which are drawn from a seed if they are random.
    pub fn new(seed: u64, order: Order) -> Priorities {
        Priorities {
            random: seed,
            order,
            of: BTreeMap::new(),
            lowest: 0,
            last: 0,
            repeated: 0,
        }
    }

    /// Returns the index of the thread with the highest priority.
    pub fn pick(&mut self, threads: &[u32]) -> u32 {
        let mut picked = self.highest(threads);
        let thread = threads.get(picked as usize).copied().unwrap_or_default();
        self.repeated = match thread == self.last {
            true => self.repeated + 1,
            false => 0,
        };
        if self.repeated > MAX_REPEATED {
            self.yields(thread);
            picked = self.highest(threads);
            self.repeated = 0;
        }
        self.last = threads.get(picked as usize).copied().unwrap_or_default();
        picked
    }

    fn highest(&mut self, threads: &[u32]) -> u32 {
        let mut best = (0, i64::MIN);
        for (at, thread) in (0..).zip(threads) {
            let random = &mut self.random;
            let draw = || match self.order {
                Order::Random => LEAST + (split_mix(random) >> 2) as i64,
                Order::OldestFirst => LEAST + i64::from(u32::MAX - thread),
                Order::NewestFirst => LEAST + i64::from(*thread),
            };
            let priority = *self.of.entry(*thread).or_insert_with(draw);
            if priority > best.1 {
                best = (at, priority);
            }
        }
        best.0
    }

    /// Sets the priority of a thread that has reached a change point.
    pub fn change(&mut self, thread: u32, priority: i64) {
        self.of.insert(thread, priority);
    }

    /// Lowers the priority of a thread below all others.
    pub fn yields(&mut self, thread: u32) {
        self.lowest -= 1;
        self.of.insert(thread, self.lowest);
    }
}

/// Draws the change points of a run: numbers of events, counted from 1, with the priority that the
/// running thread gets there.
pub fn change_points(seed: u64, depth: u32, events: u64) -> BTreeMap<u64, i64> {
    let mut random = seed;
    let mut points = BTreeMap::new();
    // There cannot be more change points than events.
    let wanted = u64::from(depth.saturating_sub(1)).min(events);
    while (points.len() as u64) < wanted {
        let at = 1 + split_mix(&mut random) % events;
        let priority = wanted as i64 - points.len() as i64;
        points.entry(at).or_insert(priority);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_until_its_priority_drops() {
        for seed in 0..20 {
            let mut priorities = Priorities::new(seed, Order::Random);
            let first = priorities.pick(&[1000, 1001]) as usize;
            // The order of alternatives does not matter.
            assert_eq!(priorities.pick(&[1001, 1000]) as usize, 1 - first);
            let threads = [1000, 1001];
            priorities.change(threads[first], 1);
            assert_eq!(priorities.pick(&threads) as usize, 1 - first);
            priorities.yields(threads[1 - first]);
            assert_eq!(priorities.pick(&threads) as usize, first);
        }
        let new = |seed| Priorities::new(seed, Order::Random);
        let orders = (0..20).map(|seed| new(seed).pick(&[1000, 1001]));
        let second = orders.filter(|picked| *picked == 1).count();
        assert!((5..15).contains(&second), "{second}");
    }

    #[test]
    fn threads_run_in_the_order_of_their_creation_or_the_other_way() {
        for (order, picked) in [(Order::OldestFirst, 1), (Order::NewestFirst, 0)] {
            let mut priorities = Priorities::new(7, order);
            assert_eq!(priorities.pick(&[1002, 1000, 1001]), picked);
        }
    }

    #[test]
    fn nobody_waits_forever() {
        let mut priorities = Priorities::new(7, Order::Random);
        let mut picks = (0..2 * MAX_REPEATED).map(|_| priorities.pick(&[1, 2]));
        let first = picks.next();
        assert!(picks.any(|picked| Some(picked) != first));
    }

    #[test]
    fn change_points_are_distinct_events() {
        for seed in 0..50 {
            let points = change_points(seed, 4, 10);
            assert_eq!(points.len(), 3);
            assert!(points.keys().all(|at| (1..=10).contains(at)));
            let mut priorities: Vec<i64> = points.into_values().collect();
            priorities.sort_unstable();
            assert_eq!(priorities, [1, 2, 3]);
        }
        assert_eq!(change_points(1, 3, 1).len(), 1);
        assert!(change_points(1, 3, 0).is_empty());
        assert!(change_points(1, 1, 10).is_empty());
    }
}
