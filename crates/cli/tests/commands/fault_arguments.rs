//! `everett faults` tells calls with the same stack from each other by their arguments.

use crate::common::{build, everett, expect, folder, summary, text};
use crate::fault_search::{TestFolder, outcome};
use std::fs;

/// Opens three files from one place. Without the second one, it crashes.
const SYSTEM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static FILE *files[3];
static void load(int number, const char *name) { files[number] = fopen(name, "r"); }
int main(void) {
  static const char *names[] = {"one.txt", "two words.txt", "three.txt"};
  for (int number = 0; number < 3; number++)
    load(number, names[number]);
  if (!files[0])
    return 3;
  return fgetc(files[1]) != 'x';
}
"#;

fn place(name: &str, search: &str) -> TestFolder {
    let files = [
        ("system.c", SYSTEM),
        ("s.toml", search),
        ("one.txt", "x"),
        ("two words.txt", "x"),
        ("three.txt", "x"),
    ];
    let place = TestFolder::new(name, &files);
    place.build("system", &["-g", "-O0"]);
    place
}

#[test]
fn faults_hit_calls_with_an_argument() {
    let search = "space = 'function : { fopen } callsite : { load } \
                  arguments : { one.txt, \"two words.txt\", \"three.txt, r\", other } callNumber : [1,2] ;'\n\
                  injector = \"preload\"\nprogram = \"system\"\ntest = \"./system\"\n";
    let place = place("arguments", search);
    let summary = place.run("out", &["--search", "exhaustive"]);
    let of = |arguments: &str, number: u32| {
        let fault = format!("function fopen callsite load arguments {arguments}");
        outcome(&summary, &format!("{fault} callNumber {number}"))
    };
    assert_eq!(of("one.txt", 1), "failed");
    assert_eq!(of("\"two words.txt\"", 1), "crashed");
    assert_eq!(of("\"three.txt, r\"", 1), "passed");
    // The calls that have it count, and no others.
    for arguments in ["one.txt", "\"two words.txt\"", "\"three.txt, r\""] {
        assert_eq!(of(arguments, 2), "passed");
    }
    assert_eq!(of("other", 1), "passed");
    let results = summary["results"].as_array().expect("a list").iter();
    let crash = results
        .clone()
        .find(|result| result["outcome"] == "crashed");
    assert_eq!(crash.expect("a crash")["arguments"], "two words.txt, r");
    let injected = results.filter(|result| result["injected"] == true);
    assert_eq!(injected.count(), 3);
    let replayed = place.faults(&["replay", "out/000003", "--times", "3"]);
    assert_eq!(replayed.status.code(), Some(0));
}

#[test]
fn a_space_of_stacks_and_arguments_names_each_call() {
    let place = place("failures", "");
    let profiled = place.faults(&["profile", "--by", "failure", "--", "./system"]);
    let space = String::from_utf8_lossy(&profiled.stdout).into_owned();
    assert!(
        space.contains("arguments : { \"one.txt, r\", \"three.txt, r\", \"two words.txt, r\" }"),
        "{space}"
    );
    fs::write(place.path().join("by.space"), &space).expect("written");
    let search = |space: &str, injector: &str| {
        let text = format!(
            "space = '{space}'\ninjector = \"{injector}\"\nprogram = \"system\"\ntest = \"./system\"\nrepetitions = 1\n"
        );
        fs::write(place.path().join("s.toml"), text).expect("written");
        place.run(injector, &["--search", "exhaustive"])
    };
    let summary = search("by.space", "preload");
    let results = summary["results"].as_array().expect("a list").iter();
    let hit = results.filter(|result| {
        let scenario = result["scenario"].as_str().unwrap_or_default();
        scenario.contains("\"two words.txt, r\"")
    });
    let outcomes: Vec<_> = hit.map(|result| &result["outcome"]).collect();
    assert!(
        !outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == "crashed"),
        "{summary}"
    );
    // System calls are told from each other, too.
    let profiled = place.faults(&["profile", "--syscalls", "--by", "failure", "--", "./system"]);
    let space = String::from_utf8_lossy(&profiled.stdout).into_owned();
    assert!(space.contains("two words.txt, "), "{space}");
    let call = "function : { open, openat } arguments : { \"two words.txt\" } callNumber : [1,2] ;";
    let summary = search(call, "ptrace");
    assert_eq!(summary["crashes"], 1, "{summary}");
}

