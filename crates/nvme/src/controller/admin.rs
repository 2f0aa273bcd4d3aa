//! Admin commands of a connected controller, fabrics commands among them.
//!
//! Connect is not here: it makes the controller, see [`super::connect`]. Invariant: an answer's
//! data is never longer than the host's buffer; a longer log is cut as Get Log Page allows, and a
//! buffer too small for a fixed structure is [`Status::SGL_LENGTH_INVALID`].

use super::{Backing, Controller, EVENT_REQUESTS_MAX, Event, Kind, Subsystem};
use crate::capsule::Sqe;
use crate::fabrics::{self, Property};
use crate::nvm::Fused;
use crate::opcode::{Admin, Csi, Direction, Fabrics};
use crate::program;
use crate::property::{
    self, Configuration, ControllerStatus, SHUTDOWN_COMPLETE, SHUTDOWN_OCCURRING,
};
use crate::status::Status;

/// Maximum bytes that any admin command may carry to the controller, in the capsule or not.
pub const ADMIN_DATA_BYTES_MAX: u32 = 8192;

/// The answer to an admin command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Complete it now.
    Complete {
        /// Status.
        status: Status,
        /// Result dwords 0 and 1.
        result: u64,
        /// Data for the host.
        data: Vec<u8>,
    },
    /// Hold it: an Asynchronous Event Request.
    Hold,
    /// Answer the held requests of these identifiers with [`Status::ABORT_REQUESTED`], then
    /// complete this one with result 0.
    Abort(Vec<u16>),
    /// Run this command of the compute namespace, and answer with its outcome.
    Compute(program::Command),
}

impl Answer {
    /// Returns success with a result and no data.
    pub fn result(result: u64) -> Self {
        Self::Complete { status: Status::SUCCESS, result, data: Vec::new() }
    }

    /// Returns success with data.
    pub fn data(data: Vec<u8>) -> Self {
        Self::Complete { status: Status::SUCCESS, result: 0, data }
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Complete { status, result: 0, data: Vec::new() }
    }
}

/// Returns the maximum bytes that a command of the admin queue may carry to the controller.
pub fn data_bytes_max(sqe: &Sqe) -> u32 {
    match program::Command::has(sqe.opcode()) {
        true => program::Command::data_bytes_max(sqe.opcode()),
        false => ADMIN_DATA_BYTES_MAX,
    }
}

/// Returns the number of bytes that a command of the admin queue carries to the controller.
pub fn data_to_controller(sqe: &Sqe) -> u32 {
    let opcode = match Admin(sqe.opcode()) {
        Admin::FABRICS => fabrics::fctype(sqe).0,
        // Features move data only where the feature has some, in the opcode's direction.
        _ => sqe.opcode(),
    };
    match Direction::of(opcode) {
        Direction::ToController => sqe.sgl().length(),
        _ => 0,
    }
}

