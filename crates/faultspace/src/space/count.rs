//! Counts the scenarios of a space exactly, however large it is: values of an axis that belong to
//! the same holes are counted together.

use super::{Subspace, Values};

/// A box over the axes of a subspace: a hole, or the overlap with an earlier subspace.
struct Region<'s> {
    /// Values on each axis; `None` for all of them.
    sides: Vec<Option<&'s Values>>,
}

/// A reason why points of a subspace do not count.
enum Taken {
    /// They are in a hole.
    Hole(usize),
    /// They are in an earlier subspace, and not in one of its holes.
    Earlier(usize, Vec<usize>),
}

/// Returns, for each axis of a subspace, the equal axis of another one, if both have the same axes.
pub(super) fn same_axes(own: &Subspace, other: &Subspace) -> Option<Vec<usize>> {
    if own.subtypes != other.subtypes || own.axes.len() != other.axes.len() {
        return None;
    }
    let place = |axis: &super::Axis| {
        let is_same = |other: &super::Axis| (axis.fault, &axis.name) == (other.fault, &other.name);
        other.axes.iter().position(is_same)
    };
    own.axes.iter().map(place).collect()
}

/// Returns the number of scenarios.
pub(super) fn size(subspaces: &[Subspace]) -> u64 {
    let sizes = subspaces.iter().enumerate();
    sizes.map(|(at, own)| size_of(own, &subspaces[..at])).sum()
}

fn size_of(own: &Subspace, earlier: &[Subspace]) -> u64 {
    let mut regions = Vec::new();
    let mut taken = Vec::new();
    for hole in &own.holes {
        taken.push(Taken::Hole(regions.len()));
        let mut sides = vec![None; own.axes.len()];
        for (axis, values) in &hole.sides {
            sides[*axis] = Some(values);
        }
        regions.push(Region { sides });
    }
    for other in earlier {
        let Some(places) = same_axes(own, other) else {
            continue;
        };
        let sides = places.iter().map(|place| Some(&other.axes[*place].values));
        let own_region = regions.len();
        regions.push(Region {
            sides: sides.collect(),
        });
        let mut holes = Vec::new();
        for hole in &other.holes {
            let side = |place: &usize| {
                let found = hole.sides.iter().find(|(axis, _)| axis == place);
                found.map(|(_, values)| values)
            };
            holes.push(regions.len());
            regions.push(Region {
                sides: places.iter().map(side).collect(),
            });
        }
        taken.push(Taken::Earlier(own_region, holes));
    }
    let live: Vec<usize> = (0..regions.len()).collect();
    count(own, 0, &live, &regions, &taken)
}

/// Counts the scenarios among the points whose first indices are in exactly the live regions.
fn count(
    own: &Subspace,
    axis: usize,
    live: &[usize],
    regions: &[Region<'_>],
    taken: &[Taken],
) -> u64 {
    if live.is_empty() || axis == own.axes.len() {
        let is_taken = taken.iter().any(|one| match one {
            Taken::Hole(region) => live.contains(region),
            Taken::Earlier(region, holes) => {
                live.contains(region) && !holes.iter().any(|hole| live.contains(hole))
            }
        });
        let rest = own.axes[axis..].iter().map(|axis| axis.values.len());
        return if is_taken { 0 } else { rest.product() };
    }
    let values = &own.axes[axis].values;
    let sided = live
        .iter()
        .any(|region| regions[*region].sides[axis].is_some());
    if !sided {
        return values.len() * count(own, axis + 1, live, regions, taken);
    }
    // Values in the same regions count alike.
    let mut groups: std::collections::BTreeMap<Vec<usize>, u64> = Default::default();
    let mut others = values.len();
    for index in listed(values, live, axis, regions) {
        let value = values.get(index);
        let lies = |region: &&usize| {
            let side = regions[**region].sides[axis];
            side.is_none_or(|side| side.index_of(&value).is_some())
        };
        *groups
            .entry(live.iter().filter(lies).copied().collect())
            .or_default() += 1;
        others -= 1;
    }
    let unsided = live
        .iter()
        .filter(|region| regions[**region].sides[axis].is_none());
    *groups.entry(unsided.copied().collect()).or_default() += others;
    let groups = groups.iter().filter(|(_, number)| **number > 0);
    groups
        .map(|(live, number)| number * count(own, axis + 1, live, regions, taken))
        .sum()
}

/// Returns the indices of values that some region names.
fn listed(values: &Values, live: &[usize], axis: usize, regions: &[Region<'_>]) -> Vec<u64> {
    let sides = live
        .iter()
        .filter_map(|region| regions[*region].sides[axis]);
    let mut indices = Vec::new();
    for side in sides {
        match side.len() < values.len() {
            true => indices.extend((0..side.len()).filter_map(|at| values.index_of(&side.get(at)))),
            false => indices
                .extend((0..values.len()).filter(|at| side.index_of(&values.get(*at)).is_some())),
        }
    }
    indices.sort_unstable();
    indices.dedup();
    indices
}
