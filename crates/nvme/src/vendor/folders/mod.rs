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

mod answer;

use crate::capsule::Sqe;
use crate::kv::{KEY_BYTES_MAX, Key};
use crate::opcode::Kv;
use crate::status::Status;
use crate::wire::layout;

pub use answer::{Answer, Answered, Child};

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
    path.split_at(split_name(inner).0.len())
}

/// Cuts an object's name into its folder and the rest, which may be empty.
#[must_use]
pub fn split_name(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('/').map_or(0, |at| at + 1))
}

/// Returns the first bytes of a text, then zeros.
#[must_use]
pub fn beginning(text: &str) -> [u8; BEGINNING_BYTES] {
    let mut bytes = [0; BEGINNING_BYTES];
    let length = text.len().min(BEGINNING_BYTES);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
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

/// Question of a host.
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
    pub fn new(path: &str, begins: &str, size: u32) -> Self {
        Self { folder: Some(key(path)), beginning: beginning(begins), from: 0, size }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Command;

    fn parsed(sqe: &Sqe) -> Result<Request, Status> {
        match Command::parse(sqe)? {
            Command::ListFolder(key) => Request::parse(sqe, key),
            other => panic!("{other:?}"),
        }
    }

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
            assert_eq!(parsed(&sqe), Ok(request));
        }
        let mut sqe = Request::new("a/", "", 64).command(3);
        let mut view = ListFolder::from_bytes(*sqe.as_bytes());
        sqe = Sqe::from_bytes(*view.set_options(2).as_bytes());
        assert_eq!(parsed(&sqe), Err(Status::INVALID_FIELD));
        view.set_options(0).set_key_length(15);
        sqe = Sqe::from_bytes(*view.as_bytes());
        assert_eq!(parsed(&sqe), Err(Status::INVALID_KEY_SIZE));
    }
}
