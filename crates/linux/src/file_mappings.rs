//! File mappings. While a process runs, the pages of the files that it maps are in its memory;
//! between time slices and during system calls they are in the files.
//!
//! Only one process of a host runs at a time, so all processes see the same pages, and a program
//! without file mappings pays nothing.

use everett_vm::{FileView, Memory, Pages};
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::files::{Held, Inode, InodeKind};
use crate::host::HostState;
use crate::ids::{DescriptionId, InodeId};

/// How many objects of a memory map a file.
fn views_of(memory: &Memory, file: u32) -> usize {
    memory.views().filter(|view| view.file == file).count()
}

/// Writes changes made through a mapping back to the file.
fn put_back(bytes: &mut Bytes, view: &mut FileView) {
    let Some(pages) = view.pages.take() else {
        return;
    };
    let Some(base) = view.base.take() else {
        // No other process has used the file meanwhile.
        return bytes.set_pages(Some(pages));
    };
    if Arc::ptr_eq(&pages, &base) {
        return;
    }
    if bytes.has_pages(&base) {
        return bytes.set_pages(Some(pages));
    }
    let merged = merge(bytes, &pages, &base);
    bytes.set_pages(Some(merged));
}

/// The pages of a file after a mapping that started from `base` has changed some of them.
fn merge(bytes: &mut Bytes, pages: &Pages, base: &Pages) -> Pages {
    let mut merged = (*bytes.pages()).clone();
    let end = bytes.len().div_ceil(everett_vm::PAGE as u64) as usize;
    for (index, page) in pages.iter().enumerate().take(end) {
        let before = base.get(index).and_then(Option::as_ref);
        let changed = match (page, before) {
            (Some(page), Some(before)) => !Arc::ptr_eq(page, before),
            (page, before) => page.is_some() != before.is_some(),
        };
        if changed {
            if merged.len() <= index {
                merged.resize(index + 1, None);
            }
            merged[index] = page.clone();
        }
    }
    Arc::new(merged)
}

