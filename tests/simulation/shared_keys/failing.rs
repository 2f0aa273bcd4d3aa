//! [`Failing`]: a disk that is slow and fails while hosts race, with new faults in each life of the
//! drive.

use std::sync::Arc;

use csd_kvlog::media::{FaultConfig, Faulty, Media};

use crate::injected::Injections;

/// The faults of a run, and the disk of the life that goes on.
pub(super) struct Failing {
    config: FaultConfig,
    disk: Option<Arc<Faulty>>,
}

impl Failing {
    pub(super) fn new(seed: u64) -> Self {
        let reads = FaultConfig {
            failed_reads_ppm: 10_000,
            flipped_reads_ppm: 20_000,
            ..FaultConfig::default()
        };
        let writes =
            FaultConfig { failed_writes_ppm: 20_000, torn_writes_ppm: 20_000, ..reads.clone() };
        let config = match seed % 4 {
            0 => reads,
            1 => writes,
            2 => FaultConfig { failed_syncs_ppm: 5_000, ..writes },
            _ => FaultConfig { failed_writebacks_ppm: 5_000, ..writes },
        };
        // Also without delays, so that hosts get further.
        let latency_us = if seed.is_multiple_of(3) { 0..0 } else { 0..300 };
        Self { config: FaultConfig { latency_us, ..config }, disk: None }
    }

    /// Returns the disk for another life of the drive, which has no faults until
    /// [`Self::begin`]: one that cannot be read does not start, which other lanes look at.
    pub(super) fn disk(&mut self, media: Media, seed: u64) -> Media {
        let faulty = Arc::new(Faulty::new(media, seed));
        self.disk = Some(Arc::clone(&faulty));
        Media::Faulty(faulty)
    }

    /// Lets the disk fail.
    pub(super) fn begin(&self) {
        self.disk.iter().for_each(|disk| disk.set(self.config.clone()));
    }

    /// Returns the faults of a life that has ended.
    pub(super) fn ended(&mut self) -> Injections {
        self.disk.take().map(|disk| Injections::from(&disk.injected)).unwrap_or_default()
    }
}
