//! `csd scrub`: damage at rest is found by object, chunk and drive, and nothing else is reported.

use csd_initiator::Kv;
use csd_reactor::Buffer;
use serde_json::{Value, json};

use crate::support::damage::{flip_bit, medium};
use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::scrub::{bad_piece, scrubbed};

/// Size of the chunks.
const CHUNK: usize = 64 << 10;

/// Returns bytes of `chunks` chunks and a bit.
fn content(seed: u64, chunks: usize) -> Vec<u8> {
    bytes(seed, chunks * CHUNK + 400)
}

/// Puts objects of both placements and a layout by ranges; returns the content of the first two.
fn filled(array: &Array) -> [Vec<u8>; 2] {
    let (values, blocks) = (content(1, 20), content(2, 30));
    array.file("v", &values);
    array.file("b", &blocks);
    array.file("r", &(0..100_000i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
    array.file("empty", b"");
    for put in [
        &["put", "v", "--chunk", "64K"][..],
        &["put", "b", "--chunk", "64K", "--on", "block"],
        &["put", "r", "--type", "i32", "--layout", "range", "--chunk", "64K"],
        &["put", "empty"],
    ] {
        array.csd(put).expect(0, &[]);
    }
    [values, blocks]
}

/// Flips a bit in page 5 of these bytes on the medium that has them; returns the drive's index.
#[track_caller]
fn flip(array: &Array, needle: &[u8]) -> usize {
    let is_there = |drive: &usize| medium(array, &format!("d{drive}")).exists();
    let flips = |drive: &usize| flip_bit(array, &format!("d{drive}"), &needle[..32], 5 * 4096 + 17);
    (0..).take_while(is_there).find(flips).expect("a medium has the bytes")
}

#[test]
fn flipped_bits_are_found_by_page_and_nothing_else_is_reported() {
    let array = Array::up_on_files(3, "256M");
    let [values, blocks] = filled(&array);
    let clean = scrubbed(&array, &[], 0);
    assert_eq!(
        (&clean["objects"], &clean["bad"], &clean["unknown"]),
        (&4.into(), &json!([]), &0.into())
    );
    let bytes = values.len() + blocks.len() + 400_000;
    assert_eq!(clean["bytes"], bytes);
    let text = array.csd(&["scrub"]).expect(0, &[]).text().to_string();
    assert!(text.starts_with("4 objects, ") && text.contains(": no damage"), "{text}");
    array.csd(&["array", "down"]).expect(0, &[]);
    let (of_value, of_block) =
        (flip(&array, &values[7 * CHUNK..]), flip(&array, &blocks[11 * CHUNK..]));
    array.csd(&["array", "up"]).expect(0, &[]);
    let bad = |object: &str, piece: u64, drive: usize, cause: &str| {
        json!({
            "object": object,
            "stripe": null,
            "piece": piece,
            "page": 5,
            "drive": format!("d{drive}"),
            "cause": cause,
            "repaired": false,
        })
    };
    let found = scrubbed(&array, &[], 4);
    let expected = [bad("b", 11, of_block, "differs"), bad("v", 7, of_value, "unreadable")];
    assert_eq!(found["bad"], json!(expected));
    assert_eq!((&found["bytes"], &found["unread"]), (&bytes.into(), &json!([])));
    let words = ["2 pieces are bad"];
    let text = array.csd(&["scrub"]).expect(4, &words).text().to_string();
    assert!(text.contains("differs") && text.contains("unreadable"), "{text}");
    // One object, and all from a name on.
    assert_eq!(scrubbed(&array, &["v", "--rate", "100M"], 4)["bad"], json!([expected[1]]));
    assert_eq!(scrubbed(&array, &["r", "empty"], 0)["objects"], 2);
    assert_eq!(scrubbed(&array, &["--from", "c"], 4)["bad"], json!([expected[1]]));
    array.csd(&["scrub", "none"]).expect(2, &["no object \"none\""]);
    array.csd(&["scrub", "v", "--from", "b"]).expect(2, &["--from"]);
    array.csd(&["scrub", "--rate", "0"]).expect(2, &["--rate"]);
}

#[test]
fn pieces_of_protected_objects_are_named_by_stripe_also_parity_and_those_never_stored() {
    let array = Array::up_on_files(6, "256M");
    // Each object has 26 chunks: six stripes of four, and one of two.
    for (seed, name, on) in [(1, "v", "kv"), (2, "b", "block")] {
        array.file(name, &content(seed, 25));
        let put = ["put", name, "--chunk", "64K", "--on", on, "--protect", "rs:4+2"];
        array.csd(&put).expect(0, &[]);
    }
    let clean = scrubbed(&array, &[], 0);
    assert_eq!(
        (&clean["chunks"], &clean["parity"], &clean["bad"]),
        (&52.into(), &28.into(), &json!([]))
    );
    // The last stripe's parity is as long as its longest chunk.
    assert_eq!(clean["bytes"], 2 * (25 * CHUNK + 400 + 14 * CHUNK));
    let piece = |name: &str, (stripe, piece): (u64, u64)| {
        array
            .csd(&["get", name, "-", "--piece", &format!("{stripe}:{piece}")])
            .expect(0, &[])
            .stdout
    };
    let flipped = [
        ("b", (2, 1), "differs"),
        ("b", (5, 5), "unreadable"),
        ("v", (0, 4), "unreadable"),
        ("v", (6, 0), "unreadable"),
    ];
    let needles = flipped.map(|(name, at, _)| piece(name, at));
    array.csd(&["array", "down"]).expect(0, &[]);
    let drives = needles.map(|needle| flip(&array, &needle));
    array.csd(&["array", "up"]).expect(0, &[]);
    let bad = flipped.into_iter().zip(drives);
    let bad: Vec<_> =
        bad.map(|((name, at, cause), drive)| bad_piece(name, at, drive, cause)).collect();
    assert_eq!(scrubbed(&array, &[], 4)["bad"], json!(bad));
    let text = array.csd(&["scrub", "v"]).expect(4, &["2 pieces are bad"]).text().to_string();
    assert!(text.contains("0:4") && text.contains("6:0"), "{text}");
    // All are made again, and parity is that of the chunks.
    let mut repaired = bad;
    repaired.iter_mut().for_each(|bad| bad["repaired"] = true.into());
    let found = scrubbed(&array, &["--repair", "--deep"], 4);
    assert_eq!((&found["bad"], &found["deep"]["stripes"]), (&json!(repaired), &14.into()));
    assert_eq!(scrubbed(&array, &["--repair"], 0)["bad"], json!([]));
    // A put without one drive: its pieces were never stored.
    array.kill(3);
    array.file("thin", &content(3, 11));
    array.csd(&["put", "thin", "--chunk", "64K", "--protect", "rs:4+2"]).expect(4, &[]);
    let stat = array.csd(&["stat", "thin", "--pieces", "--json"]).json();
    let pieces = stat["result"]["pieces"].as_array().unwrap();
    let pieces = pieces.iter().filter(|piece| piece["missing"] == true);
    let number = |value: &Value| value.as_u64().unwrap();
    let at = |piece: &Value| (number(&piece["stripe"]), number(&piece["piece"]));
    let never: Vec<_> = pieces.map(|piece| bad_piece("thin", at(piece), 3, "missing")).collect();
    assert!(!never.is_empty());
    array.csd(&["array", "up"]).expect(0, &[]);
    assert_eq!(scrubbed(&array, &["thin"], 4)["bad"], json!(never));
    let words = [format!("{0} of them repaired", never.len())];
    array.csd(&["scrub", "thin", "--repair"]).expect(4, &words.each_ref().map(|word| &**word));
    assert_eq!(scrubbed(&array, &["thin"], 0)["bad"], json!([]));
}

#[test]
fn chunks_that_are_missing_or_not_those_that_were_put_are_found() {
    let array = Array::up(3, "256M");
    let [values, _] = filled(&array);
    assert_eq!(values.len().div_ceil(CHUNK), 21);
    // Chunk 4 is gone, and chunk 7 is a sound one of another content.
    for drive in 0..3 {
        let values = values.clone();
        on_objects(&array, drive, async move |kv: &Kv| {
            let keys = kv.list_all(&[]).await.unwrap();
            for key in keys.iter().filter(|key| key.as_bytes().len() == 16) {
                let stored = kv.retrieve(key, 1 << 20).await.unwrap().unwrap();
                if stored[..] == values[4 * CHUNK..5 * CHUNK] {
                    kv.delete(key).await.unwrap();
                } else if stored[..] == values[7 * CHUNK..8 * CHUNK] {
                    let other = Buffer::from_slice(&values[8 * CHUNK..9 * CHUNK]);
                    kv.store(key, vec![other], 0).await.unwrap();
                }
            }
        });
    }
    let found = scrubbed(&array, &["v"], 4);
    let cause = |bad: &Value| (bad["piece"].as_u64(), bad["cause"].as_str().map(str::to_owned));
    let causes: Vec<_> = found["bad"].as_array().unwrap().iter().map(cause).collect();
    let wanted = |piece: u64, cause: &str| (Some(piece), Some(cause.to_owned()));
    assert_eq!(causes, [wanted(4, "missing"), wanted(7, "differs")]);
    // Without other pieces nothing is repaired.
    assert_eq!(scrubbed(&array, &["v", "--repair"], 4)["bad"], found["bad"]);
    // What drives wrote has no checksums in the catalogue; its values have their own.
    array.csd(&["put", "r", "a", "--type", "i32"]).expect(0, &[]);
    array.csd(&["run", "vector-add", "a", "a", "-o", "sum"]).expect(0, &[]);
    let found = scrubbed(&array, &["sum"], 0);
    assert!(found["unknown"] == found["chunks"] && found["chunks"] != 0, "{found}");
    array.kill(1);
    let found = scrubbed(&array, &["v"], 4);
    let unread = found["unread"].as_array().unwrap();
    assert_eq!(
        (unread.len(), &unread[0]["drive"], &unread[0]["chunks"]),
        (1, &"d1".into(), &7.into())
    );
}
