//! Fused commands: the first half of a pair waits for the second.
//!
//! Invariant: the two follow one another directly on their queue, or both
//! are aborted.

use std::future::Future;

use csd_nvme::nvm::Fused;
use csd_nvme::status::Status;

use super::super::request::Request;
use super::{Connection, Start};

impl<S, F> Connection<S, F>
where
    S: Fn(Start) -> F,
    F: Future<Output = ()>,
{
    /// Holds the first half of a pair, and joins the second to it. Returns the command that can
    /// start, with the first half if it is a second one. A half without the other is aborted.
    pub(super) fn pair(
        &mut self,
        request: Request,
        fused: Fused,
    ) -> Option<(Request, Option<Box<Request>>)> {
        match (fused, self.first.take()) {
            (Fused::Second, Some(first)) => Some((request, Some(first))),
            (fused, first) => {
                self.first = first;
                self.abandon_first();
                match fused {
                    Fused::First => {
                        self.first = Some(Box::new(request));
                        None
                    }
                    Fused::Second => {
                        request.fail(Status::ABORTED_MISSING_FUSED);
                        None
                    }
                    Fused::Single | Fused::Reserved => Some((request, None)),
                }
            }
        }
    }

    /// Aborts the first half of a pair whose second half did not come.
    pub(super) fn abandon_first(&mut self) {
        if let Some(first) = self.first.take() {
            first.fail(Status::ABORTED_MISSING_FUSED);
        }
    }
}
