//! Memory range sets: ranges of memory that executions are given.
//!
//! Invariants: the ranges of a set lie in memory, are not empty and do not overlap; a set is used
//! by one execution at a time, and is not deleted meanwhile. Sets belong to the host that made
//! them, by its NQN, and do not exist for others. They last until the drive stops.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::memory::Range;
use csd_nvme::program::{MemoryRange, RANGE_SETS_MAX, RangeSet};
use csd_nvme::status::Status;

use crate::namespace::memory::LocalMemory;

/// Most sets of all hosts together.
const SETS_MAX: usize = 16 * RANGE_SETS_MAX as usize;

/// Returns the owner of a host's programs and range sets: the host by its NQN, or all hosts.
pub(super) fn owner(shared: bool, host: &str) -> &str {
    if shared { "" } else { host }
}

/// Memory range sets of a drive.
#[derive(Debug, Default)]
pub struct RangeSets {
    shared: bool,
    sets: Mutex<BTreeMap<Key, Set>>,
}

/// A set's owner and identifier.
type Key = (String, u16);

#[derive(Debug)]
struct Set {
    ranges: Vec<MemoryRange>,
    in_use: bool,
}

/// Checks that ranges can be given to one execution.
///
/// # Errors
/// [`Status::INVALID_MEMORY_NAMESPACE`]; [`Status::INVALID_RANGE_SET`] for one that is empty or
/// beyond the end; [`Status::OVERLAPPING_RANGES`].
pub(super) fn check(memory: &LocalMemory, ranges: &[MemoryRange]) -> Result<(), Status> {
    for one in ranges {
        match memory.check_of(one.nsid, one.range) {
            Err(Status::LBA_OUT_OF_RANGE) => return Err(Status::INVALID_RANGE_SET),
            other => other?,
        }
        if one.range.length == 0 {
            return Err(Status::INVALID_RANGE_SET);
        }
    }
    let mut sorted: Vec<Range> = ranges.iter().map(|one| one.range).collect();
    sorted.sort_unstable_by_key(|range| range.start);
    match sorted.windows(2).any(|two| two[0].overlaps(two[1])) {
        true => Err(Status::OVERLAPPING_RANGES),
        false => Ok(()),
    }
}

impl RangeSets {
    /// Makes an empty table of sets. If `shared`, they belong to all hosts together.
    pub fn new(shared: bool) -> Self {
        Self { shared, sets: Mutex::default() }
    }

    fn key(&self, host: &str, rsid: u16) -> Key {
        (owner(self.shared, host).to_owned(), rsid)
    }

    /// Makes a set of a host, and returns its identifier.
    ///
    /// # Errors
    /// [`Status::RANGE_SETS_EXCEEDED`] when the host or all hosts have too many, or as `check`.
    pub fn create(
        &self,
        host: &str,
        memory: &LocalMemory,
        ranges: Vec<MemoryRange>,
    ) -> Result<u16, Status> {
        check(memory, &ranges)?;
        let mut sets = self.sets();
        let mut keys = (1..=RANGE_SETS_MAX).map(|rsid| self.key(host, rsid));
        let free = keys.find(|key| !sets.contains_key(key)).filter(|_| sets.len() < SETS_MAX);
        let key = free.ok_or(Status::RANGE_SETS_EXCEEDED)?;
        let rsid = key.1;
        sets.insert(key, Set { ranges, in_use: false });
        Ok(rsid)
    }

    /// Deletes a set.
    ///
    /// # Errors
    /// [`Status::INVALID_RANGE_SET_ID`], [`Status::RANGE_SET_IN_USE`].
    pub fn delete(&self, host: &str, rsid: u16) -> Result<(), Status> {
        let (mut sets, key) = (self.sets(), self.key(host, rsid));
        match sets.get(&key) {
            None => Err(Status::INVALID_RANGE_SET_ID),
            Some(set) if set.in_use => Err(Status::RANGE_SET_IN_USE),
            Some(_) => {
                sets.remove(&key);
                Ok(())
            }
        }
    }

