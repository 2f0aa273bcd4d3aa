//! [`KnownPieces`]: the pieces that drives list by name, found without reading a piece.
//!
//! A value is there if its key is listed; a chunk on blocks, if its unit is claimed for the object.
//! An emptied drive has neither. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::chunk_key;

use super::fleet::Fleet;
use crate::array::DriveIndex;
use crate::catalogue::{self, Entry, ObjectId, Placement};
use crate::error::DriveError;
use crate::error::Error;
use crate::extent::{self, UNIT_BYTES};
use crate::extent_ranges;
use crate::unwritten;

/// Names of an object's pieces on its drives.
#[derive(Default)]
pub(super) struct KnownPieces {
    /// Keys of values, by drive.
    keys: BTreeMap<DriveIndex, BTreeSet<Key>>,
    /// For each member of an object on blocks: its units in order, true if they are its own.
    units: Vec<Vec<bool>>,
    /// Members whose blocks are marked as not all written.
    marked: BTreeSet<usize>,
}

impl KnownPieces {
    /// Asks all drives that may hold pieces. One that fails takes no further part.
    pub(super) async fn read(fleet: &Fleet, entry: &Entry) -> Self {
        let mut known = Self::default();
        let group = entry.protection.as_ref().map(|protection| &protection.group);
        for &index in group.unwrap_or(&entry.members) {
            if let Err(error) = known.read_keys(fleet, entry, index).await {
                fleet.lose(index, &error);
            }
        }
        for (member, units) in member_units(entry).iter().enumerate() {
            let index = entry.members[member];
            let mut own = vec![false; units.len()];
            for (unit, own) in units.iter().zip(&mut own) {
                let Some(drive) = fleet.drive(index) else { break };
                match extent::owner(drive, *unit).await {
                    Ok(owner) => *own = owner == Some(entry.id),
                    Err(Error::Drive(DriveError::Corrupt { .. })) => {}
                    Err(error) => fleet.lose(index, &error),
                }
            }
            known.units.push(own);
            if let Some(drive) = fleet.drive(index) {
                match unwritten::is_marked(drive, entry.id).await {
                    Ok(false) => {}
                    Ok(true) => drop(known.marked.insert(member)),
                    Err(error) => fleet.lose(index, &error),
                }
            }
        }
        known
    }

    async fn read_keys(
        &mut self,
        fleet: &Fleet,
        entry: &Entry,
        index: DriveIndex,
    ) -> Result<(), Error> {
        let Some(drive) = fleet.drive(index) else { return Ok(()) };
        let keys = self.keys.entry(index).or_default();
        let of_data = (entry.placement == Placement::Kv).then_some(entry.id);
        for id in of_data.into_iter().chain(entry.parity_id()) {
            let first = chunk_key(&id.0, 0);
            keys.extend(catalogue::keys_with_prefix(drive, &id.0, first.as_bytes()).await?);
        }
        Ok(())
    }

    /// Returns true if the drive has this value.
    pub(super) fn has_value(&self, drive: DriveIndex, id: ObjectId, number: u32) -> bool {
        self.keys.get(&drive).is_some_and(|keys| keys.contains(&chunk_key(&id.0, number)))
    }

    /// Returns true if the unit that holds this byte of a member's data is the object's.
    pub(super) fn has_unit(&self, member: usize, byte: u64) -> bool {
        let unit = usize::try_from(byte / UNIT_BYTES).unwrap_or(usize::MAX);
        self.units.get(member).and_then(|units| units.get(unit)).copied().unwrap_or(false)
    }

    /// Returns true if a member's blocks are marked as not all written, or will be before their
    /// units are claimed.
    pub(super) fn is_unwritten(&self, member: usize) -> bool {
        self.marked.contains(&member) || !self.foreign_units(member).is_empty()
    }

    /// Returns the positions of a member's units that are not the object's.
    pub(super) fn foreign_units(&self, member: usize) -> Vec<usize> {
        let units = self.units.get(member).into_iter().flatten().enumerate();
        units.filter(|(_, own)| !**own).map(|(position, _)| position).collect()
    }
}

/// Returns the units that the chunks of each member need, in order; none for values.
pub(super) fn member_units(entry: &Entry) -> Vec<Vec<u32>> {
    let Placement::Block(extents) = &entry.placement else { return Vec::new() };
    let layout = entry.layout();
    let units = |(member, extents)| {
        let bytes = u64::from(layout.count(member)) * u64::from(entry.chunk_bytes);
        extent_ranges::units_of(extents, bytes.div_ceil(UNIT_BYTES))
    };
    extents.iter().enumerate().map(units).collect()
}
