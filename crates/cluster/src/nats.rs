//! A broker on NATS JetStream: three file-backed streams. Each record and object has its own
//! subject; the server accepts a record only if its subject is empty, so the first one counts. Jobs
//! are a work queue with explicit acknowledgements.

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{
    Config, ConsumerErrorKind, LastRawMessageErrorKind, RetentionPolicy, StorageType, Stream,
};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;

use crate::broker::{Broker, JobId, Key, Kind, Lease, RunId, Ticket, fetch};
use crate::connect::{LEASE, Purpose, Secrets};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::tls::authorities;

const WORKERS: &str = "workers";
/// Maximum size of a part of an object. The server refuses messages of more than 1 MiB, with
/// headers.
const CHUNK: usize = 512 << 10;
/// Maximum number of jobs that are leased at the same time.
const MOST_LEASED: i64 = 65_536;
/// Number of records per request.
const BATCH: usize = 512;
/// The time for which the server may be silent while it lists records. Nobody waits longer for
/// records that are replaced all the time.
const SILENCE: Duration = Duration::from_millis(200);
/// The time after which an answer is given up, here and in the client library. A server that writes every message to
/// its disk may be slow on a busy machine.
const NO_ANSWER: Duration = Duration::from_secs(15);
/// The first byte of an object in a single message, and of one in several messages.
const WHOLE: u8 = 0;
const PARTS: u8 = 1;
/// The beginning of a record whose value is in an object.
const REFERENCE: &str = "everett object ";
/// Maximum number of messages of an object.
const MOST_PARTS: u32 = 1 << 14;

/// A connection to a NATS server with JetStream.
pub struct NatsBroker {
    runtime: Runtime,
    client: Client,
    context: Context,
    records: Stream,
    objects: Stream,
    jobs: Stream,
    workers: PullConsumer,
    lease: Duration,
    /// The first part of all subjects.
    prefix: &'static str,
}

/// The first parts of all subjects: for explorations and for tests.
pub(crate) const PREFIXES: [&str; 2] = ["everett", "everett-tests"];

/// Returns the first part of the subjects of a purpose. Streams have it in capital letters.
fn prefix_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Explorations => PREFIXES[0],
        Purpose::Tests => PREFIXES[1],
    }
}

/// Where users find the streams whose account has none: requests to those of another account begin
/// with this name.
pub(crate) const DOMAIN: &str = "everett";

/// Returns the streams that a user may use: those of its account, or of another one.
async fn jetstream_of(client: &Client, prefix: &str) -> Context {
    let mut context = jetstream::new(client.clone());
    let request = format!("STREAM.INFO.{}", stream_name(prefix, "record"));
    if let Ok(Response::<serde_json::Value>::Err { error }) = context.request(request, &()).await
        && error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
    {
        context = jetstream::with_domain(client.clone(), DOMAIN);
    }
    // Whatever else is wrong, the next request has it, too.
    context.set_timeout(NO_ANSWER);
    context
}

/// Returns the name of the stream of a kind of data.
pub(crate) fn stream_name(prefix: &str, part: &str) -> String {
    let name = format!("{prefix}_{part}s").replace('-', "_");
    name.to_ascii_uppercase()
}

async fn stream(context: &Context, prefix: &str, part: &str, config: Config) -> Result<Stream> {
    let config = Config {
        name: stream_name(prefix, part),
        subjects: vec![format!("{prefix}.{part}.>")],
        storage: StorageType::File,
        ..config
    };
    let stream = context.get_or_create_stream(config).await;
    stream.map_err(Error::broker)
}

/// Returns the options of a connection with these secrets.
fn options_with(secrets: &Secrets) -> Result<ConnectOptions> {
    let mut options = ConnectOptions::new().name("everett");
    if let Some(token) = &secrets.token {
        options = options.token(token.clone());
    }
    if let Some(path) = &secrets.authorities {
        authorities(path)?;
        options = options.add_root_certificates(path.clone());
        // Otherwise, whoever is on the way to the server could say that it has no encryption.
        options = options.require_tls(true);
    }
    if let Some(seed) = &secrets.nkey {
        if !is_seed(seed) {
            return Err(Error::Usage(
                "the NKey for NATS cannot be used: the file has to hold the seed of a user, 58 characters that \
                 begin with SU"
                    .to_owned(),
            ));
        }
        options = options.nkey(seed.clone());
    }
    if let Some(text) = &secrets.credentials {
        let loaded = options.credentials(text);
        options = loaded.map_err(|error| {
            Error::Usage(format!("the credentials for NATS cannot be used: {error}"))
        })?;
    }
    Ok(options)
}

