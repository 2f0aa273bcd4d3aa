//! The data of Execute Program, version 1: which sources a program reads, and its parameters.
//!
//! A 64-byte header, then 32-byte sources, then the program's parameters. It is ours, not the
//! standard's: `docs/internals/contracts.md` lists it and golden files fix its bytes. This is the
//! only parser of it. Invariant: at most [`SOURCES_MAX`] sources, at most
//! [`SOURCE_BYTES_MAX`] bytes of values named by one execution.

use crate::wire::{codes, layout};

/// First four bytes of the payload: "CSDX".
pub const MAGIC: u32 = u32::from_le_bytes(*b"CSDX");
/// Version of this layout.
pub const VERSION: u16 = 1;
/// Most sources in one execution.
pub const SOURCES_MAX: usize = 256;
/// Most chunks or bytes, in units of 1 MiB chunks, that one execution covers: 256 MiB, so that a
/// drive answers long before a Linux host gives a command up after 30 s.
pub const CHUNKS_MAX: u32 = 256;
/// Most bytes that one execution covers.
pub const SOURCE_BYTES_MAX: u64 = 256 << 20;

layout! {
    /// Header of the payload.
    pub struct Header[64] {
        /// [`MAGIC`].
        magic / set_magic: u32 @ 0,
        /// [`VERSION`].
        version / set_version: u16 @ 4,
        /// Number of sources.
        sources / set_sources: u16 @ 6,
        /// Identifier of the program (PID), a second lock on the program index.
        program / set_program: u64 @ 8,
        /// Flags, none defined: 0.
        flags / set_flags: u32 @ 16,
        /// Where the result goes: [`Output`].
        output / set_output: u8 @ 20,
        /// Reserved, 0.
        padding / set_padding: [3] @ 21,
        /// Length of the parameters in bytes.
        parameters / set_parameters: u32 @ 24,
        /// Reserved, 0.
        reserved / set_reserved: [36] @ 28,
    }
}

codes! {
    /// Where a program's result goes.
    pub struct Output: u8 {
        COMPLETION = 0: "dwords 0 and 1 of the completion",
    }
}

codes! {
    /// Kind of a source.
    pub struct SourceKind: u8 {
        KV_CHUNKS = 1: "kv values whose keys are 12 bytes and a chunk number",
        BLOCKS = 2: "bytes of a run of logical blocks",
    }
}

layout! {
    /// One source of 32 bytes.
    pub struct SourceRecord[32] {
        /// [`SourceKind`].
        kind / set_kind: u8 @ 0,
        /// Reserved, 0.
        reserved / set_reserved: [3] @ 1,
        /// Namespace of the source.
        nsid / set_nsid: u32 @ 4,
        /// kv: first 12 bytes of every key. Blocks: starting LBA (8 bytes), then 4 zero bytes.
        locator / set_locator: [12] @ 8,
        /// kv: number of the first chunk. Blocks: bytes to skip in the first block.
        first / set_first: u32 @ 20,
        /// kv: number of chunks. Blocks: number of bytes.
        count / set_count: u32 @ 24,
        /// kv: distance between chunk numbers, at least 1. Blocks: 0.
        stride / set_stride: u32 @ 28,
    }
}

/// A checked source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
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
}

/// Why a payload was refused: the caller's fault, worded for the program log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "malformed execution payload: {}", self.0)
    }
}

impl core::error::Error for Malformed {}

/// A parsed payload; the parameters are the program's to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Program identifier (PID).
    pub program: u64,
    /// Where the result goes.
    pub output: Output,
    /// What the program reads, in order.
    pub sources: Vec<Source>,
    /// The program's parameters.
    pub parameters: Vec<u8>,
}

/// The key of chunk `number` under `prefix`.
pub fn chunk_key(prefix: &[u8; 12], number: u32) -> crate::kv::Key {
    let mut key = [0; 16];
    key[..12].copy_from_slice(prefix);
    key[12..].copy_from_slice(&number.to_be_bytes());
    crate::kv::Key::new(&key).expect("sixteen bytes are a key")
}

impl Execution {
    /// Parses a payload of Execute Program.
    ///
    /// # Errors
    /// [`Malformed`] with the reason; never panics on any bytes.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let header = Header::parse(data).ok_or(Malformed("shorter than its header"))?;
        if header.magic() != MAGIC {
            return Err(Malformed("wrong magic number"));
        }
        if header.version() != VERSION {
            return Err(Malformed("version is not 1"));
        }
        if header.flags() != 0 || header.padding() != [0; 3] || header.reserved() != [0; 36] {
            return Err(Malformed("flags or reserved bytes are not zero"));
        }
        if Output(header.output()) != Output::COMPLETION {
            return Err(Malformed("unknown output kind"));
        }
        let count = usize::from(header.sources());
        if count == 0 || count > SOURCES_MAX {
            return Err(Malformed("number of sources is not 1 to 256"));
        }
        let sources_end = Header::SIZE + count * SourceRecord::SIZE;
        let records =
            data.get(Header::SIZE..sources_end).ok_or(Malformed("shorter than its sources"))?;
        let parameters = &data[sources_end..];
        if u64::from(header.parameters()) != parameters.len() as u64 {
            return Err(Malformed("length of the parameters is not what follows"));
        }
        let mut sources = Vec::with_capacity(count);
        let mut chunks = 0u64;
        for record in records.chunks_exact(SourceRecord::SIZE).filter_map(SourceRecord::parse) {
            let source = Source::of(&record)?;
            chunks += source.chunks();
            sources.push(source);
        }
        if chunks > u64::from(CHUNKS_MAX) {
            return Err(Malformed("more than 256 chunks or 256 MiB in one execution"));
        }
        let parameters = parameters.to_vec();
        Ok(Self { program: header.program(), output: Output::COMPLETION, sources, parameters })
    }

    /// The payload's bytes.
    ///
    /// # Panics
    /// When there are more than [`SOURCES_MAX`] sources or 4 GiB of parameters: the caller's bug.
    pub fn encode(&self) -> Vec<u8> {
        assert!(!self.sources.is_empty() && self.sources.len() <= SOURCES_MAX);
        let mut header = Header::zeroed();
        header.set_magic(MAGIC).set_version(VERSION).set_program(self.program);
        header.set_sources(u16::try_from(self.sources.len()).expect("at most 256 sources"));
        header.set_output(self.output.0);
        header.set_parameters(u32::try_from(self.parameters.len()).expect("short parameters"));
        let mut data = header.as_bytes().to_vec();
        for source in &self.sources {
            data.extend_from_slice(source.record().as_bytes());
        }
        data.extend_from_slice(&self.parameters);
        data
    }
}

