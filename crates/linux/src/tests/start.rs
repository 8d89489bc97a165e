//! The initial state of a program.

use super::*;
use crate::{Argument, FileSpec, Stdin};

fn word(host: &Host, address: u64) -> u64 {
    let bytes = get(host, address, 8);
    u64::from_le_bytes(bytes.bytes().try_into().unwrap())
}

/// Address of `argv`, from the second parameter of `main`.
fn argv(host: &Host) -> u64 {
    host.thread().registers[1].bits
}

#[test]
fn arguments_environment_and_auxiliary_vector_are_laid_out() {
    let mut bench = Bench::new(Script::default().program());
    let config = HostConfig {
        args: vec![
            Argument::Concrete(b"prog".to_vec()),
            Argument::Concrete(b"-x".to_vec()),
        ],
        env: vec![Argument::Concrete(b"HOME=/root".to_vec())],
        ..HostConfig::default()
    };
    let host = bench.boot(&config);
    let argv = argv(&host);
    assert_eq!(host.thread().registers[0].bits, 2);
    assert_eq!(word(&host, argv - 8), 2);
    assert_eq!(get(&host, word(&host, argv), 5).bytes(), b"prog\0");
    assert_eq!(get(&host, word(&host, argv + 8), 3).bytes(), b"-x\0");
    assert!(host.memory().object_at(word(&host, argv + 8), 4).is_none());
    assert_eq!(word(&host, argv + 16), 0);
    let envp = argv + 24;
    assert_eq!(host.thread().registers[2].bits, envp);
    assert_eq!(get(&host, word(&host, envp), 11).bytes(), b"HOME=/root\0");
    let mut auxiliary = envp + 16;
    let mut keys = Vec::new();
    while word(&host, auxiliary) != 0 {
        keys.push((word(&host, auxiliary), word(&host, auxiliary + 8)));
        auxiliary += 16;
    }
    let value = |key: u64| {
        keys.iter()
            .find(|entry| entry.0 == key)
            .map(|entry| entry.1)
    };
    assert_eq!(value(6), Some(4096));
    assert_eq!(value(17), Some(100));
    assert_eq!(value(31), Some(word(&host, argv)));
    assert_eq!(value(33), None);
    assert!(host.memory().object_at(value(25).unwrap(), 16).is_some());
}

#[test]
fn symbolic_arguments_are_named_as_in_klee() {
    let mut bench = Bench::new(Script::default().program());
    let config = HostConfig {
        args: vec![
            Argument::Concrete(b"prog".to_vec()),
            Argument::Symbolic { max_len: 3 },
            Argument::SymbolicMany {
                min: 1,
                max: 3,
                max_len: 2,
            },
        ],
        files: vec![FileSpec::symbolic("A", 5)],
        stdin: Stdin::Symbolic { size: 4 },
        ..HostConfig::default()
    };
    assert!(Host::boot(&config, None, &mut bench.around()).is_err());
    bench.tape = Tape::default();
    bench.tape.answers.push_back(1);
    let host = bench.boot(&config);
    let inputs = [
        ("arg00", 4),
        ("arg01", 3),
        ("arg02", 3),
        ("A-data", 5),
        ("stdin", 4),
    ];
    let inputs: Vec<_> = inputs.map(|(name, size)| (name.to_owned(), size)).into();
    assert_eq!(bench.tape.inputs, inputs);
    assert_eq!(host.thread().registers[0].bits, 4);
    let string = get(&host, word(&host, argv(&host) + 8), 4);
    assert!(string.has_symbolic(2, 1) && !string.has_symbolic(3, 1));
    assert_eq!(string.bytes()[3], 0);
    let mut terms = 0;
    host.for_each_term(&mut |_| terms += 1);
    // Arguments are in memory and in `/proc`.
    assert_eq!(terms, 2 * (3 + 2 + 2) + 5 + 4);
}

#[test]
fn two_boots_are_the_same() {
    let random = |bench: &mut Bench| {
        let mut host = bench.boot(&HostConfig::default());
        let at = put(&mut host, &[0; 20]);
        assert_eq!(bench.call(&mut host, "getrandom", &[at, 20, 0]), Ok(20));
        get(&host, at, 20).bytes().to_vec()
    };
    let mut bench = Bench::new(Script::default().program());
    let first = random(&mut bench);
    assert_eq!(first, random(&mut bench));
    assert_ne!(first, [0; 20]);
}

#[test]
fn a_program_without_an_entry_is_refused() {
    let mut program = Script::default().program();
    program.symbols.clear();
    let mut bench = Bench::new(program);
    assert!(Host::boot(&HostConfig::default(), None, &mut bench.around()).is_err());
}
