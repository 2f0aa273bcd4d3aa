//! Recovery by a mark: the segments of a medium whose drive had a volatile cache.
//!
//! Invariant: no byte behind a shard's position counts, whatever lies there.

use std::cmp::Ordering;

use crate::error::Error;
use crate::mark::{MARK_OFFSETS, Mark};
use crate::media::Media;
use crate::record::{RECORDS_OFFSET, SECTOR_BYTES};
use crate::recover::Found;
use crate::segment_head::Seal;
use crate::segments::Segments;

/// Reads the mark that counts, and notes its sequences; `None` if there is none, and the medium is
/// only to be salvaged.
///
/// # Errors
/// When the medium cannot be read, or both copies are damaged.
pub async fn read(media: &Media, segments: &Segments) -> Result<Option<Mark>, Error> {
    let mark = Mark::newest(Mark::read(media, &segments.uuid).await?);
    match &mark {
        // New segments get higher sequences. Cleaning may have freed those that the mark names.
        Some(mark) => mark.positions.iter().for_each(|at| segments.seen(0, at.sequence)),
        None => segments.damaged("both copies of the mark (checksum)".to_owned())?,
    }
    Ok(mark)
}

/// Returns descriptions of the copies that are damaged.
///
/// # Errors
/// When the medium cannot be read.
pub async fn damaged_copies(media: &Media, segments: &Segments) -> Result<Vec<String>, Error> {
    let copies = Mark::read(media, &segments.uuid).await?;
    let damaged = copies.iter().zip(MARK_OFFSETS).filter(|(copy, _)| copy.is_none());
    Ok(damaged.map(|(_, at)| format!("mark at {at} (checksum)")).collect())
}

/// Lets every segment end where the mark says. Returns the damage, in words.
pub fn apply(mark: &Mark, found: &mut [Found], segments: &Segments) -> Vec<String> {
    let mut damage = Vec::new();
    for segment in found {
        let Some(position) = mark.positions.get(segment.shard as usize) else { continue };
        let (end, checkpoint) = match segment.sequence.cmp(&position.sequence) {
            // It was sealed before the next one began.
            Ordering::Less if segment.seal.is_some() => continue,
            Ordering::Less => {
                damage.push(format!("segment {}: its seal", segment.number));
                continue;
            }
            Ordering::Equal => (position.end, position.checkpoint),
            Ordering::Greater => (RECORDS_OFFSET, None),
        };
        let is_possible = (RECORDS_OFFSET..=segments.segment_bytes).contains(&end)
            && segment
                .seal
                .is_none_or(|seal| seal.valid_bytes.next_multiple_of(SECTOR_BYTES) == end)
            && checkpoint.is_none_or(|place| place.end() <= end);
        if !is_possible {
            let text = format!("segment {}: its end is not that of the mark", segment.number);
            damage.push(text);
        } else if segment.seal.is_none() {
            segment.seal = Some(Seal { valid_bytes: end, checkpoint, ..Seal::default() });
            segment.is_cut = true;
        }
        segment.hint = None;
    }
    damage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::Position;

    fn found(sequence: u64, sealed: Option<u64>) -> Found {
        let seal = sealed.map(|valid_bytes| Seal { valid_bytes, ..Seal::default() });
        Found { number: 5, sequence, shard: 1, seal, hint: None, is_cut: false }
    }

    #[test]
    fn a_segment_ends_where_the_mark_says() {
        let segments = Segments::new([1; 16], 0, 2 << 20, 8, &[2]);
        let mut mark = Mark::default();
        mark.positions[1] = Position { sequence: 7, end: 16_384, checkpoint: None };
        let ends = |mut one: Found| {
            let damage = apply(&mark, std::slice::from_mut(&mut one), &segments);
            (one.seal.map(|seal| seal.valid_bytes), one.is_cut, damage.len())
        };
        assert_eq!(ends(found(6, Some(12_288))), (Some(12_288), false, 0), "an older one");
        assert_eq!(ends(found(6, None)), (None, false, 1), "an older one without a seal");
        assert_eq!(ends(found(7, None)), (Some(16_384), true, 0));
        assert_eq!(ends(found(7, Some(16_384))), (Some(16_384), false, 0));
        assert_eq!(ends(found(7, Some(16_000))), (Some(16_000), false, 0), "in its last sector");
        assert_eq!(ends(found(7, Some(15_872))).2, 1, "a sector before");
        assert_eq!(ends(found(7, Some(20_480))).2, 1, "it was sealed elsewhere");
        assert_eq!(ends(found(8, None)), (Some(RECORDS_OFFSET), true, 0), "a newer one");
        assert_eq!(ends(found(8, Some(RECORDS_OFFSET))), (Some(RECORDS_OFFSET), false, 0));
    }
}
