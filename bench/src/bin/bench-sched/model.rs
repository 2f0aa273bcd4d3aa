//! The model: a simulated drive of several cores, to which client threads send puts and gets in a
//! closed loop, with one background task for each put.
//!
//! A put crosses the link, which it shares with all others, takes the core of its connection for
//! its own work, waits for the medium and for the answer. A get takes the core and the medium as
//! long, and its value crosses the link the other way. The cores are those of the simulation,
//! with the rules of the real loop; every cost is a parameter. Times are nanoseconds.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_bench::random::numbers;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Class, CoreId, charge, now, post, sleep, sleep_until, spawn, yield_now};
use csd_sched::{Cost, Monitor, Scheduler, Task};
use hdrhistogram::Histogram;

use crate::cases::{Case, Update};
use crate::load::Load;

/// Costs, and the shape of the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) cores: usize,
    /// Foreground work of a request on its core.
    pub(crate) foreground_ns: u64,
    /// Background work of a put.
    pub(crate) background_ns: u64,
    /// Time of the medium; each request draws from half of it to one and a half times.
    pub(crate) medium_ns: u64,
    /// Delay of the network, there and back.
    pub(crate) network_ns: u64,
    /// Time that a value occupies the link in its direction.
    pub(crate) link_ns: u64,
    /// Requests of a window.
    pub(crate) window: u64,
    /// Cost of the update at the end of a window, as the paper prints it.
    pub(crate) published_update_ns: u64,
    /// The same of this drive.
    pub(crate) own_update_ns: u64,
    /// Cost of moving a task, half on each core.
    pub(crate) move_ns: u64,
    /// Background tasks that one core may owe before its puts wait for them.
    pub(crate) owed_max: u64,
}

/// Length of a step of background work that yields.
const STEP_NS: u64 = 5_000;

/// Time before the measurement, and of it.
const WARM: Duration = Duration::from_millis(20);
const MEASURED: Duration = Duration::from_millis(100);

/// Results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) mean_us: f64,
    /// Mean of the requests of the first window after each change of phase; `None` if there is no
    /// change.
    pub(crate) after_change_us: Option<f64>,
    pub(crate) p99_us: f64,
    pub(crate) requests_per_s: f64,
    /// Background tasks done for each put.
    pub(crate) done_per_put: f64,
}

impl Outcome {
    /// Returns the means of several runs, that of their percentiles included.
    ///
    /// # Panics
    /// If there are none.
    #[allow(clippy::cast_precision_loss)] // runs are few
    pub(crate) fn mean(of: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| of.iter().map(figure).sum::<f64>() / of.len() as f64;
        let after_change = || mean(|outcome| outcome.after_change_us.unwrap_or_default());
        Self {
            mean_us: mean(|outcome| outcome.mean_us),
            after_change_us: of[0].after_change_us.is_some().then(after_change),
            p99_us: mean(|outcome| outcome.p99_us),
            requests_per_s: mean(|outcome| outcome.requests_per_s),
            done_per_put: mean(|outcome| outcome.done_per_put),
        }
    }
}

/// Runs a load in one of the cases.
pub(crate) fn run(model: Model, case: Case, load: Load, seed: u64) -> Outcome {
    let config = WorldConfig { cpu_ns_per_poll: 0, oldest_first: true, ..WorldConfig::default() };
    let world = World::new(seed, config);
    let machine = world.machine("drive", Ipv4Addr::LOCALHOST, model.cores);
    let drive = Arc::new(Drive::new(model, case));
    let of_cores = Arc::clone(&drive);
    world.start(machine, move |core| {
        let drive = Arc::clone(&of_cores);
        async move {
            for client in 0..load.threads {
                if load.core_of(client, model.cores) == core.0 {
                    let drive = Arc::clone(&drive);
                    drop(spawn(Class::Foreground, requests(drive, core.0, client, load, seed)));
                }
            }
            sleep(Duration::MAX).await;
        }
    });
    world.run_for(WARM);
    drive.counts().reset();
    world.run_for(MEASURED);
    drive.counts().outcome()
}

