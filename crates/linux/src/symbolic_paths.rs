//! Path names in guest memory, whose bytes may be symbolic.
//!
//! A symbolic path is compared with the path of each existing file in turn. A path in canonical
//! form that matches none of them names no file: all such paths are one case. In a non-canonical
//! path (`./a`, `a//b`), each component is compared with the names in its directory. Only paths of
//! files to be created are concretized byte by byte.

use everett_expr::ExprId;
use everett_vm::Value;
use std::ops::Range;

use crate::errno::Errno;
use crate::files::InodeKind;
use crate::ids::InodeId;
use crate::kernel::{Kernel, Stop};

/// `PATH_MAX`.
const PATH_MAX: u64 = 4096;

/// Bytes of a path in guest memory.
struct PathBytes {
    /// Bytes up to the first concrete NUL, or up to the end of their object.
    values: Vec<Value>,
    /// A NUL follows them.
    ended: bool,
}

impl PathBytes {
    /// Whether its concrete bytes are consistent with this prefix.
    fn can_start_with(&self, path: &[u8]) -> bool {
        path.len() <= self.values.len()
            && path.iter().zip(&self.values).all(|(byte, value)| {
                let concrete = value.as_concrete();
                concrete.is_none_or(|bits| bits as u8 == *byte)
            })
    }
}

/// The path of an existing file.
struct KnownPath {
    path: Vec<u8>,
    /// The file exists on every host.
    usual: bool,
}

impl Kernel<'_, '_> {
    /// Reads the path of a file that should exist.
    pub fn read_path(&mut self, address: u64) -> Result<Vec<u8>, Stop> {
        self.path(address, false)
    }

    /// Reads the path of a file that is created if it does not exist.
    pub fn read_new_path(&mut self, address: u64) -> Result<Vec<u8>, Stop> {
        self.path(address, true)
    }

    fn path(&mut self, address: u64, new: bool) -> Result<Vec<u8>, Stop> {
        let path_bytes = self.path_bytes(address)?;
        let concrete = path_bytes
            .values
            .iter()
            .map(|value| Some(value.as_concrete()? as u8));
        if let Some(bytes) = concrete.collect::<Option<Vec<u8>>>() {
            return if path_bytes.ended {
                Ok(bytes)
            } else {
                Err(Errno::ENAMETOOLONG.into())
            };
        }
        let (pid, tid) = (self.process().pid, self.task().tid);
        self.host.refresh_proc(pid, tid);
        let (cwd, root) = (self.process().cwd, self.process().root);
        let mut known = self.host.files.known_paths(cwd, root);
        known.retain(|path| path_bytes.can_start_with(&path.path));
        if let Some(path) = self.match_known(&path_bytes, &known)? {
            return Ok(path);
        }
        if new {
            return self.concrete_path(&path_bytes);
        }
        if self.is_non_canonical(&path_bytes)? {
            return self.path_by_components(&path_bytes);
        }
        for KnownPath { path, .. } in &known {
            let tree = &self.host.files.tree;
            let is_file = tree
                .lookup_within(root, cwd, path, true)
                .is_ok_and(|id| !matches!(tree.get(id).kind, InodeKind::Directory(..)));
            if is_file && self.starts_with(&path_bytes, path, b"/")? {
                return Err(Errno::ENOTDIR.into());
            }
        }
        Err(Errno::ENOENT.into())
    }

    /// The known path that the bytes spell, if any. One query checks all files that every host has,
    /// since programs hardly ever mean them.
    fn match_known(
        &mut self,
        path_bytes: &PathBytes,
        known: &[KnownPath],
    ) -> Result<Option<Vec<u8>>, Stop> {
        for usual in [false, true] {
            let some: Vec<_> = known.iter().filter(|path| path.usual == usual).collect();
            if usual {
                let same: Vec<_> = some
                    .iter()
                    .map(|known| self.begins(path_bytes, &known.path, &[0]))
                    .collect();
                let any = self.vm.arena.any(&same);
                if !self.vm.decide_term(any)? {
                    return Ok(None);
                }
            }
            for known in some {
                if self.starts_with(path_bytes, &known.path, &[0])? {
                    return Ok(Some(known.path.clone()));
                }
            }
        }
        Ok(None)
    }

