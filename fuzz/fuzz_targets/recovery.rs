//! Segments of the kv log full of random bytes with right checksums: recovery must end in order.

#![no_main]

use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::media::{Media, Memory, Syncer};
use csd_kvlog::recover::survey;
use csd_kvlog::segments::Segments;
use csd_kvlog::shard::Shard;
use libfuzzer_sys::fuzz_target;

const SEGMENT_BYTES: u64 = 2 << 20;
const SEGMENTS: u32 = 4;

// Operations of 64 bytes and a place; every structure is signed, so that checks behind the
// checksum are reached.
fuzz_target!(|data: &[u8]| {
    let memory = Memory::new(SEGMENT_BYTES * u64::from(SEGMENTS));
    for operation in data.chunks_exact(4 + 64) {
        let segment = u64::from(operation[0] % 4);
        let within = u64::from(u16::from_le_bytes([operation[1], operation[2]]));
        let at = if operation[3] & 1 == 0 { within * 64 } else { (within % 4) * 4096 };
        let mut bytes = operation[4..].to_vec();
        if operation[3] & 2 == 0 {
            csd_fuzz::sign(&mut bytes, 4);
        }
        memory.write(segment * SEGMENT_BYTES + at % (SEGMENT_BYTES - 64), &bytes);
    }
    let media = Media::Memory(Arc::new(memory));
    let segments = Arc::new(Segments::new([1; 16], 0, SEGMENT_BYTES, SEGMENTS, &[2, 3]));
    let Ok(found) = csd_fuzz::ready(survey(&media, &segments, 16, 0)) else { return };
    for number in 0..16 {
        let syncer = Rc::new(Syncer::new(media.clone()));
        let shard = Rc::new(Shard::new(number, media.clone(), Arc::clone(&segments), syncer));
        let _ = csd_fuzz::ready(shard.recover(&found));
        for nsid in [2, 3] {
            let page = shard.list(nsid, Bound::Unbounded, 100, usize::MAX);
            assert!(page.keys.iter().all(|(_, key)| shard.find(&(nsid, *key)).is_some()));
        }
    }
});
