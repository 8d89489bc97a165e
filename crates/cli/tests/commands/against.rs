//! Comparison of two builds (`everett run --against`). If they differ, an input shows the
//! difference natively on both. Builds are reported as equivalent only if the exploration is
//! complete.

use crate::common::{build, everett, expect, folder, summary, text};
use serde_json::Value;
use std::fs;

/// Builds two programs, compares them, and returns the comparison in the summary.
fn compare(name: &str, [new, old]: [&str; 2], flags: &[&str], input: &[&str], code: i32) -> Value {
    let folder = folder(&format!("against-{name}"));
    build(&folder, "new", new, &[]);
    build(&folder, "old", old, &[]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "--against", "old"]);
    let output = expect(run.args(flags).arg("new").args(input), code);
    let said = text(&output);
    let summary = summary(&folder.join("out"));
    let against = summary["against"].clone();
    let is_equivalent = against["equivalent"] == true;
    assert_eq!(
        said.contains("equivalent: the builds do the same"),
        is_equivalent,
        "{said}"
    );
    for difference in against["differences"].as_array().unwrap() {
        assert_eq!(difference["confirmed"], "confirmed", "{difference}\n{said}");
        let dir = difference["dir"].as_str().unwrap();
        let told = fs::read_to_string(folder.join("out").join(dir).join("difference.txt"));
        let told = told.expect("a description");
        assert!(told.contains("\nnatively: confirmed\n"), "{told}");
        let trace = format!("out/{dir}/against.trace");
        // Each trace belongs to its own build.
        expect(everett(&folder).args(["replay", "--on", "old", &trace]), 0);
    }
    // Tests and differences of the build under test replay on it; traces of the other build are not
    // mistaken for its own.
    expect(everett(&folder).args(["test", "out"]), 0);
    against
}

fn first(against: &Value) -> (Vec<&str>, &str, &str) {
    let difference = &against["differences"][0];
    let aspects = difference["aspects"].as_array().unwrap().iter();
    let aspects = aspects.map(|aspect| aspect.as_str().unwrap()).collect();
    let end = |build: &str| difference[build].as_str().unwrap();
    (aspects, end("new"), end("old"))
}

/// Clamps an index. The old build does not. The fix also changes results that were right.
const CLAMP: &str = r#"
#include <stdio.h>
#include <unistd.h>
static const char names[4] = "abcd";
int main(void) {
    unsigned char at = 0;
    if (read(0, &at, 1) != 1)
        return 1;
    if (at CHECK)
        at = 0;
    printf("%c\n", names[at]);
    return 0;
}
"#;

#[test]
fn an_incomplete_fix_shows_where_it_differs_and_where_it_does_not() {
    // Index 4 is outside in both builds; 3 is right only in the old build.
    let new = CLAMP.replace("CHECK", "> 4 || at == 3");
    let old = CLAMP.replace("CHECK", "> 200");
    let against = compare("fix", [&new, &old], &[], &["--sym-stdin", "1"], 1);
    let differences = against["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2, "{against}");
    let has = |aspect: &str, end: &str| {
        let mut all = differences.iter();
        all.any(|one| one["aspects"][0] == aspect && one["old"].as_str().unwrap().starts_with(end))
    };
    assert!(has("standard output", "exits with 0"), "{against}");
    assert!(has("the end", "ends in out-of-bounds"), "{against}");
}

#[test]
fn a_refactoring_is_equivalent() {
    let new = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
    unsigned char in[2];
    if (read(0, in, 2) != 2) return 1;
    unsigned sum = in[0] + in[1];
    if (sum > 255) { puts("carry"); return 2; }
    write(1, &(unsigned char){sum}, 1);
    return sum & 1;
}
"#;
    let old = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
    unsigned char in[2];
    if (read(0, in, 1) != 1 || read(0, in + 1, 1) != 1) return 1;
    unsigned char sum = in[1] + in[0];
    if (sum < in[0]) { puts("carry"); return 2; }
    write(1, &sum, 1);
    return sum % 2;
}
"#;
    for workers in ["1", "2"] {
        let flags = ["--workers", workers];
        let against = compare(
            &format!("same-{workers}"),
            [new, old],
            &flags,
            &["--sym-stdin", "2"],
            0,
        );
        assert_eq!(against["equivalent"], true);
        assert_eq!(against["pairs_different"], 0);
    }
    // If paths are left, nothing is claimed.
    let against = compare(
        "cut",
        [new, old],
        &["--max-paths", "1"],
        &["--sym-stdin", "2"],
        0,
    );
    assert_eq!(against["equivalent"], false);
}

