//! Key Value command set: Store, Retrieve, List, Delete, Exist.
//!
//! Source: NVM Express Key Value Command Set Specification 1.3, "Key Value Commands". Values are
//! data, and elsewhere. Invariant: a [`Key`] has 1 to 16 bytes and its unused bytes are zero.

use crate::capsule::{FLAGS_FUSED, Sqe};
use crate::opcode::Kv;
use crate::status::Status;
use crate::wire::layout;

/// Maximum key length in bytes.
pub const KEY_BYTES_MAX: u8 = 16;

layout! {
    /// Any Key Value command.
    pub struct KvCommand[64] {
        /// Key bytes 0 to 7.
        key_low / set_key_low: [8] @ 8,
        /// Value size (Store) or host buffer size (Retrieve, List) in bytes.
        size / set_size: u32 @ 40,
        /// Key length in bytes; 0 in List starts from the beginning.
        key_length / set_key_length: u8 @ 44,
        /// Options of Store and Retrieve; zero in others.
        options / set_options: u8 @ 45,
        /// Key bytes 8 to 15.
        key_high / set_key_high: [8] @ 56,
    }
}

/// Store option: only if the key already exists.
pub const STORE_IF_EXISTS: u8 = 1 << 0;
/// Store option: only if the key does not exist.
pub const STORE_IF_ABSENT: u8 = 1 << 1;
/// Store option: the controller shall not compress.
pub const STORE_NO_COMPRESSION: u8 = 1 << 2;
/// Retrieve option: the value as it is stored, not decompressed.
pub const RETRIEVE_RAW: u8 = 1 << 0;
/// Store option that makes the command Store Newer, of this vendor: only if the value's version is
/// higher than that of the value that the key has. A value with this version, byte for byte the
/// same, counts as stored. On the wire it is the opcode, not an option.
pub const STORE_IF_NEWER: u8 = 1 << 7;
/// Option of Store Newer: a value that cannot be read is replaced. Without it, it is refused,
/// because its version is unknown.
pub const STORE_MENDS: u8 = 1 << 6;
/// Offset of a value's version (u64) for Store Newer, bytes.
pub const VERSION_OFFSET: usize = 8;

/// A key of 1 to 16 bytes; orders by length, then by bytes, as List does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    // Length first: the derived order is List's order.
    length: u8,
    bytes: [u8; 16],
}

impl Key {
    /// Returns a key from 1 to 16 bytes.
    ///
    /// # Errors
    /// [`Status::INVALID_KEY_SIZE`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, Status> {
        if key.is_empty() || key.len() > usize::from(KEY_BYTES_MAX) {
            return Err(Status::INVALID_KEY_SIZE);
        }
        let mut bytes = [0; 16];
        bytes[..key.len()].copy_from_slice(key);
        #[allow(clippy::cast_possible_truncation)] // at most 16
        Ok(Self { length: key.len() as u8, bytes })
    }

    /// Returns the key's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns all sixteen bytes, zero-padded.
    pub fn padded(&self) -> &[u8; 16] {
        &self.bytes
    }

    fn of(view: &KvCommand) -> Result<Self, Status> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&view.key_low());
        bytes[8..].copy_from_slice(&view.key_high());
        let length = usize::from(view.key_length());
        if length > usize::from(KEY_BYTES_MAX) {
            // The specification can be read as Invalid Key Size as well.
            return Err(Status::INVALID_FIELD);
        }
        Self::new(&bytes[..length])
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Key({})", self.as_bytes().escape_ascii())
    }
}

