//! The reactor's configuration on a host, random bytes, and requests to stop.

use std::cell::Cell;
use std::rc::Rc;

use csd_reactor::{Class, spawn, stop_requested};

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

/// Returns a flag of this core that is set when a signal asks the command to stop.
pub(crate) fn stop_flag() -> Rc<Cell<bool>> {
    let stop = Rc::new(Cell::new(false));
    let asked = Rc::clone(&stop);
    let _ended_with_the_core = spawn(Class::System, async move {
        stop_requested().await;
        asked.set(true);
    });
    stop
}
