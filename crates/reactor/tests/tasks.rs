//! Tasks, time, messages, synchronisation and compute threads, on all back ends.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_reactor::{
    BackendKind, Class, ComputeFailed, CoreGone, CoreId, Job, Notify, Progress, Semaphore, busy,
    call, channel, compute, compute_fn, core_count, core_id, now, post, random_u64, sleep, spawn,
    timeout, yield_now,
};

everywhere! {
    join_and_abort: 1;
    dropping_a_handle_detaches: 1;
    timers_fire_in_order: 1;
    timeout_takes_the_earlier: 1;
    calls_cross_cores: 3;
    posts_keep_their_order: 2;
    a_finished_core_is_gone: 2;
    notify_one_is_kept_and_passed_on: 1;
    notify_all_reaches_everyone: 1;
    semaphore_is_fair: 1;
    channels_bound_and_close: 1;
    compute_gives_results: 1;
    compute_aborts_and_survives_a_panic: 1;
    compute_leaves_the_core_free: 1;
    random_numbers_differ: 1;
    busy_time_is_counted: 1;
}

/// Counts its drops.
struct Guard(Rc<Cell<u32>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

async fn join_and_abort(core: CoreId) {
    assert_eq!((core_id(), core_count()), (core, 1));
    let task = spawn(Class::Foreground, async {
        yield_now().await;
        42
    });
    assert!(!task.is_finished());
    assert_eq!(task.await, 42);

    let dropped = Rc::new(Cell::new(0));
    let guard = Guard(Rc::clone(&dropped));
    let task = spawn(Class::Execution, async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    yield_now().await;
    assert_eq!(dropped.get(), 0);
    task.abort();
    assert_eq!(dropped.get(), 1, "abort drops the future at once");
    assert!(task.is_finished());
    task.abort();
}

async fn dropping_a_handle_detaches(_core: CoreId) {
    let ran = Rc::new(Cell::new(false));
    let flag = Rc::clone(&ran);
    drop(spawn(Class::System, async move {
        yield_now().await;
        flag.set(true);
    }));
    while !ran.get() {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn timers_fire_in_order(_core: CoreId) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let began = now();
    let tasks: Vec<_> = [30_u64, 10, 20, 10]
        .into_iter()
        .enumerate()
        .map(|(index, ms)| {
            let order = Rc::clone(&order);
            spawn(Class::Foreground, async move {
                csd_reactor::sleep_until(began + Duration::from_millis(ms)).await;
                assert!(now().since(began) >= Duration::from_millis(ms));
                order.borrow_mut().push((ms, index));
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    let by_time: Vec<u64> = order.borrow().iter().map(|(ms, _)| *ms).collect();
    assert_eq!(by_time, [10, 10, 20, 30]);
}

async fn timeout_takes_the_earlier(_core: CoreId) {
    let long = Duration::from_secs(60);
    assert_eq!(timeout(long, async { 5 }).await, Ok(5));
    assert!(timeout(Duration::from_millis(3), sleep(long)).await.is_err());
    assert!(timeout(long, sleep(Duration::from_millis(3))).await.is_ok());
}

async fn calls_cross_cores(core: CoreId) {
    const CALLS: usize = 10_000 / 3;
    let next = CoreId((core.0 + 1) % core_count());
    let tasks: Vec<_> = (0..CALLS)
        .map(|number| {
            spawn(Class::Foreground, async move {
                let work = move || async move {
                    assert_eq!(core_id(), next);
                    if number % 7 == 0 {
                        yield_now().await;
                    }
                    number * 2
                };
                call(next, Class::Execution, work).await
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await, Ok(number * 2));
    }
    let here = call(core, Class::Foreground, || async { core_id() }).await;
    assert_eq!(here, Ok(core));
    // All cores stay until everyone has been served.
    thread_local! {
        // By core: a simulated machine has all of them on one thread.
        static SERVED: RefCell<[usize; 3]> = const { RefCell::new([0; 3]) };
    }
    for other in 0..core_count() {
        let note = move || SERVED.with(|served| served.borrow_mut()[other] += 1);
        post(CoreId(other), Class::System, note).expect("it waits for this");
    }
    while SERVED.with(|served| served.borrow()[core.0]) < core_count() {
        sleep(Duration::from_millis(1)).await;
    }
    SERVED.with(|served| served.borrow_mut()[core.0] = 0);
}

async fn posts_keep_their_order(core: CoreId) {
    thread_local! {
        static SEEN: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    const POSTS: u32 = 10_000;
    if core == CoreId(1) {
        return common::outlast(CoreId(0)).await;
    }
    SEEN.with(|seen| seen.borrow_mut().clear());
    let before = busy();
    for number in 0..POSTS {
        let note = move || SEEN.with(|seen| seen.borrow_mut().push(number));
        post(CoreId(1), Class::Foreground, note).expect("core 1 sleeps");
        if number % 100 == 0 {
            yield_now().await;
        }
    }
    let seen = call(CoreId(1), Class::System, || async { SEEN.with(|seen| seen.take()) }).await;
    assert!(seen.expect("core 1 lives").into_iter().eq(0..POSTS));
    assert!(busy().since(&before).polls >= u64::from(POSTS / 100));
}

async fn a_finished_core_is_gone(core: CoreId) {
    if core == CoreId(1) {
        return sleep(Duration::from_millis(5)).await;
    }
    let never = || std::future::pending::<()>();
    assert_eq!(call(CoreId(1), Class::Foreground, never).await, Err(CoreGone));
    while post(CoreId(1), Class::Foreground, || ()).is_ok() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(call(CoreId(1), Class::Foreground, || async {}).await, Err(CoreGone));
    assert_eq!(post(CoreId(2), Class::Foreground, || ()), Err(CoreGone));
}

async fn notify_one_is_kept_and_passed_on(_core: CoreId) {
    let notify = Rc::new(Notify::new());
    notify.notify_one();
    notify.notify_one();
    notify.notified().await;
    let short = Duration::from_millis(2);
    assert!(timeout(short, notify.notified()).await.is_err(), "only one is kept");

    let served = Rc::new(Cell::new(0));
    let waiter = || {
        let (notify, served) = (Rc::clone(&notify), Rc::clone(&served));
        async move {
            notify.notified().await;
            served.set(served.get() + 1);
        }
    };
    let first = spawn(Class::Foreground, waiter());
    sleep(short).await;
    let second = spawn(Class::Foreground, waiter());
    sleep(short).await;
    // The first is served but dies before it runs: the second takes its place.
    notify.notify_one();
    first.abort();
    second.await;
    assert_eq!(served.get(), 1);
}

async fn notify_all_reaches_everyone(_core: CoreId) {
    let notify = Rc::new(Notify::new());
    let made_before = notify.notified();
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let notify = Rc::clone(&notify);
            spawn(Class::Foreground, async move { notify.notified().await })
        })
        .collect();
    sleep(Duration::from_millis(2)).await;
    notify.notify_all();
    for task in tasks {
        task.await;
    }
    made_before.await;
    assert!(timeout(Duration::from_millis(2), notify.notified()).await.is_err());
}

async fn semaphore_is_fair(_core: CoreId) {
    let semaphore = Semaphore::new(4);
    let three = semaphore.acquire(3).await;
    let order = Rc::new(RefCell::new(Vec::new()));
    let waiter = |wants: usize| {
        let (semaphore, order) = (semaphore.clone(), Rc::clone(&order));
        spawn(Class::Foreground, async move {
            let permit = semaphore.acquire(wants).await;
            order.borrow_mut().push(permit.count());
        })
    };
    let large = waiter(4);
    sleep(Duration::from_millis(2)).await;
    let small = waiter(1);
    sleep(Duration::from_millis(2)).await;
    assert!(order.borrow().is_empty(), "the small request does not overtake the large one");
    assert!(semaphore.try_acquire(1).is_none());
    drop(three);
    large.await;
    small.await;
    assert_eq!(*order.borrow(), [4, 1]);
    let all = semaphore.acquire(4).await;
    let stuck = waiter(4);
    let behind = waiter(0);
    sleep(Duration::from_millis(2)).await;
    stuck.abort();
    behind.await;
    drop(all);
    assert_eq!(semaphore.available(), 4);
}

async fn channels_bound_and_close(_core: CoreId) {
    let (sender, mut receiver) = channel::bounded(3);
    let highest = Rc::new(Cell::new(0));
    let producers: Vec<_> = (0..4_u32)
        .map(|producer| {
            let sender = sender.clone();
            spawn(Class::Foreground, async move {
                for number in 0..500_u32 {
                    sender.send((producer, number)).await.expect("the receiver lives");
                }
            })
        })
        .collect();
    drop(sender);
    let mut expected = [0; 4];
    while let Some((producer, number)) = receiver.recv().await {
        assert_eq!(number, std::mem::replace(&mut expected[producer as usize], number + 1));
        highest.set(highest.get().max(receiver.len()));
    }
    assert_eq!(expected, [500; 4]);
    assert!(highest.get() <= 3);
    for producer in producers {
        producer.await;
    }
    let (sender, receiver) = channel::unbounded();
    sender.try_send(1).expect("room");
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.try_send(2), Err(channel::TrySendError::Closed(2)));
    assert_eq!(sender.send(3).await, Err(channel::SendError(3)));
}

/// Adds up numbers, one a step; counts its drops.
struct Sum {
    next: u64,
    end: u64,
    total: u64,
    dropped: Arc<AtomicUsize>,
}

impl Sum {
    fn to(end: u64, dropped: &Arc<AtomicUsize>) -> Self {
        Self { next: 0, end, total: 0, dropped: Arc::clone(dropped) }
    }
}

impl Job for Sum {
    type Output = u64;

    fn step(&mut self) -> Progress<u64> {
        if self.next == self.end {
            return Progress::Done { cost_ns: 1000, output: self.total };
        }
        self.total += self.next;
        self.next += 1;
        Progress::More { cost_ns: 1000 }
    }
}

impl Drop for Sum {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
    }
}

async fn compute_gives_results(_core: CoreId) {
    let dropped = Arc::default();
    let jobs: Vec<_> =
        (0..20).map(|end| compute(Class::Execution, Sum::to(end, &dropped))).collect();
    for (end, job) in (0..20_u64).zip(jobs) {
        assert_eq!(job.await, Ok(end * end.saturating_sub(1) / 2));
    }
    assert_eq!(compute_fn(Class::Foreground, 10, || "done").await, Ok("done"));
}

async fn compute_aborts_and_survives_a_panic(_core: CoreId) {
    let dropped = Arc::default();
    let endless = compute(Class::Execution, Sum::to(u64::MAX, &dropped));
    sleep(Duration::from_millis(5)).await;
    assert_eq!(dropped.load(SeqCst), 0);
    drop(endless);
    let failed = compute_fn(Class::Foreground, 0, || panic!("on purpose")).await;
    assert_eq!(failed, Err::<(), _>(ComputeFailed::Panicked));
    assert_eq!(compute_fn(Class::Execution, 0, || 6 * 7).await, Ok(42));
    while dropped.load(SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn compute_leaves_the_core_free(_core: CoreId) {
    let dropped = Arc::default();
    let endless = compute(Class::Execution, Sum::to(u64::MAX, &dropped));
    // A core that waited for the job would never come back.
    for _ in 0..100 {
        sleep(Duration::from_micros(200)).await;
    }
    // It runs when nobody else wants the CPU: on a busy machine, at last.
    while busy().compute_ns[Class::Execution as usize] == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    let times = busy();
    assert_eq!(times.all_compute_ns(), times.compute_ns[Class::Execution as usize]);
    drop(endless);
}

async fn random_numbers_differ(_core: CoreId) {
    let mut bytes = [0; 37];
    csd_reactor::random_bytes(&mut bytes);
    assert!(bytes[32..].iter().any(|byte| *byte != 0) || bytes[..32].iter().any(|b| *b != 0));
    assert_ne!(random_u64(), random_u64());
}

async fn busy_time_is_counted(_core: CoreId) {
    let before = busy();
    let task = spawn(Class::Execution, async {
        for _ in 0..100 {
            std::hint::black_box((0..20_000_u64).fold(0, |sum: u64, n| sum.wrapping_add(n * n)));
            yield_now().await;
        }
    });
    task.await;
    let spent = busy().since(&before);
    assert!(spent.execution_ns > 0, "{spent:?}");
    assert!(spent.polls >= 100 && spent.turns >= 100, "{spent:?}");
}

#[test]
fn short_jobs_of_the_system_pass_long_ones() {
    for backend in [BackendKind::Epoll, BackendKind::Auto] {
        let config = csd_reactor::Config { backend, ..csd_reactor::Config::default() };
        csd_reactor::block_on(&config, || async {
            let (end, ended) = std::sync::mpsc::channel();
            // One step that lasts until the other job has run.
            let long = compute_fn(Class::Foreground, 0, move || ended.recv().is_ok());
            assert_eq!(compute_fn(Class::System, 0, move || end.send(())).await, Ok(Ok(())));
            assert_eq!(long.await, Ok(true));
        })
        .unwrap();
    }
}
