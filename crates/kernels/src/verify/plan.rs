//! [`Plan`]: division of the pages among units. As a drive's parameters it has 16 bytes.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..4 | page size in bytes, from 1 |
//! | 4..8 | pages that a unit takes at a time, from 1 |
//! | 8..10 | units, from 1 |
//! | 10 | pages that advance together in a unit, 1 to 8; 0: the drive chooses this and the units |
//! | 11..16 | reserved, 0 |
//!
//! Reads no clock; the caller of [`Plan::auto`] supplies one. Invariant: parsing panics on no
//! bytes, and every plan has exactly one encoding.

use std::ops::Range;

use super::NAME;
use crate::numeric::{Malformed, PARAMETER_BYTES, sixteen};

/// Most pages that advance together in a unit.
pub const UNROLL_MAX: u8 = 8;

/// The paper's combinations of pages in a unit and units: 300 pages under way in each (section
/// 4.4).
pub const COMBINATIONS: [(u32, u16); 7] =
    [(25, 12), (30, 10), (50, 6), (60, 5), (75, 4), (100, 3), (150, 2)];

/// Division of the pages among units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    page_bytes: u32,
    pages_per_unit: u32,
    units: u16,
    unroll: u8,
}

/// Pages that a unit takes at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Index of the unit.
    pub unit: u16,
    /// Byte range of the data: whole pages, except at the data's end.
    pub bytes: Range<u64>,
}

impl Plan {
    /// Returns the plan of one page after another, by one unit.
    #[must_use]
    pub const fn sequential(page_bytes: u32) -> Self {
        Self { page_bytes, pages_per_unit: 1, units: 1, unroll: 1 }
    }

    /// Returns a plan.
    ///
    /// # Errors
    /// [`Malformed`] if a number is out of its range.
    pub fn new(
        page_bytes: u32,
        pages_per_unit: u32,
        units: u16,
        unroll: u8,
    ) -> Result<Self, Malformed> {
        let malformed = |reason| Err(Malformed { kernel: NAME, reason });
        match (page_bytes, pages_per_unit, units, unroll) {
            (0, ..) => malformed("the page size is 0"),
            (_, 0, ..) => malformed("a unit takes no pages"),
            (_, _, 0, _) => malformed("there are no units"),
            (.., unroll) if unroll > UNROLL_MAX => malformed("more than 8 pages advance together"),
            _ => Ok(Self { page_bytes, pages_per_unit, units, unroll }),
        }
    }

    /// Returns the plan whose units and unrolling the drive changes while it works.
    #[must_use]
    pub const fn adaptive(page_bytes: u32) -> Self {
        Self { page_bytes, pages_per_unit: 1, units: 1, unroll: 0 }
    }

    /// Returns the plan with this unrolling, if it leaves the choice to the drive.
    #[must_use]
    pub fn adapted(self, unroll: u8) -> Option<Self> {
        (self.unroll == 0).then_some(Self { unroll: unroll.clamp(1, UNROLL_MAX), ..self })
    }

    /// Returns the plans worth measuring with at most this many units: the sequential one, and each
    /// number of pages that may advance together with each number of units, with enough pages at a
    /// time for both.
    #[must_use]
    pub fn candidates(page_bytes: u32, units_max: u16) -> Vec<Self> {
        let units = std::iter::successors(Some(1u16), |units| units.checked_mul(2));
        let units: Vec<u16> =
            units.take_while(|units| *units < units_max).chain([units_max.max(1)]).collect();
        let mut plans = vec![Self::sequential(page_bytes)];
        for units in units {
            for unroll in [1, 2, 3, 4, 6, UNROLL_MAX] {
                for pages_per_unit in [24, 240] {
                    plans.push(Self { page_bytes, pages_per_unit, units, unroll });
                }
            }
        }
        plans
    }

    /// Returns the candidate with the least `measure`, in any unit of time; of equal ones the
    /// first, which has fewer units.
    ///
    /// # Panics
    /// Does not panic: there are always candidates.
    pub fn auto(page_bytes: u32, units_max: u16, mut measure: impl FnMut(&Self) -> u64) -> Self {
        let candidates = Self::candidates(page_bytes, units_max).into_iter();
        let measured = candidates.map(|plan| (measure(&plan), plan));
        measured.min_by_key(|(time, _)| *time).expect("sequential is a candidate").1
    }

    /// Returns the page size in bytes.
    #[must_use]
    pub const fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Returns the number of pages that a unit takes at a time.
    #[must_use]
    pub const fn pages_per_unit(&self) -> u32 {
        self.pages_per_unit
    }