    fn path_bytes(&mut self, address: u64) -> Result<PathBytes, Stop> {
        if self.guest.is_some() {
            return self.native_path_bytes(address);
        }
        let mut values = Vec::new();
        let mut symbolic = false;
        for at in 0..PATH_MAX {
            let place = address.wrapping_add(at);
            if symbolic && self.vm.memory.object_at(place, 1).is_none() {
                break;
            }
            let value = self.read_value(place, 1)?;
            if value.as_concrete() == Some(0) {
                return Ok(PathBytes {
                    values,
                    ended: true,
                });
            }
            symbolic |= value.term.is_some();
            values.push(value);
        }
        Ok(PathBytes {
            values,
            ended: false,
        })
    }

    /// The bytes of a path in the memory of a native process, read in pieces that do not reach into
    /// a page behind its end.
    fn native_path_bytes(&mut self, address: u64) -> Result<PathBytes, Stop> {
        const PIECE: u64 = 64;
        let mut values = Vec::new();
        while (values.len() as u64) < PATH_MAX {
            let place = address.wrapping_add(values.len() as u64);
            let left = PATH_MAX - values.len() as u64;
            let piece = self.read_buffer(place, (PIECE - place % PIECE).min(left))?;
            for byte in piece.bytes() {
                if *byte == 0 {
                    return Ok(PathBytes {
                        values,
                        ended: true,
                    });
                }
                values.push(Value::concrete(u64::from(*byte)));
            }
        }
        Ok(PathBytes {
            values,
            ended: false,
        })
    }

    /// Whether the path starts with `path`, followed by one of the bytes `then`. Byte 0 means the
    /// end of the path.
    fn starts_with(
        &mut self,
        path_bytes: &PathBytes,
        path: &[u8],
        then: &[u8],
    ) -> Result<bool, Stop> {
        let same = self.begins(path_bytes, path, then);
        Ok(self.vm.decide_term(same)?)
    }

    fn begins(&mut self, path_bytes: &PathBytes, path: &[u8], then: &[u8]) -> ExprId {
        let mut conditions = Vec::with_capacity(path.len() + then.len());
        for (at, byte) in path.iter().chain(then).enumerate() {
            conditions.push(self.byte_is(path_bytes, at, *byte));
        }
        self.vm.arena.all(&conditions)
    }

    fn byte_is(&mut self, path_bytes: &PathBytes, at: usize, byte: u8) -> ExprId {
        let arena = &mut *self.vm.arena;
        match path_bytes.values.get(at) {
            Some(value) => {
                let value = value.to_term(arena, 8);
                let byte = arena.constant(8, u64::from(byte));
                arena.eq(value, byte)
            }
            None => {
                arena.bool_constant(at == path_bytes.values.len() && path_bytes.ended && byte == 0)
            }
        }
    }

    /// Whether a component is empty, `.` or `..`. The last component may be empty.
    fn is_non_canonical(&mut self, path_bytes: &PathBytes) -> Result<bool, Stop> {
        let mut roundabout = self.vm.arena.bool_constant(false);
        let mut alive = self.vm.arena.bool_constant(true);
        for at in 0..path_bytes.values.len() {
            let starts = match at {
                0 => self.vm.arena.bool_constant(true),
                _ => self.byte_is(path_bytes, at - 1, b'/'),
            };
            let slash = self.byte_is(path_bytes, at, b'/');
            let empty = if at == 0 {
                self.vm.arena.bool_constant(false)
            } else {
                slash
            };
            let dots = self.dots_at(path_bytes, at);
            let odd = self.vm.arena.any(&[empty, dots]);
            let here = self.vm.arena.all(&[alive, starts, odd]);
            roundabout = self.vm.arena.any(&[roundabout, here]);
            let nul = self.byte_is(path_bytes, at, 0);
            let not_nul = self.vm.arena.not(nul);
            alive = self.vm.arena.all(&[alive, not_nul]);
        }
        Ok(self.vm.decide_term(roundabout)?)
    }

