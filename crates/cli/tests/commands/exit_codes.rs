//! The exit code of every command, for programs and worlds: the table of `docs/exit-codes.md`.

use crate::common::samples::ENDLESS;
use crate::common::{build, everett, expect, folder, stop_at, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CLEAN: i32 = 0;
const FINDINGS: i32 = 1;
const FAILED: i32 = 2;
const INTERRUPTED: i32 = 3;

/// A program that ends in many ways, selected by its argument.
const ODD: &str = include_str!("../common/odd.c");

/// A host that exposes a number, or sends.
const SHOWS: &str = r#"
#include <everett.h>
#include <arpa/inet.h>
#include <sys/socket.h>
int main(int argc, char **argv) {
    int number = argc > 1;
    everett_expose("node", "number", &number, sizeof number);
    return 0;
}"#;

/// Runs Everett with these words, and checks the exit code. The program and its arguments come
/// last.
fn check(folder: &Path, words: &str, code: i32) {
    let output = everett(folder)
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let seen = output.status.code();
    assert_eq!(seen, Some(code), "everett {words}:\n{}", text(&output));
}

#[test]
fn programs_that_run_once_end_the_same_way_concretely_and_natively() {
    let folder = folder("codes-once");
    build(&folder, "odd", ODD, &["-g"]);
    let table = [
        ("./odd", 0),
        ("./odd seven", 7),
        ("./odd abort", 128 + 6),
        ("./odd halt", 128 + 11),
        ("./odd break", 128 + 5),
        ("./odd undefined", 128 + 4),
        ("./odd null", 128 + 11),
        ("./odd divide", 128 + 8),
        ("./odd kill", 128 + 15),
        ("./odd idle", CLEAN),
        ("./odd deadlock", FINDINGS),
        ("--max-output 10 ./odd print", FAILED),
        ("--max-time 1s ./odd spin", FAILED),
        ("./nothing", FAILED),
        ("--no-such-option ./odd", FAILED),
    ];
    for (words, code) in table {
        check(&folder, &format!("exec {words}"), code);
        check(&folder, &format!("native {words}"), code);
    }
}

#[test]
fn commands_about_programs() {
    let folder = folder("codes-programs");
    build(&folder, "odd", ODD, &["-g"]);
    let run = "run --no-shrink --out";
    let table = [
        (format!("{run} clean ./odd seven"), CLEAN),
        (format!("{run} idle ./odd idle"), CLEAN),
        (format!("{run} abort ./odd abort"), FINDINGS),
        (format!("{run} deadlock ./odd deadlock"), FINDINGS),
        (format!("{run} output --max-output 10 ./odd print"), FAILED),
        (format!("{run} none ./nothing"), FAILED),
        ("run".to_owned(), FAILED),
        ("resume clean".to_owned(), FAILED),
        ("resume nothing".to_owned(), FAILED),
        ("follow abort".to_owned(), CLEAN),
        ("follow nothing".to_owned(), FAILED),
        ("strace clean".to_owned(), CLEAN),
        ("replay abort".to_owned(), CLEAN),
        ("replay abort --on /bin/true".to_owned(), FINDINGS),
        ("replay nothing".to_owned(), FAILED),
        ("confirm abort".to_owned(), CLEAN),
        ("test abort".to_owned(), CLEAN),
        ("test abort --fixed".to_owned(), FINDINGS),
        ("test output/findings".to_owned(), FAILED),
        ("shrink abort/findings/0001".to_owned(), CLEAN),
        ("export --out script abort/findings/0001".to_owned(), CLEAN),
        ("export --out untold output/findings/0001".to_owned(), CLEAN),
        ("export nothing".to_owned(), FAILED),
        ("native --runs 2 --out many ./odd seven".to_owned(), CLEAN),
        (
            "native --runs 2 --out found ./odd deadlock".to_owned(),
            FINDINGS,
        ),
        (
            "native --runs 2 --out failed --max-output 10 ./odd print".to_owned(),
            FAILED,
        ),
        ("--help".to_owned(), CLEAN),
    ];
    for (words, code) in &table {
        check(&folder, words, *code);
    }
    let script = |name: &str, words: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(folder.join(name)).args(words);
        command
    };
    expect(&mut script("script", &[]), FINDINGS);
    expect(&mut script("script", &["/bin/true"]), CLEAN);
    expect(&mut script("script", &["/nothing"]), FAILED);
    expect(&mut script("untold", &[]), FAILED);
}

fn scenario(folder: &Path, name: &str, check: &str) {
    let text = format!(
        "[host.one]\nprogram = \"./shows\"\n[host.other]\nprogram = \"./shows\"\nargs = [\"1\"]\n{check}"
    );
    fs::write(folder.join(name), text).expect("written");
}

#[test]
fn commands_about_worlds() {
    let folder = folder("codes-worlds");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let include = format!("-I{}", include.display());
    build(&folder, "shows", SHOWS, &["-g", &include]);
    scenario(&folder, "clean.toml", "");
    let checks = [("broken.toml", "number"), ("unevaluated.toml", "missing")];
    for (name, key) in checks {
        let text = format!(
            "at end invariant small() {{ return sys.data(\"other\", \"node\", \"{key}\").int() == 0; }}"
        );
        scenario(&folder, name, &format!("[check.c]\ntext = '{text}'\n"));
    }
    scenario(&folder, "wrong.toml", "[nonsense]\n");
    let table = [
        ("run --out clean clean.toml", CLEAN),
        ("run --out broken broken.toml", FINDINGS),
        ("run --out unevaluated unevaluated.toml", FAILED),
        ("run --out wrong wrong.toml", FAILED),
        ("follow clean", CLEAN),
        ("replay broken", CLEAN),
        ("test broken --fixed", FINDINGS),
        ("native clean.toml", CLEAN),
        ("native broken.toml", FINDINGS),
        ("native unevaluated.toml", FAILED),
        ("native --runs 2 --out many unevaluated.toml", FAILED),
        ("scenario check clean.toml", CLEAN),
        ("scenario check wrong.toml", FAILED),
    ];
    for (words, code) in table {
        check(&folder, words, code);
    }
}

