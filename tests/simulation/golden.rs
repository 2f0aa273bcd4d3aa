//! Golden media: a medium of each version of the format, kept in `docs/internals/golden/media`, is
//! opened, read whole and written further.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::check::check;
use csd_kvlog::checkpoint::{Checkpoint, Listing};
use csd_kvlog::format::{SHARDS as SHARDS_OF_A_DRIVE, VERSION};
use csd_kvlog::media::Media;
use csd_kvlog::record::{RecordHeader, SegmentRange};
use csd_kvlog::recover::{Found, survey};
use csd_kvlog::segments::Segments;
use csd_kvlog::walk::Step;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::lives::{Lives, SMALL, content, find_in, keys_in, segments_of, stop};

/// Namespace that the golden media have keys in.
const NSID: u16 = 3;

async fn store(core: &Core, key: Key, value: &[u8]) -> Result<(), Status> {
    core.kv.store(NSID, key, vec![Buffer::from_slice(value)], 0).await
}

/// Shards that have keys.
const SHARDS: [usize; 2] = [3, 9];
/// Lengths of the values of a shard's keys. Long ones are zeros, which take no space in the file.
const LENGTHS: [usize; 6] = [0, 1, 40, 100, 600, 9_000];
const SECTOR_BYTES: usize = 512;

fn keys() -> Vec<(usize, Key)> {
    let of = |shard: usize| keys_in(NSID, shard).take(LENGTHS.len()).enumerate();
    SHARDS.into_iter().flat_map(of).collect()
}

/// Returns the value of a key in one of its versions.
fn value(index: usize, version: u64) -> Vec<u8> {
    match LENGTHS[index] {
        9_000 => vec![0; 9_000 + usize::try_from(version).unwrap()],
        length => content(version << 8 | index as u64, length),
    }
}

/// Stores every key twice, deletes the last short one, and stops or not.
async fn life(core: Rc<Core>, number: u64) {
    for version in [number * 2, number * 2 + 1] {
        for (index, key) in keys() {
            store(&core, key, &value(index, version)).await.expect("stored");
        }
    }
    for shard in SHARDS {
        let key = keys_in(NSID, shard).nth(4).unwrap();
        core.kv.delete(NSID, key).await.expect("deleted");
    }
    if number == 1 {
        stop(&core).await;
    }
}

/// Reads the sectors of a medium that are not zeros, each without the zeros at its end.
async fn sectors(media: Media) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    for at in (0..media.bytes()).step_by(1 << 20) {
        let (result, piece) = media.read(at, Buffer::zeroed(1 << 20)).await;
        result.expect("read");
        for (index, sector) in piece.chunks(SECTOR_BYTES).enumerate() {
            if let Some(last) = sector.iter().rposition(|byte| *byte != 0) {
                let at = at + (index * SECTOR_BYTES) as u64;
                found.insert(at, sector[..=last].to_vec());
            }
        }
    }
    found
}

/// Returns the text of a golden medium.
pub fn golden(version: u32) -> String {
    golden_file(&format!("version-{version}.txt"))
}

/// Returns the text of a file in the folder of the golden media.
pub fn golden_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/internals/golden/media");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the text of the medium of lives that have ended.
pub fn text_of(lives: &Lives) -> String {
    let line = |(at, bytes): (u64, Vec<u8>)| format!("{at:08x} {}\n", hex(&bytes));
    lives.inspect(sectors).into_iter().map(line).collect()
}

/// Writes a medium to the disk of lives that have not begun.
pub fn restore(lives: &mut Lives, text: &str) {
    let text = text.to_owned();
    lives.inspect(move |media| {
        let text = text.clone();
        async move {
            for line in text.lines() {
                let (at, hex) = line.split_once(' ').unwrap();
                let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                let mut sector: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
                sector.resize(SECTOR_BYTES, 0);
                let at = u64::from_str_radix(at, 16).unwrap();
                media.write(at, vec![Buffer::from_slice(&sector)]).await.0.unwrap();
            }
        }
    });
    lives.is_formatted();
}

async fn verify(core: &Core, version: u64) {
    for (index, key) in keys() {
        let found = find_in(NSID, core, key).await.expect("read");
        let expected = (index != 4).then(|| value(index, version));
        assert!(found == expected, "key {index}: {:?}", found.map(|found| found.len()));
    }
}

