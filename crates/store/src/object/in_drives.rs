//! Encoding in drives: a drive gathers the chunks of a stripe from its peers, and stores the parity
//! there ([`csd_nvme::vendor::combine`]). The host sends tasks and gets digests.
//!
//! The drive of the first parity piece encodes a stripe, so that drives take turns as parity does.
//! A whole object is encoded by the drive that has it, which also sends the chunks; to blocks they
//! are fetched by their own drives ([`super::fetch_to_blocks`]).
//! A drive that fails is not asked again; its stripes are encoded on the host. The host deletes the
//! answers of a task; a command that is interrupted leaves them where parity is swept. At last the
//! drives sum the pages of what they have stored ([`super::new_page_lists`]).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{self, Answers, Piece, Stored, Target, Task};
use csd_nvme::vendor::execute::{Output, chunk_key};

use super::Error;
use super::encoding::{Encoded, Encoding};
use super::new_page_lists::UnlistedPieces;
use crate::array::{Drive, DriveIndex, OBJECTS_NSID, words};
use crate::catalogue::ObjectId;
use crate::pages::Wanted;
use crate::peers::{Peers, is_of_piece};
use crate::piece::Spot;

/// Drives that encode.
#[derive(Default)]
pub(super) struct InDrives {
    /// Index of the program by drive.
    indexes: RefCell<BTreeMap<DriveIndex, u16>>,
    /// Drives that have failed, with the reason.
    failed: RefCell<BTreeMap<DriveIndex, String>>,
    /// Pairs of drives of which the second cannot fetch from the first.
    apart: RefCell<BTreeSet<(DriveIndex, DriveIndex)>>,
    /// Number of stripes that the host has encoded.
    here: Cell<u32>,
    /// Pieces that drives have encoded or copied, by the drive that holds them.
    stored: RefCell<UnlistedPieces>,
}

impl InDrives {
    /// Returns the number of stripes that the host had to encode.
    pub(super) fn encoded_here(&self) -> u32 {
        self.here.get()
    }

    /// Describes the drives that have failed.
    pub(super) fn warnings(&self) -> Vec<String> {
        let stripes = self.here.get();
        let failed = self.failed.borrow();
        let told = failed.values().map(|why| format!("{why}: it does not encode any more"));
        let host = (stripes > 0).then(|| format!("{stripes} stripes were encoded on the host"));
        told.chain(host).collect()
    }

    /// Returns the index of the program on a drive.
    pub(super) async fn index(&self, drive: &Drive) -> Result<u16, String> {
        if let Some(index) = self.indexes.borrow().get(&drive.index) {
            return Ok(*index);
        }
        let programs = drive.compute.programs().await.map_err(|error| words(&error))?;
        let index = programs.iter().position(|program| program.pid() == combine::PROGRAM_ID);
        let index = index.and_then(|index| u16::try_from(index).ok());
        let index = index.ok_or("it has no program `combine`: update it")?;
        self.indexes.borrow_mut().insert(drive.index, index);
        Ok(index)
    }

    /// Returns true if a drive has not failed.
    pub(super) fn is_sound(&self, drive: &Drive) -> bool {
        !self.failed.borrow().contains_key(&drive.index)
    }

    /// Notes that a drive has failed, and is not asked again.
    pub(super) fn gives_up(&self, drive: &Drive, why: &str) {
        let why = format!("drive {}: {why}", drive.name);
        self.failed.borrow_mut().insert(drive.index, why);
    }

    /// Begins an object, of which drives have stored these pieces, with the room that is left.
    pub(super) fn begin(&self, stored: UnlistedPieces) {
        self.stored.replace(stored);
    }

    /// Returns true if it was checked that drives have room for all pieces of the object.
    pub(super) fn has_room(&self) -> bool {
        self.stored.borrow().left.is_some()
    }

    /// Takes the pieces that drives have stored.
    pub(super) fn take_stored(&self) -> UnlistedPieces {
        self.stored.take()
    }

