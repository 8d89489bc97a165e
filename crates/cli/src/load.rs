//! From the name of a program to an image that can be executed.

use anyhow::{Context, Result, bail};
use everett_ir::lower::{LowerOptions, lower};
use everett_vm::{Image, external};
use std::path::{Path, PathBuf};

/// The bitcode of a program: the file itself, or the one that `everett cc` put beside it.
pub fn bitcode_of(program: &Path) -> Result<PathBuf> {
    if program
        .extension()
        .is_some_and(|extension| extension == "bc")
    {
        return Ok(program.to_owned());
    }
    let mut beside = program.as_os_str().to_owned();
    beside.push(".bc");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        return Ok(beside);
    }
    if !program.exists() {
        bail!("there is no program {}", program.display());
    }
    bail!(
        "{} has no bitcode beside it ({} is missing). Build it with `everett cc`, `everett c++`, \
         `everett cargo` or `everett rustc`",
        program.display(),
        beside.display()
    );
}

/// Reads, lowers and verifies a program.
pub fn load(program: &Path, promote: bool) -> Result<Image> {
    let path = bitcode_of(program)?;
    let module = everett_ir::read_file(&path)?;
    let options = LowerOptions {
        is_vm_operation: &external::is_replaced,
        promote,
    };
    let mut lowered =
        lower(&module, &options).with_context(|| format!("cannot lower {}", path.display()))?;
    lowered.name = program.display().to_string();
    Ok(Image::new(lowered)?)
}
