//! Executions that read pieces where they lie; digests cross the wire, and no pieces.

use csd_kernels::verify::{self, Parameters, Plan, Spacing};
use csd_nvme::execute::{Execution, Output, Place};
use csd_nvme::status::Status;

use crate::array::Drive;
use crate::error::Error;
use crate::piece::is_damage;

/// Reason why a drive cannot read pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// One is not there, or has another length.
    Missing,
    /// Its record does not match its own checksum, or the medium fails.
    Damaged,
}

/// Executes a program, the `index`-th of the drive, on one core; returns its result.
///
/// # Errors
/// An answer that says nothing about the pieces.
pub(crate) async fn execute(
    drive: &Drive,
    (index, program): (u16, u64),
    places: Vec<Place>,
    parameters: Vec<u8>,
) -> Result<Result<u64, Unreadable>, Error> {
    let execution = Execution {
        program,
        output: Output::Completion,
        sources: places.into_iter().map(Into::into).collect(),
        inline: Vec::new(),
        parameters,
        serial: false,
        cores: 1,
    };
    match drive.compute.execute(index, &execution).await {
        Ok(result) => Ok(Ok(result)),
        Err(error) => match error.status() {
            Some(Status::SOURCE_MISSING) => Ok(Err(Unreadable::Missing)),
            status if is_damage(status) => Ok(Err(Unreadable::Damaged)),
            _ => Err(Error::command(drive, error)),
        },
    }
}

/// Returns the result of the kernel `verify`, the `index`-th program of the drive; each piece is a
/// page of `page_bytes`, and the last one may be shorter.
///
/// # Errors
/// As [`execute`].
pub(crate) async fn verify(
    drive: &Drive,
    index: u16,
    page_bytes: u32,
    places: Vec<Place>,
) -> Result<Result<u64, Unreadable>, Error> {
    let plan = Plan::sequential(page_bytes);
    let parameters = Parameters { plan, spacing: Spacing::default() }.encode();
    execute(drive, (index, verify::PROGRAM_ID), places, parameters).await
}
