//! Hints of open segments, and marks of drives with a volatile cache.

#![no_main]

use csd_kvlog::hint::Hint;
use csd_kvlog::mark::Mark;
use libfuzzer_sys::fuzz_target;

const SEGMENT_BYTES: u64 = 1 << 20;
const MARK_BYTES: usize = 352;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    bytes.resize(MARK_BYTES, 0);
    for _ in 0..2 {
        if let Some(hint) = Hint::decode(&bytes, 7, SEGMENT_BYTES) {
            assert!(hint.durable_bytes <= SEGMENT_BYTES);
            assert!(hint.checkpoint.is_none_or(|place| place.end() <= hint.durable_bytes));
            let again = hint.encode(7);
            assert_eq!(Hint::decode(again.as_bytes(), 7, SEGMENT_BYTES), Some(hint));
        }
        // Once as it is, once with a right checksum.
        bytes[..4].copy_from_slice(b"CHNT");
        bytes[8..16].copy_from_slice(&7u64.to_le_bytes());
        csd_fuzz::sign(&mut bytes[..64], 4);
    }
    let mut bytes = data.to_vec();
    bytes.resize(MARK_BYTES, 0);
    for _ in 0..2 {
        if let Some(mark) = Mark::decode(&bytes, &[7; 16]) {
            assert_eq!(Mark::decode(&mark.encode(&[7; 16]), &[7; 16]), Some(mark));
        }
        bytes[..4].copy_from_slice(b"CMRK");
        bytes[8..24].fill(7);
        csd_fuzz::sign(&mut bytes, 4);
    }
});
