//! Builds that call the tools by their own names: `everett-cc` and the others, and CMake with
//! Everett's toolchain file.

use crate::common::{everett, expect, folder, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A project with a library and a program, in C and C++, whose description asks the compiler and
/// the programs that it makes.
const PROJECT: [(&str, &str); 4] = [
    (
        "CMakeLists.txt",
        r#"
cmake_minimum_required(VERSION 3.13)
project(sum C CXX)
include(CheckCSourceRuns)
include(CheckFunctionExists)
check_c_source_runs("int main(void) { return 0; }" RUNS)
check_function_exists(epoll_create1 HAS_EPOLL)
check_function_exists(no_such_function HAS_NOTHING)
file(WRITE ${CMAKE_BINARY_DIR}/seven.c "int main(void) { return 7; }")
try_run(STATUS BUILT ${CMAKE_BINARY_DIR}/tried ${CMAKE_BINARY_DIR}/seven.c)
find_package(Threads REQUIRED)
find_package(ZLIB)
message(STATUS "found: ${RUNS} ${HAS_EPOLL} <${HAS_NOTHING}> ${STATUS} <${ZLIB_FOUND}>")
enable_testing()
add_library(numbers numbers.c)
install(TARGETS numbers EXPORT numbers ARCHIVE DESTINATION lib)
install(EXPORT numbers DESTINATION lib/cmake/numbers FILE numbers-config.cmake)
add_subdirectory(program)
"#,
    ),
    (
        "numbers.c",
        "int twice(int n) { return n < 0 ? -1 : 2 * n; }\n",
    ),
    (
        "program/CMakeLists.txt",
        "add_executable(sum sum.cpp)\ntarget_link_libraries(sum numbers Threads::Threads)\n\
         install(TARGETS sum RUNTIME DESTINATION bin)\nadd_test(NAME sum COMMAND sum)\n",
    ),
    (
        "program/sum.cpp",
        "#include <cstdio>\n#include <vector>\nextern \"C\" int twice(int);\n\
         int main(int argc, char **) { std::vector<int> all = {argc, 20};\n\
         int sum = 0; for (int n : all) sum += twice(n); std::printf(\"%d\\n\", sum); }\n",
    ),
];

/// A project that uses the installed library of the other.
const USER: [(&str, &str); 2] = [
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nfind_package(numbers REQUIRED)\n\
         add_executable(user user.c)\ntarget_link_libraries(user numbers)\n",
    ),
    (
        "user.c",
        "int twice(int);\nint main(void) { return twice(3) - 6; }\n",
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
    write(&work.join("project"), &PROJECT);
    write(&work.join("user"), &USER);
    let tool = |name: &str, args: &[&str]| {
        let mut command = Command::new(name);
        text(&expect(command.current_dir(&work).args(args), 0))
    };
    let toolchain = format!(
        "-DCMAKE_TOOLCHAIN_FILE={}",
        work.join("tools/everett.cmake").display()
    );
    let told = tool("cmake", &["-S", "project", "-B", "build", &toolchain]);
    assert!(told.contains("found: 1 1 <> 7 <FALSE>"), "{told}");
    tool("cmake", &["--build", "build"]);
    let tested = Command::new("ctest")
        .current_dir(work.join("build"))
        .output()
        .expect("it starts");
    assert!(tested.status.success(), "{}", text(&tested));
    tool("cmake", &["--install", "build", "--prefix", "installed"]);
    // The build is gone, the installed program can be explored.
    fs::remove_dir_all(work.join("build")).unwrap();
    let output = expect(everett(&work).args(["exec", "installed/bin/sum"]), 0);
    assert_eq!(output.stdout, b"42\n");
    // The installed library is found where the user says that it is.
    let installed = work.join("installed");
    for (at, variable) in ["CMAKE_PREFIX_PATH", "CMAKE_FIND_ROOT_PATH"]
        .iter()
        .enumerate()
    {
        let (build, place) = (format!("user{at}"), installed.display());
        let place = format!("-D{variable}={place}");
        tool("cmake", &["-S", "user", "-B", &build, &toolchain, &place]);
        tool("cmake", &["--build", &build]);
        expect(everett(&work).args(["exec", &format!("{build}/user")]), 0);
    }
}

/// Writes the files of a project.
fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        fs::write(path, text).unwrap();
    }
}
