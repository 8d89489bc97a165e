//! The view: the part of a world that an invariant observes.

use crate::terms::Byte;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The nodes of a world and the data they expose. A node is a process, or a host if it has one
/// process; its number is its index in the list. States are names; the numbers of the paper are
/// decimal names: `1` is `"1"`.
pub trait View {
    /// Returns the names of the nodes, each once.
    fn nodes(&self) -> Vec<String>;

    /// Returns the states and keys for which a node exposes data, in a fixed order.
    fn exposed(&self, node: usize) -> Vec<(String, String)>;

    /// Returns the data that a node exposes for a state and key, if any.
    fn data(&self, node: usize, state: &str, key: &str) -> Option<Cow<'_, [Byte]>>;
}

/// A simple `View` with the data of nodes in tables.
#[derive(Clone, Default, Debug)]
pub struct Exposed {
    nodes: Vec<(String, Entries)>,
}

type Entries = BTreeMap<(String, String), Vec<Byte>>;

impl Exposed {
    /// Creates a view without nodes.
    pub fn new() -> Exposed {
        Exposed::default()
    }

    /// Adds a node and returns its number.
    pub fn add_node(&mut self, name: impl Into<String>) -> usize {
        self.nodes.push((name.into(), Entries::new()));
        self.nodes.len() - 1
    }

    /// Exposes data of a node, replacing the data for the same state and key.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn expose(&mut self, node: usize, state: &str, key: &str, data: Vec<Byte>) {
        let entries = &mut self.nodes[node].1;
        entries.insert((state.to_owned(), key.to_owned()), data);
    }

    /// Exposes known bytes of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn expose_known(&mut self, node: usize, state: &str, key: &str, data: &[u8]) {
        let data = data.iter().map(|byte| Byte::Known(*byte)).collect();
        self.expose(node, state, key, data);
    }
}

impl View for Exposed {
    fn nodes(&self) -> Vec<String> {
        self.nodes.iter().map(|(name, _)| name.clone()).collect()
    }

    fn exposed(&self, node: usize) -> Vec<(String, String)> {
        let entries = self.nodes.get(node).into_iter();
        entries
            .flat_map(|(_, entries)| entries.keys().cloned())
            .collect()
    }

    fn data(&self, node: usize, state: &str, key: &str) -> Option<Cow<'_, [Byte]>> {
        let (_, entries) = self.nodes.get(node)?;
        let data = entries.get(&(state.to_owned(), key.to_owned()))?;
        Some(Cow::Borrowed(data))
    }
}
