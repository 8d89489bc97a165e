//! What an invariant sees of a world.

use crate::terms::Byte;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The nodes of a world and the data that they show. A node is a process, or a host where it has one process; its number
/// is its place in the list. States are names; the numbers of the paper are names in decimal, `1` is `"1"`.
pub trait View {
    /// The names of the nodes, each of them once.
    fn nodes(&self) -> Vec<String>;

    /// The states and keys for which a node shows data, in an order that is always the same.
    fn exposed(&self, node: usize) -> Vec<(String, String)>;

    /// The data that a node shows for a state and key, if it does.
    fn data(&self, node: usize, state: &str, key: &str) -> Option<Cow<'_, [Byte]>>;
}

/// Data of nodes in tables: the plainest `View`.
#[derive(Clone, Default, Debug)]
pub struct Exposed {
    nodes: Vec<(String, Entries)>,
}

type Entries = BTreeMap<(String, String), Vec<Byte>>;

impl Exposed {
    /// No nodes.
    pub fn new() -> Exposed {
        Exposed::default()
    }

    /// One more node, and its number.
    pub fn add_node(&mut self, name: impl Into<String>) -> usize {
        self.nodes.push((name.into(), Entries::new()));
        self.nodes.len() - 1
    }

    /// Shows data of a node, in place of what it showed for the state and key before.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn expose(&mut self, node: usize, state: &str, key: &str, data: Vec<Byte>) {
        let entries = &mut self.nodes[node].1;
        entries.insert((state.to_owned(), key.to_owned()), data);
    }

    /// Shows known bytes of a node.
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
