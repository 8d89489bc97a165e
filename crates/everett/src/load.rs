//! Loads a program by name into an executable image.

use everett_ir::lower::{LowerOptions, lower};
use everett_ir::{FileError, Module};
use everett_linux::{Contents, ProgramSpec, functions};
use everett_vm::{Image, ImageId, Replaced, external};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, RealDisk};
use crate::error::{Context, Result, bail};
use crate::session::Notices;

/// Returns the bitcode of a program: the file itself, or the one that `everett cc` wrote beside it.
pub(crate) fn bitcode_of(disk: &dyn Disk, program: &Path) -> Result<PathBuf> {
    if program
        .extension()
        .is_some_and(|extension| extension == "bc")
    {
        return Ok(program.to_owned());
    }
    let mut beside = program.as_os_str().to_owned();
    beside.push(".bc");
    let beside = PathBuf::from(beside);
    if disk.is_file(&beside) {
        return Ok(beside);
    }
    if !disk.is_file(program) {
        if program.is_dir() {
            bail!(Program, "{} is a folder, not a program", program.display());
        }
        if program.exists() {
            bail!(Program, "{} is not a regular file", program.display());
        }
        bail!(Program, "there is no program {}", program.display());
    }
    bail!(
        Program,
        "{} has no bitcode beside it ({} is missing). Build it with `everett cc`, `everett c++`, \
         `everett cargo` or `everett rustc`; if it was copied from where it was built, copy this file, too",
        program.display(),
        beside.display()
    );
}

/// Returns the native program that belongs to a program or its bitcode.
pub(crate) fn native_of(program: &Path) -> PathBuf {
    match program.extension() {
        Some(extension) if extension == "bc" => program.with_extension(""),
        _ => program.to_owned(),
    }
}

/// Returns what the guest reads in the files of programs: the native programs, where they exist.
pub(crate) fn program_contents(
    disk: &dyn Disk,
    programs: &[PathBuf],
    notices: &Notices,
) -> Result<Vec<Option<Contents>>> {
    let contents = |program: &PathBuf| disk.program(&native_of(program), notices);
    programs.iter().map(contents).collect()
}

/// The configuration of lowering, according to the checks of a run.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lowering {
    /// Whether stack slots may be promoted to registers.
    pub(crate) promote: bool,
    /// Whether indices are checked against the bounds of the arrays that they index.
    pub(crate) check_subobjects: bool,
    /// Whether libc functions may fail.
    pub(crate) intercepts: bool,
}

/// Reads, lowers and verifies a program.
pub(crate) fn load(program: &Path, lowering: Lowering) -> Result<Image> {
    load_from(&RealDisk, program, lowering, |_| Vec::new())
}

/// Like [`load`], from any disk, and without the functions that are replaced.
pub(crate) fn load_from(
    disk: &dyn Disk,
    program: &Path,
    lowering: Lowering,
    replaced: impl FnOnce(&Module) -> Vec<Replaced>,
) -> Result<Image> {
    let (path, module) = module_of(disk, program)?;
    let replaced = replaced(&module);
    image_of(program, &path, module, lowering, &replaced)
}

/// Returns the bitcode of a program, and its path.
pub(crate) fn module_of(disk: &dyn Disk, program: &Path) -> Result<(PathBuf, Module)> {
    let path = bitcode_of(disk, program)?;
    let bytes = disk.read(&path).map_err(|source| FileError::Io {
        path: path.clone(),
        source,
    })?;
    let module = Module::read(&bytes).map_err(|source| FileError::Read {
        path: path.clone(),
        source,
    })?;
    Ok((path, module))
}

/// Like [`load`], for a program whose bitcode is given as bytes.
pub(crate) fn load_bytes(program: &Path, bitcode: &[u8], lowering: Lowering) -> Result<Image> {
    let module = Module::read(bitcode).map_err(|source| FileError::Read {
        path: program.to_owned(),
        source,
    })?;
    image_of(program, program, module, lowering, &[])
}

