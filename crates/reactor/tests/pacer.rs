//! The pacer, in simulated time.

mod common;

use std::time::Duration;

use csd_reactor::{CoreId, Instant, Pacer, now, sleep, sleep_until, transfer_time};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn reservations_follow_each_other() {
    common::sim(1, |_: CoreId| async {
        let begin = now();
        let mut pacer = Pacer::new(1000);
        assert!(pacer.due() <= begin);
        assert_eq!(pacer.reserve(1000), Some(begin + SECOND));
        assert_eq!(pacer.reserve(500), Some(begin + SECOND * 3 / 2));
        sleep_until(begin + SECOND).await;
        assert_eq!(pacer.reserve(1500), Some(begin + SECOND * 3));
        assert_eq!(pacer.due(), begin + SECOND * 3);
    });
}

#[test]
fn unused_time_is_not_saved_up() {
    common::sim(1, |_: CoreId| async {
        let mut pacer = Pacer::new(1000);
        let due = pacer.reserve(1000).expect("a wait");
        sleep(SECOND * 60).await;
        assert!(due < now());
        let later = now();
        assert_eq!(pacer.reserve(2000), Some(later + SECOND * 2));
    });
}

#[test]
fn nothing_and_an_endless_rate_take_no_time() {
    common::sim(1, |_: CoreId| async {
        let mut pacer = Pacer::new(1000);
        assert_eq!(pacer.reserve(0), None);
        assert_eq!(Pacer::new(u64::MAX).reserve(1 << 30), None);
        pacer.reserve(1000);
        assert_eq!(pacer.reserve(0), Some(now() + SECOND), "it waits for earlier ones");
    });
}

#[test]
fn times_are_rounded_down_and_end_with_the_clock() {
    assert_eq!(Instant::from_ns(5) + transfer_time(1000, 500), Instant::from_ns(2_000_000_005));
    assert_eq!(transfer_time(2, 3), Duration::from_nanos(666_666_666));
    assert_eq!(transfer_time(1, 0), SECOND);
    assert_eq!(Instant::from_ns(5) + transfer_time(u64::MAX, 1), Instant::MAX);
}
