//! VSIDS activity: a heap of the variables in recent conflicts, most active first.

/// A binary heap with positions. It contains only variables bumped since the last `clear`.
#[derive(Default)]
pub struct ActivityHeap {
    order: Vec<u32>,
    slots: Vec<Slot>,
    members: Vec<u32>,
    increment: f64,
}

/// What the heap knows of a variable.
#[derive(Clone, Copy, Default)]
struct Slot {
    activity: f64,
    place: Place,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Not bumped since the last `clear`, so never in the heap.
    #[default]
    Never,
    /// Bumped, but not in the heap while it is assigned.
    Out,
    /// At this position in `order`.
    At(u32),
}

const RESCALE_ABOVE: f64 = 1e100;
const DECAY: f64 = 0.95;

impl ActivityHeap {
    pub fn make_room(&mut self, variables: usize) {
        self.slots.resize(variables, Slot::default());
    }

    /// Empties the heap for a new search with fresh activities.
    pub fn clear(&mut self) {
        for variable in self.members.drain(..) {
            self.slots[variable as usize] = Slot::default();
        }
        self.order.clear();
        self.increment = 1.0;
    }

    /// Raises the activity of a variable.
    pub fn bump(&mut self, variable: u32) {
        let slot = &mut self.slots[variable as usize];
        if slot.place == Place::Never {
            slot.place = Place::Out;
            self.members.push(variable);
        }
        slot.activity += self.increment;
        let place = slot.place;
        if slot.activity > RESCALE_ABOVE {
            for &member in &self.members {
                self.slots[member as usize].activity /= RESCALE_ABOVE;
            }
            self.increment /= RESCALE_ABOVE;
        }
        if let Place::At(position) = place {
            self.rise(position as usize);
        }
    }

    pub fn decay(&mut self) {
        self.increment /= DECAY;
    }

    /// Reinserts a bumped variable that became unassigned.
    #[inline]
    pub fn put_back(&mut self, variable: u32) {
        if self.slots[variable as usize].place == Place::Out {
            self.insert(variable);
        }
    }

    fn insert(&mut self, variable: u32) {
        let position = self.order.len();
        self.order.push(variable);
        self.slots[variable as usize].place = Place::At(position as u32);
        self.rise(position);
    }

    /// Removes the most active variable.
    pub fn pop(&mut self) -> Option<u32> {
        let top = *self.order.first()?;
        self.slots[top as usize].place = Place::Out;
        let last = self.order.pop()?;
        if let Some(first) = self.order.first_mut() {
            *first = last;
            self.slots[last as usize].place = Place::At(0);
            self.sink(last);
        }
        Some(top)
    }

    fn activity(&self, variable: u32) -> f64 {
        self.slots[variable as usize].activity
    }

    /// Stores a variable at a position.
    fn put(&mut self, variable: u32, position: usize) {
        self.order[position] = variable;
        self.slots[variable as usize].place = Place::At(position as u32);
    }

    /// Moves the variable at a position up to where it belongs.
    fn rise(&mut self, mut position: usize) {
        let variable = self.order[position];
        let activity = self.activity(variable);
        let start = position;
        while position > 0 {
            let above = self.order[(position - 1) / 2];
            if activity <= self.activity(above) {
                break;
            }
            self.put(above, position);
            position = (position - 1) / 2;
        }
        if position != start {
            self.put(variable, position);
        }
    }

    /// Moves the variable at the top down to where it belongs.
    fn sink(&mut self, variable: u32) {
        let activity = self.activity(variable);
        let mut position = 0;
        loop {
            let mut best = (position, activity);
            for child in [2 * position + 1, 2 * position + 2] {
                if let Some(&other) = self.order.get(child)
                    && self.activity(other) > best.1
                {
                    best = (child, self.activity(other));
                }
            }
            if best.0 == position {
                break;
            }
            self.put(self.order[best.0], position);
            position = best.0;
        }
        if position != 0 {
            self.put(variable, position);
        }
    }
}
