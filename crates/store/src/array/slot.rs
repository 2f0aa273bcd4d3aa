//! [`DriveSlot`]: a drive's place in an array, whether the drive is up, down or removed.

use std::rc::Rc;

use super::{Drive, DriveIndex, Error};

/// A drive's place in an array: the drive, or why it is down.
#[derive(Clone)]
pub struct DriveSlot {
    /// Name in the array file.
    pub name: String,
    /// Address in the array file.
    pub url: String,
    pub(super) link: Result<Rc<Drive>, String>,
    /// Why its answers about the catalogue do not count, if they do not.
    pub(super) vote: Result<(), String>,
    /// True if its drive has been removed.
    pub(super) is_vacant: bool,
}

/// Returns the drive with this index.
///
/// # Errors
/// [`Error::Down`].
pub(crate) fn drive(slots: &[DriveSlot], index: DriveIndex) -> Result<&Rc<Drive>, Error> {
    let Some(slot) = slots.get(usize::from(index)) else {
        let why = "the array file does not list it".to_owned();
        return Err(Error::Down { drive: format!("#{index}"), url: "?".to_owned(), why });
    };
    slot.up()
}

impl DriveSlot {
    /// Returns the slot of a drive that has been removed.
    pub(super) fn vacant(place: DriveIndex) -> Self {
        let (name, url, link) = (format!("#{place}"), "?".to_owned(), Err("it was removed".into()));
        Self { name, url, link, vote: Ok(()), is_vacant: true }
    }

    /// Returns true if its drive has been removed.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        self.is_vacant
    }

    /// Returns the drive, or the reason why it is down.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn drive(&self) -> Result<&Rc<Drive>, &str> {
        self.link.as_ref().map_err(String::as_str)
    }

    /// Returns the drive.
    ///
    /// # Errors
    /// [`Error::Down`].
    pub fn up(&self) -> Result<&Rc<Drive>, Error> {
        self.link.as_ref().map_err(|why| Error::Down {
            drive: self.name.clone(),
            url: self.url.clone(),
            why: why.clone(),
        })
    }

    /// Returns whether the drive votes, or the reason why it does not.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn vote(&self) -> Result<(), &str> {
        self.vote.as_ref().copied().map_err(String::as_str)
    }
}
