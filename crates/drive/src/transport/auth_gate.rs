//! [`AuthGate`]: the state of in-band authentication of one connection.
//!
//! The protocol is [`csd_nvme::auth`]'s. Invariants: while the gate is shut only authentication
//! begins on the queue, and no other data is granted; after a failure the gate stays shut.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use csd_nvme::auth::controller::{Controller, Outcome};
use csd_nvme::auth::{Entropy, Keys, Offer};
use csd_nvme::capsule::Sqe;
use csd_nvme::fabrics;
use csd_nvme::opcode::{Admin, Fabrics};
use csd_nvme::status::Status;
use csd_reactor::random_bytes;

#[derive(Debug, Default)]
enum State {
    /// No authentication runs.
    #[default]
    Idle,
    /// One runs.
    Running(Box<Controller>),
    /// A step of one waits for its turn, or runs on the compute thread.
    Away,
    /// One failed.
    Failed,
}

/// Authentication state of one connection.
#[derive(Debug, Default)]
pub struct AuthGate {
    keys: RefCell<Option<(Keys, Offer)>>,
    shut: Cell<bool>,
    state: RefCell<State>,
    // Time on the compute thread of the authentication that runs.
    spent: Cell<Duration>,
}

impl AuthGate {
    /// Shuts the gate until the host has authenticated itself with these keys, by an algorithm of
    /// the offer.
    pub fn require(&self, keys: Keys, offer: Offer) {
        *self.keys.borrow_mut() = Some((keys, offer));
        self.shut.set(true);
    }

    /// Returns true until the host has authenticated itself, if it must.
    pub fn is_shut(&self) -> bool {
        self.shut.get()
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.shut.set(false);
    }

    /// Shuts the gate for good, also of a queue that was open.
    pub fn fail(&self) {
        *self.state.borrow_mut() = State::Failed;
        self.shut.set(true);
    }

    /// Returns true when an authentication failed.
    pub fn has_failed(&self) -> bool {
        matches!(*self.state.borrow(), State::Failed)
    }

    /// Returns true if a command of an I/O queue is processed as an admin command: every command
    /// while the gate is shut, and authentication always.
    pub fn concerns(&self, sqe: &Sqe) -> bool {
        self.is_shut() || is_auth(sqe)
    }

    /// Checks that a command may pass.
    ///
    /// # Errors
    /// [`Status::AUTHENTICATION_REQUIRED`].
    pub fn pass(&self, sqe: &Sqe) -> Result<(), Status> {
        if self.is_shut() && !is_auth(sqe) {
            return Err(Status::AUTHENTICATION_REQUIRED);
        }
        Ok(())
    }

    /// Takes out the authentication that runs; makes one if `may_begin`.
    ///
    /// # Errors
    /// [`Status::COMMAND_SEQUENCE_ERROR`], or [`Status::AUTHENTICATION_REQUIRED`] after a failure.
    pub fn take(&self, may_begin: bool) -> Result<Box<Controller>, Status> {
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

    /// Puts an authentication back.
    pub fn put(&self, controller: Box<Controller>) {
        *self.state.borrow_mut() = match controller.outcome() {
            Outcome::Pending => State::Running(controller),
            Outcome::Authenticated => State::Idle,
            Outcome::Failed => State::Failed,
        };
    }

    /// Adds time on the compute thread to the authentication that runs.
    pub fn add_spent(&self, spent: Duration) {
        self.spent.set(self.spent.get() + spent);
    }

    /// Returns the time on the compute thread of the authentication, and resets it.
    pub fn take_spent(&self) -> Duration {
        self.spent.take()
    }
}

/// Returns true for Authentication Send and Receive.
pub fn is_auth(sqe: &Sqe) -> bool {
    Admin(sqe.opcode()) == Admin::FABRICS
        && matches!(fabrics::fctype(sqe), Fabrics::AUTH_SEND | Fabrics::AUTH_RECEIVE)
}
