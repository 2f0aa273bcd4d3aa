//! Soak: drives are killed, emptied, replaced and damaged, also in their copies of names, while
//! objects are written and read. In the end every object has its bytes, and a scrub finds nothing.
//!
//! One round of each fault by default; `make soak MINUTES=10` goes on for that time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use csd_store::array::ArrayFile;

use crate::support::data::{bytes, numbers};
use crate::support::harness::Array;

const DRIVES: usize = 6;
const CHUNK: usize = 64 << 10;
/// Objects that stay: name, placement, chunks.
const OBJECTS: [(&str, &str, usize); 4] =
    [("a", "kv", 20), ("b", "block", 16), ("c", "kv", 9), ("d", "kv", 1)];

fn content(seed: u64, chunks: usize) -> Vec<u8> {
    bytes(seed, chunks * CHUNK - 24)
}

fn put(array: &Array, name: &str, on: &str, content: &[u8]) -> i32 {
    let file = format!("{name}.bin");
    array.file(&file, content);
    let put = ["put", &file, name, "--chunk", "64K", "--protect", "rs:4+2", "--on", on];
    array.csd(&put).code
}

/// Reads an object; it may be degraded.
#[track_caller]
fn expect(array: &Array, name: &str, content: &[u8]) {
    let got = array.csd(&["get", name, "-"]);
    assert!(matches!(got.code, 0 | 4), "{name}: {}", got.stderr);
    assert!(got.stdout == content, "{name} has other bytes: {}", got.stderr);
}

/// Reads the objects that stay, and puts and removes others, until it is stopped.
fn load(array: &Array, objects: &BTreeMap<&str, Vec<u8>>, is_over: &AtomicBool) -> usize {
    let mut puts = 0;
    for number in 0.. {
        for (name, content) in objects {
            expect(array, name, content);
        }
        let (name, content) = (format!("load{number}"), content(number, 3));
        // A drive may die in the middle of a put.
        if matches!(put(array, &name, "kv", &content), 0 | 4) {
            expect(array, &name, &content);
            puts += 1;
        }
        array.csd(&["rm", &name]);
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    puts
}

fn medium(array: &Array, drive: usize) -> std::path::PathBuf {
    let file = ArrayFile::load(&array.path("csd-array.toml")).unwrap();
    array.path(file.drives[drive].media.as_ref().unwrap())
}

/// Flips a bit in every piece of data that is found on a drive's medium; returns their number.
fn flip(array: &Array, drive: usize, objects: &BTreeMap<&str, Vec<u8>>) -> usize {
    let path = medium(array, drive);
    let bytes = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let chunks: Vec<&[u8]> = objects.values().flat_map(|content| content.chunks(CHUNK)).collect();
    let mut flipped = 0;
    // Values and blocks begin at multiples of 64.
    for (place, found) in bytes.chunks(64).enumerate() {
        if chunks.iter().any(|chunk| chunk[..64] == *found) {
            file.write_all_at(&[found[5] ^ 8], place as u64 * 64 + 5).unwrap();
            flipped += 1;
        }
    }
    flipped
}

/// Flips a bit in every copy of a name, claim and roster that is found on a drive's medium; returns
/// their number.
fn rot(array: &Array, drive: usize, draws: &mut impl Iterator<Item = u64>) -> usize {
    let path = medium(array, drive);
    let bytes = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut flipped = 0;
    for (place, found) in bytes.chunks(64).enumerate() {
        if found.starts_with(b"CSDC") || found.starts_with(b"CSDR") {
            let at = usize::try_from(draws.next().unwrap() % 64).unwrap();
            file.write_all_at(&[found[at] ^ 2], (place * 64 + at) as u64).unwrap();
            flipped += 1;
        }
    }
    flipped
}

/// Does one fault, and brings all drives back.
fn fault(array: &Array, round: u64, objects: &BTreeMap<&str, Vec<u8>>) -> &'static str {
    let mut draws = numbers(round, 1 << 20);
    let drive = usize::try_from(draws.next().unwrap() % DRIVES as u64).unwrap();
    let name = format!("d{drive}");
    let what = match round % 5 {
        0 => {
            array.kill(drive);
            array.kill((drive + 1) % DRIVES);
            "two drives were killed"
        }
        1 => {
            array.kill(drive);
            fs::remove_file(medium(array, drive)).unwrap();
            array.csd(&["array", "replace", &name]).expect(0, &[]);
            "a drive lost its medium and was replaced"
        }
        2 => {
            array.kill(drive);
            assert!(flip(array, drive, objects) > 0, "{name} has no data");
            "bits of a medium were flipped"
        }
        3 => {
            array.stop(drive);
            assert!(rot(array, drive, &mut draws) > 0, "{name} has no names");
            "bits of names on a medium were flipped"
        }
        _ => {
            let before = medium(array, drive);
            array.csd(&["array", "replace", &name]).expect(0, &[]);
            fs::remove_file(before).unwrap();
            "a drive that was up was replaced"
        }
    };
    let up = array.csd(&["array", "up"]);
    assert!(matches!(up.code, 0 | 4), "{}", up.stderr);
    what
}

#[test]
fn objects_survive_kills_replacements_and_flips_under_load() {
    let minutes = std::env::var("CSD_SOAK_MINUTES").map_or(0, |text| text.parse().unwrap());
    let array = Array::up_on_files(DRIVES, "128M");
    let object = |(name, _, chunks): &(&'static str, &str, usize)| {
        let seed = u64::from(name.as_bytes()[0]);
        (*name, content(seed, *chunks))
    };
    let objects: BTreeMap<&str, Vec<u8>> = OBJECTS.iter().map(object).collect();
    for (name, on, _) in OBJECTS {
        assert_eq!(put(&array, name, on, &objects[name]), 0);
    }
    let (begin, limit) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut round = 0;
    while round < 5 || begin.elapsed() < limit {
        let is_over = AtomicBool::new(false);
        let (what, puts) = std::thread::scope(|scope| {
            let load = scope.spawn(|| load(&array, &objects, &is_over));
            let what = fault(&array, round, &objects);
            is_over.store(true, Ordering::SeqCst);
            (what, load.join().expect("the load ends well"))
        });
        array.csd(&["repair"]).expect(0, &[]);
        println!("round {round}: {what}; {puts} puts");
        round += 1;
    }
    let scrub = array.csd(&["scrub", "--json"]).expect(0, &[]).json();
    assert_eq!(scrub["result"]["bad"], serde_json::json!([]));
    for (name, content) in &objects {
        assert!(array.csd(&["get", name, "-"]).expect(0, &[]).stdout == *content, "{name}");
    }
}
