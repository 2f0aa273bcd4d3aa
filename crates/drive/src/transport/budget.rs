//! Per-core limit of the bytes buffered between hosts and the medium, over all connections.
//!
//! A connection's own share is in [`super::grants`]. Invariant: a connection that has no answer
//! waiting may always make one, one that holds no capsule may always receive, and one that holds
//! no granted data may always be granted [`FLOOR_BYTES`], so that hosts which do not move their
//! data cannot block others. Longer transfers wait in line for one shared pool.

use std::cell::Cell;
use std::rc::Rc;

use csd_reactor::{Acquire, Semaphore};

/// Smallest budget of a core: 7/16 of it are granted, and the longest transfer is 16 MiB.
pub const BYTES_MIN: u64 = 64 << 20;
/// Default budget of a core.
pub const BYTES_DEFAULT: u64 = 192 << 20;
/// Floor: granted data that a connection may always hold. The sum of all floors is bounded by the
/// number of connections, and comes on top of the budgets of the cores.
pub const FLOOR_BYTES: u32 = 128 << 10;
/// Unit of the semaphores in bytes.
const UNIT_BYTES: u32 = 4096;

/// Memory in use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Data granted to hosts, or being written.
    pub granted: usize,
    /// Data of executions that wait or run.
    pub executions: usize,
    /// Answers with data that are being read, wait, or are queued.
    pub answers: usize,
    /// In-capsule data of commands that are not answered.
    pub capsules: usize,
}

/// Budget of one core.
pub struct Budget {
    granted: Semaphore,
    granted_units: usize,
    floors: Semaphore,
    floors_units: usize,
    executions: Semaphore,
    executions_units: usize,
    answers: Cell<usize>,
    answers_max: usize,
    capsules: Cell<usize>,
    capsules_max: usize,
}

fn units(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(u64::from(UNIT_BYTES))).expect("fewer units than bytes")
}

impl Budget {
    /// Makes a budget of `bytes` bytes: seven sixteenths for granted data, one for the data of
    /// executions, six for answers, two for capsules. The floors of `connections` come on top.
    pub fn new(bytes: u64, connections: usize) -> Self {
        let bytes = bytes.max(BYTES_MIN);
        let part = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let granted_units = units(bytes / 16 * 7);
        let executions_units = units(bytes / 16);
        let floors_units = connections * units(FLOOR_BYTES.into());
        Self {
            granted: Semaphore::new(granted_units),
            granted_units,
            floors: Semaphore::new(floors_units),
            floors_units,
            executions: Semaphore::new(executions_units),
            executions_units,
            answers: Cell::new(0),
            answers_max: part(bytes / 8 * 3),
            capsules: Cell::new(0),
            capsules_max: part(bytes / 8),
        }
    }

    /// Waits for the right to hold `bytes` bytes of granted data, or of data that a command moves.
    pub fn grant(&self, bytes: u32) -> Acquire {
        self.granted.acquire(units(bytes.into()).min(self.granted_units))
    }

    /// Waits for the right to hold `bytes` bytes, at most [`FLOOR_BYTES`], of a connection's floor.
    /// Waits only while writes of connections that are gone still run.
    pub fn floor(&self, bytes: u32) -> Acquire {
        self.floors.acquire(units(bytes.into()))
    }

    /// Waits for the right to hold `bytes` bytes that come with an execution, until it ends.
    pub fn execution(&self, bytes: u32) -> Acquire {
        self.executions.acquire(units(bytes.into()).min(self.executions_units))
    }

    /// Returns true while a command waits for memory that others were granted.
    pub fn is_waited_for(&self) -> bool {
        self.granted.is_waited_for() || self.executions.is_waited_for()
    }

    /// Notes bytes of an answer that is being made, or queued.
    pub fn answer(&self, bytes: usize) {
        self.answers.set(self.answers.get() + bytes);
    }

    /// Notes bytes of an answer that were sent, or dropped.
    pub fn answered(&self, bytes: usize) {
        self.answers.set(self.answers.get() - bytes);
    }

    /// Returns true while answers hold so much that only connections without one may make one.
    pub fn is_congested(&self) -> bool {
        self.answers.get() >= self.answers_max
    }

    /// Returns true while capsules hold so much that only connections without one may receive.
    pub fn is_full_of_capsules(&self) -> bool {
        self.capsules.get() >= self.capsules_max
    }

    /// Returns the memory in use.
    pub fn used(&self) -> Use {
        let floors = self.floors_units - self.floors.available();
        let granted = self.granted_units - self.granted.available() + floors;
        let executions = self.executions_units - self.executions.available();
        Use {
            granted: granted * UNIT_BYTES as usize,
            executions: executions * UNIT_BYTES as usize,
            answers: self.answers.get(),
            capsules: self.capsules.get(),
        }
    }
}

/// A charge for one command's capsule, until the command ends.
pub struct CapsuleCharge {
    memory: Rc<Budget>,
    own: Rc<Cell<usize>>,
    bytes: usize,
}

impl CapsuleCharge {
    /// Charges `bytes` bytes to the core and, in `own`, to the connection.
    pub fn new(memory: &Rc<Budget>, own: &Rc<Cell<usize>>, bytes: usize) -> Self {
        memory.capsules.set(memory.capsules.get() + bytes);
        own.set(own.get() + bytes);
        Self { memory: Rc::clone(memory), own: Rc::clone(own), bytes }
    }
}

impl Drop for CapsuleCharge {
    fn drop(&mut self) {
        self.memory.capsules.set(self.memory.capsules.get() - self.bytes);
        self.own.set(self.own.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_least_memory_hold_the_longest_transfer() {
        let memory = Budget::new(0, 1);
        assert_eq!(memory.granted_units, units(28 << 20));
        let held = memory.granted.try_acquire(units(16 << 20));
        assert!(held.is_some());
        assert_eq!(memory.used(), Use { granted: 16 << 20, ..Use::default() });
    }

    #[test]
    fn capsules_and_answers_are_counted_until_they_go() {
        let memory = Rc::new(Budget::new(BYTES_MIN, 1));
        let own = Rc::new(Cell::new(0));
        let charge = CapsuleCharge::new(&memory, &own, 8 << 20);
        assert!(memory.is_full_of_capsules() && own.get() == 8 << 20);
        drop(charge);
        assert!(!memory.is_full_of_capsules() && own.get() == 0);
        memory.answer(24 << 20);
        assert!(memory.is_congested());
        memory.answered(1);
        assert!(!memory.is_congested());
        assert_eq!(memory.used().answers, (24 << 20) - 1);
    }
}
