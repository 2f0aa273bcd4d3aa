//! `csd array remove`: a drive is taken out of the array, and nothing is lost by that.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::data::{bytes, small_i32};
use crate::support::drive::Drive;
use crate::support::harness::Array;
use crate::support::json_page::documented;
use crate::support::kernel_runs::{RUNS, answer, put_all_layouts};
use crate::support::pieces::{CHUNK, check, get, put};
use crate::support::placement::{assert_nothing_left, holders, rebalanced, stat};

/// Removes a drive; returns the result.
#[track_caller]
fn removed(array: &Array, more: &[&str], code: i32) -> Value {
    documented(array, "array remove", more, code)
}

fn names(array: &Array) -> Vec<String> {
    let name = |drive: &Value| drive["name"].as_str().unwrap().to_owned();
    array.drives().iter().map(name).collect()
}

fn listed(array: &Array, code: i32) -> usize {
    let list = array.csd(&["ls", "--json"]).expect(code, &[]).json();
    list["result"]["objects"].as_array().unwrap().len()
}

#[test]
fn objects_of_every_layout_leave_a_drive_that_is_removed_and_stay_what_they_were() {
    for more in [&["--protect", "rs:2+1"][..], &[]] {
        let array = Array::up_on_files(4, "512M");
        put_all_layouts(&array, more);
        put(&array, "gone", &bytes(1, 100), &[]);
        array.csd(&["rm", "gone"]).expect(0, &[]);
        let objects = ["a", "again", "b", "graph", "matrix", "on-blocks", "others", "sorted"];
        let run = |line: &str, writes: bool| {
            let line = format!("run {line} --on all --json");
            let report = array.csd(&line.split(' ').collect::<Vec<_>>());
            // The ranks of the matrix do not settle.
            assert!(matches!(report.code, 0 | 4), "{line}: {}{}", report.text(), report.stderr);
            answer(&array, &report.json(), writes)
        };
        // Rebalancing, which moves objects here too, is tested with all of them.
        let runs = || RUNS.iter().step_by(if more.is_empty() { RUNS.len() } else { 3 });
        let answers: Vec<_> = runs().map(|(line, _, writes)| run(line, *writes)).collect();
        let before = objects.map(|name| get(&array, name, &[]).stdout);
        let done = removed(&array, &["d1"], 0);
        assert_eq!(done["rebalance"]["moved"], json!(objects));
        assert!(done["medium"].as_str().unwrap().ends_with("csd-array/d1.media"), "{done}");
        assert!(array.path("csd-array/d1.media").exists());
        assert_eq!(names(&array), ["d0", "d2", "d3"]);
        let left: BTreeSet<String> = ["d0", "d2", "d3"].map(str::to_owned).into();
        for (name, content) in objects.iter().zip(&before) {
            assert!(get(&array, name, &[]).expect(0, &[]).stdout == *content, "{name}");
            assert_eq!(holders(&stat(&array, name)), left, "{name}");
            if !more.is_empty() {
                check(&array, name, 2, 1);
            }
        }
        for ((line, _, writes), expected) in runs().zip(&answers) {
            assert_eq!(run(line, *writes), *expected, "{line}");
        }
        array.csd(&["stat", "gone"]).expect(2, &["no object"]);
        array.csd(&["scrub"]).expect(0, &[]);
        array.csd(&["repair"]).expect(0, &[]);
        assert_nothing_left(&array, &[0, 1, 2], &objects);
        // The array goes down and up, and grows again: no drive gets the place that is vacant.
        array.csd(&["array", "down"]).expect(0, &[]);
        array.csd(&["array", "up"]).expect(0, &[]);
        array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
        assert_eq!(names(&array), ["d0", "d2", "d3", "d4"]);
        assert_eq!(rebalanced(&array, &["a"], 0)["moved"], json!(["a"]));
        assert_eq!(stat(&array, "a")["drives"].as_array().unwrap().len(), 4);
        put(&array, "new", &bytes(9, 50 * CHUNK), &["--protect", "rs:2+2"]);
        // A minority may be missing: every name is found, or the command says what is missing.
        array.kill(0);
        assert_eq!(listed(&array, 4), objects.len() + 1);
        assert!(get(&array, "new", &[]).expect(4, &[]).stdout == bytes(9, 50 * CHUNK));
        array.csd(&["rm", "new"]).expect(4, &[]);
    }
}

