//! Storing objects of any length.
//!
//! Invariants: the manifest is stored after all of its pieces; pieces are deleted only after the
//! manifest that names them was replaced; no object has the key of a piece.

use std::io::Read;

use csd_initiator::Kv;
use csd_nvme::kv::{Key, STORE_IF_ABSENT, STORE_IF_EXISTS};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, random_bytes};

use super::manifest::{MANIFEST_BYTES, Manifest, is_piece, piece_key};
use crate::ordered::Ordered;
use crate::{Error, Session};

/// Maximum attempts to find an identifier that no piece has.
const IDENTIFIERS_MAX: usize = 8;

/// Outcome of storing an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Length of the object, bytes.
    pub bytes: u64,
    /// Number of its pieces; 0 if it is one value.
    pub pieces: u32,
    /// Pieces of the replaced version that could not be deleted.
    pub left_behind: u32,
}

/// The value that a put replaces: its first bytes and its length.
pub(super) type Old = Option<(Vec<u8>, u64)>;

impl Session {
    /// Stores all bytes of `source` under `key`; `options` are `STORE_*`. Reads `source` on this
    /// core, which waits meanwhile, and calls `progress` with the length of each part stored.
    ///
    /// # Errors
    /// As [`Session::put`]; [`Error::PieceKey`]; [`Error::Stream`] if `source` fails. The old
    /// version is unchanged then, unless the drive stopped answering.
    pub async fn put_object(
        &self,
        key: &Key,
        source: &mut dyn Read,
        options: u8,
        progress: &dyn Fn(u64),
    ) -> Result<Put, Error> {
        if is_piece(key) {
            return Err(Error::PieceKey);
        }
        let old = self.old(key).await?;
        let conflict = match (options & STORE_IF_ABSENT != 0, options & STORE_IF_EXISTS != 0) {
            (true, _) if old.is_some() => Some(Status::KEY_EXISTS),
            (_, true) if old.is_none() => Some(Status::KEY_DOES_NOT_EXIST),
            _ => None,
        };
        if let Some(status) = conflict {
            return Err(self.refused("Store", status));
        }
        let piece_bytes = self.piece_bytes();
        let first = read_piece(source, piece_bytes)?;
        let more = match first.len() < piece_bytes as usize {
            true => Vec::new(),
            false => read_piece(source, piece_bytes)?,
        };
        let replaced = old.as_ref().and_then(|(front, whole)| manifest_in(front, *whole));
        if more.is_empty() && Manifest::parse(&first).is_none() {
            self.put(key, &first, options).await?;
            let bytes = first.len() as u64;
            progress(bytes);
            let left_behind = self.remove_old(replaced).await;
            return Ok(Put { bytes, pieces: 0, left_behind });
        }
        let manifest = self.put_pieces([first, more], source, piece_bytes, progress).await?;
        let published = self.publish(key, &manifest, options, &old).await;
        match published {
            Ok(true) => {}
            // Another host has replaced the object since: as if it had replaced this version.
            Ok(false) => drop(self.remove_pieces(&manifest).await),
            // It may have been published if the drive did not answer: its pieces must stay.
            Err(error) => {
                if error.status().is_some() {
                    self.remove_pieces(&manifest).await;
                }
                return Err(error);
            }
        }
        let left_behind = self.remove_old(replaced).await;
        Ok(Put { bytes: manifest.bytes, pieces: manifest.pieces(), left_behind })
    }

    /// Returns the value of `key` that a put would replace.
    pub(super) async fn old(&self, key: &Key) -> Result<Old, Error> {
        self.run(async |kv, _| self::old(kv, key).await).await
    }

    /// Returns the length of every piece but an object's last.
    pub(super) fn piece_bytes(&self) -> u32 {
        self.settings().piece_bytes_max.min(self.value_bytes_max()).max(1)
    }

    fn refused(&self, what: &'static str, status: Status) -> Error {
        let drive = self.address().to_string().into();
        csd_initiator::Error::Status { drive, what, status, reason: None }.into()
    }

