//! The offline check of a medium: superblocks, segments, records, checkpoints, checksums.
//!
//! The check writes nothing, and reports every place that cannot be read or whose checksum does not
//! hold. Invariant: a medium that a drive left behind, after any power cut, has no damage; a torn
//! end of the log is not damage, because nothing there was acknowledged, and neither is what lies
//! behind the mark of a drive with a volatile cache.

use std::collections::BTreeMap;

use crate::checkpoint::Listing;
use crate::error::Error;
use crate::format::{self, FEATURE_MARK, SHARDS, Superblock};
use crate::lists::Lists;
use crate::mark::Mark;
use crate::media::Media;
use crate::record::{Content, EntryKey, Record, SegmentRange};
use crate::recover::by_checkpoints::load;
use crate::recover::by_mark;
use crate::recover::{Found, check_seals, head, lost, same_sequence};
use crate::segments::Segments;
use crate::walk::Step;

/// Findings in one shard of the kv log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardReport {
    /// Shard number.
    pub shard: u32,
    /// Number of segments that it owns.
    pub segments: u32,
    /// Number of records, superseded ones and tombstones included.
    pub records: u64,
    /// Number of keys that exist.
    pub keys: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Number of damaged places.
    pub damage: u64,
}

/// Findings on a medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Superblock in force.
    pub superblock: Superblock,
    /// Number of segments of the log, used or free.
    pub segments: u32,
    /// Number of free segments.
    pub segments_free: u32,
    /// Shards in their order.
    pub shards: Vec<ShardReport>,
    /// Description of every damaged place.
    pub damage: Vec<String>,
}

struct Checker<'a> {
    media: &'a Media,
    segments: Segments,
    report: Report,
    // Newest record of a key: its commit number, and its value's length unless it was deleted.
    newest: Vec<BTreeMap<EntryKey, (u64, Content)>>,
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
    let segments = Segments::new(superblock.uuid(), superblock.kv_offset(), bytes, count, &[])
        .of_format(&superblock);
    let shards = (0..SHARDS).map(|shard| ShardReport { shard, ..ShardReport::default() });
    let shards: Vec<ShardReport> = shards.collect();
    let mut damage = format::damaged_copies(media).await?;
    let mut mark = None;
    if superblock.features_needed() & FEATURE_MARK != 0 {
        damage.extend(by_mark::damaged_copies(media, &segments).await?);
        mark = Mark::newest(Mark::read(media, &segments.uuid).await?);
    }
    let mut checker = Checker {
        media,
        segments,
        newest: shards.iter().map(|_| BTreeMap::new()).collect(),
        report: Report { superblock, segments: count, segments_free: 0, shards, damage },
    };
    checker.log(mark.as_ref()).await;
    Ok(checker.finish())
}

