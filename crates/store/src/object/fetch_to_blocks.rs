//! Chunks of a whole object that drives fetch to blocks of their own.
//!
//! The drive that has the object sends parity, and no chunks to blocks: a write that comes late
//! could reach a unit that belongs to another object by then. The drive of each chunk reads it, and
//! writes it only while it has the claim of its unit ([`crate::guarded`]).

use std::rc::Rc;

use csd_reactor::{Class, spawn};

use super::encoding::Encoding;
use super::fetch::Fetch;
use super::in_drives::InDrives;
use crate::guarded::Owner;
use crate::piece::Spot;

impl Encoding {
    /// Returns the pieces of a stripe that their own drives fetch.
    pub(super) fn pulled(&self, stripe: u32) -> impl Iterator<Item = usize> {
        let chunks = if self.writes_blocks() { self.stripes.chunks(stripe).len() } else { 0 };
        0..chunks
    }

    /// Returns the pieces of a stripe that its encoder stores.
    pub(super) fn sent(&self, stripe: u32) -> impl Iterator<Item = usize> {
        let first = self.pulled(stripe).count();
        self.written(stripe).filter(move |piece| *piece >= first)
    }

    /// Has drives fetch the chunks of a stripe, which have these digests. Returns true once all are
    /// stored, false if a drive has not stored its own.
    pub(super) async fn pull(
        self: &Rc<Self>,
        drives: &Rc<InDrives>,
        stripe: u32,
        sums: &[u32],
    ) -> bool {
        let begin = |piece: usize| {
            let (work, drives, sum) = (Rc::clone(self), Rc::clone(drives), sums[piece]);
            spawn(
                Class::Foreground,
                async move { work.pull_one(&drives, (stripe, piece), sum).await },
            )
        };
        let pulling: Vec<_> = self.pulled(stripe).map(begin).collect();
        let mut all = true;
        for pulled in pulling {
            all &= pulled.await;
        }
        all
    }

    /// Has a drive fetch a chunk. Returns true if it has.
    async fn pull_one(&self, drives: &InDrives, (stripe, piece): (u32, usize), sum: u32) -> bool {
        let Ok(drive) = self.drive(stripe, piece) else { return false };
        let Ok((origin, entry)) = self.source(stripe, piece) else { return false };
        let from = Spot::of_chunk(entry, &entry.layout(), self.stripes.chunks(stripe)[piece]);
        let (to, bytes) = self.spot(stripe, piece);
        let (from, to, owner) = ((&**origin, from), (&**drive, to), Owner::of(&self.entry));
        drives.fetch(&Fetch { from, to, bytes, sum, owner }).await
    }
}
