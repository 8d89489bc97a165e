//! The root file system at boot: configured files, overlaid on the files that every host has. Later
//! files hide earlier ones. All states share contents until one writes them.

use everett_vm::{Buffer, Bug, BugKind, ChoiceSite, ExecContext, ImageId, Interrupt};

use crate::bytes::Bytes;
use crate::config::{Contents, FileSpec, HostConfig, ProgramSpec};
use crate::errno::Errno;
use crate::files::{Files, Inode, InodeKind, ROOT};
use crate::ids::InodeId;

/// Creates a configured file in the tree.
pub fn install(
    spec: &FileSpec,
    cwd: InodeId,
    now_ns: u64,
    files: &mut Files,
    around: &mut ExecContext<'_>,
) -> Result<(), Interrupt> {
    let node = match &spec.contents {
        Contents::Concrete(_) | Contents::Shared(_) => {
            InodeKind::Regular(concrete(&spec.contents).unwrap_or_default())
        }
        Contents::Symbolic { size } => {
            InodeKind::Regular(symbolic(&spec.path, *size, *size, around)?)
        }
        Contents::SymbolicBetween { least, most } => {
            InodeKind::Regular(symbolic(&spec.path, *least, *most, around)?)
        }
        Contents::Directory => return directory(spec, cwd, files),
        Contents::Link(target) => InodeKind::Link(target.clone()),
    };
    let time_ns = spec.modified_ns.unwrap_or(now_ns);
    let inode = Inode {
        uid: spec.owner.0,
        gid: spec.owner.1,
        ..Inode::new(node, spec.mode, time_ns)
    };
    let installed = files.tree.install(cwd, &spec.path, inode);
    installed.map_err(|errno| refused(&spec.path, errno))?;
    Ok(())
}

fn directory(spec: &FileSpec, cwd: InodeId, files: &mut Files) -> Result<(), Interrupt> {
    let made = files.tree.create_directories(cwd, &spec.path);
    let id = made.map_err(|errno| refused(&spec.path, errno))?;
    let inode = files.tree.get_mut(id);
    inode.mode = spec.mode;
    (inode.uid, inode.gid) = spec.owner;
    Ok(())
}

/// Symbolic contents. If several sizes are possible, the oracle picks one.
fn symbolic(
    path: &[u8],
    least: u32,
    most: u32,
    around: &mut ExecContext<'_>,
) -> Result<Bytes, Interrupt> {
    let name = path.rsplit(|byte| *byte == b'/').next();
    let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let size = if least < most {
        let site = ChoiceSite::FileSize {
            name: name.as_str().into(),
        };
        least
            + around
                .oracle
                .choose(&site, (most - least).saturating_add(1))?
    } else {
        most
    };
    let input = around
        .oracle
        .input(around.arena, &format!("{name}-data"), most)?;
    Ok(Bytes::from_input(around.arena, input, size.min(most)))
}

/// The inode of a program that `execve` can start.
fn program(image: ImageId, config: &HostConfig) -> Inode {
    let contents = config.program_contents.get(usize::from(image.0));
    let bytes = contents.and_then(Option::as_ref).and_then(concrete);
    let bytes = bytes.unwrap_or_else(|| Bytes::from_concrete(b"\x7fELF"));
    Inode {
        program: Some(image),
        ..Inode::new(InodeKind::Regular(bytes), 0o755, config.start_time_ns)
    }
}

/// The bytes of a file without symbolic parts.
fn concrete(contents: &Contents) -> Option<Bytes> {
    match contents {
        Contents::Concrete(bytes) => Some(Bytes::from_source(std::sync::Arc::new(bytes.clone()))),
        Contents::Shared(source) => Some(Bytes::from_source(source.clone())),
        _ => None,
    }
}

/// Creates a program that `execve` can start.
pub fn install_program(
    spec: &ProgramSpec,
    cwd: InodeId,
    config: &HostConfig,
    files: &mut Files,
) -> Result<(), Interrupt> {
    let inode = program(spec.image, config);
    let installed = files.tree.install(cwd, &spec.path, inode);
    installed.map_err(|errno| refused(&spec.path, errno))?;
    Ok(())
}

/// Creates the file of a program that a host boots with, unless the path exists.
pub fn install_started(
    name: &Buffer,
    image: ImageId,
    cwd: InodeId,
    config: &HostConfig,
    files: &mut Files,
) -> Option<InodeId> {
    if !name.is_concrete() || name.is_empty() {
        return None;
    }
    let path = name.bytes();
    let inode = program(image, config);
    match files.tree.lookup(cwd, path, true) {
        Ok(id) if files.tree.get(id).is_directory() => None,
        Ok(id) => {
            files.tree.get_mut(id).program = inode.program;
            Some(id)
        }
        Err(Errno::ENOENT) => files.tree.install(cwd, path, inode).ok(),
        Err(_) => None,
    }
}

pub fn refused(path: &[u8], errno: Errno) -> Bug {
    let path = String::from_utf8_lossy(path);
    let message = format!("cannot create {path:?} at boot: {errno}");
    Bug::new(BugKind::Unsupported, message)
}

/// Builds the root file system of a host at boot, and returns the working
/// directory of its first process.
pub fn build_root(
    config: &HostConfig,
    around: &mut ExecContext<'_>,
) -> Result<(Files, InodeId), Interrupt> {
    let (cwd, now_ns) = (&config.cwd, config.start_time_ns);
    let files = config.base.at(now_ns);
    let mut files = files.map_err(|errno| refused(b"/", errno))?;
    let made = files.tree.create_directories(ROOT, cwd);
    let cwd = made.map_err(|errno| refused(cwd, errno))?;
    for spec in &config.files {
        install(spec, cwd, now_ns, &mut files, around)?;
    }
    for spec in &config.programs {
        install_program(spec, cwd, config, &mut files)?;
    }
    Ok((files, cwd))
}
