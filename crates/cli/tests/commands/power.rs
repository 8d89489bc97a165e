//! Power failures: data that was not synchronised with the disk may be lost, or present in part.
//! Tests kill runs, rebuild their folders as a disk may have them, and check that resumed runs
//! reach the same as undisturbed ones.

use crate::common::generator::Numbers;
use crate::common::samples::FORKS;
use crate::common::{build, endings, everett, expect, folder, summary, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

/// Builds the preloaded library that records what is synchronised.
fn library(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/power/synced.c");
    let library = folder.join("synced.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]);
    expect(compile.arg(&library).arg(source), 0);
    library
}

/// Returns the name under which a file or folder is recorded.
fn name_of(path: &Path) -> String {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    let born = metadata.created().map_or_else(
        |_| (0, 0),
        |time| {
            let since = time.duration_since(UNIX_EPOCH).expect("a time after 1970");
            (since.as_secs(), since.subsec_nanos())
        },
    );
    format!("{}-{}.{}", metadata.ino(), born.0, born.1)
}

/// The meaning of a name in a folder.
#[derive(Clone)]
enum FolderEntry {
    /// A folder, and its real path if it still exists.
    Folder(String, Option<PathBuf>),
    /// The possible contents of a file.
    File(Vec<Vec<u8>>),
}

/// A disk after a power failure.
struct Disk<'a> {
    synced: &'a Path,
    /// Randomly chooses what else survives; without it, only synchronised data does.
    random: Option<Numbers>,
}

impl Disk<'_> {
    /// Returns the possible contents of a file: what was synchronised, and if it still exists, what
    /// was written since, in whole or in part.
    fn contents(&self, name: &str, real: Option<&Path>) -> Vec<Vec<u8>> {
        let synced = fs::read(self.synced.join(name)).unwrap_or_default();
        let mut contents = vec![synced];
        if let Some(whole) = real.and_then(|real| fs::read(real).ok()) {
            let least = contents[0].len().min(whole.len());
            let half = least + (whole.len() - least) / 2;
            let mut zeros = whole.clone();
            zeros[half..].fill(0);
            contents.extend([whole[..half].to_vec(), zeros, whole]);
        }
        contents
    }

    /// Returns the names of a folder that was synchronised, and those that it really has.
    fn names(&self, name: &str, real: Option<&Path>) -> BTreeMap<String, Vec<Option<FolderEntry>>> {
        let mut names: BTreeMap<String, Vec<Option<FolderEntry>>> = BTreeMap::new();
        let list = fs::read_to_string(self.synced.join(name)).unwrap_or_default();
        for line in list.lines() {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().expect("three words");
            let (kind, key, name) = (word(), word().to_owned(), word());
            let path = real.map(|real| real.join(name));
            let path = path.filter(|path| path.exists() && name_of(path) == key);
            let entry = match kind {
                "folder" => FolderEntry::Folder(key, path),
                _ => FolderEntry::File(self.contents(&key, path.as_deref())),
            };
            names.insert(name.to_owned(), vec![Some(entry)]);
        }
        for entry in real
            .into_iter()
            .flat_map(|real| fs::read_dir(real).expect("a folder"))
        {
            let path = entry.expect("an entry").path();
            let key = name_of(&path);
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            let entry = match path.is_dir() {
                true => FolderEntry::Folder(key, Some(path.clone())),
                false => FolderEntry::File(self.contents(&key, Some(&path))),
            };
            let before = names.entry(name.to_owned()).or_insert_with(|| vec![None]);
            before.push(Some(entry));
        }
        for (name, entries) in &mut names {
            if real.is_some_and(|real| !real.join(name).exists()) {
                entries.push(None);
            }
        }
        names
    }

    /// Picks one of several; the first one is what was synchronised.
    fn pick<T>(&mut self, mut all: Vec<T>) -> T {
        let count = all.len();
        let number = self.random.as_mut().map_or(0, |random| random.below(count));
        all.swap_remove(number)
    }

    /// Rebuilds a folder as the disk may have it.
    fn rebuild(&mut self, name: &str, real: Option<&Path>, to: &Path) {
        fs::create_dir_all(to).expect("a folder");
        for (name, entries) in self.names(name, real) {
            match self.pick(entries) {
                None => {}
                Some(FolderEntry::Folder(key, real)) => {
                    self.rebuild(&key, real.as_deref(), &to.join(name));
                }
                Some(FolderEntry::File(contents)) => {
                    fs::write(to.join(name), self.pick(contents)).expect("a file");
                }
            }
        }
    }
}

