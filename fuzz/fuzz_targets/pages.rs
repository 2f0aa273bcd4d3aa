//! Page lists: bytes that parse encode to the same bytes.

#![no_main]

use csd_nvme::vendor::pages::{Front, List};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let front = Front::parse(data);
    if let Ok(list) = List::parse(data) {
        assert_eq!(list.encode(), data);
        assert!(front.is_ok_and(|front| front.pieces == list.pieces));
        for number in 0..list.pieces.len() {
            assert!(list.piece(number).is_some_and(|(_, sums)| !sums.is_empty()));
        }
    }
});
