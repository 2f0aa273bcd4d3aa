//! `csd mount`: objects as files that programs read.
//!
//! Tests that mount are skipped, in words, where FUSE or the right to mount is missing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use crate::support::data::{bytes, npy, small_i32};
use crate::support::fuse::{Mounting, skipped};
use crate::support::harness::{Array, signal, wait_until};
use crate::support::json_page::Page;

/// Mounts objects on a folder of this name.
fn mounted(array: &Array, name: &str, more: &[&str]) -> Mounting {
    let device = |folder: &Path| folder.metadata().map(|file| file.dev()).ok();
    let around = device(&array.path(""));
    // Another file system is there, and answers: one whose process was killed does not.
    let is_there = |folder: &Path| fs::read_dir(folder).is_ok() && device(folder) != around;
    Mounting::start(array, (&["mount"], name, more), is_there)
}

/// Returns the content of all files below a folder, by their paths.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inner = contents(&path).into_iter();
            all.extend(inner.map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            all.insert(name, fs::read(path).unwrap());
        }
    }
    all
}

/// Stores a file under a name.
fn put(array: &Array, name: &str, content: &[u8], more: &[&str]) {
    array.file("x", content);
    array.csd(&[&["put", "x", name][..], more].concat()).expect(0, &[]);
}

#[test]
fn objects_are_files_of_the_same_bytes() {
    if skipped() {
        return;
    }
    let array = Array::up(4, "1G");
    let large = bytes(5, (21 << 20) + 7);
    let numbers = npy("<i4", "(3, 2)", &[9; 24]);
    array.file("grid.npy", &numbers);
    array.csd(&["put", "grid.npy", "in/grid.npy"]).expect(0, &[]);
    put(&array, "in/ner/large", &large, &["--protect", "rs:2+2"]);
    put(&array, "empty", b"", &[]);
    put(&array, "in/small", b"text", &["--chunk", "4K"]);
    // No file can have such a name, and an object hides a folder.
    put(&array, "in/..", b"1", &[]);
    put(&array, "both", b"object", &[]);
    put(&array, "both/below", b"2", &[]);
    let whole = mounted(&array, "mnt", &[]);
    let expected: BTreeMap<String, Vec<u8>> = [
        ("both", &b"object"[..]),
        ("empty", b""),
        ("in/grid.npy", &numbers),
        ("in/ner/large", &large),
        ("in/small", b"text"),
    ]
    .map(|(name, content)| (name.to_owned(), content.to_vec()))
    .into();
    assert!(contents(&whole.folder) == expected, "{:?}", contents(&whole.folder).keys());
    let part = mounted(&array, "part", &["in"]);
    assert_eq!(
        contents(&part.folder).keys().collect::<Vec<_>>(),
        ["grid.npy", "ner/large", "small"]
    );
    // Anywhere in a file, and beyond its end.
    let file = File::open(whole.folder.join("in/ner/large")).unwrap();
    for at in [20 << 20, 3, (5 << 20) - 2, 0, (21 << 20) + 5] {
        let mut read = vec![0; 5000];
        let count = file.read_at(&mut read, at).unwrap();
        let at = usize::try_from(at).unwrap();
        assert!(read[..count] == large[at..large.len().min(at + 5000)], "{at}");
    }
    assert_eq!(file.read_at(&mut [0; 8], 22 << 20).unwrap(), 0);
    assert_eq!(file.metadata().unwrap().len(), large.len() as u64);
    let missing = fs::metadata(whole.folder.join("in/none")).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(rustix::io::Errno::NOENT.raw_os_error()));
    let refused = fs::write(whole.folder.join("new"), b"").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::ROFS.raw_os_error()));
    // Two of four drives may be lost.
    array.kill(0);
    array.kill(3);
    assert!(fs::read(whole.folder.join("in/ner/large")).unwrap() == large);
}

#[test]
fn a_file_has_the_content_of_one_version() {
    if skipped() {
        return;
    }
    let array = Array::up_on_files(2, "1G");
    let (old, _) = small_i32(1, 3_000_000);
    let (new, _) = small_i32(2, 3_000_000);
    put(&array, "x/o", &old, &[]);
    let mounting = mounted(&array, "mnt", &[]);
    let path = mounting.folder.join("x/o");
    let mut opened = File::open(&path).unwrap();
    let mut first = vec![0; 1000];
    opened.read_exact(&mut first).unwrap();
    assert!(first == old[..1000]);
    fs::create_dir_all(array.path("data")).unwrap();
    array.file("data/o", &new);
    array.csd(&["put", "-r", "data", "x", "--force"]).expect(0, &[]);
    wait_until("the new version is there", || fs::read(&path).is_ok_and(|read| read == new));
    // What was opened before gives the old bytes or none.
    let mut rest = Vec::new();
    match opened.read_to_end(&mut rest) {
        Ok(_) => assert!(rest == old[1000..]),
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::STALE.raw_os_error()));
            assert!(rest == old[1000..1000 + rest.len()]);
        }
    }
    array.csd(&["rm", "x/o"]).expect(0, &[]);
    wait_until("it is gone", || fs::metadata(&path).is_err());
    // A drive that was killed and started again is found.
    put(&array, "again", &old, &[]);
    array.kill(1);
    array.csd(&["array", "up"]).expect(0, &[]);
    assert!(fs::read(mounting.folder.join("again")).unwrap() == old);
}

#[test]
fn it_ends_when_it_is_unmounted_and_by_a_signal_and_starts_where_it_was_killed() {
    if skipped() {
        return;
    }
    let array = Array::up(1, "256M");
    put(&array, "o", b"content", &[]);
    let page = Page::read();
    let mut by_hand = mounted(&array, "mnt", &["--json"]);
    unmount(&by_hand.folder, UnmountFlags::empty()).unwrap();
    let said = by_hand.end().expect(0, &[]).json();
    let wrong = page.wrong("mount", "csd mount", &said["result"]);
    assert!(wrong.is_empty(), "{wrong:#?}\n{said}");
    let mut asked = mounted(&array, "mnt", &[]);
    signal(asked.running.as_ref().unwrap().child.id(), Signal::TERM);
    assert!(asked.end().expect(0, &[]).text().starts_with("mounted all objects\n"));
    assert_eq!(fs::read_dir(array.path("mnt")).unwrap().count(), 0);
    let mut killed = mounted(&array, "mnt", &[]);
    signal(killed.running.as_ref().unwrap().child.id(), Signal::KILL);
    let _code = killed.running.take().unwrap().child.wait();
    let again = mounted(&array, "mnt", &[]);
    assert_eq!(fs::read(again.folder.join("o")).unwrap(), b"content");
    array.csd(&["mount", "none"]).expect(1, &["none"]);
    array.csd(&["mount", "mnt", "nothing/"]).expect(2, &["nothing/: no object is below it"]);
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["mount", "x"]).expect(2, &["x: not a folder"]);
}
