//! Storage on the host for a working set that it has loaded.
//!
//! It is memory; or, to measure a host that lacks memory, a mapping of a scratch file. When the
//! process reaches its memory limit, the system pages to that file, as it pages memory to swap.
//! Sets no memory limit. Invariant: pieces are returned as they were stored.

use std::path::PathBuf;

use csd_reactor::{Buffer, MappedFile};

use super::Error;

/// Storage for loaded pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorageKind {
    /// In memory.
    #[default]
    Memory,
    /// In mappings of scratch files, one for each core. The files are deleted at once, so they
    /// exist as long as they are mapped.
    Paged {
        /// Folder of the scratch files.
        folder: PathBuf,
        /// Memory limit, bytes: data is written out when half as much has been loaded after it.
        memory_bytes: u64,
    },
}

/// Data that a core has loaded.
pub(super) enum WorkingSetStorage {
    Memory(Vec<Vec<Buffer>>),
    Paged { map: MappedFile, path: PathBuf, used: usize, lag: usize, pieces: Vec<Vec<usize>> },
}

impl WorkingSetStorage {
    /// Makes room for `bytes` bytes on core `core`.
    pub(super) fn new(kind: &StorageKind, core: usize, bytes: u64) -> Result<Self, Error> {
        match kind {
            StorageKind::Memory => Ok(Self::Memory(Vec::new())),
            StorageKind::Paged { folder, memory_bytes } => {
                let path = folder.join(format!("csd-paged-{core}"));
                let map = MappedFile::scratch(&path, bytes);
                let map = map.map_err(|source| Error::Scratch { path: path.clone(), source })?;
                let lag = usize::try_from(memory_bytes / 2).unwrap_or(usize::MAX);
                Ok(Self::Paged { map, path, used: 0, lag, pieces: Vec::new() })
            }
        }
    }

    /// Keeps the next piece of every stream.
    ///
    /// # Errors
    /// [`Error::Scratch`] when the scratch file cannot be written.
    pub(super) fn keep(&mut self, streams: Vec<Buffer>) -> Result<(), Error> {
        match self {
            Self::Memory(kept) => kept.push(streams),
            Self::Paged { map, path, used, lag, pieces } => {
                let before = *used;
                let lengths = streams.iter().map(|piece| {
                    let end = *used + piece.len();
                    map.bytes_mut()[*used..end].copy_from_slice(piece);
                    *used = end;
                    piece.len()
                });
                pieces.push(lengths.collect());
                // The system cannot be left to do this: a control group without a clean page kills
                // the process.
                let old = before.saturating_sub(*lag)..used.saturating_sub(*lag);
                let written = map.write_out(old);
                written.map_err(|source| Error::Scratch { path: path.clone(), source })?;
            }
        }
        Ok(())
    }

    /// Calls `take` with all pieces in order, a piece of every stream at a time. Pieces in mapped
    /// files are copied into memory.
    ///
    /// # Errors
    /// The first error of `take`.
    pub(super) fn each(
        self,
        mut take: impl FnMut(Vec<Buffer>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Memory(kept) => kept.into_iter().try_for_each(take),
            Self::Paged { map, pieces, .. } => {
                let mut rest = map.bytes();
                for lengths in pieces {
                    let mut streams = Vec::with_capacity(lengths.len());
                    for length in lengths {
                        let (piece, after) = rest.split_at(length);
                        streams.push(Buffer::from_slice(piece));
                        rest = after;
                    }
                    take(streams)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        for kind in [
            StorageKind::Memory,
            StorageKind::Paged { folder: folder.path().to_owned(), memory_bytes: 4 },
        ] {
            let mut storage = WorkingSetStorage::new(&kind, 0, 10).unwrap();
            let buffer = |bytes: &[u8]| Buffer::from_slice(bytes);
            storage.keep(vec![buffer(&[1, 2]), buffer(&[3, 4])]).unwrap();
            storage.keep(vec![buffer(&[5, 6, 7]), buffer(&[8, 9, 10])]).unwrap();
            let mut seen: Vec<Vec<u8>> = Vec::new();
            let take = |streams: Vec<Buffer>| {
                seen.push(streams.iter().flat_map(|piece| piece.to_vec()).collect());
                Ok(())
            };
            storage.each(take).unwrap();
            assert_eq!(seen, [vec![1, 2, 3, 4], vec![5, 6, 7, 8, 9, 10]], "{kind:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}
