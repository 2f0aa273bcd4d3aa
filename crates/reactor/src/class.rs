//! [`Class`]: the priority classes of tasks and jobs.

/// For whom work is done: busy time is counted by it, and background work goes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A host's command.
    Foreground,
    /// Work that a command or the drive itself gave rise to.
    Background,
    /// Upkeep: accepting, keep-alive, the core's own main future.
    System,
}
