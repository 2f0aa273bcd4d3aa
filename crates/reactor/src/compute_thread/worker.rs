//! A core's lane on real threads: [`ComputeThreads`].
//!
//! Invariants: of the two threads that a yielding worker may have, the one whose turn it is by
//! [`State::boosted`] takes jobs, so one job is stepped by one thread at a time; a panic ends its
//! job and not the lane.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::starvation::{Reading, SAMPLE_NS, StarvationGuard};
use super::{ComputeLoad, ErasedJob, JobQueue};
use crate::backend::thread;
use crate::class::Class;
use crate::instant::nanos;

#[derive(Default)]
struct State {
    queue: JobQueue,
    /// Those in the queue and those that are being stepped.
    jobs: usize,
    stopping: bool,
    /// The thread of normal priority takes the jobs of one that yields.
    boosted: bool,
    /// When it was given work, having had none.
    asked_since: Option<Instant>,
    /// How long it had work before that.
    asked: Duration,
}

impl State {
    fn end_job(&mut self) {
        self.jobs -= 1;
        if self.jobs == 0 {
            let since = self.asked_since.take();
            self.asked += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    /// What the thread waits for whose turn it is, by [`State::boosted`].
    changed: [Condvar; 2],
    busy: AtomicBool,
    cpu_ns: AtomicU64,
    /// Thread id of the one that yields; 0 before it runs.
    low_id: AtomicU64,
}

impl Common {
    /// Steps run outside of the lock, so a poisoned one is still in order.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps jobs while it is this thread's turn, until the worker stops.
    fn work(&self, boosted: bool) {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let next = if state.boosted == boosted { state.queue.pop() } else { None };
            let Some((class, job)) = next else {
                let changed = &self.changed[usize::from(boosted)];
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let unfinished = self.step(job);
            state = self.lock();
            let Some(job) = unfinished else {
                state.end_job();
                self.busy.store(state.jobs > 0, Relaxed);
                continue;
            };
            state.queue.push(class, job);
            if state.boosted != boosted {
                self.changed[usize::from(!boosted)].notify_one();
            }
        }
    }

    /// Does one step of a job; gives it back if there is more.
    fn step(&self, mut job: Box<dyn ErasedJob>) -> Option<Box<dyn ErasedJob>> {
        if job.is_abandoned() {
            drop_quietly(job);
            return None;
        }
        let before_ns = thread::thread_cpu_ns();
        let stepped = job.step();
        let spent_ns = thread::thread_cpu_ns() - before_ns;
        self.cpu_ns.fetch_add(spent_ns, Relaxed);
        job.ran(spent_ns);
        if stepped.more {
            return Some(job);
        }
        let _delivered = catch_unwind(AssertUnwindSafe(|| job.finish()));
        None
    }
}

/// A job's destructor may panic; the lane lives on.
fn drop_quietly(job: Box<dyn ErasedJob>) {
    let _dropped = catch_unwind(AssertUnwindSafe(|| drop(job)));
}

/// Lowers the thread; says once if the best way to was refused.
fn note_priority() {
    static ONCE: Once = Once::new();
    match thread::lower_thread(0) {
        Ok(false) => {}
        Ok(true) => ONCE.call_once(|| {
            say("SCHED_IDLE was refused; compute threads run at nice 19".to_owned());
        }),
        Err(error) => ONCE.call_once(|| {
            say(format!("compute threads run at normal priority: {error}"));
        }),
    }
}

/// Writes a note to standard error from a thread of its own, which a reader who is not there may
/// block; the lane it must not.
fn say(note: String) {
    let _unsaid = std::thread::Builder::new().spawn(move || eprintln!("note: {note}"));
}

/// A core's lane: its threads.
pub(crate) struct ComputeThreads {
    jobs: Worker,
    long: Worker,
    system: Worker,
}

impl ComputeThreads {
    /// For the calling core. `yields`: whether its thread is put below all others.
    pub(crate) fn new(core_name: &str, yields: bool) -> Self {
        Self {
            jobs: Worker::new(format!("{core_name}-comp"), yields),
            long: Worker::new(format!("{core_name}-long"), yields),
            system: Worker::new(format!("{core_name}-sys"), false),
        }
    }

    pub(crate) fn submit(&self, class: Class, job: Box<dyn ErasedJob>) {
        match class {
            Class::System => self.system.submit(class, job),
            Class::Foreground | Class::Background => self.jobs.submit(class, job),
        }
    }

    pub(crate) fn submit_long(&self, job: Box<dyn ErasedJob>) {
        self.long.submit(Class::Background, job);
    }

    pub(crate) fn load(&self) -> ComputeLoad {
        let all = [&self.jobs, &self.long, &self.system];
        ComputeLoad {
            works: all.iter().any(|worker| worker.works()),
            cpu_ns: all.iter().map(|worker| worker.cpu_ns()).sum(),
            boosts: all.iter().map(|worker| worker.boosts.get()).sum(),
        }
    }

    /// Sees to it that the lane does not starve. Called by the core's own thread, which has worked
    /// for its hosts for `foreground_ns`; gives the time until the next call is needed, ns.
    pub(crate) fn watch(&self, now_ns: u64, foreground_ns: u64) -> Option<u64> {
        let looks = [&self.jobs, &self.long].map(|worker| worker.watch(now_ns, foreground_ns));
        looks.into_iter().flatten().min()
    }
}

/// One thread, or one at each priority; they start when they are first needed. Dropping it waits
/// for the step in progress.
struct Worker {
    name: String,
    yields: bool,
    common: Arc<Common>,
    normal: RefCell<Option<JoinHandle<()>>>,
    low: RefCell<Option<JoinHandle<()>>>,
    guard: RefCell<StarvationGuard>,
    sampled_ns: Cell<u64>,
    boosts: Cell<u64>,
    /// Of the hosts' work, on the core's clock and on its thread's, at the last look; and their
    /// lesser so far.
    foreground: Cell<[u64; 3]>,
}

impl Worker {
    fn new(name: String, yields: bool) -> Self {
        Self {
            name,
            yields,
            common: Arc::default(),
            normal: RefCell::default(),
            low: RefCell::default(),
            guard: RefCell::default(),
            sampled_ns: Cell::default(),
            boosts: Cell::default(),
            foreground: Cell::default(),
        }
    }

    fn submit(&self, class: Class, job: Box<dyn ErasedJob>) {
        // Dropping the job tells its waiter.
        if !self.start(!self.yields) {
            return;
        }
        let mut state = self.common.lock();
        self.common.busy.store(true, Relaxed);
        state.queue.push(class, job);
        state.jobs += 1;
        state.asked_since.get_or_insert_with(Instant::now);
        self.common.changed[usize::from(state.boosted)].notify_one();
    }

    /// Starts the thread of normal or low priority; whether there is one.
    fn start(&self, normal: bool) -> bool {
        let mut slot = if normal { &self.normal } else { &self.low }.borrow_mut();
        if slot.is_some() {
            return true;
        }
        let (common, yields) = (Arc::clone(&self.common), self.yields);
        let work = move || {
            if !normal {
                common.low_id.store(thread::thread_id().into(), Relaxed);
                note_priority();
            }
            common.work(normal && yields);
        };
        let suffix = if normal && yields { "-up" } else { "" };
        let builder = std::thread::Builder::new().name(format!("{}{suffix}", self.name));
        *slot = builder.spawn(work).ok();
        slot.is_some()
    }

    fn watch(&self, now_ns: u64, foreground_ns: u64) -> Option<u64> {
        if !self.yields || !self.works() {
            return None;
        }
        let passed_ns = now_ns.saturating_sub(self.sampled_ns.get());
        if passed_ns < SAMPLE_NS {
            return Some(SAMPLE_NS - passed_ns);
        }
        self.sampled_ns.set(now_ns);
        let (asked, was_lifted) = {
            let state = self.common.lock();
            let now = state.asked_since.map_or(Duration::ZERO, |since| since.elapsed());
            (state.asked + now, state.boosted)
        };
        let reading = Reading {
            now_ns,
            wanted_ns: nanos(asked),
            compute_ns: self.thread_ns(),
            foreground_ns: self.foreground(foreground_ns),
        };
        let boosted = self.guard.borrow_mut().sample(reading);
        if boosted != was_lifted {
            self.set_boosted(boosted);
        }
        Some(SAMPLE_NS)
    }

    /// CPU time of the threads, the step in progress included.
    fn thread_ns(&self) -> u64 {
        let of = |slot: &RefCell<Option<JoinHandle<()>>>| {
            slot.borrow().as_ref().map_or(0, thread::thread_cpu_ns_of)
        };
        of(&self.normal) + of(&self.low)
    }

    /// Time that the core worked for its hosts. Its clock counts time for which others had the
    /// CPU, its thread's counts work for others than hosts: of each span, the lesser counts.
    fn foreground(&self, clock_ns: u64) -> u64 {
        let thread_ns = thread::thread_cpu_ns();
        let [last_clock_ns, last_thread_ns, sum_ns] = self.foreground.get();
        let lesser_ns = (clock_ns - last_clock_ns).min(thread_ns - last_thread_ns);
        self.foreground.set([clock_ns, thread_ns, sum_ns + lesser_ns]);
        sum_ns + lesser_ns
    }

    /// Hands the jobs to the other thread.
    fn set_boosted(&self, boosted: bool) {
        if boosted && !self.start(true) {
            return;
        }
        self.common.lock().boosted = boosted;
        self.common.changed[usize::from(boosted)].notify_one();
        // So that the step in progress ends soon; only the privileged may.
        let low = self.common.low_id.load(Relaxed);
        if let Ok(low) = i32::try_from(low)
            && low > 0
        {
            let _moved = if boosted {
                thread::raise_thread(low)
            } else {
                thread::lower_thread(low).map(drop)
            };
        }
        self.boosts.set(self.boosts.get() + u64::from(boosted));
    }

    fn works(&self) -> bool {
        self.common.busy.load(Relaxed)
    }

    fn cpu_ns(&self) -> u64 {
        self.common.cpu_ns.load(Relaxed)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.common.lock();
        state.stopping = true;
        let unfinished = std::mem::take(&mut state.queue);
        drop(state);
        self.common.changed.iter().for_each(Condvar::notify_one);
        drop(unfinished);
        for slot in [&mut self.normal, &mut self.low] {
            if let Some(thread) = slot.get_mut().take() {
                let _ended = thread.join();
            }
        }
    }
}
