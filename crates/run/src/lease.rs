//! The lease of a drive's memory: one run at a time keeps its vector there.
//!
//! A lease is a lock that ends when its owner is not heard of any more (Gray and Cheriton,
//! "Leases", 1989). No clocks are compared: a run that wants the memory watches the value itself.
//!
//! A run that stores the key 04h in the objects' kv namespace has the memory, and renews the value
//! every second. A value that does not change for [`PATIENCE`] belongs to an interrupted run, and
//! is taken over. So a run checks that it still has the memory before it renews, before it sends a
//! vector, and before it accepts the last step's results. Not guarded: hosts and programs that use
//! the memory without a lease.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};
use csd_store::array::Drive;

use crate::error::Error;
use crate::link::Link;

/// Time that a lease must stay unchanged before another run takes it.
pub const PATIENCE: Duration = Duration::from_secs(5);
const RENEWAL: Duration = Duration::from_secs(1);
const KEY: [u8; 1] = [0x04];

/// The leases of all drives of a run.
pub(crate) struct Leases {
    links: Rc<Vec<Link>>,
    holder: u64,
    may_lose: bool,
    over: Rc<Cell<bool>>,
}

impl Leases {
    /// Leases the memory of every member's drive for `holder`, a number unique to the run. A run
    /// that `may_lose` drives goes on without the memory of those that are lost.
    pub(crate) async fn take(
        links: &Rc<Vec<Link>>,
        holder: u64,
        may_lose: bool,
    ) -> Result<Self, Error> {
        let over = Rc::new(Cell::new(false));
        let leases = Self { links: Rc::clone(links), holder, may_lose, over };
        for member in 0..links.len() {
            if links[member].is_lost() {
                continue;
            }
            let taken = links[member].run(async |drive| take(drive, holder).await).await;
            if let Err(error) = taken.or_else(|error| leases.unless_lost(error)) {
                leases.over.set(true);
                leases.give_back(member).await;
                return Err(error);
            }
        }
        let (links, over) = (Rc::clone(links), Rc::clone(&leases.over));
        drop(spawn(Class::Execution, async move { renew(&links, holder, &over).await }));
        Ok(leases)
    }

    fn unless_lost(&self, error: Error) -> Result<(), Error> {
        if self.may_lose && error.is_lost() { Ok(()) } else { Err(error) }
    }

    /// Checks that no other run has had the memory of a drive, unless the run `has_failed`, and
    /// gives up all leases.
    ///
    /// # Errors
    /// [`Error::MemoryBusy`], or the error of a drive.
    pub(crate) async fn finish(self, has_failed: bool) -> Result<(), Error> {
        let mut confirmed = Ok(());
        for link in self.links.iter().filter(|link| !has_failed && !link.is_lost()) {
            let held = link.run(async |drive| hold(drive, self.holder).await).await;
            confirmed = held.or_else(|error| self.unless_lost(error));
            if confirmed.is_err() {
                break;
            }
        }
        self.end().await;
        confirmed
    }

    /// Gives up all leases; a drive that is lost keeps its lease until it expires after
    /// [`PATIENCE`].
    pub(crate) async fn end(self) {
        self.over.set(true);
        self.give_back(self.links.len()).await;
    }

    async fn give_back(&self, members: usize) {
        for link in &self.links[..members] {
            if let Some(drive) = link.connected() {
                give_back(&drive, self.holder).await;
            }
        }
    }
}

/// The lease of one drive's memory, for a host that uses it outside of a run.
pub struct MemoryLease<'a> {
    drive: &'a Drive,
    holder: u64,
    renewals: Cell<u64>,
}

impl<'a> MemoryLease<'a> {
    /// Leases the memory of a drive.
    ///
    /// # Errors
    /// [`Error::MemoryBusy`] if a run has it, or the error of the drive.
    pub async fn take(drive: &'a Drive) -> Result<Self, Error> {
        let holder = random_u64().max(1);
        take(drive, holder).await?;
        Ok(Self { drive, holder, renewals: Cell::new(0) })
    }

