//! VSIDS activity: a heap of the variables in recent conflicts, most active first.

/// A binary heap with positions. It contains only variables bumped since the last `clear`.
#[derive(Default)]
pub struct ActivityHeap {
    order: Vec<u32>,
    /// Position in `order` plus one; zero if not in the heap.
    positions: Vec<u32>,
    activity: Vec<f64>,
    /// Whether the variable belongs in the heap while it is unassigned.
    member: Vec<bool>,
    members: Vec<u32>,
    increment: f64,
}

const RESCALE_ABOVE: f64 = 1e100;
const DECAY: f64 = 0.95;

impl ActivityHeap {
    pub fn make_room(&mut self, variables: usize) {
        self.positions.resize(variables, 0);
        self.activity.resize(variables, 0.0);
        self.member.resize(variables, false);
    }

    /// Empties the heap for a new search with fresh activities.
    pub fn clear(&mut self) {
        for variable in self.members.drain(..) {
            self.positions[variable as usize] = 0;
            self.activity[variable as usize] = 0.0;
            self.member[variable as usize] = false;
        }
        self.order.clear();
        self.increment = 1.0;
    }

    /// Raises the activity of a variable.
    pub fn bump(&mut self, variable: u32) {
        let at = variable as usize;
        if !std::mem::replace(&mut self.member[at], true) {
            self.members.push(variable);
        }
        self.activity[at] += self.increment;
        if self.activity[at] > RESCALE_ABOVE {
            for &member in &self.members {
                self.activity[member as usize] /= RESCALE_ABOVE;
            }
            self.increment /= RESCALE_ABOVE;
        }
        if self.positions[at] != 0 {
            self.rise(self.positions[at] as usize - 1);
        }
    }

    pub fn decay(&mut self) {
        self.increment /= DECAY;
    }

    /// Reinserts a bumped variable that became unassigned.
    pub fn put_back(&mut self, variable: u32) {
        if self.member[variable as usize] && self.positions[variable as usize] == 0 {
            self.order.push(variable);
            self.positions[variable as usize] = self.order.len() as u32;
            self.rise(self.order.len() - 1);
        }
    }

    /// Removes the most active variable.
    pub fn pop(&mut self) -> Option<u32> {
        let top = *self.order.first()?;
        self.positions[top as usize] = 0;
        let last = self.order.pop()?;
        if let Some(first) = self.order.first_mut() {
            *first = last;
            self.positions[last as usize] = 1;
            self.sink(0);
        }
        Some(top)
    }

    fn before(&self, a: u32, b: u32) -> bool {
        self.activity[a as usize] > self.activity[b as usize]
    }

    fn exchange(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.positions[self.order[a] as usize] = a as u32 + 1;
        self.positions[self.order[b] as usize] = b as u32 + 1;
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.before(self.order[at], self.order[(at - 1) / 2]) {
            self.exchange(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let best = [2 * at + 1, 2 * at + 2]
                .into_iter()
                .filter(|&child| child < self.order.len())
                .fold(at, |best, child| {
                    if self.before(self.order[child], self.order[best]) {
                        child
                    } else {
                        best
                    }
                });
            if best == at {
                return;
            }
            self.exchange(at, best);
            at = best;
        }
    }
}
