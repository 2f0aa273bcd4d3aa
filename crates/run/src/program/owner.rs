//! Owners of programs in drives: a run whose process was killed leaves its program to a later run.
//!
//! A run stores the key 06h and the program's identifier in the objects' kv namespace before it
//! loads the program, renews the value every second, and deletes the key once the program is
//! unloaded. A value that stays the same for [`PATIENCE`] belongs to an interrupted run: the next
//! run of that host unloads its program. If that run is still alive, it loads the program again.
//! Programs without such a key are left alone.
//!
//! A drive without room for the key runs the program nevertheless. Programs of other hosts are not
//! visible, so their keys stay.

use std::rc::Rc;
use std::time::Duration;

use csd_nvme::compute::{DOWNLOADED, ProgramState};
use csd_nvme::kv::{Key, STORE_IF_EXISTS};
use csd_nvme::program::DOWNLOADABLE_COUNT;
use csd_reactor::{Buffer, Class, JoinHandle, now, sleep, spawn};
use csd_store::array::Drive;

use crate::lease::PATIENCE;
use crate::link::Link;

const PREFIX: u8 = 0x06;
const RENEWAL: Duration = Duration::from_secs(1);
/// Pause between two checks of the keys of other runs.
const LOOK: Duration = Duration::from_millis(200);
/// Buffer of the list of owners, bytes: about 80 keys. A later run finds the others.
const LIST_BYTES: u32 = 1 << 10;

/// A run as the owner of its program in every drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Identifier of the program, unique to the run.
    pub(super) pid: u64,
    /// Hash of the host's NQN: programs belong to hosts.
    host: [u8; 8],
}

impl Owner {
    /// Returns the owner of program `pid` on the host with this NQN.
    pub(super) fn new(pid: u64, host_nqn: &str) -> Self {
        let hash = blake3::hash(host_nqn.as_bytes());
        Self { pid, host: *hash.as_bytes().first_chunk().expect("32 bytes") }
    }

    fn key(self) -> Key {
        let bytes = [&[PREFIX][..], &self.pid.to_le_bytes()].concat();
        Key::new(&bytes).expect("nine bytes are a key")
    }

    fn value(self, renewals: u64) -> Vec<Buffer> {
        vec![Buffer::from_slice(&[self.host, renewals.to_le_bytes()].concat())]
    }

    /// Records in `drive` that the program loaded next has this owner.
    pub(super) async fn claim(self, drive: &Drive) {
        let _no_room = drive.objects.store(&self.key(), self.value(0), 0).await;
    }

    /// Renews the claim in every drive that has one, until the task is aborted.
    pub(super) async fn renew(self, links: Rc<Vec<Link>>) {
        for renewals in 1.. {
            sleep(RENEWAL).await;
            for drive in links.iter().filter_map(|link| link.connected()) {
                let value = self.value(renewals);
                let _lost = drive.objects.store(&self.key(), value, STORE_IF_EXISTS).await;
            }
        }
    }

    /// Unloads the owner's program from `drive` if it is there, and then deletes the claim.
    pub(super) async fn unload(self, drive: &Drive) -> Result<(), csd_initiator::Error> {
        for index in loaded(drive, self.pid).await? {
            drive.compute.activate(index, false).await?;
            drive.compute.unload(index).await?;
        }
        self.release(drive).await
    }

    /// Deletes the claim: `drive` does not have the program.
    pub(super) async fn release(self, drive: &Drive) -> Result<(), csd_initiator::Error> {
        drive.objects.delete(&self.key()).await.map(drop)
    }
}

/// Returns the indexes at which a drive has program `pid`, loaded by this host.
async fn loaded(drive: &Drive, pid: u64) -> Result<Vec<u16>, csd_initiator::Error> {
    let programs = (0u16..).zip(drive.compute.programs().await?);
    let ours = programs
        .filter(|(_, one)| one.pid() == pid && ProgramState(one.state()).occupied() == DOWNLOADED);
    Ok(ours.map(|(index, _)| index).collect())
}

/// Another run that has a program in a drive, and the value of its claim when this run began.
struct Suspect {
    drive: Rc<Drive>,
    owner: Owner,
    value: Option<Buffer>,
}

/// Task that looks for programs of interrupted runs while this run works.
pub(super) struct Watch(Option<JoinHandle<()>>);

impl Watch {
    /// Begins to watch the other owners of this host in all drives. If they leave a drive without a
    /// free index, waits until those of interrupted runs are unloaded.
    pub(super) async fn begin(links: &[Link], own: Owner) -> Self {
        let (mut suspects, mut full) = (Vec::new(), false);
        for drive in links.iter().filter_map(|link| link.connected()) {
            // The run itself notices a drive that does not answer.
            let others = others(&drive, own).await.unwrap_or_default();
            full |= others.len() >= usize::from(DOWNLOADABLE_COUNT);
            suspects.extend(others);
        }
        if full {
            settle(std::mem::take(&mut suspects)).await;
        }
        let settling = (!suspects.is_empty())
            .then(|| spawn(Class::Execution, async move { settle(suspects).await }));
        Self(settling)
    }

    /// Waits until it is known which of the other runs are alive, at most [`PATIENCE`].
    pub(super) async fn end(self) {
        if let Some(settling) = self.0 {
            settling.await;
        }
    }
}

async fn others(drive: &Rc<Drive>, own: Owner) -> Result<Vec<Suspect>, csd_initiator::Error> {
    let first = Owner { pid: 0, ..own }.key();
    let mut suspects = Vec::new();
    for key in drive.objects.list(Some(&first), LIST_BYTES).await? {
        let Some((&PREFIX, pid)) = key.as_bytes().split_first() else { break };
        let Ok(pid) = <[u8; 8]>::try_from(pid) else { break };
        let owner = Owner { pid: u64::from_le_bytes(pid), ..own };
        let value = drive.objects.retrieve(&key, 16).await?;
        if owner != own && value.as_deref().is_some_and(|value| value.starts_with(&own.host)) {
            suspects.push(Suspect { drive: Rc::clone(drive), owner, value });
        }
    }
    Ok(suspects)
}

/// Unloads the programs of runs whose claim stays the same for [`PATIENCE`].
async fn settle(mut suspects: Vec<Suspect>) {
    let until = now() + PATIENCE;
    while !suspects.is_empty() && now() < until {
        sleep(LOOK).await;
        let mut same = Vec::new();
        for suspect in suspects {
            let value = suspect.drive.objects.retrieve(&suspect.owner.key(), 16).await;
            if value.is_ok_and(|value| value.as_deref() == suspect.value.as_deref()) {
                same.push(suspect);
            }
        }
        suspects = same;
    }
    for dead in suspects {
        let _still_running = dead.owner.unload(&dead.drive).await;
    }
}
