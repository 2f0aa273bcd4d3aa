//! Authentication: both sides and the secrets file take any bytes without a panic, and only hosts
//! that know the secret are authenticated.

#![no_main]

use csd_nvme::auth::controller::{Controller, Outcome};
use csd_nvme::auth::host::{Host, Next};
use csd_nvme::auth::{Entropy, Group, Hash, Keys, Offer, Secret, Secrets};
use libfuzzer_sys::fuzz_target;

fn keys() -> Keys {
    let secret = |byte: u8| Secret::new(Some(Hash::Sha256), &[byte; 32]).expect("32 bytes");
    Keys {
        host_nqn: "nqn.2026-11.io.csdstore:host".to_owned(),
        subsystem_nqn: csd_fuzz::NQN.to_owned(),
        host: secret(1),
        controller: Some(secret(2)),
    }
}

// The first byte chooses the side; then come messages, each after its length in two bytes.
// Arithmetic in long groups would take up the fuzzer's time.
fuzz_target!(|data: &[u8]| {
    let Some((side, mut rest)) = data.split_first() else { return };
    let _ = Secrets::parse(&String::from_utf8_lossy(rest));
    let offer = Offer { groups: vec![Group::Null, Group::Ffdhe2048], ..Offer::default() };
    let entropy = Entropy::draw(|bytes| bytes.fill(*side));
    let mut controller = Controller::new(keys(), offer.clone(), entropy.clone());
    let mut host = Host::new(keys(), offer, 7, entropy);
    while let Some((length, more)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
        let (message, more) = more.split_at(length);
        rest = more;
        if side % 2 == 0 {
            controller.send(message);
            let _ = controller.receive(usize::from(*side) * 16);
            assert_ne!(controller.outcome(), Outcome::Authenticated, "without the secret");
        } else {
            let next = host.receive(message);
            assert!(!matches!(next, Next::Done | Next::Confirm(_)), "without the drive's secret");
        }
    }
});
