//! Objects and folders directly below a folder of names, as the drives that vote tell them.
//!
//! Each drive lists the complete objects in the folder with their entries. Where all of them tell
//! the same, that is the answer, as if each had been asked about the name. Where they differ, as
//! after a drive was away or while a writer is at work, the name is read from all of them
//! ([`super::read`]). So the cost is that of what is there, and the answer that of reading every
//! name. Writes nothing.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_nvme::vendor::folders::{Answered, Child, Request, split_name};

use super::on_all::on_all;
use super::{Entry, State, entry};
use crate::array::{Array, Drive};
use crate::error::{DriveError, Error, NameError};
use crate::in_flight::in_flight;

/// Size of an answer, bytes.
const ANSWER_BYTES: u32 = 1 << 20;
/// Size of the first answer if only a few children are wanted, bytes: about 16.
const FEW_BYTES: u32 = 4 << 10;

/// Children of a folder.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// Complete objects in the folder.
    pub objects: Vec<Entry>,
    /// Paths of the folders in it.
    pub folders: BTreeSet<String>,
    /// Keys of names anywhere whose entries a drive could not read.
    pub unreadable: BTreeSet<Key>,
    /// True if there may be others, because only a few were wanted.
    pub has_more: bool,
    /// Number of names of which too few copies are sound. They are noted in the array
    /// ([`Array::damage_met`]).
    pub damaged: usize,
}

/// Children of a folder, as one drive tells them.
#[derive(Default)]
struct Told {
    /// Entries; `None` where the drive gave only the key.
    entries: HashMap<Key, Option<Box<[u8]>>>,
    folders: BTreeSet<String>,
    unreadable: BTreeSet<Key>,
    has_more: bool,
}

/// Returns the children of the folder `path` whose names go on with `beginning`, or a `few` of
/// them. `None` if a drive does not know the command, or has too many names for it.
///
/// # Errors
/// The error that prevented as many drives from answering as readers need.
pub async fn below(
    array: &Array,
    path: &str,
    beginning: &str,
    few: bool,
) -> Result<Option<Below>, Error> {
    array.require_readers()?;
    let request = Request::new(path, beginning, if few { FEW_BYTES } else { ANSWER_BYTES });
    let ask = move |drive: Rc<Drive>| async move { ask(&drive, request, few).await };
    let (mut told, mut failed) = (Vec::new(), None);
    for answer in on_all(array, ask) {
        match answer.await {
            (_, Ok(Some(answer))) => told.push(answer),
            (_, Ok(None)) => return Ok(None),
            (_, Err(error)) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if told.len() < array.readers() => Err(error),
        _ => merge(array, path, beginning, told).await.map(Some),
    }
}

/// Asks one drive; `None` if it cannot answer.
async fn ask(drive: &Drive, mut request: Request, few: bool) -> Result<Option<Told>, Error> {
    let mut told = Told::default();
    loop {
        let data = match drive.objects.list_folder(&request).await {
            Ok(data) => data,
            Err(error)
                if matches!(
                    error.status(),
                    Some(Status::INVALID_OPCODE | Status::CAPACITY_EXCEEDED)
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(Error::command(drive, error)),
        };
        let answered = Answered::parse(&data).ok_or_else(|| malformed(drive))?;
        for (key, child) in answered.children {
            match (request.folder, child) {
                (None, _) => drop(told.unreadable.insert(key)),
                (_, Child::Folder(component)) => drop(told.folders.insert(component.to_owned())),
                (_, Child::Object(entry)) => drop(told.entries.insert(key, Some(entry.into()))),
                (_, Child::Key) => drop(told.entries.insert(key, None)),
            }
        }
        match answered.next {
            Some(_) if few && request.folder.is_some() => told.has_more = true,
            Some(next) if next >= request.from => {
                let Some(from) = next.checked_add(1) else { return Ok(Some(told)) };
                request.from = from;
                continue;
            }
            // It would begin again.
            Some(_) => return Err(malformed(drive)),
            None => {}
        }
        if request.folder.is_none() || answered.unreadable == 0 {
            return Ok(Some(told));
        }
        request = Request::unreadable(ANSWER_BYTES);
    }
}

fn malformed(drive: &Drive) -> Error {
    let why = "its answer to List Folder is malformed".to_owned();
    let (drive, object) = (drive.name.clone(), "of a folder".to_owned());
    Error::Drive(DriveError::Corrupt { drive, object, why })
}

async fn merge(
    array: &Array,
    path: &str,
    beginning: &str,
    mut told: Vec<Told>,
) -> Result<Below, Error> {
    let mut below = Below::default();
    for one in &mut told {
        let named = std::mem::take(&mut one.folders).into_iter();
        let named = named.filter(|component| component.starts_with(beginning));
        below.folders.extend(named.map(|component| format!("{path}{component}/")));
        below.unreadable.append(&mut one.unreadable);
        below.has_more |= one.has_more;
    }
    let is_here = |entry: &Entry| {
        let (folder, rest) = split_name(&entry.name);
        folder == path && rest.starts_with(beginning) && entry.state == State::Sealed
    };
    let (agreed, doubtful) = compare(array, told);
    below.objects.extend(agreed.into_iter().filter(is_here));
    let found = read_each(array, doubtful, &mut below.damaged).await?;
    below.objects.extend(found.into_iter().filter(is_here));
    Ok(below)
}

/// Returns the entries that enough drives tell alike, and the keys of the others.
fn compare(array: &Array, mut told: Vec<Told>) -> (Vec<Entry>, BTreeSet<Key>) {
    let (mut agreed, mut doubtful) = (Vec::new(), BTreeSet::new());
    let answers = told.len();
    let first = told.pop().map(|first| first.entries).unwrap_or_default();
    for other in &told {
        doubtful.extend(other.entries.keys().filter(|key| !first.contains_key(*key)));
    }
    for (key, bytes) in first {
        let is_alike = told.iter().all(|other| other.entries.get(&key) == Some(&bytes));
        let bytes = bytes.filter(|_| is_alike);
        let entry = bytes.and_then(|bytes| Entry::parse(&bytes).ok());
        let is_enough = |entry: &Entry| {
            entry::key(&entry.name) == key && answers >= array.readers_of(entry.losses())
        };
        match entry.filter(is_enough) {
            Some(entry) => agreed.push(entry),
            None => drop(doubtful.insert(key)),
        }
    }
    (agreed, doubtful)
}

/// Reads the newest entries under these keys. Counts names of which too few copies are sound, and
/// notes them in the array.
///
/// # Errors
/// As [`super::read`], but for these names.
pub async fn read_each(
    array: &Array,
    keys: impl IntoIterator<Item = Key>,
    damaged: &mut usize,
) -> Result<Vec<Entry>, Error> {
    let (mut keys, mut entries, mut failed) = (keys.into_iter(), Vec::new(), None);
    let one = |key: Key| (1, async move { super::read(array, &key, "in the list").await });
    in_flight(
        || keys.next().map(one),
        |found| match found {
            Ok(found) => entries.extend(found.newest().cloned()),
            Err(error @ Error::Name(NameError::Damaged { .. })) => {
                array.note_damage(error.to_string());
                *damaged += 1;
            }
            Err(error) => failed = Some(error),
        },
    )
    .await;
    failed.map_or(Ok(entries), Err)
}
