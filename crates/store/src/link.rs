//! [`Link`]: a drive of an array, connected to again when its connection is lost.
//!
//! For commands that may be sent twice: a command whose answer did not come is sent again over the
//! new connection. Does not vote: the drive may have another life by then. Invariant: a drive that
//! does not return in time, returns with another medium, or is lost more often than is allowed,
//! stays lost.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_reactor::{Semaphore, now};

use crate::array::{Array, Drive, DriveIndex, DriveSlot, Error, Redial};
use crate::pauses::Pauses;

/// Number of losses of [`Persistence::brief`], and of its attempts for each.
pub const TRIES: u32 = 3;

/// Limits of connecting to a drive again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Number of losses after which the drive stays lost.
    losses: u32,
    /// Attempts for each loss.
    tries: u32,
    /// Time after a loss in which attempts begin; `None` for as long as an answer is waited for.
    within: Option<Duration>,
    /// True if the drive must not have been started again meanwhile.
    in_one_life: bool,
}

impl Persistence {
    /// A few attempts, for work that can do without the drive.
    #[must_use]
    pub fn brief() -> Self {
        Self { losses: TRIES, tries: TRIES, within: Some(Duration::MAX), in_one_life: false }
    }

    /// Attempts for as long as an answer is waited for, for work that cannot do without the drive.
    pub(crate) fn long() -> Self {
        Self { losses: u32::MAX, tries: u32::MAX, within: None, in_one_life: false }
    }

    /// Returns the same limits for a connection to one life of the drive: what it has not made
    /// durable is gone in the next one.
    pub(crate) fn in_one_life(self) -> Self {
        Self { in_one_life: true, ..self }
    }
}

/// A drive, as one core sees it.
pub struct Link {
    redial: Rc<Redial>,
    slot: DriveSlot,
    index: DriveIndex,
    persistence: Persistence,
    /// The current connection; `None` if the drive was down at the beginning.
    drive: RefCell<Option<Rc<Drive>>>,
    renewals: Cell<u32>,
    lost: Cell<bool>,
    lock: Semaphore,
    /// Bytes that crossed on earlier connections.
    crossed: Cell<u64>,
}

impl Link {
    /// Returns a link to a drive of the array, which may be down.
    ///
    /// # Errors
    /// If the array file does not list it.
    pub fn new(array: &Array, index: DriveIndex, persistence: Persistence) -> Result<Self, Error> {
        let drive = match array.drive(index).map(Rc::clone) {
            Err(_) if array.slot(index).is_some() => None,
            drive => Some(drive?),
        };
        Ok(Self {
            redial: array.redial(),
            slot: array.slots()[index].clone(),
            index,
            persistence,
            drive: RefCell::new(drive),
            renewals: Cell::new(0),
            lost: Cell::new(false),
            lock: Semaphore::new(1),
            crossed: Cell::new(0),
        })
    }

    /// Returns the drive's index in the array.
    #[must_use]
    pub fn index(&self) -> DriveIndex {
        self.index
    }

    /// Returns the drive's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.slot.name
    }

    /// Returns the drive on its current connection, unless it was down at the beginning.
    #[must_use]
    pub fn connected(&self) -> Option<Rc<Drive>> {
        self.drive.borrow().clone()
    }

    /// Returns the drive on its current connection.
    ///
    /// # Errors
    /// [`Error::Down`] if it was down at the beginning.
    pub fn up(&self) -> Result<Rc<Drive>, Error> {
        match self.connected() {
            Some(drive) => Ok(drive),
            None => Err(self.slot.up().err().expect("it was down")),
        }
    }

    /// Returns true if the drive is not asked any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.drive.borrow().is_none() || self.lost.get()
    }

    /// Returns the number of times that it was connected to again.
    #[must_use]
    pub fn renewals(&self) -> u32 {
        self.renewals.get()
    }

    /// Returns the bytes that crossed the wire, in both directions.
    #[must_use]
    pub fn crossed_bytes(&self) -> u64 {
        self.crossed.get() + self.connected().map_or(0, |drive| drive.wire_bytes())
    }

    /// Calls `body` with the drive, and again after a connection was lost and replaced.
    ///
    /// # Errors
    /// The error of the drive, or the reason why it is lost: see [`Error::is_lost`].
    pub(crate) async fn run<T>(
        &self,
        body: impl AsyncFnMut(&Rc<Drive>) -> Result<T, crate::Error>,
    ) -> Result<T, crate::Error> {
        self.run_with(crate::Error::is_lost, body).await
    }

    /// Calls `body` with the drive, and again after a connection was lost, as `is_lost` says of an
    /// error, and replaced.
    ///
    /// # Errors
    /// The error of the drive, or the reason why it is lost.
    pub async fn run_with<T, E: From<Error>>(
        &self,
        is_lost: impl Fn(&E) -> bool,
        mut body: impl AsyncFnMut(&Rc<Drive>) -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            let (drive, renewals) = (self.up()?, self.renewals());
            match body(&drive).await {
                Err(error) if is_lost(&error) => {
                    if !self.renew(renewals).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Connects again, unless another task has done so since there were `renewals`. Returns false
    /// if the drive is lost.
    async fn renew(&self, renewals: u32) -> bool {
        let _permit = self.lock.acquire(1).await;
        if self.renewals.get() != renewals {
            return true;
        }
        let is_new = !self.lost.get() && renewals < self.persistence.losses;
        let Some(drive) = (if is_new { self.connect().await } else { None }) else {
            self.lost.set(true);
            return false;
        };
        self.crossed.set(self.crossed_bytes());
        self.drive.replace(Some(drive));
        self.renewals.set(renewals + 1);
        true
    }

    /// Connects to the drive once more, if it comes back as it was.
    async fn connect(&self) -> Option<Rc<Drive>> {
        let Persistence { tries, within, in_one_life, .. } = self.persistence;
        let (since, within) = (now(), within.unwrap_or(self.redial.options.command_timeout));
        let (former, mut pauses) = (self.connected()?, Pauses::new());
        for _ in 0..tries {
            pauses.wait().await;
            if let Ok(drive) = self.redial.connect_soon(self.index).await {
                let is_same = former.nguid == drive.nguid;
                return (is_same && (!in_one_life || former.life == drive.life)).then_some(drive);
            }
            if since.elapsed() >= within {
                return None;
            }
        }
        None
    }
}

/// Links to the drives of an array, made when they are first used.
pub(crate) struct Links {
    persistence: Persistence,
    links: RefCell<BTreeMap<DriveIndex, Rc<Link>>>,
}

impl Links {
    pub(crate) fn new(persistence: Persistence) -> Self {
        Self { persistence, links: RefCell::default() }
    }

    /// Returns the link to a drive that was up at the beginning.
    ///
    /// # Errors
    /// [`Error::Down`].
    pub(crate) fn get(&self, array: &Array, index: DriveIndex) -> Result<Rc<Link>, Error> {
        if let Some(link) = self.links.borrow().get(&index) {
            return Ok(Rc::clone(link));
        }
        let link = Link::new(array, index, self.persistence)?;
        link.up()?;
        Ok(Rc::clone(self.links.borrow_mut().entry(index).or_insert_with(|| Rc::new(link))))
    }
}
