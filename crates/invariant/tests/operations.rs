//! Each operation of the language, on known and on symbolic data.

mod support;

use everett_invariant::EvalErrorKind;
use support::both;

const NODES: [&str; 3] = ["client", "server0", "server1"];

const ROWS: support::Rows<'static> = &[
    ("client", "run", "name", b"bob\0xx"),
    ("server0", "1", "n", b"\x05\0\0\0"),
    ("server0", "1", "raw", b"\x01\x80\xff\x7f\x02\x03\x04\x85"),
    ("server1", "1", "n", b"\xfe\xff\xff\xff"),
    ("server1", "2", "n", b"\x07"),
];

fn eval(expression: &str) -> Result<bool, String> {
    let source = format!(
        r#"invariant i() {{
            data n0 = sys.data("server0", 1, "n");
            data n1 = sys.data("server1", "1", "n");
            data raw = sys.data("server0", 1, "raw");
            data name = sys.data("client", "run", "name");
            int five = n0.int();
            int[] ns = int[five, n1.i32(), 7];
            int[] big = ns.filter(n => n >= five);
            return {expression};
        }}
        bool positive(int n) {{ return n > 0; }}
        int twice(int n) {{ return 2 * n; }}
        "#
    );
    match both(&source, &NODES, ROWS) {
        Ok(holds) => Ok(holds),
        Err(error) => {
            assert_eq!(error.kind, EvalErrorKind::Undefined);
            Err(error.message)
        }
    }
}

fn holds(expressions: &[&str]) {
    for expression in expressions {
        assert_eq!(eval(expression), Ok(true), "{expression}");
        let opposite = format!("!({expression})");
        assert_eq!(eval(&opposite), Ok(false), "{opposite}");
    }
}

fn fails(expressions: &[(&str, &str)]) {
    for (expression, part) in expressions {
        let error = eval(expression).expect_err(expression);
        assert!(error.contains(part), "{expression}: {error}");
    }
}

#[test]
fn arithmetic() {
    holds(&[
        "five + 2 == 7 && five - 7 == -2 && five * five == 25 && -five == 0 - 5",
        "17 / five == 3 && 17 % five == 2 && -17 / five == -3 && -17 % five == -2",
        "(five & 4) == 4 && (five | 2) == 7 && (five ^ 1) == 4 && five << 2 == 20 && -16 >> 2 == -4",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 3 - 2 == 5 && 0x10 == 16",
    ]);
    fails(&[
        ("five / (five - 5) == 0", "division by zero"),
        ("five % (five - 5) == 0", "division by zero"),
        ("five + 9223372036854775807 > 0", "does not fit"),
        ("five * 9223372036854775807 > 0", "does not fit"),
        ("-five - 9223372036854775807 < 0", "does not fit"),
        ("1 << (five + 59) == 0", "0 to 63"),
        ("1 >> (five - 6) == 0", "0 to 63"),
    ]);
}

#[test]
fn comparisons_and_connectives() {
    holds(&[
        "five < 6 && five <= 5 && five > 4 && five >= 5 && five == 5 && five != 6",
        "n1.i32() < 0 && n1.u32() > 0",
        "true && !false && (false || true)",
        "(five == 6 implies five == 7) && (true implies five == 5)",
        "!(five == 5 implies false)",
        "(five > 3 ? 1 : 2) == 1 && (five < 3 ? \"a\" : \"bc\") == \"bc\"",
        // The right side is not evaluated if the left one decides.
        "five == 5 || 1 / (five - 5) == 0",
        "!(five != 5 && 1 / (five - 5) == 0)",
        "five != 5 implies 1 / (five - 5) == 0",
        "(five == 5) == true && (five == 6) == (five == 7)",
    ]);
}

