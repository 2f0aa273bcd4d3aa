//! Guards of pieces on blocks: a drive writes them only while their units are still the object's.
//!
//! A drive goes on with its task after its host has ended, and a unit may be another object's by
//! then. Performs no I/O.

use csd_nvme::kv::Key;
use csd_nvme::vendor::combine::Guard;

use crate::array::OBJECTS_NSID;
use crate::catalogue::{self, Entry, ObjectId};
use crate::extent::{UNIT_BYTES, claim_value, unit_key};
use crate::piece::Spot;

/// An object as the claims of its units name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    object: ObjectId,
    entry_key: Key,
}

impl Owner {
    /// Returns the owner of an entry's units.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self { object: entry.id, entry_key: catalogue::key(&entry.name) }
    }

    /// Returns the guards of a piece of `bytes` bytes, which is this target of a task: a claim for
    /// each unit that it covers; none for a value.
    pub(crate) fn guards(&self, target: usize, spot: Spot, bytes: u32) -> Vec<Guard> {
        let Spot::Blocks(start) = spot else { return Vec::new() };
        let end = start + u64::from(bytes);
        let units = start / UNIT_BYTES..end.div_ceil(UNIT_BYTES);
        let guard = |unit| Guard {
            target: u8::try_from(target).expect("at most 48 targets"),
            nsid: OBJECTS_NSID,
            key: unit_key(u32::try_from(unit).expect("an entry counts units in 32 bits")),
            value: claim_value(self.object, &self.entry_key).to_vec(),
        };
        units.map(guard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_guarded_by_the_claims_of_all_its_units() {
        let owner = Owner { object: ObjectId([9; 12]), entry_key: catalogue::key("x") };
        let units = |start: u64, bytes: u32| {
            let guards = owner.guards(2, Spot::Blocks(start), bytes);
            assert!(guards.iter().all(|guard| guard.target == 2 && guard.nsid == OBJECTS_NSID));
            let of_unit = |unit| guards.iter().any(|guard| guard.key == unit_key(unit));
            assert_eq!(guards.len(), (0..9).filter(|unit| of_unit(*unit)).count());
            (0..9).filter(|unit| of_unit(*unit)).collect::<Vec<u32>>()
        };
        let unit = u32::try_from(UNIT_BYTES).unwrap();
        assert_eq!(units(3 * UNIT_BYTES, 1), [3]);
        assert_eq!(units(3 * UNIT_BYTES, unit), [3]);
        assert_eq!(units(4 * UNIT_BYTES - 4096, 4096), [3]);
        assert_eq!(units(4 * UNIT_BYTES - 4096, 4097), [3, 4]);
        assert_eq!(units(2 * UNIT_BYTES + 4096, 2 * unit), [2, 3, 4]);
        let guards = owner.guards(0, Spot::Blocks(0), 1);
        assert_eq!(guards[0].value, claim_value(owner.object, &owner.entry_key));
        assert!(owner.guards(0, Spot::Value(ObjectId([9; 12]), 1), 1).is_empty());
    }
}
