//! `csd program new`: the folder's own commands build its program and run it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::harness::{Array, Done, binary, finish};

/// Variables of this test's environment that would change what cargo builds, and where.
const OF_CARGO: [&str; 4] =
    ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"];

/// Returns true if a command of the shell succeeds.
fn succeeds(command: &str) -> bool {
    let done = Command::new("sh").args(["-c", command]).stdout(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// Runs a line of the page as a reader does, in the folder of the page.
fn type_in(array: &Array, folder: &Path, line: &str) -> Done {
    let mut shell = Command::new("sh");
    let mut paths = binary().parent().unwrap().as_os_str().to_owned();
    paths.push(":");
    paths.push(std::env::var_os("PATH").unwrap());
    shell.env("PATH", paths).env("CSD_FILE", array.path("csd-array.toml"));
    for name in OF_CARGO {
        shell.env_remove(name);
    }
    let script = format!("set -e; export CSD_ARRAY=\"$CSD_FILE\"; cd {folder:?}; {line}");
    finish(array.spawn_as(shell, &["-c", &script], Stdio::null()))
}

/// Makes a program in a language and runs the commands that its page shows.
fn make_and_run(lang: &str, name: &str) {
    let array = Array::up(2, "128M");
    let text = array.csd(&["program", "new", name, "--lang", lang]).expect(0, &[]).text();
    assert!(text.contains("README.md"), "{text}");
    let folder = array.path(name);
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let lines: Vec<&str> = block.lines().collect();
    assert_eq!(lines.len(), 4, "build, put, run, compare");
    let said: Vec<_> =
        lines.iter().map(|line| type_in(&array, &folder, line).expect(0, &[]).text()).collect();
    assert!(said[2].contains("1,000,000"), "{}", said[2]);
    assert!(said[3].contains("1,000,000") && said[3].contains("answers agree"), "{}", said[3]);
}

#[test]
fn a_new_program_in_rust_builds_and_runs() {
    if !succeeds("test -d \"$(rustc --print target-libdir --target wasm32-unknown-unknown)\"") {
        return eprintln!("SKIPPED: rustup target add wasm32-unknown-unknown");
    }
    make_and_run("rust", "new-lines");
}

#[test]
fn a_new_program_in_c_builds_and_runs() {
    if !succeeds("command -v make && command -v clang && command -v wasm-ld") {
        return eprintln!("SKIPPED: it takes make, clang and wasm-ld (package lld)");
    }
    make_and_run("c", "new-lines");
}

#[test]
fn a_new_program_overwrites_nothing_and_needs_a_name() {
    let array = Array::without_drives();
    array.csd(&["program", "new", "mine"]).expect(0, &[]);
    std::fs::write(array.path("mine/src/lib.rs"), "mine").unwrap();
    array.csd(&["program", "new", "mine"]).expect(2, &["exists", "nothing is overwritten"]);
    array.file("taken", b"mine");
    array.csd(&["program", "new", "taken"]).expect(2, &["exists"]);
    for path in ["mine/src/lib.rs", "taken"] {
        assert_eq!(std::fs::read(array.path(path)).unwrap(), b"mine");
    }
    array.csd(&["program", "new", "2nd"]).expect(2, &["begins with a letter"]);
    array.csd(&["program", "new", "missing/x"]).expect(1, &["making the folder missing/x"]);
    assert!(!array.path("2nd").exists() && !array.path("missing").exists());
}