#[test]
fn exit_codes_and_files_are_compared() {
    let status = |code: &str| {
        format!(
            "#include <stdlib.h>\nint main(int c, char **v) {{ return v[1][0] == 'x' ? {code} : 0; }}"
        )
    };
    let against = compare(
        "exit",
        [&status("3"), &status("4")],
        &[],
        &["--sym-arg", "1"],
        1,
    );
    let (aspects, new, old) = first(&against);
    assert_eq!(
        (aspects.as_slice(), new, old),
        (&["the exit status"][..], "exits with 3", "exits with 4")
    );

    let file = |byte: &str| {
        format!(
            "#include <stdio.h>\nint main(void) {{ int c = getchar(); FILE *f = fopen(\"out\", \"w\"); \
             fputc(c == 7 ? {byte} : 'n', f); fclose(f); return 0; }}"
        )
    };
    let against = compare(
        "file",
        [&file("'y'"), &file("'z'")],
        &[],
        &["--sym-stdin", "1"],
        1,
    );
    assert_eq!(first(&against).0.len(), 1);
    assert!(first(&against).0[0].starts_with("the file /"), "{against}");
    let mode = |mode: &str| {
        format!("#include <fcntl.h>\nint main(void) {{ return creat(\"out\", {mode}) < 0; }}")
    };
    let against = compare("mode", [&mode("0600"), &mode("0640")], &[], &[], 1);
    let aspects = first(&against).0;
    assert!(
        aspects[0].ends_with("out (mode 0600, of the other 0640)"),
        "{against}"
    );
    assert_eq!(aspects.len(), 1, "{against}");
    let none = "int main(void) { return 0; }";
    let against = compare("none", [none, &mode("0640")], &[], &[], 1);
    let aspect = first(&against).0[0];
    assert!(
        aspect.ends_with("out (only the other makes or changes it)"),
        "{against}"
    );
}

#[test]
fn inputs_are_shared_by_name_as_far_as_both_have_them() {
    let asks = |size: &str, more: &str| {
        format!(
            "#include <klee/klee.h>\nint main(void) {{ unsigned char x[4] = {{0}}; \
             klee_make_symbolic(x, {size}, \"x\"); {more} return x[1] == 9; }}"
        )
    };
    let against = compare("sizes", [&asks("2", ""), &asks("4", "")], &[], &[], 0);
    assert_eq!(against["equivalent"], true, "{against}");
    let more = "if (x[3] == 5) return 2;";
    let against = compare("more", [&asks("2", ""), &asks("4", more)], &[], &[], 1);
    assert_eq!(first(&against).2, "exits with 2");
}

/// A server that gets its request in pieces, and loses its place if they are cut at certain points.
const PIECES: &str = r#"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    int ends[2];
    char request[8];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    write(ends[0], "GE\r\n\r\n", 6);
    shutdown(ends[0], SHUT_WR);
    unsigned have = 0, pieces = 0;
    ssize_t got;
    while ((got = read(ends[1], request + have, sizeof request - have)) > 0) {
        have += got;
        pieces++;
        assert(!(BROKEN));
    }
    puts("served");
    return 0;
}
"#;

#[test]
fn pieces_that_a_fix_forgets_are_seen() {
    let new = PIECES.replace("BROKEN", "pieces == 1 && have == 5");
    let old = PIECES.replace("BROKEN", "pieces == 1 && have >= 3 && have < 6");
    let against = compare("pieces", [&new, &old], &["--fragment", "2"], &[], 1);
    let (aspects, new, old) = first(&against);
    assert_eq!(
        (aspects.as_slice(), new),
        (&["the end"][..], "exits with 0")
    );
    assert!(old.starts_with("ends in assertion"), "{old}");
    // Cut at 3 and at 4; cut at 5, both fail.
    assert_eq!(against["pairs_different"], 2, "{against}");
}

#[test]
fn a_comparison_that_was_stopped_goes_on() {
    let new = PIECES.replace("BROKEN", "pieces == 1 && have == 5");
    let old = PIECES.replace("BROKEN", "pieces == 1 && have >= 3 && have < 6");
    let folder = folder("against-resumed");
    build(&folder, "new", &new, &[]);
    build(&folder, "old", &old, &[]);
    let run = ["run", "--out", "out", "--against", "old", "--fragment", "2"];
    // The run stops after two pairs of paths.
    let limit = ["--max-paths", "2", "--search", "dfs", "new"];
    expect(everett(&folder).args(run).args(limit), 0);
    expect(everett(&folder).args(["resume", "out"]), 1);
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["complete"], true, "{summary}");
    assert_eq!(summary["against"]["pairs_different"], 2, "{summary}");
    assert_eq!(
        summary["against"]["differences"][0]["confirmed"],
        "confirmed"
    );
    assert_eq!(summary["findings"].as_array().map(Vec::len), Some(1));
}

