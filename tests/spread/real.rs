//! On real back ends.

use std::time::Duration;

use csd_drive::Resources;
use csd_initiator::Address;
use csd_kernels::program::Limits;
use csd_reactor::{BackendKind, Config, block_on};

use crate::{MEMORY_BYTES, NQN, abort, equal_everywhere, leave};

/// Sources of 64 MiB: 16 GiB take seconds on any machine.
const LONG: usize = 256;

/// Starts a drive in this process, which runs until the process ends.
fn drive(backend: BackendKind, cores: u16) -> Address {
    let limits = Limits::for_s(300);
    let resources = Resources { memory_bytes: MEMORY_BYTES, limits, ..Resources::default() };
    let config = csd_drive::Config {
        nqn: NQN.into(),
        size_bytes: 128 << 20,
        cores: cores.into(),
        backend,
        resources,
        ..csd_drive::Config::default()
    };
    Address::new(csd_tests::drive::serve(config), NQN)
}

#[test]
fn answers_are_those_of_one_core() {
    for (backend, cores) in [
        (BackendKind::Epoll, 1),
        (BackendKind::Auto, 2),
        (BackendKind::Epoll, 3),
        (BackendKind::Auto, 4),
    ] {
        let address = drive(backend, cores);
        let run = block_on(&Config::default(), move || async move {
            equal_everywhere(&address, cores).await;
        });
        run.unwrap();
    }
}

#[test]
fn executions_are_aborted_and_left_on_several_cores() {
    let address = drive(BackendKind::Auto, 4);
    let run = block_on(&Config::default(), move || async move {
        abort(&address, LONG).await;
        for _ in 0..5 {
            leave(&address, LONG, Duration::from_millis(20)).await;
        }
        // Their places are free again.
        equal_everywhere(&address, 4).await;
    });
    run.unwrap();
}
