//! Reads of objects that lack no piece while as many drives are out of a host's reach as their
//! codes survive.

use std::rc::Rc;

use csd_reactor::now;
use csd_store::array::{Array, GUARDED};
use csd_store::object;

use super::history::{Ask, Told};
use super::host::{self, Known, name_of};
use super::pace::ask;
use super::pieces::Sound;
use super::{Lane, NAMES};

/// Numbers of parity pieces of the lane's codes.
const LOSSES: [usize; 2] = [2, 4];

impl Lane {
    /// Reads every object that lacks no piece without as many drives as it survives, after the
    /// hosts have ended. Returns the number of objects.
    pub(super) fn read_without_drives(&self) -> u64 {
        if self.guards != GUARDED {
            return 0;
        }
        let mut read = 0;
        for losses in LOSSES {
            let known = Rc::clone(&self.known);
            let names = ask(self, 0, async move |array| whole(&array, losses, &known).await);
            let lost = self.draw_lost(losses);
            read += names.len() as u64;
            self.part(0, &lost);
            let known = Rc::clone(&self.known);
            let unread = ask(self, 0, async move |array| unread(&array, &names, &known).await);
            self.join(0, &lost);
            for (name, told) in unread {
                let text = format!("{}: {told:?} without drives {lost:?}", name_of(name));
                self.known.borrow_mut().history.violations.push(text);
            }
        }
        read
    }
}

/// Returns the names of objects with this many parity pieces in a stripe that lack no piece.
async fn whole(array: &Array, losses: usize, known: &Known) -> Vec<usize> {
    let mut complete = Vec::new();
    for name in 0..NAMES {
        let Ok(entry) = object::lookup(array, &name_of(name)).await else { continue };
        let Some((protection, parity)) = entry.protected() else { continue };
        if protection.scheme.parity() == losses && parity.missing.count() == 0 {
            complete.push((name, entry));
        }
    }
    let media = known.borrow().media_at_rest();
    let is_full = |entry| Sound::at_rest(&media, entry).is_some_and(|sound| sound.is_full());
    complete.iter().filter(|(_, entry)| is_full(entry)).map(|(name, _)| *name).collect()
}

/// Reads these objects; returns those that were not read, with the answers.
async fn unread(array: &Array, names: &[usize], known: &Known) -> Vec<(usize, Told)> {
    let mut unread = Vec::new();
    for &name in names {
        let operation = known.borrow_mut().history.begin(0, name, Ask::Get, now().ns());
        let told = host::get(array, name, known).await;
        known.borrow_mut().history.end(operation, now().ns(), told);
        if !matches!(told, Told::Bytes(_)) {
            unread.push((name, told));
        }
    }
    unread
}
