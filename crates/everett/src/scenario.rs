//! Scenario files and the settings that override their keys. Owns which names of other crates a scenario may use.

use everett_engine::{MAPPINGS, SEARCHERS};
use everett_scenario::{Argument, NameContext, NameKind, OptionKey, Process, Scenario, Stdin};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::options::{option_keys, option_of};
use crate::spec::RunSpec;

/// A scenario file, and settings that override its keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScenarioSpec {
    /// The scenario's file.
    pub file: PathBuf,
    /// Keys and values that override those of the file.
    pub settings: Vec<(String, String)>,
    /// What takes the place of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
}

/// A program that takes the place of a client and sends one message.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sender {
    /// The client.
    pub host: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Other clients, which do nothing.
    pub idle: Vec<String>,
    /// The client runs, too: the message is sent later, from the same host.
    pub beside: bool,
}

impl Sender {
    fn process(&self, args: &[String]) -> Process {
        Process {
            name: "sender".to_owned(),
            program: self.program.clone(),
            args: args.iter().cloned().map(Argument::Text).collect(),
            env: Vec::new(),
            stdin: Stdin::Empty,
            cwd: None,
            expect: None,
        }
    }

    /// Takes the place of clients in a scenario.
    fn apply(&self, scenario: &mut Scenario) {
        for host in &mut scenario.hosts {
            let is_idle = self.idle.contains(&host.name);
            if host.name != self.host && !is_idle {
                continue;
            }
            let args = if is_idle { &[][..] } else { &self.args };
            if self.beside && !is_idle {
                host.processes.push(self.process(args));
                continue;
            }
            host.processes = vec![self.process(args)];
            host.programs.clear();
            host.watches.clear();
            host.begin = None;
        }
    }
}

/// Parses `KEY=VALUE`, where the key may have quoted parts.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '=') if at > 0 => {
                return Ok((text[..at].to_owned(), text[at + 1..].to_owned()));
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    Err("a setting is given as KEY=VALUE, such as host.server.count=3".to_owned())
}

/// Checks a name against those that exist.
fn known(what: &str, name: &str, names: &[&str]) -> Result<String, String> {
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    let names = names.join(", ");
    Err(format!("{name:?} is no {what}; there are: {names}"))
}

/// Checks the name of a searcher.
pub(crate) fn parse_searcher(name: &str) -> Result<String, String> {
    let names: Vec<&str> = SEARCHERS.iter().map(|row| row.name).collect();
    known("searcher", name, &names)
}

/// Checks the name of a state mapping.
pub(crate) fn parse_mapping(name: &str) -> Result<String, String> {
    let names: Vec<&str> = MAPPINGS.iter().map(|(name, _)| *name).collect();
    known("state mapping", name, &names)
}

/// Resolves names in scenarios: files of the disk, and names that other crates define.
struct Here;

impl NameContext for Here {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        match kind {
            NameKind::Call => {
                let is_known = everett_linux::rows().any(|row| row.name == name);
                let message = || format!("{name:?} is no system call of the model");
                is_known.then_some(()).ok_or_else(message)
            }
            NameKind::Watched => everett_invariant::FieldPath::parse(name)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            NameKind::ReplyPattern => everett_trojans::Pattern::parse(name)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            NameKind::Regex => everett_peers::pattern(name).map(|_| ()),
            NameKind::Invariant => everett_invariant::parse(name)
                .map(|_| ())
                .map_err(|error| error.to_string()),
        }
    }

    fn options(&self) -> Vec<OptionKey> {
        option_keys()
    }

    fn check_option(&self, key: &OptionKey, argument: &str) -> Result<(), String> {
        match option_of(key) {
            Some(option) => (option.set)(&mut RunSpec::default(), argument.as_ref()),
            None => Ok(()),
        }
    }
}

/// Reads a scenario.
pub fn load_scenario(spec: &ScenarioSpec) -> Result<Scenario> {
    let mut scenario = everett_scenario::load(&spec.file, &spec.settings, &Here)
        .map_err(|problems| Error::Scenario { problems })?;
    if let Some(sender) = &spec.sender {
        sender.apply(&mut scenario);
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_key_and_a_value() {
        let is = |text: &str, key: &str, value: &str| {
            let wanted = Ok((key.to_owned(), value.to_owned()));
            assert_eq!(parse_setting(text), wanted);
        };
        is("a.b=1", "a.b", "1");
        is("a.b=x=y", "a.b", "x=y");
        is("a.\"b=c\".d=", "a.\"b=c\".d", "");
        for bad in ["", "a", "=1", "\"a=1"] {
            assert!(parse_setting(bad).is_err(), "{bad}");
        }
    }
}
