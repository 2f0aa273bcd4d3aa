//! [`Syncer`]: runs one sync at a time for all cores of a drive. Requests during a sync share the
//! next one.
//!
//! Linux reports a write that was lost on its way to the disk to one `fdatasync` of an open file
//! only. Of two that overlap, either may get the error, and the other succeeds. So no two overlap.
//!
//! A sync takes about as long for eight values as for one. So one begins only when the writes have
//! ended that were under way and need it as well, but is put off by no longer than the last sync
//! took ([`Syncer::begin_write`]).
//!
//! The lock is not held across an await. Invariants: at most one sync of the medium runs; a request
//! is answered by a sync that began after the request; after a failure every waiting and every
//! later request fails; a sync runs to its end even if its callers are gone.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use csd_reactor::{Class, now, spawn, timeout};

use super::presence::Presence;
use super::{Failure, Media, Operation};
use crate::error::MediaError;

/// Syncs of a medium. Clones are the same, usable from every core.
#[derive(Clone, Debug)]
pub struct Syncer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    media: Media,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    // Numbers of the last sync that was requested, has begun, has ended.
    wanted: u64,
    begun: u64,
    ended: u64,
    running: bool,
    failure: Option<MediaError>,
    // Waiting requests by ticket: the sync that each waits for, and its waker.
    waiting: BTreeMap<u64, (u64, Waker)>,
    tickets: u64,
    // Writes under way that need a sync: those that began before the last sync was put off or
    // began, and later ones, in turns.
    writes: [usize; 2],
    later: usize,
    // Task that puts a sync off, and how long it may do so.
    putting_off: Option<Waker>,
    last_sync: Duration,
    presence: Option<Presence>,
}

impl Syncer {
    /// Makes the only syncer of a medium.
    pub fn new(media: Media) -> Self {
        Self(Arc::new(Inner { media, state: Mutex::default() }))
    }

    /// The medium.
    pub fn media(&self) -> &Media {
        &self.0.media
    }

    /// Returns an error when a sync has failed: nothing more can become durable.
    ///
    /// # Errors
    /// [`MediaError::ReadOnly`].
    pub fn check(&self) -> Result<(), MediaError> {
        if self.0.state().failure.is_some() { Err(MediaError::ReadOnly) } else { Ok(()) }
    }

    /// Expects these bytes on the medium from now on: without them it is no longer the same.
    pub fn expect(&self, offset: u64, bytes: [u8; 16]) {
        self.0.state().presence = Some(Presence::new(offset, bytes));
    }

    /// Registers a write that its `sync` will make durable.
    pub fn begin_write(&self) -> Write<'_> {
        let mut state = self.0.state();
        let turn = state.later;
        state.writes[turn] += 1;
        Write { syncer: self, turn }
    }

    /// Waits until a sync that begins from now on has ended.
    ///
    /// # Errors
    /// The error of the medium, when a sync failed meanwhile; [`MediaError::ReadOnly`] when one had
    /// failed before.
    pub async fn sync(&self) -> Result<(), MediaError> {
        self.sync_after(None).await
    }

    async fn sync_after(&self, write: Option<Write<'_>>) -> Result<(), MediaError> {
        if self.0.media.is_volatile() {
            return Ok(());
        }
        let (mut asked, is_first) = self.0.ask()?;
        // Only after the request, so that the sync that was put off for this write answers it.
        drop(write);
        if is_first {
            drop(spawn(Class::Foreground, run(Running::new(Arc::clone(&self.0)))));
        }
        poll_fn(|cx| asked.poll(cx)).await
    }
}

/// A write under way that needs a sync. It may be dropped without one.
pub struct Write<'a> {
    syncer: &'a Syncer,
    turn: usize,
}

