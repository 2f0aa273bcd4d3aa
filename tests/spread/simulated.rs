//! Runs in the simulation, with any order of cores, compute threads and messages.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::transport::accept;
use csd_initiator::{Address, Compute};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Class, CoreId, Listener, busy, sleep, spawn};

use crate::{
    MEMORY_BYTES, NQN, abort, commands, connect, equal_everywhere, leave, long, verify_times,
};

const SPLIT: Split = Split { kv_percent: 50, reserve_percent: 5, block_bytes: 4096 };
const LIMIT: Duration = Duration::from_secs(300);
/// Sources of 64 MiB: a tenth of a second of one simulated lane.
const LONG: usize = 16;
const LEAVE: Duration = Duration::from_millis(3);

struct Simulation {
    world: World,
    drive: MachineId,
    host: MachineId,
    address: Address,
    /// CPU time of each core's compute thread.
    lanes: Rc<RefCell<Vec<u64>>>,
}

impl Simulation {
    fn new(seed: u64, cores: usize) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let drive = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), cores);
        let host = world.machine("host", Ipv4Addr::new(10, 0, 0, 2), 1);
        let socket = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 4420));
        let disk = Arc::new(Volatile::new(128 << 20, VolatileConfig::default()));
        let ready = Rc::new(Cell::new(false));
        let lanes = Rc::new(RefCell::new(vec![0; cores]));
        let (told, looked) = (Rc::clone(&ready), Rc::clone(&lanes));
        world.start(drive, move |core| {
            let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&told));
            let looked = Rc::clone(&looked);
            async move {
                if core == CoreId(0) {
                    let resources =
                        Resources { memory_bytes: MEMORY_BYTES, ..Resources::default() };
                    let opened = drive::open(media, true, NQN, &SPLIT, &resources).await;
                    let shared = opened.expect("opens");
                    csd_drive::life::start_all(&shared).await.expect("starts");
                    let listener = Listener::bind(socket).unwrap();
                    told.set(true);
                    drop(spawn(Class::System, accept::accept(listener, shared)));
                }
                loop {
                    looked.borrow_mut()[core.0] = busy().all_compute_ns();
                    sleep(Duration::from_millis(1)).await;
                }
            }
        });
        world.run_until(|_| ready.get(), LIMIT).expect("the drive starts");
        let address = Address::new(socket, NQN);
        Self { world, drive, host, address, lanes }
    }

    /// Runs a host's future to its end.
    fn host<F: Future<Output = ()> + 'static>(&self, does: impl Fn(Address) -> F + 'static) {
        let ended = Rc::new(Cell::new(false));
        let (slot, address) = (Rc::clone(&ended), self.address.clone());
        let does = Rc::new(does);
        self.world.start(self.host, move |_| {
            let (slot, address, does) = (Rc::clone(&slot), address.clone(), Rc::clone(&does));
            async move {
                does(address).await;
                slot.set(true);
                std::future::pending::<()>().await;
            }
        });
        self.world.run_until(|_| ended.get(), LIMIT).expect("the host ends");
        self.world.crash(self.host);
    }

    fn lanes_ns(&self) -> u64 {
        self.world.run_for(Duration::from_millis(2));
        self.lanes.borrow().iter().sum()
    }
}

#[test]
fn answers_are_those_of_one_core() {
    for cores in 1..=4 {
        let simulation = Simulation::new(cores, usize::try_from(cores).unwrap());
        let count = u16::try_from(cores).unwrap();
        simulation.host(move |address| async move { equal_everywhere(&address, count).await });
    }
}

#[test]
fn an_abort_ends_all_parts() {
    for seed in 0..3 {
        let simulation = Simulation::new(seed, 4);
        simulation.host(|address| async move { abort(&address, LONG).await });
        let before = simulation.lanes_ns();
        assert!(before < 50_000_000, "{before} ns of lanes before they ended");
        simulation.world.run_for(Duration::from_millis(50));
        assert_eq!(simulation.lanes_ns(), before, "no part goes on");
    }
}

#[test]
fn parts_of_a_host_that_left_end_and_their_places_are_free() {
    for seed in 0..3 {
        let simulation = Simulation::new(seed, 4);
        for _ in 0..5 {
            simulation.host(|address| async move { leave(&address, 4 * LONG, LEAVE).await });
            simulation.world.disconnect(simulation.drive, simulation.host);
        }
        simulation.world.run_for(Duration::from_secs(1));
        let before = simulation.lanes_ns();
        simulation.world.run_for(Duration::from_millis(50));
        assert_eq!(simulation.lanes_ns(), before, "no part goes on");
        simulation.host(|address| async move { equal_everywhere(&address, 4).await });
    }
}

#[test]
fn a_part_that_fails_ends_the_others() {
    let simulation = Simulation::new(7, 4);
    simulation.host(|address| async move {
        let controller = connect(&address).await;
        let compute = Compute::open(&controller, 5).unwrap();
        let mut execution = long(LONG, 4);
        // It ends within an element.
        let rest = csd_nvme::vendor::execute::SourceData::Memory { nsid: 4, start: 0, bytes: 3 };
        execution.sources.push(rest.into());
        let error = compute.execute(0, &execution).await.unwrap_err();
        assert_eq!(error.status(), Some(csd_nvme::status::Status::SOURCE_TYPE));
    });
}

#[test]
fn a_drive_that_chooses_takes_at_most_a_tenth_longer_than_the_best_number_of_cores() {
    for (seed, cores) in [(1, 1), (2, 2), (3, 4)] {
        let simulation = Simulation::new(seed, usize::from(cores));
        simulation.host(move |address| async move {
            let mut times = verify_times(&address, LONG, cores).await;
            let (chosen, first) = (times.pop().unwrap(), times.pop().unwrap());
            let best = times.into_iter().min().unwrap();
            assert!(
                10 * chosen <= 11 * best,
                "{cores} cores: {chosen} ns, {first} ns, best {best}"
            );
        });
    }
}

#[test]
fn a_drive_that_chooses_gives_the_same_digest_while_hosts_send_commands() {
    let simulation = Simulation::new(9, 4);
    simulation.host(|address| async move {
        let busy = address.clone();
        let commands = spawn(Class::Foreground, async move {
            commands(&busy, Duration::from_millis(60)).await;
        });
        verify_times(&address, LONG, 4).await;
        commands.await;
    });
}
