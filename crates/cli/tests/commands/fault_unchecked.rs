//! Calls whose results a program does not check are found in its bitcode, and a search fails them
//! first.

use crate::common::{build, count, everett, expect, folder, summary};
use everett_faultspace::Unchecked;
use std::fs;

/// Each call with a comment `unchecked` is one.
const CALLS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct both { char *one, *other; };
static void *checked(void *memory) {
  if (!memory)
    exit(1);
  return memory;
}
static __attribute__((noinline)) char *passed(char *memory) { return checked(memory); }
static __attribute__((noinline)) FILE *opened(const char *name) {
  return fopen(name, "r");
}
__attribute__((noinline)) int fill(struct both *both, size_t size) {
  both->one = malloc(size);
  both->other = calloc(size, 1); // unchecked
  if (!both->one)
    return 1;
  both->other[0] = 1;
  return 0;
}
int main(int argc, char **argv) {
  struct both both;
  char bytes[8], *again;
  if (fill(&both, argc))
    return 1;
  both.one = passed(strdup(argv[0]));
  again = realloc(both.one, argc + 20); // unchecked
  again[0] = 'a';
  int got = read(0, bytes, sizeof bytes);
  long sum = got + 1L;
  if (sum < 1)
    return 2;
  FILE *file = opened("nothing");
  write(1, again, file != 0); // unchecked
  switch (getpid()) {
  case 1:
    return 3;
  }
  return 0;
}
"#;

#[test]
fn unchecked_calls_are_found_with_and_without_optimisation() {
    let folder = folder("unchecked-calls");
    let lines = CALLS.lines().zip(1..);
    let expected: Vec<u32> = lines
        .filter(|(text, _)| text.contains("// unchecked"))
        .map(|(_, line)| line)
        .collect();
    for level in ["-O0", "-O2"] {
        build(&folder, "calls", CALLS, &["-g", level]);
        let mut unchecked = Unchecked::default();
        let read = unchecked.read(&folder.join("calls.bc"));
        read.expect("bitcode");
        let line = |site: &String| {
            let (file, line) = site.rsplit_once(':').expect("a line");
            assert!(file.ends_with("calls.c"), "{site}");
            line.parse().expect("a number")
        };
        let mut lines: Vec<u32> = unchecked.sites.iter().map(line).collect();
        lines.sort();
        assert_eq!(lines, expected, "{level}: {unchecked:?}");
        let functions: Vec<&str> = unchecked.functions.iter().map(|name| &**name).collect();
        assert_eq!(functions, ["calloc", "malloc", "realloc", "write"]);
    }
}

/// A program that checks all calls but one, in rare code.
const ONE: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *checked(void *memory) {
  if (!memory)
    _exit(0);
  return memory;
}
int main(void) {
  for (int at = 0; at < 60; at++) {
    *(char *)checked(malloc(100)) = 1;
    *(char *)checked(calloc(100, 1)) = 1;
    if (at == 30)
      *(char *)strdup("rare") = 1;
  }
  return 0;
}
"#;

#[test]
fn a_search_fails_unchecked_calls_first() {
    let folder = folder("unchecked-search");
    build(&folder, "one", ONE, &["-g"]);
    fs::write(
        folder.join("world.toml"),
        "[host.one]\nprogram = \"./one\"\n",
    )
    .expect("written");
    let line = ONE
        .lines()
        .position(|text| text.contains("strdup"))
        .expect("a line");
    let runs = |name: &str, guided: &str| {
        let sites: Vec<String> = (1..=60).map(|line| format!("\"one.c:{line}\"")).collect();
        let text = format!(
            "space = \"\"\"\nfunction : {{ malloc }} callsite : {{ {} }} number : [1, 10] ;\n\"\"\"\n\
             injector = \"model\"\nscenario = \"world.toml\"\nsearch = \"adaptive\"\nrepetitions = 1\n\
             [stop]\ncrashes = 1\n{guided}",
            sites.join(", ")
        );
        fs::write(folder.join("search.toml"), text).expect("written");
        let words = ["faults", "run", "search.toml", "--out", name];
        expect(everett(&folder).args(words), 1);
        let summary = summary(&folder.join(name));
        assert_eq!(count(&summary, "/crashes"), 1, "{summary:#}");
        let crash = summary["results"][0]["scenario"].to_string();
        assert!(crash.contains(&format!("one.c:{}", line + 1)), "{crash}");
        count(&summary, "/scenarios_run")
    };
    let without = runs("without", "");
    let with = runs("with", "[guided]\nunchecked = \"one.bc\"\n");
    assert!(with <= 24 && with < without, "{with} against {without}");
    fs::write(folder.join("search.toml"), "space = \"a : [1,2] ;\"\ninjector = \"model\"\nscenario = \"world.toml\"\n[guided]\nunchecked = \"world.toml\"\n").expect("written");
    let refused = expect(everett(&folder).args(["faults", "run", "search.toml"]), 2);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("search.toml:5:") && said.contains("world.toml"),
        "{said}"
    );
}
