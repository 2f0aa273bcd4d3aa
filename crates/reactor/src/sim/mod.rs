//! A simulated world: one thread plays machines of several cores, with a virtual clock, a network
//! and randomness from one seed.
//!
//! Deterministic simulation testing, as FoundationDB does it (Zhou et al., "FoundationDB: a
//! distributed unbundled transactional key value store", 2021): a failure is repeated from its
//! seed.
//!
//! The simulation uses neither a real clock, nor a real random source, nor the order of a hash map.
//! Invariants: equal seed and equal program give an equal [`World::trace_hash`]; time advances only
//! when no core can run; the world's state is never borrowed while a task runs, is woken or is
//! dropped.

mod address;
mod backend;
mod compute;
mod config;
mod network;
mod sockets;
mod state;
mod turn;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::backend::Notifier;
use crate::class::Class;
use crate::core::{Core, CoreId};
use crate::current::Entered;
use crate::instant::{Instant, nanos};
use crate::mailbox::Shared;
use backend::SimBackend;
pub use config::WorldConfig;
use state::{Event, Life, Machine, State, Stepping, Trace};

/// Identifies a machine of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineId(usize);

/// Error: [`World::run_until`] did not reach its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stuck at {} us: {why}", .at.us())]
pub struct Stuck {
    /// The world's time at that point.
    pub at: Instant,
    /// Reason.
    pub why: StuckWhy,
}

/// Reason of [`Stuck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StuckWhy {
    /// No task can run and no event is pending.
    #[error("nothing can run and nothing will happen")]
    Deadlock,
    /// The limit of virtual time was reached.
    #[error("the limit of virtual time was reached")]
    TimeLimit,
}

/// A simulated world; clones are the same world. See the module's text.
#[derive(Clone)]
pub struct World(Rc<Inner>);

pub(crate) struct Inner {
    state: RefCell<State>,
}

/// Outcome of a step of the world.
enum Step {
    Ran,
    /// Nothing can run before the end.
    Idle,
    /// No task can run and no event is pending.
    Dead,
}

impl World {
    /// Returns an empty world.
    #[must_use]
    pub fn new(seed: u64, config: WorldConfig) -> Self {
        Self(Rc::new(Inner { state: RefCell::new(State::new(seed, config)) }))
    }

    /// Adds a machine, which is idle until started.
    ///
    /// # Panics
    /// If it has no cores, or another machine has the address.
    pub fn machine(&self, name: &str, ip: Ipv4Addr, cores: usize) -> MachineId {
        assert!(cores > 0, "a machine needs a core");
        let mut state = self.0.state.borrow_mut();
        assert!(state.machine_at(ip.into()).is_none(), "two machines at {ip}");
        state.machines.push(Machine::new(name, ip, cores));
        MachineId(state.machines.len() - 1)
    }

    /// Starts a machine: `main` returns each core's main future. A core whose main future is done
    /// drops its other tasks and closes its mailbox.
    ///
    /// # Panics
    /// If it is running.
    pub fn start<F, Fut>(&self, machine: MachineId, mut main: F)
    where
        F: FnMut(CoreId) -> Fut,
        Fut: Future<Output = ()> + 'static,
    {
        assert!(!self.is_running(machine), "the machine is running already");
        let count = self.0.state.borrow().machines[machine.0].core_count;
        let peers: Arc<[Arc<Shared>]> =
            (0..count).map(|_| Arc::new(Shared::new(Box::new(Silent)))).collect();
        let life = self.0.state.borrow_mut().begin_life(machine.0);
        for index in 0..count {
            let at = Life { machine: machine.0, core: index, life };
            let backend = Rc::new(SimBackend::new(Rc::downgrade(&self.0), at));
            let core = Core::new(CoreId(index), Arc::clone(&peers), backend);
            let done = Rc::new(Cell::new(false));
            self.0.state.borrow_mut().install(at, Rc::clone(&core), Rc::clone(&done));
            let _entered = Entered::new(&core);
            let main = main(CoreId(index));
            let task = async move {
                main.await;
                done.set(true);
            };
            core.spawn(Class::System, Box::pin(task));
        }
    }

