//! A controller's bytes, cut anywhere, into the host's side of a connection.

#![no_main]

use csd_nvme::tcp::Digests;
use csd_nvme::tcp::host::{Connection, Event};
use libfuzzer_sys::fuzz_target;

// First byte: digests asked for. Second: the length of the parts that the rest comes in.
fuzz_target!(|data: &[u8]| {
    let [digests, part, stream @ ..] = data else { return };
    let digests = Digests { header: digests & 1 != 0, data: digests & 2 != 0 };
    let (mut connection, _) = Connection::new(digests);
    for mut input in stream.chunks(usize::from(*part) + 1) {
        loop {
            match connection.next(&mut input) {
                Ok(Some(Event::Terminated(_))) => return,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(fatal) => {
                    assert!(fatal.encode(csd_nvme::pdu::Kind::H2C_TERM_REQ).len() <= 152);
                    return;
                }
            }
        }
    }
});
