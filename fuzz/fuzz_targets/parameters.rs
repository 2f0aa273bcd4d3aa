//! Parameters of the kernels: bytes that parse encode to the same bytes.

#![no_main]

use csd_kernels::{
    array_merge, count, encode, fingerprint, frequencies, page_rank, search, vector_add, verify,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(parameters) = count::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = vector_add::Parameters::parse(vector_add::NAME, data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = array_merge::Parameters::parse(array_merge::NAME, data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = page_rank::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = fingerprint::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = search::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(item) = frequencies::Item::parse(data) {
        assert_eq!(item.encode(), data);
    }
    if let Ok(parameters) = encode::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
    if let Ok(parameters) = verify::Parameters::parse(data) {
        assert_eq!(parameters.encode(), data);
    }
});
