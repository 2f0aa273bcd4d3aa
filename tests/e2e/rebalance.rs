//! `csd array rebalance`: objects are moved to all drives, and stay what they were.

use std::collections::BTreeSet;
use std::process::Stdio;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::{Array, finish, wait_until};
use crate::support::json_page::documented;
use crate::support::kernel_runs::{RUNS, answer, put_all_layouts};
use crate::support::page_lists::all_lists;
use crate::support::pieces::{CHUNK, check, get, keys, put};
use crate::support::placement::{assert_nothing_left, holders, rebalanced, stat};

#[test]
fn objects_of_every_layout_and_placement_move_to_all_drives_and_stay_what_they_were() {
    for more in [&["--protect", "rs:2+1"][..], &[]] {
        let array = Array::up(3, "512M");
        put_all_layouts(&array, more);
        let names = ["a", "again", "b", "graph", "matrix", "on-blocks", "others", "sorted"];
        let run = |line: &str, writes: bool| {
            let line = format!("run {line} --on all --json");
            let report = array.csd(&line.split(' ').collect::<Vec<_>>());
            // The ranks of the matrix do not settle.
            assert!(matches!(report.code, 0 | 4), "{line}: {}{}", report.text(), report.stderr);
            answer(&array, &report.json(), writes)
        };
        // Kernels do not see whether an object is protected.
        let runs = || RUNS.iter().step_by(if more.is_empty() { 4 } else { 1 });
        let answers: Vec<_> = runs().map(|(line, _, writes)| run(line, *writes)).collect();
        let before = names.map(|name| (stat(&array, name), get(&array, name, &[]).stdout));
        array.csd(&["array", "add", "--drives", "2"]).expect(0, &[]);
        let done = rebalanced(&array, &[], 0);
        assert_eq!((&done["moved"], &done["untouched"]), (&json!(names), &json!(0)));
        let moved_bytes: u64 = before.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert!(done["moved_bytes"].as_u64().unwrap() <= moved_bytes);
        assert_eq!(done["by_drives"], done["chunks"], "{done}");
        for (name, (before, content)) in names.iter().zip(&before) {
            let after = stat(&array, name);
            let fields = ["type", "shape", "bytes", "chunk_bytes", "chunks", "on", "layout"];
            for field in fields.into_iter().chain(["blake3"]) {
                assert_eq!(after[field], before[field], "{name}: {field}");
            }
            assert_eq!(after["protection"]["code"], before["protection"]["code"], "{name}");
            assert_eq!(holders(&after).len(), 5, "{name}: {after}");
            assert!(get(&array, name, &[]).expect(0, &[]).stdout == *content, "{name}");
            if !more.is_empty() {
                check(&array, name, 2, 1);
            }
        }
        for ((line, _, writes), expected) in runs().zip(&answers) {
            assert_eq!(run(line, *writes), *expected, "{line}");
        }
        array.csd(&["scrub"]).expect(0, &[]);
        let again = rebalanced(&array, &[], 0);
        assert_eq!((&again["moved"], &again["untouched"]), (&json!([]), &json!(8)));
        assert_nothing_left(&array, &[0, 1, 2, 3, 4], &names);
        let lost: BTreeSet<_> = (0..5).map(|drive| format!("d{drive}")).collect();
        assert_eq!(holders(&stat(&array, "on-blocks")), lost);
        if !more.is_empty() {
            array.kill(4);
            for (name, (_, content)) in names.iter().zip(&before) {
                assert!(get(&array, name, &[]).expect(4, &[]).stdout == *content, "{name}");
            }
        }
    }
}

