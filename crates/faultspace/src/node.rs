//! A node: runs the tests of another machine's search on this one.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::SearchFile;
use crate::error::{Error, Result};
use crate::nodes::{Task, digest_of};
use crate::space::{Scenario, Space};
use crate::system::System;

/// A node to start.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    /// The search file of this machine.
    pub file: PathBuf,
    /// An empty folder for this node only.
    pub scratch: PathBuf,
    /// The command that starts a manager ([`crate::manager::manage`]).
    pub manager: Vec<OsString>,
}

/// A node: runs the tests of a search on this machine.
pub struct Node {
    system: System,
    space: Space,
    search: String,
}

impl Node {
    /// Creates a node.
    pub fn new(spec: &NodeSpec) -> Result<Node> {
        let SearchFile { config, space } = SearchFile::read(&spec.file)?;
        Ok(Node {
            system: System::new(&config, &spec.manager, &spec.scratch)?,
            space,
            search: digest_of(&config),
        })
    }

    /// Does a task; `None` if it belongs to another search.
    pub fn answer(&self, task: &[u8]) -> Option<Vec<u8>> {
        let task: Task = serde_json::from_slice(task).ok()?;
        if task.search != self.search {
            return None;
        }
        let seen = self.scenario(&task.scenario).and_then(|scenario| {
            let seen = match task.is_faulty {
                true => self.system.run(&scenario),
                false => self.system.run_without(&scenario),
            };
            seen.map_err(|error| match error {
                Error::Manager(why) => why,
                error => error.to_string(),
            })
        });
        serde_json::to_vec(&seen).ok()
    }

    /// Returns the scenario with a text. Others are refused: their words would be parts of commands.
    fn scenario(&self, text: &str) -> std::result::Result<Scenario, String> {
        let point = self.space.find(&Scenario::parse(text)?);
        let point = point.ok_or_else(|| format!("the space of the node has no scenario {text}"))?;
        Ok(self.space.scenario(&point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::task_of;

    /// Creates a node whose manager never answers.
    fn node(folder: &std::path::Path) -> Node {
        let file = folder.join("s.toml");
        let text =
            "space = 'test : { a, \"b c\" } n : <1,3>;'\ninjector = \"script\"\ntest = \"true\"\n";
        std::fs::write(&file, text).unwrap();
        let spec = NodeSpec {
            file,
            scratch: folder.to_owned(),
            manager: vec!["false".into()],
        };
        Node::new(&spec).unwrap()
    }

    fn said(node: &Node, search: &str, scenario: &str) -> Option<String> {
        let answer = node.answer(&task_of(search, scenario, true))?;
        let seen: std::result::Result<crate::manager::Seen, String> =
            serde_json::from_slice(&answer).unwrap();
        seen.err()
    }

    #[test]
    fn a_node_does_only_scenarios_of_its_space() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let own = node.search.clone();
        for scenario in ["test a n <1,2>", "test \"b c\" n <3,3>"] {
            let why = said(&node, &own, scenario).unwrap_or_default();
            assert!(why.contains("it died"), "{why}");
        }
        for scenario in [
            "test ../a n <1,2>",
            "test a n <1,4>",
            "test a",
            "test a n <1,2> x 1",
        ] {
            let why = said(&node, &own, scenario).unwrap_or_default();
            assert!(why.contains("no scenario"), "{why}");
        }
        assert_eq!(said(&node, "other", "test a n <1,2>"), None);
        assert_eq!(node.answer(b"{"), None);
    }
}
