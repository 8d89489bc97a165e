//! Source locations: from scopes and inlined-at chains to files, lines and functions.

use super::Reader;
use super::codes::metadata as code;
use super::metadata::Scope;
use crate::debug::{FileId, Location, SourceFile, Subprogram, SubprogramId};
use crate::module::LocId;

/// Maximum nesting of blocks or inlined calls, more than any program uses; it terminates malformed
/// chains.
const MAX_CHAIN: u32 = 512;

impl Reader<'_> {
    /// Returns the location of a DEBUG_LOC record; scope and inlined-at are numbers plus one.
    pub(super) fn location(
        &mut self,
        line: u64,
        column: u64,
        scope: u64,
        inlined_at: u64,
    ) -> Option<LocId> {
        let scope = self.scope(scope.checked_sub(1)?, 0);
        let inlined_at = match inlined_at.checked_sub(1) {
            Some(node) => self.location_node(node, 0),
            None => None,
        };
        Some(self.intern_location(line, column, scope, inlined_at))
    }

    fn intern_location(
        &mut self,
        line: u64,
        column: u64,
        scope: Scope,
        inlined_at: Option<LocId>,
    ) -> LocId {
        let location = Location {
            file: scope.file,
            line: u32::try_from(line).unwrap_or(0),
            column: u32::try_from(column).unwrap_or(0),
            subprogram: scope.subprogram,
            inlined_at,
        };
        let locations = &mut self.module.debug.locations;
        *self
            .metadata
            .interned_locations
            .entry(location)
            .or_insert_with(|| {
                locations.push(location);
                LocId::new(locations.len() - 1)
            })
    }

    /// Reads `DILocation`: `[distinct, line, column, scope, inlined-at + 1]`.
    fn location_node(&mut self, node: u64, depth: u32) -> Option<LocId> {
        let index = usize::try_from(node).ok()?;
        if let Some(Some(known)) = self.metadata.locations.get(index) {
            return *known;
        }
        if depth > MAX_CHAIN {
            return None;
        }
        let ops = self.metadata.record_of(node, code::LOCATION)?;
        let &[_, line, column, scope, inlined_at, ..] = ops else {
            return None;
        };
        let scope = self.scope(scope, 0);
        let inlined_at = match inlined_at.checked_sub(1) {
            Some(outer) => self.location_node(outer, depth + 1),
            None => None,
        };
        let found = Some(self.intern_location(line, column, scope, inlined_at));
        if self.metadata.locations.len() <= index {
            self.metadata
                .locations
                .resize(self.metadata.nodes.len(), None);
        }
        self.metadata.locations[index] = Some(found);
        found
    }

    /// Returns the file and function to which a scope belongs.
    fn scope(&mut self, node: u64, depth: u32) -> Scope {
        let Ok(index) = usize::try_from(node) else {
            return Scope::default();
        };
        if let Some(Some(known)) = self.metadata.scopes.get(index) {
            return *known;
        }
        let found = self.resolve_scope(node, depth).unwrap_or_default();
        if index < self.metadata.nodes.len() {
            if self.metadata.scopes.len() <= index {
                self.metadata.scopes.resize(self.metadata.nodes.len(), None);
            }
            self.metadata.scopes[index] = Some(found);
        }
        found
    }

    fn resolve_scope(&mut self, node: u64, depth: u32) -> Option<Scope> {
        if depth > MAX_CHAIN {
            return None;
        }
        let (found, ops) = self.metadata.record(node)?;
        match found {
            code::SUBPROGRAM => {
                let &[_, _, name, linkage_name, file, line, ..] = ops else {
                    return None;
                };
                let name = self.metadata.text_or_empty(name);
                let linkage_name = self.metadata.text_or_empty(linkage_name);
                let file = self.file(file);
                let line = u32::try_from(line).unwrap_or(0);
                let subprograms = &mut self.module.debug.subprograms;
                subprograms.push(Subprogram {
                    name,
                    linkage_name,
                    file,
                    line,
                });
                let subprogram = Some(SubprogramId(subprograms.len() as u32 - 1));
                Some(Scope { subprogram, file })
            }
            code::LEXICAL_BLOCK | code::LEXICAL_BLOCK_FILE => {
                let &[_, parent, file, ..] = ops else {
                    return None;
                };
                let parent = self.scope(parent.checked_sub(1)?, depth + 1);
                let file = self.file(file).or(parent.file);
                Some(Scope { file, ..parent })
            }
            _ => None,
        }
    }

    /// Returns the function of the source that a node describes.
    pub(super) fn subprogram(&mut self, node: u64) -> Option<SubprogramId> {
        self.scope(node, 0).subprogram
    }

    /// Returns the file that a reference (number plus one) denotes.
    pub(super) fn file(&mut self, reference: u64) -> Option<FileId> {
        let node = reference.checked_sub(1)?;
        let index = usize::try_from(node).ok()?;
        if let Some(&Some(known)) = self.metadata.files.get(index) {
            return Some(known);
        }
        let ops = self.metadata.record_of(node, code::FILE)?;
        let &[_, name, directory, ..] = ops else {
            return None;
        };
        let file = SourceFile {
            directory: self.metadata.text_or_empty(directory),
            name: self.metadata.text_or_empty(name),
        };
        let files = &mut self.module.debug.files;
        let id = *self
            .metadata
            .interned_files
            .entry(file)
            .or_insert_with_key(|file| {
                files.push(file.clone());
                FileId(files.len() as u32 - 1)
            });
        if self.metadata.files.len() <= index {
            self.metadata.files.resize(self.metadata.nodes.len(), None);
        }
        self.metadata.files[index] = Some(id);
        Some(id)
    }
}
