//! Checkpoints of the kv log: header, list and entries. Equal records make equal bytes.

#![no_main]

use csd_kvlog::checkpoint::{Checkpoint, Decoded, Entries, Listing};
use csd_kvlog::record::{SegmentRange, RecordHeader};
use libfuzzer_sys::fuzz_target;

const ROOM: u64 = 1 << 21;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    bytes.resize(data.len().max(RecordHeader::SIZE), 0);
    let (head, list) = bytes.split_at_mut(RecordHeader::SIZE);
    // The checksum of the list, the length, the sequence, and then the checksum of all of it.
    head[28..32].copy_from_slice(&u32::try_from(list.len()).unwrap().to_le_bytes());
    head[48..52].copy_from_slice(&crc32c::crc32c(list).to_le_bytes());
    for _ in 0..2 {
        if let Some(decoded) = Decoded::decode(head, 7, ROOM) {
            let bytes = match decoded {
                Decoded::Record(record) => record.footprint(),
                Decoded::Checkpoint(checkpoint) => checkpoint.footprint(),
                Decoded::Unknown { bytes, .. } => bytes,
            };
            assert!(bytes <= ROOM, "longer than there is room");
        }
        head[..4].copy_from_slice(b"CREC");
        head[8..16].copy_from_slice(&7u64.to_le_bytes());
        csd_fuzz::sign(head, 4);
    }
    let sector = u32::from_le_bytes(head[52..56].try_into().unwrap());
    let range = SegmentRange { offset: u64::from(sector) * 512, bytes: bytes.len() as u64 };
    if let Some((checkpoint, list)) = Checkpoint::decode(&bytes, 7, range) {
        assert!(checkpoint.previous.is_none_or(|previous| previous.end() <= range.offset));
        let again = [checkpoint.encode(7).as_bytes(), list].concat();
        let range = SegmentRange { bytes: again.len() as u64, ..range };
        assert_eq!(Checkpoint::decode(&again, 7, range), Some((checkpoint, list)));
        let mut entries = Entries::new(list);
        let records: Vec<_> = entries.by_ref().collect();
        let mut listing = Listing::default();
        for listed in &records {
            // Recovery takes no list whose records lie beyond the checkpoint.
            if listed.offset > ROOM {
                return;
            }
            listing.add(listed.offset, &listed.record());
        }
        let again: Vec<_> = Entries::new(&listing.bytes).collect();
        assert_eq!(again, records, "listed again they are the same");
    }
});
