//! An object being written: its staged entry, and its sealing or abandonment.
//!
//! Writes no chunks. Invariant: a put does not stage over an existing object.

use csd_reactor::{random_bytes, unix_ms};

use super::{Error, check_name, remove};
use crate::array::{Array, DriveIndex};
use crate::catalogue::{self, Entry, Ground, ObjectId, On, Placement, Protection, State};
use crate::error::{DriveError, NameError};
use crate::steady::steadily;

/// Properties of an object that are known before its first byte.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Type of its elements.
    pub element: csd_kernels::ElementType,
    /// Placement: as values or on blocks.
    pub on: On,
    /// Length of a chunk, bytes.
    pub chunk_bytes: u32,
    /// Member of chunk 0; `None` draws a random one, so that small objects begin on different
    /// drives.
    pub offset: Option<u16>,
    /// Drives that hold its chunks, by their numbers in the array.
    pub members: Vec<DriveIndex>,
    /// True if one drive holds all of it.
    pub whole: bool,
    /// Protection, without parity.
    pub protection: Option<Protection>,
    /// Time at which its content was put, milliseconds since 1970; `None` if
    /// that is this put.
    pub stored_unix_ms: Option<u64>,
}

/// Result of a put.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The sealed entry.
    pub entry: Entry,
    /// Drives that are down or failed, in words; a majority holds the sealed entry nevertheless.
    pub warnings: Vec<String>,
}

/// An object that is not sealed yet.
pub struct Draft {
    /// The entry that is staged, and sealed at the end.
    pub entry: Entry,
    ground: Ground,
    warnings: Vec<String>,
}

impl Draft {
    /// Returns a draft, without writing anything yet.
    ///
    /// # Errors
    /// [`NameError::Exists`] when the name is taken.
    pub async fn begin(array: &Array, name: &str, shape: Shape) -> Result<Self, Error> {
        check_name(name)?;
        let ground = ground(array, name).await?;
        Ok(Self { entry: stage(name, shape), ground, warnings: array.down() })
    }

    /// Writes the staged entry, and deletes the remains of an interrupted put. Overtakes a put that
    /// is still running, which learns of it when it seals.
    ///
    /// # Errors
    /// [`NameError::Overtaken`] when another writer was first.
    pub async fn write(&mut self, array: &Array) -> Result<(), Error> {
        let (before, mut is_first) = (self.ground.found.newest().cloned(), true);
        let written = steadily(array, async || {
            if !std::mem::take(&mut is_first) {
                self.ground = ground(array, &self.entry.name).await?;
            }
            catalogue::write(array, &mut self.entry, &self.ground).await
        });
        self.warnings.extend(written.await?);
        let swept = match before.filter(|before| !remove::is_spent(before)) {
            Some(before) => remove::sweep_after(array, &before).await,
            None => Ok(()),
        };
        if swept.is_err() {
            self.abandon(array).await;
        }
        swept
    }

    /// Seals the object, which makes it visible; all its chunks must be acknowledged.
    ///
    /// # Errors
    /// [`NameError::Overtaken`] when a later writer won. When drives failed, the object
    /// may be sealed nevertheless; the next put or remove of its name resolves it.
    pub async fn seal(mut self, array: &Array) -> Result<Stored, Error> {
        let mut sealed = self.entry.clone();
        sealed.state = State::Sealed;
        match self.write_sealed(array, &mut sealed).await {
            Ok(warnings) => {
                self.warnings.extend(warnings);
                self.warnings.extend(thinned(&sealed));
                self.warnings.dedup();
                Ok(Stored { entry: sealed, warnings: self.warnings })
            }
            Err(error) => {
                // Only after these errors is it certain that the object is not sealed and will not
                // be.
                if matches!(
                    error,
                    Error::Name(NameError::Overtaken { .. })
                        | Error::Drive(DriveError::Full { .. })
                ) {
                    self.abandon(array).await;
                }
                Err(error)
            }
        }
    }

    async fn write_sealed(&self, array: &Array, sealed: &mut Entry) -> Result<Vec<String>, Error> {
        // All drives that are up shall hold it.
        array.renew().await;
        catalogue::write_after(array, sealed, &self.entry).await
    }

    /// Abandons the object: deletes its chunks, as far as drives can be reached.
    pub async fn abandon(&self, array: &Array) {
        let _cleaned = remove::abandon(array, &self.entry).await;
    }
}

/// Returns the state of a name that a new object may have.
async fn ground(array: &Array, name: &str) -> Result<Ground, Error> {
    let ground = catalogue::settle(array, name).await?;
    match ground.found.newest() {
        Some(entry) if entry.state == State::Sealed => {
            Err(Error::Name(NameError::Exists { name: name.to_owned() }))
        }
        _ => Ok(ground),
    }
}

/// Returns a warning if pieces of a protected object are missing.
pub(super) fn thinned(entry: &Entry) -> Option<String> {
    let missing = entry.protected()?.1.missing.count();
    let words = if missing == 1 { "piece is" } else { "pieces are" };
    (missing > 0).then(|| format!("object {:?}: {missing} {words} missing", entry.name))
}

/// Returns the entry of an object that begins.
pub(super) fn stage(name: &str, shape: Shape) -> Entry {
    let (mut id, mut writer) = ([0; 12], [0; 16]);
    random_bytes(&mut id);
    random_bytes(&mut writer);
    let members = u16::try_from(shape.members.len()).expect("an array has at most 1024 drives");
    let drawn = u16::from_le_bytes([id[10], id[11]]) % members.max(1);
    let extents = shape.members.iter().map(|_| catalogue::Extents::new()).collect();
    Entry {
        name: name.to_owned(),
        id: ObjectId::from_random(id),
        writer,
        epoch: 0, // given when it is written
        state: State::Staged,
        element: shape.element,
        shape: Vec::new(),
        chunk_bytes: shape.chunk_bytes,
        bytes: 0,
        offset: shape.offset.unwrap_or(drawn),
        whole: shape.whole,
        parts: None,
        members: shape.members,
        placement: match shape.on {
            On::Kv => Placement::Kv,
            On::Block => Placement::Block(extents),
        },
        digest: [0; 32],
        sums: Vec::new(),
        survives: 0, // set when it is written
        protection: shape.protection,
        copy: None,
        stored_unix_ms: shape.stored_unix_ms.unwrap_or_else(unix_ms),
    }
}