impl NatsBroker {
    /// Connects, and creates the streams that do not exist yet.
    pub fn connect(
        url: &str,
        secrets: &Secrets,
        lease: Option<Duration>,
        purpose: Purpose,
    ) -> Result<NatsBroker> {
        let prefix = prefix_of(purpose);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let options = options_with(secrets)?;
        runtime
            .block_on(async {
                let client = options.connect(url).await;
                let client = client.map_err(|error| Error::broker(format!("{url}: {error}")))?;
                let context = jetstream_of(&client, prefix).await;
                let single = || Config {
                    max_messages_per_subject: 1,
                    ..Config::default()
                };
                let records = stream(&context, prefix, "record", single()).await?;
                let objects = stream(&context, prefix, "object", single()).await?;
                let queue = Config {
                    retention: RetentionPolicy::WorkQueue,
                    ..Config::default()
                };
                let jobs = stream(&context, prefix, "job", queue).await?;
                let config = pull::Config {
                    durable_name: Some(WORKERS.to_owned()),
                    ack_policy: AckPolicy::Explicit,
                    ack_wait: lease.unwrap_or(LEASE),
                    max_deliver: -1,
                    max_ack_pending: MOST_LEASED,
                    ..pull::Config::default()
                };
                let workers = match lease {
                    Some(_) => jobs.create_consumer(config).await.map_err(Error::broker),
                    // Clients that take no jobs do not change the duration of leases.
                    None => {
                        let workers = jobs.get_or_create_consumer(WORKERS, config);
                        workers.await.map_err(Error::broker)
                    }
                }?;
                Ok((client, context, [records, objects, jobs], workers))
            })
            .map(|(client, context, streams, workers)| {
                let [records, objects, jobs] = streams;
                NatsBroker {
                    runtime,
                    client,
                    context,
                    records,
                    objects,
                    jobs,
                    workers,
                    lease: lease.unwrap_or(LEASE),
                    prefix,
                }
            })
    }

    fn record_subject(&self, key: &Key) -> String {
        format!("{}.record.{key}", self.prefix)
    }

    fn object_subject(&self, hash: Hash) -> String {
        format!("{}.object.{hash}", self.prefix)
    }

    fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Stores a message and waits until the server has it.
    async fn store(
        context: &Context,
        subject: String,
        message: PublishMessage,
    ) -> Result<(), PublishErrorKind> {
        let sent = context.send_publish(subject, message).await;
        let sent = sent.map_err(|error| error.kind())?;
        sent.await.map(|_| ()).map_err(|error| error.kind())
    }

