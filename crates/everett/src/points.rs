//! Finds the preemption points of traces whose threads switch between system calls. The vm replays
//! the trace to locate the points; native runs then try them until one ends the same.

use everett_engine::{ExplorerConfig, SourceFrame};
use everett_linux::{PreemptAt, PreemptionPoint};
use everett_native::{NativeConfig, NativeHost, Script, ScriptPoint};
use everett_vm::Image;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::follow::{Model, prepare};
use crate::session::Session;
use crate::spec::RunSpec;
use crate::trace::WorldTrace;

/// Maximum number of points of a trace that is tried natively.
const MAX_POINTS: usize = 1_000_000;

/// The preemption scripts of hosts, by host name.
pub(crate) type Scripts = BTreeMap<String, Script>;

/// Finds the preemption points of a run's traces.
pub(crate) struct PointFinder {
    run: RunSpec,
    session: Session,
    /// The configuration and programs that the vm replays, loaded on demand; `None` if there is no
    /// bitcode.
    loaded: OnceLock<Option<(ExplorerConfig, Vec<Image>)>>,
}

impl PointFinder {
    /// Creates a finder for the traces of a run.
    pub(crate) fn of(run: &RunSpec, session: &Session) -> PointFinder {
        PointFinder {
            run: run.clone(),
            session: session.clone(),
            loaded: OnceLock::new(),
        }
    }

    /// Returns the preemption scripts of hosts. There are none for hosts without points, and for
    /// traces that the vm cannot replay.
    pub(crate) fn scripts(&self, hosts: &[NativeHost], trace: &WorldTrace) -> Scripts {
        let mut traces = trace.hosts.values();
        if traces.any(|trace| !trace.native_points.is_empty()) {
            // A native run recorded the trace, which contains the points itself.
            return Scripts::new();
        }
        let possible = hosts.iter().filter(|host| are_possible(&host.config));
        let possible: Vec<&str> = possible.map(|host| host.name.as_str()).collect();
        if possible.is_empty() {
            return Scripts::new();
        }
        let load = || prepare(&self.run, &self.session).ok();
        let Some((config, images)) = self.loaded.get_or_init(load) else {
            return Scripts::new();
        };
        let mut model = Model::new(config.clone(), images);
        for host in &mut model.config.hosts {
            host.config.options.logs_points = possible.contains(&host.name.as_str());
        }
        let Ok(seen) = model.follow(trace) else {
            return Scripts::new();
        };
        let (_, host_status) = seen.on_the_way(trace);
        let scripts = host_status.into_iter().filter_map(|host| {
            let script = script(&host.points, host.restarts)?;
            Some((host.name, script))
        });
        scripts.collect()
    }
}

/// Returns whether threads of a native program can be preempted between system calls.
pub(crate) fn are_possible(config: &NativeConfig) -> bool {
    let options = &config.host.options;
    options.preempt_at >= PreemptAt::Atomics && options.scheduler.preempts()
}

/// Returns the script of the points that a host passed after this many restarts. `None` if there
/// are none, or too many.
fn script(passed: &[(PreemptionPoint, SourceFrame)], restarts: u32) -> Option<Script> {
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

/// Returns scripts of a host to try, the likeliest first: native code may have more accesses on a
/// line than the vm, or fewer.
fn shifted(script: &Script, most: usize) -> impl Iterator<Item = Script> + '_ {
    const SHIFTS: [i32; 8] = [1, -1, 2, -2, 3, -3, 4, -4];
    let switches: Vec<usize> = (0..script.points.len())
        .filter(|at| script.points[*at].switches)
        .collect();
    let shifted = SHIFTS.into_iter().flat_map(move |shift| {
        // The end depends most on the latest switches.
        let last = switches.clone().into_iter().rev();
        last.map(move |at| BTreeMap::from([(at, shift)]))
    });
    shifted.take(most).map(|shifts| Script {
        shifts,
        ..script.clone()
    })
}

/// Returns scripts to try, the likeliest first. At most one host deviates from the vm's schedule.
pub(crate) fn attempts(scripts: &Scripts, most: usize) -> Vec<Scripts> {
    let mut all = vec![scripts.clone()];
    for (name, script) in scripts {
        for other in shifted(script, most) {
            let mut attempt = scripts.clone();
            attempt.insert(name.clone(), other);
            all.push(attempt);
        }
    }
    all.truncate(most);
    all
}

/// Returns the hosts with these preemption scripts.
pub(crate) fn scripted(hosts: &[NativeHost], scripts: &Scripts) -> Vec<NativeHost> {
    let mut hosts = hosts.to_vec();
    for host in &mut hosts {
        host.config.script = scripts.get(&host.name).cloned();
    }
    hosts
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
        let tried = attempts(&Scripts::from([("a".to_owned(), script)]), 4);
        let shifts: Vec<_> = tried.iter().map(|one| one["a"].shifts.clone()).collect();
        let one = |at: usize, shift: i32| BTreeMap::from([(at, shift)]);
        assert_eq!(shifts, [BTreeMap::new(), one(1, 1), one(0, 1), one(1, -1)]);
    }
}
