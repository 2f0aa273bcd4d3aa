//! Counts the newlines of an object: an example to replace by your own.
#![no_std]

csd_sdk::program!(run);

// Each chunk of an object is one run. The results are added, unless `csd_sdk::fold!` merges them.
// `csd_sdk::lines!()` keeps lines whole, `csd_sdk::parameters` reads what --parameter gave, and
// `csd_sdk::emit` writes bytes for --output.
fn run() -> u64 {
    let mut lines = 0;
    csd_sdk::each(0, |bytes| {
        lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    });
    lines
}
