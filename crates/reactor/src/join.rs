//! [`join`]: runs two futures on the same task until both have ended.

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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;
    use std::task::{Context, Waker};

    use super::*;

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
