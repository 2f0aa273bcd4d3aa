//! Folders of files, to objects and back: several at once, nothing overwritten, nothing silent.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::data::{bytes, npy};
use crate::support::harness::{Array, Running, finish};

/// Returns the files below a folder, by path.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                all.insert(name, fs::read(path).unwrap());
            }
        }
    }
    all
}

/// Writes files below `data`.
fn with_files(array: &Array, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = array.path("data").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn some_files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a.txt", b"text".to_vec()),
        ("empty", Vec::new()),
        ("in/grid.npy", npy("<i4", "(2, 3)", &[7; 24])),
        ("in/ner/large", bytes(3, 5 << 20)),
        ("odd.npy", npy("<u2", "(2,)", &[0; 4])),
        ("short.npy", npy("<i4", "(2,)", &[0; 4])),
    ]
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn a_folder_comes_back_as_it_was() {
    let array = Array::up(2, "1G");
    with_files(&array, &some_files());
    let words = ["odd.npy: stored as bytes", "short.npy: stored as bytes"];
    let done = array.csd(&["put", "-r", "data", "p/"]).expect(0, &words).text();
    let said = "data: 6 files, 5.0 MiB, stored under \"p/\": 1 as numbers, 5 as bytes\n";
    assert_eq!(done, said);
    array.csd(&["get", "-r", "p", "back"]).expect(0, &[]);
    assert_eq!(tree(&array.path("back")), tree(&array.path("data")));
    // The default names are those of the folder.
    let put = array.csd(&["put", "-r", "data/", "--json"]).expect(0, &[]).json();
    let names = texts(&put["result"]["objects"], "name");
    assert!(names.contains(&"data/in/grid.npy") && names.len() == 6, "{names:?}");
    let got = array.csd(&["get", "-r", "data/in/ner/", "--json"]).expect(0, &[]).json();
    assert_eq!(texts(&got["result"]["objects"], "file"), ["ner/large"]);
    let none = array.csd(&["get", "-r", "none"]).expect(0, &[]).text();
    assert_eq!(none, "no objects whose names begin with \"none/\"\n");
    array.csd(&["put", "data"]).expect(2, &["data is a folder: `csd put -r FOLDER PREFIX/`"]);
    array.file("local", b"here");
    for command in [&["cp", "local", "csd:x"][..], &["cat", "local"], &["stat", "local"]] {
        let words = ["no object \"local\": this is a file of this machine, which `csd put` stores"];
        let refused = array.csd(command).expect(2, &words);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    let several = array.csd(&["cat", "local", "none"]).expect(2, &["2 of 2 failed"]);
    assert_eq!(several.stderr.lines().count(), 3, "{}", several.stderr);
    array.csd(&["put", "-r", "data/a.txt", "p"]).expect(2, &["data/a.txt is no folder"]);
    array.csd(&["put", "-r", "."]).expect(2, &["gives no prefix"]);
    array.csd(&["put", "-r", "none", "p"]).expect(1, &["none: No such file"]);
}

#[test]
fn entries_that_can_be_no_objects_are_named_and_the_others_stored() {
    let array = Array::up(1, "1G");
    with_files(&array, &[("a", b"1".to_vec()), ("in/b", b"2".to_vec())]);
    let at = |name: &[u8]| array.path("data").join(OsStr::from_bytes(name));
    fs::write(at(b"b\xff"), b"3").unwrap();
    fs::write(at(b"new\nline"), b"4").unwrap();
    symlink("a", at(b"link")).unwrap();
    symlink("in", at(b"folder")).unwrap();
    symlink("none", at(b"nothing")).unwrap();
    let words = [
        "no UTF-8",
        "control characters",
        "data/folder: left out: a link to a folder",
        "data/nothing: left out: a link to nothing",
        "4 left out",
    ];
    array.csd(&["put", "-r", "data", "p"]).expect(4, &words);
    let put = array.csd(&["put", "-r", "data", "q", "--json"]).expect(4, &[]).json();
    assert_eq!(texts(&put["result"]["objects"], "name").len(), 3);
    assert_eq!(put["result"]["skipped"].as_array().unwrap().len(), 4);
    assert_eq!(array.csd(&["cat", "p/a", "p/in/b", "p/link"]).expect(0, &[]).stdout, b"121");
    // Names that lead out of a folder, or are no files there.
    for name in ["p/../../out", "p//b", "p/a/../x"] {
        array.csd(&["put", "data/a", name]).expect(0, &[]);
    }
    array.csd(&["get", "-r", "p", "back"]).expect(4, &["p//b: left out", "3 left out"]);
    let names: Vec<String> = tree(&array.path("back")).into_keys().collect();
    assert_eq!(names, ["a", "in/b", "link"]);
    assert!(!array.path("out").exists());
}

#[test]
fn nothing_is_overwritten_without_force() {
    let array = Array::up(2, "1G");
    with_files(&array, &[("a", b"old".to_vec()), ("b", b"old".to_vec())]);
    array.csd(&["put", "-r", "data", "p"]).expect(0, &[]);
    with_files(&array, &[("a", b"new".to_vec()), ("c", b"new".to_vec())]);
    let words = ["data/a: object \"p/a\" exists", "data/b: object", "2 of 3 failed"];
    array.csd(&["put", "-r", "data", "p"]).expect(2, &words);
    assert_eq!(array.csd(&["cat", "p/a", "p/c"]).expect(0, &[]).stdout, b"oldnew");
    array.csd(&["put", "-r", "data", "p", "--force"]).expect(0, &[]);
    assert_eq!(array.csd(&["cat", "p/a", "p/b", "p/c"]).expect(0, &[]).stdout, b"newoldnew");
    with_files(&array, &[("a", b"mine".to_vec())]);
    fs::remove_file(array.path("data/c")).unwrap();
    let words = ["p/a: data/a exists", "p/b: data/b exists", "2 of 3 failed"];
    let failed = array.csd(&["get", "-r", "p", "data"]).expect(1, &words);
    assert!(failed.text().starts_with("data: 1 file, 3 B"), "{}", failed.text());
    assert_eq!(fs::read(array.path("data/a")).unwrap(), b"mine");
    array.csd(&["get", "-r", "p", "data", "-f"]).expect(0, &[]);
    assert_eq!(fs::read(array.path("data/a")).unwrap(), b"new");
    array.csd(&["put", "data/a", "x", "--force"]).expect(2, &["--recursive"]);
}

/// Asks the command to end once it has begun.
fn interrupt(mut running: Running, begun: impl FnMut() -> bool) -> (i32, Value) {
    running.signal_once(begun, Signal::TERM);
    let done = finish(running);
    (done.code, done.json())
}

#[test]
fn an_interrupted_folder_says_what_was_done_and_leaves_no_rests() {
    let array = Array::up(2, "2G");
    let files: Vec<(String, Vec<u8>)> =
        (0..60).map(|n| (format!("f{n:02}"), bytes(n, 8 << 20))).collect();
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    with_files(&array, &files);
    let put = array.spawn(&["put", "-r", "data", "p", "--json"], Stdio::null());
    let listed = || array.csd(&["ls", "--json"]).json()["result"]["objects"].clone();
    let (code, said) = interrupt(put, || !listed().as_array().unwrap().is_empty());
    // The signal may have come too late.
    if code != 0 {
        let (detail, message) = (&said["error"]["detail"], &said["error"]["message"]);
        assert_eq!((code, said["error"]["class"].as_str()), (1, Some("run")));
        assert!(message.as_str().unwrap().starts_with("interrupted: "), "{message}");
        let stored = texts(&detail["objects"], "name").len();
        assert_eq!(stored, listed().as_array().unwrap().len());
        assert_eq!(stored + detail["left"].as_array().unwrap().len(), 60);
        assert!(!array.csd(&["ls", "--all"]).text().contains("staged"));
        assert_eq!(array.csd(&["array", "reclaim", "--json"]).json()["result"]["puts"], 0);
        array.csd(&["put", "-r", "data", "p", "--force"]).expect(0, &[]);
    }
    let get = array.spawn(&["get", "-r", "p", "back", "--json"], Stdio::null());
    let (code, said) = interrupt(get, || array.path("back").exists());
    let written = tree(&array.path("back"));
    if code != 0 {
        let detail = &said["error"]["detail"];
        assert_eq!(texts(&detail["objects"], "file").len(), written.len(), "{detail}");
    }
    for (name, bytes) in written {
        assert!(bytes == fs::read(array.path("data").join(&name)).unwrap(), "{name}");
    }
}
