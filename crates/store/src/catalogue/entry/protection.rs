//! [`Protection`]: the erasure code of an object, as its entry holds it.
//!
//! The names of parity pieces carry an epoch: that of the entry under which they were written. So
//! pieces that an interrupted command has left are never taken for those of a later one. Performs
//! no I/O. Invariant: parity that an entry lists was acknowledged by its drives, or is listed as
//! missing.

use csd_nvme::kv::Key;

use super::wire::{Cursor, length};
use super::{Entry, Malformed, ObjectId, State, VERSION, VERSION_WITH_TIME};
use crate::array::{DRIVES_MAX, DriveIndex};
use crate::layout::{self, Scheme, Stripes};

/// Most pieces of a protected object, so that its entry stays below the largest value.
pub const PIECES_MAX: u64 = 1 << 20;

/// The entry lists parity pieces.
const HAS_PARITY: u8 = 1;
/// The entry lists missing pieces.
const HAS_MISSING: u8 = 2;
/// The entry has no sums of chunks.
const NO_SUMS: u8 = 4;
/// The entry announces a copy.
const HAS_COPY: u8 = 8;
/// Most losses that a code survives.
const SURVIVES_MAX: u8 = 16;

/// Erasure code of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Numbers of pieces of a stripe.
    pub scheme: Scheme,
    /// Epoch in the names of the parity pieces; 0 stands for that of the entry itself.
    pub epoch: u64,
    /// Drives that may hold parity, as indices into the array; all members are among them.
    pub group: Vec<DriveIndex>,
    /// Parity; `None` while it is being written, and after it was removed.
    pub parity: Option<Parity>,
}

/// Parity of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// CRC-32C of every parity piece, by stripe and number.
    pub sums: Vec<u32>,
    /// Pieces that were not stored.
    pub missing: Missing,
}

/// Set of missing pieces: a bit for each piece, n + k of them for each stripe; empty if none is
/// missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing(Vec<u8>);

impl Missing {
    /// Adds a piece of an object of so many stripes.
    pub fn add(&mut self, stripes: u32, scheme: Scheme, stripe: u32, piece: usize) {
        if self.0.is_empty() {
            self.0 = vec![0; bits(stripes, scheme).div_ceil(8)];
        }
        let bit = stripe as usize * scheme.pieces() + piece;
        self.0[bit / 8] |= 1 << (bit % 8);
    }

    /// Removes a piece.
    pub fn remove(&mut self, scheme: Scheme, stripe: u32, piece: usize) {
        let bit = stripe as usize * scheme.pieces() + piece;
        if let Some(byte) = self.0.get_mut(bit / 8) {
            *byte &= !(1 << (bit % 8));
        }
        if self.count() == 0 {
            self.0.clear();
        }
    }

    /// Returns true if the piece is missing.
    #[must_use]
    pub fn has(&self, scheme: Scheme, stripe: u32, piece: usize) -> bool {
        let bit = stripe as usize * scheme.pieces() + piece;
        self.0.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// Returns the number of missing pieces.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}

/// Returns an identifier that belongs to another one and an epoch.
fn derived(word: &[u8], id: ObjectId, epoch: u64) -> ObjectId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(word).update(&id.0).update(&epoch.to_le_bytes());
    let mut derived = [0; 12];
    derived.copy_from_slice(&hasher.finalize().as_bytes()[..12]);
    ObjectId::from_random(derived)
}

/// Returns true if the parity of all these objects counts.
pub fn are_protected(entries: &[Entry]) -> bool {
    entries.iter().all(|entry| entry.protected().is_some())
}

fn bits(stripes: u32, scheme: Scheme) -> usize {
    stripes as usize * scheme.pieces()
}

impl Entry {
    /// Returns the number of lost drives that the name must survive: as many as its object.
    #[must_use]
    pub fn losses(&self) -> usize {
        let own = self.protection.as_ref().map_or(0, |protection| protection.scheme.parity());
        own.max(self.survives.into())
    }

    /// Returns the protection if its parity counts.
    #[must_use]
    pub fn protected(&self) -> Option<(&Protection, &Parity)> {
        let protection = self.protection.as_ref()?;
        Some((protection, protection.parity.as_ref()?))
    }

