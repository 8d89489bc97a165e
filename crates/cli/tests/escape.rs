//! Runs every guest under `tests/escape/` as a test. Guests try to escape from the sandbox or to
//! exceed their limits. A canary outside must stay unchanged: a file, listening sockets, a process,
//! and objects that outlive processes.
//!
//! A guest declares its expectations in comments at its head:
//!
//! ```text
//! // native: 0             run with `everett native`, which must exit with this code
//! // exec: 0               run with `everett exec`
//! // run: 1                run with `everett run`
//! // options: OPTIONS      options, before the program
//! // says: WORDS           words that Everett prints
//! // stdout: 7             maximum number of bytes that it prints; it must print something
//! ```
//!
//! A guest that exits with 0 must print that it was contained. Its arguments are the file, the port
//! and the process of the canary.

mod common;

use common::{everett, expect, folder};
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Maximum resident memory of any process that a test starts. Guests are limited to at most half of
/// it.
const MOST_MEMORY_KIB: i64 = 1 << 20;
/// The time after which a guest counts as endless.
const RUNS_AT_MOST: Duration = Duration::from_secs(300);
/// The prefix of names that guests leave behind.
const NAME: &str = "everett-escape";

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/escape");
    let listed = fs::read_dir(&root).expect("the folder of the guests");
    let mut guests: Vec<PathBuf> = listed.map(|entry| entry.expect("a file").path()).collect();
    guests.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    guests.sort();
    let canary = Arc::new(Canary::new());
    let trials = guests.into_iter().map(|guest| {
        let name = guest.file_stem().unwrap_or_default().to_string_lossy();
        let canary = canary.clone();
        Trial::test(name.clone().into_owned(), move || {
            try_guest(&guest, &canary)
        })
    });
    let mut trials: Vec<Trial> = trials.collect();
    trials.push(Trial::test("strange_programs", strange_programs));
    let conclusion = libtest_mimic::run(&arguments, trials);
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)
        .expect("usage")
        .max_rss();
    assert!(used < MOST_MEMORY_KIB, "a process had {used} KiB of memory");
    drop(canary);
    conclusion.exit();
}

/// The expectations of a guest.
#[derive(Default)]
struct Header {
    /// Commands, and their exit codes.
    commands: Vec<(String, i32)>,
    options: Vec<String>,
    says: Option<String>,
    stdout: Option<usize>,
}

impl Header {
    fn parse(source: &str) -> Result<Header, Failed> {
        let mut header = Header::default();
        for line in source.lines().take_while(|line| line.starts_with("//")) {
            let Some((key, value)) = line.trim_start_matches('/').trim().split_once(':') else {
                continue;
            };
            let value = value.trim();
            match key {
                "native" | "exec" | "run" => {
                    header.commands.push((key.to_owned(), value.parse()?));
                }
                "options" => header.options = value.split(' ').map(str::to_owned).collect(),
                "says" => header.says = Some(value.to_owned()),
                "stdout" => header.stdout = Some(value.parse()?),
                _ => {}
            }
        }
        match header.commands.is_empty() {
            true => Err("the guest does not say how it is run".into()),
            false => Ok(header),
        }
    }
}

fn try_guest(guest: &Path, canary: &Canary) -> Result<(), Failed> {
    let header = Header::parse(&fs::read_to_string(guest)?)?;
    let name = guest.file_stem().unwrap_or_default().to_string_lossy();
    let folder = folder(&format!("escape-{name}"));
    let program = format!("./{name}");
    expect(
        everett(&folder)
            .args(["cc", "-w", "-g", "-o", &program])
            .arg(guest),
        0,
    );
    for (command, code) in &header.commands {
        let mut run = everett(&folder);
        run.arg(command).args(&header.options).arg(&program);
        run.args(canary.arguments());
        let (seen, out, err) = finish(&mut run, &folder)?;
        let tail: String = out.chars().take(2000).collect();
        let said = format!("everett {command}: exit code {seen:?}, said:\n{tail}\n{err}");
        if seen != Some(*code) || out.contains("escaped:") {
            return Err(said.into());
        }
        if *code == 0 && command != "run" && !out.contains("contained") {
            return Err(said.into());
        }
        let says = |words: &String| err.contains(words) || out.contains(words);
        if !header.says.iter().all(says) {
            return Err(said.into());
        }
        if header
            .stdout
            .is_some_and(|most| out.is_empty() || out.len() > most)
        {
            return Err(format!("{} bytes of output; {said}", out.len()).into());
        }
        expect_nobody_left(&folder)?;
        canary.check()?;
    }
    Ok(())
}

