//! Records of a drive's lives and of the places of all drives: bytes that parse encode to the same
//! bytes, and joining a roster with itself changes nothing.

#![no_main]

use csd_store::array::{Lives, Roster};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    for _ in 0..2 {
        if let Some(lives) = Lives::parse(&bytes) {
            assert_eq!(lives.encode(), bytes);
        }
        if let Some(roster) = Roster::parse(&bytes) {
            assert_eq!(roster.encode(), bytes);
            let mut joined = roster.clone();
            joined.join(&roster);
            assert_eq!(joined, roster);
        }
        // Once as it is, once with a right checksum.
        let Some((body, checksum)) = bytes.split_last_chunk_mut::<4>() else { return };
        *checksum = crc32c::crc32c(body).to_le_bytes();
    }
});
