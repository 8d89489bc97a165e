//! The environment of a process in a cluster: the address of the broker, its secrets, and the names
//! of this build and this machine.

use object::{Object, ReadCache};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::connect::Secrets;
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::run::{Build, Submission};
use crate::sign::{SigningKey, Submitters};

/// The variable with the address of the broker, used if there is no option.
const BROKER: &str = "EVERETT_BROKER";
/// The variables with the broker's token, or with the file that contains it.
const TOKEN: &str = "EVERETT_BROKER_TOKEN";
const TOKEN_FILE: &str = "EVERETT_BROKER_TOKEN_FILE";
/// The variables with the files that contain the credentials of a NATS user, and the seed of an
/// NKey.
const CREDENTIALS: &str = "EVERETT_BROKER_CREDS";
const NKEY_FILE: &str = "EVERETT_BROKER_NKEY_FILE";
/// The variables with the file that contains the key with which runs are signed, and with that of the
/// submitters whose runs a worker accepts.
const SIGNING_KEY_FILE: &str = "EVERETT_SIGNING_KEY_FILE";
const ACCEPT_FILE: &str = "EVERETT_ACCEPT_FILE";
/// The variable with the file that contains certificates of authorities.
const AUTHORITIES: &str = "EVERETT_BROKER_CA";

fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    Error::Usage(format!("cannot read {}: {error}", path.display()))
}

/// Reads a file that contains a secret.
fn secret_in(path: OsString) -> Result<String> {
    let path = PathBuf::from(path);
    let text = std::fs::read_to_string(&path).map_err(|error| cannot_read(&path, error))?;
    Ok(text.trim_end().to_owned())
}

impl Secrets {
    /// Reads the broker's secrets from the environment. An option may name the file with
    /// credentials.
    pub fn from_environment(credentials: Option<&Path>) -> Result<Secrets> {
        let token = match std::env::var_os(TOKEN_FILE) {
            Some(path) => Some(secret_in(path)?),
            None => std::env::var(TOKEN).ok(),
        };
        let credentials = credentials.map(|path| path.as_os_str().to_owned());
        let credentials = credentials.or_else(|| std::env::var_os(CREDENTIALS));
        Ok(Secrets {
            token,
            credentials: credentials.map(secret_in).transpose()?,
            nkey: std::env::var_os(NKEY_FILE).map(secret_in).transpose()?,
            authorities: std::env::var_os(AUTHORITIES).map(PathBuf::from),
        })
    }
}

impl SigningKey {
    /// Returns the key with which this user signs runs, if the environment names one.
    pub fn from_environment() -> Result<Option<SigningKey>> {
        let path = std::env::var_os(SIGNING_KEY_FILE).map(PathBuf::from);
        path.as_deref().map(SigningKey::read).transpose()
    }
}

impl Submitters {
    /// Returns the submitters whose runs a worker accepts, from the file of an option or of the
    /// environment; `None` if there is neither.
    pub fn from_environment(option: Option<&Path>) -> Result<Option<Submitters>> {
        let path = option.map(Path::to_owned);
        let path = path.or_else(|| std::env::var_os(ACCEPT_FILE).map(PathBuf::from));
        path.as_deref().map(Submitters::read).transpose()
    }
}

/// Returns the address of the broker, from an option or from the environment. Others can read
/// command lines, so an option must not contain a secret.
pub fn broker_url(option: Option<&str>) -> Result<String> {
    let Some(url) = option else {
        return std::env::var(BROKER)
            .map_err(|_| Error::Usage(format!("no broker: give its address, or set {BROKER}")));
    };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let is_nats = !url.starts_with("postgres");
    let mut settings = url.split_once('?').map_or("", |(_, all)| all).split('&');
    let has_password = settings.any(|setting| setting.starts_with("password="));
    if has_password || user.is_some_and(|user| user.contains(':') || is_nats) {
        return Err(Error::Usage(format!(
            "others can read command lines: put the token or password into {TOKEN} or a file, {TOKEN_FILE}"
        )));
    }
    Ok(url.to_owned())
}

impl Build {
    /// Identifies the program of this process, by the version of its package and by its build ID. A
    /// program that was linked without one is identified by its bytes.
    pub fn of_this_program(version: &str) -> Result<Build> {
        let program = std::env::current_exe()?;
        let id = build_id(&program).map(Ok);
        let id = id.unwrap_or_else(|| std::fs::read(&program));
        let id = id.map_err(|error| cannot_read(&program, error))?;
        Ok(Build {
            version: version.to_owned(),
            digest: Hash::of(&id).to_string()[..16].to_owned(),
        })
    }
}

/// Returns the build ID of a program. Linkers compute it from all that they write, so that workers
/// need not read and hash some hundred megabytes when they start.
fn build_id(program: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(program).ok()?);
    let program = object::File::parse(&cache).ok()?;
    program.build_id().ok()?.map(<[u8]>::to_vec)
}

impl Submission {
    /// Returns a nonce that no other submission from this machine has.
    pub fn fresh_nonce() -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nonce = format!("{:?} {}", now.unwrap_or_default(), std::process::id());
        nonce.into_bytes()
    }
}

/// Returns a name for the workers of this process: the name of the machine and the process id.
pub fn worker_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = match name.trim() {
        "" => "worker",
        name => name,
    };
    format!("{name}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_secrets() {
        for url in [
            "nats://a:b@h:1",
            "nats://token@h",
            "tls://token@h:1",
            "postgres://u:p@h/d",
            "postgres://u@h/d?password=p",
            "postgres://u@h/d?sslmode=require&password=p",
        ] {
            let refused = broker_url(Some(url)).expect_err(url).to_string();
            assert!(refused.contains("others can read"), "{refused}");
        }
        for url in [
            "nats://h:1",
            "tls://h",
            "postgres://u@h/d",
            "postgres://u@h/d?sslmode=require",
            "postgres://u@%2Ftmp/d",
        ] {
            assert_eq!(broker_url(Some(url)).expect(url), url);
        }
    }

    #[test]
    fn programs_have_the_id_of_their_build() {
        let this = std::env::current_exe().expect("a program");
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("copy");
        std::fs::copy(&this, &copy).expect("copied");
        assert_eq!(build_id(&this), build_id(&copy));
        // What is no program has none, nor has what cannot be read.
        std::fs::write(&copy, "#!/bin/sh\n").expect("written");
        assert_eq!(build_id(&copy), None);
        assert_eq!(build_id(folder.path()), None);
        let build = Build::of_this_program("1").expect("readable");
        assert_eq!(build.digest.len(), 16);
    }
}
