//! The reactor as commands use it: its configuration on a host, and random bytes from it.

use crate::report::Failure;

/// How this host's cores run.
pub(crate) fn runtime() -> csd_reactor::Config {
    csd_reactor::Config {
        name: "host".to_owned(),
        compute_yields: false,
        ..csd_reactor::Config::default()
    }
}

/// Random bytes, which are the reactor's to give.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let random = csd_reactor::block_on(&runtime(), || async {
        let mut bytes = [0; N];
        csd_reactor::random_bytes(&mut bytes);
        bytes
    });
    random.map_err(Failure::run)
}
