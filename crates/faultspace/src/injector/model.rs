//! `model`: faults of the kernel model, of libc functions, of packets and of hosts, in a world of
//! native programs.

use everett::USUAL;
use everett_linux::functions::{CALLED, Function, named};
use everett_linux::{Errno, Row, failures, rows};

use super::{Injection, Injector, Means, Site, WorldFault, errno, function, numbers, retval};
use crate::space::{Fault, Scenario};

/// The injector.
pub(super) struct Model;

/// Library functions that allocate memory; the model treats all of them as `malloc`.
const ALLOCATORS: &[&str] = &["malloc", "calloc", "realloc", "memalign", "strdup"];

const ATTRIBUTES: &[&str] = &[
    "host",
    "fault",
    "packet",
    "function",
    "call",
    "syscall",
    "errno",
    "failure",
    "retval",
    "callNumber",
    "number",
    "persistent",
    "callsite",
    "stack",
    "arguments",
];

impl Injector for Model {
    fn plan(&self, scenario: &Scenario, _: &Means) -> Result<Injection, String> {
        let faults = scenario.faults.iter().map(world_fault);
        Ok(Injection::World(faults.collect::<Result<_, _>>()?))
    }

    fn attributes(&self) -> &'static [&'static str] {
        ATTRIBUTES
    }
}

fn world_fault(fault: &Fault) -> Result<WorldFault, String> {
    let is_known = |name: &str| ATTRIBUTES.iter().any(|own| own.eq_ignore_ascii_case(name));
    if let Some((name, _)) = fault.0.iter().find(|(name, _)| !is_known(name)) {
        let names = ATTRIBUTES.join(", ");
        return Err(format!("there is no attribute {name}; there are: {names}"));
    }
    check_contradictions(fault)?;
    let host = fault.any(&["host"]).map(ToString::to_string);
    let host = host.filter(|host| host != "*" && host != "any");
    let (first, last) = match fault.any(&["packet"]) {
        None => numbers(fault)?,
        Some(value) => {
            let ends = value.numbers().and_then(|(first, last)| {
                Some((u64::try_from(first).ok()?, u64::try_from(last).ok()?))
            });
            ends.ok_or_else(|| format!("{value} is not the number of a packet: 1, 2, ..., or 0"))?
        }
    };
    if let Some(name) = fault.any(&["fault"]) {
        return Ok(WorldFault {
            host,
            call: None,
            fault: name.to_string(),
            first,
            last,
            site: None,
        });
    }
    let function = function(fault).map_err(|_| {
        "a fault has neither an attribute fault, a fault of the scenario, nor function, a system call"
            .to_owned()
    })?;
    let is_system_call = |row: &&Row| row.name == function && row.number < 1024;
    let row = rows().find(is_system_call);
    let library = named(function.strip_suffix(CALLED).unwrap_or(&function));
    // A libc function is meant if its return value is named, or if the model knows no such call.
    let is_known = row.is_some() || ALLOCATORS.contains(&function.as_str());
    if let Some(library) = library
        && (function.ends_with(CALLED) || fault.any(&["retval"]).is_some() || !is_known)
    {
        return Ok(WorldFault {
            host,
            call: Some(format!("{}{CALLED}", library.name)),
            fault: library_failure(fault, library)?,
            first,
            last,
            site: Site::of(fault),
        });
    }
    if ALLOCATORS.contains(&function.as_str()) {
        let other = fault.any(&["errno", "failure"]).map(ToString::to_string);
        if let Some(other) = other.filter(|name| name != "ENOMEM") {
            return Err(format!("{function} fails with ENOMEM, not with {other}"));
        }
        return Ok(WorldFault {
            host,
            call: Some("malloc".to_owned()),
            fault: "ENOMEM".to_owned(),
            first,
            last,
            site: Site::of(fault),
        });
    }
    let row =
        row.ok_or_else(|| format!("{function} is neither a system call nor a libc function"))?;
    let names = failures(row);
    if names.is_empty() {
        return Err(format!("the model lets {function} never fail"));
    }
    let failure = match fault.any(&["failure"]).map(ToString::to_string) {
        Some(name) => name,
        None => match errno(fault)? {
            Some(number) => Errno(number).name().to_owned(),
            // Which of them a call can give depends on its descriptor, too.
            None => USUAL.to_owned(),
        },
    };
    if failure != USUAL && !names.contains(&failure.as_str()) {
        return Err(format!(
            "the model lets {function} fail with {}, not with {failure}",
            names.join(", ")
        ));
    }
    Ok(WorldFault {
        host,
        call: Some(function),
        fault: failure,
        first,
        last,
        site: Site::of(fault),
    })
}

/// Returns the name of the failure of a libc function.
fn library_failure(fault: &Fault, function: &Function) -> Result<String, String> {
    if let Some(failure) = fault.any(&["failure"]) {
        let name = function.name;
        return Err(format!("{name} fails with an errno, not with {failure}"));
    }
    let errno = errno(fault)?.filter(|errno| *errno != 0);
    let errno = errno.map(|errno| Errno(errno).name());
    let usual = || usual_errno(function);
    let Some(value) = retval(fault)? else {
        let first = function.failures().into_iter().next().unwrap_or_default();
        return Ok(errno.or_else(usual).map_or(first, str::to_owned));
    };
    let value = i32::try_from(value).map_err(|_| format!("{value} is no number of 32 bits"))?;
    Ok(match errno.or_else(usual) {
        Some(errno) if i64::from(value) == function.retval => errno.to_owned(),
        errno => format!("{}={value}", errno.unwrap_or_default()),
    })
}

