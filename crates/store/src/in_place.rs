//! Executions that read pieces in place: only digests cross the wire.

use csd_kernels::verify::{self, Parameters, Plan, Spacing};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output, SourceData};

use crate::array::{Drive, OBJECTS_NSID};
use crate::catalogue::ObjectId;
use crate::error::DriveError;
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

/// Length of the values with checksums, bytes: those of 256 MiB in pages of 4 KiB, which is more
/// than one execution reads, so that there is one value.
const SUMS_BYTES: u32 = 256 << 10;

/// Returns the index of a built-in program.
pub async fn program_index(drive: &Drive, pid: u64) -> Result<u16, Error> {
    let programs = drive.compute.programs().await;
    let programs = programs.map_err(|error| Error::command(drive, error))?;
    let index = programs.iter().position(|program| program.pid() == pid);
    index.and_then(|index| u16::try_from(index).ok()).ok_or_else(|| {
        Error::Drive(DriveError::Corrupt {
            drive: drive.name.clone(),
            object: format!("program {pid}"),
            why: "the drive does not list this program".to_owned(),
        })
    })
}

/// Executes a program, the `index`-th of the drive, on one core; returns its result.
///
/// # Errors
/// An answer that says nothing about the pieces.
pub(crate) async fn execute(
    drive: &Drive,
    (index, program): (u16, u64),
    sources: Vec<SourceData>,
    parameters: Vec<u8>,
    output: Output,
) -> Result<Result<u64, Unreadable>, Error> {
    let execution = Execution {
        program,
        output,
        sources: sources.into_iter().map(Into::into).collect(),
        inline: Vec::new(),
        digests: None,
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
    sources: Vec<SourceData>,
) -> Result<Result<u64, Unreadable>, Error> {
    execute(drive, (index, verify::PROGRAM_ID), sources, pages_of(page_bytes), Output::Completion)
        .await
}

/// Stores the checksums of the pages of pieces in a value, by its object and number, in their
/// drive: what the kernel `verify`, the `index`-th program of the drive, writes. Only the last page
/// of the last piece may be shorter than `page_bytes`.
///
/// # Errors
/// As [`execute`].
pub(crate) async fn sums(
    drive: &Drive,
    (index, page_bytes): (u16, u32),
    sources: Vec<SourceData>,
    (object, first): (ObjectId, u32),
) -> Result<Result<u64, Unreadable>, Error> {
    let (nsid, prefix, chunk_bytes) = (OBJECTS_NSID, object.0, SUMS_BYTES);
    let output = Output::KvChunks { nsid, prefix, first, stride: 1, chunk_bytes };
    execute(drive, (index, verify::PROGRAM_ID), sources, pages_of(page_bytes), output).await
}

/// Returns the parameters of `verify` over pages of this size.
fn pages_of(page_bytes: u32) -> Vec<u8> {
    Parameters { plan: Plan::sequential(page_bytes), spacing: Spacing::default() }.encode()
}
