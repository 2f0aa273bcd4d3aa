//! A drive in memory, lawful or not, and two places to run it: the simulated world under several
//! seeds, and the loopback interface on every back end.

#![allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, clippy::unwrap_used)]

pub mod drive;
mod session;

use std::cell::Cell;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Address;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{BackendKind, Class, Config, Listener, block_on, spawn};

use drive::{Behaviour, Drive, NQN};

/// A test body that acts as a host.
pub type Host = fn(Address, Rc<Drive>) -> Pin<Box<dyn Future<Output = ()>>>;

/// Virtual time after which a simulated test counts as hung.
const LIMIT: Duration = Duration::from_secs(300);
const SEEDS: u64 = 4;

/// Runs a test against a drive of this behaviour, everywhere.
pub fn everywhere(behaviour: &Behaviour, host: Host) {
    in_worlds(behaviour, host);
    on_loopback(behaviour, host);
}

/// Runs a test in the simulated world, under several seeds.
pub fn in_worlds(behaviour: &Behaviour, host: Host) {
    for seed in 0..SEEDS {
        // One core plays both sides, so that the test may look into the drive.
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("both", Ipv4Addr::new(10, 0, 0, 1), 1);
        let done = Rc::new(Cell::new(false));
        let behaviour = behaviour.clone();
        let flag = Rc::clone(&done);
        world.start(machine, move |_| {
            let (behaviour, flag) = (behaviour.clone(), Rc::clone(&flag));
            async move {
                meet(SocketAddr::from(([10, 0, 0, 1], 4420)), behaviour, host).await;
                flag.set(true);
            }
        });
        let ran = world.run_until(|_| done.get(), LIMIT);
        assert!(ran.is_ok(), "seed {seed}: {ran:?}");
    }
}

/// Runs a test over the loopback interface, on every back end that this machine has.
pub fn on_loopback(behaviour: &Behaviour, host: Host) {
    for backend in [BackendKind::Epoll, BackendKind::Auto] {
        let config = Config { backend, ..Config::default() };
        let behaviour = behaviour.clone();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        block_on(&config, move || meet(loopback, behaviour, host)).expect("the test ran");
    }
}

async fn meet(at: SocketAddr, behaviour: Behaviour, host: Host) {
    let listener = Listener::bind(at).expect("a free port");
    let address = Address::new(listener.local_addr().expect("bound"), NQN);
    let drive = Rc::new(Drive::new(behaviour));
    let serving = spawn(Class::System, session::serve(Rc::clone(&drive), listener));
    host(address, Rc::clone(&drive)).await;
    serving.abort();
}
