//! [`Repaired`]: result of a repair.
//!
//! Performs no I/O.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use super::fleet::Fleet;
use super::known_pieces::KnownPieces;
use super::subject::{PieceState, Subject};
use crate::array::DriveIndex;
use crate::catalogue::{Entry, Placement};

/// Pieces of an object that one drive lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name of the object.
    pub object: String,
    /// Name of the drive.
    pub drive: String,
    /// Number of pieces; of an object without protection, of chunks.
    pub pieces: u64,
    /// Reason, in words.
    pub why: String,
}

/// Bytes of an object that can be neither read nor computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Name of the object.
    pub object: String,
    /// The bytes, in order.
    pub ranges: Vec<Range<u64>>,
}

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Number of protected objects.
    pub objects: u64,
    /// Number of objects without protection, of which only names were looked for.
    pub unprotected: u64,
    /// Number of pieces that are good.
    pub pieces: u64,
    /// Bytes of these pieces.
    pub bytes: u64,
    /// Number of pieces that were rebuilt.
    pub rebuilt: u64,
    /// Bytes of these pieces.
    pub rebuilt_bytes: u64,
    /// Time from the start of the repair until the last of them was found good; zero if none was
    /// rebuilt. The comparison of other pieces is not in it.
    pub rebuilt_after: Duration,
    /// Number of those that went from drive to drive.
    pub by_drives: u64,
    /// Bytes that crossed the network between drives and host, in both directions.
    pub crossed_bytes: u64,
    /// Pieces that are not good, by object and drive.
    pub missing: Vec<Missing>,
    /// Bytes that are lost, by object.
    pub lost: Vec<Lost>,
    /// Objects that could not be repaired, each with the reason.
    pub failed: Vec<(String, String)>,
    /// Drives that took no part to the end, each with its reason.
    pub away: Vec<String>,
    /// True if the repair was asked to stop before it was done.
    pub is_interrupted: bool,
}

impl Repaired {
    /// Returns true if no piece is missing, and every drive took part to the end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let lacks_none = self.missing.is_empty() && self.lost.is_empty() && self.failed.is_empty();
        lacks_none && self.away.is_empty() && !self.is_interrupted
    }

    /// Counts the pieces of an object after its repair.
    pub(super) fn take_stock(&mut self, fleet: &Fleet, subject: &Subject) {
        self.objects += 1;
        let (mut missing, mut ranges) = (BTreeMap::new(), Vec::new());
        for stripe in 0..subject.stripes().count() {
            let chunks = subject.stripes().chunks(stripe);
            let mut good = 0;
            for number in subject.stripes().pieces(stripe) {
                if subject.state(stripe, number) == PieceState::Good {
                    good += 1;
                    self.pieces += 1;
                    self.bytes += u64::from(subject.bytes(stripe, number));
                } else {
                    let drive = subject.drive(stripe, number);
                    let (count, state) = missing.entry(drive).or_insert((0, PieceState::Unknown));
                    *count += 1;
                    *state = subject.state(stripe, number);
                }
            }
            if good < chunks.len() {
                let is_lost = |number: &usize| subject.state(stripe, *number) != PieceState::Good;
                let lost = (0..chunks.len()).filter(is_lost);
                ranges.extend(lost.map(|number| subject.layout().bytes_of(chunks[number])));
            }
        }
        let why = |drive: DriveIndex, state: PieceState| {
            let known = fleet.why(drive).or_else(|| fleet.failure(drive));
            let words = match state {
                PieceState::Unknown => "another repair was at work on them: run it again",
                _ => "too few other pieces are left to compute them from",
            };
            known.unwrap_or_else(|| words.to_owned())
        };
        let missing =
            missing.into_iter().map(|(drive, (count, state))| (drive, count, why(drive, state)));
        self.note(fleet, &subject.entry.name, missing.collect(), ranges);
    }

    /// Looks for the chunks of an object without protection by name.
    pub(super) fn look_at_unprotected(
        &mut self,
        fleet: &Fleet,
        entry: &Entry,
        known: &KnownPieces,
    ) {
        let (layout, mut ranges) = (entry.layout(), Vec::new());
        let mut missing: BTreeMap<DriveIndex, u64> = BTreeMap::new();
        for chunk in 0..layout.chunks() {
            let member = layout.member(chunk);
            let drive = entry.members[member];
            let is_there = match entry.placement {
                Placement::Kv => known.has_value(drive, entry.id, layout.number(chunk)),
                Placement::Block(_) => {
                    let byte = u64::from(layout.local(chunk)) * u64::from(entry.chunk_bytes);
                    known.has_unit(member, byte)
                }
            };
            if !is_there {
                *missing.entry(drive).or_default() += 1;
                ranges.push(layout.bytes_of(chunk));
            }
        }
        let why = |drive| fleet.why(drive).unwrap_or_else(|| "it is not protected".to_owned());
        let missing = missing.into_iter().map(|(drive, count)| (drive, count, why(drive)));
        self.note(fleet, &entry.name, missing.collect(), ranges);
    }

    fn note(
        &mut self,
        fleet: &Fleet,
        object: &str,
        missing: Vec<(DriveIndex, u64, String)>,
        ranges: Vec<Range<u64>>,
    ) {
        self.missing.extend(missing.into_iter().map(|(drive, pieces, why)| Missing {
            object: object.to_owned(),
            drive: fleet.name(drive),
            pieces,
            why,
        }));
        let ranges = joined(ranges);
        if !ranges.is_empty() {
            self.lost.push(Lost { object: object.to_owned(), ranges });
        }
    }
}

/// Returns the ranges in order, those that touch each other as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(joined(vec![8..12, 0..4, 4..8, 20..21]), [0..12, 20..21]);
        assert_eq!(joined(Vec::new()), []);
    }

    #[test]
    fn a_repair_that_lacks_anything_is_not_whole() {
        assert!(Repaired::default().is_whole());
        let lost = vec![Lost { object: "x".to_owned(), ranges: vec![0..1, 4..5] }];
        assert!(!Repaired { lost, ..Repaired::default() }.is_whole());
        assert!(!Repaired { is_interrupted: true, ..Repaired::default() }.is_whole());
        let (object, drive, why) = ("x".to_owned(), "d1".to_owned(), "it is down".to_owned());
        let away = vec!["drive d1: it is down".to_owned()];
        assert!(!Repaired { away, ..Repaired::default() }.is_whole());
        let missing = vec![Missing { object, drive, pieces: 1, why }];
        assert!(!Repaired { missing, ..Repaired::default() }.is_whole());
    }
}
