//! [`Epochs`]: the order of changes over all shards of a drive with a volatile cache.
//!
//! Shards write their logs independently, and a power cut may keep a later change of one shard and
//! lose an earlier one of another. Epochs make them durable together: group commit over several
//! logs by epochs, as in Silo (Tu et al., "Speedy transactions in multicore in-memory databases",
//! 2013).
//!
//! A group of records belongs to the epoch in which its write begins. An epoch is kept or lost as a
//! whole. Its changes are *outstanding* until their commands are answered. Invariants: an answer of
//! an epoch is held until no change of the one before is outstanding; an epoch ends only when no
//! change of the one before is outstanding, so at most two have outstanding changes.

use std::future::poll_fn;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::error::MediaError;
use crate::mark::{Mark, Position};
use crate::media::Syncer;

/// Number of counters of outstanding changes, by the epoch modulo this: more than the epochs that
/// can have some.
const COUNTERS: usize = 4;

/// Epochs of one drive, shared by its cores.
#[derive(Debug)]
pub struct Epochs {
    pub(crate) syncer: Syncer,
    pub(crate) uuid: [u8; 16],
    current: AtomicU64,
    outstanding: [AtomicU64; COUNTERS],
    // Bytes of groups that were written since the current epoch began.
    written: AtomicU64,
    // True while a timer will close an epoch.
    timed: AtomicBool,
    has_waiting: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    // Last epoch that is closed, and that is to be closed.
    closed: u64,
    wanted: u64,
    running: bool,
    // Last mark that is durable; `None` before the first.
    mark: Option<Mark>,
    failures: u64,
    failure: Option<MediaError>,
    waiting: Vec<Waker>,
}

