//! Protected objects: their pieces, their losses, and the kernels that run over them.

use std::collections::BTreeMap;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::array::DriveIndex;
use csd_store::catalogue::{self, Entry, Placement};
use csd_tests::proxy::Door;
use serde_json::Value;

use crate::support::data::{bytes, small_i32};
use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::pieces::{CHUNK, check, get, keys, number, pieces};
use crate::support::proxied::{EXECUTE, ProxiedArray, RETRIEVE};

/// Returns an object's drives, and the place of its data on them.
fn places(array: &Array, name: &str) -> (Vec<DriveIndex>, Placement) {
    let key = catalogue::key(name);
    on_objects(array, 0, async move |kv: &Kv| {
        let value = kv.retrieve(&key, 16 << 10).await.unwrap().unwrap();
        let entry = Entry::parse(&value).unwrap();
        (entry.members, entry.placement)
    })
}

#[test]
fn objects_of_every_length_survive_the_loss_of_two_drives() {
    let array = Array::up(6, "256M");
    let mut objects = BTreeMap::new();
    for length in [0, 1, 3 * CHUNK, 4 * CHUNK - 1, 4 * CHUNK, 4 * CHUNK + 1, 5 * CHUNK, 50 * CHUNK]
    {
        // Each object on blocks claims units of 8 MiB.
        let on_block = matches!(length, 1 | 16_385 | 204_800);
        for on in ["kv", "block"].into_iter().take(1 + usize::from(on_block)) {
            let name = format!("{on}-{length}");
            let content = bytes(length as u64, length);
            array.file("x", &content);
            let put = ["put", "x", &name, "--chunk", "4K", "--on", on, "--protect", "rs:4+2"];
            let put = array.csd(&[&put[..], &["--json"]].concat()).expect(0, &[]).json();
            assert_eq!(put["result"]["protection"]["code"], "rs:4+2");
            objects.insert(name, content);
        }
    }
    array.file("x", &bytes(1, 18 * CHUNK));
    array.csd(&["put", "x", "plain", "--chunk", "4K"]).expect(0, &[]);
    let held = check(&array, &format!("kv-{}", 5 * CHUNK), 4, 2);
    assert_eq!(held.values().sum::<usize>(), 4);
    let count = |of: &Value| (of["drive"].as_str().unwrap().to_owned(), number(&of["piece"]) >= 4);
    let mut parity = BTreeMap::new();
    for (drive, is_parity) in pieces(&array, &format!("kv-{}", 50 * CHUNK)).iter().map(count) {
        *parity.entry(drive).or_insert(0) += i32::from(is_parity);
    }
    let (least, most) = (parity.values().min().unwrap(), parity.values().max().unwrap());
    assert!(most - least <= 1, "{parity:?}");
    array.kill(1);
    array.kill(4);
    for (name, content) in &objects {
        let got = get(&array, name, &[]);
        // A short object may have no data on these two.
        assert!(matches!(got.code, 0 | 4), "{name}: {}", got.stderr);
        assert!(got.stdout == *content, "{name}");
    }
    let name = format!("kv-{}", 50 * CHUNK);
    get(&array, &name, &[])
        .expect(4, &["chunks computed from other pieces", "drive d1", "drive d4"]);
    array.kill(2);
    let content = &objects[&name];
    let failed = array.csd(&["get", &name, "out", "--json"]).expect(1, &[]).json();
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains(&name) && message.contains("more pieces are lost"), "{message}");
    assert!(!array.path("out").exists());
    let partial = array.csd(&["get", &name, "out", "--partial", "--json"]).expect(4, &[]).json();
    assert_eq!(partial["result"]["lost"], failed["error"]["detail"]["lost"]);
    let mut expected = content.clone();
    for range in partial["result"]["lost"].as_array().unwrap() {
        let start = number(&range["start"]);
        expected[start..start + number(&range["bytes"])].fill(0);
    }
    assert!(expected != *content && std::fs::read(array.path("out")).unwrap() == expected);
    // Without protection, every lost chunk is missing.
    get(&array, "plain", &[]).expect(1, &["is down"]);
    let partial = get(&array, "plain", &["--partial"]).expect(4, &["zeros stand for bytes"]);
    let content = bytes(1, 18 * CHUNK);
    let pairs = partial.stdout.chunks(CHUNK).zip(content.chunks(CHUNK));
    let (same, zeros): (Vec<_>, Vec<_>) = pairs.partition(|(got, put)| got == put);
    assert_eq!((same.len(), zeros.len()), (9, 9));
    assert!(zeros.iter().all(|(got, _)| got.iter().all(|byte| *byte == 0)));
}

