//! The program that sends one message, built once: it takes the place of a client.

use std::fs;
use std::path::PathBuf;

use crate::Notify;
use crate::cache;
use crate::driver::{self, Language};
use crate::error::{IoContext, ToolchainError};
use crate::process::BuildTime;

const SOURCE: &str = include_str!("../runtime/sender.c");

/// The program that sends one message; its bitcode lies beside it.
pub fn sender(notify: Notify<'_>) -> Result<PathBuf, ToolchainError> {
    let parts = [SOURCE.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes()];
    let name = format!("sender-{}", cache::fingerprint(&parts));
    let folder = cache::folder()?.join(name);
    cache::make_once(&folder, &BuildTime::from_now(None), |folder| {
        let source = folder.join("sender.c");
        fs::write(&source, SOURCE).context("write", &source)?;
        let (program, level) = (folder.join("sender"), "-O1");
        let args = [
            level.into(),
            "-o".into(),
            program.into_os_string(),
            source.into_os_string(),
        ];
        match driver::compile(Language::C, &args, notify)? {
            0 => Ok(()),
            _ => Err(ToolchainError::Sender),
        }
    })?;
    Ok(folder.join("sender"))
}