/// Program files that no linker makes: for 32 bits, with a segment at Everett's pages, with an
/// entry point at nothing.
fn strange_programs() -> Result<(), Failed> {
    const GATE: u64 = 0x7fff_fc00_0000;
    let folder = folder("escape-strange_programs");
    // mov edi, 42; mov eax, 60; syscall
    let code = [0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    let inside = 0x40_0000 + HEADERS;
    let no_room = "its memory has no room";
    for (name, parts, entry, code_and_words) in [
        ("plain", [0x40_0000, 0x50_0000], inside, (42, "")),
        ("over_gate", [0x40_0000, GATE], inside, (2, no_room)),
        (
            "beside_gate",
            [0x40_0000, GATE + 0x1000],
            inside,
            (2, no_room),
        ),
        ("in_gate", [GATE, 0x50_0000], GATE + HEADERS, (2, no_room)),
        (
            "nowhere",
            [0x40_0000, 0x50_0000],
            0x1234_5000,
            (2, "no code at its entry point"),
        ),
    ] {
        let file = folder.join(name);
        fs::write(&file, elf(parts, entry, &code))?;
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755))?;
        let mut run = everett(&folder);
        run.arg("native").arg(format!("./{name}"));
        let (seen, _, said) = finish(&mut run, &folder)?;
        let (code, words) = code_and_words;
        if seen != Some(code) || !said.contains(words) {
            return Err(format!("{name}: exit code {seen:?}, said: {said}").into());
        }
    }
    let mut other = elf([0x40_0000, 0x50_0000], inside, &code);
    // ELFCLASS32 and i386: the rest is nonsense then. None of its code runs.
    other[4] = 1;
    other[18] = 3;
    fs::write(folder.join("plain"), other)?;
    let (seen, _, said) = finish(everett(&folder).args(["native", "./plain"]), &folder)?;
    if seen != Some(2) {
        return Err(format!("32 bits: exit code {seen:?}, said: {said}").into());
    }
    expect_nobody_left(&folder)
}

/// The size of the headers of a program file with two segments.
const HEADERS: u64 = 64 + 2 * 56;

