//! [`HostPresence`] of a connection's host, and the end of its commands when the host is gone.
//!
//! A command that has begun to read or write runs to its end without its host: a write must not
//! land at an unknown later time, and the resources that it holds (its place among the writers of
//! blocks, its memory) are in use until then. A command that waits for its host is given up.
//!
//! Invariant: a command whose host is gone does not wait for it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// HostPresence of a connection's host.
#[derive(Debug, Default)]
pub struct HostPresence {
    gone: Cell<bool>,
    // True if the command that is being polled waits for a host that is gone.
    given_up: Cell<bool>,
}

impl HostPresence {
    /// Notes that the host is gone. Every command of the connection must then be polled once.
    pub fn leave(&self) {
        self.gone.set(true);
    }

    /// Waits for a future that only makes sense while the host is there. Without the host this
    /// never returns, and the command is given up.
    pub async fn there<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        poll_fn(|cx| {
            if self.gone.get() {
                self.given_up.set(true);
                return Poll::Pending;
            }
            wait.as_mut().poll(cx)
        })
        .await
    }

    /// Runs a command until it ends or is given up.
    pub async fn run(&self, command: impl Future<Output = ()>) {
        let mut command = pin!(command);
        poll_fn(|cx| match command.as_mut().poll(cx) {
            Poll::Pending if self.given_up.take() => Poll::Ready(()),
            polled => polled,
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn what_waits_for_a_host_that_is_gone_is_given_up_and_the_rest_goes_on() {
        let (host, wrote) = (HostPresence::default(), Cell::new(false));
        let mut cx = Context::from_waker(Waker::noop());
        let mut waits = pin!(host.run(host.there(pending())));
        let mut turns = 0;
        let medium = poll_fn(|_| {
            turns += 1;
            wrote.set(turns == 3);
            if wrote.get() { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut writes = pin!(host.run(async {
            medium.await;
            host.there(ready(())).await;
            unreachable!("its host is gone");
        }));
        assert!(
            waits.as_mut().poll(&mut cx).is_pending() && writes.as_mut().poll(&mut cx).is_pending()
        );
        host.leave();
        assert!(waits.as_mut().poll(&mut cx).is_ready());
        assert!(writes.as_mut().poll(&mut cx).is_pending(), "the medium is not done");
        assert!(writes.as_mut().poll(&mut cx).is_ready() && wrote.get());
    }
}
