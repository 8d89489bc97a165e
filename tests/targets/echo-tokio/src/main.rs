//! A server that sends every line back, on tokio with two workers. The line `quit` ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

async fn serve(
    stream: TcpStream,
    lines: Arc<AtomicUsize>,
    ended: Arc<Notify>,
) -> std::io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from).lines();
    while let Some(line) = from.next_line().await? {
        let number = lines.fetch_add(1, Ordering::SeqCst) + 1;
        to.write_all(format!("{number}: {line}\n").as_bytes())
            .await?;
        if line == "quit" {
            // The answer has time to leave.
            tokio::time::sleep(Duration::from_millis(20)).await;
            ended.notify_one();
        }
    }
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).unwrap_or("0".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let lines = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(Notify::new());
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                tokio::spawn(serve(stream, lines.clone(), ended.clone()));
            }
            _ = ended.notified() => std::process::exit(lines.load(Ordering::SeqCst) as i32),
            _ = tokio::signal::ctrl_c() => std::process::exit(77),
        }
    }
}
