//! List: every name of the catalogue.

use std::collections::BTreeSet;

use csd_nvme::kv::Key;
use csd_reactor::{Class, spawn};

use super::Error;
use crate::array::Array;
use crate::catalogue::{self, Entry, State};

/// Objects of an array.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Sealed objects by name.
    pub sealed: Vec<Entry>,
    /// Puts that are running or were interrupted, by name.
    pub staged: Vec<Entry>,
}

/// Returns all objects, sorted by name.
///
/// # Errors
/// The error that prevented a majority from answering, or a corrupt entry.
pub async fn list(array: &Array) -> Result<Listed, Error> {
    array.require_readers()?;
    let lists: Vec<_> = array
        .voters()
        .into_iter()
        .map(|drive| spawn(Class::Foreground, async move { catalogue::keys(&drive).await }))
        .collect();
    let (mut keys, mut answered, mut failed) = (BTreeSet::<Key>::new(), 0, None);
    for list in lists {
        match list.await {
            Ok(listed) => {
                keys.extend(listed);
                answered += 1;
            }
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed
        && answered < array.readers()
    {
        return Err(error);
    }
    let mut listed = Listed::default();
    for key in keys {
        let found = catalogue::read(array, &key, "in the list").await?;
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
