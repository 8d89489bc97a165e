//! Reads `[host.*]`: what runs on hosts, on which files, with which inputs.

use everett_net::{HostIndex, MOST_HOSTS};
use std::path::{Path, PathBuf};

use crate::model::{
    Argument, CallFaults, EnvValue, Expectation, FileSource, HostSetup, OtherProgram, Process,
    Start, Stdin, Watch,
};
use crate::place::{Known, Wanted, wanted};
use crate::reader::{Scope, Table, wrong};
use crate::source::Findings;
use crate::template::Numbering;
use crate::tree::{Entry, Node, Value};
use crate::units;
use crate::{NameKind, Surroundings};

/// What reading hosts needs besides their tables.
pub(crate) struct HostReader<'r> {
    pub folder: &'r Path,
    /// The folder that the scenario's file is in.
    pub beside: &'r Path,
    pub around: &'r dyn Surroundings,
    pub defaults: &'r [Entry],
}

/// A host's table, and which of its `count` it is.
pub(crate) struct HostEntry<'t> {
    pub entry: &'t Entry,
    pub name: String,
    pub scope: Scope,
    pub number: u32,
}

/// All hosts with their names, before anything else is read of them.
pub(crate) fn expand<'t>(entries: &'t [Entry], findings: &mut Findings) -> Vec<HostEntry<'t>> {
    let mut hosts = Vec::new();
    for entry in entries {
        let count = match &entry.node.value {
            Value::Table(keys) => keys.iter().find(|key| key.key == "count"),
            _ => None,
        };
        let Some(count) = count else {
            hosts.push(HostEntry {
                entry,
                name: entry.key.clone(),
                scope: Scope::default(),
                number: 0,
            });
            continue;
        };
        let most = MOST_HOSTS as u64;
        let count = Scope::default().number(&count.node, most, findings);
        let count = count.unwrap_or(0) as u32;
        for number in 0..count {
            let scope = Scope {
                numbering: Some(Numbering { number, count }),
            };
            let name = match entry.key.contains('{') {
                true => scope.fill(&entry.key, entry.key_spot, findings),
                false => Some(format!("{}{number}", entry.key)),
            };
            hosts.extend(name.map(|name| HostEntry {
                entry,
                name,
                scope,
                number,
            }));
        }
    }
    hosts
}

