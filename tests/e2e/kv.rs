//! `csd kv`: values and long objects of a key-value namespace.

use std::fs;

use csd_client::{Client, Key, Manifest, Settings};
use csd_tests::proxy::Door;

use crate::support::data::bytes;
use crate::support::harness::Array;
use crate::support::proxied::ProxiedArray;

/// Store of the user's kv namespace: namespace and opcode.
const STORE: (u32, u8) = (2, 0x01);

#[test]
fn values_of_any_length_go_in_and_come_out() {
    let array = Array::up(1, "256M");
    let url = array.url(0);
    let (short, long) = (bytes(1, 1000), bytes(2, 3_000_001));
    array.file("short", &short);
    array.file("long", &long);
    array.csd(&["kv", "put", "short"]).expect(0, &[]);
    let put = array.csd(&["kv", "put", "long", "--json"]).expect(0, &[]).json();
    assert_eq!(put["result"]["bytes"], 3_000_001);
    let pieces = put["result"]["pieces"].as_u64().unwrap();
    assert!(pieces > 2, "values of this drive are short: {put}");
    for (key, expected) in [("short", &short), ("long", &long)] {
        assert!(array.csd(&["kv", "get", key]).expect(0, &[]).stdout == *expected, "{key}");
        // By URL the first key-value namespace is the same.
        let got = array.csd(&["kv", "get", key, "-", "--drive", &url]).expect(0, &[]);
        assert!(got.stdout == *expected, "{key}");
    }
    let listed = |more: &[&str]| {
        let listed = array.csd(&[&["kv", "ls", "--json"], more].concat()).expect(0, &[]).json();
        listed["result"]["keys"].as_array().unwrap().len()
    };
    assert_eq!(
        (listed(&[]), listed(&["sh"]), listed(&["--all"])),
        (2, 1, 2 + usize::try_from(pieces).unwrap())
    );
    array.csd(&["kv", "rm", "long"]).expect(0, &[]);
    assert_eq!(listed(&["--all"]), 1, "its pieces are gone");
    array.csd(&["kv", "get", "long"]).expect(2, &["there is no key long"]);
    let exists = array.csd(&["kv", "exists", "short", "long"]).expect(4, &["long: does not exist"]);
    assert_eq!(exists.text(), "short: exists\n");
    let failed = array.csd(&["kv", "rm", "short", "long"]).expect(2, &["1 of 2 failed"]);
    assert_eq!(failed.text(), "short: deleted\n");
    assert_eq!(array.csd(&["kv", "ls"]).expect(0, &[]).text(), "no keys\n");
}

#[test]
fn pieces_that_no_object_has_are_found_and_deleted() {
    let array = Array::up(1, "256M");
    let long = bytes(4, 1_000_001);
    array.file("long", &long);
    array.csd(&["kv", "put", "long"]).expect(0, &[]);
    assert_eq!(array.csd(&["kv", "gc"]).expect(0, &[]).text(), "no pieces without an object\n");
    // As a host leaves them that ends before it publishes the manifest.
    let pieces = ["f5435344010203040506070800000000", "f5435344010203040506070800000001"];
    let client = Client::connect(&array.url(0), &Settings::default()).unwrap();
    let piece = bytes(3, client.value_bytes_max() as usize);
    for number in 0..2 {
        client.put(&piece_like(1, number), &piece).unwrap();
    }
    // Keys of the same form, under which others have stored values of their own.
    let own = [piece_like(0, 0x0123_4567), piece_like(9, 0), piece_like(10, 0), piece_like(10, 1)];
    for key in own {
        client.put(&key, b"small").unwrap();
    }
    let manifest = client.get(b"long").unwrap().expect("it is there");
    let object = manifest[24..32].to_vec();
    client.delete(b"long").unwrap();
    client.put(&piece_like(11, 0), &manifest).unwrap();
    let hex = |run: &str| {
        let words: Vec<&str> = run.split(' ').collect();
        let result = array.csd(&words).expect(0, &[]).json()["result"].clone();
        let keys = result["keys"].as_array().unwrap().clone();
        let keys: Vec<String> =
            keys.iter().map(|key| key["hex"].as_str().unwrap().into()).collect();
        (keys, result["deleted"].as_bool().unwrap())
    };
    let found: Vec<String> = pieces.map(str::to_owned).into();
    assert_eq!(hex("kv gc --json"), (found.clone(), false), "and they stay");
    let said = array.csd(&["kv", "gc"]).expect(0, &[]).text();
    assert!(said.starts_with("2 pieces without an object"), "{said}");
    array.csd(&["kv", "gc", "--wait", "1"]).expect(2, &["--delete"]);
    assert_eq!(hex("kv gc --delete --wait 0 --json"), (found, true));
    assert_eq!(hex("kv gc --delete --json"), (Vec::new(), true), "no wait without pieces");
    for key in own {
        assert_eq!(client.get(&key).unwrap().as_deref(), Some(&b"small"[..]));
    }
    let read = client.get_object(&piece_like(11, 0)).unwrap();
    assert!(read.as_deref() == Some(&long[..]), "a manifest under such a key and its pieces stay");
    assert!(client.delete_object(&piece_like(11, 0)).unwrap());
    let of_object = |key: &Key| key.padded()[4..12] == object;
    assert!(!client.keys(b"").map(Result::unwrap).any(|key| of_object(&key)));
}

