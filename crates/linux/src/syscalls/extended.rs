//! Extended attributes: all namespaces of a file system without access control lists.

use everett_vm::{Buffer as Contents, Value};

use super::paths::AT_FDCWD;
use crate::capabilities::SYS_ADMIN;
use crate::errno::Errno;
use crate::files::{InodeKind, READ, Target, WRITE};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::happened;
use crate::objects::socket::{Domain, Socket, SocketType};
use crate::table::ArgKind::{Buffer, Fd, Flags, Int, Path};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "setxattr",
        188,
        &[Path, Path, Buffer, Int, Flags],
        SET_ERRORS,
        |kernel, call| set(kernel, call, Place::Path),
    )
    .without(LISTS),
    Row::new(
        "lsetxattr",
        189,
        &[Path, Path, Buffer, Int, Flags],
        SET_ERRORS,
        |kernel, call| set(kernel, call, Place::Link),
    )
    .without(LISTS),
    Row::new(
        "fsetxattr",
        190,
        &[Fd, Path, Buffer, Int, Flags],
        SET_ERRORS,
        |kernel, call| set(kernel, call, Place::Open),
    )
    .without(LISTS),
    Row::new(
        "getxattr",
        191,
        &[Path, Path, Buffer, Int],
        &[],
        |kernel, call| get(kernel, call, Place::Path),
    ),
    Row::new(
        "lgetxattr",
        192,
        &[Path, Path, Buffer, Int],
        &[],
        |kernel, call| get(kernel, call, Place::Link),
    ),
    Row::new(
        "fgetxattr",
        193,
        &[Fd, Path, Buffer, Int],
        &[],
        |kernel, call| get(kernel, call, Place::Open),
    ),
    Row::new(
        "listxattr",
        194,
        &[Path, Buffer, Int],
        &[],
        |kernel, call| list(kernel, call, Place::Path),
    ),
    Row::new(
        "llistxattr",
        195,
        &[Path, Buffer, Int],
        &[],
        |kernel, call| list(kernel, call, Place::Link),
    ),
    Row::new(
        "flistxattr",
        196,
        &[Fd, Buffer, Int],
        &[],
        |kernel, call| list(kernel, call, Place::Open),
    ),
    Row::new("removexattr", 197, &[Path, Path], &[], |kernel, call| {
        remove(kernel, call, Place::Path)
    }),
    Row::new("lremovexattr", 198, &[Path, Path], &[], |kernel, call| {
        remove(kernel, call, Place::Link)
    }),
    Row::new("fremovexattr", 199, &[Fd, Path], &[], |kernel, call| {
        remove(kernel, call, Place::Open)
    }),
];

const SET_ERRORS: &[Errno] = &[Errno::ENOSPC, Errno::EOPNOTSUPP];
const LISTS: &str = "access control lists, capabilities of files";

/// `XATTR_CREATE` and `XATTR_REPLACE`.
const CREATE: u64 = 1;
const REPLACE: u64 = 2;
/// Maximum bytes of a name and of a value.
const NAME_MAX: usize = 255;
const VALUE_MAX: u64 = 65_536;

const USER: &[u8] = b"user.";
const TRUSTED: &[u8] = b"trusted.";
const SECURITY: &[u8] = b"security.";
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";
const CAPABILITY: &[u8] = b"security.capability";
/// The only attribute of sockets, which says their protocol.
const PROTOCOL: &[u8] = b"system.sockprotoname";

/// How the first argument of a call says which file is meant.
#[derive(Copy, Clone)]
enum Place {
    Path,
    Link,
    Open,
}

