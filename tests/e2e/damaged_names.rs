//! Copies of names whose bits have changed at rest: they are counted and named, mended from others,
//! keep no other object from anything, and are accepted or dropped only if a user says so.

use std::fs;
use std::os::unix::fs::FileExt;

use csd_store::array::ArrayFile;
use csd_store::catalogue;
use serde_json::{Value, json};

use crate::support::data::bytes;
use crate::support::harness::Array;

const NAME: &str = "precious-object-name";

fn put(array: &Array, name: &str, content: &[u8], code: &str) {
    array.file("in.bin", content);
    array.csd(&["put", "in.bin", name, "--chunk", "16K", "--protect", code]).expect(0, &[]);
}

/// Stops all drives, flips a bit of the name in each of its places on these drives' media, and
/// starts all drives.
fn rot(array: &Array, drives: &[usize]) {
    array.csd(&["array", "down"]).expect(0, &[]);
    let file = ArrayFile::load(&array.path("csd-array.toml")).unwrap();
    for drive in drives {
        let path = array.path(file.drives[*drive].media.as_ref().unwrap());
        let held = fs::read(&path).unwrap();
        let medium = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let places = held.windows(NAME.len()).enumerate();
        let places = places.filter(|(_, window)| *window == NAME.as_bytes());
        let flipped = places.map(|(at, window)| {
            medium.write_all_at(&[window[4] ^ 2], at as u64 + 4).unwrap();
        });
        assert!(flipped.count() > 0, "d{drive} has no copy");
    }
    array.csd(&["array", "up"]).expect(0, &[]);
}

#[track_caller]
fn expect(array: &Array, name: &str, content: &[u8], code: i32) {
    let got = array.csd(&["get", name, "-"]).expect(code, &[]);
    assert!(got.stdout == content, "{name} has other bytes: {}", got.stderr);
}

/// Returns drive and state of each finding of a name.
fn found(scrub: &Value) -> Vec<(Value, Value)> {
    let bad = scrub["result"]["bad"].as_array().unwrap();
    let of = |bad: &Value| {
        assert_eq!((&bad["cause"], &bad["object"]), (&json!("name"), &json!(NAME)), "{bad}");
        (bad["drive"].clone(), bad["repaired"].clone())
    };
    bad.iter().map(of).collect()
}

#[test]
fn a_damaged_copy_of_a_name_is_found_by_every_reader_and_mended() {
    let (array, content) = (Array::up_on_files(4, "128M"), bytes(1, 100_000));
    put(&array, NAME, &content, "rs:2+2");
    put(&array, "other", &content, "rs:2+2");
    rot(&array, &[0]);
    let words = ["drive d0: its copy of name", NAME, "`csd repair` mends it"];
    for reader in [
        &["ls"][..],
        &["stat", NAME],
        &["get", NAME, "-"],
        &["array", "status"],
        &["array", "rebuild"],
        &["scrub"],
        &["scrub", NAME],
    ] {
        array.csd(reader).expect(4, &words);
    }
    array.csd(&["stat", "other"]).expect(0, &[]);
    for deep in [&["scrub", "--json"][..], &["scrub", "--deep", "--json"]] {
        let scrub = array.csd(deep).expect(4, &[]).json();
        assert_eq!(found(&scrub), [(json!("d0"), json!(false))]);
        assert_eq!((&scrub["result"]["names"], &scrub["result"]["copies"]), (&json!(2), &json!(8)));
    }
    let repaired = array.csd(&["repair"]).expect(0, &[]).text();
    assert!(repaired.contains("1 of 1 damaged copy of"), "{repaired}");
    array.csd(&["scrub", "--deep"]).expect(0, &[]);
    // Another copy rots, and a scrub mends it.
    rot(&array, &[1]);
    let scrub = array.csd(&["scrub", "--repair", "--json"]).expect(4, &[]).json();
    assert_eq!(found(&scrub), [(json!("d1"), json!(true))]);
    let text = array.csd(&["scrub"]).expect(0, &[]).text();
    assert!(text.contains("2 names, 8 copies"), "{text}");
    array.kill(2);
    array.kill(3);
    expect(&array, NAME, &content, 4);
}

#[test]
fn a_name_with_half_of_its_copies_damaged_is_mended_and_keeps_no_repair_from_others() {
    let (array, content) = (Array::up_on_files(6, "128M"), bytes(2, 100_000));
    put(&array, NAME, &content, "rs:4+2");
    rot(&array, &[0, 1, 2]);
    let repaired = array.csd(&["repair"]).expect(0, &[]).text();
    assert!(repaired.contains("3 of 3 damaged copies"), "{repaired}");
    array.csd(&["scrub", "--deep"]).expect(0, &[]);
    // A writer mends what it meets.
    rot(&array, &[3, 4, 5]);
    array.csd(&["rm", NAME]).expect(0, &[]);
    array.csd(&["scrub"]).expect(0, &[]);
}

