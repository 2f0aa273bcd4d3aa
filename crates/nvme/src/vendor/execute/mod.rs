//! Data of Execute Program, version 1: inputs of a program, destination of its result, and its
//! parameters.
//!
//! A 64-byte header, then 32-byte sources, the bytes of inline sources, the digests of the others,
//! and the program's parameters. The layout is our own, not the standard's:
//! `docs/internals/contracts.md` lists it and golden files fix its bytes. This is its only parser.
//! Invariants: at most [`SOURCES_MAX`] sources of at most [`STREAMS_MAX`] streams, numbered from 0
//! without a gap; at most [`SOURCE_BYTES_MAX`] bytes of values named by one execution.

mod digests;
mod source;

use csd_buffer::worked;

use crate::wire::{codes, layout};

pub use digests::{DIGEST_BLOCKS, DIGESTS_MAX, Digests};
pub use source::{Output, Source, SourceData, SourceKind, SourceRecord};

/// First four bytes of the payload: "CSDX".
pub const MAGIC: u32 = u32::from_le_bytes(*b"CSDX");
/// Version of this layout.
pub const VERSION: u16 = 1;
/// Maximum sources in one execution.
pub const SOURCES_MAX: usize = 256;
/// Maximum streams of one execution. A program reads its streams in parallel.
pub const STREAMS_MAX: u8 = 8;
/// Maximum chunks of one execution, in units of 1 MiB: 256 MiB, so that a drive answers long before
/// a Linux host times a command out after 30 s.
pub const CHUNKS_MAX: u32 = 256;
/// Maximum bytes that one execution covers.
pub const SOURCE_BYTES_MAX: u64 = 256 << 20;

/// Flag: all input is read before the program begins, and all output is stored after it has ended,
/// so that each phase can be timed alone.
pub const FLAG_SERIAL: u32 = 1;
/// Flag: [`Digests`] of values and blocks stand between the inline bytes and the parameters.
pub const FLAG_DIGESTS: u32 = 2;

layout! {
    /// Header of the payload.
    pub struct Header[64] {
        /// [`MAGIC`].
        magic / set_magic: u32 @ 0,
        /// [`VERSION`].
        version / set_version: u16 @ 4,
        /// Number of sources.
        sources / set_sources: u16 @ 6,
        /// Identifier of the program (PID), checked in addition to the program index.
        program / set_program: u64 @ 8,
        /// Flags: [`FLAG_SERIAL`], [`FLAG_DIGESTS`].
        flags / set_flags: u32 @ 16,
        /// Destination of the result: [`OutputKind`].
        output / set_output: u8 @ 20,
        /// Reserved, 0.
        padding / set_padding: [3] @ 21,
        /// Length of the parameters in bytes.
        parameters / set_parameters: u32 @ 24,
        /// Maximum cores of the drive that may work on it; 0 is 1.
        cores / set_cores: u16 @ 28,
        /// Reserved, 0.
        reserved / set_reserved: [2] @ 30,
        /// Destination of the result's bytes, in the layout of a source; zeros for a completion.
        record / set_record: [32] @ 32,
    }
}

codes! {
    /// Kind of destination of a program's result.
    pub struct OutputKind: u8 {
        COMPLETION = 0: "dwords 0 and 1 of the completion",
        MEMORY = 1: "a range of a memory namespace",
        KV_CHUNKS = 2: "new kv values whose keys are 12 bytes and a chunk number",
    }
}

