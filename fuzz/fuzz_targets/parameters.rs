//! Parameters of count: what parses encodes to the same bytes.

#![no_main]

use csd_kernels::count::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(parameters) = Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
});
