//! Cost of a request through a door: one thread that waits for each, and one with many under way.
//!
//! `cargo run --release -p csd-reactor --example door` prints nanoseconds per request.

use std::time::Instant;

use csd_reactor::{Completions, Config, CoreId, Hosted};

const REQUESTS: u32 = 200_000;

fn main() {
    let config = Config::default();
    let hosted = Hosted::start(&config, 1024).expect("a runtime");
    let door = hosted.door();
    let measured = |what: &str, run: &dyn Fn()| {
        run();
        let began = Instant::now();
        run();
        println!("{what}: {} ns", began.elapsed().as_nanos() / u128::from(REQUESTS));
    };
    measured("one at a time, blocking", &|| {
        for number in 0..REQUESTS {
            assert_eq!(door.call(CoreId(0), move || async move { number }), Ok(number));
        }
    });
    for depth in [8, 64, 512] {
        measured(&format!("{depth} under way, blocking"), &|| {
            for _ in 0..REQUESTS / depth {
                let pending: Vec<_> =
                    (0..depth).map(|n| door.submit(CoreId(0), move || async move { n })).collect();
                for (number, answer) in (0..depth).zip(pending) {
                    assert_eq!(answer.and_then(csd_reactor::Pending::wait), Ok(number));
                }
            }
        });
    }
    measured("as many as fit, eventfd", &|| {
        let done = Completions::new().expect("a descriptor");
        let mut taken = 0;
        for number in 0..REQUESTS {
            let into = done.clone();
            let deliver = move |answer| into.push(answer);
            door.submit_with(CoreId(0), move || async move { number }, deliver).expect("open");
            taken += done.drain(usize::MAX).expect("the same process").len();
        }
        while taken < REQUESTS as usize {
            taken += done.drain(usize::MAX).expect("the same process").len();
            std::thread::yield_now();
        }
    });
}
