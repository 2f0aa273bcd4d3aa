//! [`Link`]: a drive of a run, reconnected when its connection is lost.
//!
//! Programs are idempotent: an execution whose completion is unknown is run again. A drive may have
//! been restarted in the meantime, so the contents of its memory are sent again. Invariant: a drive
//! that does not return within [`TRIES`] attempts, returns with another medium, or is lost more
//! often than that, stays lost.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::{Semaphore, sleep};
use csd_store::array::{Array, Drive, DriveIndex, DriveSlot, Plan};

use crate::error::Error;

/// Number of attempts to reconnect to a lost drive, each after a longer pause.
pub(crate) const TRIES: u32 = 3;
/// Pause before the first attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// A drive of a run, as one core sees it.
pub(crate) struct Link {
    plan: Plan,
    options: Options,
    slot: DriveSlot,
    index: DriveIndex,
    /// The current connection; `None` if the drive was down at the beginning.
    drive: RefCell<Option<Rc<Drive>>>,
    renewals: Cell<u32>,
    /// Number of the connection on which the drive's memory was prepared for the step.
    prepared: Cell<Option<u32>>,
    lost: RefCell<Option<String>>,
    lock: Semaphore,
    /// Bytes that crossed on earlier connections.
    crossed: Cell<u64>,
}

impl Link {
    /// Returns links to these members of the array; to those that are down only if the run can do
    /// without them.
    ///
    /// # Errors
    /// When one of the others is down.
    pub(crate) fn all(
        array: &Array,
        plan: &Plan,
        options: &Options,
        members: &[DriveIndex],
        may_be_down: bool,
    ) -> Result<Vec<Self>, Error> {
        let link = |&index: &DriveIndex| {
            let drive = match array.drive(index).map(Rc::clone) {
                Err(_) if may_be_down && array.slot(index).is_some() => None,
                drive => Some(drive?),
            };
            Ok(Self {
                plan: plan.clone(),
                options: options.clone(),
                slot: array.slots()[index].clone(),
                index,
                drive: RefCell::new(drive),
                renewals: Cell::new(0),
                prepared: Cell::new(None),
                lost: RefCell::new(None),
                lock: Semaphore::new(1),
                crossed: Cell::new(0),
            })
        };
        members.iter().map(link).collect()
    }

    /// Returns the drive's index in the array.
    pub(crate) fn index(&self) -> DriveIndex {
        self.index
    }

    /// Returns the drive's name.
    pub(crate) fn name(&self) -> &str {
        &self.slot.name
    }

    /// Returns the drive on its current connection, unless it was down at the beginning.
    pub(crate) fn connected(&self) -> Option<Rc<Drive>> {
        self.drive.borrow().clone()
    }

    /// Returns true if the drive is not asked any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.drive.borrow().is_none() || self.lost.borrow().is_some()
    }

    /// Returns the number of times that it was reconnected.
    pub(crate) fn renewals(&self) -> u32 {
        self.renewals.get()
    }

    /// Records that the drive's memory was prepared on the connection of this number.
    pub(crate) fn note_prepared(&self, renewals: u32) {
        self.prepared.set(Some(renewals));
    }

    /// Returns true if the drive's memory was prepared on this connection.
    pub(crate) fn is_prepared(&self) -> bool {
        self.prepared.get() == Some(self.renewals.get())
    }

    /// Returns the bytes that crossed the wire, in both directions.
    pub(crate) fn crossed_bytes(&self) -> u64 {
        self.crossed.get() + self.connected().map_or(0, |drive| traffic(&drive))
    }

    /// Calls `body` with the drive, and again after a connection was lost and replaced.
    ///
    /// # Errors
    /// The error of the drive, or the reason why it is lost: see [`Error::is_lost`].
    pub(crate) async fn run<T, E: Into<Error>>(
        &self,
        body: impl AsyncFn(&Rc<Drive>) -> Result<T, E>,
    ) -> Result<T, Error> {
        loop {
            let Some(drive) = self.connected() else {
                return Err(self.slot.up().err().expect("it was down").into());
            };
            let renewals = self.renewals.get();
            match body(&drive).await.map_err(Into::into) {
                Err(error) if error.is_lost() => self.renew(renewals, error).await?,
                done => return done,
            }
        }
    }

    /// Reconnects, unless another task has done so, or failed to, since.
    async fn renew(&self, renewals: u32, error: Error) -> Result<(), Error> {
        let permit = self.lock.acquire(1).await;
        if self.renewals.get() != renewals {
            return Ok(());
        }
        if self.lost.borrow().is_some() {
            return Err(error);
        }
        if renewals == TRIES {
            self.lost.replace(Some(error.to_string()));
            return Err(error);
        }
        let mut pause = PAUSE;
        for _ in 0..TRIES {
            sleep(pause).await;
            pause *= 3;
            if let Ok(drive) = self.plan.connect(self.index, &self.options).await {
                let former = self.connected();
                if former.is_some_and(|former| former.nguid != drive.nguid) {
                    break;
                }
                self.crossed.set(self.crossed_bytes());
                self.drive.replace(Some(Rc::new(drive)));
                self.renewals.set(renewals + 1);
                drop(permit);
                return Ok(());
            }
        }
        self.lost.replace(Some(error.to_string()));
        Err(error)
    }
}

pub(crate) fn traffic(drive: &Drive) -> u64 {
    let traffic = drive.controller.traffic();
    traffic.wire_to_host + traffic.wire_to_drive
}
