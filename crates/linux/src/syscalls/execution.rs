//! `execve` and `execveat`: which program a file is, and what is passed to it.

use everett_vm::{Buffer, ImageId};

use super::paths::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use crate::bytes::Bytes;
use crate::errno::Errno;
use crate::files::{EXECUTE, InodeKind, Target};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::Execution;
use crate::table::ArgKind::{Fd, Flags, Path, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "execve",
        59,
        &[Path, Pointer, Pointer],
        &[Errno::ENOMEM, Errno::EACCES],
        execve,
    )
    .without("programs that are not part of the run"),
    Row::new(
        "execveat",
        322,
        &[Fd, Path, Pointer, Pointer, Flags],
        &[Errno::ENOMEM, Errno::EACCES],
        execveat,
    )
    .without("programs that are not part of the run"),
];

/// Maximum number of strings that one `execve` passes.
const MAX_STRINGS: u64 = 1 << 20;
/// Maximum length of a string, with its NUL.
const MAX_STRING: u64 = 32 * 4096;
/// Maximum number of bytes of all strings, with the pointers to them.
const MAX_ARGUMENTS: u64 = 2 << 20;
/// Maximum length of a chain of scripts whose interpreters are scripts.
const MAX_INTERPRETERS: usize = 4;

fn execve(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let path = kernel.read_path(call.args[0])?;
    let cwd = kernel.process().cwd;
    let file = kernel.resolve(cwd, &path, true)?;
    kernel.execute((path, file), call.args[1], call.args[2])
}

fn execveat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (fd, flags) = (call.int(0), call.args[4]);
    if flags & !(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = kernel.read_path(call.args[1])?;
    let Target::Inode(file) = kernel.target(fd, call.args[1], flags)? else {
        return Err(Errno::EACCES.into());
    };
    let inode = kernel.host.files.tree.get(file);
    if flags & AT_SYMLINK_NOFOLLOW != 0 && matches!(inode.kind, InodeKind::Link(_)) {
        return Err(Errno::ELOOP.into());
    }
    let name = match fd {
        _ if path.starts_with(b"/") || fd == AT_FDCWD => path,
        _ if path.is_empty() => format!("/dev/fd/{fd}").into_bytes(),
        _ => [format!("/dev/fd/{fd}/").as_bytes(), &path].concat(),
    };
    kernel.execute((name, file), call.args[2], call.args[3])
}

impl Kernel<'_, '_> {
    /// Executes a file, or the interpreter of a script.
    fn execute(&mut self, (mut name, mut file): (Vec<u8>, InodeId), args: u64, env: u64) -> Answer {
        let mut room = MAX_ARGUMENTS;
        let mut args = self.strings(args, &mut room)?;
        let env = self.strings(env, &mut room)?;
        for _ in 0..MAX_INTERPRETERS {
            let start = self.check_executable(file)?;
            if let Some(image) = self.image_of(file) {
                let execution = Execution {
                    image,
                    file: Some(file),
                    name,
                    args,
                    env,
                };
                return Err(Stop::Execute(Box::new(execution)));
            }
            let Some((interpreter, argument)) = shebang(start.bytes()) else {
                if !start.is_concrete() || start.bytes().starts_with(b"\x7fELF") {
                    let name = String::from_utf8_lossy(&name);
                    let what = format!("execve of {name}, not a program of this run,");
                    self.refuse("execve", what);
                }
                return Err(Errno::ENOEXEC.into());
            };
            let text = |text: &[u8]| Buffer::with_bytes(text, text.len());
            let mut all = vec![text(&interpreter)];
            all.extend(argument.map(|argument| text(&argument)));
            all.push(text(&name));
            all.extend(args.into_iter().skip(1));
            args = all;
            file = self.resolve(self.process().cwd, &interpreter, true)?;
            name = interpreter;
        }
        Err(Errno::ELOOP.into())
    }

