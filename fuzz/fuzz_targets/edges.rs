//! Lists of edges, of every form.

#![no_main]

use csd_store::source::edges::{Format, Options, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let heads: [&[u8]; 3] =
        [b"", b"%%MatrixMarket matrix coordinate real symmetric\n", b"% sym\n"];
    for head in heads {
        for format in [Format::Auto, Format::List] {
            let options = Options { format, ignore_weights: true, ..Options::default() };
            let _either = read("fuzz", &[head, data].concat()[..], &options);
        }
    }
});
