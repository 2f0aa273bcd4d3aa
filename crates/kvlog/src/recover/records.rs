//! Recovery of one segment's records: by its checkpoints, and by walking what they do not list.
//!
//! If a checkpoint is damaged, this module walks the records before it, and takes the records after
//! it from the lists of later checkpoints. A record is trusted to be the next one only where
//! nothing can be hidden between it and the one before, and each checkpoint on the way must list
//! what was walked. Invariant: an acknowledged record is found or listed, or the drive is not
//! opened.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::lists::Lists;
use crate::record::{EntryKey, Record, SECTOR_BYTES, SegmentRange, value_offset};
use crate::recover::Found;
use crate::segment_tail::SegmentTail;
use crate::shard::{Location, Shard};
use crate::walk::{Step, Walk};

/// The newest records of a shard by key, with their commit numbers, of version 1.
pub(super) type Newest = BTreeMap<EntryKey, (u64, Location)>;

impl Shard {
    /// Adds a segment's records to the index, and returns how far they fill it.
    pub(super) async fn recover_records(
        &self,
        found: &Found,
        newest: &mut Newest,
    ) -> Result<u64, Error> {
        let (loaded, damaged) = self.checkpoints(found).await;
        let sealed = found.seal.filter(|_| !found.is_cut);
        let whole = || found.walk(&self.media, &self.segments);
        let mut lists = Lists::default();
        if let Some(place) = damaged {
            self.walk_records(found, whole().until(place.offset), &mut lists, newest).await?;
        }
        for checkpoint in &loaded {
            self.recovered_list(found, &checkpoint.records);
        }
        if let Some(seal) = sealed.filter(|_| damaged.is_some() || !loaded.is_empty()) {
            // Only of a segment that may be opened again the last list is continued.
            let mut tail = self.tail.borrow_mut();
            (tail.checkpoint, tail.listing) = (lists.last, lists.since);
            if let Some(last) = loaded.last() {
                (tail.checkpoint, tail.listing) = (last.header.previous, Default::default());
                last.records.iter().for_each(|it| tail.listing.add(it.offset, &it.record()));
            }
            return Ok(seal.valid_bytes);
        }
        let mut walk = whole();
        if let Some(last) = loaded.last().map(|last| last.range).or(damaged) {
            (walk, lists) = (walk.behind(last), Lists::behind(last));
        }
        let position = self.walk_records(found, walk, &mut lists, newest).await?;
        let (checkpoint, listing, kept) = (lists.last, lists.since, found.hint);
        self.tail.replace(SegmentTail { checkpoint, listing, kept, ..SegmentTail::default() });
        Ok(found.seal.map_or(position, |seal| seal.valid_bytes))
    }

    /// Walks records, and adds them to the index. Returns the offset behind the last one.
    async fn walk_records(
        &self,
        found: &Found,
        mut walk: Walk,
        lists: &mut Lists,
        newest: &mut Newest,
    ) -> Result<u64, Error> {
        let number = found.number;
        let mut last = None;
        loop {
            let step = walk.next().await?;
            if let Some((offset, record)) = last.take()
                && !step.follows(offset, &record)
                && self.is_cut_short(&walk, offset, &record).await?
            {
                lists.is_broken = true;
                self.segments.damaged(format!("segment {number}: its value at {offset}"))?;
            }
            match step {
                Step::Record(offset, record) => {
                    self.recovered(found, offset, &record, newest);
                    if self.segments.has_checkpoints() {
                        lists.add(offset, &record);
                    }
                    last = Some((offset, record));
                }
                Step::Checkpoint(at, checkpoint, Some(list)) => {
                    if let Err(text) = lists.compare(at, &checkpoint, Some(&list)) {
                        self.segments.damaged(format!("segment {number}: {text}"))?;
                    }
                }
                Step::Checkpoint(at, checkpoint, None) => {
                    self.lost_checkpoint(found, at);
                    let bytes = checkpoint.footprint();
                    *lists = Lists::behind(SegmentRange { offset: at, bytes });
                }
                Step::Unknown(at, kind) => {
                    lists.is_broken = true;
                    self.segments.damaged(format!(
                        "segment {number}: the record at {at} is of kind {kind}, which this \
                         program does not know"
                    ))?;
                }
                Step::Damage(at) => {
                    lists.is_broken = true;
                    self.segments.damaged(format!("segment {number}: no record at {at}"))?;
                    walk.pass_over().await?;
                }
                Step::End => return Ok(walk.position()),
            }
        }
    }

    /// Returns true if the last sector of a record reads as zeros where its value has other bytes:
    /// more records may have been there.
    async fn is_cut_short(&self, walk: &Walk, offset: u64, record: &Record) -> Result<bool, Error> {
        let end = offset + record.footprint();
        let sector = (end - 1) / SECTOR_BYTES * SECTOR_BYTES;
        if !self.segments.has_checkpoints() || sector < value_offset(offset) {
            return Ok(false);
        }
        let bytes = walk.bytes(sector, usize::try_from(end - sector).expect("a sector")).await?;
        let is_zeros = bytes.iter().all(|byte| *byte == 0);
        Ok(is_zeros && walk.value(offset, record).await?.is_none())
    }

    /// Adds a record to the index.
    pub(crate) fn recovered(
        &self,
        found: &Found,
        offset: u64,
        record: &Record,
        newest: &mut BTreeMap<EntryKey, (u64, Location)>,
    ) {
        let location = Location { segment: found.number, offset, content: record.content };
        self.segments.seen(record.commit, found.sequence);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&found.number) {
            segment.longest = segment.longest.max(record.footprint());
        }
        if self.segments.has_checkpoints() {
            return self.apply(record.key, location);
        }
        let known = newest.get(&record.key).map_or(0, |(commit, _)| *commit);
        if record.commit >= known {
            newest.insert(record.key, (record.commit, location));
        }
    }
}