impl Checker<'_> {
    async fn log(&mut self, mark: Option<&Mark>) {
        let mut found = Vec::new();
        for number in 0..self.segments.count {
            match head(self.media, &self.segments, number).await {
                Ok(Ok(Some(segment))) if segment.shard >= SHARDS => {
                    let text = format!("segment {number}: belongs to shard {}", segment.shard);
                    self.damaged(None, text);
                }
                Ok(Ok(Some(segment))) => found.push(segment),
                Ok(Ok(None)) => self.report.segments_free += 1,
                Ok(Err(text)) => self.damaged(None, text),
                Err(error) => {
                    self.damaged(None, format!("segment {number}: its head: {error}"));
                }
            }
        }
        found.sort_by_key(|segment| segment.sequence);
        if let Some(mark) = mark {
            let lost = lost::by_mark(self.media, &self.segments, mark, &found).await;
            let lost = lost.unwrap_or_else(|error| vec![format!("segments: {error}")]);
            let cut = by_mark::apply(mark, &mut found, &self.segments);
            lost.into_iter().chain(cut).for_each(|text| self.damaged(None, text));
        }
        same_sequence(&found).into_iter().for_each(|text| self.damaged(None, text));
        for shard in 0..SHARDS {
            let own = found.iter().filter(|segment| segment.shard == shard);
            let own: Vec<Found> = own.copied().collect();
            self.report.shards[shard as usize].segments =
                u32::try_from(own.len()).expect("segments are counted with 32 bits");
            if let Err(text) = check_seals(&own, &self.segments) {
                self.damaged(Some(shard), text);
            }
            for segment in &own {
                self.records(segment).await;
            }
        }
    }

    /// Walks the records of a segment, and compares its checkpoints with them.
    async fn records(&mut self, segment: &Found) {
        let (number, shard) = (segment.number, segment.shard);
        let mut walk = segment.walk(self.media, &self.segments);
        let mut lists = Lists::default();
        loop {
            match walk.next().await {
                Ok(Step::Record(offset, record)) => {
                    let trouble = match walk.value(offset, &record).await {
                        Ok(Some(_)) => None,
                        Ok(None) => Some("its value (checksum)".to_owned()),
                        Err(error) => Some(format!("its value: {error}")),
                    };
                    if let Some(text) = trouble {
                        let text = format!("segment {number}, record at {offset}: {text}");
                        self.damaged(Some(shard), text);
                    }
                    lists.add(offset, &record);
                    self.note(shard, &record);
                }
                Ok(Step::Checkpoint(at, checkpoint, list)) => {
                    if let Err(text) = lists.compare(at, &checkpoint, list.as_deref()) {
                        self.damaged(Some(shard), format!("segment {number}: {text}"));
                    }
                }
                Ok(Step::Unknown(at, kind)) => {
                    let text = format!("segment {number}: unknown kind {kind} at {at}");
                    self.damaged(Some(shard), text);
                }
                Ok(Step::End) => break,
                Ok(Step::Damage(at)) => {
                    lists.is_broken = true;
                    self.damaged(Some(shard), format!("segment {number}: no record at {at}"));
                    if let Err(error) = walk.pass_over().await {
                        let text = format!("segment {number}, behind {at}: {error}");
                        return self.damaged(Some(shard), text);
                    }
                }
                Err(error) => {
                    let text = format!("segment {number}, from {} on: {error}", walk.position());
                    return self.damaged(Some(shard), text);
                }
            }
        }
        if let Some(range) = segment.checkpoint(&self.segments) {
            self.named_checkpoint(segment, range, lists).await;
        }
    }

    /// Checks the checkpoint that a seal or a hint names.
    async fn named_checkpoint(&mut self, segment: &Found, range: SegmentRange, mut lists: Lists) {
        let compared = match load(self.media, &self.segments, segment, range).await {
            None => Err(format!("checkpoint at {} (checksum)", range.offset)),
            Some(loaded) if loaded.header.is_final => {
                let mut listing = Listing::default();
                loaded.records.iter().for_each(|it| listing.add(it.offset, &it.record()));
                lists.compare(range.offset, &loaded.header, Some(&listing.bytes))
            }
            // It was compared among the records.
            Some(_) => Ok(()),
        };
        if let Err(text) = compared {
            self.damaged(Some(segment.shard), format!("segment {}: {text}", segment.number));
        }
    }

    fn note(&mut self, shard: u32, record: &Record) {
        self.report.shards[shard as usize].records += 1;
        let newest = &mut self.newest[shard as usize];
        let entry = newest.entry(record.key).or_insert((0, Content::Tombstone));
        if record.commit >= entry.0 {
            *entry = (record.commit, record.content);
        }
    }

    fn damaged(&mut self, shard: Option<u32>, text: String) {
        if let Some(shard) = shard {
            self.report.shards[shard as usize].damage += 1;
        }
        self.report.damage.push(text);
    }

    fn finish(mut self) -> Report {
        for (report, newest) in self.report.shards.iter_mut().zip(&self.newest) {
            let values = newest.values().filter(|(_, content)| content.is_value());
            report.keys = values.clone().count() as u64;
            report.value_bytes = values.map(|(_, content)| u64::from(content.bytes())).sum();
        }
        self.report
    }
}
