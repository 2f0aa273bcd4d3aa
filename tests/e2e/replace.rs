//! `csd array replace`: a new drive in the place of another one.

use std::fs;

use serde_json::{Value, json};

use crate::support::damage::flip_bit;
use crate::support::data::bytes;
use crate::support::drive::Drive;
use crate::support::harness::Array;
use crate::support::json_page::documented;
use crate::support::pieces::{CHUNK, check, get, put};

/// Replaces a drive; returns the result.
#[track_caller]
fn replaced(array: &Array, more: &[&str], code: i32) -> Value {
    documented(array, "array replace", more, code)
}

fn file(array: &Array) -> String {
    fs::read_to_string(array.path("csd-array.toml")).unwrap()
}

#[test]
fn new_drives_of_this_machine_take_over_and_former_media_stay() {
    let array = Array::up_on_files(5, "128M");
    let content = bytes(1, 40 * CHUNK);
    put(&array, "kv", &content, &["--protect", "rs:3+2"]);
    put(&array, "blocks", &content, &["--protect", "rs:3+2", "--on", "block"]);
    let held = || {
        let medium = fs::read(array.path("csd-array/d1.media")).unwrap();
        let is_chunk = |bytes: &&[u8]| content.chunks(CHUNK).any(|chunk| chunk[..64] == **bytes);
        medium.chunks(64).filter(is_chunk).count()
    };
    let before = held();
    // A drive that is up.
    let done = replaced(&array, &["d1"], 0);
    assert!(done["copied"]["pieces"].as_u64().unwrap() > 0, "{done}");
    assert_eq!((&done["repair"]["rebuilt"], &done["copied"]["lacking"]), (&json!(0), &json!(0)));
    assert!(done["medium"].as_str().unwrap().ends_with("csd-array/d1.media"), "{done}");
    assert!(before > 0 && held() == before);
    assert!(array.path("csd-array/d1-1.media").exists());
    // One whose medium is gone.
    array.kill(3);
    fs::remove_file(array.path("csd-array/d3.media")).unwrap();
    array.csd(&["array", "up"]).expect(4, &["d3.media is gone", "csd array replace d3"]);
    let done = replaced(&array, &["d3"], 0);
    assert_eq!((&done["drive"], &done["medium"]), (&json!("d3"), &Value::Null));
    let states: Vec<Value> = array.drives().iter().map(|drive| drive["state"].clone()).collect();
    assert_eq!(states, vec![json!("up"); 5]);
    let again = array.csd(&["repair", "--json"]).expect(0, &[]).json();
    assert_eq!(again["result"]["rebuilt"], 0);
    check(&array, "kv", 3, 2);
    check(&array, "blocks", 3, 2);
    // The array goes down and up with its new drives.
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    array.kill(0);
    array.kill(4);
    for name in ["kv", "blocks"] {
        assert!(get(&array, name, &[]).expect(4, &[]).stdout == content, "{name}");
    }
}

#[test]
fn a_replacement_by_which_bytes_would_be_lost_is_refused() {
    let array = Array::up(4, "128M");
    let content = bytes(2, 20 * CHUNK);
    put(&array, "plain", &content, &[]);
    put(&array, "safe", &content, &["--protect", "rs:2+1"]);
    // A drive that answers gives what it has; one in memory that is dead does not.
    replaced(&array, &["d2"], 0);
    assert!(get(&array, "plain", &[]).expect(0, &[]).stdout == content);
    array.kill(2);
    let before = file(&array);
    let words = ["without drive d2", "\"plain\"", "--lossy"];
    let refused = array.csd(&["array", "replace", "d2"]).expect(2, &words);
    assert!(!refused.stderr.contains("safe"), "{}", refused.stderr);
    array.csd(&["array", "replace", "d9"]).expect(2, &["no drive \"d9\""]);
    assert_eq!(file(&array), before);
    let done = replaced(&array, &["d2", "--lossy"], 4);
    assert_eq!(done["repair"]["lost"][0]["object"], "plain");
    assert_eq!(done["repair"]["lost"].as_array().unwrap().len(), 1, "{done}");
    array.csd(&["rm", "plain"]).expect(0, &[]);
    array.csd(&["repair"]).expect(0, &[]);
    // With another drive down, a second loss is more than the parity covers.
    array.kill(0);
    array.kill(1);
    array.csd(&["array", "replace", "d1"]).expect(2, &["\"safe\"", "--lossy"]);
}

/// Puts objects, and flips a bit in each of their chunks on a drive while it is down.
fn with_rot(on: &str) -> (Array, Vec<u8>) {
    let array = Array::up_on_files(5, "128M");
    let content = bytes(4, 40 * CHUNK);
    put(&array, "x", &content, &["--protect", "rs:3+1", "--on", on]);
    // Behind a stop, records are not taken for the torn end of the log.
    array.csd(&["array", "down"]).expect(0, &[]);
    let flipped = content.chunks(CHUNK).filter(|chunk| flip_bit(&array, "d0", &chunk[..64], 9));
    assert!(flipped.count() > 2);
    array.csd(&["array", "up"]).expect(0, &[]);
    (array, content)
}

