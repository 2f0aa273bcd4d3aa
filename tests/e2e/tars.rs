//! Objects as a tar and back: with their types and layouts, and for any other tar program.

use std::fs;
use std::process::Command;

use crate::support::damage::flip_bit;
use crate::support::data::{bytes, npy, small_i32};
use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Runs tar in the array's folder. It must succeed without a word on standard error.
fn tar(array: &Array, words: &[&str]) {
    let output = Command::new("tar").args(words).current_dir(array.folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "tar {words:?}: {said}");
}

/// Objects of all types and layouts: name, file, and the options of their put.
const OBJECTS: [(&str, &str, &[&str]); 9] = [
    ("in/plain", "x.bin", &[]),
    ("in/numbers", "x.bin", &["--type", "f32", "--chunk", "64K"]),
    ("grid.npy", "grid.npy", &["--layout", "rows"]),
    ("grid", "grid.npy", &[]),
    ("whole", "x.bin", &["--layout", "whole"]),
    ("sorted", "sorted", &["--type", "i32", "--layout", "range"]),
    ("protected", "x.bin", &["--protect", "rs:1+1", "--on", "block"]),
    ("graph", "links", &["--graph"]),
    ("empty", "empty", &[]),
];

fn with_objects() -> Array {
    let array = Array::up(3, "1G");
    let (numbers, _) = small_i32(3, 300_000);
    array.file("x.bin", &bytes(3, 1_000_000));
    array.file("grid.npy", &npy("<i4", "(300, 1000)", &numbers));
    let sorted: Vec<u8> = (0..100_000i32).flat_map(i32::to_le_bytes).collect();
    array.file("sorted", &sorted);
    array.file("links", b"0 1\n1 2\n2 0\n3 0\n");
    array.file("empty", b"");
    for (name, file, options) in OBJECTS {
        array.csd(&[&["put", file, name], options].concat()).expect(0, &[]);
    }
    array
}

#[test]
fn objects_come_back_from_a_tar_as_they_were() {
    let array = with_objects();
    let long = format!("{}x", "long folder/".repeat(30));
    for name in ["m\u{e9}t\u{e9}o", "p/../../out", &long] {
        array.csd(&["put", "x.bin", name]).expect(0, &[]);
    }
    array.csd(&["export", "all.tar"]).expect(0, &[]);
    array.csd(&["export", "all.tar"]).expect(1, &["all.tar exists", "--force"]);
    let before = array.csd(&["ls", "--json"]).json()["result"]["objects"].clone();
    let names: Vec<&str> =
        before.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    array.csd(&[&["rm"], &names[..]].concat()).expect(0, &[]);
    let done = documented(&array, "import", &["all.tar"], 0);
    assert_eq!(done["objects"].as_array().unwrap().len(), names.len());
    let after = array.csd(&["ls", "--json"]).json()["result"]["objects"].clone();
    let same =
        ["name", "type", "shape", "bytes", "chunk_bytes", "on", "layout", "stored", "blake3"];
    for (before, after) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
        for field in same {
            assert_eq!(before[field], after[field], "{}: {field}", before["name"]);
        }
        assert_eq!(before["protection"]["code"], after["protection"]["code"]);
    }
    array.csd(&["run", "page-rank", "graph", "--on", "all"]).expect(0, &[]);
    let words = ["object \"grid\" exists", "failed"];
    array.csd(&["import", "all.tar"]).expect(2, &words);
    array.csd(&["import", "all.tar", "--force"]).expect(0, &[]);
    array.csd(&["import", "all.tar", "copy/", "--plain"]).expect(0, &[]);
    let copy = array.csd(&["stat", "copy/protected", "--json"]).json()["result"].clone();
    assert!(copy["protection"].is_null() && copy["on"] == "kv", "{copy}");
}

