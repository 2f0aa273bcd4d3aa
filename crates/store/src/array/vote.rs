//! [`decide_votes`]: which drives vote, from what they know of themselves and of each other.
//!
//! Quorums are safe only if a member never forgets what it has acknowledged. A drive that was
//! emptied or has an older medium has forgotten, so it takes no part until it has learned from the
//! others: recovery as in viewstamped replication (Liskov and Cowling, "Viewstamped replication
//! revisited", 2012). In the terms of weighted voting (Gifford 1979), its weight is 0.
//!
//! Does no I/O. Invariant: an older record never takes the vote of another drive, because of two
//! records of a place in the array the one with the later life counts.

use super::record::{Lives, Roster};
use super::{DriveIndex, Quorum};

/// A record as a drive holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held<T> {
    /// There is none.
    None,
    /// It cannot be read.
    Damaged,
    /// The record.
    Whole(T),
}

impl<T> Held<T> {
    /// Returns the record, if there is one that can be read.
    pub(super) fn whole(&self) -> Option<&T> {
        match self {
            Self::Whole(record) => Some(record),
            _ => None,
        }
    }
}

/// Membership records of one drive.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) nguid: [u8; 16],
    pub(super) lives: Held<Lives>,
    pub(super) roster: Held<Roster>,
    /// Version that the drive compares, of a roster that is damaged, as far as it can be read; else
    /// 0.
    pub(super) damaged_version: u64,
}

/// Outcome of [`decide_votes`].
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Joined rosters of all drives.
    pub(super) roster: Roster,
    /// True if a drive that is up has never been registered. Such a drive cannot show that it has
    /// forgotten nothing, so readers need a majority then.
    pub(super) is_new: bool,
    /// By place: why a drive has no vote. Places of drives that are down have `Ok`.
    pub(super) votes: Vec<Result<(), String>>,
}

/// Decides which drives vote. `seen` is by place, `None` for a drive that is down or was removed.
/// The array has so many `drives`; `array` is the identifier in the array file: media of an array
/// whose file was lost have another one.
pub(super) fn decide_votes(seen: &[Option<Seen>], drives: usize, array: [u8; 16]) -> Verdict {
    let majority = Quorum::new(drives, 0).majority();
    let lives = |seen: &Option<Seen>| seen.as_ref().and_then(|seen| seen.lives.whole().cloned());
    let arrays: Vec<[u8; 16]> = seen.iter().filter_map(lives).map(|lives| lives.array).collect();
    let count = |id: &[u8; 16]| arrays.iter().filter(|other| *other == id).count();
    let array = arrays.iter().copied().find(|id| count(id) >= majority).unwrap_or(array);
    let mut roster = Roster { array, seats: Vec::new() };
    for seen in seen.iter().flatten() {
        let own = seen.lives.whole().is_none_or(|lives| lives.array == array);
        if let Some(known) = seen.roster.whole().filter(|known| own && known.array == array) {
            roster.join(known);
        }
    }
    let is_new = DriveIndex::each(seen).any(|(slot, seen)| {
        let has_none = seen.as_ref().is_some_and(|seen| seen.lives == Held::None);
        has_none && roster.seat(slot).is_none()
    });
    let votes = DriveIndex::each(seen).map(|(slot, seen)| {
        let Some(seen) = seen else { return Ok(()) };
        vote(seen, slot, &roster).map_err(ToOwned::to_owned)
    });
    Verdict { votes: votes.collect(), is_new, roster }
}

/// Reason of a drive that can read none of its records.
const FAILS: &str = "it cannot read its records: its device fails, or both are damaged";

/// Returns what helps a drive that has no vote for this reason.
pub(super) fn remedy(drive: &str, why: &str) -> String {
    match why == FAILS {
        true => format!(
            "its log and `csd drive status` tell which; `csd array replace {drive}` puts another \
             in its place"
        ),
        false => "`csd array rebuild` gives it its vote back".to_owned(),
    }
}

