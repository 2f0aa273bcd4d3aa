//! The work of `csd sync`: pairs of a file and an object, compared, and sent if they differ.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::in_flight::{in_flight, share};
use csd_store::layout::Scheme;
use csd_store::object::{self, Progress};

use super::compare::is_same;
use super::download::{Downloads, off_core, path_of};
use super::upload::Uploads;
use super::walk::LocalFile;
use crate::cli;
use crate::escape::escape;
use crate::progress::Above;
use crate::report::{Failure, print};
use crate::tally::Tally;

/// Side that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToObjects,
    ToFiles,
}

/// A file and an object of the same name.
pub(super) struct Pair {
    /// Name without the prefix.
    name: String,
    path: String,
    /// Size of the file, if it is known to be there.
    file: Option<u64>,
    entry: Option<Entry>,
}

impl Pair {
    /// Returns the files, each with its object.
    pub(super) fn of_files(files: Vec<LocalFile>, entries: Vec<Entry>, prefix: &str) -> Vec<Self> {
        let named = entries.into_iter().map(|entry| (entry.name.clone(), entry));
        let mut entries: BTreeMap<String, Entry> = named.collect();
        let pair = |file: LocalFile| Self {
            entry: entries.remove(&format!("{prefix}{}", file.name)),
            name: file.name,
            path: file.path,
            file: Some(file.bytes),
        };
        files.into_iter().map(pair).collect()
    }

    /// Returns the objects, each with the path of its file, and those whose names can be no path.
    pub(super) fn of_objects(
        entries: Vec<Entry>,
        folder: &str,
        prefix: &str,
    ) -> (Vec<Self>, Vec<(String, &'static str)>) {
        let (mut pairs, mut refused) = (Vec::new(), Vec::new());
        for entry in entries {
            let name = entry.name[prefix.len()..].to_owned();
            match path_of(folder, &name) {
                Ok(path) => {
                    let path = path.display().to_string();
                    pairs.push(Self { name, path, file: None, entry: Some(entry) });
                }
                Err(why) => refused.push((entry.name, why)),
            }
        }
        (pairs, refused)
    }

    /// Returns the bytes that are compared or sent.
    pub(super) fn bytes(&self) -> u64 {
        self.file.or(self.entry.as_ref().map(|entry| entry.bytes)).unwrap_or_default()
    }
}

/// An object or a file to delete, by its name without the prefix.
pub(super) enum Extra {
    Object(String, Box<Entry>),
    File(LocalFile),
}

impl Extra {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Object(name, _) => name,
            Self::File(file) => &file.name,
        }
    }
}

/// Names of what was changed.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) new: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) deleted: Vec<String>,
    pub(super) equal: u64,
}

/// Outcome of a pair.
enum State {
    New,
    Changed,
    Equal,
}

/// A sync that is under way.
pub(super) struct Work {
    pub(super) direction: Direction,
    pub(super) prefix: String,
    /// Code of new objects.
    pub(super) protect: Option<Scheme>,
    pub(super) dry_run: bool,
    /// True to print each change.
    pub(super) prints: bool,
    /// Set by a signal.
    pub(super) asked: Arc<AtomicBool>,
    pub(super) progress: Progress,
    pub(super) above: Above,
}

