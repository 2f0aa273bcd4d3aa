//! The work of one drive: executions of `verify` over its pieces, the names of bad pages, and a
//! look at its page lists.

use std::cell::OnceCell;
use std::rc::Rc;

use csd_kernels::verify;
use csd_reactor::{now, sleep_until, transfer_time};

use super::page::Lists;
use super::pieces::{Batch, Name, Object, Piece};
use super::{Bad, Cause, Limits, Scrubbed, Unread};
use crate::array::Drive;
use crate::in_place::{self, program_index};
use crate::object::Error;
use crate::pages::damaged;
use crate::piece::verified;

/// Work of one drive.
struct Work {
    drive: Rc<Drive>,
    object: Rc<Object>,
    program: u16,
    limits: Limits,
    /// Page lists, once a piece was found bad.
    lists: OnceCell<Lists>,
}

/// Reads pieces of an object in their drive, and the page lists if `with_lists`. A drive that is
/// lost is no error.
pub(super) async fn one_drive(
    drive: Rc<Drive>,
    object: Rc<Object>,
    pieces: Vec<Piece>,
    with_lists: bool,
    limits: Limits,
) -> Result<Scrubbed, Error> {
    let (mut found, all) = (Scrubbed::default(), pieces.len() as u64);
    let work = async {
        let program = program_index(&drive, verify::PROGRAM_ID).await?;
        let (drive, object) = (Rc::clone(&drive), Rc::clone(&object));
        let work = Work { drive, object, program, limits, lists: OnceCell::new() };
        work.all(pieces, &mut found).await?;
        if with_lists && !work.limits.stop.get() {
            found.bad.extend(work.look_at_lists().await?);
        }
        Ok::<_, Error>(())
    };
    match work.await {
        Err(error) if error.is_lost() => {
            let pieces = all - found.chunks - found.parity;
            let (object, drive) = (object.entry.name.clone(), drive.name.clone());
            found.unread.push(Unread { object, drive, pieces, why: error.to_string() });
            Ok(found)
        }
        done => done.map(|()| found),
    }
}

/// Returns a bad piece as a scrub reports it.
pub(super) fn bad(object: &Object, drive: &str, piece: &Piece, cause: Cause) -> Bad {
    let (object, drive) = (object.entry.name.clone(), Some(drive.to_owned()));
    let Name { stripe, piece } = piece.name;
    Bad { object, stripe, piece: Some(piece), page: None, drive, cause, repaired: false }
}

impl Work {
    /// Reads all pieces of the drive; `found` has those that were read, also after an error.
    async fn all(&self, pieces: Vec<Piece>, found: &mut Scrubbed) -> Result<(), Error> {
        for batch in Batch::all(pieces, self.object.entry.chunk_bytes) {
            if self.limits.stop.get() {
                return Ok(());
            }
            let begin = now();
            found.bad.extend(self.look(&batch).await?);
            let parity = batch.pieces.iter().filter(|piece| piece.is_parity).count() as u64;
            found.parity += parity;
            found.chunks += batch.pieces.len() as u64 - parity;
            found.unknown += batch.pieces.iter().filter(|piece| piece.sum.is_none()).count() as u64;
            found.bytes += batch.bytes;
            self.limits.progress.add(batch.bytes);
            if let Some(rate) = self.limits.bytes_per_s {
                sleep_until(begin + transfer_time(batch.bytes, rate)).await;
            }
        }
        Ok(())
    }

    /// Reads the pieces of a batch; returns the bad ones.
    async fn look(&self, batch: &Batch) -> Result<Vec<Bad>, Error> {
        let Some(cause) = self.verify(batch).await? else { return Ok(Vec::new()) };
        if let [piece] = &batch.pieces[..] {
            return self.named(piece, cause).await;
        }
        let mut found = Vec::new();
        for piece in &batch.pieces {
            if let Some(cause) = self.verify(&Batch::one(piece.clone())).await? {
                found.extend(self.named(piece, cause).await?);
            }
        }
        Ok(found)
    }

    /// Returns what stands for the object's page lists on the drive, if one is damaged.
    async fn look_at_lists(&self) -> Result<Option<Bad>, Error> {
        for id in self.object.identifiers() {
            if !damaged(&self.drive, id).await?.is_empty() {
                let object = self.object.entry.name.clone();
                let (drive, cause) = (Some(self.drive.name.clone()), Cause::PageList);
                let (stripe, piece, page, repaired) = (None, None, None, false);
                return Ok(Some(Bad { object, stripe, piece, page, drive, cause, repaired }));
            }
        }
        Ok(None)
    }

    /// Returns a bad piece, once for each of its pages that is damaged if these are known and not
    /// all.
    async fn named(&self, piece: &Piece, cause: Cause) -> Result<Vec<Bad>, Error> {
        let whole = bad(&self.object, &self.drive.name, piece, cause);
        if !piece.may_have_pages(cause) {
            return Ok(vec![whole]);
        }
        let lists = match self.lists.get() {
            Some(lists) => lists,
            None => {
                let read = Lists::read(&self.drive, &self.object.identifiers()).await?;
                self.lists.get_or_init(|| read)
            }
        };
        let pages = lists.differing(piece, self.object.entry.id).await?;
        if pages.is_empty() {
            return Ok(vec![whole]);
        }
        let of_page = |page: u32| Bad { page: Some(page), ..whole.clone() };
        Ok(pages.into_iter().map(of_page).collect())
    }

    /// Lets the drive read the pieces of a batch; returns what is wrong with them.
    async fn verify(&self, batch: &Batch) -> Result<Option<Cause>, Error> {
        let (drive, sums) = (&self.drive, batch.sums());
        let sources = batch.sources(drive.block.block_bytes());
        let page_bytes = self.object.entry.chunk_bytes;
        Ok(match in_place::verify(drive, self.program, page_bytes, sources).await? {
            Ok(result) => sums.filter(|sums| result != verified(sums)).map(|_| Cause::Differs),
            Err(why) => Some(why.into()),
        })
    }
}
