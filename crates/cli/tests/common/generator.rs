//! Random C functions with defined behaviour: every division, shift and conversion is guarded,
//! signed arithmetic is done unsigned, and every loop is bounded.

use std::fmt::Write;

/// A generator of pseudorandom numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn number(&mut self) -> u64 {
        everett_linux::split_mix(&mut self.0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Integer types of C: name, bits, the unsigned type in which its arithmetic is done.
type Int = (&'static str, u32, &'static str);

const INTS: [Int; 11] = [
    ("i8", 8, "u32"),
    ("u8", 8, "u32"),
    ("i16", 16, "u32"),
    ("u16", 16, "u32"),
    ("i32", 32, "u32"),
    ("u32", 32, "u32"),
    ("i64", 64, "u64"),
    ("u64", 64, "u64"),
    ("i128", 128, "u128"),
    ("u128", 128, "u128"),
    ("bool1", 1, "u32"),
];

const FLOATS: [&str; 3] = ["float", "double", "ldouble"];

/// Arrays of every function: name, element, count.
const ARRAYS: [(&str, &str, usize); 5] = [
    ("a8", "u8", 8),
    ("a16", "i16", 8),
    ("a32", "u32", 4),
    ("a64", "i64", 4),
    ("ad", "double", 4),
];

/// The number of integer variables of a function.
const VARIABLES: usize = 3;

/// Vectors of integers of every function: name, type, lanes, element.
const VECTORS: [(&str, &str, usize, &str); 4] = [
    ("vu", "v4u", 4, "u32"),
    ("vl", "v2l", 2, "i64"),
    ("vb", "v16b", 16, "u8"),
    ("vs", "v8s", 8, "i16"),
];

const PRELUDE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <stdarg.h>
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef __int128 i128; typedef unsigned __int128 u128; typedef _Bool bool1; typedef long double ldouble;
typedef u32 v4u __attribute__((vector_size(16))); typedef i64 v2l __attribute__((vector_size(16)));
typedef u8 v16b __attribute__((vector_size(16))); typedef i16 v8s __attribute__((vector_size(16)));
typedef float v4f __attribute__((vector_size(16))); typedef i32 v4i __attribute__((vector_size(16)));
#define NOINLINE __attribute__((noinline))
#define INTEGER(T, C, BITS, MINUS) \
  static inline T div_##T(T a, T b) { return b == 0 || (MINUS && b == (T)-1) ? a : (T)(a / b); } \
  static inline T rem_##T(T a, T b) { return b == 0 || (MINUS && b == (T)-1) ? (T)3 : (T)(a % b); } \
  static inline T shl_##T(T a, T b) { return (T)((C)a << ((u32)b & (BITS - 1))); } \
  static inline T shr_##T(T a, T b) { return (T)(a >> ((u32)b & (BITS - 1))); } \
  static inline T of_double_##T(double d) { return d > -100.0 && d < 100.0 ? (T)(i8)d : d >= 1e3 && d < 1e6 ? (T)(i32)d : (T)5; } \
  static inline T of_ldouble_##T(ldouble d) { return d > -100 && d < 100 ? (T)(i8)d : d >= 0 && d < 1e9L ? (T)(u64)d : (T)6; }
INTEGER(i8, u32, 8, 1) INTEGER(u8, u32, 8, 0) INTEGER(i16, u32, 16, 1) INTEGER(u16, u32, 16, 0)
INTEGER(i32, u32, 32, 1) INTEGER(u32, u32, 32, 0) INTEGER(i64, u64, 64, 1) INTEGER(u64, u64, 64, 0)
INTEGER(i128, u128, 128, 1) INTEGER(u128, u128, 128, 0) INTEGER(bool1, u32, 1, 0)
static inline u64 mix(u64 h, u64 x) { h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2); return h * 0xff51afd7ed558ccdull; }
static inline u64 mix_wide(u64 h, u128 x) { return mix(mix(h, (u64)x), (u64)(x >> 64)); }
static inline u64 mix_double(u64 h, double d) { u64 b = 7; if (d == d) memcpy(&b, &d, 8); return mix(h, b); }
static inline u64 mix_float(u64 h, float f) { u32 b = 9; if (f == f) memcpy(&b, &f, 4); return mix(h, b); }
static inline u64 mix_ldouble(u64 h, ldouble l) { u8 b[10] = {1}; u64 w = 0; if (l == l) memcpy(b, &l, 10);
  for (int i = 0; i < 10; i++) w = w * 31 + b[i]; return mix(h, w); }