    /// Notes that a drive cannot fetch from another one.
    pub(super) fn keep_apart(&self, from: &Drive, to: &Drive) {
        self.apart.borrow_mut().insert((from.index, to.index));
    }

    /// Returns true if it is known that a drive cannot fetch from another one.
    pub(super) fn are_apart(&self, from: &Drive, to: &Drive) -> bool {
        self.apart.borrow().contains(&(from.index, to.index))
    }

    /// Notes that the host encodes a stripe.
    fn add_here(&self) {
        self.here.set(self.here.get() + 1);
    }

    /// Has a drive execute the task of a stripe, and takes its answers. They lie for a moment under
    /// the parity's identifier, with a number that no piece has.
    ///
    /// # Errors
    /// The reason for which the drive is not asked again, in words; `None` if a piece is at fault.
    async fn execute(
        &self,
        executor: &Drive,
        task: &Task,
        (parity_id, stripe): (ObjectId, u32),
    ) -> Result<Answers, Option<String>> {
        let index = self.index(executor).await.map_err(Some)?;
        let (sources, targets) = (task.sources.len(), task.targets.len());
        let bytes = u32::try_from(Answers::bytes(sources, targets)).expect("some hundred bytes");
        let (nsid, prefix, first) = (OBJECTS_NSID, parity_id.0, u32::MAX - stripe);
        let output = Output::KvChunks { nsid, prefix, first, stride: 1, chunk_bytes: bytes };
        let failed =
            |error: csd_initiator::Error| (!is_of_piece(error.status())).then(|| words(&error));
        executor.compute.execute(index, &task.execution(output)).await.map_err(failed)?;
        let key = chunk_key(&prefix, first);
        let value = executor.objects.retrieve(&key, bytes).await.map_err(failed)?;
        executor.objects.delete(&key).await.map_err(failed)?;
        let answers = value.and_then(|value| Answers::parse(&value, sources, targets));
        let is_of_task = |answers: &Answers| {
            let mut read = task.sources.iter().zip(&answers.sources);
            read.all(|(source, read)| source.crc32c.is_none_or(|named| named == *read))
        };
        let answers = answers.filter(is_of_task);
        answers.ok_or_else(|| Some("its answers are malformed, or of other pieces".to_owned()))
    }
}

/// Returns the error of a piece that its drive has refused to store.
fn refused(drive: &Drive, status: Status) -> Error {
    let what = "Store by a peer";
    let (url, reason) = (drive.url.as_str().into(), None);
    let source = csd_initiator::Error::Status { drive: url, what, status, reason };
    Error::command(drive, source)
}

impl Encoding {
    /// Has a drive encode a stripe; `None` if none can.
    pub(super) async fn encode_in(
        self: &Rc<Self>,
        drives: &Rc<InDrives>,
        stripe: u32,
    ) -> Result<Option<Encoded>, Error> {
        // The digest of a parity piece is needed even if its drive is down.
        let data = self.stripes.scheme().data();
        let mut parity = self.stripes.pieces(stripe).filter(|piece| *piece >= data);
        let is_reachable = parity.all(|piece| self.drive(stripe, piece).is_ok());
        let mut pulled = self.pulled(stripe);
        let is_pulled =
            pulled.all(|piece| self.drive(stripe, piece).is_ok_and(|drive| drives.is_sound(drive)));
        let executor = self.executor(stripe);
        let executor = executor.filter(|drive| is_reachable && is_pulled && drives.is_sound(drive));
        if let Some(executor) = executor {
            let parity_id = self.entry.parity_id().expect("it is protected");
            let reachable: Vec<usize> =
                self.sent(stripe).filter(|piece| self.drive(stripe, *piece).is_ok()).collect();
            self.pace_of(stripe, &reachable).await;
            let executed = match self.task(executor, stripe, &reachable) {
                Ok(task) => drives.execute(executor, &task, (parity_id, stripe)).await,
                Err(error) => Err(Some(error.to_string())),
            };
            match executed {
                Ok(answers) if self.pull(drives, stripe, &answers.sources).await => {
                    return self.encoded(drives, stripe, &reachable, answers).map(Some);
                }
                Err(Some(why)) => drives.gives_up(executor, &why),
                Ok(_) | Err(None) => {}
            }
        }
        drives.add_here();
        Ok(None)
    }

