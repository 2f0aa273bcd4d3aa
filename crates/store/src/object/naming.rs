//! [`Naming`]: a new object under a free name, or in place of the object that has the name.
//!
//! A replacement is announced in the entry of the former object, which stays readable until the
//! entry of the new one is written over it in one change ([`super::change`]); then the former
//! pieces are deleted. Writes no chunks. Invariant: from the announcement on, the name stands for
//! one whole object at every moment, the former one or the new one.

use super::change::Change;
use super::draft::{Draft, Shape, Stored, stage, thinned};
use super::{Error, check_name, parity, remove};
use crate::array::Array;
use crate::catalogue::{self, Entry, Ground, State};

/// An object that is not sealed yet.
pub(super) enum Naming {
    /// Its name is free.
    Free(Box<Draft>),
    /// Another object has its name.
    Taken(Box<Taken>),
}

/// An object that will replace another one.
pub(super) struct Taken {
    before: Entry,
    ground: Ground,
    entry: Entry,
    change: Option<Change>,
    warnings: Vec<String>,
}

impl Naming {
    /// Returns the object, without writing anything yet.
    ///
    /// # Errors
    /// [`NameError::Exists`](crate::error::NameError::Exists) when the name is taken, unless the
    /// object `replaces` the one that has it.
    pub(super) async fn begin(
        array: &Array,
        name: &str,
        shape: Shape,
        replaces: bool,
    ) -> Result<Self, Error> {
        if replaces {
            check_name(name)?;
            let ground = catalogue::settle(array, name).await?;
            let sealed = ground.found.newest().filter(|entry| entry.state == State::Sealed);
            if let Some(before) = sealed.cloned() {
                let (entry, warnings) = (stage(name, shape), array.down());
                let taken = Taken { before, ground, entry, change: None, warnings };
                return Ok(Self::Taken(Box::new(taken)));
            }
        }
        Ok(Self::Free(Box::new(Draft::begin(array, name, shape).await?)))
    }

    /// Returns the entry that is sealed at the end.
    pub(super) fn entry(&mut self) -> &mut Entry {
        match self {
            Self::Free(draft) => &mut draft.entry,
            Self::Taken(taken) => &mut taken.entry,
        }
    }

    /// Stages or announces the object, and deletes the remains of what was interrupted.
    ///
    /// # Errors
    /// [`NameError::Overtaken`](crate::error::NameError::Overtaken) when another writer was first.
    pub(super) async fn write(&mut self, array: &Array) -> Result<(), Error> {
        match self {
            Self::Free(draft) => draft.write(array).await,
            Self::Taken(taken) => taken.announce(array).await,
        }
    }

    /// Seals the object; all its chunks must be acknowledged.
    ///
    /// # Errors
    /// As [`Draft::seal`].
    pub(super) async fn seal(self, array: &Array) -> Result<Stored, Error> {
        match self {
            Self::Free(draft) => draft.seal(array).await,
            Self::Taken(taken) => taken.seal(array).await,
        }
    }

    /// Abandons the object: deletes its chunks, as far as drives can be reached.
    pub(super) async fn abandon(&self, array: &Array) {
        match self {
            Self::Free(draft) => draft.abandon(array).await,
            Self::Taken(taken) => taken.abandon(array).await,
        }
    }
}

impl Taken {
    async fn announce(&mut self, array: &Array) -> Result<(), Error> {
        let mut announced = self.before.clone();
        announced.protection = announced.protection.filter(|kept| kept.parity.is_some());
        // The announcing entry must give the names of the new parity, for a reclaim to know them.
        match (&announced.protection, &mut self.entry.protection) {
            (Some(kept), Some(new)) => new.epoch = kept.epoch,
            (None, Some(new)) => {
                announced.protection = parity::plan(array, &announced.members, Some(new.scheme))?;
            }
            (_, None) => {}
        }
        announced.copy = Some(self.entry.id);
        let change = Change::begin(array, (self.before.clone(), &self.ground), &mut announced);
        self.change = Some(change.await?);
        (self.entry.epoch, self.entry.writer) = (announced.epoch, announced.writer);
        Ok(())
    }

    async fn seal(mut self, array: &Array) -> Result<Stored, Error> {
        let change = self.change.as_mut().expect("it was announced");
        self.warnings.append(&mut change.warnings);
        let mut sealed = Entry { state: State::Sealed, ..self.entry.clone() };
        match change.seal(array, &mut sealed).await {
            Ok(more) => self.warnings.extend(more),
            Err(error) => {
                self.abandon(array).await;
                return Err(error);
            }
        }
        if let Err(error) = remove::sweep_after(array, &self.before).await {
            let what = "former chunks are not all deleted, `csd array reclaim` does the rest";
            self.warnings.push(format!("{what}: {error}"));
        }
        self.warnings.extend(thinned(&sealed));
        self.warnings.dedup();
        Ok(Stored { entry: sealed, warnings: self.warnings })
    }

    async fn abandon(&self, array: &Array) {
        if let Some(change) = &self.change {
            // The user must see the first error, not one of the clean-up.
            let _cleaned = change.withdraw(array).await;
        }
    }
}
