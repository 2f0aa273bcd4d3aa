//! Bits that flip on a medium at rest: a start refuses the medium, or a read fails. No read returns
//! an older value, or "no such key", for an acknowledged one.
//!
//! After a clean stop that holds for every bit of the log. After a power cut it holds for every bit
//! except those of a shard's last group, which looks the same as one that the cut has torn.

use std::ops::Range;

use csd_kvlog::format::{self, SHARDS};
use csd_kvlog::media::Media;
use csd_kvlog::record::{PAGE_BYTES, RECORDS_OFFSET};
use csd_kvlog::recover::survey;
use csd_kvlog::segments::Segments;
use csd_kvlog::walk::Step;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::lives::{Lives, SMALL, content, find, keys_of, stop, store};
use crate::seeds;

const KEYS_PER_SHARD: usize = 3;
const VERSIONS: u64 = 4;
/// Flips for each seed.
const FLIPS: u64 = 16;

fn keys() -> Vec<Key> {
    (0..SHARDS as usize).flat_map(|shard| keys_of(shard).take(KEYS_PER_SHARD)).collect()
}

fn value(index: usize, version: u64) -> Vec<u8> {
    content(version << 8 | index as u64, 100 + index * 137)
}

/// Returns the ranges where a flip must be noticed: headers, seals and records, after a power cut
/// without each shard's last group.
async fn ranges(media: Media, is_clean: bool) -> Vec<Range<u64>> {
    let superblock = format::open(&media).await.expect("a drive");
    let (bytes, offset) = (superblock.segment_bytes(), superblock.kv_offset());
    let count = u32::try_from(superblock.kv_length() / bytes).unwrap();
    let segments = Segments::new(superblock.uuid(), offset, bytes, count, &[]);
    let mut ranges = Vec::new();
    for found in survey(&media, &segments, SHARDS, 0).await.expect("whole") {
        let at = segments.at(found.number, 0);
        ranges.push(at..at + 64);
        if is_clean {
            ranges.push(at + PAGE_BYTES..at + PAGE_BYTES + 64);
        }
        let mut walk = found.walk(&media, &segments);
        let (mut end, mut last_group) = (RECORDS_OFFSET, RECORDS_OFFSET);
        loop {
            match walk.next().await.expect("read") {
                Step::Record(offset, record) => {
                    last_group = u64::from(record.group) * segments.group_unit();
                    end = offset + record.footprint();
                }
                Step::Checkpoint(..) => {}
                _ => break,
            }
        }
        ranges.push(at + RECORDS_OFFSET..at + if is_clean { end } else { last_group });
    }
    ranges
}

async fn flip(media: Media, at: u64, mask: u8) -> u8 {
    let (result, mut byte) = media.read(at, Buffer::zeroed(1)).await;
    result.expect("read");
    byte[0] ^= mask;
    let flipped = byte[0];
    media.write(at, vec![byte]).await.0.expect("written");
    flipped
}

/// Outcomes of a flip, counted.
#[derive(Debug, Default)]
struct Met {
    refused: u64,
    failed_reads: u64,
    harmless: u64,
}

/// Starts the drive and reads every key.
fn look(lives: &mut Lives, met: &mut Met) -> Result<(), String> {
    let errors = lives.live(|core| async move {
        let mut errors = 0;
        for (index, key) in keys().into_iter().enumerate() {
            match find(&core, key).await {
                Ok(Some(found)) if found == value(index, VERSIONS - 1) => {}
                Ok(found) => {
                    let found = found.map(|found| found.len());
                    return Err(format!("key {index}: found {found:?} bytes that are not its own"));
                }
                Err(Status::UNRECOVERED_ERROR) => errors += 1,
                Err(status) => return Err(format!("key {index}: {status}")),
            }
        }
        Ok(errors)
    });
    lives.cut(|| 1);
    match errors {
        Err(_) => met.refused += 1,
        Ok(Ok(0)) => met.harmless += 1,
        Ok(Ok(_)) => met.failed_reads += 1,
        Ok(Err(text)) => return Err(text),
    }
    Ok(())
}

fn run(seed: u64, is_clean: bool, met: &mut Met) -> Result<(), String> {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
    lives.live(move |core| async move {
        for version in 0..VERSIONS {
            for (index, key) in keys().into_iter().enumerate() {
                store(&core, key, &value(index, version)).await.expect("stored");
            }
        }
        if is_clean {
            stop(&core).await;
        }
    })?;
    lives.cut(|| 1);
    let ranges = lives.inspect(move |media| ranges(media, is_clean));
    for _ in 0..FLIPS {
        // Headers and seals as often as records, which are far longer.
        let range = ranges[usize::try_from(lives.draw(ranges.len() as u64)).unwrap()].clone();
        let at = range.start + lives.draw(range.end - range.start);
        let mask = 1u8 << lives.draw(8);
        let flipped = lives.inspect(move |media| flip(media, at, mask));
        look(&mut lives, met).map_err(|text| format!("byte {at}, mask {mask:#x}: {text}"))?;
        let is_left =
            move |media: Media| async move { media.read(at, Buffer::zeroed(1)).await.1[0] };
        if lives.inspect(is_left) == flipped {
            lives.inspect(move |media| flip(media, at, mask));
        }
        if !is_clean {
            // A start closes what the cut left open: the next flip needs a new cut.
            break;
        }
    }
    Ok(())
}

#[test]
fn every_flipped_bit_of_the_log_is_noticed() {
    for is_clean in [true, false] {
        let mut met = Met::default();
        for seed in seeds() {
            let result = run(seed, is_clean, &mut met);
            assert_eq!(result, Ok(()), "clean {is_clean}: CSD_SIM_SEEDS={seed}..{}", seed + 1);
        }
        let (count, flipped) = (seeds().count(), met.refused + met.failed_reads + met.harmless);
        println!("flips, after a clean stop {is_clean}: {count} seeds, {flipped} flips, {met:?}");
        let is_met = met.failed_reads > 0 && met.refused > 0;
        assert!(is_met || seeds().count() < 50, "{met:?}");
    }
}

#[test]
fn a_header_that_reads_as_zeros_after_a_clean_stop_is_noticed() {
    let mut lives = Lives::new(1, 1, SMALL);
    lives
        .live(|core| async move {
            // Two segments of one shard, both with the only copies of values.
            for (index, key) in keys_of(3).take(6).enumerate() {
                store(&core, key, &content(index as u64, 200_000)).await.expect("stored");
            }
            stop(&core).await;
        })
        .unwrap();
    lives.cut(|| 1);
    let headers = lives.inspect(|media| async move {
        let superblock = format::open(&media).await.expect("a drive");
        let (bytes, offset) = (superblock.segment_bytes(), superblock.kv_offset());
        let count = u32::try_from(superblock.kv_length() / bytes).unwrap();
        let segments = Segments::new(superblock.uuid(), offset, bytes, count, &[]);
        let found = survey(&media, &segments, SHARDS, 0).await.expect("whole");
        found.iter().map(|found| segments.at(found.number, 0)).collect::<Vec<_>>()
    });
    assert!(headers.len() > 2, "{} segments", headers.len());
    let at = headers[0];
    lives.inspect(move |media| async move {
        media.write(at, vec![Buffer::zeroed(512)]).await.0.expect("written");
    });
    let refused = lives.live(|_| async {}).unwrap_err();
    assert!(refused.contains("its header (its seal is there)"), "{refused}");
}
