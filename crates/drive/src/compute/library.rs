//! [`Library`]: programs that hosts load, from their first byte to an execution.
//!
//! Programs are kept in memory, and lost when the drive stops. A program is loaded in parts, in
//! order. With the last part a thread of its own looks it up in the allow-list and compiles it.
//!
//! Invariants: a program belongs to the host that loaded it, by its NQN, and does not exist for
//! others; an index of a host holds one program; a program that is compiled, active or running is
//! neither replaced nor unloaded, one that runs is not deactivated; every byte of a program counts
//! against [`LOADED_BYTES_MAX`], and compiled programs take at most [`COMPILED_BYTES_MAX`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::program::{Compiled, Engine};
use csd_nvme::compute::{DOWNLOADED, ProgramDescriptor, ProgramState};
use csd_nvme::program::{
    ACTIVE_MAX, ALL_PROGRAMS_BYTES_MAX, DOWNLOADABLE_COUNT, DOWNLOADABLE_FIRST, Part, ProgramType,
};
use csd_nvme::status::Status;
use csd_reactor::worked;

use super::ranges::owner;

/// Most bytes of all programs together; a host has half of that, unless all hosts share.
const LOADED_BYTES_MAX: usize = ALL_PROGRAMS_BYTES_MAX as usize;
/// Most programs of all hosts together.
const LOADED_MAX: usize = 4 * DOWNLOADABLE_COUNT as usize;
/// Most memory of all compiled programs that are loaded, bytes; a host has half of that, unless all
/// hosts share.
const COMPILED_BYTES_MAX: u64 = 128 << 20;

/// Rule by which programs are admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// All programs.
    Any,
    /// Those with one of these BLAKE3 digests.
    Digests(Vec<[u8; 32]>),
}

impl Admission {
    /// Returns true if a program is admitted.
    pub fn admits(&self, digest: &[u8; 32]) -> bool {
        match self {
            Self::Any => true,
            Self::Digests(all) => all.contains(digest),
        }
    }
}

/// Programs that hosts have loaded, shared by a drive's cores. Admin commands take its lock, and
/// executions at their beginning and end.
#[derive(Debug)]
pub struct Library {
    engines: Vec<Arc<dyn Engine>>,
    admission: Admission,
    shared: bool,
    slots: Mutex<Slots>,
}

/// A program's owner and index.
type Key = (String, u16);
type Slots = BTreeMap<Key, Slot>;

struct Slot {
    part: Part,
    /// Bytes of the program that were loaded.
    loaded: usize,
    /// These bytes, until all are there.
    bytes: Vec<u8>,
    compiled: Option<Arc<dyn Compiled>>,
    /// True while a [`Compiling`] of it exists.
    compiling: bool,
    active: bool,
    running: usize,
}

impl Slot {
    fn new(part: Part) -> Self {
        let (loaded, bytes, compiled) = (0, Vec::new(), None);
        Self { part, loaded, bytes, compiled, compiling: false, active: false, running: 0 }
    }

    /// Returns true if it must not change.
    fn is_in_use(&self) -> bool {
        self.compiling || self.active || self.running > 0
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({:?}, active {}, running {})", self.part, self.active, self.running)
    }
}

/// Result of loading a part of a program.
pub enum Loaded {
    /// More parts follow.
    Partly,
    /// It was the last part: the caller asks if the program is admitted, compiles these bytes, then
    /// calls [`Compiling::finish`].
    Whole {
        /// Engine that compiles it.
        engine: Arc<dyn Engine>,
        /// The program.
        bytes: Vec<u8>,
        /// Guard of its index.
        compiling: Compiling,
    },
}

/// Returns the digest of a program, as the allow-list has it.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

impl Library {
    /// Makes an empty library. If `shared`, the programs in it belong to all hosts together.
    pub fn new(engines: Vec<Arc<dyn Engine>>, admission: Admission, shared: bool) -> Self {
        Self { engines, admission, shared, slots: Mutex::default() }
    }

    fn key(&self, host: &str, index: u16) -> Key {
        (owner(self.shared, host).to_owned(), index)
    }