    /// Returns the stripes of a protected object.
    #[must_use]
    pub fn stripes(&self) -> Option<Stripes> {
        let Protection { scheme, group, .. } = self.protection.as_ref()?;
        Some(Stripes::new(&self.layout(), &self.members, *scheme, group))
    }

    /// Returns the identifier in the names of the parity pieces.
    #[must_use]
    pub fn parity_id(&self) -> Option<ObjectId> {
        Some(derived(b"parity", self.id, self.parity_epoch()?))
    }

    /// Returns the identifiers in the names of everything that is stored for the object, and for
    /// a copy that is being written.
    #[must_use]
    pub fn ids(&self) -> Vec<ObjectId> {
        let copy = self.copy.into_iter().flat_map(|copy| self.ids_of(copy));
        self.own_ids().into_iter().chain(copy).collect()
    }

    /// Returns the identifiers in the names of the object's own pieces.
    #[must_use]
    pub fn own_ids(&self) -> Vec<ObjectId> {
        self.ids_of(self.id)
    }

    fn ids_of(&self, id: ObjectId) -> Vec<ObjectId> {
        let parity = self.parity_epoch().map(|epoch| derived(b"parity", id, epoch));
        [Some(id), parity].into_iter().flatten().collect()
    }

    /// Returns true if the header's flags count, although there is no protection.
    pub(super) fn has_flags(&self) -> bool {
        self.survives > 0 || self.copy.is_some() || self.stored_unix_ms > 0
    }

    fn parity_epoch(&self) -> Option<u64> {
        match self.protection.as_ref()?.epoch {
            0 => Some(self.epoch),
            epoch => Some(epoch),
        }
    }

    /// Returns the key of a parity piece; `None` if the object is not protected.
    #[must_use]
    pub fn parity_key(&self, stripe: u32, parity: usize) -> Option<Key> {
        let number = stripe as usize * self.protection.as_ref()?.scheme.parity() + parity;
        let number = u32::try_from(number).ok()?;
        Some(csd_nvme::vendor::execute::chunk_key(&self.parity_id()?.0, number))
    }

    /// Returns the ten bytes of the header that describe the protection.
    pub(super) fn protection_header(&self) -> [u8; 10] {
        let mut header = [0; 10];
        header[5] = self.survives;
        header[4] = if self.copy.is_some() { HAS_COPY } else { 0 };
        let Some(protection) = &self.protection else {
            header[4] |= if self.has_flags() && self.sums.is_empty() { NO_SUMS } else { 0 };
            return header;
        };
        let scheme = protection.scheme;
        header[0] = u8::try_from(scheme.data()).expect("at most 32");
        header[1] = u8::try_from(scheme.parity()).expect("at most 16");
        header[2..4].copy_from_slice(&length(protection.group.len()).to_le_bytes());
        let parity = protection.parity.as_ref();
        let flags = [
            (HAS_PARITY, parity.is_some()),
            (HAS_MISSING, parity.is_some_and(|parity| !parity.missing.0.is_empty())),
            (NO_SUMS, self.sums.is_empty()),
        ];
        header[4] += flags.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag).sum::<u8>();
        header
    }

    /// Appends the part of the protection that follows the sums of chunks.
    pub(super) fn encode_protection(&self, out: &mut Vec<u8>) {
        let Some(protection) = &self.protection else { return };
        out.extend_from_slice(&protection.epoch.to_le_bytes());
        protection.group.iter().for_each(|drive| out.extend_from_slice(&drive.to_le_bytes()));
        if let Some(parity) = &protection.parity {
            parity.sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
            out.extend_from_slice(&parity.missing.0);
        }
    }

    /// Checks that the protection fits the other fields, which are sound.
    pub(super) fn check_protection(&self) -> Result<(), Malformed> {
        let Some(Protection { scheme, group, parity, .. }) = &self.protection else {
            return Ok(());
        };
        let mut once = group.clone();
        once.sort_unstable();
        once.dedup();
        let has_members = self.members.iter().all(|member| once.binary_search(member).is_ok());
        let needed = layout::width(*scheme, self.members.len()) + scheme.parity();
        if once.len() != group.len() || !has_members || group.len() < needed {
            return Err(Malformed("impossible group of drives"));
        }
        let is_whole = self.sums.len() as u64 == u64::from(self.layout().chunks());
        match parity {
            Some(_) if self.state != State::Sealed || !is_whole => {
                Err(Malformed("parity without chunks"))
            }
            _ => Ok(()),
        }
    }
}

