//! Reading objects of any length.
//!
//! Invariant: a get that returns `Ok` has delivered the bytes of a single version.

use std::io;

use csd_nvme::kv::Key;
use csd_reactor::Buffer;

use super::manifest::{MANIFEST_BYTES, Manifest};
use crate::ordered::Ordered;
use crate::{Error, Session};

/// Maximum versions that [`Session::get_object`] begins to read.
const VERSIONS_MAX: usize = 8;

/// An object as its key's value describes it.
#[derive(Debug)]
pub enum Object {
    /// One value: all bytes of the object.
    Value(Buffer),
    /// A long object.
    Long(Manifest),
}

/// Outcome of reading an object that may be too long for its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// All bytes of the object.
    Whole(Vec<u8>),
    /// Length of the object, which is longer than its reader takes, bytes.
    Longer(u64),
}

impl Object {
    /// Returns the length of the object in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Value(value) => value.len() as u64,
            Self::Long(manifest) => manifest.bytes,
        }
    }
}

impl Session {
    /// Returns the object of `key`; `None` if the key does not exist.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn open(&self, key: &Key) -> Result<Option<Object>, Error> {
        let Some(value) = self.get(key).await? else { return Ok(None) };
        Ok(Some(match Manifest::parse(&value) {
            Some(manifest) => Object::Long(manifest),
            None => Object::Value(value),
        }))
    }

    /// Passes all bytes of an object on, in order.
    ///
    /// # Errors
    /// [`Error::Replaced`] if another version takes its place meanwhile; [`Error::Damaged`];
    /// [`Error::Stream`] if `write` fails; any of a command's. Bytes that were passed on before are
    /// void then.
    pub async fn read(
        &self,
        key: &Key,
        object: Object,
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Error> {
        let manifest = match object {
            Object::Value(value) => return Ok(write(&value)?),
            Object::Long(manifest) => manifest,
        };
        let (mut pieces, mut crc) = (Ordered::new(), 0);
        let mut numbers = 0..manifest.pieces();
        loop {
            while pieces.len() < self.settings().depth.max(1) {
                let Some(number) = numbers.next() else { break };
                pieces.push(async move { self.piece(key, &manifest, number).await });
            }
            let Some(piece) = pieces.next().await else { break };
            let piece = piece?;
            crc = crc32c::crc32c_append(crc, &piece);
            write(&piece)?;
        }
        if crc != manifest.crc {
            let reason = "its bytes do not have its checksum".to_owned();
            return Err(Error::Damaged { key: *key, reason });
        }
        Ok(())
    }

    /// Returns all bytes of an object of any length; `None` if the key does not exist. Begins again
    /// with the next version when one is replaced meanwhile.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn get_object(&self, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.get_object_within(key, u64::MAX).await? {
            Some(Within::Whole(bytes)) => Some(bytes),
            Some(Within::Longer(_)) => unreachable!("no object is longer than a u64"),
            None => None,
        })
    }

    /// Returns all bytes of an object of at most `bytes_max` bytes; of a longer one it reads the
    /// first value at most, and returns the length. Otherwise as [`Self::get_object`].
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn get_object_within(
        &self,
        key: &Key,
        bytes_max: u64,
    ) -> Result<Option<Within>, Error> {
        for _ in 0..VERSIONS_MAX {
            let Some(object) = self.open(key).await? else { return Ok(None) };
            let length = object.bytes();
            if length > bytes_max {
                return Ok(Some(Within::Longer(length)));
            }
            let mut bytes = Vec::new();
            let mut keep = |part: &[u8]| {
                bytes.extend_from_slice(part);
                Ok(())
            };
            match self.read(key, object, &mut keep).await {
                Err(Error::Replaced(_)) => {}
                read => return read.map(|()| Some(Within::Whole(bytes))),
            }
        }
        Err(Error::Replaced(*key))
    }

    async fn piece(&self, key: &Key, manifest: &Manifest, number: u32) -> Result<Buffer, Error> {
        let (piece, bytes) = (manifest.key(number), manifest.piece_len(number));
        let size = u32::try_from(bytes).expect("at most a u32");
        let reason = match self.front(&piece, size.max(1)).await? {
            Some((found, whole)) if whole == u64::from(size) => return Ok(found),
            Some((_, whole)) => format!("piece {number} has {whole} bytes, not {bytes}"),
            None => format!("piece {number} of {} is missing", manifest.pieces()),
        };
        let front = u32::try_from(MANIFEST_BYTES).expect("64");
        let now = self.front(key, front).await?;
        match now.and_then(|(front, _)| Manifest::parse(&front)) {
            Some(same) if same == *manifest => Err(Error::Damaged { key: *key, reason }),
            _ => Err(Error::Replaced(*key)),
        }
    }
}
