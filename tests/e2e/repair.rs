//! `csd repair`: pieces that are missing or wrong are made again from others, and success is
//! reported only if none is missing.

use std::process::Stdio;

use csd_initiator::{Block, Kv};
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::data::{bytes, small_i32};
use crate::support::direct::{on_blocks, on_objects};
use crate::support::harness::{Array, finish, signal, wait_until};
use crate::support::json_page::documented;
use crate::support::pieces::{CHUNK, check, get, keys, pieces, put};

/// Runs a repair; returns the result.
#[track_caller]
fn repaired(array: &Array, more: &[&str], code: i32) -> Value {
    documented(array, "repair", more, code)
}

/// Kills drives, which keep their data in memory, and starts them again.
fn empty(array: &Array, drives: &[usize]) {
    drives.iter().for_each(|drive| array.kill(*drive));
    array.csd(&["array", "up"]).expect(4, &["came up empty"]);
}

/// Overwrites all values of an object's pieces on a drive.
fn overwrite(array: &Array, drive: usize, bytes: usize) -> usize {
    let keys = keys(array, drive);
    let count = keys.len();
    on_objects(array, drive, async move |kv: &Kv| {
        for key in keys {
            let wrong = vec![Buffer::from_slice(&vec![9; bytes])];
            kv.store(&Key::new(&key).unwrap(), wrong, 0).await.unwrap();
        }
    });
    count
}

/// Overwrites the first blocks of a drive.
fn zero_blocks(array: &Array, drive: usize, units: usize) {
    on_blocks(array, drive, async move |block: &Block| {
        for unit in 0..units {
            let zeros = vec![Buffer::zeroed(1 << 20)];
            block.write((unit as u64) << 23, zeros, false).await.unwrap();
        }
    });
}

#[test]
fn drives_that_came_back_empty_are_made_whole_for_every_layout_and_placement() {
    let array = Array::up(6, "256M");
    let sorted: Vec<u8> = (0..60_000i32).flat_map(i32::to_le_bytes).collect();
    let objects: [(&str, &[&str]); 6] = [
        ("spread", &["--protect", "rs:4+2"]),
        ("blocks", &["--protect", "rs:4+2", "--on", "block"]),
        ("range", &["--protect", "rs:3+2", "--layout", "range"]),
        ("range-blocks", &["--protect", "rs:3+2", "--layout", "range", "--on", "block"]),
        ("whole", &["--protect", "rs:4+2", "--layout", "whole"]),
        ("one", &["--protect", "rs:1+2"]),
    ];
    for (name, more) in objects {
        put(&array, name, &sorted, &[more, &["--type", "i32"]].concat());
    }
    put(&array, "empty", b"", &["--protect", "rs:4+2"]);
    let before = repaired(&array, &[], 0);
    assert_eq!((&before["objects"], &before["rebuilt"]), (&json!(7), &json!(0)));
    assert_eq!(before["missing"], json!([]));
    empty(&array, &[1, 4]);
    // They vote already: starting them has rebuilt their catalogues.
    let found = repaired(&array, &[], 0);
    assert!(found["rebuilt"].as_u64().unwrap() > 100, "{found}");
    for of_all in ["objects", "pieces", "bytes", "missing", "lost"] {
        assert_eq!(found[of_all], before[of_all], "{of_all}");
    }
    assert_eq!(repaired(&array, &[], 0), before, "the second time there is nothing to do");
    for (name, data, parity) in
        [("spread", 4, 2), ("blocks", 4, 2), ("range", 3, 2), ("range-blocks", 3, 2)]
    {
        check(&array, name, data, parity);
    }
    let run = ["run", "summarize", "blocks", "--on", "drives", "--json"];
    let whole = array.csd(&run).expect(0, &[]).json()["result"]["sum"].clone();
    assert_eq!(whole, (60_000i64 * 59_999 / 2).to_string());
    array.kill(0);
    array.kill(5);
    for (name, _) in objects {
        assert!(get(&array, name, &[]).expect(4, &[]).stdout == sorted, "{name}");
    }
}

