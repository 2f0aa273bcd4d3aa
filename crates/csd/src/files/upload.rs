//! [`Uploads`]: files that become objects, several at once.
//!
//! A `.npy` file becomes an array of numbers, and any other file bytes, unless an option gives the
//! type. A `.npy` file that cannot be used as an array is stored as bytes, with a remark.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csd_reactor::{Class, compute_fn};
use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Error, Form, Progress, Stored};

use super::interruptible::Interruptible;
use super::like::options_like;
use crate::cli;
use crate::get::form_of;
use crate::object::put_options;
use crate::put_input::{PutInput, as_bytes, becomes_bytes, open_as};
use crate::report::{Class as FailureClass, Failure};

/// Stores files as objects.
pub(crate) struct Uploads<'a> {
    pub(crate) array: &'a Array,
    pub(crate) options: Arc<cli::Put>,
    /// Set by a signal.
    pub(crate) asked: Arc<AtomicBool>,
    pub(crate) progress: Progress,
}

/// A file that was stored.
pub(crate) struct Uploaded {
    pub(crate) stored: Stored,
    /// Reason why it was not stored as its name promises.
    pub(crate) remark: Option<String>,
}

impl Uploads<'_> {
    /// Stores a file, in place of an object of the same name if it `replaces` one.
    pub(crate) async fn one(
        &self,
        path: &str,
        name: &str,
        replaces: bool,
    ) -> Result<Uploaded, Failure> {
        let element = self.options.element;
        let refused = match self.store((path, name), element, replaces).await {
            Ok(stored) => return Ok(Uploaded { stored, remark: None }),
            Err(refused) => refused,
        };
        if !becomes_bytes(path, &self.options, &refused) {
            return Err(refused);
        }
        let stored = self.store((path, name), Some(ElementType::Bytes), replaces).await?;
        Ok(Uploaded { stored, remark: Some(as_bytes(path, &refused.message)) })
    }

    /// Stores a file in place of an object of the same name, with its type, layout, placement and
    /// code. A file that is no array any more becomes bytes.
    pub(crate) async fn like(&self, path: &str, entry: &Entry) -> Result<Uploaded, Failure> {
        let options = options_like(entry)?;
        let form = form_of(entry, path, false);
        let element = (form == Form::Raw).then_some(entry.element);
        let stored = async {
            let source = self.open(path, element).await?.source;
            Ok(object::replace(self.array, source, &options, &self.progress).await?)
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
    ) -> Result<Stored, Failure> {
        let input = self.open(path, element).await?;
        let options = put_options(&self.options, name.to_owned(), &input);
        let (source, progress) = (input.source, &self.progress);
        let stored = match replaces {
            true => object::replace(self.array, source, &options, progress).await,
            false => object::put(self.array, source, &options, progress).await,
        };
        Ok(stored?)
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
