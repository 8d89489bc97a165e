//! Tests that build programs as users do, run them natively and inspect their bitcode.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for one test, and the toolchain to use in it.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn new() -> Workshop {
        Workshop {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tool(&self, args: &[&str]) -> Output {
        Command::new(everett())
            .args(args)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Runs a tool that must succeed and returns its standard output.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.tool(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?} failed:\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a tool that must fail and returns its standard error.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.tool(args);
        assert!(!output.status.success(), "{args:?} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a built program, checks that its bitcode is complete, and returns its output.
    fn run(&self, program: &str, args: &[&str]) -> String {
        self.check_bitcode(program);
        let output = Command::new(self.path(program))
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn check_bitcode(&self, program: &str) {
        let bitcode = fs::read(self.path(&format!("{program}.bc"))).unwrap();
        assert_eq!(bitcode[..4], *b"BC\xc0\xde", "{program}.bc is no bitcode");
        for name in ["_start_c", "main", "__libc_start_main"] {
            assert!(mentions(&bitcode, name), "{program}.bc has no {name}");
        }
        assert!(!self.path(&format!("{program}.resolution.txt")).exists());
    }

    fn bitcode_mentions(&self, program: &str, name: &str) -> bool {
        mentions(
            &fs::read(self.path(&format!("{program}.bc"))).unwrap(),
            name,
        )
    }
}

/// Returns whether a bitcode file contains a name. The file has names as plain text.
fn mentions(bitcode: &[u8], name: &str) -> bool {
    bitcode
        .windows(name.len())
        .any(|window| window == name.as_bytes())
}

/// Returns the example program, which cargo builds before the tests of the package.
fn everett() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.ancestors().nth(2).unwrap();
    let program = profile.join("examples/everett-cc");
    assert!(
        program.is_file(),
        "{} is missing: run all of cargo test",
        program.display()
    );
    program
}

const HELLO: &str = r#"
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %d %s\n", argc, argv[argc - 1]); }
"#;

#[test]
fn c_at_every_level_of_optimisation() {
    let shop = Workshop::new();
    shop.write("hello.c", HELLO);
    for level in ["-O0", "-O2"] {
        shop.ok(&["cc", level, "hello.c", "-o", "hello"]);
        assert_eq!(shop.run("hello", &["x"]), "hello 2 x\n");
    }
    shop.ok(&["cc", "hello.c"]);
    assert_eq!(shop.run("a.out", &["y"]), "hello 2 y\n");
    let size = fs::metadata(shop.path("a.out.bc")).unwrap().len();
    assert!(
        size < 300_000,
        "the bitcode of hello world has {size} bytes"
    );
    assert!(
        !shop.bitcode_mentions("a.out", "__polevll"),
        "unused functions are kept"
    );
}

#[test]
fn several_files_an_archive_and_a_response_file() {
    let shop = Workshop::new();
    shop.write("main.c", "#include <stdio.h>\nint two(void); int three(void); int four(void);\nint main(void) { printf(\"%d\\n\", two() * 100 + three() * 10 + four()); }\n");
    shop.write("two.c", "int two(void) { return 2; }\n");
    shop.write(
        "three.c",
        "int three(void) { return 3; }\nint unused(void) { return 9; }\n",
    );
    shop.write(
        "four.s",
        ".globl four\nfour: mov $4, %eax\nret\n.section .note.GNU-stack\n",
    );
    shop.ok(&["cc", "-c", "two.c", "main.c"]);
    shop.ok(&["cc", "-c", "-o", "three.o", "three.c"]);
    shop.ok(&["ar", "cr", "libthree.a", "three.o"]);
    shop.ok(&["ranlib", "libthree.a"]);
    shop.write("args", "-o 'my prog' main.o \"two.o\" four.s");
    shop.ok(&[
        "cc",
        "@args",
        "-L.",
        "-lthree",
        "-lm",
        "-lpthread",
        "-rdynamic",
        "-Wl,-s",
    ]);
    assert_eq!(shop.run("my prog", &[]), "234\n");
    assert!(shop.bitcode_mentions("my prog", "three"));
    assert!(shop.bitcode_mentions("my prog", "four"));
    assert!(!shop.bitcode_mentions("my prog", "unused"));
}

#[test]
fn other_modes_of_the_compiler_pass_through() {
    let shop = Workshop::new();
    shop.write("hello.c", HELLO);
    assert!(
        shop.ok(&["cc", "-E", "hello.c"])
            .contains("int main(int argc")
    );
    assert!(
        shop.ok(&["cc", "-S", "-o", "-", "hello.c"])
            .contains("callq\tprintf")
    );
    assert!(shop.ok(&["cc", "-M", "hello.c"]).contains("stdio.h"));
    assert!(shop.ok(&["cc", "--version"]).contains("clang version"));
    assert!(shop.ok(&["cc", "-dumpmachine"]).contains("x86_64"));
    let message = shop.fails(&["cc", "-shared", "hello.c"]);
    assert!(message.contains("--disable-shared"), "{message}");
    let message = shop.fails(&["cc", "-Werror", "missing.c"]);
    assert!(message.contains("missing.c"), "{message}");
    let message = shop.fails(&["cc", "hello.c", "-lnowhere"]);
    assert!(message.contains("-lnowhere was not found"), "{message}");
    shop.ok(&["cc", "-Werror", "-Wall", "-c", "hello.c"]);

    shop.ok(&["cc", "-Werror", "-Wall", "-o", "/dev/null", "hello.o"]);
}

#[test]
fn programs_of_configure_scripts_tell_what_there_is() {
    let shop = Workshop::new();
    shop.write("config.log", "");
    shop.write(
        "there.c",
        "#include <stdio.h>\n#include <math.h>\n#include <stdlib.h>\n\
         void *reallocarray(void *p, size_t n, size_t m) { puts(\"own\"); return realloc(p, n * m); }\n\
         int main(int n, char **v) { return reallocarray(0, n, 4) ? (int)cbrt(27.0 * n) : 1; }\n",
    );
    shop.write(
        "missing.c",
        "int strlcpy_s(void); int main(void) { return strlcpy_s(); }\n",
    );
    shop.ok(&["cc", "-o", "conftest", "there.c", "-lm"]);
    let output = Command::new(shop.path("conftest")).output().unwrap();
    assert_eq!(output.stdout, b"own\n");
    assert_eq!(output.status.code(), Some(3));
    assert!(!shop.path("conftest.bc").exists());
    let message = shop.fails(&["cc", "-Wno-error", "-o", "conftest", "missing.c"]);
    assert!(message.contains("strlcpy_s"), "{message}");
}

#[test]
fn lists_of_macros_are_there() {
    let shop = Workshop::new();
    shop.write(
        "list.c",
        "#include <stdio.h>\n#include <sys/queue.h>\n\
         struct item { int n; STAILQ_ENTRY(item) next; };\n\
         STAILQ_HEAD(list, item) list = STAILQ_HEAD_INITIALIZER(list);\n\
         int main(void) {\n\
         struct item a = {1}, b = {2}, *i;\n\
         STAILQ_INSERT_TAIL(&list, &a, next); STAILQ_INSERT_TAIL(&list, &b, next);\n\
         STAILQ_FOREACH(i, &list, next) printf(\"%d\", i->n); }\n",
    );
    shop.ok(&["cc", "-o", "list", "list.c"]);
    assert_eq!(shop.run("list", &[]), "12");
}

#[test]
fn headers_suit_programs_written_for_other_libraries() {
    let shop = Workshop::new();
    shop.write(
        "decls.c",
        "#include <stdio.h>\n#include <sys/socket.h>\n\
         __BEGIN_DECLS\nint count __P((struct msghdr *));\n__END_DECLS\n\
         int count(struct msghdr *m) { int n = 0;\n\
         for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) n++;\n\
         return n; }\n",
    );
    let strict = ["-Werror", "-Wall", "-Wextra", "-Wsign-compare", "-c"];
    shop.ok(&[&["cc"], &strict[..], &["decls.c"]].concat());
    shop.write(
        "only.c",
        "#include <sys/cdefs.h>\n__BEGIN_DECLS\n__END_DECLS\n",
    );
    shop.ok(&["cc", "-c", "only.c"]);
}

/// Links functions that share a member of the library's archive with others.
#[test]
fn all_of_the_mathematics_library_links() {
    let shop = Workshop::new();
    shop.write(
        "math.c",
        "#define _GNU_SOURCE\n#include <math.h>\n#include <stdio.h>\n\
         int main(int argc, char **argv) { int sign; double x = argc + 4.5;\n\
         printf(\"%g %g %Lg %d\", drem(x, 2), dremf(5.5f, 2), lgammal_r(-0.5L * argc, &sign), sign);\n\
         printf(\" %g %g %Lg\", pow10(argc), pow10f(argc), pow10l(argc));\n\
         printf(\" %g %g %g\", lgamma_r(x, &sign), lgammaf_r(x, &sign), lgamma(x));\n\
         printf(\" %g %g %Lg %Lg\\n\", remainder(x, 2), remquo(x, 2, &sign), lgammal(x), exp10l(argc));\n\
         x = lgamma(-0.5 * argc); printf(\"%g %d\\n\", x, signgam); }\n",
    );
    shop.ok(&["cc", "-o", "math", "math.c", "-lm"]);
    let expected = "-0.5 -0.5 1.26551 -1 10 10 10 3.95781 3.95781 3.95781 -0.5 -0.5 3.95781 10\n\
                    1.26551 -1\n";
    assert_eq!(shop.run("math", &[]), expected);
}

#[test]
fn a_link_that_fails_leaves_nothing() {
    let shop = Workshop::new();
    shop.write("hello.c", HELLO);
    shop.write(
        "broken.c",
        "int nowhere(void); int main(void) { return nowhere(); }\n",
    );
    shop.ok(&["cc", "-o", "hello", "hello.c"]);
    shop.ok(&["cc", "-c", "broken.c"]);
    shop.fails(&["cc", "-o", "hello", "broken.o"]);
    let mut names: Vec<_> = fs::read_dir(shop.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["broken.c", "broken.o", "hello.c"]);
}

#[test]
fn the_c_library_of_the_machine_is_refused_by_name() {
    let shop = Workshop::new();
    shop.write("hello.c", HELLO);
    shop.write(
        "lib/libc.a",
        "!<arch>\nGNU C Library (Debian GLIBC 2.36) stable release\n",
    );
    let message = shop.fails(&["cc", "-o", "hello", "hello.c", "-Llib"]);
    assert!(message.contains("lib/libc.a is glibc"), "{message}");
    assert!(!shop.path("hello").exists());
    // A library of the program may have any name.
    shop.write("own/libutil.a", "!<arch>\n");
    shop.ok(&["cc", "-o", "hello", "hello.c", "-Lown", "-lutil"]);
}

#[test]
fn mathematics_and_threads_are_in_the_bitcode() {
    let shop = Workshop::new();
    shop.write(
        "math.c",
        r#"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *twice(void *p) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
  *(int *)p *= 2;
  return p;
}
int main(int argc, char **argv) {
  int n = argc; pthread_t thread;
  pthread_create(&thread, 0, twice, &n);
  pthread_cancel(thread);
  pthread_join(thread, 0);
  char *copy = strdup("12.5");
  double x = strtod(copy, 0);
  free(copy);
  printf("%d %.3f %.3f %.1f %Lg %Lg %Lg\n", n, sin(x), pow(x, 1.5), ceil(x), fmodl(x, 5),
         floorl(-x / 10), roundl(x));
}
"#,
    );
    shop.ok(&["cc", "-O1", "math.c", "-o", "math", "-pthread", "-lm"]);
    assert_eq!(shop.run("math", &[]), "2 -0.066 44.194 13.0 2.5 -2 13\n");
    for name in ["sin", "pow", "__cancel", "memcpy"] {
        assert!(shop.bitcode_mentions("math", name), "no {name}");
    }
}

/// Most programs are linked with libraries without mathematics. It is also there if only machine
/// code refers to it, or the program has a function of such a name itself.
#[test]
fn mathematics_of_machine_code_is_in_the_bitcode() {
    let shop = Workshop::new();
    shop.write("cosine.S", ".globl cosine\ncosine: jmp cosf\n");
    shop.write(
        "main.c",
        "#include <stdio.h>\nfloat cosine(float);\nint main(void) { printf(\"%.2f\", cosine(0)); }\n",
    );
    shop.ok(&["cc", "main.c", "cosine.S", "-o", "main"]);
    assert_eq!(shop.run("main", &[]), "1.00");
    assert!(shop.bitcode_mentions("main", "cosf"));
    shop.write(
        "own.c",
        "int round(int x) { return x + 1; }\nint main(void) { return round(1); }\n",
    );
    shop.ok(&["cc", "-w", "-fno-builtin", "own.c", "-o", "own"]);
    assert!(shop.bitcode_mentions("own", "round") && !shop.bitcode_mentions("own", "roundf"));
    shop.write(
        "pow.c",
        "#include <stdio.h>\n#include <math.h>\ndouble pow(double x, double y) { return x + y; }\n\
         int main(int n, char **v) { printf(\"%g %g\", pow(n, 2), ldexp(n, 3)); }\n",
    );
    shop.ok(&["cc", "-fno-builtin", "pow.c", "-o", "pow", "-lm"]);
    assert_eq!(shop.run("pow", &[]), "3 8");
    shop.write(
        "complex.c",
        "#include <complex.h>\n#include <stdio.h>\nint main(int n, char **v) {\n\
         long double _Complex z = 3 * n + 4 * I, w = z / (z + 1), m = z * (w / n);\n\
         printf(\"%.4Lf %.4Lf %.4Lf %.4Lf\", creall(w), cimagl(w), creall(m), cimagl(m)); }\n",
    );
    shop.ok(&["cc", "complex.c", "-o", "complex", "-lm"]);
    assert_eq!(shop.run("complex", &[]), "0.8750 0.1250 2.1250 3.8750");
}

#[test]
fn functions_of_everetts_own_are_correct() {
    let shop = Workshop::new();
    shop.write("library.c", include_str!("library.c"));
    shop.ok(&["cc", "-O1", "-fno-builtin", "-o", "library", "library.c"]);
    assert_eq!(shop.run("library", &[]), "ok\n");
    for name in ["fmodl", "strstr"] {
        assert!(shop.bitcode_mentions("library", name), "no {name}");
    }
}

#[test]
fn a_program_takes_its_input_from_a_test_file() {
    let shop = Workshop::new();
    shop.write(
        "input.c",
        r#"
#include <everett.h>
#include <klee/klee.h>
#include <stdio.h>
int main(void) {
  int x, y = klee_range(3, 9, "y");
  klee_make_symbolic(&x, sizeof x, "x");
  klee_assume(x < 1000);
  printf("%d %d %d %u\n", x, y, (int)everett_range(-5, 5, "z"), everett_choose(4, "pick"));
  klee_assert(x != 7);
}
"#,
    );
    shop.ok(&["cc", "-o", "input", "input.c"]);
    assert_eq!(shop.run("input", &[]), "0 3 0 0\n");
    let run = |objects: &[(&str, &[u8])]| {
        fs::write(shop.path("a.ktest"), ktest(objects)).unwrap();
        let program = shop.path("input");
        Command::new(program)
            .env("EVERETT_TEST", shop.path("a.ktest"))
            .output()
            .unwrap()
    };
    let number = |n: i32| n.to_le_bytes();
    let (z, pick) = ((-2i64).to_le_bytes(), 3u32.to_le_bytes());
    let objects = |x: &'static [u8]| {
        run(&[
            ("model_version", &[1, 0, 0, 0]),
            ("y", &number(8)),
            ("x", x),
            ("z", &z),
            ("pick", &pick),
        ])
    };
    let output = objects(&[42, 0, 0, 0]);
    assert_eq!(output.stdout, b"42 8 -2 3\n");
    assert!(output.status.success());
    assert!(!objects(&[7, 0, 0, 0]).status.success());
    let outside = objects(&[0, 0, 0, 1]);
    assert!(outside.status.success() && outside.stdout.is_empty());
    assert!(String::from_utf8_lossy(&outside.stderr).contains("assumption"));
}

