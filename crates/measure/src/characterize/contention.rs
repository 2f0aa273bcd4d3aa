//! Contention: rival threads that use the host's cores, or the drive, while a kernel is measured.
//!
//! Does not limit memory; that is done from outside the process. Invariant: rivals work from before
//! the measurement begins until after it has ended.

use csd_reactor::yield_now;

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

/// Computes until the measurement is over.
pub(super) async fn compute(is_over: impl Fn() -> bool) {
    let mut value = 1u64;
    while !is_over() {
        value = (0..ROUNDS).fold(value, |value, round| {
            std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round)
        });
        yield_now().await;
    }
}
