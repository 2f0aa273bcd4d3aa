//! [`run`]: the steps of a service on a core.

use std::sync::atomic::Ordering::Relaxed;

use csd_kvlog::segments::Segments;
use csd_kvlog::service::{Service, Step};
use csd_reactor::{Pacer, sleep_until, yield_now};

use super::counts::Counts;

/// The part of a core in a service.
pub(crate) struct Begun {
    /// Its steps.
    pub(crate) service: Box<dyn Service>,
    /// Its rate, `None` for no limit.
    pub(crate) pacer: Option<Pacer>,
}

/// Runs a service on this core, one step after the other at the pacer's rate, until the drive
/// stops. Yields to other tasks after each.
pub(crate) async fn run(
    service: &mut dyn Service,
    mut pacer: Option<Pacer>,
    counts: &Counts,
    segments: &Segments,
) {
    while !segments.is_closing() {
        let Step::Worked { bytes } = service.step().await else {
            service.wait().await;
            continue;
        };
        counts.steps.fetch_add(1, Relaxed);
        counts.bytes.fetch_add(bytes, Relaxed);
        // A step may wait for nothing, and the time of its bytes be over.
        yield_now().await;
        if let Some(due) = pacer.as_mut().and_then(|pacer| pacer.reserve(bytes)) {
            sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use csd_kvlog::service::Pending;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{Class, Notify, class, now, spawn};

    use super::*;

    /// Does three steps for each request, and notes when.
    struct Thrice(Rc<Seen>);

    #[derive(Default)]
    struct Seen {
        requests: Notify,
        steps_left: Cell<u32>,
        stepped_ms: RefCell<Vec<u128>>,
    }

    const STEP_BYTES: u64 = 1000;

    impl Service for Thrice {
        fn step(&mut self) -> Pending<'_, Step> {
            Box::pin(async {
                assert_eq!(class(), Class::Service);
                let Some(left) = self.0.steps_left.get().checked_sub(1) else { return Step::Idle };
                self.0.steps_left.set(left);
                self.0.stepped_ms.borrow_mut().push(now().us() as u128 / 1000);
                Step::Worked { bytes: STEP_BYTES }
            })
        }

        fn wait(&mut self) -> Pending<'_, ()> {
            Box::pin(async {
                self.0.requests.notified().await;
                self.0.steps_left.set(3);
            })
        }
    }

    #[test]
    fn steps_are_counted_and_paced_and_end_with_the_drive() {
        let world = World::new(5, WorldConfig::default());
        let machine = world.machine("one", Ipv4Addr::LOCALHOST, 1);
        let service = Rc::new(Seen::default());
        let counts = Rc::new(Counts::default());
        let segments = Arc::new(Segments::new([0; 16], 0, 4 << 20, 8, &[2, 3]));
        let is_over = Rc::new(Cell::new(false));
        let of_task =
            (Rc::clone(&service), Rc::clone(&counts), Arc::clone(&segments), Rc::clone(&is_over));
        world.start(machine, move |_| {
            let (service, counts, segments, is_over) = of_task.clone();
            async move {
                spawn(Class::Service, async move {
                    let pacer = Some(Pacer::new(STEP_BYTES));
                    run(&mut Thrice(service), pacer, &counts, &segments).await;
                    is_over.set(true);
                })
                .await;
            }
        });
        let second = Duration::from_secs(1);
        world.run_for(10 * second);
        assert_eq!(counts.steps.load(Relaxed), 0, "nothing was asked for");
        service.requests.notify_one();
        world.run_for(10 * second);
        assert_eq!(*service.stepped_ms.borrow(), [10_000, 11_000, 12_000], "one step a second");
        let counted = [&counts.steps, &counts.bytes].map(|count| count.load(Relaxed));
        assert_eq!(counted, [3, 3 * STEP_BYTES]);
        service.requests.notify_one();
        world.run_for(second + second / 2);
        assert!(!is_over.get(), "the drive serves");
        segments.close();
        world.run_for(10 * second);
        assert!(is_over.get(), "the drive stops");
        assert_eq!(service.stepped_ms.borrow().len(), 5, "no step after the stop");
    }
}
