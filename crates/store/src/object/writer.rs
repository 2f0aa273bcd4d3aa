//! [`Writer`]: sends the chunks of a put to their drives, and the parity of its stripes.
//!
//! At most [`WINDOW`] pieces of a drive are in flight. A drive whose connection is lost is
//! connected to again, and sent what it has not acknowledged ([`Link`]); blocks only if it was not
//! started meanwhile, because it may have lost what it had not made durable. A put whose name
//! another writer has taken notices this with its next piece after [`CHECK_INTERVAL`]. If a drive
//! is lost while a protected object is put, its pieces are noted as missing, and the put goes on;
//! the caller checks that enough others are durable. The pages of pieces get checksums, in lists
//! that follow their pieces ([`super::pages`]). Invariant: a piece that is not noted was
//! acknowledged.

use std::cell::RefCell;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, Instant, Semaphore, SemaphorePermit, now, spawn};

use super::encoding::{Number, Piece};
use super::pages::{Listed, Lists};
use super::{CHECK_INTERVAL, Error, WINDOW, check_owner};
use crate::array::Array;
use crate::catalogue::{self, Entry, Placement};
use crate::error::DriveError;
use crate::extent::{Claimer, UNIT_BYTES};
use crate::layout::{self, Dealer};
use crate::link::{Link, Persistence};
use crate::pace::Pace;
use crate::piece::Spot;
use crate::room;
use crate::steady::steadily;

/// Sends pieces to the drives.
pub(super) struct Writer<'a> {
    array: &'a Array,
    pub(super) entry: Entry,
    /// Drives of the members, then other drives that may hold parity.
    windows: Vec<DriveWindow>,
    outcome: Rc<Outcome>,
    /// Time of the last check that this put owns the name.
    checked: Instant,
    /// Number of chunks sent.
    chunks: u32,
    /// Parity sent so far, if the writer is sent any.
    parity: Option<Parities>,
    /// Page lists, if pages get checksums.
    lists: Option<Lists>,
    /// Rate at which drives are written, if it is limited.
    pub(super) pace: Option<Rc<Pace>>,
}

/// Outcome of the pieces in flight.
#[derive(Default)]
struct Outcome {
    failure: RefCell<Option<Error>>,
    missing: RefCell<Vec<Number>>,
}

/// Parity sent so far.
struct Parities {
    dealer: Dealer,
    /// Chunks of a stripe.
    width: u32,
    stripe: u32,
    sums: Vec<u32>,
}

/// Window of a drive: the pieces that it may be sent before it has acknowledged others.
struct DriveWindow {
    link: Rc<Link>,
    /// Permits for pieces in flight, [`WINDOW`] in all.
    permits: Semaphore,
    claimer: Option<Claimer>,
    /// Bytes of records that it may still store, as far as is known.
    records: u64,
    /// Unit for the member's next chunks, and the number of its bytes in use.
    unit: (u32, u64),
}

/// Result of a writer.
pub(super) struct Finished {
    /// Extents of a block placement.
    pub(super) extents: Option<Vec<catalogue::Extents>>,
    /// CRC-32C of the parity pieces, if the writer was sent parity.
    pub(super) parity: Option<Vec<u32>>,
    /// Pieces that no drive has acknowledged.
    pub(super) missing: Vec<Number>,
}

