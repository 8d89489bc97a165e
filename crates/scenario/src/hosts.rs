//! Reads `[host.*]`: the programs, files and inputs of hosts.

use everett_net::{HostIndex, MAX_HOSTS};
use std::path::{Path, PathBuf};

use crate::model::{
    Argument, EnvValue, Expectation, FileSource, HostSetup, OtherProgram, Process, Start, Stdin,
    SymbolicVariable, Watch,
};
use crate::options::read_options;
use crate::placement::{KnownNames, NodeRequest, read_placement};
use crate::reader::{Table, ValueReader, bounds, wrong};
use crate::source::Diagnostics;
use crate::template::Numbering;
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::units;
use crate::{NameContext, NameKind};

/// The context for reading hosts.
pub(crate) struct HostReader<'r> {
    pub folder: &'r Path,
    /// The folder of the scenario file.
    pub beside: &'r Path,
    pub context: &'r dyn NameContext,
    pub defaults: &'r [TomlEntry],
}

/// The table of a host, and its number among the `count` hosts that it declares.
pub(crate) struct HostEntry<'t> {
    pub entry: &'t TomlEntry,
    pub name: String,
    pub values: ValueReader,
    pub number: u32,
}

/// Expands all host tables to named hosts. The rest of each table is read later.
pub(crate) fn expand<'t>(
    entries: &'t [TomlEntry],
    diagnostics: &mut Diagnostics,
) -> Vec<HostEntry<'t>> {
    let mut hosts = Vec::new();
    for entry in entries {
        let count = match &entry.node.value {
            TomlValue::Table(keys) => keys.iter().find(|key| key.key == "count"),
            _ => None,
        };
        let Some(count) = count else {
            hosts.push(HostEntry {
                entry,
                name: entry.key.clone(),
                values: ValueReader::default(),
                number: 0,
            });
            continue;
        };
        let most = MAX_HOSTS as u64;
        let count = ValueReader::default().number(&count.node, most, diagnostics);
        let count = count.unwrap_or(0) as u32;
        for number in 0..count {
            let values = ValueReader {
                numbering: Some(Numbering { number, count }),
            };
            let name = match entry.key.contains('{') {
                true => values.fill(&entry.key, entry.key_span, diagnostics),
                false => Some(format!("{}{number}", entry.key)),
            };
            hosts.extend(name.map(|name| HostEntry {
                entry,
                name,
                values,
                number,
            }));
        }
    }
    hosts
}

