//! Whether a native run ends as its trace did.

use everett_engine::{SourceFrame, TraceEnd, digest};
use everett_native::{NativeEnd, NativeFrame, NativeRun, NativeStack};
use everett_toolchain::Checks;

use crate::replay::Verdict;

/// Does a native run end as the trace did?
pub(crate) fn compare(expected: &TraceEnd, seen: &NativeRun) -> Verdict {
    if let NativeEnd::Diverged(why) = &seen.end {
        return Verdict::NotReproduced(format!("the native program parts from the trace: {why}"));
    }
    let same = match (expected.finding.as_deref(), &seen.end) {
        (Some(kind), end) => match ends_of(kind) {
            Ends::Same(signals) => ends_so(kind, signals, end),
            Ends::Unseen => {
                let why = format!("native code does not notice {kind}{}", reason_of(kind));
                return Verdict::NotReplayable(why);
            }
        },
        (None, NativeEnd::Exit(status)) => expected.exit == Some(*status),
        (None, NativeEnd::Signal { signal, .. }) => expected.signal == Some(*signal),
        (None, NativeEnd::Idle) => expected.idle,
        // What it had written is gone with it.
        (None, NativeEnd::Off) if expected.off => return Verdict::Confirmed,
        _ => false,
    };
    if !same {
        return Verdict::NotReproduced(format!("the native program {}", describe(seen)));
    }
    if expected.finding.is_some() && !is_same_place(expected, &seen.stack) {
        let place = expected.stack.iter().find(|frame| frame.line != 0);
        let place = place.map_or_else(String::new, |frame| {
            format!("{}:{}", frame.file, frame.line)
        });
        let why = format!("the native program {}, not at {place}", describe(seen));
        return Verdict::NotReproduced(why);
    }
    // What a program says when it dies is its libc's affair.
    let died = expected.finding.is_some() || expected.signal.is_some();
    let [stdout, stderr] = [0, 1].map(|at| digest(&seen.output[at]) == expected.output[at]);
    if died || (stdout && stderr) {
        Verdict::Confirmed
    } else {
        Verdict::NotReproduced("the native program writes something else".to_owned())
    }
}

/// Why native code does not notice something.
fn reason_of(kind: &str) -> &'static str {
    match kind {
        "unsupported" | "solver-gave-up" => ": it is about the exploration, not about the program",
        _ => "",
    }
}

/// Which checked builds stop at errors that native code may survive, those that are tried first first.
pub(crate) fn checks_for(expected: &TraceEnd) -> &'static [Checks] {
    match expected.finding.as_deref().unwrap_or_default() {
        "out-of-bounds" | "unreachable" => &[Checks::Memory, Checks::Bounds],
        "use-after-free" | "use-after-return" | "double-free" | "invalid-free" | "wild-pointer"
        | "overlapping-copy" => &[Checks::Memory],
        "uninitialised" => &[Checks::Initialised],
        _ => &[],
    }
}

/// The native program ended where the finding is, as far as both are known. Native code may fault at another point
/// of the same statement, in a function that was inlined or called there, or elsewhere in the same function where
/// the compiler moved it; a function of a library that does the access is a detail of the build.
fn is_same_place(expected: &TraceEnd, seen: &NativeStack) -> bool {
    let kind = expected.finding.as_deref().unwrap_or_default();
    let known = |frames: &[NativeFrame]| frames.iter().any(|frame| frame.line != 0);
    // How deep a stack can be, and where it ends, is an affair of the build.
    if kind == "stack-overflow" || !(known(&seen.innermost) || known(&seen.callers)) {
        return true;
    }
    let principal = expected.stack.iter().position(is_principal);
    let Some(principal) = principal else {
        return true;
    };
    let wanted = &expected.stack[..=principal];
    let at_line = |frame: &NativeFrame| {
        let same = |wanted: &SourceFrame| frame.line == wanted.line && frame.is_of(&wanted.file);
        frame.line != 0 && wanted.iter().any(same)
    };
    let in_function = |frame: &NativeFrame| {
        let same =
            |wanted: &SourceFrame| frame.is_in(&wanted.function) && frame.is_of(&wanted.file);
        wanted.iter().any(same)
    };
    let all = seen.innermost.iter().chain(&seen.callers);
    seen.innermost.iter().any(in_function) || all.chain(&seen.nearby).any(at_line)
}

