//! [`Parts`]: the list of a value's parts, which an indirect record has in place of the value.
//!
//! A part is behind the list, or it is a shared chunk: a value of the namespace's pool, under a key
//! made from its bytes ([`pool_of`]). `docs/internals/format.md` draws the list. Performs no I/O.
//! Invariant: a list that was parsed has parts that fill the value, one behind the other.

use std::ops::Range;

use csd_nvme::kv::Key;
use csd_nvme::layout;

/// Bit of a namespace id that is set for the pool of shared chunks of the namespace. No host's
/// command has it.
pub const POOL: u16 = 1 << 15;
/// Length of the key of a shared chunk in bytes.
pub const CHUNK_KEY_BYTES: usize = 16;

/// Returns the namespace of the shared chunks of values in this namespace.
pub const fn pool_of(nsid: u16) -> u16 {
    nsid | POOL
}

layout! {
    /// Head of a list.
    struct Head[16] {
        /// Length of the value in bytes.
        value_bytes / set_value_bytes: u32 @ 0,
        /// CRC-32C of the value.
        value_checksum / set_value_checksum: u32 @ 4,
        /// Number of parts.
        count / set_count: u32 @ 8,
    }
}

layout! {
    /// A part. The list has these behind its head, and behind them the bytes of the parts that are
    /// not shared.
    struct Entry[20] {
        /// Length in bytes.
        bytes / set_bytes: u32 @ 0,
        /// Key of the shared chunk; zeros if the part is behind the list.
        key / set_key: [16] @ 4,
    }
}

/// Place of a part's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the list: the range in the bytes of the record's list.
    Here(Range<usize>),
    /// The shared chunk of this key, which is as long.
    Chunk(Key),
}

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its range in the value.
    pub range: Range<u32>,
    /// Place of its bytes.
    pub place: Place,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Length of the value in bytes.
    pub value_bytes: u32,
    /// CRC-32C of the value.
    pub value_checksum: u32,
    /// Parts, in order.
    pub parts: Vec<Part>,
}

/// Returns the length of a list in bytes, with the bytes of the parts that are not shared.
pub fn list_bytes(parts: usize, here_bytes: usize) -> usize {
    Head::SIZE + parts * Entry::SIZE + here_bytes
}

/// Encodes a list without the bytes of the parts that are not shared: the key of each part's chunk,
/// if it is shared, and its length.
pub fn encode(value_bytes: u32, value_checksum: u32, parts: &[(Option<Key>, u32)]) -> Vec<u8> {
    let mut head = Head::zeroed();
    head.set_value_bytes(value_bytes).set_value_checksum(value_checksum);
    head.set_count(u32::try_from(parts.len()).expect("a value has fewer bytes"));
    let mut list = head.as_bytes().to_vec();
    for (key, bytes) in parts {
        let mut entry = Entry::zeroed();
        entry.set_bytes(*bytes);
        if let Some(key) = key {
            entry.set_key(key.padded());
        }
        list.extend_from_slice(entry.as_bytes());
    }
    list
}

impl Parts {
    /// Parses what is behind the header of an indirect record; `None` if it is no list.
    pub fn parse(list: &[u8]) -> Option<Self> {
        let head = Head::parse(list)?;
        let count = usize::try_from(head.count()).ok()?;
        let behind = Head::SIZE.checked_add(count.checked_mul(Entry::SIZE)?)?;
        let entries = list.get(Head::SIZE..behind)?.chunks_exact(Entry::SIZE);
        let (mut at, mut here, mut parts) = (0u32, behind, Vec::with_capacity(count));
        for entry in entries {
            let entry = Entry::parse(entry)?;
            let end = at.checked_add(entry.bytes()).filter(|_| entry.bytes() > 0)?;
            let place = match entry.key().iter().all(|byte| *byte == 0) {
                true => {
                    let start = here;
                    here = here.checked_add(entry.bytes() as usize)?;
                    Place::Here(start..here)
                }
                false => Place::Chunk(Key::new(&entry.key()[..]).ok()?),
            };
            parts.push(Part { range: at..end, place });
            at = end;
        }
        let (value_bytes, value_checksum) = (head.value_bytes(), head.value_checksum());
        let is_whole = at == value_bytes && here == list.len();
        is_whole.then_some(Self { value_bytes, value_checksum, parts })
    }

    /// Returns the keys of the shared chunks, each as often as the value has it.
    pub fn chunks(&self) -> impl Iterator<Item = &Key> {
        self.parts.iter().filter_map(|part| match &part.place {
            Place::Chunk(key) => Some(key),
            Place::Here(_) => None,
        })
    }

    /// Returns the parts that have bytes of this range of the value.
    pub fn within(&self, range: &Range<u32>) -> &[Part] {
        let first = self.parts.partition_point(|part| part.range.end <= range.start);
        let end = self.parts.partition_point(|part| part.range.start < range.end);
        &self.parts[first..end.max(first)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; CHUNK_KEY_BYTES]).unwrap()
    }

    fn list() -> Vec<u8> {
        let parts = [(None, 3), (Some(key(7)), 4096), (None, 2), (Some(key(7)), 4096)];
        let mut list = encode(8197, 0xAB, &parts);
        list.extend_from_slice(b"abcde");
        list
    }

    #[test]
    fn a_list_has_the_parts_of_a_value_in_order() {
        let list = list();
        assert_eq!(list.len(), list_bytes(4, 5));
        let parts = Parts::parse(&list).unwrap();
        assert_eq!((parts.value_bytes, parts.value_checksum), (8197, 0xAB));
        let behind = list_bytes(4, 0);
        let places: Vec<Place> = parts.parts.iter().map(|part| part.place.clone()).collect();
        let here = |range: Range<usize>| Place::Here(range.start + behind..range.end + behind);
        let expected = [here(0..3), Place::Chunk(key(7)), here(3..5), Place::Chunk(key(7))];
        assert_eq!(places, expected);
        assert_eq!(parts.chunks().count(), 2);
        let ranges =
            |range| parts.within(&range).iter().map(|part| part.range.clone()).collect::<Vec<_>>();
        assert_eq!(ranges(0..8197).len(), 4);
        assert_eq!(ranges(2..3), vec![0..3; 1]);
        assert_eq!(ranges(3..4099), vec![3..4099; 1]);
        assert_eq!(ranges(4098..4100), [3..4099, 4099..4101]);
        assert!(ranges(8197..9000).is_empty() && ranges(5..5).len() <= 1);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let list = list();
        for length in 0..list.len() {
            assert_eq!(Parts::parse(&list[..length]), None, "{length}");
        }
        assert_eq!(Parts::parse(&[&list[..], b"f"].concat()), None, "bytes of no part");
        let with = |at: usize, byte: u8| {
            let mut list = list.clone();
            list[at] = byte;
            Parts::parse(&list)
        };
        assert_eq!(with(0, 6), None, "another length");
        assert_eq!(with(11, 0xFF), None, "a number of parts that no memory has");
        assert_eq!(with(Head::SIZE, 0), None, "a part without bytes");
        assert_eq!(Parts::parse(&encode(0, 0, &[])).unwrap().parts, []);
    }
}