#[test]
fn numbers_from_data() {
    holds(&[
        "raw.u8() == 1 && raw.u8(1) == 128 && raw.i8(1) == -128 && raw[2] == 255",
        "raw.u16() == 0x8001 && raw.i16() == -0x7fff && raw.u16be() == 0x0180 && raw.u16le(2) == 0x7fff",
        "raw.u32() == 0x7fff8001 && raw.u32be() == 0x0180ff7f && raw.i32(4) == -0x7afbfcfe",
        "raw.i64() == -8861954857486024703 && raw.u64be() == 0x0180ff7f02030485",
        "n1.int() == -2 && n1.uint() == 0xfffffffe && sys.data(\"server1\", 2, \"n\").int() == 7",
        "raw[five] == 3 && raw.u8(five - 1) == 2",
    ]);
    fails(&[
        ("n0.u32(1) == 0", "too short"),
        ("n0.u64() == 0", "too short"),
        ("n0[five] == 0", "too short"),
        ("n0[five - 6] == 0", "too short"),
        ("raw.u64() == 0", "does not fit"),
        ("raw.slice(0, 0).int() == 0", "1 to 8"),
        ("(raw + raw).int() == 0", "1 to 8"),
    ]);
}

#[test]
fn strings_and_data() {
    holds(&[
        "name.string() == \"bob\" && name.string().size() == 3 && name.size() == 6",
        "\"server\" + \"0\" == \"server0\" && name.string() + \"by\" == \"bobby\"",
        "\"bob\".data() == name.slice(0, 3) && \"bob\".data() != name",
        "name.string().startsWith(\"bo\") && !name.string().startsWith(\"bobb\")",
        "name.string().endsWith(\"ob\") && !name.string().endsWith(\"bo\")",
        "name.string().contains(\"o\") && name.string().contains(\"\") && !name.string().contains(\"x\")",
        "name.contains(\"xx\".data()) && name.startsWith(\"bob\\0\".data())",
        "name.slice(1, five - 2).string() == \"ob\" && name.slice(five, five + 1) == \"x\".data()",
        "(five == 5 ? name.string() : \"a longer one\").size() == 3",
    ]);
    fails(&[
        ("name.slice(4, five - 2) == name", "slice"),
        ("name.slice(0, five + 2) == name", "slice"),
        ("name.slice(0 - five, 2) == name", "slice"),
        (
            "(five == 5 ? name.string() : \"a longer one\")[3] == 0",
            "too short",
        ),
    ]);
}

#[test]
fn arrays() {
    holds(&[
        "ns.size() == 3 && ns[0] == 5 && ns[1] == -2 && ns[five - 3] == 7",
        "ns.sum() == 10 && ns.min() == -2 && ns.max() == 7 && int[].sum() == 0",
        "ns.all(n => n > -3) && !ns.all(positive) && ns.any(n => n == five) && !ns.any(n => n > 7)",
        "ns.count(positive) == 2 && ns.count(n => n < five) == 1",
        "big.size() == 2 && big.sum() == 12 && big.min() == 5 && big.max() == 7 && big[1] == 7",
        "ns.map(twice).sum() == 20 && ns.map(n => n == five).count(b => b) == 1",
        "ns.contains(7) && !ns.contains(8) && big.contains(five) && !big.contains(-2)",
        "int[5, five, 5].equalElements() && !ns.equalElements() && !big.equalElements()",
        "ns.distinctElements() && !(ns + int[five]).distinctElements() && int[].distinctElements()",
        "big == int[5, 7] && big + int[1] == int[five, 7, 1] && ns != big",
        "int[][int[1], big].map(a => a.size()).sum() == 3 && int[][].size() == 0",
        "big.filter(n => n > five).equalElements()",
        "(five > 4 ? big : ns).sum() == 12 && (five > 5 ? ns : int[1]).size() == 1",
        "bool[true, five == 5].equalElements() && string[\"a\", \"b\"].map(s => s.size()).sum() == 2",
    ]);
    fails(&[
        ("ns[3] == 0", "out of range"),
        ("ns[five] == 0", "out of range"),
        ("big[2] == 0", "out of range"),
        ("big[-1] == 0", "out of range"),
        ("ns.filter(n => n > 100).min() == 0", "least of an array"),
        ("int[].max() == 0", "greatest of an array"),
        ("ns.map(n => 1 / (n - five)).sum() == 0", "division"),
        ("(ns + int[9223372036854775807]).sum() == 0", "does not fit"),
    ]);
}

