//! Programs that hosts load: from their first byte to an execution.
//!
//! Kept in memory: they are gone when the drive stops. A program is loaded in parts, in order; with
//! the last part it is looked up in the allow-list and compiled, in the compute lane. Never: what a
//! program computes. Invariants: an index holds one program; a program that is active or running is
//! neither replaced nor unloaded, one that runs is not deactivated; no bytes of a program are kept
//! that are not counted against [`LOADED_BYTES_MAX`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::compute::{DOWNLOADED, ProgramDescriptor, ProgramState};
use csd_nvme::program::{
    ACTIVE_MAX, ALL_PROGRAMS_BYTES_MAX, DOWNLOADABLE_COUNT, DOWNLOADABLE_FIRST, Part, ProgramType,
};
use csd_nvme::status::Status;

use super::engine::{Compiled, Engine};

/// Most bytes of all programs together.
const LOADED_BYTES_MAX: usize = ALL_PROGRAMS_BYTES_MAX as usize;

/// Whose programs a drive takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Anybody's.
    Any,
    /// Those with one of these BLAKE3 digests.
    Digests(Vec<[u8; 32]>),
}

impl Admission {
    /// Whether a program is taken.
    pub fn admits(&self, digest: &[u8; 32]) -> bool {
        match self {
            Self::Any => true,
            Self::Digests(all) => all.contains(digest),
        }
    }
}

/// The programs that hosts have loaded, shared by a drive's cores. Its lock is taken by admin
/// commands and once at the beginning and end of an execution.
#[derive(Debug)]
pub struct Library {
    engines: Vec<Arc<dyn Engine>>,
    admission: Admission,
    slots: Mutex<BTreeMap<u16, Slot>>,
}

struct Slot {
    part: Part,
    bytes: Vec<u8>,
    compiled: Option<Arc<dyn Compiled>>,
    active: bool,
    running: usize,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({:?}, active {}, running {})", self.part, self.active, self.running)
    }
}

/// What a part of a program came to.
pub enum Loaded {
    /// More parts are to come.
    Partly,
    /// It was the last: compile these bytes, then call [`Library::finish`].
    Whole {
        /// What compiles it.
        engine: Arc<dyn Engine>,
        /// The program.
        bytes: Vec<u8>,
    },
}

/// Digest of a program, as the allow-list has it.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

impl Library {
    /// An empty library.
    pub fn new(engines: Vec<Arc<dyn Engine>>, admission: Admission) -> Self {
        Self { engines, admission, slots: Mutex::default() }
    }

    /// Takes a part of a program. Offset 0 begins anew, whatever stood at the index.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NOT_DOWNLOADABLE`],
    /// [`Status::INVALID_PROGRAM_TYPE`], [`Status::PROGRAM_IN_USE`],
    /// [`Status::PROGRAM_BYTES_EXCEEDED`]; [`Status::INVALID_PROGRAM_DATA`] for a part that does
    /// not follow on the last; [`Status::OPERATION_DENIED`] for a program that is not allowed.
    pub fn load(&self, part: Part, data: &[u8]) -> Result<Loaded, Status> {
        downloadable(part.index)?;
        let engine = self.engines.iter().find(|engine| engine.ptype() == part.ptype);
        let engine = engine.ok_or(Status::INVALID_PROGRAM_TYPE)?;
        let mut slots = self.slots();
        if slots.get(&part.index).is_some_and(|slot| slot.active || slot.running > 0) {
            return Err(Status::PROGRAM_IN_USE);
        }
        if part.offset == 0 {
            slots.remove(&part.index);
        }
        let kept: usize = slots.values().map(|slot| slot.bytes.len()).sum();
        if kept + data.len() > LOADED_BYTES_MAX {
            return Err(Status::PROGRAM_BYTES_EXCEEDED);
        }
        let begin = || Slot { part, bytes: Vec::new(), compiled: None, active: false, running: 0 };
        let slot = slots.entry(part.index).or_insert_with(begin);
        let same = Part { offset: slot.part.offset, bytes: slot.part.bytes, ..part } == slot.part;
        if !same || slot.bytes.len() != part.offset as usize || slot.compiled.is_some() {
            return Err(Status::INVALID_PROGRAM_DATA);
        }
        slot.bytes.extend_from_slice(data);
        if slot.bytes.len() < part.size as usize {
            return Ok(Loaded::Partly);
        }
        if !self.admission.admits(&digest(&slot.bytes)) {
            slots.remove(&part.index);
            return Err(Status::OPERATION_DENIED);
        }
        Ok(Loaded::Whole { engine: Arc::clone(engine), bytes: slot.bytes.clone() })
    }