    /// The condition that the component at this offset is `.` or `..`.
    fn dots_at(&mut self, path_bytes: &PathBytes, at: usize) -> ExprId {
        let mut ends = |at: usize| {
            let parts = [
                self.byte_is(path_bytes, at, b'/'),
                self.byte_is(path_bytes, at, 0),
            ];
            self.vm.arena.any(&parts)
        };
        let (after_one, after_two) = (ends(at + 1), ends(at + 2));
        let first = self.byte_is(path_bytes, at, b'.');
        let second = self.byte_is(path_bytes, at + 1, b'.');
        let two = self.vm.arena.all(&[second, after_two]);
        let either = self.vm.arena.any(&[after_one, two]);
        self.vm.arena.all(&[first, either])
    }

    /// A path whose components all name existing files; an error if one does not.
    fn path_by_components(&mut self, path_bytes: &PathBytes) -> Result<Vec<u8>, Stop> {
        let mut path = Vec::new();
        for (number, component) in self.components(path_bytes)?.into_iter().enumerate() {
            if number > 0 {
                path.push(b'/');
            }
            if component.is_empty() {
                continue;
            }
            let names = self.names_below(&path)?;
            path.extend(self.name_of(path_bytes, component, names)?);
        }
        Ok(path)
    }

    /// The ranges of the components of a path: decides where the path ends and which of its bytes
    /// are slashes.
    fn components(&mut self, path_bytes: &PathBytes) -> Result<Vec<Range<usize>>, Stop> {
        let (mut components, mut start) = (Vec::new(), 0);
        let end = path_bytes.values.len();
        for at in 0..end {
            let nul = self.byte_is(path_bytes, at, 0);
            if self.vm.decide_term(nul)? {
                components.push(start..at);
                return Ok(components);
            }
            let slash = self.byte_is(path_bytes, at, b'/');
            if self.vm.decide_term(slash)? {
                components.push(start..at);
                start = at + 1;
            }
        }
        components.push(start..end);
        match path_bytes.ended {
            true => Ok(components),
            false => Err(Errno::ENAMETOOLONG.into()),
        }
    }

    /// The names in a directory; an empty path means the working directory.
    fn names_below(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let (tree, process) = (&self.host.files.tree, self.process());
        let directory = match path {
            b"" => process.cwd,
            path => tree.lookup_within(process.root, process.cwd, path, true)?,
        };
        let entries = tree.directory(directory).ok_or(Errno::ENOTDIR)?;
        let always = [&b"."[..], b".."].map(<[u8]>::to_vec);
        Ok(always
            .into_iter()
            .chain(entries.names.keys().cloned())
            .collect())
    }

    /// Decides which of these names a component of a path is.
    fn name_of(
        &mut self,
        path_bytes: &PathBytes,
        component: Range<usize>,
        names: Vec<Vec<u8>>,
    ) -> Result<Vec<u8>, Stop> {
        let length = component.len();
        for name in names.into_iter().filter(|name| name.len() == length) {
            let places = component.clone().zip(&name);
            let same: Vec<ExprId> = places
                .map(|(at, byte)| self.byte_is(path_bytes, at, *byte))
                .collect();
            let same = self.vm.arena.all(&same);
            if self.vm.decide_term(same)? {
                return Ok(name);
            }
        }
        Err(Errno::ENOENT.into())
    }

    fn concrete_path(&mut self, path_bytes: &PathBytes) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        for value in &path_bytes.values {
            match self.vm.concretize(*value)? as u8 {
                0 => return Ok(bytes),
                byte => bytes.push(byte),
            }
        }
        if path_bytes.ended {
            Ok(bytes)
        } else {
            Err(Errno::ENAMETOOLONG.into())
        }
    }
}

impl crate::files::Files {
    /// The paths that a symbolic path is compared with: those of all files, absolute and relative
    /// to a directory, with and without a trailing slash.
    fn known_paths(&self, cwd: InodeId, root: InodeId) -> Vec<KnownPath> {
        let mut known = Vec::new();
        for (from, prefix) in [(cwd, &b""[..]), (root, b"/")] {
            self.tree.for_each_name(from, &mut |path, usual| {
                let path = [prefix, path].concat();
                known.push(KnownPath { path, usual });
            });
        }
        let slashed: Vec<_> = known
            .iter()
            .map(|known| KnownPath {
                path: [&known.path, &b"/"[..]].concat(),
                usual: known.usual,
            })
            .collect();
        known.extend(slashed);
        let always = [&b"/"[..], b".", b"..", b""];
        known.extend(always.map(|path| KnownPath {
            path: path.to_vec(),
            usual: false,
        }));
        known
    }
}
