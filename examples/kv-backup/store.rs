//! A store of keys and values over TCP, with a backup that gets all that is set.
//!
//! ```text
//! store ADDRESS [BACKUP]
//! ```
//!
//! A client learns that a value is set before the backup has it: if the store is gone then, the value is.

include!("serving.inc");

fn set(
    key: &str,
    value: &str,
    client: &mut TcpStream,
    backup: Option<&mut Backup>,
) -> std::io::Result<()> {
    client.write_all(b"ok\n")?;
    if let Some(backup) = backup {
        backup.set(key, value)?;
    }
    Ok(())
}
