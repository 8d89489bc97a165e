//! Describes a space: its size, axes and holes, and, from the results of a search, its structure
//! (the relative linear density along each axis).

use std::path::Path;

use crate::config::SearchFile;
use crate::error::{Error, Result};
use crate::replay::read;
use crate::results::FaultSummary;
use crate::settings::SearchConfig;
use crate::space::{Point, Space};

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisShown {
    /// The name.
    pub name: String,
    /// The number of values.
    pub values: u64,
    /// The first and the last value.
    pub ends: [String; 2],
}

/// The relative linear density along an axis: the mean impact on lines through scenarios with
/// impact, divided by the mean impact of all scenarios.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisDensity {
    /// The name of the axis.
    pub name: String,
    /// The density over the whole space; above 1, it pays to search along the axis.
    pub whole: Option<f64>,
    /// The density in the vicinity of scenarios with impact.
    pub vicinity: Option<f64>,
}

/// The description of a space.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The number of scenarios.
    pub size: u64,
    /// The number of positions, including holes and repetitions.
    pub positions: u64,
    /// For each subspace, its subtypes, its axes and the number of its holes.
    pub subspaces: Vec<(Vec<String>, Vec<AxisShown>, usize)>,
    /// Densities, if there are results.
    pub densities: Vec<AxisDensity>,
    /// The number of results behind the densities.
    pub results: usize,
}

/// Describes a space, given its file, a search file, or a folder of results. `distance` is the
/// radius of vicinities.
pub fn show(path: &Path, distance: u64) -> Result<Shown> {
    let (space, results) = match path {
        folder if folder.is_dir() => {
            let config: SearchConfig = read(&folder.join("search.json"))?;
            let summary: FaultSummary = read(&folder.join("summary.json"))?;
            let space = parse(&config.space, &folder.display().to_string())?;
            let results = summary
                .results
                .iter()
                .map(|one| (space.point(one.position), one.impact))
                .collect();
            (space, results)
        }
        file if file
            .extension()
            .is_some_and(|extension| extension == "toml") =>
        {
            (SearchFile::read(file)?.space, Vec::new())
        }
        file => {
            let text = everett_report::read_text(file).map_err(Error::reading(file))?;
            (parse(&text, &file.display().to_string())?, Vec::new())
        }
    };
    let axes = |subspace: &crate::space::Subspace| {
        let axes = subspace.axes.iter().map(|axis| AxisShown {
            name: axis.name.clone(),
            values: axis.values.len(),
            ends: [0, axis.values.len() - 1].map(|at| axis.values.get(at).to_string()),
        });
        (
            subspace.subtypes.clone(),
            axes.collect(),
            subspace.holes.len(),
        )
    };
    Ok(Shown {
        size: space.size(),
        positions: space.positions(),
        subspaces: space.subspaces().iter().map(axes).collect(),
        densities: densities(&space, &results, distance),
        results: results.len(),
    })
}

fn parse(text: &str, file: &str) -> Result<Space> {
    Space::parse(text).map_err(|error| Error::Space {
        file: file.to_owned(),
        error,
    })
}

/// Returns the distance of two points: the number of increments and decrements of indices that lead
/// from one to the other.
fn apart(one: &Point, two: &Point) -> Option<u64> {
    let is_same = one.subspace == two.subspace;
    let pairs = one.indices.iter().zip(&two.indices);
    is_same.then(|| pairs.map(|(one, two)| one.abs_diff(*two)).sum())
}

/// Returns whether two points differ at most on this axis.
fn on_line(one: &Point, two: &Point, axis: usize) -> bool {
    let mut pairs = one.indices.iter().zip(&two.indices).enumerate();
    one.subspace == two.subspace && pairs.all(|(at, (one, two))| at == axis || one == two)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// Returns the densities along all axes, from the scenarios that were run.
fn densities(space: &Space, results: &[(Point, f64)], distance: u64) -> Vec<AxisDensity> {
    let Some(all) = mean(results.iter().map(|one| one.1)).filter(|all| *all > 0.0) else {
        return Vec::new();
    };
    let mut densities = Vec::new();
    for (number, (fault, name)) in space.names().iter().enumerate() {
        let (mut whole, mut near) = (Vec::new(), Vec::new());
        for (point, _) in results.iter().filter(|one| one.1 > 0.0) {
            let axes = space.axes(point).len();
            let Some(axis) = (0..axes).find(|axis| space.name_of(point.subspace, *axis) == number)
            else {
                continue;
            };
            if space.axes(point)[axis].values.len() == 1 {
                continue;
            }
            let line = results
                .iter()
                .filter(|other| on_line(point, &other.0, axis));
            whole.extend(mean(line.map(|one| one.1)).map(|line| line / all));
            let vicinity: Vec<&(Point, f64)> = results
                .iter()
                .filter(|other| apart(point, &other.0).is_some_and(|d| d <= distance))
                .collect();
            let line = vicinity
                .iter()
                .filter(|other| on_line(point, &other.0, axis));
            let line = mean(line.map(|one| one.1));
            let around = mean(vicinity.iter().map(|one| one.1)).filter(|around| *around > 0.0);
            near.extend(line.zip(around).map(|(line, around)| line / around));
        }
        let name = match fault {
            0 => name.clone(),
            fault => format!("{name}{}", fault + 1),
        };
        densities.push(AxisDensity {
            name,
            whole: mean(whole.into_iter()),
            vicinity: mean(near.into_iter()),
        });
    }
    densities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_is_high_along_a_ridge() {
        let space = Space::parse("a : [0,9] b : [0,9];").unwrap();
        // All of row 3 has impact 1; the rest has none.
        let results: Vec<(Point, f64)> = (0..100)
            .map(|at| space.point(at))
            .map(|point| (point.clone(), f64::from(u8::from(point.indices[0] == 3))))
            .collect();
        let found = densities(&space, &results, 2);
        assert_eq!((found[0].name.as_str(), found[0].whole), ("a", Some(1.0)));
        assert_eq!((found[1].name.as_str(), found[1].whole), ("b", Some(10.0)));
        assert!(found[1].vicinity.unwrap() > 2.0 && found[0].vicinity.unwrap() < 1.0);
        assert!(densities(&space, &[], 2).is_empty());
    }
}
