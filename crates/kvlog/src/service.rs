//! [`Service`]: work that the log does by itself, next to commands. It goes in bounded steps, so
//! that the log's owner decides when each one runs.

use std::pin::Pin;

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The step worked, and there may be more to do at once.
    Worked {
        /// Bytes that it read and compared, or moved.
        bytes: u64,
    },
    /// There was nothing to do. [`Service::wait`] ends when it is worth another look.
    Idle,
    /// The step failed, for this reason. A command that needs its work does it by itself.
    Failed(String),
}

/// A future of a service.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Work of one core that no command waits for. Between two steps it holds nothing that commands or
/// cleaning need.
pub trait Service {
    /// Does the next step.
    fn step(&mut self) -> Pending<'_, Step>;

    /// Waits, after a step without work, until there may be some.
    fn wait(&mut self) -> Pending<'_, ()>;
}