/// Error in a payload. The caller is at fault; the words go to the program log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed execution payload: {0}")]
pub struct Malformed(pub &'static str);

/// A parsed payload. The program checks its own parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Program identifier (PID).
    pub program: u64,
    /// Destination of the result.
    pub output: Output,
    /// Inputs of the program, in order.
    pub sources: Vec<Source>,
    /// The bytes of inline sources, one source after the other.
    pub inline: Vec<u8>,
    /// Digests of the bytes that were put there; the execution fails if others are read.
    pub digests: Option<Digests>,
    /// The program's parameters.
    pub parameters: Vec<u8>,
    /// True if reading, computing and storing come one after another ([`FLAG_SERIAL`]).
    pub serial: bool,
    /// Maximum cores of the drive that work on it, each on a part of its sources; 0 is 1. Programs
    /// that cannot be split, and drives with fewer cores, use fewer.
    pub cores: u16,
}

impl Execution {
    /// Returns the number of streams: 1 and the highest that a source belongs to. A stream without
    /// a source is empty.
    pub fn streams(&self) -> usize {
        let highest = self.sources.iter().map(|source| source.stream).max();
        highest.map_or(0, |stream| usize::from(stream) + 1)
    }

    /// Returns the bytes of blocks that a digest of this source covers; `None` if it has none.
    pub fn unit_of(&self, source: &Source) -> Option<u32> {
        let digests = self.digests.as_ref().filter(|digests| digests.cover(source))?;
        Some(digests.unit_bytes)
    }
}