impl Write<'_> {
    /// Waits until a sync has ended that began after the write, which has ended.
    ///
    /// # Errors
    /// Those of [`Syncer::sync`].
    pub async fn sync(self) -> Result<(), MediaError> {
        self.syncer.sync_after(Some(self)).await
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let mut state = self.syncer.0.state();
        state.writes[self.turn] -= 1;
        let woken = if state.writes[self.turn] == 0 { state.putting_off.take() } else { None };
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Inner {
    /// Locks the state. No code that can panic runs under the lock, so a poisoned lock is in order.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the next sync. Returns true when the caller must start the task that runs syncs.
    fn ask(&self) -> Result<(Asked<'_>, bool), MediaError> {
        let mut state = self.state();
        if state.failure.is_some() {
            return Err(MediaError::ReadOnly);
        }
        state.tickets += 1;
        state.wanted = state.begun + 1;
        let asked = Asked { of: self, target: state.wanted, ticket: state.tickets };
        Ok((asked, !std::mem::replace(&mut state.running, true)))
    }

    /// Checks that what is durable now can be found again.
    async fn check_presence(&self) -> Result<(), MediaError> {
        let due = self.state().presence.as_mut().and_then(Presence::due);
        let mut result = self.media.check_presence();
        if let (Ok(()), Some(presence)) = (&result, due) {
            result = presence.check(&self.media).await;
        }
        if let Err(error) = &result {
            self.media.refuse_writes();
            let (operation, reason) = (Operation::Sync, error.to_string());
            self.media.failures().note(Failure { operation, offset: 0, bytes: 0, reason });
        }
        result
    }

    /// Ends a sync, and wakes the requests that it answers.
    fn end(&self, failure: Option<MediaError>) {
        let mut state = self.state();
        state.ended = state.begun;
        state.failure = failure;
        let (ended, failed) = (state.ended, state.failure.is_some());
        let mut woken = Vec::new();
        state.waiting.retain(|_, (target, waker)| {
            let waits = *target > ended && !failed;
            if !waits {
                woken.push(waker.clone());
            }
            waits
        });
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Waits until the writes have ended that are under way now.
async fn writes_ended(inner: &Inner) {
    let earlier = {
        let mut state = inner.state();
        let earlier = state.later;
        state.later = 1 - earlier;
        earlier
    };
    poll_fn(|cx| {
        let mut state = inner.state();
        if state.writes[earlier] == 0 {
            return Poll::Ready(());
        }
        state.putting_off = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

/// Runs syncs until every requested sync has begun.
async fn run(mut running: Running) {
    let inner = Arc::clone(&running.inner);
    while !running.has_ended {
        let most = inner.state().last_sync;
        let _ended = timeout(most, writes_ended(&inner)).await;
        inner.state().begun += 1;
        let began = now();
        let mut result = inner.media.sync().await;
        inner.state().last_sync = now().since(began);
        if result.is_ok() {
            result = inner.check_presence().await;
        }
        inner.end(result.err());
        running.end_if_done();
    }
}

/// A guard of the task that runs syncs. If it is dropped with its core, waiting requests fail,
/// because the result of the sync is unknown.
struct Running {
    inner: Arc<Inner>,
    has_ended: bool,
}

impl Running {
    fn new(inner: Arc<Inner>) -> Self {
        Self { inner, has_ended: false }
    }

    /// Ends the task if every requested sync has begun, or a sync has failed. Another core may
    /// start the next task at once, before this guard is dropped.
    fn end_if_done(&mut self) {
        let mut state = self.inner.state();
        self.has_ended = state.failure.is_some() || state.wanted == state.begun;
        state.running = !self.has_ended;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            self.inner.end(Some(MediaError::Io("the sync was given up".to_owned())));
        }
    }
}

/// A waiting request.
struct Asked<'a> {
    of: &'a Inner,
    target: u64,
    ticket: u64,
}

impl Asked<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), MediaError>> {
        let mut state = self.of.state();
        if state.ended >= self.target || state.failure.is_some() {
            return Poll::Ready(state.failure.clone().map_or(Ok(()), Err));
        }
        state.waiting.insert(self.ticket, (self.target, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.of.state().waiting.remove(&self.ticket);
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
