//! The fuzz targets: seeds, parsers, and properties of the parsed results.

use everett_engine::Trace;
use everett_expr::{Arena, BinaryOp, CompareOp, EvalScratch, codec};
use everett_invariant::{Byte, Exposed, FieldPath, evaluate, parse};
use everett_ir::bitstream::{BitReader, ReadError, StreamEntry};
use everett_ir::lower::{LowerOptions, lower};
use everett_net::Route;
use everett_report::KTest;
use everett_scenario::{NameContext, OptionKey, OptionKind};
use everett_vm::{Image, external};
use std::path::Path;

use crate::mutate::{Random, Spans};

/// A fuzz target.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it parses.
    pub what: &'static str,
    /// Initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The records of an input, if the format has any.
    pub spans: fn(&[u8]) -> Spans,
    /// Parses an input; `true` if it was accepted. A panic is a bug.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "reader",
        what: "bitcode: read, lowered, verified, made an image",
        seeds: bitcode,
        spans: records,
        run: read_bitcode,
    },
    Target {
        name: "codec",
        what: "terms: decoded, evaluated, encoded and decoded again",
        seeds: terms,
        spans: no_records,
        run: read_terms,
    },
    Target {
        name: "ktest",
        what: "test files of KLEE: read and written again",
        seeds: ktests,
        spans: no_records,
        run: read_ktest,
    },
    Target {
        name: "trace",
        what: "traces: read and written again",
        seeds: traces,
        spans: no_records,
        run: read_trace,
    },
    Target {
        name: "invariant",
        what: "invariants: read, and evaluated on symbolic data",
        seeds: invariants,
        spans: no_records,
        run: read_invariants,
    },
    Target {
        name: "path",
        what: "paths to watched data: read, written and read again",
        seeds: paths,
        spans: no_records,
        run: read_path,
    },
    Target {
        name: "scenario",
        what: "scenarios: read, shown, drawn, all pairs of hosts routed",
        seeds: scenarios,
        spans: no_records,
        run: read_scenario,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

fn no_records(_: &[u8]) -> Spans {
    Spans::new()
}

/// Bitcode from several compilers, from the tests of the reader.
fn bitcode() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ir/tests/data");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "bc"));
    paths.sort();
    let files = paths.iter().filter_map(|path| std::fs::read(path).ok());
    files.collect()
}

/// The records of bitcode, by block and code.
fn records(bytes: &[u8]) -> Spans {
    let mut spans = Spans::new();
    // After the magic number; what cannot be parsed is left to the other mutations.
    let _ = walk(&mut BitReader::new(bytes, 4), &mut spans);
    spans
}

fn walk(reader: &mut BitReader<'_>, spans: &mut Spans) -> Result<(), ReadError> {
    let mut blocks = Vec::new();
    loop {
        if blocks.is_empty() && reader.at_end() {
            return Ok(());
        }
        let start = reader.position();
        match reader.next_entry()? {
            StreamEntry::SubBlock(id) => {
                reader.enter(id)?;
                blocks.push(id);
            }
            StreamEntry::EndBlock => {
                blocks.pop();
            }
            StreamEntry::Record(code) => {
                let block = blocks.last().copied().unwrap_or(u32::MAX);
                let places = spans.entry((block, code)).or_default();
                places.push((start, reader.position()));
            }
        }
    }
}

fn read_bitcode(bytes: &[u8]) -> bool {
    let Ok(modules) = everett_ir::read_modules(bytes) else {
        return false;
    };
    let mut accepted = false;
    for module in &modules {
        for promote in [false, true] {
            let options = LowerOptions {
                is_vm_operation: &external::is_replaced,
                is_intercepted: &|_| false,
                promote,
                check_subobjects: false,
            };
            let Ok(program) = lower(module, &options) else {
                continue;
            };
            match Image::new(program) {
                Ok(_) => accepted = true,
                // Lowered code must verify, whatever the input.
                Err(error) => panic!("{error}"),
            }
        }
    }
    accepted
}

/// Some terms, encoded.
fn terms() -> Vec<Vec<u8>> {
    (0..12)
        .map(|seed| random_terms(&mut Random::new(seed)))
        .collect()
}

