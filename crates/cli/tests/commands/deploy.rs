//! The files under `deploy/`: linters find nothing, and the files refer to things that exist.

use crate::common::{everett, expect, folder, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn linters_find_nothing() {
    let mut shell = Command::new("shellcheck");
    shell.args(["deploy/slurm.sh", "setup", "test", ".ci/run"]);
    expect(shell.current_dir(root()), 0);
    let mut yaml = Command::new("yamllint");
    let rules = "{extends: relaxed, rules: {line-length: {max: 120}}}";
    yaml.args(["--strict", "-d", rules, "deploy/kubernetes.yaml"]);
    expect(yaml.current_dir(root()), 0);
}

/// The command words in the manifests are options of `everett worker`.
#[test]
fn workers_know_their_options() {
    let help = text(&expect(
        everett(&folder("deploy")).args(["worker", "--help"]),
        0,
    ));
    let mut seen = 0;
    for file in ["kubernetes.yaml", "slurm.sh"] {
        let text = fs::read_to_string(root().join("deploy").join(file)).expect("a file");
        let lines = text
            .lines()
            .filter(|line| line.contains("worker,") || line.contains("srun"));
        for word in lines.flat_map(|line| line.split([' ', ','])) {
            if word.starts_with("--") {
                assert!(help.contains(word), "{file}: {word}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 6, "{seen} options");
}

/// The image is built from files that exist, by a compiler that is new enough.
#[test]
fn the_image_is_built_by_a_compiler_that_is_new_enough() {
    let text = fs::read_to_string(root().join("deploy/Containerfile")).expect("a file");
    let version = |text: &str| -> Vec<u32> {
        text.split('.')
            .map(|part| part.parse().expect("a number"))
            .collect()
    };
    let image = text.split_once("rust:").expect("an image").1;
    let image = version(image.split_once('-').expect("a version").0);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a file");
    let needed = manifest
        .split_once("rust-version = \"")
        .expect("a version")
        .1;
    let needed = version(needed.split_once('"').expect("a version").0);
    assert!(
        image >= needed[..image.len().min(needed.len())].to_vec(),
        "{image:?} {needed:?}"
    );
}