impl Epochs {
    /// Makes the epochs of a drive whose last epoch is `closed`. `mark` is the mark on its medium,
    /// if that counts.
    pub fn new(syncer: Syncer, uuid: [u8; 16], closed: u64, mark: Option<Mark>) -> Self {
        let state = State {
            closed,
            wanted: closed,
            running: false,
            mark,
            failures: 0,
            failure: None,
            waiting: Vec::new(),
        };
        Self {
            syncer,
            uuid,
            current: AtomicU64::new(closed + 1),
            outstanding: Default::default(),
            written: AtomicU64::new(0),
            timed: AtomicBool::new(false),
            has_waiting: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Returns the current epoch.
    pub fn current(&self) -> u64 {
        self.current.load(SeqCst)
    }

    /// Enters the current epoch with so many changes, which are outstanding until what is returned
    /// is dropped.
    pub fn enter(self: &Arc<Self>, changes: usize) -> (u64, Vec<Outstanding>) {
        loop {
            let epoch = self.current();
            let enter = |_| {
                self.count(epoch).fetch_add(1, SeqCst);
                Outstanding { epochs: Arc::clone(self), epoch }
            };
            let entered: Vec<_> = (0..changes).map(enter).collect();
            // The count comes before the second look, and an epoch that ends is looked at in the
            // other order: at least one of the two sees the other.
            if self.current() == epoch {
                return (epoch, entered);
            }
        }
    }

    fn count(&self, epoch: u64) -> &AtomicU64 {
        &self.outstanding[usize::try_from(epoch % COUNTERS as u64).expect("few counters")]
    }

    /// Waits until no change of the epoch before this one is outstanding.
    pub async fn is_first(&self, epoch: u64) {
        let before = self.count(epoch - 1);
        self.until(|_| (before.load(SeqCst) == 0).then_some(())).await;
    }

    /// Ends the current epoch. Only the task that closes epochs calls this.
    pub(crate) fn end(&self, epoch: u64) {
        self.written.store(0, SeqCst);
        self.current.store(epoch + 1, SeqCst);
    }

    /// Counts bytes of a group, and returns those since the current epoch began.
    pub(crate) fn count_written(&self, bytes: u64) -> u64 {
        self.written.fetch_add(bytes, SeqCst) + bytes
    }

    /// Returns true if the caller must start the timer.
    pub(crate) fn begin_timer(&self) -> bool {
        !self.timed.swap(true, SeqCst)
    }

    /// Ends the timer.
    pub(crate) fn end_timer(&self) {
        self.timed.store(false, SeqCst);
    }

    /// Returns true if a shard's log is durable up to this position.
    pub(crate) fn has_closed(&self, shard: u32, position: &Position) -> bool {
        let mark = self.state().mark;
        mark.is_some_and(|mark| mark.positions[shard as usize].is_at(position))
    }

    /// Returns the last mark that is durable.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.state().mark
    }

    /// Requests that an epoch is closed. Returns true when the caller must start the task that
    /// closes epochs, and the number of failures so far.
    pub(crate) fn want(&self, epoch: u64) -> (bool, u64) {
        let mut state = self.state();
        if state.closed >= epoch {
            return (false, state.failures);
        }
        state.wanted = state.wanted.max(epoch);
        (!std::mem::replace(&mut state.running, true), state.failures)
    }

    /// Waits until an epoch is closed, or closing has failed more often than `failures` times.
    pub(crate) async fn closed(&self, epoch: u64, failures: u64) -> Result<(), MediaError> {
        self.until(|state| {
            if state.closed >= epoch {
                return Some(Ok(()));
            }
            let failure = state.failure.clone().filter(|_| state.failures > failures);
            failure.map(Err)
        })
        .await
    }

    /// Returns the epoch to close next; `None` when the task that closes epochs ends.
    pub(crate) fn next(&self) -> Option<u64> {
        let mut state = self.state();
        state.running = state.wanted > state.closed;
        state.running.then(|| self.current())
    }

    /// Notes that an epoch is closed by this mark, or that closing it failed.
    pub(crate) fn ended(&self, epoch: u64, result: Result<Mark, MediaError>) {
        let mut state = self.state();
        match result {
            Ok(mark) => (state.closed, state.mark) = (epoch, Some(mark)),
            Err(error) => {
                state.failures += 1;
                state.failure = Some(error);
                state.wanted = state.closed;
            }
        }
        self.wake(state);
    }

    /// Notes that the task that closes epochs is gone. Requests that wait fail.
    pub(crate) fn given_up(&self) {
        self.state().running = false;
        self.ended(0, Err(MediaError::Io("closing an epoch was given up".to_owned())));
    }

    /// Waits until `look` finds something. Whatever it looks at wakes it when it changes.
    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        poll_fn(|cx| {
            let mut state = self.state();
            // Set before the look: a change that leaves looks at it after it has left.
            self.has_waiting.store(true, SeqCst);
            match look(&state) {
                Some(found) => Poll::Ready(found),
                None => {
                    state.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        self.has_waiting.store(false, SeqCst);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Locks the state. No code that can panic runs under the lock, so a poisoned lock is in order.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change that is outstanding until this is dropped.
#[derive(Debug)]
pub struct Outstanding {
    epochs: Arc<Epochs>,
    epoch: u64,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        let was_last = self.epochs.count(self.epoch).fetch_sub(1, SeqCst) == 1;
        if was_last && self.epochs.has_waiting.load(SeqCst) {
            self.epochs.wake(self.epochs.state());
        }
    }
}

/// The place of a change in the order of answers. It is held until the command is answered. Without
/// a volatile cache every change may be answered at once.
#[derive(Debug, Default)]
pub struct Turn(pub(crate) Option<Outstanding>);

impl Turn {
    /// Waits until the change may be answered.
    pub async fn comes(&self) {
        if let Some(Outstanding { epochs, epoch }) = &self.0 {
            epochs.is_first(*epoch).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;
    use crate::media::{Media, Memory};

    #[test]
    fn answers_of_an_epoch_wait_for_those_of_the_one_before_and_for_no_others() {
        let syncer = Syncer::new(Media::Memory(Arc::new(Memory::new(4096))));
        let epochs = Arc::new(Epochs::new(syncer, [1; 16], 3, None));
        let (first, mut before) = epochs.enter(2);
        assert_eq!(first, 4);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(epochs.is_first(4)).poll(&mut cx).is_ready());
        epochs.end(4);
        let (_, mut held) = epochs.enter(1);
        let turn = Turn(held.pop());
        let mut waits = pin!(turn.comes());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        drop(before.pop());
        assert!(waits.as_mut().poll(&mut cx).is_pending(), "one is still outstanding");
        before.clear();
        epochs.end(5);
        let _later = epochs.enter(1);
        assert!(waits.as_mut().poll(&mut cx).is_ready(), "a later epoch's do not count");
        assert!(pin!(Turn::default().comes()).poll(&mut cx).is_ready());
    }
}