    /// Returns the number of units.
    #[must_use]
    pub const fn units(&self) -> u16 {
        self.units
    }

    /// Returns the number of pages that advance together in a unit; 0 if the drive chooses.
    #[must_use]
    pub const fn unroll(&self) -> u8 {
        self.unroll
    }

    /// Returns the batches of `bytes` bytes of data, in the data's order: units take batches in
    /// turn.
    pub fn batches(&self, bytes: u64) -> impl Iterator<Item = Batch> {
        let batch_bytes = u64::from(self.page_bytes) * u64::from(self.pages_per_unit);
        let units = u64::from(self.units);
        (0..bytes.div_ceil(batch_bytes)).map(move |index| Batch {
            unit: u16::try_from(index % units).expect("below the number of units"),
            bytes: index * batch_bytes..bytes.min((index + 1).saturating_mul(batch_bytes)),
        })
    }

    /// Encodes the plan.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = self.page_bytes.to_le_bytes().to_vec();
        data.extend_from_slice(&self.pages_per_unit.to_le_bytes());
        data.extend_from_slice(&self.units.to_le_bytes());
        data.push(self.unroll);
        data.resize(PARAMETER_BYTES, 0);
        data
    }

    /// Parses a plan.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let [p0, p1, p2, p3, n0, n1, n2, n3, u0, u1, unroll, reserved @ ..] = *sixteen(NAME, data)?;
        if reserved != [0; 5] {
            return Err(malformed("reserved bytes are not zero"));
        }
        let page_bytes = u32::from_le_bytes([p0, p1, p2, p3]);
        let pages_per_unit = u32::from_le_bytes([n0, n1, n2, n3]);
        Self::new(page_bytes, pages_per_unit, u16::from_le_bytes([u0, u1]), unroll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_these_bytes_and_each_wrong_field_is_named() {
        let plan = Plan::new(4096, 25, 12, 3).unwrap();
        let good = [0, 16, 0, 0, 25, 0, 0, 0, 12, 0, 3, 0, 0, 0, 0, 0];
        assert_eq!(plan.encode(), good);
        assert_eq!(Plan::parse(&good), Ok(plan));
        let with = |index: usize, byte: u8| {
            let mut data = good;
            data[index] = byte;
            Plan::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(1, 0), Err("the page size is 0"));
        assert_eq!(with(4, 0), Err("a unit takes no pages"));
        assert_eq!(with(8, 0), Err("there are no units"));
        assert_eq!(with(10, 0), Ok(Plan { unroll: 0, ..plan }));
        assert_eq!(with(10, 9), Err("more than 8 pages advance together"));
        for index in 11..16 {
            assert_eq!(with(index, 1), Err("reserved bytes are not zero"));
        }
        assert_eq!(Plan::parse(&good[1..]).unwrap_err().reason, "not 16 bytes");
    }

    #[test]
    fn the_drive_chooses_where_the_plan_leaves_it_open() {
        let open = Plan::adaptive(4096);
        assert_eq!(Plan::parse(&open.encode()), Ok(open));
        assert_eq!(open.adapted(3), Plan::new(4096, 1, 1, 3).ok());
        assert_eq!(open.adapted(0), Plan::new(4096, 1, 1, 1).ok());
        assert_eq!(Plan::sequential(4096).adapted(3), None);
    }

    #[test]
    fn batches_cover_the_data_and_go_round() {
        let plan = Plan::new(10, 3, 2, 1).unwrap();
        let batches: Vec<Batch> = plan.batches(95).collect();
        let expected = [(0, 0..30), (1, 30..60), (0, 60..90), (1, 90..95)];
        assert_eq!(batches, expected.map(|(unit, bytes)| Batch { unit, bytes }));
        assert_eq!(plan.batches(0).count(), 0);
    }

    #[test]
    fn the_fastest_candidate_is_picked_and_the_first_of_equal_ones() {
        let picked = Plan::auto(4096, 3, |plan| match (plan.units(), plan.unroll()) {
            (3, 2) => 1,
            _ => 2,
        });
        assert_eq!((picked.units(), picked.unroll()), (3, 2));
        assert_eq!(Plan::auto(512, 4, |_| 1), Plan::sequential(512));
        let units: Vec<u16> = Plan::candidates(1, 6).iter().map(Plan::units).collect();
        assert_eq!((units[0], units.last()), (1, Some(&6)));
        assert!(COMBINATIONS.iter().all(|(pages, units)| pages * u32::from(*units) == 300));
    }
}
