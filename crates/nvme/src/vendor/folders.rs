//! List Folder, a vendor specific command of the objects' namespace: what lies directly below a
//! folder of names.
//!
//! A name is a path: its folder is everything up to its last `/`, and is itself below the folder
//! that ends one `/` earlier; the empty path is above all. A drive knows the names from the
//! [entries](../../../../docs/internals/golden/catalogue/README.md) that it stores, of which only
//! the head is read here. A folder is named by the key that an object with its path would have, so
//! the command needs no data from the host. Children come in the order of their keys; the next
//! command goes on behind the last one. `docs/internals/commands.md` specifies both directions.
//! Invariant: children whose keys share their first 8 bytes behind the prefix are answered
//! together, so that a cursor of 8 bytes skips none.

use crate::capsule::Sqe;
use crate::kv::{KEY_BYTES_MAX, Key};
use crate::opcode::Kv;
use crate::status::Status;
use crate::wire::layout;

/// First byte of the key of an entry.
pub const KEY_PREFIX: u8 = 0x01;
/// First four bytes of an entry: "CSDC".
pub const ENTRY_MAGIC: [u8; 4] = *b"CSDC";
/// Length of the part of an entry that does not depend on its object, bytes.
pub const ENTRY_FIXED_BYTES: usize = 112;
/// Offset of an entry's numbers of members and dimensions, and of the length of its name.
pub const ENTRY_LENGTHS_AT: usize = 64;
/// Offset of an entry's state.
const STATE_AT: usize = 6;
/// State of an entry whose object is complete.
pub const STATE_SEALED: u8 = 2;
/// Bytes of a name that a host may ask for.
pub const BEGINNING_BYTES: usize = 8;
/// Longest entry that is answered whole, bytes.
pub const ENTRY_BYTES_MAX: u32 = 16 << 10;

/// Option: the keys whose entries the drive cannot read, in place of a folder's children.
const UNREADABLE: u8 = 1 << 0;

layout! {
    /// List Folder.
    pub struct ListFolder[64] {
        /// The bytes with which names go on behind the path, then zeros.
        beginning / set_beginning: [8] @ 16,
        /// Host buffer size in bytes.
        size / set_size: u32 @ 40,
        /// Length of the key: 16.
        key_length / set_key_length: u8 @ 44,
        /// Bit 0: the keys whose entries the drive cannot read.
        options / set_options: u8 @ 45,
        /// Least order of the children.
        from / set_from: u64 @ 48,
    }
}

layout! {
    /// Head of the answer.
    pub struct FolderHead[24] {
        /// 1.
        version / set_version: u16 @ 0,
        /// Bit 0: there may be more children, behind `next`.
        flags / set_flags: u16 @ 2,
        /// Number of children that follow.
        count / set_count: u32 @ 4,
        /// Order of the last child that was looked at: the next command begins one above.
        next / set_next: u64 @ 8,
        /// Number of keys whose entries the drive cannot read.
        unreadable / set_unreadable: u64 @ 16,
    }
}

layout! {
    /// Head of a child; its bytes follow, then zeros up to a multiple of 4.
    pub struct ChildHead[24] {
        /// 1: an object, with its entry; 2: a folder, with the last component of its path;
        /// 3: an object whose entry is to be retrieved, without bytes.
        kind / set_kind: u8 @ 0,
        /// Number of bytes.
        length / set_length: u32 @ 4,
        /// Key of the entry, or of the folder.
        key / set_key: [16] @ 8,
    }
}

const VERSION: u16 = 1;
const MORE: u16 = 1;

/// Returns the key of the entry of `name`, or of the folder of this path.
#[must_use]
pub fn key(name: &str) -> Key {
    let mut key = [KEY_PREFIX; 16];
    key[1..].copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..15]);
    Key::new(&key).expect("sixteen bytes are a key")
}

/// Returns the place of a child among the others.
#[must_use]
pub fn order(key: &Key) -> u64 {
    u64::from_be_bytes(crate::wire::take(key.padded(), 1))
}

