//! Translates a spec to the configurations of the engine and of native hosts. Must not know
//! searches, replays, or files of results.

use everett_engine::{DEFAULT_SEARCHERS, ExplorerConfig, Limits, ShareLimits, WorldHost};
use everett_linux::HostConfig;
use everett_native::{KnownPrograms, NativeConfig, libraries};
use everett_solver::{SmtConfig, SolverConfig};
use everett_vm::{BugKind, VmOptions};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::RealDisk;
use crate::error::{Error, Result, bail};
use crate::input::{expect_few_arguments, host_config};
use crate::layers::Mount;
use crate::load::program_contents;
use crate::seeds::read_seeds;
use crate::session::Session;
use crate::spec::RunSpec;

/// Minimum memory of every process, even if the search may use less. Memory that a single process
/// needs cannot be spilled.
const LEAST_HEAP: u64 = 256 << 20;

/// Returns the configuration of the engine for a run.
pub(crate) fn explorer_config(spec: &RunSpec, session: &Session) -> Result<ExplorerConfig> {
    spec.check()?;
    // What a program reserves and never uses takes no memory; what it uses ends its path.
    let max_heap = match spec.max_memory {
        Some(most) => most.clamp(LEAST_HEAP, VmOptions::default().max_heap),
        None => VmOptions::default().max_heap,
    };
    let spec = &spec.with_defaults()?;
    let mut host = host_config(spec.program(), spec.arguments(), &spec.host.env)?;
    if spec.klee_messages {
        expect_few_arguments(&host)?;
    }
    spec.host.apply(&mut host, session)?;
    Ok(ExplorerConfig {
        hosts: vec![WorldHost::alone(host)],
        against: None,
        world: None,
        vm: VmOptions {
            max_symbolic_size: spec.max_symbolic_size.unwrap_or_default(),
            check_shifts: !spec.no_check_shifts,
            check_overflow: spec.check_overflow,
            check_uninitialised: spec.check_uninitialised,
            check_races: spec.check_races,
            fork_conditions: spec.fork_conditions,
            silent_assume: spec.silent_klee_assume,
            as_klee: spec.klee_messages,
            concretize_floats: spec.concretize_floats
                || (spec.klee_messages && !spec.seeds.is_empty()),
            report_uncaught: true,
            report_caught_panics: spec.panics != "main",
            max_heap,
            most_frames: most_frames(spec),
            ..VmOptions::default()
        },
        solver: solver_config(spec, session)?,
        search: match spec.search.as_slice() {
            [] => DEFAULT_SEARCHERS.map(str::to_owned).to_vec(),
            named => named.to_vec(),
        },
        batch_instructions: spec.batch.unwrap_or_default(),
        seed: spec.seed.unwrap_or_default(),
        limits: limits(spec),
        seeds: read_seeds(&spec.seeds, spec.klee_messages)?,
        only_seeds: spec.only_seeds,
        seeds_apart: spec.seeds_apart,
        stop_at: kinds_named(&spec.stop_at),
        all_tests: spec.all_tests || (spec.klee_messages && !spec.only_new_tests),
        no_tests: spec.no_tests,
        all_findings: spec.all_findings,
        findings_by_instruction: spec.klee_messages,
        selects_after_forks: spec.klee_messages,
        // The order of paths is KLEE's, unless it is random.
        new_is_false: spec.klee_messages && matches!(&*spec.search, [name] if name == "dfs"),
        completes_forks: spec.klee_messages,
        counts_from_main: spec.klee_messages,
        check_leaks: spec.check_leaks,
        keep_output: false,
        tell_output: spec.klee_messages,
        keep_files: spec.save_fs,
        clock: session.clock,
        memory: session.memory.clone(),
        spill: None,
        outside: None,
        plans: Vec::new(),
        is_at: None,
    })
}

/// Returns the limits of the search.
fn limits(spec: &RunSpec) -> Limits {
    Limits {
        max_time: spec.max_time,
        max_memory: spec.max_memory,
        max_paths: spec.max_paths,
        max_forks: spec.max_forks,
        max_depth: spec.max_depth,
        max_total_instructions: spec.max_total_instructions,
        max_instructions: spec.max_instructions,
        max_virtual_ns: spec.max_virtual_ns(),
        shares: ShareLimits {
            forks: spec.max_static_fork_pct,
            path_forks: spec.max_static_cpfork_pct,
            queries: spec.max_static_solve_pct,
            path_queries: spec.max_static_cpsolve_pct,
            delay: spec.max_static_pct_check_delay.unwrap_or_default(),
        },
    }
}

/// Returns the configuration of the solver.
fn solver_config(spec: &RunSpec, session: &Session) -> Result<SolverConfig> {
    let (session_of_z3, max_time) = (session.clone(), spec.max_time);
    let solver_work = spec.solver_work.unwrap_or_default();
    let smt = match &spec.smt_solver {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) if !is_program(path) => {
            return Err(Error::InvalidValue {
                field: "smt_solver",
                message: format!("there is no solver {}", path.display()),
            });
        }
        Some(path) => Some(SmtConfig::for_program(
            path.clone(),
            solver_work,
            spec.solver_time,
        )),
        None => Some(SmtConfig::z3_found_by(
            move || find_z3(&session_of_z3, max_time),
            solver_work,
            spec.solver_time,
        )),
    };
    Ok(SolverConfig {
        clock: session.clock,
        stop: Some(session.stop.clone()),
        smt,
        query_time: spec.solver_time,
        conflict_budget: spec.solver_conflicts.unwrap_or_default(),
        solver_log: spec.solver_log.clone(),
        log_queries: spec.log_queries.clone(),
        ..SolverConfig::default()
    })
}

