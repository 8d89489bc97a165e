//! Random invariants on random worlds: evaluating on symbolic bytes, and then the terms under
//! concrete values, gives the same as evaluating on the concrete bytes.

mod support;

use everett_invariant::EvalErrorKind;
use proptest::prelude::*;
use std::cell::Cell;

/// Generates an invariant from random choices; shorter tapes give smaller ones.
struct Writer<'a> {
    tape: &'a [u8],
    at: Cell<usize>,
    names: Cell<usize>,
}

#[derive(Clone, Default)]
struct Scope {
    ints: Vec<String>,
    datas: Vec<String>,
    arrays: Vec<String>,
    strings: Vec<String>,
}

impl Writer<'_> {
    fn choose(&self, count: u8) -> u8 {
        let at = self.at.get();
        self.at.set(at + 1);
        self.tape.get(at).map_or(0, |byte| byte % count)
    }

    fn pick<'v>(&self, of: &'v [String]) -> Option<&'v str> {
        let count = u8::try_from(of.len()).ok().filter(|count| *count > 0)?;
        Some(&of[usize::from(self.choose(count))])
    }

    fn fresh(&self) -> String {
        self.names.set(self.names.get() + 1);
        format!("v{}", self.names.get())
    }

    fn int(&self, scope: &Scope, depth: u8) -> String {
        let leaf = |writer: &Writer<'_>| match writer.pick(&scope.ints) {
            Some(name) if writer.choose(3) > 0 => name.to_owned(),
            _ => ["0", "1", "2", "97", "-1", "255", "9223372036854775807"]
                [usize::from(writer.choose(7))]
            .to_owned(),
        };
        if depth == 0 {
            return leaf(self);
        }
        let d = depth - 1;
        match self.choose(14) {
            0 | 1 => leaf(self),
            2 => {
                let operator = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]
                    [usize::from(self.choose(10))];
                format!("({} {operator} {})", self.int(scope, d), self.int(scope, d))
            }
            3 => format!("{}.size()", self.data(scope, d)),
            4 => {
                let read = ["u8", "i8", "u16", "i16be", "u32", "i32be", "u64", "i64be"]
                    [usize::from(self.choose(8))];
                format!(
                    "{}.{read}({})",
                    self.data(scope, d),
                    self.int(scope, d.min(1))
                )
            }
            5 => format!("{}[{}]", self.data(scope, d), self.int(scope, d.min(1))),
            6 => format!(
                "{}.{}()",
                self.data(scope, d),
                ["int", "uint"][usize::from(self.choose(2))]
            ),
            7 => {
                let operation = ["sum", "min", "max", "size"][usize::from(self.choose(4))];
                format!("{}.{operation}()", self.array(scope, d))
            }
            8 => format!("{}[{}]", self.array(scope, d), self.int(scope, d.min(1))),
            9 => {
                let (x, inner) = self.with_int(scope);
                format!(
                    "{}.count({x} => {})",
                    self.array(scope, d),
                    self.bool(&inner, d)
                )
            }
            10 => format!(
                "({} ? {} : {})",
                self.bool(scope, d),
                self.int(scope, d),
                self.int(scope, d)
            ),
            11 => format!("f({}, {})", self.int(scope, d), self.data(scope, d)),
            12 => format!("{}.size()", self.string(scope, d)),
            _ => format!("sys.index({})", self.string(scope, d)),
        }
    }

    fn with_int(&self, scope: &Scope) -> (String, Scope) {
        let (name, mut inner) = (self.fresh(), scope.clone());
        inner.ints.push(name.clone());
        (name, inner)
    }

    fn data(&self, scope: &Scope, depth: u8) -> String {
        let leaf = |writer: &Writer<'_>| match writer.pick(&scope.datas) {
            Some(name) => name.to_owned(),
            None => "\"a\\0b\".data()".to_owned(),
        };
        if depth == 0 {
            return leaf(self);
        }
        let d = depth - 1;
        match self.choose(7) {
            0 | 1 => leaf(self),
            2 => format!(
                "{}.slice({}, {})",
                self.data(scope, d),
                self.int(scope, d),
                self.int(scope, d)
            ),
            3 => format!("({} + {})", self.data(scope, d), self.data(scope, d)),
            4 => format!(
                "({} ? {} : {})",
                self.bool(scope, d),
                self.data(scope, d),
                self.data(scope, d)
            ),
            5 => format!("{}.data()", self.string(scope, d)),
            _ => format!(
                "sys.data({}, {}, \"x\")",
                self.node(scope, d),
                self.int(scope, d)
            ),
        }
    }

    fn string(&self, scope: &Scope, depth: u8) -> String {
        let leaf = |writer: &Writer<'_>| match writer.pick(&scope.strings) {
            Some(name) if writer.choose(2) > 0 => name.to_owned(),
            _ => ["\"a\"", "\"\"", "\"aa\"", "\"x\""][usize::from(writer.choose(4))].to_owned(),
        };
        if depth == 0 {
            return leaf(self);
        }
        let d = depth - 1;
        match self.choose(5) {
            0 => leaf(self),
            1 | 2 => format!("{}.string()", self.data(scope, d)),
            3 => format!("({} + {})", self.string(scope, d), self.string(scope, d)),
            _ => format!(
                "({} ? {} : {})",
                self.bool(scope, d),
                self.string(scope, d),
                self.string(scope, d)
            ),
        }
    }

    fn node(&self, scope: &Scope, depth: u8) -> String {
        match self.choose(3) {
            0 => "\"a\"".to_owned(),
            1 => "\"aa\"".to_owned(),
            _ => self.string(scope, depth),
        }
    }

    fn array(&self, scope: &Scope, depth: u8) -> String {
        let leaf = |writer: &Writer<'_>| match writer.pick(&scope.arrays) {
            Some(name) => name.to_owned(),
            None => "int[1, 2]".to_owned(),
        };
        if depth == 0 {
            return leaf(self);
        }
        let d = depth - 1;
        match self.choose(8) {
            0 => leaf(self),
            1 => format!("int[{}, {}]", self.int(scope, d), self.int(scope, d)),
            2 | 3 => {
                let (x, inner) = self.with_int(scope);
                format!(
                    "{}.filter({x} => {})",
                    self.array(scope, d),
                    self.bool(&inner, d)
                )
            }
            4 => {
                let (x, inner) = self.with_int(scope);
                format!(
                    "{}.map({x} => {})",
                    self.array(scope, d),
                    self.int(&inner, d)
                )
            }
            5 => format!("({} + {})", self.array(scope, d), self.array(scope, d)),
            6 => format!(
                "({} ? {} : {})",
                self.bool(scope, d),
                self.array(scope, d),
                self.array(scope, d)
            ),
            _ => {
                let (x, mut inner) = (self.fresh(), scope.clone());
                inner.datas.push(x.clone());
                format!("d.map({x} => {})", self.int(&inner, d))
            }
        }
    }

    fn bool(&self, scope: &Scope, depth: u8) -> String {
        if depth == 0 {
            let operator = ["<", "<=", ">", ">=", "==", "!="][usize::from(self.choose(6))];
            return format!("({} {operator} {})", self.int(scope, 0), self.int(scope, 0));
        }
        let d = depth - 1;
        match self.choose(13) {
            0 | 1 => {
                let operator = ["<", "<=", ">", ">=", "==", "!="][usize::from(self.choose(6))];
                format!("({} {operator} {})", self.int(scope, d), self.int(scope, d))
            }
            2 => {
                let operator = ["&&", "||", "implies"][usize::from(self.choose(3))];
                format!(
                    "({} {operator} {})",
                    self.bool(scope, d),
                    self.bool(scope, d)
                )
            }
            3 => format!("!{}", self.bool(scope, d)),
            4 => format!("({} == {})", self.data(scope, d), self.data(scope, d)),
            5 => format!("({} != {})", self.string(scope, d), self.string(scope, d)),
            6 => format!("({} == {})", self.array(scope, d), self.array(scope, d)),
            7 => {
                let test = ["equalElements", "distinctElements"][usize::from(self.choose(2))];
                let array = match self.choose(2) {
                    0 => "d".to_owned(),
                    _ => self.array(scope, d),
                };
                format!("{array}.{test}()")
            }
            8 => {
                let (x, inner) = self.with_int(scope);
                let test = ["all", "any"][usize::from(self.choose(2))];
                format!(
                    "{}.{test}({x} => {})",
                    self.array(scope, d),
                    self.bool(&inner, d)
                )
            }
            9 => format!("{}.contains({})", self.array(scope, d), self.int(scope, d)),
            10 => {
                let test = ["startsWith", "endsWith", "contains"][usize::from(self.choose(3))];
                format!(
                    "{}.{test}({})",
                    self.string(scope, d),
                    self.string(scope, d)
                )
            }
            11 => format!(
                "sys.has({}, {}, \"x\")",
                self.node(scope, d),
                self.int(scope, d)
            ),
            _ => {
                let (x, mut inner) = (self.fresh(), scope.clone());
                inner.datas.push(x.clone());
                format!("d.all({x} => {})", self.bool(&inner, d))
            }
        }
    }

    fn statements(&self, scope: &mut Scope, depth: u8) -> String {
        let mut text = String::new();
        for _ in 0..self.choose(4) {
            text += &self.statement(scope, depth);
        }
        text
    }

    fn statement(&self, scope: &mut Scope, depth: u8) -> String {
        match self.choose(6) {
            0 => {
                let (name, value) = (self.fresh(), self.int(scope, 2));
                scope.ints.push(name.clone());
                format!("int {name} = {value};\n")
            }
            1 => format!("n = {};\n", self.int(scope, 2)),
            2 => format!("ns = {};\n", self.array(scope, 2)),
            3 if depth > 0 => format!(
                "if ({}) {{\n{}}} else {{\n{}}}\n",
                self.bool(scope, 2),
                self.statements(&mut scope.clone(), depth - 1),
                self.statements(&mut scope.clone(), depth - 1)
            ),
            4 if depth > 0 => {
                let (x, mut inner) = self.with_int(scope);
                let array = self.array(scope, 2);
                let body = self.statements(&mut inner, depth - 1);
                format!("for (int {x} : {array}) {{\n{body}}}\n")
            }
            _ => format!(
                "if ({}) {{ return {}; }}\n",
                self.bool(scope, 1),
                self.bool(scope, 1)
            ),
        }
    }

    fn file(&self) -> String {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut scope = Scope {
            ints: owned(&["n", "k"]),
            datas: owned(&["e"]),
            arrays: owned(&["ns"]),
            strings: owned(&["s"]),
        };
        let node = Scope {
            strings: owned(&["node"]),
            ..Scope::default()
        };
        let statements = self.statements(&mut scope, 2);
        let result = self.bool(&scope, 3);
        let filter = self.bool(&node, 1);
        let state = self.int(&node, 1);
        let body = self.int(
            &Scope {
                ints: owned(&["a"]),
                datas: owned(&["b"]),
                ..Scope::default()
            },
            0,
        );
        // No `d` outside of the invariant.
        let [filter, state] =
            [filter, state].map(|text| text.replace("d.", "int[1].").replace("f(", "("));
        let filter = if parses(&filter) {
            filter
        } else {
            "true".to_owned()
        };
        let state = if parses_int(&state) {
            state
        } else {
            "1".to_owned()
        };
        format!(
            r#"invariant i(data[] d) : nodes, states, keys {{
                data e = sys.data("a", 1, "x");
                int k = e.int();
                int n = k;
                string s = e.string();
                int[] ns = d.map(x => x.size() > 0 ? x[0] : 3);
                {statements}
                return {result};
            }}
            int f(int a, data b) {{ if (a == 1) {{ return b.u8(); }} return {body}; }}
            string[] nodes() {{ return sys.nodes().filter(node => {filter}); }}
            int[] states(string node) {{ return int[1, {state}]; }}
            string[] keys(string node, int state) {{ return string["x"]; }}"#
        )
    }
}