/// Counts of the measured time.
struct Counts {
    latencies: Histogram<u64>,
    /// Latencies of the requests in the first window after each change of phase.
    after_change: Histogram<u64>,
    phase: u64,
    sent_in_phase: u64,
    puts: u64,
    background: u64,
}

impl Counts {
    fn reset(&mut self) {
        self.latencies.reset();
        self.after_change.reset();
        (self.puts, self.background) = (0, 0);
    }

    /// Counts a request that is sent in a phase; returns true if it is one of the first `window`
    /// after the change.
    fn sent(&mut self, phase: u64, window: u64) -> bool {
        if phase != self.phase {
            (self.phase, self.sent_in_phase) = (phase, 0);
        }
        self.sent_in_phase += 1;
        self.sent_in_phase <= window
    }

    #[allow(clippy::cast_precision_loss)] // counts are small
    fn outcome(&self) -> Outcome {
        let changes = !self.after_change.is_empty();
        Outcome {
            mean_us: self.latencies.mean() / 1e3,
            after_change_us: changes.then(|| self.after_change.mean() / 1e3),
            p99_us: self.latencies.value_at_percentile(99.0) as f64 / 1e3,
            requests_per_s: self.latencies.len() as f64 / MEASURED.as_secs_f64(),
            done_per_put: self.background as f64 / self.puts.max(1) as f64,
        }
    }
}

/// Counters of one core.
#[derive(Default)]
struct Core {
    foreground_ns: AtomicU64,
    background_ns: AtomicU64,
    begun: AtomicU64,
    /// Background work that waits here.
    queued_ns: AtomicU64,
    /// Background tasks that arose here and are not done.
    owed: AtomicU64,
}

/// Direction of a value on the link.
#[derive(Clone, Copy)]
enum Direction {
    ToDrive,
    ToHost,
}

struct Drive {
    model: Model,
    case: Case,
    cores: Vec<Core>,
    // When the link is free, for values of puts and of gets.
    link_free_ns: [AtomicU64; 2],
    counts: Mutex<Counts>,
    choice: Mutex<(Monitor, Scheduler, Box<dyn Iterator<Item = u64> + Send>)>,
}