#[test]
fn the_world() {
    holds(&[
        "sys.nodes() == string[\"client\", \"server0\", \"server1\"]",
        "sys.index(\"server1\") == 2 && sys.nodes().map(n => sys.index(n)).sum() == 3",
        "sys.states(\"server1\") == string[\"1\", \"2\"] && sys.states(\"client\") == string[\"run\"]",
        "sys.keys(\"server0\", 1) == string[\"n\", \"raw\"] && sys.keys(\"server0\", \"3\").size() == 0",
        "sys.has(\"server0\", 1, \"n\") && !sys.has(\"server0\", 2, \"n\") && !sys.has(\"client\", 1, \"n\")",
        "sys.nodes().filter(n => n.startsWith(\"server\")).all(n => sys.data(n, 1, \"n\").size() == 4)",
        // Nodes, states and keys that depend on data.
        "sys.data(\"server\" + (five == 5 ? \"0\" : \"1\"), five - 4, \"n\").int() == 5",
        "sys.has(\"server1\", five - 3, \"n\") && !sys.has(\"server1\", five, \"n\")",
        "sys.keys(\"server0\", five - 4).size() == 2",
        "sys.states(five == 5 ? \"server1\" : \"client\").size() == 2",
        "sys.index(five == 6 ? \"client\" : \"server1\") == 2",
    ]);
    fails(&[
        (
            "sys.data(\"server0\", 9, \"n\").int() == 0",
            "shows no data",
        ),
        (
            "sys.data(\"server0\", five, \"n\").int() == 0",
            "shows no data",
        ),
        ("sys.has(\"servr\", 1, \"n\")", "no node `servr`"),
        ("sys.index(name.string()) == 0", "no node"),
    ]);
}

#[test]
fn statements() {
    let source = r#"
        invariant i() {
            int five = sys.data("server0", 1, "n").int();
            int sum = 0;
            int[] odd = int[];
            for (int n : int[1, 2, five, 4].filter(n => n < five + 1)) {
                if (n == 2) {
                    sum = sum + 100;
                } else if (n == five) {
                    sum = sum + 1000;
                    odd = odd + int[n];
                } else {
                    int more = n;
                    sum = sum + more;
                }
            }
            if (five > 100) { return false; }
            return sum == 1105 && odd == int[5] && first(int[3, five, 7], 4) == 5 && first(int[], 0) == -1;
        }
        int first(int[] ns, int above) {
            for (int n : ns) {
                if (n > above) { return n; }
            }
            return -1;
        }
    "#;
    assert_eq!(both(source, &NODES, ROWS), Ok(true));
}

#[test]
fn failures_behind_a_return_do_not_count() {
    let source = r#"
        invariant i() {
            int five = sys.data("server0", 1, "n").int();
            if (five == 5) { return true; }
            int x = 1 / (five - 5);
            for (int n : int[1, 2]) { if (n == five) { return false; } }
            return x == 0;
        }
    "#;
    assert_eq!(both(source, &NODES, ROWS), Ok(true));
}

#[test]
fn recursion_and_loops_without_end_are_stopped() {
    for body in ["forever(1) == 0", "huge().size() == 0"] {
        let source = format!(
            r#"invariant i() {{ return {body}; }}
            int forever(int n) {{ return forever(n + 1); }}
            int[] huge() {{
                int[] a = int[1, 2];
                for (int x : int[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26]) {{
                    a = a + a;
                }}
                return a;
            }}"#
        );
        let error = support::known(&source, &NODES, ROWS).expect_err(body);
        assert_eq!(error.kind, EvalErrorKind::Limit, "{error}");
        assert!(error.place.line > 1, "{error}");
    }
}

#[test]
fn recursion_ends_on_known_data_and_is_stopped_where_it_depends_on_symbolic_data() {
    let source = r#"
        invariant i() { return down(sys.data("server0", 1, "n").int()) == 5; }
        int down(int n) { if (n <= 0) { return 0; } return 1 + down(n - 1); }
    "#;
    assert_eq!(support::known(source, &NODES, ROWS), Ok(true));
    assert!(support::symbolic(source, &NODES, ROWS, &|_| true, &[]).is_none());
}
