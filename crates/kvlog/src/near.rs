//! Reads whole values, those that lie close together by one read of the medium.
//!
//! Values that were stored together lie together in the log, whatever their keys. A reader of many
//! short ones asks for them in the order of the log ([`Kv::positions`]). Invariant: each value is
//! checked as if it was read alone, and one that cannot be read fails no other.

use std::ops::Range;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, class, spawn, worked};

use crate::Kv;
use crate::media::Media;
use crate::pinned_record::{PinnedRecord, pin_each};
use crate::shard::Shard;
use crate::shards::by_shard;
use crate::value::Value;

/// Most bytes of one read. A longer value is returned unread.
const WINDOW_BYTES: u64 = 256 << 10;
/// Most bytes between two values that are read with them: about what the medium reads in the time
/// that another read would take to begin.
const GAP_BYTES: u64 = 32 << 10;

/// Offset on the medium of the record of a key's value, and the key.
pub type Position = (Option<u64>, Key);

/// A value that was asked for.
#[derive(Debug)]
pub enum Read {
    /// The key does not exist.
    None,
    /// The whole value.
    Whole(Buffer),
    /// A value that is longer than one read, or indirect; nothing of it is read.
    Long(Value),
    /// The value cannot be read.
    Failed(Status),
}

impl Kv {
    /// Returns keys with the offsets of their records on the medium; `None` for keys that do not
    /// exist. Until they are read, values may move.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn positions(&self, nsid: u16, keys: Vec<Key>) -> Result<Vec<Position>, Status> {
        let mut found = Vec::with_capacity(keys.len());
        for (shard, keys) in by_shard(nsid, keys) {
            let find = move |shard: Rc<Shard>| async move {
                let position = |key: Key| {
                    let location = shard.find(&(nsid, key));
                    (location.map(|at| shard.segments.at(at.segment, at.offset)), key)
                };
                worked(keys.len() as u64);
                Ok(keys.into_iter().map(position).collect::<Vec<_>>())
            };
            found.extend(self.shards.on_owner(shard, find).await?);
        }
        Ok(found)
    }

    /// Reads the values of these few keys. Returns each with its key, in any order.
    ///
    /// # Errors
    /// The status to answer with, if a core does not answer.
    pub async fn read_each(&self, nsid: u16, keys: Vec<Key>) -> Result<Vec<(Key, Read)>, Status> {
        let mut read = Vec::with_capacity(keys.len());
        let mut values = Vec::new();
        for (key, pinned) in pin_each(&self.shards, nsid, keys).await? {
            match pinned {
                Ok(Some(pinned)) => {
                    let media = self.media.clone();
                    let value = PinnedRecord::new(media, &self.segments, (nsid, key), pinned);
                    values.push((key, value));
                }
                Ok(None) => read.push((key, Read::None)),
                Err(status) => read.push((key, Read::Failed(status))),
            }
        }
        // The parts of an indirect value lie elsewhere.
        let is_list = |(_, value): &mut (Key, PinnedRecord)| value.location().content.is_list();
        let lists: Vec<Key> = values.extract_if(.., is_list).map(|(key, _)| key).collect();
        for key in lists {
            read.push((
                key,
                match self.open(nsid, key).await {
                    Ok(value) => value.map_or(Read::None, Read::Long),
                    Err(status) => Read::Failed(status),
                },
            ));
        }
        let windows = windows(values).into_iter().map(|window| {
            let media = self.media.clone();
            spawn(class(), async move { read_window(&media, window).await })
        });
        let windows: Vec<_> = windows.collect();
        for window in windows {
            read.extend(window.await);
        }
        Ok(read)
    }
}

/// Divides values into those that one read brings.
fn windows(mut values: Vec<(Key, PinnedRecord)>) -> Vec<Vec<(Key, PinnedRecord)>> {
    values.sort_unstable_by_key(|(_, value)| value.range().start);
    let mut windows: Vec<Vec<(Key, PinnedRecord)>> = Vec::new();
    let mut window: Range<u64> = 0..0;
    for (key, value) in values {
        let range = value.range();
        let is_near = range.start.saturating_sub(window.end) <= GAP_BYTES
            && range.end - window.start <= WINDOW_BYTES;
        match windows.last_mut() {
            Some(last) if is_near => {
                last.push((key, value));
                window.end = range.end;
            }
            _ => {
                windows.push(vec![(key, value)]);
                window = range;
            }
        }
    }
    windows
}

