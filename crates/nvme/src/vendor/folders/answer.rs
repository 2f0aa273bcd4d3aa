//! The answer of List Folder: a head, and children.

use super::order;
use crate::kv::Key;
use crate::status::Status;
use crate::wire::layout;

layout! {
    /// Head of the answer.
    pub(super) struct FolderHead[24] {
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
    pub(super) struct ChildHead[24] {
        /// 1: an object, with its entry; 2: a folder, with the last component of its path;
        /// 3: an object whose entry has to be retrieved, without bytes.
        kind / set_kind: u8 @ 0,
        /// Number of bytes.
        length / set_length: u32 @ 4,
        /// Key of the entry, or of the folder.
        key / set_key: [16] @ 8,
    }
}

const VERSION: u16 = 1;
const MORE: u16 = 1;

/// A child of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child<'a> {
    /// An object, with its entry.
    Object(&'a [u8]),
    /// A folder, with the last component of its path, without the `/`.
    Folder(&'a str),
    /// An object whose entry is longer than
    /// [`ENTRY_BYTES_MAX`](super::ENTRY_BYTES_MAX), or cannot be read.
    Key,
}

/// Builds an answer.
#[derive(Debug)]
pub struct Answer {
    data: Vec<u8>,
    size: usize,
    count: u32,
    /// The last order, and length of the data and number of children before those of this order.
    group: (Option<u64>, usize, u32),
    /// The order before the last one.
    before: Option<u64>,
    /// True once a child did not fit.
    is_full: bool,
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
        Ok(Self { data, size, count: 0, group, before: None, is_full: false })
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
            (self.count, self.is_full) = (self.group.2, true);
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
    pub fn finish(mut self, last: Option<u64>, unreadable: u64) -> Result<Vec<u8>, Status> {
        let next = match self.is_full {
            true => Some(self.before.ok_or(Status::INVALID_FIELD)?),
            false => last,
        };
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
    use super::super::KEY_PREFIX;
    use super::*;

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
        let data = answer.finish(Some(9), 4).unwrap();
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
        let data = answer.finish(None, 0).unwrap();
        let answered = Answered::parse(&data).unwrap();
        assert_eq!(answered.children, [(key_of(1, 0), Child::Key)]);
        assert_eq!(answered.next, Some(1));
        // One order alone does not fit: there is no cursor before it.
        let mut answer = Answer::new(u32::try_from(FolderHead::SIZE).unwrap()).unwrap();
        assert!(!answer.push(&key_of(1, 0), Child::Key));
        assert_eq!(answer.finish(None, 0), Err(Status::INVALID_FIELD));
    }
}
