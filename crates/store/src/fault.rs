//! [`Fault`]: the party at fault, which every error of this crate reports.

/// Party at fault for an error; it decides the exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The user asked for something impossible: a wrong type, an unknown name, a bad file.
    Usage,
    /// The run failed: a drive, the network, the media or a stored value is at fault.
    Run,
}