    /// Fails unless the process may execute a file and nobody can write it. Returns its first bytes.
    fn check_executable(&self, file: InodeId) -> Result<Buffer, Errno> {
        /// Number of bytes that Linux reads to recognise a script.
        const START: u64 = 256;
        let inode = self.host.files.tree.get(file);
        let InodeKind::Regular(bytes) = &inode.kind else {
            return Err(Errno::EACCES);
        };
        self.fs_credentials().check(inode, EXECUTE)?;
        // Linux does not count the descriptor that `memfd_create` returns.
        let is_memory = inode.seals.is_some();
        match !is_memory && self.host.files.is_open_for_writing(file) {
            true => Err(Errno::ETXTBSY),
            false => Ok(bytes.read(0, START)),
        }
    }

    /// The program of a file: its own, or that of another file of which it is a copy.
    fn image_of(&mut self, file: InodeId) -> Option<ImageId> {
        /// A program whose contents are not known has the same few bytes as others.
        const UNKNOWN: u64 = 4;
        let tree = &self.host.files.tree;
        let InodeKind::Regular(bytes) = &tree.get(file).kind else {
            return None;
        };
        let is_copy = |other: &Bytes| bytes.len() > UNKNOWN && bytes.has_same_bytes(other);
        if let Some(own) = tree.get(file).program {
            return Some(own);
        }
        let image = tree.find_program(is_copy)?;
        self.host.files.tree.get_mut(file).program = Some(image);
        Some(image)
    }

    /// Reads a NULL-terminated array of strings, each without its NUL.
    fn strings(&mut self, array: u64, room: &mut u64) -> Result<Vec<Buffer>, Stop> {
        let mut strings = Vec::new();
        if array == 0 {
            return Ok(strings);
        }
        for index in 0..MAX_STRINGS {
            let address = self.read_u64(array.wrapping_add(8 * index))?;
            if address == 0 {
                return Ok(strings);
            }
            let len = self.string_len(address)?;
            // The string, its NUL, and the pointer to it.
            *room = room.checked_sub(len + 9).ok_or(Errno::E2BIG)?;
            strings.push(self.read_buffer(address, len)?);
        }
        Err(Errno::E2BIG.into())
    }

    /// Length of a string. For each symbolic byte, decides whether it is NUL.
    fn string_len(&mut self, address: u64) -> Result<u64, Stop> {
        let mut len = 0;
        if self.guest.is_some() {
            return self.native_string_len(address);
        }
        loop {
            let byte = self.read_value(address.wrapping_add(len), 1)?;
            let term = byte.to_term(self.vm.arena, 8);
            let zero = self.vm.arena.zero(8);
            let is_end = self.vm.arena.eq(term, zero);
            if self.vm.decide_term(is_end)? {
                return Ok(len);
            }
            len += 1;
            if len >= MAX_STRING {
                return Err(Errno::E2BIG.into());
            }
        }
    }
}

impl Kernel<'_, '_> {
    /// Length of a string in native memory, read page by page.
    fn native_string_len(&mut self, address: u64) -> Result<u64, Stop> {
        const PAGE: u64 = everett_vm::PAGE as u64;
        let mut len = 0;
        while len < MAX_STRING {
            let at = address.wrapping_add(len);
            let piece = self.read_bytes(at, PAGE - at % PAGE)?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                len += end as u64;
                break;
            }
            len += piece.len() as u64;
        }
        if len < MAX_STRING {
            return Ok(len);
        }
        Err(Errno::E2BIG.into())
    }
}

/// Interpreter and argument of a script.
fn shebang(start: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let cut = line.iter().position(|byte| byte.is_ascii_whitespace());
    let (interpreter, argument) = line.split_at(cut.unwrap_or(line.len()));
    let argument = argument.trim_ascii();
    let argument = (!argument.is_empty()).then(|| argument.to_vec());
    (!interpreter.is_empty()).then(|| (interpreter.to_vec(), argument))
}
