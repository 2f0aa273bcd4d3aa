//! Lists of the shared chunks of a value, as the kv log keeps them.

#![no_main]

use csd_kvlog::parts::{Parts, Place};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(parts) = Parts::parse(data) else { return };
    let mut end = 0;
    for part in &parts.parts {
        assert!(part.range.start == end && part.range.end > end, "{parts:?}");
        end = part.range.end;
        if let Place::Here(place) = &part.place {
            let bytes = &data[place.clone()];
            assert_eq!(bytes.len(), (part.range.end - part.range.start) as usize);
        }
    }
    assert_eq!(end, parts.value_bytes);
    assert!(parts.chunks().count() <= parts.parts.len());
    let middle = end / 3..end / 2;
    for part in parts.within(&middle) {
        assert!(part.range.end > middle.start && part.range.start < middle.end);
    }
});