impl Source {
    fn of(record: &SourceRecord) -> Result<Self, Malformed> {
        if record.reserved() != [0; 3] {
            return Err(Malformed("reserved bytes of a source are not zero"));
        }
        let (nsid, locator) = (record.nsid(), record.locator());
        let (first, count, stride) = (record.first(), record.count(), record.stride());
        if count == 0 {
            return Err(Malformed("a source is empty"));
        }
        match SourceKind(record.kind()) {
            SourceKind::KV_CHUNKS => {
                if count > CHUNKS_MAX {
                    return Err(Malformed("a source has more than 256 chunks"));
                }
                if stride == 0 || u64::from(first) + last_step(count, stride) > u32::MAX.into() {
                    return Err(Malformed("chunk numbers leave 32 bits or the stride is 0"));
                }
                Ok(Self::KvChunks { nsid, prefix: locator, first, count, stride })
            }
            SourceKind::BLOCKS => {
                let (slba, rest) = locator.split_at(8);
                if rest != [0; 4] || stride != 0 {
                    return Err(Malformed("reserved bytes of a block source are not zero"));
                }
                if u64::from(count) > SOURCE_BYTES_MAX {
                    return Err(Malformed("a source has more than 256 MiB"));
                }
                let slba = u64::from_le_bytes(crate::wire::take(slba, 0));
                Ok(Self::Blocks { nsid, slba, skip: first, bytes: count })
            }
            _ => Err(Malformed("unknown kind of source")),
        }
    }

    fn record(&self) -> SourceRecord {
        let mut record = SourceRecord::zeroed();
        match *self {
            Self::KvChunks { nsid, prefix, first, count, stride } => {
                record.set_kind(SourceKind::KV_CHUNKS.0).set_nsid(nsid).set_locator(&prefix);
                record.set_first(first).set_count(count).set_stride(stride);
            }
            Self::Blocks { nsid, slba, skip, bytes } => {
                let mut locator = [0; 12];
                locator[..8].copy_from_slice(&slba.to_le_bytes());
                record.set_kind(SourceKind::BLOCKS.0).set_nsid(nsid).set_locator(&locator);
                record.set_first(skip).set_count(bytes);
            }
        }
        record
    }

    /// Chunks of 1 MiB, begun ones counted, that this source covers.
    fn chunks(&self) -> u64 {
        match self {
            Self::KvChunks { count, .. } => u64::from(*count),
            Self::Blocks { bytes, .. } => u64::from(*bytes).div_ceil(1 << 20),
        }
    }
}

fn last_step(count: u32, stride: u32) -> u64 {
    u64::from(count - 1) * u64::from(stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Execution {
        Execution {
            program: 1,
            output: Output::COMPLETION,
            sources: vec![
                Source::KvChunks { nsid: 3, prefix: [7; 12], first: 1, count: 128, stride: 2 },
                Source::Blocks { nsid: 1, slba: 99, skip: 5, bytes: 1 << 20 },
            ],
            parameters: vec![1, 2, 3],
        }
    }

    #[test]
    fn payloads_round_trip() {
        let data = sample().encode();
        assert_eq!(data.len(), 64 + 2 * 32 + 3);
        assert_eq!(Execution::parse(&data), Ok(sample()));
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_refused_or_another_payload() {
        let data = sample().encode();
        for length in 0..data.len() {
            assert!(Execution::parse(&data[..length]).is_err(), "cut to {length}");
        }
        for index in 0..64 + 64 {
            let mut changed = data.clone();
            changed[index] ^= 0x80;
            assert_ne!(Execution::parse(&changed), Ok(sample()), "byte {index}");
        }
    }

    #[test]
    fn an_execution_covers_at_most_256_mib() {
        let mut big = sample();
        big.sources = vec![
            Source::KvChunks { nsid: 3, prefix: [0; 12], first: 0, count: 256, stride: 1 },
            Source::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 },
        ];
        assert!(Execution::parse(&big.encode()).is_err());
        big.sources.pop();
        assert!(Execution::parse(&big.encode()).is_ok());
    }
}