/// Returns the key of chunk `number` under `prefix`.
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
    /// [`Malformed`] with the reason; no bytes cause a panic.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        worked(data.len() as u64);
        let header = Header::parse(data).ok_or(Malformed("shorter than its header"))?;
        if header.magic() != MAGIC {
            return Err(Malformed("wrong magic number"));
        }
        if header.version() != VERSION {
            return Err(Malformed("version is not 1"));
        }
        let flags = header.flags();
        if flags & !(FLAG_SERIAL | FLAG_DIGESTS) != 0
            || header.padding() != [0; 3]
            || header.reserved() != [0; 2]
        {
            return Err(Malformed("flags or reserved bytes are not zero"));
        }
        let output = Output::of(OutputKind(header.output()), &header.record())?;
        let count = usize::from(header.sources());
        if count == 0 || count > SOURCES_MAX {
            return Err(Malformed("number of sources is not 1 to 256"));
        }
        let sources_end = Header::SIZE + count * SourceRecord::SIZE;
        let records =
            data.get(Header::SIZE..sources_end).ok_or(Malformed("shorter than its sources"))?;
        let mut sources = Vec::with_capacity(count);
        let (mut chunks, mut inline) = (0u64, 0u64);
        for record in records.chunks_exact(SourceRecord::SIZE).filter_map(SourceRecord::parse) {
            let source = Source::of(&record)?;
            chunks += source.chunks();
            inline += source.inline_bytes();
            sources.push(source);
        }
        if chunks > u64::from(CHUNKS_MAX) {
            return Err(Malformed("more than 256 chunks or 256 MiB in one execution"));
        }
        let inline = usize::try_from(inline).ok();
        let rest = inline.and_then(|inline| data[sources_end..].split_at_checked(inline));
        let (inline, rest) = rest.ok_or(Malformed("shorter than its inline sources"))?;
        let (digests, parameters) = match flags & FLAG_DIGESTS {
            0 => (None, rest),
            _ => Digests::parse(&sources, rest).map(|(digests, rest)| (Some(digests), rest))?,
        };
        if u64::from(header.parameters()) != parameters.len() as u64 {
            return Err(Malformed("length of the parameters is not what follows"));
        }
        let (inline, parameters) = (inline.to_vec(), parameters.to_vec());
        let (program, cores) = (header.program(), header.cores());
        let serial = flags & FLAG_SERIAL != 0;
        Ok(Self { program, output, sources, inline, digests, parameters, serial, cores })
    }

    /// Returns the payload's bytes.
    ///
    /// # Panics
    /// When there are more than [`SOURCES_MAX`] sources, 4 GiB of parameters, or not the bytes that
    /// inline sources name, or not the digests of the others: the caller's bug.
    pub fn encode(&self) -> Vec<u8> {
        assert!(!self.sources.is_empty() && self.sources.len() <= SOURCES_MAX);
        let inline: u64 = self.sources.iter().map(Source::inline_bytes).sum();
        assert_eq!(inline, self.inline.len() as u64, "the bytes of inline sources");
        let mut header = Header::zeroed();
        header.set_magic(MAGIC).set_version(VERSION).set_program(self.program);
        header.set_sources(u16::try_from(self.sources.len()).expect("at most 256 sources"));
        let serial = if self.serial { FLAG_SERIAL } else { 0 };
        header.set_flags(serial | self.digests.as_ref().map_or(0, |_| FLAG_DIGESTS));
        header.set_output(self.output.kind().0).set_record(&self.output.record());
        header.set_cores(self.cores);
        header.set_parameters(u32::try_from(self.parameters.len()).expect("short parameters"));
        let mut data = header.as_bytes().to_vec();
        for source in &self.sources {
            data.extend_from_slice(source.record().as_bytes());
        }
        data.extend_from_slice(&self.inline);
        if let Some(digests) = &self.digests {
            digests.encode(&self.sources, &mut data);
        }
        data.extend_from_slice(&self.parameters);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Execution {
        Execution {
            program: 1,
            output: Output::Completion,
            sources: vec![
                SourceData::KvChunks { nsid: 3, prefix: [7; 12], first: 1, count: 127, stride: 2 }
                    .into(),
                SourceData::Blocks { nsid: 1, slba: 99, skip: 5, bytes: 1 << 20 }.on(1),
                SourceData::Memory { nsid: 4, start: 1 << 33, bytes: 4096 }.on(2),
            ],
            inline: vec![],
            digests: None,
            parameters: vec![1, 2, 3],
            serial: false,
            cores: 0,
        }
    }

    #[test]
    fn payloads_round_trip() {
        let data = sample().encode();
        assert_eq!(data.len(), 64 + 3 * 32 + 3);
        assert_eq!(Execution::parse(&data), Ok(sample()));
        let many = Execution { cores: 0x0102, ..sample() }.encode();
        assert_eq!(many[28..32], [2, 1, 0, 0]);
        assert_eq!(Execution::parse(&many), Ok(Execution { cores: 0x0102, ..sample() }));
    }

    #[test]
    fn flags_are_known_or_refused() {
        let serial = Execution { serial: true, ..sample() };
        assert_eq!(Execution::parse(&serial.encode()), Ok(serial));
        let mut data = sample().encode();
        for flags in [4, 5, 0x80] {
            data[16] = flags;
            assert!(Execution::parse(&data).is_err(), "{flags:#x}");
        }
    }

    #[test]
    fn every_prefix_and_every_changed_byte_is_refused_or_another_payload() {
        let data = sample().encode();
        for length in 0..data.len() {
            assert!(Execution::parse(&data[..length]).is_err(), "cut to {length}");
        }
        for index in 0..64 + 96 {
            let mut changed = data.clone();
            changed[index] ^= 0x80;
            assert_ne!(Execution::parse(&changed), Ok(sample()), "byte {index}");
        }
    }

    #[test]
    fn an_execution_covers_at_most_256_mib() {
        let mut big = sample();
        big.sources = vec![
            SourceData::KvChunks { nsid: 3, prefix: [0; 12], first: 0, count: 256, stride: 1 }
                .into(),
            SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 }.into(),
        ];
        assert!(Execution::parse(&big.encode()).is_err());
        big.sources.pop();
        assert!(Execution::parse(&big.encode()).is_ok());
    }

    #[test]
    fn inline_bytes_stand_between_sources_and_parameters_and_are_all_there() {
        let mut handed = sample();
        let tail = SourceData::KvTail { nsid: 3, prefix: [7; 12], number: 9, skip: 77 };
        handed.sources = vec![
            tail.into(),
            SourceData::Inline { bytes: 2 }.into(),
            SourceData::Inline { bytes: 1 }.on(1),
        ];
        handed.inline = b"abc".to_vec();
        let data = handed.encode();
        assert_eq!(&data[64 + 96..], [b'a', b'b', b'c', 1, 2, 3]);
        assert_eq!(Execution::parse(&data), Ok(handed));
        for (at, wrong) in [(64 + 28, 1), (64 + 32 + 4, 1), (64 + 32 + 8, 1), (64 + 32 + 20, 1)] {
            let mut changed = data.clone();
            changed[at] = wrong;
            let refused = Err(Malformed("reserved bytes of a source are not zero"));
            assert_eq!(Execution::parse(&changed), refused, "byte {at}");
        }
        let mut long = data.clone();
        long[64 + 32 + 27] = 0xFF;
        let refused = Err(Malformed("shorter than its inline sources"));
        assert_eq!(Execution::parse(&long), refused);
        let mut shifted = data;
        shifted[64 + 32 + 24] = 3;
        let refused = Err(Malformed("length of the parameters is not what follows"));
        assert_eq!(Execution::parse(&shifted), refused);
    }

    #[test]
    fn keys_begin_at_any_key_or_at_the_first_one() {
        let with = |from: Option<&[u8]>| {
            let from = from.map(|key| crate::kv::Key::new(key).unwrap());
            let sources = vec![SourceData::Keys { nsid: 2, from }.on(1)];
            Execution { sources, ..sample() }
        };
        for from in [None, Some(&b"k"[..]), Some(b"thirteen byte"), Some(&[0xFF; 16]), Some(&[0])] {
            assert_eq!(Execution::parse(&with(from).encode()), Ok(with(from)), "{from:?}");
        }
        let wrong = |at: usize, byte: u8| {
            let mut data = with(Some(b"k")).encode();
            data[64 + at] = byte;
            Execution::parse(&data).unwrap_err().0
        };
        assert_eq!(wrong(24, 17), "a key has more than 16 bytes");
        for reserved in [9, 19, 20, 23, 28] {
            assert_eq!(wrong(reserved, 1), "reserved bytes of a source are not zero", "{reserved}");
        }
    }

    #[test]
    fn streams_are_counted_and_none_is_above_seven() {
        let block = SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 };
        let with = |streams: &[u8]| {
            let sources = streams.iter().map(|&stream| block.on(stream)).collect();
            Execution::parse(&Execution { sources, ..sample() }.encode()).map(|e| e.streams())
        };
        assert_eq!((with(&[0, 0]), with(&[1, 0]), with(&[2, 1, 0, 1])), (Ok(1), Ok(2), Ok(3)));
        assert_eq!(with(&[1]), Ok(2), "an empty stream below another");
        assert_eq!(with(&[0, 8]), Err(Malformed("a source's stream is above 7")));
    }

    #[test]
    fn outputs_round_trip_and_a_completion_has_no_record() {
        let memory = Output::Memory { nsid: 4, start: 1 << 40, bytes: 64 };
        let values =
            Output::KvChunks { nsid: 3, prefix: [9; 12], first: 7, stride: 2, chunk_bytes: 4096 };
        for output in [memory, values] {
            let execution = Execution { output, ..sample() };
            assert_eq!(Execution::parse(&execution.encode()), Ok(execution));
        }
        let with = |kind: u8, at: usize, byte: u8| {
            let mut data = Execution { output: values, ..sample() }.encode();
            data[20] = kind;
            data[at] = byte;
            Execution::parse(&data).unwrap_err().0
        };
        assert_eq!(with(0, 32, 0), "a completion has no output record");
        assert_eq!(with(1, 32, 1), "the output's kind and its record disagree");
        assert_eq!(with(3, 32, 1), "unknown output kind");
        assert_eq!(with(2, 33, 1), "reserved bytes of the output are not zero");
        assert_eq!(with(2, 60, 0), "the output's stride is 0");
    }
}
