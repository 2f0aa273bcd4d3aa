//! Tasks: a slab of futures with generations, their wakers, and [`JoinHandle`].
//!
//! The core polls the futures. Invariants: a task is in its core's ready queue at most once; a
//! waker that outlives its task finds a newer generation and has no effect; a future is dropped on
//! the core that made it, outside any borrow of the slab.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::task::{Context, Poll, Wake, Waker};

use crate::class::Class;
use crate::core::Core;
use crate::current::wake_here;
use crate::mailbox::Shared;

pub(crate) type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Identifies a task for its lifetime, with its class; a stale key names no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    index: u32,
    generation: u32,
    pub(crate) class: Class,
}

/// Wakes one task, from any thread.
pub(crate) struct TaskWaker {
    shared: Arc<Shared>,
    key: TaskKey,
    queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, AcqRel) && !wake_here(&self.shared, self.key) {
            self.shared.wake_task(self.key);
        }
    }
}

struct Task {
    /// The future; absent while it is being polled.
    future: Option<LocalFuture>,
    wake: Arc<TaskWaker>,
    waker: Waker,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

/// All tasks of a core.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Tasks {
    /// Stores a task, already marked as queued; the caller puts its key in the ready queue.
    pub(crate) fn insert(
        &mut self,
        shared: &Arc<Shared>,
        class: Class,
        future: LocalFuture,
    ) -> TaskKey {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 tasks fit in memory")
        });
        let slot = &mut self.slots[index as usize];
        let key = TaskKey { index, generation: slot.generation, class };
        let wake =
            Arc::new(TaskWaker { shared: Arc::clone(shared), key, queued: AtomicBool::new(true) });
        let waker = Waker::from(Arc::clone(&wake));
        slot.task = Some(Task { future: Some(future), wake, waker });
        key
    }

    /// Takes a task's future out to poll it; a wake from now on queues the task again.
    pub(crate) fn begin(&mut self, key: TaskKey) -> Option<(LocalFuture, Waker)> {
        let task = self.live(key)?;
        task.wake.queued.swap(false, AcqRel);
        let future = task.future.take()?;
        Some((future, task.waker.clone()))
    }

    /// Puts a pending future back. Returns it if the task was aborted meanwhile.
    pub(crate) fn suspend(&mut self, key: TaskKey, future: LocalFuture) -> Option<LocalFuture> {
        match self.live(key) {
            Some(task) => {
                task.future = Some(future);
                None
            }
            None => Some(future),
        }
    }

    /// Ends a task. The caller drops the returned future after it has released the slab.
    #[must_use]
    pub(crate) fn remove(&mut self, key: TaskKey) -> Option<LocalFuture> {
        self.live(key)?;
        let slot = &mut self.slots[key.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(key.index);
        slot.task.take().and_then(|task| task.future)
    }

    /// Ends every task; returns their futures to be dropped.
    pub(crate) fn drain(&mut self) -> Vec<LocalFuture> {
        let mut futures = Vec::new();
        for (index, slot) in (0_u32..).zip(&mut self.slots) {
            if let Some(task) = slot.task.take() {
                slot.generation = slot.generation.wrapping_add(1);
                self.vacant.push(index);
                futures.extend(task.future);
            }
        }
        futures
    }

    fn live(&mut self, key: TaskKey) -> Option<&mut Task> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation == key.generation { slot.task.as_mut() } else { None }
    }
}

/// State that a task and its handle share.
struct Join<T> {
    value: Option<T>,
    waker: Option<Waker>,
    ended: bool,
}

/// Marks a task as ended when dropped, however the task ends.
struct Ending<T>(Rc<RefCell<Join<T>>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        let mut join = self.0.borrow_mut();
        join.ended = true;
        let waker = join.waker.take();
        drop(join);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Wraps `future` so that its output reaches a handle.
pub(crate) fn joinable<F>(core: &Rc<Core>, class: Class, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
{
    let join = Rc::new(RefCell::new(Join { value: None, waker: None, ended: false }));
    let ending = Ending(Rc::clone(&join));
    let key = core.spawn(
        class,
        Box::pin(async move {
            let ending = ending;
            let value = future.await;
            ending.0.borrow_mut().value = Some(value);
        }),
    );
    JoinHandle { core: Rc::downgrade(core), key, join }
}

/// A spawned task. Awaiting it gives the task's output; dropping it lets the task run on.
#[must_use = "dropping a handle detaches its task; use `drop` to say so"]
pub struct JoinHandle<T> {
    core: Weak<Core>,
    key: TaskKey,
    join: Rc<RefCell<Join<T>>>,
}

impl<T> JoinHandle<T> {
    /// Drops the task's future now, or as soon as its running poll returns. Has no effect on a task
    /// that has ended.
    pub fn abort(&self) {
        if let Some(core) = self.core.upgrade() {
            core.abort(self.key);
        }
    }

    /// Returns true if the task has returned or was aborted.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.join.borrow().ended
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    /// # Panics
    /// If the task was aborted or its output was taken.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut join = self.join.borrow_mut();
        if let Some(value) = join.value.take() {
            return Poll::Ready(value);
        }
        assert!(!join.ended, "awaited a task that was aborted or whose output was taken");
        match &mut join.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => join.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
