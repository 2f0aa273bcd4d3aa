//! [`EntryCopy`]: one drive's copy of an entry, which may be damaged, or set aside.
//!
//! A copy is set aside on a drive that takes the place of another one while too few copies of its
//! name are sound: "no such key" and an older entry would be answers that count. The bytes
//! that the drive held are kept inside. `docs/internals/contracts.md` specifies the format.

use csd_nvme::kv::{Key, VERSION_OFFSET};
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use super::entry::{self, Entry, State};
use super::{ENTRY_BYTES, Found, on_all};
use crate::array::{Array, Drive, DriveIndex};
use crate::error::{Error, NameError};

/// First bytes of a copy that was set aside: "CSDA", version 1, zeros; the version for Store Newer
/// is 0, so any entry replaces it.
const ASIDE: [u8; 16] = *b"CSDA\x01\0\0\0\0\0\0\0\0\0\0\0";

/// A drive's copy of an entry.
pub(super) enum EntryCopy {
    /// The drive has none.
    None,
    /// The entry.
    Sound(Box<Entry>),
    /// It cannot be used.
    Damaged(Damaged),
}

/// A copy that cannot be used.
pub(super) struct Damaged {
    /// Name of the object, if the copy tells it.
    name: Option<String>,
    /// The entry that was set aside.
    kept: Option<Box<Entry>>,
    /// Version that its drive compares.
    version: u64,
    /// Reason, in words.
    pub(super) why: String,
}

/// A copy that cannot be used, on its drive.
#[derive(Clone, Debug)]
pub struct DamagedCopy {
    /// The drive.
    pub drive: DriveIndex,
    /// Name of the object, if the copy tells it.
    pub name: Option<String>,
    /// The entry that was set aside, if it was.
    pub kept: Option<Entry>,
    /// Version that the drive compares; 0 if it cannot read the copy.
    pub(super) version: u64,
}

impl Damaged {
    fn new(why: String) -> Self {
        Self { name: None, kept: None, version: 0, why }
    }

    pub(super) fn on(self, drive: DriveIndex) -> DamagedCopy {
        let Self { name, kept, version, .. } = self;
        DamagedCopy { drive, name, kept: kept.map(|entry| *entry), version }
    }
}

/// Reads every drive's copy of the entry under `key`. Returns the answers, however few, and the
/// error of one of the drives that failed.
pub async fn look(array: &Array, key: &Key) -> (Found, Option<Error>) {
    let key = *key;
    let answers = on_all(array, move |drive| async move { read(&drive, &key).await });
    let (mut found, mut failed) = (Found { answers: Vec::new(), damaged: Vec::new() }, None);
    for answer in answers {
        match answer.await {
            (drive, Ok(EntryCopy::None)) => found.answers.push((drive.index, None)),
            (drive, Ok(EntryCopy::Sound(entry))) => found.answers.push((drive.index, Some(*entry))),
            (drive, Ok(EntryCopy::Damaged(copy))) => found.damaged.push(copy.on(drive.index)),
            (_, Err(error)) => failed = Some(error),
        }
    }
    (found, failed)
}

/// Reads a drive's copy of the entry under `key`.
///
/// # Errors
/// A failed command.
pub(super) async fn read(drive: &Drive, key: &Key) -> Result<EntryCopy, Error> {
    let value = match drive.objects.retrieve(key, ENTRY_BYTES).await {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(EntryCopy::None),
        Err(error) if error.status() == Some(Status::UNRECOVERED_ERROR) => {
            return Ok(EntryCopy::Damaged(Damaged::new(format!("the drive says: {error}"))));
        }
        Err(error) => return Err(Error::command(drive, error)),
    };
    Ok(parse(&value, key))
}

fn parse(value: &[u8], key: &Key) -> EntryCopy {
    let is_of = |entry: &Entry| entry::key(&entry.name) == *key;
    if let Some(inside) = value.strip_prefix(&ASIDE) {
        let kept = Entry::parse(inside).ok().filter(is_of).map(Box::new);
        let name = kept.as_ref().map(|entry| entry.name.clone());
        let why = "too few copies of the name were sound when it was stored".to_owned();
        return EntryCopy::Damaged(Damaged { name, kept, version: 0, why });
    }
    let why = match Entry::parse(value) {
        Ok(entry) if is_of(&entry) => return EntryCopy::Sound(Box::new(entry)),
        Ok(_) => "it stands under another name's key".to_owned(),
        Err(malformed) => malformed.to_string(),
    };
    let name = entry::name_in(value).filter(|name| entry::key(name) == *key).map(str::to_owned);
    let version = value.get(VERSION_OFFSET..).and_then(|rest| rest.first_chunk());
    let version = version.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    EntryCopy::Damaged(Damaged { name, version, ..Damaged::new(why) })
}

