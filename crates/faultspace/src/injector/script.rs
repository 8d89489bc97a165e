//! `script`: runs the user's own commands, with the scenario in their arguments, in their
//! environment and as JSON.

use super::{Injection, Injector, Means};
use crate::space::Scenario;

/// The injector.
pub(super) struct Script;

impl Injector for Script {
    fn plan(&self, _: &Scenario, _: &Means) -> Result<Injection, String> {
        Ok(Injection::Nothing)
    }

    fn attributes(&self) -> &'static [&'static str] {
        &[]
    }

    fn passes_scenario(&self) -> bool {
        true
    }
}
