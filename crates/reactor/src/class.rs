//! [`Class`]: the priority classes of tasks and jobs.

/// Priority of a task or job. Busy time is counted by class. Tasks of the tunnel, of executions and
/// of services yield to foreground and system ones, and these three classes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A host's command.
    Foreground,
    /// Packets between a host and a drive's own operating system.
    Tunnel,
    /// Work of an execution that a host asked for, commands of other drives included. On a host:
    /// work that a command has next to its own course.
    Execution,
    /// Work of the drive itself, which no command asked for: cleaning and scrub.
    Service,
    /// Upkeep: accepting, keep-alive, the core's own main future.
    System,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 5;
}
