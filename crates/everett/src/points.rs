//! Preemption points of traces whose threads switched between system calls. Replaying the trace in the vm locates the
//! points; native runs then try them until one ends the same.

use everett_engine::{SourceFrame, Start, Trace};
use everett_linux::{PreemptAt, PreemptionPoint, SchedulerKind};
use everett_native::{NativeConfig, Script, ScriptFinder, ScriptPoint};
use everett_vm::Image;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::follow::{follow_with, following_config};
use crate::session::Session;
use crate::spec::RunSpec;

/// Traces with more points than this are not tried natively.
const MAX_POINTS: usize = 1_000_000;

/// Whether threads of a native program can be preempted between system calls.
pub(crate) fn are_possible(config: &NativeConfig) -> bool {
    let options = &config.host.options;
    options.preempt_at >= PreemptAt::Atomics && options.scheduler != SchedulerKind::RoundRobin
}

/// A finder of the preemption points of a run's traces. A trace that the vm cannot replay has none.
pub(crate) fn finder(run: &RunSpec, session: &Session) -> ScriptFinder {
    let (run, session) = (run.clone(), session.clone());
    let images = OnceLock::new();
    Arc::new(move |trace| {
        let images = images.get_or_init(|| run.load().ok()).as_ref()?;
        script_of(&run, &session, images, trace).ok().flatten()
    })
}

/// The points of a trace, found by replaying it in the vm. `None` if there are none.
fn script_of(
    run: &RunSpec,
    session: &Session,
    images: &[Image],
    trace: &Trace,
) -> Result<Option<Script>> {
    let mut config = following_config(run, session)?;
    for host in &mut config.hosts {
        host.config.options.logs_points = true;
    }
    let passed = follow_with(config, images, Start::Trace(trace.clone()))?.points;
    Ok(script(&passed, 0))
}

/// The script of the points that a host passed after this many restarts. `None` if there are none, or too many.
pub(crate) fn script(passed: &[(PreemptionPoint, SourceFrame)], restarts: u32) -> Option<Script> {
    if passed.is_empty() || passed.len() > MAX_POINTS {
        return None;
    }
    Some(Script {
        points: numbered(passed),
        restarts,
        ..Script::default()
    })
}

/// The number of points on each line.
type Counts = BTreeMap<(String, u32), u32>;

/// Numbers the points of each line since the thread's last system call or switch.
fn numbered(passed: &[(PreemptionPoint, SourceFrame)]) -> Vec<ScriptPoint> {
    // For each thread: its number of system calls, and the points on each line since the last one.
    let mut counts: BTreeMap<u32, (u64, Counts)> = BTreeMap::new();
    let mut points = Vec::with_capacity(passed.len());
    for (point, frame) in passed {
        let place = (frame.file.clone(), frame.line);
        let (calls, lines) = counts.entry(point.task.tid).or_default();
        if *calls != point.calls {
            *calls = point.calls;
            lines.clear();
        }
        let ordinal = lines.get(&place).copied().unwrap_or(0);
        if point.switches {
            // When the thread resumes, the access that it stopped at comes first.
            lines.clear();
            lines.insert(place.clone(), 1);
        } else {
            lines.insert(place.clone(), ordinal + 1);
        }
        points.push(ScriptPoint {
            task: point.task,
            calls: point.calls,
            switches: point.switches,
            place,
            ordinal,
        });
    }
    points
}

/// Scripts to try, the likeliest first: native code may have more accesses on a line than the vm, or fewer.
pub(crate) fn attempts(script: &Script, most: usize) -> impl Iterator<Item = Script> + '_ {
    const SHIFTS: [i32; 8] = [1, -1, 2, -2, 3, -3, 4, -4];
    let switches: Vec<usize> = (0..script.points.len())
        .filter(|at| script.points[*at].switches)
        .collect();
    let shifted = SHIFTS.into_iter().flat_map(move |shift| {
        // The end depends most on the latest switches.
        let last = switches.clone().into_iter().rev();
        last.map(move |at| BTreeMap::from([(at, shift)]))
    });
    let tried = std::iter::once(BTreeMap::new()).chain(shifted);
    tried.take(most).map(|shifts| Script {
        shifts,
        ..script.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_linux::TaskName;

    fn passed(line: u32, calls: u64, switches: bool) -> (PreemptionPoint, SourceFrame) {
        let frame = SourceFrame {
            file: "a.c".to_owned(),
            line,
            ..SourceFrame::default()
        };
        let site = everett_vm::CallSite {
            image: Default::default(),
            function: everett_ir::code::FunctionId(0),
            pc: 0,
        };
        let task = TaskName { pid: 1, tid: 1 };
        let point = PreemptionPoint {
            task,
            calls,
            site,
            switches,
        };
        (point, frame)
    }

    #[test]
    fn points_are_counted_by_line_and_stretch() {
        let all = [
            passed(5, 0, false),
            passed(6, 0, false),
            passed(5, 0, true),
            passed(5, 0, false),
            passed(5, 0, true),
            passed(5, 1, false),
        ];
        let ordinals: Vec<u32> = numbered(&all).iter().map(|point| point.ordinal).collect();
        assert_eq!(ordinals, [0, 0, 1, 1, 2, 0]);
    }

    #[test]
    fn attempts_begin_with_the_script_itself() {
        let all = [passed(5, 0, true), passed(6, 0, true)];
        let script = Script {
            points: numbered(&all),
            ..Script::default()
        };
        let shifts: Vec<_> = attempts(&script, 4).map(|script| script.shifts).collect();
        let one = |at: usize, shift: i32| BTreeMap::from([(at, shift)]);
        assert_eq!(shifts, [BTreeMap::new(), one(1, 1), one(0, 1), one(1, -1)]);
    }
}