impl HostReader<'_> {
    /// Reads a host: its programs and its network placement.
    pub fn read(
        &self,
        host: &HostEntry<'_>,
        index: HostIndex,
        known: &KnownNames<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<(HostSetup, NodeRequest)> {
        let (entry, values) = (host.entry, host.values);
        let path = format!("host.{}", entry.key);
        let table = Table::new(path, entry.key_span, &entry.node, diagnostics)?;
        let mut table = table.with_defaults(self.defaults);
        table.get("count");
        let place = read_placement(
            host.name.clone(),
            false,
            &mut table,
            values,
            known,
            diagnostics,
        );
        let setup = HostSetup {
            index,
            name: host.name.clone(),
            group: entry.key.clone(),
            number: host.number,
            processes: self.processes(&mut table, values, diagnostics),
            programs: self.other_programs(&mut table, values, diagnostics),
            files: self.files(&mut table, values, diagnostics),
            start: start(&mut table, values, diagnostics),
            begin: self.begin(&mut table, values, diagnostics),
            stop_ns: table
                .get("stop")
                .and_then(|node| values.duration_ns(node, diagnostics)),
            clock_skew_ns: skew(&mut table, values, diagnostics),
            symbolic_clock: table.get("clock").is_some_and(|node| {
                let words = [("virtual", false), ("symbolic", true)];
                values.word(node, &words, diagnostics).unwrap_or_default()
            }),
            options: read_options("host", &mut table, values, self.context, diagnostics),
            watches: self.watches(&mut table, values, diagnostics),
            variables: self.variables(&mut table, diagnostics),
            peer: None,
        };
        table.finish(diagnostics);
        Some((setup, place))
    }

    fn processes(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Process> {
        let first_name = table.path.rsplit('.').next().unwrap_or_default().to_owned();
        let others = table.below("process", diagnostics);
        let mut processes = Vec::new();
        processes.extend(self.process(first_name, others.is_empty(), table, values, diagnostics));
        for entry in others {
            let path = format!("{}.process.{}", table.path, entry.key);
            let own = Table::new(path, entry.key_span, &entry.node, diagnostics);
            if let Some(mut own) = own {
                let process = self.process(entry.key.clone(), true, &mut own, values, diagnostics);
                processes.extend(process);
                own.finish(diagnostics);
            }
        }
        processes
    }

    fn process(
        &self,
        name: String,
        is_needed: bool,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<Process> {
        let program = match table.get("program") {
            Some(node) => self.program(node, values, diagnostics),
            None => {
                if is_needed {
                    let message = format!("[{}] has no program", table.path);
                    diagnostics.help(
                        table.span,
                        message,
                        "say what it runs: program = \"./server\"",
                    );
                }
                None
            }
        };
        let args = table.get("args");
        let args = args.map_or_else(Vec::new, |node| match &node.value {
            TomlValue::List(_) => values.list(node, diagnostics, argument),
            other => {
                wrong(node, "an array of strings", other, diagnostics);
                Vec::new()
            }
        });
        let env = table.below("env", diagnostics).iter().filter_map(|entry| {
            let name = values.fill(&entry.key, entry.key_span, diagnostics)?;
            if name.is_empty() || name.contains('=') {
                diagnostics.error(entry.key_span, format!("{name:?} is not a variable name"));
            }
            Some((name, env_value(&entry.node, values, diagnostics)?))
        });
        let env = env.collect();
        let stdin = table.get("stdin");
        let stdin = stdin.and_then(|node| self.stdin(node, values, diagnostics));
        let cwd = table.get("cwd");
        let cwd = cwd.and_then(|node| values.text(node, diagnostics));
        let expect = table.get("expect");
        let expect = expect.and_then(|node| values.parsed(node, diagnostics, expectation));
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

    fn program(
        &self,
        node: &TomlNode,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<PathBuf> {
        let text = values.text(node, diagnostics)?;
        let path = self.path(&text);
        let mut bitcode = path.clone().into_os_string();
        bitcode.push(".bc");
        if text.is_empty()
            || !(self.context.is_file(&path) || self.context.is_file(Path::new(&bitcode)))
        {
            let message = format!("there is no program {}", path.display());
            diagnostics.help(node.span, message, "build it with everett cc, c++ or cargo");
        }
        Some(path)
    }

    /// Reads a path on the real disk that must exist.
    fn existing(
        &self,
        node: &TomlNode,
        text: &str,
        wants_folder: bool,
        diagnostics: &mut Diagnostics,
    ) -> PathBuf {
        let path = self.path(text);
        let (is_file, is_folder) = (self.context.is_file(&path), self.context.is_folder(&path));
        let help = "relative paths start at the folder of the scenario";
        if wants_folder && is_file {
            let message = format!("{} is not a folder", path.display());
            diagnostics.help(
                node.span,
                message,
                "single files are given as file = { \"/PATH\" = \"FILE\" }",
            );
        } else if !is_file && !is_folder {
            diagnostics.help(node.span, format!("there is no {}", path.display()), help);
        }
        path
    }

    /// Reads the path of a trace file beside the scenario.
    fn begin(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<PathBuf> {
        let node = table.get("begin")?;
        let path = self.beside.join(values.text(node, diagnostics)?);
        if !self.context.is_file(&path) {
            let message = format!("there is no trace {}", path.display());
            let help = "everett run PROGRAM writes it where the program sets up its hosts itself (netklee.h)";
            diagnostics.help(node.span, message, help);
        }
        Some(path)
    }

    fn stdin(
        &self,
        node: &TomlNode,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<Stdin> {
        let TomlValue::Table(_) = &node.value else {
            return values.text(node, diagnostics).map(Stdin::Text);
        };
        let mut table = Table::new("stdin".to_owned(), node.span, node, diagnostics)?;
        let (size, file) = (table.get("symbolic"), table.get("file"));
        table.finish(diagnostics);
        match (size, file) {
            (Some(size), None) => {
                let size = values.small(size, diagnostics)?;
                Some(Stdin::Symbolic { size })
            }
            (None, Some(file)) => {
                let text = values.text(file, diagnostics)?;
                Some(Stdin::File(self.existing(file, &text, false, diagnostics)))
            }
            _ => {
                let help = "write \"text\", { symbolic = 16 } or { file = \"FILE\" }";
                diagnostics.help(node.span, "this is not a standard input", help);
                None
            }
        }
    }

    fn other_programs(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<OtherProgram> {
        let mut programs = Vec::new();
        let Some(node) = table.get("programs") else {
            return programs;
        };
        if let TomlValue::Table(entries) = &node.value {
            for entry in entries {
                let guest_path = values.fill(&entry.key, entry.key_span, diagnostics);
                let program = self.program(&entry.node, values, diagnostics);
                programs.extend(program.map(|program| OtherProgram {
                    program,
                    guest_path,
                }));
            }
            return programs;
        }
        values.list(node, diagnostics, |values, node, diagnostics| {
            Some(OtherProgram {
                program: self.program(node, values, diagnostics)?,
                guest_path: None,
            })
        })
    }

    fn files(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<FileSource> {
        let mut files = Vec::new();
        let mounts = table.get("ro");
        if let Some(node) = mounts {
            files.extend(values.list(node, diagnostics, |values, node, diagnostics| {
                let text = values.text(node, diagnostics)?;
                let (from, to) = text.split_once('=').unwrap_or((&text, &text));
                let from = self.existing(node, from, false, diagnostics);
                let to = to.to_owned();
                Some(FileSource::Mount { from, to })
            }));
        }
        if let Some(node) = table.get("files") {
            files.extend(values.list(node, diagnostics, |values, node, diagnostics| {
                let text = values.text(node, diagnostics)?;
                let path = self.existing(node, &text, true, diagnostics);
                Some(FileSource::Folder(path))
            }));
        }
        for entry in table.below("file", diagnostics) {
            files.extend(self.file(entry, values, diagnostics));
        }
        files
    }

    /// Reads a file of the guest: `"/PATH" = "FILE"`, `{ text = … }` or `{ symbolic = N }`.
    fn file(
        &self,
        entry: &TomlEntry,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<FileSource> {
        let to = values.fill(&entry.key, entry.key_span, diagnostics)?;
        let node = &entry.node;
        let TomlValue::Table(_) = &node.value else {
            let text = values.text(node, diagnostics)?;
            let from = self.existing(node, &text, false, diagnostics);
            return Some(FileSource::File { to, from });
        };
        let mut table = Table::new(format!("file.{to}"), entry.key_span, node, diagnostics)?;
        let (text, size, least) = (table.get("text"), table.get("symbolic"), table.get("least"));
        table.finish(diagnostics);
        match (text, size) {
            (Some(text), None) => {
                let text = values.text(text, diagnostics)?;
                Some(FileSource::Text { to, text })
            }
            (None, Some(size)) => {
                let most = values.small(size, diagnostics)?;
                let least = match least {
                    Some(node) => values.number(node, most.into(), diagnostics)? as u32,
                    None => most,
                };
                Some(FileSource::Symbolic { to, least, most })
            }
            _ => {
                let help = "write \"FILE\", { text = \"...\" } or { symbolic = 16 }";
                diagnostics.help(node.span, "this is not a file", help);
                None
            }
        }
    }

    /// Reads a name that another crate defines.
    fn known_name(
        &self,
        kind: NameKind,
        node: &TomlNode,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let text = values.text(node, diagnostics)?;
        if let Err(message) = self.context.check(kind, &text) {
            diagnostics.error(node.span, message);
        }
        Some(text)
    }

    /// Reads variables, each with its bounds or `"any"`.
    fn variables(
        &self,
        table: &mut Table<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<SymbolicVariable> {
        let mut variables = Vec::new();
        for entry in table.below("symbolic", diagnostics) {
            if let Err(message) = self.context.check(NameKind::Watched, &entry.key) {
                diagnostics.error(entry.key_span, message);
            }
            let range = match &entry.node.value {
                TomlValue::Text(text) if text == "any" => None,
                _ => match bounds(&entry.node, diagnostics) {
                    Some(range) => Some(range),
                    None => continue,
                },
            };
            variables.push(SymbolicVariable {
                path: entry.key.clone(),
                range,
                place: diagnostics.place(entry.key_span),
            });
        }
        variables
    }

    fn watches(
        &self,
        table: &mut Table<'_>,
        values: ValueReader,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Watch> {
        let mut watches = Vec::new();
        for entry in table.below("watch", diagnostics) {
            let Some(key) = values.fill(&entry.key, entry.key_span, diagnostics) else {
                continue;
            };
            let node = &entry.node;
            if !matches!(node.value, TomlValue::Table(_)) {
                let path = self.known_name(NameKind::Watched, node, values, diagnostics);
                let state = "0".to_owned();
                watches.extend(path.map(|path| Watch { key, state, path }));
                continue;
            }
            let own = Table::new(format!("watch.{key}"), entry.key_span, node, diagnostics);
            let Some(mut own) = own else { continue };
            let (path, state) = (own.get("path"), own.get("state"));
            own.finish(diagnostics);
            let state = match state.map(|node| (&node.value, node)) {
                Some((TomlValue::Integer(state), _)) => state.to_string(),
                Some((_, node)) => values.text(node, diagnostics).unwrap_or_default(),
                None => "0".to_owned(),
            };
            match path {
                Some(node) => {
                    let path = self.known_name(NameKind::Watched, node, values, diagnostics);
                    watches.extend(path.map(|path| Watch { key, state, path }));
                }
                None => {
                    let help = "write \"VARIABLE\" or { path = \"VARIABLE\", state = 1 }";
                    diagnostics.help(node.span, "this says not what to watch", help);
                }
            }
        }
        watches
    }
}

pub(crate) fn start(
    table: &mut Table<'_>,
    values: ValueReader,
    diagnostics: &mut Diagnostics,
) -> Start {
    let Some(node) = table.get("start") else {
        return Start::default();
    };
    match &node.value {
        TomlValue::Text(text) if text == "blocked" => return Start::Blocked,
        TomlValue::Text(text) if text == "together" => return Start::Together,
        _ => {}
    }
    let parse = |text: &str| {
        units::duration_ns(text)
            .map_err(|why| format!("{why}; or write \"blocked\" for when the hosts before it wait"))
    };
    let at = match node.value {
        TomlValue::Text(_) => values.parsed(node, diagnostics, parse),
        _ => values.duration_ns(node, diagnostics),
    };
    at.map_or(Start::default(), Start::At)
}

fn skew(table: &mut Table<'_>, values: ValueReader, diagnostics: &mut Diagnostics) -> i64 {
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
    values.parsed(node, diagnostics, parse).unwrap_or(0)
}

fn argument(
    values: ValueReader,
    node: &TomlNode,
    diagnostics: &mut Diagnostics,
) -> Option<Argument> {
    match &node.value {
        TomlValue::Table(_) => {}
        TomlValue::Integer(number) => return Some(Argument::Text(number.to_string())),
        _ => return values.text(node, diagnostics).map(Argument::Text),
    }
    let mut table = Table::new("args".to_owned(), node.span, node, diagnostics)?;
    let (length, least, most) = (table.get("symbolic"), table.get("least"), table.get("most"));
    table.finish(diagnostics);
    let Some(length) = length else {
        let help = "write \"text\", { symbolic = 4 } or { symbolic = 4, least = 0, most = 2 }";
        diagnostics.help(node.span, "this is not an argument", help);
        return None;
    };
    let length = values.small(length, diagnostics)?;
    if least.is_none() && most.is_none() {
        return Some(Argument::Symbolic { length });
    }
    let most_count = match most {
        Some(node) => values.number(node, 1 << 16, diagnostics)? as u32,
        None => 1,
    };
    let least_count = match least {
        Some(node) => values.number(node, most_count.into(), diagnostics)? as u32,
        None => 0,
    };
    Some(Argument::SymbolicMany {
        least: least_count,
        most: most_count,
        length,
    })
}

fn env_value(
    node: &TomlNode,
    values: ValueReader,
    diagnostics: &mut Diagnostics,
) -> Option<EnvValue> {
    match &node.value {
        TomlValue::Table(_) => {}
        TomlValue::Integer(number) => return Some(EnvValue::Text(number.to_string())),
        _ => return values.text(node, diagnostics).map(EnvValue::Text),
    }
    let mut table = Table::new("env".to_owned(), node.span, node, diagnostics)?;
    let length = table.get("symbolic");
    table.finish(diagnostics);
    match length {
        Some(length) => {
            let length = values.small(length, diagnostics)?;
            Some(EnvValue::Symbolic { length })
        }
        None => {
            let help = "write \"text\" or { symbolic = 4 }";
            diagnostics.help(node.span, "this is not the value of a variable", help);
            None
        }
    }
}

/// Parses `exit 0`, `exit`, `signal 9`, `signal`, `running`.
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
            "{text:?} is not an expected end; write \"exit 0\", \"exit\", \"signal 9\", \"signal\" or \"running\""
        )),
    }
}
