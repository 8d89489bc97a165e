//! Fault spaces: unions of products of axes, with holes. Owns the points and their order; must not
//! know what a fault does.

mod count;
mod language;
mod scenario;
mod values;

pub use language::SpaceError;
pub use scenario::{Fault, Scenario};
pub use values::{Value, Values};

use std::collections::BTreeMap;

/// An axis: a name and ordered values.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The index of the fault, for scenarios with several faults.
    pub fault: usize,
    /// The name.
    pub name: String,
    /// The values.
    pub values: Values,
}

/// A hole: points with these values on all of these axes are not scenarios.
#[derive(Clone, PartialEq, Debug)]
pub struct Hole {
    /// Indices of axes of the subspace, with the values of the hole.
    pub sides: Vec<(usize, Values)>,
}

/// A product of axes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Subspace {
    /// Words without values that name a kind of fault.
    pub subtypes: Vec<String>,
    /// The axes.
    pub axes: Vec<Axis>,
    /// The holes.
    pub holes: Vec<Hole>,
}

/// A fault space: a union of subspaces.
#[derive(Clone, PartialEq, Debug)]
pub struct Space {
    subspaces: Vec<Subspace>,
    /// The positions of the subspaces' first points, and of the end.
    offsets: Vec<u64>,
    /// The names of axes. Searches treat axes with equal names as one.
    names: Vec<(usize, String)>,
    /// For each subspace, the index of each axis in `names`.
    axis_names: Vec<Vec<usize>>,
    size: u64,
}

/// A point: a subspace and an index on each of its axes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Point {
    /// The index of the subspace.
    pub subspace: usize,
    /// An index on each axis.
    pub indices: Vec<u64>,
}

/// Maximum number of positions of a space.
const MAX_POSITIONS: u64 = 1 << 62;

impl Space {
    /// Parses the description of a space.
    pub fn parse(text: &str) -> Result<Space, SpaceError> {
        language::parse(text)
    }

    /// Creates the union of subspaces. `None` if it has more points than can be numbered.
    pub fn new(subspaces: Vec<Subspace>) -> Option<Space> {
        let mut offsets = vec![0u64];
        for subspace in &subspaces {
            let mut sizes = subspace.axes.iter().map(|axis| axis.values.len());
            let points = sizes.try_fold(1u64, u64::checked_mul);
            let end = offsets.last()?.checked_add(points?)?;
            if end > MAX_POSITIONS {
                return None;
            }
            offsets.push(end);
        }
        let mut names: Vec<(usize, String)> = Vec::new();
        let mut known = BTreeMap::new();
        let mut axis_names = Vec::new();
        for subspace in &subspaces {
            let numbers = subspace.axes.iter().map(|axis| {
                let name = (axis.fault, axis.name.clone());
                *known.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    names.len() - 1
                })
            });
            axis_names.push(numbers.collect());
        }
        let mut space = Space {
            subspaces,
            offsets,
            names,
            axis_names,
            size: 0,
        };
        space.size = count::size(&space.subspaces);
        Some(space)
    }

    /// Returns the subspaces.
    pub fn subspaces(&self) -> &[Subspace] {
        &self.subspaces
    }

    /// Returns the number of scenarios: holes and repetitions do not count.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of positions, including those of holes.
    pub fn positions(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Returns the names of the axes, each with the index of its fault.
    pub fn names(&self) -> &[(usize, String)] {
        &self.names
    }

    /// Returns the index of a subspace's axis among [`Space::names`].
    pub fn name_of(&self, subspace: usize, axis: usize) -> usize {
        self.axis_names[subspace][axis]
    }

    /// Returns the axes of the subspace of a point.
    pub fn axes(&self, point: &Point) -> &[Axis] {
        &self.subspaces[point.subspace].axes
    }

    /// Returns the point at a position.
    pub fn point(&self, position: u64) -> Point {
        let subspace = self.offsets.partition_point(|offset| *offset <= position) - 1;
        let mut rest = position - self.offsets[subspace];
        let axes = &self.subspaces[subspace].axes;
        let mut indices = vec![0; axes.len()];
        for (index, axis) in indices.iter_mut().zip(axes).rev() {
            *index = rest % axis.values.len();
            rest /= axis.values.len();
        }
        Point { subspace, indices }
    }

    /// Returns the position of a point.
    pub fn position(&self, point: &Point) -> u64 {
        let axes = self.axes(point).iter().zip(&point.indices);
        let within = axes.fold(0, |position, (axis, index)| {
            position * axis.values.len() + index
        });
        self.offsets[point.subspace] + within
    }

    /// Returns whether a point is a scenario: it is in no hole, and in no earlier subspace.
    pub fn is_scenario(&self, point: &Point) -> bool {
        let own = &self.subspaces[point.subspace];
        if own.is_hole(&point.indices) {
            return false;
        }
        let earlier = &self.subspaces[..point.subspace];
        if earlier.is_empty() {
            return true;
        }
        let mut scenario = None;
        !earlier.iter().any(|other| {
            count::same_axes(own, other).is_some_and(|_| {
                let scenario = scenario.get_or_insert_with(|| self.scenario(point));
                other.find(scenario).is_some()
            })
        })
    }

    /// Returns the scenario at a point.
    pub fn scenario(&self, point: &Point) -> Scenario {
        let subspace = &self.subspaces[point.subspace];
        let faults = 1 + subspace
            .axes
            .iter()
            .map(|axis| axis.fault)
            .max()
            .unwrap_or(0);
        let mut scenario = Scenario {
            subtypes: subspace.subtypes.clone(),
            faults: vec![Fault::default(); faults],
        };
        for (axis, index) in subspace.axes.iter().zip(&point.indices) {
            let value = axis.values.get(*index);
            scenario.faults[axis.fault]
                .0
                .push((axis.name.clone(), value));
        }
        scenario
    }

    /// Returns the point of a scenario, if the space contains it.
    pub fn find(&self, scenario: &Scenario) -> Option<Point> {
        let found = |(subspace, own): (usize, &Subspace)| {
            let indices = own.find(scenario)?;
            Some(Point { subspace, indices })
        };
        self.subspaces.iter().enumerate().find_map(found)
    }
}

impl Subspace {
    /// Returns whether a point is in a hole.
    fn is_hole(&self, indices: &[u64]) -> bool {
        self.holes.iter().any(|hole| {
            hole.sides.iter().all(|(axis, values)| {
                let value = self.axes[*axis].values.get(indices[*axis]);
                values.index_of(&value).is_some()
            })
        })
    }

    /// Returns the indices of a scenario, if it is in this subspace and in no hole.
    fn find(&self, scenario: &Scenario) -> Option<Vec<u64>> {
        let count: usize = scenario.faults.iter().map(|fault| fault.0.len()).sum();
        if scenario.subtypes != self.subtypes || count != self.axes.len() {
            return None;
        }
        let index = |axis: &Axis| {
            let fault = scenario.faults.get(axis.fault)?;
            axis.values.index_of(fault.get(&axis.name)?)
        };
        let indices: Vec<u64> = self.axes.iter().map(index).collect::<Option<_>>()?;
        (!self.is_hole(&indices)).then_some(indices)
    }
}
