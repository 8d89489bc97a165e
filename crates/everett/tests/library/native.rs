//! How much work native runs are: counted, because time depends on the machine.

use everett::{NativeResult, NativeRun, NativeSpec, NoWatcher, Session, native};
use libtest_mimic::Failed;
use std::fs;

/// Maps a file many times, and ends with many mappings.
const MAPPINGS: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  int file = fileno(tmpfile());
  write(file, "x", 1);
  for (int at = 0; at < 2000; at++) {
    char *start = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED || *start != 'x') return 1;
  }
  return 0;
}
"#;

/// Many processes that wait, each of them for a short time and again and again. They share a page.
const PROCESSES: &str = r#"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int *sum = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int child = 0; child < 200; child++) {
    if (fork()) continue;
    for (int round = 0; round < 20; round++) {
      ++*sum;
      usleep(1000);
    }
    _exit(0);
  }
  while (wait(0) > 0);
  return *sum != 4000;
}
"#;

/// Reads in `/proc` for each call that are not too many.
const FEW: u64 = 3;

fn run(name: &str, source: &str) -> Box<NativeRun> {
    let folder = super::folder(name);
    let (text, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&text, source).expect("the source can be written");
    super::build(&text, &program);
    let spec = NativeSpec::new([program]);
    let session = Session::new();
    match native(&spec, &session, &mut NoWatcher).expect("it runs") {
        NativeResult::Program(run) => run,
        _ => unreachable!("one program runs once"),
    }
}

/// What is read about real processes grows with the calls, not with their number times the number
/// of mappings or processes.
pub fn few_looks() -> Result<(), Failed> {
    for (name, source) in [("mappings", MAPPINGS), ("processes", PROCESSES)] {
        let run = run(name, source);
        assert_eq!(run.end, everett::NativeEnd::Exit(0), "{name}");
        let (reads, calls) = (run.proc_reads, run.calls);
        assert!(calls > 2000, "{name}: {calls} calls");
        assert!(reads < FEW * calls, "{name}: {reads} reads, {calls} calls");
    }
    Ok(())
}
