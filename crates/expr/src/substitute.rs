//! Substitution in terms.

use crate::arena::Arena;
use crate::node::ExprId;
use std::collections::HashMap;

impl Arena {
    /// Replaces each occurrence of a key of the map by its value, and simplifies the result.
    pub fn substitute(&mut self, root: ExprId, map: &HashMap<ExprId, ExprId>) -> ExprId {
        self.substitute_with(root, |e| map.get(&e).copied())
    }

    /// Replaces each subterm for which the function returns a replacement, and simplifies the
    /// result. Does not descend into replaced subterms.
    pub fn substitute_with(
        &mut self,
        root: ExprId,
        mut replacement: impl FnMut(ExprId) -> Option<ExprId>,
    ) -> ExprId {
        let mut done: HashMap<ExprId, ExprId> = HashMap::new();
        let mut stack = vec![root];
        while let Some(&e) = stack.last() {
            if done.contains_key(&e) {
                stack.pop();
                continue;
            }
            if let Some(new) = replacement(e) {
                assert_eq!(
                    self.width(e),
                    self.width(new),
                    "replacement of another width"
                );
                done.insert(e, new);
                stack.pop();
                continue;
            }
            let node = self.node(e);
            let before = stack.len();
            stack.extend(node.children().filter(|child| !done.contains_key(child)));
            if stack.len() == before {
                let unchanged = node.children().all(|child| done[&child] == child);
                let width = self.width(e);
                let new = if unchanged {
                    e
                } else {
                    self.rebuild(node, width, |child| done[&child])
                };
                done.insert(e, new);
                stack.pop();
            }
        }
        done[&root]
    }
}