/// A server that answers a number, and a client that asks with a symbolic byte.
const SERVER: &str = r#"
#include <arpa/inet.h>
#include <sys/socket.h>
int main(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)}, from;
  socklen_t size = sizeof from;
  unsigned char byte = 0;
  bind(fd, (void *)&at, sizeof at);
  if (recvfrom(fd, &byte, 1, 0, (void *)&from, &size) != 1)
    return 1;
  if (LIMIT)
    byte = 0;
  sendto(fd, &byte, 1, 0, (void *)&from, size);
  return 0;
}
"#;
const CLIENT: &str = r#"
#include <arpa/inet.h>
#include <everett.h>
#include <sys/socket.h>
int main(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
  unsigned char byte = everett_symbolic_u8("byte");
  inet_pton(AF_INET, "10.0.0.1", &at.sin_addr);
  sendto(fd, &byte, 1, 0, (void *)&at, sizeof at);
  return recv(fd, &byte, 1, 0) == 1 ? byte == 0 : 2;
}
"#;

#[test]
fn scenarios_are_compared_world_by_world() {
    let folder = folder("against-worlds");
    build(&folder, "client", CLIENT, &[]);
    for (name, limit) in [
        ("new", "byte > 200"),
        ("same", "byte >= 201"),
        ("old", "byte > 250"),
    ] {
        build(&folder, name, &SERVER.replace("LIMIT", limit), &[]);
        let scenario = format!(
            "[host.server]\nprogram = \"./{name}\"\n[host.client]\nprogram = \"./client\"\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), scenario).expect("a scenario");
    }
    let compare = |old: &str, out: &str, code: i32| {
        let args = ["run", "--out", out, "--against", old, "new.toml"];
        let said = text(&expect(everett(&folder).args(args), code));
        (said, summary(&folder.join(out))["against"].clone())
    };
    let (said, against) = compare("old.toml", "out", 1);
    assert_ne!(against["pairs_different"], 0, "{said}");
    let (aspects, ..) = first(&against);
    assert!(
        aspects.contains(&"messages from server to client"),
        "{aspects:?}"
    );
    assert!(aspects.contains(&"the end of client"), "{aspects:?}");
    let dir = against["differences"][0]["dir"].as_str().expect("a folder");
    let described = std::fs::read_to_string(folder.join("out").join(dir).join("difference.txt"));
    assert!(described.expect("a description").contains(".world"));
    let (said, against) = compare("same.toml", "equal", 0);
    assert_eq!(against["pairs_different"], 0, "{said}");
    assert!(
        said.contains("no difference of the builds was found"),
        "{said}"
    );
    let wrong = ["run", "--against", "old", "new.toml"];
    let said = text(&expect(everett(&folder).args(wrong), 2));
    assert!(said.contains("old is no scenario"), "{said}");
}

/// An optimiser makes a selection of a branch, so that one path has both values.
#[test]
fn selections_of_optimised_servers_are_compared() {
    let folder = folder("against-selections");
    build(&folder, "client", CLIENT, &["-O2"]);
    for (name, limit) in [("new", "byte == 77"), ("old", "byte == 78")] {
        build(&folder, name, &SERVER.replace("LIMIT", limit), &["-O2"]);
        let scenario = format!(
            "[host.server]\nprogram = \"./{name}\"\n[host.client]\nprogram = \"./client\"\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), scenario).expect("a scenario");
    }
    let args = ["run", "--out", "out", "--against", "old.toml", "new.toml"];
    let said = text(&expect(everett(&folder).args(args), 1));
    let against = summary(&folder.join("out"))["against"].clone();
    let (aspects, ..) = first(&against);
    let messages = "messages from server to client";
    assert!(aspects.contains(&messages), "{aspects:?}: {said}");
}

/// Worlds of both runs are compared, but a difference is one, and the build under test comes first.
/// An assumption of several parts is no finding, though its conditions are decided one by one.
#[test]
fn a_difference_of_worlds_is_told_once_and_the_build_under_test_first() {
    let folder = folder("against-once");
    let assumes = "#include <klee/klee.h>\n#include <stdio.h>\nint main(void) {\n\
                   int x = klee_int(\"x\");\nklee_assume((x > 10) & (x < 20));\n\
                   if (LOUD) fputs(\"loud\", stderr);\nreturn 0;\n}\n";
    for (name, loud) in [("new", "1"), ("old", "0")] {
        build(&folder, name, &assumes.replace("LOUD", loud), &[]);
        let scenario = format!("[host.one]\nprogram = \"./{name}\"\n");
        std::fs::write(folder.join(format!("{name}.toml")), scenario).expect("a scenario");
    }
    let args = ["run", "--out", "out", "--against", "old.toml", "new.toml"];
    let said = text(&expect(everett(&folder).args(args), 1));
    let summary = summary(&folder.join("out"));
    assert_eq!(summary["findings"].as_array().map(Vec::len), Some(0));
    let differences = &summary["against"]["differences"];
    assert_eq!(differences.as_array().map(Vec::len), Some(1), "{said}");
    let dir = differences[0]["dir"].as_str().expect("a folder");
    let told = std::fs::read_to_string(folder.join("out").join(dir).join("difference.txt"));
    let told = told.expect("a description");
    assert!(
        told.contains(":\nloud\nand on the other build:\n"),
        "{told}"
    );
}
