//! Regions: mappings whose pages have individual attributes (protection, anonymous or file-backed).
//!
//! Pages that were never written cost nothing, so a region can span the whole address space.

use std::collections::{BTreeMap, BTreeSet};

use everett_expr::VisitTerms;
use triomphe::Arc;

use super::buffer::{Buffer, PAGE};
use crate::stacks::StackId;

/// The pages of a file in order; absent ones are zeros.
pub type Pages = Arc<Vec<Option<Arc<Buffer>>>>;

/// Number of pages in one entry of the table of private pages.
const PAGES_PER_BLOCK: usize = 64;
/// Maximum number of unmapped runs that a region remembers for findings.
const MAX_GONE: usize = 64;

type PageBlock = [Option<Arc<Buffer>>; PAGES_PER_BLOCK];

/// The protection of a page.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Protection(pub u8);

impl Protection {
    /// `PROT_NONE`.
    pub const NONE: Protection = Protection(0);
    /// `PROT_READ`.
    pub const READ: Protection = Protection(1);
    /// `PROT_WRITE`.
    pub const WRITE: Protection = Protection(2);
    /// `PROT_READ | PROT_WRITE`.
    pub const READ_WRITE: Protection = Protection(3);

    /// Returns whether an access is allowed. Writable or executable pages are also readable.
    #[inline(always)]
    pub fn allows(self, write: bool) -> bool {
        if write { self.0 & 2 != 0 } else { self.0 != 0 }
    }
}

/// The backing of the pages of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Anonymous memory: zeros.
    Anonymous,
    /// A shared file mapping: writes go to the file.
    Shared {
        /// The file.
        file: u32,
        /// Index of the first page of the run in the file.
        page: u64,
    },
    /// A private file mapping: copy-on-write.
    Private {
        /// The file.
        file: u32,
        /// Index of the first page of the run in the file.
        page: u64,
    },
}

impl Backing {
    /// Returns the file, if the backing is a file.
    pub fn file(self) -> Option<u32> {
        match self {
            Backing::Anonymous => None,
            Backing::Shared { file, .. } | Backing::Private { file, .. } => Some(file),
        }
    }

    /// Returns the backing of the page that is `pages` pages after the first one.
    fn advanced(self, pages: u64) -> Backing {
        match self {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Shared { file, page } => Backing::Shared {
                file,
                page: page + pages,
            },
            Backing::Private { file, page } => Backing::Private {
                file,
                page: page + pages,
            },
        }
    }

    fn file_page(self, index: u64) -> Option<(u32, u64)> {
        match self {
            Backing::Anonymous => None,
            Backing::Shared { file, page } | Backing::Private { file, page } => {
                Some((file, page + index))
            }
        }
    }
}

/// What a child of `fork` does not get of the pages of a run.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct OnFork {
    /// Their contents: it gets zeros (`MADV_WIPEONFORK`).
    pub wipes: bool,
    /// The pages themselves (`MADV_DONTFORK`).
    pub drops: bool,
}

/// The attributes that the pages of a run share.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MappingTraits {
    /// The protection.
    pub protection: Protection,
    /// The backing.
    pub backing: Backing,
    /// Whether the pages can be made writable.
    pub may_write: bool,
    /// Whether accessible pages count as memory in use.
    pub counted: bool,
    /// What a child does not get.
    pub on_fork: OnFork,
    /// Call stack of the `mmap`.
    pub allocated: Option<StackId>,
}

impl MappingTraits {
    /// Private anonymous memory, readable and writable.
    pub const PLAIN: MappingTraits = MappingTraits {
        protection: Protection::READ_WRITE,
        backing: Backing::Anonymous,
        may_write: true,
        counted: true,
        on_fork: OnFork {
            wipes: false,
            drops: false,
        },
        allocated: None,
    };

    /// Returns whether the pages are private and writable.
    pub fn is_data(&self) -> bool {
        let is_shared = matches!(self.backing, Backing::Shared { .. });
        self.protection.allows(true) && !is_shared
    }
}

/// A run of consecutive pages with the same attributes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageRun {
    /// The first page.
    pub first: u64,
    /// Number of pages.
    pub count: u64,
    /// The attributes that the pages share.
    pub traits: MappingTraits,
}

