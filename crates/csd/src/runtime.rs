//! The reactor's configuration on a host, and random bytes.

use crate::report::Failure;

/// Returns the configuration of this host's cores.
pub(crate) fn runtime() -> csd_reactor::Config {
    csd_reactor::Config {
        name: "host".to_owned(),
        compute_yields: false,
        ..csd_reactor::Config::default()
    }
}

/// Returns random bytes from the reactor.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let random = csd_reactor::block_on(&runtime(), || async {
        let mut bytes = [0; N];
        csd_reactor::random_bytes(&mut bytes);
        bytes
    });
    random.map_err(Failure::run)
}
