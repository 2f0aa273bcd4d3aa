//! [`Control`]: how a service may run, and what it has done. The cores of a drive share it.
//!
//! Its user pauses it, and sets a rate and a share, while it runs. Both hold for all cores
//! together. A step that has begun ends; the next one begins when nothing holds the service back.
//! A service that fails is paused, and keeps the reason until it is resumed. Invariant: no setting
//! stops a step half-way, so that nothing is held while a service is paused.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use csd_reactor::{Instant, core_count, now, transfer_time};

/// A share without a limit, percent.
pub const WHOLE: u8 = 100;

/// Settings and counts of one service.
#[derive(Debug)]
pub struct Control {
    /// Steps that worked.
    pub steps: AtomicU64,
    /// Bytes that they read and compared, moved or wrote.
    pub bytes: AtomicU64,
    /// Time from the beginning of each step to its end, ns.
    pub busy_ns: AtomicU64,
    /// Number of steps that failed.
    pub failures: AtomicU64,
    paused: AtomicBool,
    // Bytes per second, 0 for no limit.
    rate: AtomicU64,
    share: AtomicU8,
    // Time at which the next step may begin, ns.
    due_ns: AtomicU64,
    failure: Mutex<Option<String>>,
    report: Report,
}

/// Takes the reason of a failure.
type TakeReason = dyn Fn(&str) + Send + Sync;

/// Takes the reason of each failure, once its drive has set it.
#[derive(Default)]
struct Report(OnceLock<Box<TakeReason>>);

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "Report(set)" } else { "Report(none)" })
    }
}

impl Default for Control {
    fn default() -> Self {
        Self {
            steps: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            rate: AtomicU64::new(0),
            share: AtomicU8::new(WHOLE),
            due_ns: AtomicU64::new(0),
            failure: Mutex::default(),
            report: Report::default(),
        }
    }
}

impl Control {
    /// Lets no further step begin.
    pub fn pause(&self) {
        self.paused.store(true, Relaxed);
    }

    /// Lets steps begin again, and forgets why the service failed.
    pub fn resume(&self) {
        *self.reason() = None;
        self.paused.store(false, Relaxed);
        self.due_ns.store(0, Relaxed);
    }

    /// Pauses the service because a step of it failed, and reports why.
    pub fn fail(&self, why: String) {
        self.failures.fetch_add(1, Relaxed);
        if let Some(report) = self.report.0.get() {
            report(&why);
        }
        *self.reason() = Some(why);
        self.pause();
    }

    /// Has the reason of each failure reported; the first call counts.
    pub fn report_failures(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        let _first = self.report.0.set(Box::new(report));
    }

    /// Limits the bytes per second of all cores; `None` for no limit.
    pub fn set_rate(&self, bytes_per_s: Option<u64>) {
        self.rate.store(bytes_per_s.unwrap_or(0), Relaxed);
        self.due_ns.store(0, Relaxed);
    }

    /// Limits the part of the time of all cores in which the service works, 1 to [`WHOLE`] percent.
    pub fn set_share(&self, percent: u8) {
        self.share.store(percent.clamp(1, WHOLE), Relaxed);
        self.due_ns.store(0, Relaxed);
    }

    /// Returns true if no step may begin until somebody resumes the service.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// Returns why the service failed; `None` if it did not since it was resumed.
    pub fn failure(&self) -> Option<String> {
        self.reason().clone()
    }

    /// Returns the limit of bytes per second; `None` if there is none.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Relaxed)).filter(|rate| *rate > 0)
    }

    /// Returns the limit of the service's part of the time, percent.
    pub fn share(&self) -> u8 {
        self.share.load(Relaxed)
    }

    /// Returns the time at which the next step may begin; `None` if it may now.
    pub fn due(&self) -> Option<Instant> {
        let due = Instant::from_ns(self.due_ns.load(Relaxed));
        (due > Instant::ZERO && due > now()).then_some(due)
    }

    /// Returns true if a step may begin now.
    pub fn may_begin(&self) -> bool {
        !self.is_paused() && self.due().is_none()
    }

    /// Counts a step that began then and ends now, and reserves its time under both limits.
    pub fn worked(&self, bytes: u64, began: Instant) {
        let spent = now().since(began);
        let spent_ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.steps.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.busy_ns.fetch_add(spent_ns, Relaxed);
        let by_rate = self.rate().map_or(0, |rate| {
            u64::try_from(transfer_time(bytes, rate).as_nanos()).unwrap_or(u64::MAX)
        });
        let by_share = match u64::from(self.share()) {
            100 => 0,
            share => spent_ns.saturating_mul(100) / (share * core_count() as u64),
        };
        let cost_ns = by_rate.max(by_share);
        if cost_ns > 0 {
            let reserved = |due: u64| Some(due.max(began.ns()).saturating_add(cost_ns));
            let _ = self.due_ns.fetch_update(Relaxed, Relaxed, reserved);
        }
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{sleep, sleep_until};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns the steps that two cores do in a second of simulated time, each of 1,000 bytes and a
    /// millisecond.
    fn steps(set: fn(&Control)) -> u64 {
        let world = World::new(3, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 2);
        let control = Rc::new(Control::default());
        set(&control);
        let (shared, ended) = (Rc::clone(&control), Rc::new(Cell::new(false)));
        let over = Rc::clone(&ended);
        world.start(machine, move |_| {
            let (control, ended) = (Rc::clone(&shared), Rc::clone(&ended));
            async move {
                while !ended.get() {
                    match control.due() {
                        Some(due) => sleep_until(due).await,
                        None => {
                            let began = now();
                            sleep(MS).await;
                            control.worked(1000, began);
                        }
                    }
                }
            }
        });
        world.run_for(1000 * MS);
        over.set(true);
        assert_eq!(control.bytes.load(Relaxed), 1000 * control.steps.load(Relaxed));
        control.steps.load(Relaxed)
    }

    #[test]
    fn rate_and_share_hold_for_all_cores_together() {
        let about = |found: u64, expected: u64| assert!(found.abs_diff(expected) <= 6, "{found}");
        about(steps(|_| ()), 2000);
        about(steps(|control| control.set_rate(Some(100_000))), 100);
        about(steps(|control| control.set_share(25)), 500);
        // The stricter one holds.
        about(
            steps(|control| {
                control.set_rate(Some(100_000));
                control.set_share(25);
            }),
            100,
        );
    }

    #[test]
    fn a_new_limit_holds_at_once_and_a_failure_until_the_service_is_resumed() {
        csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            let control = Control::default();
            control.set_rate(Some(1));
            control.worked(1 << 30, now());
            assert!(!control.may_begin());
            control.set_rate(None);
            assert!(control.may_begin());
            let reported = Arc::new(Mutex::new(Vec::new()));
            let report = Arc::clone(&reported);
            control.report_failures(move |why| report.lock().unwrap().push(why.to_owned()));
            control.fail("no".to_owned());
            assert_eq!(*reported.lock().unwrap(), ["no"]);
            assert!(control.is_paused() && control.failure().as_deref() == Some("no"));
            control.pause();
            assert_eq!(control.failure().as_deref(), Some("no"), "a pause hides no failure");
            control.resume();
            assert_eq!((control.may_begin(), control.failure()), (true, None));
            assert_eq!(control.failures.load(Relaxed), 1);
        })
        .unwrap();
    }
}
