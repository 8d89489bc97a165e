//! Checks and completes specs by the table of options: validates values, applies defaults and
//! the settings of a scenario, and rejects options that cannot be combined with a scenario.
//! Must not know any command line.

use everett_scenario::{OptionSetting, Scenario};
use std::path::Path;

use crate::check::{Checked, no_nul};
use crate::error::{Error, Result, bail};
use crate::host::HostSpec;
use crate::options::{OPTIONS, RunOption, Scope, option, set_options};
use crate::spec::{RunSpec, VERSION};

impl RunSpec {
    /// Checks all values of the spec. Every operation does so first; the error is
    /// [`Error::InvalidValue`], or [`Error::Usage`] if no program is named.
    pub fn check(&self) -> Result<()> {
        if self.command.is_empty() {
            bail!(Usage, "the run names no program");
        }
        let invalid =
            |field: &'static str| move |message: String| Error::InvalidValue { field, message };
        self.check_version().map_err(invalid("version"))?;
        let mut words = self.command.iter();
        words
            .try_for_each(|word| no_nul(word))
            .map_err(invalid("command"))?;
        let said = serde_json::to_value(self)?;
        let usual = serde_json::to_value(RunSpec::default())?;
        let is_set = |field: &str| said.get(field) != usual.get(field);
        for row in OPTIONS {
            row.check(self).map_err(invalid(row.field))?;
            let required = row.requires.and_then(option).map(|other| other.field);
            if let Some(other) = required.filter(|other| is_set(row.field) && !is_set(other)) {
                let message = format!("it has no effect without `{other}`");
                return Err(invalid(row.field)(message));
            }
        }
        Ok(())
    }

    fn check_version(&self) -> Checked {
        match self.version {
            None | Some(VERSION) => Ok(()),
            Some(version) => Err(format!(
                "{version} is not the version of this library, which is {VERSION}"
            )),
        }
    }
}

impl RunSpec {
    /// Refuses options for single programs. A scenario sets them per host; options that it cannot
    /// set are not supported for worlds yet.
    pub(crate) fn refuse_what_scenarios_say(&self) -> Result<()> {
        if self.command.len() > 1 {
            bail!(
                Usage,
                "a scenario takes no arguments; set those of its programs with `settings` host.NAME.args=..."
            );
        }
        self.expect_no(Scope::refusal_by_scenarios)
    }

    /// Refuses options that have no effect on a program, which boots a world or not.
    pub(crate) fn refuse_what_programs_lack(&self, boots: bool) -> Result<()> {
        self.expect_no(|scope| scope.refusal_by_programs(boots))
    }

    /// Fails if an option is set that is refused, by its scope.
    pub(crate) fn expect_no(&self, refusal: impl Fn(Scope) -> Option<&'static str>) -> Result<()> {
        let usual = serde_json::to_value(RunSpec::default())?;
        let said = serde_json::to_value(self)?;
        for option in OPTIONS {
            if let Some(message) = refusal(option.scope)
                && said.get(option.field) != usual.get(option.field)
            {
                return Err(Error::not_applicable(option.field, message));
            }
        }
        Ok(())
    }

    /// Returns the spec for exploring the scenario of a world that the program boots. Options of
    /// its hosts are omitted, since the scenario contains them.
    pub(crate) fn for_world(&self, scenario: &Path) -> Result<RunSpec> {
        let said = serde_json::to_value(self)?;
        let mut world = serde_json::to_value(RunSpec::new([scenario]))?;
        let options = OPTIONS.iter();
        for option in options.filter(|option| option.scope.is_of_booted_world()) {
            world[option.field] = said[option.field].clone();
        }
        Ok(serde_json::from_value(world)?)
    }

    /// Returns the spec with the options of a scenario, where this spec has none.
    pub(crate) fn with_scenario(&self, scenario: &Scenario) -> Result<RunSpec> {
        let said = serde_json::to_value(self)?;
        let usual = serde_json::to_value(RunSpec::default())?;
        let mut spec = self.clone();
        let is_open = |option: &RunOption| said.get(option.field) == usual.get(option.field);
        set_options(&mut spec, &scenario.options, is_open).map_err(Error::Invalid)?;
        Ok(spec)
    }

    /// Returns the spec with defaults for missing options.
    pub(crate) fn with_defaults(&self) -> Result<RunSpec> {
        let said = serde_json::to_value(self)?;
        let mut spec = self.clone();
        for option in OPTIONS.iter().filter(|option| said[option.field].is_null()) {
            if let Some(default) = option.default {
                option
                    .set(&mut spec, default.as_ref())
                    .map_err(|message| Error::InvalidValue {
                        field: option.field,
                        message,
                    })?;
            }
        }
        Ok(spec)
    }
}

impl HostSpec {
    /// Returns the options of a host in a scenario, without its programs and files.
    pub(crate) fn of_scenario(options: &[OptionSetting]) -> Result<HostSpec> {
        let mut spec = RunSpec::default();
        set_options(&mut spec, options, |_| true).map_err(Error::Invalid)?;
        Ok(spec.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_linux::{HostOptions, PreemptAt, Scheduler};
    use everett_scenario::{OptionKey, OptionKind, OptionValue};

    /// Fields that are not options.
    const NO_OPTIONS: &[&str] = &["version", "command", "started_in"];

    #[test]
    fn every_field_is_an_option_and_every_option_a_field() {
        let spec = serde_json::to_value(RunSpec::default()).unwrap();
        let fields: Vec<&str> = spec
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for field in &fields {
            let is_option = OPTIONS.iter().any(|option| option.field == *field);
            assert_ne!(is_option, NO_OPTIONS.contains(field), "{field}");
        }
        for option in OPTIONS {
            assert!(fields.contains(&option.field), "{}", option.name);
        }
    }

    #[test]
    fn defaults_fill_what_is_empty() {
        let usual = RunSpec::default().with_defaults().unwrap();
        assert_eq!(
            (usual.max_memory, usual.batch),
            (Some(4 << 30), Some(10_000))
        );
        assert_eq!(
            (usual.solver_work, usual.solver_time),
            (Some(100_000_000), None)
        );
        let said = RunSpec {
            seed: Some(3),
            ..RunSpec::default()
        };
        assert_eq!(said.with_defaults().unwrap().seed, Some(3));
    }

    #[test]
    fn a_scheduler_of_a_scenario_preempts_where_that_of_a_program_does() {
        let key = OptionKey {
            table: "host",
            name: "scheduler",
            kind: OptionKind::Text,
            default: None,
        };
        let value = Some(OptionValue::Texts(vec!["bounded:2".to_owned()]));
        let spec = HostSpec::of_scenario(&[OptionSetting { key, value }]).unwrap();
        let mut options = HostOptions::default();
        spec.apply_options(&mut options).unwrap();
        assert_eq!(options.scheduler, Scheduler::parse("bounded:2").unwrap());
        assert_eq!(options.preempt_at, PreemptAt::Atomics);
    }
}
