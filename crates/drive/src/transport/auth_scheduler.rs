//! [`AuthScheduler`]: fair scheduling of the modular powers of authentication. Strangers can ask
//! for them, and one takes milliseconds.
//!
//! A token bucket of CPU time limits all of them together, and fair queueing by virtual time
//! (Demers, Keshav, Shenker, "Analysis and simulation of a fair queueing algorithm", 1989) chooses
//! the next one.
//!
//! A core computes one at a time, and together they take at most 1/`SHARE` of its time beyond
//! `SAVED_NS_MAX` that was saved up. The next computation is that of the asker for whom least was
//! computed lately, by address and group: hosts that ask for little are served between those that
//! ask for much. The time of a successful exchange is given back. Invariant: a computation that was
//! begun is charged, also when the host has left.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::auth::Group;
use csd_reactor::{Class, ComputeFailed, Instant, Notify, compute_fn, now, spawn, timeout};

use crate::controller::CoreCounters;

/// Divisor of the share of a core's time.
const SHARE: u64 = 4;
/// Most time that is saved up while no host asks, because the queues of a host connect all at once.
const SAVED_NS_MAX: i64 = 1_000_000_000;
/// Modelled cost of a power for each squared byte of its group: 3 ms for 3,072 bits.
const COST_NS_PER_SQUARED_BYTE: u64 = 20;

/// Asker: an address (of IPv6 the first 64 bits, which belong to one network), and a group.
pub type Asker = (IpAddr, Group);

/// Returns the part of a host's address that tells hosts apart.
pub fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        short => short,
    }
}

fn cost_ns(group: Group) -> u64 {
    let bytes = group.bytes() as u64;
    bytes * bytes * COST_NS_PER_SQUARED_BYTE
}

/// AuthScheduler of one core.
pub struct AuthScheduler {
    counters: Arc<CoreCounters>,
    state: RefCell<State>,
    changed: Notify,
}

struct State {
    saved_ns: i64,
    counted: Instant,
    computing: bool,
    // Waiting askers by arrival.
    waiting: Vec<(u64, Asker)>,
    next: Option<u64>,
    arrivals: u64,
    // Virtual time, and by asker the virtual time until which it is served.
    clock_ns: u64,
    served_ns: BTreeMap<Asker, u64>,
}

impl AuthScheduler {
    /// Makes the scheduler of a core.
    pub fn new(counters: Arc<CoreCounters>) -> Self {
        let state = State {
            saved_ns: SAVED_NS_MAX,
            counted: now(),
            computing: false,
            waiting: Vec::new(),
            next: None,
            arrivals: 0,
            clock_ns: 0,
            served_ns: BTreeMap::new(),
        };
        Self { counters, state: RefCell::new(state), changed: Notify::new() }
    }

    /// Waits for a turn and computes on the compute thread. Returns the result, and the time that
    /// it took.
    ///
    /// # Errors
    /// When the computation panicked.
    pub async fn compute<T: Send + 'static>(
        self: &Rc<Self>,
        asker: Asker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Duration), ComputeFailed> {
        let entry = QueueEntry::new(self, asker);
        loop {
            let changed = self.changed.notified();
            let go = self.state.borrow_mut().go(entry.number);
            match go {
                Go::Now => break,
                Go::After(pause) => drop(timeout(pause, changed).await),
                Go::Later => changed.await,
            }
        }
        drop(entry);
        CoreCounters::add(&self.counters.powers, 1);
        // A task of its own, which runs and is charged even if the host leaves.
        let this = Rc::clone(self);
        let computing = spawn(Class::System, async move {
            let begun = now();
            let done = compute_fn(Class::System, cost_ns(asker.1), work).await;
            let spent = begun.elapsed();
            this.end(spent);
            done.map(|done| (done, spent))
        });
        computing.await
    }

    fn end(&self, spent: Duration) {
        let mut state = self.state.borrow_mut();
        state.computing = false;
        state.saved_ns -= nanoseconds(spent);
        drop(state);
        self.changed.notify_all();
    }

    /// Gives back the time of a successful exchange.
    pub fn give_back(&self, spent: Duration) {
        let mut state = self.state.borrow_mut();
        state.saved_ns = (state.saved_ns + nanoseconds(spent)).min(SAVED_NS_MAX);
        drop(state);
        self.changed.notify_all();
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

enum Go {
    Now,
    /// After this time, unless something changes before.
    After(Duration),
    /// When something has changed.
    Later,
}

impl State {
    fn go(&mut self, number: u64) -> Go {
        if self.computing || self.next != Some(number) {
            return Go::Later;
        }
        let now = now();
        let earned = nanoseconds(now.since(self.counted)) / SHARE.cast_signed();
        self.saved_ns = (self.saved_ns + earned).min(SAVED_NS_MAX);
        self.counted = now;
        if self.saved_ns <= 0 {
            return Go::After(Duration::from_nanos((1 - self.saved_ns).unsigned_abs() * SHARE));
        }
        let at = self.waiting.iter().position(|(other, _)| *other == number);
        let (_, asker) = self.waiting.remove(at.expect("who is next waits"));
        self.clock_ns = self.clock_ns.max(self.served(&asker));
        let until = self.clock_ns + cost_ns(asker.1);
        self.served_ns.insert(asker, until);
        let clock_ns = self.clock_ns;
        self.served_ns.retain(|_, until| *until > clock_ns);
        self.computing = true;
        self.choose();
        Go::Now
    }

    fn served(&self, asker: &Asker) -> u64 {
        self.served_ns.get(asker).copied().unwrap_or(0)
    }

    /// Chooses the next asker: the one that would have been served least after its turn, by
    /// arrival.
    fn choose(&mut self) {
        let until = |asker: &Asker| self.served(asker).max(self.clock_ns) + cost_ns(asker.1);
        let least = self.waiting.iter().min_by_key(|(number, asker)| (until(asker), *number));
        self.next = least.map(|(number, _)| *number);
    }
}

/// Guard of an entry among the waiting askers.
struct QueueEntry<'a> {
    scheduler: &'a AuthScheduler,
    number: u64,
}

impl<'a> QueueEntry<'a> {
    fn new(scheduler: &'a AuthScheduler, asker: Asker) -> Self {
        let mut state = scheduler.state.borrow_mut();
        state.arrivals += 1;
        let number = state.arrivals;
        state.waiting.push((number, asker));
        state.choose();
        Self { scheduler, number }
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state.borrow_mut();
        state.waiting.retain(|(number, _)| *number != self.number);
        state.choose();
        drop(state);
        self.scheduler.changed.notify_all();
    }
}