fn random_terms(random: &mut Random) -> Vec<u8> {
    let mut arena = Arena::new();
    let array = arena.array(0, "input", 16);
    let mut bytes = Vec::new();
    for index in 0..6 {
        bytes.push(arena.read(array, index));
    }
    let mut words = vec![arena.constant(32, random.number() & 0xffff_ffff)];
    for chunk in bytes.windows(4) {
        words.push(arena.concat_bytes(chunk));
    }
    for _ in 0..20 {
        let (a, b) = (
            words[random.below(words.len())],
            words[random.below(words.len())],
        );
        let term = match random.below(4) {
            0 => {
                let condition = arena.compare(CompareOp::Ult, a, b);
                arena.ite(condition, b, a)
            }
            1 => {
                let (wide, low) = (arena.concat(a, b), random.below(32) as u32);
                arena.extract(wide, low, 32)
            }
            2 => {
                let part = arena.extract(a, 3, 13);
                arena.sext(part, 32)
            }
            _ => arena.binary(BinaryOp::ALL[random.below(13)], a, b),
        };
        words.push(term);
    }
    let roots = &words[words.len() - 3..];
    codec::encode(&arena, roots)
}

fn read_terms(bytes: &[u8]) -> bool {
    let mut arena = Arena::new();
    let Ok(roots) = codec::decode(&mut arena, bytes) else {
        return false;
    };
    let values = |_: everett_expr::ArrayId, index: u32| index.wrapping_mul(37) as u8;
    let mut scratch = EvalScratch::new();
    let again = codec::encode(&arena, &roots);
    let mut other = Arena::new();
    let copies = codec::decode(&mut other, &again);
    let copies = copies.unwrap_or_else(|error| panic!("what was written is not read: {error}"));
    assert_eq!(roots.len(), copies.len());
    for (root, copy) in roots.iter().zip(&copies) {
        assert_eq!(arena.width(*root), other.width(*copy));
        let here = arena.eval_limbs(*root, &values, &mut scratch).to_vec();
        let there = other
            .eval_limbs(*copy, &values, &mut EvalScratch::new())
            .to_vec();
        assert_eq!(
            here, there,
            "a term has another value after its way through bytes"
        );
    }
    true
}

fn ktests() -> Vec<Vec<u8>> {
    let object = |name: &str, size: usize| (name.to_owned(), vec![7u8; size]);
    let tests = [
        KTest {
            args: Vec::new(),
            objects: Vec::new(),
        },
        KTest {
            args: vec!["./program".to_owned(), "--sym-arg".to_owned()],
            objects: vec![
                object("arg0", 4),
                object("stdin", 64),
                object("model_version", 0),
            ],
        },
    ];
    tests.iter().map(KTest::to_bytes).collect()
}

fn read_ktest(bytes: &[u8]) -> bool {
    let Ok(test) = KTest::from_bytes(bytes) else {
        return false;
    };
    assert_eq!(KTest::from_bytes(&test.to_bytes()), Ok(test));
    true
}

fn traces() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"inputs":[{"name":"b","bytes":"00ff10"},{"name":"ä","bytes":""}]}"#,
        r#"{"inputs":[],"choices":[{"site":"fault:read:EIO,EINTR","alternatives":3,"picked":1}],"pending":{"answered":12,"excluded":[1,2],"halvings":4,"depth":4}}"#,
        r#"{"inputs":[],"end":{"exit":3,"output":["0:cbf29ce484222325","1:00"]}}"#,
        r#"{"inputs":[],"end":{"signal":11,"finding":"x","output":["",""]}}"#,
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn read_trace(bytes: &[u8]) -> bool {
    let Ok(trace) = serde_json::from_slice::<Trace>(bytes) else {
        return false;
    };
    let text = serde_json::to_vec(&trace).unwrap_or_else(|error| panic!("{error}"));
    let again: Trace = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, trace);
    true
}

