//! A broker on PostgreSQL: three tables. One transaction records the outcome of a job, adds the
//! jobs that it created and removes it from the queue.

use std::collections::BTreeSet;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, GenericClient, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::broker::{Broker, Explored, JobId, Key, Kind, Lease, Outcome, RunId, Ticket};
use crate::connect::{LEASE, Purpose, Secrets};
use crate::error::{Error, Result};
use crate::hash::Hash;
use crate::link::{Activity, broken, open_link};
use crate::tls::connector;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS everett_objects (hash text PRIMARY KEY, bytes bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS everett_records (
        kind text, run text, job text, value bytea NOT NULL, PRIMARY KEY (kind, run, job));
    CREATE TABLE IF NOT EXISTS everett_jobs (
        run text, job text, ticket bytea NOT NULL, delivery bigint NOT NULL DEFAULT 0, added bigserial,
        leased_until timestamptz NOT NULL DEFAULT '-infinity', PRIMARY KEY (run, job));
    CREATE INDEX IF NOT EXISTS everett_jobs_by_age ON everett_jobs (leased_until, added);";

/// Asks whether what [`TABLES`] creates last is there, in the schema in which this user creates tables.
const ARE_THERE: &str = "SELECT to_regclass('everett_jobs_by_age') IS NOT NULL";

/// The schema of the tables for tests. Those for explorations are in that of the user.
const TESTS: &str = "CREATE SCHEMA IF NOT EXISTS everett_tests;";
const TESTS_OPTIONS: &str = "-c search_path=everett_tests";

/// The lock that prevents workers that start at the same time from creating the tables at the same
/// time.
const TABLES_LOCK: i64 = 0x6576_6572_6574_7431;

/// The time after which an attempt to connect is given up, and a connection over which no byte
/// comes although an answer is due. The URL can give others, in seconds: `connect_timeout`
/// and `tcp_user_timeout`.
const SILENCE: Duration = Duration::from_secs(10);

/// A connection to a PostgreSQL server. If the connection breaks, the next operation opens another
/// one.
pub struct PostgresBroker {
    runtime: Runtime,
    config: Config,
    /// Encrypts connections, if that is wanted.
    tls: Option<MakeRustlsConnect>,
    /// The connection; `None` after an operation has failed.
    client: Option<(Client, Activity)>,
    lease: Duration,
}

/// Returns the job of a key; records of a run have none.
fn job_of(key: &Key) -> &str {
    key.job.as_ref().map_or("", JobId::as_str)
}

async fn put(client: &impl GenericClient, hash: Hash, bytes: &[u8]) -> Result<()> {
    let text = "INSERT INTO everett_objects VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let added = client.execute(text, &[&hash.to_string(), &bytes]).await;
    added.map(|_| ()).map_err(broken)
}

async fn look_up(client: &impl GenericClient, key: &Key) -> Result<Option<Vec<u8>>> {
    let text = "SELECT value FROM everett_records WHERE kind = $1 AND run = $2 AND job = $3";
    let row = client
        .query_opt(text, &[&key.kind.name(), &key.run.as_str(), &job_of(key)])
        .await;
    row.map_err(broken)?
        .map(|row| row.try_get(0).map_err(broken))
        .transpose()
}

async fn record(client: &impl GenericClient, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
    let text = "INSERT INTO everett_records VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let (kind, run, job) = (key.kind.name(), key.run.as_str(), job_of(key));
    let added = client.execute(text, &[&kind, &run, &job, &value]).await;
    match added.map_err(broken)? {
        0 => {
            let recorded = look_up(client, key).await?;
            recorded.ok_or_else(|| Error::damaged(format!("the record {key} is gone")))
        }
        _ => Ok(value.to_vec()),
    }
}

async fn publish(client: &impl GenericClient, ticket: &Ticket) -> Result<()> {
    let text =
        "INSERT INTO everett_jobs (run, job, ticket) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let (run, job) = (ticket.run.as_str(), ticket.job.as_str());
    let added = client
        .execute(text, &[&run, &job, &ticket.to_bytes()])
        .await;
    added.map(|_| ()).map_err(broken)
}

async fn acknowledge(client: &impl GenericClient, lease: &Lease) -> Result<bool> {
    let text = "DELETE FROM everett_jobs WHERE run = $1 AND job = $2 AND delivery = $3";
    let (run, job) = (lease.ticket.run.as_str(), lease.handed.as_str());
    let removed = client
        .execute(text, &[&run, &job, &(lease.delivery as i64)])
        .await;
    Ok(removed.map_err(broken)? > 0)
}

/// Ends a job in one transaction.
async fn finish(client: &mut Client, lease: &Lease, explored: &Explored) -> Result<Outcome> {
    let (run, job) = (&lease.ticket.run, &lease.ticket.job);
    let transaction = client.transaction().await.map_err(broken)?;
    let key = Key::of_job(Kind::Outcome, run, job);
    // This waits for another transaction that records the same outcome.
    let recorded = record(&transaction, &key, &explored.outcome.to_bytes()).await?;
    let outcome = Outcome::read(&recorded)?;
    if outcome == explored.outcome {
        for (hash, bytes) in &explored.objects {
            put(&transaction, *hash, bytes).await?;
        }
    }
    for ticket in outcome.tickets(run, job) {
        publish(&transaction, &ticket).await?;
    }
    acknowledge(&transaction, lease).await?;
    transaction.commit().await.map_err(broken)?;
    Ok(outcome)
}

impl PostgresBroker {
    /// Connects, and creates the tables that do not exist yet.
    pub fn connect(
        url: &str,
        secrets: &Secrets,
        lease: Option<Duration>,
        purpose: Purpose,
    ) -> Result<PostgresBroker> {
        let mut config: Config = url.parse().map_err(broken)?;
        let is_for_tests = purpose == Purpose::Tests;
        if is_for_tests {
            let options = config
                .get_options()
                .map(|own| format!("{own} {TESTS_OPTIONS}"));
            config.options(options.unwrap_or_else(|| TESTS_OPTIONS.to_owned()));
        }
        if let Some(password) = &secrets.token {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(SILENCE);
        }
        // The certificate of a server may be self-signed, which proves nothing, so TLS is used only
        // on request.
        let wants_tls = secrets.authorities.is_some() || config.get_ssl_mode() == SslMode::Require;
        if wants_tls {
            config.ssl_mode(SslMode::Require);
        }
        let mut broker = PostgresBroker {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            config,
            tls: wants_tls.then(|| connector(secrets)).transpose()?,
            client: None,
            lease: lease.unwrap_or(LEASE),
        };
        broker.with(async |client| {
            // Users without the right to create anything use the tables that are there.
            let there = client.query_one(ARE_THERE, &[]).await.map_err(broken)?;
            if there.try_get(0).map_err(broken)? {
                return Ok(());
            }
            let transaction = client.transaction().await.map_err(broken)?;
            let locked = transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&TABLES_LOCK]);
            locked.await.map_err(broken)?;
            if is_for_tests {
                transaction.batch_execute(TESTS).await.map_err(broken)?;
            }
            transaction.batch_execute(TABLES).await.map_err(broken)?;
            transaction.commit().await.map_err(broken)
        })?;
        Ok(broker)
    }

    /// Returns for how long the server may be silent while an answer is due.
    fn silence(&self) -> Duration {
        let given = self.config.get_tcp_user_timeout().copied();
        given.unwrap_or(SILENCE)
    }

    fn execute(&mut self, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<()> {
        self.with(async |client| client.execute(text, values).await.map_err(broken))
            .map(|_| ())
    }

    fn query(&mut self, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.with(async |client| client.query(text, values).await.map_err(broken))
    }

    /// Executes an operation. A connection that was open before may have broken meanwhile, e.g.
    /// because the server restarted, so the operation is repeated once on a new one. All operations
    /// are idempotent.
    fn with<T>(&mut self, mut operation: impl AsyncFnMut(&mut Client) -> Result<T>) -> Result<T> {
        loop {
            let (mut client, activity, is_new) = match self.client.take() {
                Some((client, activity)) => (client, activity, false),
                None => {
                    let (client, activity) = self.open()?;
                    (client, activity, true)
                }
            };
            let answer = activity.wait(self.silence(), operation(&mut client));
            match self.runtime.block_on(answer) {
                // A failed connection does not always know that it is closed.
                Err(Error::Broker(_)) if !is_new => {}
                Err(error @ Error::Broker(_)) => return Err(error),
                done => {
                    self.client = Some((client, activity));
                    return done;
                }
            }
        }
    }

    /// Opens a connection.
    fn open(&self) -> Result<(Client, Activity)> {
        let opened = open_link(&self.config, self.tls.as_ref(), self.silence());
        self.runtime.block_on(opened)
    }
}

