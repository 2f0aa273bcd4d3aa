//! In-band authentication of one connection: what its gate lets through, and the two commands that
//! open it.
//!
//! Never: the protocol, which is [`csd_nvme::auth`]'s, nor arithmetic on the reactor's thread: a
//! step may exponentiate modulo 8192 bits, so it runs on the lane, where nothing starves it.
//! Invariants: while the gate is shut nothing but authentication is begun on the queue, and no
//! other data is granted; after a failure the gate stays shut and the connection ends.

use std::cell::{Cell, RefCell};

use csd_nvme::auth::controller::{Controller, Outcome};
use csd_nvme::auth::message::AuthCommand;
use csd_nvme::auth::{Entropy, Keys, Offer};
use csd_nvme::capsule::{SGL_TRANSPORT, Sqe};
use csd_nvme::controller::admin::ADMIN_DATA_BYTES_MAX;
use csd_nvme::controller::queue::Permit;
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin, Fabrics};
use csd_nvme::status::Status;
use csd_reactor::{Class, compute_fn, random_bytes};

use super::link::Link;
use super::{command, session};
use crate::drive::Core;
use crate::log::Level;

/// Modelled cost of a step: two exponentiations in a group of 3,072 bits.
const STEP_COST_NS: u64 = 5_000_000;

#[derive(Debug, Default)]
enum State {
    /// No authentication is under way.
    #[default]
    Idle,
    /// One is.
    Running(Box<Controller>),
    /// One is on the lane.
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

    fn put(&self, controller: Box<Controller>) {
        *self.state.borrow_mut() = match controller.outcome() {
            Outcome::Pending => State::Running(controller),
            Outcome::Authenticated => {
                self.shut.set(false);
                State::Idle
            }
            Outcome::Failed => {
                // Also a queue that was open: its host could not prove itself again.
                self.shut.set(true);
                State::Failed
            }
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
pub async fn run(core: &Core, link: &Link, permit: Permit, sqe: &Sqe, data: Vec<u8>) {
    let result = match fabrics::fctype(sqe) {
        Fabrics::AUTH_SEND => send(&link.gate, sqe, data).await.map(|()| Vec::new()),
        _ => receive(&link.gate, sqe).await,
    };
    match result {
        Ok(data) if data.is_empty() => link.complete(permit, Status::SUCCESS, 0),
        Ok(data) => session::send(link, permit, 0, &data).await,
        Err(status) => command::fail(core, link, permit, sqe, status),
    }
    if link.gate.has_failed() {
        link.session.borrow().told(core, Level::Warn, "authentication failed");
        // What was just said still goes out.
        link.end();
    }
}

async fn send(gate: &Gate, sqe: &Sqe, data: Vec<u8>) -> Result<(), Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    if !command.is_ours() || command.length() as usize != data.len() {
        return Err(Status::INVALID_FIELD);
    }
    let mut controller = gate.take(true)?;
    let stepped = compute_fn(Class::System, STEP_COST_NS, move || {
        controller.send(&data);
        controller
    });
    gate.put(stepped.await.map_err(|_| Status::INTERNAL_ERROR)?);
    Ok(())
}

/// The message, padded with zeros to what the host asked for.
async fn receive(gate: &Gate, sqe: &Sqe) -> Result<Vec<u8>, Status> {
    let command = AuthCommand::from_bytes(*sqe.as_bytes());
    let (length, sgl) = (command.length(), sqe.sgl());
    let fits = length > 0 && length <= ADMIN_DATA_BYTES_MAX && length == sgl.length();
    if !command.is_ours() || !fits {
        return Err(Status::INVALID_FIELD);
    }
    if sgl.kind() != SGL_TRANSPORT {
        return Err(Status::SGL_TYPE_INVALID);
    }
    let mut controller = gate.take(false)?;
    let room = length as usize;
    let stepped = compute_fn(Class::System, STEP_COST_NS, move || {
        let message = controller.receive(room);
        (controller, message)
    });
    let (controller, message) = stepped.await.map_err(|_| Status::INTERNAL_ERROR)?;
    gate.put(controller);
    let mut message = message?;
    message.resize(room, 0);
    Ok(message)
}
