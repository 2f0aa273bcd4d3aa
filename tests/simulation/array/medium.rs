//! A drive's medium, read by its documented format (`docs/internals/format.md`) and not by the
//! drive's code: what is durable at this moment, whatever the drive and the disk have in memory.
//!
//! A drive that answers from memory, and has not stored what it answers, is seen here. Only media
//! of version 2 without a mark are read. Invariant: a value whose checksum does not hold is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use csd_kvlog::media::{Memory, Volatile};
use csd_nvme::kv::Key;
use csd_store::array::OBJECTS_NSID;

/// Offsets of both copies of the superblock, and their length.
const SUPERBLOCKS: [u64; 2] = [0, 512 << 10];
const SUPERBLOCK_BYTES: usize = 4096;
/// Offsets in a segment.
const SEAL_AT: u64 = 4096;
const HINT_AT: u64 = 4608;
const RECORDS_AT: u64 = 8192;
/// Length of every other structure.
const STRUCTURE_BYTES: usize = 64;
/// Records start at multiples of this, and groups of them at sectors. A record's value follows its
/// header of this length.
const RECORD_BYTES: u64 = 64;
const SECTOR_BYTES: u64 = 512;
/// Kinds of records.
const VALUE: u8 = 1;
const TOMBSTONE: u8 = 2;

type Structure = [u8; STRUCTURE_BYTES];

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("within the structure"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the structure"))
}

/// Returns bytes of a medium.
fn read(memory: &Memory, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    memory.read(at, &mut bytes);
    bytes
}

/// Returns true if bytes begin with a magic, and the checksum at this offset holds.
fn is_whole(bytes: &[u8], magic: &[u8], checksum_at: usize) -> bool {
    let mut unsigned = bytes.to_vec();
    unsigned[checksum_at..][..4].fill(0);
    bytes.starts_with(magic) && crc32c::crc32c(&unsigned) == word(bytes, checksum_at)
}

/// Returns the structure of 64 bytes at an offset of the medium, if it is whole.
fn structure(memory: &Memory, at: u64, magic: [u8; 4]) -> Option<Structure> {
    let mut bytes = [0; STRUCTURE_BYTES];
    memory.read(at, &mut bytes);
    is_whole(&bytes, &magic, 4).then_some(bytes)
}

/// Place and checksum of a value.
#[derive(Clone, Copy)]
struct Value {
    at: u64,
    bytes: usize,
    sum: u32,
    /// True if the medium says that it was durable: a start that finds it damaged goes on.
    is_settled: bool,
}

impl Value {
    /// Returns the bytes if they have the checksum.
    fn read(self, memory: &Memory) -> Option<Vec<u8>> {
        let bytes = read(memory, self.at, self.bytes);
        (crc32c::crc32c(&bytes) == self.sum).then_some(bytes)
    }
}

struct Record {
    kind: u8,
    nsid: u32,
    key: Vec<u8>,
    value: Value,
    /// True if it is the first one of its group.
    begins_group: bool,
}

/// Returns the record at an offset in the segment that starts there on the medium.
fn record(memory: &Memory, (sequence, start): (u64, u64), offset: u64) -> Option<Record> {
    let header = structure(memory, start + offset, *b"CREC")?;
    let value = Value {
        at: start + offset + RECORD_BYTES,
        bytes: usize::try_from(word(&header, 28)).expect("a length"),
        sum: word(&header, 48),
        is_settled: false,
    };
    let record = Record {
        kind: header[24],
        nsid: word(&header, 24) >> 16,
        key: header[32..][..usize::from(header[25])].to_vec(),
        value,
        begins_group: u64::from(word(&header, 52)) * SECTOR_BYTES == offset,
    };
    (long(&header, 8) == sequence).then_some(record)
}

