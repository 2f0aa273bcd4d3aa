//! Operations that an event loop has submitted, and their ends.
//!
//! Invariant: every submitted operation ends once in [`Queue::drain`], unless the queue is dropped.

use std::os::fd::{AsFd, AsRawFd};

use csd_client::{Client, Completions, Operation, Outcome};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};

use crate::convert::fail;
use crate::waiting::wait;

/// Token, result or `None`, error or `None`.
pub(crate) type Ended<'py> = (u64, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

pub(crate) struct Queue(Completions<(u64, Result<Outcome, csd_client::Error>)>);

impl Queue {
    pub(crate) fn new() -> PyResult<Self> {
        Ok(Self(Completions::new()?))
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    /// Submits an operation; waits while too many are under way.
    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        client: &Client,
        token: u64,
        operation: Operation,
    ) -> PyResult<()> {
        let into = self.0.clone();
        let deliver = move |outcome| into.push((token, outcome));
        wait(py, || client.submit(operation, deliver))
    }

    pub(crate) fn drain<'py>(&self, py: Python<'py>) -> PyResult<Vec<Ended<'py>>> {
        let done = self.0.drain(usize::MAX).map_err(|error| fail(error.into()))?;
        Ok(done.into_iter().map(|(token, outcome)| ended(py, token, outcome)).collect())
    }
}

fn ended(py: Python<'_>, token: u64, outcome: Result<Outcome, csd_client::Error>) -> Ended<'_> {
    let flag = |value| Some(PyBool::new(py, value).to_owned().into_any());
    match outcome {
        Ok(Outcome::Get(Some(value))) => (token, Some(PyBytes::new(py, &value).into_any()), None),
        Ok(Outcome::Exists(found) | Outcome::Delete(found)) => (token, flag(found), None),
        Ok(_) => (token, None, None),
        Err(error) => (token, None, Some(fail(error).into_value(py).into_bound(py).into_any())),
    }
}