#[test]
fn a_drive_that_works_is_replaced_although_another_one_has_rot_that_nobody_has_seen() {
    for on in ["block", "kv"] {
        let (array, content) = with_rot(on);
        let done = replaced(&array, &["d3"], 0);
        assert!(done["copied"]["pieces"].as_u64().unwrap() > 0, "{done}");
        assert!(done["repair"]["rebuilt"].as_u64().unwrap() > 0, "{done}");
        assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
        check(&array, "x", 3, 1);
    }
}

#[test]
fn without_the_drive_the_pieces_of_the_others_are_read_before_it_is_given_up() {
    let (array, content) = with_rot("block");
    array.kill(3);
    let away = array.path("away");
    fs::rename(array.path("csd-array/d3.media"), &away).unwrap();
    let before = file(&array);
    array.csd(&["array", "replace", "d3"]).expect(2, &["without drive d3", "\"x\"", "--lossy"]);
    assert_eq!(file(&array), before);
    // It is given up all the same; then its medium is found again, and taken back.
    replaced(&array, &["d3", "--lossy"], 4);
    get(&array, "x", &["--force"]).expect(1, &["more pieces are lost"]);
    fs::rename(&away, array.path("csd-array/old.media")).unwrap();
    let medium = ["array", "replace", "d3", "--medium", "csd-array/old.media"];
    let done = array.csd(&medium).expect(0, &[]);
    assert!(done.text().contains("an earlier medium of its place"), "{}", done.text());
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
    array.csd(&medium).expect(2, &["is the medium of drive d3"]);
    check(&array, "x", 3, 1);
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
}

#[test]
fn a_medium_of_before_that_serves_at_a_url_is_recognised() {
    let (array, content) = with_rot("kv");
    replaced(&array, &["d3"], 0);
    let medium = array.path("csd-array/d3.media");
    let former = Drive::serve(medium.to_str().unwrap(), &[]);
    let back = array.csd(&["array", "replace", "d3", "--url", &former.url()]).expect(0, &[]);
    assert!(back.text().contains("an earlier medium of its place"), "{}", back.text());
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
    assert_eq!(array.drives()[3]["state"], "up");
    // To another place it is still a stranger.
    array.csd(&["array", "replace", "d1", "--url", &former.url()]).expect(2, &["drive d3"]);
}

#[test]
fn a_drive_with_a_damaged_medium_is_the_source_of_its_replacement() {
    let array = Array::up_on_files(5, "128M");
    let content = bytes(5, 40 * CHUNK);
    put(&array, "x", &content, &["--protect", "rs:3+1"]);
    array.csd(&["array", "down"]).expect(0, &[]);
    let path = array.path("csd-array/d3.media");
    let mut medium = fs::read(&path).unwrap();
    let header = medium[1 << 20..].windows(4).position(|four| four == b"CSEG").unwrap();
    medium[(1 << 20) + header + 33] ^= 1;
    fs::write(&path, &medium).unwrap();
    let words = ["drive d3", "the medium is damaged", "csd array replace d3"];
    array.csd(&["array", "up"]).expect(4, &words);
    assert_eq!(array.drives()[2]["state"], "up");
    let done = array.csd(&["array", "replace", "d3", "--json"]);
    let copied = done.json()["result"]["copied"]["pieces"].as_u64();
    assert!(copied.is_some_and(|pieces| pieces > 0), "{}{}", done.text(), done.stderr);
    assert!(fs::read(&path).unwrap() == medium, "nothing is written");
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
    check(&array, "x", 3, 1);
}

#[test]
fn a_drive_at_a_url_takes_over_unless_it_is_in_use() {
    let array = Array::up(4, "128M");
    let content = bytes(3, 20 * CHUNK);
    put(&array, "x", &content, &["--protect", "rs:2+1"]);
    let before = file(&array);
    let other = Array::up(1, "128M");
    put(&other, "y", &content, &[]);
    let used = other.url(0);
    let replace = |url: &str| array.csd(&["array", "replace", "d1", "--url", url]);
    replace(&used).expect(1, &["drive d1", "data of another array"]);
    let own = array.url(0);
    replace(&own).expect(2, &["is drive d0 of this array already"]);
    replace("nvme+tcp://127.0.0.1:1/nqn.2026-11.io.x:y").expect(1, &["drive d1", "is down"]);
    replace("nonsense").expect(2, &["nonsense"]);
    let size = ["array", "replace", "d1", "--url", "nonsense", "--size", "1G"];
    array.csd(&size).expect(2, &["--size"]);
    assert_eq!(file(&array), before);
    assert_eq!(array.drives()[1]["state"], "up");
    let drive = Drive::serve("memory", &[]);
    let url = drive.url();
    let done = replaced(&array, &["d1", "--url", &url], 0);
    assert_eq!((&done["url"], &array.drives()[1]["url"]), (&json!(url), &json!(url)));
    check(&array, "x", 2, 1);
    array.kill(2);
    assert!(get(&array, "x", &[]).expect(4, &[]).stdout == content);
}