fn parses(condition: &str) -> bool {
    let source = format!("bool f(string node) {{ return {condition}; }}");
    everett_invariant::parse(&source).is_ok()
}

fn parses_int(value: &str) -> bool {
    let source = format!("int f(string node) {{ return {value}; }}");
    everett_invariant::parse(&source).is_ok()
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(0u8),
        Just(1),
        Just(2),
        Just(b'a'),
        Just(255),
        any::<u8>()
    ];
    proptest::collection::vec(byte, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn terms_say_what_the_bytes_say(
        tape in proptest::collection::vec(any::<u8>(), 0..120),
        rows in proptest::collection::vec(data(), 4),
        other in proptest::collection::vec(data(), 4),
        mask in any::<u32>(),
    ) {
        let writer = Writer { tape: &tape, at: Cell::new(0), names: Cell::new(0) };
        let source = writer.file();
        let nodes = ["a", "aa", "b"];
        // Other values of the symbolic bytes of the same world.
        let mut changed = rows.clone();
        let mut at = 0;
        for (row, values) in changed.iter_mut().zip(&other) {
            for (i, byte) in row.iter_mut().enumerate() {
                if mask >> at & 1 == 1 {
                    *byte = values[i % values.len()];
                }
                at += 1;
            }
        }
        let worlds = [&rows, &changed].map(|rows| [
            ("a", "1", "x", rows[0].as_slice()),
            ("a", "2", "x", rows[1].as_slice()),
            ("aa", "1", "x", rows[2].as_slice()),
            ("b", "1", "x", rows[3].as_slice()),
        ]);
        let flat: Vec<u8> = changed.concat();
        let symbolic = |at: usize| mask >> at & 1 == 1;
        let results = support::symbolic(&source, &nodes, &worlds[0], &symbolic, &[flat]);
        if let Some(results) = results {
            for (world, result) in worlds.iter().zip(results) {
                let plain = match support::known(&source, &nodes, world) {
                    Err(error) if error.kind == EvalErrorKind::Limit => continue,
                    plain => plain.map_err(|_| ()),
                };
                prop_assert_eq!(plain, result, "{}", source);
            }
        }
    }
}
