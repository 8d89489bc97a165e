//! A server that sends every line back, with a thread for each connection. The line `quit` ends it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

fn serve(stream: TcpStream, lines: &AtomicUsize) -> std::io::Result<bool> {
    let mut answer = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let number = lines.fetch_add(1, Ordering::SeqCst) + 1;
        writeln!(answer, "{number}: {line}")?;
        if line == "quit" {
            return Ok(true);
        }
    }
    Ok(false)
}

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).unwrap_or("0".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    let lines = Arc::new(AtomicUsize::new(0));
    let (ended, wait) = mpsc::channel();
    let counter = lines.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (ended, lines) = (ended.clone(), counter.clone());
            thread::spawn(move || {
                if let Ok(true) = serve(stream, &lines) {
                    let _ = ended.send(());
                }
            });
        }
    });
    let _ = wait.recv();
    std::process::exit(lines.load(Ordering::SeqCst) as i32);
}