#[test]
fn pieces_that_differ_and_those_that_were_never_stored_are_made_again() {
    let array = Array::up(5, "256M");
    let content = bytes(1, 41 * CHUNK);
    put(&array, "kv", &content, &["--protect", "rs:3+2"]);
    put(&array, "blocks", &content, &["--protect", "rs:3+2", "--on", "block"]);
    // Other bytes of the same length, and of other lengths, as if a rebuild had been cut off.
    let wrong = [overwrite(&array, 0, CHUNK), overwrite(&array, 3, CHUNK - 8)];
    let of = |name: &str, drives: &[&str], parity: bool| {
        let is_of = |piece: &&Value| {
            let drive = piece["drive"].as_str().unwrap();
            drives.contains(&drive) && (parity || piece["piece"].as_u64().unwrap() < 3)
        };
        pieces(&array, name).iter().filter(is_of).count()
    };
    assert_eq!(wrong[0] + wrong[1], {
        let parity = |drives: &[&str]| of("blocks", drives, true) - of("blocks", drives, false);
        of("kv", &["d0", "d3"], true) + parity(&["d0", "d3"])
    });
    zero_blocks(&array, 1, 4);
    let zeroed = of("blocks", &["d1"], false);
    // The object on blocks has lost parity on two drives, and data on a third one.
    let found = repaired(&array, &["kv", "blocks"], 0);
    assert_eq!(found["rebuilt"], wrong[0] + wrong[1] + zeroed);
    check(&array, "kv", 3, 2);
    check(&array, "blocks", 3, 2);
    assert!(get(&array, "blocks", &[]).expect(0, &[]).stdout == content);
    array.kill(2);
    array.file("x", &content);
    let thin = ["put", "x", "thin", "--chunk", "4K", "--protect", "rs:3+2"];
    array.csd(&thin).expect(4, &["pieces are missing"]);
    array.csd(&["array", "up"]).expect(4, &["came up empty"]);
    array.csd(&["repair", "thin"]).expect(0, &[]);
    let stat = array.csd(&["stat", "thin", "--pieces", "--json"]).expect(0, &[]).json();
    assert_eq!(stat["result"]["protection"]["missing"], 0);
    check(&array, "thin", 3, 2);
    array.csd(&["repair", "none"]).expect(2, &["no object \"none\""]);
    array.csd(&["repair", "--rate", "0"]).expect(2, &["--rate"]);
}

/// Other systems have reported healed objects whose pieces were missing.
#[test]
fn no_success_is_reported_while_a_piece_is_missing() {
    let array = Array::up(5, "256M");
    let content = bytes(3, 30 * CHUNK);
    put(&array, "x", &content, &["--protect", "rs:3+1"]);
    put(&array, "plain", &content, &[]);
    array.kill(2);
    let down = repaired(&array, &[], 4);
    let of_x = pieces(&array, "x").iter().filter(|piece| piece["drive"] == "d2").count();
    let missing = |found: &Value, object: &str| {
        let missing = found["missing"].as_array().unwrap().clone();
        let of = |missing: &Value| missing["object"] == object && missing["drive"] == "d2";
        missing.into_iter().find(of).unwrap()
    };
    assert_eq!(missing(&down, "x")["pieces"], of_x);
    assert!(missing(&down, "x")["why"].as_str().unwrap().contains("down"), "{down}");
    // One loss is covered, but not that of the object without parity.
    let lost = |found: &Value| -> Vec<Value> {
        let lost = found["lost"].as_array().unwrap();
        lost.iter().map(|lost| lost["object"].clone()).collect()
    };
    assert_eq!(lost(&down), [json!("plain")]);
    let words = ["pieces are missing", "drive d2", "object \"plain\""];
    array.csd(&["repair"]).expect(4, &words);
    // A second drive comes back empty: what both had is lost, and the rest is there.
    empty(&array, &[4]);
    let found = repaired(&array, &["x"], 4);
    let got = array.csd(&["get", "x", "-", "--partial"]).expect(4, &[]);
    assert_eq!(got.stdout.len(), content.len());
    assert_eq!(lost(&found), [json!("x")], "{found}");
    let lacks = |drive: &str| {
        let missing = found["missing"].as_array().unwrap();
        missing.iter().any(|missing| missing["drive"] == drive)
    };
    assert!(lacks("d2") && lacks("d4"), "{found}");
}

#[test]
fn a_repair_that_is_killed_goes_on_when_it_is_run_again_and_two_do_not_disturb_each_other() {
    let array = Array::up(4, "256M");
    let content = bytes(5, 300 * CHUNK);
    put(&array, "x", &content, &["--protect", "rs:2+2"]);
    empty(&array, &[1, 2]);
    let slow = array.spawn(&["repair", "--rate", "128K"], Stdio::null());
    wait_until("some pieces are stored", || keys(&array, 1).len() > 3);
    signal(slow.child.id(), Signal::KILL);
    assert_eq!(finish(slow).code, -1);
    let stored = keys(&array, 1).len() + keys(&array, 2).len();
    assert!(stored < 300, "it was cut off: {stored}");
    assert!(get(&array, "x", &[]).expect(4, &[]).stdout == content);
    let both: Vec<_> = (0..2).map(|_| array.spawn(&["repair", "--json"], Stdio::null())).collect();
    for one in both {
        let found = finish(one).expect(0, &[]).json()["result"].clone();
        assert_eq!((&found["pieces"], &found["missing"]), (&json!(600), &json!([])), "{found}");
    }
    check(&array, "x", 2, 2);
    // An interrupt is answered.
    empty(&array, &[1]);
    let slow = array.spawn(&["repair", "--rate", "128K"], Stdio::null());
    wait_until("some pieces are stored", || keys(&array, 1).len() > 3);
    signal(slow.child.id(), Signal::INT);
    finish(slow).expect(1, &["interrupted: run it again"]);
    repaired(&array, &[], 0);
}

