//! A folder and the objects of a prefix that become the same, in either direction.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::data::npy;
use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Writes files below `data`.
fn write(array: &Array, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = array.path("data").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn read(array: &Array, name: &str) -> Vec<u8> {
    fs::read(array.path(name)).unwrap()
}

fn cat(array: &Array, name: &str) -> Vec<u8> {
    array.csd(&["cat", name]).expect(0, &[]).stdout
}

/// Runs a sync; returns what was new, changed and deleted, and the number of equal ones.
fn sync(array: &Array, more: &[&str]) -> (Value, Value, Value, Value) {
    let done = documented(array, "sync", more, 0);
    let of = |field: &str| done[field].clone();
    (of("new"), of("changed"), of("deleted"), of("equal"))
}

#[test]
fn objects_become_as_the_files_are() {
    let array = Array::up(3, "256M");
    let up = ["data", "csd:p/"];
    write(&array, &[("a", b"1"), ("in/b", b"2"), ("x.bin", &[0; 8])]);
    write(&array, &[("grid.npy", &npy("<i4", "(2, 3)", &[7; 24]))]);
    let nothing = json!([]);
    let dry = sync(&array, &[&up[..], &["--dry-run"]].concat());
    let all = json!(["a", "grid.npy", "in/b", "x.bin"]);
    assert_eq!(dry, (all.clone(), nothing.clone(), nothing.clone(), json!(0)));
    assert_eq!(array.csd(&["ls"]).text(), "no objects\n");
    assert_eq!(sync(&array, &up), (all, nothing.clone(), nothing.clone(), json!(0)));
    let same = || (nothing.clone(), nothing.clone(), nothing.clone(), json!(4));
    assert_eq!(sync(&array, &up), same());
    // A typed object is the file that a get of it writes.
    array.csd(&["rm", "p/x.bin"]).expect(0, &[]);
    let typed = ["put", "data/x.bin", "p/x.bin", "--type", "f32", "--protect", "rs:1+1"];
    array.csd(&typed).expect(0, &[]);
    assert_eq!(sync(&array, &up), same());
    // Changes of the same size; the object stays what it was.
    write(&array, &[("a", b"3"), ("x.bin", &[1; 8]), ("new", b"4")]);
    write(&array, &[("grid.npy", &npy("<i4", "(3, 2)", &[7; 24]))]);
    fs::remove_file(array.path("data/in/b")).unwrap();
    let text = array.csd(&["sync", "data", "csd:p"]).expect(0, &[]).text();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("1 new, 3 changed, 0 deleted; 0 equal"));
    lines.sort_unstable();
    assert_eq!(lines, ["changed: a", "changed: grid.npy", "changed: x.bin", "new: new"]);
    let stat = array.csd(&["stat", "p/x.bin", "--json"]).json()["result"].clone();
    assert_eq!((&stat["type"], &stat["protection"]["code"]), (&json!("f32"), &json!("rs:1+1")));
    assert_eq!(cat(&array, "p/x.bin"), [1; 8]);
    assert_eq!(cat(&array, "p/in/b"), b"2");
    // Deleting is asked for, and there is no terminal.
    let delete = ["sync", "data", "csd:p/", "--delete"];
    array.csd(&delete).expect(2, &["deletes 1 object under \"p/\"", "say --yes"]);
    let done = sync(&array, &[&delete[1..], &["--yes"]].concat());
    assert_eq!(done, (nothing.clone(), nothing, json!(["in/b"]), json!(4)));
    array.csd(&["stat", "p/in/b"]).expect(2, &["there is no object"]);
    assert_eq!(array.csd(&["array", "reclaim", "--json"]).json()["result"]["puts"], 0);
}

#[test]
fn files_become_as_the_objects_are() {
    let array = Array::up(2, "256M");
    write(&array, &[("a", b"1"), ("in/b", b"2")]);
    array.csd(&["put", "-r", "data", "p"]).expect(0, &[]);
    let down = ["csd:p/", "back"];
    let nothing = json!([]);
    let done = sync(&array, &down);
    assert_eq!(done, (json!(["a", "in/b"]), nothing.clone(), nothing.clone(), json!(0)));
    assert_eq!(sync(&array, &down).3, 2);
    array.file("back/a", b"9");
    array.file("back/mine", b"dear");
    assert_eq!(sync(&array, &down).1, json!(["a"]));
    assert_eq!((read(&array, "back/a"), read(&array, "back/mine")), (b"1".into(), b"dear".into()));
    let dry = sync(&array, &[&down[..], &["--delete", "--dry-run"]].concat());
    assert_eq!((dry.2, array.path("back/mine").exists()), (json!(["mine"]), true));
    let done = sync(&array, &[&down[..], &["--delete", "--yes"]].concat());
    assert_eq!((done.2, array.path("back/mine").exists()), (json!(["mine"]), false));
    // A result of drives has no digest: it is read.
    array.csd(&["put", "data/a", "n", "--type", "bytes"]).expect(0, &[]);
    array.file("numbers", &[1; 4000]);
    array.csd(&["put", "numbers", "s/x", "--type", "i32"]).expect(0, &[]);
    array.csd(&["run", "vector-add", "s/x", "s/x", "-o", "s/sum"]).expect(0, &[]);
    assert_eq!(sync(&array, &["csd:s", "sums"]).0, json!(["sum", "x"]));
    assert_eq!(sync(&array, &["csd:s", "sums"]).3, 2);
}

#[test]
fn nothing_is_deleted_because_it_was_not_read() {
    let array = Array::up(1, "256M");
    write(&array, &[("a", b"1"), ("in/b", b"2")]);
    array.csd(&["put", "-r", "data", "p"]).expect(0, &[]);
    // What was a folder is a link to one now.
    fs::rename(array.path("data/in"), array.path("elsewhere")).unwrap();
    symlink("../elsewhere", array.path("data/in")).unwrap();
    let delete = ["--delete", "--yes"];
    let up = [&["sync", "data", "csd:p"], &delete[..]].concat();
    array.csd(&up).expect(4, &["data/in: left out: a link to a folder"]);
    assert_eq!(cat(&array, "p/in/b"), b"2");
    fs::create_dir(array.path("empty")).unwrap();
    let words = ["folder empty has no files", "csd rm"];
    array.csd(&[&["sync", "empty", "csd:p"], &delete[..]].concat()).expect(2, &words);
    let words = ["there are no objects under \"none/\""];
    array.csd(&[&["sync", "csd:none", "data"], &delete[..]].concat()).expect(2, &words);
    assert_eq!(read(&array, "data/a"), b"1");
    array.csd(&["sync", "none", "csd:p"]).expect(1, &["none: No such file"]);
    for wrong in [["data", "p/"], ["csd:p", "csd:q"]] {
        array.csd(&["sync", wrong[0], wrong[1]]).expect(2, &["begins with `csd:`"]);
    }
    array.csd(&["sync", "data", "csd:p", "--yes"]).expect(2, &["--delete"]);
}
