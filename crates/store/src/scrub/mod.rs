//! Scrub: drives read the pieces of an object where they are, and compare them with the checksums
//! that the catalogue holds.
//!
//! Pieces are the chunks of an object, and the parity of a protected one. An execution of the
//! kernel `verify` takes each piece as a page; its digest is that of the checksums in the entry. If
//! it is not, the pieces are read again one by one. So only digests cross the wire, and damage is
//! found by piece, and by page if the piece has a page list. In drives kernels have the lowest
//! priority; a budget limits the bytes that each drive reads in a second. Invariant: only
//! [`replace_page_lists`] and [`names()`] write, and a piece is reported only after an execution
//! over it alone has found it bad, or if the entry says that it is missing.

mod deep;
mod names;
mod page;
mod pieces;
mod replace_page_lists;
mod work;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use csd_reactor::{Class, spawn};

use crate::array::Array;
use crate::catalogue::Entry;
use crate::error::NameError;
use crate::in_place::Unreadable;
use crate::object::{self, Error, Progress};
use pieces::{Name, Object};
use work::{bad, one_drive};

pub use deep::{Proof, prove};
pub use names::{Names, names};
pub use replace_page_lists::replace_page_lists;

/// Cause for which a piece is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The drive has no such value, or the entry says that it was never stored.
    Missing,
    /// The drive cannot read it: its record does not match its own checksum, or the medium fails.
    Unreadable,
    /// It can be read, and is not the piece that was stored.
    Differs,
    /// All pieces of the stripe are those that were stored, and are no code word.
    NoCodeWord,
    /// A copy of the object's name and entry is damaged. No piece is bad because of it.
    Name,
    /// A claim of an epoch of a name, or of a unit of blocks, is damaged.
    Claim,
    /// A drive's record of its own lives is damaged: it has no vote.
    Lives,
    /// A drive's list of all drives is damaged.
    Roster,
    /// A page list of the object on the drive does not match its own checksum. No piece is bad
    /// because of it.
    PageList,
}

impl From<Unreadable> for Cause {
    fn from(why: Unreadable) -> Self {
        match why {
            Unreadable::Missing => Self::Missing,
            Unreadable::Damaged => Self::Unreadable,
        }
    }
}

impl Cause {
    /// Returns its name, as in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Differs => "differs",
            Self::NoCodeWord => "no-code-word",
            Self::Name => "name",
            Self::Claim => "claim",
            Self::Lives => "lives",
            Self::Roster => "roster",
            Self::PageList => "page-list",
        }
    }

    /// Returns true if what is bad belongs to the catalogue.
    #[must_use]
    pub fn is_of_names(self) -> bool {
        matches!(self, Self::Name | Self::Claim | Self::Lives | Self::Roster)
    }
}

/// A bad page, piece or stripe, or damaged page lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bad {
    /// Name of the object.
    pub object: String,
    /// Stripe of the piece; `None` if the object is not protected.
    pub stripe: Option<u32>,
    /// Number of the piece in the stripe, parity from n on. If the object is not protected: number
    /// of the chunk in the object's order. `None` if a stripe as a whole or a page list is bad.
    pub piece: Option<u32>,
    /// Number of the page in the piece; `None` if all of it is bad or the page is not known.
    pub page: Option<u32>,
    /// Name of its drive; `None` if the stripe as a whole is bad.
    pub drive: Option<String>,
    /// Cause.
    pub cause: Cause,
    /// True if it was repaired since.
    pub repaired: bool,
}

/// Pieces that no drive has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Name of the object.
    pub object: String,
    /// Name of the drive.
    pub drive: String,
    /// Number of pieces.
    pub pieces: u64,
    /// Reason, in words.
    pub why: String,
}

/// Findings in one object or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Number of chunks read.
    pub chunks: u64,
    /// Number of parity pieces read.
    pub parity: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Number of chunks that were read and have no checksum in the catalogue.
    pub unknown: u64,
    /// Bad pieces, in the order of the object.
    pub bad: Vec<Bad>,
    /// Pieces of drives that are down, or were lost.
    pub unread: Vec<Unread>,
}

impl Scrubbed {
    /// Adds other findings.
    pub fn add(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.parity += other.parity;
        self.bytes += other.bytes;
        self.unknown += other.unknown;
        self.bad.extend(other.bad);
        self.unread.extend(other.unread);
    }
}

/// Limits of a scrub.
#[derive(Clone)]
pub struct Limits {
    /// Bytes that each drive reads in a second; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// True once the scrub must end early.
    pub stop: Rc<Cell<bool>>,
    /// Callback for the bytes read.
    pub progress: Progress,
}

