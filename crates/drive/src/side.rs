//! [`Side`]: the two sides of a drive that hosts and its own operating system connect to.

/// Side from which a connection reaches the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// A host's: over the network.
    #[default]
    Outside,
    /// That of the drive's own operating system: over a Unix socket. Its data does not cross the
    /// link to the host.
    Inside,
}

impl Side {
    /// Both sides, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Outside, Self::Inside];

    /// Returns the name in logs and in labels of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Inside => "inside",
        }
    }
}
