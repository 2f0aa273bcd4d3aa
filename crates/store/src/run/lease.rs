//! The lease of a drive's memory: one run at a time keeps its vector there.
//!
//! Who stores the key 04h in the objects' kv namespace has the memory, and renews the value every
//! second. A value that does not change for [`PATIENCE`] is of a run that was cut off, and is taken
//! over. Not guarded: hosts and programs that use the memory without asking.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};

use super::site::Site;
use crate::array::Drive;
use crate::object::Error;

/// How long a lease must stand unchanged before another run takes it.
pub const PATIENCE: Duration = Duration::from_secs(5);
const RENEWAL: Duration = Duration::from_secs(1);
const KEY: [u8; 1] = [0x04];

/// The leases of all drives of a run.
pub(super) struct Leases {
    site: Rc<Site>,
    over: Rc<Cell<bool>>,
}

impl Leases {
    /// Takes the memory of every member's drive.
    pub(super) async fn take(site: &Rc<Site>) -> Result<Self, Error> {
        let over = Rc::new(Cell::new(false));
        let leases = Self { site: Rc::clone(site), over };
        let holder = random_u64();
        for member in 0..site.links.len() {
            let taken = site.links[member].run(async |drive| take(drive, holder).await).await;
            if let Err(error) = taken {
                leases.over.set(true);
                leases.give_back(member).await;
                return Err(error);
            }
        }
        let (site, over) = (Rc::clone(site), Rc::clone(&leases.over));
        drop(spawn(Class::Background, async move { renew(&site, &over, holder).await }));
        Ok(leases)
    }

    /// Gives all back; a drive that is lost keeps its lease until somebody's patience ends.
    pub(super) async fn end(self) {
        self.over.set(true);
        self.give_back(self.site.links.len()).await;
    }

    async fn give_back(&self, members: usize) {
        for link in &self.site.links[..members] {
            let _lost = link.drive().objects.delete(&key()).await;
        }
    }
}

fn key() -> Key {
    Key::new(&KEY).expect("one byte is a key")
}

fn value(holder: u64, renewals: u64) -> Vec<Buffer> {
    let bytes = [holder.to_le_bytes(), renewals.to_le_bytes()].concat();
    vec![Buffer::from_slice(&bytes)]
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

async fn renew(site: &Rc<Site>, over: &Cell<bool>, holder: u64) {
    for renewals in 1.. {
        sleep(RENEWAL).await;
        for link in site.links.iter() {
            if over.get() {
                return;
            }
            // A drive that is lost is found by who works with it.
            let _lost = link.drive().objects.store(&key(), value(holder, renewals), 0).await;
        }
    }
}
