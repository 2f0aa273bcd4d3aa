//! A host's bytes, cut anywhere, into the controller's side of a connection with open grants.

#![no_main]

use csd_nvme::tcp::Digests;
use csd_nvme::tcp::controller::{Connection, Event, Limits, Target};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    h2c_data_bytes_max: 128 << 10,
    in_capsule_bytes_max: 8 << 10,
    digests: Digests { header: true, data: true },
};

// First byte: the length of the parts that the rest comes in.
fuzz_target!(|data: &[u8]| {
    let Some((part, stream)) = data.split_first() else { return };
    let mut connection = Connection::new(LIMITS);
    let mut capsule_left = 0u64;
    for mut input in stream.chunks(usize::from(*part) + 1) {
        loop {
            match connection.next(&mut input) {
                Ok(Some(Event::Command { sqe, data })) => {
                    assert!(data <= LIMITS.in_capsule_bytes_max);
                    capsule_left = u64::from(data);
                    if data == 0 {
                        connection.grant(sqe.cid(), 0, sqe.sgl().length() % (1 << 20) + 1);
                    }
                }
                Ok(Some(Event::Data { target: Target::Capsule, bytes, .. })) => {
                    // A terminate request has data too; the owner stops before it.
                    capsule_left = capsule_left.saturating_sub(bytes.len() as u64);
                }
                Ok(Some(Event::Terminated(_))) => return,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(fatal) => {
                    assert!(fatal.encode(csd_nvme::pdu::Kind::C2H_TERM_REQ).len() <= 152);
                    return;
                }
            }
        }
    }
});