impl PageRun {
    fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Returns the part of the run between two pages.
    fn clipped(&self, first: u64, end: u64) -> Option<PageRun> {
        let (from, to) = (self.first.max(first), self.end().min(end));
        (from < to).then(|| PageRun {
            first: from,
            count: to - from,
            traits: MappingTraits {
                backing: self.traits.backing.advanced(from - self.first),
                ..self.traits
            },
        })
    }

    /// Returns the number of pages.
    fn pages(&self) -> PageCounts {
        let traits = &self.traits;
        let counts = |yes: bool| if yes { self.count } else { 0 };
        PageCounts {
            mapped: self.count,
            used: counts(traits.counted && traits.protection != Protection::NONE),
            data: counts(traits.is_data()),
        }
    }

    /// Returns whether `next` continues this run with the same attributes.
    fn goes_on_in(&self, next: &PageRun) -> bool {
        let backing = self.traits.backing.advanced(self.count);
        self.end() == next.first
            && MappingTraits {
                backing,
                ..self.traits
            } == next.traits
    }
}

/// Numbers of pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct PageCounts {
    /// All that are mapped.
    mapped: u64,
    /// Those that count as memory in use.
    used: u64,
    /// Those that are private and writable.
    data: u64,
}

impl PageCounts {
    fn add(&mut self, more: PageCounts) {
        self.mapped += more.mapped;
        self.used += more.used;
        self.data += more.data;
    }

    fn remove(&mut self, less: PageCounts) {
        self.mapped -= less.mapped;
        self.used -= less.used;
        self.data -= less.data;
    }
}

/// The view that a process has of a mapped file while it runs.
#[derive(Clone, Debug)]
pub struct FileView {
    /// The file.
    pub file: u32,
    /// The open file description that keeps the file alive.
    pub holder: u32,
    /// The pages of the file, each of full size.
    pub pages: Option<Pages>,
    /// The pages of the file when they were last synchronised with it.
    pub base: Option<Pages>,
    /// Size of the file in bytes.
    pub len: u64,
    /// Pages of the file that were written through shared mappings since the set was last taken.
    pub written: WrittenPages,
}

/// A set of written pages.
#[derive(Clone, Debug, Default)]
pub struct WrittenPages {
    pages: BTreeSet<u64>,
    /// The last written page: most writes are to the same page as the previous write.
    last: Option<u64>,
}

impl WrittenPages {
    #[inline]
    fn add(&mut self, page: u64) {
        if self.last != Some(page) {
            self.last = Some(page);
            self.pages.insert(page);
        }
    }

    /// Takes the set; afterwards it is empty.
    pub fn take(&mut self) -> BTreeSet<u64> {
        self.last = None;
        std::mem::take(&mut self.pages)
    }
}

/// A run that was unmapped.
#[derive(Copy, Clone, Debug)]
pub(super) struct UnmappedRun {
    pub first: u64,
    pub end: u64,
    pub allocated: Option<StackId>,
    pub freed: Option<StackId>,
}

/// The reason why an access is denied.
pub(super) enum AccessDenial {
    /// The page is not mapped, but was mapped before.
    UnmappedRun(UnmappedRun),
    /// The page is not mapped; this run ends before it.
    Behind(PageRun),
    /// Nothing is mapped nearby.
    Nothing,
    /// The protection of the page does not allow the access.
    Protected(PageRun),
    /// The page is past the end of the mapped file.
    BeyondFile(PageRun),
}

/// Page runs and their content.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// The runs, ordered and disjoint.
    runs: Vec<PageRun>,
    /// Numbers of pages in the runs.
    pages: PageCounts,
    /// Pages that are not in a file: anonymous pages and private copies.
    own: BTreeMap<u64, Arc<PageBlock>>,
    files: Vec<FileView>,
    gone: Vec<UnmappedRun>,
}

impl Region {
    /// Creates a region of one run.
    pub fn new(run: PageRun) -> Region {
        Region {
            runs: vec![run],
            pages: run.pages(),
            ..Region::default()
        }
    }

    /// Returns all runs.
    pub fn runs(&self) -> &[PageRun] {
        &self.runs
    }