/// Returns the bytes that a scrub of an object reads, and the proof of its stripes if `is_deep`.
#[must_use]
pub fn bytes(entry: &Entry, is_deep: bool) -> u64 {
    let Some(stripes) = entry.protected().and_then(|_| entry.stripes()) else { return entry.bytes };
    let of_stripe =
        |stripe| u64::from(stripes.parity_bytes(stripe)) * stripes.scheme().parity() as u64;
    let once = entry.bytes + (0..stripes.count()).map(of_stripe).sum::<u64>();
    if is_deep { 2 * once } else { once }
}

/// Reads the pieces of a sealed object in all its drives at once. If it was asked to stop, the
/// findings are those so far.
///
/// # Errors
/// A drive's answer that says nothing about a piece. A drive that is down or lost is no error.
pub async fn scrub(array: &Array, entry: &Entry, limits: &Limits) -> Result<Scrubbed, Error> {
    let mut object = Rc::new(Object::new(entry));
    loop {
        let mut found = once(array, &object, None, limits).await?;
        if found.bad.is_empty() {
            return Ok(found);
        }
        match current(array, &object.entry).await? {
            // It was removed, and its pieces with it.
            None => found.bad.clear(),
            // It was protected or repaired meanwhile: its pieces may be others now.
            Some(current) if current.epoch != object.entry.epoch && !limits.stop.get() => {
                object = Rc::new(Object::new(&current));
                continue;
            }
            Some(_) => {}
        }
        return Ok(found);
    }
}

/// Reads the bad pieces of an object again after a repair, and marks those that are good now. Does
/// not read page lists.
///
/// # Errors
/// As [`scrub`].
pub async fn mark_repaired(
    array: &Array,
    entry: &Entry,
    bad: &mut [Bad],
    limits: &Limits,
) -> Result<(), Error> {
    let Some(entry) = current(array, entry).await? else { return Ok(()) };
    let name = |bad: &Bad| Some(Name { stripe: bad.stripe, piece: bad.piece? });
    let names: BTreeSet<Name> = bad.iter().filter_map(name).collect();
    let object = Rc::new(Object::new(&entry));
    let found = once(array, &object, Some(&names), limits).await?;
    let is_complete = !limits.stop.get();
    let still: BTreeSet<Name> = found.bad.iter().filter_map(name).collect();
    let unread: BTreeSet<String> = found.unread.into_iter().map(|unread| unread.drive).collect();
    for bad in bad {
        let was_read = bad.drive.as_ref().is_some_and(|drive| !unread.contains(drive));
        bad.repaired =
            is_complete && was_read && name(bad).is_some_and(|name| !still.contains(&name));
    }
    Ok(())
}

/// Reads the pieces with these names once, or all with their page lists.
async fn once(
    array: &Array,
    object: &Rc<Object>,
    names: Option<&BTreeSet<Name>>,
    limits: &Limits,
) -> Result<Scrubbed, Error> {
    let (mut found, mut tasks) = (Scrubbed::default(), Vec::new());
    for index in object.drives() {
        let mut pieces = object.pieces(index);
        pieces.retain(|piece| names.is_none_or(|names| names.contains(&piece.name)));
        let (missing, pieces): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| piece.is_missing);
        let slot = array.slot(index);
        let name = slot.map_or_else(|| format!("#{index}"), |slot| slot.name.clone());
        found.bad.extend(missing.iter().map(|piece| bad(object, &name, piece, Cause::Missing)));
        match slot.map_or(Err("the array file does not list it"), |slot| slot.drive()) {
            _ if pieces.is_empty() => {}
            Ok(drive) => {
                let (drive, object) = (Rc::clone(drive), Rc::clone(object));
                let work = one_drive(drive, object, pieces, names.is_none(), limits.clone());
                tasks.push(spawn(Class::Foreground, work));
            }
            Err(why) => {
                let (object, drive) = (object.entry.name.clone(), name);
                let (pieces, why) = (pieces.len() as u64, why.to_owned());
                found.unread.push(Unread { object, drive, pieces, why });
            }
        }
    }
    let mut failed = None;
    for task in tasks {
        match task.await {
            Ok(of_drive) => found.add(of_drive),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    found.bad.sort();
    Ok(found)
}

/// Returns the object's entry as it is now; `None` if the object was removed.
async fn current(array: &Array, entry: &Entry) -> Result<Option<Entry>, Error> {
    match object::lookup(array, &entry.name).await {
        Ok(current) => Ok(Some(current).filter(|current| current.id == entry.id)),
        Err(Error::Name(NameError::Missing { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