#[test]
fn a_drive_that_is_down_is_removed_if_no_object_loses_bytes() {
    let array = Array::up_on_files(5, "128M");
    let content = bytes(2, 40 * CHUNK);
    put(&array, "safe", &content, &["--protect", "rs:2+2"]);
    put(&array, "blocks", &content, &["--protect", "rs:2+1", "--on", "block"]);
    put(&array, "wide", &content, &["--protect", "rs:3+2"]);
    put(&array, "plain", &content, &[]);
    let file = || fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let before = file();
    let remove = |words: &[&str]| array.csd(&[&["array", "remove"], words].concat());
    remove(&["d9"]).expect(2, &["no drive \"d9\""]);
    let refused = remove(&["d2"]).expect(2, &["the codes of these objects", "\"wide\""]);
    assert!(!refused.stderr.contains("safe"), "{}", refused.stderr);
    array.csd(&["rm", "wide"]).expect(0, &[]);
    array.kill(2);
    let refused = remove(&["d2"]).expect(2, &["without drive d2", "\"plain\"", "--lossy"]);
    assert!(!refused.stderr.contains("safe"), "{}", refused.stderr);
    array.kill(0);
    remove(&["d2"]).expect(1, &["drive d0", "is down"]);
    assert_eq!(file(), before);
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["rm", "plain"]).expect(0, &[]);
    array.kill(2);
    let done = removed(&array, &["d2"], 0);
    assert_eq!(done["rebalance"]["moved"], json!(["blocks", "safe"]));
    assert_eq!(names(&array), ["d0", "d1", "d3", "d4"]);
    for (name, parity) in [("safe", 2), ("blocks", 1)] {
        assert!(get(&array, name, &[]).expect(0, &[]).stdout == content, "{name}");
        check(&array, name, 2, parity);
    }
    put(&array, "plain", &content, &[]);
    let (ints, sevens) = small_i32(3, 100_000);
    put(&array, "ints", &ints, &["--type", "i32"]);
    let count = ["run", "count", "ints", "--equal", "7", "--on", "all", "--json"];
    assert_eq!(array.csd(&count).expect(0, &[]).json()["result"]["count"], sevens);
    // The others again, one by one, as far as the codes go.
    array.csd(&["rm", "safe"]).expect(0, &[]);
    removed(&array, &["d4"], 0);
    remove(&["d0"]).expect(2, &["\"blocks\""]);
    array.csd(&["rm", "blocks"]).expect(0, &[]);
    removed(&array, &["d0"], 0);
    removed(&array, &["d3"], 0);
    remove(&["d1"]).expect(2, &["is the last one"]);
    assert!(get(&array, "plain", &[]).expect(0, &[]).stdout == content);
    assert_eq!(array.csd(&count).expect(0, &[]).json()["result"]["count"], sevens);
    assert_nothing_left(&array, &[0], &["plain", "ints"]);
}

#[test]
fn what_is_lost_with_a_drive_is_named_and_the_rest_goes_on() {
    let array = Array::up(3, "128M");
    let content = bytes(4, 30 * CHUNK);
    put(&array, "plain", &content, &[]);
    put(&array, "safe", &content, &["--protect", "rs:1+1"]);
    array.kill(1);
    let done = removed(&array, &["d1", "--lossy"], 4);
    assert_eq!(done["rebalance"]["moved"], json!(["safe"]));
    assert_eq!(done["rebalance"]["failed"][0]["object"], "plain");
    assert!(get(&array, "safe", &[]).expect(0, &[]).stdout == content);
    get(&array, "plain", &[]).expect(1, &["#1", "it was removed"]);
    array.csd(&["repair"]).expect(4, &["plain"]);
    array.csd(&["rm", "plain"]).expect(0, &[]);
    put(&array, "plain", &content, &[]);
    // A drive elsewhere joins, and leaves; it is not stopped.
    let drive = Drive::serve("memory", &[]);
    let url = drive.url();
    array.csd(&["array", "add", &url, "--rebalance"]).expect(0, &[]);
    assert_eq!(names(&array), ["d0", "d2", "d3"]);
    assert_eq!(holders(&stat(&array, "plain")).len(), 3);
    let done = removed(&array, &["d3"], 0);
    assert_eq!(done["medium"], Value::Null);
    assert!(get(&array, "plain", &[]).expect(0, &[]).stdout == content);
    // It still knows its place.
    array.csd(&["array", "add", &url]).expect(2, &["a place in the catalogue"]);
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    assert_eq!(names(&array), ["d0", "d2", "d4"]);
    let text = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    assert!(text.contains("place = 4"), "{text}");
}