#[test]
fn protect_moves_no_data_of_any_layout_and_spreads_what_is_whole() {
    let array = Array::up(5, "256M");
    let (sorted, _) = small_i32(1, 40_000);
    let mut sorted: Vec<i32> =
        sorted.as_chunks().0.iter().map(|four| i32::from_le_bytes(*four)).collect();
    sorted.sort_unstable();
    let sorted: Vec<u8> = sorted.into_iter().flat_map(i32::to_le_bytes).collect();
    array.file("sorted", &sorted);
    for (name, layout, on) in [
        ("spread", "spread", "kv"),
        ("blocks", "spread", "block"),
        ("range", "range", "kv"),
        ("range-blocks", "range", "block"),
        ("whole", "whole", "kv"),
        ("whole-blocks", "whole", "block"),
    ] {
        let put = ["put", "sorted", name, "--type", "i32", "--chunk", "4K", "--layout", layout];
        array.csd(&[&put[..], &["--on", on]].concat()).expect(0, &[]);
        let before: Vec<_> = (0..5).map(|drive| keys(&array, drive)).collect();
        let places_before = places(&array, name);
        assert_eq!(places_before.1 == Placement::Kv, on == "kv");
        let stat = array.csd(&["stat", name, "--json"]).json();
        assert_eq!(stat["result"]["layout"], layout);
        let done = array.csd(&["protect", name, "rs:3+2", "--json"]).expect(0, &[]).json();
        assert_eq!(done["result"]["protection"]["missing"], 0);
        assert_eq!(get(&array, name, &[]).expect(0, &[]).stdout, sorted);
        check(&array, name, 3, 2);
        if layout == "whole" {
            assert_ne!(places(&array, name), places_before, "{name}");
        } else {
            let after: Vec<_> = (0..5).map(|drive| keys(&array, drive)).collect();
            assert!(before.iter().zip(&after).all(|(before, after)| before.is_subset(after)));
            assert_eq!(places(&array, name), places_before, "{name}");
            assert_eq!(done["result"]["id"], stat["result"]["id"]);
        }
        // Again is no change; in another way it is refused.
        let again = array.csd(&["protect", name, "rs:3+2"]).expect(0, &[]).text();
        assert!(again.contains("no piece is missing"), "{again}");
        array.csd(&["protect", name, "rs:2+2"]).expect(2, &["rs:3+2 already"]);
    }
    array.kill(0);
    array.kill(3);
    for name in ["spread", "blocks", "range", "range-blocks", "whole", "whole-blocks"] {
        assert!(get(&array, name, &[]).expect(4, &[]).stdout == sorted, "{name}");
    }
}

#[test]
fn rm_deletes_parity_too() {
    let array = Array::up(4, "128M");
    array.file("x", &bytes(3, 20 * CHUNK));
    for layout in ["spread", "whole"] {
        array.csd(&["put", "x", "--chunk", "4K", "--layout", layout]).expect(0, &[]);
        array.csd(&["protect", "x", "rs:2+2"]).expect(0, &[]);
        assert!((0..4).all(|drive| !keys(&array, drive).is_empty()));
        array.csd(&["rm", "x"]).expect(0, &[]);
        assert!((0..4).all(|drive| keys(&array, drive).is_empty()), "{layout}");
    }
}

#[test]
fn damaged_and_foreign_pieces_are_computed_from_others() {
    let array = Array::up(4, "128M");
    let (content, sevens) = small_i32(5, 40 * CHUNK / 4);
    array.file("x", &content);
    let put = ["put", "x", "--type", "i32", "--chunk", "4K", "--protect", "rs:2+2"];
    array.csd(&put).expect(0, &[]);
    // All of one drive's pieces: chunks and parity.
    for key in keys(&array, 1) {
        on_objects(&array, 1, async move |kv: &Kv| {
            let key = Key::new(&key).unwrap();
            kv.store(&key, vec![Buffer::from_slice(&[9; CHUNK])], 0).await.unwrap();
        });
    }
    let words = ["drive d1 has damaged or missing pieces"];
    assert!(get(&array, "x", &[]).expect(4, &words).stdout == content);
    array.kill(2);
    assert!(get(&array, "x", &[]).expect(4, &["drive d1", "drive d2"]).stdout == content);
    let run = ["run", "count", "x", "--equal", "7", "--on", "host", "--json"];
    let run = array.csd(&run).expect(4, &[]).json();
    assert_eq!(run["result"]["count"], sevens);
}

#[test]
fn a_put_needs_one_piece_more_than_its_data_and_tells_which_are_missing() {
    let array = Array::up(6, "256M");
    let content = bytes(7, 20 * CHUNK);
    array.file("x", &content);
    let put =
        |name: &str, code: &str| array.csd(&["put", "x", name, "--chunk", "4K", "--protect", code]);
    put("x", "rs:0+1").expect(2, &["rs:N+K"]);
    put("x", "rs:5+2").expect(2, &["rs:5+2 needs 7 drives, and the array has 6"]);
    array.kill(5);
    put("thin", "rs:4+2").expect(4, &["pieces are missing"]);
    let stat = array.csd(&["stat", "thin", "--pieces", "--json"]).expect(4, &[]).json();
    let missing = stat["result"]["protection"]["missing"].as_u64().unwrap();
    let listed = pieces(&array, "thin");
    let listed: Vec<_> = listed.iter().filter(|piece| piece["missing"] == true).collect();
    assert_eq!(listed.len() as u64, missing);
    assert!(missing > 0 && listed.iter().all(|piece| piece["drive"] == "d5"), "{listed:?}");
    assert!(get(&array, "thin", &[]).stdout == content);
    array.kill(4);
    put("x", "rs:4+2").expect(1, &["4 of 6 drives are up", "5 are needed"]);
    put("x", "rs:2+4").expect(1, &["needs 5 of 6 drives, and 4 are up"]);
    assert!(get(&array, "thin", &[]).expect(4, &[]).stdout == content);
    // With a smaller code every piece is there.
    put("less", "rs:2+2").expect(4, &["drive d4"]);
    array.kill(3);
    assert!(get(&array, "less", &[]).expect(4, &[]).stdout == content);
}

