//! Whether a connection's host is still there, and what becomes of its commands when it is not.
//!
//! A command that has begun to read or write goes on to its end without its host: what it writes
//! must not land later than anybody can know, and what it holds (its place among the writers of
//! blocks, its memory) is in use until then. A command that waits for its host is given up.
//!
//! Never: an answer. Invariant: a command whose host is gone does not wait for it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// A connection's host.
#[derive(Debug, Default)]
pub struct Presence {
    gone: Cell<bool>,
    // The command that is being polled waits for a host that is gone.
    given_up: Cell<bool>,
}

impl Presence {
    /// The host is gone, for good: every command of the connection is to be polled once.
    pub fn leave(&self) {
        self.gone.set(true);
    }

    /// Waits for what only makes sense, or only happens, while the host is there. Without it this
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

    /// Runs a command to its end, or to where it is given up.
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
        let (host, wrote) = (Presence::default(), Cell::new(false));
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
