//! Brokers with authentication, and encrypted connections.

use crate::cluster::{CLEAN, Process, wait_for};
use crate::common::{build, everett, expect, folder, summary, text};
use crate::postgres::postgres;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The key of a user. It is not secret, because it is for this test only.
const USER: &str = "UAM5TFTOLQJTTPH3K55O5WXI3FHPGYTU25ZRUHNVJGEK7KYNACHXRYWD";
const SEED: &str = "SUANKPPMM7GZL7ZYCPLHCOBER25V7YY773YMH6QUOFOPS552JM4WUVFRCI";
const OTHER_SEED: &str = "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM";

const FEW: &str = r#"
#include <everett.h>
int main(void) {
  unsigned char b;
  everett_make_symbolic(&b, sizeof b, "b");
  return b > 7;
}
"#;

/// Explores a program completely over a broker, with the credentials of the environment.
fn explore_as(folder: &Path, url: &str, variables: &[(&str, &Path)]) {
    build(folder, "few", FEW, &[]);
    let known = |arguments: &[&str]| {
        let mut command = everett(folder);
        command.args(arguments).env("EVERETT_BROKER", url);
        command.envs(variables.iter().copied());
        expect(&mut command, CLEAN)
    };
    known(&["submit", "--quiet", "--out", "by", "./few"]);
    // A slow broker may take longer than a worker stays.
    wait_for("the end of the run", || {
        known(&["worker", "--quiet", "--workers", "1", "--idle", "1s"]);
        let status = text(&known(&["status", "by"]));
        status.starts_with("finished: ").then_some(())
    });
    known(&["results", "--quiet", "by"]);
    let summary = summary(&folder.join("by"));
    assert_eq!(summary["complete"], true, "{summary}");
}

/// Returns the error message without valid credentials.
fn refused(folder: &Path, url: &str, variables: &[(&str, &Path)], arguments: &[&str]) -> String {
    let mut command = everett(folder);
    command.args(["status", "ab"]).args(arguments);
    command.env("EVERETT_BROKER", url);
    command.envs(variables.iter().copied());
    let output = command.output().expect("it starts");
    assert!(!output.status.success());
    text(&output)
}

#[test]
fn a_user_of_nats_is_known_by_a_key() {
    let folder = folder("cluster-nkey");
    let store = folder.join("store");
    let config = format!(
        "listen: \"127.0.0.1:-1\"\njetstream {{ store_dir: \"{}\" }}\nauthorization {{ users: [ {{ nkey: {USER} }} ] }}\n",
        store.display()
    );
    fs::write(folder.join("nats.conf"), config).expect("a file");
    let mut server = Command::new("nats-server");
    server.arg("-c").arg(folder.join("nats.conf"));
    server.arg("--ports_file_dir").arg(&folder);
    let server = server.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Process(server.spawn().expect("nats-server (./setup installs it)"));
    let ports = folder.join(format!("nats-server_{}.ports", server.0.id()));
    let url = wait_for("the server", || {
        assert!(server.0.try_wait().expect("a child").is_none(), "it ended");
        let ports: serde_json::Value = serde_json::from_slice(&fs::read(&ports).ok()?).ok()?;
        Some(ports["nats"][0].as_str()?.to_owned())
    });
    let seed = |name: &str, seed: &str| {
        fs::write(folder.join(name), format!("{seed}\n")).expect("a file");
        folder.join(name)
    };
    let (user, other) = (seed("user.nk", SEED), seed("other.nk", OTHER_SEED));
    let nkey = "EVERETT_BROKER_NKEY_FILE";
    explore_as(&folder, &url, &[(nkey, &user)]);
    let told = refused(&folder, &url, &[(nkey, &other)], &[]);
    assert!(told.to_lowercase().contains("authorization"), "{told}");
    let told = refused(&folder, &url, &[], &[]);
    assert!(told.to_lowercase().contains("authorization"), "{told}");
    // What is no seed is said to be none, and is not shown.
    let wrong = seed("wrong.nk", "hush");
    let told = refused(&folder, &url, &[(nkey, &wrong)], &[]);
    assert!(told.contains("the NKey for NATS cannot be used"), "{told}");
    assert!(!told.contains("hush"), "{told}");
    // Whoever names authorities wants encryption: a server without it is refused.
    let authorities = "EVERETT_BROKER_CA";
    let told = refused(&folder, &url, &[(nkey, &user), (authorities, &wrong)], &[]);
    assert!(
        told.contains("wrong.nk cannot be used: there is none"),
        "{told}"
    );
    openssl(
        &folder,
        "req -newkey rsa:2048 -nodes -days 3650 -x509 -subj /CN=ca -keyout ca.key -out ca.pem",
    );
    let known = folder.join("ca.pem");
    let told = refused(&folder, &url, &[(nkey, &user), (authorities, &known)], &[]);
    assert!(told.contains("the broker: "), "{told}");
    // A key file is not a credentials file.
    let told = refused(&folder, &url, &[], &["--nats-creds", "user.nk"]);
    assert!(
        told.contains("credentials for NATS cannot be used"),
        "{told}"
    );
    let told = refused(&folder, &url, &[], &["--nats-creds", "nowhere"]);
    assert!(told.contains("cannot read nowhere"), "{told}");
}

