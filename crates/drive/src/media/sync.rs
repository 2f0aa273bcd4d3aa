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

use super::Media;
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
        let result = inner.media.sync().await;
        inner.state().last_sync = now().since(began);
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
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Duration;

    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{Config, Instant, now, run as run_cores, sleep};

    use super::*;
    use crate::media::{FaultConfig, Faulty, Volatile, VolatileConfig};

    const SYNC: Duration = Duration::from_millis(1);
    const INSTANT: VolatileConfig = VolatileConfig { access_us: 0..1, sync_us: 0..1 };

    type Ended = (Instant, Result<(), MediaError>);

    /// Runs `work` with a syncer on a disk whose syncs take 1 ms, for at most 20 ms.
    fn on_a_disk<W: Future<Output = ()> + 'static>(
        faults: FaultConfig,
        work: impl FnOnce(Syncer) -> W + 'static,
    ) {
        let world = World::new(1, WorldConfig { cpu_ns_per_poll: 0, ..WorldConfig::default() });
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 1);
        let config = VolatileConfig { access_us: 0..1, sync_us: 1_000..1_001 };
        let faulty =
            Arc::new(Faulty::new(Media::Volatile(Arc::new(Volatile::new(4096, config))), 1));
        faulty.set(faults);
        let work = Cell::new(Some(work));
        world.start(machine, move |_| {
            let work = work.take().expect("it starts once");
            work(Syncer::new(Media::Faulty(Arc::clone(&faulty))))
        });
        world.run_until(|world| !world.is_running(machine), 20 * SYNC).expect("it ends");
    }

    /// Requests a sync at each of these times, in microseconds, and drops the first after half a
    /// sync. Returns the times at which the others were answered, in microseconds, and their
    /// results.
    fn asked_at(times_us: &[u64], faults: FaultConfig) -> Vec<(u64, Result<(), MediaError>)> {
        let ended: Rc<RefCell<Vec<Ended>>> = Rc::default();
        let (seen, times_us) = (Rc::clone(&ended), times_us.to_vec());
        on_a_disk(faults, |syncer| async move {
            let begin = |us: &u64| {
                let (syncer, seen, wait) =
                    (syncer.clone(), Rc::clone(&seen), Duration::from_micros(*us));
                spawn(Class::Foreground, async move {
                    sleep(wait).await;
                    let result = syncer.sync().await;
                    seen.borrow_mut().push((now(), result));
                })
            };
            let asked: Vec<_> = times_us.iter().map(begin).collect();
            sleep(SYNC / 2).await;
            asked[0].abort();
            sleep(4 * SYNC).await;
        });
        let ended = ended.borrow();
        ended.iter().map(|(at, result)| (at.us(), result.clone())).collect()
    }

    /// Begins and ends a write at each of these pairs of times, in microseconds, and then makes it
    /// durable. Returns the time at which each was durable, in microseconds.
    fn written_at(times_us: &[(u64, u64)]) -> Vec<u64> {
        let ended: Rc<RefCell<Vec<u64>>> = Rc::new(RefCell::new(vec![0; times_us.len()]));
        let (seen, times_us) = (Rc::clone(&ended), times_us.to_vec());
        on_a_disk(FaultConfig::default(), |syncer| async move {
            let begin = |(index, (begin, end)): (usize, &(u64, u64))| {
                let (syncer, seen) = (syncer.clone(), Rc::clone(&seen));
                let [begin, end] = [*begin, *end].map(Duration::from_micros);
                spawn(Class::Foreground, async move {
                    sleep(begin).await;
                    let write = syncer.begin_write();
                    sleep(end - begin).await;
                    write.sync().await.unwrap();
                    seen.borrow_mut()[index] = now().us();
                })
            };
            let writes: Vec<_> = times_us.iter().enumerate().map(begin).collect();
            for write in writes {
                write.await;
            }
        });
        ended.take()
    }

    #[test]
    fn a_sync_is_put_off_for_the_writes_that_are_under_way_and_for_no_later_ones() {
        // The second sync could begin at 1,200, when one write waits for it.
        let durable = written_at(&[(0, 200), (300, 900), (400, 1_500), (1_300, 5_000)]);
        assert_eq!(durable, [1_200, 2_500, 2_500, 6_000]);
    }

    #[test]
    fn a_sync_is_put_off_by_no_longer_than_the_last_one_took() {
        let durable = written_at(&[(0, 200), (300, 900), (400, 9_000)]);
        assert_eq!(durable, [1_200, 3_200, 10_000]);
    }

    #[test]
    fn a_write_that_fails_puts_no_sync_off() {
        let durable = Rc::new(Cell::new(0));
        let seen = Rc::clone(&durable);
        on_a_disk(FaultConfig::default(), |syncer| async move {
            syncer.sync().await.unwrap();
            drop(syncer.begin_write());
            syncer.begin_write().sync().await.unwrap();
            seen.set(now().us());
        });
        assert_eq!(durable.get(), 2_000);
    }

    #[test]
    fn a_sync_goes_on_without_who_asked_and_the_next_one_is_shared() {
        let ended = asked_at(&[0, 100, 600, 700, 999, 1_500], FaultConfig::default());
        // The first sync is over at 1,000, the second serves all but the last, the third that one.
        let expected = [2_000, 2_000, 2_000, 2_000, 3_000].map(|us| (us, Ok(())));
        assert_eq!(ended, expected);
    }

    #[test]
    fn a_failure_of_a_sync_that_nobody_waits_for_fails_those_who_wait_for_the_next() {
        let faults = FaultConfig {
            latency_us: 1_000..1_001,
            failed_syncs_ppm: 1_000_000,
            ..FaultConfig::default()
        };
        let ended = asked_at(&[0, 600, 1_500], faults);
        assert_eq!((ended.len(), ended[0].0), (2, 1_000));
        assert!(matches!(ended[0].1, Err(MediaError::Io(_))), "{ended:?}");
        assert_eq!(ended[1], (1_500, Err(MediaError::ReadOnly)));
    }

    /// The simulation runs all cores on one thread, so it never comes between two steps of a task.
    #[test]
    fn a_task_that_has_ended_fails_no_request_of_the_next_one() {
        let syncer = Syncer::new(Media::Volatile(Arc::new(Volatile::new(4096, INSTANT))));
        let (_first, is_first) = syncer.0.ask().unwrap();
        assert!(is_first);
        let mut running = Running::new(Arc::clone(&syncer.0));
        syncer.0.state().begun = 1;
        syncer.0.end(None);
        running.end_if_done();
        let (mut next, is_first) = syncer.0.ask().unwrap();
        assert!(running.has_ended && is_first, "another core starts the next task");
        drop(running);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(next.poll(&mut cx).is_pending());
        drop(Running::new(Arc::clone(&syncer.0)));
        assert!(
            matches!(next.poll(&mut cx), Poll::Ready(Err(MediaError::Io(_)))),
            "it was dropped"
        );
    }

    #[test]
    fn syncs_of_two_cores_in_parallel_all_succeed() {
        let config = Config { cores: 2, ..Config::default() };
        let syncer = Syncer::new(Media::Volatile(Arc::new(Volatile::new(4096, INSTANT))));
        let done = Arc::new(AtomicUsize::new(0));
        let syncs = move |_| {
            let (syncer, done) = (syncer.clone(), Arc::clone(&done));
            async move {
                for _ in 0..5_000 {
                    syncer.sync().await.unwrap();
                }
                // The other core's sync may run here, and ends with this core.
                done.fetch_add(1, SeqCst);
                while done.load(SeqCst) < 2 {
                    sleep(SYNC).await;
                }
            }
        };
        run_cores(&config, syncs).unwrap();
    }
}
