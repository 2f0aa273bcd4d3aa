//! Scrub of the catalogue: every copy of every name, every claim of an epoch or a unit, and every
//! drive's lives and roster.
//!
//! Only what this host reads counts, so all of them cross the wire: a few kilobytes for a name. A
//! damaged one is no answer, and costs redundancy until it is mended. Invariant: nothing is written
//! unless that was asked for.

use csd_nvme::kv::Key;

use super::{Bad, Cause};
use crate::array::membership::{self, RecordKind};
use crate::array::{Array, Drive, DriveIndex};
use crate::catalogue;
use crate::error::{DriveError, Error};
use crate::extent;
use crate::mend_unit::mend_unit;
use crate::object;

/// Findings in the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Number of names, removed ones too.
    pub names: u64,
    /// Number of their copies that were read.
    pub copies: u64,
    /// Number of claims of epochs and units, of lives and of rosters that were read.
    pub records: u64,
    /// Damaged copies and records. [`Bad::object`] is empty for claims, lives and rosters; it is
    /// the key for a name that no copy tells.
    pub bad: Vec<Bad>,
    /// Reasons why something could not be mended, in words.
    pub trouble: Vec<String>,
}

/// Reads the copies of these names, or the whole catalogue, and mends what is damaged if that is
/// asked for. Names of which too few copies are sound are among the bad ones, and in
/// [`Array::damage_met`].
///
/// # Errors
/// When too few drives answer.
pub async fn names(array: &Array, of: &[String], mends: bool) -> Result<Names, Error> {
    let mut look = Look { array, mends, found: Names::default(), known: Vec::new() };
    if of.is_empty() {
        for key in catalogue::keys_of_all(array).await? {
            look.name(&key, "").await?;
        }
        for drive in array.voters() {
            // The others are read although a drive is lost.
            let done = look.claims(&drive).await;
            look.note(done);
            let done = look.units(&drive).await;
            look.note(done);
        }
        let done = look.membership().await;
        look.note(done);
    } else {
        array.require_readers()?;
        for name in of {
            look.name(&catalogue::key(name), name).await?;
        }
    }
    Ok(look.found)
}

struct Look<'a> {
    array: &'a Array,
    mends: bool,
    found: Names,
    /// All names with the epochs of their entries.
    known: Vec<(String, u64)>,
}

impl Look<'_> {
    fn bad(&mut self, object: &str, drive: DriveIndex, cause: Cause) -> usize {
        let drive = Some(self.array.slots()[drive].name.clone());
        let (object, stripe, piece, page, repaired) = (object.to_owned(), None, None, None, false);
        self.found.bad.push(Bad { object, stripe, piece, page, drive, cause, repaired });
        self.found.bad.len() - 1
    }

    fn note(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            self.found.trouble.push(error.to_string());
        }
    }

    /// Notes whether a bad one was mended. The others go on if one was not.
    fn mended(&mut self, at: usize, mended: Result<bool, Error>) {
        match mended {
            Ok(is_mended) => self.found.bad[at].repaired = is_mended,
            Err(error) => self.found.trouble.push(error.to_string()),
        }
    }

    async fn name(&mut self, key: &Key, given: &str) -> Result<(), Error> {
        let (found, failed) = catalogue::look(self.array, key).await;
        if let Some(error) = failed.filter(|_| !found.is_enough(self.array)) {
            return Err(error);
        }
        let held = found.answers.iter().filter(|(_, entry)| entry.is_some()).count();
        self.found.names += u64::from(held + found.damaged.len() > 0);
        self.found.copies += (held + found.damaged.len()) as u64;
        if let Some(newest) = found.newest() {
            self.known.push((newest.name.clone(), newest.epoch));
        }
        if found.damaged.is_empty() {
            return Ok(());
        }
        let given = Some(given).filter(|given| !given.is_empty());
        let name = found.name().or(given);
        let name = name.map_or_else(|| catalogue::key_in_words(key), str::to_owned);
        let first = self.found.bad.len();
        for copy in &found.damaged {
            self.bad(&name, copy.drive, Cause::Name);
        }
        if !found.is_enough(self.array) {
            self.array.note_damage(found.too_few(self.array, key, &name).to_string());
        } else if self.mends {
            let mended = catalogue::mend(self.array, key, &found).await;
            let mended = mended.map_err(|error| self.found.trouble.push(error.to_string()));
            let mended = mended.unwrap_or_default();
            for (at, copy) in found.damaged.iter().enumerate() {
                self.found.bad[first + at].repaired = mended.contains(&copy.drive);
                if mended.contains(&copy.drive) {
                    self.array.forget_damaged_copy(copy.drive, &name);
                }
            }
        }
        Ok(())
    }

    /// Reads a drive's claims of epochs.
    async fn claims(&mut self, drive: &Drive) -> Result<(), Error> {
        for key in catalogue::claim_keys(drive).await? {
            self.found.records += 1;
            if !is_damaged(catalogue::read_claim(drive, &key).await)? {
                continue;
            }
            let at = self.bad("", drive.index, Cause::Claim);
            if self.mends {
                let mended = catalogue::mend_claim(self.array, drive, &key, &self.known).await;
                self.mended(at, mended);
            }
        }
        Ok(())
    }

    /// Reads a drive's claims of units of blocks.
    async fn units(&mut self, drive: &Drive) -> Result<(), Error> {
        for unit in extent::claimed_units(drive).await? {
            self.found.records += 1;
            if !is_damaged(extent::owner(drive, unit).await)? {
                continue;
            }
            let at = self.bad("", drive.index, Cause::Claim);
            if self.mends {
                let listed = object::list(self.array).await?;
                let mended = mend_unit(drive, unit, &listed).await;
                self.mended(at, mended);
            }
        }
        Ok(())
    }

    /// Reads the lives and the rosters. A drive whose lives are damaged has no vote, and a rebuild
    /// mends them.
    async fn membership(&mut self) -> Result<(), Error> {
        let (count, damaged) = membership::damaged(self.array).await?;
        self.found.records += count;
        let first = self.found.bad.len();
        for (drive, kind) in &damaged {
            let cause = match kind {
                RecordKind::Lives => Cause::Lives,
                RecordKind::Roster => Cause::Roster,
            };
            self.bad("", *drive, cause);
        }
        if damaged.is_empty() || !self.mends {
            return Ok(());
        }
        if let Err(error) = membership::mend(self.array).await {
            self.found.trouble.push(error.to_string());
        }
        let (_, still) = membership::damaged(self.array).await?;
        for (at, record) in damaged.iter().enumerate() {
            self.found.bad[first + at].repaired = !still.contains(record);
        }
        Ok(())
    }
}

/// Returns true if a read has found a damaged record.
fn is_damaged<T>(read: Result<T, Error>) -> Result<bool, Error> {
    match read {
        Ok(_) => Ok(false),
        Err(Error::Drive(DriveError::Corrupt { .. })) => Ok(true),
        Err(error) => Err(error),
    }
}
