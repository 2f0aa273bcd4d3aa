//! [`TaskPool`]: a connection's commands in flight, as futures that are polled in place.
//!
//! A slot that was used before holds the next future without allocating. Invariants: a slot is in
//! the ready list at most once; only slots whose waker fired are polled; a waker that outlives its
//! future costs at most one needless poll of the slot's next one.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Up to `capacity` futures of one type; see the module's text.
pub struct TaskPool<F: Future> {
    slots: Vec<Slot<F>>,
    vacant: Vec<usize>,
    capacity: usize,
    wakes: Arc<Wakes>,
}

struct Slot<F> {
    future: Pin<Box<Option<F>>>,
    wake: Arc<SlotWake>,
    waker: Waker,
}

/// Slots that are ready to be polled, and the waker of the pool's own poller.
struct Wakes(Mutex<Ready>);

struct Ready {
    slots: VecDeque<usize>,
    parent: Option<Waker>,
}

impl Wakes {
    /// Locks the list. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_parent(&self, waker: &Waker) {
        let mut ready = self.lock();
        match &mut ready.parent {
            Some(parent) => parent.clone_from(waker),
            None => ready.parent = Some(waker.clone()),
        }
    }
}

struct SlotWake {
    index: usize,
    queued: AtomicBool,
    wakes: Arc<Wakes>,
}

impl Wake for SlotWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, AcqRel) {
            return;
        }
        let mut ready = self.wakes.lock();
        ready.slots.push_back(self.index);
        let parent = ready.parent.clone();
        drop(ready);
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl<F: Future> TaskPool<F> {
    /// Returns a pool for at most `capacity` futures. Slots are allocated when they are first
    /// needed.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let ready = Ready { slots: VecDeque::with_capacity(capacity), parent: None };
        Self {
            slots: Vec::with_capacity(capacity),
            vacant: Vec::with_capacity(capacity),
            capacity,
            wakes: Arc::new(Wakes(Mutex::new(ready))),
        }
    }

    /// Returns the number of pending futures.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Returns true if no future is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the pool holds `capacity` futures.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Polls `future` at once; stores it if it is pending. Wakes `cx` when a stored one can go on.
    ///
    /// # Panics
    /// If the pool is full.
    pub fn push(&mut self, future: F, cx: &mut Context<'_>) -> Poll<F::Output> {
        assert!(!self.is_full(), "pushed into a full pool of {} tasks", self.capacity);
        self.wakes.set_parent(cx.waker());
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => self.add_slot(),
        };
        self.slots[index].future.as_mut().set(Some(future));
        self.poll_slot(index)
    }

    /// Polls futures whose wakers fired until one is done. Returns `Ready(None)` if the pool is
    /// empty.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        self.wakes.set_parent(cx.waker());
        // Those that wake themselves while they are polled wait for the next call.
        let fired = self.wakes.lock().slots.len();
        for _ in 0..fired {
            let Some(index) = self.wakes.lock().slots.pop_front() else { break };
            self.slots[index].wake.queued.swap(false, AcqRel);
            if self.slots[index].future.is_none() {
                continue;
            }
            if let Poll::Ready(output) = self.poll_slot(index) {
                // More may be ready: the caller polls again for the next output.
                return Poll::Ready(Some(output));
            }
        }
        if !self.wakes.lock().slots.is_empty() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Marks every future to be polled again.
    pub fn wake_all(&self) {
        self.slots.iter().filter(|slot| slot.future.is_some()).for_each(|slot| {
            slot.wake.wake_by_ref();
        });
    }

    /// Drops every future.
    pub fn clear(&mut self) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.future.is_some() {
                slot.future.as_mut().set(None);
                self.vacant.push(index);
            }
        }
    }

    fn add_slot(&mut self) -> usize {
        let index = self.slots.len();
        let wakes = Arc::clone(&self.wakes);
        let wake = Arc::new(SlotWake { index, queued: AtomicBool::new(false), wakes });
        let waker = Waker::from(Arc::clone(&wake));
        self.slots.push(Slot { future: Box::pin(None), wake, waker });
        index
    }

    fn poll_slot(&mut self, index: usize) -> Poll<F::Output> {
        let slot = &mut self.slots[index];
        let Some(future) = slot.future.as_mut().as_pin_mut() else { return Poll::Pending };
        let polled = future.poll(&mut Context::from_waker(&slot.waker));
        if polled.is_ready() {
            slot.future.as_mut().set(None);
            self.vacant.push(index);
        }
        polled
    }
}