fn set(kernel: &mut Kernel<'_, '_>, call: &Call, place: Place) -> Answer {
    let [_, name, value, size, flags, _] = call.args;
    let flags = flags & 0xffff_ffff;
    if flags & !(CREATE | REPLACE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = kernel.read_attribute_name(name)?;
    if size > VALUE_MAX {
        return Err(Errno::E2BIG.into());
    }
    let value = match size {
        0 => Contents::zeroed(0),
        _ => kernel.read_buffer(value, size)?,
    };
    let target = kernel.file_of(call, place)?;
    if is_list(&name) {
        return kernel.set_access_list(target, &name, &value);
    }
    let id = kernel.check_attribute(target, &name, WRITE)?;
    if name == CAPABILITY {
        return match value.len() {
            20 | 24 => {
                kernel.refuse("setxattr", "capabilities of files");
                Err(Errno::EOPNOTSUPP.into())
            }
            _ => Err(Errno::EINVAL.into()),
        };
    }
    let now_ns = kernel.wall_clock_ns();
    let inode = kernel.host.files.tree.get_mut(id);
    match inode.attributes.get(&name) {
        None if flags & REPLACE != 0 => return Err(Errno::ENODATA.into()),
        Some(_) if flags & CREATE != 0 => return Err(Errno::EEXIST.into()),
        _ => inode.attributes.set(&name, value)?,
    }
    inode.touch_status(now_ns);
    kernel.host.notify(id, happened::ATTRIBUTES);
    Ok(Value::ZERO)
}

fn get(kernel: &mut Kernel<'_, '_>, call: &Call, place: Place) -> Answer {
    let [_, name, to, size, ..] = call.args;
    let name = kernel.read_attribute_name(name)?;
    let target = kernel.file_of(call, place)?;
    let value = match kernel.protocol_name(target) {
        Some(protocol) if name == PROTOCOL => Contents::with_bytes(protocol, protocol.len()),
        _ if is_list(&name) => {
            return Err(match target {
                Target::Inode(id) if kernel.has_attributes(id) => Errno::ENODATA,
                _ => Errno::EOPNOTSUPP,
            }
            .into());
        }
        _ => {
            let id = kernel.check_attribute(target, &name, READ)?;
            let attributes = &kernel.host.files.tree.get(id).attributes;
            attributes.get(&name).ok_or(Errno::ENODATA)?.clone()
        }
    };
    kernel.give(to, size, &value)
}

fn list(kernel: &mut Kernel<'_, '_>, call: &Call, place: Place) -> Answer {
    let [_, to, size, ..] = call.args;
    let target = kernel.file_of(call, place)?;
    let sees_all = kernel.is_capable(SYS_ADMIN);
    let mut names = Vec::new();
    if let Target::Inode(id) = target {
        let all = kernel.host.files.tree.get(id).attributes.names();
        for name in all.filter(|name| sees_all || !name.starts_with(TRUSTED)) {
            names.extend_from_slice(name);
            names.push(0);
        }
    } else if kernel.protocol_name(target).is_some() {
        names.extend_from_slice(PROTOCOL);
        names.push(0);
    }
    kernel.give(to, size, &Contents::with_bytes(&names, names.len()))
}

fn remove(kernel: &mut Kernel<'_, '_>, call: &Call, place: Place) -> Answer {
    let name = kernel.read_attribute_name(call.args[1])?;
    let target = kernel.file_of(call, place)?;
    if is_list(&name) {
        return match target {
            Target::Inode(id) if kernel.has_attributes(id) => {
                let who = kernel.fs_credentials();
                who.check_owner(kernel.host.files.tree.get(id))?;
                Ok(Value::ZERO)
            }
            _ => Err(Errno::EOPNOTSUPP.into()),
        };
    }
    let id = kernel.check_attribute(target, &name, WRITE)?;
    let now_ns = kernel.wall_clock_ns();
    let inode = kernel.host.files.tree.get_mut(id);
    if !inode.attributes.remove(&name) {
        return Err(Errno::ENODATA.into());
    }
    inode.touch_status(now_ns);
    kernel.host.notify(id, happened::ATTRIBUTES);
    Ok(Value::ZERO)
}

fn is_list(name: &[u8]) -> bool {
    name == ACCESS_LIST || name == DEFAULT_LIST
}

impl Kernel<'_, '_> {
    fn file_of(&mut self, call: &Call, place: Place) -> Result<Target, Stop> {
        Ok(match place {
            Place::Path => Target::Inode(self.find(AT_FDCWD, call.args[0], true)?),
            Place::Link => Target::Inode(self.find(AT_FDCWD, call.args[0], false)?),
            Place::Open => self.usable(call.int(0))?,
        })
    }

    /// Reads the name of an attribute: `ERANGE` if it is empty or too long.
    fn read_attribute_name(&mut self, address: u64) -> Result<Vec<u8>, Stop> {
        let mut name = Vec::new();
        loop {
            match self.read_bytes(address.wrapping_add(name.len() as u64), 1)?[0] {
                0 => break,
                _ if name.len() == NAME_MAX => return Err(Errno::ERANGE.into()),
                byte => name.push(byte),
            }
        }
        match name.is_empty() {
            true => Err(Errno::ERANGE.into()),
            false => Ok(name),
        }
    }

    /// Whether a file can have attributes.
    fn has_attributes(&self, id: InodeId) -> bool {
        let tree = &self.host.files.tree;
        let inode = tree.get(id);
        !(inode.is_of_kernel() || inode.is_directory() && tree.is_in_proc(id))
    }

    /// The file, if it can have an attribute of this name and the process may access that.
    fn check_attribute(&self, target: Target, name: &[u8], wanted: u32) -> Result<InodeId, Errno> {
        let id = match target {
            Target::Inode(id) => Some(id),
            _ => None,
        };
        let inode = id.map(|id| self.host.files.tree.get(id));
        let is_system = name.starts_with(SECURITY) || name.starts_with(b"system.");
        let denied = match wanted {
            WRITE => Errno::EPERM,
            _ => Errno::ENODATA,
        };
        if name.starts_with(TRUSTED) && !self.is_capable(SYS_ADMIN) {
            return Err(denied);
        }
        if name.starts_with(USER) {
            let holds = inode.filter(|inode| {
                matches!(inode.kind, InodeKind::Regular(_) | InodeKind::Directory(_))
                    || matches!(inode.kind, InodeKind::Generated(_))
            });
            let inode = holds.ok_or(denied)?;
            const STICKY: u32 = 0o1000;
            if wanted == WRITE && inode.is_directory() && inode.mode & STICKY != 0 {
                self.fs_credentials().check_owner(inode)?;
            }
        }
        if let Some(inode) = inode.filter(|_| !is_system && !name.starts_with(TRUSTED)) {
            self.fs_credentials().check(inode, wanted)?;
        }
        let needs_more = name.starts_with(SECURITY) && wanted == WRITE;
        if needs_more && !self.is_capable(SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let id = id.filter(|id| self.has_attributes(*id));
        let id = id.ok_or(Errno::EOPNOTSUPP)?;
        let spaces = [USER, TRUSTED, SECURITY];
        match spaces.into_iter().find(|space| name.starts_with(space)) {
            None => Err(Errno::EOPNOTSUPP),
            Some(space) if space == name => Err(Errno::EINVAL),
            Some(_) => Ok(id),
        }
    }

    /// Access control lists are not modelled.
    fn set_access_list(&mut self, target: Target, name: &[u8], value: &Contents) -> Answer {
        const HEADER: usize = 4;
        const ENTRY: usize = 8;
        let id = match target {
            Target::Inode(id) if self.has_attributes(id) => id,
            _ => return Err(Errno::EOPNOTSUPP.into()),
        };
        let len = value.len();
        if len != 0 && (len < HEADER || !(len - HEADER).is_multiple_of(ENTRY)) {
            return Err(Errno::EINVAL.into());
        }
        let inode = self.host.files.tree.get(id);
        if name == DEFAULT_LIST && !inode.is_directory() && len > HEADER {
            return Err(Errno::EACCES.into());
        }
        self.fs_credentials().check_owner(inode)?;
        if len <= HEADER {
            return Ok(Value::ZERO);
        }
        self.refuse("setxattr", "access control lists");
        Err(Errno::EOPNOTSUPP.into())
    }

    /// The name of the protocol of a socket, with its NUL.
    fn protocol_name(&self, target: Target) -> Option<&'static [u8]> {
        let Target::Object(id) = target else {
            return None;
        };
        let socket = self.host.socket(id)?;
        let is_v6 = socket.domain == Domain::Inet6;
        Some(match socket.domain {
            Domain::Unix if socket.kind == SocketType::Stream => b"UNIX-STREAM\0",
            Domain::Unix => b"UNIX\0",
            Domain::Netlink => b"NETLINK\0",
            Domain::Packet => b"PACKET\0",
            _ if socket.is_tcp() && is_v6 => b"TCPv6\0",
            _ if socket.is_tcp() => b"TCP\0",
            _ if Socket::is_udp(socket) && is_v6 => b"UDPv6\0",
            _ if Socket::is_udp(socket) => b"UDP\0",
            _ if is_v6 => b"RAWv6\0",
            _ => b"RAW\0",
        })
    }

    /// Copies a result to the program, if it asks for more than the length of it.
    fn give(&mut self, to: u64, size: u64, bytes: &Contents) -> Answer {
        let len = bytes.len() as u64;
        if size != 0 && len > size {
            return Err(Errno::ERANGE.into());
        }
        if size != 0 && len > 0 {
            self.write_buffer(to, bytes)?;
        }
        Ok(Value::concrete(len))
    }
}
