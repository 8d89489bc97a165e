//! A server of PostgreSQL for tests.

use crate::cluster::{Process, wait_for};
use crate::common::expect;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a command of PostgreSQL. Its server refuses to run as root, so it runs as the user that
/// the package created.
pub(crate) fn postgres(program: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL (./setup installs it)");
    let mut programs = versions.map(|version| {
        let version = version.expect("an entry").path();
        version.join("bin").join(program)
    });
    let program = programs.find(|program| program.is_file());
    let program = program.expect("a program of PostgreSQL");
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "--",
    ]);
    command.arg(program);
    command
}

/// A server of PostgreSQL, with a folder of its own.
pub(crate) struct Postgres {
    server: Option<Process>,
    dir: PathBuf,
    /// The address of the server as a broker.
    pub(crate) url: String,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.server.take());
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Starts a server that logs to a folder. The name is a part of that of its socket.
pub(crate) fn start_postgres(folder: &Path, name: &str) -> Postgres {
    // The path of a socket must be short.
    let dir = std::env::temp_dir().join(format!("everett-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    if nix::unistd::geteuid().is_root() {
        expect(Command::new("chown").arg("postgres").arg(&dir), 0);
    }
    let data = dir.join("data");
    let initdb = ["-A", "trust", "-U", "everett", "--no-sync", "-D"];
    expect(
        postgres("initdb").current_dir(&dir).args(initdb).arg(&data),
        0,
    );
    let log = fs::File::create(folder.join("postgres.log")).expect("a log");
    let mut server = postgres("postgres");
    server
        .current_dir(&dir)
        .args(["-F", "-c", "listen_addresses=", "-k"]);
    server.arg(&dir).arg("-D").arg(&data);
    server.stdout(log.try_clone().expect("a log")).stderr(log);
    let mut server = Process(server.spawn().expect("it starts"));
    wait_for("the server", || {
        assert!(
            server.0.try_wait().expect("a child").is_none(),
            "it has ended"
        );
        let ready = postgres("pg_isready")
            .current_dir(&dir)
            .arg("-h")
            .arg(&dir)
            .output();
        ready.expect("it starts").status.success().then_some(())
    });
    let socket = dir.to_string_lossy().replace('/', "%2F");
    Postgres {
        server: Some(server),
        dir,
        url: format!("postgres://everett@{socket}/postgres"),
    }
}
