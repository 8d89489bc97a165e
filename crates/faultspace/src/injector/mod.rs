//! Injectors: how the faults of a scenario are injected. Each has one file, and one row in
//! [`INJECTORS`].

pub(crate) mod corrupt;
mod model;
pub mod preload;
mod ptrace;
mod script;

use everett_linux::Errno;
use everett_linux::functions::CALLED;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use self::corrupt::{ByteFault, Change, Direction};
use crate::settings::Proxy;
use crate::space::{Fault, Scenario, Value};

/// A fault of a call to a libc function or of a system call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallFault {
    /// The name of the function.
    pub function: String,
    /// The number of the system call, if it is one.
    pub call: Option<u32>,
    /// The first call that fails; 0 if none does.
    pub first: u64,
    /// The last call that fails.
    pub last: u64,
    /// The errno, or 0.
    pub errno: i32,
    /// The return value.
    pub retval: i64,
    /// From where it is called; calls from elsewhere neither fail nor count.
    #[serde(default)]
    pub site: Option<Site>,
}

/// From where a function is called, and with what.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Site {
    /// A source line or a function on the stack.
    pub callsite: Option<String>,
    /// The digest of the whole stack.
    pub stack: Option<String>,
    /// The arguments of the call, or one of them.
    #[serde(default)]
    pub arguments: Option<String>,
}

impl Site {
    fn of(fault: &Fault) -> Option<Site> {
        let text = |name: &str| fault.any(&[name]).map(ToString::to_string);
        let site = Site {
            callsite: text("callsite"),
            stack: text("stack"),
            arguments: text("arguments"),
        };
        (site != Site::default()).then_some(site)
    }
}

/// System calls that do their work even if they fail.
const DONE_ALL_THE_SAME: &[&str] = &["close"];

impl CallFault {
    /// Returns whether the call with this number fails.
    pub fn hits(&self, number: u64) -> bool {
        self.first > 0 && (self.first..=self.last).contains(&number)
    }

    /// Returns the result of a failing system call.
    pub(crate) fn result(&self) -> i64 {
        match self.errno {
            0 => self.retval,
            errno => -i64::from(errno),
        }
    }

    /// Returns whether the call is still executed, and only its result is replaced.
    pub(crate) fn happens_too(&self) -> bool {
        DONE_ALL_THE_SAME.contains(&self.function.as_str())
    }
}

/// A fault in a world.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorldFault {
    /// The affected host; any if `None`.
    pub host: Option<String>,
    /// The system call that fails, or `malloc`, or a libc function, followed by `()`.
    pub call: Option<String>,
    /// The failure of the call, or the name of a fault of the scenario.
    pub fault: String,
    /// The first occurrence that is hit, among all possible ones; 0 for none.
    pub first: u64,
    /// The last occurrence.
    pub last: u64,
    /// From where the call comes; calls from elsewhere neither fail nor count.
    #[serde(default)]
    pub site: Option<Site>,
}

impl WorldFault {
    /// Returns what must be able to fail in the world: a call, or a failure of a libc function.
    pub(crate) fn failing(&self) -> Option<String> {
        let call = self.call.as_ref()?;
        Some(match call.ends_with(CALLED) {
            true => format!("{call}:{}", self.fault),
            false => call.clone(),
        })
    }
}

/// The injection that a manager performs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Injection {
    /// None: the commands inject themselves, or it is a run without faults.
    Nothing,
    /// Failures of system calls.
    Calls(Vec<CallFault>),
    /// Faults in a world, which needs no manager.
    World(Vec<WorldFault>),
    /// Changes of message bytes, by a proxy.
    Corrupt {
        /// The addresses of the proxy.
        proxy: Proxy,
        /// The changes.
        faults: Vec<ByteFault>,
    },
    /// None, but system calls are counted.
    CountCalls {
        /// Whether they are counted for each call site, too.
        by_site: bool,
    },
    /// Failures of libc functions, by a preloaded library.
    Preload {
        /// The library.
        library: PathBuf,
        /// The failures.
        faults: Vec<CallFault>,
        /// Whether calls are counted instead.
        counts: bool,
        /// Whether they are counted for each call site, too.
        by_site: bool,
    },
}

impl Injection {
    /// Returns whether there is a fault to inject.
    pub(crate) fn has_faults(&self) -> bool {
        match self {
            Injection::Nothing | Injection::CountCalls { .. } => false,
            Injection::World(faults) => faults.iter().any(|fault| fault.first > 0),
            Injection::Corrupt { faults, .. } => faults.iter().any(|fault| fault.first > 0),
            Injection::Calls(faults) | Injection::Preload { faults, .. } => {
                faults.iter().any(|fault| fault.first > 0)
            }
        }
    }

    /// Returns the same injection without any fault.
    pub(crate) fn without_faults(&self) -> Injection {
        match self {
            Injection::Calls(_) | Injection::Nothing | Injection::CountCalls { .. } => {
                Injection::Nothing
            }
            Injection::World(_) => Injection::World(Vec::new()),
            Injection::Corrupt { proxy, .. } => Injection::Corrupt {
                proxy: proxy.clone(),
                faults: Vec::new(),
            },
            Injection::Preload {
                library,
                counts,
                by_site,
                ..
            } => Injection::Preload {
                library: library.clone(),
                faults: Vec::new(),
                counts: *counts,
                by_site: *by_site,
            },
        }
    }
}

