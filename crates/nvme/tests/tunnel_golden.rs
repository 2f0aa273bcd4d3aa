//! Frames of the tunnel against the golden files that Python checks too.

#![allow(clippy::unwrap_used)] // golden files are ours

mod common;

use common::{files, invalid, unhex};
use csd_nvme::tunnel::{Frame, VirtioNet, count, parse};

#[test]
fn golden_lists_parse_to_their_frames_and_encode_to_their_bytes() {
    let described = files("tunnel", "toml");
    assert!(described.len() >= 3);
    for path in described {
        let fields: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let bytes = unhex(&std::fs::read_to_string(path.with_extension("hex")).unwrap());
        let frames = parse(&bytes).unwrap();
        let expected = fields["frame"].as_array().unwrap();
        assert_eq!(frames.len(), expected.len(), "{}", path.display());
        assert_eq!(count(&bytes), expected.len() as u64);
        let mut list = Vec::new();
        for (frame, expected) in frames.iter().zip(expected) {
            let number = |key: &str| u16::try_from(expected[key].as_integer().unwrap()).unwrap();
            let byte = |key: &str| u8::try_from(number(key)).unwrap();
            let mut header = VirtioNet::zeroed();
            header.set_flags(byte("flags")).set_gso_type(byte("gso_type"));
            header.set_hdr_len(number("hdr_len")).set_gso_size(number("gso_size"));
            header.set_csum_start(number("csum_start")).set_csum_offset(number("csum_offset"));
            let packet = unhex(expected["packet"].as_str().unwrap());
            assert_eq!(*frame, Frame { header, packet: &packet }, "{}", path.display());
            Frame { header, packet: &packet }.encode(&mut list);
        }
        assert_eq!(list, bytes, "{}", path.display());
    }
}

#[test]
fn invalid_lists_are_refused() {
    let files = invalid("tunnel");
    assert!(files.len() >= 12);
    for path in files {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(parse(&bytes).is_err(), "{}", path.display());
    }
}