#[test]
fn media_of_every_version_are_read_and_written_further() {
    for version in 1..=VERSION {
        let mut lives = Lives::new(1, 1, SMALL);
        restore(&mut lives, &golden(version));
        let before = lives.inspect(|media| async move { check(&media).await.unwrap() });
        assert_eq!((before.superblock.version(), &before.damage[..]), (version, &[][..]));
        lives
            .live(|core| async move {
                verify(&core, 3).await;
                assert_eq!(core.shared.segments.damaged_checkpoints(), [""; 0]);
                life(core, 2).await;
            })
            .unwrap();
        lives.cut_at_random();
        lives.live(|core| async move { verify(&core, 5).await }).unwrap();
        lives.cut_at_random();
        let after = lives.inspect(|media| async move { check(&media).await.unwrap() });
        assert_eq!((after.superblock.version(), &after.damage[..]), (version, &[][..]));
    }
}

/// Compares every record and checkpoint of a segment with what this program would write; returns
/// their numbers.
async fn rewrite(media: &Media, segments: &Segments, found: &Found) -> (u64, u64) {
    let (mut records, mut checkpoints, mut listing) = (0, 0, Listing::default());
    let read = async |at: u64, bytes: usize| {
        let at = segments.at(found.number, at);
        media.read(at, Buffer::zeroed(bytes)).await.1.to_vec()
    };
    let mut walk = found.walk(media, segments);
    let mut last = None;
    loop {
        match walk.next().await.expect("read") {
            Step::Record(offset, record) => {
                let written = read(offset, RecordHeader::SIZE).await;
                assert!(record.encode(found.sequence).as_bytes()[..] == written, "at {offset}");
                listing.add(offset, &record);
                records += 1;
            }
            Step::Checkpoint(offset, checkpoint, _) => {
                let again = Checkpoint::new(&listing.bytes, offset, last, false);
                let written = read(offset, RecordHeader::SIZE + listing.bytes.len()).await;
                let header = again.encode(found.sequence);
                assert!([header.as_bytes(), &listing.bytes[..]].concat() == written, "at {offset}");
                last = Some(SegmentRange { offset, bytes: checkpoint.footprint() });
                listing = Listing::default();
                checkpoints += 1;
            }
            Step::End => break,
            other => panic!("{other:?}"),
        }
    }
    if let Some(range) = found.checkpoint(segments) {
        let again = Checkpoint::new(&listing.bytes, range.offset, last, true);
        let written = read(range.offset, usize::try_from(range.bytes).unwrap()).await;
        let header = again.encode(found.sequence);
        assert!([header.as_bytes(), &listing.bytes[..]].concat() == written, "{range:?}");
        checkpoints += 1;
    }
    (records, checkpoints)
}

#[test]
fn records_and_checkpoints_are_encoded_as_on_the_golden_medium() {
    let mut lives = Lives::new(1, 1, SMALL);
    restore(&mut lives, &golden(VERSION));
    let (records, checkpoints) = lives.inspect(|media| async move {
        let segments = segments_of(&media).await;
        let (mut records, mut checkpoints) = (0, 0);
        for found in survey(&media, &segments, SHARDS_OF_A_DRIVE, 0).await.expect("whole") {
            let (more, listed) = rewrite(&media, &segments, &found).await;
            records += more;
            checkpoints += listed;
        }
        (records, checkpoints)
    });
    assert!(records > 50 && checkpoints > 4, "{records} records, {checkpoints} checkpoints");
}

/// Also writes the medium to the file that `CSD_GOLDEN` names.
#[test]
fn a_golden_medium_of_this_version_is_written_and_restored() {
    let mut lives = Lives::new(21, 1, SMALL);
    for number in 0..2 {
        lives
            .live(move |core| async move {
                // Zeros, and long enough for a checkpoint among the records.
                let key = keys_in(NSID, SHARDS[0]).nth(LENGTHS.len()).unwrap();
                store(&core, key, &[0; 60_000]).await.expect("stored");
                life(core, number).await;
            })
            .unwrap();
        lives.cut(|| 1);
    }
    let text = text_of(&lives);
    if let Some(path) = std::env::var_os("CSD_GOLDEN") {
        std::fs::write(path, &text).unwrap();
    }
    let mut lives = Lives::new(1, 1, SMALL);
    restore(&mut lives, &text);
    lives.live(|core| async move { verify(&core, 3).await }).unwrap();
}