impl Controller {
    /// Answers an admin command; `data` is the data of the command.
    pub fn admin(
        &mut self,
        sqe: &Sqe,
        data: &[u8],
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Answer {
        let opcode = Admin(sqe.opcode());
        if opcode == Admin::FABRICS {
            return self.fabrics(sqe, subsystem, backing).unwrap_or_else(Answer::from);
        }
        if Fused::of(sqe) != Fused::Single {
            return Status::INVALID_FIELD.into();
        }
        if !self.ready() {
            return Status::COMMAND_SEQUENCE_ERROR.into();
        }
        if self.kind == Kind::Discovery {
            return self.discovery_admin(sqe, subsystem, backing);
        }
        let answer = match opcode {
            Admin::IDENTIFY => self.identify(sqe, subsystem, backing).map(Answer::data),
            Admin::GET_LOG_PAGE => self.get_log_page(sqe, subsystem, backing).map(Answer::data),
            Admin::SET_FEATURES => self.set_features(sqe, data, subsystem, backing),
            Admin::GET_FEATURES => self.get_features(sqe, subsystem, backing),
            Admin::KEEP_ALIVE => Ok(Answer::result(0)),
            Admin::ABORT => Ok(self.abort(sqe, backing)),
            Admin::ASYNC_EVENT_REQUEST => return self.hold(sqe),
            opcode if program::Command::has(opcode.0) => compute(sqe, data, subsystem),
            _ => Err(Status::INVALID_OPCODE),
        };
        answer.and_then(|answer| fit(answer, sqe.sgl().length())).unwrap_or_else(Answer::from)
    }

    /// Holds an Asynchronous Event Request, unless the limit is reached.
    pub(super) fn hold(&mut self, sqe: &Sqe) -> Answer {
        if self.held.len() >= usize::from(EVENT_REQUESTS_MAX) {
            return Status::ASYNC_EVENT_LIMIT.into();
        }
        self.held.push(sqe.cid());
        Answer::Hold
    }

    /// Executes Abort: returns a held request, or asks an execution to end. Any other command has
    /// been answered or will be without delay, so it is not aborted (dword 0 bit 0 set).
    pub(super) fn abort(&mut self, sqe: &Sqe, backing: &dyn Backing) -> Answer {
        let [queue_low, queue_high, cid_low, cid_high] = sqe.cdw10().to_le_bytes();
        let (queue, cid) =
            (u16::from_le_bytes([queue_low, queue_high]), u16::from_le_bytes([cid_low, cid_high]));
        match self.held.iter().position(|held| queue == 0 && *held == cid) {
            Some(at) => Answer::Abort(vec![self.held.remove(at)]),
            None if queue != 0 && backing.abort(queue, cid) => Answer::result(0),
            None => Answer::result(1),
        }
    }

    fn fabrics(
        &mut self,
        sqe: &Sqe,
        subsystem: &Subsystem,
        backing: &dyn Backing,
    ) -> Result<Answer, Status> {
        let view = Property::from_bytes(*sqe.as_bytes());
        match fabrics::fctype(sqe) {
            Fabrics::PROPERTY_GET => {
                let wide = view.attrib() & 7 == 1;
                let value = match (view.ofst(), wide) {
                    (property::CAP, true) => subsystem.capabilities().0,
                    (property::VS, false) => u64::from(property::VERSION),
                    (property::CC, false) => u64::from(self.configuration.0),
                    (property::CSTS, false) => u64::from(self.status_seen(backing).0),
                    (property::NSSR | property::CRTO, false) => 0,
                    _ => return Err(Status::INVALID_FIELD),
                };
                Ok(Answer::result(value))
            }
            Fabrics::PROPERTY_SET => {
                if view.ofst() != property::CC || view.attrib() & 7 != 0 {
                    return Err(Status::INVALID_FIELD);
                }
                let value = u32::try_from(view.value()).map_err(|_| Status::INVALID_FIELD)?;
                let was_ready = self.ready();
                let held = self.configure(Configuration(value))?;
                if !was_ready && self.ready() && self.kind == Kind::Io {
                    self.features.load(backing);
                    if self.features.is_beyond(backing.smart().temperature()) {
                        self.raise(Event::Temperature);
                    }
                }
                Ok(if held.is_empty() { Answer::result(0) } else { Answer::Abort(held) })
            }
            Fabrics::CONNECT => Err(Status::COMMAND_SEQUENCE_ERROR),
            // An I/O queue alone is disconnected; the admin queue ends with its connection.
            Fabrics::DISCONNECT => Err(Status::INVALID_QUEUE_TYPE),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Executes a write to Controller Configuration: enable, disable (reset) or shut down. Returns
    /// the requests that were held, which end with a reset, although their queue does not.
    fn configure(&mut self, new: Configuration) -> Result<Vec<u16>, Status> {
        let mut aborted = Vec::new();
        let was = self.configuration;
        if new.enable() == 1 && was.enable() == 0 {
            let known = matches!(
                new.css(),
                property::CSS_NVM | property::CSS_ALL | property::CSS_ADMIN_ONLY
            );
            let sizes = new.iosqes() == 6 && new.iocqes() == 4;
            if !known || !sizes || new.mps() != 0 {
                return Err(Status::INVALID_FIELD);
            }
            self.status = ControllerStatus::default().with_ready(1);
        }
        if new.enable() == 0 && was.enable() == 1 {
            let cntlid = self.cntlid;
            let keep_alive_ms = self.features.keep_alive_ms();
            aborted = std::mem::take(&mut self.held);
            *self = Self { kind: self.kind, ..Self::new(cntlid, keep_alive_ms) };
        }
        if new.shn() != 0 {
            self.status = self.status.with_shst(SHUTDOWN_COMPLETE);
        }
        self.configuration = new;
        Ok(aborted)
    }

    /// Returns the status that the host reads: neither reset nor shutdown is complete while a
    /// command of an I/O queue goes on.
    fn status_seen(&self, backing: &dyn Backing) -> ControllerStatus {
        let goes_on = backing.io_queues() > 0;
        match (self.configuration.enable(), self.status.shst()) {
            (0, _) if goes_on => self.status.with_ready(1),
            (_, SHUTDOWN_COMPLETE) if goes_on => self.status.with_shst(SHUTDOWN_OCCURRING),
            _ => self.status,
        }
    }

    /// Returns true while the controller is ready for I/O: I/O queues must close when the host asks
    /// for shutdown or reset.
    pub fn io_allowed(&self) -> bool {
        self.kind == Kind::Io
            && self.ready()
            && self.configuration.css() != property::CSS_ADMIN_ONLY
    }
}

/// Parses a command of the compute namespace, and makes every check that its own bytes allow.
fn compute(sqe: &Sqe, data: &[u8], subsystem: &Subsystem) -> Result<Answer, Status> {
    match subsystem.namespace(sqe.nsid()) {
        Some(namespace) if namespace.csi() == Csi::CP => {
            program::Command::parse(sqe, data.len()).map(Answer::Compute)
        }
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

/// Checks that an answer fits the host's buffer. A buffer too small is the host's mistake; nothing
/// is cut.
pub(super) fn fit(answer: Answer, buffer: u32) -> Result<Answer, Status> {
    match &answer {
        Answer::Complete { data, .. } if data.len() > buffer as usize => {
            Err(Status::SGL_LENGTH_INVALID)
        }
        _ => Ok(answer),
    }
}
