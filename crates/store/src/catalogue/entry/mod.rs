//! A catalogue entry: the record of an object on every drive, and its encoding.
//!
//! `docs/internals/golden/catalogue/README.md` specifies the format, next to golden files; only
//! this folder reads and writes it. Performs no I/O. Invariants: little-endian; the last
//! four bytes are the CRC-32C of all bytes before them; a parsed entry has a sound layout (its
//! chunk count fits 32 bits, every member is named once) and encodes to the bytes it was parsed
//! from.

mod empty;
mod object_id;
mod placement;
mod protection;
mod wire;

use csd_kernels::ElementType;
use csd_nvme::vendor::folders::{ENTRY_FIXED_BYTES as FIXED_BYTES, ENTRY_MAGIC as MAGIC};

use crate::array::{DRIVES_MAX, DriveIndex};
use crate::layout::{self, DIMENSIONS_MAX, Layout, Parts, Spread};
use protection::Header;
use wire::{
    Cursor, LAYOUT_SPREAD, LAYOUT_WHOLE, encode_extents, encode_parts, kind_of, layout_code,
    length, parse_extents, parse_parts, parse_sums, parse_time, state_code, state_of,
};

pub(super) use csd_nvme::vendor::folders::name_in;
pub use csd_nvme::vendor::folders::{KEY_PREFIX, key};
pub use object_id::ObjectId;
pub use placement::{Extents, On, Placement};
pub use protection::are_protected;
pub use protection::{Missing, PIECES_MAX, Parity, Protection};

/// Version of an entry without digests of its chunks and without protection.
const VERSION: u16 = 1;
/// Version of an entry with digests of its chunks, a protection, losses that it survives, or a
/// copy.
const VERSION_WITH_SUMS: u16 = 2;
/// Version of an entry with the time at which its object was stored; its flags always count.
const VERSION_WITH_TIME: u16 = 3;
/// Longest name, bytes.
pub const NAME_BYTES_MAX: usize = 1024;

const CRC_BYTES: usize = 4;

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A put has begun; its chunks may be missing.
    Staged,
    /// Complete and immutable.
    Sealed,
    /// A tombstone: removed, its chunks may still be there.
    Deleted,
}

/// The catalogue's record of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the object.
    pub name: String,
    /// Identifier of its stored bytes.
    pub id: ObjectId,
    /// Identifier of the writer of this entry: random, one for each put or remove.
    pub writer: [u8; 16],
    /// Version number; grows with every change of this name: begun, sealed, removed.
    pub epoch: u64,
    /// State of the object.
    pub state: State,
    /// Type of its elements.
    pub element: ElementType,
    /// Its dimensions; their product is the number of elements.
    pub shape: Vec<u64>,
    /// Size of a chunk, bytes.
    pub chunk_bytes: u32,
    /// Size of the object, bytes.
    pub bytes: u64,
    /// Member of chunk 0 of a spread object, else 0.
    pub offset: u16,
    /// True if the object lies on one drive on purpose.
    pub whole: bool,
    /// Parts of an object that is not spread; `None` in a staged entry.
    pub parts: Option<Parts>,
    /// Drives that hold chunks, as indices into the array.
    pub members: Vec<DriveIndex>,
    /// Location of the chunks.
    pub placement: Placement,
    /// BLAKE3 of the content; zeros when drives wrote the object and no host has read it.
    pub digest: [u8; 32],
    /// CRC-32C of every chunk, by number in the object's order; none when no host has seen them, as
    /// in entries of version 1.
    pub sums: Vec<u32>,
    /// Number of lost drives that the name survives, if more drives than a majority must hold its
    /// entries for that, else 0. It never falls from entry to entry of a name.
    pub survives: u8,
    /// Erasure code of the object, if it has one.
    pub protection: Option<Protection>,
    /// Identifier of a copy or of an object that will replace this one, while it is being written.
    pub copy: Option<ObjectId>,
    /// Time at which the put of the content began, milliseconds since 1970; copies have that of
    /// their original. 0 when it is not known, as in entries of versions 1 and 2.
    pub stored_unix_ms: u64,
}