/// Returns a key of the form that pieces have.
fn piece_like(object: u8, number: u32) -> [u8; 16] {
    let mut key = *b"\xF5CSD\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0";
    key[4] = object;
    key[12..].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn no_object_has_the_key_of_a_piece() {
    let array = Array::up(1, "256M");
    array.file("short", b"small");
    array.file("long", &bytes(5, 1_000_001));
    let key = "f5435344000000000000000001234567";
    for file in ["short", "long"] {
        array.csd(&["kv", "put", file, key, "--hex"]).expect(2, &["under another key"]);
    }
    assert_eq!(array.csd(&["kv", "ls", "--all"]).expect(0, &[]).text(), "no keys\n");
    // One byte less or more is a key as any other.
    for key in [&key[..30], "f5435345000000000000000001234567"] {
        array.csd(&["kv", "put", "long", key, "--hex"]).expect(0, &[]);
        array.csd(&["kv", "rm", key, "--hex"]).expect(0, &[]);
    }
}

/// A drive that counts commands would be asked 4 billion times.
#[test]
fn a_manifest_that_names_pieces_that_do_not_exist_costs_few_commands() {
    let array = Array::up(1, "256M");
    array.file("short", b"small");
    let client = Client::connect(&array.url(0), &Settings::default()).unwrap();
    let (bytes, piece_bytes, id, crc) = (u64::from(u32::MAX), 1, *b"HOSTILE!", 0);
    let manifest = Manifest { id, piece_bytes, bytes, crc };
    for left in [&[][..], &[0, 1, 2], &[0, u32::MAX - 1]] {
        let store = || {
            client.put(b"evil", &manifest.to_bytes()).unwrap();
            for number in left {
                client.put(manifest.key(*number).as_bytes(), b"x").unwrap();
            }
        };
        store();
        array.csd(&["kv", "get", "evil"]).expect(1, &["of 4294967295 is missing"]);
        array.csd(&["kv", "rm", "evil"]).expect(0, &[]);
        assert_eq!(client.keys(b"").count(), 0, "those that exist are deleted");
        store();
        array.csd(&["kv", "put", "short", "evil"]).expect(0, &[]);
        assert_eq!(client.keys(b"").count(), 1);
        assert!(client.delete(b"evil").unwrap());
    }
}

#[test]
fn get_overwrites_no_file_and_put_no_value_against_an_option() {
    let array = Array::up(1, "256M");
    array.file("a", b"first");
    array.file("b", b"second");
    array.csd(&["kv", "put", "a", "k", "--if-exists"]).expect(2, &["there is no key k"]);
    array.csd(&["kv", "put", "a", "k", "--if-absent"]).expect(0, &[]);
    array.csd(&["kv", "put", "b", "k", "--if-absent"]).expect(2, &["key k exists already"]);
    assert_eq!(array.csd(&["kv", "get", "k"]).expect(0, &[]).stdout, b"first");
    array.csd(&["kv", "get", "k", "b"]).expect(1, &["b exists", "--force"]);
    assert_eq!(fs::read(array.path("b")).unwrap(), b"second");
    array.csd(&["kv", "get", "none", "b", "--force"]).expect(2, &["there is no key none"]);
    assert_eq!(fs::read(array.path("b")).unwrap(), b"second", "a failed get leaves it");
    array.csd(&["kv", "get", "k", "b", "--force"]).expect(0, &[]);
    assert_eq!(fs::read(array.path("b")).unwrap(), b"first");
    array
        .csd(&["kv", "put", "b", "k", "--if-absent", "--if-exists"])
        .expect(2, &["cannot be used"]);
    let refused = array.csd(&["kv", "get", "k", "--json"]).expect(2, &[]).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("standard output"));
}