    /// Renews the lease. The caller does so at least every second while it uses the memory, and
    /// before it accepts what it read there.
    ///
    /// # Errors
    /// [`Error::MemoryBusy`] if another run has had the memory since, or the error of the drive.
    pub async fn renew(&self) -> Result<(), Error> {
        hold(self.drive, self.holder).await?;
        self.renewals.set(self.renewals.get() + 1);
        let stored =
            self.drive.objects.store(&key(), value(self.holder, self.renewals.get()), 0).await;
        stored.map_err(|error| Error::command(self.drive, error))
    }

    /// Gives up the lease.
    pub async fn end(self) {
        give_back(self.drive, self.holder).await;
    }
}

/// Gives up the lease of a drive's memory, unless another run has it.
pub(crate) async fn give_back(drive: &Drive, holder: u64) {
    if hold(drive, holder).await.is_ok() {
        let _lost = drive.objects.delete(&key()).await;
    }
}

fn key() -> Key {
    Key::new(&KEY).expect("one byte is a key")
}

fn value(holder: u64, renewals: u64) -> Vec<Buffer> {
    let bytes = [holder.to_le_bytes(), renewals.to_le_bytes()].concat();
    vec![Buffer::from_slice(&bytes)]
}

/// Checks that `holder` has the lease, or takes it when no run has it: a drive that was restarted
/// may have lost the lease with all other data.
///
/// # Errors
/// [`Error::MemoryBusy`] when another run has it, or the error of the drive.
pub(crate) async fn hold(drive: &Drive, holder: u64) -> Result<(), Error> {
    let failed = |error| Error::command(drive, error);
    let busy = || Error::MemoryBusy { drive: drive.name.clone() };
    match drive.objects.retrieve(&key(), 16).await.map_err(failed)? {
        Some(value) if value.starts_with(&holder.to_le_bytes()) => Ok(()),
        Some(_) => Err(busy()),
        None => match drive.objects.store(&key(), value(holder, 0), STORE_IF_ABSENT).await {
            Err(error) if error.status() == Some(Status::KEY_EXISTS) => Err(busy()),
            stored => stored.map_err(failed),
        },
    }
}

async fn take(drive: &Drive, holder: u64) -> Result<(), Error> {
    let failed = |error| Error::command(drive, error);
    for _ in 0..2 {
        match drive.objects.store(&key(), value(holder, 0), STORE_IF_ABSENT).await {
            Ok(()) => return Ok(()),
            Err(error) if error.status() == Some(Status::KEY_EXISTS) => {}
            Err(error) => return Err(failed(error)),
        }
        let before = drive.objects.retrieve(&key(), 16).await.map_err(failed)?;
        sleep(PATIENCE).await;
        let after = drive.objects.retrieve(&key(), 16).await.map_err(failed)?;
        let same = before.as_deref() == after.as_deref();
        if after.is_some() && !same {
            return Err(Error::MemoryBusy { drive: drive.name.clone() });
        }
        if after.is_some() {
            drive.objects.delete(&key()).await.map_err(failed)?;
        }
    }
    Err(Error::MemoryBusy { drive: drive.name.clone() })
}

async fn renew(links: &[Link], holder: u64, over: &Cell<bool>) {
    for renewals in 1.. {
        sleep(RENEWAL).await;
        for link in links {
            if over.get() {
                return;
            }
            // A drive that is lost, or leased to another run by now, is noticed by the worker that
            // uses it.
            let Some(drive) = link.connected() else { continue };
            let held = hold(&drive, holder).await.is_ok();
            // A lease that was given up in the meantime is not renewed.
            if held && !over.get() {
                let _lost = drive.objects.store(&key(), value(holder, renewals), 0).await;
            }
        }
    }
}
