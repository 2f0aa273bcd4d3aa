//! [`Runner`]: the steps of a service on a core.

use csd_kvlog::control::Control;
use csd_kvlog::segments::Segments;
use csd_kvlog::service::{Service, Step};
use csd_reactor::{now, yield_now};

use super::gate::Gate;

/// Runs a service on a core.
pub(crate) struct Runner<'a> {
    /// Settings and counts of the service.
    pub(crate) control: &'a Control,
    /// Gate at which it waits until it may begin a step.
    pub(crate) gate: &'a Gate,
    /// The log, which says when the drive stops.
    pub(crate) segments: &'a Segments,
}

impl Runner<'_> {
    /// Does one step after the other, as the settings allow, until the drive stops. Yields to other
    /// tasks after each. The service is made when it may begin its first step.
    pub(crate) async fn run<S: Service + ?Sized>(&self, begin: impl FnOnce() -> Box<S>) {
        if !self.gate.passes(self.control).await {
            return;
        }
        let mut service = begin();
        // The log may close while the service waits at the gate.
        while self.gate.passes(self.control).await && !self.segments.is_closing() {
            let began = now();
            match service.step().await {
                Step::Worked { bytes } => {
                    self.control.worked(bytes, began);
                    // A step may wait for nothing, and the time of its bytes be over.
                    yield_now().await;
                }
                Step::Idle => service.wait().await,
                Step::Failed(why) => self.control.fail(why),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use csd_kvlog::service::Pending;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{Class, Notify, class, now, spawn};

    use super::*;

    /// Does three steps for each request, and notes when. Fails if the test says so.
    struct Thrice(Rc<Seen>);

    #[derive(Default)]
    struct Seen {
        requests: Notify,
        steps_left: Cell<u32>,
        fails: Cell<bool>,
        stepped_ms: RefCell<Vec<u128>>,
    }

    const STEP_BYTES: u64 = 1000;

    impl Service for Thrice {
        fn step(&mut self) -> Pending<'_, Step> {
            Box::pin(async {
                assert_eq!(class(), Class::Service);
                if self.0.fails.take() {
                    return Step::Failed("told to".to_owned());
                }
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

    /// A drive of one core with the service alone.
    struct Lane {
        world: World,
        service: Rc<Seen>,
        control: Rc<Control>,
        gate: Rc<Gate>,
        segments: Arc<Segments>,
        is_over: Rc<Cell<bool>>,
    }

    const SECOND: Duration = Duration::from_secs(1);

    impl Lane {
        fn new() -> Self {
            let lane = Self {
                world: World::new(5, WorldConfig::default()),
                service: Rc::default(),
                control: Rc::default(),
                gate: Rc::default(),
                segments: Arc::new(Segments::new([0; 16], 0, 4 << 20, 8, &[2, 3])),
                is_over: Rc::default(),
            };
            let machine = lane.world.machine("one", Ipv4Addr::LOCALHOST, 1);
            let (service, is_over) = (Rc::clone(&lane.service), Rc::clone(&lane.is_over));
            let (control, gate) = (Rc::clone(&lane.control), Rc::clone(&lane.gate));
            let segments = Arc::clone(&lane.segments);
            lane.world.start(machine, move |_| {
                let (service, is_over) = (Rc::clone(&service), Rc::clone(&is_over));
                let (control, gate) = (Rc::clone(&control), Rc::clone(&gate));
                let segments = Arc::clone(&segments);
                async move {
                    spawn(Class::Service, async move {
                        let (control, gate, segments) = (&*control, &*gate, &*segments);
                        let runner = Runner { control, gate, segments };
                        runner.run(|| Box::new(Thrice(service))).await;
                        is_over.set(true);
                    })
                    .await;
                }
            });
            lane.world.run_for(10 * SECOND);
            lane
        }

        /// Changes a setting and lets the service look at it.
        fn set(&self, set: impl Fn(&Control)) {
            set(&self.control);
            self.gate.look();
        }

        /// Asks for three steps, and returns how many are done this long afterwards.
        fn steps_within(&self, span: Duration) -> usize {
            let before = self.service.stepped_ms.borrow().len();
            self.service.requests.notify_one();
            self.world.run_for(span);
            self.service.stepped_ms.borrow().len() - before
        }
    }

    #[test]
    fn steps_are_counted_and_paced_and_end_with_the_drive() {
        let lane = Lane::new();
        lane.set(|control| control.set_rate(Some(STEP_BYTES)));
        assert_eq!(lane.control.steps.load(Relaxed), 0, "nothing was asked for");
        assert_eq!(lane.steps_within(10 * SECOND), 3);
        let stepped = lane.service.stepped_ms.borrow().clone();
        assert_eq!(stepped, [10_000, 11_000, 12_000], "one step a second");
        let counted = [&lane.control.steps, &lane.control.bytes].map(|count| count.load(Relaxed));
        assert_eq!(counted, [3, 3 * STEP_BYTES]);
        assert_eq!(lane.steps_within(SECOND + SECOND / 2), 2);
        assert!(!lane.is_over.get(), "the drive serves");
        lane.segments.close();
        lane.world.run_for(10 * SECOND);
        assert!(lane.is_over.get(), "the drive stops");
        assert_eq!(lane.service.stepped_ms.borrow().len(), 5, "no step after the stop");
    }

    #[test]
    fn a_paused_service_waits_and_new_settings_hold_at_once() {
        let lane = Lane::new();
        lane.set(Control::pause);
        assert_eq!(lane.steps_within(10 * SECOND), 0);
        lane.set(Control::resume);
        lane.world.run_for(SECOND);
        assert_eq!(lane.service.stepped_ms.borrow().len(), 3, "what was asked for meanwhile");
        // A step of years, and the end of its rate.
        lane.set(|control| control.set_rate(Some(1)));
        assert_eq!(lane.steps_within(SECOND), 1);
        lane.set(|control| control.set_rate(None));
        lane.world.run_for(SECOND);
        assert_eq!(lane.service.stepped_ms.borrow().len(), 6);
        lane.set(Control::pause);
        assert_eq!(lane.steps_within(SECOND), 0);
        lane.gate.stop();
        lane.world.run_for(SECOND);
        assert!(lane.is_over.get(), "a paused service ends when the drive stops");
        assert_eq!(lane.service.stepped_ms.borrow().len(), 6, "and does no step then");
    }

    #[test]
    fn a_service_that_fails_is_paused_until_it_is_resumed() {
        let lane = Lane::new();
        lane.service.fails.set(true);
        assert_eq!(lane.steps_within(SECOND), 0);
        assert_eq!(lane.control.failure().as_deref(), Some("told to"));
        assert!(lane.control.is_paused() && !lane.is_over.get());
        lane.set(Control::resume);
        lane.world.run_for(SECOND);
        assert_eq!(lane.service.stepped_ms.borrow().len(), 3);
        assert_eq!(lane.control.failures.load(Relaxed), 1);
    }
}