impl Drive {
    fn new(model: Model, case: Case) -> Self {
        let cores = (0..model.cores).map(|_| Core::default()).collect();
        let latencies = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("wide bounds");
        let cost = Cost { move_ns: 2.0 * as_f64(model.move_ns), ..Cost::default() };
        let policy = case.policy.unwrap_or_default();
        let scheduler = Scheduler::new(policy, model.cores, case.threshold(), cost);
        let monitor = Monitor::new(model.cores, model.window, 0);
        Self {
            model,
            case,
            cores,
            link_free_ns: Default::default(),
            counts: Mutex::new(Counts {
                after_change: latencies.clone(),
                latencies,
                phase: 0,
                sent_in_phase: 0,
                puts: 0,
                background: 0,
            }),
            choice: Mutex::new((monitor, scheduler, Box::new(numbers(1)))),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends something at `at_ns`, a value in one direction of the link or a command; returns when
    /// it has arrived.
    fn send(&self, value: Option<Direction>, at_ns: u64) -> u64 {
        let sent_ns = match value {
            Some(direction) => {
                let link = &self.link_free_ns[direction as usize];
                let free_ns = link.load(Relaxed).max(at_ns) + self.model.link_ns;
                link.store(free_ns, Relaxed);
                free_ns
            }
            None => at_ns,
        };
        sent_ns + self.model.network_ns / 2
    }

    /// Gives the background task of a put that runs on core `origin` to the core that the policy
    /// names; returns what this costs here.
    fn derive(self: &Arc<Self>, origin: usize) -> u64 {
        if self.case.policy.is_none() {
            return 0;
        }
        let Model { background_ns, move_ns, .. } = self.model;
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let (monitor, scheduler, random) = &mut *choice;
        let mut spent_ns = 0;
        let update_ns = match self.case.update {
            Update::None => None,
            Update::Published => Some(self.model.published_update_ns),
            Update::Own => Some(self.model.own_update_ns),
        };
        if let Some(update_ns) = update_ns.filter(|_| monitor.count_request()) {
            spent_ns += update_ns;
            let window = monitor.update(now().ns(), |core| {
                let core = &self.cores[core];
                // SPDK's utilisation is that of all work; ours tells foreground work apart.
                let others = core.background_ns.load(Relaxed) * u64::from(!self.case.has_classes);
                (core.foreground_ns.load(Relaxed) + others, core.begun.load(Relaxed))
            });
            scheduler.observe(window);
        }
        let queued_ns = |core: usize| self.cores[core].queued_ns.load(Relaxed);
        let random = random.next().unwrap_or_default();
        let task = Task { origin, work_ns: background_ns };
        let core = scheduler.choose(task, queued_ns, random).core;
        drop(choice);
        self.cores[origin].owed.fetch_add(1, Relaxed);
        self.cores[core].queued_ns.fetch_add(background_ns, Relaxed);
        if core == origin {
            self.begin(core, origin, 0);
            return spent_ns;
        }
        let drive = Arc::clone(self);
        // The core is there for as long as the world.
        let _ = post(CoreId(core), Class::System, move || drive.begin(core, origin, move_ns / 2));
        spent_ns + move_ns / 2
    }

    /// Starts a background task on this core: whole and among hosts' work where classes do
    /// not count, else in steps that yield.
    fn begin(self: &Arc<Self>, core: usize, origin: usize, moved_ns: u64) {
        let drive = Arc::clone(self);
        let whole = !self.case.has_classes;
        let class = if whole { Class::Foreground } else { Class::Service };
        drop(spawn(class, async move {
            let here = &drive.cores[core];
            let mut left_ns = drive.model.background_ns + moved_ns;
            while left_ns > 0 {
                let step_ns = if whole { left_ns } else { left_ns.min(STEP_NS) };
                charge(step_ns);
                here.background_ns.fetch_add(step_ns, Relaxed);
                left_ns -= step_ns;
                yield_now().await;
            }
            here.queued_ns.fetch_sub(drive.model.background_ns, Relaxed);
            drive.cores[origin].owed.fetch_sub(1, Relaxed);
            drive.counts().background += 1;
        }));
    }
}

/// One client thread: a request after the other.
async fn requests(drive: Arc<Drive>, core: usize, client: usize, load: Load, seed: u64) {
    let model = drive.model;
    let mut random = numbers(seed ^ ((client as u64 + 1) << 20));
    let mut at_ns = now().ns();
    loop {
        let is_get = random.next().unwrap_or_default() % 100 < load.gets_percent.into();
        at_ns = load.next_ns(client, model.cores, at_ns);
        // The link is free for others until then.
        until(at_ns).await;
        let phase = load.phase(at_ns);
        let is_after_change = phase.is_some_and(|phase| drive.counts().sent(phase, model.window));
        until(drive.send((!is_get).then_some(Direction::ToDrive), at_ns)).await;
        let here = &drive.cores[core];
        here.begun.fetch_add(1, Relaxed);
        let began_ns = now().ns();
        let spent_ns = model.foreground_ns + if is_get { 0 } else { drive.derive(core) };
        charge(spent_ns);
        here.foreground_ns.fetch_add(spent_ns, Relaxed);
        let share = random.next().unwrap_or_default() >> 32;
        let medium_ns = model.medium_ns / 2 + ((model.medium_ns * share) >> 32);
        until(began_ns + spent_ns + medium_ns).await;
        while !is_get && here.owed.load(Relaxed) > model.owed_max {
            sleep(Duration::from_micros(5)).await;
        }
        let ended_ns = drive.send(is_get.then_some(Direction::ToHost), now().ns());
        let mut counts = drive.counts();
        counts.latencies.saturating_record(ended_ns - at_ns);
        if is_after_change {
            counts.after_change.saturating_record(ended_ns - at_ns);
        }
        counts.puts += u64::from(!is_get);
        drop(counts);
        at_ns = ended_ns;
    }
}

async fn until(at_ns: u64) {
    let wait_ns = at_ns.saturating_sub(now().ns());
    sleep_until(now() + Duration::from_nanos(wait_ns)).await;
}

#[allow(clippy::cast_precision_loss)] // times of a model are short
fn as_f64(ns: u64) -> f64 {
    ns as f64
}
