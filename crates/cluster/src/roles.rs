//! Roles of the users of a NATS server: who submits runs, who works on them, and who only watches.
//! Owns the part of a server's configuration that gives them their rights.
//!
//! JetStream sends its answers to whatever subject a request names, so that permissions alone do not
//! keep a user from writing: the server would write for it. Therefore only workers are users of the
//! account that has the streams. Submitters and watchers have accounts of their own, which import
//! some requests; an answer goes back to the account where the request comes from.

use std::path::Path;

use crate::broker::Kind;
use crate::error::Result;
use crate::nats::{DOMAIN, PREFIXES, stream_name};
use crate::sign::SigningKey;

/// A role of users.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Takes jobs and records what they came to.
    Work,
    /// Submits, pauses, cancels and removes runs, and fetches results.
    Submit,
    /// Reads the status and the results of runs.
    Watch,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Work, Role::Submit, Role::Watch];

    /// Returns the name of the role, which the file with its key has, too.
    pub fn name(self) -> &'static str {
        match self {
            Role::Work => "work",
            Role::Submit => "submit",
            Role::Watch => "watch",
        }
    }

    /// Returns whether users of this role write records of a kind.
    fn writes(self, kind: Kind) -> bool {
        match kind {
            Kind::Run | Kind::Signature | Kind::Cancelled => self == Role::Submit,
            Kind::Lease
            | Kind::Began
            | Kind::Worker
            | Kind::Request
            | Kind::Round
            | Kind::Coverage
            | Kind::Refused => self == Role::Work,
            // A run that was begun on one machine is submitted with its first outcome; and whoever
            // fetches results lets jobs be explored again whose results are lost.
            Kind::Outcome | Kind::Paused | Kind::Over | Kind::Again | Kind::Grant => {
                self != Role::Watch
            }
        }
    }

    /// Returns the subjects to which users of this role publish.
    fn subjects(self) -> Vec<String> {
        let mut subjects = Vec::new();
        for prefix in PREFIXES {
            let stream = |part| stream_name(prefix, part);
            let [records, objects, jobs] = ["record", "object", "job"].map(stream);
            for stream in [&records, &objects, &jobs] {
                subjects.push(format!("$JS.API.STREAM.INFO.{stream}"));
                subjects.push(format!("$JS.API.STREAM.MSG.GET.{stream}"));
            }
            subjects.push(format!("$JS.API.CONSUMER.INFO.{jobs}.workers"));
            // With it, the server tells its time.
            subjects.push(format!("{prefix}.record.clock"));
            for kind in Kind::ALL.into_iter().filter(|kind| self.writes(*kind)) {
                subjects.push(format!("{prefix}.record.{}.>", kind.name()));
            }
            if self == Role::Watch {
                continue;
            }
            subjects.push(format!("{prefix}.object.>"));
            subjects.push(format!("{prefix}.job.>"));
            subjects.push(format!("$JS.API.STREAM.MSG.DELETE.{objects}"));
            if self == Role::Submit {
                subjects.push(format!("$JS.API.STREAM.MSG.DELETE.{records}"));
                continue;
            }
            for stream in [&records, &objects, &jobs] {
                subjects.push(format!("$JS.API.STREAM.CREATE.{stream}"));
            }
            subjects.push(format!("$JS.API.CONSUMER.CREATE.{records}"));
            subjects.push(format!("$JS.API.CONSUMER.MSG.NEXT.{records}.>"));
            subjects.push(format!("$JS.API.CONSUMER.CREATE.{jobs}.workers"));
            subjects.push(format!("$JS.API.CONSUMER.MSG.NEXT.{jobs}.workers"));
            subjects.push(format!("$JS.ACK.{jobs}.workers.>"));
        }
        subjects
    }
}

/// The account that has the streams.
const ACCOUNT: &str = "everett";

/// Returns lines of a configuration.
fn lines<T>(of: &[T], line: impl Fn(&T) -> String) -> String {
    of.iter()
        .map(|one| format!("      {}\n", line(one)))
        .collect()
}

/// Returns the account of a role that has no streams of its own: requests go to the account that has.
fn account_of(role: Role, user: &str) -> String {
    let imports = lines(&role.subjects(), |subject| {
        // An account without streams answers requests to streams by itself, so that these have other
        // subjects there.
        let to = match subject.strip_prefix("$JS.API.") {
            Some(request) => format!(", to: \"$JS.{DOMAIN}.API.{request}\""),
            None => String::new(),
        };
        format!("{{ service: {{ account: {ACCOUNT}, subject: \"{subject}\" }}{to} }}")
    });
    let name = role.name();
    format!(
        "  {ACCOUNT}-{name} {{\n    users: [ {{ nkey: {user} }} ]\n    imports: [\n{imports}    ]\n  }}\n"
    )
}