#[test]
fn keys_are_text_or_digits_and_may_come_from_standard_input() {
    let array = Array::up(1, "256M");
    let input = array.path("input");
    fs::write(&input, b"bytes").unwrap();
    let put = ["kv", "put", "-", "00ff10", "--hex"];
    array.csd_with(&put, Some(&input)).expect(0, &[]);
    array.csd_with(&["kv", "put", "-", "text"], Some(&input)).expect(0, &[]);
    array.csd_with(&["kv", "put", "-"], Some(&input)).expect(2, &["say the key"]);
    assert_eq!(array.csd(&["kv", "ls"]).expect(0, &[]).text(), "\\x00\\xff\\x10\ntext\n");
    let listed = array.csd(&["kv", "ls", "74", "--hex"]).expect(0, &[]).text();
    assert_eq!(listed, "74657874\n");
    assert_eq!(array.csd(&["kv", "get", "00FF10", "--hex"]).expect(0, &[]).stdout, b"bytes");
    for (key, words) in [
        ("", "has 0 bytes"),
        ("seventeen letters", "has 17 bytes"),
        ("seventeen letters and more", "1 to 16"),
    ] {
        array.csd(&["kv", "exists", key]).expect(2, &[words]);
    }
    array.csd(&["kv", "exists", "xyz", "--hex"]).expect(2, &["not hexadecimal digits"]);
}

#[test]
fn a_drive_is_found_by_name_or_url_or_said_to_be_missing() {
    let array = Array::up(2, "256M");
    array.csd(&["kv", "info"]).expect(2, &["has 2 drives", "--drive NAME"]);
    array.csd(&["kv", "info", "--drive", "d9"]).expect(2, &["no drive \"d9\""]);
    let info = array.csd(&["kv", "info", "--drive", "d1"]).expect(0, &[]).text();
    assert!(info.contains("longest value") && info.contains("no limit"), "{info}");
    let url = array.url(1);
    let block = format!("{url}?nsid=1");
    array.csd(&["kv", "info", "--drive", &block]).expect(2, &["namespace 1 is no kv namespace"]);
    array.csd(&["kv", "info", "--drive", "nvme+tcp://x"]).expect(2, &["is not an address"]);
    array.kill(1);
    array.csd(&["kv", "info", "--drive", "d1"]).expect(1, &["cannot be reached"]);
}

#[test]
fn a_connection_that_is_cut_costs_an_object_nothing_but_time() {
    let proxied = ProxiedArray::new(Array::up(2, "256M"));
    let long = bytes(3, 3_000_001);
    proxied.array.file("long", &long);
    // In the pieces, and at the manifest: 12 pieces of 256 KiB, then the manifest.
    for cuts in [&[2][..], &[5, 6, 9], &[13]] {
        proxied.proxy.cut(STORE, cuts, Door::Open);
        proxied.array.csd(&ProxiedArray::arguments("kv put long --drive d1")).expect(0, &[]);
        assert_eq!(proxied.proxy.cuts(), cuts.len());
        let got = proxied.array.csd(&["kv", "get", "long", "--drive", "d1"]).expect(0, &[]);
        assert!(got.stdout == long, "{cuts:?}");
    }
    let all = proxied.array.csd(&["kv", "ls", "--all", "--drive", "d1"]).expect(0, &[]).text();
    assert_eq!(all.lines().count(), 13, "nothing of an older version is left");
    proxied.proxy.cut(STORE, &[4], Door::Shut);
    let put = ProxiedArray::arguments("kv put long --drive d1");
    let failed = proxied.array.csd(&put).expect(1, &[]).json();
    assert!(failed["error"]["message"].as_str().unwrap().contains("lost"), "{failed}");
    let got = proxied.array.csd(&["kv", "get", "long", "--drive", "d1"]).expect(0, &[]);
    assert!(got.stdout == long, "the old object is whole");
}