impl Broker for PostgresBroker {
    fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        self.with(async |client| put(client, hash, bytes).await)
    }

    fn get(&mut self, hash: Hash) -> Result<Option<Vec<u8>>> {
        let text = "SELECT bytes FROM everett_objects WHERE hash = $1";
        self.with(async |client| {
            let row = client.query_opt(text, &[&hash.to_string()]).await;
            row.map_err(broken)?
                .map(|row| row.try_get(0).map_err(broken))
                .transpose()
        })
    }

    fn record(&mut self, key: &Key, value: &[u8]) -> Result<Vec<u8>> {
        self.with(async |client| record(client, key, value).await)
    }

    fn note(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let text = "INSERT INTO everett_records VALUES ($1, $2, $3, $4)
                    ON CONFLICT (kind, run, job) DO UPDATE SET value = EXCLUDED.value";
        let (kind, run, job) = (key.kind.name(), key.run.as_str(), job_of(key));
        self.execute(text, &[&kind, &run, &job, &value])
    }

    fn look_up(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.with(async |client| look_up(client, key).await)
    }

    fn list(&mut self, kind: Kind, run: &RunId) -> Result<Vec<(JobId, Vec<u8>)>> {
        let text =
            "SELECT job, value FROM everett_records WHERE kind = $1 AND run = $2 ORDER BY job";
        let rows = self.query(text, &[&kind.name(), &run.as_str()])?;
        let rows = rows.into_iter().map(|row| {
            let job: String = row.try_get(0).map_err(broken)?;
            Ok((JobId::parse(&job), row.try_get(1).map_err(broken)?))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?.into_iter();
        Ok(rows
            .filter_map(|(job, value)| Some((job?, value)))
            .collect())
    }

    fn runs(&mut self) -> Result<Vec<RunId>> {
        let text = "SELECT run FROM everett_records WHERE kind = $1 ORDER BY run";
        let names = self.query(text, &[&Kind::Run.name()])?.into_iter();
        let names = names.map(|row| row.try_get::<_, String>(0).map_err(broken));
        let names = names.collect::<Result<Vec<_>>>()?.into_iter();
        Ok(names.filter_map(|name| RunId::parse(&name)).collect())
    }

    fn remove_run(&mut self, run: &RunId) -> Result<()> {
        let kinds: Vec<&str> = Kind::removed().map(Kind::name).collect();
        self.with(async |client| {
            let transaction = client.transaction().await.map_err(broken)?;
            let text = "DELETE FROM everett_jobs WHERE run = $1";
            let removed = transaction.execute(text, &[&run.as_str()]).await;
            removed.map_err(broken)?;
            let text = "DELETE FROM everett_records WHERE run = $1 AND kind = ANY($2)";
            let removed = transaction.execute(text, &[&run.as_str(), &kinds]).await;
            removed.map_err(broken)?;
            transaction.commit().await.map_err(broken)
        })
    }

    fn objects(&mut self) -> Result<Vec<Hash>> {
        let rows = self.query("SELECT hash FROM everett_objects", &[])?;
        let names = rows.into_iter();
        let names = names.map(|row| row.try_get::<_, String>(0).map_err(broken));
        let names = names.collect::<Result<Vec<_>>>()?.into_iter();
        Ok(names.filter_map(|name| Hash::parse(&name)).collect())
    }

    fn remove_objects(&mut self, hashes: &[Hash]) -> Result<()> {
        let names: Vec<String> = hashes.iter().map(Hash::to_string).collect();
        self.execute(
            "DELETE FROM everett_objects WHERE hash = ANY($1)",
            &[&names],
        )
    }

    fn publish(&mut self, ticket: &Ticket) -> Result<()> {
        self.with(async |client| publish(client, ticket).await)
    }

    fn lease(&mut self) -> Result<Option<Lease>> {
        let text = "
            UPDATE everett_jobs
            SET delivery = delivery + 1, leased_until = now() + make_interval(secs => $1)
            WHERE (run, job) = (
                SELECT run, job FROM everett_jobs WHERE leased_until < now()
                ORDER BY added LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING ticket, delivery, run, job";
        let seconds = self.lease.as_secs_f64();
        loop {
            let row = self
                .with(async |client| client.query_opt(text, &[&seconds]).await.map_err(broken))?;
            let Some(row) = row else {
                return Ok(None);
            };
            let ticket: Vec<u8> = row.try_get(0).map_err(broken)?;
            let delivery: i64 = row.try_get(1).map_err(broken)?;
            let (run, job): (String, String) = (
                row.try_get(2).map_err(broken)?,
                row.try_get(3).map_err(broken)?,
            );
            let ticket = Ticket::read(&ticket).ok();
            let is_here =
                |ticket: &Ticket| ticket.run.as_str() == run && ticket.job.as_str() == job;
            let Some(ticket) = ticket.filter(is_here) else {
                // It is not a job and never becomes one.
                let text = "DELETE FROM everett_jobs WHERE run = $1 AND job = $2 AND delivery = $3";
                self.execute(text, &[&run, &job, &delivery])?;
                continue;
            };
            return Ok(Some(Lease {
                handed: ticket.job.clone(),
                ticket,
                delivery: u64::try_from(delivery).unwrap_or(0),
                token: String::new(),
            }));
        }
    }

    fn extend(&mut self, lease: &Lease) -> Result<()> {
        let text = "UPDATE everett_jobs SET leased_until = now() + make_interval(secs => $4)
                    WHERE run = $1 AND job = $2 AND delivery = $3";
        let (run, job) = (lease.ticket.run.as_str(), lease.handed.as_str());
        let (delivery, seconds) = (lease.delivery as i64, self.lease.as_secs_f64());
        self.execute(text, &[&run, &job, &delivery, &seconds])
    }

    fn acknowledge(&mut self, lease: &Lease) -> Result<bool> {
        self.with(async |client| acknowledge(client, lease).await)
    }

    fn release(&mut self, lease: &Lease, pause: Duration) -> Result<()> {
        // In the order of these times, a job that nobody is to wait for comes first.
        let text = "UPDATE everett_jobs SET leased_until =
                        CASE WHEN $4::float8 = 0 THEN '-infinity'
                        ELSE now() + make_interval(secs => $4::float8) END
                    WHERE run = $1 AND job = $2 AND delivery = $3";
        let (run, job) = (lease.ticket.run.as_str(), lease.handed.as_str());
        let (delivery, pause) = (lease.delivery as i64, pause.as_secs_f64());
        self.execute(text, &[&run, &job, &delivery, &pause])
    }

    fn queued(&mut self, run: &RunId) -> Result<BTreeSet<JobId>> {
        let text = "SELECT job FROM everett_jobs WHERE run = $1";
        let names = self.query(text, &[&run.as_str()])?.into_iter();
        let names = names.map(|row| row.try_get::<_, String>(0).map_err(broken));
        let names = names.collect::<Result<Vec<_>>>()?.into_iter();
        Ok(names.filter_map(|name| JobId::parse(&name)).collect())
    }

    fn waiting(&mut self) -> Result<u64> {
        let text = "SELECT count(*) FROM everett_jobs WHERE leased_until < now()";
        let row = self.with(async |client| client.query_one(text, &[]).await.map_err(broken))?;
        let count: i64 = row.try_get(0).map_err(broken)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn now(&mut self) -> Result<Duration> {
        let text = "SELECT extract(epoch FROM clock_timestamp())::float8";
        let row = self.with(async |client| client.query_one(text, &[]).await.map_err(broken))?;
        let seconds: f64 = row.try_get(0).map_err(broken)?;
        Duration::try_from_secs_f64(seconds).map_err(Error::broker)
    }

    fn lease_time(&self) -> Duration {
        self.lease
    }

    fn finish(&mut self, lease: &Lease, explored: &Explored) -> Result<Outcome> {
        self.with(async |client| finish(client, lease, explored).await)
    }
}
