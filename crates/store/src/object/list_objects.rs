//! List: objects of the catalogue, all of them or those of a folder.
//!
//! A list of all reads every key of every drive. A list by prefix asks for the folders below it
//! ([`catalogue::below`]), and costs what it returns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use csd_nvme::kv::Key;
use csd_nvme::vendor::folders::split_name;

use super::Error;
use crate::array::Array;
use crate::catalogue::{self, Below, Entry, State};
use crate::in_flight::{in_flight, share};
use crate::steady::steadily;

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
    let keys = catalogue::keys_of_all(array).await?;
    for entry in catalogue::read_each(array, keys, &mut listed.damaged).await? {
        match entry.state {
            State::Sealed => listed.sealed.push(entry),
            State::Staged => listed.staged.push(entry),
            State::Deleted => {}
        }
    }
    listed.sealed.sort_by(|a, b| a.name.cmp(&b.name));
    listed.staged.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}

/// Returns the sealed objects whose names begin with `prefix`, sorted by name, and the number of
/// names of which too few copies are sound. These are noted in the array ([`Array::damage_met`]).
///
/// # Errors
/// The error that prevented as many drives from answering as readers need.
pub async fn list_under(array: &Array, prefix: &str) -> Result<(Vec<Entry>, usize), Error> {
    steadily(array, async || under(array, prefix).await).await
}

async fn under(array: &Array, prefix: &str) -> Result<(Vec<Entry>, usize), Error> {
    let (path, beginning) = split_name(prefix);
    let waiting = RefCell::new(vec![(path.to_owned(), beginning.to_owned())]);
    let (mut entries, mut unreadable, mut damaged) = (BTreeMap::new(), BTreeSet::new(), 0);
    let (mut cannot, mut failed) = (false, None);
    let one = |(path, beginning): (String, String)| {
        (share(u64::MAX), async move { catalogue::below(array, &path, &beginning, false).await })
    };
    in_flight(
        || waiting.borrow_mut().pop().map(one),
        |below| match below {
            Ok(Some(mut below)) => {
                let folders = below.folders.into_iter().map(|path| (path, String::new()));
                waiting.borrow_mut().extend(folders);
                unreadable.append(&mut below.unreadable);
                damaged += below.damaged;
                entries.extend(below.objects.into_iter().map(|entry| (entry.name.clone(), entry)));
            }
            Ok(None) => cannot = true,
            Err(error) => failed = Some(error),
        },
    )
    .await;
    if let Some(error) = failed {
        return Err(error);
    }
    if cannot {
        return by_keys(array, prefix).await;
    }
    for entry in read_unreadable(array, unreadable, &mut damaged).await? {
        if entry.name.starts_with(prefix) {
            entries.insert(entry.name.clone(), entry);
        }
    }
    Ok((entries.into_values().collect(), damaged))
}

/// Does the same from all entries, for drives that cannot answer.
async fn by_keys(array: &Array, prefix: &str) -> Result<(Vec<Entry>, usize), Error> {
    let Listed { mut sealed, damaged, .. } = list(array).await?;
    sealed.retain(|entry| entry.name.starts_with(prefix));
    Ok((sealed, damaged))
}

/// Reads the names that a drive could not read: another one may.
async fn read_unreadable(
    array: &Array,
    keys: BTreeSet<Key>,
    damaged: &mut usize,
) -> Result<Vec<Entry>, Error> {
    let mut entries = catalogue::read_each(array, keys, damaged).await?;
    entries.retain(|entry| entry.state == State::Sealed);
    Ok(entries)
}

/// Objects and folders in a folder.
#[derive(Clone, Debug, Default)]
pub struct Children {
    /// Sealed objects, by name.
    pub objects: BTreeMap<String, Entry>,
    /// Paths of folders, which end in `/`.
    pub folders: BTreeSet<String>,
    /// Number of names of which too few copies are sound.
    pub damaged: usize,
}

impl Children {
    /// Adds objects somewhere below the folder `path`.
    fn add(&mut self, path: &str, entries: Vec<Entry>) {
        for entry in entries {
            let Some(rest) = entry.name.strip_prefix(path) else { continue };
            match rest.find('/') {
                Some(at) => drop(self.folders.insert(entry.name[..=path.len() + at].to_owned())),
                None => drop(self.objects.insert(entry.name.clone(), entry)),
            }
        }
    }
}

/// Returns what lies in a folder; its `path` is empty or ends in `/`.
///
/// # Errors
/// As [`list_under`].
pub async fn children(array: &Array, path: &str) -> Result<Children, Error> {
    steadily(array, async || children_of(array, path).await).await
}

async fn children_of(array: &Array, path: &str) -> Result<Children, Error> {
    let mut children = Children::default();
    match catalogue::below(array, path, "", false).await? {
        Some(Below { objects, folders, unreadable, damaged, .. }) => {
            (children.folders, children.damaged) = (folders, damaged);
            children.add(path, objects);
            let others = read_unreadable(array, unreadable, &mut children.damaged).await?;
            children.add(path, others);
        }
        None => {
            let (entries, damaged) = by_keys(array, path).await?;
            children.damaged = damaged;
            children.add(path, entries);
        }
    }
    Ok(children)
}

/// Returns true if an object lies below the folder `path`, which ends in `/`.
///
/// # Errors
/// As [`list_under`].
pub async fn is_folder(array: &Array, path: &str) -> Result<bool, Error> {
    steadily(array, async || has_object(array, path).await).await
}

async fn has_object(array: &Array, path: &str) -> Result<bool, Error> {
    let Some(few) = catalogue::below(array, path, "", true).await? else {
        return Ok(!by_keys(array, path).await?.0.is_empty());
    };
    if !few.objects.is_empty() {
        return Ok(true);
    }
    for folder in &few.folders {
        if Box::pin(has_object(array, folder)).await? {
            return Ok(true);
        }
    }
    // Few are left to be found: what the drives told first was none.
    match few.has_more || !few.unreadable.is_empty() {
        true => Ok(!under(array, path).await?.0.is_empty()),
        false => Ok(false),
    }
}
