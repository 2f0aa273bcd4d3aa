//! Drives and arrays: up, status, down, and the operations that they refuse.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::data::small_i32;
use crate::support::harness::{Array, address_of, finish, signal};

#[test]
fn media_files_are_kept_over_down_and_up() {
    let (bytes, sevens) = small_i32(20, 900_000);
    let array = Array::up_on_files(2, "128M");
    array.file("x.bin", &bytes);
    for on in ["kv", "block"] {
        array.csd(&["put", "x.bin", on, "--type", "i32", "--on", on]).expect(0, &[]);
    }
    let before = array.drives();
    array.csd(&["array", "up"]).expect(0, &[]);
    let pids = |drives: &[serde_json::Value]| -> Vec<_> {
        drives.iter().map(|drive| drive["pid"].clone()).collect()
    };
    assert_eq!(pids(&before), pids(&array.drives()), "what runs is left alone");

    array.csd(&["array", "down"]).expect(0, &[]);
    array
        .csd(&["ls"])
        .expect(1, &["no drive is up; `csd array up` starts them", "drive d0", "drive d1"]);
    array.csd(&["array", "status"]).expect(4, &["drive d0", "drive d1", "is down"]);
    array.csd(&["array", "down"]).expect(0, &[]);

    array.csd(&["array", "up"]).expect(0, &[]);
    for on in ["kv", "block"] {
        let count = ["run", "count", on, "--equal", "7", "--on", "all", "--json"];
        assert_eq!(array.csd(&count).expect(0, &[]).json()["result"]["count"], sevens);
        array.csd(&["get", on, "back", "--force"]).expect(0, &[]);
        assert!(fs::read(array.path("back")).unwrap() == bytes);
    }
    for drive in array.drives() {
        assert_eq!((&drive["state"], &drive["objects"]), (&"up".into(), &2.into()), "{drive}");
    }
    array.csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    assert!(!array.path("csd-array").exists() && !array.path("csd-array.toml").exists());
}

#[test]
fn up_does_not_change_the_number_of_drives() {
    let array = Array::up(2, "128M");
    let more = array.csd(&["array", "up", "--drives", "3"]);
    let more = more.expect(2, &["has 2 drives", "csd array add --drives 1"]);
    assert!(!more.stderr.contains("delete"), "{}", more.stderr);
    array.csd(&["array", "up", "--drives", "1"]).expect(2, &["has 2 drives", "csd array remove"]);
    array.csd(&["array", "up", "--drives", "2"]).expect(0, &[]);
}

#[test]
fn a_drive_that_cannot_start_says_why() {
    let array = Array::up(1, "128M");
    let up = ["--array", "b.toml", "array", "up", "--dir", "b", "--drives", "1", "--size", "4K"];
    let failed = array.csd(&up);
    failed.expect(2, &["at least 128 MiB", "use --size"]);
    let with = |more: &[&str]| array.csd(&[&up[..8], &["--size", "128M"], more].concat());
    with(&["--backend", "none"]).expect(2, &["none"]);
    assert!(!array.path("b").exists() && !array.path("b.toml").exists(), "nothing is left");
}

#[test]
fn a_drive_refuses_what_it_should_not_serve() {
    let array = Array::up(1, "128M");
    let taken = &*address_of(&array.url(0)).to_string();
    let serve = ["drive", "serve", "--media", "memory", "--size", "128M", "--listen"];
    let with = |listen: &'static [&str]| [&serve[..], listen].concat();
    array.csd(&[&serve[..], &[taken]].concat()).expect(1, &["cannot listen on", taken]);
    array.csd(&with(&["0.0.0.0:0"])).expect(2, &["not a loopback address", "--allow-any-host"]);
    array.csd(&with(&["nonsense"])).expect(2, &["nonsense"]);
    array.file("not-a-drive", &vec![7; 128 << 20]);
    let other = ["drive", "serve", "--media", "not-a-drive", "--size", "128M", "--listen"];
    let refused = array.csd(&[&other[..], &["127.0.0.1:0"]].concat());
    assert_ne!(refused.code, 0, "{}", refused.text());
    assert!(!refused.stderr.is_empty());
    let unchanged = fs::read(array.path("not-a-drive")).unwrap();
    assert!(unchanged == vec![7; 128 << 20], "somebody else's file was written to");
    let unwritable = ["drive", "serve", "--media", "/nowhere/x", "--size", "128M", "--listen"];
    array.csd(&[&unwritable[..], &["127.0.0.1:0"]].concat()).expect(1, &["/nowhere/x"]);
}

#[test]
fn a_drive_says_where_it_serves_and_stops_when_told() {
    let array = Array::up(1, "128M");
    for stop in [Signal::TERM, Signal::INT] {
        let serve = [
            "drive",
            "serve",
            "--media",
            "memory",
            "--size",
            "128M",
            "--listen",
            "127.0.0.1:0",
            "--ready-file",
            "ready",
            "--json",
        ];
        let mut running = array.spawn(&serve, Stdio::null());
        let url = running.serves(&array.path("ready"));
        signal(running.child.id(), stop);
        let done = finish(running).expect(0, &[]);
        assert_eq!(done.json()["result"]["url"], url);
        fs::remove_file(array.path("ready")).unwrap();
    }
}

#[test]
fn bad_array_files_are_told_with_their_fault() {
    let array = Array::up(1, "128M");
    let good = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    for (from, to, words) in [
        ("schema = 1", "schema = 9", "schema must be 1"),
        ("name = \"d0\"", "nom = \"d0\"", "unknown field `nom`"),
    ] {
        array.file("bad.toml", good.replace(from, to).as_bytes());
        array.csd(&["--array", "bad.toml", "ls"]).expect(2, &["bad.toml", words]);
    }
    let moved = good.replace("127.0.0.1", "no-such-host.invalid");
    array.file("bad.toml", moved.as_bytes());
    array.csd(&["--array", "bad.toml", "ls"]).expect(1, &["drive d0", "no-such-host.invalid"]);
    let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listening.local_addr().unwrap().port();
    let url = array.url(0);
    let real = url.rsplit_once('/').unwrap().0;
    // A server that accepts and sends nothing.
    let silent = good.replace(real, &format!("nvme+tcp://127.0.0.1:{port}"));
    array.file("bad.toml", silent.as_bytes());
    array.csd(&["--array", "bad.toml", "ls"]).expect(1, &["drive d0", "is down"]);
}