#[test]
fn a_name_with_too_few_sound_copies_stops_no_other_and_is_accepted_if_a_user_says_so() {
    let (array, content) = (Array::up_on_files(3, "128M"), bytes(3, 100_000));
    put(&array, NAME, &content, "rs:2+1");
    put(&array, "other", &content, "rs:2+1");
    rot(&array, &[0, 1]);
    let accept = format!("`csd array rebuild --accept-name \"{NAME}\"`");
    let words = [&*accept, &*format!("`csd rm --damaged \"{NAME}\"`"), "100000 bytes"];
    for command in [
        &["ls"][..],
        &["array", "status"],
        &["scrub"],
        &["scrub", "--repair"],
        &["repair"],
        &["array", "rebalance"],
        &["array", "reclaim"],
        &["array", "rebuild"],
        &["array", "rebuild", "d0"],
    ] {
        array.csd(command).expect(4, &words);
    }
    assert!(array.csd(&["ls"]).text().contains("other"));
    for refused in [&["get", NAME, "-"][..], &["rm", NAME], &["put", "in.bin", NAME]] {
        array.csd(refused).expect(1, &words);
    }
    expect(&array, "other", &content, 0);
    put(&array, "new", &content, "rs:2+1");
    array.csd(&["rm", "new"]).expect(0, &[]);
    // Neither another drive nor a rebuild makes the one sound copy count.
    array.csd(&["array", "add", "--drives", "1"]).expect(4, &words);
    array.csd(&["stat", NAME]).expect(1, &words);
    array.csd(&["array", "remove", "d3"]).expect(4, &words);
    array.csd(&["stat", NAME]).expect(1, &words);
    array.csd(&["array", "rebuild", "--accept-name", "other"]).expect(2, &["nothing to accept"]);
    array.csd(&["rm", "--damaged", "other"]).expect(2, &["nothing to accept"]);
    let accepted = array.csd(&["array", "rebuild", "--accept-name", NAME]).expect(0, &[]).text();
    assert!(accepted.contains("an object of 100000 bytes"), "{accepted}");
    expect(&array, NAME, &content, 0);
    array.csd(&["repair"]).expect(0, &[]);
    array.csd(&["scrub"]).expect(0, &[]);
}

#[test]
fn a_name_with_too_few_sound_copies_is_dropped_and_does_not_come_back() {
    let (array, content) = (Array::up_on_files(3, "128M"), bytes(4, 100_000));
    for (drives, word) in [
        (&[0, 1][..], NAME.to_owned()),
        (&[0, 1, 2], NAME.to_owned()),
        (&[0, 1, 2], catalogue::key_in_words(&catalogue::key(NAME))),
    ] {
        put(&array, NAME, &content, "rs:2+1");
        rot(&array, drives);
        let all = drives.len() == 3;
        let shown = catalogue::key_in_words(&catalogue::key(NAME));
        array.csd(&["ls"]).expect(4, &[if all { &*shown } else { NAME }]);
        array.kill(2);
        array.csd(&["rm", "--damaged", &word]).expect(1, &["3 are needed"]);
        array.csd(&["array", "up"]).expect(0, &[]);
        array.csd(&["rm", "--damaged", &word]).expect(0, &[]);
        array.csd(&["stat", NAME]).expect(2, &["there is no object"]);
        array.csd(&["array", "reclaim"]).expect(0, &[]);
        let room = array.csd(&["scrub", "--json"]).expect(0, &[]).json();
        assert_eq!(room["result"]["objects"], 0);
    }
}

#[test]
fn what_two_of_six_drives_know_is_accepted_if_a_user_says_so() {
    let (array, content) = (Array::up_on_files(6, "128M"), bytes(5, 100_000));
    put(&array, NAME, &content, "rs:2+4");
    put(&array, "lost", &content, "rs:4+2");
    let file = ArrayFile::load(&array.path("csd-array.toml")).unwrap();
    for drive in 2..6 {
        array.kill(drive);
        fs::remove_file(array.path(file.drives[drive].media.as_ref().unwrap())).unwrap();
    }
    let advice = ["`csd array rebuild --accept`", "what d0, d1 know", "may come back"];
    array.csd(&["array", "up", "--recreate"]).expect(4, &advice);
    expect(&array, NAME, &content, 4);
    for command in [&["repair"][..], &["rm", NAME], &["array", "rebuild"]] {
        array.csd(command).expect(1, &["are up and vote", "`csd array rebuild`"]);
    }
    array.csd(&["array", "rebuild"]).expect(1, &advice);
    let accepted = array.csd(&["array", "rebuild", "--accept"]).expect(0, &[]).text();
    assert!(accepted.contains("d5: 2 of 2 names"), "{accepted}");
    array.csd(&["repair", NAME]).expect(0, &[]);
    array.csd(&["repair"]).expect(4, &["can be neither read nor computed"]);
    array.csd(&["rm", "lost"]).expect(0, &[]);
    array.csd(&["scrub", "--deep"]).expect(0, &[]);
    expect(&array, NAME, &content, 0);
    array.csd(&["rm", NAME]).expect(0, &[]);
}
