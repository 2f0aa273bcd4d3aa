//! Several files in one put: failures at once, signals, and what puts leave that were cut off.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::data::bytes;
use crate::support::harness::{Array, finish, signal, wait_until};

/// Makes a FIFO, which holds up its reader.
fn fifo(array: &Array, name: &str) {
    let made = Command::new("mkfifo").arg(array.path(name)).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_failure_is_printed_while_other_files_are_read() {
    let array = Array::up(2, "256M");
    array.file("small", b"1");
    fifo(&array, "slow");
    let put = array.spawn(&["put", "--each", "none", "slow", "small"], Stdio::null());
    let said = || fs::read_to_string(put.output.path().join("err")).unwrap();
    wait_until("it failed", || said().contains("error: none: No such file"));
    fs::write(array.path("slow"), b"at last").unwrap();
    let done = finish(put).expect(1, &["1 of 3 failed"]);
    let text = done.text();
    assert!(text.contains("slow: 7 bytes") && text.contains("small: 1 byte "), "{text}");
    // One mistake has one code, however often it is made.
    array.csd(&["rm", "none", "nope"]).expect(2, &["error: none: there", "2 of 2 failed"]);
    array.csd(&["put", "--each", "small"]).expect(2, &["\"small\" exists"]);
    fs::create_dir(array.path("in")).unwrap();
    array.file("in/new", b"1");
    array.file("new", b"2");
    array.csd(&["put", "--each", "in/new", "new"]).expect(2, &["is called \"new\", too"]);
    assert_eq!(array.csd(&["cat", "new"]).expect(0, &[]).stdout, b"1");
}

#[test]
fn an_interrupted_put_says_what_was_stored_and_leaves_nothing() {
    let array = Array::up(2, "2G");
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}")).collect();
    for (seed, name) in (0..).zip(&names) {
        array.file(name, &bytes(seed, 4 << 20));
    }
    let words = ["put", "--each", "none"];
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let put = array.spawn(&[&words[..], &files, &["--json"]].concat(), Stdio::null());
    let listed = || array.csd(&["ls", "--json"]).json()["result"]["objects"].clone();
    wait_until("it has begun", || !listed().as_array().unwrap().is_empty());
    signal(put.child.id(), Signal::INT);
    let done = finish(put);
    let said = done.json();
    let (detail, message) = (&said["error"]["detail"], &said["error"]["message"]);
    assert_eq!(done.code, 1, "{said}");
    let count = |field: &str| detail[field].as_array().unwrap().len();
    assert_eq!(count("objects"), listed().as_array().unwrap().len());
    assert_eq!(detail["failed"][0]["item"], "none");
    // The signal may have come too late.
    if count("objects") < 40 {
        assert_eq!(count("objects") + count("left") + count("failed"), 41);
        let words = format!("interrupted: {} of 41 were done; not done: ", count("objects"));
        assert!(message.as_str().unwrap().starts_with(&words), "{message}");
    }
    assert!(!array.csd(&["ls", "--all"]).text().contains("staged"));
    let left = array.csd(&["array", "reclaim"]).expect(0, &[]).text();
    assert_eq!(left, "nothing was left\n");
}

#[test]
fn what_a_killed_put_has_left_is_shown_and_freed_with_its_bytes() {
    for options in [&["--on", "kv"][..], &["--on", "block"], &["--protect", "rs:1+1"]] {
        let array = Array::up(2, "1G");
        let words = [&["put", "-", "x", "--chunk", "64K"], options].concat();
        let mut put = array.spawn(&words, Stdio::piped());
        let mut input = put.child.stdin.take().unwrap();
        input.write_all(&bytes(1, 4 << 20)).unwrap();
        let shown = || array.csd(&["ls", "--all", "--json"]).json()["result"]["objects"][0].clone();
        wait_until("it has begun", || shown()["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
        let kept = array.csd(&["array", "reclaim"]).expect(0, &[]).text();
        assert!(kept.starts_with("x: kept ") && kept.contains("may still run"), "{kept}");
        put.child.kill().unwrap();
        put.child.wait().unwrap();
        drop(input);
        let staged = shown();
        assert_eq!(staged["state"], "staged");
        let freed = array.csd(&["array", "reclaim", "--json"]).expect(0, &[]).json();
        let cut_off = &freed["result"]["cut_off"][0];
        assert_eq!((&cut_off["name"], &cut_off["freed"]), (&"x".into(), &true.into()), "{freed}");
        assert_eq!(cut_off["bytes"], staged["bytes"], "{options:?}");
        assert_eq!(shown(), Value::Null);
        let again = array.csd(&["array", "reclaim"]).expect(0, &[]).text();
        assert_eq!(again, "nothing was left\n", "{options:?}");
        for drive in array.drives() {
            assert!(drive["kv_used_bytes"].as_u64().unwrap() < 10_000, "{options:?}: {drive}");
            assert_eq!(drive["block_used_bytes"], 0, "{options:?}: {drive}");
        }
    }
}

#[test]
fn an_interrupted_put_or_get_of_one_object_leaves_nothing() {
    let array = Array::up(2, "2G");
    array.file("big", &bytes(1, 256 << 20));
    let staged = || array.csd(&["ls", "--all"]).text().contains("staged");
    let mut put = array.spawn(&["put", "big"], Stdio::null());
    put.signal_once(staged, Signal::INT);
    let done = finish(put);
    // The signal may have come too late.
    if done.code != 0 {
        done.expect(1, &["interrupted: nothing was stored"]);
        assert_eq!(array.csd(&["ls", "--all"]).text(), "no objects\n");
        array.csd(&["put", "big"]).expect(0, &[]);
    }
    let parts = || {
        let names = fs::read_dir(array.folder.path()).unwrap();
        names.filter(|name| name.as_ref().unwrap().path().extension() == Some("part".as_ref()))
    };
    let mut get = array.spawn(&["get", "big", "back"], Stdio::null());
    get.signal_once(|| parts().count() > 0, Signal::INT);
    let done = finish(get);
    if done.code != 0 {
        done.expect(1, &["interrupted: back was not written"]);
        assert!(!array.path("back").exists());
    }
    assert_eq!(parts().count(), 0);
}