#[test]
fn tar_reads_what_was_exported_and_its_own_tars_are_imported() {
    let array = with_objects();
    let exported = array.csd(&["export", "-", "in/"]).expect(0, &[]).stdout;
    array.file("in.tar", &exported);
    fs::create_dir(array.path("out")).unwrap();
    array.csd(&["export", "all.tar"]).expect(0, &[]);
    tar(&array, &["xf", "in.tar", "-C", "out"]);
    tar(&array, &["xf", "all.tar", "-C", "out"]);
    array.csd(&["get", "-r", "", "back"]).expect(0, &[]);
    for (name, ..) in OBJECTS {
        let read = |folder: &str| fs::read(array.path(folder).join(name)).unwrap();
        assert!(read("out") == read("back"), "{name}");
    }
    // Those of another program, in both of its forms, with what is no file.
    fs::create_dir(array.path("data")).unwrap();
    array.file("data/odd.npy", &npy("<u2", "(2,)", &[0; 4]));
    array.file("data/grid.npy", &npy("<i4", "(2, 3)", &[7; 24]));
    array.file(&format!("data/{}", "long".repeat(40)), b"1");
    std::os::unix::fs::symlink("grid.npy", array.path("data/link")).unwrap();
    for form in ["gnu", "pax"] {
        tar(&array, &["cf", "data.tar", "-C", "data", &format!("--format={form}"), "."]);
        let words = ["odd.npy: stored as bytes", "link: left out: a link", "1 left out"];
        array.csd(&["import", "data.tar", &format!("{form}/")]).expect(4, &words);
        let list = array.csd(&["ls", &format!("{form}/"), "--json"]).json();
        assert_eq!(list["result"]["objects"].as_array().unwrap().len(), 3);
        let grid = array.csd(&["stat", &format!("{form}/grid.npy"), "--json"]).json();
        assert_eq!(grid["result"]["shape"], serde_json::json!([2, 3]));
    }
}

#[test]
fn objects_that_cannot_be_read_fail_an_export_or_are_left_out_of_a_partial_one() {
    let array = Array::up_on_files(2, "256M");
    for (name, fill) in [("a", 1), ("b", 2), ("c", 3)] {
        array.file(name, &[fill; 2000]);
        array.csd(&["put", name]).expect(0, &[]);
    }
    let is_damaged = ["d0", "d1"].map(|name| flip_bit(&array, name, &[2; 100], 0));
    assert!(is_damaged.contains(&true), "b lies on a drive");
    array.csd(&["export", "all.tar"]).expect(1, &["\"b\""]);
    assert!(!array.path("all.tar").exists());
    array.csd(&["export", "all.tar", "--partial"]).expect(4, &["b: left out: ", "1 left out"]);
    let done = documented(&array, "export", &["all.tar", "--partial", "--force"], 4);
    assert_eq!(done["objects"].as_array().unwrap().len(), 2);
    assert_eq!(done["skipped"][0]["item"], "b");
    fs::create_dir(array.path("out")).unwrap();
    tar(&array, &["xf", "all.tar", "-C", "out"]);
    assert_eq!(fs::read(array.path("out/c")).unwrap(), [3; 2000]);
    assert!(!array.path("out/b").exists());
}

#[test]
fn a_damaged_tar_is_named_and_what_was_damaged_is_not_stored() {
    let array = Array::up(2, "256M");
    for (name, fill) in [("a", 1), ("b", 2), ("c", 3)] {
        array.file(name, &[fill; 2000]);
        array.csd(&["put", name]).expect(0, &[]);
    }
    array.csd(&["export", "whole.tar"]).expect(0, &[]);
    let whole = fs::read(array.path("whole.tar")).unwrap();
    let of_b = whole.windows(100).position(|window| window == [2; 100]).unwrap();
    let mut flipped = whole.clone();
    flipped[of_b] ^= 1;
    array.file("flipped.tar", &flipped);
    array.csd(&["rm", "a", "b", "c"]).expect(0, &[]);
    let words = ["b: ", "its bytes are not those that were exported", "1 of 3 failed"];
    array.csd(&["import", "flipped.tar"]).expect(1, &words);
    array.csd(&["stat", "b"]).expect(2, &["there is no object"]);
    array.csd(&["rm", "a", "c"]).expect(0, &[]);
    array.file("cut.tar", &whole[..of_b + 100]);
    array.csd(&["import", "cut.tar"]).expect(1, &["it ends within a member"]);
    assert_eq!(array.csd(&["cat", "a"]).expect(0, &[]).stdout, [1; 2000]);
    array.file("none.tar", &[b'x'; 1024]);
    array.csd(&["import", "none.tar"]).expect(2, &["it is no tar, or damaged"]);
    array.csd(&["import", "missing.tar"]).expect(1, &["missing.tar: No such file"]);
    assert!(!array.csd(&["ls", "--all"]).text().contains("staged"));
}