    /// Returns true if any core of the machine runs.
    #[must_use]
    pub fn is_running(&self, machine: MachineId) -> bool {
        self.0.state.borrow().machines[machine.0].cores.iter().any(|core| core.core.is_some())
    }

    /// Runs until `done` returns true; checks after each step.
    ///
    /// # Errors
    /// [`Stuck`] when no event is left, or `limit` of virtual time has passed.
    pub fn run_until(&self, done: impl Fn(&Self) -> bool, limit: Duration) -> Result<(), Stuck> {
        let end_ns = self.now().ns().saturating_add(nanos(limit));
        loop {
            if done(self) {
                return Ok(());
            }
            let stuck = |why| Err(Stuck { at: self.now(), why });
            match self.step(end_ns) {
                Step::Ran => {}
                Step::Dead => return stuck(StuckWhy::Deadlock),
                Step::Idle => {
                    self.0.state.borrow_mut().now_ns = end_ns;
                    return stuck(StuckWhy::TimeLimit);
                }
            }
        }
    }

    /// Runs for a span of virtual time, even if no event falls into it.
    pub fn run_for(&self, span: Duration) {
        let end_ns = self.now().ns().saturating_add(nanos(span));
        while matches!(self.step(end_ns), Step::Ran) {}
        self.0.state.borrow_mut().now_ns = end_ns;
    }

    /// Cuts a machine's power: drops its tasks, timers and sockets. Peers see a reset after a
    /// latency, and may miss data in flight. The machine can be started again.
    pub fn crash(&self, machine: MachineId) {
        let (cores, leftovers) = self.0.state.borrow_mut().crash(machine.0);
        for core in cores {
            close(&core);
        }
        drop(leftovers);
    }

    /// Resets every connection between two machines; both ends see it after a latency.
    pub fn disconnect(&self, one: MachineId, other: MachineId) {
        self.0.state.borrow_mut().disconnect(one.0, other.0);
    }

    /// Parts two machines: what they send each other, and connections that they open, wait until
    /// [`Self::heal`]. Neither end sees a reset; both see silence.
    pub fn partition(&self, one: MachineId, other: MachineId) {
        self.0.state.borrow_mut().set_partition(one.0, other.0, true);
    }

    /// Ends a partition: what was held back arrives, in order.
    pub fn heal(&self, one: MachineId, other: MachineId) {
        self.0.state.borrow_mut().set_partition(one.0, other.0, false);
    }

    /// Asks a machine to stop; see [`crate::stop_requested`].
    pub fn request_stop(&self, machine: MachineId) {
        let mut state = self.0.state.borrow_mut();
        state.trace(Trace::Stop, machine.0, 0, 0);
        state.machines[machine.0].stop = true;
        let wakers = std::mem::take(&mut state.machines[machine.0].stop_wakers);
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }

    /// Returns the machine's name.
    #[must_use]
    pub fn name(&self, machine: MachineId) -> String {
        self.0.state.borrow().machines[machine.0].name.clone()
    }

    /// Returns how often the machine's streams have taken bytes to send, in all its lives.
    #[must_use]
    pub fn sends(&self, machine: MachineId) -> u64 {
        self.0.state.borrow().machines[machine.0].sends
    }

    /// Returns the most work ([`crate::worked`]) that a core of the machine has done between two
    /// yields since the last call.
    #[must_use]
    pub fn longest_poll(&self, machine: MachineId) -> u64 {
        std::mem::take(&mut self.0.state.borrow_mut().machines[machine.0].longest_poll)
    }

