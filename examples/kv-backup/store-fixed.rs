//! The same store, corrected: a client learns that a value is set when the backup has it.

include!("serving.inc");

fn set(
    key: &str,
    value: &str,
    client: &mut TcpStream,
    backup: Option<&mut Backup>,
) -> std::io::Result<()> {
    if let Some(backup) = backup {
        backup.set(key, value)?;
    }
    client.write_all(b"ok\n")
}
