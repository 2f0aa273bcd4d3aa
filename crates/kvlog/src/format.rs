//! The superblock: identity of a medium, and its split among namespaces.
//!
//! `docs/internals/format.md` draws it. Invariants: the split and the version are fixed at format
//! time; a superblock whose checksum, version, features or bounds are wrong is refused with the
//! reason; a medium that holds something else is not written.

use csd_nvme::layout;
use csd_reactor::{Buffer, random_bytes};

use crate::error::Error;
use crate::media::{Media, Syncer};
use crate::record::RECORDS_OFFSET;

pub use crate::media::{HEAD_BYTES, PAGE_BYTES};

/// Offset of the drive's identifier on the medium.
pub const UUID_OFFSET: u64 = 16;
/// Offset of the second copy of the superblock.
const COPY_OFFSET: u64 = HEAD_BYTES / 2;
/// Offsets of the two pages of settings (`csd_drive::controller::Settings`).
pub const SETTINGS_OFFSETS: [u64; 2] = [HEAD_BYTES / 4, HEAD_BYTES / 4 * 3];
/// "CSDSTORE".
const MAGIC: u64 = u64::from_le_bytes(*b"CSDSTORE");
/// Version of the on-media format that new media get.
pub const VERSION: u32 = 2;
/// Oldest version that is read. Its media keep it: they are written in its structures.
const VERSION_MIN: u32 = 1;
/// Bits of [`Superblock::features_needed`] that this program knows.
const FEATURES_KNOWN: u64 = FEATURE_MARK | FEATURE_FREED | FEATURE_SHARED;
/// Bit of [`Superblock::features_needed`]: the kv log ends where the mark says.
pub const FEATURE_MARK: u64 = 1;
/// Bit of [`Superblock::features_needed`]: a freed segment has a header that says so, and a segment
/// with records and without a header is damage. New media have it.
pub const FEATURE_FREED: u64 = 1 << 1;
/// Bit of [`Superblock::features_needed`]: values may have shared chunks. A drive that shares sets
/// it before it shares the first one; the medium keeps it.
pub const FEATURE_SHARED: u64 = 1 << 2;
/// Number of kv shards, fixed so that any number of cores opens any medium.
pub const SHARDS: u32 = 16;
/// Smallest drive: the kv log needs a segment per shard and some to clean with.
pub const DRIVE_BYTES_MIN: u64 = 128 << 20;

/// Longest value of any drive: 16 MiB, the transfer limit of MDTS 12.
const VALUE_BYTES_MAX: u64 = 16 << 20;
/// Longest value of a small drive.
const VALUE_BYTES_MIN: u64 = 256 << 10;
const SEGMENT_BYTES_MIN: u64 = segment_bytes(2, VALUE_BYTES_MIN);
const SEGMENT_BYTES_MAX: u64 = segment_bytes(3, VALUE_BYTES_MAX);
/// Shortest segment that an older log may have: without space for short records.
const SEGMENT_BYTES_READ_MIN: u64 = RECORDS_OFFSET + 2 * (VALUE_BYTES_MIN + PAGE_BYTES);
/// Divisor of the share of a segment for short records. Without that share a short record would
/// take the place of a long one.
const SHORT_SHARE: u64 = 64;
/// Number of segments that a kv log should have at least: every shard has an open one, and their
/// space is not announced as capacity.
const SEGMENTS_WANTED: u64 = 208;
/// Segments that a new log must have, and that an older one may have.
const SEGMENTS_MIN: u64 = 2 * SHARDS as u64;
const SEGMENTS_READ_MIN: u64 = SHARDS as u64 + 4;

/// Returns the size of a segment that holds `values` of the longest values, each in a group of its
/// own, and some short records.
const fn segment_bytes(values: u64, value_bytes: u64) -> u64 {
    RECORDS_OFFSET + values * (value_bytes + PAGE_BYTES + value_bytes / SHORT_SHARE)
}