    async fn last(stream: &Stream, subject: &str) -> Result<Option<Vec<u8>>> {
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(Error::broker(error)),
        }
    }

    /// Returns all records whose subjects match, by subject. If a record is replaced meanwhile, the
    /// server may wait for one that does not exist any more; they are read one by one then.
    async fn matching(records: &Stream, filter: String) -> Result<Vec<(String, Vec<u8>)>> {
        if let Some(found) = Self::try_matching(records, filter.clone()).await? {
            return Ok(found);
        }
        let mut found = Vec::new();
        for subject in Self::subjects(records, filter).await? {
            if let Some(record) = Self::last(records, &subject).await? {
                found.push((subject, record));
            }
        }
        Ok(found)
    }

    /// Like [`NatsBroker::matching`], but returns `None` if the server is silent for a while, or if
    /// this user may not have consumers.
    async fn try_matching(
        records: &Stream,
        filter: String,
    ) -> Result<Option<Vec<(String, Vec<u8>)>>> {
        let consumer = records.create_consumer(pull::Config {
            filter_subject: filter,
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(30),
            ..pull::Config::default()
        });
        let consumer: PullConsumer = match consumer.await {
            Ok(consumer) => consumer,
            Err(error) if error.kind() == ConsumerErrorKind::Request => return Ok(None),
            Err(error) => return Err(Error::broker(error)),
        };
        let mut found = Vec::new();
        loop {
            let batch = consumer.fetch().max_messages(BATCH).messages().await;
            let mut batch = batch.map_err(Error::broker)?;
            let before = found.len();
            loop {
                let message = match tokio::time::timeout(SILENCE, batch.next()).await {
                    Err(_) => return Ok(None),
                    Ok(None) => break,
                    Ok(Some(message)) => message.map_err(Error::broker)?,
                };
                found.push((message.subject.to_string(), message.payload.to_vec()));
            }
            if found.len() == before {
                return Ok(Some(found));
            }
        }
    }

    /// Records a value that fits into a message.
    fn record_message(&self, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
        let subject = self.record_subject(key);
        self.wait(async {
            let message = PublishMessage::build().payload(value.to_vec().into());
            let message = message.expected_last_subject_sequence(0);
            match Self::store(&self.context, subject.clone(), message).await {
                Ok(()) => return Ok(value.to_vec()),
                Err(PublishErrorKind::WrongLastSequence) => {}
                Err(kind) => return Err(failed(kind)),
            }
            let recorded = Self::last(&self.records, &subject).await?;
            recorded.ok_or_else(|| Error::damaged(format!("the record {key} is gone")))
        })
    }

    /// Returns the value of a record, which may be in an object.
    fn resolved(&mut self, recorded: Vec<u8>) -> Result<Vec<u8>> {
        match referenced(&recorded) {
            Some(hash) => fetch(self, hash),
            None => Ok(recorded),
        }
    }

    /// Sends the server a message about a lease, and waits until it is received.
    fn tell(&self, lease: &Lease, what: String) -> Result<()> {
        self.wait(answered(async {
            let told = self.client.publish(lease.token.clone(), what.into());
            told.await.map_err(Error::broker)?;
            self.client.flush().await.map_err(Error::broker)
        }))
    }

    /// Returns the subjects of a stream that match. Unlike [`NatsBroker::matching`], this does not
    /// read the messages.
    async fn subjects(stream: &Stream, filter: String) -> Result<Vec<String>> {
        let found = stream.info_with_subjects(filter).await;
        let found: Vec<_> = found.map_err(Error::broker)?.collect().await;
        let found = found.into_iter();
        let found = found.map(|found| found.map(|(subject, _)| subject).map_err(Error::broker));
        found.collect()
    }

    /// Removes the messages whose subjects match, one by one: a purge would let consumers skip
    /// messages that stay.
    async fn remove(stream: &Stream, filter: String) -> Result<()> {
        for subject in Self::subjects(stream, filter).await? {
            let message = match stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => message,
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => continue,
                Err(error) => return Err(Error::broker(error)),
            };
            let deleted = stream.delete_message(message.sequence).await;
            deleted.map_err(Error::broker)?;
        }
        Ok(())
    }
}

/// Returns the message of a record whose value is in an object, because it is too large for one: the
/// description of a run with many files.
fn reference(hash: Hash) -> Vec<u8> {
    format!("{REFERENCE}{hash}").into_bytes()
}

/// Returns the object that has the value of a record, unless its message has it.
fn referenced(message: &[u8]) -> Option<Hash> {
    let name = message.strip_prefix(REFERENCE.as_bytes())?;
    Hash::parse(std::str::from_utf8(name).ok()?)
}

/// Returns whether a text has the form of the seed of a user's NKey: base 32 without padding.
fn is_seed(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'A'..=b'Z' | b'2'..=b'7');
    text.len() == 58 && text.starts_with("SU") && text.bytes().all(is_digit)
}

/// Waits for a limited time: an answer never comes if the connection breaks after the request.
async fn answered<T>(what: impl Future<Output = Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(NO_ANSWER, what).await;
    answer.map_err(|_| Error::broker("the server does not answer"))?
}

fn failed(kind: PublishErrorKind) -> Error {
    Error::broker(kind)
}

