//! Call sites in worlds of native programs: from where a call comes that may fail. A site is named by
//! its source line, by a function, by a frame as results show it, by its whole stack, or by arguments
//! of the call.

use everett_engine::{Called, IsCallAt, SourceFrame};
use everett_native::{CallOrigin, NativeFrame, NativeStack};
use everett_sim::PlannedSite;
use everett_toolchain::library_sources;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of Everett's runtime, which has functions of the C library, too.
const RUNTIME: &str = "/everett/runtime/";

/// Tells call sites from the C library below them.
#[derive(Clone)]
pub(crate) struct CallSites {
    /// The folder with the sources of the C library.
    pub sources: Option<PathBuf>,
}

impl CallSites {
    /// The sites of programs that were built on this machine.
    pub(crate) fn of_this_machine() -> CallSites {
        CallSites {
            sources: library_sources(),
        }
    }

    /// Returns a function that tells where calls of explored programs come from.
    pub(crate) fn of_explored() -> IsCallAt {
        let sites = CallSites::of_this_machine();
        Arc::new(move |from, called| sites.is_at(&native(called), from))
    }

    /// Returns whether a frame is in the C library.
    fn is_library(&self, frame: &NativeFrame) -> bool {
        let starts = |folder: &PathBuf| Path::new(&frame.file).starts_with(folder);
        frame.file.is_empty()
            || frame.file.starts_with(RUNTIME)
            || self.sources.as_ref().is_some_and(starts)
    }

    /// Returns the frames of a stack, without those of the C library before the program's own.
    fn own<'s>(&self, stack: &'s NativeStack) -> Vec<&'s NativeFrame> {
        let frames = || stack.innermost.iter().chain(&stack.callers);
        let own: Vec<&NativeFrame> = frames()
            .skip_while(|frame| self.is_library(frame))
            .collect();
        match own.is_empty() {
            true => frames().collect(),
            false => own,
        }
    }

    /// Returns the frames as results show them.
    pub(crate) fn texts(&self, stack: &NativeStack) -> Vec<String> {
        let own = self.own(stack).into_iter();
        own.map(NativeFrame::to_string).collect()
    }

    /// Returns the name of the site of a call: its source line, or what is known of it.
    pub(crate) fn name(&self, stack: &NativeStack) -> Option<String> {
        let frame = *self.own(stack).first()?;
        let file = Path::new(&frame.file).file_name();
        Some(match file.filter(|_| frame.line != 0) {
            Some(file) => format!("{}:{}", file.to_string_lossy(), frame.line),
            None => frame.to_string(),
        })
    }

    /// Returns the name of a whole stack.
    pub(crate) fn identity(&self, stack: &NativeStack) -> String {
        let mut frames = self.own(stack);
        // How the library starts the program differs between native and explored ones.
        while frames.len() > 1 && frames.last().is_some_and(|last| self.is_library(last)) {
            frames.pop();
        }
        let texts: Vec<String> = frames.into_iter().map(NativeFrame::to_string).collect();
        let digest = everett_engine::digest(texts.join("\n").as_bytes());
        let (_, number) = digest.rsplit_once(':').unwrap_or(("", &digest));
        number.to_owned()
    }

    /// Returns whether a call comes from a site.
    pub(crate) fn is_at(&self, origin: &CallOrigin, from: &PlannedSite) -> bool {
        let is_on = |site: &String| {
            self.own(&origin.stack)
                .into_iter()
                .any(|frame| is_frame(frame, site))
        };
        let is_whole = |name: &String| *name == self.identity(&origin.stack);
        let is_with = |wanted: &String| has_arguments(wanted, &origin.arguments);
        // Stacks are slower to compare than arguments.
        from.arguments.as_ref().is_none_or(is_with)
            && from.callsite.as_ref().is_none_or(is_on)
            && from.stack.as_ref().is_none_or(is_whole)
    }
}

/// Returns a call of an explored program as one of the native program, whose library frames are
/// known by their files.
fn native(called: &Called) -> CallOrigin {
    let frame = |frame: &SourceFrame| NativeFrame {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
    };
    CallOrigin {
        stack: NativeStack {
            innermost: called.stack.iter().map(frame).collect(),
            ..NativeStack::default()
        },
        arguments: called.arguments.clone(),
    }
}

/// Returns the arguments of a call as one text.
pub fn joined_arguments(arguments: &[String]) -> String {
    arguments.join(", ")
}

/// Returns whether arguments of a call are the wanted ones: all of them, or one of them.
pub fn has_arguments(wanted: &str, arguments: &[String]) -> bool {
    wanted == joined_arguments(arguments) || arguments.iter().any(|one| one == wanted)
}

/// Returns whether a frame is at `FILE:LINE`, in `FUNCTION`, or has this text.
fn is_frame(frame: &NativeFrame, site: &str) -> bool {
    if let Some((file, line)) = site.rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
        && !file.contains(' ')
    {
        return frame.line == line && Path::new(&frame.file).ends_with(file);
    }
    frame.is_in(site) || frame.to_string() == site
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> NativeFrame {
        NativeFrame {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
        }
    }

    #[test]
    fn sites_are_lines_functions_frames_or_whole_stacks() {
        let sites = CallSites {
            sources: Some(PathBuf::from("/libc")),
        };
        let stack = NativeStack {
            innermost: vec![frame("write", "/libc/src/write.c", 5)],
            callers: vec![
                frame("store::put(char)", "/home/a server/store.cc", 20),
                frame("main", "/home/a server/main.cc", 7),
            ],
            nearby: Vec::new(),
        };
        let origin = |stack: &NativeStack| CallOrigin {
            stack: stack.clone(),
            arguments: Vec::new(),
        };
        let is_at = |callsite: &str| {
            let from = PlannedSite {
                callsite: Some(callsite.to_owned()),
                ..PlannedSite::default()
            };
            sites.is_at(&origin(&stack), &from)
        };
        assert!(is_at("store.cc:20") && is_at("main.cc:7") && is_at("put") && is_at("main"));
        assert!(is_at("in store::put(char) at /home/a server/store.cc:20"));
        assert!(
            !is_at("store.cc:2") && !is_at("ore.cc:20") && !is_at("write") && !is_at("main.cc:20")
        );
        assert_eq!(sites.name(&stack).as_deref(), Some("store.cc:20"));
        let whole = |of: &NativeStack| PlannedSite {
            stack: Some(sites.identity(of)),
            ..PlannedSite::default()
        };
        let mut other = stack.clone();
        other.callers[1].line = 8;
        assert!(
            sites.is_at(&origin(&stack), &whole(&stack))
                && !sites.is_at(&origin(&stack), &whole(&other))
        );
        // How the call went through the library does not matter.
        other.clone_from(&stack);
        other.innermost.clear();
        assert!(sites.is_at(&origin(&stack), &whole(&other)));
    }

    #[test]
    fn a_fault_names_one_argument_or_all() {
        let sites = CallSites { sources: None };
        let origin = CallOrigin {
            arguments: vec!["a b".to_owned(), "3".to_owned()],
            ..CallOrigin::default()
        };
        let is_with = |wanted: &str| {
            let from = PlannedSite {
                arguments: Some(wanted.to_owned()),
                ..PlannedSite::default()
            };
            sites.is_at(&origin, &from)
        };
        assert!(is_with("a b, 3") && is_with("a b") && is_with("3"));
        assert!(!is_with("a") && !is_with("") && !is_with("a b, 4"));
    }
}
