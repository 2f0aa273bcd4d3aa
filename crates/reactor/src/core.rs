//! A core: its tasks, timers and messages, and the functions that act on the current one
//! ([`spawn`], [`post`], [`call`], [`yield_now`]).
//!
//! This module does not wait and makes no system calls: the back end does, and the loop in
//! `runtime` (or the simulated world) decides when. Invariant: no borrow of a core's insides is
//! held while a task is polled or dropped, because both may call back into the core.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::Backend;
use crate::busy_times::{BusyTimes, Meter};
use crate::class::Class;
pub use crate::core_id::{CoreGone, CoreId};
use crate::current::{current, with_current};
use crate::instant::Instant;
use crate::mailbox::{Inbox, Message, Shared};
use crate::oneshot::oneshot;
use crate::ready::Ready;
use crate::task::{JoinHandle, LocalFuture, TaskKey, Tasks, joinable};
use crate::timer::Timers;

/// Returns the current core's number.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn core_id() -> CoreId {
    current().id
}

/// Returns the number of cores of the runtime (or the simulated machine).
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn core_count() -> usize {
    current().peers.len()
}

/// Returns the class of the task that runs, and [`Class::System`] outside of tasks.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn class() -> Class {
    current().polled.get()
}

/// Returns the name of this core's back end: `uring`, `epoll` or `sim`.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn backend_name() -> &'static str {
    current().backend.name()
}

/// Returns this core's counters.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn busy() -> BusyTimes {
    let core = current();
    let load = core.backend.compute_load();
    BusyTimes { compute_ns: load.cpu_ns, compute_boosts: load.boosts, ..core.meter.times.get() }
}

/// Starts a task on this core.
///
/// A panic in the task ends the core and the runtime.
///
/// # Panics
/// Outside a core.
pub fn spawn<F>(class: Class, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
{
    joinable(&current(), class, future)
}

/// Lets every other ready task of this core run once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Charges CPU time to the poll of the running task in the simulation, where a poll takes no time
/// of its own. Real runs measure, and so do nothing here. Outside a core it has no effect.
pub fn charge(cost_ns: u64) {
    with_current(|core| core.charged.set(core.charged.get().saturating_add(cost_ns)));
}

/// Runs `run` on another core, without an answer. Posts to one core arrive in order; those of one
/// turn of the loop travel together. A post to this core runs within its next turn.
///
/// # Errors
/// [`CoreGone`] if the core is known to be gone. An accepted post is dropped if the core ends
/// before it reads it.
pub fn post(
    core: CoreId,
    class: Class,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), CoreGone> {
    current().send(core, Message { class, run: Box::new(run) })
}

/// Runs a future on another core and awaits its answer here; on this core, runs it in place.
///
/// Dropping the call does not stop the work on the other core.
///
/// # Errors
/// [`CoreGone`] if the core is gone, or ends before it answers.
pub async fn call<F, Fut, T>(core: CoreId, class: Class, f: F) -> Result<T, CoreGone>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
    T: Send + 'static,
{
    if core == core_id() {
        return Ok(f().await);
    }
    let (answer, asked) = oneshot();
    let run = move || {
        let work = async move { answer.send(f().await) };
        current().spawn(class, Box::pin(work));
    };
    post(core, class, run)?;
    asked.await.ok_or(CoreGone)
}

/// Stores `value` as this core's local value of its type, where closures posted by other cores find
/// it with [`core_local`], until the core ends. Replaces an earlier value of the same type.
///
/// # Panics
/// Outside a core.
pub fn set_core_local<T: 'static>(value: Rc<T>) {
    let core = current();
    let mut locals = core.locals.borrow_mut();
    let id = TypeId::of::<T>();
    let replaced = match locals.iter_mut().find(|(known, _)| *known == id) {
        Some((_, slot)) => Some(std::mem::replace(slot, value as Rc<dyn Any>)),
        None => {
            locals.push((id, value));
            None
        }
    };
    drop(locals);
    drop(replaced);
}

/// Returns this core's local value of this type, if [`set_core_local`] stored one.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn core_local<T: 'static>() -> Option<Rc<T>> {
    let core = current();
    let locals = core.locals.borrow();
    let found = locals.iter().find(|(known, _)| *known == TypeId::of::<T>())?;
    Rc::clone(&found.1).downcast().ok()
}

/// Returns the time of day as milliseconds since 1970: from the operating system, or from 2026 on
/// in the simulation. It may jump; [`now`](crate::now) does not.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn unix_ms() -> u64 {
    current().backend.unix_ms()
}

/// Returns a random number: from the operating system, or from the world's seed in the simulation.
///
/// # Panics
/// Outside a core.
#[must_use]
pub fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Fills `bytes` from the source of [`random_u64`].
///
/// # Panics
/// Outside a core.
pub fn random_bytes(bytes: &mut [u8]) {
    current().backend.fill_random(bytes);
}

/// Completes when SIGINT, SIGTERM or SIGHUP (real runs) or the world (simulation) asked the process
/// to stop. Any number of tasks on any cores may wait, before and after.
///
/// In a real run the first call installs the handlers, for the whole process and for good; a second
/// signal of the same kind then kills the process as usual.
pub async fn stop_requested() {
    poll_fn(|cx| current().backend.poll_stop(cx.waker())).await;
}

