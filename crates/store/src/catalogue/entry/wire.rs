//! The pieces of an encoded entry: codes, extents, parts, and a cursor for parsing.

use csd_nvme::vendor::folders::STATE_SEALED;

use super::{Extents, Malformed, State};
use crate::array::DriveIndex;
use crate::layout::{Kind, Part, Parts};

pub(super) const LAYOUT_SPREAD: u8 = 1;
pub(super) const LAYOUT_WHOLE: u8 = 5;
const PART_BYTES: usize = 22;

pub(super) fn layout_code(kind: Kind) -> u8 {
    match kind {
        Kind::Range => 2,
        Kind::Rows => 3,
        Kind::Graph => 4,
        Kind::Table => 6,
    }
}

pub(super) fn kind_of(layout: u8) -> Result<Option<Kind>, Malformed> {
    match layout {
        LAYOUT_SPREAD | LAYOUT_WHOLE => Ok(None),
        2 => Ok(Some(Kind::Range)),
        3 => Ok(Some(Kind::Rows)),
        4 => Ok(Some(Kind::Graph)),
        6 => Ok(Some(Kind::Table)),
        _ => Err(Malformed("unknown layout")),
    }
}

pub(super) fn state_code(state: State) -> u8 {
    match state {
        State::Staged => 1,
        State::Sealed => STATE_SEALED,
        State::Deleted => 3,
    }
}

/// Parses the time at which the content was stored, ms since 1970. It is not 0.
pub(super) fn parse_time(input: &mut Cursor<'_>) -> Result<u64, Malformed> {
    match input.u64()? {
        0 => Err(Malformed("stored at no time")),
        stored_unix_ms => Ok(stored_unix_ms),
    }
}

pub(super) fn state_of(code: u8) -> Result<State, Malformed> {
    match code {
        1 => Ok(State::Staged),
        STATE_SEALED => Ok(State::Sealed),
        3 => Ok(State::Deleted),
        _ => Err(Malformed("unknown state")),
    }
}

pub(super) fn length(count: usize) -> u16 {
    u16::try_from(count).expect("names, shapes and members are limited where they come in")
}

pub(super) fn encode_extents(runs: &Extents, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(runs.len()).expect("units have 32 bits").to_le_bytes());
    for (first, count) in runs {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
    }
}

pub(super) fn parse_extents(input: &mut Cursor<'_>) -> Result<Extents, Malformed> {
    let runs = input.u32()?;
    let mut extents = Vec::new();
    for _ in 0..runs {
        let (first, count) = (input.u32()?, input.u32()?);
        if count == 0 || first.checked_add(count).is_none() {
            return Err(Malformed("impossible extent"));
        }
        extents.push((first, count));
    }
    Ok(extents)
}

pub(super) fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    let count = u32::try_from(parts.len()).expect("parts are limited where they come in");
    out.extend_from_slice(&count.to_le_bytes());
    for part in parts {
        out.extend_from_slice(&part.member.to_le_bytes());
        out.extend_from_slice(&part.number.to_le_bytes());
        out.extend_from_slice(&part.bytes.to_le_bytes());
        out.extend_from_slice(&part.mark.to_le_bytes());
    }
}

pub(super) fn parse_parts(
    input: &mut Cursor<'_>,
    kind: Kind,
    chunk_bytes: u32,
    members: usize,
) -> Result<Parts, Malformed> {
    let count = input.u32()? as usize;
    if input.0.len() / PART_BYTES < count {
        return Err(Malformed("too short"));
    }
    let part = |_| {
        let (member, number) = (input.u16()?, input.u32()?);
        Ok(Part { member, number, bytes: input.u64()?, mark: input.u64()? })
    };
    let parts = (0..count).map(part).collect::<Result<Vec<_>, Malformed>>()?;
    if chunk_bytes == 0 {
        return Err(Malformed("impossible layout"));
    }
    let parts = Parts::new(kind, chunk_bytes, length(members), parts);
    let parts = parts.map_err(|_| Malformed("number of chunks and size disagree"))?;
    parts.ok_or(Malformed("a part on no member"))
}

/// Parses the sums of all chunks, of which there is at least one.
pub(super) fn parse_sums(input: &mut Cursor<'_>, chunks: u32) -> Result<Vec<u32>, Malformed> {
    let bytes = usize::try_from(u64::from(chunks) * 4).map_err(|_| Malformed("too short"))?;
    let sums = input.take(bytes)?;
    if chunks == 0 {
        return Err(Malformed("sums of no chunk"));
    }
    Ok(sums.as_chunks::<4>().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
}

/// Bytes not parsed yet.
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(bytes).ok_or(Malformed("too short"))?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.take(N)?;
        Ok(*bytes.first_chunk().expect("took N bytes"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn drive(&mut self) -> Result<DriveIndex, Malformed> {
        self.u16().map(DriveIndex::from)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }
}
