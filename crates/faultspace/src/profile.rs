//! Profiles tests: runs them once, counts which functions or system calls their programs call, and
//! writes the space of faults that can hit them.

use everett::{Caller, Possible, joined_arguments};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::injector::{Injection, preload};
use crate::manager::SiteOfCall;
use crate::settings::{Command, Limits, SearchConfig};
use crate::space::{Scenario, Space};
use crate::system::System;
use crate::worlds;
use everett_linux::functions::FUNCTIONS;

/// What to profile.
#[derive(Clone, Debug, Default)]
pub struct ProfileSpec {
    /// The tests: one command each.
    pub tests: Vec<String>,
    /// Whether to count system calls instead of libc functions.
    pub system_calls: bool,
    /// If not empty, only these programs count.
    pub programs: Vec<String>,
    /// How the space names calls.
    pub by: ProfileBy,
    /// Maximum number of calls of a function in the space.
    pub most_calls: u64,
    /// The working folder of the tests.
    pub folder: PathBuf,
    /// The command that starts a manager.
    pub manager: Vec<OsString>,
}

/// How a space names calls.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ProfileBy {
    /// By their number in a process.
    #[default]
    Number,
    /// By their call site, and their number from there.
    Callsite,
    /// By their whole stack, and their number with it.
    Stack,
    /// By their whole stack and their arguments, and their number with them.
    Failure,
}

impl ProfileBy {
    /// Returns the way with a name.
    pub fn named(name: &str) -> Option<ProfileBy> {
        match name {
            "number" => Some(ProfileBy::Number),
            "callsite" => Some(ProfileBy::Callsite),
            "stack" => Some(ProfileBy::Stack),
            "failure" => Some(ProfileBy::Failure),
            _ => None,
        }
    }
}

/// What a test calls.
#[derive(Default)]
struct Profiled {
    /// The maximum number of calls that one process makes of each function.
    calls: BTreeMap<String, u64>,
    /// The same, for each call site.
    sites: Vec<(SiteOfCall, u64)>,
}

/// A profile.
pub struct ProfileResult {
    /// The description of the space.
    pub space: String,
    /// How many scenarios it has.
    pub size: u64,
    /// The maximum number of calls that one process makes of each function.
    pub calls: BTreeMap<String, u64>,
}