#[test]
fn the_data_goes_from_drive_to_drive_or_by_the_host_if_drives_do_not_know_each_other() {
    let array = Array::up(4, "256M");
    let content = bytes(7, 24_000_001);
    array.file("x", &content);
    let puts = [
        "plain",
        "coded --protect rs:2+1",
        "blocks --on block",
        "both --on block --protect rs:2+1",
    ];
    let names: Vec<&str> = puts.iter().map(|put| put.split(' ').next().unwrap()).collect();
    let put_all = || {
        for put in puts {
            let words: Vec<&str> = put.split(' ').collect();
            array.csd(&[&["put", "x"], &words[..]].concat()).expect(0, &[]);
        }
    };
    put_all();
    let listed = || all_lists(&array).iter().map(|list| list.pieces.len()).sum::<usize>();
    let before = listed();
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    for (name, put) in names.iter().zip(puts) {
        let done = rebalanced(&array, &[name], 0);
        let chunks = done["chunks"].as_u64().unwrap();
        assert_eq!((chunks > 10, &done["by_drives"]), (true, &done["chunks"]), "{name}: {done}");
        let crossed = done["host_crossed_bytes"].as_u64().unwrap();
        // The catalogue, which is looked at as long as it takes.
        assert!(crossed > 0 && crossed < content.len() as u64 / 10, "{name}: {crossed}");
        assert!(get(&array, name, &[]).expect(0, &[]).stdout == content, "{name}");
        if put.contains("rs:") {
            check(&array, name, 2, 1);
        }
    }
    array.csd(&["scrub"]).expect(0, &[]);
    // The pages of what drives have fetched have checksums.
    assert_eq!(listed(), before);
    array.csd(&[&["rm"], &names[..]].concat()).expect(0, &[]);
    put_all();
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    std::fs::write(array.path("csd-array/peers"), "# nothing\n").unwrap();
    let done = rebalanced(&array, &[], 0);
    assert_eq!(
        (&done["moved"], &done["failed"]),
        (&json!(["blocks", "both", "coded", "plain"]), &json!([]))
    );
    let (chunks, by_drives) = (&done["chunks"], done["by_drives"].as_u64().unwrap());
    assert!(by_drives < chunks.as_u64().unwrap() / 2, "{done}");
    assert!(done["host_crossed_bytes"].as_u64().unwrap() > 4 * content.len() as u64, "{done}");
    for (name, put) in names.iter().zip(puts) {
        assert!(get(&array, name, &[]).expect(0, &[]).stdout == content, "{name}");
        if put.contains("rs:") {
            check(&array, name, 2, 1);
        }
    }
    assert_nothing_left(&array, &[0, 1, 2, 3, 4, 5], &names);
}

#[test]
fn short_and_whole_objects_and_those_that_drives_wrote_are_moved_as_they_are() {
    let array = Array::up(2, "256M");
    let ints: Vec<u8> = (0..40_000i32).flat_map(i32::to_le_bytes).collect();
    put(&array, "whole", &ints, &["--layout", "whole"]);
    put(&array, "empty", b"", &[]);
    let short = |n: u8| bytes(n.into(), 100 + usize::from(n));
    (0..12).for_each(|n| put(&array, &format!("short-{n}"), &short(n), &[]));
    put(&array, "left", &ints, &["--type", "i32"]);
    put(&array, "right", &ints, &["--type", "i32", "--align", "left"]);
    let add = ["run", "vector-add", "left", "right", "-o", "sum", "--on", "drives"];
    array.csd(&add).expect(0, &[]);
    let sum = get(&array, "sum", &[]).expect(0, &[]).stdout;
    // The room for more objects grows with the drives.
    let place = |entry: Value| (entry["id"].clone(), entry["drives"].clone());
    let whole = place(stat(&array, "whole"));
    let added = documented(&array, "array add", &["--drives", "2", "--rebalance"], 0);
    assert_eq!(added["rebalance"]["untouched"], 1, "the whole object: {added}");
    assert_eq!(place(stat(&array, "whole")), whole);
    let mut first = BTreeSet::new();
    for n in 0..12 {
        let name = format!("short-{n}");
        assert!(get(&array, &name, &[]).expect(0, &[]).stdout == short(n));
        first.extend(holders(&stat(&array, &name)));
    }
    assert!(first.len() > 2, "{first:?}");
    assert_eq!(stat(&array, "empty")["drives"].as_array().unwrap().len(), 4);
    assert_eq!(holders(&stat(&array, "sum")).len(), 4);
    assert!(get(&array, "sum", &[]).expect(0, &[]).stdout == sum);
    array.csd(&["rm", "sum"]).expect(0, &[]);
    array.csd(&add).expect(0, &[]);
    assert!(get(&array, "sum", &[]).expect(0, &[]).stdout == sum);
    array.kill(3);
    array.csd(&["array", "rebalance"]).expect(1, &["drive d3", "is down"]);
}

