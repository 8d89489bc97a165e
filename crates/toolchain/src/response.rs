//! Response files: `@file` means the arguments in the file, quoted as in GNU tools.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, ToolchainError};

/// Maximum nesting depth of response files: the expansion of a file that includes itself must
/// terminate.
const MAX_DEPTH: usize = 20;

/// Maximum length of a command line; longer ones are passed in a response file.
const MAX_COMMAND_LINE: usize = 64 * 1024;

/// Replaces every `@file` by the arguments in the file; an `@name` that is not a file stays.
pub fn expand(args: &[OsString]) -> Result<Vec<OsString>, ToolchainError> {
    let mut expanded = Vec::with_capacity(args.len());
    expand_into(args, &mut expanded, 0)?;
    Ok(expanded)
}

fn expand_into(
    args: &[OsString],
    expanded: &mut Vec<OsString>,
    depth: usize,
) -> Result<(), ToolchainError> {
    for arg in args {
        let path = arg
            .as_bytes()
            .strip_prefix(b"@")
            .map(|name| Path::new(OsStr::from_bytes(name)));
        let Some(path) = path.filter(|path| path.is_file()) else {
            expanded.push(arg.clone());
            continue;
        };
        if depth == MAX_DEPTH {
            let reason = "response files are nested too deeply";
            return Err(ToolchainError::Response {
                path: path.to_path_buf(),
                reason,
            });
        }
        let text = fs::read(path).context("read", path)?;
        let inner = split(&text).map_err(|reason| ToolchainError::Response {
            path: path.to_path_buf(),
            reason,
        })?;
        expand_into(&inner, expanded, depth + 1)?;
    }
    Ok(())
}

/// Splits the text of a response file into arguments.
fn split(text: &[u8]) -> Result<Vec<OsString>, &'static str> {
    let mut args = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', None | Some(b'"')) => {
                let next = bytes.next().ok_or("it ends in a backslash")?;
                current.get_or_insert_default().push(next);
            }
            (byte, Some(open)) if byte == open => quote = None,
            (byte, Some(_)) => current.get_or_insert_default().push(byte),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                current.get_or_insert_default();
            }
            (byte, None) if byte.is_ascii_whitespace() => {
                args.extend(current.take().map(OsString::from_vec));
            }
            (byte, None) => current.get_or_insert_default().push(byte),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed");
    }
    args.extend(current.take().map(OsString::from_vec));
    Ok(args)
}

/// Arguments for a command: unchanged, or as one response file if they are long.
pub struct Packed {
    args: Vec<OsString>,
    /// The response file, which must exist while the command runs.
    _file: Option<tempfile::NamedTempFile>,
}

impl Packed {
    /// Returns the arguments for the command.
    pub fn args(&self) -> &[OsString] {
        &self.args
    }
}

/// Packs arguments so that they do not exceed the system's limit for command lines.
pub fn pack(args: Vec<OsString>) -> Result<Packed, ToolchainError> {
    let total: usize = args.iter().map(|arg| arg.len() + 1).sum();
    if total <= MAX_COMMAND_LINE {
        return Ok(Packed { args, _file: None });
    }
    let temporary = PathBuf::from("a temporary response file");
    let file = tempfile::Builder::new()
        .prefix("everett-")
        .suffix(".rsp")
        .tempfile()
        .context("create", &temporary)?;
    fs::write(file.path(), join(&args)).context("write", file.path())?;
    let mut name = OsString::from("@");
    name.push(file.path());
    Ok(Packed {
        args: vec![name],
        _file: Some(file),
    })
}

fn join(args: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for arg in args {
        text.push(b'"');
        for byte in arg.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(args: &[&str]) -> Vec<OsString> {
        args.iter().map(OsString::from).collect()
    }

    #[test]
    fn quotes_and_backslashes_are_read() {
        let text = br#"-c  "a b.c" 'it\s' -D\"x\" ''
            -o out"#;
        assert_eq!(
            split(text).unwrap(),
            strings(&["-c", "a b.c", "it\\s", "-D\"x\"", "", "-o", "out"])
        );
        assert!(split(b"'open").is_err());
        assert!(split(b"end\\").is_err());
    }

    #[test]
    fn what_is_joined_splits_into_the_same() {
        let args = strings(&["a b", "", "\"", "\\", "'x'", "new\nline", "@x"]);
        assert_eq!(split(&join(&args)).unwrap(), args);
    }

    #[test]
    fn files_are_expanded_and_other_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let outer = folder.path().join("outer");
        fs::write(&inner, "-O2 x.c").unwrap();
        fs::write(&outer, format!("-c @{}", inner.display())).unwrap();
        let args = strings(&[&format!("@{}", outer.display()), "@nofile", "-v"]);
        assert_eq!(
            expand(&args).unwrap(),
            strings(&["-c", "-O2", "x.c", "@nofile", "-v"])
        );
        fs::write(&inner, format!("@{}", outer.display())).unwrap();
        assert!(expand(&args).is_err());
    }

    #[test]
    fn long_command_lines_go_into_a_file() {
        let args = vec![OsString::from("x".repeat(100)); 1000];
        let packed = pack(args.clone()).unwrap();
        assert_eq!(packed.args().len(), 1);
        assert_eq!(expand(packed.args()).unwrap(), args);
        assert_eq!(pack(args[..2].to_vec()).unwrap().args(), &args[..2]);
    }
}
