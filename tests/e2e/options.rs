//! Options of an array's drives: the array file keeps them, and an array accepts no others.

use std::fs;

use serde_json::Value;

use crate::support::harness::{Array, built};

fn memory_bytes(drive: &Value) -> u64 {
    let namespaces = drive["namespaces"].as_array().unwrap();
    let memory = namespaces.iter().find(|namespace| namespace["kind"] == "memory").unwrap();
    memory["bytes"].as_u64().unwrap()
}

#[test]
fn drives_have_the_options_of_the_array_at_every_start() {
    let array = Array::without_drives();
    let digest = "00".repeat(32);
    let line = "array up --drives 2 --size 128M --media memory --memory 32M --cores 2 \
                --shared-compute --kv-index ordered --index-memory 1G";
    let words: Vec<&str> = line.split(' ').chain(["--allow-program", &digest]).collect();
    array.csd(&words).expect(0, &[]);
    let grep = built("rust-grep");
    for start in 0..2 {
        let drives = array.drives();
        assert!(drives.iter().all(|drive| memory_bytes(drive) == 32 << 20), "{start}: {drives:?}");
        array.csd(&["program", "load", &grep]).expect(1, &["0x15"]);
        array.csd(&["array", "down"]).expect(0, &[]);
        array.csd(&["array", "up"]).expect(0, &[]);
    }
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let index = ["kv-index = \"ordered\"", "index-memory = \"1G\""];
    let other = ["kv = \"80%\"", "memory = \"32M\"", "shared-compute = true", "cores = 2"];
    for kept in index.iter().chain(&other) {
        assert_eq!(file.matches(kept).count(), 2, "{kept}: {file}");
    }
    array.csd(&["array", "add", "--drives", "1", "--drain", "7"]).expect(0, &[]);
    assert_eq!(memory_bytes(&array.drives()[2]), 32 << 20);
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    assert_eq!(file.matches("drain = \"7\"").count(), 1, "{file}");
}

#[test]
fn options_that_the_array_does_not_have_are_refused() {
    let array = Array::without_drives();
    let up = |line: &str| array.csd(&line.split(' ').collect::<Vec<_>>());
    up("array up --drives 1 --size 128M --memory 32M").expect(0, &[]);
    up("array up --size 128M --memory 32768K --kv 80 --cores 1").expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    for (asked, words) in [
        ("--size 8G", &["--size 128 MiB", "not --size 8 GiB", "leave the option out"][..]),
        ("--media memory", &["--media file", "not --media memory"]),
        ("--kv 50%", &["--kv 80%", "not --kv 50%", "its medium was made so"]),
        ("--memory 1G", &["--memory 32M", "not --memory 1G", "`memory` under [drives.options]"]),
        ("--cores 2", &["--cores 1", "not --cores 2", "change `cores`"]),
        ("--metrics 127.0.0.1:0", &["no `metrics`", "not --metrics 127.0.0.1:0"]),
    ] {
        let refused = up(&format!("array up {asked}")).expect(2, words);
        assert!(refused.stderr.contains("nothing was started"), "{}", refused.stderr);
    }
    let status = array.csd(&["array", "status", "--json"]).expect(4, &[]).json();
    assert_eq!(status["result"]["drives"][0]["state"], "down");
    // The remedy in the error message works.
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    array.file("csd-array.toml", file.replace("\"32M\"", "\"16M\"").as_bytes());
    up("array up --memory 16M").expect(0, &[]);
    assert_eq!(memory_bytes(&array.drives()[0]), 16 << 20);
}

#[test]
fn an_array_file_cannot_start_drives_with_other_options() {
    let array = Array::without_drives();
    array.csd(&["array", "up", "--drives", "1", "--size", "128M"]).expect(0, &[]);
    array.csd(&["array", "down"]).expect(0, &[]);
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let outside = array.path("outside").display().to_string();
    for (option, why) in [
        (format!("ready-file = \"{outside}\""), "--ready-file"),
        ("listen = \"0.0.0.0:0\"".to_owned(), "--listen"),
        ("memory = \"lots\"".to_owned(), "lots"),
    ] {
        array.file("csd-array.toml", format!("{file}{option}\n").as_bytes());
        array.csd(&["array", "up"]).expect(2, &["options of drive d0", why]);
    }
    assert!(!array.path("outside").exists());
    array.file("csd-array.toml", file.as_bytes());
}

#[test]
fn an_array_always_has_space_for_blocks() {
    let array = Array::without_drives();
    let up = ["array", "up", "--drives", "1", "--size", "128M", "--kv", "100%"];
    array.csd(&up).expect(2, &["--kv 100%", "for blocks"]);
    assert!(!array.path("csd-array.toml").exists());
    let url = "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.x:y";
    array.csd(&["array", "up", "--drives", "1", "--size", "128M"]).expect(0, &[]);
    array.csd(&["array", "add", url, "--kv", "50%"]).expect(2, &["say --drives"]);
    array.csd(&["array", "add", "--drives", "1", "--kv", "100%"]).expect(2, &["for blocks"]);
}