fn openssl(dir: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.current_dir(dir).args(arguments.split(' '));
    expect(&mut command, 0);
}

/// Starts a server that accepts encrypted connections only, and returns its port. If the port is
/// taken meanwhile, another one is tried.
fn start_postgres(dir: &Path, log: &Path) -> (Process, u16) {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let log = fs::File::create(log).expect("a log");
        let mut server = postgres("postgres");
        server.current_dir(dir).args(["-F", "-c", "ssl=on", "-k"]);
        server
            .arg(dir)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-D"]);
        server.arg(dir.join("data"));
        server.stdout(log.try_clone().expect("a log")).stderr(log);
        let mut server = Process(server.spawn().expect("it starts"));
        let is_ready = wait_for("the server", || {
            if server.0.try_wait().expect("a child").is_some() {
                return Some(false);
            }
            let mut ready = postgres("pg_isready");
            ready.current_dir(dir).arg("-h").arg(dir);
            let ready = ready.args(["-p", &port.to_string()]).output();
            ready.expect("it starts").status.success().then_some(true)
        });
        if is_ready {
            return (server, port);
        }
    }
}

#[test]
fn postgresql_is_reached_over_tls() {
    let folder = folder("cluster-tls");
    // The path of a socket must be short.
    let dir = std::env::temp_dir().join(format!("everett-tls-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let request = "req -newkey rsa:2048 -nodes -days 3650 -x509 -subj";
    for name in ["ca", "other"] {
        openssl(
            &dir,
            &format!("{request} /CN={name} -keyout {name}.key -out {name}.pem"),
        );
    }
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        expect(Command::new("chown").arg("postgres").arg(&dir), 0);
    }
    let data = dir.join("data");
    let initdb = ["-A", "trust", "-U", "everett", "--no-sync", "-D"];
    expect(
        postgres("initdb").current_dir(&dir).args(initdb).arg(&data),
        0,
    );
    openssl(
        &dir,
        "req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout data/server.key -out server.csr",
    );
    fs::write(dir.join("names"), "subjectAltName = IP:127.0.0.1\n").expect("a file");
    openssl(
        &dir,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -extfile names -out data/server.crt",
    );
    let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
    fs::write(data.join("pg_hba.conf"), rules).expect("a file");
    expect(
        Command::new("chmod")
            .arg("600")
            .arg(data.join("server.key")),
        0,
    );
    if is_root {
        expect(Command::new("chown").args(["-R", "postgres"]).arg(&dir), 0);
    }
    let (server, port) = start_postgres(&dir, &folder.join("postgres.log"));
    let url = format!("postgres://everett@127.0.0.1:{port}/postgres");
    let (ca, other): (PathBuf, PathBuf) = (dir.join("ca.pem"), dir.join("other.pem"));
    explore_as(&folder, &url, &[("EVERETT_BROKER_CA", &ca)]);
    let told = refused(&folder, &url, &[("EVERETT_BROKER_CA", &other)], &[]);
    assert!(told.contains("certificate"), "{told}");
    // No authority of the machine has signed the certificate.
    let told = refused(&folder, &format!("{url}?sslmode=require"), &[], &[]);
    assert!(told.contains("certificate"), "{told}");
    // The server refuses unencrypted connections.
    let told = refused(&folder, &url, &[], &[]);
    assert!(told.contains("pg_hba.conf"), "{told}");
    drop(server);
    // Processes that it has started may still create files.
    let _ = fs::remove_dir_all(&dir);
}
