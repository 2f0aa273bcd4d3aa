//! Headers of .npy files.

#![no_main]

use std::io::Cursor;

use csd_store::source::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for head in [&b""[..], b"\x93NUMPY\x01\x00"] {
        let bytes = [head, data].concat();
        let Ok(mut source) = Source::npy("fuzz", Box::new(Cursor::new(bytes)), None) else {
            continue;
        };
        let mut out = vec![0; 4096];
        while source.fill(&mut out).is_ok_and(|count| count == out.len()) {}
    }
});
