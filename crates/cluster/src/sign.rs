//! Signatures of runs. Whoever submits a run signs its manifest, and a worker may accept only runs
//! that certain submitters have signed. The manifest has the hashes of all programs, scenarios and
//! files, and the limits, so nothing of what a worker explores can be exchanged. Keys are Ed25519
//! keys in the form of NKeys, which users of NATS know.

use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::broker::{Broker, Key, Kind, RunId};
use crate::error::{Error, Result};
use crate::hash::Hash;

/// The beginning of a signed message. A NATS server makes clients sign texts that it chooses; no text
/// begins with this byte, so that no server can get a run signed by somebody who uses one key for
/// both.
const DOMAIN: &[u8] = b"\xffeverett run 1\n";

/// The key with which somebody signs the runs that they submit.
#[derive(Clone, Debug)]
pub struct SigningKey(KeyPair);

/// The signature of a run, as recorded.
#[derive(Serialize, Deserialize)]
struct Signature {
    /// The public key.
    key: String,
    signature: Vec<u8>,
}

/// The submitters whose runs a worker accepts.
#[derive(Clone, Debug)]
pub struct Submitters {
    file: PathBuf,
    keys: BTreeMap<String, KeyPair>,
}

/// Returns the message that is signed: the run has this name and this manifest.
fn message(run: &RunId, manifest: &[u8]) -> Vec<u8> {
    let text = format!("{run} {}\n", Hash::of(manifest));
    [DOMAIN, text.as_bytes()].concat()
}

impl SigningKey {
    /// Reads a key from a file that has its seed.
    pub fn read(path: &Path) -> Result<SigningKey> {
        let seed = fs::read_to_string(path);
        let seed = seed.map_err(|error| unreadable(path, &error))?;
        // A message of the library could show parts of the seed.
        let pair = KeyPair::from_seed(seed.trim()).ok();
        let pair = pair.filter(|pair| pair.key_pair_type() == KeyPairType::User);
        pair.map(SigningKey).ok_or_else(|| {
            Error::Usage(format!(
                "{} is no key: it has to hold the seed of a user, 58 characters that begin with SU",
                path.display()
            ))
        })
    }

