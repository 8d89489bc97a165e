//! The connection to a PostgreSQL server, which notes when bytes last passed: a server, or a machine
//! on the way to it, may accept a connection and never answer.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

const PORT: u16 = 5432;

/// When bytes last passed over a connection, and to whom it is.
#[derive(Clone)]
pub(crate) struct Activity {
    server: Arc<str>,
    last: Arc<Mutex<Instant>>,
}

impl Activity {
    fn new(server: &str) -> Activity {
        Activity {
            server: server.into(),
            last: Arc::new(Mutex::new(Instant::now())),
        }
    }

    fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer as long as bytes pass: a large object may take its time. Fails if none
    /// does for a while.
    pub(crate) async fn wait<T>(
        &self,
        silence: Duration,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.note();
        let mut answer = pin!(answer);
        loop {
            let until = self.last() + silence;
            match timeout_at(until, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) if self.last() + silence > until => {}
                Err(_) => return Err(self.silent(silence)),
            }
        }
    }

    fn silent(&self, silence: Duration) -> Error {
        let (server, seconds) = (&self.server, silence.as_secs_f64());
        Error::Broker(format!(
            "PostgreSQL at {server} accepts connections but has not answered for {seconds} s: is it overloaded or \
             suspended, or does something on the way to it hold data back?"
        ))
    }
}

/// A socket that notes when bytes pass.
struct Link<S> {
    socket: S,
    activity: Activity,
}

impl<S> Link<S> {
    fn noted<T>(&self, passed: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(passed, Poll::Ready(Ok(_))) {
            self.activity.note();
        }
        passed
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Link<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let passed = Pin::new(&mut self.socket).poll_read(context, to);
        self.noted(passed)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Link<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let passed = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.noted(passed)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// An address of a server: where it is reached, and the name in its certificate.
struct Address {
    host: Host,
    name: String,
    port: u16,
}

/// Returns the addresses of a configuration, to be tried in this order.
fn addresses(config: &Config) -> Vec<Address> {
    let (hosts, addresses, ports) = (
        config.get_hosts(),
        config.get_hostaddrs(),
        config.get_ports(),
    );
    let count = hosts.len().max(addresses.len());
    let all = (0..count).filter_map(|number| {
        let given = addresses.get(number).map(ToString::to_string);
        let name = match hosts.get(number) {
            Some(Host::Tcp(name)) => name.clone(),
            _ => given.clone().unwrap_or_default(),
        };
        let host = given
            .map(Host::Tcp)
            .or_else(|| hosts.get(number).cloned())?;
        let port = ports.get(number).or(ports.first()).copied();
        Some(Address {
            host,
            name,
            port: port.unwrap_or(PORT),
        })
    });
    all.collect()
}

/// Connects to the first server of a configuration that answers.
pub(crate) async fn open_link(
    config: &Config,
    tls: Option<&MakeRustlsConnect>,
    silence: Duration,
) -> Result<(Client, Activity)> {
    let most = config.get_connect_timeout().copied().unwrap_or(silence);
    let mut failure = Error::Broker("the address names no host".to_owned());
    for address in addresses(config) {
        match open_at(config, tls, &address, (most, silence)).await {
            Ok(opened) => return Ok(opened),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn open_at(
    config: &Config,
    tls: Option<&MakeRustlsConnect>,
    address: &Address,
    (most, silence): (Duration, Duration),
) -> Result<(Client, Activity)> {
    let (name, port) = (&*address.name, address.port);
    match &address.host {
        Host::Tcp(host) => {
            let server = format!("{name}:{port}");
            let socket = reached(&server, most, TcpStream::connect((&**host, port))).await?;
            let _ = socket.set_nodelay(true);
            begin(config, tls, name, (socket, &server, silence)).await
        }
        Host::Unix(folder) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            let server = path.display().to_string();
            let socket = reached(&server, most, UnixStream::connect(&path)).await?;
            begin(config, tls, name, (socket, &server, silence)).await
        }
    }
}

/// Waits for a connection for a limited time.
async fn reached<S>(
    server: &str,
    most: Duration,
    connecting: impl Future<Output = io::Result<S>>,
) -> Result<S> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::Broker(format!("cannot connect to PostgreSQL at {server}: {why}"))
    };
    match timeout(most, connecting).await {
        Ok(connected) => connected.map_err(|error| failed(&error)),
        Err(_) => Err(failed(&format!(
            "no answer within {} s",
            most.as_secs_f64()
        ))),
    }
}

/// Begins a session over a connection.
async fn begin<S>(
    config: &Config,
    tls: Option<&MakeRustlsConnect>,
    name: &str,
    (socket, server, silence): (S, &str, Duration),
) -> Result<(Client, Activity)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new(server);
    let link = Link {
        socket,
        activity: activity.clone(),
    };
    let session = async {
        // The task ends when the client is dropped.
        match tls {
            Some(tls) => {
                let connector = MakeTlsConnect::<Link<S>>::make_tls_connect(&mut tls.clone(), name);
                let connector = connector.map_err(Error::broker)?;
                let begun = config.connect_raw(link, connector).await;
                let (client, connection) = begun.map_err(broken)?;
                tokio::spawn(connection);
                Ok(client)
            }
            None => {
                let begun = config.connect_raw(link, NoTls).await;
                let (client, connection) = begun.map_err(broken)?;
                tokio::spawn(connection);
                Ok(client)
            }
        }
    };
    let client = activity.wait(silence, session).await?;
    Ok((client, activity))
}

/// Converts an error of the server, with its reason.
pub(crate) fn broken(error: tokio_postgres::Error) -> Error {
    let reason = std::error::Error::source(&error).map(ToString::to_string);
    match reason {
        Some(reason) => Error::broker(format!("{error}: {reason}")),
        None => Error::broker(error),
    }
}
