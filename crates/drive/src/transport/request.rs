//! [`Request`]: one command from its capsule to its answer.
//!
//! A request owns the right to answer its command, and every way to answer consumes it. So a
//! command is answered exactly once, a command of an I/O queue is counted exactly once, and a
//! failure is in the error log.

use std::cell::Cell;
use std::rc::Rc;

use csd_kvlog::epochs::Turn;
use csd_nvme::capsule::{SGL_IN_CAPSULE, SGL_TRANSPORT, Sqe};
use csd_nvme::controller::queue::Permit;
use csd_nvme::opcode::Admin;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, worked, yield_now};

use super::grants::Granted;
use super::link::Link;
use crate::drive::Core;
use crate::metrics::Begun;

/// A command that is not answered yet.
pub struct Request {
    /// Core that the command came to.
    pub core: Rc<Core>,
    /// Connection that the command came by.
    pub link: Rc<Link>,
    /// Submission queue entry.
    pub sqe: Sqe,
    /// Place of the answer in the order of changes. It ends when the command is answered.
    pub turn: Turn,
    permit: Permit,
    capsule: Option<Buffer>,
    // `None` for commands that metrics do not count: those of admin queues, and of fabrics.
    begun: Option<Begun>,
    // True if its data says that no response follows.
    pub(super) told: Cell<bool>,
}

/// A command that succeeded.
pub enum Done {
    /// It has this result, and no data.
    Result(u64),
    /// Its data is queued, and it has this result.
    Data(u64),
}

/// The data that came with a command, and the right to hold it.
#[derive(Default)]
pub struct Payload {
    /// Pieces of the data, in order.
    pub pieces: Vec<Buffer>,
    /// Memory of granted data. It is held until the command ends: data that is being written takes
    /// memory as data that is being received does.
    pub held: Option<Granted>,
}

impl Payload {
    /// Returns the data in one piece. Each piece is freed as soon as it is copied. Yields to other
    /// tasks between two of them.
    pub async fn joined(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.pieces.iter().map(|piece| piece.len()).sum());
        for piece in self.pieces {
            if !all.is_empty() {
                yield_now().await;
            }
            worked(piece.len() as u64);
            all.extend_from_slice(&piece);
        }
        all
    }
}

impl Request {
    /// Begins a command; `permit` is the right to answer it.
    pub fn new(core: &Rc<Core>, link: &Rc<Link>, permit: Permit, sqe: Sqe) -> Self {
        let is_counted = permit.queue().qid() != 0 && sqe.opcode() != Admin::FABRICS.0;
        let begun = is_counted.then(|| core.metrics.begin(&sqe, link.side));
        let (core, link) = (Rc::clone(core), Rc::clone(link));
        Self {
            core,
            link,
            sqe,
            turn: Turn::default(),
            permit,
            capsule: None,
            begun,
            told: Cell::new(false),
        }
    }

    /// Adds the command's in-capsule data.
    pub fn set_capsule(&mut self, data: Buffer) {
        self.capsule = Some(data);
    }

    /// Returns the length of the in-capsule data in bytes.
    pub fn capsule_bytes(&self) -> usize {
        self.capsule.as_ref().map_or(0, |data| data.len())
    }

    /// Returns the identifiers of the queue and of the command.
    pub fn id(&self) -> (u16, u16) {
        (self.permit.queue().qid(), self.permit.cid())
    }

    /// Takes the `bytes` bytes that come with the command, from its capsule or by a transfer.
    ///
    /// # Errors
    /// The status of a data descriptor that does not fit, or of a transfer that failed.
    pub async fn payload(&mut self, bytes: u32) -> Result<Payload, Status> {
        let (link, core) = (Rc::clone(&self.link), Rc::clone(&self.core));
        let grant = async { Ok(link.grants.acquire(&core.budget, bytes).await) };
        self.payload_in(grant, bytes).await
    }

