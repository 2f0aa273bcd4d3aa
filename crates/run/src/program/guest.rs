//! [`Guest`]: a program loaded in one drive for the time of a run.
//!
//! It is loaded at a free index, under an identifier unique to the run, and unloaded at the end. It
//! is loaded again after the drive was restarted, or another host unloaded it.

use std::cell::Cell;

use csd_initiator::ProgramSlot;
use csd_nvme::compute::{DEVICE_DEFINED, ProgramDescriptor, ProgramState};
use csd_nvme::program::{DOWNLOADABLE_COUNT, DOWNLOADABLE_FIRST};
use csd_nvme::status::Status;
use csd_reactor::Semaphore;
use csd_store::array::Drive;

use super::Task;
use super::owner::Owner;
use crate::InvalidJob;
use crate::error::Error;

/// Most attempts to load a program that disappears before it runs.
pub(super) const LOADS_MAX: u32 = 3;

/// A program in one drive.
pub(super) struct Guest {
    owner: Owner,
    /// Number of the drive's connection when it was loaded, and its index.
    loaded: Cell<Option<(u32, u16)>>,
    lock: Semaphore,
}

impl Guest {
    /// Returns a program that is not loaded yet, with its owner's identifier.
    pub(super) fn new(owner: Owner) -> Self {
        Self { owner, loaded: Cell::new(None), lock: Semaphore::new(1) }
    }

    /// Returns its index in a drive with this number of reconnections; loads it if necessary, after
    /// calling `prepare`.
    ///
    /// # Errors
    /// The reason why the drive does not accept it.
    pub(super) async fn index(
        &self,
        (drive, renewals): (&Drive, u32),
        task: &Task,
        prepare: impl AsyncFnOnce() -> Result<(), Error>,
    ) -> Result<u16, Error> {
        let _alone = self.lock.acquire(1).await;
        if let Some((connection, index)) = self.loaded.get()
            && connection == renewals
        {
            return Ok(index);
        }
        prepare().await?;
        let index = match task.sandbox.built_in() {
            Some(pid) => built_in(drive, task, pid).await?,
            None => {
                self.owner.claim(drive).await;
                self.load(drive, task).await?
            }
        };
        self.loaded.set(Some((renewals, index)));
        Ok(index)
    }

    /// Records that it was no longer at its index.
    pub(super) fn is_gone(&self) {
        self.loaded.set(None);
    }

    /// Unloads it from the drive, if the drive can be reached and it was loaded.
    pub(super) async fn unload(&self, drive: &Drive, task: &Task) {
        if task.sandbox.built_in().is_some() {
            return;
        }
        if let Some((_, index)) = self.loaded.take() {
            let _lost = drive.compute.activate(index, false).await;
            if drive.compute.unload(index).await.is_err() {
                // The claim stays, so that a later run unloads it.
                return;
            }
        }
        let _lost = self.owner.release(drive).await;
    }

    async fn load(&self, drive: &Drive, task: &Task) -> Result<u16, Error> {
        let failed = |error| Error::command(drive, error);
        let name = task.sandbox.type_name();
        let types = drive.compute.program_types().await.map_err(failed)?;
        let ptype = types.iter().find(|one| one.name == name).map(|one| one.ptype);
        let Some(ptype) = ptype else {
            return Err(Error::InvalidJob(InvalidJob(format!(
                "drive {} takes no programs of type {name:?}: it was built without them",
                drive.name
            ))));
        };
        let indexes = DOWNLOADABLE_FIRST..DOWNLOADABLE_FIRST + DOWNLOADABLE_COUNT;
        let programs = drive.compute.programs().await.map_err(failed)?;
        let at = |index: u16| programs.get(usize::from(index));
        let is_ours = |index: &u16| {
            at(*index).is_some_and(|one| {
                one.pid() == self.owner.pid && ProgramState(one.state()).active() == 1
            })
        };
        if let Some(index) = indexes.clone().find(is_ours) {
            return Ok(index);
        }
        let free =
            |index: &u16| at(*index).is_none_or(|one| ProgramState(one.state()).occupied() == 0);
        for index in indexes.filter(free) {
            let slot = ProgramSlot { index, ptype, pid: self.owner.pid };
            match drive.compute.load(slot, task.sandbox.module()).await {
                // Another run of this host took the index first.
                Err(error) if error.status() == Some(Status::PROGRAM_IN_USE) => {}
                Err(error) if error.status() == Some(Status::OPERATION_DENIED) => {
                    return Err(denied(drive));
                }
                loaded => {
                    loaded.map_err(failed)?;
                    drive.compute.activate(index, true).await.map_err(failed)?;
                    return Ok(index);
                }
            }
        }
        let why = format!("drive {} has no free program index: unload a program", drive.name);
        Err(Error::Program { why })
    }
}

/// Returns the index of a program that is built into the drive.
async fn built_in(drive: &Drive, task: &Task, pid: u64) -> Result<u16, Error> {
    let programs = drive.compute.programs().await;
    let programs = programs.map_err(|error| Error::command(drive, error))?;
    let is_it = |program: &ProgramDescriptor| {
        program.pid() == pid && ProgramState(program.state()).occupied() == DEVICE_DEFINED
    };
    let index = programs.iter().position(is_it).and_then(|index| u16::try_from(index).ok());
    index.ok_or_else(|| {
        Error::InvalidJob(InvalidJob(format!(
            "drive {} has no program {}: use --on host, or a drive of this version",
            drive.name,
            task.sandbox.type_name()
        )))
    })
}

fn denied(drive: &Drive) -> Error {
    let why = format!(
        "drive {} does not take this program: start it with --allow-program and its digest",
        drive.name
    );
    Error::Program { why }
}
