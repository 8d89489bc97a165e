//! Findings on builds of the same source that Everett did not make: by the system's compiler, with
//! its libc, static and dynamic.

use crate::common::{build, everett, expect, folder, text};
use std::path::Path;
use std::process::Command;

/// The input decides between a failed assertion, a null pointer and output.
const INPUT: &str = r#"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char line[8] = "";
    if (!fgets(line, sizeof line, stdin))
        return 1;
    int *where = NULL;
    if (line[0] == 'n')
        return *where;
    assert(strncmp(line, "bad", 3) != 0);
    printf("%d\n", line[0] == '7');
    return 0;
}
"#;

/// A thread whose input tells it to skip its part.
const THREADS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int parts, skips;
static void *work(void *own) {
    pthread_mutex_lock(&lock);
    if (own != &skips || !skips)
        parts++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return own;
}
int main(void) {
    char input = 0;
    pthread_t threads[2];
    if (read(0, &input, 1) != 1)
        return 1;
    skips = input == 's';
    pthread_create(&threads[0], NULL, work, &skips);
    pthread_create(&threads[1], NULL, work, NULL);
    if (input == 'd') {
        pthread_mutex_lock(&lock);
        while (parts < 3)
            pthread_cond_wait(&changed, &lock);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(parts == 2);
    printf("%d parts\n", parts);
    return 0;
}
"#;

/// A process that serves another one over TCP, and trusts the length in the request.
const SOCKETS: &str = r#"
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static int serve(int listener) {
    unsigned char request[2];
    int fd = accept(listener, NULL, NULL);
    if (recv(fd, request, 2, MSG_WAITALL) != 2)
        return 1;
    assert(request[0] != 'x' || request[1] < 8);
    send(fd, "ok", 2, 0);
    return 0;
}
int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
        return 1;
    if (fork() == 0)
        return serve(listener);
    char data[2], answer[2];
    if (read(0, data, 2) != 2)
        return 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        return 1;
    send(fd, data, 2, 0);
    if (recv(fd, answer, 2, MSG_WAITALL) == 2)
        printf("%.2s\n", answer);
    int status = 0;
    wait(&status);
    return status != 0;
}
"#;

/// Builds by the system's compiler, with the flags of each.
const BUILDS: [(&str, &[&str]); 3] = [
    ("dynamic", &["-g"]),
    ("static", &["-g", "-O2", "-static"]),
    ("fast", &["-g", "-O3"]),
];

/// Explores a program, and replays every path and finding on the builds of the system's compiler.
fn check(name: &str, source: &str, symbolic: &[&str], kinds: &[&str]) {
    let folder = folder(&format!("other-builds-{name}"));
    build(&folder, name, source, &[]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "--all-tests", "--no-confirm"]);
    let program = format!("./{name}");
    expect(run.arg(&program).args(symbolic), 1);
    let summary = crate::common::summary(&folder.join("out"));
    let findings = summary["findings"].as_array().expect("findings");
    let mut found: Vec<&str> = findings
        .iter()
        .filter_map(|finding| finding["kind"].as_str())
        .collect();
    found.sort_unstable();
    assert_eq!(found, kinds);
    for (build, flags) in BUILDS {
        let other = format!("./{name}-{build}");
        let mut compiler = Command::new("gcc");
        compiler.args(flags).args(["-w", "-o", &other]);
        compiler.arg(format!("{name}.c")).arg("-pthread");
        expect(compiler.current_dir(&folder), 0);
        all_confirmed(&folder, &["--on", &other]);
    }
    all_confirmed(&folder, &["--checked"]);
}

fn all_confirmed(folder: &Path, on: &[&str]) {
    let mut confirm = everett(folder);
    confirm.args(["confirm", "--tests", "out"]).args(on);
    let said = text(&expect(&mut confirm, 0));
    let counts = said.lines().last().unwrap_or_default();
    let all = crate::common::files(&folder.join("out"));
    let traces = all
        .keys()
        .filter(|name| name.ends_with(".trace") && !name.ends_with("original.trace"));
    let traces = traces.count();
    assert!(traces > 2, "{said}");
    assert_eq!(
        counts,
        format!("{traces} of {traces} traces confirmed"),
        "{said}"
    );
}

#[test]
fn input_does_the_same_with_another_libc() {
    let kinds = ["assertion", "null-pointer"];
    check("input", INPUT, &["--sym-stdin", "3"], &kinds);
}

#[test]
fn threads_do_the_same_with_another_libc() {
    let kinds = ["assertion", "deadlock"];
    check("threads", THREADS, &["--sym-stdin", "1"], &kinds);
}

#[test]
fn sockets_do_the_same_with_another_libc() {
    check("sockets", SOCKETS, &["--sym-stdin", "2"], &["assertion"]);
}

#[test]
fn a_loader_that_finds_nothing_is_no_verdict_about_the_trace() {
    let folder = folder("other-builds-unloadable");
    build(&folder, "input", INPUT, &[]);
    let mut run = everett(&folder);
    run.args(["run", "--out", "out", "--no-confirm"]);
    expect(run.args(["./input", "--sym-stdin", "3"]), 1);
    let source = folder.join("answer.c");
    std::fs::write(&source, "int answer(void) { return 42; }").expect("a file");
    let gcc = |args: &[&str]| {
        expect(Command::new("gcc").args(args).current_dir(&folder), 0);
    };
    gcc(&["-shared", "-fPIC", "-o", "libanswer.so", "answer.c"]);
    let needs = ["-g", "-Wl,--no-as-needed", "input.c", "libanswer.so"];
    let here = format!("-Wl,-rpath,{}", folder.display());
    gcc(&[needs.as_slice(), &[&here, "-o", "near"]].concat());
    gcc(&[needs.as_slice(), &["-o", "far"]].concat());
    let mut near = everett(&folder);
    expect(near.args(["replay", "out/findings", "--on", "./near"]), 0);
    let mut far = everett(&folder);
    far.args(["replay", "out/findings", "--on", "./far"]);
    let said = text(&expect(&mut far, 1));
    assert!(
        said.contains("not-replayable: the native program cannot be loaded"),
        "{said}"
    );
    assert!(said.contains("libanswer.so"), "{said}");
}
