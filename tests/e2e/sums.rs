//! Digests of objects, and lists of other programs.

use std::process::Command;

use serde_json::json;

use crate::support::data::{bytes, npy};
use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Runs a program on files of the array's folder; returns its output.
fn program(array: &Array, words: &[&str]) -> String {
    let output =
        Command::new(words[0]).args(&words[1..]).current_dir(array.folder.path()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sums_are_those_of_sha256sum_and_of_the_catalogue() {
    let array = Array::up(2, "256M");
    array.file("x", &bytes(5, 3_000_000));
    array.file("back\\slash", b"1");
    array.file("grid.npy", &npy("<i4", "(2, 3)", &[7; 24]));
    for file in ["x", "back\\slash", "grid.npy"] {
        array.csd(&["put", file, &format!("p/{file}")]).expect(0, &[]);
    }
    let list = program(&array, &["sha256sum", "x", "back\\slash", "grid.npy"]);
    let named = ["sum", "--prefix", "p/", "x", "back\\slash", "grid.npy"];
    assert_eq!(array.csd(&named).expect(0, &[]).text(), list);
    // All of them, by name.
    let all = array.csd(&["sum", "--prefix", "p/"]).expect(0, &[]).text();
    array.file("list", all.as_bytes());
    program(&array, &["sha256sum", "-c", "list"]);
    let checked = array.csd(&["sum", "-c", "list", "--prefix", "p/"]).expect(0, &[]).text();
    assert_eq!(checked, "back\\slash: OK\ngrid.npy: OK\nx: OK\n");
    let stat = array.csd(&["stat", "p/grid.npy", "--json"]).json();
    let sums = documented(&array, "sum", &["--blake3", "--raw", "p/grid.npy"], 0);
    assert_eq!(sums["sums"][0]["digest"], stat["result"]["blake3"]);
}

#[test]
fn a_list_that_differs_is_exit_code_1() {
    let array = Array::up(2, "256M");
    for (name, bytes) in [("a", b"1"), ("b", b"2"), ("c", b"3")] {
        array.file(name, bytes);
        array.csd(&["put", name]).expect(0, &[]);
    }
    let list = program(&array, &["sha256sum", "a", "b", "c"]);
    array.csd(&["rm", "b"]).expect(0, &[]);
    array.csd(&["put", "a", "b"]).expect(0, &[]);
    array.file("list", list.as_bytes());
    let done = array.csd(&["sum", "-c", "list"]).expect(1, &["1 of 3 objects differ"]);
    assert_eq!(done.text(), "a: OK\nb: FAILED\nc: OK\n");
    let said = array.csd(&["sum", "-c", "list", "--json"]).expect(1, &[]).json();
    let ok: Vec<_> = (0..3).map(|at| said["error"]["detail"]["sums"][at]["ok"].clone()).collect();
    assert_eq!(ok, [json!(true), json!(false), json!(true)]);
    array.csd(&["rm", "c"]).expect(0, &[]);
    let words = ["error: c: there is no object", "1 of 3 failed"];
    let done = array.csd(&["sum", "-c", "list"]).expect(1, &words);
    assert_eq!(done.text(), "a: OK\nb: FAILED\nc: FAILED open or read\n");
    // Of the other function.
    array.csd(&["sum", "-c", "list", "--blake3"]).expect(1, &[]);
    array.file("list", b"MD5 (a) = 1\n");
    array.csd(&["sum", "-c", "list"]).expect(2, &["list, line 1", "64 hexadecimal digits"]);
    array.csd(&["sum", "-c", "none"]).expect(1, &["none: No such file"]);
    array.csd(&["sum", "none"]).expect(2, &["there is no object \"none\""]);
}
