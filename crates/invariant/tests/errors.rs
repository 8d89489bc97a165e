//! Typical errors: each is reported at its location, with what was expected.

use everett_expr::Arena;
use everett_invariant::{EvalErrorKind, Exposed, When, evaluate, parse};

/// Texts with the location and a part of the message.
const MISTAKES: &[(&str, usize, usize, &str)] = &[
    ("foo", 1, 1, "expected `invariant`, an annotation"),
    (
        "invariant",
        1,
        10,
        "expected the name of the invariant, found the end",
    ),
    (
        "invariant int() { return true; }",
        1,
        11,
        "`int` is a word of the language",
    ),
    (
        "invariant i { return true; }",
        1,
        13,
        "expected `(` before the parameters, found `{`",
    ),
    (
        "invariant i() { return true }",
        1,
        28,
        "expected `;` after the value, found `}`",
    ),
    (
        "invariant i() {\n  return true\n}",
        2,
        14,
        "expected `;` after the value",
    ),
    (
        "invariant i() { return true;",
        1,
        29,
        "expected `}`, found the end",
    ),
    ("invariant i() { }", 1, 17, "without a `return`"),
    (
        "invariant i() { if (true) { return true; } }",
        1,
        44,
        "without a `return`",
    ),
    (
        "invariant i() { for (int x : int[1]) { return true; } }",
        1,
        55,
        "without a `return`",
    ),
    (
        "invariant i() { return 1; }",
        1,
        24,
        "expected bool, found int; compare",
    ),
    (
        "invariant i() { return 1 + true == 2; }",
        1,
        28,
        "expected int, found bool",
    ),
    (
        "invariant i() { return true + true; }",
        1,
        24,
        "cannot be added",
    ),
    ("invariant i() { return x; }", 1, 24, "no variable `x`"),
    (
        "invariant i() { x = 1; return true; }",
        1,
        17,
        "no variable `x`",
    ),
    ("invariant i() { 1; }", 1, 17, "expected a statement"),
    (
        "invariant i() { int x = 1; int x = 2; return true; }",
        1,
        32,
        "already a variable `x`",
    ),
    (
        "invariant i() { if (true) { int x = 1; } return x == 1; }",
        1,
        49,
        "no variable `x`",
    ),
    ("invariant i() { return f(); }", 1, 24, "no function `f`"),
    (
        "invariant i() { return f; } bool f() { return true; }",
        1,
        24,
        "is a function: call it",
    ),
    (
        "invariant i() { return i(); }",
        1,
        24,
        "is an invariant, not a function",
    ),
    (
        "invariant i() { return f(1); } bool f() { return true; }",
        1,
        24,
        "takes 0 arguments, not 1",
    ),
    (
        "bool f() { return true; } int f() { return 1; }",
        1,
        31,
        "already something called `f`",
    ),
    (
        "invariant i() { return sys; }",
        1,
        24,
        "`sys` is not a value",
    ),
    (
        "invariant i() { return sys.hosts(); }",
        1,
        28,
        "`sys` has no `hosts`; it has nodes()",
    ),
    (
        "invariant i() { return sys.nodes(1) == 2; }",
        1,
        28,
        "takes 0 arguments, not 1",
    ),
    (
        "invariant i() { return sys.has(\"a\", true, \"b\"); }",
        1,
        37,
        "expected a state",
    ),
    (
        "invariant i() { return int[1].equal(); }",
        1,
        31,
        "int[] has no operation `equal`; it has size()",
    ),
    (
        "invariant i() { return string[\"a\"].sum() == 1; }",
        1,
        36,
        "string[] has no operation `sum`",
    ),
    (
        "invariant i() { return true.size() == 1; }",
        1,
        29,
        "bool has no operation",
    ),
    (
        "invariant i() { return \"a\".data().u32(1, 2) == 1; }",
        1,
        35,
        "takes at most 1 arguments, not 2",
    ),
    (
        "invariant i() { return \"a\".data() == 1; }",
        1,
        38,
        "expected data, found int",
    ),
    (
        "invariant i() { int x = \"a\".data(); return true; }",
        1,
        25,
        "read numbers from data",
    ),
    (
        "invariant i() { return 1[0] == 1; }",
        1,
        24,
        "int has no elements",
    ),
    (
        "invariant i() { return int[1].all(x => x); }",
        1,
        35,
        "gives bool, this one gives int",
    ),
    (
        "invariant i() { return int[1].all(); }",
        1,
        31,
        "takes one function",
    ),
    (
        "invariant i() { return int[1].all(1); }",
        1,
        35,
        "expected a function",
    ),
    (
        "invariant i() { return int[1].all(f); } bool f(string s) { return true; }",
        1,
        35,
        "must take one argument, of type int",
    ),
    (
        "invariant i() { return x => x; }",
        1,
        24,
        "can stand only as the argument",
    ),
    (
        "invariant i() { return int[true].size() == 1; }",
        1,
        28,
        "expected int, found bool",
    ),
    (
        "invariant i() { return int == 1; }",
        1,
        28,
        "expected `[` and the elements",
    ),
    (
        "invariant i() { return (1; }",
        1,
        26,
        "expected `)` after the expression",
    ),
    (
        "invariant i() { return 1 +; }",
        1,
        27,
        "expected a value, found `;`",
    ),
    (
        "invariant i() { return true ? 1 : false; }",
        1,
        35,
        "expected int, found bool",
    ),
    (
        "invariant i(int x) { return true; }",
        1,
        11,
        "where its data comes from",
    ),
    (
        "invariant i(int x) : a, b, c { return true; }",
        1,
        11,
        "one parameter, of type `data[]`",
    ),
    (
        "invariant i(data[] d) : a { return true; }",
        1,
        27,
        "expected `,` and the functions",
    ),
    (
        "invariant i(data[] d) : a, b, c { return true; }",
        1,
        25,
        "no function `a`",
    ),
    (
        "invariant i(data[] d) : a, a, a { return true; } int[] a() { return int[]; }",
        1,
        25,
        "must take () and give string[]; it takes () and gives int[]",
    ),
    (
        "at noon invariant i() { return true; }",
        1,
        4,
        "expected `end` or a time",
    ),
    (
        "at 5 invariant i() { return true; }",
        1,
        4,
        "expected `end` or a time",
    ),
    (
        "at 5h invariant i() { return true; }",
        1,
        4,
        "not a unit of time",
    ),
    (
        "at 9223372036854775807s invariant i() { return true; }",
        1,
        4,
        "too long",
    ),
    (
        "on fire invariant i() { return true; }",
        1,
        4,
        "expected `change`",
    ),
    (
        "at end, invariant i() { return true; }",
        1,
        9,
        "another annotation",
    ),
    (
        "at end bool f() { return true; }",
        1,
        8,
        "`invariant` or `,`",
    ),
    (
        "bool f(x) { return true; }",
        1,
        8,
        "the type of a parameter (bool, int",
    ),
    ("invariant i() { return true; } $", 1, 32, "no meaning"),
];