/// Sets a drive's copy aside, or stores one that says that the drive knows nothing of the name.
/// No other host may write the name to this drive meanwhile.
///
/// # Errors
/// A failed command.
pub(super) async fn set_aside(drive: &Drive, key: &Key) -> Result<(), Error> {
    let kept = match read(drive, key).await? {
        EntryCopy::Damaged(_) => return Ok(()),
        EntryCopy::Sound(entry) => entry.encode(),
        EntryCopy::None => Vec::new(),
    };
    let value = vec![Buffer::from_slice(&[&ASIDE[..], &kept].concat())];
    drive.objects.store(key, value, 0).await.map_err(|error| Error::command(drive, error))
}

impl Found {
    /// Returns the number of sound answers that a reader needs.
    #[must_use]
    pub fn needed(&self, array: &Array) -> usize {
        array.readers_of(self.newest().map_or(0, Entry::losses))
    }

    /// Returns true if enough answers are sound.
    #[must_use]
    pub fn is_enough(&self, array: &Array) -> bool {
        self.answers.len() >= self.needed(array)
    }

    /// Returns every entry that can be read, also those that do not count.
    pub fn readable(&self) -> impl Iterator<Item = &Entry> {
        let sound = self.answers.iter().filter_map(|(_, entry)| entry.as_ref());
        sound.chain(self.damaged.iter().filter_map(|copy| copy.kept.as_ref()))
    }

    /// Returns the object's name, if a copy tells it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let damaged = self.damaged.iter().filter_map(|copy| copy.name.as_deref());
        self.readable().map(|entry| &*entry.name).chain(damaged).next()
    }

    /// Returns the error of a name of which too few copies are sound.
    #[must_use]
    pub fn too_few(&self, array: &Array, key: &Key, name: &str) -> Error {
        let given = (entry::key(name) == *key).then_some(name);
        let drives = self.damaged.iter().map(|copy| array.slots()[copy.drive].name.clone());
        Error::Name(NameError::Damaged {
            name: self.name().or(given).map_or_else(|| key_in_words(key), ToOwned::to_owned),
            best: self.readable().max_by_key(|entry| entry.epoch).map(in_words),
            sound: self.answers.len(),
            needed: self.needed(array),
            drives: drives.collect(),
            down: array.down(),
        })
    }
}

/// Returns what an entry says, for a user who shall accept it.
#[must_use]
pub fn in_words(entry: &Entry) -> String {
    let Entry { epoch, bytes, .. } = entry;
    match entry.state {
        State::Sealed => format!("epoch {epoch}, an object of {bytes} bytes"),
        State::Staged => format!("epoch {epoch}, a put that has not come to its end"),
        State::Deleted => format!("epoch {epoch}, removed"),
    }
}

/// Returns the words that stand for a name that no copy tells: its key, in hexadecimal digits.
#[must_use]
pub fn key_in_words(key: &Key) -> String {
    key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the key that a user means by a name, or by the words of [`key_in_words`].
#[must_use]
pub fn key_of_words(words: &str) -> Option<Key> {
    let digits = words.as_bytes().chunks(2).map(|two| str::from_utf8(two).ok());
    let byte = |two: Option<&str>| u8::from_str_radix(two?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    let bytes = bytes.filter(|bytes| bytes.len() == 16 && bytes[0] == entry::KEY_PREFIX)?;
    Key::new(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_copy_tells_its_name_only_if_that_has_its_key() {
        let entry = super::super::tests::entry(7, State::Sealed);
        let (key, value) = (entry::key("x"), entry.encode());
        assert!(matches!(parse(&value, &key), EntryCopy::Sound(held) if *held == entry));
        for at in 0..value.len() {
            let mut other = value.clone();
            other[at] ^= 1;
            let EntryCopy::Damaged(damaged) = parse(&other, &key) else { panic!("byte {at}") };
            assert!(damaged.name.is_none_or(|name| name == "x"), "byte {at}");
        }
        let mut last = value.clone();
        *last.last_mut().unwrap() ^= 1;
        let EntryCopy::Damaged(damaged) = parse(&last, &key) else { panic!("damaged") };
        assert_eq!((damaged.name.as_deref(), damaged.version), (Some("x"), 7));
        for length in 0..value.len() {
            assert!(matches!(parse(&value[..length], &key), EntryCopy::Damaged(_)), "{length}");
        }
        let aside = parse(&[&ASIDE[..], &value].concat(), &key);
        assert!(
            matches!(aside, EntryCopy::Damaged(Damaged { kept: Some(kept), .. }) if *kept == entry)
        );
        assert!(matches!(parse(&ASIDE, &key), EntryCopy::Damaged(Damaged { kept: None, .. })));
    }

    #[test]
    fn a_key_in_words_is_read_back() {
        let key = entry::key("x");
        assert_eq!(key_of_words(&key_in_words(&key)), Some(key));
        for other in ["", "x", "01", "0g000000000000000000000000000000", "ü"] {
            assert_eq!(key_of_words(other), None);
        }
    }
}
