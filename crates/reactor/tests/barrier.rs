//! Barriers between cores, on all back ends.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_reactor::sync::{Barrier, Broken};
use csd_reactor::{Class, CoreId, call, core_count, sleep, spawn};

use common::outlast;

everywhere! {
    a_barrier_holds_cores_until_all_arrive: 3;
    a_broken_barrier_holds_no_core: 3;
}

async fn a_barrier_holds_cores_until_all_arrive(core: CoreId) {
    if core.0 > 0 {
        return outlast(CoreId(0)).await;
    }
    const ROUNDS: usize = 200;
    let shared = Arc::new((Barrier::new(core_count()), AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..core_count())
        .map(|other| {
            let shared = Arc::clone(&shared);
            let work = move || async move {
                let (barrier, arrived) = &*shared;
                for round in 1..=ROUNDS {
                    arrived.fetch_add(1, SeqCst);
                    barrier.wait().await.expect("it is whole");
                    assert_eq!(arrived.load(SeqCst), round * core_count());
                    barrier.wait().await.expect("it is whole");
                }
            };
            spawn(Class::Foreground, call(CoreId(other), Class::Foreground, work))
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await, Ok(()));
    }
}

async fn a_broken_barrier_holds_no_core(core: CoreId) {
    if core.0 > 0 {
        return outlast(CoreId(0)).await;
    }
    let barrier = Arc::new(Barrier::new(core_count()));
    let waits = |other: usize| {
        let barrier = Arc::clone(&barrier);
        let wait = move || async move { barrier.wait().await };
        spawn(Class::Foreground, call(CoreId(other), Class::Foreground, wait))
    };
    let (one, other) = (waits(0), waits(1));
    sleep(Duration::from_millis(5)).await;
    assert!(!one.is_finished() && !other.is_finished() && !barrier.is_broken());
    barrier.break_up();
    assert_eq!((one.await, other.await), (Ok(Err(Broken)), Ok(Err(Broken))));
    assert_eq!((barrier.wait().await, barrier.is_broken()), (Err(Broken), true));
}
