//! Profiles as text.

#![no_main]

use csd_measure::profile::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Profile::parse(text);
    }
});
