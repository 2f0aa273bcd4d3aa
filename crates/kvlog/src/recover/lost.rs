//! Segments whose header is lost: what lies behind one that says that the segment is free.
//!
//! On media with freed-segment headers, a segment whose header is missing and that still has
//! records is damaged. A power cut may lose the header of a segment that had begun, and nothing of
//! it was acknowledged then: it has no seal that counts records, and no second group, because that
//! begins when the first one, and with it the header, is durable. With a volatile cache the mark
//! says what is durable.

use csd_reactor::Buffer;

use crate::error::MediaError;
use crate::hint::Hint;
use crate::mark::Mark;
use crate::media::Media;
use crate::record::{PAGE_BYTES, RECORDS_OFFSET, RecordHeader, SECTOR_BYTES};
use crate::recover::Found;
use crate::segment_head::{Head, SegmentHeader, SegmentSeal};
use crate::segments::Segments;
use crate::walk::{Step, Until, Walk};

/// Bytes read at once to look for a second group.
const WINDOW_BYTES: u64 = 16 << 10;

/// Looks behind the header of a segment that seems to be free since its use with the sequence
/// `ended`. `page` is its second page. Returns the damage, in words.
///
/// # Errors
/// When the medium cannot be read.
pub(super) async fn look(
    media: &Media,
    segments: &Segments,
    (number, ended): (u32, u64),
    page: &[u8],
) -> Result<Option<String>, MediaError> {
    let (bytes, sector) = (segments.segment_bytes, usize::try_from(SECTOR_BYTES).expect("small"));
    let (seal, hint) = page.split_at(sector);
    let left = [
        SegmentSeal::decode_any(seal, bytes).map(|(sequence, seal)| (sequence, seal.drive)),
        Hint::decode_any(hint, bytes).map(|(sequence, hint)| (sequence, hint.drive)),
    ];
    // The next use has a higher sequence: else its header would be older than what follows it.
    for (sequence, drive) in left.into_iter().flatten() {
        if drive > 0 && drive == segments.tag() {
            segments.seen(0, sequence);
        }
    }
    let seal = SegmentSeal::decode_any(seal, bytes).filter(|(sequence, _)| *sequence > ended);
    let lost = |what: &str| Ok(Some(format!("segment {number}: its header (its {what} is there)")));
    if let Some((sequence, seal)) = seal {
        if seal.valid_bytes == RECORDS_OFFSET {
            segments.headless.met(sequence);
            return Ok(None);
        }
        let is_ours = match segments.tag() {
            // A segment that was stopped is sealed again before it is freed.
            0 => seal.stopped.is_some() && ends_with(media, segments, number, &seal).await?,
            tag => seal.drive == tag,
        };
        return if is_ours { lost("seal") } else { Ok(None) };
    }
    let hint = Hint::decode_any(hint, bytes).filter(|(sequence, _)| *sequence > ended);
    let Some((sequence, hint)) = hint.filter(|(_, hint)| hint.drive > 0) else { return Ok(None) };
    if hint.drive != segments.tag() {
        return Ok(None);
    }
    if hint.durable_bytes > RECORDS_OFFSET {
        return lost("hint");
    }
    let until = Until::Open(Some(hint));
    let mut walk = Walk::new(media, segments, (number, sequence), until, WINDOW_BYTES);
    loop {
        match walk.next().await? {
            Step::Record(_, record) if u64::from(record.group) * SECTOR_BYTES == RECORDS_OFFSET => {
            }
            Step::End => return Ok(None),
            _ => return lost("second group"),
        }
    }
}

/// Returns true if the bytes before the end that a seal says are those that it was written for.
async fn ends_with(
    media: &Media,
    segments: &Segments,
    number: u32,
    seal: &crate::segment_head::Seal,
) -> Result<bool, MediaError> {
    let length = usize::try_from(seal.valid_bytes % PAGE_BYTES).expect("less than a page");
    let at = segments.at(number, seal.valid_bytes - length as u64);
    let (result, bytes) = media.read(at, Buffer::with_room(0, length, 0)).await;
    result?;
    Ok(crc32c::crc32c(&bytes) == seal.tail_checksum)
}

/// Looks for segments whose records count as the mark says, and which were not found. Returns the
/// damage, in words.
///
/// # Errors
/// When the medium cannot be read.
pub async fn by_mark(
    media: &Media,
    segments: &Segments,
    mark: &Mark,
    found: &[Found],
) -> Result<Vec<String>, MediaError> {
    let is_found = |sequence: u64| found.iter().any(|segment| segment.sequence == sequence);
    let named = mark.positions.iter().filter(|position| position.end > RECORDS_OFFSET);
    let missing: Vec<u64> =
        named.map(|position| position.sequence).filter(|it| !is_found(*it)).collect();
    let mut damage = Vec::new();
    // Cleaning may have freed them.
    if missing.is_empty() || segments.tag() == 0 {
        return Ok(damage);
    }
    for number in 0..segments.count {
        let length = usize::try_from(RECORDS_OFFSET + SECTOR_BYTES).expect("three pages");
        let at = segments.at(number, 0);
        let (result, bytes) = media.read(at, Buffer::with_room(0, length, 0)).await;
        result?;
        let Head::Free { ended } = SegmentHeader::decode(&bytes, &segments.uuid) else { continue };
        let first = &bytes[usize::try_from(RECORDS_OFFSET).expect("two pages")..];
        let sequence = RecordHeader::parse(first).map_or(0, |header| header.sequence());
        let is_record = RecordHeader::checked(first, sequence).is_some();
        if is_record && sequence > ended && missing.contains(&sequence) {
            damage.push(format!("segment {number}: its header (the mark counts its records)"));
        }
    }
    Ok(damage)
}
