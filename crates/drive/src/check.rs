//! A look at a medium that nobody serves: superblocks, segments, every record, every checksum.
//!
//! Never writes, and never guesses: what cannot be read is told as damage, with its place.
//! Invariant: a medium that a drive left behind, by whatever power cut, has no damage; a torn end
//! of the log is not damage, because nothing there was acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use csd_reactor::Buffer;

use crate::error::Error;
use crate::format::{self, SHARDS, Superblock};
use crate::media::Media;
use crate::namespace::kv::record::{
    EntryKey, PAGE_BYTES, RECORDS_OFFSET, Record, RecordHeader, SegmentHeader, SegmentSeal,
};
use crate::namespace::kv::recover::{Step, Walk};
use crate::namespace::kv::segments::Segments;

/// What was found in one shard of the kv log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardReport {
    /// Shard number.
    pub shard: u32,
    /// Segments that it owns.
    pub segments: u32,
    /// Records, superseded ones and tombstones included.
    pub records: u64,
    /// Keys that exist.
    pub keys: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Places that are damaged.
    pub damage: u64,
}

/// What was found on a medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The superblock that counts.
    pub superblock: Superblock,
    /// Segments of the log, used or free.
    pub segments: u32,
    /// Segments in no use.
    pub segments_free: u32,
    /// Shards in their order.
    pub shards: Vec<ShardReport>,
    /// Every damage, in words, with its place.
    pub damage: Vec<String>,
}

struct Checker<'a> {
    media: &'a Media,
    segments: Segments,
    report: Report,
    sequences: BTreeSet<u64>,
    // Newest record of a key: its commit number, and its value's length unless it was deleted.
    newest: Vec<BTreeMap<EntryKey, (u64, Option<u32>)>>,
    // The segment without a seal that each shard may have: its sequence.
    unsealed: Vec<Vec<u64>>,
    last: Vec<u64>,
}

/// Checks a medium.
///
/// # Errors
/// When it holds no drive that this version reads, or cannot be read at all.
pub async fn check(media: &Media) -> Result<Report, Error> {
    let superblock = format::open(media).await?;
    let bytes = superblock.segment_bytes();
    let count = u32::try_from(superblock.kv_length() / bytes)
        .map_err(|_| Error::Format("too many kv segments".into()))?;
    let segments = Segments::new(superblock.uuid(), superblock.kv_offset(), bytes, count, &[]);
    let shards = (0..SHARDS).map(|shard| ShardReport { shard, ..ShardReport::default() });
    let shards: Vec<ShardReport> = shards.collect();
    let damage = format::damaged_copies(media).await?;
    let mut checker = Checker {
        media,
        segments,
        newest: shards.iter().map(|_| BTreeMap::new()).collect(),
        unsealed: shards.iter().map(|_| Vec::new()).collect(),
        last: vec![0; shards.len()],
        report: Report { superblock, segments: count, segments_free: 0, shards, damage },
        sequences: BTreeSet::new(),
    };
    for number in 0..count {
        checker.segment(number).await;
    }
    Ok(checker.finish())
}