    /// Checks the limits for one more program at `key`, or for more bytes of it.
    fn check_room(&self, slots: &Slots, key: &Key, more: usize) -> Result<(), Status> {
        let bytes = |owner: Option<&str>| -> usize {
            let counted = slots.iter().filter(|((of, _), _)| owner.is_none_or(|owner| owner == of));
            counted.map(|(_, slot)| slot.loaded).sum()
        };
        let share = if self.shared { LOADED_BYTES_MAX } else { LOADED_BYTES_MAX / 2 };
        if bytes(None) + more > LOADED_BYTES_MAX || bytes(Some(&key.0)) + more > share {
            return Err(Status::PROGRAM_BYTES_EXCEEDED);
        }
        if slots.len() >= LOADED_MAX && !slots.contains_key(key) {
            return Err(Status::INSUFFICIENT_PROGRAM_RESOURCES);
        }
        Ok(())
    }

    /// Loads a part of a host's program. Offset 0 starts over, whatever the index held.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NOT_DOWNLOADABLE`],
    /// [`Status::INVALID_PROGRAM_TYPE`], [`Status::PROGRAM_IN_USE`],
    /// [`Status::PROGRAM_BYTES_EXCEEDED`]; [`Status::INSUFFICIENT_PROGRAM_RESOURCES`] when there
    /// are too many programs; [`Status::INVALID_PROGRAM_DATA`] for a part that does not follow on
    /// the last.
    pub fn load(self: &Arc<Self>, host: &str, part: Part, data: &[u8]) -> Result<Loaded, Status> {
        downloadable(part.index)?;
        let engine = self.engines.iter().find(|engine| engine.ptype() == part.ptype);
        let engine = engine.ok_or(Status::INVALID_PROGRAM_TYPE)?;
        let (mut slots, key) = (self.slots(), self.key(host, part.index));
        if slots.get(&key).is_some_and(Slot::is_in_use) {
            return Err(Status::PROGRAM_IN_USE);
        }
        if part.offset == 0 {
            slots.remove(&key);
        }
        self.check_room(&slots, &key, data.len())?;
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot::new(part));
        let same = Part { offset: slot.part.offset, bytes: slot.part.bytes, ..part } == slot.part;
        if !same || slot.loaded != part.offset as usize || slot.compiled.is_some() {
            return Err(Status::INVALID_PROGRAM_DATA);
        }
        worked(data.len() as u64);
        slot.bytes.extend_from_slice(data);
        slot.loaded = slot.bytes.len();
        if slot.loaded < part.size as usize {
            return Ok(Loaded::Partly);
        }
        slot.compiling = true;
        let bytes = std::mem::take(&mut slot.bytes);
        let compiling = Compiling { library: Arc::clone(self), key, is_finished: false };
        Ok(Loaded::Whole { engine: Arc::clone(engine), bytes, compiling })
    }

    /// Unloads a program, or the part of it that is loaded.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NOT_DOWNLOADABLE`], [`Status::NO_PROGRAM`],
    /// [`Status::PROGRAM_IN_USE`] while it is being compiled, is active or runs.
    pub fn unload(&self, host: &str, index: u16) -> Result<(), Status> {
        downloadable(index)?;
        let (mut slots, key) = (self.slots(), self.key(host, index));
        let slot = slots.get(&key).ok_or(Status::NO_PROGRAM)?;
        if slot.is_in_use() {
            return Err(Status::PROGRAM_IN_USE);
        }
        slots.remove(&key);
        Ok(())
    }

    /// Activates or deactivates a program. Built-in programs are always active.
    ///
    /// # Errors
    /// As [`Self::unload`], also for a program that is not whole; [`Status::ACTIVATED_EXCEEDED`].
    pub fn activate(&self, host: &str, index: u16, active: bool) -> Result<(), Status> {
        downloadable(index)?;
        let (mut slots, key) = (self.slots(), self.key(host, index));
        let slot = slots.get(&key).filter(|slot| slot.compiled.is_some());
        let slot = slot.ok_or(Status::NO_PROGRAM)?;
        if !active && slot.running > 0 {
            return Err(Status::PROGRAM_IN_USE);
        }
        let becomes = active && !slot.active;
        let own = slots.iter().filter(|((owner, _), slot)| *owner == key.0 && slot.active);
        if becomes && own.count() >= ACTIVE_MAX.into() {
            return Err(Status::ACTIVATED_EXCEEDED);
        }
        if let Some(slot) = slots.get_mut(&key) {
            slot.active = active;
        }
        Ok(())
    }

    /// Begins an execution of a program, which the command also names by `pid` if it can.
    ///
    /// # Errors
    /// [`Status::INVALID_PROGRAM_INDEX`], [`Status::NO_PROGRAM`],
    /// [`Status::PROGRAM_NOT_ACTIVATED`].
    pub fn begin(
        self: &Arc<Self>,
        host: &str,
        index: u16,
        pid: Option<u64>,
    ) -> Result<Running, Status> {
        downloadable(index).map_err(|_| Status::INVALID_PROGRAM_INDEX)?;
        let (mut slots, key) = (self.slots(), self.key(host, index));
        let slot = slots.get_mut(&key).ok_or(Status::NO_PROGRAM)?;
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
        Ok(Running { library: Arc::clone(self), key, pid: slot.part.pid, compiled, engine })
    }

    /// Returns the bytes of all loaded programs.
    pub fn bytes(&self) -> u64 {
        self.slots().values().map(|slot| slot.loaded as u64).sum()
    }

    /// Returns the descriptors of a host's whole programs, by index.
    pub fn descriptors(&self, host: &str) -> Vec<(u16, ProgramDescriptor)> {
        let slots = self.slots();
        let own = slots.range(self.key(host, 0)..=self.key(host, u16::MAX));
        let whole = own.filter(|(_, slot)| slot.compiled.is_some());
        let told = whole.map(|((_, index), slot)| {
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

    /// Returns the types of program that can be loaded.
    pub fn types(&self) -> Vec<ProgramType> {
        let told = self.engines.iter().map(|engine| {
            let name = engine.name().to_owned();
            ProgramType { ptype: engine.ptype(), name }
        });
        told.collect()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
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

/// A guard of the index of a program that is being compiled. Dropping it unfinished empties the
/// index.
pub struct Compiling {
    library: Arc<Library>,
    key: Key,
    is_finished: bool,
}

impl Compiling {
    /// Returns true if a program with this digest is admitted.
    pub fn admits(&self, digest: &[u8; 32]) -> bool {
        self.library.admission.admits(digest)
    }

    /// Stores the compiled program at its index.
    ///
    /// # Errors
    /// [`Status::PROGRAM_BYTES_EXCEEDED`] when loaded programs would take more memory than the
    /// limit; the index is empty then.
    pub fn finish(mut self, compiled: Arc<dyn Compiled>) -> Result<(), Status> {
        let mut slots = self.library.slots();
        let bytes = |owner: Option<&str>| {
            let counted = slots.iter().filter(|((of, _), _)| owner.is_none_or(|owner| owner == of));
            let others = counted.filter_map(|(_, slot)| slot.compiled.as_ref());
            others.map(|other| other.bytes()).fold(compiled.bytes(), u64::saturating_add)
        };
        let share = if self.library.shared { COMPILED_BYTES_MAX } else { COMPILED_BYTES_MAX / 2 };
        if bytes(None) > COMPILED_BYTES_MAX || bytes(Some(&self.key.0)) > share {
            return Err(Status::PROGRAM_BYTES_EXCEEDED);
        }
        let slot = slots.get_mut(&self.key).ok_or(Status::NO_PROGRAM)?;
        (slot.compiling, slot.compiled) = (false, Some(compiled));
        // Another core may empty the index and compile there before this guard is dropped.
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        let mut slots = self.library.slots();
        if !self.is_finished && slots.get(&self.key).is_some_and(|slot| slot.compiling) {
            slots.remove(&self.key);
        }
    }
}

/// A guard of a program that an execution uses.
pub struct Running {
    library: Arc<Library>,
    key: Key,
    /// Its identifier.
    pub pid: u64,
    /// Compiled program.
    pub compiled: Arc<dyn Compiled>,
    /// Engine that runs it.
    pub engine: Arc<dyn Engine>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(slot) = self.library.slots().get_mut(&self.key) {
            slot.running -= 1;
        }
    }
}
