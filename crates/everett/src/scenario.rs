//! Scenario files and the settings that override their keys. Owns which names of other crates a
//! scenario may use.

use everett_scenario::{Argument, NameContext, NameKind, OptionKey, Process, Scenario, Stdin};
use std::path::Path;

use crate::disk::{Disk, RealDisk};
use crate::error::{Error, Result};
use crate::options::{option_keys, option_of};
use crate::spec::{RunSpec, ScenarioSpec, Sender};

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

    /// Replaces clients of a scenario by the sender.
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
            host.variables.clear();
            host.begin = None;
        }
    }
}

/// Resolves names in scenarios: files of a disk, and names that other crates define.
struct Here<'d>(&'d dyn Disk);

impl NameContext for Here<'_> {
    fn is_file(&self, path: &Path) -> bool {
        self.0.is_file(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.0.is_folder(path)
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn check(&self, kind: NameKind, name: &str) -> Result<(), String> {
        match kind {
            NameKind::Call => {
                let is_known = everett_linux::rows().any(|row| row.name == name);
                let message = || format!("{name:?} is not a system call of the model");
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
            Some(option) => option.set(&mut RunSpec::default(), argument.as_ref()),
            None => Ok(()),
        }
    }
}

/// Reads a scenario.
pub fn load_scenario(spec: &ScenarioSpec) -> Result<Scenario> {
    scenario_from(&RealDisk, spec)
}

/// Like [`load_scenario`], from any disk.
pub(crate) fn scenario_from(disk: &dyn Disk, spec: &ScenarioSpec) -> Result<Scenario> {
    let mut scenario = everett_scenario::load(&spec.file, &spec.settings, &Here(disk))
        .map_err(|problems| Error::Scenario { problems })?;
    if let Some(sender) = &spec.sender {
        sender.apply(&mut scenario);
    }
    Ok(scenario)
}