impl<'a> Writer<'a> {
    /// Returns a writer of the chunks of `entry`, and of its parity if it is `striped`: protected,
    /// with stripes of consecutive chunks. If `page_bytes` is given, pages of that size get
    /// checksums.
    pub(super) async fn new(
        array: &'a Array,
        entry: &Entry,
        striped: bool,
        page_bytes: Option<u32>,
    ) -> Result<Self, Error> {
        // A protected object can do without a drive, and one that is not waits for it.
        let persistence = match entry.protection {
            Some(_) if striped && entry.placement == Placement::Kv => Persistence::brief(),
            _ => Persistence::long(),
        };
        let mut windows = Vec::new();
        for member in &entry.members {
            let drive = array.drive(*member)?;
            let key = catalogue::key(&entry.name);
            windows.push(match entry.placement {
                Placement::Kv => DriveWindow::new(Link::new(array, *member, persistence)?, None),
                Placement::Block(_) => {
                    let claimer = Claimer::new(drive, entry.id, key).await?;
                    let link = Link::new(array, *member, persistence.in_one_life())?;
                    DriveWindow::new(link, Some(claimer))
                }
            });
        }
        if let Some(protection) = &entry.protection {
            let others = protection.group.iter().filter(|drive| !entry.members.contains(drive));
            let up = others.filter(|drive| array.drive(**drive).is_ok());
            for drive in up {
                let link = Link::new(array, *drive, Persistence::brief())?;
                windows.push(DriveWindow::new(link, None));
            }
        }
        let parity = entry.protection.as_ref().filter(|_| striped).map(|protection| {
            let width = layout::width(protection.scheme, entry.members.len());
            Parities {
                dealer: Dealer::new(protection.scheme, &protection.group),
                width: u32::try_from(width).expect("at most 32"),
                stripe: 0,
                sums: Vec::new(),
            }
        });
        let (entry, outcome, checked) = (entry.clone(), Rc::default(), now());
        let lists = page_bytes.map(Lists::new);
        Ok(Self { array, entry, windows, outcome, checked, chunks: 0, parity, lists, pace: None })
    }

    /// Checks from time to time that this put still owns the name: if not, its units of the block
    /// namespace soon belong to another object.
    async fn check(&mut self) -> Result<(), Error> {
        let seen = now();
        if seen.since(self.checked) < CHECK_INTERVAL {
            return Ok(());
        }
        steadily(self.array, async || check_owner(self.array, &self.entry).await).await?;
        self.checked = seen;
        Ok(())
    }

    /// Sends a chunk once its drive's window has room. An error of an earlier piece is returned
    /// here or by [`Writer::finish`].
    pub(super) async fn send(
        &mut self,
        member: usize,
        number: u32,
        chunk: Buffer,
    ) -> Result<(), Error> {
        self.chunks += 1;
        self.send_to(member, Number::Chunk(number), chunk).await
    }

    /// Sends the parity of the next stripe of consecutive chunks; nothing if there are no pieces.
    pub(super) async fn send_parity(&mut self, pieces: Vec<Piece>) -> Result<(), Error> {
        let Some(parities) = self.parity.as_mut().filter(|_| !pieces.is_empty()) else {
            return Ok(());
        };
        let members = &self.entry.members;
        let count = self.entry.member_count();
        let first = parities.stripe * parities.width;
        let chunks = first..self.chunks.min(first + parities.width);
        let drive_of = |chunk: u32| members[layout::member(chunk, self.entry.offset, count)];
        let drives = parities.dealer.deal(&chunks.map(drive_of).collect::<Vec<_>>());
        parities.stripe += 1;
        let begin = u32::try_from(parities.sums.len()).expect("fewer pieces than 2^32");
        parities.sums.extend(pieces.iter().map(|(_, sum)| *sum));
        for (number, ((piece, _), drive)) in (begin..).zip(pieces.into_iter().zip(drives)) {
            let number = Number::Parity(number);
            let is_of = |window: &DriveWindow| window.link.index() == drive;
            match self.windows.iter().position(is_of) {
                Some(index) => self.send_to(index, number, piece).await?,
                None => self.outcome.missing.borrow_mut().push(number),
            }
        }
        Ok(())
    }

    async fn send_to(&mut self, index: usize, number: Number, piece: Buffer) -> Result<(), Error> {
        let permit = self.windows[index].permits.acquire(1).await;
        if let Some(pace) = &self.pace {
            pace.wait(self.windows[index].link.index(), piece.len() as u64).await;
        }
        self.check().await?;
        if let Some(error) = self.outcome.failure.borrow_mut().take() {
            return Err(error);
        }
        let may_miss = self.may_miss(number);
        let spot = match self.spot(index, number, piece.len() as u64).await {
            Err(error) if may_miss && error.is_lost() => {
                self.outcome.missing.borrow_mut().push(number);
                return Ok(());
            }
            spot => spot?,
        };
        let (link, outcome) = (Rc::clone(&self.windows[index].link), Rc::clone(&self.outcome));
        let listed = self.listed(index, spot, piece.len());
        drop(spawn(Class::Foreground, async move {
            let stored = match listed {
                Some(listed) => listed.store(&link, spot, piece).await,
                None => spot.write_over(&link, piece).await,
            };
            drop(permit);
            match stored {
                Err(error) if may_miss && error.is_lost() => {
                    outcome.missing.borrow_mut().push(number);
                }
                Err(error) => drop(outcome.failure.borrow_mut().get_or_insert(error)),
                Ok(()) => {}
            }
        }));
        Ok(())
    }

