//! [`join`] and [`race`]: run two futures on the same task, until both have ended or one has.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Polls both futures until both have ended; returns their outputs.
pub async fn join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(move |cx| {
        if of_a.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(cx)
        {
            of_a = Some(output);
        }
        if of_b.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(cx)
        {
            of_b = Some(output);
        }
        match (of_a.take(), of_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (of_a, of_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// Polls both futures until one has ended, and returns its output. The other one is dropped.
pub async fn race<T>(a: impl Future<Output = T>, b: impl Future<Output = T>) -> T {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(move |cx| match a.as_mut().poll(cx) {
        Poll::Pending => b.as_mut().poll(cx),
        ready => ready,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn the_first_to_end_ends_a_race() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut won = pin!(race(std::future::pending(), ready(2)));
        assert_eq!(won.as_mut().poll(&mut cx), Poll::Ready(2));
        let mut won = pin!(race(ready(1), ready(2)));
        assert_eq!(won.as_mut().poll(&mut cx), Poll::Ready(1));
    }

    #[test]
    fn both_run_and_each_ends_once() {
        let polls = Cell::new(0);
        let third = poll_fn(|_| {
            polls.set(polls.get() + 1);
            if polls.get() == 3 { Poll::Ready('b') } else { Poll::Pending }
        });
        let mut both = pin!(join(ready('a'), third));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(both.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(both.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(both.as_mut().poll(&mut cx), Poll::Ready(('a', 'b')));
        assert_eq!(polls.get(), 3);
    }
}
