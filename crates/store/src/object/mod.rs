//! Objects: put, get, list, look up, duplicate, protect, rebalance, remove, reclaim.
//!
//! Objects are streamed: at most a few chunks per drive are in memory. A sealed object is never
//! overwritten; another one can replace it as a whole. Invariants: an object is sealed only after
//! all its chunks were acknowledged; a get succeeds only if all bytes hash to the digest in the
//! entry.

mod after_move;
mod arrange;
mod change;
mod chunk;
mod copy;
mod cut;
mod cut_off;
mod draft;
mod duplicate;
mod encode;
mod encode_cost;
mod encoding;
mod fetch;
mod fetch_to_blocks;
mod flow;
mod get;
mod in_drives;
mod list_objects;
mod naming;
mod new_page_lists;
mod pages;
mod parity;
mod pieces;
mod protect;
mod put;
mod range;
mod rebalance;
mod reclaim;
mod remove;
mod transfer;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use crate::array;
use crate::catalogue::{self, Entry, State};
use crate::error::NameError;
use crate::steady::steadily;

pub use crate::catalogue::On;
pub use crate::error::Error;
pub use crate::pages::PAGE_BYTES;
pub use after_move::moved;
pub use arrange::Arrange;
pub use cut::graph_starts;
pub use cut_off::{remove_staged, space_taken};
pub use draft::Stored;
pub use duplicate::{Duplicated, duplicate};
pub use encode_cost::{Account, Encode, Model, Moved};
pub use get::{Form, GetOptions, Got, Sink, get};
pub use list_objects::{Children, Listed, children, is_folder, list, list_under};
pub use pieces::read_piece;
pub use protect::{Protected, protect};
pub use put::{PutOptions, put, replace};
pub use range::read;
pub use rebalance::{Limits, Rebalanced, lies_on, rebalance};
pub use reclaim::{Reclaimed, reclaim};
pub use remove::{drop_damaged, remove, remove_this};

pub(crate) use after_move::removed_or_moved;
pub use chunk::{read_chunk, read_front};
pub use draft::{Draft, Shape};
pub use pieces::Pieces;
pub(crate) use reclaim::objects_on;
pub(crate) use remove::sweep_ids;

/// Callback for the number of bytes done since the last call; may be called on any core.
#[derive(Clone)]
pub struct Progress(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl Progress {
    /// Returns a progress that calls `add`.
    pub fn new(add: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(add)))
    }

    /// Returns a progress without a callback.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Reports that so many bytes more are done.
    pub fn add(&self, bytes: u64) {
        if let Some(add) = &self.0 {
            add(bytes);
        }
    }
}

/// Interval at which a put checks that it still owns its name, and a repair that its object exists.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Chunks of one drive in flight at once.
pub(crate) const WINDOW: usize = 4;

/// Returns the sealed entry of `name`. Connections that are lost are made again.
///
/// # Errors
/// [`NameError::Missing`] when there is none, else the error that prevented a majority
/// from answering.
pub async fn lookup(array: &array::Array, name: &str) -> Result<Entry, Error> {
    check_name(name)?;
    let key = catalogue::key(name);
    let found = steadily(array, async || catalogue::read(array, &key, name).await).await?;
    match found.newest() {
        Some(entry) if entry.state == State::Sealed => Ok(entry.clone()),
        _ => Err(Error::Name(NameError::Missing { name: name.to_owned() })),
    }
}

/// Checks that the writer of an entry still owns its name.
///
/// # Errors
/// [`NameError::Overtaken`], or those of the catalogue.
async fn check_owner(array: &array::Array, entry: &Entry) -> Result<(), Error> {
    let name = &entry.name;
    let found = catalogue::read(array, &catalogue::key(name), name).await?;
    match found.newest() {
        Some(newest) if newest.writer == entry.writer => Ok(()),
        _ => Err(Error::Name(NameError::Overtaken { name: name.clone() })),
    }
}

/// Checks that an object can have this name.
///
/// # Errors
/// [`NameError::Invalid`].
pub fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > catalogue::NAME_BYTES_MAX {
        let why = format!("an object's name has 1 to {} bytes", catalogue::NAME_BYTES_MAX);
        return Err(Error::Name(NameError::Invalid { why }));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::Name(NameError::Invalid {
            why: format!("{name:?}: a name has no control characters"),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        assert!(check_name("météo/2026 final").is_ok());
        for wrong in ["", "a\nb", "\u{1b}[31m", &"x".repeat(1025)] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