    /// Stores the pieces of an object that begins with `first`; deletes them if that fails.
    async fn put_pieces(
        &self,
        first: [Vec<u8>; 2],
        source: &mut dyn Read,
        piece_bytes: u32,
        progress: &dyn Fn(u64),
    ) -> Result<Manifest, Error> {
        let [head, mut next] = first;
        let id = self.put_head(&head).await?;
        progress(head.len() as u64);
        let crc = crc32c::crc32c(&head);
        let mut manifest = Manifest { id, piece_bytes, bytes: head.len() as u64, crc };
        let mut stores = Ordered::new();
        let outcome = loop {
            if next.is_empty() || stores.len() >= self.settings().depth.max(1) {
                match stores.next().await {
                    Some(Ok(bytes)) => progress(bytes),
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                }
                continue;
            }
            let number = manifest.pieces();
            if number == u32::MAX {
                break Err(Error::Stream(std::sync::Arc::new(
                    std::io::ErrorKind::FileTooLarge.into(),
                )));
            }
            manifest.bytes += next.len() as u64;
            manifest.crc = crc32c::crc32c_append(manifest.crc, &next);
            let piece = std::mem::take(&mut next);
            let key = manifest.key(number);
            stores.push(async move {
                self.put(&key, &piece, STORE_IF_ABSENT).await.map(|()| piece.len() as u64)
            });
            match read_piece(source, piece_bytes) {
                Ok(piece) => next = piece,
                Err(error) => break Err(error),
            }
        };
        // Stores in flight end before their keys are deleted.
        while stores.next().await.is_some() {}
        match outcome {
            Ok(()) => Ok(manifest),
            Err(error) => {
                self.remove_pieces(&manifest).await;
                Err(error)
            }
        }
    }

    /// Stores the first piece under an unused identifier.
    async fn put_head(&self, piece: &[u8]) -> Result<[u8; 8], Error> {
        let mut tries = 0;
        loop {
            let mut id = [0; 8];
            random_bytes(&mut id);
            tries += 1;
            match self.put(&piece_key(&id, 0), piece, STORE_IF_ABSENT).await {
                Err(error)
                    if error.status() == Some(Status::KEY_EXISTS) && tries < IDENTIFIERS_MAX => {}
                stored => return stored.map(|()| id),
            }
        }
    }

    /// Stores the manifest. Returns false if another host has replaced the object since a first try
    /// whose completion is unknown: a second one would bring back a version that the other host has
    /// deleted.
    async fn publish(
        &self,
        key: &Key,
        manifest: &Manifest,
        options: u8,
        old: &Old,
    ) -> Result<bool, Error> {
        let bytes = manifest.to_bytes();
        let stored = self.run(async |kv, again| {
            if again {
                let now = self::old(kv, key).await?;
                if now.as_ref().is_some_and(|(front, _)| front[..] == bytes) {
                    return Ok(true);
                }
                if now != *old && options & STORE_IF_ABSENT == 0 {
                    return Ok(false);
                }
            }
            kv.store(key, vec![Buffer::from_slice(&bytes)], options).await.map(|()| true)
        });
        stored.await
    }
}

/// Returns the value of `key` that a put would replace.
async fn old(kv: &Kv, key: &Key) -> Result<Old, csd_initiator::Error> {
    let front = kv.front(key, u32::try_from(MANIFEST_BYTES).expect("64")).await?;
    Ok(front.map(|(front, whole)| (front.to_vec(), whole)))
}

/// Returns the manifest in a value's first bytes, if the value is one.
pub(super) fn manifest_in(front: &[u8], whole: u64) -> Option<Manifest> {
    Manifest::parse(front).filter(|_| whole == MANIFEST_BYTES as u64)
}

/// Reads until a piece is full or the source ends.
fn read_piece(source: &mut dyn Read, piece_bytes: u32) -> Result<Vec<u8>, Error> {
    let mut piece = Vec::new();
    source.take(piece_bytes.into()).read_to_end(&mut piece)?;
    Ok(piece)
}
