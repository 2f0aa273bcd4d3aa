//! A drive in a simulated world, on any medium, and hosts next to it: for lanes with their own
//! medium.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::drive;
use csd_drive::transport::accept;
use csd_drive::{HostLimits, Resources};
use csd_initiator::Address;
use csd_kvlog::format::Split;
use csd_kvlog::media::Media;
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{CoreId, Listener, sleep};

use crate::{DRIVE, HOST, NQN};

const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
/// Limit of every wait in the world's time.
const LIMIT: Duration = Duration::from_secs(600);

/// A machine for the drive, and one for its hosts.
pub struct Served {
    pub world: World,
    pub drive: MachineId,
    pub host: MachineId,
    shared: Rc<RefCell<Option<Arc<drive::Shared>>>>,
}

impl Served {
    pub fn new(seed: u64, cores: usize) -> Self {
        let world = World::new(seed, WorldConfig::default());
        Self {
            drive: world.machine("drive", DRIVE, cores),
            host: world.machine("host", HOST, 1),
            world,
            shared: Rc::default(),
        }
    }

    /// Starts the drive, and waits until hosts can connect.
    pub fn start(&self, media: &Media, is_new: bool, limits: HostLimits) {
        *self.shared.borrow_mut() = None;
        let (media, slot) = (media.clone(), Rc::clone(&self.shared));
        self.world.start(self.drive, move |core| {
            let (media, slot) = (media.clone(), Rc::clone(&slot));
            async move {
                if core == CoreId(0) {
                    let resources = Resources::default();
                    let opened = drive::open(media, is_new, NQN, &SPLIT, &resources);
                    let mut shared = opened.await.expect("opens");
                    Arc::get_mut(&mut shared).expect("made just now").host_limits = limits;
                    csd_drive::life::start_all(&shared).await.expect("starts");
                    let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
                    *slot.borrow_mut() = Some(Arc::clone(&shared));
                    accept::accept(listener, shared).await;
                }
                std::future::pending().await
            }
        });
        self.wait("the drive", || self.shared.borrow().is_some());
    }

    pub fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let waited = self.world.run_until(|_| done(), LIMIT);
        waited.unwrap_or_else(|stuck| panic!("waiting for {what}: {stuck}"));
    }

    /// Runs a host's main to its end; returns its answer.
    pub fn host<T: 'static, Fut: Future<Output = T> + 'static>(
        &self,
        main: impl Fn(Address) -> Fut + 'static,
    ) -> T {
        let (answer, main) = (Rc::new(RefCell::new(None)), Rc::new(main));
        let slot = Rc::clone(&answer);
        self.world.start(self.host, move |_| {
            let work = main(Address::new(SocketAddr::from((DRIVE, 4420)), NQN));
            let slot = Rc::clone(&slot);
            async move {
                let result = work.await;
                *slot.borrow_mut() = Some(result);
                // Let the last goodbyes leave.
                sleep(Duration::from_millis(1)).await;
            }
        });
        self.wait("the host", || !self.world.is_running(self.host));
        let result = answer.borrow_mut().take();
        result.expect("the host ended")
    }
}
