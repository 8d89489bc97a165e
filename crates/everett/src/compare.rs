//! Compares the end of a native run with its trace.

use everett_engine::{SourceFrame, TraceEnd, digest};
use everett_native::{NativeEnd, NativeFrame, NativeRun, NativeStack, WorldRun};
use everett_toolchain::Checks;
use everett_vm::{BugKind, BuildCheck, NativeSign};

use crate::verdict::Verdict;

/// Compares the end of a native run with the end of the trace.
pub(crate) fn compare(expected: &TraceEnd, seen: &NativeRun) -> Verdict {
    if let NativeEnd::Diverged(why) = &seen.end {
        return Verdict::NotReproduced(format!("the native program parts from the trace: {why}"));
    }
    let same = match (expected.finding.as_deref(), &seen.end) {
        (Some(kind), end) => match signals_of(kind) {
            Some(signals) => ends_so(kind, signals, end),
            None => {
                let is_ours = BugKind::from_name(kind).is_some_and(BugKind::is_tool_limit);
                let why = match is_ours {
                    true => ": it is about the exploration, not about the program",
                    false => "",
                };
                let why = format!("native code does not notice {kind}{why}");
                return Verdict::NotReplayable(why);
            }
        },
        (None, NativeEnd::Exit(status)) => expected.exit == Some(*status),
        (None, NativeEnd::Signal { signal, .. }) => expected.signal == Some(*signal),
        (None, NativeEnd::Idle) => expected.idle,
        // A host that is switched off loses its output, so there is none to compare.
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
    // Output at a crash depends on the program's libc.
    let died = expected.finding.is_some() || expected.signal.is_some();
    let [stdout, stderr] = [0, 1].map(|at| digest(&seen.output[at]) == expected.output[at]);
    if died || (stdout && stderr) {
        Verdict::Confirmed
    } else {
        Verdict::NotReproduced("the native program writes something else".to_owned())
    }
}

/// Returns the checked builds that detect errors which native code may survive, in the order of
/// preference.
pub(crate) fn checks_for(expected: &TraceEnd) -> Vec<Checks> {
    let kind = expected.finding.as_deref().and_then(BugKind::from_name);
    let checks = kind.map_or(&[][..], BugKind::build_checks).iter();
    checks
        .map(|check| match check {
            BuildCheck::Memory => Checks::Memory,
            BuildCheck::Bounds => Checks::Bounds,
            BuildCheck::Initialised => Checks::Initialised,
        })
        .collect()
}

/// Returns whether the native program ended at the location of the finding, as far as both are
/// known. Native code may fault at another point of the same statement, in a function that was
/// inlined or called there, or elsewhere in the same function if the compiler moved the access. A
/// library function that performs the access is a detail of the build.
fn is_same_place(expected: &TraceEnd, seen: &NativeStack) -> bool {
    let kind = expected.finding.as_deref().unwrap_or_default();
    let known = |frames: &[NativeFrame]| frames.iter().any(|frame| frame.line != 0);
    // The depth and end of the stack depend on the build.
    if kind == "stack-overflow" || !(known(&seen.innermost) || known(&seen.callers)) {
        return true;
    }
    let principal = expected.stack.iter().position(is_principal);
    let Some(principal) = principal else {
        return true;
    };
    // After a jump to an invalid address, the native stack lacks the function that jumped.
    let wanted = match kind {
        "bad-jump" | "invalid-call" => &expected.stack[..],
        _ => &expected.stack[..=principal],
    };
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

/// Returns whether a frame belongs to the user's code and has a known line.
fn is_principal(frame: &SourceFrame) -> bool {
    frame.line != 0 && !frame.is_library()
}

/// Returns the signals that end a native program at a finding of this kind; empty if only the
/// kernel model or a checked build notices it, `None` if nothing does.
pub(crate) fn signals_of(kind: &str) -> Option<&'static [i32]> {
    match BugKind::from_name(kind)?.native_sign() {
        NativeSign::Signals(signals) => Some(signals),
        NativeSign::Reported => Some(&[]),
        NativeSign::Unseen => None,
    }
}

fn ends_so(kind: &str, signals: &[i32], end: &NativeEnd) -> bool {
    match end {
        NativeEnd::Signal { signal, .. } => signals.contains(signal) || kind == "signal",
        NativeEnd::Finding { kind: seen, .. } => {
            // The kernel sees that a program aborts, but not why.
            seen == kind || (seen == "abort" && signals.contains(&6))
        }
        NativeEnd::Hang => kind == "hang",
        // A panic that unwinds ends the program with the status of Rust's runtime.
        NativeEnd::Exit(status) => kind == "panic" && *status == 101,
        _ => false,
    }
}

/// Returns a description of an end.
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
        NativeEnd::Idle => "is blocked forever".to_owned(),
        NativeEnd::Hang => "does not end".to_owned(),
        NativeEnd::Limit(which) => which.to_string(),
        NativeEnd::Diverged(why) => why.clone(),
        NativeEnd::Stopped => "was stopped".to_owned(),
        NativeEnd::Off => "was switched off".to_owned(),
    }
}

/// The description of a waiting host whose world was ended early.
pub(crate) const NOT_ENDED: &str = "has not ended";

/// Returns the first host that diverged from its trace, and the description.
pub(crate) fn diverged(seen: &WorldRun) -> Option<(&String, &String)> {
    let mut hosts = seen.hosts.iter();
    hosts.find_map(|(name, run)| match &run.end {
        NativeEnd::Diverged(why) => Some((name, why)),
        _ => None,
    })
}
