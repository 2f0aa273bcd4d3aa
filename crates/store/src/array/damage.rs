//! Damage of the catalogue that readers have met, which fails no command and which users must see.

use super::{Array, DriveIndex};

impl Array {
    /// Notes damage of the catalogue that a reader has met.
    pub(crate) fn note_damage(&self, words: String) {
        self.damage.borrow_mut().insert(words);
    }

    /// Notes that a drive's copy of a name is damaged.
    pub(crate) fn note_damaged_copy(&self, drive: DriveIndex, name: &str) {
        self.note_damage(self.damaged_copy(drive, name));
    }

    /// Takes that back: the copy was mended.
    pub(crate) fn forget_damaged_copy(&self, drive: DriveIndex, name: &str) {
        self.damage.borrow_mut().remove(&self.damaged_copy(drive, name));
    }

    fn damaged_copy(&self, drive: DriveIndex, name: &str) -> String {
        let drive = &self.slots()[drive].name;
        format!("drive {drive}: its copy of name {name:?} is damaged: `csd repair` mends it")
    }

    /// Returns the damage of the catalogue that was met so far, each with what to do about it.
    #[must_use]
    pub fn damage_met(&self) -> Vec<String> {
        self.damage.borrow().iter().cloned().collect()
    }
}