/// The bytes of the header that describe the protection.
pub(super) struct Header {
    scheme: Option<Scheme>,
    group: usize,
    flags: u8,
    survives: u8,
    // True if the flags count also without a protection.
    has_flags: bool,
}

impl Header {
    pub(super) fn parse(bytes: [u8; 10], version: u16) -> Result<Self, Malformed> {
        let [data, parity, low, high, flags, survives, rest @ ..] = bytes;
        if rest != [0; 4] || flags > HAS_PARITY | HAS_MISSING | NO_SUMS | HAS_COPY {
            return Err(Malformed("reserved bytes are not zero"));
        }
        let group = u16::from_le_bytes([low, high]).into();
        if bytes != [0; 10] && version == VERSION {
            return Err(Malformed("reserved bytes are not zero"));
        }
        if survives > SURVIVES_MAX {
            return Err(Malformed("more losses than a code survives"));
        }
        let has_flags = survives > 0 || flags & HAS_COPY != 0 || version == VERSION_WITH_TIME;
        let known = if has_flags { NO_SUMS | HAS_COPY } else { 0 };
        if data == 0 && parity == 0 && group == 0 && flags & !known == 0 {
            return Ok(Self { scheme: None, group, flags, survives, has_flags });
        }
        let scheme = Scheme::new(data.into(), parity.into());
        let scheme = scheme.filter(|_| group <= DRIVES_MAX).ok_or(Malformed("unknown code"))?;
        if flags & (HAS_PARITY | HAS_MISSING) == HAS_MISSING {
            return Err(Malformed("missing pieces of no parity"));
        }
        Ok(Self { scheme: Some(scheme), group, flags, survives, has_flags })
    }

    /// Returns the number of losses that the name survives.
    pub(super) fn survives(&self) -> u8 {
        self.survives
    }

    /// Returns true if the entry has sums of so many chunks.
    pub(super) fn has_sums(&self, chunks: u32) -> Result<bool, Malformed> {
        match (self.scheme.is_some() || self.has_flags, self.flags & NO_SUMS == 0) {
            (false, _) => Ok(true),
            (true, true) if chunks == 0 => Err(Malformed("sums of no chunk")),
            (true, has_sums) => Ok(has_sums),
        }
    }

    /// Parses the identifier of a copy, which comes last.
    pub(super) fn copy(&self, input: &mut Cursor<'_>) -> Result<Option<ObjectId>, Malformed> {
        match self.flags & HAS_COPY {
            0 => Ok(None),
            _ => Ok(Some(ObjectId(input.array()?))),
        }
    }

    /// Parses the rest of the protection of an entry whose other fields were parsed.
    pub(super) fn rest(
        &self,
        input: &mut Cursor<'_>,
        entry: &Entry,
    ) -> Result<Option<Protection>, Malformed> {
        let Some(scheme) = self.scheme else { return Ok(None) };
        let epoch = input.u64()?;
        let group = (0..self.group).map(|_| input.drive()).collect::<Result<Vec<_>, _>>()?;
        let mut protection = Protection { scheme, epoch, group, parity: None };
        if self.flags & HAS_PARITY == 0 {
            return Ok(Some(protection));
        }
        let stripes = layout::stripes(&entry.layout(), entry.members.len(), scheme);
        let pieces = u64::from(stripes) * scheme.parity() as u64;
        if pieces + u64::from(entry.layout().chunks()) > PIECES_MAX {
            return Err(Malformed("too many pieces"));
        }
        let sums = (0..pieces).map(|_| input.u32()).collect::<Result<Vec<_>, _>>()?;
        let mut missing = Missing::default();
        if self.flags & HAS_MISSING != 0 {
            let bits = bits(stripes, scheme);
            missing = Missing(input.take(bits.div_ceil(8))?.to_vec());
            let is_past = |bit: usize| missing.0[bit / 8] >> (bit % 8) & 1 == 1;
            if missing.count() == 0 || (bits..bits.next_multiple_of(8)).any(is_past) {
                return Err(Malformed("impossible missing pieces"));
            }
        }
        protection.parity = Some(Parity { sums, missing });
        Ok(Some(protection))
    }
}
