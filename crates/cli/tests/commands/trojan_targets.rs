//! `everett trojans` on real programs: examples whose programs are targets of `tests/targets/`.
#![allow(clippy::print_stderr)]

use crate::common::{everett, expect, folder, summary, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies an example with the programs of targets; `None` if their sources are not available.
fn example(name: &str, targets: &[&str]) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = folder(&format!("trojan_targets_{name}_{}", targets.len()));
    copy_all(&root.join("examples").join(name), &folder);
    for target in targets {
        let mut make = Command::new(root.join("tests/targets/make"));
        make.arg(target)
            .env("EVERETT", env!("CARGO_BIN_EXE_everett"));
        let made = make.output().expect("tests/targets/make runs");
        let said = String::from_utf8_lossy(&made.stderr);
        if !made.status.success() && said.contains("no source package") {
            eprintln!("skipped: no archive of this machine has the sources of {target}");
            return None;
        }
        assert!(made.status.success(), "{target}: {said}");
        copy_all(Path::new(text(&made).trim()), &folder);
    }
    Some(folder)
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path.file_name().expect("a name");
            fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

fn analysed(folder: &Path, scenario: &str) -> Value {
    let mut command = everett(folder);
    let args = ["trojans", "--afterwards", "0", "--out", "out", scenario];
    expect(command.args(args), 1);
    summary(&folder.join("out"))
}

fn contains(folder: &Path, message: &str, word: &str, code: i32) {
    let mut command = everett(folder);
    let said = command.args(["trojans", "--contains", message, "out"]);
    assert_eq!(text(&expect(said, code)).trim(), word, "{message}");
}

/// Returns the hexadecimal digits of a read request.
fn request(rest: &str) -> String {
    let bytes = [0, 1].into_iter().chain(rest.bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Checks what `tftpd` accepts and clients do not send, for any version.
fn check_tftp(folder: &Path, scenario: &str) {
    let summary = analysed(folder, scenario);
    assert_eq!(summary["complete"], true, "{summary:#}");
    let trojans = summary["trojans"].as_array().expect("classes");
    let said: BTreeSet<_> = trojans
        .iter()
        .map(|class| class["confirmed"].as_str())
        .collect();
    assert_eq!(said, BTreeSet::from([Some("confirmed")]));
    assert!(trojans.iter().all(|class| class["certain"] == true));
    for trojan in ["ab\0octet", "ab\0OCTET\0", "ab\0octet\0x", "/ab\0oCtet\0"] {
        contains(folder, &request(trojan), "yes", 0);
    }
    for other in ["ab\0octet\0", "xyz\0octet\0", "xy\0octet", "ab\0octe\0"] {
        contains(folder, &request(other), "no", 1);
    }
}

#[test]
fn tftpd_accepts_requests_that_its_client_never_sends() {
    if let Some(folder) = example("tftp", &["tftp-hpa"]) {
        check_tftp(&folder, "scenario.toml");
    }
}

#[test]
fn tftpd_accepts_requests_that_busybox_never_sends() {
    if let Some(folder) = example("tftp", &["tftp-hpa", "busybox-net"]) {
        check_tftp(&folder, "busybox.toml");
    }
}

#[test]
fn dnsd_answers_queries_that_nslookup_never_sends() {
    let Some(folder) = example("dnsd", &["busybox-net"]) else {
        return;
    };
    let summary = analysed(&folder, "scenario.toml");
    assert_eq!(summary["complete"], true, "{summary:#}");
    for class in summary["trojans"].as_array().expect("classes") {
        let (certain, confirmed) = (&class["certain"], &class["confirmed"]);
        assert_eq!((certain, confirmed), (&true.into(), &"confirmed".into()));
    }
    let query = |flags: &str, counts: &str, rest: &str| {
        format!("1234{flags}{counts}0000000000000161000001{rest}")
    };
    // nslookup's own query has this flag, depending on the version.
    let own = ["0120", "0100"].map(|flags| query(flags, "0001", "0001"));
    let said = own.map(|message| {
        let mut command = everett(&folder);
        let said = command
            .args(["trojans", "--contains", &message, "out"])
            .output();
        text(&said.expect("it runs")).trim().to_owned()
    });
    assert!(said.contains(&"no".to_owned()), "{said:?}");
    contains(&folder, &query("0320", "0001", "0001"), "yes", 0);
    contains(&folder, &query("0120", "0002", "0001"), "yes", 0);
    contains(&folder, &query("0120", "0001", "000100"), "yes", 0);
    contains(&folder, &query("8120", "0001", "0001"), "no", 1);
}