    /// Returns the world's time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.0.state.borrow().now_ns)
    }

    /// Returns the seed's next random number.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.0.state.borrow_mut().random()
    }

    /// Returns a hash over everything that happened: each decision, event, time and byte sent.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.0.state.borrow().hash
    }

    /// Executes the next event or turn of a core, or fires the next timers, until a time.
    fn step(&self, end_ns: u64) -> Step {
        loop {
            let mut state = self.0.state.borrow_mut();
            let next_ns = match state.choose_core() {
                Ok((at, core)) => {
                    drop(state);
                    self.run_core(at, &core);
                    return Step::Ran;
                }
                Err(next_ns) => next_ns,
            };
            let (event_ns, now_ns) = (state.event_ns(), state.now_ns);
            let first_ns = next_ns.min(event_ns);
            // A timer at the end of time never fires.
            if first_ns == u64::MAX {
                return Step::Dead;
            }
            if first_ns > end_ns {
                return Step::Idle;
            }
            state.now_ns = first_ns.max(now_ns);
            // What is due at the same time as an event: cores come before it, timers after it.
            if event_ns < next_ns || event_ns <= now_ns {
                let event = state.next_event().expect("just seen");
                drop(state);
                self.happen(event);
                return Step::Ran;
            }
            if next_ns <= now_ns {
                let with_timers = state.cores_with_due_timers();
                drop(state);
                with_timers.iter().for_each(|core| core.fire_timers());
                return Step::Ran;
            }
        }
    }

    /// Lets a core read its messages and poll one of its ready tasks.
    fn run_core(&self, at: Life, core: &Rc<Core>) {
        let entered = Entered::new(core);
        let cost_ns = self.0.state.borrow().config.cpu_ns_per_poll;
        let (mut spent_ns, mut begun, mut longest) = (0, csd_buffer::work(), 0);
        let mut charge = |class| {
            let cost_ns = cost_ns + core.charged.take();
            core.meter.charge(cost_ns, class);
            spent_ns += cost_ns;
            let now = csd_buffer::work();
            longest = now.wrapping_sub(begun).max(longest);
            begun = now;
        };
        core.read_messages(&mut charge);
        if core.ready.all() > 0 {
            let position = self.0.state.borrow_mut().choose_task(at, &core.ready);
            if let Some(class) = core.poll_ready(position) {
                core.meter.update(|times| times.polls += 1);
                charge(class);
            }
        }
        core.flush_messages();
        core.meter.update(|times| times.turns += 1);
        drop(entered);
        let mut state = self.0.state.borrow_mut();
        let longest_poll = &mut state.machines[at.machine].longest_poll;
        *longest_poll = longest.max(*longest_poll);
        let ended = state.after_turn(at, spent_ns);
        drop(state);
        if let Some((core, leftovers)) = ended {
            close(&core);
            drop(leftovers);
        }
    }

    fn happen(&self, event: Event) {
        match event {
            Event::Net(event) => {
                let mut state = self.0.state.borrow_mut();
                let wakers = state.cross(event).map(|event| state.net_event(event));
                drop(state);
                wakers.into_iter().flatten().for_each(Waker::wake);
            }
            Event::ComputeTurn(at) => {
                let Some((class, mut job)) = self.0.state.borrow_mut().next_job(at) else {
                    return;
                };
                if job.is_abandoned() {
                    drop(job);
                    return self.0.state.borrow_mut().schedule(0, Event::ComputeTurn(at));
                }
                let stepped = job.step();
                job.ran(stepped.cost_ns);
                let mut state = self.0.state.borrow_mut();
                state.compute_busy(at, stepped.cost_ns, class, job, stepped.more);
            }
            Event::ComputeStepped(stepping) => {
                let mut state = self.0.state.borrow_mut();
                let Some(stepping) = state.compute_stepped(stepping) else { return };
                let Stepping { at, class, job, more, .. } = stepping;
                if !state.is_alive(at) {
                    drop(state);
                    return drop(job);
                }
                let unfinished = state.compute_return(at, class, job, more);
                drop(state);
                if let Some(job) = unfinished {
                    job.finish();
                }
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let machines = self.state.get_mut().machines.len();
        for machine in 0..machines {
            let (cores, leftovers) = self.state.get_mut().crash(machine);
            for core in cores {
                close(&core);
            }
            drop(leftovers);
        }
    }
}

fn close(core: &Rc<Core>) {
    let _entered = Entered::new(core);
    core.close();
}

/// A notifier without effect: the world visits every core.
struct Silent;

impl Notifier for Silent {
    fn notify(&self) {}
}