/// Simulates a power failure at a moment of a run into the folder `name`, and resumes it from three
/// possible disks. All of them reach the same as the undisturbed run. Returns how many of them had
/// something to resume.
fn lose_power(
    (folder, library): (&Path, &Path),
    mut run: Command,
    name: &str,
    moment: (&str, u64),
    (whole, code): (&[String], i32),
) -> u32 {
    let synced = folder.join(format!("synced-{name}"));
    fs::create_dir(&synced).expect("a folder");
    run.env("LD_PRELOAD", library)
        .env("EVERETT_TEST_SYNCED", &synced)
        .env(moment.0, moment.1.to_string());
    run.output().expect("it starts");
    let real = folder.join(name);
    let mut resumed = 0;
    for seed in 0..3 {
        let cut = format!("{name}-{seed}");
        let random = (seed > 0).then(|| Numbers(seed + 10 * moment.1));
        let mut disk = Disk {
            synced: &synced,
            random,
        };
        let out = folder.join(&cut);
        disk.rebuild(&name_of(&real), Some(&real), &out);
        // The run had ended, or had no checkpoint yet.
        if out.join("summary.json").exists() || !out.join("checkpoint.json").exists() {
            continue;
        }
        let output = everett(folder).args(["resume", &cut]).output();
        let output = output.expect("it starts");
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{cut}: {said}");
        assert!(endings(&out) == whole, "{cut}: other paths\n{said}");
        assert_eq!(summary(&out)["complete"], true, "{cut}");
        resumed += 1;
    }
    resumed
}

#[test]
fn runs_that_lost_power_are_resumed_from_what_the_disk_has() {
    let folder = folder("power");
    build(&folder, "forks", FORKS, &[]);
    let library = library(&folder);
    let run = |out: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--no-confirm", "--checkpoint", "0s"]);
        run.args(["--out", out, "./forks"]);
        run
    };
    expect(&mut run("whole"), 1);
    let whole = (&*endings(&folder.join("whole")), 1);
    let place = (&*folder, &*library);
    let first = ("EVERETT_TEST_CHECKPOINTS", 1);
    let resumed = lose_power(place, run("lost"), "lost", first, whole);
    assert_eq!(resumed, 3, "there always is a first checkpoint");
    // The number of files that are synchronised before the end depends on the disk.
    for number in [20, 41, 43, 44, 46, 50, 55, 60, 70, 80, 100] {
        let name = format!("lost-{number}");
        let moment = ("EVERETT_TEST_SYNCS", number);
        lose_power(place, run(&name), &name, moment, whole);
    }
}

/// So many results that the file system is synchronised at once.
#[test]
fn a_checkpoint_with_many_results_lasts() {
    let folder = folder("power-many");
    let source = "int main(int n, char **v) { int bits = 0; for (int i = 0; i < 8; i++)\n\
                  if (v[1][0] >> i & 1) bits++; return bits; }";
    build(&folder, "bits", source, &[]);
    let library = library(&folder);
    let run = |out: &str, paths: &str| {
        let mut run = everett(&folder);
        run.args(["run", "--all-tests", "--checkpoint", "1000s"]);
        run.args(["--max-paths", paths, "--out", out, "./bits"]);
        run.args(["--sym-arg", "1"]);
        run
    };
    expect(&mut run("whole", "1000"), 0);
    let whole = (&*endings(&folder.join("whole")), 0);
    let place = (&*folder, &*library);
    // All of its tests are in the checkpoint at which it stops.
    let first = ("EVERETT_TEST_CHECKPOINTS", 1);
    let resumed = lose_power(place, run("lost", "100"), "lost", first, whole);
    assert_eq!(resumed, 3);
    for number in [1, 50, 101, 150, 210] {
        let name = format!("lost-{number}");
        let moment = ("EVERETT_TEST_SYNCS", number);
        lose_power(place, run(&name, "100"), &name, moment, whole);
    }
}
