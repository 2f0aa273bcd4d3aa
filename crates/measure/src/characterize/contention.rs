//! Contention: rival threads that use the host's cores, or the drive, while a kernel is measured.
//!
//! Does not limit memory; that is done from outside the process. Invariant: rivals work from before
//! the measurement begins until after it has ended.

use csd_initiator::{Block, Controller};
use csd_reactor::yield_now;

use super::Error;
use super::host::{Arriving, Shared};
use super::region::WorkingSet;

/// Other work during the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contention {
    /// No other work.
    #[default]
    None,
    /// Number of threads that compute.
    Cpu(usize),
    /// Number of threads that read the same drive.
    Io(usize),
}

impl Contention {
    /// Returns the number of threads.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Self::None => 0,
            Self::Cpu(count) | Self::Io(count) => count,
        }
    }
}

/// Rounds of arithmetic between two checks for the end: well below a millisecond.
const ROUNDS: u64 = 100_000;

/// Works until the measurement is over.
pub(super) async fn work(shared: &Shared) -> Result<(), Error> {
    match shared.job.contention {
        Contention::Io(_) => read(shared).await,
        Contention::Cpu(_) | Contention::None => {
            let mut value = 1u64;
            while !shared.is_over() {
                value = (0..ROUNDS).fold(value, |value, round| {
                    std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round)
                });
                yield_now().await;
            }
            Ok(())
        }
    }
}

async fn read(shared: &Shared) -> Result<(), Error> {
    let job = &shared.job;
    let controller = Controller::connect(&job.address, &job.connection).await?;
    let block = Block::open(&controller, job.region.nsid)?;
    let set = WorkingSet { bytes: job.bytes, streams: 1 };
    while !shared.is_over() {
        let mut arriving = Arriving::new(&block, &job.region, set, 0..job.bytes);
        while arriving.next().await?.is_some() && !shared.is_over() {}
    }
    controller.disconnect().await;
    Ok(())
}
