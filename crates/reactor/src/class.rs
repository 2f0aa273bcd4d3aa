//! [`Class`]: the priority classes of tasks and jobs.

/// Priority of a task or job. Busy time is counted by class, and background tasks run last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A host's command.
    Foreground,
    /// Work that a command or the drive itself started.
    Background,
    /// Upkeep: accepting, keep-alive, the core's own main future.
    System,
}
