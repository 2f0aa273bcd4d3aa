//! The payload of Execute Program: bytes that parse encode to the same bytes.

#![no_main]

use csd_nvme::vendor::execute::Execution;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(execution) = Execution::parse(data) {
        assert_eq!(execution.encode(), data);
    }
});