impl HostState {
    fn mapped_bytes(&mut self, file: u32) -> Option<&mut Bytes> {
        match &mut self.files.tree.get_mut(InodeId(file)).kind {
            InodeKind::Regular(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Before a process runs: moves the pages of its mapped files into its memory.
    pub(crate) fn load_views(&mut self, memory: &mut Memory) {
        let files: Vec<(u32, usize)> = memory
            .views()
            .map(|view| (view.file, views_of(memory, view.file)))
            .collect();
        let mut files = files.into_iter();
        memory.for_each_view(|view| {
            let alone = files.next().is_none_or(|(_, views)| views == 1);
            let Some(bytes) = self.mapped_bytes(view.file) else {
                return;
            };
            view.len = bytes.len();
            let pages = bytes.pages();
            // If no other process has the pages, the process changes them in place.
            view.base = (!alone).then(|| pages.clone());
            view.pages = Some(pages);
            if alone {
                bytes.set_pages(None);
            }
        });
    }

    /// Updates the times of files whose pages were written through shared mappings. A real kernel
    /// notices such a write by a page fault: each process faults once for each page, until the file
    /// is synchronised or unmapped.
    fn note_writes(&mut self, memory: &mut Memory) {
        let mut written = Vec::new();
        memory.for_each_view(|view| written.push((view.file, view.written.take())));
        for (file, pages) in written {
            self.note_mapped_writes(InodeId(file), pages);
        }
    }

    /// The running process has written pages of a file that it maps.
    pub(crate) fn note_mapped_writes(
        &mut self,
        file: InodeId,
        pages: impl IntoIterator<Item = u64>,
    ) {
        let now_ns = self.wall_clock_ns();
        let writer = self.tasks.get(self.schedule.running).map(|task| task.pid);
        let new = writer.is_some_and(|pid| self.files.dirty_pages.add(pid, file, pages));
        if new {
            self.files.tree.get_mut(file).touch(now_ns);
        }
    }

    /// After a process ran: moves the pages back into the files.
    pub(crate) fn store_views(&mut self, memory: &mut Memory) {
        self.note_writes(memory);
        memory.for_each_view(|view| {
            if let Some(bytes) = self.mapped_bytes(view.file) {
                put_back(bytes, view);
            }
        });
    }

    /// At the start of a system call: copies changed pages into the files; the
    /// process still sees them in its memory.
    pub(crate) fn flush_views(&mut self, memory: &mut Memory) {
        self.note_writes(memory);
        let alone: Vec<bool> = memory
            .views()
            .map(|view| views_of(memory, view.file) == 1)
            .collect();
        if alone.iter().any(|alone| !alone) {
            self.store_views(memory);
        }
        memory.for_each_view(|view| {
            let Some(bytes) = self.mapped_bytes(view.file) else {
                return;
            };
            if view.pages.is_some() && view.base.is_none() {
                bytes.set_pages(view.pages.clone());
            }
            let pages = bytes.pages();
            view.base = Some(pages.clone());
            view.pages.get_or_insert(pages);
        });
    }

    /// At the end of a system call: makes its changes to files visible in memory.
    pub(crate) fn refresh_views(&mut self, memory: &mut Memory) {
        let mut untouched = Vec::new();
        for view in memory.views() {
            let is_same = views_of(memory, view.file) == 1
                && match (&self.files.tree.get(InodeId(view.file)).kind, &view.base) {
                    (InodeKind::Regular(bytes), Some(base)) => bytes.has_pages(base),
                    _ => false,
                };
            untouched.push(is_same);
        }
        if untouched.iter().any(|untouched| !untouched) {
            self.store_views(memory);
            return self.load_views(memory);
        }
        // The common case. Bytes that a mapping has beyond the end of its file stay as well.
        memory.for_each_view(|view| {
            view.base = None;
            if let Some(bytes) = self.mapped_bytes(view.file) {
                view.len = bytes.len();
                bytes.set_pages(None);
            }
        });
    }

    /// The copy of a memory that `fork` made maps the same files.
    pub(crate) fn inherit_views(&mut self, memory: &mut Memory) {
        memory.for_each_view(|view| {
            view.pages = None;
            view.base = None;
        });
        for held in holders(memory) {
            self.files.hold(held);
        }
    }

    /// A memory ends, and with it its mappings.
    pub(crate) fn forget_views(&mut self, memory: &mut Memory) {
        let held = holders(memory);
        memory.forget_views();
        for held in held {
            self.let_go(held);
        }
    }

    /// Releases the open file of a mapping that is gone.
    pub(crate) fn let_go(&mut self, held: Held) {
        if held.is_writable
            && let Some(open) = self.files.description_mut(held.by)
        {
            open.writers -= 1;
        }
        self.release(held.by);
    }

    /// Retains the open files of the current mappings of a memory, and releases those of its former
    /// mappings.
    pub(crate) fn update_holders(&mut self, before: &[Held], memory: &Memory) {
        let mut gone = before.to_vec();
        for holder in holders(memory) {
            match gone.iter().position(|old| *old == holder) {
                Some(at) => {
                    gone.swap_remove(at);
                }
                None => self.files.hold(holder),
            }
        }
        if !self.files.dirty_pages.is_empty()
            && let Some(task) = self.tasks.get(self.schedule.running)
        {
            let mapped = memory.shared_files();
            let is_mapped = |file: InodeId| mapped.contains(&file.0);
            self.files.dirty_pages.keep(task.pid, is_mapped);
        }
        for holder in gone {
            self.let_go(holder);
        }
    }

    /// An unlinked file of zeros, which backs anonymous shared memory.
    pub(crate) fn anonymous_file(&mut self, size: u64) -> InodeId {
        let mut bytes = Bytes::default();
        bytes.set_len(size);
        let now_ns = self.wall_clock_ns();
        let inode = Inode::new(InodeKind::Regular(bytes), 0o600, now_ns);
        self.files.tree.add_unlinked(inode)
    }
}

/// The open file descriptions that a memory's mappings hold.
pub(crate) fn holders(memory: &Memory) -> Vec<Held> {
    let writable = memory.writable_files();
    let views = memory.views().map(|view| Held {
        by: DescriptionId(view.holder),
        is_writable: writable.contains(&view.file),
    });
    views.collect()
}
