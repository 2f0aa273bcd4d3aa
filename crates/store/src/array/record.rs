//! [`Lives`] and [`Roster`]: what drives know of themselves and of each other, and its encoding.
//!
//! A drive keeps the list of its own lives ([`Lives`]): one for each start that a writer has seen.
//! All drives keep the place, the identity and the last life of every drive ([`Roster`]). A medium
//! that was emptied, or put back from an older copy, lacks the life that the others know.
//!
//! `docs/internals/contracts.md` specifies both. Does no I/O. Invariants: little-endian; the last
//! four bytes are the CRC-32C of all bytes before them; byte 8 holds the version for Store Newer.

use csd_nvme::kv::Key;

use super::DriveIndex;

/// Key of a drive's [`Lives`].
const LIVES_KEY: &[u8] = b"\x07lives";
/// Key of the [`Roster`].
const ROSTER_KEY: &[u8] = b"\x07roster";
const LIVES_MAGIC: [u8; 4] = *b"CSDL";
const ROSTER_MAGIC: [u8; 4] = *b"CSDR";
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 32;
const CRC_BYTES: usize = 4;
/// Most lives that a drive remembers. A roster is never that far behind, because a writer that adds
/// a life also puts it into the roster.
const LIVES_MAX: usize = 255;

/// One life of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Life {
    /// Its place among the lives of the drives in this place of the array, from 1.
    pub(super) ordinal: u64,
    /// Its number, which the drive drew when it started.
    pub(super) number: u64,
}

/// A drive's own record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lives {
    /// The array.
    pub(super) array: [u8; 16],
    /// The drive's place in it.
    pub(super) slot: DriveIndex,
    /// Its lives, oldest first; at least one.
    pub(super) lives: Vec<Life>,
}

/// A drive's place as the others know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat {
    /// NGUID of the drive's objects namespace.
    pub(super) nguid: [u8; 16],
    /// Its last life that was registered; ordinal 0 if none was.
    pub(super) life: Life,
}

/// The places of all drives. Of two rosters, [`Roster::join`] makes the one that follows both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The array.
    pub(super) array: [u8; 16],
    /// By place.
    pub(super) seats: Vec<Seat>,
}

/// Returns the key of a drive's lives.
pub(super) fn lives_key() -> Key {
    Key::new(LIVES_KEY).expect("six bytes")
}

/// Returns the key of the roster.
pub(super) fn roster_key() -> Key {
    Key::new(ROSTER_KEY).expect("seven bytes")
}

impl Lives {
    /// Returns the last life.
    pub(super) fn last(&self) -> Life {
        self.lives.last().copied().unwrap_or_default()
    }

    /// Returns true if the drive has lived through this life.
    pub(super) fn has(&self, life: Life) -> bool {
        self.lives.contains(&life)
    }

    /// Adds a life.
    pub(super) fn push(&mut self, life: Life) {
        self.lives.push(life);
        let excess = self.lives.len().saturating_sub(LIVES_MAX);
        self.lives.drain(..excess);
    }

    /// Returns the encoded record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(LIVES_MAGIC, self.lives.len(), self.last().ordinal, &self.array);
        for life in &self.lives {
            push_life(&mut out, *life);
        }
        out.extend_from_slice(&self.slot.to_le_bytes());
        sealed(out)
    }

    /// Parses a record; `None` if it is damaged or of another version.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (count, version, array, mut rest) = opened(LIVES_MAGIC, data)?;
        let mut lives = Vec::with_capacity(count);
        for _ in 0..count {
            lives.push(take_life(&mut rest)?);
        }
        let record = Self { array, slot: u16::from_le_bytes(rest.try_into().ok()?).into(), lives };
        let rises = record.lives.is_sorted_by(|a, b| a.ordinal < b.ordinal);
        (count > 0 && rises && record.last().ordinal == version).then_some(record)
    }
}

impl Roster {
    /// Returns the version: it grows with every life that is registered.
    pub(super) fn version(&self) -> u64 {
        self.seats.iter().fold(0, |sum, seat| sum.wrapping_add(seat.life.ordinal))
    }

    /// Returns the place of a drive; `None` if no life was registered there.
    pub(super) fn seat(&self, slot: DriveIndex) -> Option<Seat> {
        self.seats.get(usize::from(slot)).copied().filter(|seat| seat.life.ordinal > 0)
    }

    /// Sets a place.
    pub(super) fn set(&mut self, slot: DriveIndex, seat: Seat) {
        let needed = usize::from(slot) + 1;
        if self.seats.len() < needed {
            self.seats.resize(needed, Seat::default());
        }
        self.seats[slot] = seat;
    }

