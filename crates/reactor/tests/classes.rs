//! Whose task is polled when several are ready.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use csd_reactor::{
    BackendKind, Class, CoreId, busy, call, class, core_local, set_core_local, spawn, yield_now,
};

everywhere! {
    tasks_that_yield_do_not_starve: 1;
    a_task_knows_its_class: 2;
}

async fn a_task_knows_its_class(core: CoreId) {
    let ended = Rc::new(Cell::new(false));
    if core == CoreId(1) {
        set_core_local(Rc::clone(&ended));
        while !ended.get() {
            yield_now().await;
        }
        return;
    }
    for of in [Class::Foreground, Class::Tunnel, Class::Background, Class::System] {
        let looks = async move {
            let before = class();
            yield_now().await;
            (before, class(), call(CoreId(1), class(), || async { class() }).await)
        };
        assert_eq!(spawn(of, looks).await, (of, of, Ok(of)));
    }
    // The other core may not have begun yet.
    let end = || async { core_local::<Cell<bool>>().map(|ended| ended.set(true)) };
    while call(CoreId(1), Class::System, end).await.expect("it waits").is_none() {
        yield_now().await;
    }
}

async fn tasks_that_yield_do_not_starve(_core: CoreId) {
    let ended = Rc::new(Cell::new(0));
    for number in 0..20 {
        let ended = Rc::clone(&ended);
        let class = if number % 2 == 0 { Class::Tunnel } else { Class::Background };
        drop(spawn(class, async move {
            for _ in 0..50 {
                yield_now().await;
            }
            ended.set(ended.get() + 1);
        }));
    }
    // Ready all the time, and before them.
    while ended.get() < 20 {
        yield_now().await;
    }
    let spent = busy();
    assert!(spent.tunnel_ns > 0 && spent.background_ns > 0, "{spent:?}");
}

/// In a real core only: the simulation polls in any order.
#[test]
fn a_hosts_task_goes_before_those_that_yield() {
    for backend in [BackendKind::Uring, BackendKind::Epoll] {
        common::real(backend, 1, |_core| async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [Class::Background, Class::Tunnel, Class::Foreground]
                .into_iter()
                .enumerate()
                .map(|(index, class)| {
                    let order = Rc::clone(&order);
                    spawn(class, async move {
                        for _ in 0..5 {
                            order.borrow_mut().push(index);
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            let order = order.borrow();
            assert_eq!(order[0], 2, "{order:?}");
            let at = |of: usize| order.iter().rposition(|index| *index == of).expect("it ran");
            assert!(at(2) < at(0).min(at(1)), "{order:?}");
        });
    }
}
