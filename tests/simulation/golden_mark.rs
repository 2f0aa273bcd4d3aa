//! The golden medium of a drive with a volatile cache, `version-2-marked.txt`: its mark has the
//! fields of `version-2-mark.txt`, and what lies behind the mark's positions does not count.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::check::check;
use csd_kvlog::format::{self, FEATURE_MARK, VERSION};
use csd_kvlog::mark::{MARK_OFFSETS, Mark, Position};
use csd_kvlog::media::Media;
use csd_kvlog::record::{SECTOR_BYTES, SegmentRange};
use csd_nvme::kv::Key;
use csd_reactor::Buffer;

use crate::golden::{golden_file, hex, restore, text_of};
use crate::lives::{Lives, SMALL, content, find, keys_of, store};

const MEDIUM: &str = "version-2-marked.txt";
const MARK: &str = "version-2-mark.txt";
/// Shards that have keys, and keys of each.
const SHARDS: [usize; 2] = [3, 9];
const KEYS: usize = 4;
/// Version of all values that was flushed; that of the next one was stored behind the mark.
const FLUSHED: u64 = 1;

fn keys() -> impl Iterator<Item = (u64, Key)> {
    (0..).zip(SHARDS.into_iter().flat_map(|shard| keys_of(shard).take(KEYS)))
}

fn value(index: u64, version: u64) -> Vec<u8> {
    content(version << 8 | index, usize::try_from(20 + 70 * index).unwrap())
}

async fn store_all(core: &Core, version: u64) {
    for (index, key) in keys() {
        store(core, key, &value(index, version)).await.expect("stored");
    }
}

async fn verify(core: &Core, version: u64) {
    for (index, key) in keys() {
        assert!(find(core, key).await == Ok(Some(value(index, version))), "key {index}");
    }
}

async fn life(core: Rc<Core>) {
    // Zeros, and long enough for a checkpoint among the records before the mark.
    let long = keys_of(SHARDS[0]).nth(KEYS).unwrap();
    store(&core, long, &[0; 60_000]).await.expect("stored");
    for version in 0..=FLUSHED {
        store_all(&core, version).await;
    }
    core.kv.flush().await.expect("flushed");
    store_all(&core, FLUSHED + 1).await;
}

/// Returns the fields of a mark: a line with its epoch, and one for each shard with a log, of its
/// number, the sequence, the sector of the end, and the checkpoint's sector and bytes.
fn to_text(mark: &Mark) -> String {
    let line = |(shard, at): (usize, &Position)| {
        let (sector, bytes) = SegmentRange::fields(at.checkpoint);
        format!("{shard} {} {} {sector} {bytes}\n", at.sequence, at.end / SECTOR_BYTES)
    };
    let with_log = mark.positions.iter().enumerate().filter(|(_, at)| at.sequence > 0);
    format!("{}\n{}", mark.epoch, with_log.map(line).collect::<String>())
}

fn of_text(text: &str) -> Mark {
    let mut mark = Mark::default();
    for line in text.lines() {
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        match fields[..] {
            [epoch] => mark.epoch = epoch,
            [shard, sequence, end_sector, sector, bytes] => {
                let [sector, bytes] = [sector, bytes].map(|field| u32::try_from(field).unwrap());
                mark.positions[usize::try_from(shard).unwrap()] = Position {
                    sequence,
                    end: end_sector * SECTOR_BYTES,
                    checkpoint: SegmentRange::of(sector, bytes),
                };
            }
            _ => panic!("{line}"),
        }
    }
    mark
}

/// Returns the first sectors of both copies of the mark, and the drive's identifier.
async fn copies(media: Media) -> ([Vec<u8>; 2], [u8; 16]) {
    let uuid = format::open(&media).await.expect("a drive").uuid();
    let read = async |at| {
        let sector = Buffer::zeroed(usize::try_from(SECTOR_BYTES).unwrap());
        media.read(at, sector).await.1.to_vec()
    };
    ([read(MARK_OFFSETS[0]).await, read(MARK_OFFSETS[1]).await], uuid)
}

#[test]
fn the_mark_is_encoded_as_on_the_golden_medium() {
    let mut lives = Lives::new(1, 1, SMALL);
    restore(&mut lives, &golden_file(MEDIUM));
    let mark = of_text(&golden_file(MARK));
    let with_checkpoint = mark.positions.iter().filter(|at| at.checkpoint.is_some());
    assert_eq!((with_checkpoint.count(), to_text(&mark)), (1, golden_file(MARK)));
    let (copies, uuid) = lives.inspect(copies);
    for copy in copies {
        assert_eq!(Mark::decode(&copy, &uuid), Some(mark));
        let mut encoded = mark.encode(&uuid);
        encoded.resize(copy.len(), 0);
        assert!(encoded == copy, "{}", hex(&copy));
    }
}

/// Reads the medium with the option and without, and goes on with the other.
fn go_on(text: &str) {
    let behind = hex(&value(0, FLUSHED + 1)[..16]);
    assert!(text.contains(&behind), "nothing lies behind the mark");
    for is_cached in [true, false] {
        let mut lives = Lives::new(1, 1, SMALL);
        restore(&mut lives, text);
        let found = lives.inspect(|media| async move { check(&media).await.unwrap() });
        assert_eq!(found.damage, [""; 0]);
        let features = found.superblock.features_needed();
        assert_eq!((found.superblock.version(), features & FEATURE_MARK), (VERSION, FEATURE_MARK));
        for (is_cached, version) in [(is_cached, FLUSHED), (!is_cached, FLUSHED + 2)] {
            lives.with_cache(is_cached);
            lives
                .live(move |core| async move {
                    verify(&core, version).await;
                    store_all(&core, version + 2).await;
                    core.kv.flush().await.expect("flushed");
                })
                .unwrap();
            lives.cut_at_random();
        }
    }
}

#[test]
fn the_golden_medium_counts_up_to_its_mark_and_is_written_further() {
    go_on(&golden_file(MEDIUM));
}

/// Also writes the files to the folder that `CSD_GOLDEN_MARKED` names.
#[test]
fn a_marked_medium_of_this_version_is_written_and_restored() {
    let mut lives = Lives::new(22, 1, SMALL);
    lives.with_cache(true);
    lives.live(life).unwrap();
    // The process is killed: everything that it has written stays.
    lives.cut(|| 0);
    let text = text_of(&lives);
    if let Some(folder) = std::env::var_os("CSD_GOLDEN_MARKED") {
        let (copies, uuid) = lives.inspect(copies);
        let mark = Mark::decode(&copies[0], &uuid).expect("whole");
        fs::write(Path::new(&folder).join(MEDIUM), &text).unwrap();
        fs::write(Path::new(&folder).join(MARK), to_text(&mark)).unwrap();
    }
    go_on(&text);
}
