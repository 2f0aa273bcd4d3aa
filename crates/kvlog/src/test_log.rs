//! A log for tests, on a medium whose accesses are noted.

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::kv::Key;
use csd_reactor::Buffer;

use crate::Kv;
use crate::format::SHARDS;
use crate::media::{Faulty, Media, Memory, Syncer};
use crate::segments::Segments;
use crate::shard::Shard;
use crate::shards::Shards;

const SEGMENT_BYTES: u64 = 2 << 20;
const SEGMENTS: u32 = 64;

/// Makes a log of one namespace, 2, that owns no segment, on this core.
pub(crate) fn kv() -> (Rc<Kv>, Arc<Faulty>) {
    let memory = Memory::new(SEGMENT_BYTES * u64::from(SEGMENTS));
    let faulty = Arc::new(Faulty::new(Media::Memory(Arc::new(memory)), 1));
    let media = Media::Faulty(Arc::clone(&faulty));
    let segments = Arc::new(Segments::new([1; 16], 0, SEGMENT_BYTES, SEGMENTS, &[2]));
    (0..SEGMENTS).for_each(|number| segments.give(number));
    let syncer = Rc::new(Syncer::new(media.clone()));
    let shard = |number| {
        let (media, segments) = (media.clone(), Arc::clone(&segments));
        Some(Rc::new(Shard::new(number, media, segments, Rc::clone(&syncer))))
    };
    let shards = Shards::share((0..SHARDS).map(shard).collect());
    (Rc::new(Kv { media, segments, value_bytes_max: 1 << 20, shards }), faulty)
}

/// Returns the key of a number.
pub(crate) fn key(number: u32) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

/// Stores a value.
pub(crate) async fn store(kv: &Kv, key: Key, value: &[u8]) {
    kv.store(2, key, vec![Buffer::from_slice(value)], 0).await.unwrap();
}

/// Reads a value in pieces.
pub(crate) async fn read(kv: &Kv, nsid: u16, key: Key) -> Option<Vec<u8>> {
    let mut value = kv.open(nsid, key).await.unwrap()?;
    let mut bytes = Vec::new();
    while let Some(piece) = value.next(3000, 0, 0).await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    Some(bytes)
}
