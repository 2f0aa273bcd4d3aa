//! Whose task is polled when several are ready.

mod common;

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{
    Class, CoreId, Instant, Job, Progress, busy, call, charge, class, compute, core_local, now,
    set_core_local, sleep, spawn, yield_now,
};

everywhere! {
    tasks_that_yield_do_not_starve: 1;
    a_hosts_task_goes_before_those_that_yield: 1;
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
    let all = [Class::Foreground, Class::Tunnel, Class::Execution, Class::Service, Class::System];
    for of in all {
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
        let class = [Class::Tunnel, Class::Execution, Class::Service][number % 3];
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
    let yielding = [spent.tunnel_ns, spent.execution_ns, spent.service_ns];
    assert!(yielding.iter().all(|spent_ns| *spent_ns > 0), "{spent:?}");
}

async fn a_hosts_task_goes_before_those_that_yield(_core: CoreId) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let tasks: Vec<_> = [Class::Execution, Class::Service, Class::Tunnel, Class::Foreground]
        .into_iter()
        .map(|class| {
            let order = Rc::clone(&order);
            spawn(class, async move {
                for _ in 0..5 {
                    order.borrow_mut().push(class);
                    yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    let order = order.borrow();
    assert_eq!(order[0], Class::Foreground, "{order:?}");
    let at = |of| order.iter().rposition(|class| *class == of).expect("it ran");
    for yielding in [Class::Execution, Class::Service, Class::Tunnel] {
        assert!(at(Class::Foreground) < at(yielding), "{order:?}");
    }
}

/// In the simulation, whose clock does not depend on the machine: every poll costs the same.
#[test]
fn executions_and_services_are_counted_apart() {
    const COST_NS: u64 = 1000;
    let config = WorldConfig { cpu_ns_per_poll: COST_NS, ..WorldConfig::default() };
    let world = World::new(3, config);
    let machine = world.machine("one", Ipv4Addr::LOCALHOST, 1);
    let spent = Rc::new(Cell::new(None));
    let slot = Rc::clone(&spent);
    world.start(machine, move |_| {
        let slot = Rc::clone(&slot);
        async move {
            let polled = |class, polls| {
                spawn(class, async move {
                    for _ in 1..polls {
                        yield_now().await;
                    }
                })
            };
            let (execution, service) = (polled(Class::Execution, 20), polled(Class::Service, 50));
            execution.await;
            service.await;
            slot.set(Some(busy()));
        }
    });
    world.run_for(Duration::from_secs(1));
    let spent = spent.get().expect("the machine has ended");
    assert_eq!((spent.execution_ns, spent.service_ns), (20 * COST_NS, 50 * COST_NS), "{spent:?}");
    assert_eq!((spent.foreground_ns, spent.tunnel_ns), (0, 0), "{spent:?}");
}

/// In the simulation, where the order of jobs is that of compute threads and time is virtual.
#[test]
fn jobs_of_executions_and_services_yield_to_a_hosts_job_and_take_turns() {
    let world = World::new(4, WorldConfig::default());
    let machine = world.machine("one", Ipv4Addr::LOCALHOST, 1);
    let order = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&order);
    world.start(machine, move |_| {
        let log = Rc::clone(&log);
        async move {
            // Steps of one millisecond; the host's job comes last.
            let jobs: Vec<_> = [(Class::Service, 4), (Class::Execution, 3), (Class::Foreground, 2)]
                .into_iter()
                .map(|(class, steps)| {
                    let (log, job) = (Rc::clone(&log), compute(class, Steps(steps)));
                    spawn(Class::System, async move {
                        job.await.expect("no panic");
                        log.borrow_mut().push((class, now().since(Instant::default()).as_millis()));
                    })
                })
                .collect();
            for job in jobs {
                job.await;
            }
        }
    });
    world.run_for(Duration::from_secs(1));
    // Host's steps: 1, 2. Then in turn: service 3, 5, 7, 9 and execution 4, 6, 8.
    let expected = [(Class::Foreground, 2), (Class::Execution, 8), (Class::Service, 9)];
    assert_eq!(*order.borrow(), expected);
}

/// A job of so many steps.
struct Steps(u32);

impl Job for Steps {
    type Output = ();

    fn step(&mut self) -> Progress<()> {
        self.0 -= 1;
        let cost_ns = 1_000_000;
        if self.0 > 0 { Progress::More { cost_ns } } else { Progress::Done { cost_ns, output: () } }
    }
}

/// Runs `main` alone on a core of a simulated machine whose polls cost what they charge, and
/// returns what it gives.
fn simulated<T: 'static>(main: impl AsyncFnOnce() -> T + 'static) -> T {
    let config = WorldConfig { cpu_ns_per_poll: 0, oldest_first: true, ..WorldConfig::default() };
    let world = World::new(1, config);
    let machine = world.machine("one", Ipv4Addr::LOCALHOST, 1);
    let given = Rc::new(RefCell::new(None));
    let (slot, mut main) = (Rc::clone(&given), Some(main));
    world.start(machine, move |_| {
        let (slot, main) = (Rc::clone(&slot), main.take().expect("one core"));
        async move {
            let value = main().await;
            *slot.borrow_mut() = Some(value);
        }
    });
    world.run_for(Duration::from_secs(10));
    given.take().expect("the machine has ended")
}

fn micros() -> u64 {
    now().us()
}

/// A class that yields has slices of 10 us; the next class has its turn when one is over.
#[test]
fn in_the_simulation_classes_that_yield_take_turns_by_slices_of_what_they_charge() {
    let order = simulated(async || {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [Class::Execution, Class::Service]
            .into_iter()
            .flat_map(|class| [class; 4])
            .map(|class| {
                let order = Rc::clone(&order);
                spawn(class, async move {
                    order.borrow_mut().push(class);
                    charge(6_000);
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        order.take()
    });
    let (execution, service) = (Class::Execution, Class::Service);
    let turns = [execution, execution, service, service];
    assert_eq!(order, [turns, turns].concat());
}

#[test]
fn in_the_simulation_a_hosts_task_waits_for_the_slice_and_not_for_all_that_yields() {
    let waited_us = simulated(async || {
        for _ in 0..20 {
            drop(spawn(Class::Service, async { charge(5_000) }));
        }
        // Slices have begun.
        sleep(Duration::from_micros(3)).await;
        let asked_us = micros();
        let host = spawn(Class::Foreground, async move { micros() - asked_us });
        host.await
    });
    assert!(waited_us <= 10, "{waited_us} us of 100");
}

/// The compute thread and the core's loop share a CPU, and the loop goes first.
#[test]
fn in_the_simulation_a_job_takes_the_time_that_the_loop_leaves() {
    let (job_us, loop_us) = simulated(async || {
        let job = compute(Class::Execution, Steps(1));
        let busy = spawn(Class::Foreground, async {
            for _ in 0..100 {
                charge(20_000);
                yield_now().await;
            }
            micros()
        });
        let loop_us = busy.await;
        job.await.expect("no panic");
        (micros(), loop_us)
    });
    assert_eq!((loop_us, job_us), (2_000, 3_000), "2 ms of polls, then 1 ms of the job");
}

/// A job that gets no CPU at all gets normal priority after a while.
#[test]
fn in_the_simulation_a_job_ends_beside_a_loop_that_is_always_busy() {
    let job_us = simulated(async || {
        let ended = Rc::new(Cell::new(false));
        let seen = Rc::clone(&ended);
        let busy = spawn(Class::Foreground, async move {
            while !seen.get() {
                charge(20_000);
                yield_now().await;
            }
        });
        compute(Class::Execution, Steps(1)).await.expect("no panic");
        let job_us = micros();
        ended.set(true);
        busy.await;
        job_us
    });
    assert!((50_000..52_000).contains(&job_us), "{job_us} us");
}