/// Returns the size of the longest segments of which a log of `bytes` bytes has enough.
fn plan_segments(bytes: u64) -> u64 {
    let mut value_bytes = VALUE_BYTES_MAX;
    loop {
        for values in [3, 2] {
            let segment = segment_bytes(values, value_bytes);
            if bytes / segment >= SEGMENTS_WANTED || segment == SEGMENT_BYTES_MIN {
                return segment;
            }
        }
        value_bytes /= 2;
    }
}

layout! {
    /// Superblock, at offset 0 and again at 512 KiB.
    pub struct Superblock[4096] {
        /// "CSDSTORE".
        magic / set_magic: u64 @ 0,
        /// Version of the format.
        version / set_version: u32 @ 8,
        /// CRC-32C of all 4,096 bytes with this field zero.
        checksum / set_checksum: u32 @ 12,
        /// Identifier of the drive, random.
        uuid / set_uuid: [16] @ 16,
        /// Size of the medium in bytes at format time.
        bytes / set_bytes: u64 @ 32,
        /// Start of the block namespace in bytes.
        block_offset / set_block_offset: u64 @ 40,
        /// Length of the block namespace in bytes.
        block_length / set_block_length: u64 @ 48,
        /// Size of a logical block in bytes.
        block_bytes / set_block_bytes: u32 @ 56,
        /// Number of kv shards.
        shards / set_shards: u32 @ 60,
        /// Start of the kv log in bytes.
        kv_offset / set_kv_offset: u64 @ 64,
        /// Length of the kv log in bytes.
        kv_length / set_kv_length: u64 @ 72,
        /// Size of a kv segment in bytes.
        segment_bytes / set_segment_bytes: u64 @ 80,
        /// Features that a program may ignore: without them it reads and writes the medium rightly.
        features_optional / set_features_optional: u64 @ 88,
        /// Features that a program must know to read the medium.
        features_needed / set_features_needed: u64 @ 96,
    }
}

/// Split of a new medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Share in percent of the kv namespaces in the bytes that are not reserved.
    pub kv_percent: u8,
    /// Share in percent that is not assigned to any namespace.
    pub reserve_percent: u8,
    /// Size of a logical block in bytes: 512 or 4096.
    pub block_bytes: u32,
}

impl Superblock {
    /// Plans the split of a medium of `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Usage`] when the sizes are impossible, with the least that would do.
    pub fn plan(bytes: u64, split: &Split, uuid: [u8; 16]) -> Result<Self, Error> {
        let usage = |text: String| Err(Error::Usage(text));
        if bytes < DRIVE_BYTES_MIN {
            let (least, given) = (DRIVE_BYTES_MIN >> 20, bytes >> 20);
            return usage(format!("a drive has at least {least} MiB, not {given}: use --size"));
        }
        if split.kv_percent > 100 || split.reserve_percent > 90 {
            return usage("--kv is at most 100 % and --reserve at most 90 %".into());
        }
        if !matches!(split.block_bytes, 512 | 4096) {
            return usage(format!("a block has 512 or 4096 bytes, not {}", split.block_bytes));
        }
        let reserve = bytes / 100 * u64::from(split.reserve_percent);
        let usable = bytes - HEAD_BYTES - reserve;
        let kv = usable / 100 * u64::from(split.kv_percent);
        let segment = plan_segments(kv);
        let kv_length = kv / segment * segment;
        let least = segment * SEGMENTS_MIN;
        if kv_length < least {
            let (least, has) = (least >> 20, kv_length >> 20);
            return usage(format!(
                "the kv namespaces need at least {least} MiB and would have {has}: raise --size \
                 or --kv"
            ));
        }
        let kv_offset = HEAD_BYTES;
        let block_offset = kv_offset + kv_length;
        let block_length = (bytes - reserve - block_offset) / PAGE_BYTES * PAGE_BYTES;
        let mut block = Self::zeroed();
        block.set_magic(MAGIC).set_version(VERSION).set_uuid(&uuid).set_bytes(bytes);
        block.set_block_offset(block_offset).set_block_length(block_length);
        block.set_block_bytes(split.block_bytes).set_shards(SHARDS);
        block.set_kv_offset(kv_offset).set_kv_length(kv_length).set_segment_bytes(segment);
        block.set_features_needed(FEATURE_FREED);
        let checksum = block.sum();
        block.set_checksum(checksum);
        Ok(block)
    }

