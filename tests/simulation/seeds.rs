//! Seeds of the lanes. Each is a run in a world of its own, on one thread, so runs on several
//! threads at once have the traces that they have alone.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Returns the seeds that were asked for: `CSD_SIM_SEEDS=FROM..TO`, else 50.
pub fn seeds() -> Range<u64> {
    match std::env::var("CSD_SIM_SEEDS") {
        Ok(text) => {
            let (from, to) = text.split_once("..").expect("CSD_SIM_SEEDS is FROM..TO");
            from.parse().unwrap()..to.parse().unwrap()
        }
        Err(_) => 0..50,
    }
}

/// Runs seeds on as many threads as there are processors; returns the outcomes in their order.
///
/// # Panics
/// When a seed does, once the runs under way have ended. It says which of them repeats it.
pub fn each<T: Send>(
    seeds: impl Iterator<Item = u64> + Send,
    run: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let (left, outcomes) = (Mutex::new(seeds), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(seed) = next() {
            let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
            let is_failed = outcome.is_err();
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((seed, outcome));
            if is_failed {
                while next().is_some() {}
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(seed, _)| *seed);
    let unwrapped = outcomes.into_iter().map(|(seed, outcome)| {
        let again = || format!("CSD_SIM_SEEDS={seed}..{} repeats it", seed + 1);
        outcome.unwrap_or_else(|_| panic!("seed {seed} failed: {}", again()))
    });
    unwrapped.collect()
}
