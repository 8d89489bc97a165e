//! Files, descriptors and paths.

use super::*;
use crate::{FileSpec, Stdin};

const CREATE: u64 = 0o100;
const WRITE_ONLY: u64 = 1;
const READ_WRITE: u64 = 2;
const APPEND: u64 = 0o2000;

fn with_files(files: Vec<FileSpec>) -> (Bench, Host) {
    let mut bench = Bench::new(Script::default().program());
    let host = bench.boot(&HostConfig {
        files,
        ..HostConfig::default()
    });
    (bench, host)
}

#[test]
fn what_is_written_to_a_file_is_read_back() {
    let (mut bench, mut host) = idle();
    let path = put_path(&mut host, "/tmp/new");
    let text = put(&mut host, b"hello, world");
    let room = put(&mut host, &[0; 32]);
    assert_eq!(
        bench.call(&mut host, "open", &[path, READ_WRITE, 0]),
        Err(Errno::ENOENT)
    );
    assert_eq!(
        bench.call(&mut host, "open", &[path, READ_WRITE | CREATE, 0o666]),
        Ok(3)
    );
    assert_eq!(bench.call(&mut host, "write", &[3, text, 12]), Ok(12));
    assert_eq!(bench.call(&mut host, "read", &[3, room, 32]), Ok(0));
    assert_eq!(
        bench.call(&mut host, "lseek", &[3, (-5i64) as u64, 2]),
        Ok(7)
    );
    assert_eq!(bench.call(&mut host, "read", &[3, room, 32]), Ok(5));
    assert_eq!(&get(&host, room, 5).bytes(), b"world");
    assert_eq!(bench.call(&mut host, "pread64", &[3, room, 4, 1]), Ok(4));
    assert_eq!(&get(&host, room, 4).bytes(), b"ello");
    assert_eq!(
        bench.call(&mut host, "lseek", &[3, (-1i64) as u64, 0]),
        Err(Errno::EINVAL)
    );
    assert_eq!(bench.call(&mut host, "ftruncate", &[3, 5]), Ok(0));
    assert_eq!(bench.call(&mut host, "pread64", &[3, room, 32, 0]), Ok(5));
    assert_eq!(bench.call(&mut host, "close", &[3]), Ok(0));
    assert_eq!(bench.call(&mut host, "close", &[3]), Err(Errno::EBADF));
    assert_eq!(
        bench.call(&mut host, "open", &[path, WRITE_ONLY | APPEND, 0]),
        Ok(3)
    );
    assert_eq!(
        bench.call(&mut host, "read", &[3, room, 1]),
        Err(Errno::EBADF)
    );
    assert_eq!(bench.call(&mut host, "write", &[3, text, 2]), Ok(2));
    let status = put(&mut host, &[0; 144]);
    assert_eq!(bench.call(&mut host, "stat", &[path, status]), Ok(0));
    assert_eq!(get(&host, status, 144).bytes()[48], 7);
    assert_eq!(bench.call(&mut host, "unlink", &[path]), Ok(0));
    assert_eq!(
        bench.call(&mut host, "stat", &[path, status]),
        Err(Errno::ENOENT)
    );
    assert_eq!(bench.call(&mut host, "fstat", &[3, status]), Ok(0));
}

#[test]
fn vectors_are_scattered_and_gathered() {
    let (mut bench, mut host) = idle();
    let (first, second) = (put(&mut host, b"abc"), put(&mut host, b"defg"));
    let words = [first, 3, 0, 0, second, 4].map(u64::to_le_bytes).concat();
    let vector = put(&mut host, &words);
    assert_eq!(bench.call(&mut host, "writev", &[1, vector, 3]), Ok(7));
    let output = host.output(crate::Stream::Stdout).clone();
    assert_eq!(bench.text(&output), b"abcdefg");
    *host.state.files.stdin_mut(0) =
        crate::files::Input::fixed(crate::Bytes::from_concrete(b"VWXYZ"));
    assert_eq!(bench.call(&mut host, "readv", &[0, vector, 3]), Ok(5));
    assert_eq!(get(&host, first, 3).bytes(), b"VWX");
    assert_eq!(get(&host, second, 4).bytes(), b"YZfg");
    assert_eq!(
        bench.call(&mut host, "writev", &[1, vector, 1025]),
        Err(Errno::EINVAL)
    );
}

