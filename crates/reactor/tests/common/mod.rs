//! Runs one test body on all three back ends.
#![allow(dead_code, reason = "each test file uses a part")]

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{BackendKind, Class, Config, CoreId, Error, call, sleep};

/// Runs `body` on each core of a real runtime. Says so if the kernel denies io_uring.
pub(crate) fn real<Fut>(backend: BackendKind, cores: usize, body: fn(CoreId) -> Fut)
where
    Fut: Future<Output = ()> + 'static,
{
    let config = Config { backend, cores, ..Config::default() };
    match csd_reactor::run(&config, body) {
        Ok(_) => {}
        Err(Error::Start { source, .. }) if backend == BackendKind::Uring => {
            eprintln!("SKIPPED: io_uring is denied here: {source}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs `body` on each core of a simulated machine, in several worlds.
pub(crate) fn sim<Fut>(cores: usize, body: fn(CoreId) -> Fut)
where
    Fut: Future<Output = ()> + 'static,
{
    for seed in 0..5 {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("one", Ipv4Addr::new(10, 0, 0, 1), cores);
        world.start(machine, body);
        let ended = world.run_until(|world| !world.is_running(machine), Duration::from_secs(600));
        assert_eq!(ended, Ok(()), "seed {seed}");
    }
}

/// Waits for another core's end, so that it is never without this one.
pub(crate) async fn outlast(other: CoreId) {
    while call(other, Class::System, || async {}).await.is_ok() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Any free port of this machine.
pub(crate) fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Declares a test of each `async fn name(core)` for each back end, on that many cores.
#[macro_export]
macro_rules! everywhere {
    ($($name:ident: $cores:expr;)*) => {
        mod uring {
            $(#[test] fn $name() {
                $crate::common::real(csd_reactor::BackendKind::Uring, $cores, super::$name);
            })*
        }
        mod epoll {
            $(#[test] fn $name() {
                $crate::common::real(csd_reactor::BackendKind::Epoll, $cores, super::$name);
            })*
        }
        mod sim {
            $(#[test] fn $name() { $crate::common::sim($cores, super::$name); })*
        }
    };
}
