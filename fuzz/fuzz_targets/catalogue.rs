//! Entries of the catalogue: what parses encodes to an entry that is equal.

#![no_main]

use csd_store::catalogue::Entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(entry) = Entry::parse(data) {
        assert_eq!(Entry::parse(&entry.encode()).ok().as_ref(), Some(&entry));
    }
});