    /// Returns the longest value of the kv namespaces in bytes: a power of two of which two fit a
    /// segment, at most 16 MiB.
    pub fn value_bytes_max(&self) -> u32 {
        let half = (self.segment_bytes() - RECORDS_OFFSET) / 2 - PAGE_BYTES;
        let most = half.checked_ilog2().map_or(0, |bits| 1 << bits).min(VALUE_BYTES_MAX);
        u32::try_from(most).expect("at most 16 MiB")
    }

    fn sum(&self) -> u32 {
        let mut copy = *self;
        copy.set_checksum(0);
        crc32c::crc32c(copy.as_bytes())
    }

    /// Returns true if this is what a drive wrote, of whatever version.
    fn is_intact(&self) -> bool {
        self.magic() == MAGIC && self.checksum() == self.sum()
    }

    /// Checks a superblock that was read from a medium of `bytes` bytes.
    fn check(&self, bytes: u64) -> Result<(), String> {
        if self.magic() != MAGIC {
            return Err("it holds something else (no CSDStore superblock)".into());
        }
        if !(VERSION_MIN..=VERSION).contains(&self.version()) {
            let found = self.version();
            return Err(format!(
                "its format version is {found}, this program reads versions {VERSION_MIN} to \
                 {VERSION}"
            ));
        }
        if self.checksum() != self.sum() {
            return Err("the superblock is damaged (checksum)".into());
        }
        let unknown = self.features_needed() & !FEATURES_KNOWN;
        if unknown != 0 {
            let bit = unknown.trailing_zeros();
            return Err(format!(
                "it cannot be read without feature {bit}, which this program does not know (bits \
                 of unknown features: {unknown:#x})"
            ));
        }
        if self.bytes() > bytes {
            let (was, is) = (self.bytes(), bytes);
            return Err(format!("it was formatted with {was} bytes and has only {is}"));
        }
        // Areas begin behind the head and are whole pages.
        let within = |offset: u64, length: u64| {
            offset >= HEAD_BYTES
                && (offset | length).is_multiple_of(PAGE_BYTES)
                && offset.checked_add(length).is_some_and(|end| end <= bytes)
        };
        let (kv, blocks) = (self.kv_offset(), self.block_offset());
        let segment = self.segment_bytes();
        let sane = within(blocks, self.block_length())
            && within(kv, self.kv_length())
            && (kv + self.kv_length() <= blocks || blocks + self.block_length() <= kv)
            && matches!(self.block_bytes(), 512 | 4096)
            && self.shards() == SHARDS
            && (SEGMENT_BYTES_READ_MIN..=SEGMENT_BYTES_MAX).contains(&segment)
            && segment.is_multiple_of(PAGE_BYTES)
            && self.kv_length().is_multiple_of(segment)
            && self.kv_length() / segment >= SEGMENTS_READ_MIN;
        if sane { Ok(()) } else { Err("the superblock's bounds are impossible".into()) }
    }
}

/// Formats a new medium: both copies of the superblock, durable when this returns.
///
/// # Errors
/// As [`Superblock::plan`], or when the medium fails. It then begins with zeros again, or is a
/// drive's, so that the next start has a medium that it knows.
pub async fn format(media: &Media, split: &Split) -> Result<Superblock, Error> {
    let mut uuid = [0; 16];
    random_bytes(&mut uuid);
    let block = Superblock::plan(media.bytes(), split, uuid)?;
    let written = write_copies(media, &block).await;
    if written.is_err() && open(media).await.is_err() {
        // A part of the second copy would be taken for data of someone else. If it cannot be
        // removed either, the first error is the one to report.
        let _left = media.zero(COPY_OFFSET, PAGE_BYTES).await;
    }
    written.map(|()| block)
}

