//! Checkpoints, from which `everett resume` continues. A run writes one when it stops before its
//! end, and periodically, so that a killed run loses little. A checkpoint is a file and the states
//! that it names. It replaces the previous one atomically, also if the machine loses power:
//! everything that it refers to is synchronised before the rename. The last checkpoint of a run may
//! be at its time limit, so it is not synchronised; the previous one stays beside it. Both files
//! have copies, so that one damaged spot costs nothing.

use everett_engine::{Limits, Saved, Start, copy_of};
use everett_report::Folder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::checked::{is_as_written, write_checked};
use crate::error::{Context, Error, Result, bail};
use crate::finding::FindingEntry;
use crate::session::Session;
use crate::summary::DifferenceEntry;

const FILE: &str = "checkpoint.json";
/// The file to which a checkpoint is written before it replaces the last one.
const NEW_FILE: &str = "checkpoint.json.new";
/// The copy of the newest checkpoint, in case that is damaged, and the file to which it is written.
const COPY_FILE: &str = "checkpoint.json.copy";
const NEW_COPY_FILE: &str = "checkpoint.json.copy.new";
/// The previous checkpoint, kept if the newest was not synchronised.
const OLD_FILE: &str = "checkpoint.json.old";
/// The name of the spill file, which is beside the checkpoint.
pub(crate) const SPILL_FILE: &str = "spill";
/// Prefix and extension of the names of state files, around a number.
const STATES: &str = "checkpoint-";
const EXTENSION: &str = "states";
/// The interval between checkpoints is at least this many times the duration of the last one, so
/// that checkpoints take less than two percent of the time.
const INTERVAL_FACTOR: u32 = 50;

/// The results of a run so far: findings, differences of two builds, and the number of tests.
pub(crate) type Results<'r> = (&'r [FindingEntry], &'r [DifferenceEntry], u64);

/// The folders of results; files and folders in them begin with a number.
const PARTS: [&str; 3] = ["tests", "differences", "findings"];
/// The number of results in each of these folders.
type Counts = [u64; PARTS.len()];

fn counts((findings, differences, tests): Results<'_>) -> Counts {
    [tests, differences.len() as u64, findings.len() as u64]
}

/// The checkpoint of a run.
#[derive(Serialize, Deserialize)]
pub struct Checkpoint {
    /// The saved search.
    saved: Saved,
    /// Findings so far.
    pub findings: Vec<FindingEntry>,
    /// Differences of two builds so far.
    #[serde(default)]
    pub differences: Vec<DifferenceEntry>,
    /// Number of tests written so far.
    pub tests: u64,
    /// Wall-clock time used so far.
    pub wall_seconds: f64,
    /// Sizes of the state files.
    #[serde(default)]
    sizes: Vec<u64>,
    /// The file from which the checkpoint was read, if `checkpoint.json` is damaged.
    #[serde(skip)]
    pub read_instead: Option<&'static str>,
}

impl Checkpoint {
    /// Reads and validates the checkpoint in a folder; `None` if there is none. If it is damaged,
    /// reads its copy; if the machine crashed before it was complete on disk, the previous one.
    pub fn read(dir: &Path) -> Result<Option<Checkpoint>> {
        let newest = Checkpoint::read_file(dir, FILE);
        let is_whole = |read: &Result<Option<Checkpoint>>| matches!(read, Ok(Some(checkpoint)) if checkpoint.is_whole(dir));
        if is_whole(&newest) {
            return newest;
        }
        let others = [
            (COPY_FILE, "its copy"),
            (OLD_FILE, "the checkpoint before it"),
        ];
        for (name, instead) in others {
            let mut other = Checkpoint::read_file(dir, name);
            if !is_whole(&other) {
                continue;
            }
            // This is the newest checkpoint from now on. The next one replaces it only after it has
            // reached the disk.
            let renamed = fs::rename(dir.join(name), dir.join(FILE));
            renamed.context("cannot restore the checkpoint")?;
            if let (Ok(Some(other)), Err(_)) = (&mut other, &newest) {
                other.read_instead = Some(instead);
            }
            return other;
        }
        newest
    }