/// The user wrote it, and its line is known.
fn is_principal(frame: &SourceFrame) -> bool {
    frame.line != 0 && !frame.is_library()
}

/// How native code ends where the model finds something.
enum Ends {
    /// With one of these signals, or with the same finding of the kernel model or of a checked build.
    Same(&'static [i32]),
    /// It goes on as if nothing were.
    Unseen,
}

fn ends_of(kind: &str) -> Ends {
    const SIGILL: i32 = 4;
    const SIGTRAP: i32 = 5;
    const SIGABRT: i32 = 6;
    const SIGBUS: i32 = 7;
    const SIGFPE: i32 = 8;
    const SIGSEGV: i32 = 11;
    match kind {
        "abort" | "assertion" | "panic" | "uncaught-exception" | "user-report" => {
            Ends::Same(&[SIGABRT, SIGILL, SIGTRAP])
        }
        "division-by-zero" | "overflow" => Ends::Same(&[SIGFPE]),
        "trap" | "unreachable" => Ends::Same(&[SIGILL, SIGTRAP, SIGSEGV]),
        "null-pointer" | "wild-pointer" | "read-only-write" | "protected-page" | "beyond-file"
        | "stack-overflow" | "out-of-bounds" | "use-after-free" | "use-after-return"
        | "double-free" | "invalid-free" | "invalid-call" | "bad-jump" => {
            Ends::Same(&[SIGSEGV, SIGBUS, SIGILL, SIGABRT])
        }
        "hang" | "deadlock" | "signal" | "huge-allocation" | "overlapping-copy" | "leak"
        | "undefined-shift" | "uninitialised" | "data-race" => Ends::Same(&[]),
        _ => Ends::Unseen,
    }
}

/// Signals that end a native program where the model finds something of this kind; none where it may go on.
pub(crate) fn signals_of(kind: &str) -> &'static [i32] {
    match ends_of(kind) {
        Ends::Same(signals) => signals,
        Ends::Unseen => &[],
    }
}

fn ends_so(kind: &str, signals: &[i32], end: &NativeEnd) -> bool {
    match end {
        NativeEnd::Signal { signal, .. } => signals.contains(signal) || kind == "signal",
        NativeEnd::Finding { kind: seen, .. } => {
            // The kernel sees that a program aborts, not why.
            seen == kind || (seen == "abort" && signals.contains(&6))
        }
        NativeEnd::Hang => kind == "hang",
        // A panic that unwinds ends the program with the status of Rust's runtime.
        NativeEnd::Exit(status) => kind == "panic" && *status == 101,
        _ => false,
    }
}

/// An end for people.
pub fn describe(seen: &NativeRun) -> String {
    let frames = seen.stack.innermost.iter().chain(&seen.stack.callers);
    let place = frames.map(|frame| format!(" {frame}")).next();
    let place = place.unwrap_or_default();
    match &seen.end {
        NativeEnd::Exit(status) => format!("exits with {status}"),
        NativeEnd::Signal {
            signal,
            place: Some((program, address)),
        } => format!(
            "gets signal {signal} at {address:#x} of {}{place}",
            program.display()
        ),
        NativeEnd::Signal { signal, .. } => format!("is ended by signal {signal}"),
        NativeEnd::Finding { kind, message } => format!("ends in {kind}: {message}{place}"),
        NativeEnd::Idle => "waits for what nobody sends".to_owned(),
        NativeEnd::Hang => "does not end".to_owned(),
        NativeEnd::Diverged(why) => why.clone(),
        NativeEnd::Stopped => "was stopped".to_owned(),
        NativeEnd::Off => "was switched off".to_owned(),
    }
}
