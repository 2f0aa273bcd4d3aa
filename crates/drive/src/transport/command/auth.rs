//! In-band authentication of one connection: what its gate lets through, and the two commands that
//! open it.
//!
//! Does not know the protocol, which is [`csd_nvme::auth`]'s. Invariants: while the gate is shut
//! nothing but authentication is begun on the queue, and no other data is granted; after a failure
//! the gate stays shut and the connection ends, so that a host that fails must connect again;
//! powers are computed in the lane, where nothing starves them, when it is this host's turn
//! ([`super::turns`]), and everything else on the spot.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::time::Duration;

use csd_nvme::auth::controller::{Controller, Outcome};
use csd_nvme::auth::message::AuthCommand;
use csd_nvme::auth::{Entropy, Keys, Offer};
use csd_nvme::capsule::{SGL_TRANSPORT, Sqe};
use csd_nvme::controller::admin::ADMIN_DATA_BYTES_MAX;
use csd_nvme::controller::queue::Permit;
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin, Fabrics};
use csd_nvme::status::Status;
use csd_reactor::random_bytes;

use super::link::Link;
use super::turns::origin;
use super::{command, session};
use crate::drive::Core;
use crate::log::Level;

#[derive(Debug, Default)]
enum State {
    /// No authentication is under way.
    #[default]
    Idle,
    /// One is.
    Running(Box<Controller>),
    /// A step of one waits for its turn or is in the lane.
    Away,
    /// One failed.
    Failed,
}

/// What stands between a connection and its queue.
#[derive(Debug, Default)]
pub struct Gate {
    keys: RefCell<Option<(Keys, Offer)>>,
    shut: Cell<bool>,
    state: RefCell<State>,
    // What the authentication under way took of the lane.
    spent: Cell<Duration>,
}

impl Gate {
    /// Shuts the gate until the host has authenticated itself with these keys, by what is
    /// offered.
    pub fn require(&self, keys: Keys, offer: Offer) {
        *self.keys.borrow_mut() = Some((keys, offer));
        self.shut.set(true);
    }

    /// True until the host has authenticated itself, if it must.
    pub fn is_shut(&self) -> bool {
        self.shut.get()
    }

    /// Whether a command of an I/O queue is to take the admin way: all do while the gate is shut,
    /// and authentication always does.
    pub fn concerns(&self, sqe: &Sqe) -> bool {
        self.is_shut() || is_auth(sqe)
    }

    /// Lets a command through, or not.
    ///
    /// # Errors
    /// [`Status::AUTHENTICATION_REQUIRED`].
    pub fn pass(&self, sqe: &Sqe) -> Result<(), Status> {
        if self.is_shut() && !is_auth(sqe) {
            return Err(Status::AUTHENTICATION_REQUIRED);
        }
        Ok(())
    }

    /// Takes out the authentication under way; makes one if `may_begin`.
    fn take(&self, may_begin: bool) -> Result<Box<Controller>, Status> {
        let (keys, offer) = self.keys.borrow().clone().ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut *state, State::Away) {
            State::Running(controller) => Ok(controller),
            State::Idle if may_begin => {
                let entropy = Entropy::draw(random_bytes);
                Ok(Box::new(Controller::new(keys, offer, entropy)))
            }
            before => {
                let failed = matches!(before, State::Failed);
                *state = before;
                Err(if failed {
                    Status::AUTHENTICATION_REQUIRED
                } else {
                    Status::COMMAND_SEQUENCE_ERROR
                })
            }
        }
    }

    /// Puts an authentication back, as far as it has come.
    fn put(&self, controller: Box<Controller>) {
        *self.state.borrow_mut() = match controller.outcome() {
            Outcome::Pending => State::Running(controller),
            Outcome::Authenticated => State::Idle,
            Outcome::Failed => State::Failed,
        };
    }

    fn has_failed(&self) -> bool {
        matches!(*self.state.borrow(), State::Failed)
    }
}

/// Whether a command is Authentication Send or Receive.
pub fn is_auth(sqe: &Sqe) -> bool {
    Admin(sqe.opcode()) == Admin::FABRICS
        && matches!(fabrics::fctype(sqe), Fabrics::AUTH_SEND | Fabrics::AUTH_RECEIVE)
}

/// Answers Authentication Send, with its data, or Receive.
pub async fn run(core: &Core, link: &Link, number: u64, permit: Permit, sqe: &Sqe, data: &[u8]) {
    let result = match fabrics::fctype(sqe) {
        Fabrics::AUTH_SEND => send(&link.gate, sqe, data).map(|outcome| (outcome, Vec::new())),
        _ => receive(core, link, sqe).await,
    };
    let result = result.and_then(|(outcome, data)| match outcome {
        Outcome::Authenticated => open(core, link, number).map(|()| data),
        _ => Ok(data),
    });
    match result {
        Ok(data) if data.is_empty() => link.complete(permit, Status::SUCCESS, 0),
        Ok(data) => session::send(link, permit, 0, &data).await,
        Err(status) => command::fail(core, link, permit, sqe, status),
    }
    if link.gate.has_failed() {
        // Also of a queue that was open: its host could not prove itself again.
        link.gate.shut.set(true);
        link.session.borrow().told(core, Level::Warn, "authentication failed");
        // What was just said still goes out.
        link.end();
    }
}

/// Opens the gate for a host that has proved itself.
fn open(core: &Core, link: &Link, number: u64) -> Result<(), Status> {
    core.turns.give_back(link.gate.spent.take());
    if !link.session.borrow().proved() {
        *link.gate.state.borrow_mut() = State::Failed;
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    core.shared.newcomers.remove(number);
    link.gate.shut.set(false);
    Ok(())
}

fn send(gate: &Gate, sqe: &Sqe, data: &[u8]) -> Result<Outcome, Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    if !command.is_ours() || command.length() as usize != data.len() {
        return Err(Status::INVALID_FIELD);
    }
    let mut controller = gate.take(true)?;
    controller.send(data);
    let outcome = controller.outcome();
    gate.put(controller);
    Ok(outcome)
}

/// The message, padded with zeros to what the host asked for.
async fn receive(core: &Core, link: &Link, sqe: &Sqe) -> Result<(Outcome, Vec<u8>), Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    let (length, sgl) = (command.length(), sqe.sgl());
    let fits = length > 0 && length <= ADMIN_DATA_BYTES_MAX && length == sgl.length();
    if !command.is_ours() || !fits {
        return Err(Status::INVALID_FIELD);
    }
    if sgl.kind() != SGL_TRANSPORT {
        return Err(Status::SGL_TYPE_INVALID);
    }
    let gate = &link.gate;
    let mut controller = gate.take(false)?;
    let room = length as usize;
    let mut message = match controller.power(room) {
        None => controller.receive(room),
        Some(group) => {
            let peer = link.peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
            let stepped = core.turns.compute((origin(peer), group), move || {
                let message = controller.receive(room);
                (controller, message)
            });
            let (stepped, spent) = stepped.await.map_err(|_| Status::INTERNAL_ERROR)?;
            gate.spent.set(gate.spent.get() + spent);
            let message;
            (controller, message) = stepped;
            message
        }
    };
    let outcome = controller.outcome();
    gate.put(controller);
    if let Ok(message) = &mut message {
        message.resize(room, 0);
    }
    message.map(|message| (outcome, message))
}