    /// Returns whether the state files, or their copies, have their original sizes.
    fn is_whole(&self, dir: &Path) -> bool {
        let mut files = self.saved.files.iter().zip(&self.sizes);
        files.all(|(name, size)| {
            let path = dir.join(name);
            size_of_file(&path) >= *size || size_of_file(&copy_of(&path)) >= *size
        })
    }

    fn read_file(dir: &Path, name: &str) -> Result<Option<Checkpoint>> {
        let path = dir.join(name);
        let text = match everett_report::read_file(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let damaged = |source: Error| Error::Damaged {
            path: path.clone(),
            source: Box::new(source),
        };
        if !is_as_written(&text) {
            return Err(damaged(Error::Invalid("its checksum is wrong".to_owned())));
        }
        let checkpoint: Checkpoint =
            serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
        checkpoint.check().map_err(damaged)?;
        Ok(Some(checkpoint))
    }

    /// Rejects values that no run can produce.
    fn check(&self) -> Result<()> {
        if let Err(error) = Duration::try_from_secs_f64(self.wall_seconds) {
            bail!(Invalid, "the time is not valid: {error}");
        }
        let is_name = |path: &PathBuf| path.file_name() == Some(path.as_os_str());
        if !self.saved.files.iter().all(is_name) {
            bail!(Invalid, "a file of states is outside of the folder");
        }
        self.saved
            .check()
            .map_err(|error| Error::Invalid(error.to_string()))
    }

    /// Returns the number of code segments of the programs.
    pub fn segments(&self) -> usize {
        self.saved.segments()
    }

    /// Returns the start of a search that continues from the checkpoint.
    pub fn start(&self) -> Start {
        Start::Saved(Box::new(self.saved.clone()))
    }

    /// Removes the results that the run wrote after the checkpoint, because they will be found
    /// again.
    pub fn remove_later_results(&self, dir: &Path) -> Result<()> {
        remove_results_after(dir, self.counts())
    }

    fn counts(&self) -> Counts {
        counts((&self.findings, &self.differences, self.tests))
    }

    /// Removes all results of a run that starts again from its beginning.
    pub fn remove_all_results(dir: &Path) -> Result<()> {
        remove_results_after(dir, Counts::default())
    }

    /// Returns whether the folder of a run contains a checkpoint.
    pub(crate) fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Removes the checkpoint and its state files, since the run is complete. If the machine
    /// crashes meanwhile, either the checkpoint with its states exists or the results do.
    pub fn remove(dir: &Path) -> Result<()> {
        let is_there = Checkpoint::is_in(dir);
        if is_there {
            let synced = RealStorage.sync(dir, Counts::default());
            synced.context("cannot write the results to the disk")?;
        }
        for name in [COPY_FILE, NEW_COPY_FILE, FILE, NEW_FILE, OLD_FILE] {
            remove_file(&dir.join(name))?;
        }
        if is_there {
            let synced = RealStorage.sync_names(dir);
            synced.context("cannot write the results to the disk")?;
        }
        remove_file(&dir.join(SPILL_FILE))?;
        remove_worker_spills(dir)?;
        remove_states(dir, &BTreeSet::new())
    }
}

fn size_of_file(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes the spill files of killed workers.
fn remove_worker_spills(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).context("cannot list the folder")?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(SPILL_FILE));
        let number = number.and_then(|number| number.strip_prefix('-'));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes all state files except those that are still needed.
fn remove_states(dir: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)
        .context("cannot list the folder")?
        .flatten()
    {
        let name = PathBuf::from(entry.file_name());
        let states = name.with_extension(EXTENSION);
        if number_of_states(&name).is_some() && !kept.contains(&states) {
            remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}

/// Returns the number of a state file, or of its copy.
fn number_of_states(name: &Path) -> Option<u64> {
    let copy = copy_of(name);
    let is_one = name.extension() == Some(OsStr::new(EXTENSION)) || name == copy;
    let stem = name.file_stem()?.to_str()?;
    stem.strip_prefix(STATES)?.parse().ok().filter(|_| is_one)
}

/// Returns the number that the name of a result begins with.
fn number_of(name: &OsStr) -> Option<u64> {
    let name = name.to_string_lossy();
    let digits = name.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok())
}

fn remove_results_after(dir: &Path, last: Counts) -> Result<()> {
    let mut parts = PARTS.iter().zip(last);
    parts.try_for_each(|(part, last)| remove_numbered(&dir.join(part), last))
}

/// Removes files and folders whose names begin with a number above the last one.
fn remove_numbered(dir: &Path, last: u64) -> Result<()> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let number = number_of(&entry.file_name());
        if number.is_none_or(|number| number <= last) {
            continue;
        }
        let path = entry.path();
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// The disk below a folder. If the machine crashes, everything that was not synchronised may be
/// lost: contents, names, or both.
pub(crate) trait Storage {
    /// Makes everything durable that was written: states, the new checkpoint, and all results after
    /// this number of each kind, with their names.
    fn sync(&self, dir: &Path, after: Counts) -> io::Result<()>;
    /// Renames a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_names(&self, dir: &Path) -> io::Result<()>;
}

/// Above this number of new results, the whole file system is synchronised at once: one by one,
/// each would wait for the disk. Below it, other writes to the file system cost no time here.
const MOST_ONE_BY_ONE: usize = 64;

/// Makes a file durable, or a folder with all its contents.
fn sync_below(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_below(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

/// The disk of the machine.
struct RealStorage;

impl Storage for RealStorage {
    fn sync(&self, dir: &Path, after: Counts) -> io::Result<()> {
        let (mut folders, mut results) = (Vec::new(), Vec::new());
        for (part, last) in PARTS.iter().zip(after) {
            let part = dir.join(part);
            // A run that compares no builds has no folder of differences.
            if !part.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&part)?.flatten() {
                if number_of(&entry.file_name()).is_some_and(|number| number > last) {
                    results.push(entry.path());
                }
            }
            folders.push(part);
        }
        if results.len() > MOST_ONE_BY_ONE {
            return Ok(nix::unistd::syncfs(File::open(dir)?)?);
        }
        for result in &results {
            sync_below(result)?;
        }
        for folder in folders {
            File::open(folder)?.sync_all()?;
        }
        for entry in fs::read_dir(dir)?.flatten() {
            if entry.file_type()?.is_file() {
                File::open(entry.path())?.sync_data()?;
            }
        }
        File::open(dir)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_names(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// The writer of a run's checkpoints.
pub(crate) struct Checkpoints {
    folder: Folder,
    /// The number of the next checkpoint.
    number: u64,
    /// The time at which the next checkpoint is due.
    next_at: Duration,
    /// The minimum time between two checkpoints.
    interval: Duration,
    /// Wall-clock time of the run before it was resumed.
    pub(crate) earlier: Duration,
    /// The number of results that are durable.
    lasting: Counts,
    disk: Box<dyn Storage>,
}

impl Checkpoints {
    /// Creates the checkpoints of a run that starts, or that continues from one.
    pub(crate) fn new(
        folder: Folder,
        interval: Duration,
        from: Option<&Checkpoint>,
    ) -> Checkpoints {
        let files = from.iter().flat_map(|from| &from.saved.files);
        let last = files.filter_map(|name| number_of_states(name)).max();
        let seconds = from.map_or(0.0, |from| from.wall_seconds);
        Checkpoints {
            folder,
            number: last.map_or(1, |last| last + 1),
            next_at: interval,
            interval,
            earlier: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            lasting: from.map(Checkpoint::counts).unwrap_or_default(),
            disk: Box::new(RealStorage),
        }
    }

    /// Returns whether the next checkpoint is due.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now >= self.next_at
    }

    /// Writes a checkpoint. Returns `true` if it replaced the last one; otherwise the last one
    /// stays. With `sync`, it is durable even if the machine crashes now. A run at its time limit
    /// does not wait for the disk, and keeps the last checkpoint beside the new one.
    pub(crate) fn write(
        &mut self,
        save: impl FnOnce(&Path) -> io::Result<Option<Saved>>,
        results: Results<'_>,
        clock: impl Fn() -> Duration,
        sync: bool,
    ) -> Result<bool> {
        let start = clock();
        let dir = self.folder.path();
        let name = format!("{STATES}{}.{EXTENSION}", self.number);
        self.number += 1;
        let states = dir.join(name);
        let saved = save(&states);
        if !matches!(saved, Ok(Some(_))) {
            // Incomplete files would only take up disk space; the last checkpoint stays.
            let _ = fs::remove_file(&states).and(fs::remove_file(copy_of(&states)));
        }
        let Some(saved) = saved.context("cannot write the states that are left")? else {
            self.postpone(start, clock());
            return Ok(false);
        };
        let kept: BTreeSet<PathBuf> = saved.files.iter().cloned().collect();
        let sizes = saved.files.iter();
        let sizes = sizes.map(|name| size_of_file(&dir.join(name))).collect();
        let (findings, differences, tests) = results;
        let checkpoint = Checkpoint {
            saved,
            findings: findings.to_vec(),
            differences: differences.to_vec(),
            tests,
            wall_seconds: (start + self.earlier).as_secs_f64(),
            sizes,
            read_instead: None,
        };
        let (new, new_copy) = (dir.join(NEW_FILE), dir.join(NEW_COPY_FILE));
        let write = || {
            write_checked(&new, &checkpoint)?;
            fs::copy(&new, &new_copy)?;
            match sync {
                true => self.disk.sync(dir, self.lasting)?,
                false => keep_last(dir)?,
            }
            self.disk.rename(&new, &dir.join(FILE))?;
            self.disk.rename(&new_copy, &dir.join(COPY_FILE))?;
            // This makes the new name durable.
            match sync {
                true => self.disk.sync_names(dir),
                false => Ok(()),
            }
        };
        let written = write();
        if written.is_err() {
            for path in [&new, &new_copy, &states, &copy_of(&states)] {
                let _ = fs::remove_file(path);
            }
        }
        written.context("cannot write the checkpoint")?;
        if sync {
            self.lasting = counts(results);
            remove_file(&dir.join(OLD_FILE))?;
            remove_states(dir, &kept)?;
        }
        self.postpone(start, clock());
        Ok(true)
    }

    /// Sets the time of the next checkpoint, after one that took this time.
    fn postpone(&mut self, start: Duration, end: Duration) {
        let took = end.saturating_sub(start);
        let pause = match self.interval {
            Duration::ZERO => took,
            interval => (took * INTERVAL_FACTOR).max(interval),
        };
        self.next_at = end + pause;
    }
}

/// Keeps the last checkpoint, if there is one, under another name.
fn keep_last(dir: &Path) -> io::Result<()> {
    let not_there = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    let (last, old) = (dir.join(FILE), dir.join(OLD_FILE));
    match fs::remove_file(&old) {
        Err(error) if !not_there(&error) => return Err(error),
        _ => {}
    }
    match fs::hard_link(&last, &old) {
        Err(error) if !not_there(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns a function that says whether saving may continue: the time is not over, and it has not
/// used much memory.
pub(crate) fn may_go_on(
    session: &Session,
    limits: &Limits,
    until: Option<Duration>,
) -> impl Fn() -> bool {
    let most = limits.max_memory;
    let most = most.map(|most| most.max(session.memory.used()) + part_of(most));
    let session = session.clone();
    move || {
        until.is_none_or(|until| session.now() < until)
            && most.is_none_or(|most| session.memory.used() <= most)
    }
}

/// Returns when a checkpoint is abandoned while the search continues: the search and the last
/// checkpoint need the remaining time.
pub(crate) fn early_deadline(now: Duration, max_time: Option<Duration>) -> Option<Duration> {
    max_time.map(|most| now + most.saturating_sub(now) / 4)
}

/// Returns the deadline of the last checkpoint of a run. Even a run that is late saves what it can.
pub(crate) fn last_deadline(now: Duration, max_time: Option<Duration>) -> Option<Duration> {
    max_time.map(|most| most.max(now) + most / GRACE)
}

/// Returns whether a run is so close to its time limit that it does not wait for the disk.
pub(crate) fn is_late(now: Duration, max_time: Option<Duration>) -> bool {
    max_time.is_some_and(|most| now + most / GRACE >= most)
}

/// The fraction by which limits may be exceeded is one divided by this.
const GRACE: u32 = 20;

fn part_of(memory: u64) -> u64 {
    memory / u64::from(GRACE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    #[test]
    fn results_after_a_checkpoint_are_removed() {
        let root = std::env::temp_dir().join(format!("everett-later-{}", std::process::id()));
        let dir = root.join("tests");
        fs::create_dir_all(dir.join("000003-a.fs")).expect("a folder");
        for name in ["000001.ktest", "000002.trace", "000003.trace", "notes"] {
            fs::write(dir.join(name), "").expect("a file");
        }
        remove_numbered(&dir, 2).expect("they can be removed");
        let left = fs::read_dir(&dir).expect("a folder").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["000001.ktest", "000002.trace", "notes"]);
        fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn the_last_checkpoint_has_a_deadline() {
        let s = Duration::from_secs;
        assert_eq!(early_deadline(s(20), Some(s(100))), Some(s(40)));
        assert_eq!(early_deadline(s(120), Some(s(100))), Some(s(120)));
        assert_eq!(last_deadline(s(1), None), None);
        assert_eq!(last_deadline(s(95), Some(s(100))), Some(s(105)));
        // The search itself is late: there is still a little time left.
        assert_eq!(last_deadline(s(120), Some(s(100))), Some(s(125)));
    }

    #[test]
    fn a_checkpoint_that_is_given_up_is_not_tried_again_at_once() {
        let dir = std::env::temp_dir().join(format!("everett-given-up-{}", std::process::id()));
        let s = Duration::from_secs;
        let mut all = Checkpoints::new(Folder::create(&dir).expect("a folder"), s(1), None);
        assert!(all.is_due(s(1)));
        let times = std::cell::Cell::new(0);
        let clock = || s(times.replace(times.get() + 3));
        let written = all.write(|_| Ok(None), (&[], &[], 0), clock, true);
        assert!(!written.expect("no error") && !all.is_due(s(100)) && all.is_due(s(153)));
        fs::remove_dir_all(&dir).expect("it can be removed");
    }

    /// Files by their names.
    type Files = BTreeMap<PathBuf, Vec<u8>>;

    fn files_in(dir: &Path) -> Files {
        let folders = [dir.to_owned(), dir.join("tests")];
        let entries = folders
            .iter()
            .flat_map(|dir| fs::read_dir(dir).expect("a folder"));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let paths = paths.filter(|path| path.is_file());
        let named = |path: PathBuf| (path.strip_prefix(dir).expect("below").to_owned(), path);
        let named = paths.map(named);
        named
            .map(|(name, path)| (name, fs::read(path).expect("a file")))
            .collect()
    }

    /// A disk that loses everything that was not synchronised when the power fails. It records what
    /// can be left then.
    #[derive(Default)]
    struct Losing {
        lasting: RefCell<Files>,
        left: RefCell<Vec<Files>>,
    }

    impl Losing {
        /// The power fails in this state: nothing was written since, or the names were, but half of
        /// the contents.
        fn cut(&self, dir: &Path) {
            let lasting = self.lasting.borrow();
            let half = files_in(dir).into_iter().map(|(name, bytes)| {
                let lasts = lasting.values().any(|lasting| *lasting == bytes);
                let len = if lasts { bytes.len() } else { bytes.len() / 2 };
                (name, bytes[..len].to_vec())
            });
            let half = half.collect();
            self.left.borrow_mut().extend([lasting.clone(), half]);
        }
    }

    impl Storage for Rc<Losing> {
        fn sync(&self, dir: &Path, _: Counts) -> io::Result<()> {
            self.cut(dir);
            *self.lasting.borrow_mut() = files_in(dir);
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            let dir = to.parent().expect("a folder");
            self.cut(dir);
            fs::rename(from, to)?;
            self.cut(dir);
            Ok(())
        }

        fn sync_names(&self, dir: &Path) -> io::Result<()> {
            self.sync(dir, Counts::default())
        }
    }

    fn saved(name: &str) -> Saved {
        let saved = serde_json::json!({
            "files": [name], "left": [], "world": null, "statistics": everett_engine::Statistics::default(),
            "covered": "", "findings": [], "limits": [], "warnings": [],
        });
        serde_json::from_value(saved).expect("a search")
    }

    #[test]
    fn the_power_can_go_at_any_time() {
        let root = std::env::temp_dir().join(format!("everett-power-{}", std::process::id()));
        let (dir, after) = (root.join("run"), root.join("after"));
        let losing = Rc::new(Losing::default());
        let folder = Folder::create(&dir).expect("a folder");
        let mut all = Checkpoints::new(folder, Duration::ZERO, None);
        all.disk = Box::new(losing.clone());
        let clock = || Duration::ZERO;
        // The last checkpoint does not wait for the disk.
        let mut firsts = 0;
        for (tests, sync) in [(1u64, true), (2, true), (3, true), (4, false)] {
            let name = PathBuf::from(format!("tests/{tests:06}.trace"));
            fs::write(dir.join(name), tests.to_string().repeat(9)).expect("a test");
            let save = |path: &Path| {
                fs::write(path, tests.to_string().repeat(99))?;
                let name = path.file_name().and_then(OsStr::to_str).expect("a name");
                Ok(Some(saved(name)))
            };
            assert!(
                all.write(save, (&[], &[], tests), clock, sync)
                    .expect("no error")
            );
            losing.cut(&dir);
            if tests == 1 {
                firsts = losing.left.borrow().len();
            }
        }
        for (at, left) in losing.left.borrow().iter().enumerate() {
            let _ = fs::remove_dir_all(&after);
            fs::create_dir_all(after.join("tests")).expect("a folder");
            for (name, bytes) in left {
                fs::write(after.join(name), bytes).expect("a file");
            }
            // Before the first checkpoint, a run starts again.
            let read = Checkpoint::read(&after);
            let read = read.unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(read.is_some() || at < firsts, "{at}");
            let Some(checkpoint) = read else { continue };
            assert!(checkpoint.is_whole(&after), "{at}");
            for test in 1..=checkpoint.tests {
                let bytes = left.get(Path::new(&format!("tests/{test:06}.trace")));
                assert_eq!(bytes.map(Vec::len), Some(9), "{at}");
            }
        }
        fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn saving_stops_at_limits() {
        #[derive(Debug)]
        struct Memory(u64);
        impl everett_engine::MemoryAccount for Memory {
            fn used(&self) -> u64 {
                self.0
            }
            fn peak(&self) -> u64 {
                self.0
            }
        }
        let limits = |max_memory| Limits {
            max_memory,
            ..Limits::default()
        };
        let session = Session {
            memory: std::sync::Arc::new(Memory(1 << 30)),
            ..Session::new()
        };
        assert!(may_go_on(&session, &limits(None), None)());
        assert!(!may_go_on(&session, &limits(None), Some(Duration::ZERO))());
        // Memory that is already in use does not count against saving.
        assert!(may_go_on(&session, &limits(Some(1 << 20)), None)());
    }

    #[test]
    fn one_damaged_byte_of_a_checkpoint_costs_nothing() {
        let dir = std::env::temp_dir().join(format!("everett-byte-{}", std::process::id()));
        let folder = Folder::create(&dir).expect("a folder");
        let mut all = Checkpoints::new(folder, Duration::ZERO, None);
        let save = |path: &Path| {
            fs::write(path, "states")?;
            Ok(Some(saved("checkpoint-1.states")))
        };
        let written = all.write(save, (&[], &[], 7), || Duration::ZERO, true);
        assert!(written.expect("no error"));
        let names = [FILE, COPY_FILE];
        let [good, copy] = names.map(|name| fs::read(dir.join(name)).expect("a file"));
        assert_eq!(good, copy);
        serde_json::from_slice::<serde_json::Value>(&good).expect("it is JSON");
        for name in names {
            for at in 0..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= 1;
                for name in names {
                    fs::write(dir.join(name), &good).expect("written");
                }
                fs::write(dir.join(name), &bytes).expect("written");
                let read = Checkpoint::read(&dir);
                let read = read.unwrap_or_else(|error| panic!("{name}, {at}: {error}"));
                let read = read.unwrap_or_else(|| panic!("{name}, {at}: there is none"));
                assert_eq!(read.tests, 7, "{name}, {at}");
                assert!(name == FILE || read.read_instead.is_none(), "{name}, {at}");
            }
        }
        fs::remove_dir_all(&dir).expect("it can be removed");
    }

    #[test]
    fn files_of_states_have_numbers() {
        for name in ["checkpoint-12.states", "checkpoint-12.copy"] {
            assert_eq!(number_of_states(Path::new(name)), Some(12));
        }
        for other in [
            "checkpoint-12",
            "checkpoint.json",
            "spill",
            "checkpoint-x.states",
        ] {
            assert_eq!(number_of_states(Path::new(other)), None);
        }
    }
}