/// Cuts a path into its folder and the rest; that of a folder ends in `/`, which stays with it.
#[must_use]
pub fn split(path: &str) -> (&str, &str) {
    let inner = path.strip_suffix('/').unwrap_or(path);
    path.split_at(inner.rfind('/').map_or(0, |at| at + 1))
}

/// Cuts an object's name into its folder and the rest, which may be empty.
#[must_use]
pub fn split_name(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('/').map_or(0, |at| at + 1))
}

/// Returns what stands in the place of the name in bytes that may be no valid entry; the caller
/// compares its key.
#[must_use]
pub fn name_in(entry: &[u8]) -> Option<&str> {
    let lengths = entry.get(ENTRY_LENGTHS_AT..)?.first_chunk::<6>()?;
    let length = |at: usize| usize::from(u16::from_le_bytes([lengths[at], lengths[at + 1]]));
    let (members, dimensions, bytes) = (length(0), length(2), length(4));
    let name = entry.get(ENTRY_FIXED_BYTES + 2 * members + 8 * dimensions..)?.get(..bytes)?;
    str::from_utf8(name).ok()
}

/// Returns the name of the complete object whose entry under `key` begins with these bytes; `None`
/// if it is not complete.
///
/// # Errors
/// `()` if it is no entry of this key.
#[allow(clippy::result_unit_err)] // the reader of the entry tells why
pub fn sealed_name<'a>(entry: &'a [u8], of: &Key) -> Result<Option<&'a str>, ()> {
    if !entry.starts_with(&ENTRY_MAGIC) {
        return Err(());
    }
    let name = name_in(entry).filter(|name| key(name) == *of).ok_or(())?;
    Ok((entry[STATE_AT] == STATE_SEALED).then_some(name))
}

/// What a host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Key of the folder; `None` for the keys whose entries cannot be read.
    pub folder: Option<Key>,
    /// Bytes with which names go on behind the folder's path, then zeros.
    pub beginning: [u8; BEGINNING_BYTES],
    /// Least [`order`] of the children.
    pub from: u64,
    /// Size of the host's buffer, bytes.
    pub size: u32,
}

impl Request {
    /// Returns a request for the children of a folder, from the first on, whose names go on with
    /// these bytes. Only the first eight count.
    #[must_use]
    pub fn new(path: &str, beginning: &str, size: u32) -> Self {
        let mut bytes = [0; BEGINNING_BYTES];
        let first = &beginning.as_bytes()[..beginning.len().min(BEGINNING_BYTES)];
        bytes[..first.len()].copy_from_slice(first);
        Self { folder: Some(key(path)), beginning: bytes, from: 0, size }
    }

    /// Returns a request for the keys whose entries cannot be read.
    #[must_use]
    pub fn unreadable(size: u32) -> Self {
        Self { folder: None, beginning: [0; BEGINNING_BYTES], from: 0, size }
    }

    /// Returns the command.
    #[must_use]
    pub fn command(&self, nsid: u32) -> Sqe {
        let key = self.folder.unwrap_or_else(|| key(""));
        let with_key = crate::kv::command(Kv::LIST_FOLDER, nsid, Some(&key), self.size, 0);
        let mut view = ListFolder::from_bytes(*with_key.as_bytes());
        view.set_beginning(&self.beginning).set_from(self.from);
        view.set_options(if self.folder.is_none() { UNREADABLE } else { 0 });
        Sqe::from_bytes(*view.as_bytes())
    }

    /// Parses a command with this key.
    ///
    /// # Errors
    /// [`Status::INVALID_KEY_SIZE`], [`Status::INVALID_FIELD`].
    pub fn parse(sqe: &Sqe, key: Key) -> Result<Self, Status> {
        let view = ListFolder::from_bytes(*sqe.as_bytes());
        if key.as_bytes().len() != usize::from(KEY_BYTES_MAX) {
            return Err(Status::INVALID_KEY_SIZE);
        }
        if view.options() & !UNREADABLE != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let folder = (view.options() == 0).then_some(key);
        let (beginning, from) = (view.beginning(), view.from());
        Ok(Self { folder, beginning, from, size: view.size() })
    }
}