#[test]
fn mistakes_are_shown_at_their_place() {
    for (source, line, column, part) in MISTAKES {
        let error = parse(source).expect_err(source);
        let place = (error.place.line, error.place.column);
        assert_eq!(place, (*line, *column), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn the_line_is_shown_with_a_caret() {
    let source = "invariant i() {\n  bool all = sys.nods();\n  return all;\n}\n";
    let error = parse(source).expect_err("a mistake").to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert!(
        lines[0].starts_with("2:18: `sys` has no `nods`; it has nodes(), "),
        "{error}"
    );
    assert_eq!(lines[1], "2 |   bool all = sys.nods();");
    assert_eq!(lines[2], "  |                  ^^^^");
}

#[test]
fn errors_of_an_evaluation_show_the_invariant_and_the_place() {
    let source = "invariant i() {\n  return 1 / 0 == 1;\n}\n";
    let invariants = parse(source).expect("an invariant");
    let invariant = invariants.get("i").expect("i");
    let error = evaluate(invariant, &Exposed::new(), &mut Arena::new()).expect_err("no value");
    assert_eq!(error.kind, EvalErrorKind::Undefined);
    let text = "i: 2:10: division by zero\n2 |   return 1 / 0 == 1;\n  |          ^^^^^";
    assert_eq!(error.to_string(), text);
}

#[test]
fn annotations_and_places_are_kept() {
    let source = "bool f() { return true; }\n\
        at end invariant a() { return f(); }\n\
        at 200ms, at 1min invariant b() { return f(); }\n\
        eventually invariant c() { return f(); }\n\
        on change, at end invariant d() { return f(); }\n\
        invariant e() { return f(); }\n";
    let invariants = parse(source).expect("five invariants");
    let found: Vec<(&str, Vec<When>)> = invariants
        .iter()
        .map(|i| (i.name(), i.when().to_vec()))
        .collect();
    let at = |time_ns| When::At { time_ns };
    assert_eq!(
        found,
        [
            ("a", vec![When::AtEnd]),
            ("b", vec![at(200_000_000), at(60_000_000_000)]),
            ("c", vec![When::Eventually]),
            ("d", vec![When::OnChange, When::AtEnd]),
            ("e", vec![When::OnChange]),
        ]
    );
    let c = invariants.get("c").expect("c");
    assert_eq!((c.place().line, c.place().column), (4, 1));
    assert_eq!(
        &source[c.span().start..c.span().end],
        "eventually invariant c() { return f(); }"
    );
}

#[test]
fn what_is_nested_deep_is_refused_without_using_up_the_stack() {
    let many = |text: &str, count: usize| text.repeat(count);
    let texts = [
        format!("invariant i() {{ return {}1; }}", many("(", 100_000)),
        format!("invariant i() {{ return {}true; }}", many("!", 100_000)),
        format!(
            "invariant i() {{ return 1{} == 1; }}",
            many(" + 1", 100_000)
        ),
        format!(
            "invariant i() {{ return \"a\"{} == 1; }}",
            many(".size()", 100_000)
        ),
        format!(
            "invariant i() {{ return true{}; }}",
            many(" implies true", 100_000)
        ),
        format!("invariant i() {{ {}", many("if (true) { ", 100_000)),
        format!(
            "invariant i() {{ if (true) {{ }} {}",
            many("else if (true) { } ", 100_000)
        ),
        format!("invariant i() {{ return {}", many("x => ", 100_000)),
        format!("invariant i() {{ int{} x", many("[]", 100_000)),
        format!("invariant i() {{ return int{}; }}", many("[]", 100_000)),
    ];
    for text in texts {
        let error = parse(&text).expect_err("too deep");
        assert!(
            error.message.contains("too deep") || error.message.contains("too large"),
            "{}",
            error.message
        );
    }
}

#[test]
fn the_deepest_evaluation_needs_little_stack() {
    let source = r#"
        invariant i() { return f(int[0], "abc".data()) == 0; }
        int f(int[] ns, data d) {
            for (int n : ns) {
                if (n >= 0) {
                    return ns.map(m => d.slice(0, 1 + f(ns, d + d.slice(m, 0)))).map(x => x.size()).sum();
                }
            }
            return 1;
        }
    "#;
    let run = move || {
        let invariants = parse(source).expect("an invariant");
        let invariant = invariants.get("i").expect("i");
        evaluate(invariant, &Exposed::new(), &mut Arena::new())
            .expect_err("no end")
            .kind
    };
    let thread = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .expect("a thread");
    assert_eq!(thread.join().expect("no overflow"), EvalErrorKind::Limit);
}
