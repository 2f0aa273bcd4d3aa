//! Page lists: what a put stores, what removes take along, and lists that are damaged themselves.

use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::List;
use serde_json::{Value, json};

use crate::support::damage::flip_bit;
use crate::support::data::bytes;
use crate::support::harness::Array;
use crate::support::page_lists::{all_lists, listed_pieces, lists};
use crate::support::scrub::scrubbed;

const CHUNK: usize = 64 << 10;

/// Flips a bit of a drive's medium, `further` bytes behind the place of these bytes.
#[track_caller]
fn flip(array: &Array, drive: usize, needle: &[u8], further: usize) {
    assert!(flip_bit(array, &format!("d{drive}"), needle, further), "it is there");
}

#[test]
fn a_put_stores_a_checksum_of_every_page_and_a_remove_deletes_them() {
    let array = Array::up(3, "256M");
    // 21 chunks; the last has one page, whose checksum is in the catalogue.
    let bytes = bytes(1, 20 * CHUNK + 4096);
    array.file("x", &bytes);
    let sums = |page: usize| -> Vec<u32> {
        let chunks = bytes.chunks(CHUNK).filter(|chunk| chunk.len() > page);
        sorted(chunks.flat_map(|chunk| chunk.chunks(page)).map(crc32c::crc32c).collect())
    };
    for (on, kind) in [("kv", LocationKind::VALUE), ("block", LocationKind::BLOCKS)] {
        for (option, page) in [("4K", 4096), ("16K", 16 << 10)] {
            array
                .csd(&["put", "x", "--chunk", "64K", "--on", on, "--page-bytes", option])
                .expect(0, &[]);
            let lists = all_lists(&array);
            let found = sorted(lists.iter().flat_map(|list| list.sums.clone()).collect());
            assert_eq!(found, sums(page), "{on} {option}");
            assert!(lists.len() == 3 && lists.iter().all(|list| list.kind == kind));
            array.csd(&["rm", "x"]).expect(0, &[]);
            assert!(all_lists(&array).is_empty());
        }
    }
    array.csd(&["put", "x", "--chunk", "64K", "--page-bytes", "0"]).expect(0, &[]);
    assert!(all_lists(&array).is_empty());
    for wrong in ["1", "2K", "5000", "16M", "all"] {
        array.csd(&["put", "x", "y", "--page-bytes", wrong]).expect(2, &["--page-bytes"]);
    }
}

#[test]
fn a_protect_stores_a_checksum_of_every_page_of_the_parity() {
    let array = Array::up(3, "256M");
    let bytes = bytes(1, 20 * CHUNK + 4096);
    array.file("x", &bytes);
    for (on, encode) in [("kv", "host"), ("block", "host"), ("kv", "drives"), ("block", "drives")] {
        array.csd(&["put", "x", "--chunk", "64K", "--on", on]).expect(0, &[]);
        let of_chunks = listed_pieces(&all_lists(&array)).len();
        array.csd(&["protect", "x", "rs:2+1", "--encode", encode]).expect(0, &[]);
        let mut expected = Vec::new();
        for stripe in 0..10 {
            let name = format!("{stripe}:2");
            let piece = array.csd(&["get", "x", "-", "--piece", &name]).expect(0, &[]).stdout;
            expected.extend(piece.chunks(4096).map(crc32c::crc32c));
        }
        let lists = all_lists(&array);
        assert_eq!((of_chunks, listed_pieces(&lists).len()), (20, 30), "{on}, {encode}");
        let is_parity = |list: &&List| !bytes_have(&bytes, list.sums[0]);
        let found = lists.iter().filter(is_parity).flat_map(|list| list.sums.clone());
        assert_eq!(sorted(found.collect()), sorted(expected), "{on}, {encode}");
        array.csd(&["rm", "x"]).expect(0, &[]);
        assert!(all_lists(&array).is_empty(), "{on}, {encode}");
    }
}

/// Returns true if one of the pages has this checksum.
fn bytes_have(bytes: &[u8], sum: u32) -> bool {
    bytes.chunks(4096).any(|page| crc32c::crc32c(page) == sum)
}

fn sorted(mut sums: Vec<u32>) -> Vec<u32> {
    sums.sort_unstable();
    sums
}

