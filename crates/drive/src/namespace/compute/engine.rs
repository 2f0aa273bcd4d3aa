//! The seam to programs that users bring: an [`Engine`] makes a [`Compiled`] program of bytes, and
//! that begins as many executions as are asked for.
//!
//! The drive knows no engine itself: it is given some ([`crate::Resources`]). Never: a thread or a
//! clock in an engine; it is called in the compute lane, and told that time passes
//! ([`Engine::tick`]). Invariant: whatever the bytes are, an engine answers with an error in words
//! or with a program that its limits hold.

use std::fmt;
use std::sync::Arc;

use csd_nvme::status::Status;

use super::{Failure, Program};

/// What one execution may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most time of compute lanes, ms.
    pub time_ms: u32,
    /// Longest time on the clock from its first step to its end, ms.
    pub wall_ms: u32,
    /// Most memory of the program, bytes.
    pub memory_bytes: u64,
    /// Most bytes that it may write.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_s(Self::default_s())
    }
}

impl Limits {
    /// The default, but for `seconds` of compute lanes and a quarter more on the clock: with 20 s,
    /// a host is answered before it gives the command up, which Linux does after 30 s.
    #[must_use]
    pub fn for_s(seconds: u16) -> Self {
        let time_ms = u32::from(seconds) * 1000;
        let (memory_bytes, output_bytes) = (64 << 20, 256 << 20);
        Self { time_ms, wall_ms: time_ms / 4 * 5, memory_bytes, output_bytes }
    }

    /// Seconds of the default.
    #[must_use]
    pub const fn default_s() -> u16 {
        20
    }

    /// These limits, lowered to what an execution asks for; 0 asks for all of it.
    ///
    /// # Errors
    /// [`Status::INSUFFICIENT_PROGRAM_RESOURCES`] when it asks for more.
    pub fn lowered(self, time_ms: u32, memory_bytes: u64) -> Result<Self, Status> {
        if time_ms > self.time_ms || memory_bytes > self.memory_bytes {
            return Err(Status::INSUFFICIENT_PROGRAM_RESOURCES);
        }
        let time_ms = if time_ms == 0 { self.time_ms } else { time_ms };
        let memory_bytes = if memory_bytes == 0 { self.memory_bytes } else { memory_bytes };
        Ok(Self { time_ms, memory_bytes, ..self })
    }
}

/// Makes programs of one type runnable.
pub trait Engine: Send + Sync + fmt::Debug {
    /// The type's number: one of the vendor range, C0h to FFh.
    fn ptype(&self) -> u8;
    /// Its name, at most 16 ASCII characters.
    fn name(&self) -> &'static str;
    /// Checks and translates a program. Called on the lane's thread for what takes long; what it
    /// may take, in time and memory, is the engine's to bound before it begins.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn compile(&self, bytes: &[u8]) -> Result<Arc<dyn Compiled>, String>;
    /// A millisecond or so has passed while programs of this type ran: those that have used their
    /// turn end their step. May be called from any core.
    fn tick(&self) {}
}

/// A program that can be run.
pub trait Compiled: Send + Sync {
    /// A new execution, before its first step; nothing of the program has run yet.
    ///
    /// # Errors
    /// When there is no room for it, or the parameters are not what it takes.
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure>;
    /// Memory that it takes as long as it is kept, bytes.
    fn bytes(&self) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_can_lower_limits_and_not_raise_them() {
        let all = Limits { time_ms: 100, wall_ms: 9, memory_bytes: 1000, output_bytes: 5 };
        assert_eq!(all.lowered(0, 0), Ok(all));
        assert_eq!(all.lowered(50, 0), Ok(Limits { time_ms: 50, ..all }));
        assert_eq!(all.lowered(100, 10), Ok(Limits { memory_bytes: 10, ..all }));
        let more = Err(Status::INSUFFICIENT_PROGRAM_RESOURCES);
        assert_eq!((all.lowered(101, 0), all.lowered(0, 1001)), (more, more));
    }
}
