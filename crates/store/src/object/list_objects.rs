//! List: every name of the catalogue.

use super::Error;
use crate::array::Array;
use crate::catalogue::{self, Entry, State};
use crate::error::NameError;

/// Objects of an array.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Sealed objects by name.
    pub sealed: Vec<Entry>,
    /// Puts that are running or were interrupted, by name.
    pub staged: Vec<Entry>,
    /// Number of names of which too few copies are sound to know what they stand for.
    pub damaged: usize,
}

/// Returns all objects, sorted by name. Names of which too few copies are sound are noted in the
/// array ([`Array::damage_met`]).
///
/// # Errors
/// The error that prevented a majority from answering.
pub async fn list(array: &Array) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    for key in catalogue::keys_of_all(array).await? {
        let found = match catalogue::read(array, &key, "in the list").await {
            Err(error @ Error::Name(NameError::Damaged { .. })) => {
                array.note_damage(error.to_string());
                listed.damaged += 1;
                continue;
            }
            found => found?,
        };
        match found.newest() {
            Some(entry) if entry.state == State::Sealed => listed.sealed.push(entry.clone()),
            Some(entry) if entry.state == State::Staged => listed.staged.push(entry.clone()),
            _ => {}
        }
    }
    listed.sealed.sort_by(|a, b| a.name.cmp(&b.name));
    listed.staged.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}
