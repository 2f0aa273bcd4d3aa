//! Status that drives report.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::drive::{Drive, NQN, kv};
use crate::support::harness::{Array, finish, wait_until};
use crate::support::json_page::Page;

fn described(answer: &Value) -> Vec<Value> {
    let wrong = Page::read().wrong("", "csd drive status", &answer["result"]);
    assert!(wrong.is_empty(), "{wrong:#?}");
    answer["result"]["drives"].as_array().unwrap().clone()
}

#[test]
fn drives_of_an_array_tell_space_health_and_who_is_connected() {
    let array = Array::up(2, "256M");
    array.file("x.bin", &[7; 8 << 20]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    let status = || described(&array.csd(&["drive", "status", "--json"]).expect(0, &[]).json());
    let drives = status();
    assert_eq!(drives.len(), 2);
    for drive in &drives {
        let hosts = &drive["hosts"];
        assert_eq!(hosts["controllers"].as_array().unwrap(), &[hosts["own_controller"].clone()]);
        assert_eq!(drive["health"]["critical_warning"], 0);
        assert!(drive["health"]["written_bytes"].as_u64().unwrap() >= 4 << 20, "{drive}");
        let objects = &drive["space"][2];
        assert_eq!((&objects["kind"], &objects["nsid"]), (&"kv".into(), &3.into()));
        assert!(objects["used_bytes"].as_u64().unwrap() > 4 << 20, "{objects}");
        assert_eq!(drive["limits"]["value_bytes_max"], objects["value_bytes_max"]);
    }
    // A host that stays connected.
    let mut running = array.spawn(&["put", "-", "slow"], Stdio::piped());
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(&vec![7; 8 << 20]).unwrap();
    wait_until("both hosts are seen", || {
        status().iter().all(|drive| drive["hosts"]["controllers"].as_array().unwrap().len() == 2)
    });
    drop(input);
    finish(running).expect(0, &[]);
    let one = array.csd(&["drive", "status", "d1"]).expect(0, &[]).text();
    for words in ["drive     d1\n", "health    good\n", "used\n", "hosts     1 connected"] {
        assert!(one.contains(words), "{words:?}: {one}");
    }
    array.csd(&["drive", "status", "d7"]).expect(2, &["no drive \"d7\""]);
    array.kill(1);
    let left = described(&array.csd(&["drive", "status", "--json"]).expect(4, &[]).json());
    assert_eq!((left.len(), &left[0]["drive"]), (1, &"d0".into()));
}

#[test]
fn a_drive_whose_media_are_read_only_says_so_by_its_url() {
    let mut drive = Drive::serve("m", &["--memory", "32M"]);
    let url = |drive: &Drive| format!("nvme+tcp://{}/{NQN}", drive.address());
    let asked = |url: &str, code| drive.array.csd(&["drive", "status", url]).expect(code, &[]);
    let healthy = asked(&url(&drive), 0).text();
    assert!(healthy.contains("4: 32 MiB of memory"), "{healthy}");
    drive.stop().expect(0, &[]);
    drive.start("m", &["--salvage"]);
    let words = ["warning: drive", "its media are read-only (critical warning 0x08)"];
    drive.array.csd(&["drive", "status", &url(&drive)]).expect(4, &words);
    let gone = url(&drive);
    drive.stop().expect(0, &[]);
    drive.array.csd(&["drive", "status", &gone]).expect(1, &[]);
}

#[test]
fn a_medium_whose_file_is_deleted_or_replaced_takes_no_more_stores_and_says_so() {
    let delete: fn(&Path) = |path| fs::remove_file(path).unwrap();
    let replace: fn(&Path) = |path| {
        let other = path.with_extension("other");
        fs::copy(path, &other).unwrap();
        fs::rename(other, path).unwrap();
    };
    for lose in [delete, replace] {
        let mut drive = Drive::serve("m", &[]);
        let (_admin, mut io) = drive.connect();
        let store = || kv(0x01, b"first", 100);
        assert_eq!(io.command_in_capsule(store(), &[1; 100]).status, 0);
        lose(&drive.array.path("m"));
        let other = kv(0x01, b"second", 100);
        assert_ne!(io.command_in_capsule(other, &[2; 100]).status, 0, "it would not be found");
        let read = io.command(kv(0x02, b"first", 100), &[], 100);
        assert_eq!((read.status, &read.data[..]), (0, &[1; 100][..]));
        let url = format!("nvme+tcp://{}/{NQN}", drive.address());
        let words = ["its media are read-only", "media errors: 1", "deleted or replaced"];
        drive.array.csd(&["drive", "status", &url]).expect(4, &words);
        let status = drive.array.csd(&["drive", "status", &url, "--json"]).expect(4, &[]);
        let last = described(&status.json())[0]["health"]["last_media_error"].clone();
        assert_eq!((&last["operation"], &last["bytes"]), (&"sync".into(), &0.into()), "{last}");
        drop(io);
        let words = ["the medium has become read-only", "deleted or replaced", "copy it"];
        drive.stop().expect(0, &words);
    }
}
