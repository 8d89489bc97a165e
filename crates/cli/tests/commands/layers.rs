//! The guest's view of the disk, and which of its files are kept.

use crate::common::{build, endings, everett, expect, folder};
use std::fs;

/// Prints the content of a file, then changes it, creates others and removes one.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char text[100], path[200];
  FILE *file = fopen(argv[1], "r+");
  if (!file) return 7;
  if (!fgets(text, sizeof text, file)) return 8;
  fputs(text, stdout);
  rewind(file);
  fputs("CHANGED", file);
  fclose(file);
  puts(getcwd(path, sizeof path));
  if (argc > 2) unlink(argv[2]);
  mkdir("made", 0700);
  file = fopen("made/new", "w");
  fputs("fresh", file);
  fclose(file);
  symlink("new", "made/link");
  return 0;
}
"#;

#[test]
fn the_disk_is_seen_and_never_written() {
    let folder = folder("layers-seen");
    build(&folder, "program", PROGRAM, &[]);
    fs::create_dir_all(folder.join("data/inner")).unwrap();
    fs::write(folder.join("data/inner/file"), "on the disk\n").unwrap();
    let data = folder.join("data");
    let data = data.to_str().unwrap();
    let there = format!("{data}=/there");
    let file = format!("/etc/own={data}/inner/file");
    let folder_there = format!("/etc/inner={data}/inner");
    let cases: [(&[&str], &str, &str); 5] = [
        (&["--file", &folder_there], "/etc/inner/file", "/"),
        (&["--ro", data], &format!("{data}/inner/file"), "/"),
        (
            &["--ro", &there, "--cwd", "/a/b"],
            "/there/inner/file",
            "/a/b",
        ),
        (&["--files", "data"], "inner/file", "/"),
        (&["--file", &file, "--cwd", "/tmp"], "/etc/own", "/tmp"),
    ];
    for (options, path, cwd) in cases {
        let mut exec = everett(&folder);
        exec.arg("exec").args(options).args(["./program", path]);
        let output = expect(&mut exec, 0);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, format!("on the disk\n{cwd}\n"), "{options:?}");
    }
    let held = fs::read_to_string(folder.join("data/inner/file")).unwrap();
    assert_eq!(held, "on the disk\n");
    assert!(!folder.join("made").exists());
}

#[test]
fn what_a_path_leaves_behind_is_kept() {
    let folder = folder("layers-kept");
    build(&folder, "program", PROGRAM, &[]);
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::write(folder.join("data/file"), "on the disk\n").unwrap();
    fs::write(folder.join("data/doomed"), "").unwrap();
    let mut run = everett(&folder);
    run.args(["run", "--all-tests", "--save-fs", "--out", "out"])
        .args(["--ro", "data=/data", "--cwd", "/home"])
        .args(["./program", "/data/file", "/data/doomed"]);
    expect(&mut run, 0);
    let test = folder.join("out/tests");
    let read = |path: &str| fs::read_to_string(test.join(path)).unwrap_or_default();
    assert_eq!(read("000001.fs/data/file"), "CHANGEDdisk\n");
    assert_eq!(read("000001.fs/home/made/new"), "fresh");
    let list = read("000001.fs.txt");
    assert_eq!(
        list,
        "removed /data/doomed\nfile 0644 /data/file (12 bytes)\ndirectory 0700 /home/made\n\
         link /home/made/link -> new\nfile 0644 /home/made/new (5 bytes)\n"
    );
    expect(everett(&folder).args(["follow", "out"]), 0);
}

/// Branches on the size and the contents of a file.
const SIZES: &str = r#"
#include <stdio.h>
int main(void) {
  FILE *file = fopen("A", "r");
  int count = 0, byte, found = 0;
  while ((byte = getc(file)) != EOF) {
    count++;
    if (byte == 'x') found = 1;
  }
  file = fopen("out", "w");
  fprintf(file, "%d %d", count, found);
  fclose(file);
  return count * 2 + found;
}
"#;

#[test]
fn a_file_of_symbolic_size_has_each() {
    let folder = folder("layers-sizes");
    build(&folder, "program", SIZES, &[]);
    let mut run = everett(&folder);
    run.args(["run", "--all-tests", "--save-fs", "--out", "out"])
        .args(["./program", "--sym-file", "A", "0-2"]);
    expect(&mut run, 0);
    let mut held: Vec<String> = fs::read_dir(folder.join("out/tests"))
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("out")).ok())
        .collect();
    held.sort();
    held.dedup();
    assert_eq!(held, ["0 0", "1 0", "1 1", "2 0", "2 1"]);
    expect(everett(&folder).args(["follow", "out"]), 0);
}

/// Prints whether a file is old, from the future, or as it is on the disk.
const ASKS_FOR_TIMES: &str = r#"
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
int main(int argc, char **argv) {
  struct stat status;
  struct timespec early = {.tv_sec = 1000};
  if (argc > 2) clock_settime(CLOCK_REALTIME, &early);
  if (stat(argv[1], &status) != 0) return 7;
  long year = status.st_mtime / 31556952 + 1970;
  return year < 1980 ? 1 : year >= 2100 ? 2 : 3;
}
"#;

#[test]
fn times_of_files_newer_than_the_wall_clock_are_symbolic() {
    let folder = folder("layers-times");
    build(&folder, "program", ASKS_FOR_TIMES, &[]);
    fs::create_dir_all(folder.join("data")).unwrap();
    let file = fs::File::create(folder.join("data/file")).unwrap();
    for (year, second) in [(2010, 1_262_304_000), (2026, 1_767_225_600)] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        file.set_modified(time).unwrap();
        // A program that sets the clock back has not changed its files.
        for more in [&[][..], &["set"]] {
            let mut run = everett(&folder);
            run.args(["run", "--sym-file-times", "--all-tests", "--out", "out"])
                .args(["--files", "data", "./program", "file"]);
            expect(run.args(more), 0);
            let ends = endings(&folder.join("out"));
            let is_once = |code: u32| {
                let end = format!("\"exit\":{code},");
                ends.iter().filter(|text| text.contains(&end)).count() == 1
            };
            assert!((1..=3).all(is_once), "{year} {more:?}: {ends:?}");
            fs::remove_dir_all(folder.join("out")).unwrap();
        }
    }
}