/// A child of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child<'a> {
    /// An object, with its entry.
    Object(&'a [u8]),
    /// A folder, with the last component of its path, without the `/`.
    Folder(&'a str),
    /// An object whose entry is longer than [`ENTRY_BYTES_MAX`], or cannot be read.
    Key,
}

/// Builds an answer.
#[derive(Debug)]
pub struct Answer {
    data: Vec<u8>,
    size: usize,
    count: u32,
    next: Option<u64>,
    /// Length of the data and number of children before those of the last order.
    group: (Option<u64>, usize, u32),
    before: Option<u64>,
}

impl Answer {
    /// Returns an empty answer for a host's buffer of `size` bytes.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] when not even its head fits.
    pub fn new(size: u32) -> Result<Self, Status> {
        let size = usize::try_from(size).map_err(|_| Status::INVALID_FIELD)?;
        if size < FolderHead::SIZE {
            return Err(Status::INVALID_FIELD);
        }
        let data = vec![0; FolderHead::SIZE];
        let group = (None, data.len(), 0);
        Ok(Self { data, size, count: 0, next: None, group, before: None })
    }

    /// Adds a child, in ascending [`order`]. Returns false when it does not fit any more: then the
    /// answer ends before the first child of its order.
    pub fn push(&mut self, key: &Key, child: Child<'_>) -> bool {
        let order = order(key);
        if self.group.0 != Some(order) {
            self.before = self.group.0;
            self.group = (Some(order), self.data.len(), self.count);
        }
        let (kind, bytes): (u8, &[u8]) = match child {
            Child::Object(entry) => (1, entry),
            Child::Folder(component) => (2, component.as_bytes()),
            Child::Key => (3, &[]),
        };
        let end = self.data.len() + ChildHead::SIZE + bytes.len().next_multiple_of(4);
        if end > self.size {
            (self.count, self.next) = (self.group.2, self.before);
            self.data.truncate(self.group.1);
            return false;
        }
        let mut head = ChildHead::zeroed();
        head.set_kind(kind).set_key(key.padded());
        head.set_length(u32::try_from(bytes.len()).expect("it fits the buffer"));
        self.data.extend_from_slice(head.as_bytes());
        self.data.extend_from_slice(bytes);
        self.data.resize(end, 0);
        self.count += 1;
        true
    }

    /// Returns the data as it goes to the host: `last` is the order of the last child looked at if
    /// there may be more, and no child was refused.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] if there is more, and not one order fits.
    pub fn finish(
        mut self,
        is_full: bool,
        last: Option<u64>,
        unreadable: u64,
    ) -> Result<Vec<u8>, Status> {
        let next = if is_full { Some(self.next.ok_or(Status::INVALID_FIELD)?) } else { last };
        let mut head = FolderHead::zeroed();
        head.set_version(VERSION).set_count(self.count).set_unreadable(unreadable);
        head.set_flags(if next.is_some() { MORE } else { 0 }).set_next(next.unwrap_or(0));
        self.data[..FolderHead::SIZE].copy_from_slice(head.as_bytes());
        Ok(self.data)
    }
}

/// A parsed answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answered<'a> {
    /// Children.
    pub children: Vec<(Key, Child<'a>)>,
    /// Order of the last child that was looked at, if there may be more.
    pub next: Option<u64>,
    /// Number of keys whose entries the drive cannot read.
    pub unreadable: u64,
}

impl<'a> Answered<'a> {
    /// Parses an answer; `None` when it is malformed.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let head = FolderHead::parse(data)?;
        if head.version() != VERSION {
            return None;
        }
        let (mut children, mut rest) = (Vec::new(), &data[FolderHead::SIZE..]);
        for _ in 0..head.count() {
            let child = ChildHead::parse(rest)?;
            rest = &rest[ChildHead::SIZE..];
            let length = usize::try_from(child.length()).ok()?;
            let bytes = rest.get(..length)?;
            rest = rest.get(length.checked_next_multiple_of(4)?..)?;
            let found = match child.kind() {
                1 => Child::Object(bytes),
                2 => Child::Folder(str::from_utf8(bytes).ok()?),
                3 => Child::Key,
                _ => return None,
            };
            children.push((Key::new(&child.key()).ok()?, found));
        }
        let next = (head.flags() & MORE != 0).then(|| head.next());
        Some(Self { children, next, unreadable: head.unreadable() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_at_their_slashes() {
        for (path, folder, rest) in [
            ("", "", ""),
            ("a/", "", "a/"),
            ("a/b/", "a/", "b/"),
            ("a//", "a/", "/"),
            ("/", "", "/"),
        ] {
            assert_eq!(split(path), (folder, rest), "{path:?}");
        }
        for (name, folder, rest) in [
            ("x", "", "x"),
            ("a/x", "a/", "x"),
            ("a/", "a/", ""),
            ("/x", "/", "x"),
            ("a//x", "a//", "x"),
        ] {
            assert_eq!(split_name(name), (folder, rest), "{name:?}");
        }
    }

    #[test]
    fn a_command_is_parsed_to_what_was_asked() {
        for request in [
            Request::new("", "", 4096),
            Request { from: 7, ..Request::new("a/b/", "name that is long", 1 << 20) },
            Request::unreadable(64),
        ] {
            let sqe = request.command(3);
            assert_eq!((sqe.opcode(), sqe.nsid()), (0x82, 3));
            let parsed = crate::kv::Command::parse(&sqe);
            assert_eq!(parsed, Ok(crate::kv::Command::ListFolder(request)));
        }
        let mut sqe = Request::new("a/", "", 64).command(3);
        let mut view = ListFolder::from_bytes(*sqe.as_bytes());
        sqe = Sqe::from_bytes(*view.set_options(2).as_bytes());
        assert_eq!(crate::kv::Command::parse(&sqe), Err(Status::INVALID_FIELD));
        view.set_options(0).set_key_length(15);
        sqe = Sqe::from_bytes(*view.as_bytes());
        assert_eq!(crate::kv::Command::parse(&sqe), Err(Status::INVALID_KEY_SIZE));
    }

    fn key_of(order: u64, last: u8) -> Key {
        let mut bytes = [KEY_PREFIX; 16];
        bytes[1..9].copy_from_slice(&order.to_be_bytes());
        bytes[15] = last;
        Key::new(&bytes).unwrap()
    }

    #[test]
    fn an_answer_is_parsed_to_its_children() {
        let mut answer = Answer::new(4096).unwrap();
        assert!(answer.push(&key_of(1, 0), Child::Object(b"entry")));
        assert!(answer.push(&key_of(2, 0), Child::Folder("folder")));
        assert!(answer.push(&key_of(3, 0), Child::Key));
        let data = answer.finish(false, Some(9), 4).unwrap();
        let answered = Answered::parse(&data).unwrap();
        let children = [
            (key_of(1, 0), Child::Object(&b"entry"[..])),
            (key_of(2, 0), Child::Folder("folder")),
            (key_of(3, 0), Child::Key),
        ];
        assert_eq!(
            answered,
            Answered { children: children.to_vec(), next: Some(9), unreadable: 4 }
        );
        for length in 0..data.len() {
            assert_eq!(Answered::parse(&data[..length]), None, "{length}");
        }
    }

    #[test]
    fn children_of_one_order_are_never_parted() {
        let room = FolderHead::SIZE + 3 * ChildHead::SIZE;
        let mut answer = Answer::new(u32::try_from(room).unwrap()).unwrap();
        for (order, last) in [(1, 0), (2, 0), (2, 1)] {
            assert!(answer.push(&key_of(order, last), Child::Key));
        }
        assert!(!answer.push(&key_of(2, 2), Child::Key));
        let data = answer.finish(true, None, 0).unwrap();
        let answered = Answered::parse(&data).unwrap();
        assert_eq!(answered.children, [(key_of(1, 0), Child::Key)]);
        assert_eq!(answered.next, Some(1));
        // One order alone does not fit: there is no cursor before it.
        let mut answer = Answer::new(u32::try_from(FolderHead::SIZE).unwrap()).unwrap();
        assert!(!answer.push(&key_of(1, 0), Child::Key));
        assert_eq!(answer.finish(true, None, 0), Err(Status::INVALID_FIELD));
    }
}
