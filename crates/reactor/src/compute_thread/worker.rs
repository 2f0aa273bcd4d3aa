//! A core's compute threads: [`ComputeThreads`].
//!
//! Invariants: a yielding worker may have two threads, of low and of normal priority;
//! [`State::boosted`] selects the one that takes jobs, so one thread at a time steps a job; a panic
//! ends its job and not the thread.

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
    /// Number of jobs, queued or being stepped.
    jobs: usize,
    stopping: bool,
    /// True while the thread of normal priority takes the jobs of a yielding worker.
    boosted: bool,
    /// Start of the current span with work.
    work_since: Option<Instant>,
    /// Total time with work before that span.
    worked: Duration,
}

impl State {
    fn end_job(&mut self) {
        self.jobs -= 1;
        if self.jobs == 0 {
            let since = self.work_since.take();
            self.worked += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    /// Condition of each thread: low or only one, normal; indexed by [`State::boosted`].
    changed: [Condvar; 2],
    busy: AtomicBool,
    cpu_ns: [AtomicU64; Class::COUNT],
    /// Thread id of the low-priority thread; 0 before it runs.
    low_id: AtomicU64,
}

impl Common {
    /// Locks the state. Steps run outside the lock, so a poisoned one is still consistent.
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
            let unfinished = self.step(class, job);
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

    /// Does one step of a job; returns the job if there is more to do.
    fn step(&self, class: Class, mut job: Box<dyn ErasedJob>) -> Option<Box<dyn ErasedJob>> {
        if job.is_abandoned() {
            drop_quietly(job);
            return None;
        }
        let before_ns = thread::thread_cpu_ns();
        let stepped = job.step();
        let spent_ns = thread::thread_cpu_ns() - before_ns;
        self.cpu_ns[class as usize].fetch_add(spent_ns, Relaxed);
        job.ran(spent_ns);
        if stepped.more {
            return Some(job);
        }
        let _delivered = catch_unwind(AssertUnwindSafe(|| job.finish()));
        None
    }
}

/// Drops a job; its destructor may panic without ending the thread.
fn drop_quietly(job: Box<dyn ErasedJob>) {
    let _dropped = catch_unwind(AssertUnwindSafe(|| drop(job)));
}

/// Lowers the thread's priority; prints one note if `SCHED_IDLE` was refused.
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

/// Writes a note to standard error from a thread of its own: a blocked reader must not stop the
/// compute thread.
fn say(note: String) {
    let _unsaid = std::thread::Builder::new().spawn(move || eprintln!("note: {note}"));
}

/// A core's compute threads.
pub(crate) struct ComputeThreads {
    jobs: Worker,
    long: Worker,
    system: Worker,
}

impl ComputeThreads {
    /// Makes the threads of the calling core. `yields`: true if they run at the lowest priority.
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
            Class::Foreground | Class::Tunnel | Class::Execution | Class::Service => {
                self.jobs.submit(class, job);
            }
        }
    }

    pub(crate) fn submit_long(&self, job: Box<dyn ErasedJob>) {
        self.long.submit(Class::Execution, job);
    }

    pub(crate) fn load(&self) -> ComputeLoad {
        let all = [&self.jobs, &self.long, &self.system];
        ComputeLoad {
            works: all.iter().any(|worker| worker.works()),
            cpu_ns: std::array::from_fn(|class| {
                all.iter().map(|worker| worker.common.cpu_ns[class].load(Relaxed)).sum()
            }),
            boosts: all.iter().map(|worker| worker.boosts.get()).sum(),
        }
    }

    /// Takes a starvation sample if one is due. Called by the core's own thread, which has spent
    /// `foreground_ns` on foreground tasks; returns the time until the next call is due, ns.
    pub(crate) fn watch(&self, now_ns: u64, foreground_ns: u64) -> Option<u64> {
        let waits = [&self.jobs, &self.long].map(|worker| worker.watch(now_ns, foreground_ns));
        waits.into_iter().flatten().min()
    }
}

/// One thread, or one at each priority; each starts when it is first needed. Dropping the worker
/// waits for the step in progress.
struct Worker {
    name: String,
    yields: bool,
    common: Arc<Common>,
    normal: RefCell<Option<JoinHandle<()>>>,
    low: RefCell<Option<JoinHandle<()>>>,
    guard: RefCell<StarvationGuard>,
    sampled_ns: Cell<u64>,
    boosts: Cell<u64>,
    /// `[wall_ns, thread_cpu_ns, foreground_ns]` at the last sample; see [`Worker::foreground`].
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
        if !self.start(!self.yields) {
            return job.refuse();
        }
        let mut state = self.common.lock();
        self.common.busy.store(true, Relaxed);
        state.queue.push(class, job);
        state.jobs += 1;
        state.work_since.get_or_insert_with(Instant::now);
        self.common.changed[usize::from(state.boosted)].notify_one();
    }

    /// Starts the thread of normal or low priority; returns true if it runs.
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
        let (wanted, was_boosted) = {
            let state = self.common.lock();
            let now = state.work_since.map_or(Duration::ZERO, |since| since.elapsed());
            (state.worked + now, state.boosted)
        };
        let reading = Reading {
            now_ns,
            wanted_ns: nanos(wanted),
            compute_ns: self.thread_ns(),
            foreground_ns: self.foreground(foreground_ns),
        };
        let boosted = self.guard.borrow_mut().sample(reading);
        if boosted != was_boosted {
            self.set_boosted(boosted);
        }
        Some(SAMPLE_NS)
    }

    /// Returns the CPU time of both threads, the step in progress included, ns.
    fn thread_ns(&self) -> u64 {
        let of = |slot: &RefCell<Option<JoinHandle<()>>>| {
            slot.borrow().as_ref().map_or(0, thread::thread_cpu_ns_of)
        };
        of(&self.normal) + of(&self.low)
    }

    /// Returns the total time of foreground work, ns. The core's clock over-counts while others
    /// hold the CPU, and its thread's CPU time over-counts other work, so each interval adds the
    /// smaller increment of the two.
    fn foreground(&self, clock_ns: u64) -> u64 {
        let thread_ns = thread::thread_cpu_ns();
        let [last_clock_ns, last_thread_ns, sum_ns] = self.foreground.get();
        let lesser_ns = (clock_ns - last_clock_ns).min(thread_ns - last_thread_ns);
        self.foreground.set([clock_ns, thread_ns, sum_ns + lesser_ns]);
        sum_ns + lesser_ns
    }

    /// Hands the jobs to the thread of the other priority.
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