    /// Takes a set for one execution.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn take(self: &Arc<Self>, host: &str, rsid: u16) -> Result<Taken, Status> {
        let (mut sets, key) = (self.sets(), self.key(host, rsid));
        let set = sets.get_mut(&key).ok_or(Status::INVALID_RANGE_SET_ID)?;
        if set.in_use {
            return Err(Status::RANGE_SET_IN_USE);
        }
        set.in_use = true;
        Ok(Taken { sets: Arc::clone(self), key, ranges: set.ranges.clone() })
    }

    /// Returns the sets of a host, by identifier.
    pub fn list(&self, host: &str) -> Vec<RangeSet> {
        let sets = self.sets();
        let own = sets.range(self.key(host, 0)..=self.key(host, u16::MAX));
        let told = own.map(|((_, rsid), set)| {
            let ranges = set.ranges.clone();
            RangeSet { rsid: *rsid, in_use: set.in_use, ranges }
        });
        told.collect()
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<Key, Set>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard of a set that an execution uses.
#[derive(Debug)]
pub struct Taken {
    sets: Arc<RangeSets>,
    key: Key,
    /// Its ranges.
    pub ranges: Vec<MemoryRange>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(set) = self.sets.sets().get_mut(&self.key) {
            set.in_use = false;
        }
    }
}

#[cfg(test)]
mod tests {
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

    const A: &str = "nqn.a:a";
    const B: &str = "nqn.a:b";

    #[test]
    fn a_set_is_used_once_at_a_time() {
        let (memory, sets) = (LocalMemory::new(4096), Arc::<RangeSets>::default());
        let rsid = sets.create(A, &memory, vec![range(0, 8)]).unwrap();
        let taken = sets.take(A, rsid).unwrap();
        assert_eq!(sets.take(A, rsid).unwrap_err(), Status::RANGE_SET_IN_USE);
        assert_eq!(sets.delete(A, rsid), Err(Status::RANGE_SET_IN_USE));
        assert!(sets.list(A)[0].in_use);
        drop(taken);
        assert_eq!(sets.delete(A, rsid), Ok(()));
        assert_eq!(sets.delete(A, rsid), Err(Status::INVALID_RANGE_SET_ID));
        assert_eq!(sets.take(A, rsid).unwrap_err(), Status::INVALID_RANGE_SET_ID);
    }

    #[test]
    fn there_are_so_many_sets_and_no_more() {
        let (memory, sets) = (LocalMemory::new(4096), RangeSets::default());
        let create = |host: &str| sets.create(host, &memory, vec![range(0, 8)]);
        for expected in 1..=RANGE_SETS_MAX {
            assert_eq!(create(A), Ok(expected));
        }
        assert_eq!(create(A), Err(Status::RANGE_SETS_EXCEEDED));
        sets.delete(A, 7).unwrap();
        assert_eq!(create(A), Ok(7));
        let others = (0..).map(|host| create(&format!("nqn.a:{}", host / RANGE_SETS_MAX)));
        let made = others.take_while(Result::is_ok).count();
        assert_eq!(made + usize::from(RANGE_SETS_MAX), SETS_MAX, "of all hosts");
    }

    #[test]
    fn a_set_is_its_hosts_unless_they_share() {
        for shared in [false, true] {
            let (memory, sets) = (LocalMemory::new(4096), Arc::new(RangeSets::new(shared)));
            let rsid = sets.create(A, &memory, vec![range(0, 8)]).unwrap();
            assert_eq!(sets.list(B).len(), usize::from(shared));
            assert_eq!(sets.take(B, rsid).is_ok(), shared);
            assert_eq!(sets.delete(B, rsid).is_ok(), shared);
            assert_eq!(sets.list(A).len(), usize::from(!shared));
        }
    }
}
