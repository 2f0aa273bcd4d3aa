//! Rebuilds an object's stripes, a few at a time. Before each of them the object is looked up, as
//! it may have been removed.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_reactor::{Class, JoinHandle, now, spawn};

use super::change_entry::is_same;
use super::mover::{ByHost, Mover};
use super::stripe::{Fixed, Repair as OfStripe};
use super::subject::Subject;
use super::{AHEAD, AHEAD_BYTES, Repair};
use crate::error::Error;
use crate::error::NameError;
use crate::object::{self, CHECK_INTERVAL};

/// A stripe that is being rebuilt.
type Fixing = (u32, JoinHandle<Result<Fixed, Error>>);

impl<M: Mover + 'static> Repair<'_, M> {
    /// Rebuilds the bad pieces of these stripes. The host rebuilds those that the mover leaves.
    pub(super) async fn rebuild_stripes(
        &mut self,
        subject: &Rc<Subject>,
        stripes: &[u32],
    ) -> Result<(), Error> {
        let stripe_bytes = subject.code().pieces() * subject.entry.chunk_bytes as usize;
        let ahead = (AHEAD_BYTES / stripe_bytes.max(1)).clamp(1, AHEAD);
        let (mut pending, mut left) = (VecDeque::<Fixing>::new(), VecDeque::new());
        let (mut stripes, mut failed) = (stripes.iter().copied(), None);
        loop {
            while failed.is_none() && pending.len() < ahead && !self.limits.stop.get() {
                let next = left.pop_front().map(|stripe| (stripe, true));
                let Some((stripe, is_left)) = next.or_else(|| Some((stripes.next()?, false)))
                else {
                    break;
                };
                let begun = match is_left {
                    true => self.begin(&Rc::new(ByHost), subject, (stripe, true)).await,
                    false => self.begin(&self.mover, subject, (stripe, false)).await,
                };
                match begun {
                    Ok(Some(fixing)) => pending.push_back((stripe, fixing)),
                    Ok(None) => break,
                    Err(error) => failed = Some(error),
                }
            }
            let Some((stripe, done)) = pending.pop_front() else { break };
            match done.await {
                Ok(fixed) => {
                    left.extend(fixed.is_left.then_some(stripe));
                    self.add(&fixed);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Begins to rebuild a stripe, after a new look at the object if it `must_look`; returns `None`
    /// if the object is gone.
    async fn begin<N: Mover + 'static>(
        &self,
        mover: &Rc<N>,
        subject: &Rc<Subject>,
        (stripe, must_look): (u32, bool),
    ) -> Result<Option<JoinHandle<Result<Fixed, Error>>>, Error> {
        let (fleet, mover) = (Rc::clone(&self.fleet), Rc::clone(mover));
        let (subject, checks) = (Rc::clone(subject), self.checks(subject));
        let work = OfStripe { fleet, subject: Rc::clone(&subject), mover, checks, stripe };
        work.pace().await;
        let is_there = self.is_there(&subject, must_look).await?;
        Ok(is_there.then(|| spawn(Class::Foreground, async move { work.run().await })))
    }

    fn add(&mut self, fixed: &Fixed) {
        self.limits.progress.add(fixed.bytes);
        if fixed.rebuilt > 0 {
            self.found.rebuilt_after = self.begun.elapsed();
        }
        self.found.rebuilt += fixed.rebuilt;
        self.found.rebuilt_bytes += fixed.rebuilt_bytes;
        self.found.by_drives += fixed.by_drives;
    }

    /// Checks from time to time, or now if it `must_look`, that the object still exists: if not,
    /// its blocks soon belong to another one.
    pub(super) async fn is_there(&self, subject: &Subject, must_look: bool) -> Result<bool, Error> {
        let seen = now();
        let is_due = must_look || seen.since(subject.looked.get()) >= CHECK_INTERVAL;
        if !subject.is_gone.get() && is_due {
            match object::lookup(self.array, &subject.entry.name).await {
                Ok(entry) if is_same(&subject.entry, &entry) => {}
                Ok(_) | Err(Error::Name(NameError::Missing { .. })) => subject.is_gone.set(true),
                Err(error) => return Err(error),
            }
            subject.looked.set(seen);
        }
        Ok(!subject.is_gone.get())
    }
}
