//! Mappings and the program break.

use super::*;
use crate::FileSpec;

const PRIVATE_ANONYMOUS: u64 = 0x22;

#[test]
fn a_mapping_lives_until_it_is_unmapped() {
    let (mut bench, mut host) = idle();
    let map = |bench: &mut Bench, host: &mut Host, len| {
        bench.call(host, "mmap", &[0, len, 3, PRIVATE_ANONYMOUS, u64::MAX, 0])
    };
    let at = map(&mut bench, &mut host, 5000).unwrap();
    assert_eq!(at % 4096, 0);
    assert!(host.memory().object_at(at, 8192).is_some());
    assert!(host.memory().object_at(at, 8193).is_none());
    assert_eq!(bench.call(&mut host, "munmap", &[at + 4096, 4096]), Ok(0));
    assert!(host.memory().object_at(at, 4097).is_none());
    assert_eq!(bench.call(&mut host, "munmap", &[at, 4096]), Ok(0));
    assert!(host.memory().object_at(at, 1).is_none());
    assert_eq!(map(&mut bench, &mut host, 0), Err(Errno::EINVAL));
    assert_eq!(map(&mut bench, &mut host, u64::MAX), Err(Errno::ENOMEM));
}

#[test]
fn a_mapping_grows_with_its_bytes() {
    let (mut bench, mut host) = idle();
    let args = [0, 4096, 3, PRIVATE_ANONYMOUS, u64::MAX, 0];
    let at = bench.call(&mut host, "mmap", &args).unwrap();
    let object = host.memories[0].object_at_mut(at, 3).unwrap();
    object.write_concrete(0, b"abc");
    assert_eq!(
        bench.call(&mut host, "mremap", &[at, 4096, 1 << 20, 0]),
        Err(Errno::ENOMEM)
    );
    let moved = bench
        .call(&mut host, "mremap", &[at, 4096, 1 << 20, 1])
        .unwrap();
    assert_eq!(get(&host, moved, 8192).bytes()[..4], *b"abc\0");
    assert!(host.memory().object_at(at, 1).is_none());
    assert_eq!(bench.call(&mut host, "madvise", &[moved, 8192, 4]), Ok(0));
    assert_eq!(get(&host, moved, 3).bytes(), [0; 3]);
}

#[test]
fn a_file_is_mapped_as_a_copy() {
    let mut bench = Bench::new(Script::default().program());
    let files = vec![FileSpec::concrete("f", *b"contents")];
    let mut host = bench.boot(&HostConfig {
        files,
        ..HostConfig::default()
    });
    let path = put_path(&mut host, "f");
    assert_eq!(bench.call(&mut host, "open", &[path, 0, 0]), Ok(3));
    let at = bench.call(&mut host, "mmap", &[0, 8, 3, 2, 3, 0]).unwrap();
    assert_eq!(bench.call(&mut host, "write", &[1, at, 9]), Ok(9));
    let output = host.output(crate::Stream::Stdout).read(0, 99);
    assert_eq!(output.bytes(), b"contents\0");
    assert_eq!(
        bench.call(&mut host, "mmap", &[0, 8, 1, 2, 77, 0]),
        Err(Errno::EBADF)
    );
    assert_eq!(
        bench.call(&mut host, "mmap", &[0, 8, 3, 1, 3, 0]),
        Err(Errno::EACCES)
    );
}

#[test]
fn the_break_moves_up_and_down() {
    let (mut bench, mut host) = idle();
    let start = bench.call(&mut host, "brk", &[0]).unwrap();
    assert_eq!(
        bench.call(&mut host, "brk", &[start + 100]),
        Ok(start + 100)
    );
    let object = host.memories[0].object_at_mut(start, 100).unwrap();
    object.write_concrete(50, b"x");
    // Whole pages are mapped.
    assert!(host.memory().object_at(start, 4096).is_some());
    assert!(host.memory().object_at(start, 4097).is_none());
    let far = start + (64 << 20);
    assert_eq!(bench.call(&mut host, "brk", &[far]), Ok(far));
    assert!(host.memory().object_at(start, 64 << 20).is_some());
    assert_eq!(bench.call(&mut host, "brk", &[start]), Ok(start));
    assert!(host.memory().object_at(start, 1).is_none());
    let heap = host.memory().heap_bytes();
    assert_eq!(
        bench.call(&mut host, "brk", &[start + 100]),
        Ok(start + 100)
    );
    assert_eq!(host.memory().heap_bytes(), heap + 4096);
    assert_eq!(get(&host, start + 50, 1).bytes(), [0]);
    assert_eq!(
        bench.call(&mut host, "brk", &[start + (1 << 40)]),
        Ok(start + 100)
    );
}
