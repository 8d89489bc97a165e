//! Random C functions of four bytes that return constants only, so that the set of exit codes is
//! what is reachable.

use super::generator::Numbers;
use std::fmt::Write;

/// The number of values of a byte, so few that all of them can be tried natively.
pub const DOMAIN: u32 = 6;

const TYPES: [&str; 6] = ["u8", "i16", "u32", "i32", "u64", "i64"];

const PRELUDE: &str = r#"
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>
typedef unsigned char u8; typedef short i16; typedef unsigned u32; typedef int i32;
typedef unsigned long long u64; typedef long long i64;
static const u8 table[8] = {3, 200, 17, 0, 90, 6, 255, 41};
static const u64 words[4] = {1, 0x123456789abcull, 77, ~0ull};
"#;

struct Body {
    numbers: Numbers,
    out: String,
    codes: u32,
    loops: u32,
}

/// Returns a program that explores function `argv[1]`, or with a second argument prints the results
/// of all inputs.
pub fn branching_file(seed: u64, count: usize) -> String {
    let mut out = PRELUDE.to_owned();
    for number in 0..count {
        let mut body = Body {
            numbers: Numbers(seed.wrapping_mul(1000).wrapping_add(number as u64)),
            out: String::new(),
            codes: 0,
            loops: 0,
        };
        for _ in 0..3 + body.numbers.below(3) {
            body.statement(2);
        }
        let _ = writeln!(
            out,
            "static int g{number}(const u8 *b) {{\n  u32 x0 = b[0] * 3u + b[1]; i64 x1 = b[2] - 4; u8 x2 = b[3];\n  u8 local[4] = {{1, b[1], 3, b[0]}}; int fuel = 6;\n{}  (void)x0; (void)x1; (void)x2; (void)local; (void)fuel;\n  return 250;\n}}",
            body.out
        );
    }
    out.push_str("static int (*const all[])(const u8 *) = {");
    for number in 0..count {
        let _ = write!(out, "g{number}, ");
    }
    let _ = writeln!(
        out,
        r#"}};
int main(int argc, char **argv) {{
  u8 b[4];
  int which = atoi(argv[1]);
  if (argc > 2) {{
    for (u32 n = 0; n < {DOMAIN} * {DOMAIN} * {DOMAIN} * {DOMAIN}; n++) {{
      u32 rest = n;
      for (int i = 0; i < 4; i++, rest /= {DOMAIN}) b[i] = rest % {DOMAIN};
      printf("%d\n", all[which](b));
    }}
    return 0;
  }}
  everett_make_symbolic(b, sizeof b, "b");
  for (int i = 0; i < 4; i++) everett_assume(b[i] < {DOMAIN});
  int code = all[which](b);
  // Optimised code may choose among constants without a branch; here every value becomes a path of its own.
  for (volatile int value = 0; value <= 250; value++)
    if (code == value) {{ volatile int same = value; return same; }}
  return 251;
}}"#
    );
    out
}

impl Body {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    fn code(&mut self) -> u32 {
        self.codes += 1;
        self.codes
    }

    fn statement(&mut self, depth: usize) {
        match self.numbers.below(if depth == 0 { 5 } else { 9 }) {
            0 => {
                let value = self.expression(2, "u32");
                self.line(&format!("x0 = {value};"));
            }
            1 => {
                let value = self.expression(2, "i64");
                self.line(&format!("x1 = {value};"));
            }
            2 => {
                let value = self.expression(2, "u8");
                self.line(&format!("x2 = {value};"));
            }
            3 => {
                let (at, value) = (self.expression(1, "u32"), self.expression(1, "u8"));
                self.line(&format!("local[({at}) & 3] = {value};"));
            }
            4 => {
                let (condition, code) = (self.condition(), self.code());
                self.line(&format!("if ({condition}) return {code};"));
            }
            5 | 6 => {
                let condition = self.condition();
                self.line(&format!("if ({condition}) {{"));
                self.block(depth);
                self.line("} else {");
                self.block(depth);
                self.line("}");
            }
            7 => {
                let value = self.expression(1, "u32");
                self.line(&format!("switch (({value}) & 7) {{"));
                for case in [0, 1, 3, 6] {
                    let code = self.code();
                    let end = self
                        .numbers
                        .pick(&["break;", "x0++;", "x2 = 1; break;", "RETURN"]);
                    let end = end.replace("RETURN", &format!("return {code};"));
                    self.line(&format!("case {case}: {end}"));
                }
                self.line("default: x1 ^= 5; }");
            }
            _ => {
                let counter = format!("k{}", self.loops);
                self.loops += 1;
                let condition = self.condition();
                let trips = 1 + self.numbers.below(3);
                self.line(&format!(
                    "for (int {counter} = 0; {counter} < {trips} && ({condition}); {counter}++) {{ x0 += {counter};"
                ));
                self.block(1);
                self.line("}");
            }
        }
    }

    fn block(&mut self, depth: usize) {
        for _ in 0..1 + self.numbers.below(2) {
            self.statement(depth - 1);
        }
    }

    fn condition(&mut self) -> String {
        let ty = self.numbers.pick(&TYPES);
        let (a, b) = (self.expression(1, ty), self.expression(1, ty));
        let op = self.numbers.pick(&["<", "<=", "==", "!=", ">", ">="]);
        let simple = format!("{a} {op} {b}");
        match self.numbers.below(4) {
            0 => format!("({simple}) && b[{}] != 2", self.numbers.below(4)),
            1 => format!("({simple}) || x2 == 3"),
            _ => simple,
        }
    }

    fn expression(&mut self, depth: usize, ty: &str) -> String {
        if depth == 0 {
            return match self.numbers.below(8) {
                0..=2 => format!("({ty})b[{}]", self.numbers.below(4)),
                3 => format!("({ty})x{}", self.numbers.below(3)),
                4 => format!("({ty})table[x{} & 7]", self.numbers.pick(&[0, 2])),
                5 => format!("({ty})local[x{} & 3]", self.numbers.pick(&[0, 2])),
                6 => format!("({ty})words[b[{}] & 3]", self.numbers.below(4)),
                _ => format!("({ty}){}", self.numbers.below(12)),
            };
        }
        let wide = if ty.ends_with("64") { "u64" } else { "u32" };
        let (a, b) = (
            self.expression(depth - 1, ty),
            self.expression(depth - 1, ty),
        );
        match self.numbers.below(9) {
            0..=3 => {
                let op = self.numbers.pick(&["+", "-", "&", "|", "^"]);
                format!("({ty})(({wide}){a} {op} ({wide}){b})")
            }
            4 => format!("({ty})(({wide}){a} * {})", 1 + self.numbers.below(9)),
            5 => {
                let op = self.numbers.pick(&["/", "%"]);
                format!("({ty})({a} {op} {})", 2 + self.numbers.below(9))
            }
            6 => format!("({ty})({a} >> {})", self.numbers.below(7)),
            7 => {
                let other = self.numbers.pick(&TYPES);
                format!("({ty}){}", self.expression(depth - 1, other))
            }
            _ => format!("({ty})({a} < {b} ? 2 : {b})"),
        }
    }
}
