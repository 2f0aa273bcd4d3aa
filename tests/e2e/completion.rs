//! Completion in a shell: bash with the script that `csd` prints.

use std::process::{Command, Stdio};

use crate::support::harness::{Array, binary, built, finish};

/// Does what bash does at TAB behind the words of its arguments, and prints the candidates.
const AT_TAB: &str = r#"
    source <("$CSD" completions bash)
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _clap_complete_csd csd "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    [ "${#COMPREPLY[@]}" = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"#;

/// Returns the candidates for the last of some words.
#[track_caller]
fn candidates(array: &Array, words: &[&str]) -> Vec<String> {
    let folder = binary().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    let mut bash = Command::new("bash");
    bash.env("CSD", binary()).env("PATH", format!("{}:{path}", folder.display()));
    let arguments = [&["-c", AT_TAB, "bash", "csd"], words].concat();
    let done = finish(array.spawn_as(bash, &arguments, Stdio::null())).expect(0, &[]);
    done.text().lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_names_of_objects() {
    let array = Array::up(2, "256M");
    array.file("x", b"content");
    for name in ["climate/grid.npy", "climate/2025/wind", "climb", "other", "two words"] {
        array.csd(&["put", "x", name]).expect(0, &[]);
    }
    let candidates = |words: &[&str]| candidates(&array, words);
    for command in ["get", "cat", "ls", "rm", "stat", "sum", "scrub"] {
        assert_eq!(candidates(&[command, "cl"]), ["climate/", "climb"], "{command}");
    }
    assert_eq!(candidates(&["get", "climate/"]), ["climate/2025/", "climate/grid.npy"]);
    assert_eq!(candidates(&["mv", "other", "climate/2"]), ["climate/2025/"]);
    assert_eq!(candidates(&["run", "count", "o"]), ["other"]);
    assert_eq!(candidates(&["grep", "pattern", "other", "climb"]), ["climb"]);
    assert_eq!(candidates(&["ls", "t"]), [""; 0], "a shell would take it apart");
    assert_eq!(candidates(&["get", "none/"]), [""; 0]);
    // The array is the one that is typed, and the words are those of a command that is not whole.
    let elsewhere = tempfile::TempDir::new().unwrap();
    let elsewhere = elsewhere.path().join("csd-array.toml").display().to_string();
    assert_eq!(candidates(&["--array", &elsewhere, "get", "o"]), [""; 0]);
    assert_eq!(candidates(&["get", "--array", "csd-array.toml", "--force", "o"]), ["other"]);
    array.csd(&["array", "down"]).expect(0, &[]);
    assert_eq!(candidates(&["get", "o"]), [""; 0]);
}

#[test]
fn a_shell_completes_drives_programs_files_and_options() {
    let array = Array::up(2, "256M");
    let candidates = |words: &[&str]| candidates(&array, words);
    assert_eq!(candidates(&["array", "replace", "d"]), ["d0", "d1"]);
    assert_eq!(candidates(&["drive", "log", "d"]), ["d0", "d1"]);
    let host = ["--host-nqn", "nqn.2026-11.io.csdstore:host"];
    let load = ["program", "load", &built("rust-grep"), "--index", "20"];
    array.csd(&[&load[..], &host].concat()).expect(0, &[]);
    assert_eq!(candidates(&["program", host[0], host[1], "unload", "2"]), ["20"]);
    array.file("readings.npy", b"");
    assert_eq!(candidates(&["put", "read"]), ["readings.npy"]);
    assert_eq!(candidates(&["array", "rep"]), ["replace"]);
    assert_eq!(candidates(&["run", "count", "x", "--equ"]), ["--equal"]);
}
