//! The compute lane: long computations beside the reactor, on a thread that runs only when nobody
//! else wants the CPU ([`compute`], [`compute_fn`]).
//!
//! Jobs of [`Class::System`] have a thread of their own at normal priority: short ones that may not
//! starve on a busy machine, such as a host's authentication.
//!
//! Never runs a job on the reactor's thread (but the simulation, which has no other). Invariants:
//! foreground jobs go before background ones, jobs of one class take turns step by step; a job is
//! dropped between steps once its future is; a panic ends its job and not the lane.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use crate::backend::os;
use crate::core::{Class, current};
use crate::oneshot::{Receiver, Sender, oneshot};

/// How far a step brought a job. `cost_ns` is the step's modelled cost: the simulation charges it
/// to its clock, real runs ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// There is more to do.
    More {
        /// Modelled cost of this step, ns.
        cost_ns: u64,
    },
    /// The job is done.
    Done {
        /// Modelled cost of this step, ns.
        cost_ns: u64,
        /// The job's result.
        output: T,
    },
}

/// A computation that goes step by step, so that it can be aborted, shared and simulated. A step
/// should take about a millisecond.
pub trait Job: Send + 'static {
    /// What it computes.
    type Output: Send + 'static;
    /// Does the next piece of work.
    fn step(&mut self) -> Progress<Self::Output>;
}

/// The job panicked, or no lane could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFailed;

impl fmt::Display for LaneFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the computation failed")
    }
}

impl std::error::Error for LaneFailed {}

/// Gives `job` to this core's compute lane.
///
/// # Panics
/// Outside a core.
pub fn compute<J: Job>(class: Class, job: J) -> Compute<J> {
    let (reply, result) = oneshot();
    let running = Running { job, reply: Some(reply), output: None };
    current().backend.compute(class, Box::new(running));
    Compute { result }
}

/// Gives a closure to this core's compute lane, as a job of one step of the given modelled cost.
///
/// # Panics
/// Outside a core.
pub fn compute_fn<T, F>(class: Class, cost_ns: u64, run: F) -> Compute<Single<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    compute(class, Single { run: Some(run), cost_ns })
}

/// The job of [`compute_fn`].
pub struct Single<F> {
    run: Option<F>,
    cost_ns: u64,
}

impl<T: Send + 'static, F: FnOnce() -> T + Send + 'static> Job for Single<F> {
    type Output = T;

    fn step(&mut self) -> Progress<T> {
        let run = self.run.take().expect("a job is not stepped after it is done");
        Progress::Done { cost_ns: self.cost_ns, output: run() }
    }
}

/// The result of a job; dropping it aborts the job before its next step.
#[must_use = "dropping it aborts the job"]
pub struct Compute<J: Job> {
    result: Receiver<J::Output>,
}

impl<J: Job> Future for Compute<J> {
    type Output = Result<J::Output, LaneFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(cx).map(|output| output.ok_or(LaneFailed))
    }
}

/// What a step of some job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    pub(crate) cost_ns: u64,
    pub(crate) more: bool,
}

/// A job whose type is forgotten.
pub(crate) trait LaneJob: Send {
    /// Does a step; never panics.
    fn step(&mut self) -> Stepped;
    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
    /// Delivers the output after the last step. Without it, or one, the waiter sees a failure.
    fn finish(self: Box<Self>);
}

struct Running<J: Job> {
    job: J,
    reply: Option<Sender<J::Output>>,
    output: Option<J::Output>,
}

impl<J: Job> LaneJob for Running<J> {
    fn step(&mut self) -> Stepped {
        // A job that panicked is never looked at again, so it need not be unwind-safe.
        match catch_unwind(AssertUnwindSafe(|| self.job.step())) {
            Ok(Progress::More { cost_ns }) => Stepped { cost_ns, more: true },
            Ok(Progress::Done { cost_ns, output }) => {
                self.output = Some(output);
                Stepped { cost_ns, more: false }
            }
            Err(_) => Stepped { cost_ns: 0, more: false },
        }
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(Sender::is_abandoned)
    }

    fn finish(mut self: Box<Self>) {
        if let (Some(reply), Some(output)) = (self.reply.take(), self.output.take()) {
            reply.send(output);
        }
    }
}

/// Jobs waiting for their next step. Also the simulation's queue.
#[derive(Default)]
pub(crate) struct LaneQueue {
    foreground: VecDeque<Box<dyn LaneJob>>,
    others: VecDeque<Box<dyn LaneJob>>,
}

