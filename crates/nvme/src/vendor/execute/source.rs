//! Bytes of a program: its inputs ([`Source`]) and the destination of its result ([`Output`]).

use super::{CHUNKS_MAX, Malformed, OutputKind, SOURCE_BYTES_MAX, STREAMS_MAX};
use crate::kv::Key;
use crate::wire::{codes, layout, take};

codes! {
    /// Kind of a source.
    pub struct SourceKind: u8 {
        KV_CHUNKS = 1: "kv values whose keys are 12 bytes and a chunk number",
        BLOCKS = 2: "bytes of a run of logical blocks",
        MEMORY = 3: "bytes of a memory namespace",
        KV_TAIL = 4: "one kv value from one of its bytes on",
        INLINE = 5: "bytes of the payload itself",
        KEYS = 6: "keys of a kv namespace in its order, from one key on",
    }
}

layout! {
    /// One source of 32 bytes. An output's record has the same fields.
    pub struct SourceRecord[32] {
        /// [`SourceKind`]; an output has the same numbers.
        kind / set_kind: u8 @ 0,
        /// Stream that the source belongs to, 0 to 7; 0 in an output.
        stream / set_stream: u8 @ 1,
        /// Reserved, 0.
        reserved / set_reserved: [2] @ 2,
        /// Namespace of the source.
        nsid / set_nsid: u32 @ 4,
        /// kv: first 12 bytes of every key. Blocks: starting LBA (8 bytes), memory: first byte
        /// (8 bytes), then 4 zero bytes. Inline: zeros. Keys: bytes 0 to 11 of the first key.
        locator / set_locator: [12] @ 8,
        /// kv: number of the first chunk. Blocks: bytes to skip in the first block. Keys: bytes 12
        /// to 15 of the first key. Else: 0.
        first / set_first: u32 @ 20,
        /// kv: number of chunks; of a tail: bytes to skip; of an output: bytes of a chunk. Keys:
        /// length of the first key, 0 for none. Else: number of bytes.
        count / set_count: u32 @ 24,
        /// kv chunks: distance between chunk numbers, at least 1. Else: 0.
        stride / set_stride: u32 @ 28,
    }
}

/// A checked source: a range of bytes of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The stream, 0 to 7. Its sources are read one after the other.
    pub stream: u8,
    /// The bytes.
    pub data: SourceData,
}

/// Bytes that a source names, by the kind of namespace that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceData {
    /// Values under `prefix ++ (first + k * stride as u32 big-endian)`, k from 0 to `count - 1`.
    KvChunks {
        /// kv namespace.
        nsid: u32,
        /// First 12 bytes of every key.
        prefix: [u8; 12],
        /// Number of the first chunk.
        first: u32,
        /// Number of chunks, 1 to [`CHUNKS_MAX`].
        count: u32,
        /// Distance between chunk numbers.
        stride: u32,
    },
    /// The value under `prefix ++ (number as u32 big-endian)` from byte `skip` on.
    KvTail {
        /// kv namespace.
        nsid: u32,
        /// First 12 bytes of the key.
        prefix: [u8; 12],
        /// Number of the chunk.
        number: u32,
        /// Bytes to skip, at least 1; a shorter value reads as empty.
        skip: u32,
    },
    /// Keys of existing values in the order of a List, each as an entry of its data: length (u16),
    /// key, zeros up to a multiple of 4. Keys stored or deleted meanwhile may or may not be there.
    /// Only a namespace whose order is that of [`Key`] has this source.
    Keys {
        /// kv namespace.
        nsid: u32,
        /// Key to begin at, which is included if it exists; `None` for the first one.
        from: Option<Key>,
    },
    /// The next `bytes` inline bytes of the payload, which precede the parameters.
    Inline {
        /// Number of bytes, at least 1.
        bytes: u32,
    },
    /// `bytes` bytes, from `skip` bytes into block `slba`.
    Blocks {
        /// Block namespace.
        nsid: u32,
        /// Starting LBA.
        slba: u64,
        /// Bytes to skip in the first block.
        skip: u32,
        /// Number of bytes, 1 to [`SOURCE_BYTES_MAX`].
        bytes: u32,
    },
    /// `bytes` bytes from byte `start` on.
    Memory {
        /// Memory namespace.
        nsid: u32,
        /// First byte.
        start: u64,
        /// Number of bytes, 1 to [`SOURCE_BYTES_MAX`].
        bytes: u32,
    },
}

impl From<SourceData> for Source {
    /// Returns a source of stream 0.
    fn from(data: SourceData) -> Self {
        data.on(0)
    }
}

impl SourceData {
    /// Returns a source of this stream.
    #[must_use]
    pub fn on(self, stream: u8) -> Source {
        Source { stream, data: self }
    }

