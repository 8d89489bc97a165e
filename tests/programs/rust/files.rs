// Files and directories are written, read and removed in the model's file system.
// exec:
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

pub fn main() -> std::io::Result<()> {
    fs::create_dir_all("scratch/deeper")?;
    let mut file = BufWriter::new(File::create("scratch/a.txt")?);
    for n in 0..5 {
        writeln!(file, "line {n}")?;
    }
    file.into_inner()?.sync_all()?;
    println!("{:?}", fs::read_to_string("scratch/a.txt")?.lines().last());
    let mut file = OpenOptions::new().read(true).append(true).open("scratch/a.txt")?;
    file.write_all(b"more")?;
    file.seek(SeekFrom::Start(5))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    println!("{} {:?}", text.len(), &text[..1]);
    fs::write("scratch/deeper/b.txt", text.to_uppercase())?;
    fs::remove_file("scratch/a.txt")?;
    println!("{:?}", File::open("scratch/a.txt").map_err(|e| e.kind()).err());
    println!("{}", fs::metadata("scratch/deeper/b.txt")?.len());
    println!("{:?}", fs::remove_dir("scratch").map_err(|e| e.kind()).err());
    fs::remove_file("scratch/deeper/b.txt")?;
    fs::remove_dir("scratch/deeper")?;
    fs::remove_dir("scratch")?;
    println!("{}", fs::exists("scratch")?);
    Ok(())
}