#[test]
fn copies_of_descriptors_share_their_offset() {
    let (mut bench, mut host) = with_files(vec![FileSpec::concrete("f", *b"0123456789")]);
    let path = put_path(&mut host, "f");
    let room = put(&mut host, &[0; 8]);
    assert_eq!(bench.call(&mut host, "open", &[path, 0, 0]), Ok(3));
    assert_eq!(bench.call(&mut host, "dup", &[3]), Ok(4));
    assert_eq!(bench.call(&mut host, "dup2", &[3, 9]), Ok(9));
    assert_eq!(bench.call(&mut host, "fcntl", &[3, 1030, 7]), Ok(7));
    assert_eq!(bench.call(&mut host, "fcntl", &[7, 1, 0]), Ok(1));
    assert_eq!(bench.call(&mut host, "read", &[4, room, 2]), Ok(2));
    assert_eq!(bench.call(&mut host, "close", &[3]), Ok(0));
    assert_eq!(bench.call(&mut host, "read", &[9, room, 2]), Ok(2));
    assert_eq!(get(&host, room, 2).bytes(), b"23");
    assert_eq!(
        bench.call(&mut host, "dup3", &[9, 9, 0]),
        Err(Errno::EINVAL)
    );
    assert_eq!(bench.call(&mut host, "dup2", &[9, 5000]), Err(Errno::EBADF));
    assert_eq!(bench.call(&mut host, "dup2", &[50, 5]), Err(Errno::EBADF));
}

#[test]
fn bad_memory_is_efault_but_running_over_a_block_is_a_finding() {
    let (mut bench, mut host) = idle();
    *host.state.files.stdin_mut(0) =
        crate::files::Input::fixed(crate::Bytes::from_concrete(b"12345678"));
    let small = put(&mut host, &[0; 4]);
    assert_eq!(
        bench.call(&mut host, "read", &[0, 0, 4]),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        bench.call(&mut host, "write", &[1, 16, 4]),
        Err(Errno::EFAULT)
    );
    let args = [0, small, 8].map(Value::concrete);
    let stop = bench.call_values(&mut host, "read", &args);
    assert!(
        matches!(stop, Err(Stop::Interrupt(everett_vm::Interrupt::Bug(_)))),
        "{stop:?}"
    );
    // Nothing was read by the calls that failed.
    assert_eq!(bench.call(&mut host, "read", &[0, small, 4]), Ok(4));
    assert_eq!(get(&host, small, 4).bytes(), b"1234");
    // Only available bytes count: a large count with few bytes left is not an overrun.
    assert_eq!(bench.call(&mut host, "read", &[0, small, 4096]), Ok(4));
}

#[test]
fn symbolic_bytes_pass_through_files() {
    let mut bench = Bench::new(Script::default().program());
    let config = HostConfig {
        stdin: Stdin::Symbolic { size: 6 },
        ..HostConfig::default()
    };
    let mut host = bench.boot(&config);
    let room = put(&mut host, &[0; 6]);
    let path = put_path(&mut host, "copy");
    assert_eq!(bench.call(&mut host, "read", &[0, room, 6]), Ok(6));
    assert_eq!(
        bench.call(&mut host, "open", &[path, READ_WRITE | CREATE, 0o600]),
        Ok(3)
    );
    assert_eq!(bench.call(&mut host, "write", &[3, room, 6]), Ok(6));
    let again = put(&mut host, &[0; 6]);
    assert_eq!(bench.call(&mut host, "pread64", &[3, again, 4, 2]), Ok(4));
    assert_eq!(bench.call(&mut host, "write", &[1, again, 4]), Ok(4));
    let output = host.output(crate::Stream::Stdout).clone();
    assert_eq!(bench.text(&output), b"cdef");
    assert_eq!(bench.tape.questions, 0);
}

#[test]
fn a_symbolic_count_is_asked_for() {
    let (mut bench, mut host) = idle();
    let text = put(&mut host, b"hello");
    let input = bench.arena.array(7, "n", 8);
    let byte = bench.arena.read(input, 0);
    let count = Value {
        bits: 0,
        term: Some(bench.arena.zext(byte, 64)),
    };
    let args = [Value::concrete(1), Value::concrete(text), count];
    let stop = bench.call_values(&mut host, "write", &args);
    assert!(matches!(
        stop,
        Err(Stop::Interrupt(everett_vm::Interrupt::Suspend))
    ));
    assert!(host.output(crate::Stream::Stdout).is_empty());
    bench.tape.answers.push_back(3);
    let written = bench.call_values(&mut host, "write", &args);
    assert_eq!(written.unwrap(), Value::concrete(3));
    let output = host.output(crate::Stream::Stdout).clone();
    assert_eq!(bench.text(&output), b"hel");
}

