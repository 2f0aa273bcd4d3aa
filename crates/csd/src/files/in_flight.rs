//! [`in_flight`]: several futures at once on the task of the caller, who may lend them its array.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Files and objects in flight at once: small ones cost round trips and syncs, and no throughput.
pub(crate) const WINDOW: usize = 8;

/// Runs the futures that `next` returns, at most [`WINDOW`] at once, until it returns none and all
/// have ended. Passes each output to `done`.
pub(crate) async fn in_flight<T, F: Future<Output = T>>(
    mut next: impl FnMut() -> Option<F>,
    mut done: impl FnMut(T),
) {
    let mut running: Vec<Pin<Box<F>>> = Vec::with_capacity(WINDOW);
    poll_fn(move |cx| {
        loop {
            while running.len() < WINDOW
                && let Some(future) = next()
            {
                running.push(Box::pin(future));
            }
            let before = running.len();
            running.retain_mut(|future| match future.as_mut().poll(cx) {
                Poll::Ready(output) => {
                    done(output);
                    false
                }
                Poll::Pending => true,
            });
            match running.len() {
                0 if before == 0 => return Poll::Ready(()),
                left if left == before => return Poll::Pending,
                _ => {}
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use csd_reactor::yield_now;

    use super::*;
    use crate::runtime::runtime;

    #[test]
    fn all_run_and_never_more_than_the_window() {
        let (most, outputs) = csd_reactor::block_on(&runtime(), || async {
            let (now, most) = (Cell::new(0), Cell::new(0));
            let mut items = 0..100;
            let one = |item: usize| {
                let (now, most) = (&now, &most);
                async move {
                    now.set(now.get() + 1);
                    most.set(most.get().max(now.get()));
                    for _ in 0..=item % 7 {
                        yield_now().await;
                    }
                    now.set(now.get() - 1);
                    item
                }
            };
            let mut outputs = Vec::new();
            in_flight(|| items.next().map(one), |output| outputs.push(output)).await;
            (most.get(), outputs)
        })
        .unwrap();
        assert_eq!(most, WINDOW);
        let sorted: Vec<usize> = {
            let mut outputs = outputs.clone();
            outputs.sort_unstable();
            outputs
        };
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(outputs, sorted, "short ones do not wait for long ones");
    }
}