/// Reason why bytes are not a valid entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl Entry {
    /// Returns the layout of the chunks.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match &self.parts {
            Some(parts) => Layout::Parts(parts.clone()),
            None => Layout::Spread(self.spread()),
        }
    }

    /// Returns the number of members, as layouts take it.
    #[must_use]
    pub fn member_count(&self) -> u16 {
        u16::try_from(self.members.len()).expect("an array has at most 1024 drives")
    }

    fn spread(&self) -> Spread {
        let members = self.member_count();
        let (bytes, chunk_bytes, offset) = (self.bytes, self.chunk_bytes, self.offset);
        Spread { bytes, chunk_bytes, members, offset }
    }

    /// Returns true if the entry has a digest: a host has seen the content.
    #[must_use]
    pub fn has_digest(&self) -> bool {
        self.digest != [0; 32]
    }

    /// Returns the CRC-32C of a chunk, if it is known.
    #[must_use]
    pub fn sum(&self, chunk: u32) -> Option<u32> {
        self.sums.get(usize::try_from(chunk).ok()?).copied()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.bytes / self.element.bytes() as u64
    }

    /// Returns true if both entries are known to be of the same bytes, in the same chunks.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        let described = |entry: &Self| {
            (entry.element, entry.shape.clone(), entry.bytes, entry.chunk_bytes, entry.digest)
        };
        let parts = |entry: &Self| {
            let parts = entry.parts.as_ref().map(Parts::parts)?;
            Some(parts.iter().map(|part| (part.bytes, part.mark)).collect::<Vec<_>>())
        };
        let has_same_sums = !other.sums.is_empty() && self.sums == other.sums;
        described(self) == described(other)
            && parts(self) == parts(other)
            && (self.has_digest() || has_same_sums)
    }

    /// Returns the encoded entry.
    ///
    /// # Panics
    /// When the name, the shape or the members exceed their limits; callers check them on input.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_BYTES + self.name.len() + 64);
        out.extend_from_slice(&MAGIC);
        let is_plain = self.sums.is_empty() && self.protection.is_none() && !self.has_flags();
        let version = match (self.stored_unix_ms, is_plain) {
            (0, true) => VERSION,
            (0, false) => VERSION_WITH_SUMS,
            _ => VERSION_WITH_TIME,
        };
        out.extend_from_slice(&version.to_le_bytes());
        out.push(state_code(self.state));
        out.push(self.element.code());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.writer);
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.chunk_bytes.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.layout().chunks().to_le_bytes());
        out.push(matches!(self.placement, Placement::Block(_)).into());
        let spread = if self.whole { LAYOUT_WHOLE } else { LAYOUT_SPREAD };
        out.push(self.parts.as_ref().map_or(spread, |parts| layout_code(parts.kind())));
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.member_count().to_le_bytes());
        out.extend_from_slice(&length(self.shape.len()).to_le_bytes());
        out.extend_from_slice(&length(self.name.len()).to_le_bytes());
        out.extend_from_slice(&self.protection_header());
        out.extend_from_slice(&self.digest);
        debug_assert_eq!(out.len(), FIXED_BYTES);
        self.members.iter().for_each(|member| out.extend_from_slice(&member.to_le_bytes()));
        self.shape.iter().for_each(|length| out.extend_from_slice(&length.to_le_bytes()));
        out.extend_from_slice(self.name.as_bytes());
        if let Placement::Block(extents) = &self.placement {
            extents.iter().for_each(|runs| encode_extents(runs, &mut out));
        }
        if let Some(parts) = &self.parts {
            encode_parts(parts.parts(), &mut out);
        }
        self.sums.iter().for_each(|sum| out.extend_from_slice(&sum.to_le_bytes()));
        self.encode_protection(&mut out);
        self.copy.iter().for_each(|copy| out.extend_from_slice(&copy.0));
        if self.stored_unix_ms > 0 {
            out.extend_from_slice(&self.stored_unix_ms.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Parses an entry.
    ///
    /// # Errors
    /// [`Malformed`] with the reason; never panics on any bytes.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let body_bytes = data.len().checked_sub(CRC_BYTES).ok_or(Malformed("too short"))?;
        let (body, crc) = data.split_at(body_bytes);
        let mut input = Cursor(body);
        if input.array()? != MAGIC {
            return Err(Malformed("wrong magic number"));
        }
        let version = input.u16()?;
        if !(VERSION..=VERSION_WITH_TIME).contains(&version) {
            return Err(Malformed("unknown version"));
        }
        if crc32c::crc32c(body).to_le_bytes() != crc {
            return Err(Malformed("wrong checksum"));
        }
        let entry = Self::parse_body(&mut input, version)?;
        entry.check()?;
        Ok(entry)
    }

    fn parse_body(input: &mut Cursor<'_>, version: u16) -> Result<Self, Malformed> {
        let state = state_of(input.u8()?)?;
        let element =
            ElementType::from_code(input.u8()?).ok_or(Malformed("unknown element type"))?;
        let epoch = input.u64()?;
        let writer = input.array()?;
        let id = ObjectId(input.array()?);
        let chunk_bytes = input.u32()?;
        let bytes = input.u64()?;
        let chunks = input.u32()?;
        let on_block = input.u8()?;
        let layout = input.u8()?;
        let (kind, whole) = (kind_of(layout)?, layout == LAYOUT_WHOLE);
        let offset = input.u16()?;
        let (members, dimensions, name_bytes) = (input.u16()?, input.u16()?, input.u16()?);
        let header = Header::parse(input.array()?, version)?;
        let digest = input.array()?;
        let members = (0..members).map(|_| input.drive()).collect::<Result<Vec<_>, _>>()?;
        let shape = (0..dimensions).map(|_| input.u64()).collect::<Result<Vec<_>, _>>()?;
        let name = str::from_utf8(input.take(name_bytes.into())?)
            .map_err(|_| Malformed("name is not UTF-8"))?
            .to_owned();
        let placement = match on_block {
            0 => Placement::Kv,
            1 => Placement::Block(
                members.iter().map(|_| parse_extents(input)).collect::<Result<_, _>>()?,
            ),
            _ => return Err(Malformed("unknown placement")),
        };
        let parts = match kind {
            Some(kind) => Some(parse_parts(input, kind, chunk_bytes, members.len())?),
            None => None,
        };
        let sums = match version > VERSION && header.has_sums(chunks)? {
            true => parse_sums(input, chunks)?,
            false => Vec::new(),
        };
        let mut entry = Self {
            name,
            id,
            writer,
            epoch,
            state,
            element,
            shape,
            chunk_bytes,
            bytes,
            offset,
            whole,
            parts,
            members,
            placement,
            digest,
            sums,
            survives: header.survives(),
            protection: None,
            copy: None,
            stored_unix_ms: 0,
        };
        entry.check_layout(chunks)?;
        entry.protection = header.rest(input, &entry)?;
        entry.copy = header.copy(input)?;
        if version == VERSION_WITH_TIME {
            entry.stored_unix_ms = parse_time(input)?;
        }
        if !input.0.is_empty() {
            return Err(Malformed("bytes after its end"));
        }
        Ok(entry)
    }

    /// Checks chunk size, number of chunks, members and parts against each other.
    fn check_layout(&self, chunks: u32) -> Result<(), Malformed> {
        // Values may be shorter than a block.
        let least = match self.placement {
            Placement::Kv => layout::CHUNK_BYTES_VALUE_MIN,
            Placement::Block(_) => layout::CHUNK_BYTES_MIN,
        };
        let sizes = least..=layout::CHUNK_BYTES_MAX;
        let possible = self.chunk_bytes.is_power_of_two() && sizes.contains(&self.chunk_bytes);
        if !possible || self.members.is_empty() {
            return Err(Malformed("impossible layout"));
        }
        if self.spread().checked_chunks().is_err() {
            return Err(Malformed("number of chunks and size disagree"));
        }
        let bytes = self.parts.as_ref().map_or(self.bytes, Parts::bytes);
        if self.layout().chunks() != chunks || bytes != self.bytes {
            return Err(Malformed("number of chunks and size disagree"));
        }
        if self.whole && self.members.len() != 1 {
            return Err(Malformed("a whole object on several drives"));
        }
        if self.parts.is_some() && self.offset != 0 {
            return Err(Malformed("parts have no offset"));
        }
        Ok(())
    }

    /// Checks the fields of a parsed entry against each other.
    fn check(&self) -> Result<(), Malformed> {
        if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX {
            return Err(Malformed("length of the name"));
        }
        if self.shape.len() > DIMENSIONS_MAX || self.members.len() > DRIVES_MAX {
            return Err(Malformed("too many dimensions or members"));
        }
        let mut once = self.members.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() != self.members.len() || usize::from(self.offset) >= self.members.len() {
            return Err(Malformed("impossible members"));
        }
        self.check_protection()?;
        if self.state != State::Sealed {
            return Ok(());
        }
        let elements = self.shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let bytes = elements.and_then(|n| n.checked_mul(self.element.bytes() as u64));
        if bytes != Some(self.bytes) {
            return Err(Malformed("shape and size disagree"));
        }
        let Placement::Block(extents) = &self.placement else { return Ok(()) };
        let layout = self.layout();
        let enough = extents.iter().enumerate().all(|(member, runs)| {
            let units: u64 = runs.iter().map(|&(_, count)| u64::from(count)).sum();
            let needed = u64::from(layout.count(member)) * u64::from(self.chunk_bytes);
            units.saturating_mul(layout::UNIT_BYTES) >= needed
        });
        if enough { Ok(()) } else { Err(Malformed("extents are shorter than the chunks")) }
    }
}

#[cfg(test)]
mod tests;
