//! Programs that users bring: an [`Engine`] compiles bytes to a [`Compiled`] program, which starts
//! as many executions as are asked for.
//!
//! An engine has no thread and no clock: a compute thread calls it, and calls [`Engine::tick`] as
//! time passes. Invariant: whatever the bytes are, an engine returns an error in words or a program
//! that its limits hold.

use std::fmt;
use std::sync::Arc;

use super::{Failure, Program};

/// Limits of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most CPU time of compute threads, ms.
    pub time_ms: u32,
    /// Most wall time from the first step to the end, ms.
    pub wall_ms: u32,
    /// Most memory of the program, bytes.
    pub memory_bytes: u64,
    /// Most bytes of output.
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_s(Self::default_s())
    }
}

impl Limits {
    /// Returns the default limits with `seconds` of CPU time and a quarter more of wall time: with
    /// 20 s a host is answered before it gives up the command, which Linux does after 30 s.
    #[must_use]
    pub fn for_s(seconds: u16) -> Self {
        let time_ms = u32::from(seconds) * 1000;
        let (memory_bytes, output_bytes) = (64 << 20, 256 << 20);
        Self { time_ms, wall_ms: time_ms / 4 * 5, memory_bytes, output_bytes }
    }

    /// Returns the CPU time of the default limits, seconds.
    #[must_use]
    pub const fn default_s() -> u16 {
        20
    }

    /// Returns these limits, lowered to what an execution asks for; 0 asks for all of it.
    ///
    /// # Errors
    /// [`TooMuch`] if it asks for more.
    pub fn lowered(self, time_ms: u32, memory_bytes: u64) -> Result<Self, TooMuch> {
        if time_ms > self.time_ms || memory_bytes > self.memory_bytes {
            return Err(TooMuch);
        }
        let time_ms = if time_ms == 0 { self.time_ms } else { time_ms };
        let memory_bytes = if memory_bytes == 0 { self.memory_bytes } else { memory_bytes };
        Ok(Self { time_ms, memory_bytes, ..self })
    }
}

/// An execution asks for more time or memory than the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more time or memory than a program may take")]
pub struct TooMuch;

/// Compiler of programs of one type.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Returns the program type: a number of the vendor range, C0h to FFh.
    fn ptype(&self) -> u8;
    /// Returns the type's name, at most 16 ASCII characters.
    fn name(&self) -> &'static str;
    /// Returns true if a drive's owner decides which programs of this type hosts may run. False is
    /// for programs without instructions of their own.
    fn needs_admission(&self) -> bool {
        true
    }
    /// Validates and compiles a program. It is called on a thread for work that takes long; the
    /// engine bounds its time and memory before it begins.
    ///
    /// # Errors
    /// The defect of the program, in words.
    fn compile(&self, bytes: &[u8]) -> Result<Arc<dyn Compiled>, String>;
    /// Ends the step of programs that have used their time slice. It is called from any core about
    /// every millisecond while programs of this type run.
    fn tick(&self) {}
}

/// A compiled program.
pub trait Compiled: Send + Sync {
    /// Starts an execution; nothing of the program has run yet.
    ///
    /// # Errors
    /// [`Failure`] if memory is short, or the program does not take the parameters.
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure>;
    /// Returns the memory that the compiled program occupies, bytes.
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
        let more = Err(TooMuch);
        assert_eq!((all.lowered(101, 0), all.lowered(0, 1001)), (more, more));
    }
}
