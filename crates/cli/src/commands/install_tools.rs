//! `everett install-tools`.

use anyhow::Result;
use std::path::PathBuf;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::display::print;

/// Arguments of `everett install-tools`.
#[derive(clap::Args)]
pub struct InstallToolsArgs {
    /// The folder, made if it is missing. The links in it point to this executable.
    folder: PathBuf,
}

impl Subcommand for InstallToolsArgs {
    fn run(&self) -> Result<u8> {
        for made in everett_toolchain::install_tools(&self.folder)? {
            print(&made.display().to_string());
        }
        Ok(EXIT_CLEAN)
    }
}
