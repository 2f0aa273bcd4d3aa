//! [`Failure`]: why an execution failed, as a status for the host and words for the log.

use std::fmt;

use csd_kernels::program::{self, Cause};
use csd_nvme::status::Status;
use csd_reactor::ComputeFailed;

/// Failure of an execution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// Status of the completion.
    pub status: Status,
    /// The reason in words, for the log.
    pub reason: String,
}

impl Failure {
    /// Makes a failure of a status and its reason.
    pub fn new(status: Status, reason: impl fmt::Display) -> Self {
        Self { status, reason: reason.to_string() }
    }

    /// Makes the failure of an execution whose parameters, sources or output the program does not
    /// take.
    pub fn misuse(reason: impl fmt::Display) -> Self {
        Self::new(Status::INVALID_PROGRAM_DATA, reason)
    }

    /// Makes the failure of an execution that names a namespace of another kind than it needs.
    pub(super) fn no_namespace(kind: &str, nsid: u32) -> Self {
        let reason = format!("namespace {nsid} is no {kind} namespace of this drive");
        Self::new(Status::INVALID_NAMESPACE, reason)
    }
}

impl From<program::Failure> for Failure {
    fn from(failure: program::Failure) -> Self {
        let status = match failure.cause {
            Cause::Parameters => Status::INVALID_PROGRAM_DATA,
            Cause::InputType => Status::SOURCE_TYPE,
            Cause::InputOrder => Status::SOURCE_ORDER,
            Cause::Corrupt => Status::UNRECOVERED_ERROR,
            Cause::Program => Status::PROGRAM_FAILED,
        };
        Self { status, reason: failure.reason }
    }
}

impl From<ComputeFailed> for Failure {
    fn from(failed: ComputeFailed) -> Self {
        let status = match failed {
            ComputeFailed::Panicked => Status::PROGRAM_FAILED,
            // It says nothing of the program.
            ComputeFailed::NoThread => Status::INTERNAL_ERROR,
        };
        Self::new(status, failed)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::new(status, status)
    }
}
