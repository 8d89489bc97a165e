//! The seeded faults of `examples/faults-recovery`: guided search finds each of them in fewer runs than
//! random search.

use crate::common::{count, everett, expect, folder, summary};
use std::fs;
use std::path::{Path, PathBuf};

/// Copies an example, builds its program, and returns the folder.
fn place(program: &str) -> PathBuf {
    let folder = folder(&format!("fault-example-{program}"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/faults-recovery");
    for file in [
        format!("{program}.c"),
        format!("{program}.toml"),
        format!("find-{program}.toml"),
    ] {
        fs::copy(example.join(&file), folder.join(&file)).expect("a copy");
    }
    let source = format!("{program}.c");
    let words = ["cc", "-g", "-w", "-o", program, &source];
    expect(everett(&folder).args(words), 0);
    folder
}

/// Returns the runs of a search until it finds the crash.
fn runs_until_found(folder: &Path, program: &str, search: &str, seed: u64) -> u64 {
    let (out, file) = (format!("{search}-{seed}"), format!("find-{program}.toml"));
    let seed = seed.to_string();
    let words = ["faults", "run", &file, "--search", search, "--seed", &seed];
    expect(everett(folder).args(words).args(["--out", &out]), 1);
    let summary = summary(&folder.join(&out));
    assert_eq!(count(&summary, "/crashes"), 1, "{summary}");
    count(&summary, "/scenarios_run")
}

/// Returns the mean number of runs over seeds.
fn mean(folder: &Path, program: &str, search: &str, seeds: u64) -> f64 {
    let runs = (1..=seeds).map(|seed| runs_until_found(folder, program, search, seed));
    runs.sum::<u64>() as f64 / seeds as f64
}

/// Checks that guided search is better by a factor, that the failure replays three times and is where
/// it should be, and that the fixed program has none.
fn check(program: &str, factor: f64, seeds: u64, line: &str) {
    let folder = place(program);
    let file = folder.join(format!("find-{program}.toml"));
    let text = fs::read_to_string(&file).expect("a search");
    fs::write(&file, format!("repetitions = 1\n{text}")).expect("written");
    let means = ["guided", "random"].map(|search| mean(&folder, program, search, seeds));
    assert!(means[0] * factor < means[1], "guided, random: {means:?}");

    let found = summary(&folder.join("guided-1"));
    let results = found["results"].as_array().expect("a list");
    let crash = &results[0];
    assert_eq!(crash["outcome"], "crashed");
    let source = fs::read_to_string(folder.join(format!("{program}.c"))).expect("a source");
    let mut lines = source.lines().zip(1..);
    let number = lines
        .find(|(text, _)| text.contains(line))
        .expect("a line")
        .1;
    let frame = format!("{program}.c:{number}");
    assert!(crash["stack"].to_string().contains(&frame), "{crash}");
    let name = crash["name"].as_str().expect("a name");
    let replay = format!("guided-1/{name}");
    let words = ["faults", "replay", &replay, "--times", "3"];
    expect(everett(&folder).args(words), 0);

    let world = folder.join(format!("{program}.toml"));
    let text = fs::read_to_string(&world).expect("a world");
    fs::write(&world, format!("{text}args = [\"fixed\"]\n")).expect("written");
    let file = format!("find-{program}.toml");
    let words = [
        "faults",
        "run",
        &file,
        "--search",
        "exhaustive",
        "--out",
        "fixed",
    ];
    // Errors that the program reports are failures, too.
    expect(everett(&folder).args(words), 1);
    let fixed = summary(&folder.join("fixed"));
    assert_eq!(
        (count(&fixed, "/crashes"), &fixed["is_complete"]),
        (0, &true.into())
    );
}

#[test]
fn a_double_unlock_in_recovery_code_is_found_in_fewer_runs_than_at_random() {
    check("table", 1.5, 20, "if (close(file)) goto err;");
}

#[test]
fn an_unchecked_strdup_is_found_in_fewer_runs_than_at_random() {
    check("settings", 1.3, 10, "directive->value = strdup(");
}
