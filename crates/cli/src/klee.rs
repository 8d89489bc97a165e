//! Events of a run as KLEE prints them (`--klee-messages`): its messages on standard error, and what
//! the program prints.

use everett::{
    Event, KleeFindings, KleeNotes, Observer, klee_done, klee_is_error, klee_replaying, klee_tests,
    klee_warning,
};
use std::io::{self, Write};

/// An observer that prints KLEE's messages.
#[derive(Default)]
pub struct KleeDisplay {
    /// The number of paths that ended in errors.
    errors: u64,
    findings: KleeFindings,
    notes: KleeNotes,
}

impl Observer for KleeDisplay {
    fn event(&mut self, event: &Event<'_>) {
        crate::session::note_event(event);
        match event {
            Event::Started { folder } => {
                eprintln!("KLEE: output directory is \"{}\"", folder.display());
            }
            Event::Printed {
                output: [stdout, stderr],
            } => {
                // Output that nobody reads is not an error.
                let _ = io::stdout().write_all(stdout);
                let _ = io::stderr().write_all(stderr);
            }
            Event::Noted { notes } => {
                for note in *notes {
                    eprint!("{}", self.notes.text(note).unwrap_or_default());
                }
            }
            Event::Seed(seed) => eprintln!("{}", klee_replaying(seed)),
            Event::PathDone(end) => self.errors += u64::from(klee_is_error(end)),
            Event::Finding { finding, .. } => {
                eprint!("{}", self.findings.report(finding).unwrap_or_default());
            }
            Event::LimitHit("stop-at") => eprint!("{}", self.findings.exiting()),
            Event::Warning(text) => eprint!("{}", klee_warning(text)),
            Event::Finished { summary, folder } => {
                let program = summary.program.as_ref();
                if program.is_some_and(|program| program.states_pending > 0) {
                    eprintln!("KLEE: halting execution, dumping remaining states");
                }
                eprint!("{}", klee_done(summary, self.errors, klee_tests(folder)));
            }
            _ => {}
        }
    }
}