pub(crate) struct Core {
    pub(crate) id: CoreId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) peers: Arc<[Arc<Shared>]>,
    pub(crate) backend: Rc<dyn Backend>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) meter: Meter,
    tasks: RefCell<Tasks>,
    pub(crate) ready: Ready,
    /// Time that the running task has charged; only the simulation reads it.
    pub(crate) charged: Cell<u64>,
    /// Messages of this turn, by the core they go to.
    outbox: RefCell<Vec<Vec<Message>>>,
    outbox_used: Cell<bool>,
    /// Class of the task that is being polled.
    polled: Cell<Class>,
    /// Buffer reused between turns.
    taken: RefCell<Inbox>,
    /// At most one value of each type; see [`set_core_local`].
    locals: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
}

impl Core {
    pub(crate) fn new(id: CoreId, peers: Arc<[Arc<Shared>]>, backend: Rc<dyn Backend>) -> Rc<Self> {
        Rc::new(Self {
            id,
            shared: Arc::clone(&peers[id.0]),
            outbox: RefCell::new(peers.iter().map(|_| Vec::new()).collect()),
            peers,
            backend,
            timers: RefCell::default(),
            meter: Meter::default(),
            tasks: RefCell::default(),
            ready: Ready::default(),
            charged: Cell::new(0),
            outbox_used: Cell::new(false),
            polled: Cell::new(Class::System),
            taken: RefCell::default(),
            locals: RefCell::default(),
        })
    }

    /// Stores a task and queues it. A closed core drops it.
    pub(crate) fn spawn(&self, class: Class, future: LocalFuture) -> TaskKey {
        let key = self.tasks.borrow_mut().insert(&self.shared, class, future);
        if self.shared.is_closed() {
            self.abort(key);
        } else {
            self.ready.push(key);
        }
        key
    }

    pub(crate) fn abort(&self, key: TaskKey) {
        let future = self.tasks.borrow_mut().remove(key);
        drop(future);
    }

    fn send(&self, to: CoreId, message: Message) -> Result<(), CoreGone> {
        let target = self.peers.get(to.0).ok_or(CoreGone)?;
        if target.is_closed() {
            return Err(CoreGone);
        }
        self.outbox.borrow_mut()[to.0].push(message);
        self.outbox_used.set(true);
        Ok(())
    }

    /// Polls the ready task at `position` of [`Ready`]'s order. `None` if the task had ended.
    pub(crate) fn poll_ready(&self, position: usize) -> Option<Class> {
        let key = self.ready.take(position)?;
        let (mut future, waker) = self.tasks.borrow_mut().begin(key)?;
        self.polled.set(key.class);
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        self.polled.set(Class::System);
        let ended = match polled {
            Poll::Ready(()) => {
                let left = self.tasks.borrow_mut().remove(key);
                debug_assert!(left.is_none(), "the future was out for its poll");
                Some(future)
            }
            Poll::Pending => self.tasks.borrow_mut().suspend(key, future),
        };
        drop(ended);
        Some(key.class)
    }

    /// Sends this turn's messages, with one lock and at most one wake-up call for each target.
    pub(crate) fn flush_messages(&self) {
        if !self.outbox_used.replace(false) {
            return;
        }
        for (to, target) in self.peers.iter().enumerate() {
            let mut messages = std::mem::take(&mut self.outbox.borrow_mut()[to]);
            if messages.is_empty() {
                continue;
            }
            target.deliver(&mut messages);
            // Destructors of refused messages may have posted more: keep what they wrote.
            let mut outbox = self.outbox.borrow_mut();
            if outbox[to].is_empty() {
                outbox[to] = messages;
            }
        }
    }

    /// Queues tasks that other threads woke, and runs messages; calls `after` with each message's
    /// class. Returns true if there was anything.
    pub(crate) fn read_messages(&self, mut after: impl FnMut(Class)) -> bool {
        let mut taken = std::mem::take(&mut *self.taken.borrow_mut());
        if !self.shared.take(&mut taken) {
            *self.taken.borrow_mut() = taken;
            return false;
        }
        taken.woken.drain(..).for_each(|key| self.ready.push(key));
        for message in taken.messages.drain(..) {
            (message.run)();
            after(message.class);
        }
        *self.taken.borrow_mut() = taken;
        true
    }

    /// Returns the time of the next timer; `u64::MAX` if there is none.
    pub(crate) fn next_timer_ns(&self) -> u64 {
        self.timers.borrow().next().map_or(u64::MAX, Instant::ns)
    }

    /// Wakes the waiters of all timers that are due.
    pub(crate) fn fire_timers(&self) {
        if self.timers.borrow().next().is_none() {
            return;
        }
        let now = self.backend.now();
        loop {
            let due = self.timers.borrow_mut().due(now);
            match due {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }

    /// Ends all tasks and refuses further messages. The caller must have entered the core, because
    /// destructors may use it.
    pub(crate) fn close(&self) {
        let unread = self.shared.close();
        drop(unread);
        loop {
            let futures = self.tasks.borrow_mut().drain();
            if futures.is_empty() {
                break;
            }
            drop(futures);
        }
        let locals = std::mem::take(&mut *self.locals.borrow_mut());
        drop(locals);
        let unsent: Vec<_> = self.outbox.borrow_mut().iter_mut().map(std::mem::take).collect();
        drop(unsent);
        self.ready.clear();
        self.timers.borrow_mut().clear();
    }
}
