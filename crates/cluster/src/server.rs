//! Starts a NATS server for local use, with storage in files; only this machine can reach it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::connect::{Purpose, Secrets, connect_for};
use crate::error::{Error, Result};
use crate::roles::roles_of;

const PROGRAM: &str = "nats-server";
/// The file in the folder that is locked while a server uses the folder, and names that server.
const LOCK: &str = "lock";
/// The file in the folder with the users of all roles, and the folder with their keys.
const ROLES: &str = "roles.conf";
const KEYS: &str = "keys";
/// Folders in which distributions install servers and which are not in the search path of users.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const PAUSE: Duration = Duration::from_millis(20);

/// The server to start.
#[derive(Clone, Default)]
pub struct ServerSpec {
    /// The storage folder of the server; created if it does not exist.
    pub dir: PathBuf,
    /// The port; any free one by default.
    pub port: Option<u16>,
    /// The token that the server requires.
    pub token: Option<String>,
    /// Whether only users of roles may connect, known by keys in the folder `keys` of `dir`.
    pub has_roles: bool,
}

/// A NATS server that was started. It ends when this value is dropped.
pub struct LocalServer {
    child: Child,
    url: String,
    syncs_always: bool,
}

fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    let mut programs = folders.map(|folder| folder.join(PROGRAM));
    let found = programs.find(|program| program.is_file());
    found.ok_or_else(|| {
        Error::Usage(format!(
            "there is no {PROGRAM}; install it (Debian: apt install {PROGRAM}) or join another broker"
        ))
    })
}

/// Quotes text in the syntax of the server's configuration.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

fn configuration(spec: &ServerSpec, dir: &Path, sync: &str) -> String {
    let port = spec.port.map_or(-1, i32::from);
    let store = quoted(&dir.join("store").to_string_lossy());
    let mut text =
        format!("listen: \"127.0.0.1:{port}\"\njetstream {{\n    store_dir: {store}\n{sync}}}\n");
    if let Some(token) = &spec.token {
        text += &format!("authorization {{ token: {} }}\n", quoted(token));
    }
    if spec.has_roles {
        text += &format!("include \"{ROLES}\"\n");
    }
    text
}

/// Creates the streams of all purposes. Only users of the role `work` may.
fn create_streams(url: &str, keys: &Path) -> Result<()> {
    let secrets = Secrets {
        nkey: Some(fs::read_to_string(keys.join("work.nk"))?.trim().to_owned()),
        ..Secrets::default()
    };
    for purpose in [Purpose::Explorations, Purpose::Tests] {
        connect_for(purpose, url, &secrets, None)?;
    }
    Ok(())
}

/// Writes a file that only its owner can read: it may hold a token.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Locks a folder. The lock is that of the open file, so a server that has the file open, too,
/// holds it even if this process is killed.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let server = fs::read_to_string(&path).unwrap_or_default();
            let server = match server.trim() {
                "" => "another server, which is just starting".to_owned(),
                server => server.to_owned(),
            };
            Err(Error::Usage(format!(
                "{} is in use by {server}; use that server, or end it first",
                dir.display()
            )))
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

impl LocalServer {
    /// Starts a server and waits until it can be reached. Fails if another server uses the folder.
    pub fn start(spec: &ServerSpec) -> Result<LocalServer> {
        if spec.has_roles && spec.token.is_some() {
            return Err(Error::Usage(
                "a server knows users of roles by their keys: it cannot require a token as well"
                    .to_owned(),
            ));
        }
        let program = program()?;
        fs::create_dir_all(&spec.dir)?;
        let dir = fs::canonicalize(&spec.dir)?;
        let mut lock = lock(&dir)?;
        lock.set_len(0)?;
        if spec.has_roles {
            fs::write(dir.join(ROLES), roles_of(&dir.join(KEYS))?)?;
        }
        let file = dir.join("nats.conf");
        // Servers before 2.10 have no such setting: they write at once, but let the kernel decide
        // when data reaches the disk.
        let settings = [("    sync_interval: always\n", true), ("", false)];
        let mut said = String::new();
        let syncs_always = settings.into_iter().find_map(|(sync, always)| {
            write_private(&file, &configuration(spec, &dir, sync)).ok()?;
            let tested = Command::new(&program)
                .arg("-t")
                .arg("-c")
                .arg(&file)
                .output();
            let tested = tested.ok()?;
            said = String::from_utf8_lossy(&tested.stderr).into_owned();
            tested.status.success().then_some(always)
        });
        let Some(syncs_always) = syncs_always else {
            return Err(Error::Broker(format!(
                "{} does not start: {said}",
                program.display()
            )));
        };
        let log = fs::File::create(dir.join("nats.log"))?;
        let child = Command::new(&program)
            .arg("-c")
            .arg(&file)
            .arg("--ports_file_dir")
            .arg(&dir)
            // The server does not read it, but keeps the folder locked as long as it lives.
            .stdin(Stdio::from(lock.try_clone()?))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = LocalServer {
            child,
            url: String::new(),
            syncs_always,
        };
        server.url = server.wait_for_address(&dir)?;
        if spec.has_roles {
            create_streams(&server.url, &dir.join(KEYS))?;
        }
        let id = server.child.id();
        lock.write_all(format!("{PROGRAM} (process {id}) at {}\n", server.url).as_bytes())?;
        Ok(server)
    }

    fn wait_for_address(&mut self, dir: &Path) -> Result<String> {
        let ports = dir.join(format!("{PROGRAM}_{}.ports", self.child.id()));
        loop {
            match fs::read(&ports) {
                Ok(bytes) => {
                    // The file may be incomplete.
                    let ports: serde_json::Value =
                        serde_json::from_slice(&bytes).unwrap_or_default();
                    if let Some(url) = ports["nats"][0].as_str() {
                        return Ok(url.to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            if self.child.try_wait()?.is_some() {
                let log = fs::read_to_string(dir.join("nats.log")).unwrap_or_default();
                return Err(Error::Broker(format!(
                    "{PROGRAM} has ended: {}",
                    log.trim()
                )));
            }
            sleep(PAUSE);
        }
    }

    /// Returns the address of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether acknowledged data survives a crash of the machine, not only of the server.
    pub fn syncs_always(&self) -> bool {
        self.syncs_always
    }

    /// Returns whether the server is still running.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // Everything that the server acknowledged is in its files.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
