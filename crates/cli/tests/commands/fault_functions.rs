//! Failing libc functions in worlds, and explorations that know where calls come from.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Calls libc functions, and tells by its exit code which of them failed, and how. If a copy fails, it
/// recovers, but not with one input.
const PROGRAM: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *nothing(void *argument) { return argument; }
int main(void) {
  char input[2], line[8];
  if (read(0, input, 2) != 2)
    return 1;
  FILE *file = fopen("/data", "r");
  if (!file)
    return errno == EMFILE ? 10 : 11;
  if (!fgets(line, sizeof line, file))
    return ferror(file) && errno == EIO ? 12 : 13;
  char *own = malloc(24);
  if (!own)
    return errno == ENOMEM ? 14 : 15;
  char *copy = strdup(line);
  if (!copy) {
    if (input[1] == 'q')
      abort();
    return 16;
  }
  pthread_t thread;
  int error = pthread_create(&thread, 0, nothing, 0);
  if (error)
    return error == EAGAIN ? 17 : 18;
  pthread_join(thread, 0);
  free(copy);
  free(own);
  /* Its descriptor is closed even if it fails. */
  int before = fileno(file), failed = fclose(file), after = open("/data", O_RDONLY);
  return failed ? (errno == EIO && after == before ? 19 : 20) : 0;
}
"#;

const WORLD: &str = r#"
[host.node]
program = "./program"
stdin = { symbolic = 2 }
file."/data".text = "text\n"
"#;

const SEARCH: &str = r#"
space = """
function : { fopen } errno : { EMFILE, EIO } retval : { 0, 7 } callNumber : { 1, 2 } ;
function : { fgets } errno : { EIO } retval : { 0 } callNumber : { 1 } ;
function : { malloc, calloc, strdup } errno : { ENOMEM } retval : { 0 } callNumber : { 1, 2 } ;
function : { pthread_create } retval : { 11, 12 } ;
function : { fclose } errno : { EIO } retval : { -1 } ;
function : { strdup } arguments : { "text?", "data" } retval : { 0 } ;
function : { malloc } arguments : { 24, 25 } callsite : { main } retval : { 0 } ;
"""
injector = "model"
scenario = "world.toml"
"#;

fn place(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    build(&folder, "program", PROGRAM, &["-g"]);
    fs::write(folder.join("world.toml"), WORLD).expect("written");
    fs::write(folder.join("search.toml"), SEARCH).expect("written");
    folder
}

fn search(folder: &Path, more: &[&str]) -> Value {
    let run = ["faults", "run", "search.toml", "--out", "out"];
    expect(everett(folder).args(run).args(more), 1);
    summary(&folder.join("out"))
}

/// Returns how a scenario ended.
fn outcome<'s>(summary: &'s Value, scenario: &str) -> &'s Value {
    let mut all = summary["results"].as_array().expect("a list").iter();
    all.find(|one| one["scenario"] == scenario)
        .unwrap_or_else(|| panic!("no scenario {scenario} in {summary}"))
}

#[test]
fn libc_functions_fail_in_worlds() {
    let folder = place("fault-functions");
    let all = search(&folder, &["--search", "exhaustive"]);
    for (scenario, code) in [
        ("function fopen errno EMFILE retval 0 callNumber 1", "10"),
        ("function fopen errno EIO retval 0 callNumber 1", "11"),
        ("function fgets errno EIO retval 0 callNumber 1", "12"),
        // Allocations of the C library itself do not count.
        ("function malloc errno ENOMEM retval 0 callNumber 1", "14"),
        ("function strdup errno ENOMEM retval 0 callNumber 1", "16"),
        ("function pthread_create retval 11", "17"),
        ("function pthread_create retval 12", "18"),
        ("function fclose errno EIO retval -1", "19"),
        ("function strdup arguments \"text?\" retval 0", "16"),
        ("function malloc arguments 24 callsite main retval 0", "14"),
    ] {
        let one = outcome(&all, scenario);
        assert_eq!(one["outcome"], "failed", "{one}");
        assert!(
            one["why"].to_string().contains(&format!("exit {code}")),
            "{one}"
        );
        assert_eq!(one["injected"], true, "{one}");
    }
    // A stream that is no stream.
    let wild = outcome(&all, "function fopen errno EIO retval 7 callNumber 1");
    assert_eq!(wild["outcome"], "crashed", "{wild}");
    for never in [
        "function fopen errno EMFILE retval 0 callNumber 2",
        "function malloc errno ENOMEM retval 0 callNumber 2",
        "function calloc errno ENOMEM retval 0 callNumber 1",
        "function strdup arguments data retval 0",
        "function malloc arguments 25 callsite main retval 0",
    ] {
        let one = outcome(&all, never);
        assert_eq!(one["injected"], false, "{one}");
        assert_eq!(one["outcome"], "passed", "{one}");
    }
    let one = outcome(&all, "function strdup errno ENOMEM retval 0 callNumber 1");
    assert_eq!(one["arguments"], "text?", "{one}");
    assert!(one["stack"][1].to_string().contains("in main at"), "{one}");
    for _ in 0..3 {
        let replayed = format!("out/scenarios/{}", one["name"].as_str().expect("a name"));
        expect(everett(&folder).args(["replay", &replayed]), 0);
    }
}

