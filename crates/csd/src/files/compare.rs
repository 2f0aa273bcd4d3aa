//! [`is_same`]: whether `csd get` would write the file that is there.
//!
//! Sizes are compared first, and digests if they agree: the file is read, and the object only if no
//! host has seen its content. Two NumPy arrays are the same if their types, shapes and numbers are,
//! whatever their headers look like.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::fault::Fault;
use csd_store::object::{Form, Progress};
use csd_store::source::{self, Source};

use super::download::off_core;
use super::hash::{Bytes, Function, Hasher, digest};
use crate::get::form_of;
use crate::interruptible::Interruptible;
use crate::report::Failure;

/// Bytes that are read at once.
const STEP_BYTES: usize = 1 << 20;

/// Returns true if the file has the content of the object, in the form of its name.
pub(crate) async fn is_same(
    array: &Array,
    entry: &Entry,
    (path, bytes): (&str, u64),
    progress: &Progress,
    asked: &Arc<AtomicBool>,
) -> Result<bool, Failure> {
    let form = form_of(entry, path, false);
    if form == Form::Raw && bytes != entry.bytes {
        return Ok(false);
    }
    let (path, flag, shape) = (path.to_owned(), Arc::clone(asked), entry.shape.clone());
    let element = entry.element;
    let read = off_core(move || {
        let file = File::open(&path).map_err(|error| Failure::os(&path, &error))?;
        let wanted = (form == Form::Npy).then_some((element, &shape[..]));
        match content(&path, Interruptible::new(file, &flag), wanted) {
            Err(error) if error.fault() == Fault::Usage => Ok(None),
            read => read.map_err(Failure::run),
        }
    });
    let Some(here) = read.await? else { return Ok(false) };
    progress.add(bytes);
    if entry.has_digest() {
        return Ok(here == entry.digest);
    }
    let silent = Progress::none();
    let kind = (Form::Raw, Function::Blake3);
    let (there, _) = digest(array, entry.clone(), kind, &silent, asked).await?;
    Ok(here == there)
}

/// Returns the digest of a file's content; `None` if it is not the array that is wanted.
fn content(
    path: &str,
    file: Interruptible<File>,
    wanted: Option<(ElementType, &[u64])>,
) -> Result<Option<Bytes>, source::Error> {
    let mut source = match wanted {
        None => Source::raw(path, Box::new(file), ElementType::Bytes),
        Some(_) => Source::npy(path, Box::new(file), None)?,
    };
    if wanted
        .is_some_and(|wanted| source.known_shape().map(|s| (source.element(), s)) != Some(wanted))
    {
        return Ok(None);
    }
    let (mut hasher, mut room) = (Hasher::new(Function::Blake3), vec![0; STEP_BYTES]);
    loop {
        let filled = source.fill(&mut room)?;
        hasher.update(&room[..filled]);
        if filled < room.len() {
            return Ok(Some(hasher.finish()));
        }
    }
}