impl Broker for NatsBroker {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        let subject = self.object_subject(hash);
        self.wait(async {
            if Self::last(&self.objects, &subject).await?.is_some() {
                return Ok(());
            }
            let mut head = vec![WHOLE];
            if bytes.len() <= CHUNK {
                head.extend(bytes);
            } else {
                let parts = bytes.chunks(CHUNK);
                head = vec![PARTS];
                head.extend((parts.len() as u32).to_le_bytes());
                for (number, part) in parts.enumerate() {
                    let message = PublishMessage::build().payload(part.to_vec().into());
                    let subject = format!("{subject}.{number}");
                    let stored = Self::store(&self.context, subject, message).await;
                    stored.map_err(failed)?;
                }
            }
            let message = PublishMessage::build().payload(head.into());
            let stored = Self::store(&self.context, subject, message).await;
            stored.map_err(failed)
        })
    }

    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>> {
        let subject = self.object_subject(hash);
        self.wait(async {
            let Some(head) = Self::last(&self.objects, &subject).await? else {
                return Ok(None);
            };
            match head.split_first() {
                Some((&WHOLE, bytes)) => Ok(Some(bytes.to_vec())),
                Some((&PARTS, count)) => {
                    let count = count.try_into().map(u32::from_le_bytes);
                    let count = count.ok().filter(|count| *count <= MOST_PARTS);
                    let count = count.ok_or_else(|| Error::damaged("an object of no size"))?;
                    let mut bytes = Vec::new();
                    for number in 0..count {
                        let subject = format!("{subject}.{number}");
                        match Self::last(&self.objects, &subject).await? {
                            Some(part) => bytes.extend(part),
                            None => return Ok(None),
                        }
                    }
                    Ok(Some(bytes))
                }
                _ => Err(Error::damaged("an object of no kind")),
            }
        })
    }

    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
        if value.len() <= CHUNK {
            let recorded = self.record_message(key, value)?;
            return self.resolved(recorded);
        }
        let hash = Hash::of(value);
        self.put(hash, value)?;
        let recorded = self.record_message(key, &reference(hash))?;
        // The removal of a run may have taken away the object before the record named it.
        self.put(hash, value)?;
        self.resolved(recorded)
    }

    fn note(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let message = PublishMessage::build().payload(value.to_vec().into());
        let stored = self.wait(Self::store(
            &self.context,
            self.record_subject(key),
            message,
        ));
        stored.map_err(failed)
    }

    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        let recorded = self.wait(Self::last(&self.records, &self.record_subject(key)))?;
        recorded.map(|recorded| self.resolved(recorded)).transpose()
    }

    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>> {
        let filter = format!("{}.record.{}.{run}.*", self.prefix, kind.name());
        let found = self.wait(Self::matching(&self.records, filter))?;
        let name = |subject: &str| JobId::parse(subject.rsplit('.').next()?);
        let found = found.into_iter();
        let found = found.filter_map(|(subject, value)| Some((name(&subject)?, value)));
        found
            .map(|(job, value)| Ok((job, self.resolved(value)?)))
            .collect()
    }

    fn runs(&mut self) -> Result<Vec<RunId>> {
        let filter = format!("{}.record.{}.*", self.prefix, Kind::Run.name());
        let found = self.wait(Self::subjects(&self.records, filter))?;
        let name = |subject: &String| RunId::parse(subject.rsplit('.').next()?);
        let mut runs: Vec<RunId> = found.iter().filter_map(name).collect();
        runs.sort();
        Ok(runs)
    }

    fn remove_run(&mut self, run: &RunId) -> Result<()> {
        // Jobs stay in the queue until workers drop them, because the run is cancelled.
        self.wait(async {
            for kind in Kind::removed() {
                let subject = format!("{}.record.{}.{run}", self.prefix, kind.name());
                Self::remove(&self.records, format!("{subject}.*")).await?;
                Self::remove(&self.records, subject).await?;
            }
            Ok(())
        })
    }

    fn objects(&mut self) -> Result<Vec<Hash>> {
        let found = self.wait(Self::subjects(
            &self.objects,
            format!("{}.object.*", self.prefix),
        ))?;
        let name = |subject: &String| Hash::parse(subject.rsplit('.').next()?);
        Ok(found.iter().filter_map(name).collect())
    }

    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<()> {
        self.wait(async {
            for hash in hashes {
                let subject = self.object_subject(*hash);
                // The head comes first: without it, the parts do not count as an object.
                Self::remove(&self.objects, subject.clone()).await?;
                Self::remove(&self.objects, format!("{subject}.*")).await?;
            }
            Ok(())
        })
    }

    fn publish(&mut self, ticket: &Ticket) -> Result<()> {
        let (run, job) = (&ticket.run, &ticket.job);
        let message = PublishMessage::build().payload(ticket.to_bytes().into());
        // The server drops messages that are published twice within two minutes.
        let message = message.message_id(format!("{run}.{job}"));
        let subject = format!("{}.job.{run}.{job}", self.prefix);
        let stored = self.wait(Self::store(&self.context, subject, message));
        stored.map_err(failed)
    }

    fn publish_again(&mut self, ticket: &Ticket) -> Result<()> {
        let message = PublishMessage::build().payload(ticket.to_bytes().into());
        let subject = format!("{}.job.{}.{}", self.prefix, ticket.run, ticket.job);
        let stored = self.wait(Self::store(&self.context, subject, message));
        stored.map_err(failed)
    }

    fn lease(&mut self) -> Result<Option<Lease>> {
        self.wait(answered(async {
            loop {
                let messages = self.workers.fetch().max_messages(1).messages().await;
                let mut messages = messages.map_err(Error::broker)?;
                let Some(message) = messages.next().await else {
                    return Ok(None);
                };
                let message = message.map_err(Error::broker)?;
                let delivered = message.info().map_err(Error::broker)?.delivered;
                let token = message.reply.as_ref().map(ToString::to_string);
                if let (Ok(ticket), Some(token)) = (Ticket::read(&message.payload), token) {
                    return Ok(Some(Lease {
                        handed: ticket.job.clone(),
                        ticket,
                        delivery: u64::try_from(delivered).unwrap_or(0),
                        token,
                    }));
                }
                // It is not a job and never becomes one.
                message.ack().await.map_err(Error::broker)?;
                self.client.flush().await.map_err(Error::broker)?;
            }
        }))
    }

    fn extend(&mut self, lease: &Lease) -> Result<()> {
        self.tell(lease, "+WPI".to_owned())
    }

    fn acknowledge(&mut self, lease: &Lease) -> Result<bool> {
        // The server does not say whether another worker holds the lease now. It need not: the
        // outcome is recorded.
        let acknowledged = self.client.request(lease.token.clone(), "+ACK".into());
        self.wait(acknowledged).map_err(Error::broker)?;
        Ok(true)
    }

    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<()> {
        match pause.as_nanos() {
            0 => self.tell(lease, "-NAK".to_owned()),
            delay => self.tell(lease, format!("-NAK {{\"delay\": {delay}}}")),
        }
    }

    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>> {
        // The server removes a job from the stream when it is acknowledged.
        let filter = format!("{}.job.{run}.*", self.prefix);
        let found = self.wait(Self::subjects(&self.jobs, filter))?;
        let name = |subject: &String| JobId::parse(subject.rsplit('.').next()?);
        Ok(found.iter().filter_map(name).collect())
    }

    fn waiting(&mut self) -> Result<u64> {
        let info = self.runtime.block_on(self.workers.info());
        Ok(info.map_err(Error::broker)?.num_pending)
    }

    fn now(&mut self) -> Result<Duration> {
        // The server says when it stored a message.
        let subject = format!("{}.record.clock", self.prefix);
        self.wait(async {
            let message = PublishMessage::build();
            let stored = Self::store(&self.context, subject.clone(), message).await;
            stored.map_err(failed)?;
            let message = self.records.get_last_raw_message_by_subject(&subject).await;
            let time = message.map_err(Error::broker)?.time;
            let nanoseconds = u64::try_from(time.unix_timestamp_nanos()).unwrap_or(0);
            Ok(Duration::from_nanos(nanoseconds))
        })
    }

    fn lease_time(&self) -> Duration {
        self.lease
    }
}