    /// Reads a key, or creates it if there is no such file. Only the owner can read the file.
    pub fn read_or_create(path: &Path) -> Result<SigningKey> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        match options.open(path) {
            Ok(file) => SigningKey::create(file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => SigningKey::read(path),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    fn create(mut file: File) -> Result<SigningKey> {
        let mut random = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let unusable = |error: nkeys::error::Error| Error::Usage(error.to_string());
        let pair = KeyPair::new_from_raw(KeyPairType::User, random).map_err(unusable)?;
        let seed = pair.seed().map_err(unusable)?;
        writeln!(file, "{seed}")?;
        file.sync_all()?;
        Ok(SigningKey(pair))
    }

    /// Returns the public key, by which others know the submitter.
    pub fn public(&self) -> String {
        self.0.public_key()
    }

    /// Records the signature of a run. Comes before the run itself, so that no worker sees the run
    /// without it.
    pub(crate) fn sign(&self, broker: &mut dyn Broker, run: &RunId, manifest: &[u8]) -> Result<()> {
        let signature = self.0.sign(&message(run, manifest));
        let signature = signature.map_err(|error| Error::Usage(error.to_string()))?;
        let signed = Signature {
            key: self.public(),
            signature,
        };
        let signed = serde_json::to_vec(&signed).map_err(everett::Error::from)?;
        broker.record(&Key::of_run(Kind::Signature, run), &signed)?;
        Ok(())
    }
}

impl Submitters {
    /// Reads the public keys of submitters from a file: one a line, with text behind it, such as a
    /// name; lines that begin with `#` are comments.
    pub fn read(path: &Path) -> Result<Submitters> {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let mut keys = BTreeMap::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.split_whitespace().next().unwrap_or_default();
            let pair = KeyPair::from_public_key(key).ok();
            let pair = pair.filter(|pair| pair.key_pair_type() == KeyPairType::User);
            let pair = pair.ok_or_else(|| {
                let path = path.display();
                Error::Usage(format!(
                    "{path}:{number}: this is no public key, which has 56 characters and begins with U"
                ))
            })?;
            keys.insert(key.to_owned(), pair);
        }
        match keys.is_empty() {
            true => Err(Error::Usage(format!("{} has no key", path.display()))),
            false => Ok(Submitters {
                file: path.to_owned(),
                keys,
            }),
        }
    }

    /// Fails with [`Error::NotAccepted`] unless one of the submitters has signed a run of this name
    /// with this manifest.
    pub fn expect_signed(
        &self,
        broker: &mut dyn Broker,
        run: &RunId,
        manifest: &[u8],
    ) -> Result<()> {
        let signed = broker.look_up(&Key::of_run(Kind::Signature, run))?;
        let refused = |why: String| Err(Error::NotAccepted(why));
        let Some(signed) = signed else {
            return refused("it is not signed".to_owned());
        };
        let Ok(signed) = serde_json::from_slice::<Signature>(&signed) else {
            return refused("its signature cannot be read".to_owned());
        };
        let Some((name, key)) = self.keys.get_key_value(&signed.key) else {
            let file = self.file.display();
            return refused(format!("it is signed by a key that is not in {file}"));
        };
        match key.verify(&message(run, manifest), &signed.signature) {
            Ok(()) => Ok(()),
            Err(_) => refused(format!("this is not what {name} has signed")),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Usage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SharedMemory;
    use std::os::unix::fs::PermissionsExt;

    fn refusal(checked: Result<()>) -> String {
        match checked {
            Err(Error::NotAccepted(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_a_known_key_has_signed_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ours = SigningKey::read_or_create(&path("ours")).unwrap();
        let theirs = SigningKey::read_or_create(&path("theirs")).unwrap();
        let mode = fs::metadata(path("ours")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = SigningKey::read_or_create(&path("ours")).unwrap();
        assert!(again.public() == ours.public() && ours.public() != theirs.public());
        fs::write(path("keys"), format!("# us\n{} one\n\n", ours.public())).unwrap();
        let known = Submitters::read(&path("keys")).unwrap();
        let mut broker = SharedMemory::new(9).connect();
        let [one, two, three] = ["01", "02", "03"].map(|name| RunId::parse(name).unwrap());
        let mut check = |run, manifest: &[u8]| known.expect_signed(&mut broker, run, manifest);
        assert_eq!(refusal(check(&one, b"manifest")), "it is not signed");
        let mut broker = SharedMemory::new(9).connect();
        ours.sign(&mut broker, &one, b"manifest").unwrap();
        theirs.sign(&mut broker, &two, b"manifest").unwrap();
        let copied = Key::of_run(Kind::Signature, &one);
        let copied = broker.look_up(&copied).unwrap().unwrap();
        let key = Key::of_run(Kind::Signature, &three);
        broker.record(&key, &copied).unwrap();
        let mut check = |run, manifest: &[u8]| known.expect_signed(&mut broker, run, manifest);
        check(&one, b"manifest").unwrap();
        let altered = "this is not what";
        assert!(refusal(check(&one, b"manifesto")).starts_with(altered));
        // The signature of a run holds for that run only.
        assert!(refusal(check(&three, b"manifest")).starts_with(altered));
        assert!(refusal(check(&two, b"manifest")).contains("a key that is not in"));
        for end in 0..copied.len() {
            broker.note(&key, &copied[..end]).unwrap();
            let cut = known.expect_signed(&mut broker, &three, b"manifest");
            assert_eq!(refusal(cut), "its signature cannot be read");
        }
    }

    #[test]
    fn what_is_no_key_is_said_to_be_none_and_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let seed = "SUANKPPMM7GZL7ZYCPLHCOBER25V7YY773YMH6QUOFOPS552JM4WUVFRCI";
        for wrong in ["", "hush", &seed[1..], &seed.replace("ANKP", "ANKQ")] {
            fs::write(&path, wrong).unwrap();
            let told = SigningKey::read(&path).unwrap_err().to_string();
            assert!(told.contains("is no key"), "{told}");
            assert!(wrong.is_empty() || !told.contains(wrong), "{told}");
            assert!(Submitters::read(&path).is_err());
        }
        fs::write(&path, format!("{seed}\n")).unwrap();
        assert!(SigningKey::read(&path).unwrap().public().starts_with('U'));
        // A seed does not belong to where public keys are.
        let told = Submitters::read(&path).unwrap_err().to_string();
        assert!(told.contains(":1: this is no public key"), "{told}");
        assert!(!told.contains(seed), "{told}");
    }
}