    /// Returns the place of a piece in the page lists, if it has one.
    fn listed(&mut self, index: usize, spot: Spot, bytes: usize) -> Option<Listed> {
        self.lists.as_mut()?.listed(index, spot, self.entry.id, bytes)
    }

    /// Returns true if the object can do without the piece. Extents of blocks are complete, and the
    /// parity of parts is computed from chunks that are stored.
    fn may_miss(&self, number: Number) -> bool {
        match number {
            Number::Parity(_) => true,
            Number::Chunk(_) => self.parity.is_some() && self.entry.placement == Placement::Kv,
        }
    }

    async fn spot(&mut self, index: usize, number: Number, bytes: u64) -> Result<Spot, Error> {
        let window = &mut self.windows[index];
        if let (Number::Chunk(_), Some(claimer)) = (number, &mut window.claimer) {
            let (unit, used) = window.unit;
            let (unit, used) = match used < UNIT_BYTES {
                true => (unit, used),
                false => {
                    let claim = window.link.run(async |drive| {
                        claimer.go_on(drive);
                        claimer.claim(self.array).await
                    });
                    (claim.await?, 0)
                }
            };
            window.unit = (unit, used + u64::from(self.entry.chunk_bytes));
            return Ok(Spot::Blocks(u64::from(unit) * UNIT_BYTES + used));
        }
        let (id, number) = match number {
            Number::Chunk(number) => (self.entry.id, number),
            Number::Parity(number) => {
                (self.entry.parity_id().expect("parity is of a protected object"), number)
            }
        };
        window.take(room::record_bytes(bytes)).await?;
        Ok(Spot::Value(id, number))
    }

    /// Waits for all pieces in flight, and stores the last page lists.
    pub(super) async fn finish(mut self) -> Result<Finished, Error> {
        let mut extents = Vec::new();
        for window in &self.windows {
            let _all: SemaphorePermit = window.permits.acquire(WINDOW).await;
        }
        let owned = self.check().await;
        let lists = self.lists.take().filter(|_| owned.is_ok());
        if let Some(lists) = lists {
            lists.finish(|index| Rc::clone(&self.windows[index].link)).await;
        }
        for window in self.windows {
            // Writes to a block namespace are durable only after a flush; a sealed object must be
            // durable.
            if let Some(claimer) = window.claimer {
                let flush = window.link.run(async |drive| {
                    let flushed = drive.block.flush().await;
                    flushed.map_err(|error| Error::command(drive, error))
                });
                flush.await?;
                extents.push(claimer.into_extents());
            }
        }
        if let Some(error) = self.outcome.failure.borrow_mut().take() {
            return Err(error);
        }
        owned?;
        Ok(Finished {
            extents: (!extents.is_empty()).then_some(extents),
            parity: self.parity.map(|parities| parities.sums),
            missing: self.outcome.missing.take(),
        })
    }
}

impl DriveWindow {
    fn new(link: Link, claimer: Option<Claimer>) -> Self {
        let (link, permits) = (Rc::new(link), Semaphore::new(WINDOW));
        Self { link, permits, claimer, records: 0, unit: (0, UNIT_BYTES) }
    }

    /// Reserves space for a record. The rest is left to the catalogue, so that a full drive still
    /// accepts names, and objects on blocks. The caller holds one permit of the window.
    async fn take(&mut self, bytes: u64) -> Result<(), Error> {
        if self.records < bytes {
            // Once all chunks are acknowledged, the drive's usage includes them.
            let _sent = self.permits.acquire(WINDOW - 1).await;
            self.records = self.link.run(async |drive| room::records_left(drive).await).await?;
        }
        let left = self.records.checked_sub(bytes).ok_or_else(|| {
            Error::Drive(DriveError::Full {
                drive: self.link.name().to_owned(),
                what: "key-value part",
                room: None,
            })
        })?;
        self.records = left;
        Ok(())
    }
}