impl Work {
    /// Compares and sends all pairs, then deletes these.
    pub(super) async fn run(
        &self,
        array: &Array,
        pairs: Vec<Pair>,
        deleted: Vec<Extra>,
        mut tally: Tally,
    ) -> (Done, Tally) {
        let (mut done, mut waiting) = (Done::default(), pairs.into_iter());
        let one = |mut pair: Pair| {
            let share = share(pair.bytes());
            let send = async move {
                let sent = self.one(array, &mut pair).await;
                (sent, pair.name)
            };
            (share, send)
        };
        let next = || if self.is_asked() { None } else { waiting.next().map(one) };
        in_flight(next, |(sent, name)| match sent {
            Ok((state, warnings)) => {
                tally.done();
                tally.warn(warnings);
                match state {
                    State::Equal => done.equal += 1,
                    State::New => self.note("new", name, &mut done.new),
                    State::Changed => self.note("changed", name, &mut done.changed),
                }
            }
            Err(_) if self.is_asked() => tally.leave(&name),
            Err(failure) => tally.fail(&name, failure),
        })
        .await;
        waiting.for_each(|pair| tally.leave(&pair.name));
        for list in [&mut done.new, &mut done.changed] {
            list.sort();
        }
        for extra in deleted {
            let name = extra.name().to_owned();
            if self.is_asked() {
                tally.leave(&name);
                continue;
            }
            match self.delete(array, &extra).await {
                Ok(warnings) => {
                    tally.done();
                    tally.warn(warnings);
                    self.note("deleted", name, &mut done.deleted);
                }
                Err(failure) => tally.fail(&name, failure),
            }
        }
        (done, tally)
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    fn note(&self, what: &str, name: String, list: &mut Vec<String>) {
        if self.prints {
            self.above.print(|| print(&format!("{what}: {}\n", escape(&name))));
        }
        list.push(name);
    }

    /// Compares a pair, and sends it if it differs. Returns warnings, too.
    async fn one(&self, array: &Array, pair: &mut Pair) -> Result<(State, Vec<String>), Failure> {
        if pair.file.is_none() {
            pair.file = size_of(&pair.path).await?;
        }
        let state = match (pair.file, &pair.entry) {
            (Some(bytes), Some(entry)) => {
                let file = (&pair.path[..], bytes);
                match is_same(array, entry, file, &self.progress, &self.asked).await? {
                    true => State::Equal,
                    false => State::Changed,
                }
            }
            _ => State::New,
        };
        if self.dry_run || matches!(state, State::Equal) {
            return Ok((state, Vec::new()));
        }
        let is_changed = matches!(state, State::Changed);
        let warnings = match (self.direction, &pair.entry) {
            (Direction::ToFiles, Some(entry)) => {
                let (asked, progress) = (Arc::clone(&self.asked), self.progress.clone());
                let downloads = Downloads { array, raw: false, asked, progress };
                downloads.one(entry.clone(), pair.path.as_ref(), is_changed).await?
            }
            (_, entry) => self.upload(array, pair, entry.as_ref()).await?,
        };
        Ok((state, warnings))
    }

    async fn upload(
        &self,
        array: &Array,
        pair: &Pair,
        entry: Option<&Entry>,
    ) -> Result<Vec<String>, Failure> {
        let options = Arc::new(cli::Put::plain(self.protect));
        let (asked, progress) = (Arc::clone(&self.asked), self.progress.clone());
        let uploads = Uploads { array, options, asked, progress, align: None };
        let uploaded = match entry {
            Some(entry) => uploads.like(&pair.path, entry).await?,
            None => {
                uploads.one(&pair.path, &format!("{}{}", self.prefix, pair.name), false).await?
            }
        };
        Ok(uploaded.stored.warnings)
    }

    async fn delete(&self, array: &Array, extra: &Extra) -> Result<Vec<String>, Failure> {
        match extra {
            _ if self.dry_run => Ok(Vec::new()),
            Extra::Object(_, entry) => Ok(object::remove_this(array, entry).await?),
            Extra::File(file) => {
                let path = file.path.clone();
                let remove = move || fs::remove_file(&path).map_err(|e| Failure::os(&path, &e));
                off_core(remove).await.map(|()| Vec::new())
            }
        }
    }
}

/// Returns the size of a file; `None` if there is none.
async fn size_of(path: &str) -> Result<Option<u64>, Failure> {
    let path = PathBuf::from(path);
    off_core(move || match fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(Some(found.len())),
        Ok(_) => Err(Failure::run(format!("{} is no file", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::os(path.display(), &error)),
    })
    .await
}