    /// Returns the runs between two pages, clipped to them.
    pub fn runs_in(&self, first: u64, end: u64) -> impl Iterator<Item = PageRun> {
        let from = self.runs.partition_point(|run| run.end() <= first);
        let runs = self.runs[from..].iter();
        runs.map_while(move |run| run.clipped(first, end))
    }

    #[inline]
    pub(super) fn run_at(&self, page: u64) -> Option<&PageRun> {
        let behind = self.runs.partition_point(|run| run.first <= page);
        let run = self.runs.get(behind.checked_sub(1)?)?;
        (page < run.end()).then_some(run)
    }

    /// Returns the first page and the end of the contiguous runs around a page.
    pub(super) fn span(&self, page: u64) -> Option<(u64, u64)> {
        let behind = self.runs.partition_point(|run| run.first <= page);
        let at = behind.checked_sub(1)?;
        let (mut first, mut end) = (self.runs[at].first, self.runs[at].end());
        if page >= end {
            return None;
        }
        for run in self.runs[..at].iter().rev() {
            if run.end() != first {
                break;
            }
            first = run.first;
        }
        for run in &self.runs[behind..] {
            if run.first != end {
                break;
            }
            end = run.end();
        }
        Some((first, end))
    }

    fn view(&self, file: u32) -> Option<&FileView> {
        self.files.iter().find(|view| view.file == file)
    }

    /// Returns all mapped files.
    pub fn files(&self) -> &[FileView] {
        &self.files
    }

    /// Returns all mapped files, for modification.
    pub fn files_mut(&mut self) -> &mut Vec<FileView> {
        &mut self.files
    }

    /// Returns whether the page exists in the backing file.
    fn is_in_file(&self, backing: Backing, index: u64) -> bool {
        match backing.file_page(index) {
            None => true,
            Some((file, page)) => self
                .view(file)
                .is_some_and(|view| page < view.len.div_ceil(PAGE as u64)),
        }
    }

    /// Returns whether all bytes of a range can be read or written.
    pub fn allows(&self, offset: u64, len: u64, write: bool) -> bool {
        self.denied_page(offset, len, write).is_none()
    }

    /// Returns the first page that denies an access.
    fn denied_page(&self, offset: u64, len: u64, write: bool) -> Option<u64> {
        let mut page = offset / PAGE as u64;
        let last = (offset + len.max(1) - 1) / PAGE as u64;
        while page <= last {
            let Some(run) = self.run_at(page) else {
                return Some(page);
            };
            if !run.traits.protection.allows(write) {
                return Some(page);
            }
            let until = last.min(run.end() - 1);
            if !self.is_in_file(run.traits.backing, until - run.first) {
                let here = self.is_in_file(run.traits.backing, page - run.first);
                return Some(if here { until } else { page });
            }
            page = until + 1;
        }
        None
    }

    /// Returns the reason why an access is denied.
    pub(super) fn denial(&self, offset: u64, len: u64, write: bool) -> AccessDenial {
        /// An access farther than this past a run is not attributed to it.
        const NEAR: u64 = 16;
        let page = self.denied_page(offset, len, write);
        let page = page.unwrap_or(offset / PAGE as u64);
        if let Some(run) = self.run_at(page) {
            return match run.traits.protection.allows(write) {
                true => AccessDenial::BeyondFile(*run),
                false => AccessDenial::Protected(*run),
            };
        }
        let gone = self.gone.iter().rev();
        let mut gone = gone.filter(|gone| gone.first <= page && page < gone.end);
        if let Some(gone) = gone.next() {
            return AccessDenial::UnmappedRun(*gone);
        }
        let before = self.runs.partition_point(|run| run.first <= page);
        match before.checked_sub(1).map(|at| self.runs[at]) {
            Some(run) if page - run.end() < NEAR => AccessDenial::Behind(run),
            _ => AccessDenial::Nothing,
        }
    }

    fn own_page(&self, page: u64) -> Option<&Arc<Buffer>> {
        let node = self.own.get(&(page / PAGES_PER_BLOCK as u64))?;
        node[page as usize % PAGES_PER_BLOCK].as_ref()
    }