    /// As [`Self::payload`], in memory that `grant` waits for. An R2T is sent only when there is
    /// memory for its data.
    ///
    /// # Errors
    /// As [`Self::payload`], or the error of `grant`.
    pub async fn payload_in(
        &mut self,
        grant: impl Future<Output = Result<Granted, Status>>,
        bytes: u32,
    ) -> Result<Payload, Status> {
        let (sgl, capsule) = (self.sqe.sgl(), self.capsule.take());
        if bytes == 0 {
            let is_empty = capsule.is_none();
            return if is_empty { Ok(Payload::default()) } else { Err(Status::INVALID_FIELD) };
        }
        if sgl.length() != bytes {
            return Err(Status::SGL_LENGTH_INVALID);
        }
        match (sgl.kind(), capsule) {
            (SGL_IN_CAPSULE, _) if sgl.address() != 0 => Err(Status::SGL_OFFSET_INVALID),
            (SGL_IN_CAPSULE, Some(buffer)) if buffer.len() == bytes as usize => {
                Ok(Payload { pieces: vec![buffer], held: None })
            }
            (SGL_IN_CAPSULE, _) => Err(Status::SGL_LENGTH_INVALID),
            (SGL_TRANSPORT, None) => {
                let held = self.link.host.there(grant).await?;
                let pieces = self.link.receive(self.permit.cid(), bytes).await?;
                Ok(Payload { pieces, held: Some(held) })
            }
            _ => Err(Status::SGL_TYPE_INVALID),
        }
    }

    /// Checks that the host's buffer takes `bytes` bytes of data by transfer.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] beyond the transfer limit, [`Status::SGL_LENGTH_INVALID`],
    /// [`Status::SGL_TYPE_INVALID`].
    pub fn check_buffer(&self, bytes: u64) -> Result<(), Status> {
        let sgl = self.sqe.sgl();
        if bytes > u64::from(self.core.shared.subsystem.transfer_bytes_max()) {
            return Err(Status::INVALID_FIELD);
        }
        if u64::from(sgl.length()) < bytes {
            return Err(Status::SGL_LENGTH_INVALID);
        }
        if sgl.kind() == SGL_TRANSPORT { Ok(()) } else { Err(Status::SGL_TYPE_INVALID) }
    }

    /// Returns true if the end of the data may stand for the response.
    pub(super) fn may_skip_response(&self) -> bool {
        self.permit.queue().may_skip_response()
    }

    /// Answers the command as it ended.
    pub fn answer(self, ended: Result<Done, Status>) {
        match ended {
            Ok(Done::Result(result)) => self.complete(result),
            Ok(Done::Data(result)) => self.finish_data(result),
            Err(status) => self.fail(status),
        }
    }

    /// Answers a command that succeeded without data.
    pub fn complete(self, result: u64) {
        self.count(Ok(result));
        self.link.complete(self.permit, Status::SUCCESS, result);
    }

    /// Answers a command that succeeded and has queued its data.
    pub fn finish_data(self, result: u64) {
        self.count(Ok(result));
        self.link.finish_data(self.permit, result, self.told.get());
    }

    /// Answers a command that succeeded with data that is at hand.
    pub async fn answer_with(self, result: u64, data: &[u8]) {
        let link = Rc::clone(&self.link);
        let _reserved = link.reserve(data.len() as u64).await;
        self.send(data, result == 0).await;
        self.finish_data(result);
    }

    /// Answers a command that failed: notes it in the error log and, if it met damage, in the
    /// drive's health.
    pub fn fail(self, status: Status) {
        self.core.note_failure(self.sqe.nsid(), status);
        self.refuse(status, 0);
    }

    /// Answers a command that failed for a reason in the command itself, with dword 0 of the
    /// completion: notes it in the error log.
    pub fn refuse(self, status: Status, dword0: u32) {
        self.count(Err(status));
        self.link.note_error(&self.permit, &self.sqe, status);
        self.link.complete(self.permit, status, u64::from(dword0));
    }

    /// Answers a command that ended early, without a count or an entry in the error log.
    pub fn end_uncounted(self, status: Status) {
        self.link.complete(self.permit, status, 0);
    }

    /// Returns the right to answer, for a command that is answered when an event happens.
    pub fn into_permit(self) -> Permit {
        self.permit
    }

    fn count(&self, ended: Result<u64, Status>) {
        let Some(begun) = self.begun else { return };
        match ended {
            Ok(result) => self.core.metrics.end(begun, result),
            Err(status) => self.core.metrics.fail(begun, status),
        }
    }
}
