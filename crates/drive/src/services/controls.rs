//! [`Services`]: settings and counts of the drive's services. Those of checkpoints are the log's
//! own ([`Segments`](csd_kvlog::segments::Segments)).

use csd_kvlog::control::Control;

/// Rate of a scrub that is resumed without one, bytes per second. No rate at all would use the
/// medium as much as it allows.
const SCRUB_BYTES_PER_S: u64 = 20 << 20;

/// Settings and counts of the services that the log has no part in.
#[derive(Debug)]
pub struct Services {
    /// Cleaning.
    pub clean: Control,
    /// Scrub, which is paused unless the drive is started with it.
    pub scrub: Control,
    /// Commands of other drives.
    pub peers: Control,
    /// Counting and sharing of chunks.
    pub dedup: Control,
    /// Deletion of shared chunks that no value has.
    pub collect: Control,
}

impl Default for Services {
    fn default() -> Self {
        let scrub = Control::default();
        scrub.set_rate(Some(SCRUB_BYTES_PER_S));
        scrub.pause();
        let (clean, peers) = (Control::default(), Control::default());
        let (dedup, collect) = (Control::default(), Control::default());
        Self { clean, scrub, peers, dedup, collect }
    }
}

impl Services {
    /// Lets the scrubs of all cores together read so many bytes per second.
    pub fn begin_scrub(&self, bytes_per_s: u64) {
        self.scrub.set_rate(Some(bytes_per_s));
        self.scrub.resume();
    }
}
