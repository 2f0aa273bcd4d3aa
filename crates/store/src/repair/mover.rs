//! [`Mover`]: brings pieces to the place where lost ones are computed, and stores the result.
//!
//! A [`Rebuild`] has everything that a mover needs: each target is a sum of multiples of the
//! sources, with the factors of the code's decoder, and has a drive of its own. [`ByHost`] reads
//! the sources, decodes and writes; [`super::by_drives`] lets a target's drive do so.
//!
//! A mover's success is a claim only: the caller lets the drives compare the targets with their
//! digests before they count. Invariant: nothing is written that differs from its digest.

use csd_kernels::erasure::{Code, Decoder};
use csd_reactor::{Buffer, Class, compute_fn, spawn};

use super::piece::Piece;
use crate::error::Error;
use crate::guarded::Owner;

/// Pieces of one stripe that are computed from others.
#[derive(Clone)]
pub(super) struct Rebuild {
    pub(super) code: Code,
    /// Pieces that are read.
    pub(super) sources: Vec<Piece>,
    /// Numbers of data pieces that the stripe does not have: they count as zeros, and with the
    /// sources they are n pieces.
    pub(super) empty: Vec<usize>,
    /// Pieces that are computed and stored.
    pub(super) targets: Vec<Piece>,
    /// The object, as the claims of its units name it.
    pub(super) owner: Owner,
    /// True to compare sources and results with their digests.
    pub(super) compares: bool,
}

impl Rebuild {
    /// Returns the decoder that computes the targets from the sources and the empty pieces.
    pub(super) fn decoder(&self) -> Decoder {
        let sources = self.sources.iter().map(|source| source.number);
        let sources: Vec<usize> = sources.chain(self.empty.iter().copied()).collect();
        let targets: Vec<usize> = self.targets.iter().map(|target| target.number).collect();
        self.code.decoder(&sources, &targets).expect("n different pieces")
    }
}

/// The side that has done a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Every byte crossed to the host.
    Host,
    /// The bytes went from drive to drive.
    Drives,
}

/// Reason why a rebuild stopped; it can be repeated with other sources or without that target.
#[derive(Debug)]
pub(super) enum Fault {
    /// The piece with this number is missing, damaged, or not the one that was put.
    Wrong(usize),
    /// A source's drive did not answer.
    Source(usize, Error),
    /// A target could not be stored.
    Target(usize, Error),
    /// The sources are right, and give other targets than the entry has digests of.
    Entry,
    /// Drives have not done it, and the host must look at the object again before it writes to its
    /// blocks.
    Look,
    /// The compute thread failed.
    ComputeThread,
}

/// Computes targets from sources.
pub(super) trait Mover {
    /// Computes and stores the targets.
    async fn rebuild(&self, work: &Rebuild) -> Result<By, Fault>;

    /// Returns how many times each source is read.
    fn reads(&self, _work: &Rebuild) -> u64 {
        1
    }
}

/// The host reads, decodes and writes.
pub(super) struct ByHost;

impl Mover for ByHost {
    async fn rebuild(&self, work: &Rebuild) -> Result<By, Fault> {
        let read = read_all(work).await?;
        let (rooms, sums) = decode(work, read).await.ok_or(Fault::ComputeThread)?;
        if work.compares && work.targets.iter().zip(&sums).any(|(target, sum)| target.sum != *sum) {
            return Err(Fault::Entry);
        }
        let begin = |(target, room): (&Piece, Buffer)| {
            let target = target.clone();
            let number = target.number;
            let writing = spawn(Class::Foreground, async move { target.write(room).await });
            (number, writing)
        };
        let writing: Vec<_> = work.targets.iter().zip(rooms).map(begin).collect();
        let mut failed = None;
        for (number, written) in writing {
            if let Err(error) = written.await {
                failed = failed.or(Some(Fault::Target(number, error)));
            }
        }
        failed.map_or(Ok(By::Host), Err)
    }
}

/// Reads the sources at once.
async fn read_all(work: &Rebuild) -> Result<Vec<Buffer>, Fault> {
    let begin = |source: &Piece| {
        let source = source.clone();
        spawn(Class::Foreground, async move { source.read().await })
    };
    let reading: Vec<_> = work.sources.iter().map(begin).collect();
    let (mut read, mut failed) = (Vec::with_capacity(reading.len()), None);
    for (source, bytes) in work.sources.iter().zip(reading) {
        match bytes.await {
            Ok(Some(bytes)) if !work.compares || crc32c::crc32c(&bytes) == source.sum => {
                read.push(bytes);
            }
            Ok(_) => failed = failed.or(Some(Fault::Wrong(source.number))),
            Err(error) => failed = failed.or(Some(Fault::Source(source.number, error))),
        }
    }
    failed.map_or(Ok(read), Err)
}

/// Computes the targets; returns them with their CRC-32C.
async fn decode(work: &Rebuild, read: Vec<Buffer>) -> Option<(Vec<Buffer>, Vec<u32>)> {
    let lengths: Vec<usize> = work.targets.iter().map(|target| target.bytes as usize).collect();
    let decoder = work.decoder();
    let decode = move || {
        let mut rooms: Vec<Buffer> = lengths.into_iter().map(Buffer::zeroed).collect();
        let mut bytes: Vec<&[u8]> = read.iter().map(|bytes| &bytes[..]).collect();
        bytes.resize(decoder.sources().len(), &[]);
        let mut slices: Vec<&mut [u8]> = rooms.iter_mut().map(|room| &mut room[..]).collect();
        decoder.decode(&bytes, &mut slices).expect("a room for every target");
        let sums = rooms.iter().map(|room| crc32c::crc32c(room)).collect();
        (rooms, sums)
    };
    compute_fn(Class::Execution, 0, decode).await.ok()
}
