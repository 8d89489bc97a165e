//! Sets a value, and looks whether it is there, at the backup where the store is gone.
//!
//! ```text
//! client STORE BACKUP
//! ```
//!
//! It ends with 1 if a value is lost that was acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One command and its answer.
fn ask(address: &str, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(command.as_bytes())?;
    let mut answer = String::new();
    if BufReader::new(stream).read_line(&mut answer)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.trim_end().to_owned())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let is_acknowledged = matches!(ask(&args[1], "set colour green\n"), Ok(answer) if answer == "ok");
    let found = ask(&args[1], "get colour\n").or_else(|_| ask(&args[2], "get colour\n"));
    let is_there = matches!(found, Ok(value) if value == "green");
    if is_acknowledged && !is_there {
        eprintln!("a value that was acknowledged is lost");
        std::process::exit(1);
    }
}