impl LaneQueue {
    pub(crate) fn push(&mut self, class: Class, job: Box<dyn LaneJob>) {
        match class {
            Class::Foreground => self.foreground.push_back(job),
            Class::Background | Class::System => self.others.push_back(job),
        }
    }

    /// The job whose turn it is, and the class to give it back under.
    pub(crate) fn pop(&mut self) -> Option<(Class, Box<dyn LaneJob>)> {
        let foreground = self.foreground.pop_front().map(|job| (Class::Foreground, job));
        foreground.or_else(|| self.others.pop_front().map(|job| (Class::Background, job)))
    }
}

#[derive(Default)]
struct State {
    queue: LaneQueue,
    stopping: bool,
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    changed: Condvar,
    busy: AtomicBool,
    cpu_ns: AtomicU64,
}

impl Common {
    /// Steps run outside of the lock, so a poisoned one is still in order.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return;
            }
            let Some((class, job)) = state.queue.pop() else {
                self.busy.store(false, Relaxed);
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let unfinished = self.step(job);
            state = self.lock();
            if let Some(job) = unfinished {
                state.queue.push(class, job);
            }
        }
    }

    /// Does one step of a job; gives it back if there is more.
    fn step(&self, mut job: Box<dyn LaneJob>) -> Option<Box<dyn LaneJob>> {
        if job.is_abandoned() {
            drop_quietly(job);
            return None;
        }
        let stepped = job.step();
        self.cpu_ns.store(os::thread_cpu_ns(), Relaxed);
        if stepped.more {
            return Some(job);
        }
        let _delivered = catch_unwind(AssertUnwindSafe(|| job.finish()));
        None
    }
}

/// A job's destructor may panic; the lane lives on.
fn drop_quietly(job: Box<dyn LaneJob>) {
    let _dropped = catch_unwind(AssertUnwindSafe(|| drop(job)));
}

/// Lowers the thread; says once if the best way to was refused.
fn note_priority() {
    static ONCE: Once = Once::new();
    match os::lower_thread() {
        Ok(false) => {}
        Ok(true) => ONCE.call_once(|| {
            eprintln!("note: SCHED_IDLE was refused; the compute lane runs at nice 19");
        }),
        Err(error) => ONCE.call_once(|| {
            eprintln!("note: the compute lane runs at normal priority: {error}");
        }),
    }
}

/// A core's lane: its threads.
pub(crate) struct Lane {
    jobs: Worker,
    system: Worker,
}

impl Lane {
    /// `yields`: whether its thread is put below all others.
    pub(crate) fn new(core_name: &str, yields: bool) -> Self {
        Self {
            jobs: Worker::new(format!("{core_name}-lane"), yields),
            system: Worker::new(format!("{core_name}-sys"), false),
        }
    }

    pub(crate) fn submit(&self, class: Class, job: Box<dyn LaneJob>) {
        match class {
            Class::System => self.system.submit(class, job),
            Class::Foreground | Class::Background => self.jobs.submit(class, job),
        }
    }

    /// Whether it works, and the CPU time it has used, ns.
    pub(crate) fn load(&self) -> (bool, u64) {
        let (jobs, system) = (self.jobs.load(), self.system.load());
        (jobs.0 || system.0, jobs.1 + system.1)
    }
}

/// One thread; it starts with the first job. Dropping it waits for the step in progress.
struct Worker {
    name: String,
    yields: bool,
    common: Arc<Common>,
    thread: RefCell<Option<JoinHandle<()>>>,
}

impl Worker {
    fn new(name: String, yields: bool) -> Self {
        Self { name, yields, common: Arc::default(), thread: RefCell::default() }
    }

    fn submit(&self, class: Class, job: Box<dyn LaneJob>) {
        let mut thread = self.thread.borrow_mut();
        if thread.is_none() {
            let common = Arc::clone(&self.common);
            let builder = std::thread::Builder::new().name(self.name.clone());
            let yields = self.yields;
            let work = move || {
                if yields {
                    note_priority();
                }
                common.work();
            };
            match builder.spawn(work) {
                Ok(started) => *thread = Some(started),
                // Dropping the job tells its waiter.
                Err(_) => return,
            }
        }
        self.common.busy.store(true, Relaxed);
        self.common.lock().queue.push(class, job);
        self.common.changed.notify_one();
    }

    fn load(&self) -> (bool, u64) {
        (self.common.busy.load(Relaxed), self.common.cpu_ns.load(Relaxed))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.common.lock();
        state.stopping = true;
        let unfinished = std::mem::take(&mut state.queue);
        drop(state);
        self.common.changed.notify_one();
        drop(unfinished);
        if let Some(thread) = self.thread.get_mut().take() {
            let _ended = thread.join();
        }
    }
}