/// The examples of the manual, and one with every kind of operation.
fn invariants() -> Vec<Vec<u8>> {
    let manual = include_str!("../../../docs/invariants.md");
    let blocks = manual.split("```minvariant\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let operations = r#"
        at 5ms, eventually invariant all(data[] d) : nodes, states, keys {
            int[] ns = d.filter(e => e.size() >= 2).map(e => e.u16be(0) - e[1] * 3);
            int n = ns.size() > 0 ? ns.min() : ns.sum();
            for (data e : d) { if (e.string().contains("a") && n / 2 > -3) { return true; } else { n = n << 1; } }
            return ns == int[1, n] || f("x" + d[0].slice(0, 1).string(), n) implies !ns.equalElements();
        }
        bool f(string s, int n) { return n < 1 || s.endsWith("b") || f(s + "a", n - 1); }
        string[] nodes() { return sys.nodes(); }
        string[] states(string node) { return sys.states(node); }
        string[] keys(string node, string state) { return sys.keys(node, state); }
    "#;
    let all = blocks.chain([operations]);
    all.map(|text| text.as_bytes().to_vec()).collect()
}

fn read_invariants(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let invariants = match parse(text) {
        Ok(invariants) => invariants,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let mut arena = Arena::new();
    let array = arena.array(0, "shown", 6);
    let mut view = Exposed::new();
    for (node, name) in ["server", "bank1"].iter().enumerate() {
        view.add_node(*name);
        let terms = (0..3).map(|i| arena.read(array, 3 * node as u32 + i));
        let mut data: Vec<Byte> = terms.map(Byte::Term).collect();
        data.push(Byte::Known(b'a'));
        view.expose(node, "1", "decision", data.clone());
        view.expose(node, "running", "account/1", data);
    }
    for invariant in &invariants {
        let _ = invariant.place().to_string();
        match evaluate(invariant, &view, &mut arena) {
            Ok(verdict) => assert_eq!(arena.width(verdict.holds), 1),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    true
}

fn paths() -> Vec<Vec<u8>> {
    let texts = ["count", "server.table.count", "queue[3]->next.data[0]"];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn read_path(bytes: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(bytes).map(FieldPath::parse) else {
        return false;
    };
    let Ok(path) = path else {
        return false;
    };
    let again = FieldPath::parse(&path.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, path);
    true
}

/// The examples of the documentation.
fn scenarios() -> Vec<Vec<u8>> {
    let document = include_str!("../../../docs/scenarios.md");
    let parts = document.split("```toml\n").skip(1);
    let blocks = parts.filter_map(|part| part.split_once("```"));
    blocks.map(|(block, _)| block.as_bytes().to_vec()).collect()
}

/// A context in which every file exists.
struct AnyDisk;

impl NameContext for AnyDisk {
    fn is_file(&self, _: &Path) -> bool {
        true
    }

    fn is_folder(&self, _: &Path) -> bool {
        false
    }

    fn options(&self) -> Vec<OptionKey> {
        let number = OptionKind::Number { most: u64::MAX };
        let rows = [
            ("limits", "time", OptionKind::Duration),
            ("limits", "memory", OptionKind::Size),
            ("limits", "paths", number),
            ("search", "order", OptionKind::Texts),
            ("search", "mapping", OptionKind::Text),
            ("host", "faults", number),
            ("host", "wait_all", OptionKind::Flag),
        ];
        let key = |(table, name, kind)| OptionKey {
            table,
            name,
            kind,
            default: None,
        };
        rows.map(key).to_vec()
    }
}

fn read_scenario(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let scenario = match everett_scenario::parse(text, Path::new("s.toml"), &[], &AnyDisk) {
        Ok(scenario) => scenario,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return false;
        }
    };
    assert!(!everett_scenario::show(&scenario).is_empty());
    let topology = &scenario.topology;
    assert!(everett_net::dot(topology).ends_with("}\n"));
    assert!(everett_net::svg(topology).ends_with("</svg>\n"));
    let hosts = || scenario.hosts.iter().map(|host| host.index);
    for (from, to) in hosts().flat_map(|from| hosts().map(move |to| (from, to))) {
        for address in topology.addresses(to) {
            match topology.route(from, address) {
                Route::Local => assert_eq!(from, to),
                Route::Host { target, path } => {
                    assert!(target == to && path.latency_ns > 0);
                    assert!(topology.source_for(from, address).is_some());
                }
                Route::Multicast { .. } => panic!("{address} is one host's"),
                Route::Unreachable(_) => assert_ne!(from, to),
            }
        }
    }
    true
}
