//! [`Lists`]: the records of a segment as its checkpoints must list them. Recovery and the check
//! compare what they walked with what the checkpoints behind say.

use crate::checkpoint::{Checkpoint, Listing};
use crate::record::{Record, SegmentRange};

/// Lists of a segment's records.
#[derive(Debug)]
pub(crate) struct Lists {
    // All records, unless the walk began in the middle.
    all: Option<Listing>,
    /// Records since the last checkpoint.
    pub(crate) since: Listing,
    /// Last checkpoint.
    pub(crate) last: Option<SegmentRange>,
    /// True if a place had no record: the lists may have the one that was there.
    pub(crate) is_broken: bool,
}

impl Default for Lists {
    fn default() -> Self {
        let (all, since) = (Some(Listing::default()), Listing::default());
        Self { all, since, last: None, is_broken: false }
    }
}

impl Lists {
    /// Begins behind a checkpoint.
    pub(crate) fn behind(checkpoint: SegmentRange) -> Self {
        Self { all: None, last: Some(checkpoint), ..Self::default() }
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, offset: u64, record: &Record) {
        self.all.iter_mut().for_each(|all| all.add(offset, record));
        self.since.add(offset, record);
    }

    /// Compares a checkpoint with the records before it. One that names none before it lists all
    /// records of the segment.
    ///
    /// # Errors
    /// The damage, in words.
    pub(crate) fn compare(
        &mut self,
        at: u64,
        checkpoint: &Checkpoint,
        list: Option<&[u8]>,
    ) -> Result<(), String> {
        let expected = match checkpoint.previous {
            None => self.all.as_ref(),
            Some(_) => Some(&self.since),
        };
        let is_right = self.is_broken
            || list.is_some_and(|list| expected.is_none_or(|expected| list == expected.bytes));
        let follows =
            self.is_broken || checkpoint.previous.is_none() || checkpoint.previous == self.last;
        self.since = Listing::default();
        self.last = Some(SegmentRange { offset: at, bytes: checkpoint.footprint() });
        match (list, is_right && follows) {
            (None, _) => Err(format!("checkpoint at {at} (checksum)")),
            (Some(_), false) => Err(format!("checkpoint at {at} lists other records")),
            (Some(_), true) => Ok(()),
        }
    }
}