/// A parsed command of a kv namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make completed stores durable (they are, unless the drive has a volatile cache).
    Flush,
    /// Store a value: Store, or Store Newer.
    Store {
        /// Under this key.
        key: Key,
        /// Value size in bytes.
        size: u32,
        /// `STORE_*` options.
        options: u8,
    },
    /// Retrieve a value.
    Retrieve {
        /// Of this key.
        key: Key,
        /// Host buffer size in bytes.
        size: u32,
    },
    /// List keys.
    List {
        /// First key to list if present; `None` starts from the beginning.
        from: Option<Key>,
        /// Host buffer size in bytes.
        size: u32,
    },
    /// Delete a key.
    Delete(Key),
    /// Ask whether a key exists.
    Exist(Key),
    /// List what lies in the folder of names of this key, of this vendor
    /// ([`Request`](crate::vendor::folders::Request)).
    ListFolder(Key),
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`], [`Status::INVALID_KEY_SIZE`], or [`Status::INVALID_FIELD`] for
    /// fused commands, contradicting or unknown options.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        if sqe.flags() & FLAGS_FUSED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let view = KvCommand::from_bytes(*sqe.as_bytes());
        let (size, options) = (view.size(), view.options());
        check_options(Kv(sqe.opcode()), options)?;
        match Kv(sqe.opcode()) {
            Kv::FLUSH => Ok(Self::Flush),
            Kv::STORE => Ok(Self::Store { key: Key::of(&view)?, size, options }),
            Kv::STORE_NEWER => {
                Ok(Self::Store { key: Key::of(&view)?, size, options: options | STORE_IF_NEWER })
            }
            Kv::RETRIEVE => Ok(Self::Retrieve { key: Key::of(&view)?, size }),
            Kv::LIST if view.key_length() == 0 => Ok(Self::List { from: None, size }),
            Kv::LIST => Ok(Self::List { from: Some(Key::of(&view)?), size }),
            Kv::DELETE => Ok(Self::Delete(Key::of(&view)?)),
            Kv::EXIST => Ok(Self::Exist(Key::of(&view)?)),
            Kv::LIST_FOLDER => Ok(Self::ListFolder(Key::of(&view)?)),
            _ => Err(Status::INVALID_OPCODE),
        }
    }
}

/// Refuses options that a command does not have, and those that contradict each other.
fn check_options(opcode: Kv, options: u8) -> Result<(), Status> {
    let both = STORE_IF_EXISTS | STORE_IF_ABSENT;
    let known = match opcode {
        Kv::STORE if options & both == both => return Err(Status::INVALID_FIELD),
        Kv::STORE => both | STORE_NO_COMPRESSION,
        Kv::STORE_NEWER => STORE_MENDS | STORE_NO_COMPRESSION,
        Kv::RETRIEVE => RETRIEVE_RAW,
        Kv::LIST | Kv::DELETE | Kv::EXIST => 0,
        // It has no options, or is no command at all.
        _ => u8::MAX,
    };
    if options & !known == 0 { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

pub(crate) fn command(opcode: Kv, nsid: u32, key: Option<&Key>, size: u32, options: u8) -> Sqe {
    let mut view = KvCommand::from_bytes(*Sqe::new(opcode.0, nsid).as_bytes());
    view.set_size(size).set_options(options);
    if let Some(key) = key {
        view.set_key_low(&crate::wire::take(&key.bytes, 0));
        view.set_key_high(&crate::wire::take(&key.bytes, 8)).set_key_length(key.length);
    }
    Sqe::from_bytes(*view.as_bytes())
}

/// Returns Store of a value of `size` bytes under `key`; Store Newer with [`STORE_IF_NEWER`].
pub fn store(nsid: u32, key: &Key, size: u32, options: u8) -> Sqe {
    let is_newer = options & STORE_IF_NEWER != 0;
    let opcode = if is_newer { Kv::STORE_NEWER } else { Kv::STORE };
    command(opcode, nsid, Some(key), size, options & !STORE_IF_NEWER)
}

/// Returns Retrieve of at most `size` bytes of the value of `key`; the completion's dword 0 gives
/// its whole size. `options` are `RETRIEVE_*`.
pub fn retrieve(nsid: u32, key: &Key, size: u32, options: u8) -> Sqe {
    command(Kv::RETRIEVE, nsid, Some(key), size, options)
}

/// Returns List of keys from `from` on into a buffer of `size` bytes.
pub fn list(nsid: u32, from: Option<&Key>, size: u32) -> Sqe {
    command(Kv::LIST, nsid, from, size, 0)
}

/// Returns Delete of `key`.
pub fn delete(nsid: u32, key: &Key) -> Sqe {
    command(Kv::DELETE, nsid, Some(key), 0, 0)
}

/// Returns Exist of `key`.
pub fn exist(nsid: u32, key: &Key) -> Sqe {
    command(Kv::EXIST, nsid, Some(key), 0, 0)
}

/// Builds the data of a List answer: u32 count, then {u16 length, key, padding to 4 bytes}.
#[derive(Debug)]
pub struct KeyList {
    data: Vec<u8>,
    count: u32,
    size: usize,
}

impl KeyList {
    /// Returns an empty list for a host buffer of `size` bytes.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] when not even the count fits.
    pub fn new(size: u32) -> Result<Self, Status> {
        let size = usize::try_from(size).map_err(|_| Status::INVALID_FIELD)?;
        if size < 4 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(Self { data: vec![0; 4], count: 0, size })
    }

    /// Adds a key; false when it does not fit any more.
    pub fn push(&mut self, key: &Key) -> bool {
        if self.data.len() + Self::entry_bytes(key) > self.size {
            return false;
        }
        Self::append_entry(&mut self.data, key);
        self.count += 1;
        true
    }

    /// Returns the length of a key's entry in bytes.
    pub fn entry_bytes(key: &Key) -> usize {
        (2 + key.as_bytes().len()).next_multiple_of(4)
    }

    /// Appends a key's entry to `data`.
    pub fn append_entry(data: &mut Vec<u8>, key: &Key) {
        let end = data.len() + Self::entry_bytes(key);
        data.extend_from_slice(&u16::from(key.length).to_le_bytes());
        data.extend_from_slice(key.as_bytes());
        data.resize(end, 0);
    }

    /// Returns the data as it goes to the host.
    pub fn finish(mut self) -> Vec<u8> {
        self.data[..4].copy_from_slice(&self.count.to_le_bytes());
        self.data
    }

    /// Parses the data of a List answer; `None` when it is malformed.
    pub fn parse(data: &[u8]) -> Option<Vec<Key>> {
        let count = u32::from_le_bytes(*data.first_chunk()?);
        Self::parse_entries(count.into(), &data[4..])
    }

    /// Parses `count` entries; `None` when one is malformed or missing.
    pub fn parse_entries(count: u64, mut rest: &[u8]) -> Option<Vec<Key>> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let length = usize::from(u16::from_le_bytes(*rest.first_chunk()?));
            let key = Key::new(rest.get(2..2 + length)?).ok()?;
            rest = rest.get((2 + length).next_multiple_of(4)..)?;
            keys.push(key);
        }
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half_of_a_key_stands_before_the_second() {
        let key = Key::new(b"0123456789abcdef").unwrap();
        let sqe = store(2, &key, 100, STORE_IF_ABSENT);
        assert_eq!(&sqe.as_bytes()[8..16], b"01234567");
        assert_eq!(&sqe.as_bytes()[56..64], b"89abcdef");
        assert_eq!(sqe.as_bytes()[44..46], [16, 2]);
        let expected = Command::Store { key, size: 100, options: STORE_IF_ABSENT };
        assert_eq!(Command::parse(&sqe), Ok(expected));
    }

    #[test]
    fn store_newer_has_an_opcode_of_the_vendor_range_and_no_conditions() {
        let key = Key::new(b"k").unwrap();
        let sqe = store(3, &key, 100, STORE_IF_NEWER | STORE_MENDS);
        assert_eq!((sqe.opcode(), sqe.as_bytes()[45]), (0x81, STORE_MENDS));
        let options = STORE_IF_NEWER | STORE_MENDS;
        assert_eq!(Command::parse(&sqe), Ok(Command::Store { key, size: 100, options }));
        for options in [STORE_IF_ABSENT, STORE_IF_EXISTS, 1 << 3, 1 << 5] {
            let wrong = store(3, &key, 100, STORE_IF_NEWER | options);
            assert_eq!(Command::parse(&wrong), Err(Status::INVALID_FIELD), "{options:#x}");
        }
        // They are no options of Store.
        let sqe = command(Kv::STORE, 3, Some(&key), 100, STORE_MENDS);
        assert_eq!(Command::parse(&sqe), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn commands_refuse_options_that_are_not_theirs() {
        let key = Key::new(b"k").unwrap();
        for (opcode, known) in [
            (Kv::STORE, 0b111),
            (Kv::RETRIEVE, RETRIEVE_RAW),
            (Kv::LIST, 0),
            (Kv::DELETE, 0),
            (Kv::EXIST, 0),
        ] {
            for bit in 0..8 {
                let parsed = Command::parse(&command(opcode, 2, Some(&key), 100, 1 << bit));
                let is_known = known >> bit & 1 == 1;
                assert_eq!(parsed.is_ok(), is_known, "{opcode:?}, bit {bit}: {parsed:?}");
                assert!(is_known || parsed == Err(Status::INVALID_FIELD));
            }
        }
    }

    #[test]
    fn key_lengths_outside_1_to_16_are_refused() {
        let mut view = KvCommand::from_bytes(*exist(2, &Key::new(b"k").unwrap()).as_bytes());
        for (length, status) in [
            (0, Status::INVALID_KEY_SIZE),
            (17, Status::INVALID_FIELD),
            (255, Status::INVALID_FIELD),
        ] {
            view.set_key_length(length);
            assert_eq!(Command::parse(&Sqe::from_bytes(*view.as_bytes())), Err(status));
        }
    }

    #[test]
    fn keys_order_by_length_then_bytes() {
        let mut keys = [b"b".as_slice(), b"aa", b"a", b"ab"].map(|key| Key::new(key).unwrap());
        keys.sort();
        assert_eq!(keys.map(|key| key.as_bytes().to_vec()), [&b"a"[..], b"b", b"aa", b"ab"]);
    }

    #[test]
    fn a_key_list_holds_whole_keys_only() {
        let mut list = KeyList::new(4 + 4 + 8).unwrap();
        let (short, long) = (Key::new(b"ab").unwrap(), Key::new(b"abcdef").unwrap());
        assert!(list.push(&short) && list.push(&long));
        assert!(!list.push(&short));
        let data = list.finish();
        assert_eq!(data.len(), 16);
        assert_eq!(KeyList::parse(&data), Some(vec![short, long]));
        assert_eq!(KeyList::parse(&data[..15]), None);
        assert_eq!(KeyList::new(3).err(), Some(Status::INVALID_FIELD));
    }
}
