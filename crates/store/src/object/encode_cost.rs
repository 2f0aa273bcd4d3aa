//! Ways to encode an object: on the host or in drives, and the bytes that each moves.
//!
//! The model knows links only: one of the host and one of each drive, all of the same speed. A way
//! takes as long as the link that carries most. Computing is left out. Performs no I/O.

use std::time::Duration;

use crate::array::DriveIndex;
use crate::layout::{Layout, Stripes};

/// Place where parity is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encode {
    /// On the host, which reads the chunks and sends the parity.
    #[default]
    Host,
    /// In drives, which read from their peers and store there.
    Drives,
    /// In the place that takes less time by the model.
    Auto,
}

/// Bytes that a way moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Over the host's link.
    pub host: u64,
    /// Over the links of all drives; what goes from drive to drive counts at both.
    pub drives: u64,
    /// Over the link of the drive that moves most.
    pub busiest: u64,
}

impl Moved {
    fn over(host: u64, drives: &[u64]) -> Self {
        let busiest = drives.iter().copied().max().unwrap_or(0);
        Self { host, drives: drives.iter().sum(), busiest }
    }

    /// Returns the modelled time on links of so many bytes per second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53 bytes
    pub fn time(&self, bytes_per_s: u64) -> Duration {
        let bytes = self.host.max(self.busiest);
        Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64)
    }
}

/// Bytes that both ways move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// If the host encodes.
    pub host: Moved,
    /// If drives encode.
    pub in_drives: Moved,
}

impl Model {
    /// Counts the bytes of all stripes. In drives, the drive of the first parity piece encodes; if
    /// the chunks lie at an `origin`, that drive does, and they are copied to their drives.
    pub(super) fn new(
        layout: &Layout,
        stripes: &Stripes,
        origin: Option<DriveIndex>,
        slots: usize,
    ) -> Self {
        let data = stripes.scheme().data();
        let (mut by_host, mut by_drives) = (vec![0; slots], vec![0; slots]);
        let mut host = 0;
        for stripe in 0..stripes.count() {
            let drive_of = |piece| stripes.drive(stripe, piece).expect("a piece of the stripe");
            let encoder = origin.unwrap_or_else(|| drive_of(data));
            for piece in stripes.pieces(stripe) {
                let (drive, chunk) = (drive_of(piece), stripes.chunks(stripe).get(piece));
                let bytes = chunk
                    .map_or_else(|| stripes.parity_bytes(stripe), |chunk| layout.chunk_len(*chunk));
                let mut ends = vec![drive];
                ends.extend(origin.filter(|_| chunk.is_some()));
                for end in ends {
                    host += u64::from(bytes);
                    add(&mut by_host, end, bytes);
                }
                if drive != encoder {
                    add(&mut by_drives, drive, bytes);
                    add(&mut by_drives, encoder, bytes);
                }
            }
        }
        Self { host: Moved::over(host, &by_host), in_drives: Moved::over(0, &by_drives) }
    }

    /// Returns the way that takes less time; the host if both take as long.
    #[must_use]
    pub fn better(&self) -> Encode {
        let longest = |moved: &Moved| moved.host.max(moved.busiest);
        match longest(&self.in_drives) < longest(&self.host) {
            true => Encode::Drives,
            false => Encode::Host,
        }
    }
}

fn add(loads: &mut [u64], drive: DriveIndex, bytes: u32) {
    if let Some(load) = loads.get_mut(usize::from(drive)) {
        *load += u64::from(bytes);
    }
}

/// Account of how an object was encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Bytes that both ways move.
    pub model: Model,
    /// Way that was taken, host or drives.
    pub by: Encode,
    /// Stripes that the host has encoded because drives failed.
    pub stripes_here: u32,
    /// Data of commands that crossed between host and drives meanwhile, bytes.
    pub host_crossed_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_link_decides_and_the_host_wins_ties() {
        let moved = |host, busiest| Moved { host, drives: 0, busiest };
        let better = |host, in_drives| Model { host, in_drives }.better();
        assert_eq!(better(moved(100, 20), moved(0, 99)), Encode::Drives);
        assert_eq!(better(moved(100, 20), moved(0, 100)), Encode::Host);
        assert_eq!(better(moved(100, 120), moved(0, 110)), Encode::Drives);
        assert_eq!(moved(500, 250).time(1000), Duration::from_millis(500));
        assert_eq!(moved(0, 250).time(1000), Duration::from_millis(250));
    }
}
