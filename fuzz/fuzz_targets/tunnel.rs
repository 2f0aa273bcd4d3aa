//! Lists of frames as a host of the tunnel sends them, and log pages as a drive sends them.

#![no_main]

use csd_nvme::vendor::tunnel::{Frame, VIRTIO_NET_BYTES, count, fitting, parse, parse_log};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((_, entries)) = parse_log(data) {
        entries.iter().for_each(|entry| drop((entry.network(), entry.host_nqn())));
    }
    // The parts are cut where a Receive would cut them, whatever they are.
    assert!(fitting(data, data.len() / 2) <= data.len() / 2);
    let Ok(frames) = parse(data) else { return };
    assert_eq!(count(data), frames.len() as u64);
    let mut list = Vec::new();
    for Frame { header, packet } in &frames {
        let before = list.len();
        Frame { header: *header, packet }.encode(&mut list);
        assert!(list.len() >= before + VIRTIO_NET_BYTES + packet.len());
        let _addresses = Frame { header: *header, packet }.addresses();
    }
    assert_eq!(list, data, "a sound list has one form");
    assert_eq!(fitting(data, data.len()), data.len());
});