    fn of(record: &SourceRecord) -> Result<Self, Malformed> {
        let (nsid, locator) = (record.nsid(), record.locator());
        let (first, count, stride) = (record.first(), record.count(), record.stride());
        let kind = SourceKind(record.kind());
        if count == 0 && kind != SourceKind::KEYS {
            return Err(Malformed("a source is empty"));
        }
        match kind {
            SourceKind::KEYS => Ok(Self::Keys { nsid, from: first_key(record)? }),
            SourceKind::KV_CHUNKS => {
                if count > CHUNKS_MAX {
                    return Err(Malformed("a source has more than 256 chunks"));
                }
                if stride == 0 || u64::from(first) + last_step(count, stride) > u32::MAX.into() {
                    return Err(Malformed("chunk numbers leave 32 bits or the stride is 0"));
                }
                Ok(Self::KvChunks { nsid, prefix: locator, first, count, stride })
            }
            SourceKind::KV_TAIL if stride == 0 => {
                Ok(Self::KvTail { nsid, prefix: locator, number: first, skip: count })
            }
            SourceKind::INLINE if (nsid, locator, first, stride) == (0, [0; 12], 0, 0) => {
                Ok(Self::Inline { bytes: count })
            }
            SourceKind::KV_TAIL | SourceKind::INLINE => {
                Err(Malformed("reserved bytes of a source are not zero"))
            }
            SourceKind::BLOCKS | SourceKind::MEMORY => {
                let start = split_locator(locator)?;
                if stride != 0 || (kind == SourceKind::MEMORY && first != 0) {
                    return Err(Malformed("reserved bytes of a source are not zero"));
                }
                if u64::from(count) > SOURCE_BYTES_MAX {
                    return Err(Malformed("a source has more than 256 MiB"));
                }
                Ok(match kind {
                    SourceKind::BLOCKS => {
                        Self::Blocks { nsid, slba: start, skip: first, bytes: count }
                    }
                    _ => Self::Memory { nsid, start, bytes: count },
                })
            }
            _ => Err(Malformed("unknown kind of source")),
        }
    }
}

impl Source {
    pub(super) fn of(record: &SourceRecord) -> Result<Self, Malformed> {
        if record.reserved() != [0; 2] {
            return Err(Malformed("reserved bytes of a source are not zero"));
        }
        if record.stream() >= STREAMS_MAX {
            return Err(Malformed("a source's stream is above 7"));
        }
        Ok(SourceData::of(record)?.on(record.stream()))
    }

    pub(super) fn record(&self) -> SourceRecord {
        let mut record = SourceRecord::zeroed();
        record.set_stream(self.stream);
        match self.data {
            SourceData::KvChunks { nsid, prefix, first, count, stride } => {
                record.set_kind(SourceKind::KV_CHUNKS.0).set_nsid(nsid).set_locator(&prefix);
                record.set_first(first).set_count(count).set_stride(stride);
            }
            SourceData::KvTail { nsid, prefix, number, skip } => {
                record.set_kind(SourceKind::KV_TAIL.0).set_nsid(nsid).set_locator(&prefix);
                record.set_first(number).set_count(skip);
            }
            SourceData::Inline { bytes } => {
                record.set_kind(SourceKind::INLINE.0).set_count(bytes);
            }
            SourceData::Keys { nsid, from } => {
                record.set_kind(SourceKind::KEYS.0).set_nsid(nsid);
                if let Some(key) = from {
                    let (locator, rest) = (take(key.padded(), 0), take(key.padded(), 12));
                    record.set_locator(&locator).set_first(u32::from_le_bytes(rest));
                    record.set_count(u32::try_from(key.as_bytes().len()).expect("at most 16"));
                }
            }
            SourceData::Blocks { nsid, slba, skip, bytes } => {
                record.set_kind(SourceKind::BLOCKS.0).set_nsid(nsid);
                record.set_locator(&locator(slba)).set_first(skip).set_count(bytes);
            }
            SourceData::Memory { nsid, start, bytes } => {
                record.set_kind(SourceKind::MEMORY.0).set_nsid(nsid);
                record.set_locator(&locator(start)).set_count(bytes);
            }
        }
        record
    }

    /// Returns the number of 1 MiB chunks that this source covers, counting partial ones.
    pub(super) fn chunks(&self) -> u64 {
        match self.data {
            SourceData::KvChunks { count, .. } => u64::from(count),
            SourceData::KvTail { .. } => 1,
            SourceData::Blocks { bytes, .. } => u64::from(bytes).div_ceil(1 << 20),
            // These are not read from a medium: what bounds an execution's time is the rest.
            SourceData::Memory { .. } | SourceData::Inline { .. } | SourceData::Keys { .. } => 0,
        }
    }

