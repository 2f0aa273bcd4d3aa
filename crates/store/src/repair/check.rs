//! Checks of pieces in their drives: the kernel `verify` reads them where they are, and only
//! digests cross the wire.
//!
//! An execution reads several pieces, each as one page, and its result is compared with the
//! digests of the entry. Only if it differs are they read one by one. Writes nothing.

use csd_nvme::vendor::execute::{CHUNKS_MAX, SOURCES_MAX};

use super::fleet::Fleet;
use super::piece::Piece;
use crate::array::Drive;
use crate::error::Error;
use crate::in_place;
use crate::piece::verified;

/// Most bytes of one execution, so that a rate is kept evenly.
const EXECUTION_BYTES: u64 = 32 << 20;

/// Checks of pieces of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    /// Size of a page, bytes: that of the object's chunks.
    pub(super) page_bytes: u32,
    /// True to compare digests; else a piece that can be read is taken for right.
    pub(super) compares: bool,
}

impl Checks {
    /// Returns, for each of these pieces of one drive, if it is the one that was put. Pieces that
    /// are shorter than a page end an execution.
    ///
    /// # Errors
    /// An answer that says nothing about a piece.
    pub(super) async fn run(self, fleet: &Fleet, pieces: &[Piece]) -> Result<Vec<bool>, Error> {
        let mut right = Vec::with_capacity(pieces.len());
        for batch in self.batches(pieces) {
            let bytes = batch.iter().map(|piece| u64::from(piece.bytes)).sum();
            fleet.pace(batch[0].drive.index, bytes).await;
            if self.are_right(fleet, batch).await? {
                right.resize(right.len() + batch.len(), true);
            } else if batch.len() == 1 {
                right.push(false);
            } else {
                for piece in batch.chunks(1) {
                    right.push(self.are_right(fleet, piece).await?);
                }
            }
        }
        Ok(right)
    }

    /// Cuts pieces into executions.
    fn batches(self, pieces: &[Piece]) -> Vec<&[Piece]> {
        let most = EXECUTION_BYTES / u64::from(self.page_bytes.max(1));
        let most = most.clamp(1, u64::from(CHUNKS_MAX).min(SOURCES_MAX as u64));
        let (mut batches, mut begin) = (Vec::new(), 0);
        for (index, piece) in pieces.iter().enumerate() {
            let count = (index + 1 - begin) as u64;
            if count == most || piece.bytes != self.page_bytes || index + 1 == pieces.len() {
                batches.push(&pieces[begin..=index]);
                begin = index + 1;
            }
        }
        batches
    }

    /// Returns true if all pieces of one execution are right.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) async fn are_right(self, fleet: &Fleet, pieces: &[Piece]) -> Result<bool, Error> {
        let drive: &Drive = &pieces[0].drive;
        let program = fleet.program(drive).await?;
        let sources = pieces.iter().map(Piece::source).collect();
        let read = in_place::verify(drive, program, self.page_bytes, sources).await?;
        let sums: Vec<u32> = pieces.iter().map(|piece| piece.sum).collect();
        Ok(read.is_ok_and(|result| !self.compares || result == verified(&sums)))
    }
}
