//! [`Uploads`]: files that become objects, several at once.
//!
//! A `.npy` file becomes an array of numbers, and any other file bytes, unless an option gives the
//! type. A `.npy` file that cannot be used as an array is stored as bytes, with a remark.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use csd_reactor::{Class, compute_fn};
use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::in_flight::{in_flight, share};
use csd_store::layout::Kind;
use csd_store::object::{self, Error, Form, Progress, Stored};

use super::like::options_like;
use crate::cli;
use crate::get::form_of;
use crate::interruptible::Interruptible;
use crate::object::put_options;
use crate::put_input::{PutInput, as_bytes, becomes_bytes, open_as};
use crate::report::{Class as FailureClass, Failure};
use crate::tally::Tally;

/// Stores files as objects.
pub(crate) struct Uploads<'a> {
    pub(crate) array: &'a Array,
    pub(crate) options: Arc<cli::Put>,
    /// Set by a signal.
    pub(crate) asked: Arc<AtomicBool>,
    pub(crate) progress: Progress,
    /// An object that they lie as.
    pub(crate) align: Option<Entry>,
}

/// A file, and the name of its object.
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) name: String,
    /// Length of the file, 0 if it is not known.
    pub(crate) bytes: u64,
}

/// A file that was stored.
pub(crate) struct Uploaded {
    pub(crate) stored: Stored,
    /// Its form, if that was found out, or the reason why it was not stored as its name promises.
    pub(crate) remark: Option<String>,
}

impl Uploads<'_> {
    /// Stores files until a signal, and counts them. Tells of each that was stored by `line`.
    /// Returns their entries, in the order of the files.
    pub(crate) async fn all(
        &self,
        files: Vec<Named>,
        tally: &mut Tally,
        line: Option<fn(&Entry) -> String>,
    ) -> Vec<Entry> {
        let is_asked = || self.asked.load(Relaxed);
        let (mut waiting, mut entries) = (files.into_iter().enumerate(), Vec::new());
        let one = |(at, file): (usize, Named)| {
            let share = share(file.bytes);
            let upload = async move {
                (self.one(&file.path, &file.name, self.options.force).await, at, file.path)
            };
            (share, upload)
        };
        let next = || if is_asked() { None } else { waiting.next().map(one) };
        in_flight(next, |(done, at, path)| match done {
            Ok(Uploaded { stored, remark }) => {
                tally.done();
                line.iter().for_each(|line| tally.tell(&line(&stored.entry)));
                remark.iter().for_each(|remark| tally.remark(&path, remark));
                tally.warn(stored.warnings);
                entries.push((at, stored.entry));
            }
            Err(_) if is_asked() => tally.leave(&path),
            Err(failure) => tally.fail(&path, failure),
        })
        .await;
        waiting.for_each(|(_, file)| tally.leave(&file.path));
        entries.sort_by_key(|(at, _)| *at);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Stores a file, in place of an object of the same name if it `replaces` one.
    pub(crate) async fn one(
        &self,
        path: &str,
        name: &str,
        replaces: bool,
    ) -> Result<Uploaded, Failure> {
        let element = self.options.element;
        let refused = match self.store((path, name), element, replaces).await {
            Ok(uploaded) => return Ok(uploaded),
            Err(refused) => refused,
        };
        if !becomes_bytes(path, &self.options, &refused) {
            return Err(refused);
        }
        let Uploaded { stored, .. } =
            self.store((path, name), Some(ElementType::Bytes), replaces).await?;
        Ok(Uploaded { stored, remark: Some(as_bytes(path, &refused.message)) })
    }

    /// Stores a file in place of an object of the same name, with its type, layout, placement and
    /// code. A file that is no array any more becomes bytes.
    pub(crate) async fn like(&self, path: &str, entry: &Entry) -> Result<Uploaded, Failure> {
        let mut options = options_like(entry)?;
        let form = form_of(entry, path, false);
        let element = (form == Form::Raw).then_some(entry.element);
        let stored = async {
            let input = self.open(path, element).await?;
            if entry.parts.as_ref().is_some_and(|parts| parts.kind() == Kind::Table) {
                options.arrange = input.arrange;
            }
            Ok(object::replace(self.array, input.source, &options, &self.progress).await?)
        };
        let stored: Result<Stored, Failure> = stored.await;
        match stored {
            Err(refused) if form == Form::Npy && refused.class == FailureClass::Usage => {
                self.one(path, &entry.name, true).await
            }
            stored => Ok(Uploaded { stored: stored?, remark: None }),
        }
    }

    async fn store(
        &self,
        (path, name): (&str, &str),
        element: Option<ElementType>,
        replaces: bool,
    ) -> Result<Uploaded, Failure> {
        let mut input = self.open(path, element).await?;
        let remark = input.taken.take().map(|taken| taken.text);
        let mut options = put_options(&self.options, name.to_owned(), &input);
        options.align.clone_from(&self.align);
        let (source, progress) = (input.source, &self.progress);
        let stored = match replaces {
            true => object::replace(self.array, source, &options, progress).await,
            false => object::put(self.array, source, &options, progress).await,
        };
        Ok(Uploaded { stored: stored?, remark })
    }

    /// Opens a file as it is stored, off the core: reading its header may block.
    pub(crate) async fn open(
        &self,
        path: &str,
        element: Option<ElementType>,
    ) -> Result<PutInput, Failure> {
        let (path, options, asked) =
            (path.to_owned(), Arc::clone(&self.options), Arc::clone(&self.asked));
        let open = move || {
            let wrap = |reader| Box::new(Interruptible::new(reader, &asked)) as _;
            open_as(&path, &options, element, wrap)
        };
        let opened = compute_fn(Class::Foreground, 0, open).await;
        opened.map_err(|_| Failure::from(Error::ComputeThread))?
    }
}