    /// Returns whether a private page exists and no other state shares it.
    pub(super) fn owns(&self, page: u64) -> bool {
        let node = self.own.get(&(page / PAGES_PER_BLOCK as u64));
        let node = node.filter(|node| Arc::is_unique(node));
        let own = node.and_then(|node| node[page as usize % PAGES_PER_BLOCK].as_ref());
        own.is_some_and(Arc::is_unique)
    }

    fn own_entry(&mut self, page: u64) -> &mut Option<Arc<Buffer>> {
        let empty = || Arc::new(std::array::from_fn(|_| None));
        let node = self
            .own
            .entry(page / PAGES_PER_BLOCK as u64)
            .or_insert_with(empty);
        &mut Arc::make_mut(node)[page as usize % PAGES_PER_BLOCK]
    }

    fn file_page(&self, page: u64) -> Option<&Arc<Buffer>> {
        let run = self.run_at(page)?;
        let (file, page) = run.traits.backing.file_page(page - run.first)?;
        let pages = self.view(file)?.pages.as_ref()?;
        pages.get(usize::try_from(page).ok()?)?.as_ref()
    }

    /// Returns the content of a page; `None` for zeros.
    #[inline]
    pub fn page(&self, page: u64) -> Option<&Buffer> {
        match self.own_page(page) {
            Some(page) => Some(page),
            None => self.file_page(page).map(|page| &**page),
        }
    }

    /// Returns the content of a page, for writing.
    pub fn page_mut(&mut self, page: u64) -> &mut Buffer {
        let backing = self.run_at(page).map(|run| (run.traits.backing, run.first));
        if let Some((Backing::Shared { file, page: start }, first)) = backing
            && let Some(view) = self.files.iter().position(|view| view.file == file)
        {
            let index = (start + page - first) as usize;
            self.files[view].written.add(index as u64);
            let pages = &mut self.files[view].pages;
            let pages = Arc::make_mut(pages.get_or_insert_with(|| Arc::new(Vec::new())));
            if pages.len() <= index {
                pages.resize(index + 1, None);
            }
            let page = pages[index].get_or_insert_with(|| Arc::new(Buffer::zeroed(PAGE)));
            return Arc::make_mut(page);
        }
        if self.own_page(page).is_none() {
            let copy = self.file_page(page).cloned();
            *self.own_entry(page) = copy;
        }
        let entry = self.own_entry(page);
        Arc::make_mut(entry.get_or_insert_with(|| Arc::new(Buffer::zeroed(PAGE))))
    }

    /// Returns the pages that have content, with their indices: private pages, and the mapped pages
    /// of files.
    pub fn present(&self) -> Vec<(u64, &Buffer)> {
        let mut present: Vec<(u64, &Buffer)> = self.own_pages(0, u64::MAX).collect();
        for run in &self.runs {
            let Some((file, start)) = run.traits.backing.file_page(0) else {
                continue;
            };
            let pages = self.view(file).and_then(|view| view.pages.as_ref());
            let pages = pages.map_or(&[][..], |pages| pages.as_slice());
            let mapped = pages.iter().skip(start as usize).take(run.count as usize);
            for (at, page) in (run.first..).zip(mapped) {
                if let (Some(page), None) = (page, self.own_page(at)) {
                    present.push((at, page));
                }
            }
        }
        present
    }

    fn own_pages(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, &Buffer)> {
        let nodes = self
            .own
            .range(first / PAGES_PER_BLOCK as u64..end.div_ceil(PAGES_PER_BLOCK as u64));
        let pages = nodes.flat_map(|(number, node)| {
            let numbers = number * PAGES_PER_BLOCK as u64..;
            let pages = numbers.zip(node.iter());
            pages.filter_map(|(number, page)| Some((number, &**page.as_ref()?)))
        });
        pages.filter(move |(page, _)| (first..end).contains(page))
    }

    /// Shifts all pages by this many.
    pub(super) fn shift(&mut self, pages: u64) {
        if pages == 0 {
            return;
        }
        for run in &mut self.runs {
            run.first += pages;
        }
        for gone in &mut self.gone {
            gone.first += pages;
            gone.end += pages;
        }
        for (page, content) in self.take_pages(0, u64::MAX).into_iter().rev() {
            self.put_page(page + pages, content);
        }
        self.own.retain(|_, node| node.iter().any(Option::is_some));
    }