    /// Puts what was compiled in its place; without it the index is empty again.
    ///
    /// # Errors
    /// [`Status::PROGRAM_IN_USE`] when another command has changed the index meanwhile.
    pub fn finish(
        &self,
        index: u16,
        bytes: &[u8],
        compiled: Option<Arc<dyn Compiled>>,
    ) -> Result<(), Status> {
        let mut slots = self.slots();
        let slot = slots.get_mut(&index).filter(|slot| slot.bytes == bytes);
        let slot = slot.ok_or(Status::PROGRAM_IN_USE)?;
        match compiled {
            Some(_) => slot.compiled = compiled,
            None => drop(slots.remove(&index)),
        }
        Ok(())
    }

    /// Forgets a program, or the part of it that there is.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NOT_DOWNLOADABLE`], [`Status::NO_PROGRAM`],
    /// [`Status::PROGRAM_IN_USE`] while it is active or runs.
    pub fn unload(&self, index: u16) -> Result<(), Status> {
        downloadable(index)?;
        let mut slots = self.slots();
        let slot = slots.get(&index).ok_or(Status::NO_PROGRAM)?;
        if slot.active || slot.running > 0 {
            return Err(Status::PROGRAM_IN_USE);
        }
        slots.remove(&index);
        Ok(())
    }

    /// Allows or forbids executions. Programs of the drive's own are always active.
    ///
    /// # Errors
    /// As [`Self::unload`]; a program that is not whole is none. [`Status::ACTIVATED_EXCEEDED`].
    pub fn activate(&self, index: u16, active: bool) -> Result<(), Status> {
        downloadable(index)?;
        let mut slots = self.slots();
        let slot = slots.get(&index).filter(|slot| slot.compiled.is_some());
        let slot = slot.ok_or(Status::NO_PROGRAM)?;
        if !active && slot.running > 0 {
            return Err(Status::PROGRAM_IN_USE);
        }
        let becomes = active && !slot.active;
        if becomes && slots.values().filter(|slot| slot.active).count() >= ACTIVE_MAX.into() {
            return Err(Status::ACTIVATED_EXCEEDED);
        }
        if let Some(slot) = slots.get_mut(&index) {
            slot.active = active;
        }
        Ok(())
    }

    /// Takes a program for one execution, which names it by `pid` too where it can.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NO_PROGRAM`],
    /// [`Status::PROGRAM_NOT_ACTIVATED`].
    pub fn begin(self: &Arc<Self>, index: u16, pid: Option<u64>) -> Result<Running, Status> {
        downloadable(index).map_err(|_| Status::INVALID_PROGRAM_INDEX)?;
        let mut slots = self.slots();
        let slot = slots.get_mut(&index).ok_or(Status::NO_PROGRAM)?;
        let compiled = slot.compiled.clone().ok_or(Status::NO_PROGRAM)?;
        if !slot.active {
            return Err(Status::PROGRAM_NOT_ACTIVATED);
        }
        if pid.is_some_and(|pid| pid != slot.part.pid) {
            return Err(Status::INVALID_PROGRAM_INDEX);
        }
        slot.running += 1;
        let engine = self.engines.iter().find(|engine| engine.ptype() == slot.part.ptype);
        let engine = Arc::clone(engine.expect("it was loaded with this engine"));
        Ok(Running { library: Arc::clone(self), index, pid: slot.part.pid, compiled, engine })
    }

    /// Bytes of all loaded programs.
    pub fn bytes(&self) -> u64 {
        self.slots().values().map(|slot| slot.bytes.len() as u64).sum()
    }

    /// Descriptors of the programs that are whole, by index.
    pub fn descriptors(&self) -> Vec<(u16, ProgramDescriptor)> {
        let slots = self.slots();
        let whole = slots.iter().filter(|(_, slot)| slot.compiled.is_some());
        let told = whole.map(|(index, slot)| {
            let state = ProgramState::default()
                .with_occupied(DOWNLOADED)
                .with_active(slot.active.into())
                .with_pit(slot.part.pit);
            let mut descriptor = ProgramDescriptor::zeroed();
            descriptor.set_state(state.0).set_ptype(slot.part.ptype).set_pid(slot.part.pid);
            (*index, descriptor)
        });
        told.collect()
    }

    /// The types of program that can be loaded.
    pub fn types(&self) -> Vec<ProgramType> {
        let told = self.engines.iter().map(|engine| {
            let name = engine.name().to_owned();
            ProgramType { ptype: engine.ptype(), name }
        });
        told.collect()
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<u16, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn downloadable(index: u16) -> Result<(), Status> {
    match index.checked_sub(DOWNLOADABLE_FIRST) {
        None => Err(Status::NOT_DOWNLOADABLE),
        Some(number) if number < DOWNLOADABLE_COUNT => Ok(()),
        Some(_) => Err(Status::INVALID_PROGRAM_INDEX),
    }
}

/// A program that an execution uses; given back when dropped.
pub struct Running {
    library: Arc<Library>,
    index: u16,
    /// Its identifier.
    pub pid: u64,
    /// What is run.
    pub compiled: Arc<dyn Compiled>,
    /// What runs it.
    pub engine: Arc<dyn Engine>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(slot) = self.library.slots().get_mut(&self.index) {
            slot.running -= 1;
        }
    }
}