#[test]
fn a_symbolic_path_is_a_file_that_exists_or_none() {
    let (mut bench, mut host) = with_files(vec![FileSpec::concrete("A", *b"x")]);
    let path = put(&mut host, &[0; 2]);
    let input = bench.arena.array(7, "p", 1);
    let term = bench.arena.read(input, 0);
    let object = host.memories[0].object_at_mut(path, 2).unwrap();
    object.store(
        &mut bench.arena,
        0,
        1,
        Value {
            bits: 0,
            term: Some(term),
        },
    );
    // The first question is whether the path is "A".
    bench.tape.answers.push_back(1);
    assert_eq!(bench.call(&mut host, "open", &[path, 0, 0]), Ok(3));
    assert_eq!(bench.tape.questions, 1);
    // The path is neither "A" nor "/" nor ".", nor empty, and it is in canonical form.
    bench.tape.answers.extend([0; 5]);
    assert_eq!(
        bench.call(&mut host, "open", &[path, 0, 0]),
        Err(Errno::ENOENT)
    );
    assert!(bench.tape.answers.is_empty());
    // The name of a file to create must be concrete.
    bench.tape.answers.extend([0, 0, 0, 0, u64::from(b'q')]);
    assert_eq!(
        bench.call(&mut host, "open", &[path, WRITE_ONLY | CREATE, 0o600]),
        Ok(4)
    );
    assert!(
        host.state
            .files
            .tree
            .lookup(crate::files::ROOT, b"/q", true)
            .is_ok()
    );
}

#[test]
fn directories_are_made_entered_and_removed() {
    let (mut bench, mut host) = idle();
    let path = put_path(&mut host, "/a");
    let inner = put_path(&mut host, "/a/b");
    let room = put(&mut host, &[0; 16]);
    assert_eq!(
        bench.call(&mut host, "mkdir", &[inner, 0o777]),
        Err(Errno::ENOENT)
    );
    assert_eq!(bench.call(&mut host, "mkdir", &[path, 0o777]), Ok(0));
    assert_eq!(
        bench.call(&mut host, "mkdir", &[path, 0o777]),
        Err(Errno::EEXIST)
    );
    assert_eq!(bench.call(&mut host, "mkdir", &[inner, 0o777]), Ok(0));
    assert_eq!(bench.call(&mut host, "chdir", &[inner]), Ok(0));
    assert_eq!(bench.call(&mut host, "getcwd", &[room, 16]), Ok(5));
    assert_eq!(get(&host, room, 5).bytes(), b"/a/b\0");
    assert_eq!(
        bench.call(&mut host, "getcwd", &[room, 4]),
        Err(Errno::ERANGE)
    );
    assert_eq!(
        bench.call(&mut host, "rmdir", &[path]),
        Err(Errno::ENOTEMPTY)
    );
    assert_eq!(
        bench.call(&mut host, "unlink", &[inner]),
        Err(Errno::EISDIR)
    );
    assert_eq!(bench.call(&mut host, "rmdir", &[inner]), Ok(0));
    assert_eq!(
        bench.call(&mut host, "getcwd", &[room, 16]),
        Err(Errno::ENOENT)
    );
    assert_eq!(bench.call(&mut host, "rmdir", &[path]), Ok(0));
}

#[test]
fn devices_and_terminals_answer() {
    let (mut bench, mut host) = idle();
    let full = put_path(&mut host, "/dev/full");
    let zero = put_path(&mut host, "/dev/zero");
    let room = put(&mut host, &[7; 4]);
    assert_eq!(bench.call(&mut host, "open", &[full, WRITE_ONLY, 0]), Ok(3));
    assert_eq!(
        bench.call(&mut host, "write", &[3, room, 1]),
        Err(Errno::ENOSPC)
    );
    assert_eq!(bench.call(&mut host, "open", &[zero, 0, 0]), Ok(4));
    assert_eq!(bench.call(&mut host, "read", &[4, room, 4]), Ok(4));
    assert_eq!(get(&host, room, 4).bytes(), [0; 4]);
    assert_eq!(
        bench.call(&mut host, "ioctl", &[1, 0x5413, room]),
        Err(Errno::ENOTTY)
    );
    assert_eq!(
        bench.call(&mut host, "lseek", &[1, 0, 1]),
        Err(Errno::ESPIPE)
    );
    assert!(host.warnings().is_empty());
}