    /// Returns the number of inline bytes of this source; 0 for sources of other kinds.
    pub(super) fn inline_bytes(&self) -> u64 {
        match self.data {
            SourceData::Inline { bytes } => bytes.into(),
            _ => 0,
        }
    }
}

/// Destination of a program's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Dwords 0 and 1 of the completion alone.
    Completion,
    /// Bytes into a memory namespace; more than `bytes` are a failure.
    Memory {
        /// Memory namespace.
        nsid: u32,
        /// First byte.
        start: u64,
        /// Maximum number of bytes.
        bytes: u32,
    },
    /// Bytes as values of `chunk_bytes` each, the last maybe shorter, under `prefix ++ (first + k *
    /// stride as u32 big-endian)`, k from 0 on.
    KvChunks {
        /// kv namespace.
        nsid: u32,
        /// First 12 bytes of every key.
        prefix: [u8; 12],
        /// Number of the first chunk.
        first: u32,
        /// Distance between chunk numbers.
        stride: u32,
        /// Bytes of every value but the last.
        chunk_bytes: u32,
    },
}

impl Output {
    pub(super) fn kind(&self) -> OutputKind {
        match self {
            Self::Completion => OutputKind::COMPLETION,
            Self::Memory { .. } => OutputKind::MEMORY,
            Self::KvChunks { .. } => OutputKind::KV_CHUNKS,
        }
    }

    pub(super) fn record(&self) -> [u8; 32] {
        let mut record = SourceRecord::zeroed();
        match *self {
            Self::Completion => {}
            Self::Memory { nsid, start, bytes } => {
                record.set_kind(SourceKind::MEMORY.0).set_nsid(nsid);
                record.set_locator(&locator(start)).set_count(bytes);
            }
            Self::KvChunks { nsid, prefix, first, stride, chunk_bytes } => {
                record.set_kind(SourceKind::KV_CHUNKS.0).set_nsid(nsid).set_locator(&prefix);
                record.set_first(first).set_count(chunk_bytes).set_stride(stride);
            }
        }
        *record.as_bytes()
    }

    pub(super) fn of(kind: OutputKind, record: &[u8; 32]) -> Result<Self, Malformed> {
        if kind == OutputKind::COMPLETION {
            let nothing = *record == [0; 32];
            let wrong = Malformed("a completion has no output record");
            return nothing.then_some(Self::Completion).ok_or(wrong);
        }
        let record = SourceRecord::from_bytes(*record);
        if record.stream() != 0 || record.reserved() != [0; 2] {
            return Err(Malformed("reserved bytes of the output are not zero"));
        }
        let (nsid, count) = (record.nsid(), record.count());
        match (kind, SourceKind(record.kind())) {
            (OutputKind::MEMORY, SourceKind::MEMORY) => {
                if record.first() != 0 || record.stride() != 0 {
                    return Err(Malformed("reserved bytes of the output are not zero"));
                }
                Ok(Self::Memory { nsid, start: split_locator(record.locator())?, bytes: count })
            }
            (OutputKind::KV_CHUNKS, SourceKind::KV_CHUNKS) => {
                let (first, stride) = (record.first(), record.stride());
                if stride == 0 {
                    return Err(Malformed("the output's stride is 0"));
                }
                if count == 0 {
                    return Err(Malformed("the output's chunks are empty"));
                }
                let prefix = record.locator();
                Ok(Self::KvChunks { nsid, prefix, first, stride, chunk_bytes: count })
            }
            (OutputKind::MEMORY | OutputKind::KV_CHUNKS, _) => {
                Err(Malformed("the output's kind and its record disagree"))
            }
            _ => Err(Malformed("unknown output kind")),
        }
    }
}

fn locator(start: u64) -> [u8; 12] {
    let mut locator = [0; 12];
    locator[..8].copy_from_slice(&start.to_le_bytes());
    locator
}

fn split_locator(locator: [u8; 12]) -> Result<u64, Malformed> {
    let (start, rest) = locator.split_at(8);
    if rest != [0; 4] {
        return Err(Malformed("reserved bytes of a locator are not zero"));
    }
    Ok(u64::from_le_bytes(take(start, 0)))
}

/// Returns the key that a source of keys begins at.
fn first_key(record: &SourceRecord) -> Result<Option<Key>, Malformed> {
    let padded = [&record.locator()[..], &record.first().to_le_bytes()].concat();
    let (key, rest) = padded
        .split_at_checked(record.count() as usize)
        .ok_or(Malformed("a key has more than 16 bytes"))?;
    if record.stride() != 0 || rest.iter().any(|byte| *byte != 0) {
        return Err(Malformed("reserved bytes of a source are not zero"));
    }
    Ok(Key::new(key).ok())
}

fn last_step(count: u32, stride: u32) -> u64 {
    u64::from(count - 1) * u64::from(stride)
}
