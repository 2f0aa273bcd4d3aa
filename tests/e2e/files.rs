//! Objects as people use files: long lists, trees, contents and sizes by folder.

use std::process::Command;

use serde_json::Value;

use crate::support::data::{bytes, npy, small_i32};
use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Stores objects of these sizes.
fn with(sizes: &[(&str, usize)]) -> Array {
    let array = Array::up(2, "256M");
    for (name, size) in sizes {
        array.file("x", &bytes(1, *size));
        array.csd(&["put", "x", name]).expect(0, &[]);
    }
    array
}

fn names(listed: &Value) -> Vec<&str> {
    let objects = listed["objects"].as_array().unwrap();
    objects.iter().map(|object| object["name"].as_str().unwrap()).collect()
}

#[test]
fn a_list_is_sorted_by_name_or_size_and_has_a_total() {
    let array = with(&[("a/small", 10), ("a/large", 5000), ("b", 700)]);
    let listed = |more: &[&str]| documented(&array, "ls", more, 0);
    assert_eq!(names(&listed(&[])), ["a/large", "a/small", "b"]);
    assert_eq!(names(&listed(&["--reverse"])), ["b", "a/small", "a/large"]);
    assert_eq!(names(&listed(&["--sort", "size"])), ["a/large", "b", "a/small"]);
    assert_eq!(names(&listed(&["--sort", "size", "-r"])), ["a/small", "b", "a/large"]);
    assert_eq!(listed(&["a/"])["bytes"], 5010);
    let long = array.csd(&["ls", "-l"]).expect(0, &[]).text();
    let digest = listed(&["b"])["objects"][0]["blake3"].as_str().unwrap()[..16].to_owned();
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines[1].contains("  5,000  bytes  5000"), "{long}");
    assert!(lines[3].contains(&digest) && lines[3].ends_with("  b"), "{long}");
    assert_eq!(lines[4], "3 objects, 5.6 KiB (5,710 bytes)");
}

#[test]
fn the_date_of_an_object_is_that_of_its_put_and_copies_keep_it() {
    let began = clock();
    let array = with(&[("first", 10), ("second", 5000)]);
    let ended = clock();
    let stored = |name: &str| {
        let object = documented(&array, "stat", &[name], 0);
        object["stored"].as_str().expect("it is known").to_owned()
    };
    let [first, second] = ["first", "second"].map(stored);
    assert!(began <= first && first <= second && second <= ended, "{first}, {second}");
    for words in [["cp", "first", "copy"], ["mv", "second", "other"]] {
        array.csd(&words).expect(0, &[]);
    }
    assert_eq!([stored("copy"), stored("other")], [first.clone(), second.clone()]);
    array.csd(&["rm", "other"]).expect(0, &[]);
    array.csd(&["put", "x", "other"]).expect(0, &[]);
    assert!(stored("other") > ended, "another content has another date");
    let newest = documented(&array, "ls", &["--sort", "date"], 0);
    assert_eq!(names(&newest)[0], "other");
    let long = array.csd(&["ls", "-l"]).expect(0, &[]).text();
    let minute = first[..16].replace('T', " ");
    assert!(long.lines().nth(1).unwrap().starts_with(&minute), "{long}");
}

/// Returns the time in UTC as `csd` writes it.
fn clock() -> String {
    let words = ["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"];
    let output = Command::new("date").args(words).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_tree_shows_folders_with_their_sizes() {
    let array = with(&[("a/b/x", 1024), ("a/y", 2048), ("z", 1)]);
    let tree = array.csd(&["ls", "--tree"]).expect(0, &[]).text();
    let expected = " size  name\n3 KiB  a/\n1 KiB    b/\n1 KiB      x\n2 KiB    y\n  1 B  z\n\
                    3 objects, 3.0 KiB (3,073 bytes)\n";
    assert_eq!(tree, expected);
    let inner = array.csd(&["ls", "--tree", "a/"]).expect(0, &[]).text();
    assert!(inner.starts_with(" size  name\n1 KiB  b/\n1 KiB    x\n2 KiB  y\n"), "{inner}");
    let none = array.csd(&["ls", "--tree", "none"]).expect(0, &[]).text();
    assert_eq!(none, "no objects whose names begin with \"none\"\n");
}

#[test]
fn cat_writes_objects_one_after_another_and_goes_on_after_a_failure() {
    let array = Array::up(2, "256M");
    let (numbers, _) = small_i32(7, 300_000);
    let grid = npy("<i4", "(300, 1000)", &numbers);
    array.file("grid.npy", &grid);
    array.file("text", b"one\n");
    array.csd(&["put", "--each", "grid.npy", "text"]).expect(0, &[]);
    let both = array.csd(&["cat", "text", "grid.npy"]).expect(0, &[]).stdout;
    assert!(both == [b"one\n", &grid[..]].concat());
    assert!(array.csd(&["cat", "grid.npy", "--raw"]).expect(0, &[]).stdout == numbers);
    let words = ["error: none: there is no object \"none\"", "1 of 3 failed"];
    let done = array.csd(&["cat", "text", "none", "text"]).expect(2, &words);
    assert_eq!(done.stdout, b"one\none\n");
    array.csd(&["cat", "none"]).expect(2, &["there is no object \"none\""]);
    let refused = array.csd(&["cat", "text", "--json"]).expect(2, &[]).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("standard output"));
}

#[test]
fn du_counts_data_and_what_it_takes_on_drives() {
    let array = with(&[("a/b/x", 1000), ("a/y", 3000), ("z", 50)]);
    let sums = documented(&array, "du", &[], 0);
    let sum = |folder: &Value| {
        let number = |field: &str| folder[field].as_u64().unwrap();
        (folder["folder"].as_str().unwrap().to_owned(), number("objects"), number("bytes"))
    };
    let folders: Vec<_> = sums["folders"].as_array().unwrap().iter().map(sum).collect();
    assert_eq!(folders, [("a/".to_owned(), 2, 4000), ("a/b/".to_owned(), 1, 1000)]);
    assert_eq!(sum(&sums["total"]), (String::new(), 3, 4050));
    let top = documented(&array, "du", &["--depth", "1"], 0);
    assert_eq!(top["folders"].as_array().unwrap().len(), 1);
    // A chunk, its parity piece, each with a header; a unit.
    array.file("x", &bytes(1, 100_000));
    array.csd(&["put", "x", "p/x", "--protect", "rs:1+1"]).expect(0, &[]);
    array.csd(&["put", "x", "u/x", "--on", "block"]).expect(0, &[]);
    let stored = |prefix: &str| {
        documented(&array, "du", &[prefix], 0)["total"]["stored_bytes"].as_u64().unwrap()
    };
    assert_eq!(stored("p/"), 2 * (100_000u64 + 64).next_multiple_of(64));
    assert_eq!(stored("u/"), 8 << 20);
    let text = array.csd(&["du", "u/"]).expect(0, &[]).text();
    assert!(text.contains("97.7 KiB      8 MiB        1  total"), "{text}");
}
