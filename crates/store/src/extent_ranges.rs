//! Extents as units and as byte ranges: which bytes of a block namespace hold an object's bytes.
//!
//! It does no I/O.

use crate::catalogue::Extents;
use crate::layout::UNIT_BYTES;

/// Returns the first `count` units of extents, in order.
pub fn units_of(extents: &Extents, count: u64) -> Vec<u32> {
    let units = extents.iter().flat_map(|&(first, count)| first..first.saturating_add(count));
    units.take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
}

/// Returns the extents of these units, in order.
pub(crate) fn extents_of(units: &[u32]) -> Extents {
    let mut extents = Extents::new();
    units.iter().for_each(|unit| push_unit(&mut extents, *unit));
    extents
}

/// Adds a unit behind the others.
pub(crate) fn push_unit(extents: &mut Extents, unit: u32) {
    match extents.last_mut() {
        Some((first, count)) if *first + *count == unit => *count += 1,
        _ => extents.push((unit, 1)),
    }
}

/// Returns the contiguous byte ranges of a block namespace, in order, that hold bytes `start..start
/// + bytes` of the object's data on this drive.
///
/// # Panics
/// When the extents are shorter; parsing an entry excludes this.
#[must_use]
pub fn byte_ranges(extents: &Extents, start: u64, bytes: u64) -> Vec<(u64, u64)> {
    let (mut ranges, mut skip, mut left) = (Vec::new(), start, bytes);
    for &(first, count) in extents {
        let room = u64::from(count) * UNIT_BYTES;
        if skip >= room {
            skip -= room;
            continue;
        }
        if left == 0 {
            break;
        }
        let take = left.min(room - skip);
        ranges.push((u64::from(first) * UNIT_BYTES + skip, take));
        (skip, left) = (0, left - take);
    }
    assert_eq!(left, 0, "extents are as long as the chunks they hold");
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_follow_the_runs() {
        let mut extents = Extents::new();
        [7, 8, 3, 20].into_iter().for_each(|unit| push_unit(&mut extents, unit));
        assert_eq!(extents, [(7, 2), (3, 1), (20, 1)]);
        let unit = UNIT_BYTES;
        assert_eq!(
            byte_ranges(&extents, 0, 4 * unit),
            [(7 * unit, 2 * unit), (3 * unit, unit), (20 * unit, unit)]
        );
        assert_eq!(byte_ranges(&extents, 2 * unit - 10, 20), [(9 * unit - 10, 10), (3 * unit, 10)]);
        assert_eq!(byte_ranges(&extents, 3 * unit, 5), [(20 * unit, 5)]);
        assert!(byte_ranges(&extents, 0, 0).is_empty());
    }
}