#[test]
fn explored_libc_functions_fail_as_planned() {
    let folder = place("fault-functions-explored");
    fs::write(
        folder.join("search.toml"),
        "space = \"function : { strdup, fclose } retval : { -1, 0 } callNumber : { 1, 23 } ;\"\n\
         injector = \"model\"\nscenario = \"world.toml\"\n",
    )
    .expect("written");
    let all = search(&folder, &["--search", "exhaustive", "--explore", "4"]);
    let explored = all["explored"].as_array().expect("a list");
    let of = |scenario: &str| {
        let mut named = explored.iter().filter(|one| one["scenario"] == scenario);
        named.next().unwrap_or_else(|| panic!("{scenario}: {all}"))
    };
    let copied = of("function strdup retval 0 callNumber 1");
    assert_eq!(copied["complete"], true, "{copied}");
    assert_eq!(copied["findings"][0]["kind"], "abort", "{copied}");
    assert_eq!(copied["findings"][0]["confirmed"], "confirmed", "{copied}");
    let closed = of("function fclose retval -1 callNumber 1");
    assert_eq!(closed["complete"], true, "{closed}");
    assert_eq!(closed["paths"], 1, "{closed}");
}

/// Every failure of a function is explored, and each path ends natively as it does there.
#[test]
fn runs_explore_failures_of_libc_functions() {
    let folder = place("fault-functions-run");
    for name in [
        "fopen",
        "fgets",
        "malloc",
        "strdup",
        "pthread_create",
        "fclose",
    ] {
        let out = format!("out-{name}");
        let settings =
            format!("{WORLD}faults = 1\nfault_calls = [\"{name}()\", \"!{name}():ENOENT\"]\n");
        fs::write(folder.join("world.toml"), settings).expect("written");
        let finds = if name == "strdup" { 1 } else { 0 };
        expect(
            everett(&folder).args(["run", "--out", &out, "world.toml"]),
            finds,
        );
        let tests = folder.join(&out);
        let tested = expect(everett(&folder).arg("test").arg(&tests), 0);
        assert!(!text(&tested).contains("differ"), "{}", text(&tested));
        let summary = summary(&tests);
        assert_eq!(summary["complete"], true, "{summary}");
    }
    let wrong = WORLD.to_owned() + "faults = 1\nfault_calls = [\"frobnicate()\"]\n";
    fs::write(folder.join("world.toml"), wrong).expect("written");
    let refused = expect(everett(&folder).args(["run", "world.toml"]), 2);
    assert!(
        text(&refused).contains("is not a libc function"),
        "{}",
        text(&refused)
    );
}

/// Writes once more with some input, so that the call that stores has another number then.
const STORES: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static int append(const char *name, char byte) {
  int fd = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
  int written = fd < 0 ? -1 : (int)write(fd, &byte, 1);
  close(fd);
  return written == 1;
}
static int note(char byte) { return append("/notes", byte) + 1; }
static int store(char byte) { return append("/store", byte) + 1; }
int main(void) {
  char input;
  if (read(0, &input, 1) != 1)
    return 1;
  char *block = input == 'x' ? malloc(10) : 0;
  if (input == 'x')
    note(input);
  char *other = malloc(20);
  if (store(input) == 1 && input == 'x')
    abort();
  if (!other && input == 'x')
    abort();
  free(other);
  free(block);
  return 0;
}
"#;

#[test]
fn explorations_know_where_calls_come_from() {
    let folder = folder("fault-functions-sites");
    build(&folder, "stores", STORES, &["-g"]);
    let world = "[host.node]\nprogram = \"./stores\"\nstdin = { symbolic = 1 }\n";
    fs::write(folder.join("world.toml"), world).expect("written");
    let profile = ["faults", "profile", "--by", "stack", "--out", "world.space"];
    expect(everett(&folder).args(profile).args(["--", "world.toml"]), 0);
    let stacks = fs::read_to_string(folder.join("world.space")).expect("a space");
    let stack = stacks.lines().find_map(|line| {
        let rest = line.strip_prefix("# stack ")?;
        rest.split_once(": write from ").map(|(stack, _)| stack)
    });
    let stack = stack.expect("a stack");
    let search_file = format!(
        "space = \"\"\"\nfunction : {{ write }} callsite : {{ store }} errno : {{ EIO }} ;\n\
         function : {{ write }} stack : {{ \"{stack}\" }} errno : {{ EIO }} ;\n\
         function : {{ open }} arguments : {{ \"/store\" }} errno : {{ EMFILE }} ;\n\
         function : {{ malloc }} arguments : {{ 20 }} ;\n\
         function : {{ write }} errno : {{ EIO }} ;\n\"\"\"\n\
         injector = \"model\"\nscenario = \"world.toml\"\n"
    );
    fs::write(folder.join("search.toml"), search_file).expect("written");
    let all = search(&folder, &["--search", "exhaustive", "--explore", "9"]);
    assert_eq!(all["failures"], 0, "{all}");
    let explored = all["explored"].as_array().expect("a list");
    assert_eq!(explored.len(), 5, "{all}");
    for one in explored {
        // By its number alone, the write with the other input is that of the note.
        let scenario = one["scenario"].as_str().expect("a scenario");
        let is_found = scenario != "function write errno EIO";
        assert_eq!(one["complete"], true, "{one}");
        assert_eq!(
            one["findings"].as_array().map(Vec::len),
            Some(is_found.into()),
            "{one}"
        );
        if is_found {
            assert_eq!(one["findings"][0]["confirmed"], "confirmed", "{one}");
        }
    }
}
