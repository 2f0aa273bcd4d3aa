//! Headers, seals and records of the kv log.

#![no_main]

use csd_kvlog::record::Record;
use csd_kvlog::segment_head::{SegmentHeader, SegmentSeal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    bytes.resize(64, 0);
    for _ in 0..2 {
        if let Some(record) = Record::decode(&bytes, 7, 1 << 21) {
            assert!(record.footprint() <= 1 << 21);
            assert_eq!(Record::decode(record.encode(7).as_bytes(), 7, 1 << 21), Some(record));
        }
        let _ = SegmentHeader::decode(&bytes, &[1; 16]);
        if let Some(seal) = SegmentSeal::decode(&bytes, 7, 1 << 21) {
            assert!(seal.valid_bytes <= 1 << 21);
        }
        // Once as they are, once with a right checksum.
        csd_fuzz::sign(&mut bytes, 4);
    }
});