    /// Takes over every place of which `other` knows a later life.
    pub fn join(&mut self, other: &Self) {
        for (slot, seat) in DriveIndex::each(&other.seats) {
            if seat.life.ordinal > self.seat(slot).map_or(0, |own| own.life.ordinal) {
                self.set(slot, *seat);
            }
        }
    }

    /// Returns the encoded roster.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(ROSTER_MAGIC, self.seats.len(), self.version(), &self.array);
        for seat in &self.seats {
            out.extend_from_slice(&seat.nguid);
            push_life(&mut out, seat.life);
        }
        sealed(out)
    }

    /// Parses a roster; `None` if it is damaged or of another version.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (count, version, array, mut rest) = opened(ROSTER_MAGIC, data)?;
        let mut seats = Vec::with_capacity(count);
        for _ in 0..count {
            let (nguid, after) = rest.split_first_chunk()?;
            rest = after;
            seats.push(Seat { nguid: *nguid, life: take_life(&mut rest)? });
        }
        let roster = Self { array, seats };
        (rest.is_empty() && roster.version() == version).then_some(roster)
    }
}

fn head(magic: [u8; 4], count: usize, version: u64, array: &[u8; 16]) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    let count = u16::try_from(count).expect("lives and drives are limited");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(array);
    out
}

fn sealed(mut out: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Checks a record, and returns its count, its version, its array and the bytes behind its head.
fn opened(magic: [u8; 4], data: &[u8]) -> Option<(usize, u64, [u8; 16], &[u8])> {
    let (body, crc) = data.split_last_chunk::<CRC_BYTES>()?;
    let (head, rest) = body.split_at_checked(HEAD_BYTES)?;
    let is_right = head.starts_with(&magic)
        && head[4..6] == VERSION.to_le_bytes()
        && crc32c::crc32c(body).to_le_bytes() == *crc;
    let count = u16::from_le_bytes(*head[6..].first_chunk()?);
    let version = u64::from_le_bytes(*head[8..].first_chunk()?);
    is_right.then_some((count.into(), version, *head[16..].first_chunk()?, rest))
}

fn push_life(out: &mut Vec<u8>, life: Life) {
    out.extend_from_slice(&life.ordinal.to_le_bytes());
    out.extend_from_slice(&life.number.to_le_bytes());
}

fn take_life(rest: &mut &[u8]) -> Option<Life> {
    let (ordinal, after) = rest.split_first_chunk()?;
    let (number, after) = after.split_first_chunk()?;
    *rest = after;
    Some(Life { ordinal: u64::from_le_bytes(*ordinal), number: u64::from_le_bytes(*number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(ordinal: u64) -> Life {
        Life { ordinal, number: ordinal * 1000 }
    }

    #[test]
    fn records_are_read_back_and_no_flipped_bit_is() {
        let lives =
            Lives { array: [7; 16], slot: DriveIndex::from(3), lives: vec![life(4), life(5)] };
        let seats = vec![Seat { nguid: [1; 16], life: life(5) }, Seat::default()];
        let roster = Roster { array: [7; 16], seats };
        let (one, two) = (lives.encode(), roster.encode());
        assert_eq!(Lives::parse(&one), Some(lives));
        assert_eq!(Roster::parse(&two), Some(roster));
        for bytes in [one, two] {
            assert_eq!(u64::from_le_bytes(*bytes[8..].first_chunk().unwrap()), 5);
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let parsed = (Lives::parse(&changed), Roster::parse(&changed));
                assert_eq!(parsed, (None, None), "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert_eq!(Lives::parse(&bytes[..length]), None);
                assert_eq!(Roster::parse(&bytes[..length]), None);
            }
        }
    }

    #[test]
    fn a_drive_forgets_its_oldest_lives_only() {
        let mut lives = Lives { array: [0; 16], slot: DriveIndex::default(), lives: vec![life(1)] };
        (2..=300).for_each(|ordinal| lives.push(life(ordinal)));
        assert_eq!(Lives::parse(&lives.encode()).as_ref(), Some(&lives));
        assert!(!lives.has(life(45)) && lives.has(life(46)) && lives.last() == life(300));
    }

    #[test]
    fn rosters_that_are_joined_in_any_order_are_the_same() {
        let roster = |ordinals: &[u64]| {
            let seat = |&ordinal: &u64| Seat { nguid: [9; 16], life: life(ordinal) };
            Roster { array: [0; 16], seats: ordinals.iter().map(seat).collect() }
        };
        let (mut one, mut other) = (roster(&[3, 1]), roster(&[2, 4, 1]));
        let before = one.clone();
        one.join(&other);
        other.join(&before);
        assert_eq!(one, roster(&[3, 4, 1]));
        assert_eq!(one.encode(), other.encode());
    }
}