impl HostReader<'_> {
    /// Reads a host: what it runs, and where it is.
    pub fn read(
        &self,
        host: &HostEntry<'_>,
        index: HostIndex,
        known: &Known<'_>,
        findings: &mut Findings,
    ) -> Option<(HostSetup, Wanted)> {
        let (entry, scope) = (host.entry, host.scope);
        let path = format!("host.{}", entry.key);
        let table = Table::new(path, entry.key_spot, &entry.node, findings)?;
        let mut table = table.with_defaults(self.defaults);
        table.get("count");
        let place = wanted(host.name.clone(), false, &mut table, scope, known, findings);
        let setup = HostSetup {
            index,
            name: host.name.clone(),
            group: entry.key.clone(),
            number: host.number,
            processes: self.processes(&mut table, scope, findings),
            programs: self.other_programs(&mut table, scope, findings),
            files: self.files(&mut table, scope, findings),
            start: start(&mut table, scope, findings),
            begin: self.begin(&mut table, scope, findings),
            stop_ns: table
                .get("stop")
                .and_then(|node| scope.duration_ns(node, findings)),
            clock_skew_ns: skew(&mut table, scope, findings),
            symbolic_clock: table.get("clock").is_some_and(|node| {
                let words = [("virtual", false), ("symbolic", true)];
                scope.word(node, &words, findings).unwrap_or_default()
            }),
            scheduler: self.checked(
                "scheduler",
                NameKind::Scheduler,
                &mut table,
                scope,
                findings,
            ),
            preempt: self.checked("preempt", NameKind::Preempt, &mut table, scope, findings),
            call_faults: self.call_faults(&mut table, scope, findings),
            wait_all: flag("wait_all", &mut table, findings),
            trust_handlers: flag("trust_handlers", &mut table, findings),
            watches: self.watches(&mut table, scope, findings),
        };
        table.finish(findings);
        Some((setup, place))
    }

    fn processes(
        &self,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Vec<Process> {
        let first_name = table.path.rsplit('.').next().unwrap_or_default().to_owned();
        let others = table.below("process", findings);
        let mut processes = Vec::new();
        processes.extend(self.process(first_name, others.is_empty(), table, scope, findings));
        for entry in others {
            let path = format!("{}.process.{}", table.path, entry.key);
            let own = Table::new(path, entry.key_spot, &entry.node, findings);
            if let Some(mut own) = own {
                let process = self.process(entry.key.clone(), true, &mut own, scope, findings);
                processes.extend(process);
                own.finish(findings);
            }
        }
        processes
    }

    fn process(
        &self,
        name: String,
        is_needed: bool,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Option<Process> {
        let program = match table.get("program") {
            Some(node) => self.program(node, scope, findings),
            None => {
                if is_needed {
                    let message = format!("[{}] has no program", table.path);
                    findings.help(
                        table.spot,
                        message,
                        "say what it runs: program = \"./server\"",
                    );
                }
                None
            }
        };
        let args = table.get("args");
        let args = args.map_or_else(Vec::new, |node| match &node.value {
            Value::List(_) => scope.list(node, findings, argument),
            other => {
                wrong(node, "an array of strings", other, findings);
                Vec::new()
            }
        });
        let env = table.below("env", findings).iter().filter_map(|entry| {
            let name = scope.fill(&entry.key, entry.key_spot, findings)?;
            if name.is_empty() || name.contains('=') {
                findings.error(entry.key_spot, format!("{name:?} is no name of a variable"));
            }
            Some((name, env_value(&entry.node, scope, findings)?))
        });
        let env = env.collect();
        let stdin = table.get("stdin");
        let stdin = stdin.and_then(|node| self.stdin(node, scope, findings));
        let cwd = table.get("cwd");
        let cwd = cwd.and_then(|node| scope.text(node, findings));
        let expect = table.get("expect");
        let expect = expect.and_then(|node| scope.parsed(node, findings, expectation));
        Some(Process {
            name,
            program: program?,
            args,
            env,
            stdin: stdin.unwrap_or_default(),
            cwd,
            expect,
        })
    }

    fn path(&self, text: &str) -> PathBuf {
        self.folder.join(text)
    }

    fn program(&self, node: &Node, scope: Scope, findings: &mut Findings) -> Option<PathBuf> {
        let text = scope.text(node, findings)?;
        let path = self.path(&text);
        let mut bitcode = path.clone().into_os_string();
        bitcode.push(".bc");
        if text.is_empty()
            || !(self.around.is_file(&path) || self.around.is_file(Path::new(&bitcode)))
        {
            let message = format!("there is no program {}", path.display());
            findings.help(node.spot, message, "build it with everett cc, c++ or cargo");
        }
        Some(path)
    }

    /// A path of this disk that must be there.
    fn existing(
        &self,
        node: &Node,
        text: &str,
        wants_folder: bool,
        findings: &mut Findings,
    ) -> PathBuf {
        let path = self.path(text);
        let (is_file, is_folder) = (self.around.is_file(&path), self.around.is_folder(&path));
        let help = "relative paths start at the folder of the scenario";
        if wants_folder && is_file {
            let message = format!("{} is no folder", path.display());
            findings.help(
                node.spot,
                message,
                "single files are given as file = { \"/PATH\" = \"FILE\" }",
            );
        } else if !is_file && !is_folder {
            findings.help(node.spot, format!("there is no {}", path.display()), help);
        }
        path
    }

    /// A trace that lies beside the scenario.
    fn begin(
        &self,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Option<PathBuf> {
        let node = table.get("begin")?;
        let path = self.beside.join(scope.text(node, findings)?);
        if !self.around.is_file(&path) {
            let message = format!("there is no trace {}", path.display());
            let help = "everett run PROGRAM writes it where the program sets up its hosts itself (netklee.h)";
            findings.help(node.spot, message, help);
        }
        Some(path)
    }

    fn stdin(&self, node: &Node, scope: Scope, findings: &mut Findings) -> Option<Stdin> {
        let Value::Table(_) = &node.value else {
            return scope.text(node, findings).map(Stdin::Text);
        };
        let mut table = Table::new("stdin".to_owned(), node.spot, node, findings)?;
        let (size, file) = (table.get("symbolic"), table.get("file"));
        table.finish(findings);
        match (size, file) {
            (Some(size), None) => {
                let size = scope.small(size, findings)?;
                Some(Stdin::Symbolic { size })
            }
            (None, Some(file)) => {
                let text = scope.text(file, findings)?;
                Some(Stdin::File(self.existing(file, &text, false, findings)))
            }
            _ => {
                let help = "write \"text\", { symbolic = 16 } or { file = \"FILE\" }";
                findings.help(node.spot, "this is no standard input", help);
                None
            }
        }
    }

    fn other_programs(
        &self,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Vec<OtherProgram> {
        let mut programs = Vec::new();
        let Some(node) = table.get("programs") else {
            return programs;
        };
        if let Value::Table(entries) = &node.value {
            for entry in entries {
                let guest_path = scope.fill(&entry.key, entry.key_spot, findings);
                let program = self.program(&entry.node, scope, findings);
                programs.extend(program.map(|program| OtherProgram {
                    program,
                    guest_path,
                }));
            }
            return programs;
        }
        scope.list(node, findings, |scope, node, findings| {
            Some(OtherProgram {
                program: self.program(node, scope, findings)?,
                guest_path: None,
            })
        })
    }

    fn files(
        &self,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Vec<FileSource> {
        let mut files = Vec::new();
        let mounts = table.get("ro");
        if let Some(node) = mounts {
            files.extend(scope.list(node, findings, |scope, node, findings| {
                let text = scope.text(node, findings)?;
                let (from, to) = text.split_once('=').unwrap_or((&text, &text));
                let from = self.existing(node, from, false, findings);
                let to = to.to_owned();
                Some(FileSource::Mount { from, to })
            }));
        }
        if let Some(node) = table.get("files") {
            files.extend(scope.list(node, findings, |scope, node, findings| {
                let text = scope.text(node, findings)?;
                let path = self.existing(node, &text, true, findings);
                Some(FileSource::Folder(path))
            }));
        }
        for entry in table.below("file", findings) {
            files.extend(self.file(entry, scope, findings));
        }
        files
    }

    /// `"/PATH" = "FILE"`, `{ text = … }` or `{ symbolic = N }`.
    fn file(&self, entry: &Entry, scope: Scope, findings: &mut Findings) -> Option<FileSource> {
        let to = scope.fill(&entry.key, entry.key_spot, findings)?;
        let node = &entry.node;
        let Value::Table(_) = &node.value else {
            let text = scope.text(node, findings)?;
            let from = self.existing(node, &text, false, findings);
            return Some(FileSource::File { to, from });
        };
        let mut table = Table::new(format!("file.{to}"), entry.key_spot, node, findings)?;
        let (text, size, least) = (table.get("text"), table.get("symbolic"), table.get("least"));
        table.finish(findings);
        match (text, size) {
            (Some(text), None) => {
                let text = scope.text(text, findings)?;
                Some(FileSource::Text { to, text })
            }
            (None, Some(size)) => {
                let most = scope.small(size, findings)?;
                let least = match least {
                    Some(node) => scope.number(node, most.into(), findings)? as u32,
                    None => most,
                };
                Some(FileSource::Symbolic { to, least, most })
            }
            _ => {
                let help = "write \"FILE\", { text = \"...\" } or { symbolic = 16 }";
                findings.help(node.spot, "this is no file", help);
                None
            }
        }
    }

    /// A name that others know, such as that of a scheduler.
    fn checked(
        &self,
        key: &'static str,
        kind: NameKind,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> Option<String> {
        let node = table.get(key)?;
        self.known_name(kind, node, scope, findings)
    }

    fn known_name(
        &self,
        kind: NameKind,
        node: &Node,
        scope: Scope,
        findings: &mut Findings,
    ) -> Option<String> {
        let text = scope.text(node, findings)?;
        if let Err(message) = self.around.check(kind, &text) {
            findings.error(node.spot, message);
        }
        Some(text)
    }

    fn call_faults(
        &self,
        table: &mut Table<'_>,
        scope: Scope,
        findings: &mut Findings,
    ) -> CallFaults {
        let mut faults = CallFaults::default();
        if let Some(node) = table.get("faults") {
            faults.most = scope.small(node, findings).unwrap_or(0);
        }
        if let Some(node) = table.get("fault_calls") {
            faults.only = scope.list(node, findings, |scope, node, findings| {
                self.known_name(NameKind::Failure, node, scope, findings)
            });
        }
        if let Some(node) = table.get("fault_programs") {
            faults.programs = scope.texts(node, findings);
        }
        faults.in_regions = flag("fault_regions", table, findings);
        if let Some(node) = table.get("fragment") {
            faults.fragments = scope.small(node, findings).unwrap_or(0);
        }
        faults
    }

    fn watches(&self, table: &mut Table<'_>, scope: Scope, findings: &mut Findings) -> Vec<Watch> {
        let mut watches = Vec::new();
        for entry in table.below("watch", findings) {
            let Some(key) = scope.fill(&entry.key, entry.key_spot, findings) else {
                continue;
            };
            let node = &entry.node;
            if !matches!(node.value, Value::Table(_)) {
                let path = self.known_name(NameKind::Watched, node, scope, findings);
                let state = "0".to_owned();
                watches.extend(path.map(|path| Watch { key, state, path }));
                continue;
            }
            let own = Table::new(format!("watch.{key}"), entry.key_spot, node, findings);
            let Some(mut own) = own else { continue };
            let (path, state) = (own.get("path"), own.get("state"));
            own.finish(findings);
            let state = match state.map(|node| (&node.value, node)) {
                Some((Value::Integer(state), _)) => state.to_string(),
                Some((_, node)) => scope.text(node, findings).unwrap_or_default(),
                None => "0".to_owned(),
            };
            match path {
                Some(node) => {
                    let path = self.known_name(NameKind::Watched, node, scope, findings);
                    watches.extend(path.map(|path| Watch { key, state, path }));
                }
                None => {
                    let help = "write \"VARIABLE\" or { path = \"VARIABLE\", state = 1 }";
                    findings.help(node.spot, "this says not what to watch", help);
                }
            }
        }
        watches
    }
}

fn flag(key: &'static str, table: &mut Table<'_>, findings: &mut Findings) -> bool {
    let node = table.get(key);
    node.and_then(|node| Scope::default().flag(node, findings))
        .unwrap_or_default()
}

fn start(table: &mut Table<'_>, scope: Scope, findings: &mut Findings) -> Start {
    let Some(node) = table.get("start") else {
        return Start::default();
    };
    if matches!(&node.value, Value::Text(text) if text == "blocked") {
        return Start::Blocked;
    }
    let parse = |text: &str| {
        units::duration_ns(text)
            .map_err(|why| format!("{why}; or write \"blocked\" for when the hosts before it wait"))
    };
    let at = match node.value {
        Value::Text(_) => scope.parsed(node, findings, parse),
        _ => scope.duration_ns(node, findings),
    };
    at.map_or(Start::default(), Start::At)
}

fn skew(table: &mut Table<'_>, scope: Scope, findings: &mut Findings) -> i64 {
    let Some(node) = table.get("clock_skew") else {
        return 0;
    };
    let parse = |text: &str| {
        let (sign, size) = match text.strip_prefix('-') {
            Some(size) => (-1, size),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let ns = i64::try_from(units::duration_ns(size)?);
        ns.map(|ns| sign * ns)
            .map_err(|_| format!("{text:?} is too long"))
    };
    scope.parsed(node, findings, parse).unwrap_or(0)
}

fn argument(scope: Scope, node: &Node, findings: &mut Findings) -> Option<Argument> {
    match &node.value {
        Value::Table(_) => {}
        Value::Integer(number) => return Some(Argument::Text(number.to_string())),
        _ => return scope.text(node, findings).map(Argument::Text),
    }
    let mut table = Table::new("args".to_owned(), node.spot, node, findings)?;
    let (length, least, most) = (table.get("symbolic"), table.get("least"), table.get("most"));
    table.finish(findings);
    let Some(length) = length else {
        let help = "write \"text\", { symbolic = 4 } or { symbolic = 4, least = 0, most = 2 }";
        findings.help(node.spot, "this is no argument", help);
        return None;
    };
    let length = scope.small(length, findings)?;
    if least.is_none() && most.is_none() {
        return Some(Argument::Symbolic { length });
    }
    let most_count = match most {
        Some(node) => scope.number(node, 1 << 16, findings)? as u32,
        None => 1,
    };
    let least_count = match least {
        Some(node) => scope.number(node, most_count.into(), findings)? as u32,
        None => 0,
    };
    Some(Argument::SymbolicMany {
        least: least_count,
        most: most_count,
        length,
    })
}

fn env_value(node: &Node, scope: Scope, findings: &mut Findings) -> Option<EnvValue> {
    match &node.value {
        Value::Table(_) => {}
        Value::Integer(number) => return Some(EnvValue::Text(number.to_string())),
        _ => return scope.text(node, findings).map(EnvValue::Text),
    }
    let mut table = Table::new("env".to_owned(), node.spot, node, findings)?;
    let length = table.get("symbolic");
    table.finish(findings);
    match length {
        Some(length) => {
            let length = scope.small(length, findings)?;
            Some(EnvValue::Symbolic { length })
        }
        None => {
            let help = "write \"text\" or { symbolic = 4 }";
            findings.help(node.spot, "this is no value of a variable", help);
            None
        }
    }
}

/// `exit 0`, `exit`, `signal 9`, `signal`, `running`.
fn expectation(text: &str) -> Result<Expectation, String> {
    let mut words = text.split_whitespace();
    let (what, number, rest) = (words.next(), words.next(), words.next());
    let code = number.map(|number| number.parse::<u8>());
    match (what, code, rest) {
        (Some("exit"), None, None) => Ok(Expectation::Exit(None)),
        (Some("exit"), Some(Ok(code)), None) => Ok(Expectation::Exit(Some(code))),
        (Some("signal"), None, None) => Ok(Expectation::Signal(None)),
        (Some("signal"), Some(Ok(number)), None) => Ok(Expectation::Signal(Some(number))),
        (Some("running"), None, None) => Ok(Expectation::Running),
        _ => Err(format!(
            "{text:?} is no end of a program; write \"exit 0\", \"exit\", \"signal 9\", \"signal\" or \"running\""
        )),
    }
}