/// Opens three files and makes three allocations, from one place each. Without the second one, it
/// crashes.
const HOST: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
static int files[3];
static void load(int number, const char *name) { files[number] = open(name, O_RDONLY); }
static void *room(int size) { return malloc(size); }
int main(void) {
  static const char *names[] = {"/one", "/two words", "/three"};
  for (int number = 0; number < 3; number++)
    load(number, names[number]);
  static const int sizes[] = {10, 2000, 30};
  void *rooms[3];
  for (int number = 0; number < 3; number++)
    rooms[number] = room(sizes[number]);
  if (!rooms[1])
    abort();
  if (files[0] < 0)
    return 3;
  return files[1] < 0 ? *(volatile int *)0 : 0;
}
"#;

#[test]
fn faults_hit_calls_of_worlds_with_an_argument() {
    let folder = folder("fault-world-arguments");
    build(&folder, "host", HOST, &["-g"]);
    let world = "[host.node]\nprogram = \"./host\"\nfile.\"/one\".text = \"x\"\n\
                 file.\"/two words\".text = \"x\"\nfile.\"/three\".text = \"x\"\n";
    fs::write(folder.join("world.toml"), world).expect("written");
    let run = |space: &str, out: &str| {
        let search =
            format!("space = '''{space}'''\ninjector = \"model\"\nscenario = \"world.toml\"\n");
        fs::write(folder.join("s.toml"), search).expect("written");
        let words = ["faults", "run", "s.toml", "--search", "exhaustive"];
        let more = ["--out", out, "--explore", "1"];
        expect(everett(&folder).args(words).args(more), 1);
        summary(&folder.join(out))
    };
    let found = run(
        "function : { open } callsite : { load } \
         arguments : { \"/one\", \"/two words\", \"/three, 32768, 0\", other } number : [1,2] ; \
         function : { malloc } arguments : { \"10\", 2000, \"30\" } number : [1,2] ;",
        "by-hand",
    );
    let of = |fault: &str| outcome(&found, &format!("function {fault}"));
    let open = "open callsite load arguments";
    assert_eq!(of(&format!("{open} /one number 1")), "failed");
    assert_eq!(of(&format!("{open} \"/two words\" number 1")), "crashed");
    assert_eq!(of("malloc arguments 2000 number 1"), "crashed");
    assert_eq!(found["failures"], 3, "{found}");
    // Only calls with the argument count, and each of them was made once.
    assert_eq!(found["scenarios_injected"], 6, "{found}");
    let crash = &found["results"][0];
    assert_eq!(crash["arguments"], "/two words, 32768, 0", "{crash}");
    let name = crash["name"].as_str().expect("a name");
    let replay = format!("by-hand/{name}");
    let words = ["faults", "replay", &replay, "--times", "3"];
    expect(everett(&folder).args(words), 0);
    // An exploration has the same fault.
    let explored = &found["explored"][0];
    assert_eq!(
        explored["findings"][0]["kind"], "null-pointer",
        "{explored}"
    );

    let profile = ["faults", "profile", "--by", "failure", "--", "world.toml"];
    let space = text(&expect(everett(&folder).args(profile), 0));
    for axis in [
        "arguments : { \"10\", \"2000\", \"30\" } errno : { ENOMEM } number : [1, 1]",
        "arguments : { \"/one, 32768, 0\", \"/three, 32768, 0\", \"/two words, 32768, 0\" }",
    ] {
        assert!(space.contains(axis), "{space}");
    }
    let all = run(&space, "profiled");
    assert_eq!(all["scenarios_injected"], all["scenarios_total"], "{all}");
    // Each errno of the second file, and the second allocation.
    assert_eq!(all["crashes"], 4, "{all}");
}
