//! Symbolic modes of files, as KLEE's files have them, if the run asks for them: of what kind a
//! symbolic file or stream is, and whether it can be opened for writing. Owns which modes there are;
//! the content of a file does not depend on its mode.

use everett_expr::{Arena, BinaryOp, ExprId};
use everett_vm::{Buffer, ExecContext, Interrupt};

use crate::bytes::Bytes;
use crate::config::{Contents, HostConfig, Stdin};
use crate::files::{Files, Target};
use crate::ids::InodeId;
use crate::kernel::{Kernel, Stop};
use crate::outcome::Stream;

/// Width of a mode in bytes.
const SIZE: u32 = 4;
/// The bits of the kind, and its values: regular file, directory, devices of characters and of
/// blocks, pipe, link, socket.
const KIND: u64 = 0o170_000;
const KINDS: [u64; 7] = [
    0o100_000, 0o040_000, 0o020_000, 0o060_000, 0o010_000, 0o120_000, 0o140_000,
];
const CHARACTER_DEVICE: u64 = 0o020_000;
/// The permissions that anybody has.
const READABLE: u64 = 0o444;
const WRITABLE: u64 = 0o222;
/// What tests prefer.
const USUAL: u64 = 0o100_644;
/// Where `struct stat` has the mode.
const IN_STATUS: usize = 24;
/// Where `struct statx` has the two bytes of the mode that are used.
const IN_EXTENDED_STATUS: usize = 28;

/// What the name of the input begins with.
const NAME: &str = "mode of ";

/// Returns whether an input is the mode of a file or stream.
pub fn is_mode(name: &str) -> bool {
    name.starts_with(NAME)
}

/// Returns whether an input is the mode of a file that is not a usual one.
pub fn is_unusual_mode(name: &str, bytes: &[u8]) -> bool {
    is_mode(name) && !bytes.iter().eq(&USUAL.to_le_bytes()[..SIZE as usize])
}

/// Makes the modes of a host's symbolic files and streams symbolic.
pub fn create(
    config: &HostConfig,
    cwd: InodeId,
    files: &mut Files,
    around: &mut ExecContext<'_>,
) -> Result<(), Interrupt> {
    for spec in config.files.iter() {
        let is_symbolic = matches!(
            spec.contents,
            Contents::Symbolic { .. } | Contents::SymbolicBetween { .. }
        );
        let found = files.tree.lookup(cwd, &spec.path, true);
        if let (true, Ok(id)) = (is_symbolic, found) {
            let name = spec.path.rsplit(|byte| *byte == b'/').next();
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            add(&name, Target::Inode(id), files, around)?;
        }
    }
    if let Stdin::Symbolic { .. } = config.stdin {
        add("stdin", Target::Stdin(0), files, around)?;
    }
    if config.options.symbolic_stdout {
        add("stdout", Target::Output(Stream::Stdout), files, around)?;
    }
    Ok(())
}

fn add(
    name: &str,
    target: Target,
    files: &mut Files,
    around: &mut ExecContext<'_>,
) -> Result<(), Interrupt> {
    let name = format!("{NAME}{name}");
    let input = around.oracle.input(around.arena, &name, SIZE)?;
    let bytes = Bytes::from_input(around.arena, input, SIZE);
    let mode = number(around.arena, &bytes);
    let is_possible = is_possible(around.arena, mode);
    around.oracle.assume(around.arena, is_possible)?;
    let usual = around.arena.constant(8 * SIZE, USUAL);
    let is_usual = around.arena.eq(mode, usual);
    around.oracle.prefer(around.arena, is_usual);
    files.set_mode(target, bytes);
    Ok(())
}

fn number(arena: &mut Arena, mode: &Bytes) -> ExprId {
    let bytes = mode.read(0, SIZE.into());
    bytes.load(arena, 0, SIZE as usize).to_term(arena, 8 * SIZE)
}

fn bits(arena: &mut Arena, mode: ExprId, mask: u64) -> ExprId {
    let mask = arena.constant(8 * SIZE, mask);
    arena.binary(BinaryOp::And, mode, mask)
}

fn is_kind(arena: &mut Arena, mode: ExprId, kind: u64) -> ExprId {
    let own = bits(arena, mode, KIND);
    let kind = arena.constant(8 * SIZE, kind);
    arena.eq(own, kind)
}

/// The condition that a mode has a kind, permissions and nothing else.
fn is_possible(arena: &mut Arena, mode: ExprId) -> ExprId {
    let rest = bits(arena, mode, !(KIND | 0o777) & u64::from(u32::MAX));
    let has_rest = arena.is_nonzero(rest);
    let mut is_some = is_kind(arena, mode, KINDS[0]);
    for kind in &KINDS[1..] {
        let is_this = is_kind(arena, mode, *kind);
        is_some = arena.binary(BinaryOp::Or, is_some, is_this);
    }
    let has_none = arena.not(has_rest);
    arena.binary(BinaryOp::And, is_some, has_none)
}

impl Kernel<'_, '_> {
    /// The mode of a file or stream as a term, if it is symbolic.
    fn symbolic_mode(&mut self, target: Target) -> Option<ExprId> {
        let bytes = self.host.files.mode(target)?.clone();
        Some(number(self.vm.arena, &bytes))
    }

    /// Returns a `struct stat` or `statx` of a file, with its mode if that is symbolic.
    pub fn with_mode(&self, target: Target, status: &[u8], is_extended: bool) -> Buffer {
        let mut status = Buffer::with_bytes(status, status.len());
        if let Some(mode) = self.host.files.mode(target) {
            let mode = mode.read(0, SIZE.into());
            match is_extended {
                true => status.copy_from(IN_EXTENDED_STATUS, &mode, 0, 2),
                false => status.copy_from(IN_STATUS, &mode, 0, SIZE as usize),
            }
        }
        status
    }

    /// Decides whether a file cannot be opened for writing, as in KLEE: nobody may write it, or
    /// nobody may read it where it is to be read, too.
    pub fn is_not_writable(&mut self, id: InodeId, is_read: bool) -> Result<bool, Stop> {
        let Some(mode) = self.symbolic_mode(Target::Inode(id)) else {
            return Ok(false);
        };
        let arena = &mut *self.vm.arena;
        let writable = bits(arena, mode, WRITABLE);
        let mut may = arena.is_nonzero(writable);
        if is_read {
            let readable = bits(arena, mode, READABLE);
            let readable = arena.is_nonzero(readable);
            may = arena.binary(BinaryOp::And, may, readable);
        }
        Ok(!self.vm.decide_term(may)?)
    }

    /// Decides whether a file or stream whose mode is symbolic is a terminal: a device of
    /// characters.
    pub fn is_symbolic_terminal(&mut self, target: Target) -> Result<bool, Stop> {
        let Some(mode) = self.symbolic_mode(target) else {
            return Ok(false);
        };
        let is_device = is_kind(self.vm.arena, mode, CHARACTER_DEVICE);
        Ok(self.vm.decide_term(is_device)?)
    }
}
