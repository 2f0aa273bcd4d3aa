//! [`Ordered`]: futures that run together and yield their outputs in the order they were added.
//!
//! [`Ordered::next`] polls; [`Ordered::begin`] polls a new one once. Invariant: every future is
//! polled until it has ended, or dropped with this.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

pub(crate) struct Ordered<'a, T>(VecDeque<Slot<'a, T>>);

enum Slot<'a, T> {
    Running(Pin<Box<dyn Future<Output = T> + 'a>>),
    Done(T),
}

impl<'a, T> Ordered<'a, T> {
    pub(crate) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn push(&mut self, future: impl Future<Output = T> + 'a) {
        self.0.push_back(Slot::Running(Box::pin(future)));
    }

    /// Adds a future and polls it once, after those that were added before.
    pub(crate) async fn begin(&mut self, future: impl Future<Output = T> + 'a) {
        let mut future: Pin<Box<dyn Future<Output = T> + 'a>> = Box::pin(future);
        let polled = poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Ready(None),
        });
        let output = polled.await;
        self.0.push_back(output.map_or(Slot::Running(future), Slot::Done));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the output of the oldest future; `None` if there is none.
    pub(crate) async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| {
            for slot in &mut self.0 {
                if let Slot::Running(future) = slot
                    && let Poll::Ready(output) = future.as_mut().poll(cx)
                {
                    *slot = Slot::Done(output);
                }
            }
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some(Slot::Done(output)) => Poll::Ready(Some(output)),
                Some(running) => {
                    self.0.push_front(running);
                    Poll::Pending
                }
            }
        })
        .await
    }
}