#[test]
fn kernels_give_the_same_answers_without_two_drives() {
    let array = Array::up(6, "256M");
    let (content, sevens) = small_i32(11, 300 * CHUNK / 4);
    array.file("x", &content);
    let put = ["put", "x", "--type", "i32", "--chunk", "4K", "--protect", "rs:4+2"];
    array.csd(&put).expect(0, &[]);
    let commands: [&[&str]; 3] = [
        &["run", "count", "x", "--equal", "7", "--on", "all", "--json"],
        &["run", "summarize", "x", "--on", "all", "--json"],
        &["run", "verify", "x", "--on", "all", "--json"],
    ];
    let answers = |code: i32| -> Vec<Value> {
        let answer = |command: &&[&str]| {
            let mut result = array.csd(command).expect(code, &[]).json()["result"].clone();
            result.as_object_mut().unwrap().remove("runs");
            result
        };
        commands.iter().map(answer).collect()
    };
    let before = answers(0);
    assert_eq!(before[0]["count"], sevens);
    array.kill(0);
    array.kill(3);
    assert_eq!(answers(4), before);
}

#[test]
fn a_drive_that_is_lost_in_a_run_is_replaced_by_the_host() {
    let proxied = ProxiedArray::new(Array::up(3, "256M"));
    let (content, sevens) = small_i32(17, 2_000_000);
    proxied.array.file("x", &content);
    let put = ["put", "x", "--type", "i32", "--chunk", "64K", "--protect", "rs:2+1"];
    proxied.array.csd(&put).expect(0, &[]);
    for (on, commands, number) in
        [("drives", EXECUTE, 3), ("split", EXECUTE, 3), ("host", RETRIEVE, 8)]
    {
        proxied.proxy.cut(commands, &[number], Door::Shut);
        let line = format!("run count x --equal 7 --on {on}");
        let run = proxied.array.csd(&ProxiedArray::arguments(&line)).expect(4, &[]).json();
        assert_eq!((&run["result"]["count"], proxied.proxy.cuts()), (&sevens.into(), 1), "{on}");
        assert!(run["warnings"][0].as_str().unwrap().contains("drive d1"), "{run}");
        proxied.proxy.open();
        proxied.proxy.cut(commands, &[], Door::Open);
    }
}

#[test]
fn what_an_announced_protection_has_left_is_no_piece() {
    let array = Array::up(4, "128M");
    let content = bytes(13, 12 * CHUNK);
    array.file("x", &content);
    array.csd(&["put", "x", "--chunk", "4K"]).expect(0, &[]);
    // An announced entry, as an interrupted command leaves it, and a piece under its name.
    let mut left = None;
    for drive in 0..4 {
        left = on_objects(&array, drive, async |kv: &Kv| {
            let key = catalogue::key("x");
            let value = kv.retrieve(&key, 4096).await.unwrap().unwrap();
            let mut entry = Entry::parse(&value).unwrap();
            entry.epoch += 1;
            entry.writer = [7; 16];
            entry.protection = Some(catalogue::Protection {
                scheme: "rs:2+2".parse().unwrap(),
                epoch: 0,
                group: (0..4).map(DriveIndex::new).collect(),
                parity: None,
            });
            kv.store(&key, vec![Buffer::from_slice(&entry.encode())], 0).await.unwrap();
            let piece = entry.parity_key(0, 0).unwrap();
            kv.store(&piece, vec![Buffer::from_slice(&[9; CHUNK])], 0).await.unwrap();
            Some(piece.as_bytes().to_vec())
        });
    }
    let left = left.unwrap();
    assert!(get(&array, "x", &[]).expect(0, &[]).stdout == content);
    assert_eq!(array.csd(&["stat", "x", "--json"]).json()["result"]["protection"], Value::Null);
    array.csd(&["stat", "x", "--pieces"]).expect(2, &["is not protected"]);
    // A reclaim does not touch what a running command may write.
    array.csd(&["array", "reclaim"]).expect(0, &[]);
    assert!(keys(&array, 0).contains(&left));
    array.csd(&["protect", "x", "rs:2+2"]).expect(0, &[]);
    assert!((0..4).all(|drive| !keys(&array, drive).contains(&left)));
    check(&array, "x", 2, 2);
    array.kill(0);
    array.kill(1);
    assert!(get(&array, "x", &[]).expect(4, &[]).stdout == content);
}