#[test]
fn ktest_file_is_as_strict_as_in_klee() {
    let shop = Workshop::new();
    shop.write(
        "strict.c",
        r#"
#include <klee/klee.h>
#include <stdio.h>
int main(void) {
  int x, y = klee_range(3, 9, "y");
  klee_make_symbolic(&x, sizeof x, "x");
  klee_assume(x < 1000);
  printf("%d %d %d\n", x, y, (int)klee_choose(4));
}
"#,
    );
    shop.ok(&["cc", "-o", "strict", "strict.c"]);
    let run = |objects: &[(&str, &[u8])], goes_on: bool| {
        fs::write(shop.path("a.ktest"), ktest(objects)).unwrap();
        let mut command = Command::new(shop.path("strict"));
        command.env("KTEST_FILE", shop.path("a.ktest"));
        if goes_on {
            command.env("KLEE_RUN_TEST_ERRORS_NON_FATAL", "1");
        }
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (x, y, pick) = (42i32.to_le_bytes(), 8i32.to_le_bytes(), 3u64.to_le_bytes());
    let fits: &[(&str, &[u8])] = &[
        ("arg00", b"-v"),
        ("y", &y),
        ("x", &x),
        ("klee_choose", &pick),
    ];
    assert_eq!(
        run(fits, false),
        (Some(0), "42 8 3\n".to_owned(), String::new())
    );
    let nine = 9u64.to_le_bytes();
    let (large, out) = (5000i32.to_le_bytes(), 77i32.to_le_bytes());
    for (objects, error) in [
        (
            &[("y", &y[..]), ("q", &x)][..],
            "object name mismatch. Requesting \"x\" but returning \"q\"",
        ),
        (
            &[("y", &y[..]), ("x", &x[..2])],
            "object sizes differ. Expected 4 but got 2",
        ),
        (
            &[("y", &y[..])],
            "out of inputs. Will use zero if continuing.",
        ),
        (
            &[("y", &out[..])],
            "invalid klee_range(3,9,y) value, got: 77",
        ),
        (&[("y", &y[..]), ("x", &large)], "invalid klee_assume"),
        (
            &[("y", &y[..]), ("x", &x), ("klee_choose", &nine)],
            "klee_choose failure. max = 4, got = 9",
        ),
    ] {
        let (status, stdout, stderr) = run(objects, false);
        assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert_eq!(stderr, format!("KLEE_RUN_TEST_ERROR: {error}\n"));
        let (status, _, stderr) = run(objects, true);
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains("Forcing execution to continue"), "{stderr}");
    }
}