/// Reads the values of one window; each alone if the medium fails.
async fn read_window(media: &Media, values: Vec<(Key, PinnedRecord)>) -> Vec<(Key, Read)> {
    let (Some((_, first)), Some((_, last))) = (values.first(), values.last()) else {
        return Vec::new();
    };
    let (start, end) = (first.range().start, last.range().end);
    if end - start > WINDOW_BYTES {
        return values
            .into_iter()
            .map(|(key, value)| (key, Read::Long(Value::of_record(value))))
            .collect();
    }
    let at = |offset: u64| usize::try_from(offset - start).expect("in the window");
    let (result, window) = media.read(start, Buffer::zeroed(at(end))).await;
    let mut read = Vec::with_capacity(values.len());
    for (key, value) in values {
        let range = value.range();
        let of_value = match &result {
            Ok(()) => value.whole(&window[at(range.start)..at(range.end)]),
            Err(_) => value.read_whole().await,
        };
        read.push((key, of_value.map_or_else(Read::Failed, Read::Whole)));
    }
    read
}

#[cfg(test)]
mod tests {
    use csd_reactor::{Config, block_on};

    use super::*;
    use crate::format::SHARDS;
    use crate::media::Fault;
    use crate::test_log::{key, kv};

    fn short(number: u32) -> Vec<u8> {
        vec![u8::try_from(number % 251).unwrap(); 10 + number as usize % 500]
    }

    /// Values of 10 to 509 bytes, each next to one of 5,000 bytes that is not asked for.
    async fn fill(kv: &Kv, count: u32) {
        for number in 0..count {
            let short = short(number);
            for (key, value) in [(key(number), short), (key(number + 10_000), vec![7; 5000])] {
                kv.store(2, key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
            }
        }
    }

    /// A key, and its value if there is one.
    type Found = (Key, Result<Option<Vec<u8>>, Status>);

    /// Reads keys in the order of the log. Returns zeros for a long value.
    async fn read(kv: &Kv, count: u32) -> Vec<Found> {
        let mut positions = kv.positions(2, (0..count).map(key).collect()).await.unwrap();
        positions.sort_unstable();
        let keys = positions.into_iter().map(|(_, key)| key).collect();
        let mut found = kv.read_each(2, keys).await.unwrap();
        found.sort_unstable_by_key(|(key, _)| *key);
        let value = |read| match read {
            Read::None => Ok(None),
            Read::Whole(value) => Ok(Some(value.to_vec())),
            Read::Long(value) => Ok(Some(vec![0; value.bytes() as usize])),
            Read::Failed(status) => Err(status),
        };
        found.into_iter().map(|(key, read)| (key, value(read))).collect()
    }

    #[test]
    fn values_that_lie_together_come_by_few_reads() {
        const COUNT: u32 = 800;
        block_on(&Config::default(), || async {
            let (kv, faulty) = kv();
            fill(&kv, COUNT).await;
            kv.delete(2, key(5)).await.unwrap();
            let long = vec![9; 300 << 10];
            kv.store(2, key(6), vec![Buffer::from_slice(&long)], 0).await.unwrap();
            let before = faulty.begun().len();
            let found = read(&kv, COUNT + 1).await;
            let reads = faulty.begun().len() - before;
            assert!(reads <= 3 * SHARDS as usize, "{reads} reads");
            assert_eq!(found.len(), COUNT as usize + 1);
            for (number, (of, value)) in (0..).zip(found) {
                let expected = match number {
                    5 | COUNT => None,
                    6 => Some(vec![0; long.len()]),
                    _ => Some(short(number)),
                };
                assert_eq!((of, value), (key(number), Ok(expected)));
            }
        })
        .unwrap();
    }

    #[test]
    fn a_value_that_cannot_be_read_fails_no_other() {
        block_on(&Config::default(), || async {
            let (kv, faulty) = kv();
            fill(&kv, 100).await;
            faulty.fail_once(faulty.begun().len(), Fault::Io);
            let failed = |(_, value): &Found| value.is_err();
            assert_eq!(
                read(&kv, 100).await.iter().filter(|it| failed(it)).count(),
                0,
                "read again"
            );
            // One byte of a value, and one of another record's header.
            let positions = kv.positions(2, vec![key(40), key(41)]).await.unwrap();
            for ((at, _), into) in positions.into_iter().zip([64, 20]) {
                let wrong = vec![Buffer::from_slice(&[0xAA])];
                faulty.inner().write(at.unwrap() + into, wrong).await.0.unwrap();
            }
            let found = read(&kv, 100).await;
            let wrong: Vec<Key> = found.iter().filter(|it| failed(it)).map(|it| it.0).collect();
            assert_eq!(wrong, [key(40), key(41)]);
            assert_eq!(faulty.failures().count(), 3);
        })
        .unwrap();
    }
}