/// Returns the limit on nested calls. KLEE has one.
fn most_frames(spec: &RunSpec) -> usize {
    const KLEE: u64 = 8192;
    let default = if spec.klee_messages { KLEE } else { 0 };
    match spec.max_stack_frames.unwrap_or(default) {
        0 => usize::MAX,
        most => usize::try_from(most).unwrap_or(usize::MAX),
    }
}

/// Returns the kinds of findings with these names, which have been checked.
fn kinds_named(names: &[String]) -> Vec<BugKind> {
    let kinds = BugKind::ALL.iter().copied();
    let is_named = |kind: &BugKind| {
        let mut names = names.iter();
        names.any(|name| name == "all" || name == kind.name())
    };
    kinds.filter(is_named).collect()
}

/// Returns the configuration of the engine for a program of this machine.
pub(crate) fn program_config(spec: &RunSpec, session: &Session) -> Result<ExplorerConfig> {
    let mut config = explorer_config(spec, session)?;
    let contents = program_contents(&RealDisk, &spec.native_programs(), &session.notices);
    config.hosts[0].config.program_contents = contents?;
    Ok(config)
}

/// Returns the host of a single program.
pub(crate) fn program_host(config: ExplorerConfig) -> HostConfig {
    let mut hosts = config.hosts.into_iter();
    hosts.next().map(|host| host.config).unwrap_or_default()
}

/// Returns whether a program exists, by its path or by its name in `PATH`.
pub(crate) fn is_program(path: &Path) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&folders);
    is_executable(path)
        || (path.components().count() == 1 && folders.any(|dir| is_executable(&dir.join(path))))
}

fn is_executable(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

/// Returns the path of z3: the one in `PATH` unless `EVERETT_Z3` is set, otherwise the pinned
/// version, which is installed on demand, within the time limit.
fn find_z3(session: &Session, max_time: Option<Duration>) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path)
        .map(|dir| dir.join("z3"))
        .find(|candidate| candidate.is_file());
    match installed {
        Some(path) if std::env::var_os("EVERETT_Z3").is_none() => Ok(path),
        _ => {
            let left = max_time.map(|most| most.saturating_sub(session.now()));
            everett_toolchain::ensure_z3(left, &|text| session.notices.tell(text))
                .map_err(|error| error.to_string())
        }
    }
}

/// Number of 50 ms stretches of computation after which a replay counts as a hang.
const MAX_LONG_COMPUTATIONS: u32 = 40;

/// Fails if there is no such native program. Pipes and devices do not count, because reading one
/// may never end.
pub(crate) fn expect_native(program: &Path) -> Result<()> {
    match std::fs::metadata(program) {
        Err(_) => bail!(Program, "there is no native program {}", program.display()),
        Ok(metadata) if metadata.is_dir() => {
            bail!(Program, "{} is a folder, not a program", program.display())
        }
        Ok(metadata) if !metadata.is_file() => {
            bail!(Program, "{} is not a regular file", program.display())
        }
        Ok(metadata) if metadata.mode() & 0o111 == 0 => {
            bail!(Program, "{} is not executable", program.display())
        }
        Ok(_) if !begins_as_program(program) => {
            bail!(
                Program,
                "{} is not a program: it is neither an ELF file nor a script",
                program.display()
            )
        }
        Ok(_) => Ok(()),
    }
}

/// Returns whether the kernel would execute a file, by its first bytes. What cannot be read may be
/// one.
fn begins_as_program(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_err() || start == b"\x7fELF" || start.starts_with(b"#!")
}

/// Returns the configuration of native runs for a host.
pub(crate) fn native_config(
    mut host: HostConfig,
    programs: Vec<PathBuf>,
    session: &Session,
) -> Result<NativeConfig> {
    for program in programs.iter().filter(|program| program.exists()) {
        expect_native(program)?;
    }
    add_libraries(&mut host, &programs, session)?;
    let max_calls = host.options.limits.calls;
    Ok(NativeConfig {
        host,
        programs,
        max_calls,
        max_long_computations: MAX_LONG_COMPUTATIONS,
        max_memory: everett_native::MAX_MEMORY,
        counts_own_memory: false,
        deadline: None,
        keeps_events: false,
        keeps_files: false,
        known: KnownPrograms::default(),
        script: None,
        finds_panics: false,
        random_schedule: None,
        race_skips: 0,
        replaced: Vec::new(),
        counts_lines: false,
        is_at: None,
        keeps_callers: false,
    })
}

/// Adds the libraries of dynamically linked programs to the files of the host. Files that the run
/// names take precedence.
pub(crate) fn add_libraries(
    host: &mut HostConfig,
    programs: &[PathBuf],
    session: &Session,
) -> Result<()> {
    for path in programs.iter().flat_map(|program| libraries(program)) {
        let here = path.as_os_str().as_encoded_bytes();
        if host.files.iter().all(|file| file.path != here) {
            host.files
                .extend(Mount::same(path).specs(&session.notices)?);
        }
    }
    Ok(())
}
