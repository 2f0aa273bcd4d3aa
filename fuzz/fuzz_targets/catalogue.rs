//! Entries of the catalogue: bytes that parse encode to an equal entry.

#![no_main]

use csd_store::catalogue::Entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(entry) = Entry::parse(data) {
        assert_eq!(Entry::parse(&entry.encode()).ok().as_ref(), Some(&entry));
    }
});