/// Returns the first errno of a function after which programs do not simply try again.
fn usual_errno(function: &Function) -> Option<&'static str> {
    let is_passing = |name: &&&str| matches!(**name, "EINTR" | "EAGAIN");
    let lasting = function.errnos.iter().find(|name| !is_passing(name));
    lasting.or(function.errnos.first()).copied()
}

/// Groups of attributes that exclude each other.
const ALTERNATIVES: &[&[&str]] = &[
    &["fault", "function", "call", "syscall"],
    &["fault", "errno", "failure"],
    &["fault", "retval"],
    &["number", "callNumber", "packet"],
    // Only calls have a stack and arguments.
    &["fault", "callsite"],
    &["fault", "stack"],
    &["fault", "arguments"],
];

/// Rejects a fault with two attributes of a group, because one of them would be ignored.
fn check_contradictions(fault: &Fault) -> Result<(), String> {
    for names in ALTERNATIVES {
        let given: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| fault.any(&[name]).is_some())
            .collect();
        if let [one, other, ..] = given[..] {
            return Err(format!("a fault has {one} or {other}, not both"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_functions_fail_with_an_errno_and_a_value() {
        for (text, call, failure) in [
            ("function fopen", "fopen()", "EACCES"),
            ("function fopen errno ENOMEM retval 0", "fopen()", "ENOMEM"),
            ("function fopen64 errno EIO retval NULL", "fopen()", "EIO"),
            ("function fopen errno 5 retval 7", "fopen()", "EIO=7"),
            ("function strdup retval 0", "strdup()", "ENOMEM"),
            ("function strdup", "malloc", "ENOMEM"),
            (
                "function malloc errno ENOMEM retval 0",
                "malloc()",
                "ENOMEM",
            ),
            ("function malloc errno ENOMEM", "malloc", "ENOMEM"),
            ("function read errno EIO", "read", "EIO"),
            ("function read errno EIO retval -1", "read()", "EIO"),
            ("function accept retval -1", "accept()", "ECONNABORTED"),
            ("function sem_wait", "sem_wait()", "EINTR"),
            ("function pthread_create", "pthread_create()", "EAGAIN"),
            ("function getenv", "getenv()", "=0"),
            ("function getaddrinfo retval -2", "getaddrinfo()", "=-2"),
        ] {
            let fault = plan(text).unwrap();
            assert_eq!(fault.call.as_deref(), Some(call), "{text}");
            assert_eq!(fault.fault, failure, "{text}");
            let is_library = call.ends_with(CALLED);
            let failing = if is_library {
                format!("{call}:{failure}")
            } else {
                call.to_owned()
            };
            assert_eq!(fault.failing(), Some(failing));
        }
    }

    fn plan(text: &str) -> Result<WorldFault, String> {
        match Model.plan(&Scenario::parse(text).unwrap(), &Means::default())? {
            Injection::World(mut faults) => Ok(faults.remove(0)),
            _ => panic!("another injection"),
        }
    }

    #[test]
    fn scenarios_become_faults_of_worlds() {
        let fault = plan("host server function read errno EIO callNumber <2,3>").unwrap();
        assert_eq!(fault.host.as_deref(), Some("server"));
        assert_eq!(fault.call.as_deref(), Some("read"));
        assert_eq!((fault.first, fault.last), (2, 3));
        let fault = plan("fault lost packet 4").unwrap();
        assert_eq!((fault.call, fault.fault.as_str()), (None, "lost"));
        assert_eq!((fault.first, fault.last), (4, 4));
        let fault = plan("function calloc number 1 persistent yes").unwrap();
        assert_eq!(fault.call.as_deref(), Some("malloc"));
        assert_eq!(fault.last, u64::MAX);
        assert_eq!(plan("function write failure short").unwrap().fault, "short");
        for call in ["write", "malloc"] {
            let text =
                format!("function {call} callsite \"a.c:3\" stack 0a1b arguments \"5, a b\"");
            let fault = plan(&text).unwrap();
            let site = fault.site.unwrap();
            assert_eq!(site.callsite.as_deref(), Some("a.c:3"));
            assert_eq!(site.stack.as_deref(), Some("0a1b"));
            assert_eq!(site.arguments.as_deref(), Some("5, a b"));
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, said) in [
            ("function getpid", "never fail"),
            ("function read errno ENOTEMPTY", "not with ENOTEMPTY"),
            (
                "function frobnicate",
                "neither a system call nor a libc function",
            ),
            ("function fopen errno EIO failure short", "errno or failure"),
            ("function fopen failure short", "not with short"),
            ("function fopen retval 4294967296", "no number of 32 bits"),
            ("fault lost retval 0", "fault or retval"),
            ("host a", "neither"),
            ("fault lost packet x", "number of a packet"),
            ("fault lost colour red", "no attribute colour"),
            ("function read failure odd", "short, not with odd"),
            ("function socket failure short", "not with short"),
            ("function read failure spurious", "not with spurious"),
            ("function malloc errno EIO", "not with EIO"),
            ("function read fault lost", "fault or function"),
            ("fault lost callsite main", "fault or callsite"),
            ("fault lost arguments 3", "fault or arguments"),
            ("fault lost errno EIO", "fault or errno"),
            ("function read errno EIO failure short", "errno or failure"),
            (
                "function read number 1 callNumber 2",
                "number or callNumber",
            ),
        ] {
            let error = plan(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
