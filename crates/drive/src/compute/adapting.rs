//! [`Adapting`]: executions whose division the drive chooses while it works.
//!
//! Such an execution is split into many short parts. Each part that begins takes the units and the
//! unrolling of the moment from the controller of `csd-kernels`; each part that ends tells it the
//! rate. A core that hosts use less goes before the others. One [`Adapting`] serves all executions
//! that a core receives. Invariant: a part holds a slot until it ends or its execution is dropped,
//! so no slot is lost.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use csd_kernels::verify::{Adaptive, PARTS_AHEAD, Setting, Version};
use csd_reactor::{Class, CoreId, Notify, busy, call, core_count, core_id, now, spawn};

/// Size of a part, bytes: at 20 GB/s a tenth of a millisecond.
pub(super) const PART_BYTES: u64 = 2 << 20;
/// Shortest time between two readings of the hosts' share, ns.
const READING_NS: u64 = 5_000_000;

/// Use of a core, as far as this one knows.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Number of parts under way there.
    parts: u32,
    /// Its time of foreground work at the last reading, ns, and when that was.
    read: Option<(u64, u64)>,
    /// Share of its time that hosts took before that, 0 to 1.
    hosts: f64,
}

/// State of the executions that a core divides as it goes.
pub(super) struct Adapting {
    controller: RefCell<Adaptive>,
    cores: RefCell<Vec<Use>>,
    /// Number of parts under way.
    parts: Cell<u32>,
    /// Time up to which work was reported, ns.
    reported_ns: Cell<u64>,
    read_ns: Cell<u64>,
    ended: Notify,
}

impl Adapting {
    /// Starts with all cores, and the unrolling measured for this processor's version.
    pub(super) fn new() -> Rc<Self> {
        let cores = u16::try_from(core_count()).unwrap_or(u16::MAX);
        let unroll = Version::available().next().map_or(1, Version::unroll);
        Rc::new(Self {
            controller: RefCell::new(Adaptive::new(cores, unroll)),
            cores: RefCell::new(vec![Use::default(); usize::from(cores)]),
            parts: Cell::default(),
            reported_ns: Cell::default(),
            read_ns: Cell::default(),
            ended: Notify::new(),
        })
    }

    /// Waits until a part may begin, on at most `cores` cores. Returns its slot.
    pub(super) async fn begin(self: &Rc<Self>, cores: usize) -> PartSlot {
        let setting = loop {
            let setting = self.controller.borrow().setting();
            let units = usize::from(setting.units).min(cores).max(1);
            if (self.parts.get() as usize) < units * usize::from(PARTS_AHEAD) {
                break Setting { units: u16::try_from(units).unwrap_or(u16::MAX), ..setting };
            }
            self.ended.notified().await;
        };
        self.read_hosts();
        if self.parts.get() == 0 {
            self.reported_ns.set(now().ns());
        }
        self.parts.set(self.parts.get() + 1);
        let core = self.least_used(usize::from(setting.units));
        self.cores.borrow_mut()[core.0].parts += 1;
        PartSlot { adapting: Rc::clone(self), core, unroll: setting.unroll }
    }

    /// Returns the core with the fewest parts among the `units` cores that hosts use least; of
    /// equal ones this core and those that follow it.
    fn least_used(&self, units: usize) -> CoreId {
        let cores = self.cores.borrow();
        let mut order: Vec<usize> =
            (0..cores.len()).map(|step| (core_id().0 + step) % cores.len()).collect();
        order.sort_by(|one, other| cores[*one].hosts.total_cmp(&cores[*other].hosts));
        let least = order.into_iter().take(units).min_by_key(|core| cores[*core].parts);
        CoreId(least.unwrap_or(core_id().0))
    }

    /// Reads every core's time of foreground work, if the last reading is old.
    fn read_hosts(self: &Rc<Self>) {
        if now().ns().saturating_sub(self.read_ns.get()) < READING_NS {
            return;
        }
        self.read_ns.set(now().ns());
        for core in (0..core_count()).map(CoreId) {
            let this = Rc::clone(self);
            drop(spawn(Class::Execution, async move {
                let read = || async { (busy().foreground_ns, now().ns()) };
                if let Ok(reading) = call(core, Class::Execution, read).await {
                    this.cores.borrow_mut()[core.0].learn(reading);
                }
            }));
        }
    }

    /// Returns the share of all cores that hosts take.
    fn hosts(&self) -> f64 {
        let cores = self.cores.borrow();
        cores.iter().map(|core| core.hosts).sum::<f64>() / cores.len() as f64
    }
}

impl Use {
    fn learn(&mut self, (foreground_ns, at_ns): (u64, u64)) {
        if let Some((before_ns, since_ns)) = self.read {
            let passed_ns = at_ns.saturating_sub(since_ns).max(1);
            let spent_ns = foreground_ns.saturating_sub(before_ns);
            self.hosts = (spent_ns as f64 / passed_ns as f64).min(1.0);
        }
        self.read = Some((foreground_ns, at_ns));
    }
}

/// Slot of a part that is under way.
pub(super) struct PartSlot {
    adapting: Rc<Adapting>,
    /// Core that it runs on.
    pub(super) core: CoreId,
    /// Pages that advance together in it.
    pub(super) unroll: u8,
}

impl PartSlot {
    /// Reports that the part of `bytes` bytes ended well.
    pub(super) fn done(&self, bytes: u64) {
        let this = &self.adapting;
        let now_ns = now().ns();
        let ns = now_ns.saturating_sub(this.reported_ns.replace(now_ns));
        if Adaptive::learns_from(bytes) {
            let hosts = this.hosts();
            this.controller.borrow_mut().record(bytes, ns, hosts);
        }
    }
}

impl Drop for PartSlot {
    fn drop(&mut self) {
        let this = &self.adapting;
        this.parts.set(this.parts.get() - 1);
        this.cores.borrow_mut()[self.core.0].parts -= 1;
        this.ended.notify_all();
    }
}