impl Checker<'_> {
    async fn segment(&mut self, number: u32) {
        let length = usize::try_from(RECORDS_OFFSET).expect("two pages");
        let at = self.segments.at(number, 0);
        let (result, pages) = self.media.read(at, Buffer::with_room(0, length, 0)).await;
        if let Err(error) = result {
            return self.damaged(None, format!("segment {number}: its head: {error}"));
        }
        let Some((sequence, shard)) = SegmentHeader::decode(&pages, &self.segments.uuid) else {
            // A header of this drive that does not hold; anything else is from before its time.
            if pages[8..24] == self.segments.uuid {
                self.damaged(None, format!("segment {number}: its header (checksum)"));
            }
            self.report.segments_free += 1;
            return;
        };
        if shard >= SHARDS {
            return self.damaged(None, format!("segment {number}: belongs to shard {shard}"));
        }
        if !self.sequences.insert(sequence) {
            self.damaged(Some(shard), format!("segment {number}: its sequence is used twice"));
        }
        let page = usize::try_from(PAGE_BYTES).expect("a page");
        let seal = SegmentSeal::decode(&pages[page..], sequence, self.segments.segment_bytes);
        let index = shard as usize;
        self.report.shards[index].segments += 1;
        self.last[index] = self.last[index].max(sequence);
        if seal.is_none() {
            self.unsealed[index].push(sequence);
        }
        self.records(number, sequence, shard, seal).await;
    }

    /// Walks the records of a segment, up to its seal if it has one.
    async fn records(&mut self, number: u32, sequence: u64, shard: u32, seal: Option<u64>) {
        let end = seal.unwrap_or(self.segments.segment_bytes);
        let media = self.media.clone();
        let segments = Segments::new(
            self.segments.uuid,
            self.segments.offset,
            self.segments.segment_bytes,
            self.segments.count,
            &[],
        );
        let mut walk = Walk::new(&media, &segments, number, sequence, end);
        loop {
            let (offset, record) = match walk.next().await {
                Ok(Step::Record(offset, record)) => (offset, record),
                Ok(Step::Damage(at)) if seal.is_some() => {
                    self.damaged(Some(shard), format!("segment {number}: no record at {at}"));
                    if let Err(error) = walk.pass_over().await {
                        let text = format!("segment {number}, behind {at}: {error}");
                        return self.damaged(Some(shard), text);
                    }
                    continue;
                }
                Ok(Step::End | Step::Damage(_)) => break,
                Err(error) => {
                    let text = format!("segment {number}, from {} on: {error}", walk.position());
                    return self.damaged(Some(shard), text);
                }
            };
            let whole = self.value_holds(number, offset, &record).await;
            if let Err(text) = whole {
                if seal.is_none() {
                    // The end of the newest segment may be torn: recovery stops here, too.
                    return;
                }
                self.damaged(Some(shard), format!("segment {number}, record at {offset}: {text}"));
            }
            self.note(shard, &record);
        }
    }

    async fn value_holds(&self, number: u32, offset: u64, record: &Record) -> Result<(), String> {
        let Some(length) = record.value_bytes else { return Ok(()) };
        let at = self.segments.at(number, offset) + RecordHeader::SIZE as u64;
        let buffer = Buffer::with_room(0, length as usize, 0);
        let (result, value) = self.media.read(at, buffer).await;
        result.map_err(|error| format!("its value: {error}"))?;
        match crc32c::crc32c(&value) == record.value_checksum {
            true => Ok(()),
            false => Err("its value (checksum)".into()),
        }
    }

    fn note(&mut self, shard: u32, record: &Record) {
        self.report.shards[shard as usize].records += 1;
        let entry = self.newest[shard as usize].entry(record.key).or_insert((0, None));
        if record.commit >= entry.0 {
            *entry = (record.commit, record.value_bytes);
        }
    }

    fn damaged(&mut self, shard: Option<u32>, text: String) {
        if let Some(shard) = shard {
            self.report.shards[shard as usize].damage += 1;
        }
        self.report.damage.push(text);
    }

    fn finish(mut self) -> Report {
        for index in 0..self.unsealed.len() {
            let newest = self.last[index];
            let stale = self.unsealed[index].iter().filter(|sequence| **sequence != newest).count();
            if stale > 0 {
                let shard = u32::try_from(index).expect("few shards");
                self.damaged(Some(shard), format!("shard {shard}: {stale} old segments unsealed"));
            }
            let values = self.newest[index].values().filter_map(|(_, value_bytes)| *value_bytes);
            let report = &mut self.report.shards[index];
            report.keys = values.clone().count() as u64;
            report.value_bytes = values.map(u64::from).sum();
        }
        self.report
    }
}
