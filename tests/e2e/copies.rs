//! Copies of objects under other names, by the drives, and renamed objects.

use std::process::Stdio;

use crate::support::data::{npy, small_i32};
use crate::support::harness::{Array, finish};
use crate::support::json_page::documented;
use rustix::process::Signal;

/// Objects of all layouts and placements: name, and the options of their put.
const OBJECTS: [(&str, &[&str]); 7] = [
    ("spread", &["--type", "i32"]),
    ("blocks", &["--type", "i32", "--on", "block"]),
    ("whole", &["--type", "i32", "--layout", "whole"]),
    ("protected", &["--type", "i32", "--protect", "rs:1+1"]),
    ("blocks-protected", &["--type", "i32", "--on", "block", "--protect", "rs:1+1"]),
    ("short", &["--type", "i32", "--chunk", "8K"]),
    ("rows.npy", &["--layout", "rows", "--chunk", "64K"]),
];

fn with_objects(drives: usize) -> (Array, Vec<u8>) {
    let (numbers, _) = small_i32(21, 600_000);
    let array = Array::up(drives, "1G");
    array.file("x.bin", &numbers);
    array.file("rows.npy", &npy("<i4", "(600, 1000)", &numbers));
    for (name, options) in OBJECTS {
        let file = if name == "rows.npy" { name } else { "x.bin" };
        array.csd(&[&["put", file, name], options].concat()).expect(0, &[]);
    }
    (array, numbers)
}

#[test]
fn a_copy_is_the_same_object_and_its_chunks_do_not_cross_the_host() {
    let (array, numbers) = with_objects(3);
    let same = ["type", "shape", "bytes", "chunk_bytes", "on", "layout", "drives", "blake3"];
    for (name, _) in OBJECTS {
        let stat = |name: &str| documented(&array, "stat", &[name], 0);
        let (before, copy) = (stat(name), format!("copy/{name}"));
        let done = documented(&array, "cp", &[name, "copy/"], 0);
        let after = stat(&copy);
        assert_ne!(before["id"], after["id"]);
        for field in same {
            assert_eq!(before[field], after[field], "{name}: {field}");
        }
        assert_eq!(before["protection"]["code"], after["protection"]["code"], "{name}");
        assert_eq!(done["chunks_by_drives"], after["chunks"], "{name}");
        // Names, tasks and answers, and no chunks.
        let crossed = done["host_crossed_bytes"].as_u64().unwrap();
        assert!(crossed < numbers.len() as u64 / 2, "{name}: {crossed}");
        for from in [name, &copy] {
            assert!(array.csd(&["cat", from, "--raw"]).expect(0, &[]).stdout == numbers, "{from}");
        }
    }
    // It lies as the original does, so kernels with two inputs take both.
    array
        .csd(&["run", "vector-add", "spread", "copy/spread", "-o", "sum", "--check"])
        .expect(0, &[]);
    array.csd(&["scrub", "--deep"]).expect(0, &[]);
    assert!(array.csd(&["array", "reclaim", "--json"]).json()["result"]["puts"] == 0);
}

#[test]
fn a_moved_object_has_its_new_name_alone() {
    let (array, numbers) = with_objects(3);
    for (name, _) in OBJECTS {
        let new = format!("new/{name}");
        array.csd(&["mv", name, "new/"]).expect(0, &[]);
        array.csd(&["stat", name]).expect(2, &["there is no object"]);
        assert!(array.csd(&["cat", &new, "--raw"]).expect(0, &[]).stdout == numbers, "{name}");
    }
    assert!(array.csd(&["array", "reclaim", "--json"]).json()["result"]["puts"] == 0);
    array.csd(&["rm", "new/blocks", "new/blocks-protected"]).expect(0, &[]);
    for drive in array.drives() {
        assert_eq!(drive["block_used_bytes"], 0, "{drive}");
    }
}

#[test]
fn an_object_is_replaced_only_with_force() {
    let array = Array::up(3, "1G");
    array.file("one", &[1; 3_000_000]);
    array.file("two", &[2; 5_000_000]);
    array.csd(&["put", "one"]).expect(0, &[]);
    for options in [&[][..], &["--on", "block"], &["--protect", "rs:1+1"]] {
        array.csd(&[&["put", "two"], options].concat()).expect(0, &[]);
        for command in ["cp", "mv"] {
            let words = ["object \"two\" exists", "--force"];
            array.csd(&[command, "one", "two"]).expect(2, &words);
            array.csd(&[command, "one", "one", "-f"]).expect(2, &["is this object itself"]);
        }
        array.csd(&["cp", "one", "two", "--force"]).expect(0, &[]);
        assert!(array.csd(&["cat", "two"]).expect(0, &[]).stdout == [1; 3_000_000]);
        array.csd(&["rm", "two"]).expect(0, &[]);
        let left = array.csd(&["array", "reclaim", "--json"]).json();
        assert_eq!(left["result"]["puts"], 0, "{options:?}: {left}");
    }
    array.csd(&["cp", "none", "x"]).expect(2, &["there is no object \"none\""]);
    array.csd(&["cp", "one", ""]).expect(2, &["1 to 1024 bytes"]);
}

#[test]
fn a_move_that_is_interrupted_loses_nothing() {
    let array = Array::up(2, "1G");
    let bytes = vec![3; 200 << 20];
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "old", "--chunk", "64K"]).expect(0, &[]);
    let mut running = array.spawn(&["mv", "old", "new"], Stdio::null());
    let begun = || array.csd(&["ls", "--all"]).text().contains("new");
    running.signal_once(begun, Signal::TERM);
    let done = finish(running);
    let listed = array.csd(&["ls", "--all"]).expect(0, &[]).text();
    let name = match done.code {
        // The signal came too late.
        0 => "new",
        _ => {
            let done = done.expect(1, &["interrupted: \"old\" and \"new\" are as they were"]);
            assert!(!listed.contains("new"), "{}{listed}", done.stderr);
            "old"
        }
    };
    assert!(array.csd(&["cat", name]).expect(0, &[]).stdout == bytes);
    assert!(array.csd(&["array", "reclaim", "--json"]).json()["result"]["puts"] == 0);
}