#[test]
fn a_live_stdin_is_asked_for() {
    let mut bench = Bench::new(Script::default().program());
    let mut host = bench.boot(&HostConfig {
        stdin: Stdin::Live,
        ..HostConfig::default()
    });
    let room = put(&mut host, &[0; 8]);
    let args = [0, room, 8].map(Value::concrete);
    let stop = bench.call_values(&mut host, "read", &args);
    assert!(matches!(stop, Err(Stop::Block(_))));
    host.supply_input(b"abc");
    assert_eq!(bench.call(&mut host, "read", &[0, room, 2]), Ok(2));
    let entry = [0u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    let polled = put(&mut host, &entry);
    assert_eq!(bench.call(&mut host, "poll", &[polled, 1, 0]), Ok(1));
    assert_eq!(bench.call(&mut host, "read", &[0, room, 8]), Ok(1));
    assert_eq!(bench.call(&mut host, "poll", &[polled, 1, 0]), Ok(0));
    host.supply_input(b"");
    assert_eq!(bench.call(&mut host, "read", &[0, room, 8]), Ok(0));
}

#[test]
fn what_every_host_has_is_asked_about_at_once() {
    let (mut bench, mut host) = with_files(vec![FileSpec::concrete("AAAA", *b"x")]);
    let path = put(&mut host, &[0; 5]);
    let input = bench.arena.array(7, "p", 4);
    for at in 0..4 {
        let term = bench.arena.read(input, at);
        let object = host.memories[0].object_at_mut(path, 5).unwrap();
        let value = Value {
            bits: 0,
            term: Some(term),
        };
        object.store(&mut bench.arena, u64::from(at), 1, value);
    }
    // The path is neither the file, nor root by one of its names, nor a file that every host has;
    // it is in canonical form.
    bench.tape.answers.extend([0; 20]);
    let found = bench.call(&mut host, "access", &[path, 0]);
    assert_eq!(found, Err(Errno::ENOENT));
    let asked = bench.tape.questions;
    assert!(
        asked < 12,
        "{asked} questions: one for each path of /etc and /dev"
    );
}

#[test]
fn what_a_host_leaves_behind_is_what_it_changed() {
    let (mut bench, mut host) = with_files(vec![
        FileSpec::concrete("/data/kept", *b"kept"),
        FileSpec::concrete("/data/changed", *b"old"),
        FileSpec::concrete("/data/gone", *b"gone"),
    ]);
    assert!(host.changed_files().is_empty());
    let changed = put_path(&mut host, "/data/changed");
    let gone = put_path(&mut host, "/data/gone");
    let made = put_path(&mut host, "/tmp/made");
    let proc = put_path(&mut host, "/proc/self/status");
    let kept = put_path(&mut host, "/data/kept");
    let text = put(&mut host, b"new");
    assert_eq!(
        bench.call(&mut host, "open", &[changed, WRITE_ONLY, 0]),
        Ok(3)
    );
    assert_eq!(bench.call(&mut host, "write", &[3, text, 3]), Ok(3));
    assert_eq!(bench.call(&mut host, "unlink", &[gone]), Ok(0));
    assert_eq!(bench.call(&mut host, "mkdir", &[made, 0o700]), Ok(0));
    assert_eq!(bench.call(&mut host, "open", &[proc, 0, 0]), Ok(4));
    assert_eq!(bench.call(&mut host, "open", &[kept, 0, 0]), Ok(5));
    assert_eq!(bench.call(&mut host, "read", &[5, text, 3]), Ok(3));
    let left: Vec<_> = host
        .changed_files()
        .into_iter()
        .map(|file| {
            let kind = match &file.what {
                crate::FileChange::File(bytes) => String::from_utf8(bench.text(bytes)).unwrap(),
                what => format!("{what:?}"),
            };
            (String::from_utf8(file.path).unwrap(), kind)
        })
        .collect();
    let expected = [
        ("/data/changed", "new"),
        ("/data/gone", "Removed"),
        ("/tmp/made", "Directory"),
    ];
    let expected = expected.map(|(path, what)| (path.to_owned(), what.to_owned()));
    assert_eq!(left, expected);
}

#[test]
fn files_of_the_disk_are_shared_until_they_are_written() {
    let source: std::sync::Arc<[u8]> = vec![7u8; 10_000].into();
    let contents = crate::Contents::Shared(std::sync::Arc::new(source));
    let (mut bench, mut host) = with_files(vec![FileSpec::new("f", contents, 0o600)]);
    let path = put_path(&mut host, "f");
    let room = put(&mut host, &[0; 8]);
    assert_eq!(bench.call(&mut host, "open", &[path, READ_WRITE, 0]), Ok(3));
    let mut fork = host.clone();
    assert_eq!(
        bench.call(&mut host, "pwrite64", &[3, room, 2, 5000]),
        Ok(2)
    );
    assert_eq!(bench.call(&mut host, "pread64", &[3, room, 4, 4999]), Ok(4));
    assert_eq!(get(&host, room, 4).bytes(), [7, 0, 0, 7]);
    assert_eq!(bench.call(&mut fork, "pread64", &[3, room, 4, 9998]), Ok(2));
    assert_eq!(bench.call(&mut fork, "pread64", &[3, room, 4, 4999]), Ok(4));
    assert_eq!(get(&fork, room, 4).bytes(), [7; 4]);
}