/// Returns why a drive has no vote.
fn vote(seen: &Seen, slot: DriveIndex, roster: &Roster) -> Result<(), &'static str> {
    let lives = match &seen.lives {
        Held::Damaged if seen.roster == Held::Damaged => return Err(FAILS),
        Held::Damaged => return Err("its record of its own lives is damaged"),
        Held::None => None,
        Held::Whole(lives) if lives.array != roster.array => {
            return Err("it belongs to another array");
        }
        Held::Whole(lives) if lives.slot != slot => {
            return Err("it belongs to another place of the array");
        }
        Held::Whole(lives) => Some(lives),
    };
    match (roster.seat(slot), lives) {
        (None, _) => Ok(()),
        (Some(_), None) => Err("it was emptied, or stands in another drive's place"),
        (Some(seat), Some(_)) if seat.nguid != seen.nguid => {
            Err("it is an earlier medium of its place, which another drive has taken")
        }
        (Some(seat), Some(lives)) if !lives.has(seat.life) => {
            Err("it has an older medium, or was replaced")
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::record::{Life, Seat};

    const ARRAY: [u8; 16] = [7; 16];

    fn life(ordinal: u64) -> Life {
        Life { ordinal, number: 100 + ordinal }
    }

    /// Three drives that are registered in their second life and live in their third.
    fn drives() -> Vec<Option<Seen>> {
        let seat = |slot: u8| Seat { nguid: [slot; 16], life: life(2) };
        let roster = Roster { array: ARRAY, seats: (0..3).map(seat).collect() };
        let drive = |slot: u8| {
            let lives =
                Lives { array: ARRAY, slot: u16::from(slot).into(), lives: vec![life(1), life(2)] };
            let (lives, roster) = (Held::Whole(lives), Held::Whole(roster.clone()));
            Some(Seen { nguid: [slot; 16], lives, roster, damaged_version: 0 })
        };
        (0..3).map(drive).collect()
    }

    fn votes(seen: &[Option<Seen>]) -> Vec<bool> {
        decide_votes(seen, seen.len(), ARRAY).votes.iter().map(Result::is_ok).collect()
    }

    fn set(seen: &mut [Option<Seen>], slot: usize, change: impl FnOnce(&mut Seen)) {
        change(seen[slot].as_mut().unwrap());
    }

    #[test]
    fn drives_that_have_forgotten_something_do_not_vote() {
        assert_eq!(votes(&drives()), [true; 3]);
        let older = Lives { array: ARRAY, slot: DriveIndex::from(1), lives: vec![life(1)] };
        let forked = vec![life(1), Life { ordinal: 2, number: 5 }];
        let forked = Lives { lives: forked, ..older.clone() };
        let foreign = Lives { array: [8; 16], ..older.clone() };
        let swapped =
            Lives { slot: DriveIndex::from(2), lives: vec![life(1), life(2)], ..older.clone() };
        for (lives, word) in [
            (Held::None, "emptied"),
            (Held::Damaged, "damaged"),
            (Held::Whole(older), "older medium"),
            (Held::Whole(forked), "older medium"),
            (Held::Whole(foreign), "another array"),
            (Held::Whole(swapped), "another place"),
        ] {
            let mut seen = drives();
            set(&mut seen, 1, |seen| seen.lives = lives);
            let verdict = decide_votes(&seen, 3, ARRAY);
            assert!(verdict.votes[1].as_ref().is_err_and(|why| why.contains(word)), "{word}");
            assert!(verdict.votes[0].is_ok() && verdict.votes[2].is_ok(), "{word}");
        }
        let mut seen = drives();
        set(&mut seen, 1, |seen| seen.nguid = [9; 16]);
        assert_eq!(votes(&seen), [true, false, true]);
    }

    #[test]
    fn a_device_that_fails_is_not_a_vote_that_is_damaged() {
        let mut seen = drives();
        set(&mut seen, 1, |seen| (seen.lives, seen.roster) = (Held::Damaged, Held::Damaged));
        let why = decide_votes(&seen, 3, ARRAY).votes[1].clone().unwrap_err();
        assert!(why.contains("its device fails"), "{why}");
        assert!(remedy("d1", &why).contains("csd array replace d1"));
        set(&mut seen, 1, |seen| seen.roster = Held::None);
        let why = decide_votes(&seen, 3, ARRAY).votes[1].clone().unwrap_err();
        assert!(remedy("d1", &why).contains("rebuild"), "{why}");
    }

    #[test]
    fn a_drive_with_an_older_roster_accuses_no_other() {
        let mut seen = drives();
        set(&mut seen, 0, |seen| {
            let Held::Whole(roster) = &mut seen.roster else { panic!("a roster") };
            roster.set(
                DriveIndex::from(1),
                Seat { nguid: [1; 16], life: Life { ordinal: 1, number: 4 } },
            );
        });
        assert_eq!(votes(&seen), [true; 3]);
    }

    #[test]
    fn drives_that_were_never_registered_vote_and_are_noticed() {
        let new = |slot: u8| {
            let (lives, roster) = (Held::None, Held::None);
            Some(Seen { nguid: [slot; 16], lives, roster, damaged_version: 0 })
        };
        let verdict = decide_votes(&[new(0), new(1), None], 3, ARRAY);
        assert!(verdict.is_new && verdict.votes.iter().all(Result::is_ok));
        assert!(!decide_votes(&drives(), 3, ARRAY).is_new);
        let mut grown = drives();
        grown.push(new(3));
        assert!(decide_votes(&grown, 4, ARRAY).is_new);
    }

    #[test]
    fn media_of_an_array_whose_file_was_lost_keep_its_identifier() {
        let verdict = decide_votes(&drives(), 3, [1; 16]);
        assert_eq!(verdict.roster.array, ARRAY);
        assert!(verdict.votes.iter().all(Result::is_ok));
        let mut alone = drives();
        (alone[1], alone[2]) = (None, None);
        assert!(decide_votes(&alone, 3, [1; 16]).votes[0].is_err(), "it alone is no majority");
    }
}
