//! More drives for an array with objects.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use csd_initiator::Kv;
use csd_nvme::kv::STORE_IF_ABSENT;
use csd_reactor::Buffer;
use csd_store::catalogue::{self, Entry, State, claim_key};
use serde_json::json;

use crate::support::direct::on_objects;
use crate::support::drive::{Drive, NQN};
use crate::support::harness::{Array, finish, wait_until};

static BYTES: [u8; 100_000] = [7; 100_000];

fn put(array: &Array, name: &str) {
    array.file("x.bin", &BYTES);
    array.csd(&["put", "x.bin", name]).expect(0, &[]);
}

/// Returns an array file whose last drive is still joining.
fn joining(file: &str) -> String {
    let (first, last) = file.rsplit_once("[[drives]]").unwrap();
    format!("{first}[[joining]]{}", last.replace("[drives.", "[joining."))
}

fn listed(array: &Array, code: i32) -> Vec<String> {
    let list = array.csd(&["ls", "--json"]).expect(code, &[]).json();
    let objects = list["result"]["objects"].as_array().unwrap().clone();
    objects.iter().map(|object| object["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn with_any_minority_down_an_old_name_is_found_or_the_command_fails() {
    for media in ["file", "memory"] {
        let array = match media {
            "file" => Array::up_on_files(2, "128M"),
            _ => Array::up(2, "128M"),
        };
        put(&array, "kept");
        put(&array, "gone");
        array.csd(&["rm", "gone"]).expect(0, &[]);
        let added = array.csd(&["array", "add", "--drives", "3", "--json"]).expect(0, &[]).json();
        assert_eq!(added["result"]["names"], 2, "tombstones too: {added}");
        assert_eq!(array.drives().len(), 5);
        assert!(array.csd(&["get", "kept", "-"]).expect(0, &[]).stdout == BYTES);
        let wide = [vec![1; 8 << 20], vec![2; 8 << 20]].concat();
        array.file("wide.bin", &wide);
        array.csd(&["put", "wide.bin", "wide"]).expect(0, &[]);
        assert!(array.csd(&["get", "wide", "-"]).expect(0, &[]).stdout == wide);
        for drive in &array.drives()[2..] {
            assert_eq!(drive["objects"], 1, "new objects use the new drives: {drive}");
        }
        array.kill(0);
        array.kill(1);
        // The three new drives are a majority, and have every name.
        assert_eq!(listed(&array, 4), ["kept", "wide"]);
        let get = array.csd(&["get", "kept", "-"]);
        assert_eq!(get.code, 1);
        assert!(get.stderr.contains("drive d0") || get.stderr.contains("drive d1"));
        assert!(!get.stderr.contains("no object"), "{}", get.stderr);
        array.csd(&["put", "wide.bin", "kept"]).expect(2, &["exists and is immutable"]);
        array.csd(&["stat", "gone"]).expect(2, &["no object"]);
    }
}

#[test]
fn epochs_that_were_won_and_not_written_are_written_before_names_are_copied() {
    let array = Array::up(2, "128M");
    put(&array, "x");
    // A put that was interrupted after it had claimed the epoch of its sealed entry on both drives.
    for drive in 0..2 {
        on_objects(&array, drive, async |kv: &Kv| {
            let key = catalogue::key("x");
            let value = |entry: &Entry| vec![Buffer::from_slice(&entry.encode())];
            let sealed = kv.retrieve(&key, 4096).await.unwrap().unwrap();
            let sealed = Entry::parse(&sealed).unwrap();
            let mut staged = sealed.clone();
            (staged.state, staged.epoch) = (State::Staged, sealed.epoch - 1);
            kv.store(&key, value(&staged), 0).await.unwrap();
            let claim = claim_key("x", sealed.epoch);
            kv.store(&claim, value(&sealed), STORE_IF_ABSENT).await.unwrap();
        });
    }
    array.csd(&["array", "add", "--drives", "3"]).expect(0, &[]);
    assert!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout == BYTES);
    array.kill(0);
    array.kill(1);
    assert_eq!(listed(&array, 4), ["x"]);
}

#[test]
fn a_drive_that_serves_is_added_by_its_url_unless_it_is_in_use() {
    let array = Array::up(2, "128M");
    put(&array, "x");
    let before = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let drive = Drive::serve("memory", &[]);
    let url = drive.url();
    let other = Array::up(1, "128M");
    put(&other, "y");
    let used = other.url(0);
    let add = |url: &str| array.csd(&["array", "add", url]);
    add(&used).expect(2, &["the array is as it was", "chunks of objects", "of another array"]);
    let own = array.url(0);
    add(&own).expect(2, &["is drive d0 of this array already"]);
    add("nvme+tcp://127.0.0.1:1/nqn.2026-11.io.x:y").expect(1, &["the array is as it was", "d2"]);
    add("nonsense").expect(2, &["nonsense"]);
    assert_eq!(fs::read_to_string(array.path("csd-array.toml")).unwrap(), before);
    add(&url).expect(0, &[]);
    assert_eq!(array.drives()[2]["url"], json!(url));
    assert!(url.contains(NQN));
    let down = array.csd(&["array", "down"]).expect(0, &[]).text();
    assert!(down.contains("d2  not started by array up: left alone"), "{down}");
}

#[test]
fn every_drive_must_be_up_to_add_one() {
    let array = Array::up_on_files(3, "128M");
    array.kill(2);
    let before = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    array.csd(&["array", "add", "--drives", "1"]).expect(1, &["drive d2", "is down"]);
    assert_eq!(fs::read_to_string(array.path("csd-array.toml")).unwrap(), before);
    assert!(!array.path("csd-array/d3.media").exists());
}

#[test]
fn an_add_that_was_cut_off_leaves_the_old_array_and_can_be_repeated() {
    let array = Array::up_on_files(2, "128M");
    put(&array, "x");
    // The state after it is killed while it copies: a drive that joins, with some names on it.
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    array.file("csd-array.toml", joining(&file).as_bytes());
    let medium = array.path("csd-array/d2.media");
    assert_eq!(array.drives().len(), 2);
    put(&array, "y");
    array.csd(&["array", "add", "--drives", "3"]).expect(0, &[]);
    assert_eq!(array.drives().len(), 5);
    assert!(medium.exists(), "the name is used again");
    array.kill(0);
    array.kill(1);
    assert_eq!(listed(&array, 4), ["x", "y"]);
    // The same before `down --delete`: the joining drive is deleted, too.
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    array.file("csd-array.toml", joining(&file).as_bytes());
    array.csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    assert!(!array.path("csd-array").exists());
}

#[test]
fn a_put_that_is_under_way_ends_before_drives_are_added() {
    let array = Array::up(2, "256M");
    let mut running = array.spawn(&["put", "-", "slow"], Stdio::piped());
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(&vec![7; 8 << 20]).unwrap();
    wait_until("the put has begun", || {
        array.csd(&["ls", "--all"]).expect(0, &[]).text().contains("slow")
    });
    let mut adding = array.spawn(&["array", "add", "--drives", "3"], Stdio::null());
    let said = adding.output.path().join("err");
    wait_until("it waits for the put", || {
        fs::read_to_string(&said).unwrap().contains("waiting for another command")
    });
    assert!(adding.child.try_wait().unwrap().is_none());
    assert_eq!(array.drives().len(), 2);
    drop(input);
    finish(running).expect(0, &[]);
    finish(adding).expect(0, &[]);
    assert_eq!(array.drives().len(), 5);
    array.kill(0);
    array.kill(1);
    assert_eq!(listed(&array, 4), ["slow"]);
}