static NOINLINE u64 sum_of(int count, ...) { va_list list; u64 h = 0; va_start(list, count);
  for (int i = 0; i < count; i++) { if (i % 3 == 2) h = mix_double(h, va_arg(list, double)); else if (i % 3) h = mix(h, va_arg(list, u64)); else h = mix(h, va_arg(list, u32)); }
  va_end(list); return h; }
static NOINLINE u64 descend(u32 n, u64 h) { return n == 0 ? h : mix(descend(n - 1, h * 3 + n), n); }
static int by_value(const void *a, const void *b) { u8 x = *(const u8 *)a, y = *(const u8 *)b; return x < y ? -1 : x > y; }
"#;

/// One file of random functions.
pub struct File<'n> {
    numbers: &'n mut Numbers,
    out: String,
    /// Integer fields by struct.
    structs: Vec<Vec<String>>,
    /// Integer variables of the function.
    variables: Vec<(String, Int)>,
    shape: usize,
    loops: usize,
    helpers: Vec<(Int, Vec<Int>)>,
}

/// Returns the source of a file with this many functions `f0`, `f1`, …; it prints a line for each
/// function and input.
pub fn random_file(seed: u64, count: usize) -> String {
    let mut numbers = Numbers(seed);
    let mut file = File {
        numbers: &mut numbers,
        out: PRELUDE.to_owned(),
        structs: Vec::new(),
        variables: Vec::new(),
        shape: 0,
        loops: 0,
        helpers: Vec::new(),
    };
    for number in 0..5 {
        file.structure(number);
    }
    for number in 0..12 {
        file.helper(number);
    }
    for number in 0..count {
        file.function(number);
    }
    file.main(count);
    file.out
}

