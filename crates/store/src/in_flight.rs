//! [`in_flight`]: several futures at once on the task of the caller, who may lend them its array.

use futures_util::stream::{FuturesUnordered, StreamExt};

/// Short items in flight at once: they cost round trips and syncs, and no throughput.
pub const WINDOW: usize = 64;
/// Long items in flight at once.
const LONG_WINDOW: usize = 8;
/// An item of more bytes is long.
const SHORT_BYTES: u64 = 64 << 10;

/// Returns the share of the window that an item of so many bytes takes.
#[must_use]
pub fn share(bytes: u64) -> usize {
    if bytes <= SHORT_BYTES { 1 } else { WINDOW / LONG_WINDOW }
}

/// Runs the futures that `next` returns with their shares of the window, as many at once as fit
/// [`WINDOW`], until it returns none and all have ended. Passes each output to `done`.
pub async fn in_flight<T, F: Future<Output = T>>(
    mut next: impl FnMut() -> Option<(usize, F)>,
    mut done: impl FnMut(T),
) {
    let (mut running, mut taken) = (FuturesUnordered::new(), 0);
    loop {
        while taken < WINDOW
            && let Some((share, future)) = next()
        {
            taken += share;
            running.push(async move { (share, future.await) });
        }
        let Some((share, output)) = running.next().await else { return };
        taken -= share;
        done(output);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use csd_reactor::yield_now;

    use super::*;

    #[test]
    fn all_run_and_never_more_than_the_window() {
        let (most, outputs) = csd_reactor::block_on(&csd_reactor::Config::default(), || async {
            let (now, most) = (Cell::new(0), Cell::new(0));
            let mut items = 0..1000;
            let one = |item: usize| {
                let (now, most) = (&now, &most);
                let share = share(if item.is_multiple_of(9) { 1 << 20 } else { 10 });
                let run = async move {
                    now.set(now.get() + share);
                    most.set(most.get().max(now.get()));
                    for _ in 0..=item % 7 {
                        yield_now().await;
                    }
                    now.set(now.get() - share);
                    item
                };
                (share, run)
            };
            let mut outputs = Vec::new();
            in_flight(|| items.next().map(one), |output| outputs.push(output)).await;
            (most.get(), outputs)
        })
        .unwrap();
        assert!((WINDOW..WINDOW + WINDOW / LONG_WINDOW).contains(&most), "{most}");
        let sorted: Vec<usize> = {
            let mut outputs = outputs.clone();
            outputs.sort_unstable();
            outputs
        };
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(outputs, sorted, "short ones do not wait for long ones");
    }
}
