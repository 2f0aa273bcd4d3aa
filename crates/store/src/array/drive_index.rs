//! [`DriveIndex`]: the number of a drive in its array.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Most drives of an array.
pub const DRIVES_MAX: usize = 1024;

/// Number of a drive in its array: its place in the array file, from 0. An object's entry names its
/// drives by it. The position of a drive among the members of one object is another number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DriveIndex(u16);

impl DriveIndex {
    /// Returns the drive at this place.
    ///
    /// # Panics
    /// If `place` is not below 2^16, which an array excludes.
    #[must_use]
    pub fn new(place: usize) -> Self {
        Self(u16::try_from(place).expect("an array has at most 1024 drives"))
    }

    /// Returns items that stand in the order of the array's places, each with its drive.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn each<I: IntoIterator>(items: I) -> impl Iterator<Item = (Self, I::Item)> {
        items.into_iter().enumerate().map(|(place, item)| (Self::new(place), item))
    }

    /// Returns the number as entries and records hold it.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }
}

impl From<u16> for DriveIndex {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

impl From<DriveIndex> for usize {
    fn from(index: DriveIndex) -> Self {
        index.0.into()
    }
}

impl fmt::Display for DriveIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Index<DriveIndex> for [T] {
    type Output = T;

    fn index(&self, index: DriveIndex) -> &T {
        &self[usize::from(index)]
    }
}

impl<T> Index<DriveIndex> for Vec<T> {
    type Output = T;

    fn index(&self, index: DriveIndex) -> &T {
        &self[usize::from(index)]
    }
}

impl<T> IndexMut<DriveIndex> for Vec<T> {
    fn index_mut(&mut self, index: DriveIndex) -> &mut T {
        &mut self[usize::from(index)]
    }
}