/// Returns the account that has the streams. Its users are workers.
fn account_with_streams(user: &str) -> String {
    let publish = lines(&Role::Work.subjects(), |subject| format!("\"{subject}\""));
    let mut exports = [Role::Submit, Role::Watch].map(Role::subjects).concat();
    exports.sort();
    exports.dedup();
    let exports = lines(&exports, |subject| {
        let all = [Role::Submit, Role::Watch].into_iter();
        let all = all.filter(|role| role.subjects().contains(subject));
        let all = all.map(|role| format!("{ACCOUNT}-{}", role.name()));
        let accounts = all.collect::<Vec<_>>().join(", ");
        format!("{{ service: \"{subject}\", accounts: [ {accounts} ] }}")
    });
    format!(
        "  {ACCOUNT} {{\n    jetstream: enabled\n    users: [ {{ nkey: {user}, permissions: {{\n      subscribe: \"_INBOX.>\"\n      \
         publish: [\n{publish}      ]\n    }} }} ]\n    exports: [\n{exports}    ]\n  }}\n"
    )
}

/// Returns the part of a server's configuration that has users of all roles, known by the NKeys in
/// files of a folder; keys that are not there are created.
pub fn roles_of(keys: &Path) -> Result<String> {
    std::fs::create_dir_all(keys)?;
    let accounts = Role::ALL.map(|role| {
        let file = keys.join(role.name()).with_extension("nk");
        let user = SigningKey::read_or_create(&file)?.public();
        Ok(match role {
            Role::Work => account_with_streams(&user),
            Role::Submit | Role::Watch => account_of(role, &user),
        })
    });
    let accounts = accounts.into_iter().collect::<Result<String>>()?;
    Ok(format!("accounts {{\n{accounts}}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{Key, RunId};
    use crate::connect::{Secrets, connect};
    use crate::server::{LocalServer, ServerSpec};
    use async_nats::ConnectOptions;
    use std::future::Future;

    fn wait<T>(what: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let mut runtime = runtime;
        runtime.enable_all().build().unwrap().block_on(what)
    }

    /// Lets the server write its answer to a request where a record is. Returns after the server has
    /// answered a later request.
    fn answer_into(url: &str, seed: &str, key: &Key) {
        wait(async {
            let client = ConnectOptions::new().nkey(seed.to_owned()).connect(url);
            let client = client.await.unwrap();
            let asked = "$JS.API.STREAM.INFO.EVERETT_RECORDS";
            let to = format!("everett.record.{key}");
            client
                .publish_with_reply(asked, to, "".into())
                .await
                .unwrap();
            client.request(asked, "".into()).await.unwrap();
        });
    }

    #[test]
    fn a_server_writes_nothing_for_users_who_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let server = LocalServer::start(&ServerSpec {
            dir: folder.path().to_owned(),
            has_roles: true,
            ..ServerSpec::default()
        });
        let server = server.unwrap();
        let seed = |role: Role| {
            let file = folder.path().join("keys").join(role.name());
            let seed = std::fs::read_to_string(file.with_extension("nk")).unwrap();
            seed.trim().to_owned()
        };
        let secrets = |role: Role| Secrets {
            nkey: Some(seed(role)),
            ..Secrets::default()
        };
        let [mut work, mut submit, mut watch] =
            Role::ALL.map(|role| connect(server.url(), &secrets(role), None).unwrap());
        let key = |name: &str, kind| Key::of_run(kind, &RunId::parse(name).unwrap());
        // Who may submit writes runs, and no reports of workers; workers do the contrary.
        let (run, lease) = (key("01", Kind::Run), key("01", Kind::Lease));
        assert!(work.record(&run, b"run").is_err() && watch.record(&run, b"run").is_err());
        assert_eq!(submit.record(&run, b"run").unwrap(), b"run");
        assert!(submit.note(&lease, b"lease").is_err());
        work.note(&lease, b"lease").unwrap();
        for broker in [&mut work, &mut submit, &mut watch] {
            assert_eq!(broker.look_up(&run).unwrap().unwrap(), b"run");
            assert_eq!(broker.look_up(&lease).unwrap().unwrap(), b"lease");
            assert_eq!(broker.runs().unwrap().len(), 1);
            broker.now().unwrap();
        }
        // Nobody but workers takes jobs.
        assert!(work.lease().unwrap().is_none());
        assert!(submit.lease().is_err() && watch.lease().is_err());
        // Answers of the server do not get to records, but for those to users of the account that has
        // the streams.
        for (role, name) in [
            (Role::Work, "0a"),
            (Role::Submit, "0b"),
            (Role::Watch, "0c"),
        ] {
            let key = key(name, Kind::Lease);
            answer_into(server.url(), &seed(role), &key);
            let written = work.look_up(&key).unwrap();
            assert_eq!(written.is_some(), role == Role::Work, "{role:?}");
        }
        // Nobody is known without a key.
        assert!(connect(server.url(), &Secrets::default(), None).is_err());
    }
}
