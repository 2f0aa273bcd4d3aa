//! Memory range sets: which bytes of memory an execution is given.
//!
//! Never: the bytes. Invariants: the ranges of a set lie in memory, hold a byte, and share none;
//! a set is used by one execution at a time, and not deleted then. Sets belong to the drive, not
//! to a host, and last until it stops: the log lists them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::program::{MemoryRange, RANGE_SETS_MAX, RangeSet};
use csd_nvme::status::Status;

use crate::namespace::memory::LocalMemory;

/// The memory range sets of a drive.
#[derive(Debug, Default)]
pub struct RangeSets(Mutex<BTreeMap<u16, Set>>);

#[derive(Debug)]
struct Set {
    ranges: Vec<MemoryRange>,
    in_use: bool,
}

/// That ranges can be given to an execution together.
///
/// # Errors
/// [`Status::INVALID_MEMORY_NAMESPACE`]; [`Status::INVALID_RANGE_SET`] for one that is empty or
/// beyond the end; [`Status::OVERLAPPING_RANGES`].
pub(super) fn check(memory: &LocalMemory, ranges: &[MemoryRange]) -> Result<(), Status> {
    for (index, one) in ranges.iter().enumerate() {
        match memory.check_of(one.nsid, one.range) {
            Err(Status::LBA_OUT_OF_RANGE) => return Err(Status::INVALID_RANGE_SET),
            other => other?,
        }
        if one.range.length == 0 {
            return Err(Status::INVALID_RANGE_SET);
        }
        if ranges[..index].iter().any(|other| other.range.overlaps(one.range)) {
            return Err(Status::OVERLAPPING_RANGES);
        }
    }
    Ok(())
}

impl RangeSets {
    /// Makes a set; its identifier.
    ///
    /// # Errors
    /// [`Status::RANGE_SETS_EXCEEDED`], or as `check`.
    pub fn create(&self, memory: &LocalMemory, ranges: Vec<MemoryRange>) -> Result<u16, Status> {
        check(memory, &ranges)?;
        let mut sets = self.sets();
        let free = (1..=RANGE_SETS_MAX).find(|rsid| !sets.contains_key(rsid));
        let rsid = free.ok_or(Status::RANGE_SETS_EXCEEDED)?;
        sets.insert(rsid, Set { ranges, in_use: false });
        Ok(rsid)
    }

    /// Forgets a set.
    ///
    /// # Errors
    /// [`Status::INVALID_RANGE_SET_ID`], [`Status::RANGE_SET_IN_USE`].
    pub fn delete(&self, rsid: u16) -> Result<(), Status> {
        let mut sets = self.sets();
        match sets.get(&rsid) {
            None => Err(Status::INVALID_RANGE_SET_ID),
            Some(set) if set.in_use => Err(Status::RANGE_SET_IN_USE),
            Some(_) => {
                sets.remove(&rsid);
                Ok(())
            }
        }
    }

    /// Takes a set for one execution.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn take(self: &Arc<Self>, rsid: u16) -> Result<Taken, Status> {
        let mut sets = self.sets();
        let set = sets.get_mut(&rsid).ok_or(Status::INVALID_RANGE_SET_ID)?;
        if set.in_use {
            return Err(Status::RANGE_SET_IN_USE);
        }
        set.in_use = true;
        Ok(Taken { sets: Arc::clone(self), rsid, ranges: set.ranges.clone() })
    }

    /// All sets, by identifier.
    pub fn list(&self) -> Vec<RangeSet> {
        let sets = self.sets();
        let told = sets.iter().map(|(rsid, set)| {
            let ranges = set.ranges.clone();
            RangeSet { rsid: *rsid, in_use: set.in_use, ranges }
        });
        told.collect()
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<u16, Set>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set that an execution uses; free again when dropped.
#[derive(Debug)]
pub struct Taken {
    sets: Arc<RangeSets>,
    rsid: u16,
    /// Its ranges.
    pub ranges: Vec<MemoryRange>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(set) = self.sets.sets().get_mut(&self.rsid) {
            set.in_use = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use csd_nvme::memory::Range;

    use super::*;

    fn range(start: u64, length: u64) -> MemoryRange {
        MemoryRange { nsid: 4, range: Range { start, length } }
    }

    #[test]
    fn ranges_must_lie_in_memory_and_apart() {
        let memory = LocalMemory::new(4096);
        assert_eq!(check(&memory, &[range(0, 4), range(8, 4088), range(4, 4)]), Ok(()));
        let elsewhere = MemoryRange { nsid: 5, ..range(0, 4) };
        assert_eq!(check(&memory, &[elsewhere]), Err(Status::INVALID_MEMORY_NAMESPACE));
        for wrong in [range(4092, 8), range(0, 0), range(4097, 1)] {
            assert_eq!(check(&memory, &[wrong]), Err(Status::INVALID_RANGE_SET), "{wrong:?}");
        }
        let overlapping = check(&memory, &[range(0, 8), range(4, 8)]);
        assert_eq!(overlapping, Err(Status::OVERLAPPING_RANGES));
    }

    #[test]
    fn a_set_is_used_once_at_a_time() {
        let (memory, sets) = (LocalMemory::new(4096), Arc::<RangeSets>::default());
        let rsid = sets.create(&memory, vec![range(0, 8)]).unwrap();
        let taken = sets.take(rsid).unwrap();
        assert_eq!(sets.take(rsid).unwrap_err(), Status::RANGE_SET_IN_USE);
        assert_eq!(sets.delete(rsid), Err(Status::RANGE_SET_IN_USE));
        assert!(sets.list()[0].in_use);
        drop(taken);
        assert_eq!(sets.delete(rsid), Ok(()));
        assert_eq!(sets.delete(rsid), Err(Status::INVALID_RANGE_SET_ID));
        assert_eq!(sets.take(rsid).unwrap_err(), Status::INVALID_RANGE_SET_ID);
    }

    #[test]
    fn there_are_so_many_sets_and_no_more() {
        let (memory, sets) = (LocalMemory::new(4096), RangeSets::default());
        for expected in 1..=RANGE_SETS_MAX {
            assert_eq!(sets.create(&memory, vec![range(0, 8)]), Ok(expected));
        }
        let more = sets.create(&memory, vec![range(0, 8)]);
        assert_eq!(more, Err(Status::RANGE_SETS_EXCEEDED));
        sets.delete(7).unwrap();
        assert_eq!(sets.create(&memory, vec![range(0, 8)]), Ok(7));
    }
}
