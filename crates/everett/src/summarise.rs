//! Computes the summary of a stopped search from its explorer and its recorder. Must
//! not know how a summary is stored.

use everett_engine::{Difference, Explorer, Stopped};
use everett_ir::code::{Body, Inst, Program};
use everett_net::HostIndex;
use everett_report::LineCoverage;
use everett_vm::Image;
use std::time::Duration;

use crate::finding::FindingEntry;
use crate::peers::figures;
use crate::record::Recorder;
use crate::summary::{
    Comparison, CoverageTotals, DifferenceEntry, Paths, ProgramFigures, Summary, TeamFigures,
    Weights, WorldFigures,
};
use crate::tally::no_packets;

/// Maximum number of lines that are listed with the cost of their queries.
const MOST_SOLVER_LINES: usize = 10;

/// Returns the faults of the scenario and failures of calls that did not occur.
fn never_fired(explorer: &Explorer<'_>) -> Vec<String> {
    let mut all = explorer.faults_never_fired();
    if !explorer.is_world() {
        let failures = explorer.statistics().faults.iter();
        let never = failures.filter(|(_, fired)| **fired == 0);
        all.extend(never.map(|(name, _)| name.clone()));
    }
    for name in explorer.failures_never_injected() {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Sorts a list by contents. Several workers find its entries in any order.
fn ordered<T: Clone, K: Ord>(list: &[T], order: impl Fn(&T) -> K) -> Vec<T> {
    let mut list = list.to_vec();
    list.sort_by_cached_key(order);
    list
}

impl TeamFigures {
    fn of(explorer: &Explorer<'_>) -> TeamFigures {
        let (team, statistics) = (explorer.team_statistics(), explorer.statistics());
        let all = statistics.instructions.saturating_add(statistics.replayed);
        let mut idle_seconds: Vec<f64> = team.idle.iter().map(Duration::as_secs_f64).collect();
        idle_seconds.resize(team.workers.max(1), 0.0);
        TeamFigures {
            workers: team.workers.max(1),
            jobs_moved: team.jobs_moved,
            idle_seconds,
            replay_share: statistics.replayed as f64 / all.max(1) as f64,
        }
    }
}

/// Returns warnings of the search, and reasons why a complete search says little.
fn warnings(explorer: &Explorer<'_>, stopped: Stopped) -> Vec<String> {
    let mut warnings = ordered(explorer.warnings(), String::clone);
    let hosts = explorer.config().hosts.len();
    let is_silent = explorer.world_statistics().packets == 0 && stopped == Stopped::Finished;
    if explorer.is_world() && hosts > 1 && is_silent {
        warnings.push(no_packets(hosts));
    }
    warnings
}

impl WorldFigures {
    fn of(explorer: &Explorer<'_>) -> WorldFigures {
        let counted = explorer.world_statistics();
        let team = explorer.team_statistics();
        WorldFigures {
            mapping: explorer.mapping_name().to_owned(),
            worlds: counted.worlds,
            worlds_stalled: counted.stalled,
            worlds_deadlocked: counted.deadlocked,
            ends_checked: {
                let mut hosts = explorer.config().hosts.iter();
                hosts.all(|host| !host.expects.is_empty())
            },
            hosts_stalled: {
                let hosts = counted.waiting.intersection(&counted.ending);
                let name = |host: &HostIndex| explorer.config().hosts[host.index()].name.clone();
                hosts.map(name).collect()
            },
            states_total: counted.states_total(),
            states_copied: counted.copies,
            states_united: counted.merged,
            dstates: counted.dstates_peak,
            virtual_states: explorer.table().virtual_states(),
            states_moved: (team.workers > 1).then_some(team.moved),
            instructions_replayed: explorer.statistics().replayed,
            packets: counted.packets,
            deliveries_impossible: counted.impossible,
            invariant_seconds: counted.in_invariants.as_secs_f64(),
            peers: figures(explorer.config()),
            bytes_concretised: (counted.concretised > 0).then_some(counted.concretised),
        }
    }
}

/// Computes the line coverage of the user's code, without libraries.
fn line_coverage(images: &[Image], marks: &[u8]) -> LineCoverage {
    let mut coverage = LineCoverage::default();
    for image in images {
        let first = image.first_segment() as usize;
        add_lines(image.program(), &marks[first..], &mut coverage);
        let edges = marks.get(image.first_edge() as usize..);
        add_branches(image.program(), edges.unwrap_or_default(), &mut coverage);
    }
    coverage
}

/// Adds the sides of each conditional branch and of each switch, in the order of the code.
fn add_branches(program: &Program, edges: &[u8], coverage: &mut LineCoverage) {
    for function in &program.functions {
        let Body::Code(code) = &function.body else {
            continue;
        };
        for (inst, location) in code.instructions.iter().zip(&code.locations) {
            let (first, count) = match inst {
                Inst::Branch { target, .. } | Inst::CompareBranch { target, .. } => (2 * target, 2),
                Inst::Switch { table, .. } => {
                    let table = &code.switches[*table as usize];
                    (table.first_side, table.sides.len())
                }
                _ => continue,
            };
            let Some(place) = location.map(|location| program.location(location)) else {
                continue;
            };
            let file = program.string(place.file);
            let first = (2 * code.first_branch + first) as usize;
            if place.line > 0
                && !program.library.contains(file)
                && let Some(marks) = edges.get(first..first + count)
            {
                let taken: Vec<bool> = marks.iter().map(|mark| *mark != 0).collect();
                coverage.add_branch(file, place.line, &taken);
            }
        }
    }
}

fn add_lines(program: &Program, segments: &[u8], coverage: &mut LineCoverage) {
    for function in &program.functions {
        let Body::Code(code) = &function.body else {
            continue;
        };
        let mut executed = false;
        let (mut last, mut counts) = (None, false);
        for (inst, location) in code.instructions.iter().zip(&code.locations) {
            if let Inst::Segment { id, .. } = inst {
                executed = segments[id.0 as usize] != 0;
                last = None;
            }
            // A mark is no instruction, and what is never reached is not there to be covered.
            let is_counted = !matches!(inst, Inst::Segment { .. } | Inst::Unreachable);
            if *location == last {
                coverage.count_instruction(counts && is_counted, executed);
                continue;
            }
            last = *location;
            counts = false;
            let Some(location) = location else { continue };
            let place = program.location(*location);
            let file = program.string(place.file);
            if place.line > 0 && !program.library.contains(file) {
                counts = true;
                let name = program.string(place.function);
                coverage.add(file, place.line, name, executed);
                coverage.count_instruction(is_counted, executed);
            }
        }
    }
}

/// Returns the comparison of two builds.
fn comparison(explorer: &Explorer<'_>, recorder: &Recorder<'_>, complete: bool) -> Comparison {
    let different = explorer.findings().all().into_iter();
    let different = different.filter(|((kind, ..), _)| kind == Difference::KIND);
    let pairs_different = different.map(|(_, pairs)| pairs).sum();
    Comparison {
        equivalent: complete && pairs_different == 0,
        pairs_different,
        differences: ordered(&recorder.differences, DifferenceEntry::order),
    }
}

impl ProgramFigures {
    fn of(explorer: &Explorer<'_>) -> ProgramFigures {
        let (statistics, team) = (explorer.statistics(), explorer.team_statistics());
        let solver = explorer.solver_statistics();
        ProgramFigures {
            instructions_replayed: statistics.replayed,
            states_pending: explorer.states(),
            states_spilled: statistics.spilled,
            paths_merged: statistics.paths_merged,
            states_moved: (team.workers > 1).then_some(team.moved),
            queries_cached: solver.by_cache + solver.by_cached_model + solver.by_core,
            queries_sat: solver.sat_queries,
            queries_smt: solver.smt_queries,
            faults: statistics.faults.clone(),
        }
    }
}

impl Summary {
    /// Computes the summary of a stopped run.
    pub(crate) fn new(
        explorer: &Explorer<'_>,
        recorder: &Recorder<'_>,
        stopped: Stopped,
        wall: Duration,
    ) -> Summary {
        // The other build of a comparison is not the one under test.
        let against = explorer.config().against.as_ref();
        let tested = against.map_or(explorer.images().len(), |other| usize::from(other.image.0));
        let images = &explorer.images()[..tested];
        let segments = images.iter().map(|image| image.program().segments.len());
        let marks = &explorer.coverage().segments;
        let segments = &marks[..segments.sum()];
        let line_coverage = line_coverage(images, marks);
        let statistics = explorer.statistics();
        let solver = explorer.solver_statistics();
        let limits = explorer.limits_hit().iter();
        let mut limits_hit: Vec<String> = limits.map(|limit| (*limit).to_owned()).collect();
        limits_hit.sort();
        let is_world = explorer.is_world();
        // A path that reaches a limit and continues keeps its full weight. Spilling does not
        // truncate the search.
        let mut cuts = limits_hit.iter().filter(|limit| *limit != "max-memory");
        let is_cut = stopped != Stopped::Finished || cuts.next().is_some();
        let complete = statistics.is_all_explored() && !is_cut;
        Summary {
            complete,
            against: against.map(|_| comparison(explorer, recorder, complete)),
            stopped: stopped.name().to_owned(),
            paths: Paths {
                completed: statistics.paths_completed,
                partial: statistics.paths_partial,
            },
            instructions: statistics.instructions,
            forks: statistics.forks,
            states_peak: statistics.states_peak.max(1),
            queries: solver.queries,
            solver_seconds: (solver.sat_time + solver.smt_time).as_secs_f64(),
            solver_lines: explorer.solver_lines(MOST_SOLVER_LINES),
            wall_seconds: wall.as_secs_f64(),
            memory_peak_bytes: recorder.memory_peak(),
            weight: Weights {
                finished: statistics.finished.to_f64(),
                pending: explorer.pending_weight().to_f64(),
                unknown: statistics.unknown.to_f64(),
                pruned: statistics.pruned.to_f64(),
                excluded: statistics.excluded.to_f64(),
            },
            coverage: CoverageTotals::of(&line_coverage, segments),
            limits_hit,
            tests: recorder.tests,
            states_unsaved: explorer.unsaved(),
            resume_from: None,
            faults_never_fired: never_fired(explorer),
            unsupported: ordered(&explorer.unsupported(), |one| {
                let place = (one.file.clone(), one.line, one.function.clone());
                (one.call.clone(), one.what.clone(), place)
            }),
            warnings: warnings(explorer, stopped),
            findings: ordered(&recorder.findings, FindingEntry::order),
            program: (!is_world).then(|| ProgramFigures::of(explorer)),
            world: is_world.then(|| WorldFigures::of(explorer)),
            team: Some(TeamFigures::of(explorer)),
            cluster: None,
            line_coverage,
        }
    }
}
