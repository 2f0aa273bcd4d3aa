//! Pairs of fused commands: the first waits for the second.
//!
//! Never: what a pair does. Invariant: the two follow one another directly on their queue, or both
//! are aborted.

use std::future::Future;
use std::rc::Rc;

use csd_nvme::nvm::Fused;
use csd_nvme::status::Status;

use super::super::command::{Received, fail};
use super::super::link::Link;
use super::Connection;

impl<S, F> Connection<S, F>
where
    S: Fn(Rc<Link>, Received, bool) -> F,
    F: Future<Output = ()>,
{
    /// Holds the first command of a pair, joins the second to it; what can start now. Out of a
    /// pair, each half is aborted for want of the other.
    pub(super) fn pair(&mut self, mut received: Received, fused: Fused) -> Option<Received> {
        match (fused, self.first.take()) {
            (Fused::Second, Some(first)) => {
                received.first = Some(first);
                Some(received)
            }
            (fused, first) => {
                self.first = first;
                self.abandon_first();
                match fused {
                    Fused::First => {
                        self.first = Some(Box::new(received));
                        None
                    }
                    Fused::Second => {
                        self.miss(received);
                        None
                    }
                    Fused::Single | Fused::Reserved => Some(received),
                }
            }
        }
    }

    /// Aborts the first of a pair whose second did not come.
    pub(super) fn abandon_first(&mut self) {
        if let Some(first) = self.first.take() {
            self.miss(*first);
        }
    }

    fn miss(&self, received: Received) {
        let Received { permit, sqe, .. } = received;
        fail(&self.core, &self.link, permit, &sqe, Status::ABORTED_MISSING_FUSED);
    }
}