#[test]
fn lost_chunks_are_computed_and_a_damaged_object_stays_where_it_is() {
    let array = Array::up(4, "128M");
    let content = bytes(3, 30 * CHUNK);
    put(&array, "safe", &content, &["--protect", "rs:2+2"]);
    put(&array, "plain", &content, &[]);
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    let before = stat(&array, "plain");
    // Sound values that are not the chunks that were put.
    let count = keys(&array, 1).len();
    let all = keys(&array, 1);
    on_objects(&array, 1, async move |kv: &Kv| {
        for key in all {
            let wrong = vec![Buffer::from_slice(&[9; CHUNK])];
            kv.store(&Key::new(&key).unwrap(), wrong, 0).await.unwrap();
        }
    });
    assert!(count > 10);
    let done = rebalanced(&array, &[], 4);
    assert_eq!(done["moved"], json!(["safe"]));
    assert_eq!(done["failed"][0]["object"], "plain");
    assert!(done["failed"][0]["why"].as_str().unwrap().contains("drive d1"), "{done}");
    check(&array, "safe", 2, 2);
    assert!(get(&array, "safe", &[]).expect(0, &[]).stdout == content);
    let after = stat(&array, "plain");
    assert_eq!((&after["id"], &after["drives"]), (&before["id"], &before["drives"]));
    assert_nothing_left(&array, &[0, 1, 2, 3, 4], &["safe", "plain"]);
}

#[test]
fn a_rebalance_that_is_killed_leaves_the_old_or_the_new_object_and_is_run_again() {
    let array = Array::up(3, "256M");
    let content = bytes(5, 60 * CHUNK);
    let objects: [(&str, &[&str]); 3] = [
        ("kv", &[]),
        ("blocks", &["--on", "block", "--protect", "rs:2+1"]),
        ("coded", &["--protect", "rs:2+1"]),
    ];
    let names = objects.map(|(name, _)| name);
    objects.iter().for_each(|(name, more)| put(&array, name, &content, more));
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    for (name, _) in objects {
        let before = stat(&array, name);
        let former = before["id"].as_str().unwrap().to_owned();
        // Announced; some of the copy is stored; the copy is the object.
        for event in 0..3 {
            let known = keys(&array, 3);
            let rate = if event == 2 { "1G" } else { "40K" };
            let rebalance = ["array", "rebalance", name, "--rate", rate];
            let mut running = array.spawn(&rebalance, Stdio::null());
            let begun = || match event {
                0 => stat(&array, name)["epoch"] != before["epoch"],
                1 => !keys(&array, 3).is_subset(&known),
                _ => stat(&array, name)["id"] != former.as_str(),
            };
            running.signal_once(begun, Signal::KILL);
            drop(finish(running));
            assert!(get(&array, name, &[]).expect(0, &[]).stdout == content, "{name}, {event}");
        }
        let again = rebalanced(&array, &[name], 0);
        assert_eq!(again["failed"], json!([]));
        assert_eq!(holders(&stat(&array, name)).len(), 4, "{name}");
        assert!(get(&array, name, &[]).expect(0, &[]).stdout == content, "{name}");
        assert_nothing_left(&array, &[0, 1, 2, 3], &names);
    }
    check(&array, "blocks", 2, 1);
    check(&array, "coded", 2, 1);
    let removed = array.csd(&["rm", "kv", "blocks", "coded"]);
    removed.expect(0, &[]);
    assert_nothing_left(&array, &[0, 1, 2, 3], &[]);
    assert_eq!(array.drives()[3]["block_used_bytes"], 0, "{}", array.drives()[3]);
}

#[test]
fn an_object_that_is_removed_while_it_is_moved_stays_removed() {
    let array = Array::up(2, "128M");
    put(&array, "x", &bytes(6, 60 * CHUNK), &[]);
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    let moving = array.spawn(&["array", "rebalance", "--rate", "20K"], Stdio::null());
    wait_until("some of the copy is stored", || !keys(&array, 2).is_empty());
    array.csd(&["rm", "x"]).expect(0, &[]);
    let moved = finish(moving).expect(0, &[]);
    assert!(moved.text().contains("0 objects moved"), "{}", moved.text());
    array.csd(&["stat", "x"]).expect(2, &["no object"]);
    assert_nothing_left(&array, &[0, 1, 2], &[]);
}
