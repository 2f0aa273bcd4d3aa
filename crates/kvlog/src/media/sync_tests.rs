//! When syncs begin, whom they answer, and that two cores may ask for them at once.

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
    let faulty = Arc::new(Faulty::new(Media::Volatile(Arc::new(Volatile::new(4096, config))), 1));
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
    assert!(matches!(next.poll(&mut cx), Poll::Ready(Err(MediaError::Io(_)))), "it was dropped");
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
