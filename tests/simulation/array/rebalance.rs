//! Hosts move objects to all drives that vote, wherever they were put: some on a part of them.

use std::cell::Cell;
use std::rc::Rc;

use csd_reactor::random_u64;
use csd_store::array::{Array, DriveIndex};
use csd_store::catalogue::{Entry, ObjectId, State};
use csd_store::error::ProtectionError;
use csd_store::object::{self, Error, Limits};

use super::history::{CHUNK_BYTES, Told};
use super::host::{Known, refused};

/// Returns an object on some of the drives that vote, to which a new one is aligned.
pub fn on_some(array: &Array) -> Option<Entry> {
    let mut members = array.voting();
    let left_out = 1 + random_u64() % 3;
    for _ in 0..left_out {
        let index = usize::try_from(random_u64()).unwrap() % members.len().max(1);
        if members.len() > 1 {
            members.remove(index);
        }
    }
    (!members.is_empty()).then(|| aligned(members))
}

/// Returns an object on these drives, to which a new one is aligned.
pub fn aligned(members: Vec<DriveIndex>) -> Entry {
    Entry {
        epoch: 1,
        shape: vec![0],
        chunk_bytes: u32::try_from(CHUNK_BYTES).unwrap(),
        members,
        ..Entry::empty("some drives", ObjectId::from_random([0; 12]), State::Sealed)
    }
}

pub fn no_limits() -> Limits {
    Limits {
        bytes_per_s: None,
        stop: Rc::new(Cell::new(false)),
        total: Rc::new(|_| {}),
        progress: object::Progress::none(),
    }
}

/// Moves an object to all drives that vote.
pub async fn one(array: &Array, name: &str, known: &Known) -> Told {
    let entry = match object::lookup(array, name).await {
        Ok(entry) => entry,
        Err(error) => return refused(&error),
    };
    let drives = array.voting();
    let mut done = object::rebalance(array, &[entry], &drives, &no_limits()).await;
    match (done.failed.pop(), done.moved.pop()) {
        (None, Some(moved)) => {
            known.borrow_mut().moved += 1;
            known.borrow_mut().fetched += done.by_drives;
            if !object::lies_on(&moved, &drives) {
                let text = format!("{name} was moved to {drives:?}, and is on {:?}", moved.members);
                known.borrow_mut().history.violations.push(text);
            }
            Told::Done
        }
        // It lies there, or was removed meanwhile.
        (None, None) | (Some((_, Error::Protection(ProtectionError::Impossible { .. }))), _) => {
            Told::Unknown
        }
        (Some((_, error)), _) => refused(&error),
    }
}
