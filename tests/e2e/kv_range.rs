//! `csd kv range`: the keys between two bounds, by the drive and by the host.

use csd_client::{Client, Key, Operation, Settings};
use serde_json::Value;

use crate::support::drive::Drive;
use crate::support::json_page::Page;

/// Stores a short value under each key.
fn store(drive: &Drive, keys: &[String]) -> Client {
    let client = Client::connect(&drive.url(), &Settings::default()).unwrap();
    let put = |key: &String| Operation::Put {
        key: Key::new(key.as_bytes()).unwrap(),
        value: b"value".to_vec(),
        options: 0,
    };
    let stored = client.batch(keys.iter().map(put).collect(), 64).unwrap();
    assert!(stored.iter().all(Result::is_ok));
    client
}

/// Runs the command on both sides, asserts the documented fields and equal answers, and returns
/// the number of keys and the keys.
#[track_caller]
fn range(drive: &Drive, from: &str, to: &str) -> (u64, Vec<String>) {
    let url = drive.url();
    let asked = |side: &str, more: &[&str]| -> Value {
        let words = ["kv", "range", from, to, "--on", side, "--drive", &url, "--json"];
        let done = drive.array.csd(&[&words[..], more].concat()).expect(0, &[]).json();
        let wrong = Page::read().wrong("kv range", "csd kv range", &done["result"]);
        assert!(wrong.is_empty(), "{wrong:#?}\n{done}");
        done["result"].clone()
    };
    let listed = asked("drive", &[]);
    assert_eq!(listed, asked("host", &[]), "both sides give the same answer");
    for side in ["drive", "host"] {
        assert_eq!(asked(side, &["--count"]), serde_json::json!({ "count": listed["count"] }));
    }
    let keys = listed["keys"].as_array().unwrap().iter();
    let keys: Vec<String> = keys.map(|key| key["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed["count"], keys.len());
    (listed["count"].as_u64().unwrap(), keys)
}

/// There are more keys than a page of either side, or the drive's memory, holds.
#[test]
fn drive_and_host_find_the_same_keys_over_many_pages_and_cores() {
    let options = ["--kv-index", "ordered", "--cores", "2", "--memory", "64K"];
    let drive = Drive::serve("memory", &options);
    let keys: Vec<String> = (0..9000).map(|number| format!("k{number:05}")).collect();
    let others = ["a", "b", "zz", "a longer key"].map(str::to_owned);
    let client = store(&drive, &[&keys[..], &others].concat());
    assert_eq!(range(&drive, "k00100", "k08899"), (8800, keys[100..8900].to_vec()));
    assert_eq!(range(&drive, "k08990", "zzzzzz"), (10, keys[8990..].to_vec()));
    assert_eq!(range(&drive, "k0", "k00001").1, ["zz", "k00000", "k00001"], "by length first");
    assert_eq!(range(&drive, "a", "a"), (1, vec!["a".to_owned()]), "a bound is in the range");
    assert_eq!(range(&drive, "k000001", "k999999"), (0, vec![]));
    assert_eq!(range(&drive, "zz", "sixteen byte key").0, 9002, "to the last key");
    for deleted in [100, 3000, 8899] {
        client.delete(keys[deleted].as_bytes()).unwrap();
    }
    let left = range(&drive, "k00100", "k08899");
    assert_eq!((left.0, &left.1[0], &left.1[8796]), (8797, &keys[101], &keys[8898]));
    let text = drive.array.csd(&["kv", "range", "a", "b", "--drive", &drive.url()]);
    assert_eq!(text.expect(0, &[]).text(), "a\nb\n");
}

#[test]
fn other_orders_and_wrong_bounds_are_refused_in_words() {
    let drive = Drive::serve("memory", &["--kv-index", "hash", "--memory", "0"]);
    let url = drive.url();
    let run =
        |words: &[&str]| drive.array.csd(&[&["kv", "range"], words, &["--drive", &url]].concat());
    let keys: Vec<String> = (0..30).map(|number| format!("k{number}")).collect();
    store(&drive, &keys);
    for side in ["drive", "host"] {
        let refused = run(&["k10", "k20", "--count", "--on", side]);
        refused.expect(2, &["keeps its keys in another order", "--kv-index ordered"]);
    }
    run(&["k10", "k20"]).expect(1, &["no memory for programs", "--memory", "--on host"]);
    run(&["b", "a"]).expect(2, &["b is above a", "by length, then by bytes"]);
    run(&["bb", "z"]).expect(2, &["bb is above z"]);
    run(&["a", "seventeen bytes!!"]).expect(2, &["has 17 bytes"]);
    run(&["a", ""]).expect(2, &["has 0 bytes"]);
    run(&["0g", "ff", "--hex"]).expect(2, &["is not hexadecimal digits"]);
}