/// Runs tests and builds the space of their faults.
pub fn profile(spec: &ProfileSpec) -> Result<ProfileResult> {
    let is_world = |test: &&String| test.ends_with(".toml") && !test.contains(char::is_whitespace);
    if let Some(test) = spec.tests.iter().find(is_world) {
        if spec.tests.len() > 1 {
            let message = format!("{test} is a scenario, which is profiled on its own");
            return Err(Error::Usage(message));
        }
        if spec.system_calls || !spec.programs.is_empty() {
            let message = "options about system calls and programs are for tests, not for scenarios: \
                           the space of a world has the system calls of all of its hosts";
            return Err(Error::Usage(message.to_owned()));
        }
        return of_world(&spec.folder.join(test), spec.by, spec.most_calls);
    }
    let folder = spec
        .folder
        .canonicalize()
        .map_err(Error::reading(&spec.folder))?;
    let work = std::env::temp_dir().join(format!("everett-profile-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(Error::writing(&work))?;
    let counted = count(spec, folder, &work);
    let _ = std::fs::remove_dir_all(&work);
    let counts = counted?;
    let space = describe(spec, &counts);
    let parsed = Space::parse(&space);
    let size = match &parsed {
        Ok(space) => space.size(),
        Err(_) if counts.iter().all(|test| test.calls.is_empty()) => {
            let what = if spec.system_calls {
                "system calls"
            } else {
                "libc functions"
            };
            let hint = if spec.system_calls {
                ""
            } else {
                "; is the program static? then profile its system calls"
            };
            return Err(Error::Setup(format!(
                "the tests make no {what} that can be failed{hint}"
            )));
        }
        Err(error) => {
            return Err(Error::Space {
                file: "profile".to_owned(),
                error: error.clone(),
            });
        }
    };
    let mut calls = BTreeMap::new();
    for test in &counts {
        for (name, count) in &test.calls {
            let most = calls.entry(name.clone()).or_insert(0);
            *most = (*count).max(*most);
        }
    }
    Ok(ProfileResult { space, size, calls })
}

/// Builds the space of the faults of a world: how often each host makes a call that can fail, and
/// how often a fault of the scenario can happen to it.
fn of_world(scenario: &Path, by: ProfileBy, most: u64) -> Result<ProfileResult> {
    let possible = worlds::possible(scenario, by != ProfileBy::Number)?;
    if possible.is_empty() {
        let why = "nothing can go wrong: the hosts make no call that can fail, and the scenario has no fault";
        return Err(Error::Setup(why.to_owned()));
    }
    let (mut counts, mut notes) = (BTreeMap::new(), BTreeSet::new());
    for (one, count) in possible {
        if let (Possible::Call { call, from, .. }, ProfileBy::Stack | ProfileBy::Failure) =
            (&one, by)
            && let Some(Caller { site, stack, .. }) = from
        {
            notes.insert(format!("# stack {stack}: {call} from {site}\n"));
        }
        *counts.entry(WorldAxes::of(one, by)).or_default() += count;
    }
    // Failures of a call with the same number of occurrences form one subspace.
    let mut subspaces: BTreeMap<(WorldAxes, u64), Vec<String>> = BTreeMap::new();
    let mut calls = BTreeMap::new();
    for ((axes, value), count) in counts {
        if let Some(call) = &axes.call {
            let most = calls.entry(call.clone()).or_insert(0);
            *most = std::cmp::max(*most, count);
        }
        let subspace = subspaces.entry((axes, count.min(most)));
        subspace.or_default().push(word(&value));
    }
    // So do calls from one place with different arguments.
    let mut together: BTreeMap<(WorldAxes, u64, Vec<String>), Vec<String>> = BTreeMap::new();
    for ((mut axes, count), names) in subspaces {
        let arguments = std::mem::take(&mut axes.arguments);
        axes.has_arguments = !arguments.is_empty();
        let all = together.entry((axes, count, names)).or_default();
        all.extend((!arguments.is_empty()).then(|| format!("\"{arguments}\"")));
    }
    let mut space = String::new();
    for ((axes, count, names), arguments) in together {
        let _ = writeln!(
            space,
            "{} : {{ {} }} number : [1, {count}] ;",
            axes.text(&arguments),
            names.join(", ")
        );
    }
    space.extend(notes);
    let size = Space::parse(&space).map(|space| space.size());
    let size = size.map_err(|error| Error::Space {
        file: "profile".to_owned(),
        error,
    })?;
    Ok(ProfileResult { space, size, calls })
}

/// The values of the axes of a subspace of a world, but for the last ones: the failures and their
/// numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct WorldAxes {
    host: String,
    call: Option<String>,
    /// The call site or the stack.
    from: Option<(&'static str, String)>,
    /// The arguments; empty if there are none, or if calls are not named by them.
    arguments: String,
    has_arguments: bool,
    /// The name of the axis of failures.
    failures: &'static str,
}

impl WorldAxes {
    /// Returns the axes of a fault, and its value on the axis of failures.
    fn of(possible: Possible, by: ProfileBy) -> (WorldAxes, String) {
        match possible {
            Possible::Call {
                host,
                call,
                failure,
                from,
            } => {
                let named = from.as_ref().filter(|_| by == ProfileBy::Failure);
                let arguments = named.map(|from| joined_arguments(&from.arguments));
                let from = from.map(|from| match by {
                    ProfileBy::Stack | ProfileBy::Failure => ("stack", from.stack),
                    _ => ("callsite", from.site),
                });
                let failures = match failure.starts_with('E') {
                    true => "errno",
                    false => "failure",
                };
                let axes = WorldAxes {
                    host,
                    call: Some(call),
                    from,
                    arguments: arguments.unwrap_or_default(),
                    has_arguments: false,
                    failures,
                };
                (axes, failure)
            }
            Possible::Scenario { host, fault } => {
                let axes = WorldAxes {
                    host,
                    call: None,
                    from: None,
                    arguments: String::new(),
                    has_arguments: false,
                    failures: "fault",
                };
                (axes, fault)
            }
        }
    }

    fn text(&self, arguments: &[String]) -> String {
        let mut text = format!("host : {{ {} }} ", word(&self.host));
        if let Some(call) = &self.call {
            let _ = write!(text, "function : {{ {call} }} ");
        }
        if let Some((axis, from)) = &self.from {
            let _ = write!(text, "{axis} : {{ {} }} ", word(from));
        }
        if !arguments.is_empty() {
            let _ = write!(text, "arguments : {{ {} }} ", arguments.join(", "));
        }
        text + self.failures
    }
}

/// Returns text as a word of the space language.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}

/// Runs each test and counts its calls.
fn count(spec: &ProfileSpec, folder: PathBuf, work: &Path) -> Result<Vec<Profiled>> {
    let by_site = spec.by != ProfileBy::Number;
    let injector = if spec.system_calls {
        "ptrace"
    } else {
        "preload"
    };
    let mut all = Vec::new();
    for test in &spec.tests {
        let config = SearchConfig {
            injector: injector.to_owned(),
            programs: spec.programs.clone(),
            test: Some(Command::Shell(test.clone())),
            folder: folder.clone(),
            limits: Limits::default(),
            ..SearchConfig::default()
        };
        let system = System::new(&config, &spec.manager, work)?;
        let injection = match spec.system_calls {
            true => Injection::CountCalls { by_site },
            false => Injection::Preload {
                library: work
                    .canonicalize()
                    .map_err(Error::reading(work))?
                    .join("preload.so"),
                faults: Vec::new(),
                counts: true,
                by_site,
            },
        };
        let seen = system.execute(&system.job(&Scenario::default(), injection))?;
        if !seen.test.is_success() {
            let said = seen.output[1].text.trim().to_owned();
            return Err(Error::Setup(format!(
                "the test {test:?} fails without any fault: {} {said}",
                seen.test
            )));
        }
        let mut most: BTreeMap<String, u64> = BTreeMap::new();
        for (key, count) in &seen.calls {
            // PROGRAM FUNCTION PROCESS
            if let Some(function) = key.split(' ').nth(1) {
                let known = most.entry(function.to_owned()).or_insert(0);
                *known = (*count).max(*known);
            }
        }
        all.push(Profiled {
            calls: most,
            sites: seen.sites,
        });
    }
    Ok(all)
}

/// A function with its errnos and return values on failure.
struct Failing {
    name: &'static str,
    errnos: Vec<&'static str>,
    retval: i64,
}

/// Returns all functions that can be failed, ordered by family.
fn failing(system_calls: bool) -> Vec<Failing> {
    if system_calls {
        let rows = everett_linux::rows().filter(|row| row.number < 1024 && !row.errnos.is_empty());
        let rows = rows.map(|row| Failing {
            name: row.name,
            errnos: row.errnos.iter().map(|errno| errno.name()).collect(),
            retval: -1,
        });
        return rows.collect();
    }
    let rows = FUNCTIONS.iter().map(|function| Failing {
        name: function.name,
        errnos: function.errnos.to_vec(),
        retval: function.retval,
    });
    rows.collect()
}

/// Calls of a subspace: functions with the same errnos, return value and number of calls, from the
/// same sites.
#[derive(PartialEq)]
struct Group {
    errnos: Vec<&'static str>,
    retval: i64,
    most: u64,
    /// Call sites or stacks; none if calls are only numbered.
    sites: Vec<String>,
    /// The arguments of calls with these stacks.
    arguments: Vec<String>,
}

/// Returns the description of the space.
fn describe(spec: &ProfileSpec, tests: &[Profiled]) -> String {
    let mut text =
        String::from("# Made by `everett faults profile`. What is never called is left out.\n");
    for (number, test) in (1..).zip(&spec.tests) {
        let _ = writeln!(text, "# test {number}: {}", test.replace('\n', " "));
    }
    for (number, test) in (1..).zip(tests) {
        let mut groups: Vec<(Group, Vec<&str>)> = Vec::new();
        for row in failing(spec.system_calls) {
            for (most, sites, arguments) in counts_of(spec, test, row.name) {
                let group = Group {
                    errnos: row.errnos.clone(),
                    retval: row.retval,
                    most,
                    sites,
                    arguments,
                };
                match groups.last_mut() {
                    Some((last, names)) if *last == group => names.push(row.name),
                    _ => groups.push((group, vec![row.name])),
                }
            }
        }
        for (group, names) in groups {
            write_group(&mut text, spec.by, number, &group, &names.join(", "));
        }
        if matches!(spec.by, ProfileBy::Stack | ProfileBy::Failure) {
            let stacks = test.sites.iter().map(|(call, _)| {
                let SiteOfCall {
                    function,
                    site,
                    stack,
                    ..
                } = call;
                format!("# stack {stack}: {function} from {site}\n")
            });
            // Calls with one stack may have several arguments.
            let stacks: BTreeSet<String> = stacks.collect();
            text.extend(stacks);
        }
    }
    text
}

/// Returns how often a test calls a function at most, and from where. Sites with the same number
/// are together.
fn counts_of(
    spec: &ProfileSpec,
    test: &Profiled,
    function: &str,
) -> Vec<(u64, Vec<String>, Vec<String>)> {
    let limit = |count: u64| count.min(spec.most_calls.max(1));
    if spec.by == ProfileBy::Number {
        let count = test.calls.get(function);
        return count
            .map(|count| (limit(*count), Vec::new(), Vec::new()))
            .into_iter()
            .collect();
    }
    let calls = test.sites.iter();
    let calls = calls.filter(|(call, _)| call.function == function);
    if spec.by == ProfileBy::Failure {
        // Of some functions, no arguments are known.
        let mut together: BTreeMap<(u64, &str, bool), Vec<String>> = BTreeMap::new();
        for (call, count) in calls {
            let has_arguments = !call.arguments.is_empty();
            let key = (limit(*count), call.stack.as_str(), has_arguments);
            let known = has_arguments.then(|| format!("\"{}\"", call.arguments));
            together.entry(key).or_default().extend(known);
        }
        let groups = together.into_iter();
        let groups = groups.map(|((count, stack, _), all)| (count, vec![stack.to_owned()], all));
        return groups.collect();
    }
    let mut of_site: BTreeMap<&str, u64> = BTreeMap::new();
    for (call, count) in calls {
        let name = match spec.by {
            ProfileBy::Stack => &call.stack,
            _ => &call.site,
        };
        // Several stacks lead to one site.
        *of_site.entry(name).or_default() += count;
    }
    let mut together: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (site, count) in of_site {
        together.entry(limit(count)).or_default().push(word(site));
    }
    let groups = together.into_iter();
    groups
        .map(|(count, sites)| (count, sites, Vec::new()))
        .collect()
}

fn write_group(text: &mut String, by: ProfileBy, test: usize, group: &Group, names: &str) {
    let _ = write!(text, "\ntest : {{ {test} }}\nfunction : {{ {names} }}\n");
    if !group.errnos.is_empty() {
        let _ = writeln!(text, "errno : {{ {} }}", group.errnos.join(", "));
    }
    let axis = match by {
        ProfileBy::Stack | ProfileBy::Failure => "stack",
        _ => "callsite",
    };
    if !group.sites.is_empty() {
        let _ = writeln!(text, "{axis} : {{ {} }}", group.sites.join(", "));
    }
    if !group.arguments.is_empty() {
        let _ = writeln!(text, "arguments : {{ {} }}", group.arguments.join(", "));
    }
    let (retval, most) = (group.retval, group.most);
    let _ = writeln!(
        text,
        "retval : {{ {retval} }}\ncallNumber : [ 1 , {most} ] ;"
    );
}

/// Reads the counts that processes left in a folder.
pub(crate) fn read_counts(folder: &Path, calls: &mut BTreeMap<String, u64>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix("counts.") else {
            continue;
        };
        let Ok(bytes) = std::fs::read(entry.path()) else {
            continue;
        };
        let process = process.split('.').next().unwrap_or_default();
        if let Some((program, counts)) = preload::read_counts(&bytes) {
            for (function, count) in counts {
                let program = program.replace(' ', "_");
                calls.insert(format!("{program} {function} {process}"), count);
            }
        }
    }
}