/// Returns the records of a segment in order, checkpoints included.
fn records(memory: &Memory, (sequence, start): (u64, u64), segment_bytes: u64) -> Vec<Record> {
    // Both have the sequence of the segment, and then a length.
    let length = |at, magic| {
        let found = structure(memory, start + at, magic)?;
        (long(&found, 8) == sequence).then(|| long(&found, 16))
    };
    let sealed = length(SEAL_AT, *b"CSEA");
    let end = sealed.unwrap_or(segment_bytes);
    let durable = sealed.or_else(|| length(HINT_AT, *b"CHNT")).unwrap_or(0);
    let (mut records, mut at) = (Vec::new(), RECORDS_AT);
    loop {
        // A group begins at a sector of its own.
        let places = [at, at.next_multiple_of(SECTOR_BYTES)].into_iter();
        let mut inside = places.filter(|at| at + RECORD_BYTES <= end);
        let next = |at| Some((at, record(memory, (sequence, start), at)?));
        let Some((found_at, mut found)) = inside.find_map(next) else { break };
        let bytes = RECORD_BYTES + found.value.bytes as u64;
        at = found_at + bytes.next_multiple_of(RECORD_BYTES);
        found.value.is_settled = at <= durable;
        records.push(found);
    }
    if sealed.is_none() {
        // A power cut may have torn the last group. Those before it were durable when it began.
        let last = records.iter().rposition(|record| record.begins_group).unwrap_or(0);
        let whole = |it: &&Record| it.value.is_settled || it.value.read(memory).is_some();
        let count = records[last..].iter().take_while(whole).count();
        records.truncate(last + count);
    }
    records
}

/// The values of objects, and the blocks, of a medium.
pub struct AtRest {
    disk: Arc<Volatile>,
    values: BTreeMap<Key, Value>,
    /// Start of the block namespace; none of a medium that no drive has formatted.
    blocks_at: Option<u64>,
}

impl AtRest {
    /// Finds the newest value of every key. The medium must not change as long as it is read.
    pub fn of(disk: &Arc<Volatile>) -> Self {
        let mut found = Self { disk: Arc::clone(disk), values: BTreeMap::new(), blocks_at: None };
        disk.at_rest(|memory| found.look(memory));
        found
    }

    fn look(&mut self, memory: &Memory) {
        let copies = SUPERBLOCKS.map(|at| read(memory, at, SUPERBLOCK_BYTES));
        let whole = copies.iter().find(|copy| is_whole(copy, b"CSDSTORE", 12));
        let Some(head) = whole else { return };
        assert_eq!((word(head, 8), long(head, 96) & 1), (2, 0), "another format, or a mark");
        self.blocks_at = Some(long(head, 40));
        let (log_at, log_bytes, segment_bytes) = (long(head, 64), long(head, 72), long(head, 80));
        let starts = (0..log_bytes / segment_bytes).map(|number| log_at + number * segment_bytes);
        let in_use = |start| {
            let header = structure(memory, start, *b"CSEG")?;
            // The shard of a segment that was freed.
            let is_free = word(&header, 32) == u32::MAX;
            (header[8..24] == head[16..32] && !is_free).then(|| (long(&header, 24), start))
        };
        let mut segments: Vec<(u64, u64)> = starts.filter_map(in_use).collect();
        segments.sort_unstable();
        // Of two records of a key the later one counts.
        for record in segments.into_iter().flat_map(|it| records(memory, it, segment_bytes)) {
            if record.nsid != OBJECTS_NSID || ![VALUE, TOMBSTONE].contains(&record.kind) {
                continue;
            }
            let key = Key::new(&record.key).expect("a key");
            match record.kind {
                VALUE => drop(self.values.insert(key, record.value)),
                _ => drop(self.values.remove(&key)),
            }
        }
    }

    /// Returns a value of the objects' namespace; `None` if it is missing or damaged.
    pub fn value(&self, key: &Key) -> Option<Vec<u8>> {
        let value = self.values.get(key)?;
        self.disk.at_rest(|memory| value.read(memory))
    }

    /// Returns the place of a value on the medium, if it was durable there as the medium says.
    pub fn settled(&self, key: &Key) -> Option<u64> {
        self.values.get(key).filter(|value| value.is_settled).map(|value| value.at)
    }

    /// Returns the place of a byte of the block namespace on the medium.
    pub fn block(&self, offset: u64) -> Option<u64> {
        self.blocks_at.map(|blocks_at| blocks_at + offset)
    }

    /// Returns the keys of that namespace that begin with these bytes.
    pub fn keys<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = &'a Key> {
        self.values.keys().filter(move |key| key.as_bytes().starts_with(prefix))
    }

    /// Returns bytes of the block namespace.
    pub fn blocks(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        let at = self.block(offset)?;
        Some(self.disk.at_rest(|memory| read(memory, at, bytes)))
    }
}