    /// Drops private pages, so that the content of their backing is visible again.
    pub fn forget_pages(&mut self, first: u64, end: u64) {
        let pages: Vec<u64> = self.own_pages(first, end).map(|(page, _)| page).collect();
        for page in pages {
            *self.own_entry(page) = None;
        }
        self.own.retain(|_, node| node.iter().any(Option::is_some));
    }

    /// Unmaps pages.
    pub fn unmap(&mut self, first: u64, end: u64, freed: Option<StackId>) {
        let removed: Vec<PageRun> = self.runs_in(first, end).collect();
        for run in &removed {
            self.gone.push(UnmappedRun {
                first: run.first,
                end: run.end(),
                allocated: run.traits.allocated,
                freed,
            });
        }
        let excess = self.gone.len().saturating_sub(MAX_GONE);
        self.gone.drain(..excess);
        if removed.is_empty() {
            return;
        }
        self.forget_pages(first, end);
        self.replace(first, end, |_| None);
    }

    /// Replaces the parts of runs between two pages, and returns the position of the new runs.
    fn replace(
        &mut self,
        first: u64,
        end: u64,
        mut change: impl FnMut(PageRun) -> Option<PageRun>,
    ) -> std::ops::Range<usize> {
        let from = self.runs.partition_point(|run| run.end() <= first);
        let to = self.runs.partition_point(|run| run.first < end).max(from);
        let mut new = Vec::with_capacity(to - from + 2);
        for run in &self.runs[from..to] {
            self.pages.remove(run.pages());
            new.extend(run.clipped(0, first));
            new.extend(run.clipped(first, end).and_then(&mut change));
            new.extend(run.clipped(end, u64::MAX));
        }
        for run in &new {
            self.pages.add(run.pages());
        }
        let behind = from + new.len();
        self.runs.splice(from..to, new);
        from..behind
    }

    /// Adds a run where nothing is mapped.
    pub fn map(&mut self, run: PageRun) {
        let at = self.runs.partition_point(|other| other.first < run.first);
        self.runs.insert(at, run);
        self.pages.add(run.pages());
        self.gone
            .retain(|gone| gone.end <= run.first || run.end() <= gone.first);
        self.join(at.saturating_sub(1), at + 2);
    }

    /// Joins adjacent runs with the same attributes.
    fn join(&mut self, from: usize, to: usize) {
        let mut at = to.min(self.runs.len());
        while at > from + 1 {
            at -= 1;
            let (before, after) = (self.runs[at - 1], self.runs[at]);
            if before.goes_on_in(&after) {
                self.runs[at - 1].count += after.count;
                self.runs.remove(at);
            }
        }
    }

    /// Sets the protection of pages.
    pub fn protect(&mut self, first: u64, end: u64, protection: Protection) {
        let changed = self.replace(first, end, |mut run| {
            run.traits.protection = protection;
            Some(run)
        });
        self.join(changed.start.saturating_sub(1), changed.end + 1);
    }

    /// Changes what children get of the pages between two pages.
    pub(super) fn advise_fork(&mut self, first: u64, end: u64, change: impl Fn(&mut OnFork)) {
        let changed = self.replace(first, end, |mut run| {
            change(&mut run.traits.on_fork);
            Some(run)
        });
        self.join(changed.start.saturating_sub(1), changed.end + 1);
    }

    /// Removes and returns the private pages between two pages, to move them.
    pub(super) fn take_pages(&mut self, first: u64, end: u64) -> Vec<(u64, Arc<Buffer>)> {
        let numbers: Vec<u64> = self.own_pages(first, end).map(|(page, _)| page).collect();
        let pages = numbers.into_iter();
        pages
            .filter_map(|page| Some((page, self.own_entry(page).take()?)))
            .collect()
    }

    pub(super) fn put_page(&mut self, page: u64, content: Arc<Buffer>) {
        *self.own_entry(page) = Some(content);
    }

    /// Adds the view of a file unless there is one.
    pub(super) fn add_view(&mut self, view: FileView) {
        if self.view(view.file).is_none() {
            self.files.push(view);
        }
    }