#[test]
fn interrupts() {
    let folder = folder("codes-interrupts");
    build(&folder, "endless", ENDLESS, &[]);
    build(&folder, "odd", ODD, &[]);
    let hosts = "[host.one]\nprogram = \"./endless\"\nstdin = { symbolic = 64 }\n\
                 [host.other]\nprogram = \"./endless\"\n";
    fs::write(folder.join("endless.toml"), hosts).expect("written");
    let interrupted = |words: &str, sign: &str, enough: usize| {
        let mut command = everett(&folder);
        command.args(words.split_whitespace());
        let code = stop_at(&mut command, "INT", &folder.join(sign), enough);
        assert_eq!(code, Some(INTERRUPTED), "everett {words}");
    };
    interrupted(
        "run --all-tests --out run ./endless --sym-stdin 64",
        "run/tests",
        1,
    );
    let tests = fs::read_dir(folder.join("run/tests"))
        .expect("tests")
        .count();
    interrupted("resume run", "run/tests", tests + 5);
    interrupted("run --out world endless.toml", "world", 1);
    interrupted("native --runs 1000000 --out many ./odd", "many", 1);
}

/// Two interrupts during the writing of a checkpoint end the run at once, and the previous
/// checkpoint stays.
#[test]
fn a_second_interrupt_leaves_the_last_checkpoint() {
    let folder = folder("codes-twice");
    build(&folder, "endless", ENDLESS, &[]);
    let run = "run --max-forks 5 --out run ./endless --sym-stdin 64";
    check(&folder, run, CLEAN);
    let checkpoint = || fs::read(folder.join("run/checkpoint.json")).expect("a checkpoint");
    let good = checkpoint();
    // Nobody reads from this pipe, so writing the next checkpoint never ends.
    let stuck = folder.join("run/checkpoint.json.new");
    expect(Command::new("mkfifo").arg(&stuck), CLEAN);
    let mut resume = everett(&folder);
    resume.args(["resume", "--max-forks", "50", "run"]);
    let states = folder.join("run/checkpoint-2.states");
    let code = interrupted_twice(resume, || states.exists());
    assert_eq!(code, Some(INTERRUPTED));
    assert_eq!(checkpoint(), good);
    fs::remove_file(&stuck).expect("removed");
    check(&folder, "resume --max-forks 50 run", CLEAN);
    assert_ne!(checkpoint(), good);
}

/// Returns the exit code of a command that is interrupted twice as soon as it is time.
fn interrupted_twice(mut command: Command, is_time: impl Fn() -> bool) -> Option<i32> {
    let mut child = command.stdin(Stdio::null()).spawn().expect("it starts");
    while !is_time() {
        assert!(child.try_wait().expect("a child").is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for signal in ["-TERM", "-INT"] {
        let pid = child.id().to_string();
        expect(Command::new("kill").args([signal, &pid]), CLEAN);
    }
    child.wait().expect("a child").code()
}

/// A finding takes precedence over an interrupt, even if a second interrupt ends the run at once.
#[test]
fn a_second_interrupt_does_not_hide_findings() {
    const ABORTS: &str = r#"
        #include <stdlib.h>
        #include <unistd.h>
        int main(void) {
            unsigned char input[64];
            read(0, input, sizeof input);
            if (input[0] == 7)
                abort();
            for (volatile int at = 0;; at++)
                if (input[at % 64] == at % 200)
                    input[at % 64]++;
        }"#;
    let folder = folder("codes-twice-found");
    build(&folder, "aborts", ABORTS, &[]);
    fs::create_dir(folder.join("run")).expect("a folder");
    // Writing a checkpoint never ends, so the run does not end at the first interrupt.
    expect(
        Command::new("mkfifo").arg(folder.join("run/checkpoint.json.new")),
        CLEAN,
    );
    let mut run = everett(&folder);
    run.args(["run", "--json", "--out", "run", "./aborts"]);
    let told = folder.join("told");
    run.args(["--sym-stdin", "64"]);
    run.stdout(fs::File::create(&told).expect("a file"));
    // Its files are written by another thread, perhaps before it counts.
    let code = interrupted_twice(run, || {
        fs::read_to_string(&told).is_ok_and(|told| told.contains("\"finding\""))
    });
    assert_eq!(code, Some(FINDINGS));
}

#[test]
fn the_signal_that_ends_a_program_is_told() {
    const KILLS: &str = r#"
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            kill(getpid(), atoi(argv[1]));
            pause();
        }"#;
    let folder = folder("codes-signals");
    build(&folder, "kills", KILLS, &[]);
    for signal in [
        1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 31, 34, 64,
    ] {
        for command in ["exec", "native"] {
            let number = signal.to_string();
            let output = expect(
                everett(&folder).args([command, "./kills", &number]),
                128 + signal,
            );
            let said = text(&output);
            let words = format!("is ended by signal {signal}\n");
            assert!(said.contains(&words), "{command} {signal}: {said}");
        }
    }
}