/// Returns a test file in KLEE's format.
fn ktest(objects: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"KTEST".to_vec();
    let number = |n: usize, file: &mut Vec<u8>| file.extend((n as u32).to_be_bytes());
    for n in [3, 0, 0, 0, objects.len()] {
        number(n, &mut file);
    }
    for (name, bytes) in objects {
        for part in [name.as_bytes(), bytes] {
            number(part.len(), &mut file);
            file.extend_from_slice(part);
        }
    }
    file
}

#[test]
fn cxx_with_exceptions() {
    let shop = Workshop::new();
    shop.write(
        "throws.cc",
        r#"
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
struct Guard { ~Guard() { std::puts("unwound"); } };
int main(int argc, char **argv) {
  std::map<std::string, std::vector<int>> m;
  m["a"].push_back(argc);
  try { Guard guard; m.at("b"); } catch (const std::out_of_range &) { std::puts("caught"); }
  std::printf("%d\n", m.at("a")[0]);
}
"#,
    );
    for level in ["-O0", "-O2"] {
        shop.ok(&["c++", level, "-std=c++20", "-o", "throws", "throws.cc"]);
        assert_eq!(shop.run("throws", &[]), "unwound\ncaught\n1\n");
    }
    assert!(shop.bitcode_mentions("throws", "__gxx_personality_v0"));
}

