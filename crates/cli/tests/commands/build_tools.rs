//! Builds that call the tools by their own names: `everett-cc` and the others, and CMake with
//! Everett's toolchain file.

use crate::common::{everett, expect, folder, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A project with a library and a program, in C and C++.
const PROJECT: [(&str, &str); 3] = [
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(sum C CXX)\n\
         add_library(numbers numbers.c)\nadd_executable(sum sum.cpp)\ntarget_link_libraries(sum numbers)\n",
    ),
    (
        "numbers.c",
        "int twice(int n) { return n < 0 ? -1 : 2 * n; }\n",
    ),
    (
        "sum.cpp",
        "#include <cstdio>\n#include <vector>\nextern \"C\" int twice(int);\n\
         int main(int argc, char **) { std::vector<int> all = {argc, 20};\n\
         int sum = 0; for (int n : all) sum += twice(n); std::printf(\"%d\\n\", sum); }\n",
    ),
];

/// Creates the links in a separate folder.
fn tools(work: &Path) {
    let output = expect(everett(work).args(["install-tools", "tools"]), 0);
    let named = text(&output);
    assert!(named.contains("tools/everett-cc\n"), "{named}");
}

#[test]
fn tools_have_names_of_their_own() {
    let work = folder("tools_have_names_of_their_own");
    tools(&work);
    let tool = |name: &str| {
        let mut command = Command::new(work.join("tools").join(name));
        command.current_dir(&work);
        command
    };
    fs::write(work.join("numbers.c"), PROJECT[1].1).unwrap();
    let main = "int twice(int);\nint main(int n, char **v) { return twice(n); }\n";
    fs::write(work.join("main.c"), main).unwrap();
    expect(tool("everett-cc").args(["-c", "numbers.c"]), 0);
    expect(
        tool("everett-ar").args(["cr", "libnumbers.a", "numbers.o"]),
        0,
    );
    expect(tool("everett-ranlib").arg("libnumbers.a"), 0);
    expect(
        tool("everett-cc").args(["-o", "main", "main.c", "-L.", "-lnumbers"]),
        0,
    );
    assert!(work.join("main.bc").is_file());
    expect(everett(&work).args(["exec", "./main"]), 2);
}

#[test]
fn cmake_builds_with_the_toolchain_file() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("skipped: cmake is not installed (./setup installs it)");
        return;
    }
    let work = folder("cmake_builds_with_the_toolchain_file");
    tools(&work);
    for (name, text) in PROJECT {
        fs::write(work.join(name), text).unwrap();
    }
    let cmake = |args: &[&str]| {
        let mut command = Command::new("cmake");
        expect(command.current_dir(&work).args(args), 0)
    };
    let toolchain = format!(
        "-DCMAKE_TOOLCHAIN_FILE={}",
        work.join("tools/everett.cmake").display()
    );
    cmake(&["-S", ".", "-B", "build", &toolchain]);
    cmake(&["--build", "build"]);
    assert!(work.join("build/sum.bc").is_file());
    let output = expect(everett(&work).args(["exec", "build/sum"]), 0);
    assert_eq!(output.stdout, b"42\n");
}