impl File<'_> {
    fn structure(&mut self, number: usize) {
        let mut fields = Vec::new();
        let mut body = String::new();
        for at in 0..3 + self.numbers.below(6) {
            let ty = self.numbers.pick(&INTS);
            match self.numbers.below(4) {
                0 => {
                    let _ = write!(body, "{} m{at}; ", ty.0);
                    fields.push(format!("m{at}"));
                }
                1 | 2 if ty.1 <= 64 => {
                    let bits = 1 + self.numbers.below(ty.1 as usize);
                    let _ = write!(body, "{} m{at} : {bits}; ", ty.0);
                    fields.push(format!("m{at}"));
                }
                3 => {
                    let _ = write!(body, "struct {{ i8 x; {} y; }} m{at}; ", ty.0);
                    fields.push(format!("m{at}.y"));
                    fields.push(format!("m{at}.x"));
                }
                _ => {
                    let _ = write!(body, "union {{ u32 w; u8 c[4]; }} m{at}; double e{at}; ");
                    fields.push(format!("m{at}.w"));
                    fields.push(format!("m{at}.c[2]"));
                }
            }
        }
        let packed = if self.numbers.below(4) == 0 {
            "__attribute__((packed)) "
        } else {
            ""
        };
        let _ = writeln!(self.out, "struct {packed}S{number} {{ {body}}};");
        let first = &fields[0];
        let _ = writeln!(
            self.out,
            "static NOINLINE struct S{number} step{number}(struct S{number} s, u64 k) {{ s.{first} = (u8)k & 1; return s; }}"
        );
        self.structs.push(fields);
    }

    /// Adds a function with parameters of many types, at times more than registers hold.
    fn helper(&mut self, number: usize) {
        let result = self.numbers.pick(&INTS);
        let count = 1 + self.numbers.below(9);
        let parameters: Vec<Int> = (0..count).map(|_| self.numbers.pick(&INTS)).collect();
        let list: Vec<String> = parameters
            .iter()
            .enumerate()
            .map(|(at, ty)| format!("{} p{at}", ty.0))
            .collect();
        let mut body = String::from("u64 h = 1;");
        for (at, _) in parameters.iter().enumerate() {
            let _ = write!(body, " h = mix_wide(h, (u128)p{at});");
        }
        let _ = writeln!(
            self.out,
            "static NOINLINE {} helper{number}({}, double d) {{ {body} h = mix_double(h, d); return ({})(h >> 7); }}",
            result.0,
            list.join(", "),
            result.0
        );
        self.helpers.push((result, parameters));
    }

    fn function(&mut self, number: usize) {
        self.shape = self.numbers.below(self.structs.len());
        self.variables.clear();
        for at in 0..VARIABLES {
            let ty = self.numbers.pick(&INTS);
            self.variables.push((format!("x{at}"), ty));
        }
        let before = std::mem::take(&mut self.out);
        for _ in 0..2 + self.numbers.below(4) {
            let depth = self.numbers.pick(&[1, 1, 2]);
            self.statement(depth);
        }
        let body = std::mem::replace(&mut self.out, before);
        let (head, tail) = self.frame_of(&body);
        let _ = writeln!(
            self.out,
            "NOINLINE u64 f{number}(const u64 *in) {{\n{head}{body}{tail}  return h;\n}}"
        );
    }

    /// Returns the declarations that a body uses, and the code that adds all variables to the
    /// checksum.
    fn frame_of(&self, body: &str) -> (String, String) {
        let (mut head, mut tail) = ("  u64 h = 0;\n".to_owned(), String::new());
        for (at, (name, ty)) in self.variables.iter().enumerate() {
            let _ = writeln!(head, "  {} {name} = ({})in[{at}];", ty.0, ty.0);
            let _ = writeln!(tail, "  h = mix_wide(h, (u128){name});");
        }
        let scalars = [
            ("fuel", "int fuel = 20;", "mix"),
            ("f0", "float f0 = (float)(i16)in[0];", "mix_float"),
            ("d0", "double d0 = (double)(i32)in[1] / 7.0;", "mix_double"),
            ("l0", "ldouble l0 = (i64)in[2];", "mix_ldouble"),
        ];
        for (name, declaration, mixer) in scalars {
            if body.contains(name) {
                let _ = writeln!(head, "  {declaration}");
                let _ = writeln!(tail, "  h = {mixer}(h, {name});");
            }
        }
        for (name, ty, count) in ARRAYS.iter().filter(|array| body.contains(array.0)) {
            let mixer = if *name == "ad" { "mix_double" } else { "mix" };
            let each = format!("for (int i = 0; i < {count}; i++)");
            let _ = writeln!(
                head,
                "  {ty} {name}[{count}]; {each} {name}[i] = ({ty})(i32)(in[i % 6] >> i);"
            );
            let _ = writeln!(tail, "  {each} h = {mixer}(h, {name}[i]);");
        }
        for (name, ty, lanes, _) in VECTORS {
            if body.contains(name) {
                let _ = writeln!(
                    head,
                    "  {ty} {name}; memcpy(&{name}, in + {}, 16);",
                    lanes % 5
                );
                let each = format!("for (int i = 0; i < {lanes}; i++)");
                let _ = writeln!(tail, "  {each} h = mix(h, (u64){name}[i]);");
            }
        }
        if body.contains("vf") {
            head.push_str("  v4f vf = {1.5f, (float)(i32)in[4], -2, 8};\n");
            tail.push_str("  for (int i = 0; i < 4; i++) h = mix_float(h, vf[i]);\n");
        }
        let shape = self.shape;
        if body.contains("s.") || body.contains("p->") || body.contains("step") {
            let _ = writeln!(
                head,
                "  struct S{shape} s, *p = &s; memset(&s, 0, sizeof s);"
            );
            for field in &self.structs[shape] {
                let _ = writeln!(tail, "  h = mix_wide(h, (u128)p->{field});");
            }
        }
        (head, tail)
    }

    fn main(&mut self, count: usize) {
        self.out.push_str(
            "static const struct { const char *name; u64 (*call)(const u64 *); } all[] = {\n",
        );
        for number in 0..count {
            let _ = writeln!(self.out, "  {{\"f{number}\", f{number}}},");
        }
        self.out
            .push_str("};\nstatic volatile u64 inputs[3][6] = {\n");
        for _ in 0..3 {
            let words: Vec<String> = (0..6)
                .map(|_| {
                    let word = self.numbers.number();
                    let word = self
                        .numbers
                        .pick(&[word, word >> 48, word >> 60, !0, 0, 1 << 63]);
                    format!("{word:#x}ull")
                })
                .collect();
            let _ = writeln!(self.out, "  {{{}}},", words.join(", "));
        }
        self.out.push_str("};\nint main(void) {\n  for (unsigned k = 0; k < sizeof all / sizeof *all; k++)\n    for (int j = 0; j < 3; j++) {\n      u64 in[6]; for (int i = 0; i < 6; i++) in[i] = inputs[j][i];\n      printf(\"%s %d %016llx\\n\", all[k].name, j, all[k].call(in));\n    }\n  return 0;\n}\n");
    }

    fn statement(&mut self, depth: usize) {
        let text = match self.numbers.below(if depth == 0 { 12 } else { 17 }) {
            0..=2 => self.assignment(),
            3 => {
                let kind = self.numbers.below(3);
                let value = self.float(2, kind);
                format!("{} = {value};", ["f0", "d0", "l0"][kind])
            }
            4 => {
                let (name, ty, count) = self.numbers.pick(&ARRAYS[..4]);
                let index = self.index(count);
                let value = self.int_named(2, ty);
                format!("{name}[{index}] = {value};")
            }
            5 => {
                let fields = self.structs[self.shape].clone();
                let field = &fields[self.numbers.below(fields.len())];
                let value = self.int_named(2, "i64");
                let op = self.numbers.pick(&["=", "^=", "|=", "&="]);
                let base = self.numbers.pick(&["s.", "p->"]);
                format!("{base}{field} {op} ({value}) & 1;")
            }
            6 | 7 => self.vector(),
            8 => self.memory(),
            9 => self.call(),
            10 => {
                let value = self.float(2, 1);
                let index = self.index(4);
                format!("ad[{index}] = {value};")
            }
            11 => {
                let value = self.int_named(2, "u64");
                format!("h = mix(h, {value});")
            }
            12 | 13 => return self.condition_block(depth),
            14 => return self.switch_block(depth),
            _ => return self.loop_block(depth),
        };
        let _ = writeln!(self.out, "  {text}");
    }

    fn assignment(&mut self) -> String {
        let (name, ty) = self.variables[self.numbers.below(VARIABLES)].clone();
        if self.numbers.below(4) == 0 && ty.1 <= 64 && ty.0 != "bool1" {
            // Overflow is reported, not undefined.
            let (a, b) = (self.int(1, ty), self.int(1, ty));
            let op = self.numbers.pick(&["add", "sub", "mul"]);
            return format!("h += __builtin_{op}_overflow({a}, {b}, &{name});");
        }
        let depth = self.numbers.pick(&[1, 2, 2, 3]);
        let value = self.int(depth, ty);
        format!("{name} = {value};")
    }

    fn block(&mut self, depth: usize) {
        for _ in 0..1 + self.numbers.below(2) {
            self.statement(depth - 1);
        }
    }

    fn condition_block(&mut self, depth: usize) {
        let condition = self.condition(2);
        let _ = writeln!(self.out, "  if ({condition}) {{");
        self.block(depth);
        if self.numbers.below(2) == 0 {
            self.out.push_str("  } else {\n");
            self.block(depth);
        }
        self.out.push_str("  }\n");
    }

    fn switch_block(&mut self, depth: usize) {
        let ty = self.numbers.pick(&["u8", "i32", "u64", "i16"]);
        let value = self.int_named(2, ty);
        let mask = self.numbers.pick(&["7", "15", "3"]);
        let _ = writeln!(self.out, "  switch (({ty})(({value}) & {mask})) {{");
        let mut case = self.numbers.below(3);
        while case < 16 {
            let _ = writeln!(self.out, "  case {case}:");
            self.block(depth.min(1));
            if self.numbers.below(4) != 0 {
                self.out.push_str("  break;\n");
            }
            case += 2 + self.numbers.below(7);
        }
        self.out.push_str("  default:\n");
        self.block(depth.min(1));
        self.out.push_str("  }\n");
    }

    fn loop_block(&mut self, depth: usize) {
        let counter = format!("k{}", self.loops);
        self.loops += 1;
        let trips = 1 + self.numbers.below(6);
        let kind = self.numbers.below(3);
        match kind {
            0 => {
                let _ = writeln!(
                    self.out,
                    "  for (int {counter} = 0; {counter} < {trips}; {counter}++) {{ h += {counter};"
                );
            }
            1 => {
                let condition = self.condition(1);
                let _ = writeln!(self.out, "  while (fuel > 0 && ({condition})) {{ fuel--;");
            }
            _ => self.out.push_str("  do { fuel -= 3;\n"),
        }
        self.block(depth);
        if self.numbers.below(3) == 0 {
            let condition = self.condition(1);
            let leave = self.numbers.pick(&["break", "continue"]);
            let _ = writeln!(self.out, "  if ({condition}) {leave};");
        }
        self.block(depth);
        match kind {
            0 | 1 => self.out.push_str("  }\n"),
            _ => {
                let condition = self.condition(1);
                let _ = writeln!(self.out, "  }} while (fuel > 0 && ({condition}));");
            }
        }
    }

    fn vector(&mut self) -> String {
        if self.numbers.below(4) == 0 {
            let op = self.numbers.pick(&["+", "-", "*", "/"]);
            let lane = self.numbers.below(4);
            let value = self.float(1, 0);
            return match self.numbers.below(3) {
                0 => format!("vf = vf {op} (v4f){{2, f0, 0.5f, 3}};"),
                1 => format!("vf[{lane}] = {value};"),
                _ => "vf = __builtin_convertvector((v4i)vu, v4f) + vf;".to_owned(),
            };
        }
        let (name, ty, lanes, element) = self.numbers.pick(&VECTORS);
        let index = self.index(lanes);
        let value = self.int_named(1, element);
        match self.numbers.below(8) {
            0 => {
                let op = self.numbers.pick(&["+", "-", "*", "&", "|", "^"]);
                // Signed lanes must not overflow: the arithmetic is done unsigned.
                match op {
                    "&" | "|" | "^" => format!("{name} = {name} {op} ({ty})vu;"),
                    _ if ty == "v4u" || ty == "v16b" => {
                        format!("{name} = {name} {op} ({ty})vl;")
                    }
                    _ => format!("vu = vu {op} (v4u){name};"),
                }
            }
            1 => format!("{name}[{index}] = {value};"),
            2 => format!("{name} = ({ty})({name} < ({ty})vb);"),
            3 => format!("{name} = ({name} >> (({ty})vs & 7)) ^ {name};"),
            4 => {
                let order: Vec<String> = (0..lanes)
                    .map(|_| self.numbers.below(2 * lanes).to_string())
                    .collect();
                let order = order.join(", ");
                format!("{name} = __builtin_shufflevector({name}, ({ty})vs, {order});")
            }
            5 => "vu = vu / (vu >> 28 | 1);".to_owned(),
            6 => format!("memcpy(&{name}, a8, 8);"),
            _ => format!("{name} = ~{name} | ({ty})(vu == (v4u){name});"),
        }
    }

    fn memory(&mut self) -> String {
        match self.numbers.below(6) {
            0 => "memcpy(a64, a8, 8);".to_owned(),
            1 => {
                let count = self.numbers.below(9);
                let value = self.int_named(1, "u8");
                format!("memset(a16, {value}, {count});")
            }
            2 => {
                let (from, to) = (self.numbers.below(4), self.numbers.below(4));
                format!("memmove(a8 + {to}, a8 + {from}, 4);")
            }
            3 => "qsort(a8, 8, 1, by_value);".to_owned(),
            4 => {
                let index = self.index(8);
                let value = self.int_named(1, "u8");
                format!(
                    "{{ u8 *q = a8 + ({index}); *q ^= {value}; h = mix(h, (u64)(q - a8)); if (q > a8) q[-1]++; }}"
                )
            }
            _ => {
                let size = 1 + self.numbers.below(40);
                let value = self.int_named(1, "u8");
                format!(
                    "{{ u8 *q = malloc({size}); memset(q, {value}, {size}); h = mix(h, q[{size} / 2]); free(q); }}"
                )
            }
        }
    }

    fn call(&mut self) -> String {
        match self.numbers.below(5) {
            0 => format!("s = step{}(s, h);", self.shape),
            1 => {
                let (a, b) = (self.int_named(1, "u32"), self.int_named(1, "u64"));
                let d = self.float(1, 1);
                format!("h ^= sum_of(5, {a}, {b}, {d}, (u32)7, h);")
            }
            2 => {
                let n = self.int_named(1, "u32");
                format!("h = descend(({n}) & 7, h);")
            }
            _ => {
                let which = self.numbers.below(self.helpers.len());
                let (_, parameters) = self.helpers[which].clone();
                let mut values: Vec<String> =
                    parameters.iter().map(|ty| self.int(1, *ty)).collect();
                values.push(self.float(1, 1));
                format!(
                    "h = mix_wide(h, (u128)helper{which}({}));",
                    values.join(", ")
                )
            }
        }
    }

    fn index(&mut self, count: usize) -> String {
        if self.numbers.below(3) == 0 {
            return self.numbers.below(count).to_string();
        }
        let value = self.int_named(1, "u32");
        format!("({value}) & {}", count - 1)
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.numbers.below(6) {
            0 => {
                let kind = self.numbers.below(3);
                let (a, b) = (self.float(depth - 1, kind), self.float(depth - 1, kind));
                let op = self.numbers.pick(&["<", "<=", "==", "!=", ">", ">="]);
                format!("({a}) {op} ({b})")
            }
            1 if depth > 1 => {
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                let op = self.numbers.pick(&["&&", "||"]);
                format!("({a}) {op} !({b})")
            }
            _ => {
                let ty = self.numbers.pick(&INTS);
                let (a, b) = (self.int(depth - 1, ty), self.int(depth - 1, ty));
                let op = self.numbers.pick(&["<", "<=", "==", "!=", ">", ">="]);
                format!("{a} {op} {b}")
            }
        }
    }

    fn int_named(&mut self, depth: usize, name: &str) -> String {
        let ty = INTS.iter().find(|ty| ty.0 == name).copied();
        self.int(depth, ty.unwrap_or(INTS[7]))
    }

    /// Returns an expression of this type.
    fn int(&mut self, depth: usize, ty: Int) -> String {
        let (t, c) = (ty.0, ty.2);
        if depth == 0 {
            return self.leaf(ty);
        }
        let mut sub = |ty| self.int(depth - 1, ty);
        let (a, b) = (sub(ty), sub(ty));
        match self.numbers.below(20) {
            0..=5 => {
                let op = self.numbers.pick(&["+", "-", "*", "&", "|", "^"]);
                format!("({t})(({c}){a} {op} ({c}){b})")
            }
            6..=8 => {
                let op = self.numbers.pick(&["div", "rem", "shl", "shr"]);
                format!("{op}_{t}({a}, {b})")
            }
            9 => {
                let condition = self.condition(1);
                format!("({t})(({condition}) ? {a} : {b})")
            }
            10 | 11 => {
                let other = self.numbers.pick(&INTS);
                format!("({t}){}", self.int(depth - 1, other))
            }
            12 => {
                let other = self.numbers.pick(&INTS);
                let (x, y) = (self.int(depth - 1, other), self.leaf(other));
                format!("({t})({x} < {y})")
            }
            13 => format!("({t})~({c}){a}"),
            14 => format!("({t})(0 - ({c}){a})"),
            15 => format!("({t})__builtin_popcountll((u64){a})"),
            16 => {
                let what = self.numbers.pick(&["clzll", "ctzll"]);
                format!("({t})__builtin_{what}((u64){a} | 16)")
            }
            17 => {
                let width = self.numbers.pick(&["16", "32", "64"]);
                format!("({t})__builtin_bswap{width}((u{width}){a})")
            }
            18 => {
                let d = self.float(depth - 1, 1);
                format!("of_double_{t}({d})")
            }
            _ => {
                let d = self.float(depth - 1, 2);
                format!("of_ldouble_{t}({d})")
            }
        }
    }

    fn leaf(&mut self, ty: Int) -> String {
        let t = ty.0;
        match self.numbers.below(10) {
            0..=3 => {
                let at = self.numbers.below(VARIABLES);
                format!("({t})x{at}")
            }
            4 | 5 => {
                let word = self.numbers.number();
                let word =
                    self.numbers
                        .pick(&[word >> 60, word >> 56, word >> 40, word, !0, 0x8000_0000]);
                format!("({t}){word:#x}ull")
            }
            6 => {
                let (name, _, count) = self.numbers.pick(&ARRAYS[..4]);
                let at = self.numbers.below(VARIABLES);
                format!("({t}){name}[x{at} & {}]", count - 1)
            }
            7 => {
                let fields = self.structs[self.shape].clone();
                let field = &fields[self.numbers.below(fields.len())];
                format!("({t})p->{field}")
            }
            8 => {
                let (name, _, lanes, _) = self.numbers.pick(&VECTORS);
                let lane = self.numbers.below(lanes);
                format!("({t}){name}[{lane}]")
            }
            _ => format!("({t})in[{}]", self.numbers.below(6)),
        }
    }

    /// Returns a floating-point expression: 0 float, 1 double, 2 long double.
    fn float(&mut self, depth: usize, kind: usize) -> String {
        let (t, suffix) = (FLOATS[kind], ["f", "", "l"][kind]);
        if depth == 0 {
            return match self.numbers.below(6) {
                0 => "f0".to_owned(),
                1 => "d0".to_owned(),
                2 => "l0".to_owned(),
                3 => format!("ad[{}]", self.numbers.below(4)),
                4 => {
                    let text = self
                        .numbers
                        .pick(&["0.1", "-3.0", "1e10", "2.5e-3", "65536.5"]);
                    format!("({t}){text}")
                }
                _ => {
                    let ty = self.numbers.pick(&INTS);
                    format!("({t}){}", self.leaf(ty))
                }
            };
        }
        let (a, b) = (self.float(depth - 1, kind), self.float(depth - 1, kind));
        match self.numbers.below(10) {
            0..=4 => {
                let op = self.numbers.pick(&["+", "-", "*", "/"]);
                format!("({t})(({t})({a}) {op} ({t})({b}))")
            }
            5 => {
                let ty = self.numbers.pick(&INTS);
                format!("({t}){}", self.int(depth - 1, ty))
            }
            6 => {
                let name = self.numbers.pick(&["sqrt", "fabs"]);
                format!("__builtin_{name}{suffix}({a})")
            }
            7 => {
                let name = self.numbers.pick(&["floor", "ceil", "trunc"]);
                format!("({t})__builtin_{name}({a})")
            }
            8 => format!("-({t})({a})"),
            _ => {
                let condition = self.condition(1);
                format!("(({condition}) ? ({t})({a}) : ({t})({b}))")
            }
        }
    }
}
