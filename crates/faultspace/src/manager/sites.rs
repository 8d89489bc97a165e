//! Call sites: from where a function is called. A fault can name one by its source line, by a
//! function, or by the digest of the whole stack.

use everett::has_arguments;
use std::collections::BTreeMap;
use std::path::Path;

use super::digest;
use super::stack::Frame;
use crate::injector::Site;

/// Files of the C library and of the injector. A call from them is a call of the program's own
/// code, if that is on the stack.
const LIBRARIES: &[&str] = &[
    "libc.",
    "libc-",
    "ld-linux",
    "ld-musl",
    "libpthread",
    INJECTOR,
];
/// The preloaded library.
const INJECTOR: &str = "preload.so";

/// The source lines of programs. Files are read once.
#[derive(Default)]
pub(super) struct Sites {
    files: BTreeMap<String, Option<addr2line::Loader>>,
}

impl Sites {
    /// Returns whether a call with this stack and these arguments comes from a site.
    pub(super) fn matches(&mut self, site: &Site, frames: &[Frame], arguments: &[String]) -> bool {
        let wanted = site.arguments.as_ref();
        if wanted.is_some_and(|wanted| !has_arguments(wanted, arguments)) {
            return false;
        }
        let frames = own(frames);
        let of_stack = site.stack.as_ref();
        let of_site = site.callsite.as_ref();
        of_stack.is_none_or(|stack| *stack == identity(frames))
            && of_site.is_none_or(|site| frames.iter().any(|frame| self.is_at(frame, site)))
    }

    /// Returns the name of the site of a call: the source line of the innermost frame outside of the
    /// C library, or what is known of it.
    pub(super) fn name(&mut self, frames: &[Frame]) -> Option<String> {
        let frames = own(frames);
        let known = frames.iter().find_map(|frame| {
            let (file, line) = self.lines(frame).into_iter().next()?;
            let name = Path::new(&file).file_name()?.to_string_lossy().into_owned();
            Some(format!("{name}:{line}"))
        });
        known.or_else(|| frames.first().map(|frame| frame.text.clone()))
    }

    /// Returns whether a frame is at `FILE:LINE`, in `FUNCTION`, or has this text.
    fn is_at(&mut self, frame: &Frame, site: &str) -> bool {
        if let Some((file, line)) = site.rsplit_once(':')
            && let Ok(line) = line.parse::<u32>()
        {
            let mut lines = self.lines(frame).into_iter();
            return lines.any(|(path, at)| at == line && Path::new(&path).ends_with(file));
        }
        let function = frame.text.split_once('!').map(|(_, function)| function);
        let name = function.and_then(|function| function.rsplit_once('+'));
        frame.text == site || function == Some(site) || name.is_some_and(|(name, _)| name == site)
    }

    /// Returns the source lines of a frame, those of inlined functions first.
    fn lines(&mut self, frame: &Frame) -> Vec<(String, u32)> {
        let loader = self.files.entry(frame.file.clone());
        let loader = loader.or_insert_with(|| addr2line::Loader::new(&frame.file).ok());
        let Some(loader) = loader else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let Ok(mut frames) = loader.find_frames(frame.address) else {
            return lines;
        };
        while let Ok(Some(found)) = frames.next() {
            if let Some(location) = found.location
                && let (Some(file), Some(line)) = (location.file, location.line)
            {
                lines.push((file.to_owned(), line));
            }
        }
        lines
    }
}

/// Returns the frames of the program: without the innermost ones, which are in the C library and in
/// the injector.
fn own(frames: &[Frame]) -> &[Frame] {
    let is_library = |frame: &Frame| LIBRARIES.iter().any(|name| is_in(frame, name));
    let first = frames.iter().position(|frame| !is_library(frame));
    &frames[first.unwrap_or(0)..]
}

/// Returns the frames outside of the preloaded library, which is called by all others.
pub(super) fn outside_injector(frames: &[Frame]) -> &[Frame] {
    let last = frames.iter().rposition(|frame| is_in(frame, INJECTOR));
    &frames[last.map_or(0, |last| last + 1)..]
}

/// Returns whether the code of a frame is in a file whose name begins like this.
fn is_in(frame: &Frame, name: &str) -> bool {
    let file = Path::new(&frame.file).file_name();
    file.is_some_and(|file| file.as_encoded_bytes().starts_with(name.as_bytes()))
}

/// Returns the digest of a stack.
pub(super) fn identity(frames: &[Frame]) -> String {
    let texts: Vec<&str> = own(frames)
        .iter()
        .map(|frame| frame.text.as_str())
        .collect();
    format!("{:016x}", digest(texts.join("\n").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, text: &str) -> Frame {
        Frame {
            file: file.to_owned(),
            address: 0,
            text: text.to_owned(),
        }
    }

    #[test]
    fn sites_are_functions_lines_or_whole_stacks() {
        let frames = [
            frame("/x/preload.so", "preload.so!call+0x10"),
            frame("/lib/libc.so.6", "libc.so.6!fopen+0x1"),
            frame("/bin/tool", "tool!load+0x20"),
            frame("/bin/tool", "tool!main+0x8"),
        ];
        let mut sites = Sites::default();
        let mut is_at = |text: &str| {
            let site = Site {
                callsite: Some(text.to_owned()),
                ..Site::default()
            };
            sites.matches(&site, &frames, &[])
        };
        assert!(is_at("load") && is_at("main") && is_at("tool!load+0x20") && is_at("load+0x20"));
        assert!(!is_at("fopen") && !is_at("load+0x21") && !is_at("tool.c:3"));
        assert_eq!(sites.name(&frames).as_deref(), Some("tool!load+0x20"));
        let of = |stack: &str| Site {
            stack: Some(stack.to_owned()),
            ..Site::default()
        };
        // How the call went through libraries is not part of the stack.
        assert!(sites.matches(&of(&identity(&frames[2..])), &frames, &[]));
        assert!(!sites.matches(&of(&identity(&frames[3..])), &frames, &[]));
    }
}
