//! Shrinks traces of worlds: fewer faults, simpler inputs, the same finding.

use everett_engine::{ExplorerConfig, Trace, TraceChoice, TraceInput, WorldFinding};
use everett_vm::Image;
use std::path::Path;
use std::time::Duration;

use crate::error::{Context, Result, bail};
use crate::session::Session;
use crate::shrink::{ShrinkResult, ShrunkTo, TraceSize};
use crate::spec::RunSpec;
use crate::world::follow::found_again;
use crate::world::prepare;
use crate::world::trace::{WorldTrace, read_world};

/// The size to reduce: non-default choices first, then non-zero bytes.
fn size(trace: &WorldTrace) -> (usize, usize) {
    let traces = || trace.hosts.values();
    let choices = traces().flat_map(|trace| trace.choices.iter());
    let inputs = traces().flat_map(|trace| trace.inputs.iter());
    let bytes = inputs.flat_map(|input| &input.bytes);
    (
        choices.filter(|choice| choice.picked > 0).count(),
        bytes.filter(|byte| **byte != 0).count(),
    )
}

/// Traces of a host that are simpler by one step.
fn steps(trace: &Trace) -> Vec<Trace> {
    let mut all = Vec::new();
    for (at, choice) in trace.choices.iter().enumerate() {
        if choice.picked > 0 {
            let mut choices: Vec<TraceChoice> = trace.choices.iter().cloned().collect();
            choices[at].picked = 0;
            all.push(Trace {
                choices: choices.into_iter().collect(),
                ..trace.clone()
            });
        }
    }
    let mut change = |number: usize, bytes: std::ops::Range<usize>| {
        let mut inputs: Vec<TraceInput> = trace.inputs.iter().cloned().collect();
        inputs[number].bytes[bytes].fill(0);
        all.push(Trace {
            inputs: inputs.into_iter().collect(),
            ..trace.clone()
        });
    };
    for (number, input) in trace.inputs.iter().enumerate() {
        let others = input.bytes.iter().enumerate();
        let others: Vec<usize> = others
            .filter(|(_, byte)| **byte != 0)
            .map(|(at, _)| at)
            .collect();
        if others.len() > 1 {
            change(number, 0..input.bytes.len());
        }
        for at in others {
            change(number, at..at + 1);
        }
    }
    all
}

/// The same finding in a simpler world, if one is found in time.
pub(crate) fn simpler(
    config: &ExplorerConfig,
    images: &[Image],
    trace: &WorldTrace,
    until: Duration,
) -> Result<Option<WorldFinding>> {
    let (mut current, mut best) = (trace.clone(), None);
    'again: loop {
        for (name, own) in &current.hosts {
            for step in steps(own) {
                if config.clock.now() >= until {
                    return Ok(best);
                }
                let mut candidate = current.clone();
                candidate.hosts.insert(name.clone(), step);
                // The new trace no longer has choices that the world does not make, and has those that it makes
                // instead.
                if let Some(found) = found_again(config, images, &candidate)?
                    && size(&WorldTrace::of(&found)) < size(&current)
                {
                    current = WorldTrace::of(&found);
                    best = Some(found);
                    continue 'again;
                }
            }
        }
        return Ok(best);
    }
}

/// Shrinks the trace of a world.
pub(crate) fn shrink(
    spec: &RunSpec,
    session: &Session,
    path: &Path,
    out: Option<&Path>,
    until: Duration,
) -> Result<ShrinkResult> {
    let trace = read_world(path)?;
    let (config, images) = prepare(spec, session)?;
    if found_again(&config, &images, &trace)?.is_none() {
        bail!(Trace, "{} does not end in its finding", path.display());
    }
    let sized = |trace: &WorldTrace| {
        let (deviations, nonzero) = size(trace);
        TraceSize {
            deviations,
            nonzero,
            bytes: None,
        }
    };
    let before = sized(&trace);
    let Some(found) = simpler(&config, &images, &trace, until)? else {
        return Ok(ShrinkResult {
            before,
            shrunk: None,
        });
    };
    let shrunk = WorldTrace::of(&found);
    let target = out.unwrap_or(path);
    if out.is_none() {
        let kept = path.with_extension("original.world");
        std::fs::copy(path, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
    }
    std::fs::write(target, serde_json::to_vec(&shrunk)?)
        .with_context(|| format!("cannot write {}", target.display()))?;
    Ok(ShrinkResult {
        before,
        shrunk: Some(ShrunkTo {
            after: sized(&shrunk),
            tries: None,
            file: target.to_owned(),
        }),
    })
}
