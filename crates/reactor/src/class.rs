//! [`Class`]: the priority classes of tasks and jobs.

/// Priority of a task or job. Busy time is counted by class. Tunnel and background tasks yield to
/// foreground and system ones, and take turns with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A host's command.
    Foreground,
    /// Packets between a host and a drive's own operating system.
    Tunnel,
    /// Work that a command or the drive itself started.
    Background,
    /// Upkeep: accepting, keep-alive, the core's own main future.
    System,
}