/// Returns a program file whose headers and code are mapped at both addresses.
fn elf(parts: [u64; 2], entry: u64, code: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // An executable for x86-64 of version 1.
    for half in [2u16, 62, 1, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [entry, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    for half in [0u16, 0, 64, 56, 2, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let size = HEADERS + code.len() as u64;
    for address in parts {
        // A loadable segment that can be read, written and executed.
        file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
        for word in [0, address, address, size, 0x1000, 0x1000] {
            file.extend(word.to_le_bytes());
        }
    }
    file.extend(code);
    file
}

/// Runs a command to its end, and returns exit code, output, and errors.
fn finish(run: &mut Command, folder: &Path) -> Result<(Option<i32>, String, String), Failed> {
    const PAUSE: Duration = Duration::from_millis(5);
    let files = ["stdout", "stderr"].map(|name| folder.join(name));
    let [out, err] = &files;
    run.stdin(Stdio::null());
    run.stdout(fs::File::create(out)?)
        .stderr(fs::File::create(err)?);
    let mut child = run.spawn()?;
    let mut left = RUNS_AT_MOST.as_millis() / PAUSE.as_millis();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if left == 0 {
            child.kill()?;
            child.wait()?;
            return Err(format!("{run:?} does not end").into());
        }
        left -= 1;
        std::thread::sleep(PAUSE);
    };
    let text =
        |path: &PathBuf| Ok::<_, Failed>(String::from_utf8_lossy(&fs::read(path)?).into_owned());
    Ok((status.code(), text(out)?, text(err)?))
}

/// Fails if a process executes a program of a folder. Killed processes take a moment to disappear.
fn expect_nobody_left(folder: &Path) -> Result<(), Failed> {
    // A loaded machine may take long; after this time they stay.
    const TRIES: u32 = 30_000;
    let folder = folder.canonicalize()?;
    let mut left = Vec::new();
    for _ in 0..TRIES {
        left = fs::read_dir("/proc")?
            .flatten()
            .filter_map(|process| fs::read_link(process.path().join("exe")).ok())
            .filter(|program| program.starts_with(&folder))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("processes outlive the run: {left:?}").into())
}

/// Objects outside of the sandbox that must not change.
struct Canary {
    file: PathBuf,
    before: (i64, u32, u64),
    port: TcpListener,
    sockets: [UnixListener; 2],
    process: Child,
    objects: Vec<String>,
}

const CONTENTS: &str = "nobody touches this\n";

/// The process ids of guests. A guest may kill a process of its own whose id a real one has.
const NUMBERS_OF_GUESTS: std::ops::RangeInclusive<u32> = 1000..=9000;

/// Starts a process outside, with an id that no guest has.
fn outside_process() -> Child {
    loop {
        let sleep = Command::new("sleep").arg("infinity").spawn();
        let mut process = sleep.expect("a process");
        if !NUMBERS_OF_GUESTS.contains(&process.id()) {
            return process;
        }
        process.kill().expect("it lives");
        process.wait().expect("it has ended");
    }
}

impl Canary {
    fn new() -> Canary {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::SocketAddr;
        let folder = folder("escape-canary");
        let file = folder.join("file");
        fs::write(&file, CONTENTS).expect("a file");
        let port = TcpListener::bind("127.0.0.1:0").expect("a port");
        let by_path = UnixListener::bind(folder.join("file.socket")).expect("a socket");
        let number = port.local_addr().expect("an address").port();
        let name = format!("{NAME}-{number}");
        let abstract_name = SocketAddr::from_abstract_name(name).expect("a name");
        let by_name = UnixListener::bind_addr(&abstract_name).expect("an abstract socket");
        port.set_nonblocking(true).expect("a socket");
        for socket in [&by_path, &by_name] {
            socket.set_nonblocking(true).expect("a socket");
        }
        Canary {
            before: Canary::state(&file),
            file,
            port,
            sockets: [by_path, by_name],
            process: outside_process(),
            objects: objects(),
        }
    }

    /// Returns the time of the last change, permissions, and inode of a file.
    fn state(file: &Path) -> (i64, u32, u64) {
        let metadata = fs::metadata(file).expect("a file");
        (metadata.ctime_nsec(), metadata.mode(), metadata.ino())
    }

    /// Returns the arguments that tell guests about it.
    fn arguments(&self) -> [String; 3] {
        let port = self.port.local_addr().expect("an address").port();
        let file = self.file.display().to_string();
        [file, port.to_string(), self.process.id().to_string()]
    }

    fn check(&self) -> Result<(), Failed> {
        if fs::read_to_string(&self.file)? != CONTENTS || Canary::state(&self.file) != self.before {
            return Err("a real file was changed".into());
        }
        let connections = [
            self.port.accept().err(),
            self.sockets[0].accept().err(),
            self.sockets[1].accept().err(),
        ];
        let nobody = |error: Option<std::io::Error>| {
            error.is_some_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        if !connections.into_iter().all(nobody) {
            return Err("somebody has connected".into());
        }
        let state = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // It may not have fallen asleep yet.
        if ![") S", ") R", ") D"]
            .iter()
            .any(|alive| state.contains(alive))
        {
            return Err(format!("a real process was touched: {state}").into());
        }
        match objects() == self.objects {
            true => Ok(()),
            false => {
                Err(format!("left behind: {:?}, before: {:?}", objects(), self.objects).into())
            }
        }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns what outlives processes and has the name or a key of the guests: files in shared
/// folders, System V objects, the name of the machine.
fn objects() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["/tmp", "/dev/shm", "/dev/mqueue", "/", "/var/tmp"] {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.path().display().to_string());
        found.extend(names.filter(|name| name.contains(NAME)));
    }
    for kind in ["shm", "sem", "msg"] {
        let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let keys = table
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next());
        let small = keys.filter(|key| (1..20).any(|number: i32| number.to_string() == *key));
        found.extend(small.map(|key| format!("{kind} {key}")));
    }
    for file in ["hostname", "domainname"] {
        found.push(fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default());
    }
    found.sort();
    found
}
