//! Damage of the catalogue that readers have met, which fails no command and which users must see.

use super::Array;

impl Array {
    /// Notes damage of the catalogue that a reader has met.
    pub(crate) fn note_damage(&self, words: String) {
        self.damage.borrow_mut().insert(words);
    }

    /// Returns the damage of the catalogue that was met so far, each with what to do about it.
    #[must_use]
    pub fn damage_met(&self) -> Vec<String> {
        self.damage.borrow().iter().cloned().collect()
    }
}
