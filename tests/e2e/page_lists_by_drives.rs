//! Page lists of pieces that drives have made, by encoding or as repairs: their damage has pages.

use std::collections::BTreeSet;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_nvme::vendor::pages::KEY_BYTES;
use serde_json::{Value, json};

use crate::support::damage::flip_bit;
use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::page_lists::{all_lists, listed_pieces, lists};
use crate::support::pieces::{get, number, pieces};
use crate::support::scrub::{bad_piece, scrubbed};

const CHUNK: usize = 64 << 10;
/// Number of chunks; each stripe of two has a parity piece.
const CHUNKS: usize = 20;

/// A piece that the test damages.
struct Victim {
    name: (u64, u64),
    drive: usize,
    bytes: Vec<u8>,
}

/// Returns a piece of an object on a drive of which this is true.
fn victim(array: &Array, object: &str, is_it: impl Fn(usize, u64) -> bool) -> Victim {
    let drive = |of: &Value| of["drive"].as_str().unwrap()[1..].parse::<usize>().unwrap();
    let name = |of: &Value| (number(&of["stripe"]) as u64, number(&of["piece"]) as u64);
    let all = pieces(array, object);
    let found = all.iter().find(|of| is_it(drive(of), name(of).1)).expect("there is one");
    let (stripe, piece) = name(found);
    let bytes = get(array, object, &["--piece", &format!("{stripe}:{piece}")]).expect(0, &[]);
    Victim { name: (stripe, piece), drive: drive(found), bytes: bytes.stdout }
}

/// Flips a bit in page 5 of pieces on these media, and asserts that a scrub names the pages and
/// nothing else.
#[track_caller]
fn assert_named(array: &Array, victims: &[(&str, Victim, &str, &str)]) {
    array.csd(&["array", "down"]).expect(0, &[]);
    for (_, victim, medium, _) in victims {
        assert!(flip_bit(array, medium, &victim.bytes, 5 * 4096 + 17), "it is there");
    }
    array.csd(&["array", "up"]).expect(0, &[]);
    let bad = |(object, victim, _, cause): &(&str, Victim, &str, &str)| {
        bad_piece(object, victim.name, victim.drive, cause)
    };
    let expected: Vec<Value> = victims.iter().map(bad).collect();
    assert_eq!(scrubbed(array, &[], 4)["bad"], json!(expected));
}

/// Deletes the page lists of a drive.
fn delete_lists(array: &Array, drive: usize) {
    on_objects(array, drive, async |kv: &Kv| {
        let is_list = |key: &&Key| key.as_bytes().len() == KEY_BYTES;
        for key in kv.list_all(&[]).await.unwrap().iter().filter(is_list) {
            assert!(kv.delete(key).await.unwrap());
        }
    });
}

fn put(array: &Array, seed: u64, name: &str, more: &[&str]) {
    array.file("x", &bytes(seed, CHUNKS * CHUNK));
    array.csd(&[&["put", "x", name, "--chunk", "64K"], more].concat()).expect(0, &[]);
}

#[test]
fn damage_in_pieces_that_drives_have_encoded_is_named_by_page() {
    let array = Array::up_on_files(3, "256M");
    // The drive of a whole object also sends the chunks.
    for (seed, name, layout) in [(1, "spread", &[][..]), (2, "whole", &["--layout", "whole"])] {
        put(&array, seed, name, layout);
        let words = ["protect", name, "rs:2+1", "--encode", "drives", "--json"];
        let said = array.csd(&words).expect(0, &[]).json();
        assert_eq!(said["result"]["encode"]["stripes_on_host"], 0);
    }
    let listed = listed_pieces(&all_lists(&array)).len();
    assert_eq!(listed, 2 * (CHUNKS + CHUNKS / 2));
    let of = |name| victim(&array, name, |_, piece| piece == 2);
    let (spread, whole) = (of("spread"), of("whole"));
    let media = [&spread, &whole].map(|victim| format!("d{}", victim.drive));
    let victims = [
        ("spread", spread, &media[0][..], "unreadable"),
        ("whole", whole, &media[1][..], "unreadable"),
    ];
    assert_named(&array, &victims);
}

#[test]
fn damage_in_pieces_of_a_new_drive_is_named_by_page() {
    let array = Array::up_on_files(3, "256M");
    put(&array, 1, "v", &["--protect", "rs:2+1"]);
    put(&array, 2, "b", &["--protect", "rs:2+1", "--on", "block"]);
    put(&array, 3, "without", &["--protect", "rs:2+1", "--page-bytes", "0"]);
    let of = |drive| listed_pieces(&lists(&array, drive));
    let before: Vec<_> = (0..3).map(of).collect();
    array.csd(&["array", "replace", "d1"]).expect(0, &[]);
    for (drive, before) in before.iter().enumerate() {
        assert_eq!(of(drive), *before, "drive {drive}");
    }
    let data = |on: usize, piece: u64| on == 1 && piece < 2;
    let parity = |on: usize, piece: u64| on == 1 && piece == 2;
    let victims = [
        ("b", victim(&array, "b", data), "d1-1", "differs"),
        ("v", victim(&array, "v", parity), "d1-1", "unreadable"),
    ];
    assert_named(&array, &victims);
    // The pieces are made again where they were, so that their lists are right again.
    array.csd(&["repair"]).expect(0, &[]);
    assert_eq!(scrubbed(&array, &[], 0)["bad"], json!([]));
    assert_eq!(of(1), before[1]);
}

#[test]
fn lists_that_a_repair_has_not_made_are_made_by_the_next_one() {
    let array = Array::up(3, "256M");
    put(&array, 1, "v", &["--protect", "rs:2+1"]);
    put(&array, 2, "b", &["--protect", "rs:2+1", "--on", "block"]);
    let before = listed_pieces(&lists(&array, 1));
    assert!(before.len() > CHUNKS / 2);
    for on in ["host", "drives"] {
        delete_lists(&array, 1);
        assert!(lists(&array, 1).is_empty());
        array.csd(&["repair", "--on", on]).expect(0, &[]);
        let kept: BTreeSet<_> = listed_pieces(&lists(&array, 1));
        assert_eq!(kept, before, "{on}");
        assert_eq!(lists(&array, 1).len(), 4, "{on}: chunks and parity of each");
        // Nothing is added to what there is.
        array.csd(&["repair", "--on", on]).expect(0, &[]);
        assert_eq!(lists(&array, 1).len(), 4, "{on}");
    }
}
