//! Resolution of built-in operations when a program is loaded: each operation and each piece of
//! inline assembly gets its handler once.

use everett_ir::code::Program;
use everett_ir::lower::verify;

use super::replacement::replacement;
use super::{resolve, resolve_assembly, uses_float_environment};
use crate::image::{Image, ImageError, Replaced};

impl Image {
    /// Verifies a program and resolves the built-in operations it calls. An operation that the vm
    /// does not implement is a finding when it is executed, not an error here.
    pub fn new(program: Program) -> Result<Image, ImageError> {
        if let Err(reason) = verify(&program) {
            return Err(ImageError {
                program: program.name,
                reason,
            });
        }
        let names = program.externals.iter();
        let externals = names.map(|name| resolve(name)).collect();
        let assembly = program.assembly.iter().map(resolve_assembly).collect();
        let tracks_floats = uses_float_environment(&program);
        Ok(Image::resolved(program, externals, assembly, tracks_floats))
    }

    /// Returns the same program with these functions replaced. They must have been lowered as
    /// operations.
    pub fn replacing(self, replaced: &[Replaced]) -> Image {
        self.handling(replaced, replacement)
    }
}
