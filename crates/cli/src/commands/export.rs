//! `everett export`.

use anyhow::{Result, bail};
use everett::ExportSpec;
use std::path::PathBuf;

use crate::EXIT_CLEAN;
use crate::commands::Subcommand;
use crate::session::session;

/// Arguments of `everett export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The folder of a finding, or a trace. A world of several hosts becomes a script that builds
    /// their network with namespaces; the word `netns` may precede it.
    #[arg(required = true, num_args = 1..=2, value_names = ["[netns] FINDING"])]
    words: Vec<PathBuf>,
    /// Write the script to this file; default: to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Subcommand for ExportArgs {
    fn run(&self) -> Result<u8> {
        let (netns, path) = match self.words.as_slice() {
            [form, path] if form.as_os_str() == "netns" => (true, path),
            [path] => (false, path),
            _ => bail!("say what to export: FINDING, or netns FINDING"),
        };
        let spec = ExportSpec {
            path: path.clone(),
            netns,
        };
        let script = everett::export(&spec, &session()?)?;
        match &self.out {
            None => print!("{}", script.text),
            Some(file) => script.write(file)?,
        }
        Ok(EXIT_CLEAN)
    }
}
