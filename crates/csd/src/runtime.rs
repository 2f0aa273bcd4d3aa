//! The reactor's configuration on a host, random bytes, and requests to stop.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_reactor::{Class, Config, CoreId, Hosted, spawn, stop_requested, yield_now};

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

/// A flag for all threads, which is set when a signal asks the command to stop. From the first one
/// on, a signal no longer ends the process by itself.
pub(crate) struct Interrupt {
    /// The flag.
    pub(crate) asked: Arc<AtomicBool>,
    // Waits for the signal.
    _core: Hosted,
}

impl Interrupt {
    /// Waits for signals from now on.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let core = Hosted::start(&Config { spin_us: 0, ..runtime() }, 1).map_err(Failure::run)?;
        let asked = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&asked);
        let begun = core.door().call(CoreId(0), move || async move {
            drop(spawn(Class::System, async move {
                stop_requested().await;
                set.store(true, Relaxed);
            }));
            // The task installs the handlers in its first poll.
            yield_now().await;
        });
        begun.map_err(Failure::run)?;
        Ok(Self { asked, _core: core })
    }
}