#[test]
fn a_run_takes_no_blocks_for_data_that_a_killed_repair_has_not_written() {
    let array = Array::up(4, "256M");
    let (content, sevens) = small_i32(7, 300 * CHUNK / 4);
    put(&array, "x", &content, &["--type", "i32", "--protect", "rs:2+2", "--on", "block"]);
    let count = |code: i32| {
        let run = ["run", "count", "x", "--equal", "7", "--on", "drives", "--json"];
        array.csd(&run).expect(code, &[]).json()["result"]["count"].clone()
    };
    empty(&array, &[1]);
    let slow = array.spawn(&["repair", "--rate", "128K"], Stdio::null());
    // Its blocks were claimed before.
    wait_until("some pieces are stored", || keys(&array, 1).len() > 3);
    assert_eq!(count(4), sevens);
    signal(slow.child.id(), Signal::KILL);
    assert_eq!(finish(slow).code, -1);
    assert_eq!(count(4), sevens);
    repaired(&array, &[], 0);
    assert_eq!(count(0), sevens);
}

#[test]
fn the_bytes_go_from_drive_to_drive_or_through_the_host() {
    let array = Array::up(6, "256M");
    array.file("x", &bytes(9, 64 * 64 * CHUNK));
    let put = ["put", "x", "--chunk", "256K", "--protect", "rs:4+2"];
    array.csd(&put).expect(0, &[]);
    goes_from_drive_to_drive_or_through_the_host(&array);
    array.csd(&["rm", "x"]).expect(0, &[]);
    array.csd(&[&put[..], &["--on", "block"]].concat()).expect(0, &[]);
    goes_from_drive_to_drive_or_through_the_host(&array);
}

fn goes_from_drive_to_drive_or_through_the_host(array: &Array) {
    for (on, is_by_drives) in [("drives", true), ("host", false)] {
        empty(array, &[1, 2]);
        let found = repaired(array, &["--on", on], 0);
        let number = |field: &str| found[field].as_u64().unwrap();
        let (crossed, rebuilt) = (number("host_crossed_bytes"), number("rebuilt_bytes"));
        assert!(number("rebuilt") > 20, "{found}");
        assert_eq!(number("by_drives"), if is_by_drives { number("rebuilt") } else { 0 });
        assert!(if is_by_drives { crossed < rebuilt / 20 } else { crossed > rebuilt }, "{found}");
    }
    check(array, "x", 4, 2);
    // Drives without a file of peers leave it to the host.
    empty(array, &[3]);
    let peers = array.path("csd-array/peers");
    let known = std::fs::read(&peers).unwrap();
    std::fs::write(&peers, "").unwrap();
    let found = repaired(array, &[], 0);
    assert_eq!((&found["by_drives"], &found["missing"]), (&json!(0), &json!([])), "{found}");
    check(array, "x", 4, 2);
    std::fs::write(&peers, known).unwrap();
}

#[test]
fn blocks_that_another_object_has_taken_meanwhile_are_not_overwritten() {
    let array = Array::up(4, "256M");
    let (content, sevens) = small_i32(7, 64 * CHUNK / 4);
    put(&array, "old", &content, &["--type", "i32", "--protect", "rs:2+2", "--on", "block"]);
    put(&array, "plain", &content, &["--type", "i32", "--on", "block"]);
    empty(&array, &[1]);
    // Zeros are no data.
    let count =
        |name: &str| array.csd(&["run", "count", name, "--equal", "7", "--on", "drives", "--json"]);
    assert_eq!(count("old").expect(4, &[]).json()["result"]["count"], sevens);
    count("plain").expect(1, &[]);
    array.csd(&["rm", "plain"]).expect(0, &[]);
    // The emptied drive gives the units of `old` to the next objects.
    let (other, others) = small_i32(8, 64 * CHUNK / 4);
    put(&array, "new", &other, &["--type", "i32", "--on", "block"]);
    put(&array, "next", &other, &["--type", "i32", "--protect", "rs:2+1", "--on", "block"]);
    repaired(&array, &[], 0);
    assert_eq!(repaired(&array, &[], 0)["rebuilt"], 0);
    for (name, content, sevens) in
        [("old", &content, sevens), ("new", &other, others), ("next", &other, others)]
    {
        assert!(get(&array, name, &[]).expect(0, &[]).stdout == *content, "{name}");
        assert_eq!(count(name).expect(0, &[]).json()["result"]["count"], sevens, "{name}");
    }
    array.csd(&["rm", "old", "new", "next"]).expect(0, &[]);
    for drive in array.drives() {
        assert_eq!(drive["block_used_bytes"], 0, "{drive}");
    }
}