    /// Waits until the drives of a stripe may read its chunks, and write these pieces.
    async fn pace_of(&self, stripe: u32, written: &[usize]) {
        for (piece, chunk) in self.stripes.chunks(stripe).iter().enumerate() {
            if let Ok((drive, entry)) = self.source(stripe, piece) {
                self.pace.wait(drive.index, entry.layout().chunk_len(*chunk).into()).await;
            }
        }
        for piece in written {
            if let Ok(drive) = self.drive(stripe, *piece) {
                self.pace.wait(drive.index, self.spot(stripe, *piece).1.into()).await;
            }
        }
    }

    /// Returns the drive that encodes a stripe, if it is up: the origin, or that of the first
    /// parity piece.
    fn executor(&self, stripe: u32) -> Option<&Rc<Drive>> {
        match &self.origin {
            Some((drive, _)) => Some(drive),
            None => self.drive(stripe, self.stripes.scheme().data()).ok(),
        }
    }

    /// Returns the task of a stripe that stores these pieces.
    fn task(&self, executor: &Drive, stripe: u32, written: &[usize]) -> Result<Task, Error> {
        let mut peers = Peers::of(executor);
        let chunks = self.stripes.chunks(stripe);
        let mut sources = Vec::new();
        for (piece, chunk) in chunks.iter().enumerate() {
            let (drive, entry) = self.source(stripe, piece)?;
            let layout = entry.layout();
            let (spot, bytes) = (Spot::of_chunk(entry, &layout, *chunk), layout.chunk_len(*chunk));
            let (location, crc32c) = (spot.location(drive.block.block_bytes()), entry.sum(*chunk));
            sources.push(Piece { peer: peers.number(drive), location, bytes, crc32c });
        }
        let mut targets = Vec::new();
        for number in written {
            let drive = self.drive(stripe, *number)?;
            let (spot, bytes) = self.spot(stripe, *number);
            let (peer, location) = (peers.number(drive), spot.location(drive.block.block_bytes()));
            let piece = Piece { peer, location, bytes, crc32c: None };
            let factor = |column| self.code.coefficient(*number, column);
            targets.push(Target { piece, factors: (0..chunks.len()).map(factor).collect() });
        }
        Ok(Task { sources, targets, guards: Vec::new(), peers: peers.into_nqns() })
    }

    /// Returns the digests of a stripe, and the pieces that are not stored; `written` are those of
    /// the task, and chunks on blocks were fetched.
    fn encoded(
        &self,
        drives: &InDrives,
        stripe: u32,
        written: &[usize],
        answers: Answers,
    ) -> Result<Encoded, Error> {
        let mut targets: BTreeMap<usize, (u32, Stored)> =
            written.iter().copied().zip(answers.targets).collect();
        let pulled = |piece: usize| (piece, (answers.sources[piece], Stored::Yes));
        targets.extend(self.pulled(stripe).map(pulled));
        let (mut sums, mut lost) = (Vec::new(), Vec::new());
        for piece in self.written(stripe) {
            let (sum, stored) = targets.remove(&piece).unwrap_or((0, Stored::Lost));
            match stored {
                Stored::Yes => {
                    let (drive, (spot, bytes)) =
                        (self.drive(stripe, piece)?.index, self.spot(stripe, piece));
                    drives.stored.borrow_mut().add(drive, Wanted { spot, bytes, sum });
                }
                Stored::Lost => lost.push(self.number(stripe, piece)),
                Stored::Refused(status) => return Err(refused(self.drive(stripe, piece)?, status)),
            }
            if piece >= self.stripes.scheme().data() {
                sums.push(sum);
            }
        }
        Ok(Encoded { chunk_sums: answers.sources, sums, lost })
    }
}
