//! `everett faults` tells calls with the same stack from each other by their arguments.

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
