//! Recovery by the lists of checkpoints: reads those of a segment, and adds their records to the
//! index of its shard.
//!
//! Invariants: a list is used only as a whole, when its checksum held and its records are in order;
//! the index and all accounts are afterwards as if the records had been added one after another.

use csd_reactor::Buffer;

use crate::checkpoint::{Checkpoint, Entries, Listed};
use crate::index::Index;
use crate::media::Media;
use crate::record::{RECORDS_OFFSET, SegmentRange};
use crate::recover::Found;
use crate::segments::Segments;
use crate::shard::{Location, Shard};

/// A checkpoint that was read.
pub struct Loaded {
    /// Its bytes in the segment.
    pub range: SegmentRange,
    /// Its header.
    pub header: Checkpoint,
    /// Its records in the order of their offsets.
    pub records: Vec<Listed>,
}

/// Reads the checkpoint in a range of a segment; `None` when it is not whole.
pub async fn load(
    media: &Media,
    segments: &Segments,
    of: &Found,
    range: SegmentRange,
) -> Option<Loaded> {
    let length = usize::try_from(range.bytes).ok()?;
    if range.end() > segments.segment_bytes {
        return None;
    }
    let at = segments.at(of.number, range.offset);
    let (result, bytes) = media.read(at, Buffer::with_room(0, length, 0)).await;
    result.ok()?;
    let (header, list) = Checkpoint::decode(&bytes, of.sequence, range)?;
    let mut entries = Entries::new(list);
    let records: Vec<Listed> = entries.by_ref().collect();
    let mut end = RECORDS_OFFSET;
    let in_order = records.iter().all(|listed| {
        let follows = listed.offset >= end;
        end = listed.offset.saturating_add(listed.record().footprint());
        follows && end <= range.offset
    });
    (entries.is_done() && in_order).then_some(Loaded { range, header, records })
}

impl Shard {
    /// Reads a segment's checkpoints from the last one backwards, and returns them oldest first. If
    /// one is damaged, returns those behind it, and its place.
    pub(super) async fn checkpoints(&self, found: &Found) -> (Vec<Loaded>, Option<SegmentRange>) {
        let mut loaded: Vec<Loaded> = Vec::new();
        let mut damaged = None;
        let mut next = found.checkpoint(&self.segments);
        while let Some(range) = next {
            let Some(checkpoint) = load(&self.media, &self.segments, found, range).await else {
                self.lost_checkpoint(found, range.offset);
                damaged = Some(range);
                break;
            };
            next = checkpoint.header.previous;
            loaded.push(checkpoint);
        }
        loaded.reverse();
        (loaded, damaged)
    }

    /// Notes a damaged checkpoint, once.
    pub(super) fn lost_checkpoint(&self, found: &Found, at: u64) {
        self.segments.walked(format!("segment {}: checkpoint at {at}", found.number));
    }

    /// Adds the records of a list to the index, in order. Sums over the list are counted once.
    pub(super) fn recovered_list(&self, found: &Found, records: &[Listed]) {
        let (mut commit, mut longest, mut live, mut tombstones) = (0, 0, 0, 0);
        let mut replaced = Vec::new();
        for run in records.chunk_by(|one, next| one.key.0 == next.key.0) {
            let nsid = run[0].key.0;
            let mut indexes = self.index.borrow_mut();
            let kind = self.segments.index_kind(nsid);
            let index = indexes.entry(nsid).or_insert_with(|| Index::new(kind));
            let (mut bytes, mut keys) = (0, 0);
            for listed in run {
                let Listed { offset, key, content, .. } = *listed;
                commit = listed.commit.max(commit);
                longest = content.footprint().max(longest);
                let space = self.segments.space(content);
                live += space;
                match content.is_value() {
                    true => (bytes, keys) = (bytes + space, keys + 1),
                    false => tombstones += space,
                }
                let location = Location { segment: found.number, offset, content };
                if let Some(old) = index.insert(key.1, self.pointer(&location)) {
                    replaced.push((key, self.location(old)));
                }
            }
            self.segments.add_used(nsid, bytes, keys);
        }
        self.segments.seen(commit, found.sequence);
        if let Some(segment) = self.owned.borrow_mut().get_mut(&found.number) {
            segment.longest = segment.longest.max(longest);
            segment.live += live;
            segment.tombstones += tombstones;
        }
        // Behind the sums, which include the record that a later one of the list replaces.
        replaced.iter().for_each(|(key, old)| self.forget(*key, old));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use csd_nvme::kv::Key;

    use super::*;
    use crate::media::{Memory, Syncer};
    use crate::record::Content;
    use crate::shard::Segment;

    const SEGMENT: u32 = 3;

    /// Makes a shard that owns an empty segment.
    fn shard() -> Rc<Shard> {
        let media = Media::Memory(Arc::new(Memory::new(16 << 20)));
        let segments = Arc::new(Segments::new([1; 16], 0, 2 << 20, 8, &[2, 3]));
        let syncer = Rc::new(Syncer::new(media.clone()));
        let shard = Rc::new(Shard::new(0, media, segments, syncer));
        shard.owned.borrow_mut().insert(SEGMENT, Segment::default());
        shard
    }

    /// Returns the accounts of a shard, and the locations of some keys.
    fn state(shard: &Shard) -> String {
        let segments = &shard.segments;
        let used = segments
            .namespaces
            .iter()
            .map(|namespace| (namespace.used_bytes.load(Relaxed), namespace.keys.load(Relaxed)));
        let sums = [&segments.promised, &segments.index_bytes].map(|sum| sum.load(Relaxed));
        let newest: Vec<_> = (0..4)
            .flat_map(|key| [2, 3].map(|nsid| (nsid, Key::new(&[key]).expect("a byte"))))
            .map(|key| shard.newest(&key))
            .collect();
        let (next, owned) = (segments.next_commit(), shard.owned.borrow());
        format!("{:?} {sums:?} {newest:?} {next} {owned:?}", used.collect::<Vec<_>>())
    }

    #[test]
    fn a_list_leaves_what_its_records_leave_one_after_another() {
        let (sequence, shard_number) = (9, 0);
        let found = Found {
            number: SEGMENT,
            sequence,
            shard: shard_number,
            seal: None,
            hint: None,
            is_cut: false,
        };
        // Keys that come again, in both namespaces, as values and as tombstones.
        let rows = [
            (2, 0, 7, Content::Value(100)),
            (2, 1, 8, Content::Value(0)),
            (3, 1, 9, Content::Value(5_000)),
            (2, 0, 3, Content::Indirect(70)),
            (2, 2, 11, Content::Tombstone),
            (3, 1, 12, Content::Tombstone),
            (3, 3, 4, Content::Value(64)),
            (2, 1, 13, Content::Tombstone),
            (2, 1, 14, Content::Indirect(1)),
        ];
        let mut offset = RECORDS_OFFSET;
        let records: Vec<Listed> = rows
            .into_iter()
            .map(|(nsid, key, commit, content)| {
                let key = (nsid, Key::new(&[key]).expect("a byte"));
                let listed = Listed { offset, key, commit, content };
                offset += listed.record().footprint();
                listed
            })
            .collect();
        let (one_by_one, at_once) = (shard(), shard());
        for listed in &records {
            one_by_one.recovered(&found, listed.offset, &listed.record(), &mut BTreeMap::new());
        }
        at_once.recovered_list(&found, &records);
        assert_eq!(state(&at_once), state(&one_by_one));
        assert!(state(&at_once).contains("offset"), "some are there");
    }
}
