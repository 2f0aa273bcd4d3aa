//! [`TaskPool`]: order, wakers, and that a warm pool does not allocate.
#![allow(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use csd_reactor::TaskPool;
use proptest::prelude::*;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _gone = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Gates that a test opens one by one.
struct Gates {
    open: Vec<Cell<bool>>,
    wakers: RefCell<Vec<Option<Waker>>>,
    polls: Cell<usize>,
}

impl Gates {
    fn new(count: usize) -> Rc<Self> {
        let open = vec![Cell::new(false); count];
        Rc::new(Self { open, wakers: RefCell::new(vec![None; count]), polls: Cell::new(0) })
    }

    fn open(&self, index: usize) {
        self.open[index].set(true);
        if let Some(waker) = self.wakers.borrow_mut()[index].take() {
            waker.wake();
        }
    }
}

/// Passes its gate's index on once the gate is open.
struct Pass(Rc<Gates>, usize);

impl Future for Pass {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let (gates, index) = (&self.0, self.1);
        gates.polls.set(gates.polls.get() + 1);
        if gates.open[index].get() {
            return Poll::Ready(index);
        }
        gates.wakers.borrow_mut()[index] = Some(cx.waker().clone());
        Poll::Pending
    }
}

proptest! {
    #[test]
    fn outputs_come_as_gates_open(order in Just((0..24).collect::<Vec<usize>>()).prop_shuffle()) {
        let gates = Gates::new(24);
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let mut pool = TaskPool::new(24);
        for index in 0..24 {
            prop_assert!(pool.push(Pass(Rc::clone(&gates), index), &mut cx).is_pending());
        }
        prop_assert!(pool.is_full());
        prop_assert_eq!(gates.polls.get(), 24);
        for index in order {
            prop_assert_eq!(pool.poll_next(&mut cx), Poll::Pending);
            let before = count.0.load(SeqCst);
            gates.open(index);
            prop_assert_eq!(count.0.load(SeqCst), before + 1, "the parent is woken once");
            prop_assert_eq!(pool.poll_next(&mut cx), Poll::Ready(Some(index)));
        }
        prop_assert_eq!(gates.polls.get(), 48, "only those that were woken are polled again");
        prop_assert_eq!(pool.poll_next(&mut cx), Poll::Ready(None));
    }
}

#[test]
fn a_late_waker_does_no_harm() {
    let gates = Gates::new(2);
    let mut cx = Context::from_waker(Waker::noop());
    let mut pool = TaskPool::new(1);
    assert!(pool.push(Pass(Rc::clone(&gates), 0), &mut cx).is_pending());
    let late = gates.wakers.borrow()[0].clone().expect("a waker");
    gates.open(0);
    assert_eq!(pool.poll_next(&mut cx), Poll::Ready(Some(0)));
    late.wake_by_ref();
    assert_eq!(pool.poll_next(&mut cx), Poll::Ready(None));
    assert!(pool.push(Pass(Rc::clone(&gates), 1), &mut cx).is_pending());
    late.wake();
    assert_eq!(pool.poll_next(&mut cx), Poll::Pending);
    gates.open(1);
    assert_eq!(pool.poll_next(&mut cx), Poll::Ready(Some(1)));
}

#[test]
fn what_is_ready_at_once_is_never_stored_and_clear_drops_the_rest() {
    let mut cx = Context::from_waker(Waker::noop());
    let gates = Gates::new(2);
    gates.open(0);
    let mut pool = TaskPool::new(1);
    assert_eq!(pool.push(Pass(Rc::clone(&gates), 0), &mut cx), Poll::Ready(0));
    assert!(pool.is_empty());
    assert!(pool.push(Pass(Rc::clone(&gates), 1), &mut cx).is_pending());
    pool.clear();
    assert!(pool.is_empty());
    assert_eq!(Rc::strong_count(&gates), 1);
}

#[test]
fn one_that_wakes_itself_does_not_starve_the_caller() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let mut pool = TaskPool::new(1);
    let restless = poll_fn(|cx: &mut Context<'_>| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    assert!(pool.push(restless, &mut cx).is_pending());
    let before = count.0.load(SeqCst);
    assert!(pool.poll_next(&mut cx).is_pending());
    assert!(count.0.load(SeqCst) > before, "the caller is asked to come again");
}

#[test]
fn a_warm_pool_does_not_allocate() {
    let gates = Gates::new(64);
    let mut cx = Context::from_waker(Waker::noop());
    let mut pool = TaskPool::new(64);
    let mut round = || {
        for index in 0..64 {
            gates.open[index].set(false);
            assert!(pool.push(Pass(Rc::clone(&gates), index), &mut cx).is_pending());
        }
        for index in (0..64).rev() {
            gates.open(index);
        }
        for index in (0..64).rev() {
            assert_eq!(pool.poll_next(&mut cx), Poll::Ready(Some(index)));
        }
    };
    round();
    let before = ALLOCATIONS.get();
    for _ in 0..10 {
        round();
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

#[test]
fn wakes_come_from_other_threads() {
    let mut pool = TaskPool::new(8);
    let config = csd_reactor::Config::default();
    let sum = csd_reactor::block_on(&config, move || async move {
        let job = |n: u64| csd_reactor::compute_fn(csd_reactor::Class::Foreground, 0, move || n);
        let mut sum = 0;
        poll_fn(|cx| {
            for n in 0..8 {
                let _ready = pool.push(job(n), cx).map(|n| sum += n.expect("a result"));
            }
            Poll::Ready(())
        })
        .await;
        while let Some(n) = poll_fn(|cx| pool.poll_next(cx)).await {
            sum += n.expect("a result");
        }
        sum
    });
    assert_eq!(sum.expect("a runtime"), (0..8).sum::<u64>());
}
