//! DH-HMAC-CHAP against exchanges that Python computed.

#![allow(clippy::unwrap_used)] // golden files are ours

use std::path::Path;

use csd_nvme::auth::crypto::{Challenge, Prover};
use csd_nvme::auth::{Group, Hash, Secret};

struct Golden(toml::Table);

impl Golden {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap()
    }

    fn number<T: TryFrom<i64>>(&self, key: &str) -> T {
        T::try_from(self.0[key].as_integer().unwrap()).ok().unwrap()
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        let text = self.text(key);
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }
}

fn check(golden: &Golden) {
    let hash = Hash::from_id(golden.number("hash")).unwrap();
    let group = Group::from_id(golden.number("group")).unwrap();
    let (host, drive) = (golden.text("host_nqn"), golden.text("subsystem_nqn"));
    let mut shared = None;
    if group != Group::Null {
        let [mine, theirs] =
            ["host", "controller"].map(|side| golden.bytes(&format!("{side}_exponent")));
        let public = group.public(&mine);
        assert_eq!(*Hash::Sha256.digest(&public), golden.bytes("host_public_sha256"));
        shared = group.shared(&theirs, &public);
        let digest = Hash::Sha256.digest(shared.as_ref().unwrap());
        assert_eq!(*digest, golden.bytes("shared_sha256"));
    }
    for (side, asker, prover, nqn, peer) in [
        ("host", "controller", Prover::Host, host, drive),
        ("controller", "host", Prover::Controller, drive, host),
    ] {
        let text = golden.text(&format!("{side}_secret"));
        let secret = Secret::parse(text).unwrap();
        assert_eq!(*secret.to_text(), text);
        let transformed = golden.bytes(&format!("{side}_transformed"));
        assert_eq!(*secret.transformed(nqn), transformed, "{side}");
        let challenge = Challenge {
            hash,
            value: &golden.bytes(&format!("{asker}_challenge")),
            sequence: golden.number(&format!("{asker}_sequence")),
            transaction: golden.number("transaction"),
            secure_channel: 0,
            shared: shared.as_ref().map(|shared| shared.as_slice()),
        };
        let response = challenge.response(prover, &secret, nqn, peer);
        assert_eq!(*response, golden.bytes(&format!("{side}_response")), "{side}");
    }
}

#[test]
fn exchanges_are_as_python_computed_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/golden/auth");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            println!("{}", path.display());
            check(&Golden(std::fs::read_to_string(&path).unwrap().parse().unwrap()));
            count += 1;
        }
    }
    assert_eq!(count, 7);
}