/// What an injector needs to know besides the scenario.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// The library of `preload`.
    pub library: PathBuf,
    /// The proxy of `corrupt`.
    pub proxy: Option<Proxy>,
}

/// An injector.
pub trait Injector: Sync {
    /// Checks a scenario and returns its injection.
    fn plan(&self, scenario: &Scenario, means: &Means) -> Result<Injection, String>;

    /// Returns the attributes that describe the fault. All others describe the test, and a run
    /// without faults keeps them.
    fn attributes(&self) -> &'static [&'static str];

    /// Returns whether the commands get the scenario in their arguments.
    fn passes_scenario(&self) -> bool {
        false
    }
}

/// A row of [`INJECTORS`].
pub struct InjectorRow {
    /// The name.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// The injector.
    pub injector: &'static dyn Injector,
}

/// All injectors.
pub const INJECTORS: &[InjectorRow] = &[
    InjectorRow {
        name: "corrupt",
        about: "bytes of messages between real programs, through a proxy",
        injector: &corrupt::Corrupt,
    },
    InjectorRow {
        name: "model",
        about: "system calls, libc functions, packets and hosts in a world of native programs",
        injector: &model::Model,
    },
    InjectorRow {
        name: "preload",
        about: "libc functions of real, dynamically linked programs",
        injector: &preload::Preload,
    },
    InjectorRow {
        name: "ptrace",
        about: "system calls of any real program",
        injector: &ptrace::Ptrace,
    },
    InjectorRow {
        name: "script",
        about: "whatever the test does with the scenario that it gets",
        injector: &script::Script,
    },
];

/// Returns the injector with a name.
pub fn named(name: &str) -> Option<&'static InjectorRow> {
    INJECTORS.iter().find(|row| row.name == name)
}

/// Returns all names, for messages.
pub(crate) fn names() -> String {
    let names: Vec<&str> = INJECTORS.iter().map(|row| row.name).collect();
    names.join(", ")
}

/// Attributes of faults of calls.
const CALL_ATTRIBUTES: &[&str] = &[
    "function",
    "call",
    "syscall",
    "errno",
    "retval",
    "callNumber",
    "number",
    "persistent",
    "callsite",
    "stack",
    "arguments",
];

/// Returns the function of a fault.
fn function(fault: &Fault) -> Result<String, String> {
    match fault.any(&["function", "call", "syscall"]) {
        Some(value) => Ok(value.to_string()),
        None => Err("a fault has no attribute `function`".to_owned()),
    }
}

/// Returns the first and last call that a fault hits: the first call by default; 0 for none.
fn numbers(fault: &Fault) -> Result<(u64, u64), String> {
    numbers_of(fault, &["callNumber", "number"])
}

/// Returns the same, from attributes with other names.
fn numbers_of(fault: &Fault, names: &[&str]) -> Result<(u64, u64), String> {
    let is_persistent = persistent(fault)?;
    let ends = match fault.any(names) {
        None => Ok((1, 1)),
        Some(value) => {
            let number = |end: i64| u64::try_from(end).ok();
            let ends = value.numbers();
            ends.and_then(|(from, to)| Some((number(from)?, number(to)?)))
                .ok_or_else(|| {
                    format!("{value} is not the number of a call: 1, 2, ..., or 0 for none")
                })
        }
    };
    Ok(match ends? {
        (first, _) if is_persistent => (first, u64::MAX),
        ends => ends,
    })
}

/// Returns whether all calls from the first one on fail.
fn persistent(fault: &Fault) -> Result<bool, String> {
    match fault.any(&["persistent"]).map(ToString::to_string) {
        None => Ok(false),
        Some(word) => match word.as_str() {
            "yes" | "true" | "1" => Ok(true),
            "no" | "false" | "0" => Ok(false),
            other => Err(format!("persistent is yes or no, not {other}")),
        },
    }
}

/// Returns the errno of a fault.
fn errno(fault: &Fault) -> Result<Option<i32>, String> {
    match fault.any(&["errno"]) {
        None => Ok(None),
        Some(Value::Number(number)) => match i32::try_from(*number) {
            Ok(number) if number >= 0 => Ok(Some(number)),
            _ => Err(format!("{number} is not an errno")),
        },
        Some(value) => match errno_number(&value.to_string()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{value} is not an errno")),
        },
    }
}

/// Returns the number of an errno.
pub(crate) fn errno_number(name: &str) -> Option<i32> {
    Some(Errno::named(name)?.0)
}

fn retval(fault: &Fault) -> Result<Option<i64>, String> {
    match fault.any(&["retval"]) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(*number)),
        Some(Value::Word(word)) if word == "NULL" => Ok(Some(0)),
        Some(Value::Word(word)) if word == "EOF" => Ok(Some(-1)),
        Some(other) => Err(format!(
            "{other} is not a value that a call returns: a number, NULL or EOF"
        )),
    }
}

/// Programs that start others. Faults hit them only if they are named.
pub(crate) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "env", "timeout",
];

/// Returns whether a program is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}
