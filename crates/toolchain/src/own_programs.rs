//! Everett's own programs, each built once: one acts as a client, and one measures another program.

use std::fs;
use std::path::PathBuf;

use crate::Notify;
use crate::cache;
use crate::driver::{self, Language};
use crate::error::{IoContext, ToolchainError};
use crate::process::BuildTime;

/// Returns the program that sends one message; its bitcode is beside it.
pub fn sender(notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    built("sender", include_str!("../runtime/sender.c"), notify)
}

/// Returns the program that runs another one and records its processor time.
pub fn meter(notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    built("meter", include_str!("../runtime/hard/meter.c"), notify)
}

fn built(name: &'static str, source: &str, notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    let parts = [source.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes()];
    let fingerprint = cache::fingerprint(&parts);
    let folder = cache::folder()?.join(format!("{name}-{fingerprint}"));
    cache::make_once(&folder, &BuildTime::from_now(None), |folder| {
        let file = folder.join(format!("{name}.c"));
        fs::write(&file, source).context("write", &file)?;
        let (program, level) = (folder.join(name), "-O1");
        let args = [
            level.into(),
            "-o".into(),
            program.into_os_string(),
            file.into_os_string(),
        ];
        match driver::compile(Language::C, &args, notify)? {
            0 => Ok(()),
            _ => Err(ToolchainError::OwnProgram(name)),
        }
    })?;
    Ok(folder.join(name))
}
