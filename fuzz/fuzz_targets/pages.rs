//! Page lists: bytes that parse encode to the same bytes.

#![no_main]

use csd_nvme::pages::List;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(list) = List::parse(data) {
        assert_eq!(list.encode(), data);
        for number in 0..list.pieces.len() {
            assert!(list.piece(number).is_some_and(|(_, sums)| !sums.is_empty()));
        }
    }
});