#[test]
fn a_damaged_page_list_is_no_damage_of_the_object_and_is_made_again() {
    let array = Array::up_on_files(3, "256M");
    let (values, blocks) = (bytes(1, 20 * CHUNK), bytes(2, 20 * CHUNK));
    array.file("v", &values);
    array.file("b", &blocks);
    array.csd(&["put", "v", "--chunk", "64K"]).expect(0, &[]);
    array.csd(&["put", "b", "--chunk", "64K", "--on", "block"]).expect(0, &[]);
    let before: Vec<Vec<List>> = (0..3).map(|drive| lists(&array, drive)).collect();
    let of = |drive: usize, kind: LocationKind| {
        before[drive].iter().find(|list| list.kind == kind).expect("one of each").encode()
    };
    let (of_values, of_blocks) = (of(0, LocationKind::VALUE), of(1, LocationKind::BLOCKS));
    array.csd(&["array", "down"]).expect(0, &[]);
    flip(&array, 0, &of_values, of_values.len() - 5);
    flip(&array, 1, &of_blocks, 3);
    array.csd(&["array", "up"]).expect(0, &[]);
    let bad = |object: &str, drive: &str, repaired: bool| {
        json!({
            "object": object,
            "stripe": null,
            "piece": null,
            "page": null,
            "drive": drive,
            "cause": "page-list",
            "repaired": repaired,
        })
    };
    let found = |repaired| json!([bad("b", "d1", repaired), bad("v", "d0", repaired)]);
    assert_eq!(scrubbed(&array, &[], 4)["bad"], found(false));
    let words = ["no piece is bad; page checksums are damaged in 2 places", "--repair"];
    array.csd(&["scrub"]).expect(4, &words);
    assert!(array.csd(&["get", "v", "-"]).expect(0, &[]).stdout == values);
    assert_eq!(scrubbed(&array, &["--repair"], 4)["bad"], found(true));
    assert_eq!(scrubbed(&array, &[], 0)["bad"], json!([]));
    for (drive, before) in before.iter().enumerate() {
        assert_eq!(listed_pieces(&lists(&array, drive)), listed_pieces(before), "as they were");
    }
    // With these lists pages have names again. Damage to data and list at once costs the names.
    let again = lists(&array, 0);
    let again = again.iter().find(|list| list.kind == LocationKind::VALUE).unwrap().encode();
    array.csd(&["array", "down"]).expect(0, &[]);
    let list = List::parse(&of_blocks).unwrap();
    let crc = list.sums[16 * 3 + 9];
    let page = blocks.chunks(4096).position(|page| crc32c::crc32c(page) == crc).unwrap();
    flip(&array, 1, &blocks[page * 4096..][..4096], 77);
    let chunk = values.chunks(CHUNK).position(|chunk| {
        let first = List::parse(&of_values).unwrap().sums[0];
        crc32c::crc32c(&chunk[..4096]) == first
    });
    flip(&array, 0, &values[chunk.unwrap() * CHUNK..][..CHUNK], 5000);
    flip(&array, 0, &again, 40);
    array.csd(&["array", "up"]).expect(0, &[]);
    let all = scrubbed(&array, &[], 4)["bad"].clone();
    let brief = |bad: &Value| (bad["cause"].clone(), bad["piece"].clone(), bad["page"].clone());
    let all: Vec<_> = all.as_array().unwrap().iter().map(brief).collect();
    let expected = [
        ("differs".into(), (page / 16).into(), (page % 16).into()),
        ("page-list".into(), Value::Null, Value::Null),
        ("unreadable".into(), chunk.unwrap().into(), Value::Null),
    ];
    assert_eq!(all, expected);
    // The list is made again without the piece that is lost.
    let repaired = scrubbed(&array, &["v", "--repair"], 4)["bad"].clone();
    let good: Vec<_> = repaired.as_array().unwrap().iter().map(|bad| &bad["repaired"]).collect();
    assert_eq!(good, [&Value::Bool(true), &Value::Bool(false)]);
    let lost = List::parse(&of_values).unwrap().pieces[0].start;
    let mut left = listed_pieces(&before[0]);
    left.retain(|(kind, start, _)| (*kind, *start) != (LocationKind::VALUE.0, lost));
    assert_eq!(listed_pieces(&lists(&array, 0)), left);
}

#[test]
fn lists_of_blocks_leave_the_catalogue_its_room() {
    let array = Array::up(1, "128M");
    array.file("blocks", &bytes(3, 8 << 20));
    let room = array.csd(&["array", "status", "--json"]).expect(0, &[]).json();
    let room = room["result"]["room"]["kv_bytes"].as_u64().unwrap();
    // What is left after each is less than one more.
    for length in [room, 64 << 10, 16 << 10, 4 << 10] {
        array.file("values", &bytes(4, usize::try_from(length).unwrap()));
        let put = |number: u32| {
            let name = format!("{length} {number}");
            array.csd(&["put", "values", &name, "--page-bytes", "0"]).code
        };
        let full = (0..1000).map(put).find(|code| *code != 0);
        assert_eq!(full, Some(1), "{length}");
    }
    array.csd(&["put", "blocks", "--on", "block"]).expect(0, &[]);
    assert!(all_lists(&array).is_empty());
    assert_eq!(scrubbed(&array, &["blocks"], 0)["bad"], json!([]));
}
