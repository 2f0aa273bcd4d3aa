//! [`Searching`]: takes the answers of an object's chunks, in order, and has lines printed.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::search::{Join, Unjoined, Wants};
use csd_run::program::{Answer, Consumer};

use super::printer::{Closed, Printer};
use crate::report::Failure;

/// The search of one object.
pub(super) struct Searching {
    state: Mutex<State>,
    printer: Arc<Printer>,
    wants: Wants,
}

struct State {
    join: Join,
    /// Why the search ended early.
    ended: Option<Unjoined<Closed>>,
}

impl Searching {
    pub(super) fn new(join: Join, printer: Arc<Printer>, wants: Wants) -> Self {
        printer.begin();
        Self { state: Mutex::new(State { join, ended: None }), printer, wants }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the object; returns the number of selected lines, or of some of them if only the first
    /// is wanted.
    ///
    /// # Errors
    /// Run: a drive's answer cannot be read, a line is too long, or output is lost.
    pub(super) fn end(&self) -> Result<u64, Failure> {
        let mut state = self.state();
        let State { join, ended } = &mut *state;
        let is_enough = self.wants == Wants::First && join.selected() > 0;
        if ended.is_none() && !is_enough {
            let matcher = Arc::clone(join.matcher());
            *ended = join.end(|found| self.printer.lines(found, &matcher)).err();
        }
        match ended.take() {
            None | Some(Unjoined::Other(Closed::ByReader)) => Ok(join.selected()),
            Some(Unjoined::Other(Closed::Failed(failure))) => Err(failure),
            Some(why) => Err(Failure::run(why)),
        }
    }
}

impl Consumer for Searching {
    fn take(&self, answer: Answer) -> ControlFlow<()> {
        let mut state = self.state();
        let State { join, ended } = &mut *state;
        if ended.is_some() {
            return ControlFlow::Break(());
        }
        let matcher = Arc::clone(join.matcher());
        let added =
            join.add((answer.result, &answer.output), |found| self.printer.lines(found, &matcher));
        let shown = added.and_then(|()| self.printer.flush().map_err(Unjoined::Other));
        *ended = shown.err();
        let is_enough = self.wants == Wants::First && join.selected() > 0;
        match ended.is_some() || is_enough {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