    /// Drops the views of files that no run maps any more.
    pub(super) fn drop_views(&mut self) {
        let runs = &self.runs;
        self.files.retain(|view| {
            let mut files = runs.iter().map(|run| run.traits.backing.file());
            files.any(|file| file == Some(view.file))
        });
    }

    /// Returns the number of bytes that count as memory in use.
    pub fn counted_bytes(&self) -> u64 {
        self.pages.used * PAGE as u64
    }

    /// Returns the number of bytes that are private and writable.
    pub fn data_bytes(&self) -> u64 {
        self.pages.data * PAGE as u64
    }

    /// Returns the number of bytes that are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.pages.mapped * PAGE as u64
    }

    /// Visits all terms in the region, as roots for garbage collection.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for (_, page) in self.own_pages(0, u64::MAX) {
            page.visit_terms(visit);
        }
        for view in &self.files {
            let pages = view.pages.iter().flat_map(|pages| pages.iter()).flatten();
            pages.for_each(|page| page.visit_terms(visit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(first: u64, count: u64) -> PageRun {
        PageRun {
            first,
            count,
            traits: MappingTraits::PLAIN,
        }
    }

    fn stretches(region: &Region) -> Vec<(u64, u64, u8)> {
        let runs = region.runs().iter();
        runs.map(|run| (run.first, run.count, run.traits.protection.0))
            .collect()
    }

    #[test]
    fn unmapping_and_protecting_split_and_mapping_joins() {
        let mut region = Region::new(plain(0, 10));
        region.unmap(3, 5, None);
        assert_eq!(stretches(&region), [(0, 3, 3), (5, 5, 3)]);
        region.protect(6, 7, Protection::READ);
        assert_eq!(
            stretches(&region),
            [(0, 3, 3), (5, 1, 3), (6, 1, 1), (7, 3, 3)]
        );
        region.protect(6, 7, Protection::READ_WRITE);
        region.map(plain(3, 2));
        assert_eq!(stretches(&region), [(0, 10, 3)]);
        region.unmap(0, 10, None);
        assert!(region.runs().is_empty());
    }

    #[test]
    fn accesses_are_allowed_page_by_page() {
        let page = PAGE as u64;
        let mut region = Region::new(plain(1, 3));
        region.protect(2, 3, Protection::READ);
        assert!(region.allows(page, page, true));
        assert!(!region.allows(page, page + 1, true));
        assert!(region.allows(page, 3 * page, false));
        assert!(!region.allows(page, 3 * page + 1, false));
        assert!(!region.allows(0, 1, false));
    }

    #[test]
    fn a_file_ends_with_its_last_page() {
        let page = PAGE as u64;
        let backing = Backing::Shared { file: 7, page: 1 };
        let mut region = Region::new(PageRun {
            first: 0,
            count: 4,
            traits: MappingTraits {
                backing,
                ..MappingTraits::PLAIN
            },
        });
        region.add_view(FileView {
            file: 7,
            holder: 0,
            pages: None,
            base: None,
            len: 3 * page + 1,
            written: WrittenPages::default(),
        });
        assert!(region.allows(0, 3 * page, true));
        assert!(!region.allows(0, 3 * page + 1, true));
        region.page_mut(2).write(5, b"x");
        let pages = region.files()[0].pages.clone().unwrap();
        assert_eq!(pages[3].as_ref().unwrap().bytes()[5], b'x');
        region.unmap(1, 2, None);
        assert_eq!(region.page(2).unwrap().bytes()[5], b'x');
    }

    #[test]
    fn private_pages_of_a_file_are_copied_when_written() {
        let mut region = Region::new(PageRun {
            first: 0,
            count: 1,
            traits: MappingTraits {
                backing: Backing::Private { file: 1, page: 0 },
                ..MappingTraits::PLAIN
            },
        });
        let page = Some(Arc::new(Buffer::with_bytes(b"ab", PAGE)));
        region.add_view(FileView {
            file: 1,
            holder: 0,
            pages: Some(Arc::new(vec![page])),
            base: None,
            len: 2,
            written: WrittenPages::default(),
        });
        region.page_mut(0).write(0, b"x");
        assert_eq!(&region.page(0).unwrap().bytes()[..2], b"xb");
        region.forget_pages(0, 1);
        assert_eq!(&region.page(0).unwrap().bytes()[..2], b"ab");
    }
}
