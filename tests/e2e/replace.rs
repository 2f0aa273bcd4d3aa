//! `csd array replace`: a new drive in the place of another one.

use std::fs;

use serde_json::{Value, json};

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
    assert!(done["repair"]["rebuilt"].as_u64().unwrap() > 0, "{done}");
    assert!(done["medium"].as_str().unwrap().ends_with("csd-array/d1.media"), "{done}");
    assert!(before > 0 && held() == before);
    assert!(array.path("csd-array/d1-1.media").exists());
    // One whose medium is gone.
    array.kill(3);
    fs::remove_file(array.path("csd-array/d3.media")).unwrap();
    array.csd(&["array", "up"]).expect(1, &["d3.media is gone"]);
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
    array.csd(&["array", "replace", "d1"]).expect(2, &["\"safe\"", "--lossy"]);
    // The drive that is down is replaced without a loss.
    replaced(&array, &["d0"], 0);
    assert!(get(&array, "safe", &[]).expect(0, &[]).stdout == content);
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