fn image_of(
    program: &Path,
    path: &Path,
    module: Module,
    lowering: Lowering,
    replaced: &[Replaced],
) -> Result<Image> {
    let is_replaced = |name: &str| {
        let mut replaced = replaced.iter();
        external::is_replaced(name) || replaced.any(|function| function.symbol == name)
    };
    let options = LowerOptions {
        is_vm_operation: &is_replaced,
        is_intercepted: &|name| lowering.intercepts && can_fail(name),
        promote: lowering.promote,
        check_subobjects: lowering.check_subobjects,
    };
    let mut lowered =
        lower(&module, &options).with_context(|| format!("cannot lower {}", path.display()))?;
    lowered.name = program.display().to_string();
    let image = Image::new(lowered)?.replacing(replaced);
    Ok(match lowering.intercepts {
        true => image.intercepting(&can_fail),
        false => image,
    })
}

/// Returns whether fault injection can make a function fail.
fn can_fail(symbol: &str) -> bool {
    external::is_named(symbol, |name| functions::named(name).is_some())
}

/// A further program that the guest can execute.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct GuestProgram {
    /// The path of the program in the guest.
    pub path: String,
    /// The program on the real disk.
    pub file: PathBuf,
}

impl GuestProgram {
    /// Parses `PROGRAM` or `PATH=PROGRAM`.
    pub fn parse(text: &str) -> Result<GuestProgram, String> {
        let (path, file) = text.split_once('=').unwrap_or((text, text));
        if path.is_empty() || file.is_empty() {
            return Err("a program is given as PROGRAM or PATH=PROGRAM".to_owned());
        }
        Ok(GuestProgram {
            path: path.to_owned(),
            file: PathBuf::from(file),
        })
    }
}

/// Another build of a program of a run.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct OtherBuild {
    /// The program's path in the guest; `None` for the one that the guest starts with.
    pub path: Option<String>,
    /// The other build on the real disk.
    pub file: PathBuf,
}

impl OtherBuild {
    /// Parses `PROGRAM` or `PATH=PROGRAM`.
    pub fn parse(text: &str) -> Result<OtherBuild, String> {
        let (path, file) = match text.split_once('=') {
            Some((path, file)) => (Some(path), file),
            None => (None, text),
        };
        if path == Some("") || file.is_empty() {
            return Err("another build is given as PROGRAM or PATH=PROGRAM".to_owned());
        }
        Ok(OtherBuild {
            path: path.map(str::to_owned),
            file: PathBuf::from(file),
        })
    }
}

/// Returns the further programs of the guest, numbered after the first one.
pub(crate) fn guest_programs(programs: &[GuestProgram]) -> Vec<ProgramSpec> {
    let spec = |(number, program): (u16, &GuestProgram)| ProgramSpec {
        path: program.path.clone().into_bytes(),
        image: ImageId(number),
    };
    (1..).zip(programs).map(spec).collect()
}

/// Reports once that errors may be missing from programs that the compiler has optimised.
pub(crate) fn mention_optimised(images: &[Image], notices: &Notices) {
    let mut files = images
        .iter()
        .filter_map(|image| image.program().optimised_file.as_ref());
    if let Some(file) = files.next() {
        notices.tell(&format!(
            "note: {file} was compiled with optimisation, which may have removed errors from what is explored; build \
             without it, or C and C++ with --keep-errors"
        ));
    }
}

/// Loads the program with which a host starts, and the further ones that it can execute.
pub(crate) fn load_all(
    program: &Path,
    others: &[GuestProgram],
    lowering: Lowering,
) -> Result<Vec<Image>> {
    let mut images = vec![load(program, lowering)?];
    for other in others {
        images.push(load(&other.file, lowering)?);
    }
    Image::number_all(&mut images);
    Ok(images)
}