const RUST: &str = r#"
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parsed = std::panic::catch_unwind(|| "x".parse::<u8>().unwrap());
    println!("{} {}", words.join("+"), parsed.is_err());
}
"#;

#[test]
fn rust_with_unwinding() {
    let shop = Workshop::new();
    shop.write("words.rs", RUST);
    shop.ok(&["rustc", "words.rs", "-o", "words"]);
    assert_eq!(shop.run("words", &["a", "b"]), "a+b true\n");
}

#[test]
fn cargo_with_a_c_library() {
    let shop = Workshop::new();
    shop.write("Cargo.toml", "[package]\nname = \"my-sum\"\nedition = \"2024\"\n[workspace]\n[profile.release]\npanic = \"abort\"\n");
    // A build script that uses the compiler configured by cargo, like the crate cc.
    shop.write(
        "build.rs",
        r#"
use std::{env, process::Command};
fn main() {
    let out = env::var("OUT_DIR").unwrap();
    let tool = |name: &str| env::var(format!("{name}_x86_64_unknown_linux_musl")).unwrap();
    let object = format!("{out}/sum.o");
    assert!(Command::new(tool("CC")).args(["-c", "sum.c", "-o", &object]).status().unwrap().success());
    let library = format!("{out}/libsum.a");
    assert!(Command::new(tool("AR")).args(["crs", &library, &object]).status().unwrap().success());
    println!("cargo::rustc-link-search={out}");
    println!("cargo::rustc-link-lib=static=sum");
}
"#,
    );
    shop.write("sum.c", "int sum(int a, int b) { return a + b; }\n");
    shop.write("src/main.rs", "unsafe extern \"C\" { fn sum(a: i32, b: i32) -> i32; }\nfn main() { println!(\"{}\", unsafe { sum(2, 3) }); }\n");
    let target = shop.path("target");
    let output = Command::new(everett())
        .args(["cargo", "build", "--release"])
        .current_dir(shop.folder.path())
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let program = Path::new("target/x86_64-unknown-linux-musl/release/my-sum");
    assert!(errors.contains("release/my-sum.bc"), "{errors}");
    assert_eq!(shop.run(program.to_str().unwrap(), &[]), "5\n");
    assert!(shop.bitcode_mentions(program.to_str().unwrap(), "sum.c"));
}

#[test]
fn parallel_builds_do_not_disturb_each_other() {
    let shop = Workshop::new();
    shop.write("hello.c", HELLO);
    let build = |name: String| {
        let folder = shop.folder.path();
        Command::new(everett())
            .args([
                OsStr::new("cc"),
                OsStr::new("hello.c"),
                OsStr::new("-o"),
                OsStr::new(&name),
            ])
            .current_dir(folder)
            .spawn()
            .unwrap()
    };
    let mut builds: Vec<_> = (0..4).map(|n| build(format!("hello{n}"))).collect();
    for child in &mut builds {
        assert!(child.wait().unwrap().success());
    }
    for n in 0..4 {
        assert_eq!(shop.run(&format!("hello{n}"), &["p"]), "hello 2 p\n");
    }
}