async fn write_copies(media: &Media, block: &Superblock) -> Result<(), Error> {
    for offset in [COPY_OFFSET, 0] {
        let (result, _) = media.write(offset, vec![Buffer::from_slice(block.as_bytes())]).await;
        result?;
        media.sync().await?;
    }
    Ok(())
}

/// Sets the features that a program must know to read the medium, durably.
///
/// The first copy gets a bit first and loses it last, so that the second copy, which counts only if
/// the first is damaged, never has a bit that the first lacks.
///
/// # Errors
/// When the medium fails.
pub async fn set_needed(
    syncer: &Syncer,
    superblock: &Superblock,
    features: u64,
) -> Result<(), Error> {
    let (media, mut block) = (syncer.media(), *superblock);
    block.set_features_needed(features);
    let checksum = block.sum();
    block.set_checksum(checksum);
    let is_more = features & !superblock.features_needed() != 0;
    let order = if is_more { [0, COPY_OFFSET] } else { [COPY_OFFSET, 0] };
    for offset in order {
        let (result, page) = media.read(offset, Buffer::zeroed(Superblock::SIZE)).await;
        result?;
        if page[..] != block.as_bytes()[..] {
            let (result, _) = media.write(offset, vec![Buffer::from_slice(block.as_bytes())]).await;
            result?;
            syncer.sync().await?;
        }
    }
    Ok(())
}

/// Reads the superblock of a medium, from its second copy when the first is damaged.
///
/// # Errors
/// [`Error::Format`] with the reason.
pub async fn open(media: &Media) -> Result<Superblock, Error> {
    let mut complaint = String::new();
    for offset in [0, COPY_OFFSET] {
        if media.bytes() < offset + PAGE_BYTES {
            complaint = format!("it has only {} bytes", media.bytes());
            break;
        }
        let (result, page) = media.read(offset, Buffer::zeroed(Superblock::SIZE)).await;
        result?;
        let block = Superblock::parse(&page).expect("a page holds a superblock");
        match block.check(media.bytes()) {
            Ok(()) => return Ok(block),
            // The other copy is for damage: it does not overrule what is written here.
            Err(text) if block.is_intact() => return Err(Error::Format(text)),
            Err(text) if complaint.is_empty() => complaint = text,
            Err(_) => {}
        }
    }
    Err(Error::Format(complaint))
}

/// Identity of a medium by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Zeros where the superblocks are, or too short for them: never formatted.
    Blank,
    /// A drive's medium, with this identifier.
    Drive([u8; 16]),
    /// Something else, or both superblocks are damaged.
    Other,
}

/// Identifies a file without its lock, because a superblock does not change once it is written.
/// Blocks the thread.
///
/// # Errors
/// When it cannot be read.
pub fn identify(file: &std::fs::File) -> std::io::Result<Identity> {
    use std::os::unix::fs::FileExt;
    let bytes = file.metadata()?.len();
    let mut blank = true;
    for offset in [0, COPY_OFFSET] {
        if bytes < offset + PAGE_BYTES {
            break;
        }
        let mut page = vec![0; Superblock::SIZE];
        file.read_exact_at(&mut page, offset)?;
        let block = Superblock::parse(&page).expect("a page holds a superblock");
        if block.check(bytes).is_ok() {
            return Ok(Identity::Drive(block.uuid()));
        }
        blank &= page.iter().all(|byte| *byte == 0);
    }
    Ok(if blank && (bytes == 0 || bytes >= HEAD_BYTES) { Identity::Blank } else { Identity::Other })
}

/// Describes the damaged copies of the superblock on a medium that [`open`] has accepted.
///
/// # Errors
/// When the medium cannot be read.
pub async fn damaged_copies(media: &Media) -> Result<Vec<String>, Error> {
    let mut damaged = Vec::new();
    for offset in [0, COPY_OFFSET] {
        let (result, page) = media.read(offset, Buffer::zeroed(Superblock::SIZE)).await;
        result?;
        let block = Superblock::parse(&page).expect("a page holds a superblock");
        if let Err(text) = block.check(media.bytes()) {
            damaged.push(format!("superblock at {offset}: {text}"));
        }
    }
    Ok(damaged)
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
